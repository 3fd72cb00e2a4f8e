//! Who used the CPU and the memory in a slice, and in several together.
//!
//! CPU comes from cumulative counters at a slice's ends (METHOD.md rule 5); what the host used beyond the
//! sum of the components is *unattributed* (kernel threads, softirq outside of any component, arms that stand by).

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::{Component, Reading, Role, Sample};

use super::groups::sidecar_label;
use super::tally::Tally;

/// An owner of CPU time or memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A component of the lab.
    Component(Component),
    /// Nobody that can be named.
    Unattributed,
}

impl Owner {
    /// `client`, `client sidecar`, `nginx (90 pods)`, `nginx sidecars (90)`, `node-1 proxy`, `egress gateway`,
    /// `egress SNI proxy`, `load generator`, `toll`, `unattributed`.
    pub fn label(&self) -> String {
        match self {
            Self::Unattributed => "unattributed".into(),
            Self::Component(c) => match c.role {
                Role::Application => c.pod.clone(),
                Role::Sidecar => sidecar_label(&c.pod),
                Role::Gateway | Role::Database | Role::Waypoint => c.pod.clone(),
                Role::EgressGateway => format!("{} gateway", c.pod),
                Role::SniProxy => format!("{} SNI proxy", c.pod),
                Role::NodeProxy => format!("{} proxy", c.pod),
                Role::Collector => "collector".into(),
                Role::LoadGenerator => "load generator".into(),
                Role::Harness => "toll".into(),
            },
        }
    }

    /// `application`, `sidecar`, `node_proxy`, `waypoint`, `gateway`, `egress_gateway`, `sni_proxy`, `database`,
    /// `collector`, `load_generator`, `harness`, `unattributed`.
    pub fn role(&self) -> &'static str {
        match self {
            Self::Unattributed => "unattributed",
            Self::Component(c) => match c.role {
                Role::Application => "application",
                Role::Sidecar => "sidecar",
                Role::NodeProxy => "node_proxy",
                Role::Waypoint => "waypoint",
                Role::Gateway => "gateway",
                Role::EgressGateway => "egress_gateway",
                Role::SniProxy => "sni_proxy",
                Role::Database => "database",
                Role::Collector => "collector",
                Role::LoadGenerator => "load_generator",
                Role::Harness => "harness",
            },
        }
    }

    /// Whether it is a proxy of the data plane.
    pub fn is_data_plane(&self) -> bool {
        let Self::Component(Component { role, .. }) = self else { return false };
        matches!(
            role,
            Role::Sidecar | Role::NodeProxy | Role::Waypoint | Role::EgressGateway | Role::SniProxy
        )
    }

    /// Whether its cost is part of the system that is measured.
    pub fn is_measured(&self) -> bool {
        let Self::Component(Component { role, .. }) = self else { return false };
        !matches!(role, Role::Collector | Role::LoadGenerator | Role::Harness)
    }

    /// The pod it runs in, when it is part of the system that is measured.
    pub fn pod(&self) -> Option<&str> {
        let Self::Component(component) = self else { return None };
        self.is_measured().then_some(component.pod.as_str())
    }

    /// Whether it is a gateway.
    pub fn is_gateway(&self) -> bool {
        matches!(self, Self::Component(Component { role: Role::Gateway, .. }))
    }

    /// Whether it is one of the application's services.
    pub fn is_application(&self) -> bool {
        matches!(self, Self::Component(Component { role: Role::Application, .. }))
    }
}

/// CPU time by owner in one window or several, nanoseconds; `None` for an owner whose counter could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuAccount {
    /// Length of the windows together, nanoseconds.
    pub window_ns: u64,
    /// In the order of the deployment, *unattributed* last.
    pub by_owner: Vec<(Owner, Option<f64>)>,
}

impl CpuAccount {
    /// Of the window between two samples.
    pub fn of(begin: &Sample, end: &Sample) -> Self {
        let mut by_owner = components(begin, end);
        by_owner.push((Owner::Unattributed, unattributed(begin, end, &by_owner)));
        Self { window_ns: end.at_ns.saturating_sub(begin.at_ns), by_owner }
    }

    /// Adds another window.
    pub fn add(&mut self, other: Self) {
        self.window_ns += other.window_ns;
        for (owner, ns) in other.by_owner {
            match self.by_owner.iter_mut().find(|(known, _)| *known == owner) {
                Some((_, sum)) => *sum = sum.zip(ns).map(|(sum, ns)| sum + ns),
                None => self.by_owner.push((owner, ns)),
            }
        }
    }

