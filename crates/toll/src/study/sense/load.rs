//! Whether slices of loads have a length, and only one: a time, a count, or the stages of their virtual users.

use indexmap::IndexMap;

use super::{Violation, at_key, at_value, unknown, zero};
use crate::study::fault::Problem;
use crate::study::model::{End, Load, LoadModel, Stages, Study};
use crate::study::quantity::{Name, Rate};
use crate::study::tree::Pointer;

/// All that does not fit in how the loads are released and how long their slices are.
pub(super) fn check(study: &Study) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, load) in &study.loads {
        let at = Pointer::to(&["loads", name.as_str()]);
        found.extend(length(name, load, &at));
        found.extend(capacity_of_capacity(&load.model, &at));
        found.extend(unknown_tracers(study, &load.spans, &at));
    }
    found.extend(relative_traffic(study));
    found
}

/// What a profile says of single loads.
pub(super) fn changes(study: &Study, ends: &IndexMap<Name, End>, at: &Pointer) -> Vec<Violation> {
    let one = |(name, end): (&Name, &End)| {
        let at = at.child(name);
        match study.loads.get(name) {
            None => unknown("load", name, study.loads.keys())
                .map(|problem| at_key(problem, at).from(&["loads"])),
            Some(load) => changed_end(name, load, *end, &at),
        }
    };
    ends.iter().filter_map(one).collect()
}

fn changed_end(name: &Name, load: &Load, end: End, at: &Pointer) -> Option<Violation> {
    let key = key_of(end);
    let load_name = || name.to_string();
    let problem = match (load.model, end) {
        (LoadModel::Vus(_), End::Vus(stages)) => return no_stages(&stages, at.child(key)),
        (LoadModel::Vus(_), End::Slice(_) | End::Requests(_)) => Problem::LengthOfUsers { key },
        (_, End::Vus(_)) => Problem::StagesOfNoUsers { load: load_name() },
        (_, End::Slice(slice)) => return zero("slice", slice, at.child(key)),
        (LoadModel::Closed(_), End::Requests(_)) => return None,
        (_, End::Requests(_)) => Problem::RequestsOfNoClosedLoad { load: load_name() },
    };
    Some(of_a_load(at_key(problem, at.child(key)), &Pointer::to(&["loads", name.as_str()])))
}

fn key_of(end: End) -> &'static str {
    match end {
        End::Slice(_) => "slice",
        End::Requests(_) => "requests",
        End::Vus(_) => "vus",
    }
}

/// A slice of virtual users is all their stages; others may say how long theirs is.
fn length(name: &Name, load: &Load, at: &Pointer) -> Option<Violation> {
    match (load.model, load.length) {
        (LoadModel::Vus(vus), None) => no_stages(&vus.stages(), at.child("vus")),
        (_, None) => None,
        (_, Some(length)) => changed_end(name, load, length.into(), at),
    }
}

/// Follows from how the load at `at` is released, too.
pub(super) fn of_a_load(found: Violation, at: &Pointer) -> Violation {
    ["open", "closed", "vus", "curve"]
        .iter()
        .fold(found, |found, key| found.because_of(at.child(key)))
}

pub(super) fn no_stages(stages: &Stages, at: Pointer) -> Option<Violation> {
    stages.is_empty().then(|| at_value(Problem::NoStages, at))
}

/// A share of the capacity here says nothing of what was carried there.
fn capacity_of_capacity(model: &LoadModel, at: &Pointer) -> Option<Violation> {
    let LoadModel::Vus(vus) = model else { return None };
    let rate = vus.scale?.capacity;
    let problem = Problem::CapacityOfCapacity { rate: rate.to_string() };
    let share = matches!(rate, Rate::OfCapacity(_));
    share.then(|| at_value(problem, at.child("vus").child("scale").child("capacity")))
}

/// What is carried here says nothing of the traffic there.
fn relative_traffic(study: &Study) -> Option<Violation> {
    let rate = study.traffic?.rate;
    let problem = Problem::RelativeTraffic { rate: rate.to_string() };
    matches!(rate, Rate::OfCapacity(_))
        .then(|| at_value(problem, Pointer::to(&["traffic", "rate"])))
}

/// Spans, below `at`, of what is no service of the application.
pub(super) fn unknown_tracers(
    study: &Study,
    spans: &IndexMap<Name, u32>,
    at: &Pointer,
) -> Vec<Violation> {
    let unknown_service = |name: &Name| {
        let problem = unknown("service", name, study.app.services.keys())?;
        Some(at_key(problem, at.child("spans").child(name)).from(&["app", "services"]))
    };
    spans.keys().filter_map(unknown_service).collect()
}
