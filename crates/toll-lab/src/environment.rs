//! A deployment that runs: where it answers, what it uses, which way its traffic takes, and what loads it.

use std::time::Duration;

use crate::fake::{FakeEngine, FakeEnvironment};
use crate::kubernetes::{KubernetesEngine, KubernetesEnvironment};
use crate::local::{LocalEngine, LocalEnvironment};
use crate::{CutLog, LabError, NextLine, Proof, Sample, Traffic};

/// A deployment that runs. Dropping it takes it down; [`Environment::down`] also tells whether that worked.
#[derive(Debug)]
pub struct Environment(Kind);

#[derive(Debug)]
enum Kind {
    Local(Box<LocalEnvironment>),
    Kubernetes(Box<KubernetesEnvironment>),
    Fake(Box<FakeEnvironment>),
}

impl Environment {
    pub(crate) fn local(environment: LocalEnvironment) -> Self {
        Self(Kind::Local(Box::new(environment)))
    }

    pub(crate) fn kubernetes(environment: KubernetesEnvironment) -> Self {
        Self(Kind::Kubernetes(Box::new(environment)))
    }

    pub(crate) fn fake(environment: FakeEnvironment) -> Self {
        Self(Kind::Fake(Box::new(environment)))
    }

    /// The URL that the load calls, valid in the load's pod.
    pub fn entry_url(&self) -> String {
        match &self.0 {
            Kind::Local(environment) => environment.entry_url(),
            Kind::Kubernetes(environment) => environment.entry_url(),
            Kind::Fake(environment) => environment.entry_url(),
        }
    }

    /// The certificate of the authority that vouches for the entry, PEM, by the name [`crate::ENTRY_NAME`]; none
    /// where the load speaks plaintext.
    pub fn entry_ca(&self) -> Option<String> {
        match &self.0 {
            Kind::Local(environment) => environment.entry_ca(),
            Kind::Kubernetes(environment) => environment.entry_ca(),
            Kind::Fake(environment) => environment.entry_ca(),
        }
    }

    /// The counters of all components and of the host, now. Costs no component anything: for the ends of a slice.
    pub fn sample_counters(&mut self) -> Sample {
        match &mut self.0 {
            Kind::Local(environment) => environment.sample_counters(),
            Kind::Kubernetes(environment) => environment.sample(),
            Kind::Fake(environment) => environment.sample_counters(),
        }
    }

    /// The same, and after the counters what the pods' endpoints tell. Waits for the endpoints, at most 1.5 s.
    pub fn sample(&mut self) -> Sample {
        match &mut self.0 {
            Kind::Local(environment) => environment.sample(),
            Kind::Kubernetes(environment) => environment.sample(),
            Kind::Fake(environment) => environment.sample(),
        }
    }

    /// The same without waiting, for samples that come often: endpoints are asked at most once a second, after the
    /// counters, and the next sample has their answers.
    pub fn sample_in_passing(&mut self) -> Sample {
        match &mut self.0 {
            Kind::Local(environment) => environment.sample_in_passing(),
            Kind::Kubernetes(environment) => environment.sample(),
            Kind::Fake(environment) => environment.sample(),
        }
    }

    /// Starts the load program in the load's pod, which carries plan after plan. One at a time: a second takes the
    /// first's counters over.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_engine(&mut self) -> Result<LoadEngine, LabError> {
        match &mut self.0 {
            Kind::Local(environment) => {
                environment.start_engine().map(|engine| LoadEngine(Engine::Local(engine)))
            }
            Kind::Kubernetes(environment) => {
                environment.start_engine().map(|engine| LoadEngine(Engine::Kubernetes(engine)))
            }
            Kind::Fake(environment) => {
                Ok(LoadEngine(Engine::Fake(Box::new(environment.start_engine()))))
            }
        }
    }

    /// Probes the path and reads the data plane's counters. This environment may not be under load meanwhile, and
    /// connections that the load keeps stay open. Minutes and many loads later the proof is as good.
    ///
    /// # Errors
    /// When a probe or a counter gives no result.
    pub fn open_proof(&mut self) -> Result<(), LabError> {
        match &mut self.0 {
            Kind::Local(environment) => environment.open_proof(),
            Kind::Kubernetes(environment) => environment.open_proof(),
            Kind::Fake(environment) => {
                environment.open_proof();
                Ok(())
            }
        }
    }

    /// Spans that have come to the collector since it runs; none where no agent sends any.
    ///
    /// # Errors
    /// When the collector cannot be asked.
    pub fn spans_so_far(&self) -> Result<Option<u64>, LabError> {
        match &self.0 {
            Kind::Local(environment) => environment.spans_so_far(),
            // It refuses agents.
            Kind::Kubernetes(_) => Ok(None),
            Kind::Fake(environment) => Ok(environment.spans_so_far()),
        }
    }

    /// Reads the counters and probes again, and judges whether `traffic`, sent since [`Self::open_proof`], all
    /// took the path of the variant and nothing else came, and whether the database holds just the writes that
    /// were acknowledged. This environment may not be under load meanwhile.
    ///
    /// # Errors
    /// When the proof is not open, the user wants to leave, or a counter gives no result. A wrong path is not an error but a claim
    /// that does not hold.
    pub fn close_proof(&mut self, traffic: Traffic) -> Result<Proof, LabError> {
        match &mut self.0 {
            Kind::Local(environment) => environment.close_proof(traffic),
            Kind::Kubernetes(environment) => environment.close_proof(&traffic),
            Kind::Fake(environment) => environment.close_proof(traffic),
        }
    }

    /// A component that ended by itself: which, how, and its last log lines.
    pub fn crashed(&mut self) -> Option<LabError> {
        match &self.0 {
            Kind::Local(environment) => environment.crashed(),
            Kind::Kubernetes(environment) => environment.crashed(),
            Kind::Fake(environment) => environment.crashed(),
        }
    }

    /// The last lines that a service of the application wrote; none where its log is not on this machine.
    pub fn last_lines(&self, service: &str) -> Vec<String> {
        match &self.0 {
            Kind::Local(environment) => environment.last_lines(service),
            Kind::Kubernetes(_) | Kind::Fake(_) => Vec::new(),
        }
    }

    /// What was logged so far by those of whose logs not all is kept.
    pub fn cut_logs(&self) -> Vec<CutLog> {
        match &self.0 {
            Kind::Local(environment) => environment.cut_logs(),
            Kind::Kubernetes(_) | Kind::Fake(_) => Vec::new(),
        }
    }

    /// Ends all processes and removes all that the lab made for this deployment.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn down(self) -> Result<(), LabError> {
        match self.0 {
            Kind::Local(environment) => environment.down(),
            Kind::Kubernetes(environment) => environment.down(),
            Kind::Fake(environment) => {
                environment.down();
                Ok(())
            }
        }
    }
}

