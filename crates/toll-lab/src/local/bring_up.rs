//! The steps by which an environment comes up: pods, sidecars, services, readiness.

use std::fs::{self, File};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::environment::{LocalEnvironment, Program, file_stem, load_generator};
use super::isolation::{Isolation, Reason};
use super::namespace::Namespace;
use super::place::Place;
use super::probe::{Outcome, probe};
use super::{cgroups, network, ports, tools, topology};
use crate::data_plane::{self, issue_identities, proxy_plans};
use crate::deployment::{self, DataPlane, Service};
use crate::{Component, LabError, Role};

/// How long all components together may take to become ready.
const LONGEST_START: Duration = Duration::from_secs(60);

/// How often readiness is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl LocalEnvironment {
    /// Makes the folder, the load's cgroup and, above loopback, the pods' network.
    pub(super) fn make_pods(&mut self) -> Result<(), LabError> {
        self.make_folder()?;
        self.load_cgroup = cgroups::make_component(&self.cgroups, &file_stem(&load_generator()))
            .map_err(|source| LabError::Write { path: "cgroup of the load".into(), source })?;
        let switch = match self.isolation {
            Isolation::Loopback => return Ok(()),
            Isolation::Pods => Namespace::privileged(),
            Isolation::Rootless => Namespace::rootless(),
        };
        let switch = switch.map_err(LabError::Namespaces)?;
        let sibling = |_| switch.sibling().map_err(LabError::Namespaces);
        self.pods = self.deployment.services.iter().map(sibling).collect::<Result<_, _>>()?;
        self.load_pod = Some(sibling(&self.deployment.services[0])?);
        self.switch = Some(switch);
        self.link_pods()
    }

    fn make_folder(&self) -> Result<(), LabError> {
        let write = |source| LabError::Write { path: self.folder.clone(), source };
        fs::create_dir_all(&self.folder).map_err(write)?;
        fs::create_dir_all(&self.logs)
            .map_err(|source| LabError::Write { path: self.logs.clone(), source })?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).map_err(write)?;
        match self.sidecar_uid() {
            Some(uid) if self.deployment.data_plane != DataPlane::Bare => {
                chown(&self.folder, Some(uid), None).map_err(write)?;
                open_to_all(&self.folder)
            }
            _ => Ok(()),
        }
    }

    fn link_pods(&self) -> Result<(), LabError> {
        let ends = self.load_pod.iter().chain(&self.pods);
        let ends: Vec<Arc<OwnedFd>> = ends
            .map(|pod| pod.as_fd().try_clone_to_owned().map(Arc::new))
            .collect::<Result<_, _>>()
            .map_err(LabError::Namespaces)?;
        let numbers: Vec<i32> = ends.iter().map(|fd| fd.as_raw_fd()).collect();
        let place = Place { namespace: self.switch.clone(), inherited: ends, ..Place::default() };
        self.ip("the switch", &place, &network::switch_script(&numbers))?;
        for (pod, ip) in self.load_pod.iter().zip([network::LOAD_IP]) {
            self.ip("the load's pod", &inside(pod), &network::pod_script(ip))?;
        }
        for (pod, addresses) in self.pods.iter().zip(&self.topology.pods) {
            let name = format!("the pod of {}", addresses.service);
            self.ip(&name, &inside(pod), &network::pod_script(addresses.ip))?;
        }
        Ok(())
    }

    fn ip(&self, pod: &str, place: &Place, script: &str) -> Result<(), LabError> {
        self.tool("ip", &["-batch", "-"], pod, place, script).map(|_| ())
    }

    /// What `program` prints when it runs in `place` with `script` on its stdin.
    pub(super) fn tool(
        &self,
        program: &'static str,
        args: &[&str],
        pod: &str,
        place: &Place,
        script: &str,
    ) -> Result<String, LabError> {
        let failed = |message| LabError::Tool { program, pod: pod.to_owned(), message };
        let path = tools::find(program)
            .ok_or_else(|| failed(Reason::ProgramMissing(program).to_string()))?;
        let mut command = Command::new(path);
        command.args(args);
        place.apply(&mut command).map_err(|e| failed(e.to_string()))?;
        let output = self.launcher.run(command, script).map_err(|e| failed(e.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }

    /// Redirects first: a connection made before them would bypass the sidecar for its whole life.
    pub(super) fn start_sidecars(&mut self) -> Result<(), LabError> {
        self.plans = proxy_plans(&self.deployment, &self.topology, &self.folder)?;
        if self.plans.is_empty() {
            return Ok(());
        }
        issue_identities(&self.deployment, &self.topology, &self.folder)?;
        for (pod, plan) in self.pods.iter().zip(&self.plans) {
            let script = plan.redirect.as_deref().unwrap_or_default();
            let name = format!("the pod of {}", plan.pod);
            self.tool("nft", &["-f", "-"], &name, &inside(pod), script)?;
        }
        let envoy = self.options.envoy.clone().ok_or(LabError::EnvoyMissing)?;
        for pod in 0..self.plans.len() {
            self.start_sidecar(&envoy, pod)?;
        }
        Ok(())
    }

    fn start_sidecar(&mut self, envoy: &Path, pod: usize) -> Result<(), LabError> {
        let plan = &self.plans[pod];
        let config = self.folder.join(&plan.config_name);
        fs::write(&config, &plan.config)
            .map_err(|source| LabError::Write { path: config, source })?;
        let component = Component { role: Role::Sidecar, pod: plan.pod.clone() };
        let binary = File::open(envoy).map_err(|source| LabError::Start {
            component: super::environment::describe(&component),
            program: envoy.to_owned(),
            source,
        })?;
        // By descriptor: the sidecars' user may not be able to enter the folders above the binary.
        let mut command = Command::new(format!("/proc/self/fd/{}", binary.as_raw_fd()));
        command.arg0(envoy).args(&plan.args);
        let uid = self.sidecar_uid();
        self.start(Program { component, command, path: envoy.to_owned(), uid, pod })
    }

    pub(super) fn start_services(&mut self) -> Result<(), LabError> {
        for (pod, service) in self.deployment.services.clone().iter().enumerate() {
            let (path, command) = match &service.program {
                deployment::Program::BuiltIn(behaviour) => self.built_in(service, behaviour)?,
                deployment::Program::Command(argv) => self.users_own(service, argv)?,
                deployment::Program::Gateway | deployment::Program::Postgres(_) => {
                    todo!("the lab starts gateways and databases")
                }
            };
            let component = Component { role: Role::Application, pod: service.name.clone() };
            self.start(Program { component, command, path, uid: None, pod })?;
        }
        Ok(())
    }

    fn built_in(
        &self,
        service: &Service,
        behaviour: &deployment::BuiltIn,
    ) -> Result<(PathBuf, Command), LabError> {
        let config = self.folder.join(format!("{}.service.json", service.name));
        let text = topology::service_config(&self.topology, service, behaviour)?;
        fs::write(&config, text)
            .map_err(|source| LabError::Write { path: config.clone(), source })?;
        let mut command = Command::new(&self.options.service[0]);
        command.args(&self.options.service[1..]).arg("--config").arg(config);
        Ok((PathBuf::from(&self.options.service[0]), command))
    }

    /// The addresses of the called services are in the environment: there are no names in a pod's network.
    fn users_own(
        &self,
        service: &Service,
        argv: &[String],
    ) -> Result<(PathBuf, Command), LabError> {
        let (program, args) = argv.split_first().ok_or_else(|| LabError::Start {
            component: service.name.clone(),
            program: PathBuf::new(),
            source: std::io::ErrorKind::InvalidInput.into(),
        })?;
        let mut command = Command::new(program);
        command.args(args);
        for callee in &service.calls {
            let address = topology::call_address(&self.topology, &service.name, callee)?;
            command.env(call_variable(callee), address.to_string());
        }
        Ok((PathBuf::from(program), command))
    }

    /// Waits until each component listens and the entry answers the load's pod.
    pub(super) fn await_ready(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + LONGEST_START;
        for (component, process) in &self.components {
            while !self.is_ready(component, process.pid)? {
                self.check_start(&process.name, || process.log_tail(), deadline)?;
                thread::sleep(LOOK_EVERY);
            }
        }
        let entry = topology::front(&self.topology, &self.deployment.entry)?;
        while !self.answers(entry)? {
            self.check_start(&self.deployment.entry, Vec::new, deadline)?;
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn check_start(
        &self,
        component: &str,
        log: impl FnOnce() -> Vec<String>,
        deadline: Instant,
    ) -> Result<(), LabError> {
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

    fn is_ready(&self, component: &Component, pid: nix::unistd::Pid) -> Result<bool, LabError> {
        if component.role == Role::Sidecar {
            let plan = self.plans.iter().find(|plan| plan.pod == component.pod);
            return plan.map_or(Ok(true), |plan| Ok(data_plane::ready(&plan.admin_socket)?));
        }
        let service = self.deployment.services.iter().find(|s| s.name == component.pod);
        Ok(service.is_none_or(|service| ports::listens(pid, service.port)))
    }

    fn answers(&self, entry: SocketAddrV4) -> Result<bool, LabError> {
        let place = self.load_place();
        let answer = probe(&self.launcher, &self.options.service, &place, entry, false)?;
        // A service that closes or talks nonsense is up, too: under load it will show what it does.
        let up = [Outcome::Answered, Outcome::Closed, Outcome::Reset, Outcome::Garbled];
        Ok(up.contains(&answer.outcome))
    }
}

/// A place in the pod's network, with the caller's privilege.
pub(super) fn inside(pod: &Namespace) -> Place {
    Place { namespace: Some(pod.clone()), ..Place::default() }
}

/// `TOLL_CALL_` and the service's name in capitals.
fn call_variable(callee: &str) -> String {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TOLL_CALL_{}", callee.chars().map(capital).collect::<String>())
}

/// Whether every user can enter the folders above `folder`.
fn open_to_all(folder: &Path) -> Result<(), LabError> {
    let closed = |dir: &&Path| dir.metadata().is_ok_and(|m| m.mode() & 0o001 == 0);
    let above = folder.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
    match above.collect::<Vec<_>>().iter().find(|dir| closed(dir)) {
        Some(dir) => Err(LabError::WorkDirClosed(dir.to_path_buf())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_called_service_is_named_by_a_variable_that_a_shell_can_read() {
        assert_eq!(call_variable("name-db.v2"), "TOLL_CALL_NAME_DB_V2");
    }

    #[test]
    fn a_folder_that_others_cannot_enter_is_named() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("inner");
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = open_to_all(&inner).unwrap_err();
        assert!(matches!(error, LabError::WorkDirClosed(dir) if dir == top.path()));
    }
}
