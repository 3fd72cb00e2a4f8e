//! What the proxies of an ambient data plane must have counted, and what probes from outside of it must show.
//!
//! Node proxies carry bytes and count no requests: that all went through them follows from the nodes' wires, which
//! carried nothing else, and from the streams and handshakes that they did count. A waypoint reads HTTP and counts
//! requests. Terms: <https://istio.io/latest/docs/ambient/architecture/hbone/>.

use crate::Role;
use crate::claim::{Claim, LeftOut, Proof, Topic};
use crate::deployment::{Ambient, Mtls, NodeProxy, Service};
use crate::evidence::{HboneCounters, Outsider, Plaintext};
use crate::planes::bare::header_claim;
use crate::programs::databases::{Databases, of_the_server};
use crate::programs::{expected, gateway};
use crate::proof::bounds::Bounds;
use crate::proof::claims::{at_both_ends, at_least_claim, count_claim, either, pods_of, tls_claim};
use crate::proof::expected::Expected;
use crate::proof::network::occupant_claims;
use crate::proof::outsider::{AN_ANSWER, CLOSED, does, outsider_claim};
use crate::proof::own_counts::{self, Mark};
use crate::proof::trace::{Hop, Traces};
use crate::proof::window::Window;
use crate::proof::wire;
use crate::topology::Topology;

/// Proves that no plaintext left a pod, and that every request went through the node proxies, in HBONE between
/// those who may call each other.
pub(crate) fn prove(
    seen: &Window<'_>,
    topology: &Topology,
    ambient: &Ambient,
    outsider: &Outsider,
) -> Proof {
    let expected = expected(seen);
    let mesh = Mesh { seen, topology, ambient, expected: &expected };
    let traces = Traces::judge(seen, |hop| mesh.hop_claims(hop));
    let databases = Databases::judge(seen, |service| of_the_server(seen, &expected, service));
    // First, as reports show the first claims.
    let mut claims = vec![wire::hbone_alone(seen)];
    let (crossed, uncrossed) = either(mesh.crossed());
    claims.extend(crossed);
    claims.extend(mesh.claims());
    let (own, not_asked) = own_counts::judge(seen, &expected, &traces.reporting, mesh.mark());
    claims.extend(own);
    claims.extend(at_both_ends(seen, |snapshot| occupant_claims(seen, snapshot)));
    claims.extend(traces.claims);
    claims.extend(databases.claims());
    claims.extend(databases.external_claims());
    claims.extend(mesh.outsider_claims(outsider));
    let left_out = [traces.left_out, not_asked, databases.left_out(), uncrossed].concat();
    Proof { claims, left_out, traversals: Vec::new(), calls: vec![], spans: None }
}

/// An ambient data plane, and what was seen of it.
struct Mesh<'a> {
    seen: &'a Window<'a>,
    topology: &'a Topology,
    ambient: &'a Ambient,
    expected: &'a Expected<'a>,
}

