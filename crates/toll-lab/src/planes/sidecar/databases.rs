//! What a database in the mesh and the sidecars on the way to it must show.
//!
//! No proxy counts queries: Envoy as a TCP proxy sees bytes. So the server's count of statements stands for the
//! crossings of the sidecars, given that every connection that it has open comes from its own sidecar, that the
//! sidecars' connections are mTLS, and that enough bytes went through them.

use super::claims::handshake_claim;
use crate::claim::{Claim, LeftOut};
use crate::deployment::Service;
use crate::envoy::istio::SIDECAR_SOURCE;
use crate::programs::databases::{
    Judged, Sources, Whose, known_queries, of_the_server, shares, statements,
};
use crate::programs::least_operation_bytes;
use crate::proof::bounds::Bounds;
use crate::proof::claims::{at_least_claim, count_claim, proxies_of};
use crate::proof::expected::Expected;
use crate::proof::window::Window;

pub(super) fn judge<'a>(
    seen: &Window<'a>,
    expected: &Expected<'_>,
    database: &'a Service,
) -> Judged<'a> {
    let name = &database.name;
    let sidecars = Sources { addresses: vec![SIDECAR_SOURCE], whose: Whose::OwnSidecar };
    let mut way = sidecars.claims(seen, expected, database);
    way.extend(inbound_claims(seen, expected, database));
    for caller in seen.deployment.callers_of(name) {
        way.extend(outbound_claims(seen, expected, caller, database));
    }
    let mut judged = of_the_server(seen, expected, database);
    if way.iter().all(|claim| claim.holds) {
        judged.into = statements(seen, name).unwrap_or_default();
        judged.from = shares(seen, name, judged.into.values().sum());
    }
    judged.claims.extend(way);
    judged.left_out.push(LeftOut::QueriesBySidecars { database: name.clone() });
    judged
}

/// What the database's own sidecars must have counted.
fn inbound_claims(seen: &Window<'_>, expected: &Expected<'_>, database: &Service) -> Vec<Claim> {
    let name = &database.name;
    let queries = known_queries(seen, expected, name);
    let claim = |what: &str| format!("{}, inbound: {what}", proxies_of(database));
    let open: u64 = seen
        .pods_of(name)
        .iter()
        .filter_map(|pod| seen.before.databases.get(pod))
        .flat_map(|snapshot| snapshot.peers.values())
        .sum();
    let needed = open.max(u64::from(queries > 0));
    let mtls = seen.total(name, |c| c.tcp_mtls.connections);
    let plaintext = seen.growth(name, |c| c.tcp_plaintext.connections);
    let received = seen.growth(name, |c| c.tcp_mtls.received_bytes);
    vec![
        // Since its start: connections are older than the window.
        at_least_claim(claim("every open connection came over mTLS"), needed, Some(mtls)),
        count_claim(claim("no connection came as plaintext"), Bounds::exactly(0), plaintext),
        at_least_claim(
            claim("enough bytes for every query"),
            queries * least_operation_bytes(&database.program),
            received,
        ),
    ]
}

/// What the sidecars of one caller must have counted.
fn outbound_claims(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    caller: &Service,
    database: &Service,
) -> Vec<Claim> {
    let name = &database.name;
    let queries = expected.calls(caller, name).least;
    let tried = seen.total(&caller.name, |c| c.call(name).connections);
    if queries == 0 || caller.program.is_users_own() && tried == 0 {
        return Vec::new();
    }
    let mut claims = vec![handshake_claim(seen, &caller.name, name)];
    if !caller.program.is_users_own() {
        let what = format!("outbound: enough bytes for every query of {name}");
        let sent = seen.growth(&caller.name, |c| c.call(name).sent_bytes);
        let claim = format!("{}, {what}", proxies_of(caller));
        let least = queries * least_operation_bytes(&database.program);
        claims.push(at_least_claim(claim, least, sent));
    }
    claims
}
