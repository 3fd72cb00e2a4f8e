//! Opens and closes a proof of the path around the measured window, waits for spans that are on their way, and
//! has what was seen judged.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::agents;
use super::arrivals::Arrivals;
use super::environment::LocalEnvironment;
use crate::data_plane::agent::jar;
use crate::data_plane::collector::{self, SpanWindow};
use crate::data_plane::{
    Outsider, Sight, Window, prove_agent, prove_ambient, prove_bare, prove_sidecars,
};
use crate::deployment::{DataPlane, JavaAgent};
use crate::{LabError, Proof, Traffic};

/// How often the collector is asked for spans that are on their way.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What was seen before the window.
#[derive(Debug)]
pub(crate) struct OpenProof {
    outsider: Outsider,
    before: Sight,
}

impl LocalEnvironment {
    /// Sends all probes before it reads what is counted, so that none is in the window. Spans are not waited for:
    /// the collector keeps none that began before its own window.
    pub(crate) fn open_proof(&mut self) -> Result<(), LabError> {
        let outsider = self.outsider()?;
        let reports = self.reports()?;
        let counts = self.counts()?;
        self.proof = Some(OpenProof { outsider, before: self.sight(reports, counts)? });
        if let Some(socket) = self.collector_socket() {
            collector::open_window(&socket)?;
        }
        Ok(())
    }

    /// Reads what is counted before it probes again, and judges.
    pub(crate) fn close_proof(&mut self, traffic: Traffic) -> Result<Proof, LabError> {
        let open = self.proof.take().ok_or(LabError::ProofNotOpen)?;
        let spans = self.spans(&traffic)?;
        let counts = self.counts()?;
        let after = self.sight(self.reports()?, counts)?;
        let window = Window {
            deployment: &self.deployment,
            traffic: &traffic,
            before: &open.before,
            after: &after,
            spans: spans.as_ref(),
            issued: (!self.issued.servers.is_empty()).then_some(&self.issued),
        };
        Ok(match &self.deployment.data_plane {
            DataPlane::Bare => prove_bare(&window, &self.topology),
            DataPlane::Agent(agent) => {
                let jar = agents::resolved(jar(agent, self.options.opentelemetry.as_deref())?);
                prove_agent(&window, &self.topology, &jar)
            }
            DataPlane::Ambient(ambient) => {
                prove_ambient(&window, &self.topology, ambient, &open.outsider)
            }
            DataPlane::Sidecar { .. } => prove_sidecars(&window, &self.topology, &open.outsider),
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
        let expected = traffic.spans().map(|spans| spans.values().sum());
        let mut arrivals = Arrivals::new(expected, agent.batch_delay(), Instant::now());
        let look = || Ok(arrivals.are_over(collector::counts(socket)?, Instant::now()));
        unless_interrupted(&self.options.interrupt, look)
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
