//! Requests through one service and through chains of them.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::running::{Connection, HANG, Running, calling, calling_in_turn, exchange, plain, with};

/// An address where nobody listens.
fn dead_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port")
}

#[test]
fn a_chain_of_two_services_answers_hello() {
    let server = Running::start(&plain("server"));
    let client = Running::start(&calling("client", server.address));
    let reply = client.get("");
    assert_eq!((reply.status, reply.body.as_str()), (200, "hello"));
}

#[test]
fn the_reply_has_the_size_and_status_that_were_asked_for() {
    let server = Running::start(&with(
        with(plain("server"), "reply_bytes", json!(1000)),
        "status",
        json!(404),
    ));
    let reply = server.get("");
    assert_eq!((reply.status, reply.body.len()), (404, 1000));
}

#[test]
fn a_call_to_nobody_is_a_bad_gateway() {
    let client = Running::start(&calling("client", dead_address()));
    let reply = client.get("");
    assert_eq!(reply.status, 502);
    assert_eq!(reply.body, "cannot call server: Connection refused (os error 111)");
}

#[test]
fn a_called_service_that_fails_is_a_bad_gateway() {
    let server = Running::start(&with(plain("server"), "status", json!(503)));
    let client = Running::start(&calling("client", server.address));
    let reply = client.get("");
    assert_eq!(reply.status, 502);
    assert_eq!(reply.body, "server answered 503 Service Unavailable");
}

#[test]
fn a_marked_request_is_answered_with_its_path() {
    let server = Running::start(&plain("server"));
    let client = Running::start(&calling("client", server.address));
    let reply =
        client.get("X-Toll-Probe: 7\r\nX-Request-Id: r1\r\nX-B3-TraceId: t1\r\nX-Own: mine\r\n");
    assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);

    let at_client = reply.json();
    assert_eq!(at_client["service"], "client");
    assert_eq!(at_client["headers"]["x-own"], "mine");
    let at_server = &at_client["calls"][0];
    assert_eq!(at_server["service"], "server");
    assert_eq!(at_server["calls"], json!([]));
    let passed_on = json!({
        "host": "server:9999", "x-toll-probe": "7", "x-request-id": "r1", "x-b3-traceid": "t1",
    });
    assert_eq!(at_server["headers"], passed_on);
    for peer in [&at_client["peer"], &at_server["peer"]] {
        let peer: SocketAddr = peer.as_str().unwrap().parse().unwrap();
        assert!(peer.ip().is_loopback() && peer != client.address && peer != server.address);
    }
}

#[test]
fn a_report_counts_the_requests_before_it_and_what_proxies_told_of_them() {
    let server = Running::start(&plain("server"));
    let client = Running::start(&calling("client", server.address));
    client.get("");
    client.get("x-request-id: r1\r\n");
    client.get("x-forwarded-proto: http\r\n");
    client.get("x-forwarded-client-cert: By=spiffe://a\r\n");
    client.get("x-toll-probe: 1\r\nvia: a proxy\r\nx-forwarded-client-cert: By=spiffe://a\r\n");
    let at_client = client.get("x-toll-probe: 1\r\n").json();
    let counts =
        |report: &Value| ["requests", "marked", "certified"].map(|key| report[key].clone());
    assert_eq!(counts(&at_client), [4, 2, 1]);
    assert_eq!(counts(&at_client["calls"][0]), [4, 0, 0]);
}

#[test]
fn a_call_that_answers_no_report_is_told_to_the_prober() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Running::start(&calling("client", server.local_addr().unwrap()));
    let answered = thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = server.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").unwrap();
    });
    let reply = client.get("x-toll-probe: 1\r\n");
    answered.join().unwrap();
    assert_eq!(reply.status, 502);
    assert!(reply.body.starts_with("server answered a probe without a report"), "{}", reply.body);
}

#[test]
fn requests_of_one_connection_to_the_client_share_one_to_the_server() {
    let server = Running::start(&plain("server"));
    let client = Running::start(&calling("client", server.address));
    let peer_at_server = || client.get("x-toll-probe: 1\r\n").json()["calls"][0]["peer"].clone();
    let first = peer_at_server();
    assert_eq!(peer_at_server(), first);
}

#[test]
fn a_request_with_a_body_keeps_its_connection() {
    let server = Running::start(&plain("server"));
    let body = "x".repeat(100_000);
    let first =
        format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let second = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let reply = exchange(server.address, &(first + second));
    let answers = format!("{}\r\n\r\n{}", reply.head, reply.body).to_lowercase();
    assert_eq!(answers.matches("http/1.1 200").count(), 2, "{answers}");
}

#[test]
fn a_call_asks_what_was_asked() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Running::start(&calling("client", server.local_addr().unwrap()));
    let asked = thread::spawn(move || {
        use std::io::{BufRead as _, BufReader, Read as _, Write as _};
        let stream = server.accept().unwrap().0;
        stream.set_read_timeout(Some(HANG)).unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            stream.read_line(&mut head).unwrap();
        }
        let mut body = [0; 7];
        stream.read_exact(&mut body).unwrap();
        stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        (head.to_lowercase(), String::from_utf8(body.into()).unwrap())
    });
    let reply =
        client.send("PATCH", "/a/b?c=d&e", "content-type: application/json\r\n", "{\"a\":1}");
    assert_eq!((reply.status, reply.body.as_str()), (200, "hello"));
    let (head, body) = asked.join().unwrap();
    assert!(head.starts_with("patch /a/b?c=d&e http/1.1\r\n"), "{head}");
    for header in ["host: server:9999", "content-type: application/json", "content-length: 7"] {
        assert!(head.contains(header), "{header} of {head}");
    }
    assert_eq!(body, "{\"a\":1}");
}

