//! The proxies of an environment: the Envoys of its plans, the ztunnels of its nodes, the SNI proxy beside its egress
//! gateway, the Meshers of its pods. What starts them and where is given.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{self, Path};
use std::process::Command;

use nix::unistd::Pid;

use super::setup::{Setup, describe};
use crate::artifacts::Artifact;
use crate::certificates::api::{self, CertificateApi, Served};
use crate::certificates::mesh::MeshAuthority;
use crate::envoy::{admin, plan::ProxyPlan};
use crate::error::DataPlaneError;
use crate::evidence::ProxyCounters;
use crate::host::listeners::listen_in_each;
use crate::host::namespace::Namespace;
use crate::host::spawn::Start;
use crate::host::{concurrent, files, ports};
use crate::planes::ambient::links::link_network;
use crate::planes::ambient::ztunnel::zds::{Pod, State, Zds};
use crate::planes::ambient::ztunnel::{self, METRICS, READINESS};
use crate::planes::ambient::{Redirect, captured_redirects};
use crate::planes::egress::sni_proxy::{self, SniProxyPlan};
use crate::planes::proxy_plans;
use crate::planes::sidecar::mesher;
use crate::probe::{Answer, Outcome, Speech};
use crate::programs::nginx::status;
use crate::{Component, LabError, Role};

/// All proxies of one environment; none before they are planned.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    envoys: Vec<ProxyPlan>,
    /// The nodes' proxies where these are ztunnels.
    ztunnels: Vec<ztunnel::Plan>,
    /// What gives them the networks of their pods, by node.
    zds: BTreeMap<String, Zds>,
    /// What gives them the certificates of their pods.
    certificates: Option<CertificateApi>,
    sni_proxy: Option<SniProxyPlan>,
    meshers: Vec<mesher::Plan>,
}

/// The network of a pod that has one of its own.
pub(super) type NetworkOf<'a> = &'a dyn Fn(&str) -> Option<Namespace>;

/// Starts a component.
pub(super) type Launch<'a> = &'a mut dyn FnMut(Component, Start) -> Result<(), LabError>;

/// Asks inside of a pod.
pub(super) type Ask<'a> = &'a dyn Fn(&str, SocketAddrV4, Speech) -> Result<Answer, LabError>;

impl Proxies {
    /// What the deployment's plane asks for.
    ///
    /// # Errors
    /// When the plane cannot be had for this deployment.
    pub(super) fn plan(setup: &Setup) -> Result<Self, LabError> {
        let Setup { deployment, topology, folder, machine, .. } = setup;
        let module = sni_proxy::module(&machine.options.artifacts);
        Ok(Self {
            envoys: proxy_plans(deployment, topology, folder)?,
            ztunnels: ztunnel::plans(deployment, topology, folder)?,
            zds: BTreeMap::new(),
            certificates: None,
            sni_proxy: sni_proxy::plan(deployment, topology, module.as_deref(), folder)?,
            meshers: mesher::plans(deployment, topology, folder)?,
        })
    }

    /// What the firewalls of pods send through them. A sidecar's redirect comes with its plan, a captured pod's
    /// without one.
    pub(super) fn redirects(&self, setup: &Setup) -> Vec<Redirect> {
        let of_plan = |plan: &ProxyPlan| {
            Some(Redirect { pod: plan.pod.clone(), script: plan.redirect.clone()? })
        };
        let of_plans = self.envoys.iter().filter_map(of_plan);
        of_plans.chain(captured_redirects(&setup.deployment)).collect()
    }

    /// The pods of gateways.
    pub(super) fn gateways(&self) -> impl Iterator<Item = &str> {
        let gateways = self.envoys.iter().filter(|plan| plan.role == Role::Gateway);
        gateways.map(|plan| plan.pod.as_str())
    }

