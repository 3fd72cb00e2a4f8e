use std::hint::black_box;
use std::time::Instant;

use proptest::prelude::*;

use super::wire::BODY_APART;
use super::*;
use crate::http2::hpack;
use crate::{Body, Reuse};

const ALONE: Numbers = Numbers { base: 0, first: 0, stride: 1 };
const HTTP2: Protocol = Protocol::Http2 { streams: 10 };
const GRPC: Protocol = Protocol::Grpc { streams: 10 };

fn speaking(protocol: Protocol) -> ConnectionPlan {
    ConnectionPlan { protocol, ..ConnectionPlan::default() }
}

fn people() -> Rows {
    Rows {
        columns: vec!["id".into(), "name".into()],
        rows: [["7", "Ann"], ["8", "Bob Ross"], ["9", "Ch\u{e9}"]]
            .iter()
            .map(|row| row.map(String::from).to_vec())
            .collect(),
    }
}

fn requests(targets: &[Target], protocol: Protocol) -> Result<Requests, LoadError> {
    Requests::new(targets, &people(), &speaking(protocol), 1, ALONE)
}

fn http1(target: &Target) -> Requests {
    requests(std::slice::from_ref(target), Protocol::Http1).unwrap()
}

/// The next request as it goes over the wire.
fn text(requests: &mut Requests) -> String {
    let message = requests.render(0);
    String::from_utf8([message.head, message.body].concat()).unwrap()
}

fn refusal(target: Target, protocol: Protocol) -> LoadError {
    requests(&[target], protocol).expect_err("the target cannot be sent")
}

fn post(url: &str, body: &str) -> Target {
    Target { method: "POST".into(), body: body.into(), ..Target::get(url) }
}

