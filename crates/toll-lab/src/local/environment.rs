//! One deployment as it runs on this machine: what it consists of, how it is sampled, how it goes away.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::ledger::Ledger;
use super::load::LocalEngine;
use super::networks::Networks;
use super::place::{Place, User};
use super::process::{Launcher, Process};
use super::proof::OpenProof;
use super::scraper::Scraper;
use super::served::{Served, served};
use super::zds::Zds;
use super::{Isolation, LocalLab, cgroups, cpu_set, jvm, pinning::Pinning, ports, step, topology};
use crate::data_plane::{Fingerprints, PROXY_UID, ProxyPlan, Topology, ztunnel};
use crate::deployment::{self, Deployment};
use crate::lab::LocalOptions;
use crate::sampler::{Hierarchies, Sampler, Source};
use crate::{Component, LabError, Role, Sample};

/// A deployment that runs, or is on its way up.
#[derive(Debug)]
pub(crate) struct LocalEnvironment {
    pub(super) options: LocalOptions,
    pub(super) isolation: Isolation,
    pub(super) pinning: Pinning,
    /// Whether the load alone runs as `SCHED_RR`.
    pub(super) load_first: bool,
    pub(super) deployment: Deployment,
    pub(super) topology: Topology,
    pub(super) plans: Vec<ProxyPlan>,
    /// The nodes' proxies where these are ztunnels.
    pub(super) ztunnels: Vec<ztunnel::Plan>,
    /// What gives them the networks of their pods, by node.
    pub(super) zds: BTreeMap<String, Zds>,
    /// Configurations, identities and sockets.
    pub(super) folder: PathBuf,
    pub(super) logs: PathBuf,
    /// None with loopback isolation.
    pub(super) networks: Option<Networks>,
    pub(super) cgroups: Hierarchies,
    pub(super) load_cgroup: Hierarchies,
    pub(super) components: Vec<(Component, Arc<Process>)>,
    /// How many of the components, from the first on, were seen ready.
    pub(super) ready: usize,
    pub(super) load: Option<Arc<Process>>,
    pub(super) sampler: Sampler,
    /// Only where a service has an endpoint.
    pub(super) scraper: Option<Scraper>,
    /// Who vouches for the entry to the load, PEM; none where the load speaks plaintext.
    pub(super) entry_ca: Option<String>,
    /// Every nginx.
    pub(super) served: Vec<Served>,
    /// Where the SNI proxy tells what it has counted, once it was started.
    pub(super) sni_status: Option<PathBuf>,
    /// The certificates of external services and of those who call them.
    pub(super) issued: Fingerprints,
    /// What serves each external database, by pod, as it says itself.
    pub(super) database_servers: BTreeMap<String, String>,
    pub(super) proof: Option<OpenProof>,
    pub(super) ledger: Ledger,
    pub(super) launcher: Launcher,
    is_down: bool,
}

/// One program to start as a component, in the network of the component's pod.
pub(super) struct Program {
    pub(super) component: Component,
    pub(super) command: Command,
    /// For errors.
    pub(super) path: PathBuf,
    pub(super) user: User,
    /// Descriptors that it inherits under the same numbers: other pods' networks, for a node's proxy.
    pub(super) inherited: Vec<Arc<OwnedFd>>,
}

impl LocalEnvironment {
    /// Opens the ledger, the folder and the cgroups; starts nothing.
    pub(super) fn new(
        lab: &LocalLab,
        deployment: &Deployment,
        logs: &Path,
    ) -> Result<Self, LabError> {
        let mut ledger = Ledger::open().map_err(LabError::Ledger)?;
        let folder = lab.options.work_dir.join(&ledger.id);
        let planned = cgroups::environment(&lab.mounts, &ledger.id);
        ledger.directory(&folder).map_err(LabError::Ledger)?;
        for dir in cgroups::directories(&planned) {
            ledger.cgroup(dir).map_err(LabError::Ledger)?;
        }
        let mut free = free_ports(deployment, lab.isolation)?.into_iter();
        let deployment = jvm::with_absolute_jar(deployment);
        let deployment = topology::with_own_ports(deployment, lab.isolation, &mut free);
        let topology = topology::plan(&deployment, lab.isolation, free);
        let mut environment = Self {
            options: lab.options.clone(),
            isolation: lab.isolation,
            pinning: lab.pinning.clone(),
            load_first: lab.load_first,
            deployment,
            topology,
            plans: Vec::new(),
            ztunnels: Vec::new(),
            zds: BTreeMap::new(),
            folder,
            logs: logs.to_owned(),
            networks: None,
            cgroups: cgroups::make_environment(&planned),
            load_cgroup: Hierarchies::default(),
            components: Vec::new(),
            ready: 0,
            load: None,
            sampler: Sampler::open().map_err(LabError::HostCounters)?,
            scraper: None,
            entry_ca: None,
            served: Vec::new(),
            sni_status: None,
            issued: Fingerprints::default(),
            database_servers: BTreeMap::new(),
            proof: None,
            ledger,
            launcher: Launcher::start().map_err(LabError::Ledger)?,
            is_down: false,
        };
        environment.list_components();
        Ok(environment)
    }

