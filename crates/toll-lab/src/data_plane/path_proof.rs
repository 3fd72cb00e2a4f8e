//! Turns counters and probe results into the claims that make a round of an arm count (METHOD.md, rule 7). Pure.
//!
//! Each request that the entry gets is followed along the `calls` of the deployment: that gives how often each
//! service and each call must have been counted, by the proxies, by the built-in services themselves and by the
//! databases. A proxy that is bypassed by mistake counts nothing, and one that stands in a bare path leaves an
//! address, a header on the requests that it passes, or a process in a pod; each makes a claim fail.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use super::collector::SpanWindow;
use super::probe::{PathReport, Plaintext, Walk};
use super::{Capture, ProxyCounters, Topology};
use crate::Reading;
use crate::deployment::{Ambient, Deployment, Egress, Program, Service};
use crate::proof::{Claim, Proof, Traffic};

mod agent;
mod airline;
mod ambient;
mod bare;
mod claims;
mod crossing;
mod database;
mod expected;
mod external;
mod gateway;
mod own_counts;
mod sidecar;
mod spans;
mod trace;
mod wire;

use ambient::Mesh;
use claims::at_both_ends;
use database::Databases;
use expected::Expected;
use own_counts::Mark;
use trace::Traces;

/// Where a sidecar's own connections to its application come from.
pub(super) const SIDECAR_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);

/// The `server` header that a sidecar puts on answers.
pub(super) const SIDECAR_SERVER: &str = "istio-envoy";

/// What is seen of a path at one end of the window. Maps go by the name of the pod.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    /// A probe of the whole path.
    pub walk: Walk,
    /// What each gateway and sidecar has counted, the probe before the window included and the one after it not.
    pub counters: BTreeMap<String, ProxyCounters>,
    /// The firewall's rules as the kernel lists them; empty where pods have no network of their own.
    pub rules: BTreeMap<String, String>,
    /// Who runs in a pod's network; empty where pods have none of their own.
    pub occupants: BTreeMap<String, Occupants>,
    /// What each database says of itself, probes included.
    pub databases: BTreeMap<String, DatabaseSight>,
    /// What each pod of a service that has several says of itself when it is asked inside the pod: `walk`
    /// meets only one of them. A pod that does not report is left out.
    pub replicas: BTreeMap<String, PathReport>,
    /// The JVMs in each pod that an agent can be in; empty where nobody takes spans.
    pub jvms: BTreeMap<String, Vec<Jvm>>,
    /// Requests that each pod of nginx has answered, probes of the whole path included.
    pub served: BTreeMap<String, u64>,
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
pub(crate) struct DatabaseSight {
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

/// What was seen of a deployment around the requests of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    /// What was deployed.
    pub deployment: &'a Deployment,
    /// What was sent to the entry between the two sights.
    pub traffic: &'a Traffic,
    /// When the window began.
    pub before: &'a Sight,
    /// When the window ended.
    pub after: &'a Sight,
    /// What the collector got between the two sights; none without one.
    pub spans: Option<&'a SpanWindow>,
    /// The certificates of external services and their callers; none where no service is external.
    pub issued: Option<&'a Fingerprints>,
}