fn template(target: Target) -> Target {
    Target { template: true, ..target }
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

#[test]
fn a_get_has_a_host_and_no_length() {
    assert_eq!(
        text(&mut http1(&Target::get("http://server:9000/a?b=c#d"))),
        "GET /a?b=c HTTP/1.1\r\nhost: server:9000\r\n\r\n"
    );
}

#[test]
fn headers_keep_their_order_and_a_body_its_length() {
    let headers = vec![header("b", "1"), header("Host", "other")];
    assert_eq!(
        text(&mut http1(&Target { headers, ..post("http://server", "hello") })),
        "POST / HTTP/1.1\r\nb: 1\r\nHost: other\r\ncontent-length: 5\r\n\r\nhello"
    );
}

#[test]
fn a_post_says_its_length_even_when_it_is_zero() {
    assert!(text(&mut http1(&post("http://a", ""))).contains("\r\ncontent-length: 0\r\n"));
}

#[test]
fn braces_are_no_placeholders_unless_the_target_is_a_template() {
    let target = post("http://a/{{counter}}", "{{csv.id}} {{");
    let sent = text(&mut http1(&target));
    assert!(sent.starts_with("POST /{{counter}} ") && sent.ends_with("{{csv.id}} {{"), "{sent}");
}

#[test]
fn a_connection_for_one_request_is_announced_unless_the_user_says_otherwise() {
    let once = ConnectionPlan { reuse: Reuse::PerRequest, ..ConnectionPlan::default() };
    let sent = |headers| {
        let target = Target { headers, ..Target::get("http://a") };
        text(&mut Requests::new(&[target], &Rows::default(), &once, 1, ALONE).unwrap())
    };
    assert!(sent(vec![]).contains("\r\nconnection: close\r\n"));
    let kept = sent(vec![header("Connection", "keep-alive")]);
    assert!(kept.contains("Connection: keep-alive\r\n") && !kept.contains("close"), "{kept}");
}

#[test]
fn what_would_break_the_framing_is_refused() {
    for (name, value) in [
        ("content-length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("a b", "c"),
        ("a:", "c"),
        ("", "c"),
        ("a", "b\r\nc: d"),
    ] {
        let target = Target { headers: vec![header(name, value)], ..Target::get("http://a") };
        let error = refusal(target, Protocol::Http1);
        assert!(matches!(error, LoadError::BadHeader { .. }), "{name}: {error}");
    }
    let method = Target { method: "GET /".into(), ..Target::get("http://a") };
    assert!(matches!(refusal(method, Protocol::Http1), LoadError::BadMethod { .. }));
}

#[test]
fn a_template_takes_its_values_from_one_number_and_one_row() {
    let mut requests = http1(&template(Target {
        headers: vec![header("x-id", "{{csv.id}}/{{counter}}")],
        ..post("http://a/{{csv.name}}?n={{counter}}", r#"{"who":"{{csv.name}}"}"#)
    }));
    let sent = |path: &str, id: &str, length: u32, name: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nx-id: {id}\r\ncontent-length: {length}\r\n\r\n\
             {{\"who\":\"{name}\"}}"
        )
    };
    assert_eq!(text(&mut requests), sent("/Ann?n=0", "7/0", 13, "Ann"));
    assert_eq!(text(&mut requests), sent("/Bob%20Ross?n=1", "8/1", 18, "Bob Ross"));
    assert_eq!(text(&mut requests), sent("/Ch%C3%A9?n=2", "9/2", 14, "Ch\u{e9}"));
    assert_eq!(text(&mut requests), sent("/Ann?n=3", "7/3", 13, "Ann"));
}

#[test]
fn a_template_that_cannot_be_filled_is_refused_wherever_the_fault_stands() {
    let header = |value| Target { headers: vec![header("a", value)], ..Target::get("http://a") };
    let binary = Target { body: Body(vec![0xff, b'{']), ..post("http://a", "") };
    for (target, error) in [
        (Target::get("http://a/{{conter}}"), "there is no placeholder `{{conter}}`"),
        (header("{{csv.nam}}"), "there is no column `nam`"),
        (post("http://a", "{{counter"), "the placeholder `{{counter` is not closed"),
        (binary, "a body that is not text cannot hold placeholders"),
    ] {
        assert_eq!(refusal(template(target), Protocol::Http1).to_string(), error);
    }
}

#[test]
fn a_large_body_is_not_copied_behind_its_head() {
    for (bytes, apart) in [(BODY_APART - 1, false), (BODY_APART, true)] {
        let body = "x".repeat(bytes);
        let varying = format!("{}{{{{counter}}}}", &body[1..]);
        for target in [
            post("http://a", &body),
            template(post("http://a/{{counter}}", &body)),
            template(post("http://a", &varying)),
        ] {
            let mut requests = http1(&target);
            let Message { head, body, body_bytes, .. } = requests.render(0);
            assert_eq!(body_bytes, bytes as u64);
            assert_eq!(body.len(), if apart { bytes } else { 0 });
            assert_eq!(head.len() > bytes, !apart);
        }
    }
}

#[test]
fn only_the_answer_to_head_has_no_body() {
    let head = Target { method: "head".into(), ..Target::get("http://a/b/c") };
    let is_marked =
        |protocol| requests(std::slice::from_ref(&head), protocol).unwrap().render(0).is_head;
    for (protocol, is_head) in [(Protocol::Http1, true), (HTTP2, true), (GRPC, false)] {
        assert_eq!(is_marked(protocol), is_head);
    }
}

#[test]
fn an_origin_is_named_once_in_order_of_first_use() {
    let urls =
        ["http://b/1", "http://a:80", "https://b", "http://b:80/2", "http://a:81", "http://a"];
    let requests = requests(&urls.map(Target::get), Protocol::Http1).unwrap();
    let origins: Vec<_> = requests.origins().iter().map(|o| (o.scheme, &*o.host, o.port)).collect();
    let (http, https) = (Scheme::Http, Scheme::Https);
    assert_eq!(origins, [(http, "b", 80), (http, "a", 80), (https, "b", 443), (http, "a", 81)]);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|target| requests.origin_of(target)), [0, 1, 2, 0, 3, 1]);
}

#[test]
fn a_target_that_is_never_chosen_is_refused() {
    let never = Target { weight: 0, ..Target::get("http://a") };
    let error = refusal(never, Protocol::Http1);
    assert_eq!(error.to_string(), "a target's weight is zero");
    assert_eq!(
        requests(&[], Protocol::Http1).unwrap_err().to_string(),
        "the number of targets is zero"
    );
}

#[test]
fn targets_are_chosen_by_weight() {
    let target = |path: &str, weight| Target { weight, ..Target::get(format!("http://a/{path}")) };
    let mut requests =
        requests(&[target("often", 3), target("seldom", 1)], Protocol::Http1).unwrap();
    let mut sent = [0; 2];
    (0..4000).for_each(|_| sent[requests.choose()] += 1);
    assert_eq!(sent, [3000, 1000]);
}

#[test]
fn random_values_follow_the_seed_and_differ_between_event_loops() {
    let target = template(Target::get("http://a/{{random}}{{random.1.1000000}}"));
    let sent = |seed, first| {
        let numbers = Numbers { base: 0, first, stride: 2 };
        let plan = ConnectionPlan::default();
        let targets = [target.clone()];
        let mut requests = Requests::new(&targets, &Rows::default(), &plan, seed, numbers).unwrap();
        [text(&mut requests), text(&mut requests)]
    };
    assert_eq!(sent(1, 0), sent(1, 0));
    assert_ne!(sent(1, 0), sent(1, 1));
    assert_ne!(sent(1, 0), sent(2, 0));
    assert_ne!(sent(1, 0)[0], sent(1, 0)[1]);
}

/// The fields of a first request, before they are encoded.
fn fields(target: &Target, list: fn(&Parts) -> Vec<http2::Field>) -> Vec<(String, String)> {
    let rows = people();
    let mut columns = Columns::new(&rows).unwrap();
    let parts = Parts::new(target, &mut columns).unwrap();
    let rng = random::stream(1, Use::Values, 0);
    let mut values = Values { number: 0, body_bytes: 99, cells: columns.into_cells(), rng };
    let text = |(name, value): http2::Field| {
        let mut out = Vec::new();
        value.render(&mut values, &mut out);
        (name, String::from_utf8(out).unwrap())
    };
    list(&parts).into_iter().map(text).collect()
}

fn listed(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| header(name, value)).collect()
}

