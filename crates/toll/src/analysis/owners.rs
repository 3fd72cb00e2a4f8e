//! Whom CPU time and memory are charged to, from the sample to the report: the lab's components, where the pods of a
//! service with many are one owner, and so are their sidecars. What is said of single pods ([`super::kubectl_top`])
//! reads slices as stored.
//!
//! Counters and memory of one owner's components are added up; where one is missing, the sum is.

use std::collections::HashMap;
use std::rc::Rc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_lab::{Component, ComponentSample, Deployment, Proof, Reading, Sample, Service};

use crate::plan::Plan;
use crate::store::ArmRecord;

/// A service with more pods than this is one owner: nobody reads a table of its pods.
const MOST_PODS: usize = 4;

/// What an owner is to the request's bill, in the order of all tables: as a request meets them, then toll's own, then
/// what nobody owns.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// At the application's edge, the same in all variants.
    Gateway,
    Application,
    Sidecar,
    NodeProxy,
    Waypoint,
    EgressGateway,
    SniProxy,
    Database,
    /// Of a mesh that is installed in the cluster: it serves all arms, the baseline's too, so it is part of no arm's sum.
    ControlPlane,
    Collector,
    LoadGenerator,
    /// toll itself.
    Harness,
    /// What the host used beyond the sum of all components.
    Unattributed,
}

impl Role {
    /// Whether it is part of the system that is measured.
    pub fn is_measured(self) -> bool {
        !self.is_instrument() && !matches!(self, Self::ControlPlane | Self::Unattributed)
    }

    /// Whether it is toll's own: shown, and part of no sum.
    pub fn is_instrument(self) -> bool {
        matches!(self, Self::Collector | Self::LoadGenerator | Self::Harness)
    }

    /// Whether it is a proxy that the mesh puts in the way.
    pub fn is_data_plane(self) -> bool {
        use Role::{EgressGateway, NodeProxy, Sidecar, SniProxy, Waypoint};
        matches!(self, Sidecar | NodeProxy | Waypoint | EgressGateway | SniProxy)
    }

    /// Whether it runs in the pod of something else.
    pub fn is_guest(self) -> bool {
        matches!(self, Self::Sidecar | Self::SniProxy)
    }
}

impl From<toll_lab::Role> for Role {
    fn from(role: toll_lab::Role) -> Self {
        match role {
            toll_lab::Role::Application => Self::Application,
            toll_lab::Role::Sidecar => Self::Sidecar,
            toll_lab::Role::NodeProxy => Self::NodeProxy,
            toll_lab::Role::Waypoint => Self::Waypoint,
            toll_lab::Role::Gateway => Self::Gateway,
            toll_lab::Role::EgressGateway => Self::EgressGateway,
            toll_lab::Role::SniProxy => Self::SniProxy,
            toll_lab::Role::Database => Self::Database,
            toll_lab::Role::ControlPlane => Self::ControlPlane,
            toll_lab::Role::Collector => Self::Collector,
            toll_lab::Role::LoadGenerator => Self::LoadGenerator,
            toll_lab::Role::Harness => Self::Harness,
        }
    }
}

/// One pod, or all pods of a service.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Pods {
    /// The pod's name; where it is all pods of a service, the service's.
    pub name: String,
    /// How many pods the service has; absent for one pod.
    #[serde(rename = "pods", default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

impl Pods {
    pub fn one(name: impl Into<String>) -> Self {
        Self { name: name.into(), count: None }
    }

    /// What a pod of this service is listed as.
    pub fn of(pod: &str, service: &Service) -> Self {
        let Service { name, replicas, .. } = service;
        let is_shared = *replicas > MOST_PODS;
        if is_shared { Self { name: name.clone(), count: Some(*replicas) } } else { Self::one(pod) }
    }

    /// Whether it is this one pod.
    pub fn is(&self, pod: &str) -> bool {
        self.count.is_none() && self.name == pod
    }
}

/// Whom CPU time and memory are charged to.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Owner {
    pub role: Role,
    /// Where it runs; nameless for what nobody owns.
    #[serde(flatten)]
    pub pods: Pods,
}

impl Owner {
    /// Nobody that can be named.
    pub fn unattributed() -> Self {
        Self { role: Role::Unattributed, pods: Pods::one("") }
    }

    /// A component of its own.
    pub fn of(component: &Component) -> Self {
        Self { role: component.role.into(), pods: Pods::one(&component.pod) }
    }