impl Window<'_> {
    /// By how much the counters of a service's proxies rose, those of all its pods added up; none when a reading
    /// is missing or a proxy was restarted.
    fn growth(&self, service: &str, pick: impl Fn(&ProxyCounters) -> u64) -> Option<u64> {
        self.growth_in(&self.pods_of(service), pick)
    }

    /// The same for the proxies in these pods.
    fn growth_in(&self, pods: &[String], pick: impl Fn(&ProxyCounters) -> u64) -> Option<u64> {
        if pods.is_empty() {
            return None;
        }
        pods.iter().map(|pod| self.pod_growth(pod, &pick)).sum()
    }

    /// The same for one pod.
    fn pod_growth(&self, pod: &str, pick: impl Fn(&ProxyCounters) -> u64) -> Option<u64> {
        let (before, after) = (self.before.counters.get(pod)?, self.after.counters.get(pod)?);
        pick(after).checked_sub(pick(before))
    }

    /// Requests that a pod of nginx has answered in the window; none when a reading is missing.
    fn served(&self, pod: &str) -> Option<u64> {
        self.after.served.get(pod)?.checked_sub(*self.before.served.get(pod)?)
    }

    /// What a service's proxies have counted since their start, up to the end of the window.
    fn total(&self, service: &str, pick: impl Fn(&ProxyCounters) -> u64) -> u64 {
        self.total_in(&self.pods_of(service), pick)
    }

    /// The same for the proxies in these pods.
    fn total_in(&self, pods: &[String], pick: impl Fn(&ProxyCounters) -> u64) -> u64 {
        pods.iter().filter_map(|pod| self.after.counters.get(pod)).map(pick).sum()
    }

    fn pods_of(&self, service: &str) -> Vec<String> {
        let pods = self.deployment.pods().into_iter();
        pods.filter(|(_, of)| of.name == service).map(|(pod, _)| pod).collect()
    }

    /// Whether the load comes in through a gateway, whose headers are on every request in all variants.
    fn is_behind_gateway(&self) -> bool {
        let entry = self.deployment.service(&self.deployment.entry);
        entry.is_some_and(|entry| entry.program == Program::Gateway)
    }

    /// Whether the requests of `service` may bear a gateway's headers: from the gateway itself, or handed on by a
    /// program of the user's own. The built-in services hand none on but the request's id.
    fn bears_gateway_headers(&self, service: &str) -> bool {
        let calls = |caller: &&Service| caller.calls.iter().any(|callee| callee == service);
        let mut callers = self.deployment.services.iter().filter(calls);
        self.is_behind_gateway()
            && callers
                .any(|caller| !matches!(caller.program, Program::BuiltIn(_) | Program::Airline(_)))
    }
}

/// Proves that every request went through the sidecars of all services in its path, over mTLS between them.
///
/// `outsider` tells what became of probes from outside of the mesh to the pods behind the entry, and to the egress
/// gateway.
pub(crate) fn prove_sidecars(seen: &Window<'_>, topology: &Topology, outsider: &Outsider) -> Proof {
    let expected = Expected::new(seen);
    let traces = Traces::judge(seen, sidecar::hop_claims);
    let databases = Databases::of_mesh(seen, &expected, topology, outsider);
    let traversals = crossing::traversals(seen, &databases);
    let (crossed, uncrossed) = either(crossing::every_request(seen, &expected, &traversals));
    // First, as reports show the first claims.
    let mut claims = databases.external_claims();
    claims.extend(crossed);
    for service in &seen.deployment.services {
        claims.extend(proxy_claims(seen, &expected, service));
    }
    let (own, not_asked) = own_counts::judge(seen, &expected, &traces.reporting, Mark::Sidecar);
    claims.extend(own);
    if !seen.is_behind_gateway() {
        claims.extend(at_both_ends(seen, |sight| vec![sidecar::server_header(&sight.walk)]));
    }
    claims.extend(traces.claims);
    // Of the pods outside of the mesh: nobody looked into the others.
    claims.extend(at_both_ends(seen, |sight| bare::own_network_claims(seen, sight)));
    claims.extend(databases.claims());
    let (carried, unread) = wire::no_hbone(seen);
    claims.extend(carried);
    claims.extend(sidecar::plaintext_claims(seen.deployment, &outsider.plaintext));
    let mut left_out =
        [traces.left_out, not_asked, databases.left_out(), uncrossed, unread].concat();
    let leaves = seen.deployment.services.iter().any(|service| service.external.is_some());
    if leaves && topology.capture == Capture::Explicit {
        left_out.push(bare::SHARED_ADDRESS.to_owned());
    }
    Proof { claims, left_out, traversals, spans: None }
}

/// What the proxies of one service must have counted.
fn proxy_claims(seen: &Window<'_>, expected: &Expected<'_>, service: &Service) -> Vec<Claim> {
    match service.program {
        Program::Gateway => gateway::claims(seen, expected, service),
        // What its sidecar counts is judged with the database.
        Program::Postgres(_) | Program::AirlineDatabase(_) | Program::Collector => Vec::new(),
        Program::BuiltIn(_)
        | Program::Command(_)
        | Program::Airline(_)
        | Program::Petclinic(_)
        | Program::Nginx(_) => sidecar::claims(seen, expected, service),
    }
}

