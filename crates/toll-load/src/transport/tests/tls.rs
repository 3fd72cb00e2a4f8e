//! TLS against a rustls server.

use std::io::{Read, Write};

use super::authority::Authority;
use super::server::{Server, config, saw};
use super::*;
use crate::transport::Layer;
use crate::{Protocol, Resolve, Tls};

const HTTP2: Protocol = Protocol::Http2 { streams: 1 };

fn trusting(authority: &Authority) -> Tls {
    Tls { ca_pem: Some(authority.pem.clone()), ..Tls::default() }
}

/// A plan in which `localhost` and `shop.test` are this machine.
fn plan(tls: Tls, protocol: Protocol, port: u16) -> ConnectionPlan {
    let here = |host: &str| Resolve { host: host.into(), port, address: [127, 0, 0, 1].into() };
    let resolve = vec![here("localhost"), here("shop.test")];
    ConnectionPlan { tls, protocol, resolve, ..ConnectionPlan::default() }
}

/// Connects to a host and agrees on TLS, or tells the user why not.
fn try_host(host: &str, port: u16, tls: Tls, protocol: Protocol) -> Result<Driver, LoadError> {
    let plan = plan(tls, protocol, port);
    let origin = origin(Scheme::Https, host, port, &plan);
    Driver::ready(&origin, &plan).map_err(|fault| fault.into_load_error(&origin))
}

fn try_localhost(port: u16, tls: Tls) -> Result<Driver, LoadError> {
    try_host("localhost", port, tls, Protocol::Http1)
}

fn error_of(result: Result<Driver, LoadError>) -> String {
    told(&result.err().expect("the handshake must fail"))
}

#[test]
fn a_megabyte_comes_back_over_tls_and_the_server_hears_the_end() {
    let authority = Authority::new("ca");
    let server = Server::tls(1, config(&authority.issue(&["localhost"]), &["http/1.1"], None));
    let mut driver = try_localhost(server.port, trusting(&authority)).unwrap();
    driver.narrow();
    assert!(driver.exchange(&megabyte()).unwrap() == megabyte());
    assert!(driver.blocked > 0, "all of it went at once");
    drop(driver);
    let seen = server.seen();
    assert_eq!((seen.failure, seen.goodbye), (None, true));
}

#[test]
fn many_small_exchanges_need_no_event_that_does_not_come() {
    let authority = Authority::new("ca");
    let server = Server::tls(1, config(&authority.issue(&["localhost"]), &[], None));
    let mut driver = try_localhost(server.port, trusting(&authority)).unwrap();
    for length in (1..3000).step_by(7).chain([4096, 9999, 10_000, 10_001, 16_384, 16_385, 40_000]) {
        let request = vec![length as u8; length];
        assert!(driver.exchange(&request).unwrap() == request, "{length} bytes");
    }
}

#[test]
fn plaintext_that_does_not_fit_is_given_by_the_next_read() {
    let authority = Authority::new("ca");
    let server = Server::tls(1, config(&authority.issue(&["localhost"]), &[], None));
    let mut driver = try_localhost(server.port, trusting(&authority)).unwrap();
    driver.stream.write(b"one record").unwrap();
    let mut answer = Vec::new();
    while answer.len() < 10 {
        let mut buffer = [0; 3];
        match driver.stream.read(&mut buffer) {
            Ok(bytes) => answer.extend_from_slice(&buffer[..bytes]),
            // Waiting is right only while nothing has been given: all of it came at once.
            Err(error) => {
                assert_eq!((error.kind(), answer.len()), (ErrorKind::WouldBlock, 0));
                driver.wait();
            }
        }
    }
    assert_eq!(answer, b"one record");
}

#[test]
fn the_name_asked_for_is_the_host_or_the_one_of_the_plan() {
    let authority = Authority::new("ca");
    let identity = authority.issue(&["localhost", "shop.test", "127.0.0.1"]);
    let named = Tls { server_name: Some("shop.test".into()), ..trusting(&authority) };
    for (host, tls, expected) in [
        ("localhost", trusting(&authority), Some("localhost")),
        ("localhost", named.clone(), Some("shop.test")),
        ("127.0.0.1", named, Some("shop.test")),
        // An address is verified, but not asked for (RFC 6066, section 3).
        ("127.0.0.1", trusting(&authority), None),
    ] {
        let server = Server::tls(1, config(&identity, &[], None));
        let mut driver = try_host(host, server.port, tls, Protocol::Http1).unwrap();
        driver.exchange(b"ping").unwrap();
        drop(driver);
        assert_eq!(server.seen().server_name.as_deref(), expected);
    }
}

#[test]
fn a_certificate_of_an_unknown_issuer_is_refused_with_advice() {
    let server = Server::tls(1, config(&Authority::new("theirs").issue(&["localhost"]), &[], None));
    assert_eq!(
        error_of(try_localhost(server.port, trusting(&Authority::new("ours")))),
        "the certificate of localhost does not verify: unknown issuer; give its CA with \
         --cacert FILE, or accept any with --insecure"
    );
    assert!(server.seen().failure.unwrap().contains("UnknownCA"), "the server is told, too");
}

