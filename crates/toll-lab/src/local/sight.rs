//! Gathers what is seen of the path at one end of the measured window: what proxies, programs and wires have
//! counted, what probes bring back, firewall rules and who runs in the pods. Judges nothing.
//!
//! Ninety pods must not make it slow: probes of many pods are one process, and what takes a process or a question
//! for each pod is done side by side.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::agents::jvms;
use super::bring_up::inside;
use super::concurrent;
use super::environment::LocalEnvironment;
use super::firewall;
use super::namespace::Namespace;
use super::occupants::Processes;
use super::place::Place;
use super::probe::{Answer, Outcome, Speech, probe, probe_all};
use super::process::Process;
use super::tools::Tool;
use super::topology;
use crate::data_plane::agent::jar;
use crate::data_plane::{
    self, HBONE_PORT, Handshake, Jvm, Occupants, Outsider, PathReport, Plaintext, PodAddresses,
    ProxyCounters, ProxyPlan, Sight, Walk, Wire,
};
use crate::deployment::{DataPlane, Program, Service};
use crate::{LabError, Reading, Role};

/// What the services said of themselves.
pub(super) struct Reports {
    walk: Walk,
    replicas: BTreeMap<String, PathReport>,
    handshakes: BTreeMap<String, BTreeMap<String, Handshake>>,
}

/// What a probe would add to.
pub(super) struct Counts {
    proxies: BTreeMap<String, ProxyCounters>,
    served: BTreeMap<String, u64>,
    wire: Reading<Vec<Wire>>,
    sni_accepted: Option<u64>,
}

/// A pod, and where it is asked.
type Target<'a> = (&'a PodAddresses, SocketAddrV4);

impl LocalEnvironment {
    pub(super) fn counts(&self) -> Result<Counts, LabError> {
        Ok(Counts {
            proxies: self.counters()?,
            served: self.served()?,
            wire: self.wire(),
            sni_accepted: self.sni_accepted()?,
        })
    }

    pub(super) fn sight(&self, reports: Reports, counts: Counts) -> Result<Sight, LabError> {
        let processes = Processes::now().map_err(LabError::Namespaces)?;
        Ok(Sight {
            walk: reports.walk,
            counters: counts.proxies,
            rules: self.rules()?,
            occupants: self.occupants(&processes)?,
            databases: self.database_sights()?,
            replicas: reports.replicas,
            jvms: self.jvms(&processes)?,
            served: counts.served,
            wire: counts.wire,
            handshakes: reports.handshakes,
            sni_accepted: counts.sni_accepted,
        })
    }

    /// What the services say of themselves, who do not count that they were asked, and how TLS with those outside
    /// of the mesh ends.
    pub(super) fn reports(&self) -> Result<Reports, LabError> {
        let (place, entry) = self.way_in()?;
        let service = &self.options.service;
        let answer = probe(&self.launcher, service, &place, entry, Speech::PathReport)?;
        let (walk, replicas) = (walk(answer), self.replicas()?);
        Ok(Reports { walk, replicas, handshakes: self.handshakes()? })
    }

    /// The reports of the pods of services that have several.
    fn replicas(&self) -> Result<BTreeMap<String, PathReport>, LabError> {
        let asked: Vec<&PodAddresses> = self.addressed().filter_map(asked_by_itself).collect();
        let answers = match self.deployment.data_plane.is_mesh() {
            true => self.ask_inside(&asked)?,
            false => {
                let front = |pod: &&PodAddresses| topology::pod_front(&self.topology, pod);
                let targets: Vec<SocketAddrV4> = asked.iter().map(front).collect();
                let (service, place) = (&self.options.service, self.load_place());
                probe_all(&self.launcher, service, &place, &targets, Speech::PathReport)?
            }
        };
        let reports = asked.iter().zip(answers);
        let report =
            |(pod, answer): (&&PodAddresses, _)| Some((pod.pod.clone(), walk(answer).report?));
        Ok(reports.filter_map(report).collect())
    }

