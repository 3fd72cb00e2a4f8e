//! The processes of an environment: started in their cgroups and logs, counted, watched, and ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::Pid;

use super::engine::LocalEngine;
use super::scraper::{Scraper, endpoints};
use super::setup::{Setup, describe, file_stem, load_generator};
use crate::host::cgroups;
use crate::host::error::HostError;
use crate::host::files;
use crate::host::hierarchy::Hierarchies;
use crate::host::ledger::Ledger;
use crate::host::log::KeptLog;
use crate::host::pinning::cpu_set;
use crate::host::process::{Launcher, Process, log_to};
use crate::host::spawn::{SpawnContext, Start};
use crate::host::timing::step;
use crate::options::LocalOptions;
use crate::planes::sidecar::mesher::Registry;
use crate::probe::Prober;
use crate::sampler::{Sampler, Source};
use crate::{Component, CutLog, LabError, Role, Sample};

/// All processes of one environment.
#[derive(Debug)]
pub(super) struct Processes {
    launcher: Launcher,
    ledger: Ledger,
    cgroups: Hierarchies,
    load_cgroup: Hierarchies,
    components: Vec<(Component, Arc<Process>)>,
    /// How many of the components, from the first on, were seen ready.
    ready: usize,
    load: Option<Arc<Process>>,
    /// Only where there are Meshers.
    registry: Option<Arc<Process>>,
    sampler: Sampler,
    /// Only where a service has an endpoint.
    scraper: Option<Scraper>,
}

impl Processes {
    /// Makes the cgroups that were planned; starts nothing.
    ///
    /// # Errors
    /// When the machine's counters cannot be read or a cgroup cannot be made.
    pub(super) fn new(ledger: Ledger, planned: &Hierarchies) -> Result<Self, LabError> {
        Ok(Self {
            ledger,
            cgroups: cgroups::make_environment(planned),
            load_cgroup: Hierarchies::default(),
            components: Vec::new(),
            ready: 0,
            load: None,
            registry: None,
            sampler: Sampler::open().map_err(LabError::HostCounters)?,
            scraper: None,
            launcher: Launcher::start().map_err(LabError::Ledger)?,
        })
    }

    pub(super) fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    pub(super) fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Asks by the service program.
    pub(super) fn prober<'a>(&'a self, options: &'a LocalOptions) -> Prober<'a> {
        let (service, interrupt) = (&options.service, &options.interrupt);
        Prober { launcher: &self.launcher, service, interrupt }
    }

    /// Fixes the order of the samples before anything runs. The load comes after them when it starts.
    pub(super) fn announce(&mut self, components: Vec<Component>) {
        for component in components {
            self.sampler.watch(component, Source::missing("it has not been started"));
        }
    }