#[test]
fn a_certificate_for_another_name_is_refused_with_advice() {
    let authority = Authority::new("ca");
    let server = Server::tls(1, config(&authority.issue(&["other.test"]), &[], None));
    assert_eq!(
        error_of(try_localhost(server.port, trusting(&authority))),
        "the certificate of localhost does not verify: it is not valid for the name `localhost`; \
         give a name that stands on it with --server-name NAME, or accept any with --insecure"
    );
}

#[test]
fn a_certificate_whose_time_is_over_is_refused_with_advice() {
    let authority = Authority::new("ca");
    let server = Server::tls(1, config(&authority.issue_expired(&["localhost"]), &[], None));
    assert_eq!(
        error_of(try_localhost(server.port, trusting(&authority))),
        "the certificate of localhost does not verify: it has expired; give the server a new one, \
         or accept any with --insecure"
    );
}

#[test]
fn any_certificate_is_accepted_when_the_plan_says_so() {
    let authority = Authority::new("ca");
    for identity in [authority.issue(&["other.test"]), authority.issue_expired(&["localhost"])] {
        let server = Server::tls(1, config(&identity, &[], None));
        let tls = Tls { insecure: true, ..Tls::default() };
        let mut driver = try_localhost(server.port, tls).unwrap();
        assert_eq!(driver.exchange(b"ping").unwrap(), b"ping");
    }
}

#[test]
fn a_client_certificate_is_shown_to_a_server_that_requires_one() {
    let authority = Authority::new("ca");
    let identity = Some(authority.issue(&["client"]));
    let server =
        Server::tls(1, config(&authority.issue(&["localhost"]), &[], Some(&authority.pem)));
    let mut driver = try_localhost(server.port, Tls { identity, ..trusting(&authority) }).unwrap();
    driver.exchange(b"ping").unwrap();
    drop(driver);
    assert!(server.seen().has_client_certificate);
}

#[test]
fn a_server_that_refuses_the_client_says_why_in_the_first_read() {
    let authority = Authority::new("ca");
    let stranger = Authority::new("another").issue(&["client"]);
    for (identity, expected) in [
        (
            None,
            "localhost requires a certificate of its clients; give one with --cert FILE and \
             --key FILE",
        ),
        (
            Some(stranger),
            "localhost does not accept the client's certificate: unknown_ca; give one that the \
             server's own CA has signed, with --cert FILE and --key FILE",
        ),
    ] {
        let server =
            Server::tls(1, config(&authority.issue(&["localhost"]), &[], Some(&authority.pem)));
        let plan = plan(Tls { identity, ..trusting(&authority) }, Protocol::Http1, server.port);
        let origin = origin(Scheme::Https, "localhost", server.port, &plan);
        let mut driver = Driver::ready(&origin, &plan).unwrap();
        let error = driver.next().unwrap_err();
        let fault = TlsFault::of(&error).expect("a fault of TLS");
        assert_eq!(told(&fault.into_load_error(&origin)), expected);
    }
}

#[test]
fn sessions_are_resumed_only_when_the_plan_says_so() {
    let authority = Authority::new("ca");
    for resumption in [true, false] {
        let server = Server::tls(2, config(&authority.issue(&["localhost"]), &[], None));
        let plan = plan(Tls { resumption, ..trusting(&authority) }, Protocol::Http1, server.port);
        let origin = origin(Scheme::Https, "localhost", server.port, &plan);
        let resumed = [false, resumption].map(|expected| {
            let mut driver = Driver::ready(&origin, &plan).unwrap();
            driver.exchange(b"ping").unwrap();
            assert_eq!(is_resumed(&driver.stream), Some(expected), "as the client sees it");
            drop(driver);
            server.seen().resumed
        });
        assert_eq!(resumed, [Some(false), Some(resumption)]);
    }
}

fn is_resumed(stream: &Stream) -> Option<bool> {
    match &stream.layer {
        Layer::Plain => None,
        Layer::Tls(session) => session.is_resumed(),
    }
}

#[test]
fn the_protocol_of_the_plan_is_asked_for() {
    let authority = Authority::new("ca");
    for (offered, protocol, agreed) in [
        (&["h2", "http/1.1"][..], Protocol::Http1, Some("http/1.1")),
        (&["http/1.1", "h2"], HTTP2, Some("h2")),
        (&["h2"], Protocol::Grpc { streams: 1 }, Some("h2")),
        (&[], Protocol::Http1, None),
    ] {
        let server = Server::tls(1, config(&authority.issue(&["localhost"]), offered, None));
        let tls = trusting(&authority);
        let mut driver = try_host("localhost", server.port, tls, protocol).unwrap();
        driver.exchange(b"ping").unwrap();
        drop(driver);
        assert_eq!(server.seen().alpn.as_deref(), agreed);
    }
}

