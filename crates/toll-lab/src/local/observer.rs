//! Gathers what is seen of the path at one end of the measured window: what proxies, programs and wires have
//! counted, what probes bring back, firewall rules and who runs in the pods. Judges nothing.
//!
//! Ninety pods must not make it slow: probes of many pods are one process, and what takes a process or a question
//! for each pod is done side by side.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::pods::Pods;
use super::processes::Processes;
use super::proxies::Proxies;
use super::setup::Setup;
use crate::artifacts::Artifact;
use crate::certificates::external::{callers, externals, externals_of};
use crate::deployment::{DataPlane, Reports, Service};
use crate::envoy::external::ExternalCall;
use crate::evidence::{
    Fingerprints, Handshake, Jvm, Occupants, Outsider, PathReport, PathSnapshot, Plaintext,
    ProxyCounters, Walk, Wire,
};
use crate::host::concurrent;
use crate::host::error::HostError;
use crate::host::occupants::Processes as HostProcesses;
use crate::host::spawn::SpawnContext;
use crate::planes::agent::{jar, jvms::jvms};
use crate::probe::{Acquaintance, Answer, Prober, Speech};
use crate::programs::handshake::{self, Attempt};
use crate::programs::nginx::status::AnswerCounter;
use crate::programs::running::Running;
use crate::programs::{self, collector};
use crate::topology::{HBONE_PORT, PodAddresses, Site};
use crate::{LabError, Reading, Role};

/// Looks at an environment, and changes nothing but the counts of what is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observer<'a> {
    pub(super) setup: &'a Setup,
    pub(super) pods: &'a Pods,
    pub(super) processes: &'a Processes,
    pub(super) proxies: &'a Proxies,
    /// The certificates of external services and of those who call them.
    pub(super) issued: &'a Fingerprints,
    pub(super) answers: &'a [AnswerCounter],
}

/// What the services said of themselves.
pub(super) struct SelfReports {
    walk: Walk,
    replicas: BTreeMap<String, PathReport>,
    handshakes: BTreeMap<String, BTreeMap<String, Handshake>>,
}

/// What a probe would add to.
pub(super) struct Counts {
    proxies: BTreeMap<String, ProxyCounters>,
    answered: BTreeMap<String, u64>,
    wire: Reading<Vec<Wire>>,
    sni_accepted: Option<u64>,
}

/// What was seen before the window.
#[derive(Debug)]
pub(super) struct OpenProof {
    pub(super) outsider: Outsider,
    pub(super) before: PathSnapshot,
}

/// A pod, and where it is asked.
type Target<'a> = (&'a PodAddresses, SocketAddrV4);

