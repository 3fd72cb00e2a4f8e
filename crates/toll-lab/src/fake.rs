//! A lab without processes, for end-to-end tests of what uses a lab.
//!
//! A script says for each deployment and load plan which lines the load prints and what each component uses.
//! CPU counters rise with the lines that have been read, and each sample is one second after the last of any
//! environment, so that the same script always gives the same run. All environments of a lab are on one machine,
//! which is as busy as their components. What was asked of the lab can be read afterwards.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    Component, ComponentSample, DataPlane, Deployment, Ending, HostSample, LabError, MemorySample,
    NextLine, PodMetrics, Proof, Reading, Rendered, Sample, Traffic,
};

/// One plan of a load as the script wants it.
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
    /// A load program was started.
    Engine,
    /// A plan was sent to one.
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
    /// Whether its agents send nothing.
    is_silent: bool,
    /// Number of the plan, from 1, in which a component ends by itself.
    crash_in: Option<usize>,
    /// Number of the plan, from 1, from which on the user does not wait for proofs.
    interrupt_after: Option<usize>,
    calls: Arc<Mutex<Vec<FakeCall>>>,
    machine: Arc<Machine>,
}

/// What all environments of a lab share.
#[derive(Debug, Default)]
struct Machine {
    samples: AtomicU64,
    /// Of all that have ever been up: the time that a machine was busy never falls.
    environments: Mutex<Vec<Arc<Mutex<Usage>>>>,
}

impl Machine {
    fn busy_ns(&self) -> u64 {
        locked(&self.environments).iter().map(|usage| locked(usage).busy_ns()).sum()
    }
}

/// What one environment is asked to do, and what it has used for it.
#[derive(Debug, Default)]
struct Usage {
    /// Component, CPU time, memory.
    components: Vec<(Component, u64, u64)>,
    /// Plans whose lines have not all been read, and how many were.
    plans: VecDeque<(FakeLoadScript, u64)>,
    has_crashed: bool,
}

impl Usage {
    fn busy_ns(&self) -> u64 {
        self.components.iter().map(|(_, cpu, _)| cpu).sum()
    }

    /// The CPU time and the memory of a component.
    fn of(&mut self, component: &Component) -> (&mut u64, &mut u64) {
        let known = self.components.iter().position(|(known, ..)| known == component);
        let place = known.unwrap_or_else(|| {
            self.components.push((component.clone(), 0, 0));
            self.components.len() - 1
        });
        let (_, cpu, memory) = &mut self.components[place];
        (cpu, memory)
    }

    fn take(&mut self, plan: FakeLoadScript) {
        for (component, _, memory) in &plan.usage {
            *self.of(component).1 = *memory;
        }
        if !plan.lines.is_empty() {
            self.plans.push_back((plan, 0));
        }
    }

