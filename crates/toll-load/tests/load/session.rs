//! Plan after plan in one session: what stays, what begins anew.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::engine::{alone, closed, open, plan};
use crate::http2_server::{Behaviour, Http2Server};
use crate::server::{OK, Reply, Server};
use crate::targets::{hearing, template};
use crate::tls_server::{Authority, Handshake, TlsServer};
use toll_load::{
    Arrivals, Listener, LoadError, LoadModel, LoadPlan, LoadReport, Protocol, Sample, Session,
    Stop, WarmUp,
};

/// A slice with a guard.
fn slice(url: String, model: LoadModel) -> LoadPlan {
    let mut plan = plan(url, model, Stop::AfterSeconds(0.2));
    plan.warm_up = WarmUp { min_s: 0.1, max_s: 0.1 };
    plan
}

fn carried(session: &mut Session, plan: &LoadPlan) -> LoadReport {
    let _alone = alone();
    let stop = AtomicBool::new(false);
    session.run(plan, Listener { stop: &stop, emit: &mut |_| {}, samples: None }).unwrap()
}

/// A server that closes connections on which nothing comes for so long.
fn impatient(patience_ms: u64) -> Server {
    let patience = Some(Duration::from_millis(patience_ms));
    let wrap = move |_, stream: TcpStream| {
        stream.set_read_timeout(patience).unwrap();
        Some(stream)
    };
    Server::wrapped(wrap, |_| Reply::ok())
}

#[test]
fn connections_stay_open_from_plan_to_plan() {
    for model in [closed(6), open(500.0, 6)] {
        let server = Server::start(|_| Reply::ok());
        let mut session = Session::new();
        let mut plan = slice(server.url(), model);
        plan.threads = 2;
        let mut opened = 0;
        for _ in 0..5 {
            let report = carried(&mut session, &plan);
            assert!(report.measure.done > 50 && report.measure.errors.is_empty());
            assert_eq!(report.good_in_all_phases(), report.sent_in_all_phases);
            opened += report.connections_opened;
        }
        // An open loop opens them as it needs them, up to its bound, and none again.
        assert!(opened <= 6 && server.connections() == opened, "{opened} opened");
    }
}

#[test]
fn a_closed_loop_opens_no_connection_again() {
    let server = Server::start(|_| Reply::ok());
    let mut session = Session::new();
    let plan = slice(server.url(), closed(6));
    let opened = [(); 3].map(|()| carried(&mut session, &plan).connections_opened);
    assert_eq!((opened, server.connections()), ([6, 0, 0], 6));
}

#[test]
fn each_kind_of_load_finds_its_own_connections() {
    let server = Server::start(|_| Reply::ok());
    let mut session = Session::new();
    let [few, many] = [closed(3), closed(7)].map(|model| slice(server.url(), model));
    let opened = [&few, &many, &few, &many].map(|plan| carried(&mut session, plan));
    assert_eq!(opened.map(|report| report.connections_opened), [3, 7, 0, 0]);
    assert_eq!(server.connections(), 10);
}

#[test]
fn streams_and_sessions_of_tls_stay_open_too() {
    let server = Http2Server::start(Behaviour::default());
    let mut session = Session::new();
    let mut plan = slice(server.url(), closed(20));
    plan.connection.protocol = Protocol::Http2 { streams: 10 };
    let opened = [(); 2].map(|()| carried(&mut session, &plan).connections_opened);
    assert_eq!((opened, server.connections()), ([2, 0], 2));

    let config = Authority::new("theirs").config("http/1.1", false);
    let server = TlsServer::start(config, |_| Handshake::Good, |_| Reply::ok());
    let mut plan = slice(server.url(), closed(4));
    plan.connection.tls.insecure = true;
    let opened = [(); 2].map(|()| carried(&mut session, &plan).connections_opened);
    assert_eq!((opened, server.plain.connections()), ([4, 0], 4));
}