impl<'a> Observer<'a> {
    fn prober(&self) -> Prober<'a> {
        self.processes.prober(&self.setup.machine.options)
    }

    fn load(&self) -> SpawnContext {
        self.pods.load(&self.setup.machine)
    }

    /// Sends one message to `target` from inside of a pod.
    ///
    /// # Errors
    /// When the probe gives no result.
    pub(super) fn ask_in(
        &self,
        pod: &str,
        target: SocketAddrV4,
        speech: Speech,
    ) -> Result<Answer, LabError> {
        self.prober().probe(&self.pods.probe(&self.setup.machine, pod), target, speech)
    }

    /// Sends one request from the load's pod.
    ///
    /// # Errors
    /// When the probe gives no result.
    pub(super) fn ask_load_at(&self, target: SocketAddrV4) -> Result<Answer, LabError> {
        self.prober().probe(&self.load(), target, Speech::Request)
    }

    /// Sends one message by the way of the load: from its pod to the entry, or from inside of a gateway that speaks TLS
    /// to its clients.
    ///
    /// # Errors
    /// When the probe gives no result, or the deployment does not have its entry.
    pub(super) fn ask_entry(&self, speech: Speech) -> Result<Answer, LabError> {
        let Setup { deployment, topology, .. } = self.setup;
        let front = topology.front(&deployment.entry)?;
        let mut pods = topology.pods.iter();
        let pod = pods.find(|pod| pod.service == deployment.entry);
        match pod.and_then(|pod| Some((&pod.pod, pod.probe_port?))) {
            None => self.prober().probe(&self.load(), front, speech),
            Some((pod, port)) => {
                self.ask_in(pod, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port), speech)
            }
        }
    }

    /// The program at `site`, which has been started.
    ///
    /// # Errors
    /// When it has not.
    pub(super) fn running(&self, site: Site<'a>) -> Result<Running<'a>, LabError> {
        let pod = &site.pod.pod;
        let pid = self.processes.pid(site.service.program.role(), pod);
        Ok(Running {
            pid: pid.ok_or_else(|| LabError::UnknownService(pod.clone()))?,
            prober: self.prober(),
            inside: self.pods.inside(&site),
            issued: self.issued,
            site,
        })
    }

    /// What a probe would add to.
    ///
    /// # Errors
    /// When something that counts cannot be asked.
    pub(super) fn counts(&self) -> Result<Counts, LabError> {
        let ask = |pod: &str, at: SocketAddrV4, speech: Speech| self.ask_in(pod, at, speech);
        Ok(Counts {
            proxies: self.proxies.counters(self.setup, &ask)?,
            answered: self.answered()?,
            wire: self.pods.wire(self.processes.launcher()),
            sni_accepted: self.proxies.sni_accepted()?,
        })
    }

    /// Requests that each nginx has answered since it started, by pod.
    ///
    /// # Errors
    /// When one cannot be asked.
    pub(super) fn answered(&self) -> Result<BTreeMap<String, u64>, LabError> {
        let read = |counter: &AnswerCounter| Ok((counter.pod.clone(), counter.read()?));
        self.answers.iter().map(read).collect()
    }

    /// All that is seen, with what was gathered before.
    ///
    /// # Errors
    /// When something cannot be read.
    pub(super) fn snapshot(
        &self,
        reports: SelfReports,
        counts: Counts,
    ) -> Result<PathSnapshot, LabError> {
        let processes = HostProcesses::now().map_err(HostError::Namespaces)?;
        Ok(PathSnapshot {
            walk: reports.walk,
            counters: counts.proxies,
            rules: self.rules()?,
            occupants: self.occupants(&processes)?,
            databases: self.databases()?,
            replicas: reports.replicas,
            jvms: self.jvms(&processes)?,
            answered: counts.answered,
            wire: counts.wire,
            handshakes: reports.handshakes,
            sni_accepted: counts.sni_accepted,
        })
    }

    /// What the services say of themselves, who do not count that they were asked, and how TLS with those outside
    /// of the mesh ends.
    ///
    /// # Errors
    /// When a probe gives no result.
    pub(super) fn reports(&self) -> Result<SelfReports, LabError> {
        let walk = self.ask_entry(Speech::PathReport)?.walk();
        Ok(SelfReports { walk, replicas: self.replicas()?, handshakes: self.handshakes()? })
    }

    /// The reports of the pods of services that have several.
    fn replicas(&self) -> Result<BTreeMap<String, PathReport>, LabError> {
        let asked = self.setup.sites().filter(is_asked_by_itself).map(|site| site.pod);
        let asked: Vec<&PodAddresses> = asked.collect();
        let answers = match self.setup.deployment.data_plane.is_mesh() {
            true => self.ask_inside(&asked)?,
            false => {
                let front = |pod: &&PodAddresses| self.setup.topology.pod_front(pod);
                let targets: Vec<SocketAddrV4> = asked.iter().map(front).collect();
                self.prober().probe_all(&self.load(), &targets, Speech::PathReport)?
            }
        };
        let reports = asked.iter().zip(answers);
        let report = |(pod, answer): (&&PodAddresses, Answer)| {
            Some((pod.pod.clone(), answer.walk().report?))
        };
        Ok(reports.filter_map(report).collect())
    }

    /// Each inside of its own pod: from outside a mesh may refuse to be asked.
    fn ask_inside(&self, pods: &[&PodAddresses]) -> Result<Vec<Answer>, LabError> {
        let context = |pod: &&PodAddresses| {
            let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, pod.app_port);
            (self.pods.probe(&self.setup.machine, &pod.pod), here)
        };
        let contexts: Vec<_> = pods.iter().map(context).collect();
        let prober = self.prober();
        concurrent::for_each(&contexts, |(context, here)| {
            prober.probe(context, *here, Speech::PathReport)
        })
    }

    /// How TLS with each external service ends, by calling pod, then by service; tried as the program itself runs, so
    /// that its pod's firewall and sidecar take it for the program.
    fn handshakes(&self) -> Result<BTreeMap<String, BTreeMap<String, Handshake>>, LabError> {
        let deployment = &self.setup.deployment;
        let calling: Vec<&String> = callers(deployment).map(|caller| &caller.name).collect();
        let mut attempts = Vec::new();
        for site in self.setup.sites().filter(|site| calling.contains(&&site.service.name)) {
            for (service, external) in externals_of(deployment, site.service) {
                let protocol = programs::handshake_protocol(&service.program);
                let attempt = Attempt::new(&site, service, external, protocol)?;
                let context = self.pods.probe(&self.setup.machine, &site.pod.pod);
                attempts.push((&site.pod.pod, &service.name, context, attempt));
            }
        }
        let prober = self.prober();
        let answers = concurrent::for_each(&attempts, |(_, _, context, attempt)| {
            prober.greet(context, attempt.target, &attempt.with)
        })?;
        let mut handshakes = BTreeMap::<_, BTreeMap<_, _>>::new();
        for ((pod, service, ..), answer) in attempts.into_iter().zip(answers) {
            let of_pod = handshakes.entry(pod.clone()).or_default();
            of_pod.insert(service.clone(), handshake::outcome(answer));
        }
        Ok(handshakes)
    }

    /// What becomes of probes from outside of the mesh to its pods; nothing where there is no mesh.
    ///
    /// # Errors
    /// When a probe gives no result.
    pub(super) fn outsider(&self) -> Result<Outsider, LabError> {
        let [databases, others] = self.plaintext_targets();
        let mut plaintext = self.ask_from_outside(&databases, Speech::Postgres)?;
        plaintext.extend(self.ask_from_outside(&others, Speech::Request)?);
        let uncertified = self.ask_from_outside(&self.hbone_targets(), Speech::Tls)?;
        Ok(Outsider { plaintext, uncertified, egress: self.egress_from_outside()? })
    }

    /// Databases and others, which are asked in other words. The entry's pods answer plaintext by design.
    fn plaintext_targets(&self) -> [Vec<Target<'a>>; 2] {
        let Setup { deployment, topology, .. } = self.setup;
        let ambient = deployment.data_plane.ambient().is_some();
        let is_behind = |service: &Service| {
            let captured = ambient && service.program.is_captured();
            let meshed = captured || deployment.has_sidecar(service);
            meshed && service.name != deployment.entry
        };
        let behind = self.setup.sites().filter(|site| is_behind(site.service));
        let (databases, others): (Vec<_>, Vec<_>) =
            behind.partition(|site| site.service.program.is_database());
        let target = |site: Site<'a>| (site.pod, topology.pod_front(site.pod));
        [databases, others].map(|sites| sites.into_iter().map(target).collect())
    }

    /// Where node proxies take HBONE.
    fn hbone_targets(&self) -> Vec<Target<'a>> {
        let ambient = self.setup.deployment.data_plane.ambient().is_some();
        let captured =
            self.setup.sites().filter(|site| ambient && site.service.program.is_captured());
        captured.map(|site| (site.pod, SocketAddrV4::new(site.pod.ip, HBONE_PORT))).collect()
    }

    /// What becomes of the same message to each of these pods, sent by the load's pod.
    fn ask_from_outside(
        &self,
        targets: &[Target<'_>],
        speech: Speech,
    ) -> Result<BTreeMap<String, Plaintext>, LabError> {
        let addresses: Vec<SocketAddrV4> = targets.iter().map(|(_, address)| *address).collect();
        let answers = self.prober().probe_all(&self.load(), &addresses, speech)?;
        let pods = targets.iter().map(|(pod, _)| pod.pod.clone());
        Ok(pods.zip(answers.iter().map(Answer::plaintext)).collect())
    }

    /// What becomes of TLS without a certificate that comes to the egress gateway from outside of the mesh, by the name
    /// that sidecars ask it for; none where it takes no mTLS.
    fn egress_from_outside(&self) -> Result<Option<Plaintext>, LabError> {
        let Setup { deployment, topology, .. } = self.setup;
        let gateway = deployment.data_plane.egress_gateway().filter(|gateway| gateway.mtls);
        let (Some(_), Some(at), Some((service, external))) =
            (gateway, &topology.egress, externals(deployment).next())
        else {
            return Ok(None);
        };
        let call = ExternalCall::new(topology, service, external)?;
        let with = Acquaintance {
            server_name: &call.gateway_sni(),
            // It shows a certificate of the mesh, to those who have one.
            authority: None,
            certificate: None,
            protocol: None,
        };
        let target = SocketAddrV4::new(at.ip, at.port);
        Ok(Some(self.prober().greet(&self.load(), target, &with)?.plaintext()))
    }

    /// What each database says of itself.
    fn databases(&self) -> Result<BTreeMap<String, crate::evidence::DatabaseSnapshot>, LabError> {
        let sites = self.setup.sites().filter(|site| site.service.program.is_database());
        let snapshots = sites.map(|site| {
            let snapshot = programs::database_snapshot(&self.running(site)?)?;
            Ok(snapshot.map(|snapshot| (site.pod.pod.clone(), snapshot)))
        });
        Ok(snapshots.collect::<Result<Vec<_>, LabError>>()?.into_iter().flatten().collect())
    }

    /// What the firewall of each pod holds that no proxy may stand in.
    fn rules(&self) -> Result<BTreeMap<String, String>, LabError> {
        let mesh = self.setup.deployment.data_plane.is_mesh();
        let programs = self.programs();
        let free = programs.iter().filter(|(pod, ..)| !mesh || self.is_external(pod));
        let free: Vec<&str> = free.map(|(pod, ..)| *pod).collect();
        self.pods.rules(&free, self.processes.launcher())
    }

    /// Who runs in each pod that has no sidecar by design and a network of its own.
    fn occupants(
        &self,
        processes: &HostProcesses,
    ) -> Result<BTreeMap<String, Occupants>, LabError> {
        let sidecars = self.setup.deployment.data_plane.has_sidecars();
        let programs = self.programs().into_iter();
        let alone = programs.filter(|(pod, ..)| !sidecars || self.is_external(pod));
        let own = alone.filter_map(|(pod, pid)| Some((pod, self.pods.network(pod)?, pid)));
        let look = |(pod, network, pid): (&str, _, _)| {
            let inside = processes.inside(network, pid).map_err(HostError::Namespaces)?;
            Ok((pod.to_owned(), inside))
        };
        own.map(look).collect()
    }

    /// Whether the service in the pod is outside of the mesh, which has no proxy and no rule there.
    fn is_external(&self, pod: &str) -> bool {
        let mut sites = self.setup.sites();
        sites.any(|site| site.pod.pod == pod && site.service.external.is_some())
    }

    /// The pods of the application and their programs, which is a gateway's Envoy, too.
    fn programs(&self) -> Vec<(&'a str, nix::unistd::Pid)> {
        let is_proxy = |role| {
            matches!(
                role,
                Role::Sidecar
                    | Role::NodeProxy
                    | Role::Waypoint
                    | Role::EgressGateway
                    | Role::SniProxy
            )
        };
        let programs = self.processes.components().filter(|(c, _)| !is_proxy(c.role));
        programs.map(|(component, process)| (component.pod.as_str(), process.pid)).collect()
    }

    /// The JVMs in each pod of the application, where anybody takes their spans.
    fn jvms(&self, processes: &HostProcesses) -> Result<BTreeMap<String, Vec<Jvm>>, LabError> {
        if collector::admin_socket(&self.setup.deployment, &self.setup.folder).is_none() {
            return Ok(BTreeMap::new());
        }
        let artifacts = &self.setup.machine.options.artifacts;
        let known = match &self.setup.deployment.data_plane {
            DataPlane::Agent(agent) => Some(jar(agent, artifacts)?),
            _ => artifacts.get(Artifact::OpenTelemetry),
        };
        let programs = self.processes.components().filter(|(c, _)| c.role == Role::Application);
        let look = |pid| jvms(processes, pid, known);
        Ok(programs.map(|(c, process)| (c.pod.clone(), look(process.pid))).collect())
    }
}

/// A pod that the walk may miss, as its service has others, and that can report.
fn is_asked_by_itself(site: &Site<'_>) -> bool {
    site.service.replicas > 1
        && !site.service.program.is_database()
        && site.service.program.reports() != Reports::Never
}
