//! Turns counters and probe results into the claims that make a trial count (METHOD.md, rule 7). Pure.
//!
//! Each request that the entry gets is followed along the `calls` of the deployment: that gives how often each
//! service and each call must have been counted, by the sidecars and by the built-in services themselves. A
//! proxy that is bypassed by mistake counts nothing, and one that stands in a bare path leaves an address, a
//! header on the requests that it passes, or a process in a pod; each makes a claim fail.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::identity::spiffe_id;
use super::probe::{PathReport, Plaintext, Walk};
use super::{CallCounters, Capture, ProxyCounters, Topology};
use crate::deployment::{DataPlane, Deployment, Mtls, Program, Service};
use crate::proof::{Claim, Proof, Traffic};

/// Where a sidecar's own connections to its application come from.
pub(super) const SIDECAR_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);

/// The `server` header that a sidecar puts on answers.
pub(super) const SIDECAR_SERVER: &str = "istio-envoy";

/// Request headers that only proxies add: whole names, or families that end with a hyphen.
const PROXY_HEADERS: [&str; 5] = ["forwarded", "via", "x-envoy-", "x-forwarded-", "x-request-id"];

/// What is seen of a path at one end of the window. Maps go by the name of the pod.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    /// A probe of the whole path.
    pub walk: Walk,
    /// What each sidecar has counted, the probe before the window included and the one after it not.
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
}

/// What a database server says of its clients and of what it has done since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DatabaseSight {
    /// Statements that services ran; those that open a connection, control a transaction or probe left out.
    pub statements: u64,
    /// Where the connections that are open now come from, and how many from each address.
    pub peers: BTreeMap<IpAddr, u64>,
    /// Rows that writes have made, and different ones among them; none when the study does not ask.
    pub written: Option<(u64, u64)>,
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
    pub traffic: Traffic,
    /// When the window began.
    pub before: &'a Sight,
    /// When the window ended.
    pub after: &'a Sight,
}

/// Proves that every request went through the sidecars of all services in its path, over mTLS between them.
///
/// `plaintext` tells what became of requests from outside of the mesh to the services behind the entry.
pub(crate) fn prove_sidecars(seen: &Window<'_>, plaintext: &BTreeMap<String, Plaintext>) -> Proof {
    let expected = Expected::new(seen.deployment, seen.traffic.requests);
    let traces = Traces::judge(seen, sidecar_hop_claims);
    let mut claims = Vec::new();
    for service in &seen.deployment.services {
        claims.extend(inbound_claims(seen, &expected, service));
        for callee in distinct(service.calls.iter().map(String::as_str)) {
            claims.extend(call_claims(seen, &expected, service, callee));
        }
    }
    for service in &traces.reporting {
        let got = arrivals(seen, service, |report| report.requests);
        let claim = format!("{service}: every request bore the mark of a sidecar");
        let all = got.unwrap_or(0);
        claims.push(got_claim(seen, &expected, service, got));
        claims.push(count_claim(claim, all, all, arrivals(seen, service, |report| report.marked)));
    }
    claims.extend(at_both_ends(seen, |sight| {
        vec![server_header(&sight.walk, SIDECAR_SERVER, |is| is == Some(SIDECAR_SERVER))]
    }));
    claims.extend(traces.claims);
    claims.extend(plaintext_claims(seen.deployment, plaintext));
    Proof { claims, left_out: traces.left_out, traversals: Vec::new() }
}

/// Proves that no proxy saw a request.
pub(crate) fn prove_bare(seen: &Window<'_>, topology: &Topology) -> Proof {
    let expected = Expected::new(seen.deployment, seen.traffic.requests);
    let traces = Traces::judge(seen, |hop| bare_hop_claims(hop, topology).into());
    let mut claims = Vec::new();
    for service in &traces.reporting {
        let got = arrivals(seen, service, |report| report.requests);
        let marked = arrivals(seen, service, |report| report.marked);
        claims.push(got_claim(seen, &expected, service, got));
        let claim = format!("{service}: no request bore the mark of a proxy");
        claims.push(count_claim(claim, 0, 0, marked));
    }
    claims.extend(at_both_ends(seen, network_claims));
    claims.extend(traces.claims);
    let mut left_out = traces.left_out;
    if topology.capture == Capture::Explicit {
        left_out.push(SHARED_NETWORK.to_owned());
    }
    Proof { claims, left_out, traversals: Vec::new() }
}

