//! The steps by which an environment comes up: pods, certificates and proxies, databases, services, readiness.

use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::credentials::Credentials;
use super::environment::LocalEnvironment;
use super::limits::Needs;
use super::pods::{HOSTS, Pods};
use super::proxies::Proxies;
use crate::deployment::{Program, UserProgram};
use crate::host::files;
use crate::host::isolation::Isolation;
use crate::host::ports;
use crate::host::process::Process;
use crate::host::timing::step;
use crate::planes;
use crate::planes::sidecar::mesher::Registry;
use crate::probe::{Outcome, Speech};
use crate::programs::postgres::template::Template;
use crate::programs::{self, Supplies};
use crate::topology::{self, Site};
use crate::{Component, LabError, Role};

/// How long the components may take to become ready, once the databases and proxies and once the services: on
/// a small machine several JVMs that start at once need half a minute.
const LONGEST_START: Duration = Duration::from_secs(120);

/// Between two looks at readiness at first. A look reads all connections of the machine, so whoever has waited for long
/// is looked at less often: never later than a tenth of what he needed.
const FIRST_LOOKS: Duration = Duration::from_millis(10);

/// How often it is said what is waited for.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// How long a program that listens, but elsewhere, is waited for.
const ELSEWHERE: Duration = Duration::from_secs(4);

/// Between two looks at the most.
const LATE_LOOKS: Duration = Duration::from_millis(250);

impl LocalEnvironment {
    /// All steps, up to where the entry answers. Services find their database, the proxies in between and the
    /// collector when they start.
    pub(super) fn come_up(&mut self, template: Option<&Template>) -> Result<(), LabError> {
        step("pods", || self.make_pods())?;
        step("redirects and identities", || self.make_proxies())?;
        step("databases", || self.start_programs(Role::Database, template))?;
        step("registry", || self.start_registry())?;
        step("proxies", || self.start_proxies())?;
        self.start_programs(Role::Collector, None)?;
        step("proxies are ready", || self.await_ready())?;
        self.fill_databases()?;
        step("services", || self.start_programs(Role::Application, None))?;
        step("services are ready", || self.await_ready())?;
        step("the entry answers", || self.await_entry())?;
        let context = self.pods.load(&self.setup.machine);
        self.processes.start_scraper(&self.setup, context)
    }

    /// Makes the folders, the load's cgroup and, above loopback, the pods' networks, within raised limits.
    pub(super) fn make_pods(&mut self) -> Result<(), LabError> {
        if self.setup.machine.isolation != Isolation::Loopback {
            let (deployment, topology) = (&self.setup.deployment, &self.setup.topology);
            let needs = Needs::of(deployment, topology, &topology::ends(deployment, topology));
            needs.raise(self.processes.ledger())?;
        }
        self.setup.make_folders()?;
        self.processes.make_load_cgroup()?;
        self.pods = Pods::make(&self.setup, self.processes.launcher())?;
        Ok(())
    }

    /// Redirects first: a connection made before them would bypass the sidecar for its whole life.
    pub(super) fn make_proxies(&mut self) -> Result<(), LabError> {
        self.proxies = Proxies::plan(&self.setup)?;
        self.credentials = Credentials::issue(&self.setup)?;
        self.write_hosts()?;
        self.proxies.gateways().try_for_each(|pod| self.pods.open_low_ports(pod))?;
        self.pods.redirect(self.proxies.redirects(&self.setup), self.processes.launcher())
    }

    /// Writes the hosts file of each pod of the application that needs one, once: processes of the pod see what is
    /// in it at each time.
    fn write_hosts(&self) -> Result<(), LabError> {
        for site in self.setup.sites() {
            let Some(text) = topology::hosts(site.deployment, site.topology, site.service) else {
                continue;
            };
            files::write(&site.file(HOSTS), text)?;
        }
        Ok(())
    }

    /// Starts the registry of Meshers, who open no port without it, and waits until it listens.
    fn start_registry(&mut self) -> Result<(), LabError> {
        let Some(registry) = Registry::plan(&self.setup.topology, &self.setup.folder) else {
            return Ok(());
        };
        let context = self.pods.load(&self.setup.machine);
        self.processes.start_registry(&self.setup, &registry, &context)?;
        let began = Instant::now();
        let log = || self.processes.registry().map(Process::log_tail).unwrap_or_default();
        while self.observer().ask_load_at(registry.at)?.outcome == Outcome::Refused {
            self.check_start("registry", log, (began, LONGEST_START))?;
            thread::sleep(next_look(began.elapsed()));
        }
        Ok(())
    }