    /// Each inside of its own pod: from outside a mesh may refuse to be asked.
    fn ask_inside(&self, pods: &[&PodAddresses]) -> Result<Vec<Answer>, LabError> {
        let place = |pod: &&PodAddresses| {
            let namespace = self.namespace_of(&pod.pod).cloned();
            let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, pod.app_port);
            (Place { namespace, ..self.load_place() }, here)
        };
        let places: Vec<_> = pods.iter().map(place).collect();
        let (launcher, service) = (&self.launcher, &self.options.service);
        concurrent::for_each(&places, |(place, here)| {
            probe(launcher, service, place, *here, Speech::PathReport)
        })
    }

    /// What becomes of probes from outside of the mesh to its pods; nothing where there is no mesh.
    pub(super) fn outsider(&self) -> Result<Outsider, LabError> {
        let [databases, others] = self.plaintext_targets();
        let mut plaintext = self.ask_from_outside(&databases, Speech::Postgres)?;
        plaintext.extend(self.ask_from_outside(&others, Speech::Request)?);
        let uncertified = self.ask_from_outside(&self.hbone_targets(), Speech::Tls)?;
        Ok(Outsider { plaintext, uncertified, egress: self.outside_of_egress()? })
    }

    /// Databases and others, which are asked in other words. The entry's pods answer plaintext by design.
    fn plaintext_targets(&self) -> [Vec<Target<'_>>; 2] {
        let ambient = self.deployment.data_plane.ambient().is_some();
        let is_behind = |service: &Service| {
            let captured = ambient && service.program.is_captured();
            let meshed = captured || topology::has_sidecar(&self.deployment, service);
            meshed && service.name != self.deployment.entry
        };
        let behind = self.addressed().filter(|(_, service)| is_behind(service));
        let (databases, others): (Vec<_>, Vec<_>) =
            behind.partition(|(_, service)| service.program.is_database());
        let target = |(pod, _)| (pod, topology::pod_front(&self.topology, pod));
        [databases, others].map(|pods| pods.into_iter().map(target).collect())
    }

    /// Where node proxies take HBONE.
    fn hbone_targets(&self) -> Vec<Target<'_>> {
        let ambient = self.deployment.data_plane.ambient().is_some();
        let captured = self.addressed().filter(|(_, s)| ambient && s.program.is_captured());
        captured.map(|(pod, _)| (pod, SocketAddrV4::new(pod.ip, HBONE_PORT))).collect()
    }

    fn addressed(&self) -> impl Iterator<Item = (&PodAddresses, &Service)> {
        let service = |pod: &PodAddresses| self.deployment.service(&pod.service);
        self.topology.pods.iter().filter_map(move |pod| Some((pod, service(pod)?)))
    }

    /// What becomes of the same message to each of these pods, sent by the load's pod.
    fn ask_from_outside(
        &self,
        targets: &[Target<'_>],
        speech: Speech,
    ) -> Result<BTreeMap<String, Plaintext>, LabError> {
        let addresses: Vec<SocketAddrV4> = targets.iter().map(|(_, address)| *address).collect();
        let (service, place) = (&self.options.service, self.load_place());
        let answers = probe_all(&self.launcher, service, &place, &addresses, speech)?;
        let pods = targets.iter().map(|(pod, _)| pod.pod.clone());
        Ok(pods.zip(answers.iter().map(plaintext)).collect())
    }

    /// What the firewall of each pod holds that no proxy may stand in.
    fn rules(&self) -> Result<BTreeMap<String, String>, LabError> {
        let mesh = self.deployment.data_plane.is_mesh();
        let free = self.networks_of_programs().filter(|(pod, ..)| !mesh || self.is_outside(pod));
        let pods: Vec<(&String, &Namespace)> = free.map(|(name, pod, _)| (name, pod)).collect();
        let networks: Vec<&Namespace> = pods.iter().map(|(_, pod)| *pod).collect();
        let may_have = firewall::may_have_tables(&networks).map_err(LabError::Namespaces)?;
        let pods: Vec<_> = pods.into_iter().zip(may_have).collect();
        let nft = Tool { launcher: &self.launcher, program: "nft", args: &["list", "ruleset"] };
        let rules = concurrent::for_each(&pods, |((name, pod), may_have)| {
            let rules = if *may_have { nft.run(name, &inside(pod), "")? } else { String::new() };
            Ok::<_, LabError>(((*name).clone(), rules))
        });
        Ok(rules?.into_iter().collect())
    }

    /// Who runs in each pod that has no sidecar by design.
    fn occupants(&self, processes: &Processes) -> Result<BTreeMap<String, Occupants>, LabError> {
        let sidecars = self.deployment.data_plane.has_sidecars();
        let alone =
            self.networks_of_programs().filter(|(pod, ..)| !sidecars || self.is_outside(pod));
        let look = |(name, pod, program): (&String, &Namespace, &Process)| {
            let inside = processes.inside(pod, program.pid).map_err(LabError::Namespaces)?;
            Ok((name.clone(), inside))
        };
        alone.map(look).collect()
    }

    /// Whether the service in the pod is outside of the mesh, which has no proxy and no rule there.
    fn is_outside(&self, pod: &str) -> bool {
        self.external(pod).is_some()
    }

    /// The JVMs in each pod of the application, where anybody takes their spans.
    fn jvms(&self, processes: &Processes) -> Result<BTreeMap<String, Vec<Jvm>>, LabError> {
        if self.collector_socket().is_none() {
            return Ok(BTreeMap::new());
        }
        let known = match &self.deployment.data_plane {
            DataPlane::Agent(agent) => Some(jar(agent, self.options.opentelemetry.as_deref())?),
            _ => self.options.opentelemetry.as_deref(),
        };
        let programs = self.components.iter().filter(|(c, _)| c.role == Role::Application);
        let look = |pid| jvms(processes, pid, known);
        Ok(programs.map(|(c, process)| (c.pod.clone(), look(process.pid))).collect())
    }

    /// The pods of the application that have a network of their own: name, network and program, which is a
    /// gateway's Envoy, too.
    fn networks_of_programs(&self) -> impl Iterator<Item = (&String, &Namespace, &Process)> {
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
        let programs = self.components.iter().filter(move |(c, _)| !is_proxy(c.role));
        programs.filter_map(|(component, process)| {
            let pod = self.namespace_of(&component.pod)?;
            Some((&component.pod, pod, &**process))
        })
    }

    /// What the proxies have counted.
    fn counters(&self) -> Result<BTreeMap<String, ProxyCounters>, LabError> {
        let read = |plan: &ProxyPlan| {
            let counters = data_plane::counters(&plan.admin_socket)?;
            Ok::<_, LabError>((plan.pod.clone(), counters))
        };
        let mut counters = self.ztunnel_counters()?;
        counters.extend(concurrent::for_each(&self.plans, read)?);
        Ok(counters)
    }
}

