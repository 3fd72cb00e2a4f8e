use super::*;

fn common() -> Common {
    Common { headers: vec![("x-all".into(), "1".into())], ..Common::default() }
}

/// Files that bodies may come from.
fn file(path: &Path) -> io::Result<Vec<u8>> {
    match path.to_str() {
        Some("new.json") => Ok(b"{\"new\": 1}".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn targets(text: &str) -> Result<Vec<Target>, BadLine> {
    parse(text, &common(), &mut file)
}

/// Method, URL, own headers, body and weight.
fn told(target: &Target) -> String {
    let headers: Vec<_> = target.headers[1..].iter().map(|(n, v)| format!("{n}={v}")).collect();
    let body = String::from_utf8_lossy(&target.body.0);
    format!("{} {} [{}] {body:?} x{}", target.method, target.url, headers.join(" "), target.weight)
}

#[test]
fn the_plain_form_is_read_as_vegeta_documents_it() {
    let text = "\
# what vegeta's README shows
GET http://goku:9090/path/to/dragon?item=ball
GET http://goku:9090/path/to
X-Account-ID: 8675309

DELETE http://goku:9090/path/to/remove
Confirmation-Token: 90215
Authorization: Token DEADBEEF

# weight: 3
POST http://goku:9090/things
X-Account-ID: 99
@new.json
";
    let told: Vec<_> = targets(text).unwrap().iter().map(told).collect();
    assert_eq!(
        told,
        [
            "GET http://goku:9090/path/to/dragon?item=ball [] \"\" x1",
            "GET http://goku:9090/path/to [X-Account-ID=8675309] \"\" x1",
            "DELETE http://goku:9090/path/to/remove [Confirmation-Token=90215 \
             Authorization=Token DEADBEEF] \"\" x1",
            "POST http://goku:9090/things [X-Account-ID=99] \"{\\\"new\\\": 1}\" x3",
        ]
    );
}

#[test]
fn the_json_form_is_read_as_vegeta_documents_it() {
    let text = r#"{"method":"GET","url":"http://goku","body":"UHVuY2gh","header":{"Content-Type":["text/plain"]}}

{"method":"POST","url":"http://goku/2","header":{"A":["1","2"]},"weight":4}
"#;
    let told: Vec<_> = targets(text).unwrap().iter().map(told).collect();
    assert_eq!(
        told,
        [
            "GET http://goku [Content-Type=text/plain] \"Punch!\" x1",
            "POST http://goku/2 [A=1 A=2] \"\" x4",
        ]
    );
}

#[test]
fn headers_of_the_command_line_come_first_and_its_body_fills_in() {
    let common = Common { body: "all".into(), template: true, ..common() };
    for text in ["GET http://a/", "{\"method\":\"GET\",\"url\":\"http://a/\"}"] {
        let target = parse(text, &common, &mut file).unwrap().remove(0);
        assert_eq!(target.headers, [("x-all".to_owned(), "1".to_owned())]);
        assert_eq!((target.body, target.template), ("all".into(), true));
    }
}

#[test]
fn a_wrong_line_is_named() {
    for (text, line, problem) in [
        ("get http://a/", 1, "no METHOD URL"),
        ("GET http://a/\nno header", 2, "no header"),
        ("GET http://a/\n\nX-Late: 1", 3, "no METHOD URL"),
        ("GET http://a/\n@new.json\nX-Late: 1", 3, "no METHOD URL"),
        ("\nGET http://a/\n@missing.json", 3, "cannot read missing.json"),
        ("# weight: much\nGET http://a/", 1, "whole number"),
        ("# weight: 0\nGET http://a/", 1, "1 or more"),
        ("{\"method\":\"GET\",\"url\":\"http://a/\"}\n{\"method\":\"GET\"}", 2, "url"),
        ("{\"method\":\"GET\",\"url\":\"http://a/\",\"headers\":{}}", 1, "headers"),
        ("{\"method\":\"GET\",\"url\":\"http://a/\",\"body\":\"%\"}", 1, "base64"),
        ("{\"method\":\"GET\",\"url\":\"http://a/\",\"weight\":0}", 1, "1 or more"),
    ] {
        let bad = targets(text).expect_err(text);
        assert_eq!(bad.line, line, "{text}");
        assert!(bad.problem.contains(problem), "{text}: {}", bad.problem);
    }
}

#[test]
fn a_file_of_comments_holds_no_target() {
    assert_eq!(targets("# nothing\n\n"), Ok(vec![]));
}