/// What a lab without namespaces cannot prove of a bare path.
const SHARED_NETWORK: &str = "all pods share the machine's network, so that neither the programs \
    nor the firewall rules in it can be held against one pod";

/// Who could stand in a bare path at one instant.
fn network_claims(sight: &Sight) -> Vec<Claim> {
    let occupants = sight.occupants.iter().map(|(pod, occupants)| only_its_own(pod, occupants));
    let rules = sight.rules.iter().map(|(pod, rules)| no_redirect(pod, rules));
    let server = server_header(&sight.walk, "no sidecar's", |is| is != Some(SIDECAR_SERVER));
    occupants.chain(rules).chain([server]).collect()
}

/// One claim for what `judge` says of both ends of the window; it holds if it held at both.
fn at_both_ends(seen: &Window<'_>, judge: impl Fn(&Sight) -> Vec<Claim>) -> Vec<Claim> {
    merged(judge(seen.before), judge(seen.after))
}

/// Claims in the same words become one. One that is made at a single end stays as it is.
fn merged(before: Vec<Claim>, after: Vec<Claim>) -> Vec<Claim> {
    let mut claims = before;
    for late in after {
        match claims.iter_mut().find(|early| early.claim == late.claim) {
            Some(early) => merge(early, late),
            None => claims.push(late),
        }
    }
    claims
}

fn merge(early: &mut Claim, late: Claim) {
    if early.seen != late.seen {
        early.seen = format!("{} before the load, {} after it", early.seen, late.seen);
    }
    early.holds &= late.holds;
}

/// By how much a service's own count rose in the window; none without two reports or after a restart.
fn arrivals(seen: &Window<'_>, service: &str, pick: fn(&PathReport) -> u64) -> Option<u64> {
    let count = |sight: &Sight| sight.walk.report.as_ref()?.of(service).map(pick);
    count(seen.after)?.checked_sub(count(seen.before)?)
}

fn got_claim(seen: &Window<'_>, expected: &Expected<'_>, service: &str, got: Option<u64>) -> Claim {
    let requests = expected.requests_to(service);
    let claim = format!("{service}: the application got exactly the requests that were sent");
    count_claim(claim, requests, requests + retries_to(seen, service), got)
}

/// How often each service is asked when the entry gets `requests`.
struct Expected<'a> {
    requests: BTreeMap<&'a str, u64>,
}

impl<'a> Expected<'a> {
    fn new(deployment: &'a Deployment, requests: u64) -> Self {
        let mut expected = Self { requests: BTreeMap::new() };
        expected.visit(deployment, &deployment.entry, requests);
        expected
    }

    fn visit(&mut self, deployment: &'a Deployment, name: &'a str, requests: u64) {
        *self.requests.entry(name).or_default() += requests;
        for callee in find(deployment, name).into_iter().flat_map(|service| &service.calls) {
            self.visit(deployment, callee, requests);
        }
    }

    fn requests_to(&self, service: &str) -> u64 {
        self.requests.get(service).copied().unwrap_or(0)
    }

    fn calls(&self, caller: &Service, callee: &str) -> u64 {
        let each = caller.calls.iter().filter(|name| *name == callee).count() as u64;
        self.requests_to(&caller.name) * each
    }
}

/// The load has no identity and comes in as plaintext; every other caller has one and must use mTLS.
fn inbound_claims(seen: &Window<'_>, expected: &Expected<'_>, service: &Service) -> [Claim; 2] {
    let name = &service.name;
    let counted = |pick: fn(&ProxyCounters) -> u64| growth(seen, name, pick);
    let mtls = counted(|c| c.inbound_mtls);
    let plaintext = counted(|c| c.inbound_plaintext);
    let (own, other, way, not) = if *name == seen.deployment.entry {
        (plaintext, mtls, "from the load", "from inside the mesh")
    } else {
        (mtls, plaintext, "over mTLS", "as plaintext")
    };
    let requests = expected.requests_to(name);
    let most = requests + retries_to(seen, name);
    [
        count_claim(
            format!("{name} sidecar, inbound: every request came {way}"),
            requests,
            most,
            own,
        ),
        count_claim(format!("{name} sidecar, inbound: no request came {not}"), 0, 0, other),
    ]
}

