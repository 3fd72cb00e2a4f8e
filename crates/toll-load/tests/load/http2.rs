//! HTTP/2 and gRPC against hyper.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
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

/// The head of a frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Answers on each connection the first `each` requests, and says that it did not process those after them.
fn forgetful_server(each: usize) -> String {
    const HEADERS: u8 = 1;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serve = move |mut stream: TcpStream| -> std::io::Result<()> {
        stream.read_exact(&mut [0; 24])?;
        stream.write_all(&frame(4, 0, 0, &[]))?;
        let (mut seen, mut last) = (0, 0);
        // Some more are on their way when it says goodbye.
        while seen < each + 3 {
            let mut head = [0; 9];
            stream.read_exact(&mut head)?;
            let length = usize::from(head[1]) * 256 + usize::from(head[2]);
            stream.read_exact(&mut vec![0; length])?;
            if head[3] == HEADERS {
                seen += 1;
                let stream_id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                if seen <= each {
                    last = stream_id;
                    // `:status: 200`, the end of headers and of the stream.
                    stream.write_all(&frame(HEADERS, 5, stream_id, &[0x88]))?;
                }
            }
        }
        stream.write_all(&frame(7, 0, 0, &[last.to_be_bytes(), [0; 4]].concat()))?;
        // Whatever else comes is read, so that the goodbye is not lost in a reset.
        std::io::copy(&mut stream, &mut std::io::sink()).map(|_| ())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    url
}

#[test]
fn requests_that_the_peer_did_not_process_are_sent_again() {
    for model in [closed(10), open(1000.0, 1)] {
        let mut plan = plan(forgetful_server(20), model, Stop::AfterRequests(200));
        plan.connection.protocol = Protocol::Http2 { streams: 10 };
        let report = measured(&plan);
        let measure = &report.measure;
        assert_eq!((measure.sent, measure.done, measure.errors.len()), (200, 200, 0));
        assert!(report.connections_opened >= 10);
    }
}
