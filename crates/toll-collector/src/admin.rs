//! Turns a request over the Unix socket into a change of the window or a look into it.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use crate::tally::Tally;

const USAGE: &str = "POST, GET or DELETE /window, GET /counts\n";
const NO_WINDOW: &str = "no window is open: POST /window opens one\n";

/// Answers a request; its body does not matter.
pub(crate) fn answer<B>(request: &Request<B>, tally: &Mutex<Tally>) -> Response<Full<Bytes>> {
    // Nothing panics while it holds the lock, and counters are whole at any time.
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/window") => {
            tally.open_window(nanoseconds_since_1970());
            text(StatusCode::NO_CONTENT, "")
        }
        (&Method::DELETE, "/window") => {
            tally.close_window();
            text(StatusCode::NO_CONTENT, "")
        }
        (&Method::GET, "/window") => match tally.report() {
            Some(report) => json(&report),
            None => text(StatusCode::NOT_FOUND, NO_WINDOW),
        },
        (&Method::GET, "/counts") => json(&tally.counters()),
        _ => text(StatusCode::NOT_FOUND, USAGE),
    }
}

/// Zero, which keeps all spans, when the clock is wrong.
fn nanoseconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or_default()
}

fn json(value: &impl Serialize) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec(value).expect("texts and numbers always make JSON");
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer
}