/// Proves that no sidecar saw a request and, where there is a collector, that none was traced.
pub(crate) fn prove_bare(seen: &Window<'_>, topology: &Topology) -> Proof {
    let mut proof = without_sidecars(seen, topology);
    // First, as reports show the first claims.
    let untraced = agent::judge_none(seen);
    proof.claims.splice(0..0, untraced.claims);
    proof.left_out.extend(untraced.left_out);
    proof
}

/// Proves that every request was traced by the agent of `jar`, and that no sidecar saw one.
pub(crate) fn prove_agent(seen: &Window<'_>, topology: &Topology, jar: &Path) -> Proof {
    let network = without_sidecars(seen, topology);
    let traced = agent::judge(seen, jar);
    Proof {
        claims: [traced.claims, network.claims].concat(),
        left_out: [traced.left_out, network.left_out].concat(),
        traversals: Vec::new(),
        spans: traced.spans,
    }
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

/// Proves that no plaintext left a pod, and that every request went through the node proxies, in HBONE between
/// those who may call each other.
pub(crate) fn prove_ambient(
    seen: &Window<'_>,
    topology: &Topology,
    ambient: &Ambient,
    outsider: &Outsider,
) -> Proof {
    let expected = Expected::new(seen);
    let mesh = Mesh { seen, topology, ambient, expected: &expected };
    let traces = Traces::judge(seen, |hop| mesh.hop_claims(hop));
    let databases = Databases::carried(seen, &expected);
    // First, as reports show the first claims.
    let mut claims = vec![wire::hbone_alone(seen)];
    let (crossed, uncrossed) = either(mesh.crossed());
    claims.extend(crossed);
    claims.extend(mesh.claims());
    let (own, not_asked) = own_counts::judge(seen, &expected, &traces.reporting, mesh.mark());
    claims.extend(own);
    claims.extend(at_both_ends(seen, |sight| bare::occupant_claims(seen, sight)));
    claims.extend(traces.claims);
    claims.extend(databases.claims());
    claims.extend(databases.external_claims());
    claims.extend(mesh.outsider_claims(outsider));
    let left_out = [traces.left_out, not_asked, databases.left_out(), uncrossed].concat();
    Proof { claims, left_out, traversals: Vec::new(), spans: None }
}

fn without_sidecars(seen: &Window<'_>, topology: &Topology) -> Proof {
    let expected = Expected::new(seen);
    let traces = Traces::judge(seen, |hop| bare::hop_claims(seen, hop, topology).into());
    let databases = Databases::alone(seen, &expected, topology);
    let gateways = seen.deployment.services.iter().filter(|s| s.program == Program::Gateway);
    let (crossed, unknown) = either(crossing::no_request(seen, &traces.reporting));
    let mut claims = databases.external_claims();
    claims.extend(crossed);
    claims.extend(gateways.flat_map(|service| gateway::claims(seen, &expected, service)));
    let (own, not_asked) = own_counts::judge(seen, &expected, &traces.reporting, Mark::Nobody);
    claims.extend(own);
    claims.extend(at_both_ends(seen, |sight| bare::network_claims(seen, sight)));
    claims.extend(traces.claims);
    claims.extend(databases.claims());
    let (carried, unread) = wire::no_hbone(seen);
    claims.extend(carried);
    let mut left_out = [traces.left_out, not_asked, databases.left_out(), unknown, unread].concat();
    if topology.capture == Capture::Explicit {
        left_out.push(bare::SHARED_NETWORK.to_owned());
    }
    Proof { claims, left_out, traversals: Vec::new(), spans: None }
}

/// A claim as the first of all claims, or why it is left out.
fn either(judged: Result<Claim, String>) -> (Vec<Claim>, Vec<String>) {
    match judged {
        Ok(claim) => (vec![claim], Vec::new()),
        Err(why) => (Vec::new(), vec![why]),
    }
}

/// Whether what the mesh calls by this name is outside of it and called past the sidecars.
fn passes_by(deployment: &Deployment, callee: &str) -> bool {
    deployment.data_plane.egress() == Some(&Egress::Bypass)
        && deployment.service(callee).is_some_and(|service| service.external.is_some())
}

/// How the proxies of a service are called in claims.
fn proxies_of(service: &Service) -> String {
    let kind = if service.takes_sidecar() { "sidecar" } else { "gateway" };
    claims::counted(kind, service)
}

fn distinct<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct: Vec<&str> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

#[cfg(test)]
mod tests;