    pub fn is_measured(&self) -> bool {
        self.role.is_measured()
    }

    pub fn is_data_plane(&self) -> bool {
        self.role.is_data_plane()
    }

    pub fn is_application(&self) -> bool {
        self.role == Role::Application
    }

    /// Whether it is measured and runs in this one pod.
    pub fn is_in(&self, pod: &str) -> bool {
        self.is_measured() && self.pods.is(pod)
    }
}

/// A sample by owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// On the samples' clock.
    pub at_ns: u64,
    /// CPU time of the whole host so far.
    pub busy_ns: u64,
    /// In the order of the sample.
    pub uses: Vec<Use>,
}

/// What one owner used so far, and holds; absent where a reading is.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    pub owner: Rc<Owner>,
    pub cpu_ns: Option<u64>,
    /// Anonymous memory, bytes.
    pub anonymous: Option<u64>,
    /// All memory that is charged to it, bytes.
    pub current: Option<u64>,
}

impl Use {
    fn of(owner: Rc<Owner>, sample: &ComponentSample) -> Self {
        Self {
            owner,
            cpu_ns: value(&sample.cpu_ns),
            anonymous: value(&sample.memory.anonymous),
            current: value(&sample.memory.current),
        }
    }

    fn add(&mut self, other: &Self) {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        self.cpu_ns = sum(self.cpu_ns, other.cpu_ns);
        self.anonymous = sum(self.anonymous, other.anonymous);
        self.current = sum(self.current, other.current);
    }
}

/// What was read, if it was.
pub fn value(reading: &Reading<u64>) -> Option<u64> {
    match reading {
        Reading::Value(value) => Some(*value),
        Reading::Missing(_) => None,
    }
}

/// The owners of an arm.
#[derive(Default)]
pub struct Owners<'a> {
    /// Of the pods that are no owners themselves.
    shared: HashMap<String, Pods>,
    known: HashMap<&'a Component, Rc<Owner>>,
}

impl<'a> Owners<'a> {
    /// Those of an arm at its size.
    pub fn of(plan: &Plan, arm: &ArmRecord) -> Self {
        let deployment = plan.deployment_at(&arm.arm, arm.size);
        let pods = deployment.iter().flat_map(Deployment::pods);
        let owners = pods.map(|(pod, service)| (Pods::of(&pod, service), pod));
        let shared = owners.filter(|(owner, _)| owner.count.is_some());
        Self { shared: shared.map(|(owner, pod)| (pod, owner)).collect(), known: HashMap::new() }
    }

    /// Each sample by owner.
    pub fn snapshots(&mut self, samples: &'a [Sample]) -> Vec<Snapshot> {
        samples.iter().map(|sample| self.snapshot(sample)).collect()
    }

    fn snapshot(&mut self, sample: &'a Sample) -> Snapshot {
        let mut uses: Vec<Use> = Vec::new();
        for of in &sample.components {
            let new = Use::of(self.owner(&of.component), of);
            match uses.iter_mut().find(|known| Rc::ptr_eq(&known.owner, &new.owner)) {
                Some(sum) => sum.add(&new),
                None => uses.push(new),
            }
        }
        Snapshot { at_ns: sample.at_ns, busy_ns: sample.host.busy_ns, uses }
    }

    /// The same for all components of one owner.
    fn owner(&mut self, component: &'a Component) -> Rc<Owner> {
        if let Some(known) = self.known.get(component) {
            return Rc::clone(known);
        }
        let new = Owner { role: component.role.into(), pods: self.pods(&component.pod) };
        let known = self.known.values().find(|known| ***known == new).map(Rc::clone);
        let owner = known.unwrap_or_else(|| Rc::new(new));
        self.known.insert(component, Rc::clone(&owner));
        owner
    }

    fn pods(&self, pod: &str) -> Pods {
        self.shared.get(pod).cloned().unwrap_or_else(|| Pods::one(pod))
    }

    /// How often the sidecars of each owner were crossed, in the order of the proof.
    pub fn traversals(&self, proof: &Proof) -> Vec<(Pods, u64)> {
        let mut counted: Vec<(Pods, u64)> = Vec::new();
        for way in &proof.traversals {
            let pods = self.pods(&way.pod);
            match counted.iter_mut().find(|(known, _)| *known == pods) {
                Some((_, sum)) => *sum += way.counted,
                None => counted.push((pods, way.counted)),
            }
        }
        counted
    }
}
