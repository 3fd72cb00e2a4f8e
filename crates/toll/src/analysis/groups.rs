//! Turns an arm's readings by pod into readings by owner: the pods of a service with many of them are one owner,
//! `nginx (90 pods)`, and so are their sidecars. Everything behind sees only owners; what is said of single pods
//! ([`super::kubectl_top`]) reads slices as stored.
//!
//! Counters and memory of one owner's components are added up; where one is missing, the sum is.

use std::borrow::Cow;
use std::collections::HashMap;

use toll_lab::{
    Component, ComponentSample, Deployment, MemorySample, Proof, Reading, Role, Sample, Service,
    Traversal,
};

use crate::plan::Plan;
use crate::store::ArmRecord;

/// A service with more pods than this is one owner: nobody reads a table of its pods.
const MOST_PODS: usize = 4;

/// The owner of what a pod of this service uses: the pod, or all pods of the service when there are many.
pub fn owner_of(pod: &str, service: &Service) -> String {
    let Service { name, replicas, .. } = service;
    if *replicas > MOST_PODS { format!("{name} ({replicas} pods)") } else { pod.into() }
}

/// `nginx sidecars (90)` for `nginx (90 pods)`, `client sidecar` for `client`.
pub fn sidecar_label(pod: &str) -> String {
    match pod.strip_suffix(" pods)").and_then(|many| many.split_once(" (")) {
        Some((service, count)) => format!("{service} sidecars ({count})"),
        None => format!("{pod} sidecar"),
    }
}

/// The owner of each pod that is not one itself.
pub struct Names(HashMap<String, String>);

impl Names {
    /// Those of an arm at its size.
    pub fn of(plan: &Plan, arm: &ArmRecord) -> Self {
        let deployment = plan.deployment_at(&arm.arm, arm.size);
        let pods = deployment.iter().flat_map(Deployment::pods);
        let owners = pods.map(|(pod, service)| (owner_of(&pod, service), pod));
        Self(owners.filter(|(owner, pod)| owner != pod).map(|(owner, pod)| (pod, owner)).collect())
    }

    /// Components come in one order in all samples of a slice, but for those that come later: each sample's are
    /// looked for where they were in the one before.
    pub fn of_samples<'a>(&self, samples: &'a [Sample]) -> Cow<'a, [Sample]> {
        if self.0.is_empty() {
            return Cow::Borrowed(samples);
        }
        let mut places = Places::default();
        let of = |sample: &Sample| {
            places.follow(self, &sample.components);
            let components = places.sums(&sample.components);
            let Sample { at_ns, took_ns, ref host, ref metrics, .. } = *sample;
            Sample { at_ns, took_ns, components, host: host.clone(), metrics: metrics.clone() }
        };
        Cow::Owned(samples.iter().map(of).collect())
    }

    /// What crossed the sidecars of each owner.
    pub fn of_traversals(&self, proof: &Proof) -> Vec<Traversal> {
        let mut traversals: Vec<Traversal> = Vec::new();
        let mut places: HashMap<(String, bool, Option<String>), usize> = HashMap::new();
        for way in &proof.traversals {
            let pod = self.owner(&way.pod);
            let inbound = way.direction == toll_lab::Direction::Inbound;
            let place = *places
                .entry((pod.into(), inbound, way.callee.clone()))
                .or_insert(traversals.len());
            match traversals.get_mut(place) {
                Some(known) => known.counted += way.counted,
                None => traversals.push(Traversal { pod: pod.into(), ..way.clone() }),
            }
        }
        traversals
    }

    fn owner<'a>(&'a self, pod: &'a str) -> &'a str {
        self.0.get(pod).map_or(pod, String::as_str)
    }
}

/// Where the components of a sample go.
#[derive(Default)]
struct Places {
    components: Vec<Component>,
    /// Of each component, its place among the owners.
    places: Vec<usize>,
    owners: Vec<Component>,
}

impl Places {
    fn follow(&mut self, names: &Names, components: &[ComponentSample]) {
        let known = self.components.len() == components.len()
            && self.components.iter().zip(components).all(|(one, other)| *one == other.component);
        if !known {
            *self = Self::of(names, components);
        }
    }

    fn of(names: &Names, components: &[ComponentSample]) -> Self {
        let mut found: HashMap<(Role, &str), usize> = HashMap::new();
        let mut new = Self::default();
        for ComponentSample { component, .. } in components {
            let pod = names.owner(&component.pod);
            let place = *found.entry((component.role, pod)).or_insert(new.owners.len());
            if place == new.owners.len() {
                new.owners.push(Component { role: component.role, pod: pod.into() });
            }
            new.places.push(place);
            new.components.push(component.clone());
        }
        new
    }

    fn sums(&self, components: &[ComponentSample]) -> Vec<ComponentSample> {
        let mut sums: Vec<ComponentSample> = Vec::with_capacity(self.owners.len());
        for (place, of) in self.places.iter().zip(components) {
            match sums.get_mut(*place) {
                Some(sum) => add_to(sum, of),
                None => {
                    let component = self.owners[*place].clone();
                    sums.push(ComponentSample { component, ..of.clone() });
                }
            }
        }
        sums
    }
}

fn add_to(sum: &mut ComponentSample, of: &ComponentSample) {
    let MemorySample { current, anonymous, peak } = &mut sum.memory;
    add(&mut sum.cpu_ns, &of.cpu_ns);
    add(current, &of.memory.current);
    add(anonymous, &of.memory.anonymous);
    // Each had its own at another time: the sum is what all together had at the most.
    add(peak, &of.memory.peak);
}

fn add(sum: &mut Reading<u64>, of: &Reading<u64>) {
    match (&mut *sum, of) {
        (Reading::Value(sum), Reading::Value(of)) => *sum += of,
        (Reading::Value(_), Reading::Missing(_)) => *sum = of.clone(),
        (Reading::Missing(_), _) => {}
    }
}
