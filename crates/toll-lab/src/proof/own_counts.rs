//! What the programs count themselves: built-in services all requests that they got and those that bore a proxy's
//! mark, others what they have answered.

use super::bounds::Bounds;
use super::claims::{PodVerdict, count_claim, pods_claim};
use super::expected::Expected;
use super::window::{Spread, Window};
use crate::claim::{Claim, LeftOut};
use crate::deployment::Service;
use crate::evidence::{PathReport, ProxyCounters};

/// A service with several pods is expected to use all of them when each should get this many requests.
const FAIR_SHARE: u64 = 10;

/// Whose mark the requests that a service gets must bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Sidecar,
    /// A proxy that reads HTTP, and stands where services call each other.
    Waypoint,
    Nobody,
}

/// Claims for each service that reports, and why there are none for some.
pub(crate) fn judge(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    reporting: &[&str],
    mark: Mark,
) -> (Vec<Claim>, Vec<LeftOut>) {
    let services = reporting.iter().filter_map(|name| seen.deployment.service(name));
    let (asked, silent): (Vec<&Service>, Vec<&Service>) =
        services.partition(|service| can_be_asked(seen, &service.name));
    let mut claims = answered_claims(seen, expected);
    for service in asked {
        claims.push(got_claim(seen, expected, service));
        claims.push(mark_claim(seen, service, mark));
    }
    let several = || seen.deployment.services.iter().filter(|s| s.replicas > 1);
    let mut left_out: Vec<LeftOut> =
        silent.iter().map(|service| LeftOut::EachPod { service: service.name.clone() }).collect();
    match seen.spread {
        Spread::InTurn => {
            claims.extend(several().filter_map(|service| each_pod_claim(seen, expected, service)));
        }
        Spread::ByConnection => {
            let shares = |service: &Service| LeftOut::Shares { service: service.name.clone() };
            left_out.extend(several().map(shares));
        }
    }
    (claims, left_out)
}

/// Whether a service's pods can be judged: one walk meets one pod, several must have been asked inside.
pub(crate) fn can_be_asked(seen: &Window<'_>, service: &str) -> bool {
    let pods = seen.pods_of(service);
    let asked = |pod: &String| {
        seen.before.replicas.contains_key(pod) || seen.after.replicas.contains_key(pod)
    };
    pods.len() == 1 || pods.iter().any(asked)
}

fn got_claim(seen: &Window<'_>, expected: &Expected<'_>, service: &Service) -> Claim {
    let name = &service.name;
    let claim = format!("{name}: the application got exactly the requests that were sent");
    count_claim(claim, expected.arrivals(name), growth(seen, service, |report| report.requests))
}

/// Only who came over mTLS has a certificate, whereas a gateway's headers are on requests in every variant.
fn mark_claim(seen: &Window<'_>, service: &Service, mark: Mark) -> Claim {
    let name = &service.name;
    let from_load = *name == seen.deployment.entry;
    let marked = growth(seen, service, |report| report.marked);
    let certified = growth(seen, service, |report| report.certified);
    let all = Bounds::exactly(growth(seen, service, |report| report.requests).unwrap_or(0));
    let none = Bounds::exactly(0);
    let (what, bounds, count) = match mark {
        Mark::Sidecar if from_load => ("every request bore the mark of a sidecar", all, marked),
        Mark::Sidecar => ("every request bore its caller's certificate", all, certified),
        Mark::Waypoint if !from_load => ("every request bore the mark of a proxy", all, marked),
        Mark::Waypoint | Mark::Nobody if seen.bears_gateway_headers(name) => {
            ("no request bore a caller's certificate", none, certified)
        }
        Mark::Waypoint | Mark::Nobody => ("no request bore the mark of a proxy", none, marked),
    };
    count_claim(format!("{name}: {what}"), bounds, count)
}

/// Requests that a proxy has marked where there should be none; none when they are not known.
pub(crate) fn marked(seen: &Window<'_>, service: &str) -> Option<u64> {
    let pick: fn(&PathReport) -> u64 =
        if seen.bears_gateway_headers(service) { |r| r.certified } else { |r| r.marked };
    growth(seen, seen.deployment.service(service)?, pick)
}

fn each_pod_claim(seen: &Window<'_>, expected: &Expected<'_>, service: &Service) -> Option<Claim> {
    let requests = expected.arrivals(&service.name).least;
    if service.program.is_database() || requests < FAIR_SHARE * service.replicas as u64 {
        return None;
    }
    let pods = seen.pods_of(&service.name);
    let shares = shares(seen, service, &pods)?;
    let claim = format!("{}: each of its {} pods got requests", service.name, pods.len());
    let share = |(pod, share): (String, Option<u64>)| PodVerdict {
        pod,
        seen: share.map_or("no counters".to_owned(), |count| count.to_string()),
        holds: share.is_some_and(|count| count > 0),
    };
    let pods: Vec<PodVerdict> = pods.into_iter().zip(shares).map(share).collect();
    Some(pods_claim(claim, "at least 1 each".to_owned(), &pods))
}

/// Requests that each pod got, by its proxy or by the program itself; none when nobody tells.
fn shares(seen: &Window<'_>, service: &Service, pods: &[String]) -> Option<Vec<Option<u64>>> {
    let pods = pods.iter();
    if pods.clone().any(|pod| seen.after.counters.contains_key(pod)) {
        return Some(pods.map(|pod| seen.pod_growth(pod, ProxyCounters::inbound)).collect());
    }
    if service.program.counts_answers() {
        return Some(pods.map(|pod| seen.answered(pod)).collect());
    }
    let own = |pod: &String| pod_growth(seen, service, pod, |report| report.requests);
    can_be_asked(seen, &service.name).then(|| pods.map(own).collect())
}

/// What programs have answered by their own count, in any variant.
fn answered_claims(seen: &Window<'_>, expected: &Expected<'_>) -> Vec<Claim> {
    let claim = |service: &Service| {
        let pods = seen.pods_of(&service.name);
        let counted = pods.iter().map(|pod| seen.answered(pod)).sum();
        let claim =
            format!("{}: its pods answered exactly the requests that were sent", service.name);
        count_claim(claim, expected.arrivals(&service.name), counted)
    };
    let counting = seen.deployment.services.iter().filter(|s| s.program.counts_answers());
    counting.map(claim).collect()
}

/// By how much a service's own count rose, its pods added up; none without two reports or after a restart.
fn growth(seen: &Window<'_>, service: &Service, pick: fn(&PathReport) -> u64) -> Option<u64> {
    let pods = seen.pods_of(&service.name);
    pods.iter().map(|pod| pod_growth(seen, service, pod, pick)).sum()
}

/// The same of one pod.
pub(crate) fn pod_growth(
    seen: &Window<'_>,
    service: &Service,
    pod: &str,
    pick: fn(&PathReport) -> u64,
) -> Option<u64> {
    let [before, after] = [seen.before, seen.after].map(|snapshot| match service.replicas {
        0 | 1 => snapshot.walk.report.as_ref().and_then(|report| report.find(&service.name)),
        _ => snapshot.replicas.get(pod),
    });
    pick(after?).checked_sub(pick(before?))
}
