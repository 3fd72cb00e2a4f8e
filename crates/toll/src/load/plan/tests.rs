use clap::Parser;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Parser)]
struct Typed {
    #[command(flatten)]
    load: LoadArguments,
}

/// The files of the tests, by name.
fn file(path: &Path) -> io::Result<Vec<u8>> {
    Ok(match path.to_str().unwrap_or_default() {
        "body.bin" => b"\xffbody".to_vec(),
        "ca.pem" | "cert.pem" | "key.pem" => path.display().to_string().into_bytes(),
        "-" | "targets.txt" => b"GET http://a/\n# weight: 2\nPOST b/\n".to_vec(),
        "bad.txt" => b"GET http://a/\nnonsense\n".to_vec(),
        "empty" => Vec::new(),
        "rows.csv" => b"name,age\nann,3\n\"b, ob\",4\n".to_vec(),
        "ragged.csv" => b"name,age\nann\n".to_vec(),
        _ => return Err(io::ErrorKind::NotFound.into()),
    })
}

fn now() -> jiff::Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn typed(line: &str) -> Result<Typed, clap::Error> {
    Typed::try_parse_from(["load"].into_iter().chain(line.split_whitespace()))
}

fn ordered(line: &str) -> Result<Order, LoadFault> {
    let typed = typed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    order(&typed.load, &mut World { read: &mut file, now: now() })
}

#[track_caller]
fn plan(line: &str) -> LoadPlan {
    ordered(line).unwrap_or_else(|error| panic!("{line}: {error}")).plan
}

fn notes(line: &str) -> String {
    ordered(line).unwrap().notes.join("\n")
}

fn held(value: f64) -> Value {
    json!([{"duration_s": 0.0, "from": value, "to": value}])
}

fn piece(duration_s: f64, from: f64, to: f64) -> Value {
    json!({"duration_s": duration_s, "from": from, "to": to})
}

fn closed(clients: Value, requests: u32, think_ms: f64) -> Value {
    json!({"closed": {"clients": clients, "iteration": {"requests": requests, "think_ms": think_ms}}})
}

fn open(rate: Value, spacing: &str, max_connections: u32) -> Value {
    let arrivals = json!({"rate_per_s": rate, "spacing": spacing});
    json!({"open": {"arrivals": arrivals, "max_connections": max_connections}})
}

#[test]
fn the_shape_of_the_load_is_as_the_other_tools_mean_it() {
    let seconds = |s: f64| json!({"after_seconds": s});
    let requests = |n: u64| json!({"after_requests": n});
    let ramp = json!([piece(30.0, 1.0, 100.0), piece(60.0, 100.0, 100.0)]);
    let ramp_from_5 = json!([piece(30.0, 5.0, 100.0)]);
    let rising = json!([piece(10.0, 0.0, 500.0), piece(5.0, 500.0, 0.0)]);
    let stairs = json!([piece(300.0, 1.0, 1.0), piece(300.0, 5.0, 5.0)]);
    for (line, model, stop) in [
        ("", closed(held(50.0), 1, 0.0), seconds(10.0)),
        ("-n 1000 -c 10", closed(held(10.0), 1, 0.0), requests(1000)),
        ("-c 8 -z 1m30s", closed(held(8.0), 1, 0.0), seconds(90.0)),
        ("--vus 8 --duration 2m", closed(held(8.0), 1, 0.0), seconds(120.0)),
        ("-u 8", closed(held(8.0), 1, 0.0), seconds(10.0)),
        ("-n 10 -c 50", closed(held(10.0), 1, 0.0), requests(10)),
        ("-n 10", closed(held(10.0), 1, 0.0), requests(10)),
        ("--think-time 1s --parallel 3", closed(held(50.0), 3, 1000.0), seconds(10.0)),
        ("--stages 30s:100,1m:100", closed(ramp, 1, 0.0), seconds(90.0)),
        ("--stages 30s:100 -c 5", closed(ramp_from_5, 1, 0.0), seconds(30.0)),
        ("--steps 1,5x5m", closed(stairs, 1, 0.0), seconds(600.0)),
        ("--http2 --streams 10 -c 5", closed(held(50.0), 1, 0.0), seconds(10.0)),
        ("--rate 1000", open(held(1000.0), "even", 1000), seconds(10.0)),
        ("--rate 300/m -n 20", open(held(5.0), "even", 1000), requests(20)),
        ("--rate 100 --poisson", open(held(100.0), "poisson", 1000), seconds(10.0)),
        ("--rate 100 -c 7", open(held(100.0), "even", 7), seconds(10.0)),
        ("--rate 100 --max-connections 9", open(held(100.0), "even", 9), seconds(10.0)),
        ("-q 20 -c 10", open(held(200.0), "even", 10), seconds(10.0)),
        ("-q 2", open(held(100.0), "even", 50), seconds(10.0)),
        ("--rate-stages 10s:500,5s:0", open(rising, "even", 1000), seconds(15.0)),
    ] {
        let plan = plan(&format!("{line} http://a/"));
        assert_eq!(serde_json::to_value(plan.model).unwrap(), model, "{line}");
        assert_eq!(serde_json::to_value(plan.stop).unwrap(), stop, "{line}");
    }
}

