//! What shows that nobody stands in a bare path: addresses, headers, firewall rules and who runs in the pods.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::claims::{OfPod, pods_claim, pods_of};
use super::trace::{Hop, peer_claim, server_claim};
use super::{SIDECAR_SERVER, Sight, Window};
use crate::data_plane::Topology;
use crate::deployment::Service;
use crate::proof::Claim;

/// What a lab without namespaces cannot prove of a bare path.
pub(super) const SHARED_NETWORK: &str = "all pods share the machine's network, so that neither the programs \
    nor the firewall rules in it can be held against one pod";

/// What it cannot prove of a way out of the mesh.
pub(super) const SHARED_ADDRESS: &str = "all pods share the machine's network, so that the address which a \
    connection comes from does not tell whose it is";

/// Request headers that only proxies add: whole names, or families that end with a hyphen.
const PROXY_HEADERS: [&str; 5] = ["forwarded", "via", "x-envoy-", "x-forwarded-", "x-request-id"];

/// Those that a gateway adds as well; never a client's certificate.
const GATEWAY_HEADERS: [&str; 5] =
    ["x-envoy-", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id"];

/// What one arrival of the probe at a service shows.
pub(super) fn hop_claims(seen: &Window<'_>, hop: &Hop<'_>, topology: &Topology) -> [Claim; 2] {
    let sources = sources_of(hop.caller, topology);
    [header_claim(seen, hop), peer_claim(hop, &sources, "the caller's own")]
}

/// That the request has no header that only proxies which read HTTP add.
pub(super) fn header_claim(seen: &Window<'_>, hop: &Hop<'_>) -> Claim {
    let gateways: &[&str] = match seen.bears_gateway_headers(&hop.report.service) {
        true => &GATEWAY_HEADERS,
        // Services hand it on, so that it tells nothing of the hop that it came over.
        false if seen.is_behind_gateway() => &["x-request-id"],
        false => &[],
    };
    no_proxy_headers(hop, gateways)
}

/// Where the connections of a service, or of the load, come from.
pub(super) fn sources_of(caller: Option<&str>, topology: &Topology) -> Vec<Ipv4Addr> {
    let Some(caller) = caller else { return vec![topology.load_ip] };
    topology.pods.iter().filter(|pod| pod.service == caller).map(|pod| pod.ip).collect()
}

/// Who could stand in a bare path at one instant.
pub(super) fn network_claims(seen: &Window<'_>, sight: &Sight) -> Vec<Claim> {
    let server = server_claim(&sight.walk, "no sidecar's", |is| is != Some(SIDECAR_SERVER));
    let server = (!seen.is_behind_gateway()).then_some(server);
    own_network_claims(seen, sight).into_iter().chain(server).collect()
}

/// That nothing but its own program is in the network of each pod that was looked at, and nothing redirects there.
pub(super) fn own_network_claims(seen: &Window<'_>, sight: &Sight) -> Vec<Claim> {
    let rules = seen.deployment.services.iter().filter_map(|s| no_redirect(seen, sight, s));
    occupant_claims(seen, sight).into_iter().chain(rules).collect()
}

/// That no service shares its pods with another program.
pub(super) fn occupant_claims(seen: &Window<'_>, sight: &Sight) -> Vec<Claim> {
    let claim = |service| only_its_own(seen, sight, service);
    seen.deployment.services.iter().filter_map(claim).collect()
}

fn only_its_own(seen: &Window<'_>, sight: &Sight, service: &Service) -> Option<Claim> {
    let what = if service.replicas > 1 { "each of their networks" } else { "its network" };
    let claim = format!("{}: no program but its own runs in {what}", pods_of(service));
    let pods = each_pod(seen, service, &sight.occupants, |occupants| {
        let text = match (occupants.own, occupants.foreign.as_slice()) {
            (true, []) => "only its own".to_owned(),
            (false, []) => "not even its own".to_owned(),
            (_, foreign) => foreign.join(", "),
        };
        (text, occupants.own && occupants.foreign.is_empty())
    })?;
    Some(pods_claim(claim, "only its own".to_owned(), &pods))
}

fn no_redirect(seen: &Window<'_>, sight: &Sight, service: &Service) -> Option<Claim> {
    let whose = if service.replicas > 1 { "their" } else { "its" };
    let claim = format!("{}: no firewall rule redirects {whose} traffic", pods_of(service));
    let pods = each_pod(seen, service, &sight.rules, |rules| {
        match rules.lines().filter(|line| diverts(line)).count() {
            0 => ("no such rule".to_owned(), true),
            n => (format!("{n} such rules"), false),
        }
    })?;
    Some(pods_claim(claim, "no such rule".to_owned(), &pods))
}

/// What each pod of a service shows; none where none was looked at.
fn each_pod<T>(
    seen: &Window<'_>,
    service: &Service,
    sights: &BTreeMap<String, T>,
    judge: impl Fn(&T) -> (String, bool),
) -> Option<Vec<OfPod>> {
    let pods = seen.pods_of(&service.name);
    pods.iter().find(|pod| sights.contains_key(*pod))?;
    let look = |pod: String| {
        let unseen = || ("not looked at".to_owned(), false);
        let (seen, holds) = sights.get(&pod).map_or_else(unseen, &judge);
        OfPod { pod, seen, holds }
    };
    Some(pods.into_iter().map(look).collect())
}

/// Whether a rule, as `nft list ruleset` writes it, sends packets elsewhere.
fn diverts(rule: &str) -> bool {
    rule.split_whitespace().any(|word| matches!(word, "redirect" | "dnat" | "tproxy"))
}

fn no_proxy_headers(hop: &Hop<'_>, gateways: &[&str]) -> Claim {
    let a_gateways = |name: &str| is_one_of(gateways, name);
    let names = hop.report.headers.keys().map(String::as_str);
    let added: Vec<&str> =
        names.filter(|name| is_one_of(&PROXY_HEADERS, name) && !a_gateways(name)).collect();
    let whose = if gateways.len() > 1 { "a sidecar" } else { "a proxy" };
    Claim {
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
