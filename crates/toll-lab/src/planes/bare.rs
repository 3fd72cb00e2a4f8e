//! What shows that nobody stands in a bare path: addresses, headers, firewall rules and who runs in the pods.

use super::egress;
use crate::Role;
use crate::claim::{Claim, LeftOut, Proof, Topic};
use crate::deployment::Service;
use crate::envoy::istio::{GATEWAY_HEADERS, HANDED_ON, PROXY_HEADERS, SIDECAR_SERVER};
use crate::evidence::PathSnapshot;
use crate::programs::databases::{Databases, Judged, Sources, Whose, of_the_server};
use crate::programs::{expected, gateway};
use crate::proof::bounds::Bounds;
use crate::proof::claims::{at_both_ends, count_claim, either};
use crate::proof::expected::Expected;
use crate::proof::network::{own_network_claims, sources_of};
use crate::proof::own_counts::{self, Mark};
use crate::proof::trace::{Hop, Traces, peer_claim, server_claim};
use crate::proof::window::Window;
use crate::proof::wire;
use crate::topology::{Capture, Topology};

/// Proves that no sidecar saw a request.
pub(super) fn prove(seen: &Window<'_>, topology: &Topology) -> Proof {
    let expected = expected(seen);
    let traces = Traces::judge(seen, |hop| hop_claims(seen, hop, topology).into());
    let databases = Databases::judge(seen, |service| match service.external {
        Some(_) => egress::claims::judge(seen, &expected, topology, None, service),
        None => database_alone(seen, &expected, topology, service),
    });
    let gateways = seen.deployment.services.iter().filter(|s| s.program.role() == Role::Gateway);
    let (crossed, unknown) = either(no_request(seen, &traces.reporting));
    let mut claims = databases.external_claims();
    claims.extend(crossed);
    claims.extend(gateways.flat_map(|service| gateway_claims(seen, &expected, service)));
    let (own, not_asked) = own_counts::judge(seen, &expected, &traces.reporting, Mark::Nobody);
    claims.extend(own);
    claims.extend(at_both_ends(seen, |snapshot| network_claims(seen, snapshot)));
    claims.extend(traces.claims);
    claims.extend(databases.claims());
    let (carried, unread) = wire::no_hbone(seen);
    claims.extend(carried);
    let mut left_out = [traces.left_out, not_asked, databases.left_out(), unknown, unread].concat();
    if topology.capture == Capture::Explicit {
        left_out.push(LeftOut::SharedNetwork);
    }
    Proof { claims, left_out, traversals: Vec::new(), calls: vec![], spans: None }
}

/// One that stands in the mesh of other variants.
fn database_alone<'a>(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    topology: &Topology,
    database: &'a Service,
) -> Judged<'a> {
    let callers = seen.deployment.callers_of(&database.name);
    let own = callers.flat_map(|caller| sources_of(Some(&caller.name), topology));
    let from = Sources { addresses: own.collect(), whose: Whose::Caller };
    let mut judged = of_the_server(seen, expected, database);
    judged.claims.extend(from.claims(seen, expected, database));
    judged
}

fn gateway_claims(seen: &Window<'_>, expected: &Expected<'_>, gateway: &Service) -> Vec<Claim> {
    gateway::claims::claims(seen, expected, gateway, |callee| {
        let claim = format!("{} to {callee}: no connection is TLS", gateway.name);
        let made = seen.total(&gateway.name, |c| c.call(callee).handshakes);
        Some(count_claim(claim, Bounds::exactly(0), Some(made)))
    })
}

/// That none crossed a sidecar, or why that cannot be claimed.
fn no_request(seen: &Window<'_>, reporting: &[&str]) -> Result<Claim, LeftOut> {
    let asked = |name: &&&str| own_counts::can_be_asked(seen, name);
    let asked: Vec<&&str> = reporting.iter().filter(asked).collect();
    if asked.is_empty() {
        return Err(LeftOut::NoCrossing);
    }
    let marked = asked.iter().map(|name| own_counts::marked(seen, name)).sum();
    let claim = count_claim("no request crossed a sidecar".to_owned(), Bounds::exactly(0), marked);
    Ok(claim.about(Topic::Crossings))
}

/// What one arrival of the probe at a service shows.
fn hop_claims(seen: &Window<'_>, hop: &Hop<'_>, topology: &Topology) -> [Claim; 2] {
    let sources = sources_of(hop.caller, topology);
    [header_claim(seen, hop), peer_claim(hop, &sources, "the caller's own")]
}

/// That the request has no header that only proxies which read HTTP add.
pub(super) fn header_claim(seen: &Window<'_>, hop: &Hop<'_>) -> Claim {
    let gateways: &[&str] = match seen.bears_gateway_headers(&hop.report.service) {
        true => &GATEWAY_HEADERS,
        false if seen.is_behind_gateway() => &HANDED_ON,
        false => &[],
    };
    no_proxy_headers(hop, gateways)
}

/// Who could stand in a bare path at one instant.
fn network_claims(seen: &Window<'_>, snapshot: &PathSnapshot) -> Vec<Claim> {
    let server = server_claim(&snapshot.walk, "no sidecar's", |is| is != Some(SIDECAR_SERVER));
    let server = (!seen.is_behind_gateway()).then_some(server);
    own_network_claims(seen, snapshot).into_iter().chain(server).collect()
}

fn no_proxy_headers(hop: &Hop<'_>, gateways: &[&str]) -> Claim {
    let a_gateways = |name: &str| is_one_of(gateways, name);
    let names = hop.report.headers.keys().map(String::as_str);
    let added: Vec<&str> =
        names.filter(|name| is_one_of(&PROXY_HEADERS, name) && !a_gateways(name)).collect();
    let whose = if gateways.len() > 1 { "a sidecar" } else { "a proxy" };
    Claim {
        topic: Topic::Other,
        claim: format!("{}: the request has no header that {whose} adds", hop.name()),
        expected: "none".to_owned(),
        seen: if added.is_empty() { "none".to_owned() } else { added.join(", ") },
        holds: added.is_empty(),
    }
}

fn is_one_of(headers: &[&str], name: &str) -> bool {
    let fits = |known: &&str| name == *known || known.ends_with('-') && name.starts_with(*known);
    headers.iter().any(fits)
}
