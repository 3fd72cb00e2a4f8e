//! What the airline's database must show: no seat may be lost or sold twice, whatever became of a request.

use super::calls;
use crate::claim::{Claim, Topic};
use crate::programs::rows::{doubled_claim, growth, range_claim, written};
use crate::proof::window::Window;

/// Of its bookings, against what the load sent and got acknowledged.
pub(crate) fn booking_claims(seen: &Window<'_>, name: &str) -> Vec<Claim> {
    let [all, different] = written(seen, name);
    let made = calls::bookings(&seen.traffic.asked);
    let claim = format!("{name}: every acknowledged booking is there, and none that was not sent");
    let doubled = format!("{name}: no booking was made twice");
    let claims = [
        unknown_asks(seen),
        Some(range_claim(claim, made, all).about(Topic::Acknowledged)),
        Some(doubled_claim(doubled, all, different)),
        Some(seats_claim(seen, name, all)),
    ];
    claims.into_iter().flatten().collect()
}

fn seats_claim(seen: &Window<'_>, name: &str, bookings: Option<u64>) -> Claim {
    let taken = growth(seen, name, |snapshot| snapshot.seats_taken);
    let text = |count: Option<u64>, what: &str| match count {
        Some(count) => format!("{count} {what}"),
        None => format!("no {what} read"),
    };
    Claim {
        topic: Topic::Other,
        claim: format!("{name}: one seat is taken for each booking, none was lost or doubled"),
        expected: text(bookings, "seats"),
        seen: text(taken, "seats"),
        holds: taken.is_some() && taken == bookings,
    }
}

/// A claim that fails: what requests lead to that asked for who knows what is not known either.
fn unknown_asks(seen: &Window<'_>) -> Option<Claim> {
    let known: u64 = seen.traffic.asked.iter().map(|asked| asked.requests).sum();
    let sent = seen.traffic.requests;
    (known != sent).then(|| Claim {
        topic: Topic::Other,
        claim: "the load tells what each request asked for".to_owned(),
        expected: sent.to_string(),
        seen: known.to_string(),
        holds: false,
    })
}
