//! Whether the bookings that a load makes can be read, and told apart afterwards.
//!
//! What is filled in for each request is only known later: the body is read as two requests would have it.

use serde_json::Value;

use super::placeholder::{is_placeholder, placeholders};
use super::{Violation, airline, at_key, at_value};
use crate::study::fault::Problem;
use crate::study::model::{Request, Study};
use crate::study::tree::Pointer;

/// What is wrong with the body of a booking, if the request makes one.
pub(super) fn check(study: &Study, request: &Request, at: &Pointer) -> Option<Violation> {
    if !airline::books(&study.app, request) {
        return None;
    }
    let found = match request.body.as_deref() {
        None => at_key(Problem::BookingOfNothing, at.clone()),
        // Reported already.
        Some(body) if !placeholders(body).all(is_placeholder) => return None,
        Some(body) => at_value(problem(body)?, at.child("body")),
    };
    let found = ["method", "path", "body"].iter().fold(found, |f, key| f.because_of(at.child(key)));
    Some(found.from(&["app", "entry"]))
}

fn problem(body: &str) -> Option<Problem> {
    let unreadable = |problem| Problem::UnreadableBooking { problem };
    let keys = [1, 2].map(|number| key(&filled_in(body, number)));
    match keys {
        [Err(problem), _] | [_, Err(problem)] => Some(unreadable(problem)),
        [Ok(key), Ok(other)] => (key == other).then_some(Problem::SameBooking { key }),
    }
}

/// The key of a booking that the airline can read.
fn key(body: &str) -> Result<String, String> {
    let booking: Value = serde_json::from_str(body).map_err(|_| "it is no JSON".to_owned())?;
    for number in ["customer", "flight"] {
        let read = booking.get(number).and_then(Value::as_u64);
        read.filter(|read| u32::try_from(*read).is_ok())
            .ok_or_else(|| format!("`{number}` is to be a whole number"))?;
    }
    let key = booking.get("key").and_then(Value::as_str);
    key.map(str::to_owned).ok_or_else(|| "`key` is to be a text".into())
}

/// The body of one request: `number` is its own, of a range the lowest is drawn.
fn filled_in(body: &str, number: u32) -> String {
    let mut text = String::new();
    let mut rest = body;
    while let Some((before, placeholder)) = rest.split_once("{{") {
        let Some((name, after)) = placeholder.split_once("}}") else { break };
        text.push_str(before);
        let range = name.strip_prefix("random.").and_then(|range| range.split_once('.'));
        text.push_str(&range.map_or_else(|| number.to_string(), |(low, _)| low.to_owned()));
        rest = after;
    }
    text + rest
}