    /// Starts all of them. Those that ask for their certificates get them of `authority`.
    ///
    /// # Errors
    /// When a file cannot be written or a program cannot be started.
    pub(super) fn start(
        &mut self,
        setup: &Setup,
        authority: Option<MeshAuthority>,
        network_of: NetworkOf<'_>,
        launch: Launch<'_>,
    ) -> Result<(), LabError> {
        let asked = authority.filter(|_| !self.ztunnels.is_empty());
        let serve = |authority| serve_certificates(setup, &self.ztunnels, authority, network_of);
        self.certificates = asked.map(serve).transpose()?;
        for plan in &self.ztunnels {
            let zds = serve_networks(plan, network_of)?;
            self.zds.insert(plan.node.clone(), zds);
            let node = Component { role: Role::NodeProxy, pod: plan.node.clone() };
            launch(node, start_of_ztunnel(setup, plan)?)?;
        }
        for plan in &self.envoys {
            start_envoy(setup, plan, network_of, launch)?;
        }
        if let Some(plan) = &self.sni_proxy {
            let component = Component { role: Role::SniProxy, pod: plan.pod.clone() };
            launch(component, start_of_sni_proxy(setup, plan)?)?;
        }
        for plan in &self.meshers {
            let component = Component { role: Role::Sidecar, pod: plan.pod.clone() };
            launch(component, start_of_mesher(plan)?)?;
        }
        Ok(())
    }

    /// Whether the proxy in this pod takes traffic.
    ///
    /// # Errors
    /// When it cannot be asked, or a ztunnel will not take a pod.
    pub(super) fn is_ready(&self, pod: &str, ask: Ask<'_>) -> Result<bool, LabError> {
        if let Some(plan) = self.envoys.iter().find(|plan| plan.pod == pod) {
            return Ok(admin::ready(&plan.admin_socket)?);
        }
        if let Some(plan) = self.meshers.iter().find(|plan| plan.pod == pod) {
            return mesher_is_ready(plan, ask);
        }
        let ztunnel = self.ztunnels.iter().find(|plan| plan.node == pod);
        ztunnel.map_or(Ok(true), |plan| self.ztunnel_is_ready(plan, ask))
    }

    /// Whether this ztunnel takes the traffic of all its pods.
    fn ztunnel_is_ready(&self, plan: &ztunnel::Plan, ask: Ask<'_>) -> Result<bool, LabError> {
        if let Some(reason) = self.certificates_of(plan).refused {
            return Err(
                DataPlaneError::CertificateRefused { node: plan.node.clone(), reason }.into()
            );
        }
        match self.zds.get(&plan.node).map(Zds::state) {
            Some(State::Served) => Ok(ask_ztunnel(plan, READINESS, ask)?.status == Some(200)),
            Some(State::Refused(reason)) => {
                Err(DataPlaneError::ZdsRefused { node: plan.node.clone(), reason }.into())
            }
            Some(State::Waiting) | None => Ok(false),
        }
    }

    /// What this ztunnel was given of the certificates of its pods.
    fn certificates_of(&self, plan: &ztunnel::Plan) -> Served {
        let index = self.ztunnels.iter().position(|other| other.node == plan.node);
        let served = self.certificates.as_ref().zip(index).map(|(api, index)| api.served(index));
        served.unwrap_or_default()
    }

    /// What all of them have counted, by pod.
    ///
    /// # Errors
    /// When one cannot be asked.
    pub(super) fn counters(
        &self,
        setup: &Setup,
        ask: Ask<'_>,
    ) -> Result<BTreeMap<String, ProxyCounters>, LabError> {
        let of_ztunnel = |plan| {
            let counters = ztunnel_counters(setup, plan, ask)?;
            let certificates = self.certificates_of(plan).issued;
            Ok::<_, LabError>((plan.node.clone(), ProxyCounters { certificates, ..counters }))
        };
        let read = |plan: &ProxyPlan| {
            Ok::<_, LabError>((plan.pod.clone(), admin::counters(&plan.admin_socket)?))
        };
        let mut counters: BTreeMap<_, _> =
            self.ztunnels.iter().map(of_ztunnel).collect::<Result<_, _>>()?;
        counters.extend(concurrent::for_each(&self.envoys, read)?);
        let of_mesher = |plan| mesher_counters(plan, ask);
        let of_meshers = self.meshers.iter().map(of_mesher).collect::<Result<Vec<_>, _>>()?;
        counters.extend(of_meshers);
        Ok(counters)
    }