#[test]
fn lines_that_contradict_themselves_are_refused() {
    for line in [
        "",
        "http://a/ -c 0",
        "http://a/ -n 0",
        "http://a/ -z 0s",
        "http://a/ -n 10 -z 10s",
        "http://a/ --rate 0",
        "http://a/ --rate 10 -q 10",
        "http://a/ --rate 10 --rate-stages 1s:10",
        "http://a/ --rate 10 --think-time 1s",
        "http://a/ --rate 10 --stages 1s:10",
        "http://a/ --rate 10 -c 5 --max-connections 5",
        "http://a/ --stages 1s:10 --steps 1x1s",
        "http://a/ --stages 1s:10 -z 1s",
        "http://a/ --poisson",
        "http://a/ --max-connections 5",
        "http://a/ --streams 5",
        "http://a/ --http2 --grpc",
        "http://a/ --key key.pem",
        "http://a/ -d text -D body.bin",
        "http://a/ --targets targets.txt",
        "http://a/ --threads 0",
        "http://a/ --part 4/3",
        "http://a/ --output jsn",
        "http://a/ --fail-if p99",
        "http://a/ -t 5",
    ] {
        assert!(typed(line).is_err(), "{line}");
    }
}

/// A request as a line of text.
fn request(line: &str) -> String {
    let target = plan(line).targets.remove(0);
    let headers: Vec<_> = target.headers.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let body = String::from_utf8_lossy(&target.body.0).into_owned();
    format!("{} {} {} {body}", target.method, target.url, headers.join("&")).trim().to_owned()
}

#[test]
fn the_request_is_spelled_as_for_hey_and_curl() {
    for (line, sent) in [
        ("http://a/", "GET http://a/"),
        ("localhost:8080/x", "GET http://localhost:8080/x"),
        ("-m DELETE http://a/", "DELETE http://a/"),
        ("-X DELETE http://a/", "DELETE http://a/"),
        ("-d text http://a/", "POST http://a/  text"),
        ("-d text -m PUT http://a/", "PUT http://a/  text"),
        ("-D body.bin http://a/", "POST http://a/  \u{fffd}body"),
        ("-H x:1 -H y:2:3 http://a/", "GET http://a/ x=1&y=2:3"),
        ("-T text/plain -A */* http://a/", "GET http://a/ content-type=text/plain&accept=*/*"),
        ("http://ann:p%61ss@a/x@y", "GET http://a/x@y authorization=Basic YW5uOnBhc3M="),
        ("-a ann:pass http://a/", "GET http://a/ authorization=Basic YW5uOnBhc3M="),
    ] {
        assert_eq!(request(line), sent, "{line}");
    }
}

#[test]
fn several_targets_come_from_the_line_or_from_a_file() {
    let told = |line: &str| -> Vec<_> {
        let targets = plan(line).targets.into_iter();
        targets
            .map(|target| format!("{} {} {}", target.method, target.url, target.weight))
            .collect()
    };
    assert_eq!(told("http://a/ http://b/"), ["GET http://a/ 1", "GET http://b/ 1"]);
    let of_file = ["GET http://a/ 1", "POST http://b/ 2"];
    assert_eq!(told("--targets targets.txt"), of_file);
    assert_eq!(told("--targets -"), of_file);
}

#[test]
fn rows_make_a_template_of_the_request() {
    let plan = plan("--rows rows.csv http://a/{{csv.name}}");
    assert_eq!(plan.rows.columns, ["name", "age"]);
    assert_eq!(plan.rows.rows, [["ann", "3"], ["b, ob", "4"]]);
    assert!(plan.targets[0].template);
}

