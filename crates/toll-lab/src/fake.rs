//! A lab without processes, for end-to-end tests of what uses a lab.
//!
//! A script says for each deployment and load plan which lines the load prints and what each component uses.
//! CPU counters rise with the lines that have been read, and each sample is one second after the last, so
//! that the same script always gives the same run. What was asked of the lab can be read afterwards.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::environment::NextLine;
use crate::{
    Component, ComponentSample, Deployment, Ending, HostSample, LabError, MemorySample, PodMetrics,
    Proof, Reading, Rendered, Sample, Traffic,
};

/// One load as the script wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeLoadScript {
    /// What the load program prints.
    pub lines: Vec<String>,
    /// CPU time that each component uses while it prints them, nanoseconds, and its memory, bytes.
    pub usage: Vec<(Component, u64, u64)>,
}

/// What was asked of a fake lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FakeCall {
    /// The variant of that name was to come up.
    Up(String),
    /// A load was started.
    Load,
    /// A proof was opened.
    OpenProof,
    /// A proof was closed after this traffic.
    CloseProof(Traffic),
    /// The variant of that name was taken down.
    Down(String),
    /// The variant of that name was dropped by someone who did not take it down.
    Dropped(String),
}

/// What pods tell of themselves at an instant.
type Telling = dyn Fn(&Deployment, u64) -> Vec<PodMetrics> + Send + Sync;

type Script = dyn Fn(&Deployment, &[u8]) -> FakeLoadScript + Send + Sync;

/// A lab that makes nothing up but numbers.
#[derive(Clone)]
pub struct FakeLab {
    script: Arc<Script>,
    telling: Arc<Telling>,
    proof: Proof,
    /// Number of the load, from 1, in which a component ends by itself.
    crash_in: Option<usize>,
    /// Number of the load, from 1, from which on the user does not wait for proofs.
    interrupt_after: Option<usize>,
    calls: Arc<Mutex<Vec<FakeCall>>>,
}

impl FakeLab {
    /// A lab in which each load goes as `script` says and each proof is `proof`.
    pub fn new(
        proof: Proof,
        script: impl Fn(&Deployment, &[u8]) -> FakeLoadScript + Send + Sync + 'static,
    ) -> Self {
        let telling = Arc::new(|_: &Deployment, _| Vec::new());
        Self {
            script: Arc::new(script),
            telling,
            proof,
            crash_in: None,
            interrupt_after: None,
            calls: Arc::default(),
        }
    }

    /// The same, but each sample has what `telling` says for its instant, in nanoseconds: the first is at one
    /// second.
    pub fn telling(
        self,
        telling: impl Fn(&Deployment, u64) -> Vec<PodMetrics> + Send + Sync + 'static,
    ) -> Self {
        Self { telling: Arc::new(telling), ..self }
    }

    /// The same, but in its load number `load`, from 1, a component ends by itself.
    pub fn crashing_in(self, load: usize) -> Self {
        Self { crash_in: Some(load), ..self }
    }

    /// The same, but the first proof that is closed after its load number `load`, from 1, is interrupted.
    pub fn interrupted_after(self, load: usize) -> Self {
        Self { interrupt_after: Some(load), ..self }
    }

    /// What has been asked of this lab and its clones, in order.
    pub fn calls(&self) -> Vec<FakeCall> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, call: FakeCall) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    fn loads(&self) -> usize {
        self.calls().iter().filter(|call| **call == FakeCall::Load).count()
    }

    pub(crate) fn render(&self, deployment: &Deployment) -> Vec<Rendered> {
        vec![Rendered { name: "deployment.txt".into(), text: format!("{deployment:#?}\n") }]
    }

    pub(crate) fn up(&self, deployment: &Deployment) -> FakeEnvironment {
        self.note(FakeCall::Up(deployment.name.clone()));
        FakeEnvironment {
            lab: self.clone(),
            deployment: deployment.clone(),
            load: FakeLoad::default(),
            used: Vec::new(),
            samples: 0,
            has_crashed: false,
            is_down: false,
        }
    }
}

impl fmt::Debug for FakeLab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeLab").field("proof", &self.proof).finish_non_exhaustive()
    }
}

/// A deployment in a fake lab.
#[derive(Debug)]
pub(crate) struct FakeEnvironment {
    lab: FakeLab,
    deployment: Deployment,
    load: FakeLoad,
    /// Component, CPU time before the load under way, CPU time of that load, memory.
    used: Vec<(Component, u64, u64, u64)>,
    samples: u64,
    has_crashed: bool,
    is_down: bool,
}

impl FakeEnvironment {
    pub(crate) fn entry_url(&self) -> String {
        let scheme = if self.entry_ca().is_some() { "https" } else { "http" };
        format!("{scheme}://{}.invalid/", self.deployment.entry)
    }

    /// No certificate, as nothing listens.
    pub(crate) fn entry_ca(&self) -> Option<String> {
        let entry = self.deployment.service(&self.deployment.entry)?;
        entry.tls.then(|| "the edge's authority".to_owned())
    }

    pub(crate) fn start_load(&mut self, plan: &[u8]) -> FakeLoad {
        self.lab.note(FakeCall::Load);
        self.has_crashed |= self.lab.crash_in == Some(self.lab.loads());
        let script = (self.lab.script)(&self.deployment, plan);
        for (component, cpu, memory) in script.usage {
            match self.used.iter_mut().find(|(known, ..)| *known == component) {
                Some(entry) => *entry = (component, entry.1 + entry.2, cpu, memory),
                None => self.used.push((component, 0, cpu, memory)),
            }
        }
        self.load = FakeLoad {
            total: script.lines.len(),
            lines: script.lines.into(),
            given: Arc::default(),
        };
        self.load.clone()
    }

