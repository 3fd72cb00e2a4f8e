//! The lab on one Linux machine: pods without Kubernetes.
//!
//! Chooses an isolation level, makes the pods, starts the programs and the proxies of the data plane, samples them, and
//! removes all of it. The configuration of programs and proxies, and what their counters prove, is theirs.

mod bring_up;
mod check;
mod credentials;
mod engine;
mod environment;
mod limits;
mod observer;
mod pods;
mod processes;
mod proof;
mod proxies;
mod scraper;
mod setup;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::LabError;
use crate::artifacts::Artifact;
use crate::deployment::Deployment;
use crate::host::cgroups;
use crate::host::hierarchy::Hierarchies;
use crate::host::isolation::{self, Isolation};
use crate::host::ledger::{self, Ledger};
use crate::host::pinning::Pinning;
use crate::host::spawn::{raise_open_files, set_realtime};
use crate::options::LocalOptions;
use crate::output::Rendered;
use crate::planes::ambient::{captured_redirects, ztunnel};
use crate::planes::egress::sni_proxy;
use crate::planes::sidecar::mesher::{self, Registry};
use crate::planes::{agent_launches, proxy_plans};
use crate::programs;
use crate::programs::postgres::ending::end_server;
use crate::programs::postgres::template::Template;
use crate::sampler::Source;
use crate::topology::{self, Site, Topology};

pub(crate) use engine::LocalEngine;
pub(crate) use environment::LocalEnvironment;
use setup::Machine;

/// This machine as a lab.
#[derive(Debug)]
pub struct LocalLab {
    machine: Machine,
    mounts: Hierarchies,
    counters: Vec<(String, String)>,
    /// What the counters leave out, one sentence.
    uncounted: Option<&'static str>,
    /// What databases are copies of, once one was needed.
    template: Mutex<Option<Arc<Template>>>,
}

impl LocalLab {
    /// Removes what dead tolls left, then chooses the best isolation level unless one is forced.
    pub(crate) fn new(options: LocalOptions) -> Result<Self, LabError> {
        clean()?;
        // toll keeps the networks of all pods and the counters of all components open.
        raise_open_files();
        let isolation = choose(options.isolation)?;
        if options.realtime {
            permit_realtime()?;
        }
        let mounts = match isolation {
            Isolation::Pods => Hierarchies::of_this_machine().unwrap_or_default(),
            Isolation::Rootless | Isolation::Loopback => Hierarchies::default(),
        };
        let (counters, uncounted) = counter_sources(&mounts)?;
        let pinning = Pinning::of_this_process();
        let load_first = pinning.load().is_none() && permit_realtime().is_ok();
        let machine = Machine { options, isolation, pinning, load_first };
        Ok(Self { machine, mounts, counters, uncounted, template: Mutex::default() })
    }

    pub(crate) fn isolation(&self) -> Isolation {
        self.machine.isolation
    }

    /// Whether no other environment of `deployment` can be up beside one.
    pub(crate) fn stands_alone(&self, deployment: &Deployment) -> bool {
        self.machine.isolation == Isolation::Loopback && deployment.has_fixed_ports()
    }

    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let Machine { options, isolation, pinning, load_first } = &self.machine;
        let scheduling = match (options.realtime, load_first) {
            (true, _) => "SCHED_RR for every process of the lab",
            (false, true) => "SCHED_RR for the load generator, the kernel's default for the rest",
            (false, false) => "the kernel's default",
        };
        let mut facts = vec![
            ("isolation".to_owned(), isolation.to_string()),
            ("pinning".to_owned(), pinning.describe()),
            ("scheduling".to_owned(), scheduling.to_owned()),
        ];
        facts.extend(self.counters.iter().cloned());
        facts
    }

    pub(crate) fn lacks(&self) -> Vec<String> {
        let mut lacks = self.machine.isolation.lacks();
        lacks.extend(self.uncounted.map(str::to_owned));
        lacks
    }

    /// With loopback isolation the ports are examples: free ones are taken when it comes up.
    pub(crate) fn render(&self, deployment: &Deployment) -> Result<Vec<Rendered>, LabError> {
        let (topology, folder) = (self.topology(deployment), Path::new(EXAMPLE_FOLDER));
        let mut files = Vec::new();
        for site in Site::all(deployment, &topology, folder) {
            files.extend(programs::rendered(&site)?);
        }
        for (pod, launch) in self.example_launches(deployment, &topology)? {
            files.extend(launch.rendered(&pod));
        }
        let redirect = |pod: &str, text| Rendered { name: format!("{pod}.nft"), text };
        for plan in proxy_plans(deployment, &topology, folder)? {
            files.push(Rendered { name: plan.config_name, text: plan.config });
            files.extend(plan.redirect.map(|text| redirect(&plan.pod, text)));
        }
        let module = sni_proxy::module(&self.machine.options.artifacts);
        let sni_proxy = sni_proxy::plan(deployment, &topology, module.as_deref(), folder)?;
        files.extend(sni_proxy.map(|plan| Rendered { name: plan.config_name, text: plan.config }));
        let meshers = mesher::plans(deployment, &topology, folder)?;
        files.extend(meshers.iter().flat_map(mesher::Plan::rendered));
        files.extend(
            Registry::plan(&topology, folder)
                .map(|registry| Rendered { name: "registry.json".to_owned(), text: registry.text }),
        );
        let ztunnels = ztunnel::plans(deployment, &topology, folder)?.into_iter();
        files.extend(ztunnels.map(|plan| Rendered { name: plan.config_name, text: plan.config }));
        let captured = captured_redirects(deployment).into_iter();
        files.extend(captured.map(|captured| redirect(&captured.pod, captured.script)));
        // Replicas of a service share an agent's files.
        let mut names = HashSet::new();
        files.retain(|file| names.insert(file.name.clone()));
        Ok(files)
    }

    fn topology(&self, deployment: &Deployment) -> Topology {
        example_topology(deployment, self.machine.isolation)
    }

    /// What an agent adds, with an example of a folder and, where none was looked for, of the agent's jar.
    fn example_launches(
        &self,
        deployment: &Deployment,
        topology: &Topology,
    ) -> Result<impl IntoIterator<Item = (String, crate::planes::agent::launch::Launch)>, LabError>
    {
        let mut artifacts = self.machine.options.artifacts.clone();
        if artifacts.get(Artifact::OpenTelemetry).is_none() {
            artifacts.put(Artifact::OpenTelemetry, EXAMPLE_AGENT);
        }
        agent_launches((deployment, topology), &artifacts, Path::new(EXAMPLE_FOLDER))
    }

    /// How the programs of `deployment` are played, and those that an agent is in, in order.
    pub(crate) fn facts_of(
        &self,
        deployment: &Deployment,
    ) -> Result<Vec<(String, String)>, LabError> {
        let mut facts: Vec<_> = deployment.services.iter().filter_map(programs::fact).collect();
        let topology = self.topology(deployment);
        for (pod, launch) in self.example_launches(deployment, &topology)? {
            let files = launch.rendered(&pod);
            let lines: Vec<_> = files.iter().flat_map(|file| file.text.lines()).collect();
            facts.push((format!("agent of {pod}, {}", deployment.name), lines.join(" ")));
        }
        Ok(facts)
    }

    /// Brings `deployment` up and waits until it answers. What was made is removed when a step fails.
    pub(crate) fn up(
        &self,
        deployment: &Deployment,
        logs: &Path,
    ) -> Result<LocalEnvironment, LabError> {
        check::check(deployment, &self.machine)?;
        let template = self.template_for(deployment)?;
        let mut environment = LocalEnvironment::new(self, deployment, logs)?;
        environment.come_up(template.as_deref())?;
        Ok(environment)
    }

    /// What its databases will be copies of; none without PostgreSQL.
    fn template_for(&self, deployment: &Deployment) -> Result<Option<Arc<Template>>, LabError> {
        if !programs::needs_template(deployment) {
            return Ok(None);
        }
        let options = &self.machine.options;
        let server = options.artifacts.path(Artifact::Postgres)?;
        let mut known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let made = Template::make(server, &options.work_dir, self.machine.isolation)?;
            *known = Some(Arc::new(made));
        }
        Ok(known.clone())
    }
}

