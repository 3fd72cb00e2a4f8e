//! Turns ztunnel's metrics into counters.
//!
//! It counts connections of applications, each a stream of its own over HBONE, not handshakes: what it took or sent
//! over mTLS stands for a handshake with the peer whose principal it names. Names and labels:
//! <https://istio.io/latest/docs/reference/config/metrics/>.

use std::collections::BTreeMap;

use crate::certificates::mesh::spiffe_id;
use crate::deployment::Deployment;
use crate::evidence::ProxyCounters;

const OPENED: &str = "istio_tcp_connections_opened_total";
const CLOSED: &str = "istio_tcp_connections_closed_total";
const RECEIVED: &str = "istio_tcp_received_bytes_total";

/// The flag of connections that a policy denied, which were opened, too.
const DENIED: &str = "DENY";

/// What the metrics of one ztunnel say of the services of `deployment`.
pub(crate) fn counters(text: &str, deployment: &Deployment) -> ProxyCounters {
    let mut counters = ProxyCounters::default();
    let known = |sample: &Sample| Some((sample.service("destination_principal")?, sample.value));
    for sample in samples(text, OPENED) {
        let Some((callee, connections)) = known(&sample) else { continue };
        match (sample.label("reporter"), sample.is_mtls()) {
            ("source", is_mtls) => {
                let sent = counters.tunnels.entry(callee).or_default();
                sent.connections += connections;
                let carried = if is_mtls { connections } else { 0 };
                sent.requests += carried;
                sent.handshakes += carried;
            }
            ("destination", true) => {
                let caller = sample.service("source_principal");
                let is_caller =
                    deployment.callers_of(&callee).any(|c| Some(&c.name) == caller.as_ref());
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
        |sample: &Sample| sample.label("reporter") == "destination" && !sample.is_mtls();
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

/// One line of the text.
#[derive(Debug)]
struct Sample {
    labels: BTreeMap<String, String>,
    value: u64,
}

impl Sample {
    fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    fn is_mtls(&self) -> bool {
        self.label("connection_security_policy") == "mutual_tls"
    }

    /// The service that has the principal in this label.
    fn service(&self, label: &str) -> Option<String> {
        self.label(label).strip_prefix(&spiffe_id("")).map(str::to_owned)
    }
}

fn samples<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = Sample> + 'a {
    text.lines().filter_map(move |line| {
        let labels = line.strip_prefix(name)?.strip_prefix('{')?;
        let (labels, rest) = labels_of(labels)?;
        let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Sample { labels, value })
    })
}

/// The labels up to the closing brace, and what is behind it.
fn labels_of(mut text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let (value, rest) = quoted(rest)?;
        labels.insert(name.to_owned(), value);
        text = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// The text up to the closing quote, and what is behind that. A backslash escapes.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                escaped => escaped,
            }),
            _ => value.push(character),
        }
    }
    None
}
