//! Turns ztunnel's metrics into counters.
//!
//! It counts connections of applications, each a stream of its own over HBONE, not handshakes: what it took or sent
//! over mTLS stands for a handshake with the peer whose principal it names. Names and labels:
//! <https://istio.io/latest/docs/reference/config/metrics/>.

use crate::certificates::mesh::spiffe_id;
use crate::deployment::Deployment;
use crate::envoy::hbone;
use crate::evidence::ProxyCounters;
use crate::exposition::{Sample, samples};
use crate::topology::Topology;

const OPENED: &str = "istio_tcp_connections_opened_total";
const CLOSED: &str = "istio_tcp_connections_closed_total";
const RECEIVED: &str = "istio_tcp_received_bytes_total";

/// The flag of connections that a policy denied, which were opened, too.
const DENIED: &str = "DENY";

/// What the metrics of one ztunnel say of the services of `deployment`. What it sends by way of the waypoint it counts as
/// sent to that.
pub(crate) fn counters(text: &str, deployment: &Deployment, topology: &Topology) -> ProxyCounters {
    let mut counters = ProxyCounters::default();
    let known = |sample: &Sample| Some((service(sample, "destination_principal")?, sample.value));
    for sample in samples(text, OPENED) {
        let Some((callee, connections)) = known(&sample) else { continue };
        match (sample.label("reporter"), is_mtls(&sample)) {
            ("source", is_mtls) => {
                let sent = counters.tunnels.entry(callee).or_default();
                sent.connections += connections;
                let carried = if is_mtls { connections } else { 0 };
                sent.requests += carried;
                sent.handshakes += carried;
            }
            ("destination", true) => {
                let caller = service(&sample, "source_principal");
                let callers = hbone::callers_of(deployment, topology, &callee);
                let is_caller = callers.into_iter().any(|c| Some(c) == caller.as_deref());
                let taken = counters.hbone.entry(callee).or_default();
                taken.streams += connections;
                match is_caller {
                    true => taken.handshakes += connections,
                    false => taken.wrong_identity += connections,
                }
            }
            ("destination", false) => {
                counters.hbone.entry(callee).or_default().plaintext += connections;
            }
            _ => {}
        }
    }
    let of_plaintext =
        |sample: &Sample| sample.label("reporter") == "destination" && !is_mtls(sample);
    let denied = samples(text, CLOSED)
        .filter(|sample| of_plaintext(sample) && sample.label("response_flags") == DENIED);
    for (callee, connections) in denied.filter_map(|sample| known(&sample)) {
        let taken = counters.hbone.entry(callee).or_default();
        taken.plaintext = taken.plaintext.saturating_sub(connections);
    }
    let received = samples(text, RECEIVED).filter(of_plaintext);
    for (callee, bytes) in received.filter_map(|sample| known(&sample)) {
        counters.hbone.entry(callee).or_default().plaintext_bytes += bytes;
    }
    counters
}

fn is_mtls(sample: &Sample) -> bool {
    sample.label("connection_security_policy") == "mutual_tls"
}

/// The service that has the principal in this label.
fn service(sample: &Sample, label: &str) -> Option<String> {
    sample.label(label).strip_prefix(&spiffe_id("")).map(str::to_owned)
}