/// Stands for an environment's folder where nothing is started.
const EXAMPLE_FOLDER: &str = "/run/toll/lab";

/// Stands for the agent's jar where none was looked for.
const EXAMPLE_AGENT: &str = "opentelemetry-javaagent.jar";

/// Where everything would listen, with examples for free ports.
fn example_topology(deployment: &Deployment, isolation: Isolation) -> Topology {
    topology::plan(deployment, isolation, 15_101..)
}

/// Removes what dead tolls left, and says what that was.
///
/// # Errors
/// When something cannot be removed.
pub fn clean() -> Result<Vec<String>, LabError> {
    ledger::clean(end_server).map_err(LabError::Left)
}

fn open_ledger() -> io::Result<Ledger> {
    Ledger::open(end_server)
}

fn choose(forced: Option<Isolation>) -> Result<Isolation, LabError> {
    let Some(isolation) = forced else {
        let possible = |level: &Isolation| isolation::attempt(*level).is_ok();
        return Ok(Isolation::ALL.into_iter().find(possible).unwrap_or(Isolation::Loopback));
    };
    match isolation::attempt(isolation) {
        Ok(()) => Ok(isolation),
        Err(reason) => Err(LabError::IsolationImpossible { isolation, reason }),
    }
}

/// Tries it on a thread that ends at once: the setting is the thread's.
fn permit_realtime() -> Result<(), LabError> {
    let outcome = thread::spawn(set_realtime).join();
    outcome
        .expect("a thread that makes one system call does not panic")
        .map_err(LabError::RealtimeRefused)
}

/// The sources of the counters, for the report, and what they leave out.
type CounterSources = (Vec<(String, String)>, Option<&'static str>);

/// Opens the counters of a cgroup that is thrown away, as each component's will be opened.
fn counter_sources(mounts: &Hierarchies) -> Result<CounterSources, LabError> {
    let mut ledger = open_ledger().map_err(LabError::Ledger)?;
    let planned = cgroups::environment(mounts, &ledger.id);
    for dir in cgroups::directories(&planned) {
        ledger.cgroup(dir).map_err(LabError::Ledger)?;
    }
    let source = Source::of(&cgroups::make_environment(&planned), nix::unistd::getpid());
    let names = vec![
        ("cpu counter".to_owned(), source.cpu_name().to_owned()),
        ("memory counter".to_owned(), source.memory_name().to_owned()),
    ];
    let uncounted = source.lacks();
    drop(source);
    ledger.settle().map_err(LabError::Left)?;
    Ok((names, uncounted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_that_cannot_be_written_leave_the_first_process_of_a_program_only() {
        let absent = |name: &str| Some(Path::new("/proc/self/fdinfo").join(name));
        let mounts = Hierarchies {
            unified: absent("unified"),
            cpuacct: absent("cpuacct"),
            memory: absent("memory"),
        };
        let (names, uncounted) = counter_sources(&mounts).unwrap();
        assert_eq!(names[0].1, "process clock (clock_getcpuclockid)");
        assert!(uncounted.unwrap().contains("only the first process is counted"));
    }
}
