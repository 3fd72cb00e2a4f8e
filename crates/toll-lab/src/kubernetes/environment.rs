//! One deployment as it runs in a cluster, and what its users ask of it.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::cluster::{Cluster, Kind};
use super::counters::{Counted as CountedContainer, Counters};
use super::engine::KubernetesEngine;
use super::link::Link;
use super::mesh::{self, Counted, Evidence, Mesh};
use super::observe::{Observer, container_claims};
use super::pods::SIDECAR;
use super::status::PodStatus;
use crate::artifacts::Artifacts;
use crate::deployment::Deployment;
use crate::error::KubernetesError;
use crate::evidence::{Outsider, PathSnapshot};
use crate::planes;
use crate::probe::{Outcome, Speech};
use crate::proof::window::{Spread, Window};
use crate::topology::Topology;
use crate::{LabError, Proof, Sample, Traffic};

/// How often the cluster is asked how the pods are.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the entry may take to answer once all pods are ready.
const LONGEST_ENTRY: Duration = Duration::from_secs(60);

/// What was seen before the window.
#[derive(Debug)]
pub(super) struct OpenProof {
    outsider: Outsider,
    before: PathSnapshot,
    counted: Counted,
}

/// A deployment that runs in a cluster.
#[derive(Debug)]
pub(crate) struct KubernetesEnvironment {
    pub(super) cluster: Cluster,
    pub(super) link: Arc<Link>,
    pub(super) deployment: Deployment,
    pub(super) namespace: String,
    /// The run's own namespace, and the Job of the load pods in it.
    pub(super) load_job: (String, String),
    /// Addresses and ports of the load pods.
    pub(super) load: Vec<String>,
    pub(super) services: Topology,
    /// Who vouches for the entry, PEM; none where the load speaks plaintext.
    pub(super) entry_ca: Option<String>,
    pub(super) pods: Topology,
    /// By the deployment's name of the pod.
    pub(super) statuses: BTreeMap<String, PodStatus>,
    pub(super) counters: Counters,
    pub(super) watch: Watch,
    pub(super) logs: PathBuf,
    /// What the deployment has joined, and the addresses of the proxies on the nodes.
    pub(super) mesh: Option<(Mesh, Vec<Ipv4Addr>)>,
    pub(super) proof: Option<OpenProof>,
    pub(super) interrupt: Arc<AtomicBool>,
    /// How often each nginx was asked what it has answered.
    pub(super) asked: AtomicU64,
    pub(super) is_down: bool,
}

impl KubernetesEnvironment {
    pub(crate) fn entry_url(&self) -> String {
        let entry = self.services.front(&self.deployment.entry);
        let entry = entry.expect("the entry answered when the environment came up");
        let scheme = if self.entry_ca.is_some() { "https" } else { "http" };
        format!("{scheme}://{entry}/")
    }

    pub(crate) fn entry_ca(&self) -> Option<String> {
        self.entry_ca.clone()
    }

    pub(crate) fn sample(&mut self) -> Sample {
        self.counters.sample()
    }

    /// Each load pod starts its engine with its first plan.
    pub(crate) fn start_engine(&self) -> Result<KubernetesEngine, LabError> {
        KubernetesEngine::new(Arc::clone(&self.link), &self.load)
    }

