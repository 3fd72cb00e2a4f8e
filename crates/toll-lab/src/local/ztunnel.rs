//! Starts the nodes' ztunnels, and asks them from inside of their pods whether they are ready and what they counted.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::process::CommandExt;
use std::path;
use std::process::Command;

use super::environment::{LocalEnvironment, Program};
use super::place::{Place, User};
use super::probe::{Answer, Outcome, Speech, probe};
use super::zds::{Pod, State, Zds};
use crate::data_plane::ztunnel::{self, METRICS, Plan, READINESS};
use crate::data_plane::{DataPlaneError, ProxyCounters};
use crate::{Component, LabError, Role};

impl LocalEnvironment {
    pub(super) fn start_ztunnels(&mut self) -> Result<(), LabError> {
        for plan in self.ztunnels.clone() {
            self.start_ztunnel(&plan)?;
        }
        Ok(())
    }

    fn start_ztunnel(&mut self, plan: &Plan) -> Result<(), LabError> {
        let config = self.folder.join(&plan.config_name);
        fs::write(&config, &plan.config)
            .map_err(|source| LabError::Write { path: config, source })?;
        let failed = |source| DataPlaneError::Zds { node: plan.node.clone(), source };
        let zds = Zds::serve(&plan.zds_socket, self.pods_of(plan)).map_err(failed)?;
        self.zds.insert(plan.node.clone(), zds);
        let component = Component { role: Role::NodeProxy, pod: plan.node.clone() };
        let path = path::absolute(&plan.binary).unwrap_or_else(|_| plan.binary.clone());
        let mut command = Command::new(&path);
        // It would take more variables than these, and files below the folder that it starts in.
        command.arg0(&plan.binary).args(plan.args).current_dir(&self.folder);
        command.env_clear().envs(plan.environment.iter().map(|(name, value)| (name, value)));
        // It enters the pods' networks and marks its sockets.
        let user = User::Caller;
        self.start(Program { component, command, path, user, inherited: vec![] })
    }

    fn pods_of(&self, plan: &Plan) -> Vec<Pod> {
        let pods = plan.workloads.iter().filter_map(|workload| {
            let network = self.namespace_of(&workload.pod)?.descriptor();
            Some(Pod { workload: workload.clone(), network })
        });
        pods.collect()
    }

    /// Whether this ztunnel takes the traffic of all its pods.
    ///
    /// # Errors
    /// When it will not take a pod, or cannot be asked.
    pub(super) fn ztunnel_is_ready(&self, plan: &Plan) -> Result<bool, LabError> {
        match self.zds.get(&plan.node).map(Zds::state) {
            Some(State::Served) => Ok(self.ask_ztunnel(plan, READINESS)?.status == Some(200)),
            Some(State::Refused(reason)) => {
                Err(DataPlaneError::ZdsRefused { node: plan.node.clone(), reason }.into())
            }
            Some(State::Waiting) | None => Ok(false),
        }
    }

    /// What the nodes' ztunnels have counted, by node.
    pub(super) fn ztunnel_counters(&self) -> Result<BTreeMap<String, ProxyCounters>, LabError> {
        let read = |plan: &Plan| {
            let answer = self.ask_ztunnel(plan, METRICS)?;
            if (answer.outcome, answer.status) != (Outcome::Answered, Some(200)) {
                let outcome = match answer.status {
                    Some(status) => format!("status {status}"),
                    None => format!("{:?}", answer.outcome).to_lowercase(),
                };
                return Err(
                    DataPlaneError::ZtunnelSilent { node: plan.node.clone(), outcome }.into()
                );
            }
            let counters = ztunnel::counters(&answer.body, &self.deployment);
            Ok::<_, LabError>((plan.node.clone(), counters))
        };
        self.ztunnels.iter().map(read).collect()
    }

    fn ask_ztunnel(
        &self,
        plan: &Plan,
        (port, path): (u16, &'static str),
    ) -> Result<Answer, LabError> {
        let namespace = self.namespace_of(&plan.node).cloned();
        let place = Place { namespace, ..self.load_place() };
        let target = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        probe(&self.launcher, &self.options.service, &place, target, Speech::Get(path))
    }
}

#[cfg(test)]
mod tests;