    /// Fixes the order of the samples before anything runs. The load comes after them when it starts.
    fn list_components(&mut self) {
        let pods = self.deployment.pods().into_iter();
        let components = pods.flat_map(|(pod, service)| {
            let meshed = topology::has_sidecar(&self.deployment, service);
            let component = |role| Component { role, pod: pod.clone() };
            let sidecar = meshed.then(|| component(Role::Sidecar));
            [Some(component(role_of(&service.program))), sidecar]
        });
        let ends = topology::ends(&self.deployment, &self.topology).into_iter();
        let behind = ends.skip(self.topology.pods.len()).flat_map(|end| {
            let component = |role| Component { role, pod: end.pod.clone() };
            self.roles_of(&end.pod).into_iter().map(component).collect::<Vec<_>>()
        });
        let all: Vec<Component> = components.flatten().chain(behind).collect();
        for component in all {
            self.sampler.watch(component, Source::missing("it has not been started"));
        }
    }

    /// What runs in a pod that is the data plane's own.
    fn roles_of(&self, pod: &str) -> Vec<Role> {
        let topology = &self.topology;
        if topology.waypoint.as_ref().is_some_and(|waypoint| waypoint.pod == pod) {
            return vec![Role::Waypoint];
        }
        if topology.egress.as_ref().is_none_or(|egress| egress.pod != pod) {
            return vec![Role::NodeProxy];
        }
        let sni_proxy = super::has_sni_proxy(&self.deployment).then_some(Role::SniProxy);
        [Role::EgressGateway].into_iter().chain(sni_proxy).collect()
    }