#[test]
fn http_2_that_the_server_does_not_offer_is_an_error() {
    let authority = Authority::new("ca");
    for offered in [&[][..], &["http/1.1"]] {
        let server = Server::tls(1, config(&authority.issue(&["localhost"]), offered, None));
        assert_eq!(
            error_of(try_host("localhost", server.port, trusting(&authority), HTTP2)),
            "localhost does not offer HTTP/2 over TLS; choose the other HTTP version, or switch \
             this one on there"
        );
    }
}

#[test]
fn a_peer_that_does_not_speak_tls_is_a_fault_and_no_hang() {
    let server = Server::start(1, |mut stream| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 1000]);
        saw(&stream.peer_addr().unwrap())
    });
    let port = server.port;
    assert_eq!(
        error_of(try_localhost(port, Tls { insecure: true, ..Tls::default() })),
        format!(
            "what localhost speaks on port {port} is not TLS; write the url with http://, or use \
             the port where the server speaks TLS"
        )
    );
}

#[test]
fn a_peer_that_hangs_up_is_a_fault_and_no_hang() {
    let server = Server::start(1, |mut stream| {
        assert!(stream.read(&mut [0; 1000]).unwrap() > 0);
        saw(&stream.peer_addr().unwrap())
    });
    let error = error_of(try_localhost(server.port, Tls { insecure: true, ..Tls::default() }));
    assert!(error.contains("closed the connection"), "{error}");
}

#[test]
fn an_end_of_stream_behind_half_a_record_is_seen() {
    let authority = Authority::new("ca");
    let config = std::sync::Arc::new(config(&authority.issue(&["localhost"]), &[], None));
    let server = Server::start(1, move |stream| {
        let peer = stream.peer_addr().unwrap();
        let session = rustls::ServerConnection::new(config.clone()).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        stream.read_exact(&mut [0; 4]).unwrap();
        let mut record = Vec::new();
        stream.conn.writer().write_all(b"an answer that is cut").unwrap();
        stream.conn.write_tls(&mut record).unwrap();
        stream.sock.write_all(&record[..record.len() / 2]).unwrap();
        saw(&peer)
    });
    let mut driver = try_localhost(server.port, trusting(&authority)).unwrap();
    driver.stream.write(b"ping").unwrap();
    server.seen();
    assert_eq!(driver.next().unwrap(), "", "0 is the end of the stream");
}

#[test]
fn a_plan_whose_certificates_cannot_be_used_is_refused_with_advice() {
    let authority = Authority::new("ca");
    let (one, other) = (authority.issue(&["client"]), authority.issue(&["client"]));
    let garbled = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let ca = |text: &str| Tls { ca_pem: Some(text.into()), ..Tls::default() };
    let own = |chain: &str, key: &str| Tls {
        identity: Some(crate::Identity { chain_pem: chain.into(), key_pem: key.into() }),
        ..trusting(&authority)
    };
    for (tls, expected) in [
        (ca("no pem"), "cannot read connection.tls.ca_pem: "),
        (ca(garbled), "cannot use connection.tls.ca_pem: "),
        (own("no pem", &one.key_pem), "cannot read connection.tls.identity.chain_pem: "),
        (own(&one.chain_pem, "no pem"), "cannot read connection.tls.identity.key_pem: "),
        (own(&one.chain_pem, &other.key_pem), "cannot use connection.tls.identity: "),
        (
            Tls { server_name: Some("a b".into()), ..trusting(&authority) },
            "cannot verify a certificate for the name `a b`",
        ),
    ] {
        let plan = plan(tls, Protocol::Http1, 443);
        let error = Origin::find(Scheme::Https, "localhost", 443, &plan).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(error.help().is_some());
    }
}

#[test]
fn every_fault_tells_the_user_what_it_is() {
    use rustls::{AlertDescription as Alert, CertificateError, Error, PeerIncompatible};
    let plan = plan(Tls { insecure: true, ..Tls::default() }, Protocol::Http1, 443);
    let origin = origin(Scheme::Https, "localhost", 443, &plan);
    for (error, expected) in [
        (
            Error::AlertReceived(Alert::HandshakeFailure),
            "refused the TLS handshake: handshake_failure",
        ),
        (
            Error::AlertReceived(Alert::UnrecognisedName),
            "refused the TLS handshake: unrecognised_name",
        ),
        (Error::AlertReceived(Alert::NoApplicationProtocol), "does not offer HTTP/1.1 over TLS"),
        (Error::AlertReceived(Alert::BadCertificate), "requires a certificate of its clients"),
        (Error::AlertReceived(Alert::CertificateRequired), "requires a certificate of its clients"),
        (CertificateError::Expired.into(), "it has expired"),
        (CertificateError::NotValidForName.into(), "not valid for the name `localhost`"),
        (CertificateError::Revoked.into(), "localhost does not verify: "),
        (PeerIncompatible::Tls12NotOffered.into(), "the TLS handshake with localhost failed: "),
    ] {
        let text = TlsFault::from(error).into_load_error(&origin).to_string();
        assert!(text.contains(expected), "{text}");
    }
}
