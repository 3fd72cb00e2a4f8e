//! Gathers what a proof of the path needs at both ends of the measured window: probes, counters, firewall
//! rules and who runs in the pods.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::agents::{self, jvms};
use super::arrivals::Arrivals;
use super::bring_up::inside;
use super::environment::LocalEnvironment;
use super::namespace::Namespace;
use super::occupants::Processes;
use super::place::Place;
use super::probe::{Answer, Outcome, Speech, probe};
use super::process::Process;
use super::topology;
use crate::data_plane::agent::{batch_delay, jar};
use crate::data_plane::collector::{self, SpanWindow};
use crate::data_plane::{
    self, Jvm, Occupants, PathReport, Plaintext, ProxyCounters, Sight, Walk, Window, prove_agent,
    prove_bare, prove_sidecars,
};
use crate::deployment::{DataPlane, JavaAgent, Program};
use crate::{LabError, Proof, Reading, Role, Traffic};

/// How often the collector is asked for spans that are on their way.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What was seen before the window.
#[derive(Debug)]
pub(crate) struct OpenProof {
    plaintext: BTreeMap<String, Plaintext>,
    before: Sight,
}

/// What the services said of themselves.
struct Reports {
    walk: Walk,
    replicas: BTreeMap<String, PathReport>,
}

impl LocalEnvironment {
    /// Sends all probes before it reads the counters, so that none is in the window. Spans are not waited for:
    /// the collector keeps none that began before its own window.
    pub(crate) fn open_proof(&mut self) -> Result<(), LabError> {
        let plaintext = self.plaintext()?;
        let reports = self.reports()?;
        let counters = self.counters()?;
        self.proof = Some(OpenProof { plaintext, before: self.sight(reports, counters)? });
        if let Some(socket) = self.collector_socket() {
            collector::open_window(&socket)?;
        }
        Ok(())
    }

    /// Reads the counters before it probes again, and judges.
    pub(crate) fn close_proof(&mut self, traffic: Traffic) -> Result<Proof, LabError> {
        let open = self.proof.take().ok_or(LabError::ProofNotOpen)?;
        let spans = self.spans(&traffic)?;
        let counters = self.counters()?;
        let after = self.sight(self.reports()?, counters)?;
        let window = Window {
            deployment: &self.deployment,
            traffic: &traffic,
            before: &open.before,
            after: &after,
            spans: spans.as_ref(),
        };
        Ok(match &self.deployment.data_plane {
            DataPlane::Bare => prove_bare(&window, &self.topology),
            DataPlane::Agent(agent) => {
                let jar = agents::resolved(jar(agent, self.options.opentelemetry.as_deref())?);
                prove_agent(&window, &self.topology, &jar)
            }
            DataPlane::Ambient(_) => Proof {
                claims: Vec::new(),
                left_out: Vec::new(),
                traversals: Vec::new(),
                spans: None,
            },
            DataPlane::Sidecar { .. } => prove_sidecars(&window, &open.plaintext),
        })
    }

    /// What the collector got; with an agent, once all that is on its way has arrived.
    fn spans(&self, traffic: &Traffic) -> Result<Option<SpanWindow>, LabError> {
        let Some(socket) = self.collector_socket() else { return Ok(None) };
        if let DataPlane::Agent(agent) = &self.deployment.data_plane {
            self.await_spans(agent, &socket, traffic)?;
        }
        let window = collector::window(&socket)?;
        // Runs to come that are discarded would fill its memory.
        collector::close_window(&socket)?;
        Ok(Some(window))
    }

    fn await_spans(
        &self,
        agent: &JavaAgent,
        socket: &Path,
        traffic: &Traffic,
    ) -> Result<(), LabError> {
        let each: u64 = traffic.spans.values().sum();
        let expected = (each > 0).then_some(each * traffic.requests);
        let mut arrivals = Arrivals::new(expected, batch_delay(agent), Instant::now());
        let look = || Ok(arrivals.are_over(collector::counts(socket)?, Instant::now()));
        unless_interrupted(&self.options.interrupt, look)
    }

    fn sight(
        &self,
        reports: Reports,
        counters: BTreeMap<String, ProxyCounters>,
    ) -> Result<Sight, LabError> {
        Ok(Sight {
            walk: reports.walk,
            counters,
            rules: self.rules()?,
            occupants: self.occupants()?,
            databases: self.database_sights()?,
            replicas: reports.replicas,
            jvms: self.jvms()?,
            served: BTreeMap::new(),
            wire: match self.wire() {
                Reading::Value(wires) => wires,
                Reading::Missing(reason) => {
                    tracing::warn!("what the bridges carry is not counted: {reason}");
                    Vec::new()
                }
            },
        })
    }

    /// What the services say of themselves; they do not count that they were asked.
    fn reports(&self) -> Result<Reports, LabError> {
        let (place, entry) = self.way_in()?;
        let walk = walk(self.probe(&place, entry, Speech::PathReport)?);
        Ok(Reports { walk, replicas: self.replicas()? })
    }

    /// The reports of the pods of services that have several, each asked inside of its pod.
    fn replicas(&self) -> Result<BTreeMap<String, PathReport>, LabError> {
        let mut reports = BTreeMap::new();
        for (pod, service) in self.deployment.pods() {
            let silent = matches!(service.program, Program::Postgres(_) | Program::Nginx(_));
            if service.replicas < 2 || silent {
                continue;
            }
            let Some(place) = self.namespace_of(&pod) else { continue };
            let target = SocketAddrV4::new(Ipv4Addr::LOCALHOST, service.port);
            let inside = Place { namespace: Some(place.clone()), ..self.load_place() };
            let answer = self.probe(&inside, target, Speech::PathReport)?;
            reports.extend(walk(answer).report.map(|report| (pod, report)));
        }
        Ok(reports)
    }

