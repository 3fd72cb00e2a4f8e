//! Sums and rates of a finished phase that findings, summaries, thresholds and forms share, so that
//! they agree. Pure.

use toll_load::{ErrorKind, Histogram, PhaseReport};

/// The first status that says that something went wrong.
const FIRST_BAD: u16 = 400;

/// `part / whole`; of nothing it is zero.
pub fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Length of the phase, seconds.
pub fn seconds(measure: &PhaseReport) -> f64 {
    measure.end_ns.saturating_sub(measure.begin_ns) as f64 / 1e9
}

/// So much per second of the phase.
pub fn per_second(measure: &PhaseReport, amount: f64) -> f64 {
    share(amount, seconds(measure))
}

/// Answers within the phase, per second.
pub fn throughput(measure: &PhaseReport) -> f64 {
    per_second(measure, measure.completed as f64)
}

/// Requests that were sent and not answered. Attempts to connect are no requests: those wait for another one.
pub fn failed(measure: &PhaseReport) -> u64 {
    let attempts = [ErrorKind::Connect, ErrorKind::Tls];
    let kinds = measure.errors.iter().filter(|(kind, _)| !attempts.contains(kind));
    kinds.map(|(_, count)| count).sum()
}

/// Answers with a status of 400 or more.
pub fn bad_statuses(measure: &PhaseReport) -> u64 {
    measure.statuses.range(FIRST_BAD..).map(|(_, count)| count).sum()
}

/// Answers that say that something went wrong, by status or by gRPC status.
pub fn refused(measure: &PhaseReport) -> u64 {
    let calls = measure.grpc_statuses.range(1..).map(|(_, count)| count);
    bad_statuses(measure) + calls.sum::<u64>()
}

/// Requests that were sent and came to an end, answered or failed.
pub fn ended(measure: &PhaseReport) -> u64 {
    measure.done + failed(measure)
}

/// Requests that did not end well: k6's `http_req_failed`, and those that could not be sent.
pub fn errors(measure: &PhaseReport) -> u64 {
    failed(measure) + measure.unsent + refused(measure)
}

/// Requests with an end, good or bad.
pub fn requests(measure: &PhaseReport) -> u64 {
    ended(measure) + measure.unsent
}

/// Requests that did not end well, of all.
pub fn error_share(measure: &PhaseReport) -> f64 {
    share(errors(measure) as f64, requests(measure) as f64)
}

/// Requests that were answered with an error or not at all, of those that came to an end.
pub fn failed_share(measure: &PhaseReport) -> f64 {
    share((failed(measure) + refused(measure)) as f64, ended(measure) as f64)
}

/// CPU time of the generator for each request that it sent, microseconds.
pub fn cpu_us_per_request(measure: &PhaseReport) -> f64 {
    share(measure.cpu_ns as f64 / 1e3, measure.sent as f64)
}

/// `12 timeout, 3 reset`; nothing when there was no error.
pub fn errors_by_kind(measure: &PhaseReport) -> String {
    let counted = measure.errors.iter().filter(|(_, count)| **count > 0);
    let counted_as = |(kind, count): (&ErrorKind, &u64)| format!("{count} {}", kind.name());
    counted.map(counted_as).collect::<Vec<_>>().join(", ")
}

/// A step that only new connections take, as the tools count it that give it to every request: zero for those
/// on a connection that was there already.
pub fn of_every_request(of_connections: &Histogram, requests: u64) -> Histogram {
    let mut all = of_connections.clone();
    all.record_n_ns(0, requests.saturating_sub(of_connections.count()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> PhaseReport {
        PhaseReport {
            done: 90,
            unsent: 4,
            statuses: [(200, 80), (399, 3), (400, 7)].into(),
            errors: [(ErrorKind::Connect, 50), (ErrorKind::Tls, 30), (ErrorKind::Reset, 6)].into(),
            ..PhaseReport::default()
        }
    }

    #[test]
    fn a_failed_attempt_to_connect_is_no_request() {
        let measure = measured();
        assert_eq!((failed(&measure), ended(&measure), requests(&measure)), (6, 96, 100));
        assert_eq!((refused(&measure), errors(&measure)), (7, 17));
        assert_eq!(error_share(&measure), 0.17);
        assert_eq!(failed_share(&measure), 13.0 / 96.0);
        assert_eq!(errors_by_kind(&measure), "50 connect, 6 reset, 30 tls");
    }

    #[test]
    fn a_call_that_ended_with_an_error_is_refused_with_whatever_status() {
        let grpc_statuses = [(0, 85), (14, 5)].into();
        let measure = PhaseReport { grpc_statuses, ..measured() };
        assert_eq!((refused(&measure), bad_statuses(&measure)), (12, 7));
    }

    #[test]
    fn cpu_is_spent_on_requests_that_were_sent() {
        let measure = PhaseReport { sent: 50, cpu_ns: 1_000_000, ..measured() };
        assert_eq!(cpu_us_per_request(&measure), 20.0);
        assert_eq!(cpu_us_per_request(&PhaseReport { sent: 0, ..measure }), 0.0);
    }

    #[test]
    fn a_phase_of_no_length_has_no_rates() {
        let mut measure = PhaseReport { completed: 3, ..PhaseReport::default() };
        assert_eq!((throughput(&measure), error_share(&measure)), (0.0, 0.0));
        measure.end_ns = 2_000_000;
        assert_eq!(throughput(&measure), 1500.0);
    }
}
