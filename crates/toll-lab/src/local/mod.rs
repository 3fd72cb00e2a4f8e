//! The lab on one Linux machine: pods without Kubernetes.
//!
//! Chooses an isolation level, makes the pods, starts the services and their sidecars, samples them, and
//! removes all of it. What the sidecars are told, and what their counters prove, is `data_plane`'s.

mod agents;
mod airline;
mod arrivals;
mod bring_up;
mod cgroups;
mod concurrent;
mod database;
mod egress;
mod environment;
mod firewall;
mod handshakes;
mod isolation;
mod jvm;
mod ledger;
mod link;
mod load;
mod mongo;
mod names;
mod namespace;
mod network;
mod networks;
mod nginx;
mod occupants;
mod pinning;
mod place;
mod ports;
mod postgres;
mod probe;
mod process;
mod proof;
mod query;
mod room;
mod scraper;
mod serials;
mod served;
mod sight;
mod template;
mod tools;
mod topology;
mod zds;
mod ztunnel;

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::LabError;
use crate::data_plane::agent::Launch;
use crate::data_plane::{self, Redirect, Topology, captured_redirects, proxy_plans};
use crate::deployment::{DatabaseServer, Deployment, NodeProxy, Program, Service};
use crate::lab::{LocalOptions, MongoServer, Rendered};
use crate::parts::stream_module;
use crate::sampler::{Hierarchies, Source};

#[cfg(test)]
pub(crate) use cgroups::remove as remove_cgroup;
use database::Content;
pub(crate) use environment::LocalEnvironment;
pub use isolation::{Isolation, Reason, survey};
use jvm::Jvm;
pub(crate) use load::LocalEngine;
use pinning::Pinning;
pub(crate) use place::die_with;
pub use ports::Holder;
pub use process::Ending;
use template::Template;

/// This machine as a lab.
#[derive(Debug)]
pub struct LocalLab {
    options: LocalOptions,
    isolation: Isolation,
    pinning: Pinning,
    mounts: Hierarchies,
    counters: Vec<(String, String)>,
    /// What the counters leave out, one sentence.
    uncounted: Option<&'static str>,
    /// Whether the load alone runs as `SCHED_RR`.
    load_first: bool,
    /// What databases are copies of, once one was needed.
    template: Mutex<Option<Arc<Template>>>,
}

