//! One deployment as it runs on this machine: what it is composed of, and what its users ask of it.

use std::path::Path;

use super::LocalLab;
use super::credentials::Credentials;
use super::engine::LocalEngine;
use super::observer::{Observer, OpenProof};
use super::pods::Pods;
use super::processes::{Processes, ledger_for};
use super::proxies::Proxies;
use super::setup::Setup;
use crate::deployment::Deployment;
use crate::planes::egress;
use crate::programs;
use crate::programs::nginx::status::AnswerCounter;
use crate::topology;
use crate::{Component, CutLog, LabError, Role, Sample};

/// A deployment that runs, or is on its way up. Its parts do not see each other: what one needs of another is handed
/// to it here.
#[derive(Debug)]
pub(crate) struct LocalEnvironment {
    pub(super) setup: Setup,
    pub(super) pods: Pods,
    pub(super) processes: Processes,
    pub(super) proxies: Proxies,
    pub(super) credentials: Credentials,
    /// Of every nginx that plays a service.
    answers: Vec<AnswerCounter>,
    pub(super) proof: Option<OpenProof>,
    is_down: bool,
}

impl LocalEnvironment {
    /// Opens the ledger and the cgroups; starts nothing.
    pub(super) fn new(
        lab: &LocalLab,
        deployment: &Deployment,
        logs: &Path,
    ) -> Result<Self, LabError> {
        let work_dir = &lab.machine.options.work_dir;
        let (ledger, folder, planned) = ledger_for(work_dir, &lab.mounts)?;
        let setup = Setup::new(lab.machine.clone(), deployment, folder, logs)?;
        let mut processes = Processes::new(ledger, &planned)?;
        processes.announce(components(&setup));
        let counters: Result<Vec<_>, _> =
            setup.sites().filter_map(|site| programs::answer_counter(&site).transpose()).collect();
        Ok(Self {
            answers: counters?,
            setup,
            pods: Pods::default(),
            processes,
            proxies: Proxies::default(),
            credentials: Credentials::default(),
            proof: None,
            is_down: false,
        })
    }

    pub(crate) fn entry_url(&self) -> String {
        let scheme = if self.credentials.entry_ca.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.setup.entry())
    }

    pub(crate) fn entry_ca(&self) -> Option<String> {
        self.credentials.entry_ca.clone()
    }

    pub(crate) fn sample(&mut self) -> Sample {
        self.processes.sample()
    }

    pub(crate) fn sample_counters(&mut self) -> Sample {
        self.processes.sample_counters()
    }

    pub(crate) fn sample_in_passing(&mut self) -> Sample {
        self.processes.sample_in_passing()
    }

    /// Starts the load program in the load's pod.
    pub(crate) fn start_engine(&mut self) -> Result<LocalEngine, LabError> {
        let context = self.pods.load(&self.setup.machine);
        self.processes.start_engine(&self.setup, context)
    }

    /// Looks at all of it, and changes nothing.
    pub(super) fn observer(&self) -> Observer<'_> {
        Observer {
            setup: &self.setup,
            pods: &self.pods,
            processes: &self.processes,
            proxies: &self.proxies,
            issued: &self.credentials.external,
            answers: &self.answers,
        }
    }

    /// The first component that ended by itself.
    pub(crate) fn crashed(&self) -> Option<LabError> {
        self.processes.crashed()
    }

    pub(crate) fn last_lines(&self, service: &str) -> Vec<String> {
        self.processes.last_lines(service)
    }

    pub(crate) fn cut_logs(&self) -> Vec<CutLog> {
        self.processes.cut_logs()
    }

    /// Ends all processes and removes all that was made.
    pub(crate) fn down(mut self) -> Result<(), LabError> {
        self.tear_down()
    }

    fn tear_down(&mut self) -> Result<(), LabError> {
        self.is_down = true;
        let ended = self.processes.end();
        self.proxies.take_no_questions();
        ended
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

/// All components of an environment but the load, in the order of the samples.
fn components(setup: &Setup) -> Vec<Component> {
    let of_pod = |pod: &str, role| Component { role, pod: pod.to_owned() };
    let of_application = setup.sites().flat_map(|site| {
        let pod = &site.pod.pod;
        let sidecar = setup.deployment.has_sidecar(site.service);
        let sidecar = sidecar.then(|| of_pod(pod, Role::Sidecar));
        [Some(of_pod(pod, site.service.program.role())), sidecar].into_iter().flatten()
    });
    let ends = topology::ends(&setup.deployment, &setup.topology).into_iter();
    let of_plane = ends.skip(setup.topology.pods.len()).flat_map(|end| {
        let roles = roles_of(setup, &end.pod).into_iter();
        roles.map(|role| of_pod(&end.pod, role)).collect::<Vec<_>>()
    });
    of_application.chain(of_plane).collect()
}

/// What runs in a pod that is the data plane's own.
fn roles_of(setup: &Setup, pod: &str) -> Vec<Role> {
    let topology = &setup.topology;
    if topology.waypoint.as_ref().is_some_and(|waypoint| waypoint.pod == pod) {
        return vec![Role::Waypoint];
    }
    if topology.egress.as_ref().is_none_or(|egress| egress.pod != pod) {
        return vec![Role::NodeProxy];
    }
    let sni_proxy = egress::sni_proxy(&setup.deployment).map(|_| Role::SniProxy);
    [Role::EgressGateway].into_iter().chain(sni_proxy).collect()
}