fn call_claims(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    caller: &Service,
    callee: &str,
) -> Vec<Claim> {
    let name = &caller.name;
    let calls = expected.calls(caller, callee);
    let retries = growth(seen, name, |c| c.call(callee).retries).unwrap_or(0);
    let seen_calls = growth(seen, name, |c| c.call(callee).requests);
    let claim = format!("{name} sidecar, outbound: every call to {callee} was counted");
    let mut claims = vec![count_claim(claim, calls, calls + retries, seen_calls)];
    if calls > 0 {
        let now = seen.after.counters.get(name).map(|c| c.call(callee)).unwrap_or_default();
        claims.push(handshake_claim(name, callee, now));
    }
    claims
}

/// Judged since the sidecar's start: connections that a window uses may be older than it.
fn handshake_claim(caller: &str, callee: &str, now: CallCounters) -> Claim {
    let made = now.connections.saturating_sub(now.failed_connections);
    Claim {
        claim: format!("{caller} to {callee}: every connection between the sidecars is TLS"),
        expected: "at least one handshake, and no connection without one".to_owned(),
        seen: format!("{} handshakes on {made} connections", now.handshakes),
        holds: now.handshakes >= 1 && now.handshakes >= made,
    }
}

fn sidecar_hop_claims(hop: &Hop<'_>) -> Vec<Claim> {
    let mut claims = vec![peer_claim(hop, Some(SIDECAR_SOURCE), "its own sidecar's")];
    claims.extend(hop.caller.map(|caller| identity_claim(hop, caller)));
    claims
}

fn bare_hop_claims(hop: &Hop<'_>, topology: &Topology) -> [Claim; 2] {
    let source = source_of(hop.caller, topology);
    [no_proxy_headers(hop), peer_claim(hop, source, "the caller's own")]
}

/// Envoy writes who it is (`By`) and the URI of the peer's certificate into `x-forwarded-client-cert`.
fn identity_claim(hop: &Hop<'_>, caller: &str) -> Claim {
    let expected = format!("By={} and URI={}", spiffe_id(&hop.report.service), spiffe_id(caller));
    let header = hop.report.headers.get("x-forwarded-client-cert");
    let names =
        |key: &str| header.and_then(|text| text.split(';').find_map(|part| part.strip_prefix(key)));
    Claim {
        claim: format!("{}: the sidecars know each other by their SPIFFE IDs", hop.name()),
        holds: names("By=") == Some(&spiffe_id(&hop.report.service))
            && names("URI=") == Some(&spiffe_id(caller)),
        expected,
        seen: header.map_or("no x-forwarded-client-cert".to_owned(), String::clone),
    }
}

fn plaintext_claims(deployment: &Deployment, outcomes: &BTreeMap<String, Plaintext>) -> Vec<Claim> {
    let DataPlane::Sidecar { mtls, .. } = deployment.data_plane else {
        return Vec::new();
    };
    let behind = deployment.services.iter().filter(|s| s.name != deployment.entry);
    behind.map(|service| plaintext_claim(mtls, service, outcomes.get(&service.name))).collect()
}

fn plaintext_claim(mtls: Mtls, service: &Service, outcome: Option<&Plaintext>) -> Claim {
    let (does, holds) = match mtls {
        Mtls::Strict => ("refuses", matches!(outcome, Some(Plaintext::Closed))),
        Mtls::Permissive => ("answers", matches!(outcome, Some(Plaintext::Answered(_)))),
    };
    Claim {
        claim: format!("{} sidecar {does} plaintext from outside of the mesh", service.name),
        expected: match mtls {
            Mtls::Strict => "connection closed without an answer".to_owned(),
            Mtls::Permissive => "an answer".to_owned(),
        },
        seen: match outcome {
            Some(Plaintext::Answered(status)) => format!("an answer with status {status}"),
            Some(Plaintext::Closed) => "connection closed without an answer".to_owned(),
            Some(Plaintext::Unclear(why)) => format!("unclear: {why}"),
            None => "not tried".to_owned(),
        },
        holds,
    }
}