impl LocalLab {
    /// Removes what dead tolls left, then chooses the best isolation level unless one is forced.
    pub(crate) fn new(options: LocalOptions) -> Result<Self, LabError> {
        ledger::clean().map_err(LabError::Left)?;
        // toll keeps the networks of all pods and the counters of all components open.
        place::raise_open_files();
        let isolation = choose(options.isolation)?;
        if options.realtime {
            permit_realtime()?;
        }
        let mounts = match isolation {
            Isolation::Pods => Hierarchies::of_this_machine().unwrap_or_default(),
            Isolation::Rootless | Isolation::Loopback => Hierarchies::default(),
        };
        let (counters, uncounted) = counter_sources(&mounts)?;
        let pinning = Pinning::split(&allowed_cores());
        let load_first = pinning.load().is_none() && permit_realtime().is_ok();
        let template = Mutex::default();
        Ok(Self { isolation, pinning, mounts, counters, uncounted, load_first, options, template })
    }

    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether no other environment of `deployment` can be up beside one.
    pub(crate) fn stands_alone(&self, deployment: &Deployment) -> bool {
        self.isolation == Isolation::Loopback && deployment.has_fixed_ports()
    }

    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let scheduling = match (self.options.realtime, self.load_first) {
            (true, _) => "SCHED_RR for every process of the lab",
            (false, true) => "SCHED_RR for the load generator, the kernel's default for the rest",
            (false, false) => "the kernel's default",
        };
        let mut facts = vec![
            ("isolation".to_owned(), self.isolation.to_string()),
            ("pinning".to_owned(), self.pinning.describe()),
            ("scheduling".to_owned(), scheduling.to_owned()),
        ];
        facts.extend(self.counters.iter().cloned());
        facts
    }

    pub(crate) fn lacks(&self) -> Vec<String> {
        let mut lacks = self.isolation.lacks();
        lacks.extend(self.uncounted.map(str::to_owned));
        lacks
    }

    /// With loopback isolation the ports are examples: free ones are taken when it comes up.
    pub(crate) fn render(&self, deployment: &Deployment) -> Result<Vec<Rendered>, LabError> {
        let topology = topology::plan(deployment, self.isolation, 15_101..);
        let mut files = Vec::new();
        for (pod, service) in deployment.pods() {
            let config =
                topology::config(deployment, &topology, Path::new(EXAMPLE_FOLDER), &pod, service)?;
            let config = config.map(|text| Rendered { name: topology::config_name(&pod), text });
            files.extend(config);
            if let Program::Nginx(_) = service.program {
                let at = nginx::Files::new(Path::new(EXAMPLE_FOLDER), &pod, &service.name);
                let address = topology::listen_at(&topology, service.port);
                let text = nginx::config(&at, address);
                files.push(Rendered { name: nginx::config_name(&pod), text });
            }
        }
        for (pod, launch) in self.example_launches(deployment, &topology)? {
            let texts = jvm::in_words(&pod, &launch).into_iter();
            files.extend(texts.map(|(name, text)| Rendered { name, text }));
        }
        for plan in proxy_plans(deployment, &topology, Path::new(EXAMPLE_FOLDER))? {
            files.push(Rendered { name: plan.config_name, text: plan.config });
            let redirect = plan.redirect.into_iter();
            files.extend(redirect.map(|text| Rendered { name: format!("{}.nft", plan.pod), text }));
        }
        let nginx = self.options.nginx.as_deref();
        let folder = Path::new(EXAMPLE_FOLDER);
        let sni_proxy = egress::sni_proxy(deployment, &topology, nginx, folder)?;
        files.extend(sni_proxy.map(|plan| Rendered { name: plan.config_name, text: plan.config }));
        for plan in data_plane::ztunnel::plans(deployment, &topology, Path::new(EXAMPLE_FOLDER))? {
            files.push(Rendered { name: plan.config_name, text: plan.config });
        }
        let captured = captured_redirects(deployment).into_iter();
        files.extend(
            captured.map(|Redirect { pod, script }| Rendered {
                name: format!("{pod}.nft"),
                text: script,
            }),
        );
        // Replicas of a service share an agent's files.
        let mut names = HashSet::new();
        files.retain(|file| names.insert(file.name.clone()));
        Ok(files)
    }

    /// What an agent adds, with an example of a folder and, where none was looked for, of the agent's jar.
    fn example_launches(
        &self,
        deployment: &Deployment,
        topology: &Topology,
    ) -> Result<Vec<(String, Launch)>, LabError> {
        let jar = self.options.opentelemetry.as_deref().unwrap_or(Path::new(jvm::EXAMPLE_AGENT));
        jvm::launches(deployment, topology, Some(jar), Path::new(EXAMPLE_FOLDER))
    }

    /// What the JVMs of `deployment` are started with, and the programs that an agent is in, in order.
    pub(crate) fn facts_of(
        &self,
        deployment: &Deployment,
    ) -> Result<Vec<(String, String)>, LabError> {
        let flags = |service: &Service| {
            let flags = jvm::flags_of(&service.program)?;
            Some((format!("JVM flags of {}", service.name), flags.join(" ")))
        };
        let mut facts: Vec<_> = deployment.services.iter().filter_map(flags).collect();
        facts.extend(airline::facts(deployment, &self.options));
        let topology = topology::plan(deployment, self.isolation, 15_101..);
        for (pod, launch) in self.example_launches(deployment, &topology)? {
            let texts = jvm::in_words(&pod, &launch);
            let lines: Vec<_> = texts.iter().flat_map(|(_, text)| text.lines()).collect();
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
        self.check(deployment)?;
        let template = self.template_for(deployment)?;
        let mut environment = LocalEnvironment::new(self, deployment, logs)?;
        environment.make_room()?;
        step("pods", || environment.make_pods())?;
        step("redirects and identities", || environment.make_proxies())?;
        step("databases", || environment.start_databases(template.as_deref()))?;
        step("proxies", || environment.start_proxies())?;
        environment.start_collector()?;
        // Services find their database, the proxies in between and the collector when they start.
        step("proxies are ready", || environment.await_ready())?;
        environment.seed_databases()?;
        step("services", || environment.start_services())?;
        step("services are ready", || environment.await_ready())?;
        step("the entry answers", || environment.await_entry())?;
        environment.start_scraper()?;
        Ok(environment)
    }

    /// What its databases will be copies of; none without PostgreSQL.
    fn template_for(&self, deployment: &Deployment) -> Result<Option<Arc<Template>>, LabError> {
        if !needs_server(deployment, DatabaseServer::Postgres) {
            return Ok(None);
        }
        let programs = self.options.postgres.as_deref().ok_or(LabError::PostgresMissing)?;
        let mut known = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let made = Template::make(programs, &self.options.work_dir, self.isolation)?;
            *known = Some(Arc::new(made));
        }
        Ok(known.clone())
    }

    fn check(&self, deployment: &Deployment) -> Result<(), LabError> {
        self.check_pods(deployment)?;
        self.check_parts(deployment)?;
        if self.isolation == Isolation::Loopback { self.check_host(deployment) } else { Ok(()) }
    }

    /// Whether there can be a network for each of them.
    fn check_pods(&self, deployment: &Deployment) -> Result<(), LabError> {
        let nodes = deployment.nodes;
        if self.isolation == Isolation::Loopback && nodes > 1 {
            return Err(LabError::NodesNeedPods { nodes });
        }
        let topology = topology::plan(deployment, self.isolation, 15_101..);
        let ends = topology::ends(deployment, &topology);
        let services = ends.len() + nodes.saturating_sub(1);
        if services > network::MOST_PODS {
            return Err(LabError::TooManyServices { services, most: network::MOST_PODS });
        }
        let mut names = HashSet::new();
        match ends.into_iter().find(|end| !names.insert(end.pod.clone())) {
            Some(end) => Err(LabError::PodNameTaken { pod: end.pod }),
            None => Ok(()),
        }
    }

    fn check_parts(&self, deployment: &Deployment) -> Result<(), LabError> {
        let options = &self.options;
        let mesh = deployment.data_plane.is_mesh() && !has_ztunnel(deployment);
        let envoys = mesh || needs(deployment, |program| matches!(program, Program::Gateway));
        match () {
            () if envoys && options.envoy.is_none() => return Err(LabError::EnvoyMissing),
            () if needs_server(deployment, DatabaseServer::Postgres)
                && options.postgres.is_none() =>
            {
                return Err(LabError::PostgresMissing);
            }
            () if needs_nginx(deployment) && options.nginx.is_none() => {
                return Err(LabError::NginxMissing);
            }
            () if jvm::has_opentelemetry(deployment) && options.opentelemetry.is_none() => {
                return Err(LabError::AgentMissing);
            }
            () => {}
        }
        for service in &deployment.services {
            let on_jvm = jvm::flags_of(&service.program).is_some();
            if on_jvm && options.java.is_none() {
                return Err(LabError::JavaMissing);
            }
            Jvm::of(&service.program, deployment, options)?;
        }
        self.check_airline(deployment)?;
        let nginx = options.nginx.as_deref().filter(|_| has_sni_proxy(deployment));
        match nginx.map(stream_module) {
            Some(Err(source)) => Err(LabError::NotAnSniProxy { source: Box::new(source) }),
            _ => Ok(()),
        }
    }

    /// What the airline's database needs.
    fn check_airline(&self, deployment: &Deployment) -> Result<(), LabError> {
        let options = &self.options;
        for service in &deployment.services {
            let Program::AirlineDatabase(database) = &service.program else { continue };
            if service.external.is_none() {
                return Err(LabError::NotExternal { service: service.name.clone() });
            }
            match (database.server, &options.mongo) {
                (DatabaseServer::MongoDb, None) => return Err(LabError::MongoMissing),
                (DatabaseServer::MongoDb, Some(MongoServer::StandIn(_)))
                    if options.java.is_none() =>
                {
                    return Err(LabError::JavaMissing);
                }
                (DatabaseServer::MongoDb, _) => {}
                (DatabaseServer::Postgres, _) => self.check_version_of_postgres()?,
            }
        }
        Ok(())
    }

    /// One that does not say which it is shows what is wrong with it when it starts.
    fn check_version_of_postgres(&self) -> Result<(), LabError> {
        let programs = self.options.postgres.as_deref().ok_or(LabError::PostgresMissing)?;
        let told = Command::new(programs.join("postgres")).arg("--version").output();
        let told = told.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        match told.ok().and_then(|told| Some((postgres::major_version(&told)?, told))) {
            Some((major, told)) if major < postgres::LEAST_VERSION_WITH_TLS => {
                Err(LabError::PostgresTooOld { told })
            }
            _ => Ok(()),
        }
    }

    /// What pods without networks of their own take from the host.
    fn check_host(&self, deployment: &Deployment) -> Result<(), LabError> {
        let services = &deployment.services;
        if let Some(many) = services.iter().find(|service| service.replicas > 1) {
            let (service, replicas) = (many.name.clone(), many.replicas);
            return Err(LabError::ReplicasNeedPods { service, replicas });
        }
        let fixed = services.iter().filter(|_| deployment.has_fixed_ports());
        let ports = fixed.flat_map(|service| service.ports().map(move |p| (p, service)));
        match ports.into_iter().find(|(port, _)| !ports::is_free(*port)) {
            Some((port, service)) => Err(LabError::PortInUse {
                port,
                service: service.name.clone(),
                holder: ports::holder(port),
            }),
            None => Ok(()),
        }
    }
}

