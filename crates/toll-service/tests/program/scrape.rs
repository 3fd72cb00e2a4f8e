//! What the `scrape` program answers, line by line, and how it goes on when an endpoint does not.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::running::program;

/// A scraper that runs until this is dropped.
struct Scraper {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Scraper {
    /// Looks for the series `up` of each.
    fn of(endpoints: &[SocketAddr]) -> Self {
        let target = |address: &SocketAddr| json!({"pod": format!("pod-{}", address.port()), "address": address, "path": "/metrics?x=1", "series": ["up"]});
        let targets: Vec<Value> = endpoints.iter().map(target).collect();
        Self::told(&json!({ "targets": targets }).to_string())
    }

    fn told(first: &str) -> Self {
        let mut command = program();
        command.arg("scrape").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program can be started");
        let mut stdin = process.stdin.take().expect("stdin is a pipe");
        let stdout = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        writeln!(stdin, "{first}").expect("it reads");
        Self { process, stdin: Some(stdin), stdout }
    }

    /// The readings of all endpoints, in order.
    fn ask(&mut self) -> Vec<Value> {
        writeln!(self.stdin.as_mut().expect("it is open"), "now").expect("it reads");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("readable text");
        let pods: Vec<Value> = serde_json::from_str(&line).expect("one line of JSON");
        assert!(pods.iter().all(|pod| pod["at_ns"].as_u64() > Some(0)), "{line}");
        pods.into_iter().map(|mut pod| pod["series"].take()).collect()
    }

    fn end(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        let mut complaint = String::new();
        let stderr = self.process.stderr.as_mut().expect("stderr is a pipe");
        stderr.read_to_string(&mut complaint).expect("readable text");
        (self.process.wait().expect("it ends").code(), complaint)
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has then seen.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server on loopback that does the same with each connection, and how many it has had.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (connections, serve) = (Arc::<AtomicUsize>::default(), Arc::new(serve));
    let counted = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    (address, connections)
}

/// The next request, or nothing when the client has closed.
fn request(mut stream: &TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    String::from_utf8(request).ok()
}

fn answer(mut stream: &TcpStream, status: &str, body: &str) {
    let length = body.len();
    // A client that hung up has its reasons.
    let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
}

/// An endpoint at which `up` counts the requests.
fn counting() -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = AtomicUsize::new(0);
    server(move |stream| {
        while let Some(request) = request(&stream) {
            assert!(request.starts_with("GET /metrics?x=1 HTTP/1.1\r\n"), "{request}");
            let count = asked.fetch_add(1, Ordering::SeqCst) + 1;
            answer(&stream, "200 OK", &format!("# TYPE up gauge\nup{{a=\"b\"}} {count}\ndown 7\n"));
        }
    })
}

fn up(count: u32) -> Value {
    json!({"value": {"up{a=\"b\"}": f64::from(count)}})
}

#[test]
fn each_line_is_answered_with_the_wanted_series_over_kept_connections() {
    let (first, second) = (counting(), counting());
    let mut scraper = Scraper::of(&[first.0, second.0]);
    for count in 1..=5 {
        assert_eq!(scraper.ask(), [up(count), up(count)]);
    }
    assert_eq!([first, second].map(|(_, connections)| connections.load(Ordering::SeqCst)), [1, 1]);
    assert_eq!(scraper.end(), (Some(0), String::new()));
}

#[test]
fn a_request_begins_a_trace_of_its_own_that_is_not_to_be_recorded() {
    let (tell, told) = std::sync::mpsc::channel();
    let (address, _) = server(move |stream| {
        while let Some(head) = request(&stream) {
            tell.send(head).unwrap();
            answer(&stream, "200 OK", "up 1\n");
        }
    });
    let mut scraper = Scraper::of(&[address]);
    let traces = [(); 2].map(|()| {
        scraper.ask();
        let head = told.recv().unwrap().to_ascii_lowercase();
        assert!(head.lines().any(|line| line == "b3: 0"), "{head}");
        let trace = head.lines().find_map(|line| line.strip_prefix("traceparent: "));
        trace.map(str::to_owned).unwrap_or_else(|| panic!("{head}"))
    });
    assert_ne!(traces[0], traces[1]);
    for trace in traces {
        let parts: Vec<&str> = trace.split('-').collect();
        let [version, trace, span, flags] = parts[..] else { panic!("{trace}") };
        assert_eq!((version, trace.len(), span.len(), flags), ("00", 32, 16, "00"));
        for id in [trace, span] {
            assert!(id.bytes().all(|b| b.is_ascii_hexdigit()) && id.bytes().any(|b| b != b'0'));
        }
    }
}

#[test]
fn a_connection_that_was_closed_since_is_made_anew() {
    let (address, connections) = server(|stream| {
        if request(&stream).is_some() {
            answer(&stream, "200 OK", "up 1\n");
        }
        // Without `connection: close`: the client believes that it may use it again.
    });
    let mut scraper = Scraper::of(&[address]);
    for _ in 0..5 {
        assert_eq!(scraper.ask(), [json!({"value": {"up": 1.0}})]);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 5);
}

#[test]
fn a_connection_that_breaks_when_it_is_used_again_is_made_anew() {
    let (address, connections) = server(|stream| {
        if request(&stream).is_some() {
            answer(&stream, "200 OK", "up 1\n");
            drop(request(&stream));
        }
    });
    let mut scraper = Scraper::of(&[address]);
    for _ in 0..4 {
        assert_eq!(scraper.ask(), [json!({"value": {"up": 1.0}})]);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 4);
}

#[test]
fn an_endpoint_that_hangs_is_missing_after_a_second_and_delays_no_other() {
    let (hanging, _) = server(|stream| {
        request(&stream);
        thread::sleep(Duration::from_secs(120));
    });
    let mut scraper = Scraper::of(&[hanging, counting().0]);
    let begin = Instant::now();
    assert_eq!(scraper.ask(), [json!({"missing": "it did not answer within 1000 ms"}), up(1)]);
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_millis(990) && waited < Duration::from_secs(30), "{waited:?}");
}

#[test]
fn what_an_endpoint_does_wrong_is_told() {
    let always = |status: &'static str, body: String| {
        let (address, _) = server(move |stream| {
            while request(&stream).is_some() {
                answer(&stream, status, &body);
            }
        });
        address
    };
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap();
    let endpoints = [
        nobody,
        always("503 Service Unavailable", "up 1\n".into()),
        always("200 OK", "down 1\n".into()),
        always("200 OK", "# HELP up\nup one\n".into()),
        always("200 OK", format!("up 1\n{}", "#".repeat(5 << 20))),
        server(|stream| drop(request(&stream))).0,
    ];
    let told = Scraper::of(&endpoints).ask();
    let told: Vec<&str> = told.iter().map(|reading| reading["missing"].as_str().unwrap()).collect();
    assert_eq!(
        told[..5],
        [
            "it cannot be asked: Connection refused (os error 111)",
            "it answered 503 Service Unavailable",
            "its answer has no value of up",
            "line 2 of its answer is no sample in the Prometheus text format",
            "its answer is longer than 4 MiB",
        ]
    );
    assert!(told[5].starts_with("it cannot be asked: connection closed"), "{}", told[5]);
}

#[test]
fn targets_that_are_none_are_refused() {
    let (code, complaint) = Scraper::told("{\"targets\": [{\"pod\": 1}]}").end();
    assert_eq!(code, Some(1));
    let expected = "cannot understand the targets on the first line: invalid type: integer `1`";
    assert!(complaint.starts_with(expected), "{complaint}");
}