    /// CPU time of the owners that `wanted` picks, nanoseconds; `None` when one of them is unknown.
    pub fn total_ns(&self, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
        self.by_owner.iter().filter(|(owner, _)| wanted(owner)).map(|(_, ns)| *ns).sum()
    }

    /// Whether it has an owner that `wanted` picks.
    pub fn has(&self, wanted: impl Fn(&Owner) -> bool) -> bool {
        self.by_owner.iter().any(|(owner, _)| wanted(owner))
    }

    /// CPU of the owners that `wanted` picks, thousandths of a core.
    pub fn millicores(&self, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
        let used_ns = self.total_ns(wanted)?;
        (self.window_ns > 0).then(|| used_ns / self.window_ns as f64 * 1e3)
    }
}

fn components(begin: &Sample, end: &Sample) -> Vec<(Owner, Option<f64>)> {
    // A component without an earlier reading began at zero.
    let before: BTreeMap<&Component, &Reading<u64>> =
        begin.components.iter().map(|c| (&c.component, &c.cpu_ns)).collect();
    end.components
        .iter()
        .map(|c| {
            let earlier = before.get(&c.component).map_or(Some(0), |reading| value(reading));
            let used =
                value(&c.cpu_ns).zip(earlier).map(|(now, then)| now.saturating_sub(then) as f64);
            (Owner::Component(c.component.clone()), used)
        })
        .collect()
}

fn unattributed(begin: &Sample, end: &Sample, owned: &[(Owner, Option<f64>)]) -> Option<f64> {
    let busy = end.host.busy_ns.saturating_sub(begin.host.busy_ns) as f64;
    let owned: Option<f64> = owned.iter().map(|(_, ns)| *ns).sum();
    owned.map(|owned| busy - owned)
}

/// Anonymous memory by owner over time: nanoseconds on the samples' clock, bytes.
pub fn memory_series(tally: &Tally<'_>) -> Vec<(Owner, Vec<(u64, f64)>)> {
    let mut series: Vec<(Owner, Vec<(u64, f64)>)> = Vec::new();
    for sample in tally.samples() {
        for c in &sample.components {
            let Some(bytes) = value(&c.memory.anonymous) else { continue };
            let owner = Owner::Component(c.component.clone());
            let point = (sample.at_ns, bytes as f64);
            match series.iter_mut().find(|(known, _)| *known == owner) {
                Some((_, points)) => points.push(point),
                None => series.push((owner, vec![point])),
            }
        }
    }
    series
}

/// Mean anonymous memory of the measured system, bytes.
pub fn mean_memory(tally: &Tally<'_>) -> Option<f64> {
    mean(tally.samples().filter_map(|sample| memory_of(sample, Owner::is_measured)))
}

/// Mean memory charged to the owners that `wanted` picks, page cache included, bytes.
pub fn mean_charged(tally: &Tally<'_>, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    // Asked once a component, not once a sample: many pods in many slices are many questions.
    let components = tally.samples().flat_map(|sample| &sample.components);
    let mut known: BTreeSet<&Component> = components.map(|c| &c.component).collect();
    known.retain(|component| wanted(&Owner::Component((*component).clone())));
    let sum = |sample: &Sample| -> Option<f64> {
        let components = sample.components.iter().filter(|c| known.contains(&c.component));
        components.map(|c| value(&c.memory.current).map(|bytes| bytes as f64)).sum()
    };
    mean(tally.samples().filter_map(sum))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Whether the pod is an owner: there, and not one of many that are one.
pub fn has_pod(tally: &Tally<'_>, pod: &str) -> bool {
    let first = tally.samples().next();
    first.is_some_and(|sample| sample.components.iter().any(|c| c.component.pod == pod))
}

/// Anonymous memory of the owners that `wanted` picks, bytes; `None` when one is unknown or there is none.
pub fn memory_of(sample: &Sample, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    let owners = sample.components.iter();
    let mut picked = owners.filter(|c| wanted(&Owner::Component(c.component.clone()))).peekable();
    picked.peek()?;
    picked.map(|c| value(&c.memory.anonymous).map(|bytes| bytes as f64)).sum()
}

fn value(reading: &Reading<u64>) -> Option<u64> {
    match reading {
        Reading::Value(value) => Some(*value),
        Reading::Missing(_) => None,
    }
}