/// A pod that the walk may miss, as its service has others, and that can report.
fn asked_by_itself<'a>((pod, service): (&'a PodAddresses, &Service)) -> Option<&'a PodAddresses> {
    let silent = service.program.is_database() || matches!(service.program, Program::Nginx(_));
    (service.replicas > 1 && !silent).then_some(pod)
}

fn walk(answer: Answer) -> Walk {
    Walk {
        server: answer.headers.get("server").cloned(),
        report: serde_json::from_str::<PathReport>(&answer.body).ok(),
    }
}

pub(super) fn plaintext(answer: &Answer) -> Plaintext {
    match (answer.outcome, answer.status) {
        // A database's answer has no status, and neither has TLS.
        (Outcome::Answered | Outcome::Established, status) => {
            Plaintext::Answered(status.unwrap_or(0))
        }
        (Outcome::Reset | Outcome::Closed, _) => Plaintext::Closed,
        (Outcome::Refused, _) => Plaintext::Refused,
        (outcome, _) => Plaintext::Unclear(format!("{outcome:?}").to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_that_was_made_and_then_closed_counts_as_closed() {
        let outcome = |outcome| {
            plaintext(&Answer {
                outcome,
                status: None,
                headers: BTreeMap::new(),
                body: String::new(),
                server: None,
                message: None,
            })
        };
        assert_eq!(outcome(Outcome::Reset), Plaintext::Closed);
        assert_eq!(outcome(Outcome::Refused), Plaintext::Refused);
        assert_eq!(outcome(Outcome::Timeout), Plaintext::Unclear("timeout".into()));
    }
}
