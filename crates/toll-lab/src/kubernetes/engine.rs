//! The load engines of an arm: one in each load pod, reached by way of the driver. Each keeps its lines until they were
//! fetched.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::link::Link;
use crate::LabError;
use crate::error::KubernetesError;
use crate::in_cluster::protocol::{Clock, EngineEnd, Lines, Offset};
use crate::output::NextLine;

/// How long plans may be on their way to all pods before they begin at the same instant.
const LEAD: Duration = Duration::from_millis(300);

/// The load engines of one arm.
#[derive(Debug)]
pub(crate) struct KubernetesEngine {
    link: Arc<Link>,
    pods: Vec<Pod>,
    /// Fetched and not yet given.
    lines: VecDeque<String>,
    /// The pod that is asked next.
    turn: usize,
}

#[derive(Debug)]
struct Pod {
    /// Address and port.
    address: String,
    offset: Offset,
    /// Number of its last plan.
    plan: usize,
    /// Number of the next line to fetch.
    next: usize,
}

impl KubernetesEngine {
    /// The engines in the pods at these addresses, whose clocks are measured.
    ///
    /// # Errors
    /// When one cannot be reached.
    pub(super) fn new(link: Arc<Link>, addresses: &[String]) -> Result<Self, LabError> {
        let pods = addresses.iter().map(|address| {
            let offset = link.get(&format!("/offset/{address}"))?;
            Ok(Pod { address: address.clone(), offset, plan: 0, next: 0 })
        });
        let pods = pods.collect::<Result<_, KubernetesError>>()?;
        Ok(Self { link, pods, lines: VecDeque::new(), turn: 0 })
    }

    pub(crate) fn pods(&self) -> usize {
        self.pods.len()
    }

    /// The instant at which all of them can begin a plan, by each pod's own clock, nanoseconds since 1970.
    ///
    /// # Errors
    /// When the driver cannot be asked for the time.
    pub(crate) fn common_start(&self) -> Result<Vec<u64>, LabError> {
        let now: Clock = self.link.get("/clock")?;
        let lead = u64::try_from(LEAD.as_nanos()).unwrap_or(u64::MAX);
        let start = now.unix_ns + lead;
        let at = |pod: &Pod| start.saturating_add_signed(pod.offset.offset_ns);
        Ok(self.pods.iter().map(at).collect())
    }

    /// By how much the clocks moved against each other since they were measured first, nanoseconds, at the most.
    ///
    /// # Errors
    /// When one cannot be reached.
    pub(crate) fn clock_drift_ns(&self) -> Result<u64, LabError> {
        let drift = |pod: &Pod| {
            let now: Offset = self.link.get(&format!("/offset/{}", pod.address))?;
            let uncertain = now.round_trip_ns.midpoint(pod.offset.round_trip_ns);
            let moved = now.offset_ns.abs_diff(pod.offset.offset_ns);
            Ok::<_, KubernetesError>(moved.saturating_sub(uncertain))
        };
        let drifts = self.pods.iter().map(drift).collect::<Result<Vec<_>, _>>()?;
        Ok(drifts.into_iter().max().unwrap_or(0))
    }

    pub(crate) fn send(&mut self, pod: usize, plan: &[u8]) -> Result<(), LabError> {
        let pod = &mut self.pods[pod];
        pod.plan += 1;
        let path = format!("/to/{}/plans/{}", pod.address, pod.plan);
        Ok(self.link.put_bytes(&path, plan.to_vec())?)
    }

    /// Asks the pods in turn, each for a share of the time.
    pub(crate) fn next_line(&mut self, wait: Duration) -> NextLine {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(line) = self.lines.pop_front() {
                return NextLine::Line(line);
            }
            match self.fetch(deadline.saturating_duration_since(Instant::now())) {
                Err(error) => return NextLine::Ended(Err(error)),
                Ok(Some(end)) => return NextLine::Ended(Err(broken(&end))),
                Ok(None) if self.lines.is_empty() && Instant::now() >= deadline => {
                    return NextLine::Quiet;
                }
                Ok(None) => {}
            }
        }
    }

    fn fetch(&mut self, wait: Duration) -> Result<Option<EngineEnd>, LabError> {
        self.turn = (self.turn + 1) % self.pods.len();
        let share = wait.as_millis() / self.pods.len() as u128;
        let pod = &mut self.pods[self.turn];
        if pod.plan == 0 {
            return Ok(None);
        }
        let path = format!("/to/{}/lines?from={}&wait_ms={share}", pod.address, pod.next);
        let lines: Lines = self.link.get(&path)?;
        pod.next = lines.next;
        let is_empty = lines.lines.is_empty();
        self.lines.extend(lines.lines);
        Ok(lines.ended.filter(|_| is_empty))
    }

    pub(crate) fn kill(&mut self) {
        for pod in &self.pods {
            if let Err(error) = self.link.delete(&format!("/to/{}/engine", pod.address)) {
                tracing::warn!("the load engine at {} was not ended: {error}", pod.address);
            }
        }
    }
}

fn broken(end: &EngineEnd) -> LabError {
    KubernetesError::Pod {
        pod: "the load engine".to_owned(),
        message: format!("{}; its last lines:\n  {}", end.status, end.log.join("\n  ")),
    }
    .into()
}