    fn probe(
        &self,
        place: &Place,
        target: SocketAddrV4,
        speech: Speech,
    ) -> Result<Answer, LabError> {
        probe(&self.launcher, &self.options.service, place, target, speech)
    }

    /// What becomes of plaintext from outside of the mesh, by pods that have a sidecar and are not the entry's.
    fn plaintext(&self) -> Result<BTreeMap<String, Plaintext>, LabError> {
        let mut outcomes = BTreeMap::new();
        for ((pod, service), addresses) in
            self.deployment.pods().into_iter().zip(&self.topology.pods)
        {
            let behind = service.name != self.deployment.entry;
            if behind && topology::has_sidecar(&self.deployment, service) {
                let target = topology::pod_front(&self.topology, addresses);
                let is_database = service.program.is_database();
                let speech = if is_database { Speech::Postgres } else { Speech::Request };
                let answer = self.probe(&self.load_place(), target, speech)?;
                outcomes.insert(pod, plaintext(&answer));
            }
        }
        Ok(outcomes)
    }

    /// What the firewall of each bare pod holds.
    fn rules(&self) -> Result<BTreeMap<String, String>, LabError> {
        let list = |(name, pod, _): (&String, &Namespace, _)| {
            let rules = self.tool("nft", &["list", "ruleset"], name, &inside(pod), "")?;
            Ok((name.clone(), rules))
        };
        self.bare_pods().map(list).collect()
    }

    /// Who runs in each bare pod.
    fn occupants(&self) -> Result<BTreeMap<String, Occupants>, LabError> {
        let processes = Processes::now().map_err(LabError::Namespaces)?;
        let look = |(name, pod, program): (&String, &Namespace, &Process)| {
            let inside = processes.inside(pod, program.pid).map_err(LabError::Namespaces)?;
            Ok((name.clone(), inside))
        };
        self.bare_pods().map(look).collect()
    }

    /// The JVMs in each pod of the application, where anybody takes their spans.
    fn jvms(&self) -> Result<BTreeMap<String, Vec<Jvm>>, LabError> {
        if self.collector_socket().is_none() {
            return Ok(BTreeMap::new());
        }
        let processes = Processes::now().map_err(LabError::Namespaces)?;
        let known = match &self.deployment.data_plane {
            DataPlane::Agent(agent) => Some(jar(agent, self.options.opentelemetry.as_deref())?),
            _ => self.options.opentelemetry.as_deref(),
        };
        let programs = self.components.iter().filter(|(c, _)| c.role == Role::Application);
        let look = |pid| jvms(&processes, pid, known);
        Ok(programs.map(|(c, process)| (c.pod.clone(), look(process.pid))).collect())
    }

    /// The pods of a bare deployment that have a network of their own: name, network and program, which is a
    /// gateway's Envoy, too.
    fn bare_pods(&self) -> impl Iterator<Item = (&String, &Namespace, &Process)> {
        let bare = !self.deployment.data_plane.has_sidecars();
        let programs = self.components.iter().filter(move |_| bare);
        programs.filter_map(|(component, process)| {
            let pod = self.namespace_of(&component.pod)?;
            Some((&component.pod, pod, &**process))
        })
    }

    fn counters(&self) -> Result<BTreeMap<String, ProxyCounters>, LabError> {
        let read = |plan: &data_plane::ProxyPlan| {
            Ok((plan.pod.clone(), data_plane::counters(&plan.admin_socket)?))
        };
        self.plans.iter().map(read).collect()
    }
}

/// Looks until it is over. A wait that was cut short is no measurement: spans would count as dropped that were
/// only on their way.
fn unless_interrupted(
    interrupt: &AtomicBool,
    mut is_over: impl FnMut() -> Result<bool, LabError>,
) -> Result<(), LabError> {
    while !is_over()? {
        if interrupt.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn walk(answer: Answer) -> Walk {
    Walk {
        server: answer.headers.get("server").cloned(),
        report: serde_json::from_str::<PathReport>(&answer.body).ok(),
    }
}

fn plaintext(answer: &Answer) -> Plaintext {
    match (answer.outcome, answer.status) {
        // A database's answer has no status.
        (Outcome::Answered, status) => Plaintext::Answered(status.unwrap_or(0)),
        (Outcome::Reset | Outcome::Closed, _) => Plaintext::Closed,
        (Outcome::Refused, _) => Plaintext::Refused,
        (outcome, _) => Plaintext::Unclear(format!("{outcome:?}").to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_spans_that_is_interrupted_gives_no_proof() {
        let interrupt = AtomicBool::new(false);
        let mut looks = 0;
        let never = || {
            looks += 1;
            interrupt.store(looks == 2, Ordering::Relaxed);
            Ok(false)
        };
        let ended = unless_interrupted(&interrupt, never);
        assert!(matches!(ended, Err(LabError::Interrupted)), "{ended:?}");
        assert_eq!(looks, 2);
        // All had come already.
        assert!(unless_interrupted(&AtomicBool::new(true), || Ok(true)).is_ok());
    }

    #[test]
    fn only_a_connection_that_was_made_and_then_closed_counts_as_refused_plaintext() {
        let outcome = |outcome| {
            plaintext(&Answer {
                outcome,
                status: None,
                headers: BTreeMap::new(),
                body: String::new(),
            })
        };
        assert_eq!(outcome(Outcome::Reset), Plaintext::Closed);
        assert_eq!(outcome(Outcome::Refused), Plaintext::Refused);
        assert_eq!(outcome(Outcome::Timeout), Plaintext::Unclear("timeout".into()));
    }
}
