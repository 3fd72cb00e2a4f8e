//! Connections: one for each request, over a Unix socket, to other addresses, from given ones.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::{closed, measured, open, plan};
use crate::listening::sampled;
use crate::server::{Reply, Server, at_unix_socket};
use crate::targets::hearing;
use toll_load::{LoadModel, Resolve, Reuse, Stop};

fn models() -> [LoadModel; 2] {
    [closed(4), open(300.0, 20)]
}

#[test]
fn each_request_has_a_connection_of_its_own() {
    for model in models() {
        let server = Server::start(|_| Reply::ok());
        let mut plan = plan(server.url(), model, Stop::AfterRequests(60));
        plan.connection.reuse = Reuse::PerRequest;
        let report = measured(&plan);
        assert_eq!((server.requests(), server.connections()), (60, 60));
        assert_eq!((report.measure.done, report.connections_opened), (60, 60));
        let steps = [&report.warm_up.steps, &report.measure.steps];
        assert_eq!(steps.iter().map(|steps| steps.connect.count()).sum::<u64>(), 60);
    }
}

#[test]
fn latency_begins_before_the_connection_of_a_request_is_made() {
    for model in models() {
        let server = Server::start(|_| Reply::ok());
        let mut plan = plan(server.url(), model, Stop::AfterRequests(60));
        plan.connection.reuse = Reuse::PerRequest;
        let (_, samples) = sampled(&plan);
        // The first connection is made before the load begins: no request waits for it. In an open loop a request
        // may take the connection that was begun for another.
        let connected = samples.iter().filter(|s| s.connect_ns > 0).count();
        assert!((40..60).contains(&connected), "{connected} waited for their connection");
        assert!(samples.iter().all(|s| s.intended_ns + s.connect_ns <= s.sent_ns));
    }
}

#[test]
fn each_iteration_in_parallel_has_as_many_new_connections_as_requests() {
    let server = Server::start(|_| {
        std::thread::sleep(Duration::from_millis(5));
        Reply::ok()
    });
    let mut plan = plan(server.url(), closed(2), Stop::AfterRequests(60));
    let LoadModel::Closed { iteration, .. } = &mut plan.model else { unreachable!() };
    iteration.requests = 3;
    plan.connection.reuse = Reuse::PerRequest;
    let report = measured(&plan);
    assert_eq!((server.connections(), server.requests(), report.measure.done), (60, 60, 60));
    assert!(server.most_in_flight() >= 5, "{} at a time", server.most_in_flight());
}

#[test]
fn a_unix_socket_carries_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let seen = at_unix_socket(&path, |_| Reply::ok());
    for (reuse, connections) in [(Reuse::KeepAlive, 3), (Reuse::PerRequest, 60)] {
        let mut plan = plan("http://shop.test/".into(), closed(3), Stop::AfterRequests(60));
        plan.connection.unix_socket = Some(path.clone());
        plan.connection.reuse = reuse;
        let before = seen.connections.load(Ordering::Relaxed);
        let report = measured(&plan);
        assert_eq!((report.measure.done, report.measure.errors.len()), (60, 0));
        assert_eq!(seen.connections.load(Ordering::Relaxed) - before, connections);
    }
    assert_eq!(seen.requests.load(Ordering::Relaxed), 120);
}

#[test]
fn a_name_goes_to_the_address_that_the_plan_gives() {
    let (server, heard) =
        hearing(|request| request.headers.iter().find(|h| h.starts_with("host")).unwrap().clone());
    let port = server.address.port();
    let mut plan = plan(format!("http://shop.test:{port}/"), closed(1), Stop::AfterRequests(1));
    let address = server.address.ip();
    plan.connection.resolve = vec![Resolve { host: "shop.test".into(), port, address }];
    assert_eq!(measured(&plan).measure.done, 1);
    assert_eq!(*heard.lock().unwrap(), [format!("host: shop.test:{port}")]);
}

#[test]
fn connections_come_from_the_local_addresses_in_turn() {
    let server = Server::start(|_| {
        std::thread::sleep(Duration::from_millis(2));
        Reply::ok()
    });
    let mut plan = plan(server.url(), closed(4), Stop::AfterRequests(40));
    let locals: Vec<IpAddr> = ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap()).into();
    plan.connection.local_addresses = locals.clone();
    assert_eq!(measured(&plan).measure.done, 40);
    let mut peers = server.peers();
    peers.sort_unstable();
    assert_eq!(peers, [locals[0], locals[0], locals[1], locals[1]]);
}