    /// Makes the load's cgroup, which all its engines share.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn make_load_cgroup(&mut self) -> Result<(), LabError> {
        self.load_cgroup = self.make_cgroup("the load", &file_stem(&load_generator()))?;
        Ok(())
    }

    fn make_cgroup(&self, name: &str, stem: &str) -> Result<Hierarchies, HostError> {
        cgroups::make_component(&self.cgroups, stem)
            .map_err(|source| HostError::Write { path: format!("cgroup of {name}").into(), source })
    }

    /// Starts one component in `context` and counts it from now on.
    ///
    /// # Errors
    /// When it cannot be started, or the user wants to leave.
    pub(super) fn start(
        &mut self,
        setup: &Setup,
        component: Component,
        mut start: Start,
        context: SpawnContext,
    ) -> Result<(), LabError> {
        // Ninety proxies start for seconds.
        setup.machine.options.still_wanted()?;
        let (name, stem) = (describe(&component), file_stem(&component));
        let group = self.make_cgroup(&name, &stem)?;
        let context = SpawnContext {
            cgroups: cgroups::directories(&group).cloned().collect(),
            user: start.user,
            cores: setup.machine.pinning.system().map(cpu_set),
            realtime: setup.machine.options.realtime,
            inherited: start.inherited,
            ..context
        };
        let log = setup.logs.join(format!("{stem}.log"));
        let kept = match start.is_verbose {
            true => Some(KeptLog::of(&mut start.command, &log)?),
            false => log_to(&mut start.command, &log).map(|()| None)?,
        };
        let failed = |source| LabError::Start {
            component: name.clone(),
            program: start.path.clone(),
            source,
        };
        context.apply(&mut start.command).map_err(failed)?;
        let child = self.launcher.spawn(start.command).map_err(failed)?;
        let process = Arc::new(Process::new(name, child, log).logging(kept));
        self.ledger.process(process.pid).map_err(LabError::Ledger)?;
        let source = match component.role {
            Role::Database => Source::of_family(&group, process.pid),
            _ => Source::of(&group, process.pid),
        };
        self.sampler.watch(component.clone(), source);
        self.components.push((component, process));
        Ok(())
    }

    /// Starts the load program in the load's pod.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start_engine(
        &mut self,
        setup: &Setup,
        mut context: SpawnContext,
    ) -> Result<LocalEngine, LabError> {
        context.cgroups = cgroups::directories(&self.load_cgroup).cloned().collect();
        let log = setup.logs.join(format!("{}.log", file_stem(&load_generator())));
        let program = &setup.machine.options.load;
        let engine = LocalEngine::start(&self.launcher, program, &context, log)?;
        let process = engine.process();
        self.ledger.process(process.pid).map_err(LabError::Ledger)?;
        self.sampler.watch(load_generator(), Source::of(&self.load_cgroup, process.pid));
        self.load = Some(process);
        Ok(engine)
    }

    /// Starts what asks the pods' endpoints, beside the load, and counts it as toll's own.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start_scraper(
        &mut self,
        setup: &Setup,
        context: SpawnContext,
    ) -> Result<(), LabError> {
        let endpoints = endpoints(setup.sites());
        if endpoints.is_empty() {
            return Ok(());
        }
        let group = self.make_cgroup("the scraper", SCRAPER)?;
        let options = &setup.machine.options;
        let context = SpawnContext {
            cgroups: cgroups::directories(&group).cloned().collect(),
            // Not before the load, nor before what is measured.
            realtime: options.realtime,
            ..context
        };
        let log = setup.logs.join(format!("{SCRAPER}.log"));
        let scraper = Scraper::start(&self.launcher, &options.service, &context, endpoints, log)?;
        let pid = scraper.process().pid;
        self.ledger.process(pid).map_err(LabError::Ledger)?;
        self.sampler.watch_helper(Source::of(&group, pid));
        self.scraper = Some(scraper);
        Ok(())
    }

    /// Starts the registry of the Meshers beside the load, as one of toll's own processes.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start_registry(
        &mut self,
        setup: &Setup,
        registry: &Registry,
        context: &SpawnContext,
    ) -> Result<(), LabError> {
        files::write(&registry.file, &registry.text)?;
        let mut start = Start::of_words(&setup.machine.options.service);
        start.command.arg("--config").arg(&registry.file);
        let log = setup.logs.join("registry.log");
        log_to(&mut start.command, &log)?;
        let failed = |source| LabError::Start {
            component: "registry".to_owned(),
            program: start.path.clone(),
            source,
        };
        context.apply(&mut start.command).map_err(failed)?;
        let child = self.launcher.spawn(start.command).map_err(failed)?;
        let process = Arc::new(Process::new("registry".to_owned(), child, log));
        self.ledger.process(process.pid).map_err(LabError::Ledger)?;
        self.registry = Some(process);
        Ok(())
    }

    /// The registry of the Meshers.
    pub(super) fn registry(&self) -> Option<&Process> {
        self.registry.as_deref()
    }

    /// Ends the process of a component, which is no crash then.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(super) fn end_component(&mut self, role: Role, pod: &str) -> Result<(), LabError> {
        let is_it = |component: &Component| component.role == role && component.pod == pod;
        let place = self.components.iter().position(|(component, _)| is_it(component));
        let Some((_, process)) = place.map(|place| self.components.remove(place)) else {
            return Ok(());
        };
        self.ready = self.ready.min(self.components.len());
        process.kill().map_err(|_| LabError::Left(vec![process.name.clone()]))
    }

    /// All components that were started, in that order.
    pub(super) fn components(&self) -> impl Iterator<Item = (&Component, &Process)> {
        self.components.iter().map(|(component, process)| (component, &**process))
    }

    /// Those of them that were not seen ready yet.
    pub(super) fn starting(&self) -> impl Iterator<Item = (&Component, &Process)> {
        self.components().skip(self.ready)
    }

    /// All that were started are ready.
    pub(super) fn all_ready(&mut self) {
        self.ready = self.components.len();
    }

    /// The first process of the application's program in this pod; none before it was started.
    pub(super) fn pid(&self, role: Role, pod: &str) -> Option<Pid> {
        let mut components = self.components();
        let found =
            components.find(|(component, _)| component.role == role && component.pod == pod);
        found.map(|(_, process)| process.pid)
    }

    /// The first component that ended by itself.
    pub(super) fn crashed(&self) -> Option<LabError> {
        self.components().find_map(|(_, process)| {
            let ending = process.ended()?;
            let component = process.name.clone();
            Some(LabError::Crashed { component, ending, log: process.log_tail() })
        })
    }

    /// The last lines that a service of the application wrote.
    pub(super) fn last_lines(&self, service: &str) -> Vec<String> {
        let is_pod_of = |pod: &str| match pod.strip_prefix(service) {
            Some(number) => number.is_empty() || number.starts_with('-'),
            None => false,
        };
        let is_meant = |component: &Component| {
            component.role == Role::Application && is_pod_of(&component.pod)
        };
        let mut meant = self.components().filter(|(component, _)| is_meant(component));
        meant.next().map_or_else(Vec::new, |(_, process)| process.log_tail())
    }

    /// What was logged by those of whose logs not all is kept.
    pub(super) fn cut_logs(&self) -> Vec<CutLog> {
        let cut = |(_, process): (&Component, &Process)| {
            let written_bytes = process.cut_log_bytes()?;
            Some(CutLog { component: process.name.clone(), written_bytes })
        };
        self.components().filter_map(cut).collect()
    }

    /// The counters alone.
    pub(super) fn sample_counters(&mut self) -> Sample {
        self.sampler.sample()
    }

    /// Counters first: no endpoint's slowness moves them.
    pub(super) fn sample(&mut self) -> Sample {
        let mut sample = self.sampler.sample();
        sample.metrics = self.scraper.as_mut().map_or_else(Vec::new, Scraper::ask);
        sample
    }

    /// The same without waiting for endpoints.
    pub(super) fn sample_in_passing(&mut self) -> Sample {
        let mut sample = self.sampler.sample();
        sample.metrics = self.scraper.as_mut().map_or_else(Vec::new, Scraper::ask_in_passing);
        sample
    }

    /// Ends all of them and removes all that the ledger has.
    ///
    /// # Errors
    /// What could not be ended or removed.
    pub(super) fn end(&mut self) -> Result<(), LabError> {
        let components = self.components.iter().map(|(_, process)| process);
        let scraper = self.scraper.iter().map(Scraper::process);
        let helpers = self.load.iter().chain(&self.registry).chain(scraper);
        let processes: Vec<_> = components.chain(helpers).collect();
        let mut left = step("processes end", || end_all(&processes));
        left.extend(step("leftovers", || self.ledger.settle()).err().into_iter().flatten());
        if left.is_empty() { Ok(()) } else { Err(LabError::Left(left)) }
    }
}

/// The ledger of an environment that has its folder and cgroups, and their paths; they are made later.
///
/// # Errors
/// When the ledger cannot be written.
pub(super) fn ledger_for(
    work_dir: &Path,
    mounts: &Hierarchies,
) -> Result<(Ledger, PathBuf, Hierarchies), LabError> {
    let open = || {
        let mut ledger = super::open_ledger()?;
        let folder = work_dir.join(&ledger.id);
        let planned = cgroups::environment(mounts, &ledger.id);
        ledger.directory(&folder)?;
        cgroups::directories(&planned).try_for_each(|dir| ledger.cgroup(dir))?;
        Ok((ledger, folder, planned))
    };
    open().map_err(LabError::Ledger)
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
