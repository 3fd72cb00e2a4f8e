//! Whether published figures belong to something that the study has.

use super::{Violation, at_key, at_value, sweep, unknown};
use crate::study::fault::Problem;
use crate::study::model::{App, Figures, Recomputed, Reference, Study};
use crate::study::quantity::Name;
use crate::study::tree::Pointer;

/// All that does not fit in the reference.
pub(super) fn check(study: &Study) -> Vec<Violation> {
    let Some(reference) = &study.reference else { return Vec::new() };
    let loads = Loads::of(study);
    let mut found = unknown_recomputed(study, reference, &loads);
    for (variant, published) in &reference.figures {
        let at = Pointer::to(&["reference", "figures", variant.as_str()]);
        let unknown_variant = unknown("variant", variant, study.variants.keys());
        found
            .extend(unknown_variant.map(|problem| at_key(problem, at.clone()).from(&["variants"])));
        for (load, figures) in published {
            let at = at.child(load);
            match loads.unknown(load, |problem| at_key(problem, at.clone())) {
                Some(unknown) => found.push(unknown),
                None => found.extend(unknown_pods(&sweep::app_under(study, load), figures, &at)),
            }
        }
    }
    found
}

/// The loads that figures can be of, and where the study says which these are.
struct Loads {
    names: Vec<Name>,
    because: Vec<Pointer>,
}

impl Loads {
    fn of(study: &Study) -> Self {
        let matrices = study.loads.keys().flat_map(|load| {
            let at = Pointer::to(&["loads", load.as_str(), "matrix"]);
            let axes = ["rate", "connections", "replicas", "nodes"].map(|axis| at.child(axis));
            [at].into_iter().chain(axes)
        });
        let because = [Pointer::to(&["loads"])].into_iter().chain(matrices).collect();
        Self { names: sweep::names_of_loads(study), because }
    }

    /// That there is no load of that name, found by `at`.
    fn unknown(&self, load: &Name, at: impl Fn(Problem) -> Violation) -> Option<Violation> {
        let found = at(unknown("load", load, self.names.iter())?);
        Some(self.because.iter().cloned().fold(found, Violation::because_of))
    }
}

fn unknown_recomputed(study: &Study, reference: &Reference, loads: &Loads) -> Vec<Violation> {
    let at = Pointer::to(&["reference", "recomputed"]);
    let mut found = Vec::new();
    for (number, derived) in reference.recomputed.iter().enumerate() {
        let at = at.child(number);
        let variant = unknown("variant", &derived.variant, study.variants.keys());
        let of_steps = loads.unknown(&derived.load, |problem| at_value(problem, at.child("load")));
        let load = of_steps.filter(|_| !is_staircase(study, &derived.load));
        let at_variant = |problem| at_value(problem, at.child("variant")).from(&["variants"]);
        found.extend(variant.map(at_variant));
        found.extend(load);
        found.extend(of_all_steps(study, derived, &at));
        found.extend(other_variant(study, derived, &at));
        let app = sweep::app_under(study, &derived.load);
        found.extend(pod_of_derived(&app, derived, &at));
    }
    found
}

/// What is derived may also be of all steps of a staircase together, by the load's own name.
fn is_staircase(study: &Study, load: &Name) -> bool {
    let matrix = study.loads.get(load).and_then(|load| load.matrix.as_ref());
    matrix.is_some_and(|matrix| !matrix.connections.is_empty())
}

/// Something that only a step can have, of all of them together.
fn of_all_steps(study: &Study, derived: &Recomputed, at: &Pointer) -> Option<Violation> {
    let Recomputed { load, derived, .. } = derived;
    if derived.is_of_a_staircase() || !is_staircase(study, load) {
        return None;
    }
    let step = study.loads.get(load)?.names(load).last()?.to_string();
    let derived = serde_json::to_value(derived).ok()?.as_str()?.to_owned();
    let problem = Problem::NotOfAStaircase { derived, load: load.to_string(), step };
    let matrix = Pointer::to(&["loads", load.as_str(), "matrix"]);
    Some(at_value(problem, at.child("derived")).because_of(at.child("load")).because_of(matrix))
}

/// What a figure is held against: another variant that there is, and only where there are two.
fn other_variant(study: &Study, derived: &Recomputed, at: &Pointer) -> Option<Violation> {
    let against = derived.against.as_ref()?;
    let at = at.child("against");
    if !derived.derived.is_of_two_variants() || *against == derived.variant {
        let problem = Problem::AgainstNothing { against: against.to_string() };
        return Some(at_value(problem, at));
    }
    let problem = unknown("variant", against, study.variants.keys())?;
    Some(at_value(problem, at).from(&["variants"]))
}

/// A pod where there is none to name, none where there should be one, or one that does not exist.
fn pod_of_derived(app: &App, derived: &Recomputed, at: &Pointer) -> Option<Violation> {
    let of_a_pod = derived.derived.is_of_a_pod();
    let found = match &derived.pod {
        None if of_a_pod => at_value(Problem::NoPod, at.clone()).because_of(at.child("pod")),
        Some(pod) if !of_a_pod => {
            at_value(Problem::PodOfAll { pod: pod.to_string() }, at.child("pod"))
        }
        pod => {
            let problem = unknown("pod", pod.as_ref()?, pods(app).iter())?;
            because_of_pods(app, at_value(problem, at.child("pod")))
        }
    };
    Some(found.because_of(at.child("derived")))
}

/// Follows from which pods there are.
fn because_of_pods(app: &App, found: Violation) -> Violation {
    let found = found.from(&["app", "services"]).from(&["app", "databases"]);
    app.services.keys().fold(found, |found, service| {
        found.from(&["app", "services", service.as_str(), "replicas"])
    })
}

/// Pods that belong to no service and no database.
fn unknown_pods(app: &App, figures: &Figures, at: &Pointer) -> Vec<Violation> {
    let pods = pods(app);
    let unknown_pod = |(kind, pod, _): (&str, &Name, f64)| {
        let problem = unknown("pod", pod, pods.iter())?;
        Some(because_of_pods(app, at_key(problem, at.child(kind).child(pod))))
    };
    figures.of_pods().filter_map(unknown_pod).collect()
}

/// The pods of services and databases: several replicas are numbered.
fn pods(app: &App) -> Vec<Name> {
    let numbered = |name: &Name, replicas| -> Vec<Name> {
        (1..=replicas).filter_map(|number| format!("{name}-{number}").parse().ok()).collect()
    };
    let of_services = app.services.iter().flat_map(|(name, service)| match service.replicas {
        1 => vec![name.clone()],
        replicas => numbered(name, replicas),
    });
    of_services.chain(app.databases.keys().cloned()).collect()
}
