//! Whether published figures belong to something that the study has.

use super::{Nonsense, at_key, at_value, unknown};
use crate::study::fault::Problem;
use crate::study::model::{App, Figures, Recomputed, Reference, Study};
use crate::study::quantity::Name;
use crate::study::tree::Pointer;

/// All that does not fit in the reference.
pub(super) fn check(study: &Study) -> Vec<Nonsense> {
    let Some(reference) = &study.reference else { return Vec::new() };
    let mut found = unknown_recomputed(study, reference);
    for (variant, loads) in &reference.figures {
        let at = Pointer::to(&["reference", "figures", variant.as_str()]);
        let unknown_variant = unknown("variant", variant, study.variants.keys());
        found
            .extend(unknown_variant.map(|problem| at_key(problem, at.clone()).from(&["variants"])));
        for (load, figures) in loads {
            let at = at.child(load);
            let unknown_load = unknown("load", load, study.loads.keys());
            found.extend(unknown_load.map(|problem| at_key(problem, at.clone()).from(&["loads"])));
            found.extend(unknown_pods(&study.app, figures, &at));
        }
    }
    found
}

fn unknown_recomputed(study: &Study, reference: &Reference) -> Vec<Nonsense> {
    let at = Pointer::to(&["reference", "recomputed"]);
    let pods = pods(&study.app);
    let mut found = Vec::new();
    for (number, derived) in reference.recomputed.iter().enumerate() {
        let at = at.child(number);
        let variant = unknown("variant", &derived.variant, study.variants.keys());
        let load = unknown("load", &derived.load, study.loads.keys());
        let at_variant = |problem| at_value(problem, at.child("variant")).from(&["variants"]);
        found.extend(variant.map(at_variant));
        found.extend(load.map(|problem| at_value(problem, at.child("load")).from(&["loads"])));
        found.extend(pod_of_derived(&study.app, &pods, derived, &at));
    }
    found
}

/// A pod where there is none to name, none where there should be one, or one that does not exist.
fn pod_of_derived(
    app: &App,
    pods: &[Name],
    derived: &Recomputed,
    at: &Pointer,
) -> Option<Nonsense> {
    let of_a_pod = derived.derived.is_of_a_pod();
    let found = match &derived.pod {
        None if of_a_pod => at_value(Problem::NoPod, at.clone()).because_of(at.child("pod")),
        Some(pod) if !of_a_pod => {
            at_value(Problem::PodOfAll { pod: pod.to_string() }, at.child("pod"))
        }
        pod => {
            let problem = unknown("pod", pod.as_ref()?, pods.iter())?;
            because_of_pods(app, at_value(problem, at.child("pod")))
        }
    };
    Some(found.because_of(at.child("derived")))
}

/// Follows from which pods there are.
fn because_of_pods(app: &App, found: Nonsense) -> Nonsense {
    let found = found.from(&["app", "services"]).from(&["app", "databases"]);
    app.services.keys().fold(found, |found, service| {
        found.from(&["app", "services", service.as_str(), "replicas"])
    })
}

/// Pods that belong to no service and no database.
fn unknown_pods(app: &App, figures: &Figures, at: &Pointer) -> Vec<Nonsense> {
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