#[test]
fn a_request_over_http2_has_lower_case_fields_and_none_of_the_connection() {
    let target = Target {
        headers: vec![
            header("X-Id", "{{csv.id}}"),
            header("Connection", "keep-alive"),
            header("Keep-Alive", "9"),
            header("Proxy-Connection", "close"),
            header("Upgrade", "h2c"),
            header("TE", "gzip"),
            header("te", "Trailers"),
            header("Host", "shop"),
        ],
        ..post("https://server:9000/a?n={{counter}}", "{{csv.name}}")
    };
    assert_eq!(
        fields(&template(target), http2::request),
        listed(&[
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "shop"),
            (":path", "/a?n=0"),
            ("x-id", "7"),
            ("te", "Trailers"),
            ("content-length", "99"),
        ])
    );
}

#[test]
fn a_plain_get_over_http2_is_four_fields() {
    assert_eq!(
        fields(&Target::get("http://server"), http2::request),
        listed(&[
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "server"),
            (":path", "/"),
        ])
    );
}

#[test]
fn a_call_is_a_post_that_asks_for_trailers() {
    let call = |headers| {
        let url = "http://server:1/shop.Cart/Add";
        fields(&Target { headers, ..Target::get(url) }, http2::call)
    };
    let pseudo = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "server:1"),
        (":path", "/shop.Cart/Add"),
        ("te", "trailers"),
    ];
    let proto = [("content-type", "application/grpc+proto"), ("x-a", "1")];
    assert_eq!(call(vec![header("X-A", "1")]), listed(&[&pseudo[..], &proto].concat()));
    let json = [("content-type", "application/grpc+json")];
    let given = vec![header("Content-Type", "application/grpc+json"), header("te", "trailers")];
    assert_eq!(call(given), listed(&[&pseudo[..], &json].concat()));
}

