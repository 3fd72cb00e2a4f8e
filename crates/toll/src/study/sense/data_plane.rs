//! Whether data planes fit: into their variants, and what they bring along into the application.

use super::load::unknown_tracers;
use super::{Violation, app, at_key, at_value, database_at, sweep};
use crate::study::fault::Problem;
use crate::study::model::{App, By, Egress, Sidecar, Study, Variant};
use crate::study::quantity::{Name, is_host_pattern};
use crate::study::tree::Pointer;
use crate::study::{COLLECTOR, COLLECTOR_PORT};

/// All that does not fit with sidecars, agents and node proxies.
pub(super) fn check(study: &Study) -> Vec<Violation> {
    let mut found: Vec<Violation> =
        study.variants.iter().filter_map(|(name, variant)| several(name, variant)).collect();
    if let Some(because) = first_with(study, "java_agent", |v| v.java_agent.is_some()) {
        let taken = collectors_name(&study.app).chain(collectors_port(&study.app));
        found.extend(taken.map(|taken| taken.because_of(because.clone())));
    }
    if let Some(because) = first_with(study, "ambient", |v| v.ambient.is_some()) {
        let taken = names_of_the_mesh(&sweep::largest(study));
        found.extend(taken.into_iter().map(|taken| taken.because_of(because.clone())));
    }
    if let Some(because) = first_with(study, "egress", has_egress_gateway) {
        let taken = parts(&study.app).filter(|(_, name, _)| name.as_str() == EGRESS);
        found.extend(taken.map(|(section, name, _)| {
            let problem = Problem::NameOfTheGateway { name: name.to_string() };
            let found = at_key(problem, Pointer::to(&["app", section, name.as_str()]));
            found.because_of(because.clone())
        }));
    }
    for (name, variant) in &study.variants {
        let at = Pointer::to(&["variants", name.as_str()]);
        found.extend(egress(study, variant, &at));
        found.extend(envoy(variant, &at));
        if let Some(agent) = &variant.java_agent {
            found.extend(unknown_tracers(study, agent.spans(), &at.child("java_agent")));
        }
        found.extend(of_mesher(variant, &at));
    }
    found
}

/// The pod of the egress gateway.
const EGRESS: &str = "egress";

fn has_egress_gateway(variant: &Variant) -> bool {
    matches!(variant.egress, Some(Egress::Gateway(_)))
}

/// What Mesher does not have.
fn of_mesher(variant: &Variant, at: &Pointer) -> Vec<Violation> {
    let Some(Sidecar::Mesher { mtls, .. }) = &variant.sidecar else { return Vec::new() };
    let at_mtls = at.child("sidecar").child("mtls");
    let mtls = mtls.map(|_| at_key(Problem::MtlsOfMesher, at_mtls));
    let egress =
        variant.egress.as_ref().map(|_| at_key(Problem::EgressOfMesher, at.child("egress")));
    mtls.into_iter().chain(egress).collect()
}

/// A way out of no mesh, or to nowhere, and names that are none.
fn egress(study: &Study, variant: &Variant, at: &Pointer) -> Vec<Violation> {
    let Some(egress) = &variant.egress else { return Vec::new() };
    let at_egress = at.child("egress");
    let mut found = Vec::new();
    if variant.sidecar.is_none() {
        let problem = at_key(Problem::EgressOfNoSidecar, at_egress.clone());
        found.push(problem.because_of(at.child("sidecar")));
    }
    if study.app.external().next().is_none() {
        let problem = at_key(Problem::EgressToNowhere, at_egress.clone());
        let meant = study.app.databases.keys().map(|name| database_at(name, &["airline"]));
        found.push(meant.fold(problem.from(&["app", "databases"]), Violation::because_of));
    }
    if let Egress::Gateway(gateway) = egress {
        let at = at_egress.child("gateway").child("hosts");
        let hosts = gateway.hosts.iter().enumerate().filter(|(_, host)| !is_host_pattern(host));
        found.extend(hosts.map(|(number, host)| {
            let problem = Problem::Unreadable {
                text: host.clone(),
                wanted: "a DNS name, or `*.` and one".into(),
                examples: vec!["db.airline.example".into(), "\"*.airline.example\"".into()],
            };
            at_value(problem, at.child(number))
        }));
    }
    found
}

/// Settings of no Envoy that toll plays.
fn envoy(variant: &Variant, at: &Pointer) -> Option<Violation> {
    let plays = matches!(variant.sidecar, Some(Sidecar::Envoy { by: By::Toll, .. }));
    let surplus = variant.envoy.is_some() && !plays;
    let found = surplus.then(|| at_key(Problem::SettingsOfNoEnvoy, at.child("envoy")));
    found.map(|found| found.because_of(at.child("sidecar")))
}

fn first_with(study: &Study, key: &str, has: impl Fn(&Variant) -> bool) -> Option<Pointer> {
    let (variant, _) = study.variants.iter().find(|(_, variant)| has(variant))?;
    Some(Pointer::to(&["variants", variant.as_str(), key]))
}

/// Data planes beyond the first of a variant.
fn several(name: &Name, variant: &Variant) -> Option<Violation> {
    let at = Pointer::to(&["variants", name.as_str()]);
    let keys = [
        ("sidecar", variant.sidecar.is_some()),
        ("java_agent", variant.java_agent.is_some()),
        ("ambient", variant.ambient.is_some()),
    ];
    let written: Vec<&str> =
        keys.into_iter().filter_map(|(key, written)| written.then_some(key)).collect();
    let [first, others @ .., last] = written.as_slice() else { return None };
    let keys = written.iter().map(ToString::to_string).collect();
    let found = at_key(Problem::SeveralDataPlanes { keys }, at.child(last));
    let also = [first].into_iter().chain(others);
    Some(also.fold(found, |found, key| found.see_key(at.child(key), "and here")))
}

/// All parts of the application: their section, name and pods.
fn parts(app: &App) -> impl Iterator<Item = (&'static str, &Name, u32)> {
    app::nodes(app).into_iter().map(|node| (node.section, node.name, node.replicas))
}

fn collectors_name(app: &App) -> impl Iterator<Item = Violation> {
    let taken = parts(app).filter(|(_, name, _)| name.as_str() == COLLECTOR);
    taken.map(|(section, name, _)| {
        let problem = Problem::CollectorHas { what: "name", taken: format!("`{name}`") };
        at_key(problem, Pointer::to(&["app", section, name.as_str()]))
    })
}

/// Ports that the collector has: on one machine all may share an address.
fn collectors_port(app: &App) -> impl Iterator<Item = Violation> {
    let taken = app::ports(app).into_iter().filter(|(port, _)| *port == COLLECTOR_PORT);
    taken.map(|(port, at)| {
        at_value(Problem::CollectorHas { what: "port", taken: port.to_string() }, at)
    })
}

/// Parts with pods that are called as a node proxy's or a waypoint's.
fn names_of_the_mesh(app: &App) -> Vec<Violation> {
    let taken = |name: &str, replicas: u32| {
        let node = name.strip_prefix("node-").is_some_and(|rest| rest.parse::<u32>().is_ok());
        let nodes = name == "node" && replicas > 1;
        node || nodes || (name == "waypoint" && replicas == 1)
    };
    let found = |(section, name, _): (&str, &Name, u32)| {
        let problem = Problem::NameOfTheMesh { name: name.to_string() };
        at_key(problem, Pointer::to(&["app", section, name.as_str()]))
    };
    parts(app).filter(|(_, name, replicas)| taken(name.as_str(), *replicas)).map(found).collect()
}
