//! Gathers what is seen of the path in a cluster at one end of the measured window. Probes come from a load pod, which
//! is outside of the mesh; counters are asked of the pods by way of the driver. What a cluster does not show, firewall
//! rules and processes, is left out, and said so.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};

use super::link::Link;
use super::mesh::{Counted, Mesh};
use super::pods::PROGRAM;
use super::status::PodStatus;
use crate::claim::{Claim, Topic};
use crate::deployment::{Deployment, Program, Reports, Service};
use crate::envoy::admin::{STATS, STATS_PORT, counters_in};
use crate::error::KubernetesError;
use crate::evidence::{Outsider, PathReport, PathSnapshot, Plaintext, ProxyCounters};
use crate::in_cluster::protocol::{Answered, Ask};
use crate::probe::{self, Answer, Speech};
use crate::programs::nginx::STATUS_PORT;
use crate::programs::nginx::status::requests_in;
use crate::topology::{PodAddresses, Topology};
use crate::{LabError, Reading};

/// Why nothing is said of what the nodes' networks carried.
const NO_WIRE: &str = "nobody looks at the wires of a cluster";

/// Looks at an arm, and changes nothing but the counts of what is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observer<'a> {
    pub(super) link: &'a Link,
    pub(super) deployment: &'a Deployment,
    /// With the addresses of the Services.
    pub(super) services: &'a Topology,
    /// With the pods' own.
    pub(super) pods: &'a Topology,
    /// Address and port of the load pod that probes.
    pub(super) load: &'a str,
    /// How often each nginx was asked what it has answered: each question is a request, too.
    pub(super) asked: &'a AtomicU64,
}

impl Observer<'_> {
    /// Sends one message by the way of the load.
    ///
    /// # Errors
    /// When the probe gives no result.
    pub(super) fn ask_entry(&self, speech: Speech<'_>) -> Result<Answer, LabError> {
        let mut pods = self.pods.pods.iter().filter(|pod| pod.service == self.deployment.entry);
        let for_probes = pods.find_map(|pod| Some(SocketAddrV4::new(pod.ip, pod.probe_port?)));
        let entry = match for_probes {
            Some(for_probes) => for_probes,
            None => self.services.front(&self.deployment.entry)?,
        };
        let answers = self.probe(&[entry], speech)?;
        Ok(answers.into_iter().next().expect("there are as many answers as targets"))
    }

    /// Sends one message to each target, from a load pod.
    fn probe(&self, targets: &[SocketAddrV4], speech: Speech<'_>) -> Result<Vec<Answer>, LabError> {
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let ask = Ask { arguments: probe::arguments(targets, speech) };
        let answered: Answered = self.link.post(&format!("/to/{}/ask", self.load), &ask)?;
        probe::read(answered.stdout.as_bytes(), targets.len()).map_err(|error| LabError::Probe {
            target: targets[0].to_string(),
            message: format!("{error}; {}", answered.stderr.trim()),
        })
    }

    /// What becomes of probes from outside of the mesh to its pods; nothing where there is no mesh.
    ///
    /// # Errors
    /// When a probe gives no result.
    pub(super) fn outsider(&self) -> Result<Outsider, LabError> {
        let is_behind = |service: &Service| {
            self.deployment.data_plane.is_mesh()
                && service.takes_sidecar()
                && service.name != self.deployment.entry
        };
        let behind: Vec<&PodAddresses> = self
            .pods
            .pods
            .iter()
            .filter(|pod| self.deployment.service(&pod.service).is_some_and(is_behind))
            .collect();
        let targets: Vec<SocketAddrV4> =
            behind.iter().map(|pod| self.pods.pod_front(pod)).collect();
        let answers = self.probe(&targets, Speech::Request)?;
        let plaintext: BTreeMap<String, Plaintext> = behind
            .iter()
            .map(|pod| pod.pod.clone())
            .zip(answers.iter().map(Answer::plaintext))
            .collect();
        Ok(Outsider { plaintext, ..Outsider::default() })
    }

    /// Probes first, then what is counted: before a window no probe may be in it.
    ///
    /// # Errors
    /// When something cannot be asked.
    pub(super) fn before(&self) -> Result<PathSnapshot, LabError> {
        let reports = self.reports()?;
        Ok(self.snapshot(reports, self.counters()?, self.answered()?))
    }

    /// What is counted first, then probes.
    ///
    /// # Errors
    /// When something cannot be asked.
    pub(super) fn after(&self) -> Result<PathSnapshot, LabError> {
        let (counters, answered) = (self.counters()?, self.answered()?);
        Ok(self.snapshot(self.reports()?, counters, answered))
    }

    fn snapshot(
        &self,
        (walk, replicas): (Answer, BTreeMap<String, PathReport>),
        counters: BTreeMap<String, ProxyCounters>,
        answered: BTreeMap<String, u64>,
    ) -> PathSnapshot {
        PathSnapshot {
            walk: walk.walk(),
            counters,
            rules: BTreeMap::new(),
            occupants: BTreeMap::new(),
            databases: BTreeMap::new(),
            replicas,
            jvms: BTreeMap::new(),
            answered,
            wire: Reading::Missing(NO_WIRE.to_owned()),
            handshakes: BTreeMap::new(),
            sni_accepted: None,
        }
    }

    /// What the proxies of a mesh that is installed say of the arm; `nodes` are the addresses of those on the nodes.
    ///
    /// # Errors
    /// When one cannot be asked.
    pub(super) fn mesh_counters(
        &self,
        mesh: Mesh,
        namespace: &str,
        nodes: &[Ipv4Addr],
    ) -> Result<Counted, LabError> {
        let (port, path) = mesh.statistics();
        let ask = |ip: Ipv4Addr, service: &str| {
            let text = self.link.text(&format!("/to/{ip}:{port}{path}"))?;
            Ok::<_, KubernetesError>(mesh.counted(&text, namespace, service))
        };
        let counted: Result<Vec<Counted>, _> = match mesh.container() {
            None => nodes.iter().map(|ip| ask(*ip, "")).collect(),
            Some(_) => {
                let has_proxy = |pod: &&PodAddresses| {
                    let service = self.deployment.service(&pod.service);
                    service.is_some_and(|service| service.takes_sidecar())
                };
                let pods = self.pods.pods.iter().filter(has_proxy);
                pods.map(|pod| ask(pod.ip, &pod.service)).collect()
            }
        };
        Ok(Counted::sum(&counted?))
    }

    /// What the services say of themselves, who do not count that they were asked.
    fn reports(&self) -> Result<(Answer, BTreeMap<String, PathReport>), LabError> {
        let walk = self.ask_entry(Speech::PathReport)?;
        // Behind a sidecar that demands mTLS a pod cannot be asked by itself.
        let by_itself = |pod: &&PodAddresses| {
            self.deployment.service(&pod.service).is_some_and(|service| {
                service.replicas > 1
                    && service.program.reports() != Reports::Never
                    && !self.deployment.has_sidecar(service)
            })
        };
        let asked: Vec<&PodAddresses> = self.pods.pods.iter().filter(by_itself).collect();
        let targets: Vec<SocketAddrV4> = asked.iter().map(|pod| self.pods.pod_front(pod)).collect();
        let answers = self.probe(&targets, Speech::PathReport)?;
        let reports = asked.iter().zip(answers);
        let reports =
            reports.filter_map(|(pod, answer)| Some((pod.pod.clone(), answer.walk().report?)));
        Ok((walk, reports.collect()))
    }

    /// What the proxies that toll brings have counted, by pod.
    fn counters(&self) -> Result<BTreeMap<String, ProxyCounters>, LabError> {
        let has_proxy = |pod: &&PodAddresses| {
            self.deployment.service(&pod.service).is_some_and(|service| {
                service.program == Program::Gateway || pod.inbound_port != pod.app_port
            })
        };
        let read = |pod: &PodAddresses| {
            let answer = self.link.text(&format!("/to/{}:{STATS_PORT}{STATS}", pod.ip))?;
            let counters = counters_in(&answer).map_err(|error| KubernetesError::Pod {
                pod: pod.pod.clone(),
                message: format!("its proxy's statistics cannot be read: {error}"),
            })?;
            Ok((pod.pod.clone(), counters))
        };
        self.pods.pods.iter().filter(has_proxy).map(read).collect()
    }

    /// Requests that each nginx has answered to others, by pod.
    fn answered(&self) -> Result<BTreeMap<String, u64>, LabError> {
        let counts = |pod: &&PodAddresses| {
            self.deployment
                .service(&pod.service)
                .is_some_and(|service| service.program.counts_answers())
        };
        let own = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let read = |pod: &PodAddresses| {
            let answer = self.link.text(&format!("/to/{}:{STATUS_PORT}/", pod.ip))?;
            let requests = requests_in(&answer).ok_or_else(|| KubernetesError::Pod {
                pod: pod.pod.clone(),
                message: "it does not say how many requests it got".to_owned(),
            })?;
            Ok((pod.pod.clone(), requests.saturating_sub(own)))
        };
        self.pods.pods.iter().filter(counts).map(read).collect()
    }
}