    /// The next line, and what it costs.
    fn next_line(&mut self) -> Option<String> {
        let (plan, given) = self.plans.pop_front()?;
        let line = plan.lines[given as usize].clone();
        let (given, total) = (given + 1, plan.lines.len() as u64);
        for (component, cpu, _) in &plan.usage {
            *self.of(component).0 += cpu * given / total - cpu * (given - 1) / total;
        }
        if given < total {
            self.plans.push_front((plan, given));
        }
        Some(line)
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeLab {
    /// A lab in which each plan goes as `script` says and each proof is `proof`.
    pub fn new(
        proof: Proof,
        script: impl Fn(&Deployment, &[u8]) -> FakeLoadScript + Send + Sync + 'static,
    ) -> Self {
        let telling = Arc::new(|_: &Deployment, _| Vec::new());
        Self {
            script: Arc::new(script),
            telling,
            proof,
            is_silent: false,
            crash_in: None,
            interrupt_after: None,
            calls: Arc::default(),
            machine: Arc::default(),
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

    /// The same, but in its plan number `load`, from 1, a component ends by itself.
    pub fn crashing_in(self, load: usize) -> Self {
        Self { crash_in: Some(load), ..self }
    }

    /// The same, but the first proof that is closed after its plan number `load`, from 1, is interrupted.
    pub fn interrupted_after(self, load: usize) -> Self {
        Self { interrupt_after: Some(load), ..self }
    }

    /// The same, but its agents send no spans.
    pub fn silent(self) -> Self {
        Self { is_silent: true, ..self }
    }

    /// What has been asked of this lab and its clones, in order.
    pub fn calls(&self) -> Vec<FakeCall> {
        locked(&self.calls).clone()
    }

    fn note(&self, call: FakeCall) {
        locked(&self.calls).push(call);
    }

    fn loads(&self) -> usize {
        self.calls().iter().filter(|call| **call == FakeCall::Load).count()
    }

    pub(crate) fn render(&self, deployment: &Deployment) -> Vec<Rendered> {
        vec![Rendered { name: "deployment.txt".into(), text: format!("{deployment:#?}\n") }]
    }

    pub(crate) fn up(&self, deployment: &Deployment) -> FakeEnvironment {
        self.note(FakeCall::Up(deployment.name.clone()));
        let usage = Arc::default();
        locked(&self.machine.environments).push(Arc::clone(&usage));
        FakeEnvironment { lab: self.clone(), deployment: deployment.clone(), usage, is_down: false }
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
    usage: Arc<Mutex<Usage>>,
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

    pub(crate) fn start_engine(&self) -> FakeEngine {
        self.lab.note(FakeCall::Engine);
        let (lab, deployment) = (self.lab.clone(), self.deployment.clone());
        FakeEngine { lab, deployment, usage: Arc::clone(&self.usage) }
    }

    pub(crate) fn sample(&mut self) -> Sample {
        let mut sample = self.sample_counters();
        sample.metrics = (self.lab.telling)(&self.deployment, sample.at_ns);
        sample
    }

    pub(crate) fn sample_counters(&mut self) -> Sample {
        const SECOND: u64 = 1_000_000_000;
        let machine = &self.lab.machine;
        let component = |(component, cpu, memory): &(Component, u64, u64)| ComponentSample {
            component: component.clone(),
            cpu_ns: Reading::Value(*cpu),
            memory: MemorySample {
                current: Reading::Value(*memory),
                anonymous: Reading::Value(*memory),
                peak: Reading::Value(*memory),
            },
        };
        // The machine looks at it, too.
        let components = locked(&self.usage).components.iter().map(component).collect();
        Sample {
            at_ns: (machine.samples.fetch_add(1, Ordering::Relaxed) + 1) * SECOND,
            took_ns: 0,
            components,
            host: HostSample { busy_ns: machine.busy_ns(), steal_ns: 0, runnable: 1 },
            metrics: Vec::new(),
        }
    }

    pub(crate) fn open_proof(&mut self) {
        self.lab.note(FakeCall::OpenProof);
    }

    pub(crate) fn spans_so_far(&self) -> Option<u64> {
        let is_traced = matches!(self.deployment.data_plane, DataPlane::Agent(_));
        is_traced.then(|| if self.lab.is_silent { 0 } else { self.lab.loads() as u64 })
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
        locked(&self.usage).has_crashed.then(|| LabError::Crashed {
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

/// The load program of a fake environment.
#[derive(Debug)]
pub(crate) struct FakeEngine {
    lab: FakeLab,
    deployment: Deployment,
    usage: Arc<Mutex<Usage>>,
}

impl FakeEngine {
    pub(crate) fn send(&mut self, plan: &[u8]) {
        self.lab.note(FakeCall::Load);
        let script = (self.lab.script)(&self.deployment, plan);
        let mut usage = locked(&self.usage);
        usage.has_crashed |= self.lab.crash_in == Some(self.lab.loads());
        usage.take(script);
    }

    /// Where there is nothing more to say it has ended: nobody could wait for more.
    pub(crate) fn next_line(&mut self) -> NextLine {
        locked(&self.usage).next_line().map_or(NextLine::Ended(Ok(())), NextLine::Line)
    }

    pub(crate) fn kill(&mut self) {
        locked(&self.usage).plans.clear();
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
        let proof = Proof {
            claims: vec![],
            left_out: vec![],
            traversals: vec![],
            calls: vec![],
            spans: None,
        };
        let server = Component { role: Role::Application, pod: "server".into() };
        FakeLab::new(proof, move |_, _| FakeLoadScript {
            lines: vec!["one".into(), "two".into()],
            usage: vec![(server.clone(), 1000, 64)],
        })
    }

    fn up(lab: &FakeLab) -> Environment {
        Lab::Fake(lab.clone()).up(&fixture::chain(), Path::new("unused")).unwrap()
    }

    fn value(reading: &Reading<u64>) -> u64 {
        match reading {
            Reading::Value(value) => *value,
            Reading::Missing(why) => panic!("{why}"),
        }
    }

    fn server_cpu(environment: &mut Environment) -> u64 {
        environment.sample_counters().components.first().map_or(0, |server| value(&server.cpu_ns))
    }

    #[test]
    fn cpu_counters_rise_with_the_lines_read_of_plan_after_plan_and_never_fall() {
        let mut environment = up(&fake());
        let mut engine = environment.start_engine().unwrap();
        for expected in [[0, 500, 1000], [1000, 1500, 2000]] {
            engine.send(0, b"{}").unwrap();
            let mut seen = vec![server_cpu(&mut environment)];
            while let NextLine::Line(_) = engine.next_line(Duration::ZERO) {
                seen.push(server_cpu(&mut environment));
            }
            assert_eq!(seen, expected);
        }
        engine.end().unwrap();
    }

    #[test]
    fn environments_side_by_side_share_a_clock_and_a_machine_and_not_their_loads() {
        let lab = fake();
        let mut arms = [(); 2].map(|()| up(&lab));
        let mut engines = arms.each_mut().map(|arm| arm.start_engine().unwrap());
        engines.iter_mut().for_each(|engine| engine.send(0, b"{}").unwrap());
        for engine in [0, 1, 1] {
            assert!(matches!(engines[engine].next_line(Duration::ZERO), NextLine::Line(_)));
        }
        let samples = arms.each_mut().map(Environment::sample);
        assert_eq!(samples.each_ref().map(|sample| sample.at_ns), [1_000_000_000, 2_000_000_000]);
        assert_eq!(
            samples.each_ref().map(|sample| value(&sample.components[0].cpu_ns)),
            [500, 1000]
        );
        assert_eq!(samples.each_ref().map(|sample| sample.host.busy_ns), [1500; 2]);
        // What was used stays used.
        let [first, second] = arms;
        first.down().unwrap();
        let mut second = second;
        assert_eq!(second.sample().host.busy_ns, 1500);
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
        let mut engine = environment.start_engine().unwrap();
        let crashed = [(); 3].map(|()| {
            engine.send(0, b"{}").unwrap();
            environment.crashed().is_some()
        });
        assert_eq!(crashed, [false, true, true]);
        assert!(up(&lab).crashed().is_none());
    }
}