#[test]
fn a_header_block_is_the_fields_encoded_in_order() {
    for target in [
        Target::get("http://a/b"),
        template(Target {
            headers: vec![header("a", "1"), header("b", " {{csv.name}} "), header("c", "2 ")],
            ..Target::get("http://a/{{counter}}")
        }),
    ] {
        let mut expected = Vec::new();
        for (name, value) in fields(&target, http2::request) {
            hpack::encode_header(&mut expected, name.as_bytes(), value.trim().as_bytes());
        }
        let mut requests = requests(&[target], HTTP2).unwrap();
        assert_eq!(requests.render(0).head, expected);
    }
}

#[test]
fn a_body_over_http2_is_apart_and_a_message_of_a_call_has_its_length_before_it() {
    let constant = post("http://a/b/c", "hello");
    let varying = template(post("http://a/b/c", "h{{csv.name}}!"));
    for (target, protocol, body) in [
        (&constant, HTTP2, &b"hello"[..]),
        (&varying, HTTP2, b"hAnn!"),
        (&constant, GRPC, b"\0\0\0\0\x05hello"),
        (&varying, GRPC, b"\0\0\0\0\x05hAnn!"),
        (&Target::get("http://a/b/c"), GRPC, b"\0\0\0\0\0"),
    ] {
        let mut requests = requests(std::slice::from_ref(target), protocol).unwrap();
        let message = requests.render(0);
        assert_eq!((message.body, message.body_bytes), (body, body.len() as u64));
    }
}

#[test]
fn a_call_needs_a_service_and_a_method() {
    for url in ["http://a", "http://a/", "http://a/service/"] {
        let error = refusal(Target::get(url), GRPC);
        assert!(error.to_string().contains("/package.Service/Method"), "{error}");
    }
    assert!(requests(&[template(Target::get("http://a/{{csv.name}}"))], GRPC).is_ok());
}

#[test]
fn a_request_allocates_nothing() {
    let varying = template(Target {
        headers: vec![header("x-id", "{{csv.id}}")],
        ..post("http://a/s/{{counter}}?r={{random}}", "{{csv.name}} {{random.-9.9}}")
    });
    let seldom = Target { weight: 7, ..Target::get("http://b/s/m") };
    for protocol in [Protocol::Http1, HTTP2, GRPC] {
        let mut requests = requests(&[varying.clone(), seldom.clone()], protocol).unwrap();
        let mut send = || {
            let target = requests.choose();
            black_box(requests.render(target));
        };
        // The buffers grow to the largest request first.
        (0..1000).for_each(|_| send());
        let counted = allocation_counter::measure(|| (0..10_000).for_each(|_| send()));
        assert_eq!(counted.count_total, 0, "{protocol:?}");
    }
}