    /// Whether the SNI proxy, whose first process this is, takes connections.
    pub(super) fn sni_proxy_listens(&self, setup: &Setup, pid: Pid) -> bool {
        setup.topology.egress.as_ref().is_none_or(|egress| ports::listens(pid, egress.sni_port))
    }

    /// Connections that the SNI proxy has accepted since it started; none where there is none.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(super) fn sni_accepted(&self) -> Result<Option<u64>, LabError> {
        let accepted = self.sni_proxy.as_ref().map(|plan| status::accepted(&plan.status_socket));
        Ok(accepted.transpose()?)
    }

    /// Takes no more questions of ztunnels: they have ended.
    pub(super) fn take_no_questions(&mut self) {
        self.zds.clear();
        self.certificates = None;
    }
}

fn start_envoy(
    setup: &Setup,
    plan: &ProxyPlan,
    network_of: NetworkOf<'_>,
    launch: Launch<'_>,
) -> Result<(), LabError> {
    let envoy = setup.machine.options.artifacts.path(Artifact::Envoy)?;
    files::write(&setup.folder.join(&plan.config_name), &plan.config)?;
    let component = Component { role: plan.role, pod: plan.pod.clone() };
    let binary = File::open(envoy).map_err(|source| LabError::Start {
        component: describe(&component),
        program: envoy.to_owned(),
        source,
    })?;
    // By descriptor: the proxies' user may not be able to enter the folders above the binary.
    let mut command = Command::new(format!("/proc/self/fd/{}", binary.as_raw_fd()));
    command.arg0(envoy).args(&plan.args);
    let mut start = Start::new(envoy.to_owned(), command);
    start.user = setup.user_of(plan.role);
    for pod in &plan.networks {
        let Some(network) = network_of(pod) else { continue };
        let descriptor = network.descriptor();
        link_network(&setup.folder, pod, &descriptor)?;
        start.inherited.push(descriptor);
    }
    launch(component, start)
}

fn serve_networks(plan: &ztunnel::Plan, network_of: NetworkOf<'_>) -> Result<Zds, LabError> {
    let pods = plan.workloads.iter().filter_map(|workload| {
        let network = network_of(&workload.pod)?.descriptor();
        Some(Pod { workload: workload.clone(), network })
    });
    let failed = |source| DataPlaneError::Zds { node: plan.node.clone(), source };
    Ok(Zds::serve(&plan.zds_socket, pods.collect()).map_err(failed)?)
}

/// On the loopback of each node's own pod.
fn serve_certificates(
    setup: &Setup,
    ztunnels: &[ztunnel::Plan],
    authority: MeshAuthority,
    network_of: NetworkOf<'_>,
) -> Result<CertificateApi, LabError> {
    let networks: Vec<_> = ztunnels.iter().filter_map(|plan| network_of(&plan.node)).collect();
    let token = write_token(&setup.folder)?;
    let listeners = listen_in_each(&networks.iter().collect::<Vec<_>>(), api::PORT);
    let serve = |listeners| CertificateApi::serve(authority, &token, listeners);
    Ok(listeners.and_then(serve).map_err(DataPlaneError::CertificateApi)?)
}

/// Makes the token that ztunnels show, in a file that nobody else may read.
fn write_token(folder: &Path) -> Result<String, LabError> {
    let path = ztunnel::token_file(folder);
    files::make_folder(path.parent().unwrap_or(folder))?;
    let token = api::new_token().map_err(DataPlaneError::CertificateApi)?;
    files::write_secret(&path, &token)?;
    Ok(token)
}