    pub(crate) fn sample(&mut self) -> Sample {
        const SECOND: u64 = 1_000_000_000;
        self.samples += 1;
        let components: Vec<_> = self.used.iter().map(|used| self.component(used)).collect();
        let busy_ns = components.iter().map(|c| value(&c.cpu_ns)).sum();
        let at_ns = self.samples * SECOND;
        Sample {
            at_ns,
            took_ns: 0,
            components,
            host: HostSample { busy_ns, steal_ns: 0, runnable: 1 },
            metrics: (self.lab.telling)(&self.deployment, at_ns),
        }
    }

    fn component(&self, used: &(Component, u64, u64, u64)) -> ComponentSample {
        let (component, before, during, memory) = used;
        ComponentSample {
            component: component.clone(),
            cpu_ns: Reading::Value(before + self.load.share_of(*during)),
            memory: MemorySample {
                current: Reading::Value(*memory),
                anonymous: Reading::Value(*memory),
                peak: Reading::Value(*memory),
            },
        }
    }

    pub(crate) fn open_proof(&mut self) {
        self.lab.note(FakeCall::OpenProof);
    }

    pub(crate) fn close_proof(&mut self, traffic: Traffic) -> Result<Proof, LabError> {
        self.lab.note(FakeCall::CloseProof(traffic));
        match self.lab.interrupt_after.is_some_and(|load| self.lab.loads() >= load) {
            true => Err(LabError::Interrupted),
            false => Ok(self.lab.proof.clone()),
        }
    }

    /// Once a component has ended, it stays so.
    pub(crate) fn crashed(&self) -> Option<LabError> {
        self.has_crashed.then(|| LabError::Crashed {
            component: "postgres".to_owned(),
            ending: Ending::Status(9),
            log: vec!["the last words".to_owned()],
        })
    }

    pub(crate) fn down(mut self) {
        self.is_down = true;
        self.lab.note(FakeCall::Down(self.deployment.name.clone()));
    }
}

impl Drop for FakeEnvironment {
    fn drop(&mut self) {
        if !self.is_down {
            self.lab.note(FakeCall::Dropped(self.deployment.name.clone()));
        }
    }
}

fn value(reading: &Reading<u64>) -> u64 {
    match reading {
        Reading::Value(value) => *value,
        Reading::Missing(_) => 0,
    }
}

/// The load of a fake lab.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeLoad {
    lines: VecDeque<String>,
    total: usize,
    /// Lines that have been read; the environment reads it too.
    given: Arc<AtomicUsize>,
}

impl FakeLoad {
    pub(crate) fn next_line(&mut self) -> NextLine {
        match self.lines.pop_front() {
            Some(line) => {
                self.given.fetch_add(1, Ordering::Relaxed);
                NextLine::Line(line)
            }
            None => NextLine::Ended(Ok(())),
        }
    }

    pub(crate) fn kill(&mut self) {
        self.lines.clear();
    }

    fn share_of(&self, whole: u64) -> u64 {
        let given = self.given.load(Ordering::Relaxed) as u64;
        if self.total == 0 { 0 } else { whole * given / self.total as u64 }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::environment::Environment;
    use crate::{Lab, Role, fixture};

    fn fake() -> FakeLab {
        let proof = Proof { claims: vec![], left_out: vec![], traversals: vec![], spans: None };
        let server = Component { role: Role::Application, pod: "server".into() };
        FakeLab::new(proof, move |_, _| FakeLoadScript {
            lines: vec!["one".into(), "two".into()],
            usage: vec![(server.clone(), 1000, 64)],
        })
    }

    fn up(lab: &FakeLab) -> Environment {
        Lab::Fake(lab.clone()).up(&fixture::chain(), Path::new("unused")).unwrap()
    }

    fn server_cpu(environment: &mut Environment) -> u64 {
        value(&environment.sample().components[0].cpu_ns)
    }

    #[test]
    fn cpu_counters_rise_with_the_lines_read_and_never_fall() {
        let mut environment = up(&fake());
        for expected in [[0, 500, 1000], [1000, 1500, 2000]] {
            let mut load = environment.start_load(b"{}").unwrap();
            let mut seen = vec![server_cpu(&mut environment)];
            while let NextLine::Line(_) = load.next_line(Duration::ZERO) {
                seen.push(server_cpu(&mut environment));
            }
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn each_sample_has_what_the_script_tells_for_its_instant() {
        let lab = fake().telling(|deployment, at_ns| {
            let series = [("up".to_owned(), at_ns as f64 / 1e9)];
            let series = Reading::Value(series.into());
            vec![PodMetrics { pod: deployment.entry.clone(), at_ns, series }]
        });
        let mut environment = up(&lab);
        let values = [(); 2].map(|()| match &environment.sample().metrics[0].series {
            Reading::Value(series) => series["up"],
            Reading::Missing(why) => panic!("{why}"),
        });
        assert_eq!(values, [1.0, 2.0]);
    }

    #[test]
    fn an_environment_that_is_dropped_was_not_taken_down() {
        let (lab, name) = (fake(), fixture::chain().name);
        up(&lab).down().unwrap();
        drop(up(&lab));
        let up = FakeCall::Up(name.clone());
        let expected = [up.clone(), FakeCall::Down(name.clone()), up, FakeCall::Dropped(name)];
        assert_eq!(lab.calls(), expected);
    }

    #[test]
    fn a_component_that_has_crashed_stays_so_until_another_environment_is_up() {
        let lab = fake().crashing_in(2);
        let mut environment = up(&lab);
        let crashed = [(); 3].map(|()| {
            environment.start_load(b"{}").unwrap();
            environment.crashed().is_some()
        });
        assert_eq!(crashed, [false, true, true]);
        assert!(up(&lab).crashed().is_none());
    }
}