/// That each pod has the containers of its variant and no others: an injector that fails open leaves pods without, one
/// that nobody expected adds some.
pub(super) fn container_claims(
    deployment: &Deployment,
    beside: Option<&'static str>,
    statuses: &BTreeMap<String, PodStatus>,
) -> Vec<Claim> {
    let claim = |service: &Service| {
        let beside = beside.filter(|_| deployment.has_sidecar(service));
        let expected: Vec<&str> = std::iter::once(PROGRAM).chain(beside).collect();
        let pods = deployment.pods().into_iter();
        let pods: Vec<String> =
            pods.filter(|(_, of)| of.name == service.name).map(|(pod, _)| pod).collect();
        let has = |pod: &String| {
            let containers = &statuses.get(pod)?.containers;
            let mut names: Vec<&str> = containers.iter().map(|one| one.name.as_str()).collect();
            names.sort_unstable();
            Some(names.join(", "))
        };
        let wanted = {
            let mut names = expected.clone();
            names.sort_unstable();
            names.join(", ")
        };
        let odd = pods.iter().find(|pod| has(pod).as_ref() != Some(&wanted));
        let what = if service.replicas > 1 { "pods" } else { "pod" };
        Claim {
            topic: Topic::Other,
            claim: format!("{} {what}: the containers of the variant and no others", service.name),
            seen: match odd {
                None => wanted.clone(),
                Some(pod) => {
                    format!("{pod}: {}", has(pod).unwrap_or_else(|| "no such pod".to_owned()))
                }
            },
            expected: wanted,
            holds: odd.is_none(),
        }
    };
    deployment.services.iter().map(claim).collect()
}

/// The address of the pod that a component is in.
pub(super) fn addresses(statuses: &BTreeMap<String, PodStatus>) -> BTreeMap<String, Ipv4Addr> {
    statuses.iter().filter_map(|(pod, status)| Some((pod.clone(), status.ip?))).collect()
}
