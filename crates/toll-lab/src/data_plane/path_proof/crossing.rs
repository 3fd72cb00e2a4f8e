//! How often requests crossed sidecars: counted at each way through each of them, and added up.

use super::claims::count_claim;
use super::database::Databases;
use super::expected::{Bounds, Expected};
use super::{Window, airline, distinct, own_counts, passes_by};
use crate::data_plane::ProxyCounters;
use crate::deployment::{Program, Service};
use crate::proof::{Claim, Direction, Traversal};

/// Every way through every sidecar. One that could not be read counts nothing.
pub(super) fn traversals(seen: &Window<'_>, databases: &Databases<'_>) -> Vec<Traversal> {
    let pods = seen.deployment.pods().into_iter();
    let with_sidecar = pods.filter(|(_, service)| service.takes_sidecar());
    with_sidecar.flat_map(|(pod, service)| ways(seen, databases, &pod, service)).collect()
}

fn ways(
    seen: &Window<'_>,
    databases: &Databases<'_>,
    pod: &str,
    service: &Service,
) -> Vec<Traversal> {
    let way = |direction, callee, counted| {
        let pod = pod.to_owned();
        Traversal { pod, direction, callee, counted }
    };
    let into = match databases.of(&service.name) {
        Some(database) => database.crossings_into(pod),
        None => seen.pod_growth(pod, inbound).unwrap_or(0),
    };
    let mut ways = vec![way(Direction::Inbound, None, into)];
    let callees = distinct(service.calls.iter().map(String::as_str)).into_iter();
    for callee in callees.filter(|callee| !passes_by(seen.deployment, callee)) {
        let counted = match databases.of(callee) {
            Some(database) => database.crossings_from(pod),
            None => seen.pod_growth(pod, |c| c.call(callee).requests).unwrap_or(0),
        };
        ways.push(way(Direction::Outbound, Some(callee.to_owned()), counted));
    }
    ways
}

/// Requests that came into a proxy.
pub(super) fn inbound(counters: &ProxyCounters) -> u64 {
    counters.inbound_mtls + counters.inbound_plaintext
}

/// The claim of a mesh, or why it cannot be made.
pub(super) fn every_request(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    traversals: &[Traversal],
) -> Result<Claim, String> {
    if let Some(database) = asked_by_users_own(seen) {
        return Err(format!(
            "how many sidecars each request crossed: a program of the user's own asks {database} as often as it likes"
        ));
    }
    let claim = match airline::is_deployed(seen.deployment) {
        // As many as its calls, which depend on what it asks for.
        true => "every request crossed the sidecars on its way".to_owned(),
        false => {
            let each = Expected::of(seen.deployment, 1).crossings().least;
            let several = if each == 1 { "" } else { "s" };
            format!("every request crossed {each} sidecar{several}")
        }
    };
    let counted = traversals.iter().map(|way| way.counted).sum();
    Ok(count_claim(claim, expected.crossings(), Some(counted)))
}

/// The claim of a bare path, or why it cannot be made.
pub(super) fn no_request(seen: &Window<'_>, reporting: &[&str]) -> Result<Claim, String> {
    let asked = |name: &&&str| own_counts::can_be_asked(seen, name);
    let asked: Vec<&&str> = reporting.iter().filter(asked).collect();
    if asked.is_empty() {
        return Err("that no request crossed a sidecar: no service reports its requests".to_owned());
    }
    let marked = asked.iter().map(|name| own_counts::marked_by_sidecars(seen, name)).sum();
    Ok(count_claim("no request crossed a sidecar".to_owned(), Bounds::exactly(0), marked))
}

/// A database that a program of the user's own asks.
fn asked_by_users_own<'a>(seen: &Window<'a>) -> Option<&'a str> {
    let databases = seen.deployment.services.iter().filter(|s| s.program.is_database());
    let users_own = |service: &Service| matches!(service.program, Program::Command(_));
    let mut names = databases.map(|database| database.name.as_str());
    names.find(|name| seen.deployment.callers_of(name).any(users_own))
}
