//! How claims are put together: counts held against bounds, and what both ends of a window say made one.

use super::bounds::Bounds;
use super::window::Window;
use crate::claim::{Claim, LeftOut, Topic};
use crate::deployment::Service;
use crate::evidence::{CallCounters, PathSnapshot, ProxyCounters};

/// A count that must lie within its bounds.
pub(crate) fn count_claim(claim: String, bounds: Bounds, seen: Option<u64>) -> Claim {
    let Bounds { least, most } = bounds;
    Claim {
        topic: Topic::Other,
        claim,
        expected: match most - least {
            0 => least.to_string(),
            _ if most == u64::MAX => format!("at least {least}"),
            again => format!("{least}, and at most {again} sent again"),
        },
        seen: seen.map_or("no counters".to_owned(), |n| n.to_string()),
        holds: seen.is_some_and(|n| (least..=most).contains(&n)),
    }
}

/// A count of which there must be enough.
pub(crate) fn at_least_claim(claim: String, least: u64, seen: Option<u64>) -> Claim {
    Claim {
        topic: Topic::Other,
        claim,
        expected: format!("at least {least}"),
        seen: seen.map_or("no counters".to_owned(), |n| n.to_string()),
        holds: seen.is_some_and(|n| n >= least),
    }
}

/// One claim for what `judge` says of both ends of the window; it holds if it held at both.
pub(crate) fn at_both_ends(
    seen: &Window<'_>,
    judge: impl Fn(&PathSnapshot) -> Vec<Claim>,
) -> Vec<Claim> {
    merged(judge(seen.before), judge(seen.after))
}

/// Claims in the same words become one. One that is made at a single end stays as it is.
pub(crate) fn merged(before: Vec<Claim>, after: Vec<Claim>) -> Vec<Claim> {
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

/// What was seen of one pod of a service.
pub(crate) struct PodVerdict {
    pub pod: String,
    pub seen: String,
    pub holds: bool,
}

/// Pods that a claim names one by one before it only counts the rest.
const NAMED: usize = 3;

/// One claim for all pods of a service, that holds if it holds of each; it names those that fail.
pub(crate) fn pods_claim(claim: String, expected: String, pods: &[PodVerdict]) -> Claim {
    let holds = !pods.is_empty() && pods.iter().all(|pod| pod.holds);
    let alike = pods.windows(2).all(|two| two[0].seen == two[1].seen);
    let seen = match pods.first() {
        None => "no pod".to_owned(),
        Some(first) if alike => first.seen.clone(),
        Some(_) => named(pods, holds),
    };
    Claim { topic: Topic::Other, claim, expected, seen, holds }
}

/// For instance `nginx-7: an answer with status 200; 89 others as expected`.
fn named(pods: &[PodVerdict], all_hold: bool) -> String {
    let shown: Vec<&PodVerdict> = pods.iter().filter(|pod| all_hold || !pod.holds).collect();
    let mut texts: Vec<String> =
        shown.iter().take(NAMED).map(|pod| format!("{}: {}", pod.pod, pod.seen)).collect();
    match shown.len().saturating_sub(NAMED) {
        0 => {}
        more if all_hold => texts.push(format!("and {more} more")),
        more => texts.push(format!("{more} more that fail")),
    }
    match pods.len() - shown.len() {
        0 => {}
        others => texts.push(format!("{others} as expected")),
    }
    texts.join("; ")
}

/// `client pod`, or `nginx pods (90)`.
pub(crate) fn pods_of(service: &Service) -> String {
    counted("pod", service)
}

/// For instance `client sidecar`, or `nginx sidecars (90)`.
fn counted(kind: &str, service: &Service) -> String {
    match service.replicas {
        0 | 1 => format!("{} {kind}", service.name),
        many => format!("{} {kind}s ({many})", service.name),
    }
}

/// How the proxies of a service are called in claims.
pub(crate) fn proxies_of(service: &Service) -> String {
    counted(if service.takes_sidecar() { "sidecar" } else { "gateway" }, service)
}

/// That all connections to somebody were TLS, of the proxies in these pods. Judged since their start: connections that
/// a window uses may be older than it.
pub(crate) fn tls_claim(
    seen: &Window<'_>,
    pods: &[String],
    claim: String,
    pick: impl Fn(&ProxyCounters) -> CallCounters,
) -> Claim {
    let total = |field: fn(CallCounters) -> u64| seen.total_in(pods, |c| field(pick(c)));
    let made = total(|call| call.connections).saturating_sub(total(|call| call.failed_connections));
    let handshakes = total(|call| call.handshakes);
    Claim {
        topic: Topic::Other,
        claim,
        expected: "at least one handshake, and no connection without one".to_owned(),
        seen: format!("{handshakes} handshakes on {made} connections"),
        holds: handshakes >= 1 && handshakes >= made,
    }
}

/// A claim as the first of all claims, or why it is left out.
pub(crate) fn either(judged: Result<Claim, LeftOut>) -> (Vec<Claim>, Vec<LeftOut>) {
    match judged {
        Ok(claim) => (vec![claim], Vec::new()),
        Err(why) => (Vec::new(), vec![why]),
    }
}

/// Each name once, in the order in which they come first.
pub(crate) fn distinct<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct: Vec<&str> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}
