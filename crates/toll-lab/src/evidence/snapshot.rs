//! What is seen of a path at one end of the measured window, and what became of probes from outside of the mesh.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use super::counters::ProxyCounters;
use super::reports::{PathReport, Plaintext, Walk};
use crate::sample::Reading;

/// What is seen of a path at one end of the window. Maps go by the name of the pod.
#[derive(Debug, Clone)]
pub(crate) struct PathSnapshot {
    /// A probe of the whole path.
    pub walk: Walk,
    /// What each gateway and sidecar has counted, the probe before the window included and the one after it not.
    pub counters: BTreeMap<String, ProxyCounters>,
    /// The firewall's rules as the kernel lists them; empty where pods have no network of their own.
    pub rules: BTreeMap<String, String>,
    /// Who runs in a pod's network; empty where pods have none of their own.
    pub occupants: BTreeMap<String, Occupants>,
    /// What each database says of itself, probes included.
    pub databases: BTreeMap<String, DatabaseSnapshot>,
    /// What each pod of a service that has several says of itself when it is asked inside the pod: `walk`
    /// meets only one of them. A pod that does not report is left out.
    pub replicas: BTreeMap<String, PathReport>,
    /// The JVMs in each pod that an agent can be in; empty where nobody takes spans.
    pub jvms: BTreeMap<String, Vec<Jvm>>,
    /// Requests that each pod of nginx has answered, probes of the whole path included.
    pub answered: BTreeMap<String, u64>,
    /// How TLS with each external service ends that a pod tries as its program would, by pod, then by service.
    pub handshakes: BTreeMap<String, BTreeMap<String, Handshake>>,
    /// Connections that the SNI proxy has accepted since it started; none where there is none.
    pub sni_accepted: Option<u64>,
    /// What each node's bridge has carried; empty where pods share the machine's network.
    pub wire: Reading<Vec<Wire>>,
}

/// TCP packets that a node's bridge has carried between pods since it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wire {
    /// The node's name: `node-1`.
    pub node: String,
    /// To or from the port of HBONE.
    pub hbone_packets: u64,
    /// All others but those of the load and of the collector.
    pub other_packets: u64,
}

/// How a TLS handshake with an external service ended that was tried from inside of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The server showed a certificate for its name that its authority vouches for, and took the client's.
    Established {
        /// SHA-256 of the server's certificate, hexadecimal.
        server: String,
    },
    /// Why there was none: `certificate expired`, `closed`, `refused`, ...
    Failed(String),
}

/// Certificates of external services and of those who call them, as they were issued: SHA-256, hexadecimal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fingerprints {
    /// By the external service's name.
    pub servers: BTreeMap<String, String>,
    /// By the name of the calling service; the lab's own, with which it looks into databases, as `toll`.
    pub clients: BTreeMap<String, String>,
}

/// The agents in one JVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jvm {
    /// Those that its options name: jars, or native libraries.
    pub named: Vec<PathBuf>,
    /// Those that it has open; one that no option names only if the lab knows it.
    pub open: Vec<PathBuf>,
    /// Whether it has loaded the library of all Java agents, however they got into it.
    pub instruments: bool,
}

/// What a database server says of its clients and of what it has done since it began.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DatabaseSnapshot {
    /// Statements that services ran; those that open a connection, control a transaction or probe left out.
    pub statements: u64,
    /// What this very look added to them once they were counted: some servers count what they are asked about themselves.
    pub looked: u64,
    /// Where the connections that are open now come from, and how many from each address.
    pub peers: BTreeMap<IpAddr, u64>,
    /// Rows that writes have made, and different ones among them; none when the study does not ask.
    pub written: Option<(u64, u64)>,
    /// Seats of the airline that are taken; none of other databases.
    pub seats_taken: Option<u64>,
    /// Sessions by the certificate that the client showed, SHA-256; why there are none where it does not tell.
    pub clients: Option<Reading<BTreeMap<String, u64>>>,
}

/// The processes in a pod's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Occupants {
    /// Whether the pod's own program was found: a look that misses it would miss others too.
    pub own: bool,
    /// Other programs, for instance `envoy (pid 42)`.
    pub foreign: Vec<String>,
}

/// What became of probes from outside of the mesh, by the name of the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outsider {
    /// A plaintext request to the pod's program.
    pub plaintext: BTreeMap<String, Plaintext>,
    /// TLS without a certificate to the port of HBONE.
    pub uncertified: BTreeMap<String, Plaintext>,
    /// TLS without a certificate to the egress gateway, with the SNI that sidecars send it; none where it takes
    /// no mTLS or there is none.
    pub egress: Option<Plaintext>,
}