    pub(crate) fn entry_url(&self) -> String {
        let scheme = if self.entry_ca.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.entry())
    }

    pub(crate) fn entry_ca(&self) -> Option<String> {
        self.entry_ca.clone()
    }

    /// Where probes of the whole path run, and where they connect: in the load's pod to the entry, or inside of a
    /// gateway that speaks TLS to its clients.
    ///
    /// # Errors
    /// When the deployment does not have its entry.
    pub(super) fn way_in(&self) -> Result<(Place, SocketAddrV4), LabError> {
        let entry = topology::front(&self.topology, &self.deployment.entry)?;
        let mut pods = self.topology.pods.iter();
        let pod = pods.find(|pod| pod.service == self.deployment.entry);
        let pod = pod.expect("the entry has a front, so it has a pod");
        Ok(match pod.probe_port {
            None => (self.load_place(), entry),
            Some(port) => {
                let namespace = self.namespace_of(&pod.pod).cloned();
                let inside = Place { namespace, ..self.load_place() };
                (inside, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
            }
        })
    }

    /// The plan names an entry that the deployment has: `up` has connected to it.
    pub(super) fn entry(&self) -> SocketAddrV4 {
        topology::front(&self.topology, &self.deployment.entry)
            .expect("the entry answered when the environment came up")
    }

    /// Counters first: no endpoint's slowness moves them.
    pub(crate) fn sample(&mut self) -> Sample {
        let mut sample = self.sampler.sample();
        sample.metrics = self.scraper.as_mut().map_or_else(Vec::new, Scraper::ask);
        sample
    }

    pub(crate) fn sample_counters(&mut self) -> Sample {
        self.sampler.sample()
    }

    pub(crate) fn sample_in_passing(&mut self) -> Sample {
        let mut sample = self.sampler.sample();
        sample.metrics = self.scraper.as_mut().map_or_else(Vec::new, Scraper::ask_in_passing);
        sample
    }

    /// Requests that each nginx has answered since it started, by pod; those of the lab that asks for this
    /// number left out, and its other probes not.
    ///
    /// # Errors
    /// When one cannot be asked.
    pub(super) fn served(&self) -> Result<BTreeMap<String, u64>, LabError> {
        served(&self.served)
    }

    /// Where the collector of spans takes questions, in a deployment that has one.
    pub(super) fn collector_socket(&self) -> Option<PathBuf> {
        jvm::collector_socket(&self.deployment, &self.folder)
    }

    /// Starts the load program in the load's pod.
    pub(crate) fn start_engine(&mut self) -> Result<LocalEngine, LabError> {
        let mut place = self.load_place();
        place.cgroups = cgroups::directories(&self.load_cgroup).cloned().collect();
        let log = self.logs.join(format!("{}.log", file_stem(&load_generator())));
        let engine = LocalEngine::start(&self.launcher, &self.options.load, &place, log)?;
        let process = engine.process();
        self.ledger.process(process.pid).map_err(LabError::Ledger)?;
        self.sampler.watch(load_generator(), Source::of(&self.load_cgroup, process.pid));
        self.load = Some(process);
        Ok(engine)
    }

    /// Where the load and its probes run.
    pub(super) fn load_place(&self) -> Place {
        Place {
            namespace: self.networks.as_ref().map(|networks| networks.load.clone()),
            cores: self.pinning.load().map(cpu_set),
            realtime: self.options.realtime || self.load_first,
            ..Place::default()
        }
    }

    /// Starts what asks the pods' endpoints, beside the load, and counts it as toll's own.
    pub(super) fn start_scraper(&mut self) -> Result<(), LabError> {
        let targets = topology::endpoints(&self.deployment, &self.topology);
        if targets.is_empty() {
            return Ok(());
        }
        let group = cgroups::make_component(&self.cgroups, SCRAPER)
            .map_err(|source| LabError::Write { path: "cgroup of the scraper".into(), source })?;
        let place = Place {
            cgroups: cgroups::directories(&group).cloned().collect(),
            // Not before the load, nor before what is measured.
            realtime: self.options.realtime,
            ..self.load_place()
        };
        let log = self.logs.join(format!("{SCRAPER}.log"));
        let scraper = Scraper::start(&self.launcher, &self.options.service, &place, targets, log)?;
        let pid = scraper.process().pid;
        self.ledger.process(pid).map_err(LabError::Ledger)?;
        self.sampler.watch_helper(Source::of(&group, pid));
        self.scraper = Some(scraper);
        Ok(())
    }

    /// Starts one component and counts it from now on.
    pub(super) fn start(&mut self, mut program: Program) -> Result<(), LabError> {
        // Ninety proxies start for seconds.
        self.still_wanted()?;
        let (name, stem) = (describe(&program.component), file_stem(&program.component));
        let failed = |source| LabError::Start {
            component: describe(&program.component),
            program: program.path.clone(),
            source,
        };
        let group = cgroups::make_component(&self.cgroups, &stem).map_err(|source| {
            LabError::Write { path: format!("cgroup of {name}").into(), source }
        })?;
        let place = Place {
            namespace: self.namespace_of(&program.component.pod).cloned(),
            cgroups: cgroups::directories(&group).cloned().collect(),
            user: program.user,
            cores: self.pinning.system().map(cpu_set),
            realtime: self.options.realtime,
            inherited: program.inherited,
            hosts: match program.component.role {
                Role::Application => self.hosts_of(&program.component.pod),
                _ => None,
            },
        };
        let log = self.logs.join(format!("{stem}.log"));
        super::process::log_to(&mut program.command, &log)?;
        place.apply(&mut program.command).map_err(failed)?;
        let child = self.launcher.spawn(program.command).map_err(failed)?;
        let process = Arc::new(Process::new(name, child, log));
        self.ledger.process(process.pid).map_err(LabError::Ledger)?;
        let source = match program.component.role {
            Role::Database => Source::of_family(&group, process.pid),
            _ => Source::of(&group, process.pid),
        };
        self.sampler.watch(program.component.clone(), source);
        self.components.push((program.component, process));
        Ok(())
    }

    /// Whom sidecars and gateways run as.
    pub(super) fn proxy_user(&self) -> User {
        match self.isolation {
            Isolation::Pods => User::Other(PROXY_UID),
            Isolation::Rootless | Isolation::Loopback => User::Caller,
        }
    }

    /// The place of one of the application's pods in the topology.
    pub(super) fn place_of(&self, pod: &str) -> usize {
        let place = self.topology.pods.iter().position(|known| known.pod == pod);
        place.expect("the topology has every pod of the deployment")
    }

    /// The first component that ended by itself.
    pub(crate) fn crashed(&self) -> Option<LabError> {
        self.components.iter().find_map(|(_, process)| {
            let ending = process.ended()?;
            let component = process.name.clone();
            Some(LabError::Crashed { component, ending, log: process.log_tail() })
        })
    }

    /// Ends all processes and removes all that was made.
    pub(crate) fn down(mut self) -> Result<(), LabError> {
        self.tear_down()
    }

    fn tear_down(&mut self) -> Result<(), LabError> {
        self.is_down = true;
        let components = self.components.iter().map(|(_, process)| process);
        let scraper = self.scraper.iter().map(Scraper::process);
        let processes: Vec<_> = components.chain(&self.load).chain(scraper).collect();
        let mut left = step("processes end", || end_all(&processes));
        self.zds.clear();
        left.extend(step("leftovers", || self.ledger.settle()).err().into_iter().flatten());
        if left.is_empty() { Ok(()) } else { Err(LabError::Left(left)) }
    }
}