#[test]
fn a_relay_answers_what_the_last_call_answered() {
    let server = Running::start(&with(plain("server"), "status", json!(202)));
    let other = Running::start(&with(plain("other"), "reply_bytes", json!(3)));
    let mut config = calling("client", other.address);
    let last = calling("client", server.address)["calls"][0].clone();
    config["calls"].as_array_mut().unwrap().push(last);
    let reply = Running::start(&with(config, "relay", json!(true))).get("");
    assert_eq!((reply.status, reply.body.as_str()), (202, "hello"));
}

#[test]
fn replicas_are_called_in_turn() {
    let replicas = ["a", "b", "c"].map(|name| Running::start(&plain(name)));
    let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
    let client = Running::start(&calling_in_turn("client", &addresses));
    for _ in 0..9 {
        client.get("");
    }
    for replica in &replicas {
        assert_eq!(replica.get("x-toll-probe: 1\r\n").json()["requests"], 3);
    }
}

#[test]
fn a_body_of_a_mebibyte_is_passed_on_and_a_longer_one_is_refused() {
    let server = Running::start(&plain("server"));
    let client = Running::start(&calling("client", server.address));
    assert_eq!(client.send("POST", "/", "", &"x".repeat(1 << 20)).status, 200);
    // Refused for its length alone: it is never sent.
    let announced = client.send("POST", "/", "content-length: 1048577\r\n", "");
    assert_eq!(announced.status, 413);
    assert_eq!(announced.body, "a body of more than 1048576 bytes is not taken");
    let last_chunk = format!("1\r\nx\r\n80000\r\n{0}\r\n80000\r\n{0}\r\n", "x".repeat(1 << 19));
    let head =
        "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(exchange(client.address, &format!("{head}{last_chunk}")).status, 413);
}

#[test]
fn each_request_burns_its_cpu_time() {
    let server = Running::start(&with(plain("server"), "work_us", json!(5_000)));
    let before = server.cpu_time();
    for _ in 0..40 {
        server.get("");
    }
    let burned = server.cpu_time() - before;
    // 40 x 5 ms; the rest of a request costs far less than another 5 ms even in a debug build.
    assert!((200..400).contains(&burned.as_millis()), "{burned:?}");
}

#[test]
fn a_probe_burns_nothing() {
    let server = Running::start(&with(plain("server"), "work_us", json!(500_000)));
    let before = server.cpu_time();
    server.get("x-toll-probe: 1\r\n");
    assert!(server.cpu_time() - before < Duration::from_millis(250));
}

#[test]
fn a_second_request_does_not_wait_beside_an_idle_cpu() {
    if thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("SKIP a_second_request_does_not_wait_beside_an_idle_cpu: needs two CPUs");
        return;
    }
    let server = Running::start(&with(plain("server"), "work_us", json!(1_500_000)));
    // The fault shows only when a socket, not a new task, wakes a worker while all others sleep.
    let [mut long, mut short] = [(); 2].map(|()| Connection::open(server.address));
    short.ask("x-toll-probe: 1\r\n", "}");
    long.ask("x-toll-probe: 1\r\n", "}");
    thread::sleep(Duration::from_millis(50));
    let idle = server.cpu_time();
    let long_done = thread::spawn(move || {
        long.ask("", "hello");
        Instant::now()
    });
    while server.cpu_time() - idle < Duration::from_millis(100) {
        thread::sleep(Duration::from_millis(1));
    }
    short.ask("x-toll-probe: 1\r\n", "}");
    let short_done = Instant::now();
    assert!(short_done < long_done.join().unwrap(), "the short request waited for the long one");
}

#[test]
fn a_stalled_service_answers_when_its_stall_ends() {
    let lasting = Duration::from_millis(600);
    let before = Instant::now();
    let stall = json!({ "every_ms": 60_000, "lasting_ms": 600 });
    let server = Running::start(&with(plain("server"), "stall", stall));
    let ready = Instant::now();
    server.get("");
    assert!(before.elapsed() >= lasting, "{:?}", before.elapsed());
    assert!(ready.elapsed() < 2 * lasting, "{:?}", ready.elapsed());
    let open = Instant::now();
    server.get("");
    assert!(open.elapsed() < lasting, "{:?}", open.elapsed());
}

#[test]
fn a_request_at_work_when_a_stall_begins_waits_for_its_end() {
    let before = Instant::now();
    // Let in at 0.5 s, done at 1.3 s at the earliest, which is inside the second stall.
    let stall = json!({ "every_ms": 1_000, "lasting_ms": 500 });
    let server = with(with(plain("server"), "stall", stall), "work_us", json!(800_000));
    Running::start(&server).get("");
    assert!(before.elapsed() >= Duration::from_millis(1_500), "{:?}", before.elapsed());
}