    fn observer(&self) -> Observer<'_> {
        Observer {
            link: &self.link,
            deployment: &self.deployment,
            services: &self.services,
            pods: &self.pods,
            load: &self.load[0],
            asked: &self.asked,
        }
    }

    /// Waits until the entry answers a load pod.
    pub(super) fn await_entry(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + LONGEST_ENTRY;
        loop {
            let answer = self.observer().ask_entry(Speech::Request)?;
            if answer.outcome == Outcome::Answered
                && answer.status.is_some_and(|status| status < 500)
            {
                return Ok(());
            }
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            if let Some(crash) = self.crashed() {
                return Err(crash);
            }
            if Instant::now() > deadline {
                let state = match answer.status {
                    Some(status) => format!("it answers with status {status}"),
                    None => format!("{:?}", answer.outcome).to_lowercase(),
                };
                return Err(KubernetesError::NotReady {
                    pod: format!("{}/{}", self.namespace, self.deployment.entry),
                    waited_s: LONGEST_ENTRY.as_secs(),
                    state,
                    log: None,
                }
                .into());
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    pub(crate) fn open_proof(&mut self) -> Result<(), LabError> {
        let observer = self.observer();
        let (outsider, before) = (observer.outsider()?, observer.before()?);
        self.proof = Some(OpenProof { outsider, before, counted: self.mesh_counters()? });
        Ok(())
    }

    /// What the proxies of the mesh that it has joined say; nothing without one.
    fn mesh_counters(&self) -> Result<Counted, LabError> {
        match &self.mesh {
            Some((mesh, nodes)) => self.observer().mesh_counters(*mesh, &self.namespace, nodes),
            None => Ok(Counted::default()),
        }
    }

    pub(crate) fn close_proof(&mut self, traffic: &Traffic) -> Result<Proof, LabError> {
        let open = self.proof.take().ok_or(LabError::ProofNotOpen)?;
        let OpenProof { outsider, before, counted } = open;
        let counted_after = self.mesh_counters()?;
        let after = self.observer().after()?;
        let window = Window {
            deployment: &self.deployment,
            traffic,
            before: &before,
            after: &after,
            spans: None,
            issued: None,
            spread: Spread::ByConnection,
        };
        let mut proof = match &self.mesh {
            None => planes::prove(&window, &self.pods, &outsider, &[], &Artifacts::default())?,
            Some((mesh, _)) => {
                let evidence = Evidence {
                    mesh: *mesh,
                    namespace: &self.namespace,
                    before: &counted,
                    after: &counted_after,
                };
                mesh::prove(&window, &evidence, &outsider)
            }
        };
        let beside = match &self.mesh {
            Some((mesh, _)) => mesh.container(),
            None => Some(SIDECAR),
        };
        proof.claims.extend(container_claims(&self.deployment, beside, &self.statuses));
        Ok(proof)
    }

    /// What happened to a pod that should not happen under load.
    pub(crate) fn crashed(&self) -> Option<LabError> {
        self.watch.trouble().map(|message| {
            let pod = format!("the namespace {}", self.namespace);
            KubernetesError::Pod { pod, message }.into()
        })
    }

    pub(crate) fn down(mut self) -> Result<(), LabError> {
        self.tear_down()
    }

    fn tear_down(&mut self) -> Result<(), LabError> {
        self.is_down = true;
        self.watch.stop();
        self.counters.close();
        self.keep_logs();
        let (namespace, job) = &self.load_job;
        let load = self.cluster.delete(Kind::Job, Some(namespace), job);
        let arm = self.cluster.delete(Kind::Namespace, None, &self.namespace);
        Ok(load.and(arm)?)
    }

    /// The end of each container's log, in the run's directory. A log that is missing keeps nothing up.
    fn keep_logs(&self) {
        if let Err(error) = fs::create_dir_all(&self.logs) {
            tracing::warn!("no folder for the logs: {error}");
            return;
        }
        for (pod, status) in &self.statuses {
            for container in &status.containers {
                let text = self.cluster.log(&self.namespace, &status.name, &container.name);
                let path = self.logs.join(format!("{pod}-{}.log", container.name));
                if let Err(error) = fs::write(&path, text) {
                    tracing::warn!("cannot write {}: {error}", path.display());
                }
            }
        }
    }
}

impl Drop for KubernetesEnvironment {
    fn drop(&mut self) {
        if self.is_down {
            return;
        }
        if let Err(error) = self.tear_down() {
            tracing::warn!("the arm was not removed: {error}");
        }
    }
}

/// Looks at the pods once a second, beside all else.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Arc<Mutex<Option<String>>>,
    ended: Arc<AtomicBool>,
}

impl Watch {
    /// Of the pods in `namespace`, which are now as `known` says.
    pub(super) fn start(cluster: &Cluster, namespace: &str, known: Vec<PodStatus>) -> Self {
        let watch = Self { seen: Arc::default(), ended: Arc::default() };
        let (seen, ended) = (Arc::clone(&watch.seen), Arc::clone(&watch.ended));
        let (looker, namespace) = (cluster.clone(), namespace.to_owned());
        cluster.beside(async move {
            while !ended.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK_EVERY).await;
                // An API server that does not answer for a while has done nothing to the pods.
                let Ok(pods) = looker.pods(&namespace).await else { continue };
                let trouble = trouble(&known, &pods);
                if trouble.is_some() && !ended.load(Ordering::Relaxed) {
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
                    return;
                }
            }
        });
        watch
    }

    fn trouble(&self) -> Option<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stop(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// What happened to the pods since they were as `known` says.
fn trouble(known: &[PodStatus], now: &[PodStatus]) -> Option<String> {
    known.iter().find_map(|before| match now.iter().find(|pod| pod.name == before.name) {
        None => Some(format!("{} is gone", before.name)),
        Some(pod) => pod.trouble(before),
    })
}

/// The containers that are counted: those of the application's pods, of the load pods and of toll's own.
pub(super) fn counted(
    components: &[(crate::Component, &'static str)],
    statuses: &BTreeMap<String, PodStatus>,
) -> Vec<CountedContainer> {
    let container = |(component, container): &(crate::Component, &'static str)| {
        let status = statuses.get(&component.pod)?;
        Some(CountedContainer {
            component: component.clone(),
            node: status.node.clone(),
            container: status.container(container)?.id.clone(),
        })
    };
    components.iter().filter_map(container).collect()
}