/// Does `work` and tells developers how long it took.
fn step<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = work();
    tracing::debug!("{name}: {:.1?}", began.elapsed());
    outcome
}

/// Stands for an environment's folder where nothing is started.
const EXAMPLE_FOLDER: &str = "/run/toll/lab";

/// Whether ztunnels stand on its nodes.
fn has_ztunnel(deployment: &Deployment) -> bool {
    deployment.data_plane.ambient().is_some_and(|ambient| ambient.proxy != NodeProxy::Envoy)
}

/// Whether this server serves one of its databases.
fn needs_server(deployment: &Deployment, server: DatabaseServer) -> bool {
    needs(deployment, |program| Content::of(program).is_some_and(|c| c.server() == server))
}

/// Whether a service of it or its SNI proxy is one.
fn needs_nginx(deployment: &Deployment) -> bool {
    has_sni_proxy(deployment) || needs(deployment, |program| matches!(program, Program::Nginx(_)))
}

fn has_sni_proxy(deployment: &Deployment) -> bool {
    deployment.data_plane.egress_gateway().is_some_and(|gateway| gateway.sni_proxy)
}

fn needs(deployment: &Deployment, which: impl Fn(&Program) -> bool) -> bool {
    deployment.services.iter().any(|service| which(&service.program))
}

