//! Sums over a finished phase that the summary and the thresholds share. Pure.

use toll_load::{ErrorKind, PhaseReport};

/// The first status that says that something went wrong.
const FIRST_BAD: u16 = 400;

/// Length of the phase, seconds; never zero.
pub fn seconds(measure: &PhaseReport) -> f64 {
    measure.end_ns.saturating_sub(measure.begin_ns).max(1) as f64 / 1e9
}

/// Requests that were sent and not answered. Attempts to connect are no requests: those wait for another one.
fn failed(measure: &PhaseReport) -> u64 {
    let attempts = [ErrorKind::Connect, ErrorKind::Tls];
    let kinds = measure.errors.iter().filter(|(kind, _)| !attempts.contains(kind));
    kinds.map(|(_, count)| count).sum()
}

/// Answers that say that something went wrong, by status or by gRPC status.
pub fn refused(measure: &PhaseReport) -> u64 {
    let statuses = measure.statuses.range(FIRST_BAD..).map(|(_, count)| count);
    let calls = measure.grpc_statuses.range(1..).map(|(_, count)| count);
    statuses.chain(calls).sum()
}

/// Requests that did not end well: k6's `http_req_failed`, and those that could not be sent.
pub fn errors(measure: &PhaseReport) -> u64 {
    failed(measure) + measure.unsent + refused(measure)
}

/// Requests with an end, good or bad.
pub fn requests(measure: &PhaseReport) -> u64 {
    measure.done + failed(measure) + measure.unsent
}

/// `12 timeout, 3 reset`; nothing when there was no error.
pub fn errors_by_kind(measure: &PhaseReport) -> String {
    let counted = measure.errors.iter().filter(|(_, count)| **count > 0);
    let told = |(kind, count): (&ErrorKind, &u64)| format!("{count} {}", kind.name());
    counted.map(told).collect::<Vec<_>>().join(", ")
}