    /// Starts sidecars, gateways and the proxies of nodes.
    pub(super) fn start_proxies(&mut self) -> Result<(), LabError> {
        let (setup, pods, processes) = (&self.setup, &self.pods, &mut self.processes);
        let network_of = |pod: &str| pods.network(pod).cloned();
        let authority = self.credentials.mesh.take();
        self.proxies.start(setup, authority, &network_of, &mut |component, start| {
            let namespace = pods.network(&component.pod).cloned();
            let context = crate::host::spawn::SpawnContext { namespace, ..Default::default() };
            processes.start(setup, component, start, context)
        })
    }

    /// Starts the programs of this role that no proxy plays; `template` is what databases are copies of.
    pub(super) fn start_programs(
        &mut self,
        role: Role,
        template: Option<&Template>,
    ) -> Result<(), LabError> {
        let (setup, processes) = (&self.setup, &mut self.processes);
        let machine = &setup.machine;
        let supplies =
            Supplies { options: &machine.options, isolation: machine.isolation, template };
        let mut launches = planes::agent_launches(
            (&setup.deployment, &setup.topology),
            &machine.options.artifacts,
            &setup.folder,
        )?;
        for site in setup.sites().filter(|site| site.service.program.role() == role) {
            if let Some(data) = programs::data_directory(&site) {
                processes.ledger().data_directory(&data).map_err(LabError::Ledger)?;
            }
            let Some(mut start) = programs::start(&site, supplies)? else { continue };
            if let Some(launch) = launches.remove(&site.pod.pod) {
                launch.files.iter().try_for_each(|(path, text)| files::write(path, text))?;
                launch.folders.iter().try_for_each(|folder| files::make_folder(folder))?;
                launch.equip(&mut start.command, std::env::vars_os());
            }
            let component = Component { role, pod: site.pod.pod.clone() };
            let mut context = self.pods.inside(&site);
            // A database itself calls nobody by name.
            context.hosts = context.hosts.filter(|_| role == Role::Application);
            processes.start(setup, component, start, context)?;
        }
        Ok(())
    }

    /// Puts into each database what it holds at first; the servers take connections.
    pub(super) fn fill_databases(&mut self) -> Result<(), LabError> {
        let observer = self.observer();
        let mut databases = self.setup.sites().filter(|site| site.service.program.is_database());
        databases.try_for_each(|site| programs::fill(&observer.running(site)?))
    }

    /// Waits until each component that was started since the last wait is ready.
    pub(super) fn await_ready(&mut self) -> Result<(), LabError> {
        let began = Instant::now();
        for (component, process) in self.processes.starting() {
            let mut told = Duration::ZERO;
            while !self.is_ready(component, process.pid)? {
                let waited = began.elapsed();
                let (limit, waits) = (self.limit(component), (component, process));
                self.check_start(&process.name, || process.log_tail(), (began, limit))
                    .map_err(|error| self.unless_elsewhere(waits, error))?;
                if waited >= told + TELL_EVERY {
                    told = waited;
                    self.tell_of_wait(waits, waited)?;
                }
                thread::sleep(next_look(waited));
            }
        }
        self.processes.all_ready();
        Ok(())
    }

    /// The program of the user's own that is this component, and the port that it should listen on.
    fn users_own(&self, component: &Component) -> Option<(&UserProgram, u16)> {
        let of_pod = |site: &Site<'_>| site.pod.pod == component.pod;
        let site = self.setup.sites().find(of_pod).filter(|_| component.role == Role::Application);
        let service = &self.setup.deployment.service(&site?.service.name)?;
        match &service.program {
            Program::Command(program) => Some((program, service.port)),
            _ => None,
        }
    }

    fn limit(&self, component: &Component) -> Duration {
        let ready = self.users_own(component).and_then(|(program, _)| program.ready.as_ref());
        ready.map_or(LONGEST_START, |ready| ready.timeout)
    }

