//! How often requests crossed sidecars: counted at each way through each of them, and added up.

use crate::claim::{Claim, Direction, LeftOut, Topic, Traversal};
use crate::deployment::{Deployment, Service};
use crate::evidence::ProxyCounters;
use crate::programs::databases::Databases;
use crate::proof::bounds::Bounds;
use crate::proof::claims::{count_claim, distinct};
use crate::proof::expected::Expected;
use crate::proof::window::Window;

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
    let into = match databases.find(&service.name) {
        Some(database) => database.crossings_into(pod),
        None => seen.pod_growth(pod, ProxyCounters::inbound).unwrap_or(0),
    };
    let mut ways = vec![way(Direction::Inbound, None, into)];
    let callees = distinct(service.calls.iter().map(String::as_str)).into_iter();
    for callee in callees.filter(|callee| !seen.deployment.passes_by(callee)) {
        let counted = match databases.find(callee) {
            Some(database) => database.crossings_from(pod),
            None => seen.pod_growth(pod, |c| c.call(callee).requests).unwrap_or(0),
        };
        ways.push(way(Direction::Outbound, Some(callee.to_owned()), counted));
    }
    ways
}

/// Ways through sidecars: into each service that has one, and out of it for each call.
fn crossings(deployment: &Deployment, expected: &Expected<'_>) -> Bounds {
    let crossings_of = |service: &Service| {
        let callees = distinct(service.calls.iter().map(String::as_str)).into_iter();
        let through = callees.filter(|callee| !deployment.passes_by(callee));
        let calls: Bounds = through.map(|callee| expected.calls(service, callee)).sum();
        expected.arrivals(&service.name) + calls
    };
    deployment.services.iter().filter(|s| s.takes_sidecar()).map(crossings_of).sum()
}

/// The claim of a mesh, or why it cannot be made.
pub(super) fn every_request(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    traversals: &[Traversal],
) -> Result<Claim, LeftOut> {
    if let Some(database) = asked_by_users_own(seen) {
        return Err(LeftOut::Crossings { database: database.to_owned() });
    }
    let calls_vary = |service: &Service| {
        service.program.calls_by_request() || !service.observed_calls.is_empty()
    };
    let claim = match seen.deployment.services.iter().any(calls_vary) {
        // As many as its calls, which depend on what it asks for, or on the program.
        true => "every request crossed the sidecars on its way".to_owned(),
        false => {
            let once = Expected::of_requests(seen.deployment, 1);
            let each = crossings(seen.deployment, &once).least;
            let several = if each == 1 { "" } else { "s" };
            format!("every request crossed {each} sidecar{several}")
        }
    };
    let counted = traversals.iter().map(|way| way.counted).sum();
    let claim = count_claim(claim, crossings(seen.deployment, expected), Some(counted));
    Ok(claim.about(Topic::Crossings))
}

/// A database that a program of the user's own asks.
fn asked_by_users_own<'a>(seen: &Window<'a>) -> Option<&'a str> {
    let databases = seen.deployment.services.iter().filter(|s| s.program.is_database());
    let mut names = databases.map(|database| database.name.as_str());
    names.find(|name| seen.deployment.callers_of(name).any(|s| s.program.is_users_own()))
}
