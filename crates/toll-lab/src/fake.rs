//! A lab without processes, for end-to-end tests of what uses a lab.
//!
//! A script says for each deployment and load plan which lines the load prints and what each component uses.
//! CPU counters rise with the lines that have been read, and each sample is one second after the last, so
//! that the same script always gives the same run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::environment::NextLine;
use crate::{
    Component, ComponentSample, Deployment, HostSample, MemorySample, Proof, Reading, Rendered,
    Sample,
};

/// One load as the script wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeLoadScript {
    /// What the load program prints.
    pub lines: Vec<String>,
    /// CPU time that each component uses while it prints them, nanoseconds, and its memory, bytes.
    pub usage: Vec<(Component, u64, u64)>,
}

type Script = dyn Fn(&Deployment, &[u8]) -> FakeLoadScript + Send + Sync;

/// A lab that makes nothing up but numbers.
#[derive(Clone)]
pub struct FakeLab {
    script: Arc<Script>,
    proof: Proof,
}

impl FakeLab {
    /// A lab in which each load goes as `script` says and each proof is `proof`.
    pub fn new(
        proof: Proof,
        script: impl Fn(&Deployment, &[u8]) -> FakeLoadScript + Send + Sync + 'static,
    ) -> Self {
        Self { script: Arc::new(script), proof }
    }

    pub(crate) fn render(&self, deployment: &Deployment) -> Vec<Rendered> {
        vec![Rendered { name: "deployment.txt".into(), text: format!("{deployment:#?}\n") }]
    }

    pub(crate) fn up(&self, deployment: &Deployment) -> FakeEnvironment {
        FakeEnvironment {
            lab: self.clone(),
            deployment: deployment.clone(),
            load: FakeLoad::default(),
            used: Vec::new(),
            samples: 0,
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
}

impl FakeEnvironment {
    pub(crate) fn entry_url(&self) -> String {
        format!("http://{}.invalid/", self.deployment.entry)
    }

    pub(crate) fn start_load(&mut self, plan: &[u8]) -> FakeLoad {
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
        Sample {
            at_ns: self.samples * SECOND,
            took_ns: 0,
            components,
            host: HostSample { busy_ns, steal_ns: 0, runnable: 1 },
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

    pub(crate) fn proof(&self) -> Proof {
        self.lab.proof.clone()
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
    use std::time::Duration;

    use super::*;
    use crate::environment::Environment;
    use crate::{Lab, Role, fixture};

    fn lab() -> Lab {
        let proof = Proof { claims: vec![], left_out: vec![], traversals: vec![] };
        let server = Component { role: Role::Application, pod: "server".into() };
        Lab::Fake(FakeLab::new(proof, move |_, _| FakeLoadScript {
            lines: vec!["one".into(), "two".into()],
            usage: vec![(server.clone(), 1000, 64)],
        }))
    }

    fn server_cpu(environment: &mut Environment) -> u64 {
        value(&environment.sample().components[0].cpu_ns)
    }

    #[test]
    fn cpu_counters_rise_with_the_lines_read_and_never_fall() {
        let mut environment = lab().up(&fixture::chain(), std::path::Path::new("unused")).unwrap();
        for expected in [[0, 500, 1000], [1000, 1500, 2000]] {
            let mut load = environment.start_load(b"{}").unwrap();
            let mut seen = vec![server_cpu(&mut environment)];
            while let NextLine::Line(_) = load.next_line(Duration::ZERO) {
                seen.push(server_cpu(&mut environment));
            }
            assert_eq!(seen, expected);
        }
    }
}