fn only_its_own(pod: &str, occupants: &Occupants) -> Claim {
    Claim {
        claim: format!("{pod} pod: no program but its own runs in its network"),
        expected: "only its own".to_owned(),
        seen: match (occupants.own, occupants.foreign.as_slice()) {
            (true, []) => "only its own".to_owned(),
            (false, []) => "not even its own".to_owned(),
            (_, foreign) => foreign.join(", "),
        },
        holds: occupants.own && occupants.foreign.is_empty(),
    }
}

fn no_redirect(pod: &str, rules: &str) -> Claim {
    let redirects = rules.lines().filter(|line| diverts(line)).count();
    Claim {
        claim: format!("{pod} pod: no firewall rule redirects its traffic"),
        expected: "no such rule".to_owned(),
        seen: match redirects {
            0 => "no such rule".to_owned(),
            n => format!("{n} such rules"),
        },
        holds: redirects == 0,
    }
}

/// Whether a rule, as `nft list ruleset` writes it, sends packets elsewhere.
fn diverts(rule: &str) -> bool {
    rule.split_whitespace().any(|word| matches!(word, "redirect" | "dnat" | "tproxy"))
}

fn no_proxy_headers(hop: &Hop<'_>) -> Claim {
    let names = hop.report.headers.keys().map(String::as_str);
    let added: Vec<&str> = names.filter(|name| is_a_proxys(name)).collect();
    Claim {
        claim: format!("{}: the request has no header that a proxy adds", hop.name()),
        expected: "none".to_owned(),
        seen: if added.is_empty() { "none".to_owned() } else { added.join(", ") },
        holds: added.is_empty(),
    }
}

fn is_a_proxys(header: &str) -> bool {
    let fits =
        |known: &&str| header == *known || known.ends_with('-') && header.starts_with(*known);
    PROXY_HEADERS.iter().any(fits)
}

fn peer_claim(hop: &Hop<'_>, address: Option<Ipv4Addr>, whose: &str) -> Claim {
    let peer = hop.report.peer.ip();
    Claim {
        claim: format!("{}: the connection's source address is {whose}", hop.name()),
        expected: address.map_or("no known address".to_owned(), |ip| ip.to_string()),
        seen: peer.to_string(),
        holds: address.is_some_and(|ip| peer == IpAddr::V4(ip)),
    }
}

fn server_header(walk: &Walk, expected: &str, fits: fn(Option<&str>) -> bool) -> Claim {
    let server = walk.server.as_deref();
    Claim {
        claim: "the `server` header of the entry's answer".to_owned(),
        expected: expected.to_owned(),
        seen: server.unwrap_or("none").to_owned(),
        holds: fits(server),
    }
}

fn count_claim(claim: String, least: u64, most: u64, seen: Option<u64>) -> Claim {
    Claim {
        claim,
        expected: match most - least {
            0 => least.to_string(),
            retries => format!("{least}, and at most {retries} sent again"),
        },
        seen: seen.map_or("no counters".to_owned(), |n| n.to_string()),
        holds: seen.is_some_and(|n| (least..=most).contains(&n)),
    }
}

/// By how much a counter rose in the window; none when a reading is missing or the sidecar was restarted.
fn growth(seen: &Window<'_>, service: &str, pick: impl Fn(&ProxyCounters) -> u64) -> Option<u64> {
    let (before, after) = (seen.before.counters.get(service)?, seen.after.counters.get(service)?);
    pick(after).checked_sub(pick(before))
}

fn retries_to(seen: &Window<'_>, callee: &str) -> u64 {
    let callers = seen.deployment.services.iter().map(|service| &service.name);
    callers.filter_map(|caller| growth(seen, caller, |c| c.call(callee).retries)).sum()
}

