//! Opens and closes a proof of the path around the measured window, waits for spans that are on their way, and
//! has what was seen judged.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::environment::LocalEnvironment;
use super::observer::OpenProof;
use super::setup::Setup;
use crate::deployment::{DataPlane, Deployment, JavaAgent};
use crate::evidence::SpanWindow;
use crate::planes;
use crate::planes::sidecar::mesher::claims::Bereft;
use crate::probe::Speech;
use crate::programs::collector::arrivals::Arrivals;
use crate::programs::collector::{self, admin};
use crate::proof::window::{Spread, Window};
use crate::topology::PodAddresses;
use crate::{LabError, Proof, Role, Traffic};

/// How often the collector is asked for spans that are on their way.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl LocalEnvironment {
    /// Sends all probes before it reads what is counted, so that none is in the window. Spans are not waited for:
    /// the collector keeps none that began before its own window.
    pub(crate) fn open_proof(&mut self) -> Result<(), LabError> {
        let observer = self.observer();
        let outsider = observer.outsider()?;
        let reports = observer.reports()?;
        let counts = observer.counts()?;
        self.proof = Some(OpenProof { outsider, before: observer.snapshot(reports, counts)? });
        if let Some(socket) = self.collector_socket() {
            admin::open_window(&socket)?;
        }
        Ok(())
    }

    /// Reads what is counted before it probes again, and judges.
    pub(crate) fn close_proof(&mut self, traffic: Traffic) -> Result<Proof, LabError> {
        let open = self.proof.take().ok_or(LabError::ProofNotOpen)?;
        let spans = self.spans(&traffic)?;
        let observer = self.observer();
        let counts = observer.counts()?;
        let after = observer.snapshot(observer.reports()?, counts)?;
        let bereft = self.bereft()?;
        let Setup { deployment, topology, machine, .. } = &self.setup;
        let issued = &self.credentials.external;
        let window = Window {
            deployment,
            traffic: &traffic,
            before: &open.before,
            after: &after,
            spans: spans.as_ref(),
            issued: (!issued.servers.is_empty()).then_some(issued),
            spread: Spread::InTurn,
        };
        planes::prove(&window, topology, &open.outsider, &bereft, &machine.options.artifacts)
    }

    /// What becomes of calls whose called service has lost its Meshers: each is ended, the last of a chain first, and
    /// its callers' are asked. The environment is of no use afterwards.
    fn bereft(&mut self) -> Result<Vec<Bereft>, LabError> {
        if !self.setup.deployment.data_plane.is_mesher() {
            return Ok(Vec::new());
        }
        let mut seen = Vec::new();
        for callee in last_first(&self.setup.deployment) {
            for pod in self.setup.topology.pods_of(&callee)? {
                self.processes.end_component(Role::Sidecar, &pod.pod)?;
            }
            let callers = self.setup.deployment.callers_of(&callee);
            for caller in callers.map(|caller| caller.name.clone()) {
                let pods = self.setup.topology.pods_of(&caller)?;
                seen.push(self.call_without(pods[0], &callee)?);
            }
        }
        Ok(seen)
    }

    fn call_without(&self, caller: &PodAddresses, callee: &str) -> Result<Bereft, LabError> {
        let missing = || LabError::UnknownService(caller.pod.clone());
        let mesher = caller.mesher.ok_or_else(missing)?;
        let consumer = SocketAddrV4::new(Ipv4Addr::LOCALHOST, mesher.provider.port());
        let host = format!("{callee}:{}", self.setup.topology.pods_of(callee)?[0].app_port);
        let answer = self.observer().ask_in(&caller.pod, consumer, Speech::ThroughProxy(&host))?;
        let seen = match answer.status {
            Some(status) => status.to_string(),
            None => format!("{:?}", answer.outcome).to_lowercase(),
        };
        Ok(Bereft { caller: caller.service.clone(), callee: callee.to_owned(), seen })
    }

    /// Spans that have come since the start; none where no agent sends any.
    pub(crate) fn spans_so_far(&self) -> Result<Option<u64>, LabError> {
        let is_traced = matches!(self.setup.deployment.data_plane, DataPlane::Agent(_));
        let Some(socket) = self.collector_socket().filter(|_| is_traced) else { return Ok(None) };
        Ok(Some(admin::counts(&socket)?.arrived_ever))
    }

    fn collector_socket(&self) -> Option<PathBuf> {
        collector::admin_socket(&self.setup.deployment, &self.setup.folder)
    }

    /// What the collector got; with an agent, once all that is on its way has arrived.
    fn spans(&self, traffic: &Traffic) -> Result<Option<SpanWindow>, LabError> {
        let Some(socket) = self.collector_socket() else { return Ok(None) };
        if let DataPlane::Agent(agent) = &self.setup.deployment.data_plane {
            self.await_spans(agent, &socket, traffic)?;
        }
        let window = admin::window(&socket)?;
        // Runs to come that are discarded would fill its memory.
        admin::close_window(&socket)?;
        Ok(Some(window))
    }

    fn await_spans(
        &self,
        agent: &JavaAgent,
        socket: &Path,
        traffic: &Traffic,
    ) -> Result<(), LabError> {
        let expected = traffic.spans().map(|spans| spans.values().sum());
        let mut arrivals = Arrivals::new(expected, agent.batch_delay(), Instant::now());
        let look = || Ok(arrivals.are_over(admin::counts(socket)?, Instant::now()));
        unless_interrupted(&self.setup.machine.options.interrupt, look)
    }
}

/// The services that are called, each before those that call it.
fn last_first(deployment: &Deployment) -> Vec<String> {
    let mut order = Vec::new();
    let mut reached = vec![deployment.entry.as_str()];
    while let Some(name) = reached.pop() {
        order.retain(|known| known != name);
        order.push(name.to_owned());
        let calls = deployment.service(name).map(|service| service.calls.as_slice());
        reached.extend(calls.unwrap_or_default().iter().map(String::as_str));
    }
    order.reverse();
    order.retain(|name| *name != deployment.entry);
    order
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
}