    /// Says what is waited for. A program that listens elsewhere only is not waited for, unless the study says how long.
    fn tell_of_wait(
        &self,
        (component, process): (&Component, &Process),
        waited: Duration,
    ) -> Result<(), LabError> {
        let seconds = waited.as_secs();
        let listener = &self.setup.machine.options.listener;
        match self.elsewhere(component, process) {
            Some((port, listens)) => {
                let ports = listens.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
                let is_told = self.users_own(component).is_some_and(|(own, _)| own.ready.is_some());
                if waited >= ELSEWHERE && !is_told {
                    return Err(other_port(process, port, listens));
                }
                listener.tell(&format!(
                    "waiting for {} since {seconds} s: it listens on port {ports}, not on {port}",
                    process.name
                ));
            }
            None => {
                listener.tell(&format!("waiting for {} since {seconds} s", process.name));
            }
        }
        Ok(())
    }

    /// The port that it should listen on and those that it listens on, where the one is not among the others.
    fn elsewhere(&self, component: &Component, process: &Process) -> Option<(u16, Vec<u16>)> {
        let (_, port) = self.users_own(component)?;
        let listens = ports::of_session(process.pid);
        let is_elsewhere = !listens.is_empty() && !listens.contains(&port);
        is_elsewhere.then(|| (port, listens.into_iter().collect()))
    }

    /// What went wrong, or that the program listens elsewhere when it is not ready in time.
    fn unless_elsewhere(
        &self,
        (component, process): (&Component, &Process),
        error: LabError,
    ) -> LabError {
        match (&error, self.elsewhere(component, process)) {
            (LabError::NotReady { .. }, Some((port, listens))) => {
                other_port(process, port, listens)
            }
            _ => error,
        }
    }

    /// Waits until the entry answers the load's pod.
    pub(super) fn await_entry(&self) -> Result<(), LabError> {
        let began = Instant::now();
        while !self.answers()? {
            self.check_start(&self.setup.deployment.entry, Vec::new, (began, LONGEST_START))?;
            thread::sleep(next_look(began.elapsed()));
        }
        Ok(())
    }

    /// Whether it is worth waiting on.
    fn check_start(
        &self,
        component: &str,
        log: impl FnOnce() -> Vec<String>,
        (began, limit): (Instant, Duration),
    ) -> Result<(), LabError> {
        self.setup.machine.options.still_wanted()?;
        match self.crashed() {
            Some(crash) => Err(crash),
            None if began.elapsed() < limit => Ok(()),
            None => Err(LabError::NotReady {
                component: component.to_owned(),
                waited_s: limit.as_secs(),
                log: log(),
            }),
        }
    }

    fn is_ready(&self, component: &Component, pid: Pid) -> Result<bool, LabError> {
        let observer = self.observer();
        if component.role == Role::SniProxy {
            return Ok(self.proxies.sni_proxy_listens(&self.setup, pid));
        }
        let is_program = |site: &Site<'_>| {
            site.pod.pod == component.pod && site.service.program.role() == component.role
        };
        match self.setup.sites().find(is_program).filter(|_| component.role != Role::Gateway) {
            Some(site) => programs::is_ready(&observer.running(site)?),
            None => self
                .proxies
                .is_ready(&component.pod, &|pod, at, speech| observer.ask_in(pod, at, speech)),
        }
    }

    fn answers(&self) -> Result<bool, LabError> {
        let answer = self.observer().ask_entry(Speech::Request)?;
        // A service that closes or talks nonsense is up, too: under load it will show what it does.
        let up = [Outcome::Answered, Outcome::Closed, Outcome::Reset, Outcome::Garbled];
        Ok(up.contains(&answer.outcome))
    }
}

fn other_port(process: &Process, port: u16, listens: Vec<u16>) -> LabError {
    LabError::OtherPort { component: process.name.clone(), port, listens, log: process.log_tail() }
}

/// How long until the next look after so long a wait.
fn next_look(waited: Duration) -> Duration {
    (waited / 10).clamp(FIRST_LOOKS, LATE_LOOKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_takes_five_seconds_is_looked_at_some_fifty_times_and_seen_soon_after() {
        let mut waited = Duration::ZERO;
        let looks = std::iter::from_fn(|| {
            waited += next_look(waited);
            Some(waited)
        });
        let looks: Vec<Duration> = looks.take_while(|at| *at < Duration::from_secs(5)).collect();
        assert!((30..60).contains(&looks.len()), "{} looks", looks.len());
        assert!(looks[5] < Duration::from_millis(100), "{looks:?}");
        assert!(Duration::from_secs(5) - looks[looks.len() - 1] <= LATE_LOOKS);
    }

    mod ambient;
    mod nginx;
}
