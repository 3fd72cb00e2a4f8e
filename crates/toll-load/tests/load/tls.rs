//! TLS: certificates, resumption, and handshakes that fail while the load runs.

use std::time::{Duration, Instant};

use crate::engine::{alone, closed, measured, open, plan};
use crate::server::{Reply, Server};
use crate::tls_server::{Authority, Handshake, TlsServer};
use toll_load::{ErrorKind, LoadError, LoadModel, LoadPlan, Reuse, Stop, Target, Tls, run};

fn server(authority: &Authority, handshake: fn(u64) -> Handshake) -> TlsServer {
    TlsServer::start(authority.config("http/1.1", false), handshake, |_| Reply::ok())
}

fn good(_: u64) -> Handshake {
    Handshake::Good
}

fn trusting(authority: &Authority) -> Tls {
    Tls { ca_pem: Some(authority.pem.clone()), ..Tls::default() }
}

fn secure_plan(server: &TlsServer, tls: Tls, model: LoadModel, stop: Stop) -> LoadPlan {
    let mut plan = plan(server.url(), model, stop);
    plan.connection.tls = tls;
    plan
}

#[test]
fn requests_go_over_tls_and_its_handshakes_are_timed() {
    let authority = Authority::new("theirs");
    for model in [closed(3), open(500.0, 10)] {
        let server = server(&authority, good);
        let plan = secure_plan(&server, trusting(&authority), model, Stop::AfterRequests(100));
        let report = measured(&plan);
        assert_eq!((report.measure.done, report.measure.errors.len()), (100, 0));
        assert_eq!(
            (server.plain.requests(), report.connections_opened),
            (100, server.plain.connections())
        );
        let handshakes = report.warm_up.steps.tls.count() + report.measure.steps.tls.count();
        assert_eq!(handshakes, report.connections_opened);
        assert_eq!(report.measure.bytes_in, 100 * crate::server::OK.len() as u64);
    }
}

#[test]
fn an_unknown_authority_is_an_error_with_help_unless_any_is_accepted() {
    let server = server(&Authority::new("theirs"), good);
    let other = trusting(&Authority::new("ours"));
    let mut plan = secure_plan(&server, other, closed(2), Stop::AfterRequests(10));
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::CertificateUnknownIssuer { .. }), "{error}");
    assert!(error.help().unwrap().contains("CA"), "{:?}", error.help());
    plan.connection.tls.insecure = true;
    assert_eq!(measured(&plan).measure.done, 10);
}

#[test]
fn a_missing_client_certificate_is_an_error_at_once() {
    let authority = Authority::new("theirs");
    let config = authority.config("http/1.1", true);
    let server = TlsServer::start(config, good, |_| Reply::ok());
    for model in [closed(2), open(100.0, 4)] {
        let plan = secure_plan(&server, trusting(&authority), model, Stop::AfterSeconds(30.0));
        let begin = Instant::now();
        let _alone = alone();
        let error = run(&plan, &mut |_| {}).unwrap_err();
        assert!(matches!(error, LoadError::ClientCertificateRequired { .. }), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }
}

#[test]
fn handshakes_that_fail_in_the_middle_are_counted_and_do_not_stop_the_load() {
    let authority = Authority::new("theirs");
    for model in [closed(2), open(300.0, 10)] {
        let hang_up = |n| if n % 5 == 4 { Handshake::HangUp } else { Handshake::Good };
        let server = server(&authority, hang_up);
        let mut plan = secure_plan(&server, trusting(&authority), model, Stop::AfterRequests(60));
        plan.connection.reuse = Reuse::PerRequest;
        let report = measured(&plan);
        let failed = server.plain.connections() - report.connections_opened;
        assert!((12..=18).contains(&failed), "{failed} handshakes failed");
        assert_eq!(report.measure.errors, [(ErrorKind::Tls, failed)].into());
        assert_eq!((report.measure.done, server.plain.requests()), (60, 60));
    }
}

#[test]
fn sessions_are_resumed_by_a_connection_per_request_unless_switched_off() {
    let authority = Authority::new("theirs");
    for (resumption, resumed) in [(true, 29), (false, 0)] {
        let server = server(&authority, good);
        let tls = Tls { resumption, ..trusting(&authority) };
        let mut plan = secure_plan(&server, tls, closed(1), Stop::AfterRequests(30));
        plan.connection.reuse = Reuse::PerRequest;
        assert_eq!(measured(&plan).measure.done, 30);
        assert_eq!((server.plain.connections(), server.resumed()), (30, resumed));
    }
}

#[test]
fn a_host_whose_handshakes_hang_does_not_keep_connections_from_the_others() {
    let authority = Authority::new("theirs");
    let hanging = |n| if n == 0 { Handshake::Good } else { Handshake::Silence };
    let model = open(100.0, 60);
    let (healthy, hanging) = (server(&authority, good), server(&authority, hanging));
    let stop = Stop::AfterSeconds(0.6);
    let mut plan = secure_plan(&healthy, trusting(&authority), model, stop);
    plan.targets.push(Target::get(hanging.url()));
    plan.connection.reuse = Reuse::PerRequest;
    plan.timeout_ms = 300;
    let (report, samples) = crate::listening::sampled(&plan);
    let done = samples.iter().filter(|s| s.target == 0 && s.outcome == Ok(200)).count();
    assert_eq!(done, 30, "{:?}", report.measure.errors);
    let latency_ns = samples.iter().filter(|s| s.target == 0).map(|s| s.done_ns - s.intended_ns);
    let slow = latency_ns.filter(|ns| *ns > 150_000_000).count();
    assert!(slow == 0, "{slow} of 30 took longer than 150 ms");
}

#[test]
fn a_server_without_tls_is_an_error_that_says_so() {
    let server = Server::start(|_| Reply::Close("HTTP/1.1 400 Bad\r\n\r\n".into()));
    let url = format!("https://{}/", server.address);
    let mut plan = plan(url, closed(1), Stop::AfterSeconds(1.0));
    plan.connection.tls.insecure = true;
    plan.timeout_ms = 300;
    let begin = Instant::now();
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(error.help().is_some(), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}
