//! How a probe tells the ways in which a request can end.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use serde_json::Value;

use crate::postgres::Postgres;
use crate::running::{Running, plain, run};

/// What `toll-service probe` prints when `serve` has the other end of its connection.
fn probe_of(serve: impl FnOnce(TcpStream) + Send + 'static) -> Value {
    probe_with(&[], serve)
}

/// As [`probe_of`], with more arguments.
pub fn probe_with(arguments: &[&str], serve: impl FnOnce(TcpStream) + Send + 'static) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let other_end = thread::spawn(move || serve(listener.accept().expect("the probe connects").0));
    let told = probe(&[&["--connect", &address, "--timeout-ms", "5000"], arguments].concat());
    other_end.join().expect("the other end did as it should");
    told
}

fn probe(arguments: &[&str]) -> Value {
    let output = run(&[&["probe"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

fn read_request(mut stream: &TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole request");
        request.extend(byte);
    }
}

#[test]
fn an_answer_is_shown_whole() {
    let server = Running::start(&plain("server"));
    let told = probe(&["--connect", &server.address.to_string()]);
    assert_eq!(
        (&told["outcome"], &told["status"], &told["body"]),
        (&"answered".into(), &200.into(), &"hello".into())
    );
    assert_eq!(told["headers"]["content-length"], "5");
}

#[test]
fn path_host_and_headers_are_sent_as_told() {
    let server = Running::start(&plain("server"));
    let address = server.address.to_string();
    let told = probe(&[
        "--connect",
        &address,
        "--host",
        "server:9999",
        "--header",
        "x-toll-probe: 1",
        "--header",
        "X-A: b:c",
    ]);
    let report: Value = serde_json::from_str(told["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        report["headers"],
        serde_json::json!({"host": "server:9999", "x-a": "b:c", "x-toll-probe": "1"})
    );
}

#[test]
fn nobody_listening_is_refused() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap();
    assert_eq!(probe(&["--connect", &free.to_string()])["outcome"], "refused");
}

#[test]
fn an_end_without_an_answer_is_closed() {
    let told = probe_of(|stream| read_request(&stream));
    assert_eq!(told["outcome"], "closed", "{told}");
}

#[test]
fn an_end_within_the_body_is_closed() {
    let told = probe_of(|mut stream| {
        read_request(&stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe").unwrap();
    });
    assert_eq!(told["outcome"], "closed", "{told}");
}

#[test]
fn a_connection_dropped_with_unread_data_is_reset() {
    // To close a socket that still holds data sends RST (RFC 1122, 4.2.2.13).
    let told = probe_of(|stream| assert_eq!(stream.peek(&mut [0]).unwrap(), 1));
    assert_eq!(told["outcome"], "reset", "{told}");
}

#[test]
fn an_answer_that_is_not_http_is_garbled() {
    // A TLS alert, as a server that expects TLS sends it: fatal, unexpected message.
    let told = probe_of(|mut stream| {
        read_request(&stream);
        stream.write_all(&[0x15, 3, 3, 0, 2, 2, 10]).unwrap();
    });
    assert_eq!(told["outcome"], "garbled", "{told}");
}

#[test]
fn silence_is_a_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let told = probe(&["--connect", &address, "--timeout-ms", "50"]);
    assert_eq!(
        told,
        serde_json::json!({"outcome": "timeout", "message": "no answer within 50 ms"})
    );
}

#[test]
fn a_database_answers_the_question_for_tls_with_one_byte() {
    let Some(postgres) = Postgres::shared() else { return };
    let address = format!("127.0.0.1:{}", postgres.port);
    let told = probe(&["--connect", &address, "--speak", "postgres"]);
    assert_eq!(told, serde_json::json!({"outcome": "answered", "body": "N"}));
}

#[test]
fn a_database_that_hangs_up_on_the_question_for_tls_is_told_apart() {
    let speak = ["--speak", "postgres"];
    let closed = probe_with(&speak, |mut stream| stream.read_exact(&mut [0; 8]).unwrap());
    assert_eq!(closed["outcome"], "closed", "{closed}");
    let reset = probe_with(&speak, |stream| assert_eq!(stream.peek(&mut [0]).unwrap(), 1));
    assert_eq!(reset["outcome"], "reset", "{reset}");
}

#[test]
fn an_address_without_a_port_is_a_usage_error() {
    let output = run(&["probe", "--connect", "127.0.0.1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the port is missing"), "{output:?}");
}

#[test]
fn several_addresses_are_asked_at_the_same_time_and_answered_in_their_order() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).unwrap();
    let server = Running::start(&plain("server"));
    let silent = silent.local_addr().unwrap();
    let connect = [silent, server.address, free, silent]
        .into_iter()
        .flat_map(|address| ["--connect".to_owned(), address.to_string()]);
    let connect: Vec<String> = connect.collect();
    let mut arguments = vec!["probe", "--timeout-ms", "400"];
    arguments.extend(connect.iter().map(String::as_str));
    let began = Instant::now();
    let output = run(&arguments);
    assert!(began.elapsed() < Duration::from_millis(790), "one after the other");
    let lines = String::from_utf8(output.stdout).unwrap();
    let outcome = |line: &str| serde_json::from_str::<Value>(line).unwrap()["outcome"].clone();
    let outcomes: Vec<Value> = lines.lines().map(outcome).collect();
    assert_eq!(outcomes, ["timeout", "answered", "refused", "timeout"]);
}

/// What a probe in TLS prints when a server demands a certificate of its clients, or not.
fn tls_probe_of(demands: bool) -> Value {
    probe_with(&["--speak", "tls"], move |mut stream| {
        let mut server = ServerConnection::new(Arc::new(server_config(demands)))
            .expect("the configuration is whole");
        let mut tls = rustls::Stream::new(&mut server, &mut stream);
        // The preface of HTTP/2; without a certificate it is not read.
        if tls.read_exact(&mut [0; 24]).is_ok() {
            tls.write_all(b"\0\0\0\x04\0\0\0\0\0").expect("the probe listens");
        }
    })
}

fn server_config(demands: bool) -> ServerConfig {
    let own = rcgen::generate_simple_self_signed(["server".to_owned()]).expect("a certificate");
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().expect("ring has all");
    let builder = if demands {
        let mut roots = RootCertStore::empty();
        roots.add(own.cert.der().clone()).expect("it is a certificate");
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        builder.with_client_cert_verifier(verifier.expect("there is a root"))
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
    let mut config = builder.with_single_cert(vec![own.cert.der().clone()], key).expect("they fit");
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

#[test]
fn tls_that_demands_a_certificate_is_closed_and_other_tls_answers() {
    let refused = tls_probe_of(true);
    assert_eq!(refused["outcome"], "closed", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("CertificateRequired"), "{refused}");
    assert_eq!(tls_probe_of(false), serde_json::json!({"outcome": "answered", "body": ""}));
}

#[test]
fn an_answer_that_is_not_tls_is_garbled_and_an_end_is_closed() {
    let speak = ["--speak", "tls"];
    let garbled = probe_with(&speak, |mut stream| {
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    assert_eq!(garbled["outcome"], "garbled", "{garbled}");
    let closed = probe_with(&speak, |mut stream| {
        let _ = stream.read(&mut [0; 1024]).unwrap();
    });
    assert_eq!(closed["outcome"], "closed", "{closed}");
}
