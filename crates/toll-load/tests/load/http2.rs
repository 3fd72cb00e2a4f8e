//! HTTP/2 and gRPC against hyper.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{closed, holds, measured, open, plan};
use crate::http2_server::{Behaviour, Http2Server};
use crate::tls_server::Authority;
use toll_load::{LoadModel, LoadPlan, Protocol, Stop};

fn http2_plan(server: &Http2Server, model: LoadModel, requests: u64, streams: u32) -> LoadPlan {
    let mut plan = plan(server.url(), model, Stop::AfterRequests(requests));
    plan.connection.protocol = Protocol::Http2 { streams };
    plan.connection.tls.insecure = true;
    plan
}

#[test]
fn forty_clients_share_four_connections_of_ten_streams() {
    for tls in [false, true] {
        let tls = tls.then(|| Arc::new(Authority::new("theirs").config("h2", false)));
        let server = Http2Server::start(Behaviour { tls, ..Behaviour::default() });
        let report = measured(&http2_plan(&server, closed(40), 1000, 10));
        assert_eq!((report.measure.done, server.requests()), (1000, 1000));
        assert_eq!((report.connections_opened, server.connections()), (4, 4));
        assert_eq!((server.most_streams(), report.measure.errors.len()), (10, 0));
    }
}

#[test]
fn an_open_loop_fills_streams_before_it_is_late() {
    let delay = Duration::from_millis(20);
    let server = Http2Server::start(Behaviour { delay, ..Behaviour::default() });
    let report = measured(&http2_plan(&server, open(1000.0, 4), 400, 10));
    assert_eq!((report.measure.done, server.requests()), (400, 400));
    assert!(server.connections() <= 4 && server.most_streams() == 10);
}

#[test]
fn a_peer_that_allows_three_streams_gets_no_more() {
    for model in [closed(20), open(1000.0, 4)] {
        let server = Http2Server::start(Behaviour { max_streams: 3, ..Behaviour::default() });
        let report = measured(&http2_plan(&server, model, 400, 10));
        assert_eq!(report.measure.errors, [].into());
        assert_eq!((report.measure.done, server.requests()), (400, 400));
        assert!(server.most_streams() <= 3, "{} streams", server.most_streams());
    }
}

#[test]
fn requests_in_a_burst_stay_within_what_a_new_peer_allows() {
    let server = Http2Server::start(Behaviour { max_streams: 3, ..Behaviour::default() });
    // A hundred thousand a second: all fall due while the first connection is there, the others are made.
    let report = measured(&http2_plan(&server, open(100_000.0, 4), 200, 10));
    assert_eq!(report.measure.errors, [].into());
    assert_eq!((report.measure.done, server.requests()), (200, 200));
}

#[test]
fn a_connection_that_the_peer_ends_is_replaced_without_errors() {
    for model in [closed(10), open(1000.0, 4)] {
        let server = Http2Server::start(Behaviour { goodbye_after: 50, ..Behaviour::default() });
        let report = measured(&http2_plan(&server, model, 400, 10));
        assert_eq!(report.measure.errors, [].into());
        assert_eq!((report.measure.done, server.requests()), (400, 400));
        assert_eq!(report.connections_opened, server.connections());
        assert!(server.connections() >= 4, "{} connections", server.connections());
    }
}

#[test]
fn the_status_of_each_grpc_call_is_counted() {
    let grpc_status = |n: u64| if n.is_multiple_of(5) { 13 } else { 0 };
    let server =
        Http2Server::start(Behaviour { grpc_status: Some(grpc_status), ..Behaviour::default() });
    for model in [closed(10), open(1000.0, 4)] {
        let mut plan = http2_plan(&server, model, 100, 10);
        plan.connection.protocol = Protocol::Grpc { streams: 10 };
        plan.targets[0].url.push_str("shop.Cart/Add");
        let report = measured(&plan);
        assert_eq!(report.measure.grpc_statuses, [(0, 80), (13, 20)].into());
        assert_eq!(report.measure.statuses, [(200, 100)].into());
        assert!(!holds(&report, "errors"), "{:?}", report.checks);
    }
}