impl Drop for LocalEnvironment {
    fn drop(&mut self) {
        if self.is_down {
            return;
        }
        if let Err(e) = self.tear_down() {
            tracing::warn!("the lab was not removed: {e}");
        }
    }
}

/// What an environment takes from the host; nothing where pods have networks of their own.
fn free_ports(deployment: &Deployment, isolation: Isolation) -> Result<Vec<u16>, LabError> {
    if isolation != Isolation::Loopback {
        return Ok(Vec::new());
    }
    let of_study: Vec<u16> = deployment.services.iter().flat_map(|s| s.ports()).collect();
    ports::free(topology::ports_needed(deployment), &of_study)
        .map_err(|source| LabError::Write { path: "a loopback port".into(), source })
}

/// All at once: the exits of many take as long as that of one where there are cores for them. Gives the names of
/// those that cannot be waited for.
fn end_all(processes: &[&Arc<Process>]) -> Vec<String> {
    processes.iter().for_each(|process| process.strike());
    let stuck = processes.iter().filter(|process| process.kill().is_err());
    stuck.map(|process| process.name.clone()).collect()
}

/// Name of the scraper's cgroup and log; those of components begin with their role.
const SCRAPER: &str = "scraper";

/// The component that the load runs as.
pub(super) fn load_generator() -> Component {
    Component { role: Role::LoadGenerator, pod: "load".to_owned() }
}

/// What the program of a pod is.
fn role_of(program: &deployment::Program) -> Role {
    match program {
        deployment::Program::BuiltIn(_)
        | deployment::Program::Command(_)
        | deployment::Program::Airline(_)
        | deployment::Program::Nginx(_)
        | deployment::Program::Petclinic(_) => Role::Application,
        deployment::Program::Gateway => Role::Gateway,
        deployment::Program::Postgres(_) | deployment::Program::AirlineDatabase(_) => {
            Role::Database
        }
        deployment::Program::Collector => Role::Collector,
    }
}

/// What a component is called in errors.
pub(super) fn describe(component: &Component) -> String {
    match component.role {
        Role::Application => component.pod.clone(),
        Role::Sidecar => format!("{} sidecar", component.pod),
        Role::Gateway => format!("{} gateway", component.pod),
        Role::NodeProxy => format!("{} proxy", component.pod),
        Role::Waypoint => component.pod.clone(),
        Role::EgressGateway => format!("{} gateway", component.pod),
        Role::SniProxy => format!("{} SNI proxy", component.pod),
        Role::Database => format!("{} database", component.pod),
        Role::Collector => component.pod.clone(),
        Role::LoadGenerator => "load generator".to_owned(),
        Role::Harness => "toll".to_owned(),
    }
}

/// Name of a component's cgroup and, with an extension, of its log. The role comes first: a service may be
/// called `load`, or as a file that the kernel puts into every cgroup.
pub(super) fn file_stem(component: &Component) -> String {
    match component.role {
        Role::Application => format!("service-{}", component.pod),
        Role::Sidecar => format!("sidecar-{}", component.pod),
        Role::Gateway => format!("gateway-{}", component.pod),
        Role::NodeProxy => format!("node-proxy-{}", component.pod),
        Role::Waypoint => format!("waypoint-{}", component.pod),
        Role::EgressGateway => format!("egress-gateway-{}", component.pod),
        Role::SniProxy => format!("sni-proxy-{}", component.pod),
        Role::Database => format!("database-{}", component.pod),
        Role::Collector => format!("collector-{}", component.pod),
        Role::LoadGenerator => "load".to_owned(),
        Role::Harness => "toll".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_of_a_service_gives_two_components_the_same_files() {
        let names = ["load", "toll", "client", "client.sidecar", "sidecar-client", "cgroup.procs"];
        let of_pod = |pod: &&str| {
            [Role::Application, Role::Sidecar, Role::Gateway, Role::Database]
                .map(|role| Component { role, pod: (*pod).into() })
        };
        let mut components: Vec<_> = names.iter().flat_map(of_pod).collect();
        components.push(load_generator());
        let mut stems: BTreeSet<_> = components.iter().map(file_stem).collect();
        assert_eq!(stems.len(), components.len(), "{stems:?}");
        assert!(stems.insert(SCRAPER.to_owned()));
        assert!(!stems.contains("cgroup.procs"));
    }
}
