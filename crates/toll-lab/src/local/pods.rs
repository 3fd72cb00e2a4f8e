//! The pods of an environment: their networks, what stands in their firewalls, and where a process of each starts.

use std::collections::BTreeMap;

use super::setup::{Machine, Setup};
use crate::evidence::Wire;
use crate::host::error::HostError;
use crate::host::namespace::Namespace;
use crate::host::networks::Networks;
use crate::host::pinning::cpu_set;
use crate::host::process::Launcher;
use crate::host::spawn::SpawnContext;
use crate::host::timing::step;
use crate::host::tools::Tool;
use crate::host::{concurrent, firewall};
use crate::planes::ambient::Redirect;
use crate::topology::{self, HBONE_PORT, Site};
use crate::{LabError, Reading, Role};

/// The pods of one environment; none has a network of its own with loopback isolation, or before they are made.
#[derive(Debug, Default)]
pub(super) struct Pods {
    networks: Option<Networks>,
}

impl Pods {
    /// Makes all networks, links them and has the bridges count.
    ///
    /// # Errors
    /// When the machine refuses one.
    pub(super) fn make(setup: &Setup, launcher: &Launcher) -> Result<Self, LabError> {
        let ends = topology::ends(&setup.deployment, &setup.topology);
        let nodes = setup.topology.nodes.iter().map(|node| node.name.clone()).collect();
        let made = Networks::make(setup.machine.isolation, nodes, &ends, launcher)?;
        let collectors =
            setup.sites().filter(|site| site.service.program.role() == Role::Collector);
        let collectors = collectors.map(|site| site.pod.ip);
        let outside: Vec<_> = [setup.topology.load_ip].into_iter().chain(collectors).collect();
        let networks = made.map(|mut networks| {
            step("counters of the wire", || networks.count(&outside, HBONE_PORT, launcher));
            networks
        });
        Ok(Self { networks })
    }

    /// The network of a pod; none with loopback isolation. Node proxies (`node-1`) and the waypoint have one, too.
    pub(super) fn network(&self, pod: &str) -> Option<&Namespace> {
        self.networks.as_ref()?.pod(pod)
    }

    /// Where the load and its probes run.
    pub(super) fn load(&self, machine: &Machine) -> SpawnContext {
        SpawnContext {
            namespace: self.networks.as_ref().map(|networks| networks.load.clone()),
            cores: machine.pinning.load().map(cpu_set),
            realtime: machine.options.realtime || machine.load_first,
            ..SpawnContext::default()
        }
    }

    /// As the load's probes run, but inside of this pod.
    pub(super) fn probe(&self, machine: &Machine, pod: &str) -> SpawnContext {
        SpawnContext { namespace: self.network(pod).cloned(), ..self.load(machine) }
    }

    /// Inside of the pod at `site`, where names are known as its program knows them.
    pub(super) fn inside(&self, site: &Site<'_>) -> SpawnContext {
        SpawnContext {
            namespace: self.network(&site.pod.pod).cloned(),
            hosts: Some(site.file(HOSTS)).filter(|path| path.is_file()),
            ..SpawnContext::default()
        }
    }

    /// Loads the firewall's scripts of the pods that have a network of their own.
    ///
    /// # Errors
    /// When the kernel refuses one.
    pub(super) fn redirect(
        &self,
        redirects: Vec<Redirect>,
        launcher: &Launcher,
    ) -> Result<(), LabError> {
        let own = |redirect: Redirect| Some((self.network(&redirect.pod)?, redirect));
        let redirects: Vec<(&Namespace, Redirect)> =
            redirects.into_iter().filter_map(own).collect();
        let nft = Tool { launcher, program: "nft", args: &["-f", "-"] };
        concurrent::for_each(&redirects, |(network, redirect)| {
            let pod = format!("the pod {}", redirect.pod);
            nft.run(&pod, &SpawnContext::inside(network), &redirect.script)
        })?;
        Ok(())
    }

    /// Lets programs of this pod that are not root listen on ports below 1024, as container runtimes do.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub(super) fn open_low_ports(&self, pod: &str) -> Result<(), LabError> {
        let Some(network) = self.network(pod) else { return Ok(()) };
        Ok(network.open_low_ports().map_err(HostError::Namespaces)?)
    }

    /// What the firewall of each of these pods holds.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(super) fn rules(
        &self,
        pods: &[&str],
        launcher: &Launcher,
    ) -> Result<BTreeMap<String, String>, LabError> {
        let own: Vec<(&str, &Namespace)> =
            pods.iter().filter_map(|pod| Some((*pod, self.network(pod)?))).collect();
        let networks: Vec<&Namespace> = own.iter().map(|(_, network)| *network).collect();
        let may_have = firewall::may_have_tables(&networks).map_err(HostError::Namespaces)?;
        let own: Vec<_> = own.into_iter().zip(may_have).collect();
        let nft = Tool { launcher, program: "nft", args: &["list", "ruleset"] };
        let rules = concurrent::for_each(&own, |((pod, network), may_have)| {
            let rules = match may_have {
                true => nft.run(pod, &SpawnContext::inside(network), "")?,
                false => String::new(),
            };
            Ok::<_, HostError>(((*pod).to_owned(), rules))
        });
        Ok(rules?.into_iter().collect())
    }

    /// What each node's bridge has carried since it was made; of no node with loopback isolation. Missing where
    /// the kernel's firewall does not see bridges.
    pub(super) fn wire(&self, launcher: &Launcher) -> Reading<Vec<Wire>> {
        match &self.networks {
            Some(networks) => networks.wire(launcher),
            None => Reading::Value(Vec::new()),
        }
    }
}

/// How the name of a pod's hosts file ends.
pub(super) const HOSTS: &str = "hosts";
