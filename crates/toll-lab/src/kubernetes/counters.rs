//! The counters of all containers of an arm, read by the node pods at the instant at which they are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::link::Link;
use crate::error::KubernetesError;
use crate::in_cluster::protocol::{ContainerCounters, NodeCounters, Watch};
use crate::sampler::monotonic_ns;
use crate::{Component, ComponentSample, HostSample, MemorySample, Reading, Sample};

/// A container that is counted, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) component: Component,
    pub(super) node: String,
    /// Without the runtime's name.
    pub(super) container: String,
}

/// The counters of one arm.
#[derive(Debug)]
pub(super) struct Counters {
    link: Arc<Link>,
    /// By which the nodes know the arm.
    arm: String,
    /// Address and port of each node's pod, by the node's name.
    nodes: BTreeMap<String, String>,
    counted: Vec<Counted>,
    last: Sample,
}

impl Counters {
    /// Has the nodes find these containers.
    ///
    /// # Errors
    /// When a node does not find one.
    pub(super) fn open(
        link: Arc<Link>,
        arm: &str,
        nodes: &BTreeMap<String, String>,
        counted: Vec<Counted>,
    ) -> Result<Self, KubernetesError> {
        let here: BTreeSet<&String> = counted.iter().map(|one| &one.node).collect();
        let nodes: BTreeMap<String, String> =
            nodes.iter().filter(|(node, _)| here.contains(node)).map(owned).collect();
        for (node, address) in &nodes {
            let containers = counted.iter().filter(|one| one.node == *node);
            let containers = containers.map(|one| one.container.clone()).collect();
            link.put(&format!("/to/{address}/counters/{arm}"), &Watch { containers })?;
        }
        let host = HostSample { busy_ns: 0, steal_ns: 0, runnable: 0 };
        let last = Sample { at_ns: 0, took_ns: 0, components: vec![], host, metrics: vec![] };
        let mut counters = Self { link, arm: arm.to_owned(), nodes, counted, last };
        counters.last = counters.read()?;
        Ok(counters)
    }

    /// Has the nodes forget them.
    pub(super) fn close(&self) {
        for address in self.nodes.values() {
            // A node that is gone has forgotten them.
            let _ = self.link.delete(&format!("/to/{address}/counters/{}", self.arm));
        }
    }

    /// All counters now; what cannot be read is said to be missing.
    pub(super) fn sample(&mut self) -> Sample {
        match self.read() {
            Ok(sample) => {
                self.last = sample.clone();
                sample
            }
            Err(error) => missing(&self.last, &error.to_string()),
        }
    }

    fn read(&self) -> Result<Sample, KubernetesError> {
        if self.nodes.is_empty() {
            return Ok(combined(&[], &self.counted));
        }
        let ask = |address: &String| {
            self.link.get::<NodeCounters>(&format!("/to/{address}/counters/{}", self.arm))
        };
        let answers = self.nodes.values().map(ask).collect::<Result<Vec<_>, _>>()?;
        Ok(combined(&answers, &self.counted))
    }
}

fn owned((name, address): (&String, &String)) -> (String, String) {
    (name.clone(), address.clone())
}

/// The nodes' counters as one sample: components in order, those of several containers added up.
fn combined(nodes: &[NodeCounters], counted: &[Counted]) -> Sample {
    let mut components: Vec<ComponentSample> = Vec::new();
    for one in counted {
        let found = nodes.iter().find_map(|node| node.containers.get(&one.container));
        let counters =
            found.cloned().unwrap_or_else(|| nothing("no pod reads the counters of its node"));
        match components.iter_mut().find(|known| known.component == one.component) {
            Some(known) => add(known, counters),
            None => components.push(ComponentSample {
                component: one.component.clone(),
                cpu_ns: counters.cpu_ns,
                memory: counters.memory,
            }),
        }
    }
    let host =
        nodes.iter().fold(HostSample { busy_ns: 0, steal_ns: 0, runnable: 0 }, |sum, node| {
            HostSample {
                busy_ns: sum.busy_ns + node.host.busy_ns,
                steal_ns: sum.steal_ns + node.host.steal_ns,
                runnable: sum.runnable + node.host.runnable,
            }
        });
    Sample {
        at_ns: nodes.first().map_or_else(monotonic_ns, |node| node.at_ns),
        took_ns: nodes.iter().map(|node| node.took_ns).max().unwrap_or(0),
        components,
        host,
        metrics: Vec::new(),
    }
}

fn nothing(reason: &str) -> ContainerCounters {
    let none = || Reading::Missing(reason.to_owned());
    let memory = MemorySample { current: none(), anonymous: none(), peak: none() };
    ContainerCounters { cpu_ns: none(), memory }
}

fn add(sum: &mut ComponentSample, more: ContainerCounters) {
    sum.cpu_ns = plus(&sum.cpu_ns, &more.cpu_ns);
    sum.memory.current = plus(&sum.memory.current, &more.memory.current);
    sum.memory.anonymous = plus(&sum.memory.anonymous, &more.memory.anonymous);
    sum.memory.peak = plus(&sum.memory.peak, &more.memory.peak);
}

fn plus(one: &Reading<u64>, other: &Reading<u64>) -> Reading<u64> {
    match (one, other) {
        (Reading::Value(one), Reading::Value(other)) => Reading::Value(one + other),
        (Reading::Missing(why), _) | (_, Reading::Missing(why)) => Reading::Missing(why.clone()),
    }
}

/// The same components, and why nothing was read of them.
fn missing(last: &Sample, reason: &str) -> Sample {
    let component = |one: &ComponentSample| {
        let ContainerCounters { cpu_ns, memory } = nothing(reason);
        ComponentSample { component: one.component.clone(), cpu_ns, memory }
    };
    Sample { components: last.components.iter().map(component).collect(), ..last.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn node(containers: &[(&str, u64)]) -> NodeCounters {
        let counters =
            |cpu_ns| ContainerCounters { cpu_ns: Reading::Value(cpu_ns), ..nothing("not here") };
        NodeCounters {
            at_ns: 7,
            took_ns: 1,
            host: HostSample { busy_ns: 100, steal_ns: 0, runnable: 1 },
            containers: containers.iter().map(|(id, ns)| ((*id).into(), counters(*ns))).collect(),
        }
    }

    fn counted(role: Role, container: &str) -> Counted {
        let component = Component { role, pod: "load".into() };
        Counted { component, node: "n".into(), container: container.into() }
    }

    #[test]
    fn load_pods_of_several_nodes_are_one_component_and_the_nodes_one_machine() {
        let nodes = [node(&[("a", 3)]), node(&[("b", 4)])];
        let load = Role::LoadGenerator;
        let sample = combined(&nodes, &[counted(load, "a"), counted(load, "b")]);
        assert_eq!(sample.components.len(), 1);
        assert_eq!(sample.components[0].cpu_ns, Reading::Value(7));
        assert_eq!(sample.host.busy_ns, 200);
    }

    #[test]
    fn a_container_that_no_node_counts_makes_its_components_reading_missing() {
        let nodes = [node(&[("a", 3)])];
        let load = Role::LoadGenerator;
        let sample = combined(&nodes, &[counted(load, "a"), counted(load, "gone")]);
        assert!(matches!(sample.components[0].cpu_ns, Reading::Missing(_)));
    }
}