/// A load program that runs, in one load pod or in several. Dropping it tells it that there are no more plans; the
/// environment ends it.
#[derive(Debug)]
pub struct LoadEngine(Engine);

#[derive(Debug)]
enum Engine {
    Local(LocalEngine),
    Kubernetes(KubernetesEngine),
    Fake(Box<FakeEngine>),
}

impl LoadEngine {
    /// Load pods, each of which carries plans of its own.
    pub fn pods(&self) -> usize {
        match &self.0 {
            Engine::Kubernetes(engine) => engine.pods(),
            Engine::Local(_) | Engine::Fake(_) => 1,
        }
    }

    /// An instant at which plans that are sent now can begin in all load pods, for each pod by its own clock,
    /// nanoseconds since 1970. None where a single pod begins as soon as it has read its plan.
    ///
    /// # Errors
    /// When the pods' time cannot be asked.
    pub fn common_start(&self) -> Result<Option<Vec<u64>>, LabError> {
        match &self.0 {
            Engine::Kubernetes(engine) if engine.pods() > 1 => engine.common_start().map(Some),
            Engine::Kubernetes(_) | Engine::Local(_) | Engine::Fake(_) => Ok(None),
        }
    }

    /// By how much the load pods' clocks moved against each other since the engine was started, nanoseconds, at the
    /// most; 0 for a single pod.
    ///
    /// # Errors
    /// When the pods' time cannot be asked.
    pub fn clock_drift_ns(&self) -> Result<u64, LabError> {
        match &self.0 {
            Engine::Kubernetes(engine) if engine.pods() > 1 => engine.clock_drift_ns(),
            Engine::Kubernetes(_) | Engine::Local(_) | Engine::Fake(_) => Ok(0),
        }
    }

    /// Hands a plan, JSON, to the load pod of this number, which carries it out as soon as it has read it, or at the
    /// instant that the plan names. The events of a plan end with a line `{"event":"report",...}`. A program that has
    /// ended is told of by [`Self::next_line`].
    ///
    /// # Errors
    /// When the way to it fails.
    pub fn send(&mut self, pod: usize, plan_json: &[u8]) -> Result<(), LabError> {
        match &mut self.0 {
            Engine::Local(engine) => engine.send(plan_json),
            Engine::Kubernetes(engine) => engine.send(pod, plan_json),
            Engine::Fake(engine) => {
                engine.send(plan_json);
                Ok(())
            }
        }
    }

    /// The next line of any load pod, waiting up to `wait` for it.
    pub fn next_line(&mut self, wait: Duration) -> NextLine {
        match &mut self.0 {
            Engine::Local(engine) => engine.next_line(wait),
            Engine::Kubernetes(engine) => engine.next_line(wait),
            Engine::Fake(engine) => engine.next_line(),
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        match &mut self.0 {
            Engine::Local(engine) => engine.kill(),
            Engine::Kubernetes(engine) => engine.kill(),
            Engine::Fake(engine) => engine.kill(),
        }
    }

    /// Tells it that there are no more plans, and waits for its end, at most 10 s. Lines not yet read are lost.
    ///
    /// # Errors
    /// When it goes on, or its status is not 0.
    pub fn end(self) -> Result<(), LabError> {
        match self.0 {
            Engine::Local(engine) => engine.end(),
            Engine::Kubernetes(mut engine) => {
                engine.kill();
                Ok(())
            }
            Engine::Fake(_) => Ok(()),
        }
    }
}
