//! The steps by which an environment comes up: pods, proxies, services, readiness. Databases: `database.rs`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::environment::{LocalEnvironment, Program, file_stem, load_generator};
use super::jvm::{self, Jvm};
use super::namespace::Namespace;
use super::place::{Place, User};
use super::probe::{Outcome, Speech, probe};
use super::served::Served;
use super::tools::Tool;
use super::{cgroups, closed_above, concurrent, nginx, ports, topology};
use crate::data_plane::agent::Launch;
use crate::data_plane::{
    self, Fingerprints, ProxyPlan, Redirect, captured_redirects, issue_edge, issue_external,
    issue_identities, network_link, proxy_plans, short_enough, ztunnel,
};
use crate::deployment::{self, DatabaseServer, Nginx, Service};
use crate::{Component, LabError, Role};

/// How long the components may take to become ready, once the databases and proxies and once the services: on
/// a small machine several JVMs that start at once need half a minute.
const LONGEST_START: Duration = Duration::from_secs(120);

/// How often readiness is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl LocalEnvironment {
    /// Makes the folder, the load's cgroup and, above loopback, the pods' network.
    pub(super) fn make_pods(&mut self) -> Result<(), LabError> {
        self.make_folder()?;
        self.load_cgroup = cgroups::make_component(&self.cgroups, &file_stem(&load_generator()))
            .map_err(|source| LabError::Write { path: "cgroup of the load".into(), source })?;
        self.make_networks()
    }

    fn make_folder(&self) -> Result<(), LabError> {
        let write = |source| LabError::Write { path: self.folder.clone(), source };
        fs::create_dir_all(&self.folder).map_err(write)?;
        fs::create_dir_all(&self.logs)
            .map_err(|source| LabError::Write { path: self.logs.clone(), source })?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).map_err(write)?;
        let User::Other(uid) = self.proxy_user() else { return Ok(()) };
        chown(&self.folder, Some(uid), None).map_err(write)?;
        match closed_above(&self.folder) {
            Some(dir) => Err(LabError::WorkDirClosed(dir)),
            None => Ok(()),
        }
    }

    /// Redirects first: a connection made before them would bypass the sidecar for its whole life.
    pub(super) fn make_proxies(&mut self) -> Result<(), LabError> {
        self.plans = proxy_plans(&self.deployment, &self.topology, &self.folder)?;
        self.ztunnels = ztunnel::plans(&self.deployment, &self.topology, &self.folder)?;
        issue_identities(&self.deployment, &self.topology, &self.folder)?;
        self.entry_ca = issue_edge(&self.deployment, &self.topology, &self.folder)?;
        self.issued = self.issue_external()?;
        self.write_hosts()?;
        self.open_low_ports()?;
        self.redirect()
    }

    /// Keys of servers are for the user that databases run as.
    fn issue_external(&self) -> Result<Fingerprints, LabError> {
        let server = match self.server_user() {
            User::Other(uid) => Some(uid),
            User::Caller | User::Mapped(_) => None,
        };
        let lifetime = self.options.certificate_lifetime;
        let folder = &self.folder;
        Ok(issue_external(&self.deployment, &self.topology, folder, lifetime, server)?)
    }

    /// A sidecar's redirect comes with its plan, a captured pod's without one.
    fn redirect(&self) -> Result<(), LabError> {
        let of_plan = |plan: &ProxyPlan| {
            Some(Redirect { pod: plan.pod.clone(), script: plan.redirect.clone()? })
        };
        let of_plans = self.plans.iter().filter_map(of_plan);
        let placed = |Redirect { pod, script }| {
            let place = inside(self.namespace_of(&pod)?);
            Some((format!("the pod {pod}"), place, script))
        };
        let redirects: Vec<(String, Place, String)> =
            of_plans.chain(captured_redirects(&self.deployment)).filter_map(placed).collect();
        let nft = Tool { launcher: &self.launcher, program: "nft", args: &["-f", "-"] };
        let install = |(pod, place, script): &(String, Place, String)| nft.run(pod, place, script);
        concurrent::for_each(&redirects, install).map(|_| ())
    }

    /// Lets gateways that are not root listen on ports below 1024, as container runtimes do.
    fn open_low_ports(&self) -> Result<(), LabError> {
        for plan in self.plans.iter().filter(|plan| plan.role == Role::Gateway) {
            if let Some(pod) = self.namespace_of(&plan.pod) {
                pod.open_low_ports().map_err(LabError::Namespaces)?;
            }
        }
        Ok(())
    }

    /// Starts sidecars, gateways and the proxies of an ambient data plane.
    pub(super) fn start_proxies(&mut self) -> Result<(), LabError> {
        self.start_ztunnels()?;
        if self.plans.is_empty() {
            return Ok(());
        }
        let envoy = self.options.envoy.clone().ok_or(LabError::EnvoyMissing)?;
        for plan in self.plans.clone() {
            self.start_proxy(&envoy, &plan)?;
        }
        self.start_sni_proxy()
    }

    fn start_proxy(&mut self, envoy: &Path, plan: &ProxyPlan) -> Result<(), LabError> {
        let config = self.folder.join(&plan.config_name);
        fs::write(&config, &plan.config)
            .map_err(|source| LabError::Write { path: config, source })?;
        let component = Component { role: plan.role, pod: plan.pod.clone() };
        let binary = File::open(envoy).map_err(|source| LabError::Start {
            component: super::environment::describe(&component),
            program: envoy.to_owned(),
            source,
        })?;
        // By descriptor: the proxies' user may not be able to enter the folders above the binary.
        let mut command = Command::new(format!("/proc/self/fd/{}", binary.as_raw_fd()));
        command.arg0(envoy).args(&plan.args);
        let user = match plan.role {
            // It enters the pods' networks and holds the keys of all services there.
            Role::NodeProxy => User::Caller,
            _ => self.proxy_user(),
        };
        let inherited = self.link_networks(&plan.networks)?;
        self.start(Program { component, command, path: envoy.to_owned(), user, inherited })
    }

    /// Has a node's proxy find the networks of these pods among the descriptors that it inherits.
    fn link_networks(&self, pods: &[String]) -> Result<Vec<Arc<OwnedFd>>, LabError> {
        let networks = pods.iter().filter_map(|pod| Some((pod, self.namespace_of(pod)?)));
        let link = |(pod, network): (&String, &Namespace)| {
            let (path, descriptor) = (network_link(&self.folder, pod), network.descriptor());
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            let target = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
            made.and_then(|()| symlink(target, &path))
                .map_err(|source| LabError::Write { path, source })?;
            Ok(descriptor)
        };
        networks.map(link).collect()
    }

    /// Starts the collector of spans, if there is one: agents look for it as soon as they start.
    pub(super) fn start_collector(&mut self) -> Result<(), LabError> {
        let Some(socket) = self.collector_socket() else { return Ok(()) };
        let deployment = self.deployment.clone();
        for (pod, service) in deployment.pods() {
            if !matches!(service.program, deployment::Program::Collector) {
                continue;
            }
            let at = SocketAddrV4::new(topology::listen_ip(self.topology.capture), service.port);
            let (path, mut command) = of_toll(&self.options.collector);
            command.arg("--listen").arg(at.to_string()).arg("--admin").arg(&socket);
            let component = Component { role: Role::Collector, pod };
            self.start(Program {
                component,
                command,
                path,
                user: User::Caller,
                inherited: vec![],
            })?;
        }
        Ok(())
    }

    /// Starts the application's own programs.
    pub(super) fn start_services(&mut self) -> Result<(), LabError> {
        let deployment = self.deployment.clone();
        let launches = self.agent_launches()?;
        for (pod, service) in deployment.pods() {
            let Some((path, mut command)) = self.program(&pod, service)? else { continue };
            let launch = launches.iter().find(|(of, _)| *of == pod).map(|(_, launch)| launch);
            for (path, text) in launch.iter().flat_map(|launch| &launch.files) {
                write(path, text)?;
            }
            jvm::equip(&mut command, &service.program, launch, std::env::vars_os());
            let component = Component { role: Role::Application, pod };
            self.start(Program {
                component,
                command,
                path,
                user: User::Caller,
                inherited: vec![],
            })?;
        }
        Ok(())
    }

    fn agent_launches(&self) -> Result<Vec<(String, Launch)>, LabError> {
        let opentelemetry = self.options.opentelemetry.as_deref();
        jvm::launches(&self.deployment, &self.topology, opentelemetry, &self.folder)
    }

    /// What runs in the pod; none when that is no program of the application's own.
    fn program(
        &mut self,
        pod: &str,
        service: &Service,
    ) -> Result<Option<(PathBuf, Command)>, LabError> {
        Ok(match &service.program {
            deployment::Program::BuiltIn(_)
            | deployment::Program::Airline(_)
            | deployment::Program::Petclinic(_) => Some(self.tolls_own(pod, service)?),
            deployment::Program::Command(argv) => Some(self.users_own(pod, service, argv)?),
            deployment::Program::Nginx(page) => Some(self.nginx(pod, service, *page)?),
            deployment::Program::Gateway
            | deployment::Program::Postgres(_)
            | deployment::Program::AirlineDatabase(_)
            | deployment::Program::Collector => None,
        })
    }

    fn tolls_own(&self, pod: &str, service: &Service) -> Result<(PathBuf, Command), LabError> {
        let (path, mut command) = match Jvm::of(&service.program, &self.deployment, &self.options)?
        {
            Some(jvm) => self.java(&jvm)?,
            None => of_toll(&self.options.service),
        };
        let config = self.folder.join(topology::config_name(pod));
        let text = topology::config(&self.deployment, &self.topology, &self.folder, pod, service)?;
        write(&config, &text.unwrap_or_default())?;
        command.arg("--config").arg(config);
        Ok((path, command))
    }

    /// Writes what it needs and starts to count what it answers.
    fn nginx(
        &mut self,
        pod: &str,
        service: &Service,
        page: Nginx,
    ) -> Result<(PathBuf, Command), LabError> {
        let path = self.options.nginx.clone().ok_or(LabError::NginxMissing)?;
        let files = nginx::Files::new(&self.folder, pod, &service.name);
        let make = |source| LabError::Write { path: files.root.clone(), source };
        fs::create_dir_all(&files.root).map_err(make)?;
        write(&files.page(), &nginx::page(page))?;
        let address = topology::listen_at(&self.topology, service.port);
        write(&files.config, &nginx::config(&files, address))?;
        let mut command = Command::new(&path);
        command.args(files.arguments());
        self.served.push(Served::new(pod.to_owned(), short_enough(files.status)?));
        Ok((path, command))
    }

    fn java(&self, jvm: &Jvm) -> Result<(PathBuf, Command), LabError> {
        let java = self.options.java.clone().ok_or(LabError::JavaMissing)?;
        Ok((java.clone(), jvm.command(&java, &self.folder)))
    }

    /// The addresses of the called services are in the environment: there are no names in a pod's network.
    fn users_own(
        &self,
        pod: &str,
        service: &Service,
        argv: &[String],
    ) -> Result<(PathBuf, Command), LabError> {
        let (program, args) = argv.split_first().ok_or_else(|| LabError::Start {
            component: pod.to_owned(),
            program: PathBuf::new(),
            source: std::io::ErrorKind::InvalidInput.into(),
        })?;
        let mut command = Command::new(program);
        command.args(args);
        for callee in &service.calls {
            let addresses = topology::call_addresses(&self.topology, pod, callee)?;
            let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            command.env(call_variable(callee), addresses.join(","));
        }
        Ok((PathBuf::from(program), command))
    }

    /// Waits until each component that was started since the last wait is ready.
    pub(super) fn await_ready(&mut self) -> Result<(), LabError> {
        let deadline = Instant::now() + LONGEST_START;
        for (component, process) in &self.components[self.ready..] {
            while !self.is_ready(component, process.pid)? {
                self.check_start(&process.name, || process.log_tail(), deadline)?;
                thread::sleep(LOOK_EVERY);
            }
        }
        self.ready = self.components.len();
        Ok(())
    }

    /// Waits until the entry answers the load's pod.
    pub(super) fn await_entry(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + LONGEST_START;
        while !self.answers()? {
            self.check_start(&self.deployment.entry, Vec::new, deadline)?;
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Whether it is worth waiting on.
    fn check_start(
        &self,
        component: &str,
        log: impl FnOnce() -> Vec<String>,
        deadline: Instant,
    ) -> Result<(), LabError> {
        self.still_wanted()?;
        match self.crashed() {
            Some(crash) => Err(crash),
            None if Instant::now() < deadline => Ok(()),
            None => Err(LabError::NotReady {
                component: component.to_owned(),
                waited_s: LONGEST_START.as_secs(),
                log: log(),
            }),
        }
    }

    /// An error once the user wants to leave.
    pub(super) fn still_wanted(&self) -> Result<(), LabError> {
        match self.options.interrupt.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }

    fn is_ready(&self, component: &Component, pid: nix::unistd::Pid) -> Result<bool, LabError> {
        match component.role {
            Role::Sidecar
            | Role::Gateway
            | Role::EgressGateway
            | Role::NodeProxy
            | Role::Waypoint => self.proxy_is_ready(&component.pod),
            Role::Database => self.database_is_ready(&component.pod, pid),
            Role::SniProxy => Ok(self.sni_port().is_none_or(|port| ports::listens(pid, port))),
            Role::Application | Role::Collector | Role::LoadGenerator | Role::Harness => {
                let pod = self.topology.pods.iter().find(|pod| pod.pod == component.pod);
                Ok(pod.is_none_or(|pod| ports::listens(pid, pod.app_port)))
            }
        }
    }

    /// A PostgreSQL says so itself. A JVM that listens may be seconds away from its first handshake.
    fn database_is_ready(&self, pod: &str, pid: nix::unistd::Pid) -> Result<bool, LabError> {
        let mut databases = self.databases().into_iter();
        match databases.find(|database| database.pod == pod).map(|d| d.content.server()) {
            Some(DatabaseServer::MongoDb) => {
                let port = self.topology.pods[self.place_of(pod)].app_port;
                Ok(ports::listens(pid, port) && self.takes_clients(pod)?)
            }
            _ => Ok(self.server(pod).is_ready()),
        }
    }

    fn proxy_is_ready(&self, pod: &str) -> Result<bool, LabError> {
        if let Some(plan) = self.plans.iter().find(|plan| plan.pod == pod) {
            return Ok(data_plane::ready(&plan.admin_socket)?);
        }
        let ztunnel = self.ztunnels.iter().find(|plan| plan.node == pod);
        ztunnel.map_or(Ok(true), |plan| self.ztunnel_is_ready(plan))
    }

    fn answers(&self) -> Result<bool, LabError> {
        let (place, entry) = self.way_in()?;
        let answer = probe(&self.launcher, &self.options.service, &place, entry, Speech::Request)?;
        // A service that closes or talks nonsense is up, too: under load it will show what it does.
        let up = [Outcome::Answered, Outcome::Closed, Outcome::Reset, Outcome::Garbled];
        Ok(up.contains(&answer.outcome))
    }
}

/// A place in the pod's network, with the caller's privilege.
pub(super) fn inside(pod: &Namespace) -> Place {
    Place { namespace: Some(pod.clone()), ..Place::default() }
}

/// One of toll's own programs, with its first arguments.
pub(super) fn of_toll(words: &[OsString]) -> (PathBuf, Command) {
    let (program, arguments) = words.split_first().expect("toll names its own programs");
    let mut command = Command::new(program);
    command.args(arguments);
    (PathBuf::from(program), command)
}

fn write(path: &Path, text: &str) -> Result<(), LabError> {
    fs::write(path, text).map_err(|source| LabError::Write { path: path.to_owned(), source })
}

/// `TOLL_CALL_` and the service's name in capitals.
fn call_variable(callee: &str) -> String {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TOLL_CALL_{}", callee.chars().map(capital).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    mod ambient;

    #[test]
    fn a_called_service_is_named_by_a_variable_that_a_shell_can_read() {
        assert_eq!(call_variable("name-db.v2"), "TOLL_CALL_NAME_DB_V2");
    }
}