/// One arrival of the probe at a built-in service.
struct Hop<'a> {
    /// None for the load.
    caller: Option<&'a str>,
    report: &'a PathReport,
}

impl Hop<'_> {
    fn name(&self) -> String {
        hop_name(self.caller, &self.report.service)
    }
}

fn hop_name(caller: Option<&str>, callee: &str) -> String {
    format!("{} to {callee}", caller.unwrap_or("load"))
}

/// The ways of both probes, judged.
struct Traces<'a> {
    /// Of each arrival, both ends of the window in one.
    claims: Vec<Claim>,
    /// Built-in services that reported, in the order of their first arrival.
    reporting: Vec<&'a str>,
    /// Why some arrivals cannot be judged.
    left_out: Vec<String>,
}

impl<'a> Traces<'a> {
    fn judge(seen: &Window<'a>, judge: impl Fn(&Hop<'_>) -> Vec<Claim>) -> Self {
        let [before, after] =
            [seen.before, seen.after].map(|sight| Trace::new(seen.deployment, &sight.walk));
        let hops = before.hops.iter().chain(&after.hops);
        let reporting = distinct(hops.map(|hop| hop.report.service.as_str()));
        let mut left_out = before.left_out.clone();
        left_out.extend(after.left_out.iter().filter(|o| !before.left_out.contains(o)).cloned());
        let claims = |trace: Trace<'_>| {
            trace.hops.iter().flat_map(&judge).chain(trace.silent).collect::<Vec<_>>()
        };
        Self { claims: merged(claims(before), claims(after)), reporting, left_out }
    }
}

/// The probe's way, held against the deployment.
struct Trace<'a> {
    deployment: &'a Deployment,
    hops: Vec<Hop<'a>>,
    /// Built-in services on the way that did not report.
    silent: Vec<Claim>,
    /// Why some arrivals cannot be judged.
    left_out: Vec<String>,
}

impl<'a> Trace<'a> {
    fn new(deployment: &'a Deployment, walk: &'a Walk) -> Self {
        let mut trace =
            Self { deployment, hops: Vec::new(), silent: Vec::new(), left_out: Vec::new() };
        trace.follow(None, &deployment.entry, walk.report.as_ref());
        trace
    }

    fn follow(&mut self, caller: Option<&'a str>, name: &'a str, report: Option<&'a PathReport>) {
        let Some(service) = find(self.deployment, name) else { return };
        let arrival = hop_name(caller, name);
        match report {
            Some(report) if report.service == name => {
                self.hops.push(Hop { caller, report });
                for (index, callee) in service.calls.iter().enumerate() {
                    let call = report.calls.get(index).and_then(Option::as_ref);
                    self.follow(Some(name), callee, call);
                }
            }
            None if !all_built_in(self.deployment, service) => {
                self.left_out.push(format!(
                    "{arrival}: a program of the user's own does not report how requests reach it"
                ));
            }
            _ => self.silent.push(silent_claim(&arrival, report)),
        }
    }
}

/// Whether the service and all that it calls can report; a report of only some of them is never made.
fn all_built_in(deployment: &Deployment, service: &Service) -> bool {
    let mut callees = service.calls.iter().filter_map(|name| find(deployment, name));
    matches!(service.program, Program::BuiltIn(_))
        && callees.all(|callee| all_built_in(deployment, callee))
}

fn find<'a>(deployment: &'a Deployment, name: &str) -> Option<&'a Service> {
    deployment.services.iter().find(|service| service.name == name)
}

fn silent_claim(arrival: &str, report: Option<&PathReport>) -> Claim {
    Claim {
        claim: format!("{arrival}: the service reports the probe"),
        expected: "a report".to_owned(),
        seen: report.map_or("no report".to_owned(), |r| format!("a report of `{}`", r.service)),
        holds: false,
    }
}

fn source_of(caller: Option<&str>, topology: &Topology) -> Option<Ipv4Addr> {
    match caller {
        None => Some(topology.load_ip),
        Some(name) => topology.pods.iter().find(|pod| pod.service == name).map(|pod| pod.ip),
    }
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