impl Mesh<'_> {
    /// What gateways, node proxies and the waypoint must have counted.
    fn claims(&self) -> Vec<Claim> {
        let services = self.seen.deployment.services.iter();
        let gateways = services.clone().filter(|s| s.program.role() == Role::Gateway);
        let captured: Vec<&Service> = services.filter(|s| s.program.is_captured()).collect();
        let mut claims: Vec<Claim> = gateways.flat_map(|g| self.gateway_claims(g)).collect();
        claims.extend(self.rotation_claim());
        claims.extend(self.waypoint_claims(&captured));
        for service in captured {
            claims.extend(self.carried_claim(service));
            claims.extend(self.arrival_claims(service));
        }
        claims
    }

    /// That HBONE went between pods, or why none had to.
    fn crossed(&self) -> Result<Claim, LeftOut> {
        let deployment = self.seen.deployment;
        let is_called = |service: &Service| deployment.callers_of(&service.name).next().is_some();
        match deployment.services.iter().any(is_called) {
            true => Ok(wire::hbone_crossed(self.seen)),
            false => Err(LeftOut::Hbone),
        }
    }

    /// That nobody made keys while requests were measured, where it can be seen: the lab gives ztunnels their
    /// certificates.
    fn rotation_claim(&self) -> Option<Claim> {
        let NodeProxy::Ztunnel { .. } = self.ambient.proxy else { return None };
        let claim = format!("{NODE_PROXIES}: no certificate was issued between the readings");
        let issued = self.seen.growth_in(&self.nodes(), |counters| counters.certificates);
        Some(count_claim(claim, Bounds::exactly(0), issued))
    }

    /// What the requests must bear that services count.
    fn mark(&self) -> Mark {
        if self.ambient.waypoint { Mark::Waypoint } else { Mark::Nobody }
    }

    /// Node proxies leave no mark on a request; a waypoint does.
    fn hop_claims(&self, hop: &Hop<'_>) -> Vec<Claim> {
        match self.ambient.waypoint {
            true => Vec::new(),
            false => vec![header_claim(self.seen, hop)],
        }
    }

    /// It speaks HBONE itself, unless ztunnel carries its traffic as any pod's.
    fn gateway_claims(&self, gateway: &Service) -> Vec<Claim> {
        // How it encrypts is judged with all that is sent over HBONE.
        let mut claims = gateway::claims::claims(self.seen, self.expected, gateway, |_| None);
        if self.ambient.proxy == NodeProxy::Envoy {
            let pods = self.seen.pods_of(&gateway.name);
            let claim = |callee: &String| self.tunnel_claim(&gateway.name, &pods, callee);
            claims.extend(gateway.calls.iter().map(claim));
        }
        claims
    }

    /// What node proxies send to a service on behalf of the pods that call it.
    fn carried_claim(&self, service: &Service) -> Option<Claim> {
        let carried = |caller: &Service| {
            caller.program.is_captured() || self.ambient.proxy != NodeProxy::Envoy
        };
        let callers = self.seen.deployment.callers_of(&service.name);
        let calls: Bounds = callers
            .filter(|caller| carried(caller))
            .map(|caller| self.expected.calls(caller, &service.name))
            .sum();
        let sent = || self.tunnel_claim(NODE_PROXIES, &self.nodes(), &service.name);
        (calls.least > 0).then(sent)
    }

    /// That all that these proxies send to `callee` is HBONE, over mTLS.
    fn tunnel_claim(&self, whose: &str, pods: &[String], callee: &str) -> Claim {
        let hop = self.waypoint().unwrap_or(callee);
        let way = if hop == callee { String::new() } else { format!(" by way of the {hop}") };
        let claim = format!("{whose} to {callee}{way}: every connection is HBONE over mTLS");
        tls_claim(self.seen, pods, claim, |c| c.tunnel(hop))
    }

    /// What must have come to the pods of a captured service.
    fn arrival_claims(&self, service: &Service) -> Vec<Claim> {
        let name = &service.name;
        let mut claims = Vec::new();
        if self.expected.called(&service.name).least > 0 {
            claims.extend(self.peers_claims(name, &self.nodes(), name));
        }
        let in_window = |pick: fn(HboneCounters) -> u64| {
            self.seen.growth_in(&self.nodes(), move |c| pick(c.hbone_into(name)))
        };
        claims.push(if *name == self.seen.deployment.entry {
            // Not connections: those of the load are older than the window.
            let claim = format!("{name}: enough bytes for every request through its node proxy");
            let least = self.seen.traffic.requests * LEAST_OF_A_REQUEST;
            at_least_claim(claim, least, in_window(|hbone| hbone.plaintext_bytes))
        } else {
            let claim = format!("{name}: no connection came to its node proxies as plaintext");
            count_claim(claim, Bounds::exactly(0), in_window(|hbone| hbone.plaintext))
        });
        claims
    }

    /// Who came over HBONE to `name`, as the proxies in `pods` took it.
    fn peers_claims(&self, name: &str, pods: &[String], whose: &str) -> [Claim; 2] {
        let total = |pick: fn(HboneCounters) -> u64| {
            self.seen.total_in(pods, move |c| pick(c.hbone_into(name)))
        };
        let wrong = self.seen.growth_in(pods, |c| c.hbone_into(name).wrong_identity);
        let (handshakes, streams) = (total(|hbone| hbone.handshakes), total(|hbone| hbone.streams));
        let others = wrong.map_or("no counters".to_owned(), |n| format!("{n} of others"));
        // Not judged: a proxy may count the probe without a certificate only after the window has begun.
        let uncertified = total(|hbone| hbone.no_certificate);
        [
            at_least_claim(format!("{whose}: connections came over HBONE"), 1, Some(streams)),
            Claim {
                topic: Topic::Other,
                claim: format!("{whose}: every peer over HBONE has the identity of a caller"),
                expected: "at least 1 handshake, 0 of others".to_owned(),
                seen: format!(
                    "{handshakes} handshakes, {others} ({uncertified} without a certificate)"
                ),
                holds: handshakes >= 1 && wrong == Some(0),
            },
        ]
    }

    /// Of what it takes, of what it reads and of what it sends on; nothing without a waypoint.
    fn waypoint_claims(&self, captured: &[&Service]) -> Vec<Claim> {
        let Some(name) = self.waypoint() else { return Vec::new() };
        let pods = [name.to_owned()];
        let mut claims: Vec<Claim> = self.peers_claims(name, &pods, name).into();
        for service in
            captured.iter().filter(|service| self.expected.called(&service.name).least > 0)
        {
            let callee = &service.name;
            if !service.program.is_database() {
                let read = self.seen.growth_in(&pods, |c| c.call(callee).requests);
                let claim = format!("{name}: every request to {callee} was counted");
                claims.push(count_claim(claim, self.expected.called(&service.name), read));
            }
            let claim = format!("{name} to {callee}: every connection is HBONE over mTLS");
            claims.push(tls_claim(self.seen, &pods, claim, |c| c.tunnel(callee)));
        }
        claims
    }

    /// That pods refuse plaintext, or answer it, and that nobody without a certificate gets to speak HBONE.
    fn outsider_claims(&self, outsider: &Outsider) -> Vec<Claim> {
        let deployment = self.seen.deployment;
        let captured = deployment.services.iter().filter(|s| s.program.is_captured());
        let (expected, holds): (_, fn(&Plaintext) -> bool) = match self.ambient.mtls {
            // Where nobody takes plaintext the kernel refuses the connection, elsewhere the proxy closes it.
            Mtls::Strict => ("no connection, or one that is closed without an answer", |outcome| {
                matches!(outcome, Plaintext::Closed | Plaintext::Refused)
            }),
            Mtls::Permissive => (AN_ANSWER, |outcome| matches!(outcome, Plaintext::Answered(_))),
        };
        let plaintext = |service: &Service| {
            let claim = format!("{} {}", pods_of(service), does(service, self.ambient.mtls));
            outsider_claim(deployment, service, claim, expected, &outsider.plaintext, holds)
        };
        let uncertified = |service: &Service| {
            let claim = format!("{}: no HBONE without a certificate", pods_of(service));
            let closed = |outcome: &Plaintext| *outcome == Plaintext::Closed;
            outsider_claim(deployment, service, claim, CLOSED, &outsider.uncertified, closed)
        };
        let behind = captured.clone().filter(|service| service.name != deployment.entry);
        // Nobody takes HBONE for a service that nobody calls.
        let called = captured.filter(|service| self.expected.called(&service.name).least > 0);
        behind.map(plaintext).chain(called.map(uncertified)).collect()
    }

    fn nodes(&self) -> Vec<String> {
        self.topology.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Name of the waypoint.
    fn waypoint(&self) -> Option<&str> {
        self.topology.waypoint.as_ref().map(|waypoint| waypoint.pod.as_str())
    }
}

/// No request is shorter: the header of the frame that an HTTP/2 request begins with (RFC 9113, 4.1).
const LEAST_OF_A_REQUEST: u64 = 9;

/// How the proxies of all nodes are called in claims.
const NODE_PROXIES: &str = "node proxies";