/// It enters the pods' networks and marks its sockets, so it runs as the caller.
fn start_of_ztunnel(setup: &Setup, plan: &ztunnel::Plan) -> Result<Start, LabError> {
    files::write(&setup.folder.join(&plan.config_name), &plan.config)?;
    let path = path::absolute(&plan.binary).unwrap_or_else(|_| plan.binary.clone());
    let mut command = Command::new(&path);
    // It would take more variables than these, and files below the folder that it starts in.
    command.arg0(&plan.binary).args(plan.args).current_dir(&setup.folder);
    command.env_clear().envs(plan.environment.iter().map(|(name, value)| (name, value)));
    Ok(Start::new(path, command))
}

fn start_of_mesher(plan: &mesher::Plan) -> Result<Start, LabError> {
    files::make_folder(&plan.folder)?;
    for (name, text) in &plan.files {
        files::write(&plan.folder.join(name), text)?;
    }
    let path = path::absolute(&plan.binary).unwrap_or_else(|_| plan.binary.clone());
    let mut command = Command::new(&path);
    // It would take more variables than these, and it writes into the folder that it starts in.
    command.args(&plan.args).current_dir(&plan.folder).env_clear();
    command.envs(plan.environment.iter().map(|(name, value)| (name, value)));
    Ok(Start { is_verbose: true, ..Start::new(path, command) })
}

/// Its health says that it lives; it opens its ports once the registry has answered.
fn mesher_is_ready(plan: &mesher::Plan, ask: Ask<'_>) -> Result<bool, LabError> {
    let consumer = SocketAddrV4::new(Ipv4Addr::LOCALHOST, plan.at.provider.port());
    for at in [consumer, plan.at.provider] {
        if matches!(ask(&plan.pod, at, Speech::Request)?.outcome, Outcome::Refused) {
            return Ok(false);
        }
    }
    Ok(ask(&plan.pod, plan.at.admin, Speech::Get(mesher::HEALTH))?.status == Some(200))
}

fn mesher_counters(plan: &mesher::Plan, ask: Ask<'_>) -> Result<(String, ProxyCounters), LabError> {
    let answer = ask(&plan.pod, plan.at.admin, Speech::Get(mesher::METRICS))?;
    if answer.status != Some(200) {
        let (pod, outcome) = (plan.pod.clone(), told(&answer));
        return Err(DataPlaneError::MesherSilent { pod, outcome }.into());
    }
    Ok((plan.pod.clone(), mesher::counters(&answer.body)))
}

/// How an answer came out, for errors.
fn told(answer: &Answer) -> String {
    match answer.status {
        Some(status) => format!("status {status}"),
        None => format!("{:?}", answer.outcome).to_lowercase(),
    }
}

fn start_of_sni_proxy(setup: &Setup, plan: &SniProxyPlan) -> Result<Start, LabError> {
    let nginx = setup.machine.options.artifacts.path(Artifact::Nginx)?;
    files::make_folder(&plan.folder)?;
    files::write(&setup.folder.join(&plan.config_name), &plan.config)?;
    let mut command = Command::new(nginx);
    command.args(&plan.args);
    Ok(Start::new(nginx.to_owned(), command))
}

fn ztunnel_counters(
    setup: &Setup,
    plan: &ztunnel::Plan,
    ask: Ask<'_>,
) -> Result<ProxyCounters, LabError> {
    let answer = ask_ztunnel(plan, METRICS, ask)?;
    if (answer.outcome, answer.status) != (Outcome::Answered, Some(200)) {
        let outcome = told(&answer);
        return Err(DataPlaneError::ZtunnelSilent { node: plan.node.clone(), outcome }.into());
    }
    Ok(ztunnel::counters(&answer.body, &setup.deployment, &setup.topology))
}

fn ask_ztunnel(
    plan: &ztunnel::Plan,
    (port, path): (u16, &'static str),
    ask: Ask<'_>,
) -> Result<Answer, LabError> {
    ask(&plan.node, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port), Speech::Get(path))
}

#[cfg(test)]
mod played_ztunnel;
#[cfg(test)]
mod tests;
