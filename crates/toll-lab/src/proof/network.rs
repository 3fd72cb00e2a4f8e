//! What firewalls and processes show of the networks of pods in which no proxy may stand.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::claims::{PodVerdict, pods_claim, pods_of};
use super::window::Window;
use crate::claim::Claim;
use crate::deployment::Service;
use crate::evidence::PathSnapshot;
use crate::topology::Topology;

/// Where the connections of a service, or of the load, come from.
pub(crate) fn sources_of(caller: Option<&str>, topology: &Topology) -> Vec<Ipv4Addr> {
    let Some(caller) = caller else { return vec![topology.load_ip] };
    topology.pods.iter().filter(|pod| pod.service == caller).map(|pod| pod.ip).collect()
}

/// That nothing but its own program is in the network of each pod that was looked at, and nothing redirects there.
pub(crate) fn own_network_claims(seen: &Window<'_>, snapshot: &PathSnapshot) -> Vec<Claim> {
    let rules = seen.deployment.services.iter().filter_map(|s| no_redirect(seen, snapshot, s));
    occupant_claims(seen, snapshot).into_iter().chain(rules).collect()
}

/// That no service shares its pods with another program.
pub(crate) fn occupant_claims(seen: &Window<'_>, snapshot: &PathSnapshot) -> Vec<Claim> {
    let claim = |service| only_its_own(seen, snapshot, service);
    seen.deployment.services.iter().filter_map(claim).collect()
}

fn only_its_own(seen: &Window<'_>, snapshot: &PathSnapshot, service: &Service) -> Option<Claim> {
    let what = if service.replicas > 1 { "each of their networks" } else { "its network" };
    let claim = format!("{}: no program but its own runs in {what}", pods_of(service));
    let pods = each_pod(seen, service, &snapshot.occupants, |occupants| {
        let text = match (occupants.own, occupants.foreign.as_slice()) {
            (true, []) => "only its own".to_owned(),
            (false, []) => "not even its own".to_owned(),
            (_, foreign) => foreign.join(", "),
        };
        (text, occupants.own && occupants.foreign.is_empty())
    })?;
    Some(pods_claim(claim, "only its own".to_owned(), &pods))
}

fn no_redirect(seen: &Window<'_>, snapshot: &PathSnapshot, service: &Service) -> Option<Claim> {
    let whose = if service.replicas > 1 { "their" } else { "its" };
    let claim = format!("{}: no firewall rule redirects {whose} traffic", pods_of(service));
    let pods = each_pod(seen, service, &snapshot.rules, |rules| {
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
    snapshots: &BTreeMap<String, T>,
    judge: impl Fn(&T) -> (String, bool),
) -> Option<Vec<PodVerdict>> {
    let pods = seen.pods_of(&service.name);
    pods.iter().find(|pod| snapshots.contains_key(*pod))?;
    let look = |pod: String| {
        let unseen = || ("not looked at".to_owned(), false);
        let (seen, holds) = snapshots.get(&pod).map_or_else(unseen, &judge);
        PodVerdict { pod, seen, holds }
    };
    Some(pods.into_iter().map(look).collect())
}

/// Whether a rule, as `nft list ruleset` writes it, sends packets elsewhere.
fn diverts(rule: &str) -> bool {
    rule.split_whitespace().any(|word| matches!(word, "redirect" | "dnat" | "tproxy"))
}