#[test]
fn a_peer_that_closes_idle_connections_costs_no_request() {
    for model in [closed(6), open(500.0, 6)] {
        let server = impatient(500);
        let mut session = Session::new();
        let plan = slice(server.url(), model.clone());
        let first = carried(&mut session, &plan);
        sleep(Duration::from_millis(900));
        let again = carried(&mut session, &plan);
        assert!(again.connections_opened >= first.connections_opened);
        for phase in [&again.warm_up, &again.measure] {
            assert!(phase.done > 10 && phase.errors.is_empty(), "{:?}", phase.errors);
            assert_eq!(phase.sent, phase.done);
        }
        if model == closed(6) {
            // All were opened before the load began: that is told of the measured phase.
            assert_eq!(again.measure.steps.connect.count(), 6);
        }
    }
}

#[test]
fn a_target_that_is_gone_fails_the_next_plan() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = slice(format!("http://{}/", listener.local_addr().unwrap()), closed(1));
    // Takes one connection, and closes it when nothing comes for a while.
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        stream.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let mut session = Session::new();
    assert!(carried(&mut session, &plan).measure.errors.is_empty());
    sleep(Duration::from_millis(400));
    let stop = AtomicBool::new(false);
    let listener = Listener { stop: &stop, emit: &mut |_| {}, samples: None };
    let error = session.run(&plan, listener).unwrap_err();
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
}

#[test]
fn one_seed_gives_one_schedule_in_each_plan() {
    let server = Server::start(|_| Reply::ok());
    let mut session = Session::new();
    let model = LoadModel::Open { arrivals: Arrivals::poisson(300.0), max_connections: 20 };
    let plan = slice(server.url(), model);
    let mut due = || {
        let _alone = alone();
        let (stop, mut samples) = (AtomicBool::new(false), Vec::new());
        let mut take = |batch: &[Sample]| samples.extend_from_slice(batch);
        let listener = Listener { stop: &stop, emit: &mut |_| {}, samples: Some(&mut take) };
        let begin_ns = session.run(&plan, listener).unwrap().measure_begin_unix_ns;
        samples.iter().map(|sample| sample.intended_ns - begin_ns).collect::<BTreeSet<u64>>()
    };
    let first = due();
    assert!(first.len() > 30);
    assert_eq!(first, due());
}

#[test]
fn the_counter_goes_on_from_plan_to_plan() {
    let (server, heard) = hearing(|request| request.path().to_string());
    let mut session = Session::new();
    for (model, threads) in [(closed(3), 2), (open(500.0, 8), 1), (closed(1), 2), (closed(4), 3)] {
        let mut plan = slice(server.url(), model);
        plan.targets = vec![template(format!("{}{{{{counter}}}}", server.url()))];
        plan.threads = threads;
        carried(&mut session, &plan);
    }
    let heard = heard.lock().unwrap();
    let different: BTreeSet<&String> = heard.iter().collect();
    assert!(heard.len() > 500);
    assert_eq!(different.len(), heard.len());
}

#[test]
fn a_report_is_of_its_plan_alone() {
    let server = Server::start(|_| Reply::ok());
    let mut session = Session::new();
    let busy = carried(&mut session, &slice(server.url(), closed(8)));
    let idle = carried(&mut session, &slice(server.url(), open(50.0, 8)));
    assert_eq!((idle.measure.done, idle.sent_in_all_phases), (10, 15));
    assert!(idle.measure.cpu_ns < busy.measure.cpu_ns, "{:?}", idle.measure.cpu_ns);
    assert_eq!(server.requests(), busy.sent_in_all_phases + 15);
}

#[test]
fn what_a_stopped_plan_left_unanswered_does_not_answer_the_next() {
    let server = Server::start(|n| if n == 0 { Reply::Silence } else { Reply::ok() });
    let mut session = Session::new();
    let plan = plan(server.url(), closed(1), Stop::AfterSeconds(0.2));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(150));
            stop.store(true, Ordering::Relaxed);
        });
        let listener = Listener { stop: &stop, emit: &mut |_| {}, samples: None };
        let report = session.run(&plan, listener).unwrap();
        assert_eq!(report.measure.unanswered, 1);
    });
    let report = carried(&mut session, &plan);
    assert!(report.measure.done > 10 && report.measure.errors.is_empty());
    assert_eq!(report.connections_opened, 1);
}
