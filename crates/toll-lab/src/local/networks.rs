//! Makes the networks of an environment: a namespace for each pod and each node's bridge, and the links between.
//!
//! The load's pod and the first node's pods hang on the first bridge; the other bridges are linked to it. What the
//! scripts say is `network`'s; who has which address is `topology`'s.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::bring_up::inside;
use super::environment::LocalEnvironment;
use super::isolation::Isolation;
use super::namespace::Namespace;
use super::network::{self, Port};
use super::place::Place;
use super::room::Needs;
use super::tools::Tool;
use super::{concurrent, link, step, topology};
use crate::data_plane::{Wire, wire};
use crate::deployment::Program;
use crate::{LabError, Reading};

/// The networks of one environment.
#[derive(Debug)]
pub(super) struct Networks {
    /// Where the load and its probes run.
    pub(super) load: Namespace,
    /// By the name of the pod: those of the application, of node proxies and of the waypoint.
    pub(super) pods: BTreeMap<String, Namespace>,
    /// In the order of the topology's nodes.
    pub(super) bridges: Vec<Namespace>,
    /// Whether what the bridges carry is counted, or why not.
    wire: Result<(), String>,
}

impl Networks {
    /// Brings up the links inside of the pods.
    fn address(&self, ends: &[topology::End]) -> Result<(), LabError> {
        let load = ("load", &self.load, network::LOAD_IP);
        let pods = ends.iter().map(|end| (end.pod.as_str(), &self.pods[&end.pod], end.ip));
        let all: Vec<_> = [load].into_iter().chain(pods).collect();
        let links: Vec<_> = all.iter().map(|(_, namespace, ip)| (*namespace, *ip)).collect();
        let outcomes = link::bring_up(&links).map_err(LabError::Namespaces)?;
        all.iter().zip(outcomes).try_for_each(|((pod, ..), outcome)| {
            outcome.map_err(|source| LabError::Link { pod: (*pod).to_owned(), source })
        })
    }
}

impl LocalEnvironment {
    /// The network of a pod; none with loopback isolation. Node proxies (`node-1`) and the waypoint have one, too.
    pub(super) fn namespace_of(&self, pod: &str) -> Option<&Namespace> {
        self.networks.as_ref()?.pods.get(pod)
    }

    /// Raises what limits of the system its pods would exceed.
    pub(super) fn make_room(&mut self) -> Result<(), LabError> {
        if self.isolation == Isolation::Loopback {
            return Ok(());
        }
        let ends = topology::ends(&self.deployment, &self.topology);
        Needs::of(&self.deployment, &self.topology, &ends).make_room(&mut self.ledger)
    }

    /// Makes all of them, and links them.
    pub(super) fn make_networks(&mut self) -> Result<(), LabError> {
        if self.isolation == Isolation::Loopback {
            return Ok(());
        }
        let ends = topology::ends(&self.deployment, &self.topology);
        let count = 1 + ends.len() + self.topology.nodes.len();
        let made = step("namespaces", || match self.isolation {
            Isolation::Loopback => Ok(Vec::new()),
            Isolation::Pods => Namespace::privileged(count),
            Isolation::Rootless => Namespace::rootless(count),
        });
        let mut made = made.map_err(LabError::Namespaces)?.into_iter();
        let mut next = || made.next().expect("as many were made as are counted above");
        self.networks = Some(Networks {
            load: next(),
            pods: ends.iter().map(|end| (end.pod.clone(), next())).collect(),
            bridges: self.topology.nodes.iter().map(|_| next()).collect(),
            wire: Err("nothing counts it yet".to_owned()),
        });
        step("links", || self.link(&ends))?;
        let counted = step("counters of the wire", || self.count_wire());
        if let Some(networks) = &mut self.networks {
            networks.wire = counted;
        }
        Ok(())
    }

    /// Makes the bridges and the pairs that link pods and bridges to them, a process for each bridge.
    fn link(&self, ends: &[topology::End]) -> Result<(), LabError> {
        let Some(networks) = &self.networks else { return Ok(()) };
        let others = networks.bridges.iter().skip(1).cloned().collect::<Vec<_>>();
        for (node, bridge) in networks.bridges.iter().enumerate() {
            let load = (node == 0).then_some(&networks.load);
            let of_node = ends.iter().filter(|end| end.node == node);
            let pods = load.into_iter().chain(of_node.map(|end| &networks.pods[&end.pod]));
            let uplinks = if node == 0 { others.as_slice() } else { &[] };
            let descriptors: Vec<Arc<OwnedFd>> =
                pods.chain(uplinks).map(Namespace::descriptor).collect();
            let numbers = descriptors.iter().map(|fd| fd.as_raw_fd());
            let pods = descriptors.len() - uplinks.len();
            let ports = numbers.enumerate().map(|(index, fd)| match index < pods {
                true => Port::Pod(fd),
                false => Port::Bridge(fd),
            });
            let script = network::switch_script(node > 0, ports);
            let place = Place {
                namespace: Some(bridge.clone()),
                inherited: descriptors,
                ..Place::default()
            };
            self.ip(&format!("the bridge of {}", self.topology.nodes[node].name), &place, &script)?;
        }
        step("addresses", || networks.address(ends))
    }

    /// Has each bridge count what it carries.
    fn count_wire(&self) -> Result<(), String> {
        let collectors = self.deployment.pods().into_iter().zip(&self.topology.pods);
        let collectors = collectors
            .filter(|((_, service), _)| matches!(service.program, Program::Collector))
            .map(|(_, addresses)| addresses.ip);
        let outside: Vec<_> = [self.topology.load_ip].into_iter().chain(collectors).collect();
        let script = wire::script(&outside);
        self.on_each_bridge(&["-f", "-"], &script).map(|_| ())
    }

    /// What each node's bridge has carried since it was made; none with loopback isolation. Missing where this
    /// kernel's firewall does not see bridges.
    pub(super) fn wire(&self) -> Reading<Vec<Wire>> {
        let counted = self.networks.as_ref().map_or(Ok(()), |networks| networks.wire.clone());
        let listed = counted.and_then(|()| self.on_each_bridge(&wire::LIST_COUNTERS, ""));
        let wires = listed.and_then(|texts| {
            let nodes = self.topology.nodes.iter().map(|node| node.name.as_str());
            let read = nodes.zip(&texts).map(|(node, text)| wire::read(node, text));
            read.collect::<Option<Vec<_>>>().ok_or_else(|| "nft lists no counters".to_owned())
        });
        wires.map_or_else(Reading::Missing, Reading::Value)
    }

    /// What `nft` prints in the network of each bridge, as many at once as there are cores.
    fn on_each_bridge(&self, args: &[&str], script: &str) -> Result<Vec<String>, String> {
        let bridges = self.networks.iter().flat_map(|networks| &networks.bridges);
        let nodes = self.topology.nodes.iter().map(|node| format!("the bridge of {}", node.name));
        let bridges: Vec<_> = nodes.zip(bridges.map(inside)).collect();
        let nft = Tool { launcher: &self.launcher, program: "nft", args };
        concurrent::for_each(&bridges, |(name, place)| nft.run(name, place, script))
            .map_err(|e| e.to_string())
    }

    fn ip(&self, pod: &str, place: &Place, script: &str) -> Result<(), LabError> {
        self.tool("ip", &["-batch", "-"], pod, place, script).map(|_| ())
    }
}
