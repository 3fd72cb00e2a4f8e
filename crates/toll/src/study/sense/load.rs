//! Whether loads end, and only once: by time, by count, or with the last stage of their virtual users.

use indexmap::IndexMap;

use super::{Nonsense, at_key, at_value, unknown, zero};
use crate::study::fault::Problem;
use crate::study::model::{End, Load, LoadModel, Stages, Stop, Study};
use crate::study::quantity::{Name, Rate};
use crate::study::tree::Pointer;

/// All that does not fit in how the loads are released and end.
pub(super) fn check(study: &Study) -> Vec<Nonsense> {
    let mut found = Vec::new();
    for (name, load) in &study.loads {
        let at = Pointer::to(&["loads", name.as_str()]);
        found.extend(end(load, &at));
        found.extend(knee_of_knee(&load.model, &at));
        found.extend(unknown_tracers(study, load, &at));
    }
    found
}

/// What a profile says of single loads.
pub(super) fn changes(study: &Study, ends: &IndexMap<Name, End>, at: &Pointer) -> Vec<Nonsense> {
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

fn changed_end(name: &Name, load: &Load, end: End, at: &Pointer) -> Option<Nonsense> {
    let key = key_of(end);
    let other_kind = match (load.model, end) {
        (LoadModel::Vus(_), End::Vus(stages)) => return no_stages(&stages, at.child(key)),
        (LoadModel::Vus(_), End::Duration(_) | End::Requests(_)) => Problem::StopOfUsers { key },
        (_, End::Vus(_)) => Problem::StagesOfNoUsers { load: name.to_string() },
        (_, End::Duration(_) | End::Requests(_)) => return no_duration(end.stop()?, at),
    };
    Some(of_a_load(at_key(other_kind, at.child(key)), &Pointer::to(&["loads", name.as_str()])))
}

fn key_of(end: End) -> &'static str {
    match end {
        End::Duration(_) => "duration",
        End::Requests(_) => "requests",
        End::Vus(_) => "vus",
    }
}

/// Virtual users end with their last stage, all other loads say when.
fn end(load: &Load, at: &Pointer) -> Option<Nonsense> {
    match (load.model, load.stop) {
        (LoadModel::Vus(vus), None) => no_stages(&vus.stages(), at.child("vus")),
        (LoadModel::Vus(_), Some(stop)) => {
            let key = key_of(stop.into());
            Some(of_a_load(at_key(Problem::StopOfUsers { key }, at.child(key)), at))
        }
        (_, Some(stop)) => no_duration(stop, at),
        (_, None) => {
            let keys = vec!["duration".into(), "requests".into()];
            let found = at_value(Problem::MissingOneOf { keys }, at.clone());
            let found = found.because_of(at.child("duration")).because_of(at.child("requests"));
            Some(of_a_load(found, at))
        }
    }
}

/// Follows from how the load at `at` is released, too.
pub(super) fn of_a_load(found: Nonsense, at: &Pointer) -> Nonsense {
    ["open", "closed", "vus"].iter().fold(found, |found, key| found.because_of(at.child(key)))
}

fn no_duration(stop: Stop, at: &Pointer) -> Option<Nonsense> {
    match stop {
        Stop::Duration(duration) => zero("load", duration, at.child("duration")),
        Stop::Requests(_) => None,
    }
}

pub(super) fn no_stages(stages: &Stages, at: Pointer) -> Option<Nonsense> {
    stages.is_empty().then(|| at_value(Problem::NoStages, at))
}

/// A share of the knee here says nothing of what was carried there.
fn knee_of_knee(model: &LoadModel, at: &Pointer) -> Option<Nonsense> {
    let LoadModel::Vus(vus) = model else { return None };
    let rate = vus.scale?.knee;
    let problem = Problem::KneeOfKnee { rate: rate.to_string() };
    let share = matches!(rate, Rate::OfKnee(_));
    share.then(|| at_value(problem, at.child("vus").child("scale").child("knee")))
}

/// Spans of what is no service of the application.
fn unknown_tracers(study: &Study, load: &Load, at: &Pointer) -> Vec<Nonsense> {
    let unknown_service = |name: &Name| {
        let problem = unknown("service", name, study.app.services.keys())?;
        Some(at_key(problem, at.child("spans").child(name)).from(&["app", "services"]))
    };
    load.spans.keys().filter_map(unknown_service).collect()
}