#[test]
fn the_connection_is_made_as_typed() {
    let plain = plan("http://a/").connection;
    assert_eq!(plain, ConnectionPlan::default());
    let typed = plan(
        "--grpc --streams 4 --disable-keepalive --unix-socket /s --resolve a:80:127.0.0.1 \
         --laddr 127.0.0.2-127.0.0.3,::1 --laddr 127.0.0.9 -k --cacert ca.pem --cert cert.pem \
         --key key.pem --server-name b --no-resumption http://a/",
    )
    .connection;
    insta::assert_snapshot!(serde_json::to_string_pretty(&typed).unwrap());
    let one_file = plan("--cert cert.pem https://a/").connection.tls.identity.unwrap();
    assert_eq!(one_file.key_pem, "cert.pem");
}

#[test]
fn the_engine_is_set_as_typed() {
    let plain = plan("http://a/");
    assert_eq!((plain.threads, plain.seed, plain.idle), (1, 1, Idle::Block));
    assert_eq!((plain.timeout_ms, plain.warm_up), (20_000, WarmUp { min_s: 0.0, max_s: 0.0 }));
    assert_eq!(plan("--rate 5 --idle spin http://a/").idle, Idle::Spin);
    let warm = plan("--warm-up 2s --warm-up-max 5s --timeout 150ms --threads 2 --seed 7 http://a/");
    assert_eq!((warm.timeout_ms, warm.warm_up), (150, WarmUp { min_s: 2.0, max_s: 5.0 }));
    assert_eq!((warm.threads, warm.seed), (2, 7));
    assert_eq!(plan("--warm-up 2s http://a/").warm_up, WarmUp { min_s: 2.0, max_s: 2.0 });
}

#[test]
fn parts_begin_at_one_instant() {
    let plan = plan("--part 2/3 --start-at 2026-11-21T12:00:01Z http://a/");
    assert_eq!((plan.part.index, plan.part.of), (1, 3));
    assert_eq!(plan.start_at_unix_ns, Some(1_795_262_401_000_000_000));
    let passed = ordered("--start-at 2026-11-21T12:00:00Z http://a/").unwrap_err();
    assert!(matches!(passed, LoadFault::StartPassed { .. }));
    assert!(notes("--part 2/3 http://a/").contains("--start-at"));
}

#[test]
fn files_and_lines_that_are_wrong_are_named() {
    for (line, said) in [
        ("--targets missing", "cannot read missing (targets)"),
        ("--targets bad.txt", "bad.txt:2: `nonsense` is no header"),
        ("--targets empty", "empty holds no targets"),
        ("--rows ragged.csv http://a/", "ragged.csv:2: 1 values where the header has 2 names"),
        ("--rows empty http://a/", "empty holds no rows"),
        ("-D missing http://a/", "cannot read missing (body)"),
        ("--cacert missing https://a/", "cannot read missing (certificates)"),
        ("--cacert body.bin https://a/", "invalid utf-8"),
        ("-H nonsense http://a/", "`nonsense` is no header"),
        ("--warm-up 5s --warm-up-max 1s http://a/", "--warm-up-max is shorter"),
        ("--part 1/2 --warm-up-max 9s http://a/", "each part would end its warm-up on its own"),
    ] {
        let fault = ordered(line).expect_err(line);
        assert!(fault.to_string().contains(said), "{line}: {fault}");
        assert!(fault.is_usage(), "{line}");
    }
}

#[test]
fn habits_that_mean_something_else_here_are_told() {
    assert!(notes("-n 10 -c 50 http://a/").contains("no more than 10 clients busy"));
    assert!(notes("-d @body.json http://a/").contains("-D body.json"));
    for line in ["-n 10 http://a/", "-n 50 -c 50 http://a/", "-d text http://a/"] {
        assert_eq!(notes(line), "", "{line}");
    }
}

#[test]
fn a_length_typed_as_for_wrk_or_vegeta_is_no_body() {
    for (line, typed, length) in [
        ("-d 5s http://a/", "`-d 5s`", "-z 5s"),
        ("-d1m30s http://a/", "`-d 1m30s`", "-z 1m30s"),
        ("-d 30 http://a/", "`-d 30`", "-z 30"),
        ("-duration=5s http://a/", "`-duration=5s`", "-z 5s"),
        ("-duration 5s http://a/", "`-duration`", "-z TIME"),
    ] {
        let fault = ordered(line).expect_err(line);
        let said = fault.to_string();
        assert!(said.starts_with(typed) && said.ends_with(length), "{line}: {said}");
        assert!(fault.is_usage() && fault.help().unwrap().contains("-D FILE"), "{line}");
    }
    for line in ["-d 5s -m POST http://a/", "-d text http://a/", "-d 5x http://a/"] {
        assert!(ordered(line).is_ok(), "{line}");
    }
}
