//! Whether tracing agents fit: into their variants, and the collector of their spans into the application.

use super::{Nonsense, Place, at_key, at_value};
use crate::study::fault::Problem;
use crate::study::model::{App, Study};
use crate::study::quantity::Name;
use crate::study::tree::Pointer;
use crate::study::{COLLECTOR, COLLECTOR_PORT};

/// All that does not fit with the agents.
pub(super) fn check(study: &Study) -> Vec<Nonsense> {
    let mut found: Vec<Nonsense> = study.variants.keys().filter_map(|v| two(study, v)).collect();
    if let Some((variant, _)) = study.variants.iter().find(|(_, v)| v.java_agent.is_some()) {
        let because = Pointer::to(&["variants", variant.as_str(), "java_agent"]);
        let taken = names(&study.app).chain(ports(&study.app));
        found.extend(taken.map(|taken| taken.because_of(because.clone())));
    }
    found
}

fn two(study: &Study, variant: &Name) -> Option<Nonsense> {
    let at = Pointer::to(&["variants", variant.as_str()]);
    let both = &study.variants[variant];
    (both.sidecar.is_some() && both.java_agent.is_some()).then(|| Nonsense {
        problem: Problem::TwoDataPlanes,
        at: Place::Key(at.child("java_agent")),
        also: vec![(Place::Key(at.child("sidecar")), Some("and here"))],
    })
}

/// Names that the collector has.
fn names(app: &App) -> impl Iterator<Item = Nonsense> {
    let gateways = app.gateways.keys().map(|name| ("gateways", name));
    let services = app.services.keys().map(|name| ("services", name));
    let databases = app.databases.keys().map(|name| ("databases", name));
    let taken = |(_, name): &(&str, &Name)| name.as_str() == COLLECTOR;
    gateways.chain(services).chain(databases).filter(taken).map(|(section, name)| {
        let problem = Problem::CollectorHas { what: "name", taken: format!("`{name}`") };
        at_key(problem, Pointer::to(&["app", section, name.as_str()]))
    })
}

/// Ports that the collector has: on one machine all may share an address.
fn ports(app: &App) -> impl Iterator<Item = Nonsense> {
    let taken = super::app::ports(app).into_iter().filter(|(port, _)| *port == COLLECTOR_PORT);
    taken.map(|(port, at)| {
        at_value(Problem::CollectorHas { what: "port", taken: port.to_string() }, at)
    })
}
