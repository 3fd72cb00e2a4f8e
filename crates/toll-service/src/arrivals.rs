//! Counts the requests that a service got and, of those, the ones that a proxy marked and the ones that came over mTLS.

use std::sync::atomic::{AtomicU64, Ordering};

use hyper::HeaderMap;

/// Request headers by which a proxy shows itself: whole names, or families that end with a hyphen.
///
/// Not `x-request-id`: services pass it on, so that it tells nothing of the hop it came over.
const MARKS: [&str; 4] = ["forwarded", "via", "x-envoy-", "x-forwarded-"];

/// In it a proxy tells the certificate of who called it; a gateway that takes plaintext has none to tell.
const CERTIFICATE: &str = "x-forwarded-client-cert";

/// Mesher puts both on each request: the caller's the first, the called service's own the second.
const MESHER: [&str; 2] = ["x-cse-context", "x-forwarded-host"];

/// Counts since the service began. None decreases.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    requests: AtomicU64,
    marked: AtomicU64,
    certified: AtomicU64,
    by_mesher: AtomicU64,
}

impl Arrivals {
    /// Counts a request with `headers`.
    pub(crate) fn count(&self, headers: &HeaderMap) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if headers.keys().any(|name| is_mark(name.as_str())) {
            self.marked.fetch_add(1, Ordering::Relaxed);
        }
        if headers.contains_key(CERTIFICATE) {
            self.certified.fetch_add(1, Ordering::Relaxed);
        }
        if MESHER.iter().all(|name| headers.contains_key(*name)) {
            self.by_mesher.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Those that bore the mark of a proxy.
    pub(crate) fn marked(&self) -> u64 {
        self.marked.load(Ordering::Relaxed)
    }

    /// Those whose proxy forwarded a certificate.
    pub(crate) fn certified(&self) -> u64 {
        self.certified.load(Ordering::Relaxed)
    }

    /// Those that crossed two Meshers.
    pub(crate) fn by_mesher(&self) -> u64 {
        self.by_mesher.load(Ordering::Relaxed)
    }
}

fn is_mark(name: &str) -> bool {
    MARKS.iter().any(|mark| name == *mark || mark.ends_with('-') && name.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn counted(names: &[&str]) -> Arrivals {
        let arrivals = Arrivals::default();
        let header =
            |name: &&str| (HeaderName::try_from(*name).unwrap(), HeaderValue::from_static("1"));
        arrivals.count(&names.iter().map(header).collect());
        assert_eq!(arrivals.requests(), 1);
        arrivals
    }

    #[test]
    fn a_request_with_a_header_that_only_proxies_add_is_marked_once() {
        for name in ["x-forwarded-client-cert", "x-forwarded-proto", "x-envoy-attempt-count"] {
            assert_eq!(counted(&["host", name]).marked(), 1, "{name}");
        }
        assert_eq!(counted(&["via", "forwarded", "x-envoy-internal"]).marked(), 1);
    }

    #[test]
    fn what_callers_send_or_pass_on_is_no_mark() {
        let own = ["host", "user-agent", "x-request-id", "traceparent", "x-b3-traceid", "viaduct"];
        assert_eq!(counted(&own).marked(), 0);
    }

    #[test]
    fn a_request_came_by_mesher_only_with_the_headers_of_both_its_sides() {
        assert_eq!(counted(&["x-cse-context", "x-forwarded-host", "host"]).by_mesher(), 1);
        assert_eq!(counted(&["x-cse-context", "x-forwarded-port"]).by_mesher(), 0);
        assert_eq!(counted(&["x-forwarded-host"]).by_mesher(), 0);
    }

    #[test]
    fn only_a_told_certificate_certifies() {
        assert_eq!(counted(&["host", "x-forwarded-client-cert"]).certified(), 1);
        assert_eq!(counted(&["x-forwarded-for", "x-envoy-internal", "via"]).certified(), 0);
    }
}