/// The folder above `path` that not every user can enter.
fn closed_above(path: &Path) -> Option<PathBuf> {
    let closed = |dir: &&Path| dir.metadata().is_ok_and(|m| m.mode() & 0o001 == 0);
    let mut above = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
    above.find(closed).map(Path::to_owned)
}

/// Removes what dead tolls left, and says what that was.
///
/// # Errors
/// When something cannot be removed.
pub fn clean() -> Result<Vec<String>, LabError> {
    ledger::clean().map_err(LabError::Left)
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
    let outcome = thread::spawn(place::set_realtime).join();
    outcome
        .expect("a thread that makes one system call does not panic")
        .map_err(LabError::RealtimeRefused)
}

/// The sources of the counters, for the report, and what they leave out.
type CounterSources = (Vec<(String, String)>, Option<&'static str>);

/// Opens the counters of a cgroup that is thrown away, as each component's will be opened.
fn counter_sources(mounts: &Hierarchies) -> Result<CounterSources, LabError> {
    let mut ledger = ledger::Ledger::open().map_err(LabError::Ledger)?;
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

fn allowed_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

/// The set of these cores, for the kernel.
fn cpu_set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core).expect("the core came from a set of the same size");
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_cannot_enter_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(top.path(), mode).unwrap();
        assert_eq!(closed_above(&top.path().join("inner")).as_deref(), Some(top.path()));
    }

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
