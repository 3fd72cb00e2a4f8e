//! Against a server that we did not write: hyper, on a loopback socket.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::*;

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

/// Answers with `x-status`, with as many bytes as came in, and with `x-grpc` as a trailer.
async fn echo_length(request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let text = |name| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let length = body.collect().await?.to_bytes().len();
    let body = Full::new(Bytes::from(vec![b'x'; length]));
    let body = match text("x-grpc") {
        None => body.boxed(),
        Some(status) => body.with_trailers(async move { trailers(&status) }).boxed(),
    };
    let mut response = Response::new(body);
    if let Some(status) = text("x-status") {
        *response.status_mut() = StatusCode::from_bytes(status.as_bytes()).unwrap();
    }
    Ok(response)
}

fn trailers(status: &str) -> Option<Result<HeaderMap, Infallible>> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    Some(Ok(trailers))
}

/// Serves one connection on a thread of its own, which ends with it.
fn serve_one() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let service = hyper::service::service_fn(echo_length);
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // The client closes without a farewell, which is an error to some servers.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    });
    address
}

/// A request, and what must come of it.
#[derive(Clone)]
struct Expected {
    block: Vec<u8>,
    body: Vec<u8>,
    is_head: bool,
    outcome: (u16, u64, Option<u16>),
}

/// Request number `k` of a mix of methods, statuses and bodies of 0 to 200 KB.
fn request(k: usize, is_grpc: bool) -> Expected {
    let status = [200_u16, 404, 418, 503][k % 4 * usize::from(!is_grpc)];
    let length = [0, 0, 0, 10, 0, 200_000, 0, 3_000, 0, 70_000][k % 10];
    let is_head = length == 0 && k.is_multiple_of(3) && !is_grpc;
    let (code, grpc) = (status.to_string(), (k % 17).to_string());
    let fields = [
        (":method", if is_head { "HEAD" } else { "POST" }),
        (":scheme", "http"),
        (":authority", "localhost"),
        (":path", "/some/where"),
        ("x-status", &code),
        ("x-grpc", &grpc),
    ];
    let fields = &fields[..if is_grpc { 6 } else { 5 }];
    let grpc_status = is_grpc.then_some((k % 17) as u16);
    let outcome = (status, length as u64, grpc_status);
    Expected { block: block(fields), body: vec![b'y'; length], is_head, outcome }
}

/// Runs requests over ten lanes of one connection; gives the outcomes by number of the request.
fn run(requests: &[Expected], is_grpc: bool) -> Vec<Result<Answer, ErrorKind>> {
    let mut socket = TcpStream::connect(serve_one()).unwrap();
    let mut talk = Talk::silent(10, is_grpc);
    talk.http2.preface(&mut talk.out);
    let mut buffer = vec![0; 64 * 1024];
    socket.write_all(&talk.out).unwrap();
    talk.out.clear();
    let greeting = socket.read(&mut buffer).unwrap();
    talk.feed(&buffer[..greeting]).unwrap();
    let mut outcomes = vec![Err(ErrorKind::Timeout); requests.len()];
    let mut carried = [0; 10];
    let mut next = (0..).zip(requests);
    let mut free: Vec<u32> = (0..10).collect();
    loop {
        while let Some((lane, (number, request))) = free.pop().and_then(|l| Some((l, next.next()?)))
        {
            let Expected { block, body, is_head, .. } = request;
            assert!(talk.http2.start(lane, block, body, *is_head, &mut talk.out));
            carried[lane as usize] = number;
        }
        if talk.http2.open_lanes() == 0 {
            return outcomes;
        }
        socket.write_all(&talk.out).unwrap();
        talk.out.clear();
        let length = socket.read(&mut buffer).unwrap();
        assert!(length > 0, "the server closed the connection");
        talk.feed(&buffer[..length]).unwrap();
        for completion in talk.completions.drain(..) {
            outcomes[carried[completion.lane as usize]] = completion.outcome;
            free.push(completion.lane);
        }
    }
}

fn assert_all_as_expected(is_grpc: bool) {
    let requests: Vec<_> = (0..1000).map(|k| request(k, is_grpc)).collect();
    let outcomes = run(&requests, is_grpc);
    for (k, (request, outcome)) in requests.iter().zip(outcomes).enumerate() {
        let outcome = outcome.map(|a| (a.status, a.body_bytes, a.grpc_status));
        assert_eq!(outcome, Ok(request.outcome), "request {k}");
    }
}

#[test]
fn a_real_server_answers_a_thousand_requests_on_ten_lanes() {
    assert_all_as_expected(false);
}

#[test]
fn a_real_server_answers_a_thousand_grpc_calls_with_trailers() {
    assert_all_as_expected(true);
}