/// One HTTP/1.1 request as another parser reads it.
struct Read {
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Read {
    fn new(message: Message) -> Read {
        let bytes = [message.head, message.body].concat();
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = parsed.parse(&bytes).unwrap().unwrap();
        Read {
            method: parsed.method.unwrap().into(),
            path: parsed.path.unwrap().into(),
            headers: parsed.headers.iter().map(|h| (h.name.into(), h.value.into())).collect(),
            body: bytes[head..].into(),
        }
    }

    fn content_length(&self) -> usize {
        let length = self.headers.iter().find(|(name, _)| name == "content-length");
        length.map_or(0, |(_, value)| str::from_utf8(value).unwrap().parse().unwrap())
    }
}

/// Text as the pattern says; `GAP` in it is a placeholder or nothing.
fn like(pattern: &str) -> impl Strategy<Value = String> + use<> {
    let gap = "(\\{\\{(counter|random|random\\.-5\\.5|csv\\.id|csv\\.name)\\}\\})?";
    prop::string::string_regex(&pattern.replace("GAP", gap)).unwrap()
}

fn any_target() -> impl Strategy<Value = Target> {
    let methods = vec!["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
    let name = like("x-[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,9}");
    (
        prop::sample::select(methods),
        like("[a-z]{1,8}(:[1-9][0-9]{0,3})?(/[a-z0-9%._~-]{0,5}GAP){0,3}(\\?q=GAP)?"),
        prop::collection::vec((name, like("[ -z\t]{0,9}GAP")), 0..9),
        like("[a-z\u{e9}\"\r\n ]{0,30}GAP"),
        any::<bool>(),
    )
        .prop_map(|(method, rest, headers, body, template)| Target {
            method: method.into(),
            headers,
            body: Body(body.into_bytes()),
            template,
            ..Target::get(format!("http://{rest}"))
        })
}

proptest! {
    #[test]
    fn another_parser_reads_every_request_as_it_was_meant(target in any_target()) {
        let read = Read::new(http1(&target).render(0));
        prop_assert_eq!(&read.method, &target.method);
        prop_assert!(read.path.starts_with('/'));
        let names: Vec<_> = read.headers.iter().map(|(name, _)| &**name).collect();
        let given: Vec<_> = target.headers.iter().map(|(name, _)| &**name).collect();
        prop_assert_eq!(names[0], "host");
        prop_assert_eq!(&names[1..=given.len()], &given[..]);
        if !target.template {
            prop_assert!(target.url.contains(read.path.trim_start_matches('/')));
            prop_assert_eq!(&read.body, &target.body.0);
            for ((_, sent), (_, given)) in read.headers[1..].iter().zip(&target.headers) {
                prop_assert_eq!(&sent[..], given.as_bytes().trim_ascii());
            }
        }
    }

    #[test]
    fn the_length_that_a_head_says_is_that_of_the_body(target in any_target(), times in 1..5) {
        let mut requests = http1(&template(target));
        for _ in 0..times {
            let message = requests.render(0);
            let read = Read::new(message);
            prop_assert_eq!(read.content_length(), read.body.len());
            prop_assert_eq!(message.body_bytes, read.body.len() as u64);
        }
    }

    #[test]
    fn event_loops_share_the_numbers_without_a_gap(stride in 1_u64..6, each in 1_u64..40) {
        let target = template(Target::get("http://a/{{counter}}"));
        let plan = ConnectionPlan::default();
        let mut seen = Vec::new();
        for first in 0..stride {
            let numbers = Numbers { base: 0, first, stride };
            let targets = [target.clone()];
            let mut requests = Requests::new(&targets, &people(), &plan, 1, numbers).unwrap();
            for _ in 0..each {
                let sent = text(&mut requests);
                seen.push(sent.split(['/', ' ']).nth(2).unwrap().parse::<u64>().unwrap());
            }
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..stride * each).collect::<Vec<_>>());
    }
}

#[test]
#[ignore = "a measurement: cargo test --release -p toll-load --lib ns_per_request -- --ignored --nocapture"]
fn ns_per_request() {
    let plain = Target::get("http://server/items");
    let gaps = template(Target {
        headers: vec![header("x-id", "{{csv.id}}")],
        ..Target::get("http://server/items/{{counter}}?name={{csv.name}}")
    });
    let body = template(post("http://server/items", r#"{"n":{{counter}},"who":"{{csv.name}}"}"#));
    let two = [Target { weight: 3, ..plain.clone() }, gaps.clone()];
    for (what, targets) in [
        ("static", &[plain][..]),
        ("counter and csv", &[gaps]),
        ("counter and csv in a body", &[body]),
        ("two targets, 3:1", &two),
    ] {
        for protocol in [Protocol::Http1, HTTP2] {
            let mut requests = requests(targets, protocol).unwrap();
            let count = 5_000_000;
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let begin = Instant::now();
                for _ in 0..count {
                    let target = requests.choose();
                    black_box(requests.render(target));
                }
                best = best.min(begin.elapsed().as_nanos() as f64 / f64::from(count));
            }
            eprintln!("{what}, {protocol:?}: {best:.1} ns");
        }
    }
}
