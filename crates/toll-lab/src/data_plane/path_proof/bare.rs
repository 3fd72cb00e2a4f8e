//! What shows that nobody stands in a bare path: addresses, headers, firewall rules and who runs in the pods.

use std::net::Ipv4Addr;

use super::trace::{Hop, peer_claim, server_claim};
use super::{Occupants, SIDECAR_SERVER, Sight, Window};
use crate::data_plane::Topology;
use crate::proof::Claim;

/// What a lab without namespaces cannot prove of a bare path.
pub(super) const SHARED_NETWORK: &str = "all pods share the machine's network, so that neither the programs \
    nor the firewall rules in it can be held against one pod";

/// Request headers that only proxies add: whole names, or families that end with a hyphen.
const PROXY_HEADERS: [&str; 5] = ["forwarded", "via", "x-envoy-", "x-forwarded-", "x-request-id"];

/// Those that a gateway adds as well; never a client's certificate.
const GATEWAY_HEADERS: [&str; 5] =
    ["x-envoy-", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id"];

/// What one arrival of the probe at a service shows.
pub(super) fn hop_claims(seen: &Window<'_>, hop: &Hop<'_>, topology: &Topology) -> [Claim; 2] {
    let sources = sources_of(hop.caller, topology);
    let gateways: &[&str] = match seen.bears_gateway_headers(&hop.report.service) {
        true => &GATEWAY_HEADERS,
        // Services hand it on, so that it tells nothing of the hop that it came over.
        false if seen.is_behind_gateway() => &["x-request-id"],
        false => &[],
    };
    [no_proxy_headers(hop, gateways), peer_claim(hop, &sources, "the caller's own")]
}

/// Where the connections of a service, or of the load, come from.
pub(super) fn sources_of(caller: Option<&str>, topology: &Topology) -> Vec<Ipv4Addr> {
    let Some(caller) = caller else { return vec![topology.load_ip] };
    topology.pods.iter().filter(|pod| pod.service == caller).map(|pod| pod.ip).collect()
}

/// Who could stand in a bare path at one instant.
pub(super) fn network_claims(seen: &Window<'_>, sight: &Sight) -> Vec<Claim> {
    let occupants = sight.occupants.iter().map(|(pod, occupants)| only_its_own(pod, occupants));
    let rules = sight.rules.iter().map(|(pod, rules)| no_redirect(pod, rules));
    let server = server_claim(&sight.walk, "no sidecar's", |is| is != Some(SIDECAR_SERVER));
    let server = (!seen.is_behind_gateway()).then_some(server);
    occupants.chain(rules).chain(server).collect()
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
