//! The lab in a cluster: the pods of each arm in a namespace of their own, beside those that carry the load and those
//! that read counters.
//!
//! ```text
//! command ──(one stream, by way of the API server)──> driver ──> load pods, node pods, the application's proxies
//! ```
//!
//! Everything of a run has the run's label, and is in namespaces of its own: removing these removes the run. The driver
//! does so when the command is not heard any more.

mod cluster;
mod counters;
mod engine;
mod environment;
mod link;
mod mesh;
mod names;
mod objects;
mod observe;
mod options;
mod pods;
mod status;
mod survey;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::Value;

use crate::certificates::edge::issue_edge;
use crate::certificates::mesh::issue_identities;
use crate::deployment::Deployment;
use crate::error::{DataPlaneError, KubernetesError};
use crate::image::TOLL;
use crate::in_cluster::protocol::{Namespaces, PORT};
use crate::output::Rendered;
use crate::topology::{self, Topology};
use crate::{Component, LabError, Role};

use cluster::{Cluster, Kind};
use counters::Counters;
use environment::{Watch, counted};
use link::Link;
use mesh::Mesh;
use names::{ALL_RUNS, RunName};
use objects::{DRIVER, Level, NODES, Place, PodPlan};
use status::{NodeStatus, PodStatus};

pub(crate) use engine::KubernetesEngine;
pub(crate) use environment::KubernetesEnvironment;
pub use options::KubernetesOptions;
pub use survey::{ClusterSurvey, survey};

/// How long pods may take to become ready: images may have to be pulled.
const LONGEST_START: Duration = Duration::from_secs(180);

/// How long namespaces may take to go.
const LONGEST_REMOVAL: Duration = Duration::from_secs(120);

/// How often the driver hears of the command at the least.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How often it is looked whether pods are ready, or namespaces gone.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// A cluster as a lab.
#[derive(Debug)]
pub struct KubernetesLab {
    options: KubernetesOptions,
    cluster: Cluster,
    version: String,
    nodes: Vec<NodeStatus>,
    run: RunName,
    token: String,
    /// toll's own pods, once the first arm came up.
    own: Mutex<Option<Arc<OwnPods>>>,
    /// Arms so far.
    arms: AtomicUsize,
    /// The namespaces of all arms so far.
    namespaces: Mutex<Vec<String>>,
}

/// toll's own pods that stand for the whole run.
#[derive(Debug)]
struct OwnPods {
    link: Arc<Link>,
    /// Set when the driver need not hear of the command any more.
    ended: Arc<AtomicBool>,
    /// Address and port of each node's pod, by the node's name.
    nodes: BTreeMap<String, String>,
    /// The driver and the node pods, which are toll's own in every sample.
    statuses: Vec<PodStatus>,
}

impl KubernetesLab {
    /// The cluster of the current context.
    ///
    /// # Errors
    /// When there is none, or it cannot be reached.
    pub(crate) fn new(options: KubernetesOptions) -> Result<Self, LabError> {
        let cluster = Cluster::connect()?;
        let version = cluster.version()?;
        let nodes = cluster.list(Kind::Node, None, "")?;
        let secret = random_text();
        let run = RunName::new(u32::from_str_radix(&secret[..8], 16).unwrap_or(0));
        Ok(Self {
            options,
            cluster,
            version,
            nodes: nodes.iter().map(NodeStatus::of).collect(),
            run,
            token: secret[8..].to_owned(),
            own: Mutex::default(),
            arms: AtomicUsize::new(0),
            namespaces: Mutex::default(),
        })
    }

    pub(crate) fn image(&self) -> &str {
        &self.options.image
    }

    pub(crate) fn cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores).sum::<usize>().max(1)
    }

    /// What the nodes take less what runs there now and toll's own pods. Where that cannot be seen, the API server will
    /// say so.
    pub(crate) fn pod_slots(&self) -> usize {
        let running = self.cluster.list(Kind::Pod, None, "").map_or(0, |pods| pods.len());
        let own = 1 + self.nodes.len();
        let all: usize = self.nodes.iter().map(|node| node.pods).sum();
        if all == 0 { usize::MAX } else { all.saturating_sub(running + own) }
    }

    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let fact = |label: &str, value: &str| (label.to_owned(), value.to_owned());
        let nodes =
            self.nodes.iter().map(|node| fact(&format!("node {}", node.name), &node.describes));
        let lab = vec![
            fact("lab", "Kubernetes"),
            fact("cluster", &format!("{} at {}", self.version, self.cluster.address)),
            fact("image", &self.options.image),
            fact("load pods", &self.options.load_pods.to_string()),
            fact("run", &self.run.namespace()),
            fact("cpu counter", self.counter()),
        ];
        lab.into_iter().chain(nodes).collect()
    }

    fn counter(&self) -> &'static str {
        match self.options.exact_cpu {
            true => "cgroups of the containers, read by a pod on each node",
            false => "none: nodes' counters are read with --exact-cpu",
        }
    }

    pub(crate) fn lacks(&self) -> Vec<String> {
        let path = "a cluster does not show firewall rules, processes or wires: the path is proven by counters, \
                    headers, addresses and the containers of the pods";
        let counters = "no CPU and no memory: the nodes' counters are read by pods that mount them, which \
                        `--exact-cpu` adds";
        let counters = (!self.options.exact_cpu).then_some(counters);
        std::iter::once(path).chain(counters).map(str::to_owned).collect()
    }

    /// The objects that `deployment` would come up with, with `0.0.0.0` where a Service's address will be.
    pub(crate) fn render(&self, deployment: &Deployment) -> Result<Vec<Rendered>, LabError> {
        render(deployment, &self.options.image)
    }

    /// Brings `deployment` up in a namespace of its own and waits until it answers.
    pub(crate) fn up(
        &self,
        deployment: &Deployment,
        logs: &Path,
    ) -> Result<KubernetesEnvironment, LabError> {
        let number = self.arms.fetch_add(1, Ordering::Relaxed) + 1;
        let own = self.own_pods()?;
        let namespace = self.run.arm_namespace(&deployment.name, number);
        let made = self.make(deployment, &own, &namespace, logs);
        if made.is_err() {
            // What is left of it goes with the run.
            let _ = self.cluster.delete(Kind::Namespace, None, &namespace);
        }
        let environment = made?;
        environment.await_entry()?;
        Ok(environment)
    }

    fn make(
        &self,
        deployment: &Deployment,
        own: &OwnPods,
        namespace: &str,
        logs: &Path,
    ) -> Result<KubernetesEnvironment, LabError> {
        self.announce(&own.link, namespace)?;
        let at = Place { run: &self.run, namespace };
        let mesh = self.mesh_of(deployment)?;
        let bare = objects::namespace(at, mesh.map_or(Level::Restricted, Mesh::level));
        self.apply([match mesh {
            Some(mesh) => mesh.joined(bare),
            None => bare,
        }])?;
        self.apply(objects::removal(at))?;
        let policies = |mesh: Mesh| mesh.policies(at, deployment, pods::mtls_of(deployment));
        self.apply(mesh.map_or(Vec::new(), policies))?;
        let services = self.services(at, deployment)?;
        let keys = tempfile::tempdir_in(&self.options.work_dir).map_err(LabError::Ledger)?;
        if mesh.is_none() {
            issue_identities(deployment, &services, keys.path())?;
        }
        let entry_ca = issue_edge(deployment, &services, keys.path())?;
        let plans = pods::plan(deployment, &services, mesh, Some(keys.path()))?;
        for plan in &plans {
            self.apply(objects::files(at, plan))?;
            self.apply([objects::workload(at, plan, &self.options.image)])?;
        }
        let run_namespace = self.run.namespace();
        let run_at = Place { run: &self.run, namespace: &run_namespace };
        let job = format!("load-{}", namespace.rsplit_once("toll-").map_or(namespace, |(_, n)| n));
        let image = (self.options.image.as_str(), TOLL);
        self.apply([objects::load(run_at, &job, image, self.options.load_pods)])?;
        let statuses = self.await_pods(namespace, expected(deployment))?;
        let load = self.await_labelled(&run_namespace, &job, self.options.load_pods)?;
        self.environment(Parts {
            deployment,
            own,
            namespace,
            logs,
            services,
            entry_ca,
            plans,
            statuses,
            load,
            job,
            mesh,
        })
    }

    fn environment(&self, parts: Parts<'_>) -> Result<KubernetesEnvironment, LabError> {
        let Parts { deployment, own, namespace, services, plans, statuses, load, .. } = parts;
        let statuses = by_pod(deployment, &statuses);
        let components = pods::components(deployment, &plans, parts.mesh);
        let mut containers = counted(&components, &statuses);
        containers.extend(self.of_control_planes()?);
        containers.extend(of_role(Role::LoadGenerator, "load", &load));
        containers.extend(of_role(Role::Harness, "toll", &own.statuses));
        let addresses = observe::addresses(&statuses);
        let load_ip = load[0].ip.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let counters = Counters::open(Arc::clone(&own.link), namespace, &own.nodes, containers)?;
        let known = statuses.values().cloned().collect();
        Ok(KubernetesEnvironment {
            link: Arc::clone(&own.link),
            deployment: deployment.clone(),
            namespace: namespace.to_owned(),
            load_job: (self.run.namespace(), parts.job),
            entry_ca: parts.entry_ca,
            load: load.iter().filter_map(address).collect(),
            pods: topology::with_addresses(&services, &addresses, load_ip),
            services,
            watch: Watch::start(&self.cluster, namespace, known),
            statuses,
            counters,
            logs: parts.logs.to_owned(),
            mesh: parts
                .mesh
                .map(|mesh| Ok::<_, LabError>((mesh, self.node_proxies()?)))
                .transpose()?,
            proof: None,
            interrupt: Arc::clone(&self.options.interrupt),
            cluster: self.cluster.clone(),
            asked: AtomicU64::new(0),
            is_down: false,
        })
    }

    /// Makes the Services, whose addresses are what programs are told.
    fn services(&self, at: Place<'_>, deployment: &Deployment) -> Result<Topology, LabError> {
        // What a Service is called and which ports it has does not depend on its address.
        let own_sidecars = !deployment.data_plane.is_installed();
        let unknown = topology::in_cluster(deployment, &BTreeMap::new(), own_sidecars);
        let plans = pods::plan(deployment, &unknown, None, None)?;
        let mut addresses = BTreeMap::new();
        for plan in &plans {
            self.apply([objects::service_account(at, &plan.service)])?;
            let made = self.cluster.apply(&objects::service(at, plan))?;
            let address = made["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse().ok());
            addresses.insert(plan.service.clone(), address.unwrap_or(Ipv4Addr::UNSPECIFIED));
        }
        Ok(topology::in_cluster(deployment, &addresses, own_sidecars))
    }

    /// The mesh that a deployment joins; none where toll brings what stands in the path.
    fn mesh_of(&self, deployment: &Deployment) -> Result<Option<Mesh>, LabError> {
        if !deployment.data_plane.is_installed() {
            return Ok(None);
        }
        let there: Vec<String> =
            survey::meshes(&self.cluster).into_iter().map(|(_, namespace)| namespace).collect();
        match Mesh::of(deployment, &there) {
            Some(mesh) => Ok(Some(mesh)),
            None => Err(KubernetesError::NoMesh { variant: deployment.name.clone() }.into()),
        }
    }

    /// The pods of all meshes that are installed, which are accounts of their own in every arm, also a bare one.
    fn of_control_planes(&self) -> Result<Vec<counters::Counted>, LabError> {
        let mut counted = Vec::new();
        for (_, namespace) in survey::meshes(&self.cluster) {
            let pods = self.cluster.list(Kind::Pod, Some(&namespace), "")?;
            for pod in pods.iter().map(PodStatus::of).filter(|pod| pod.ready) {
                let (role, name) = match is_node_proxy(&pod) {
                    true => (Role::NodeProxy, pod.node.clone()),
                    false => (Role::ControlPlane, namespace.clone()),
                };
                counted.extend(of_role(role, &name, &[pod]));
            }
        }
        Ok(counted)
    }

    /// The addresses of the proxies on the nodes.
    fn node_proxies(&self) -> Result<Vec<Ipv4Addr>, LabError> {
        let mut addresses = Vec::new();
        for (_, namespace) in survey::meshes(&self.cluster) {
            let pods = self.cluster.list(Kind::Pod, Some(&namespace), "")?;
            let pods = pods.iter().map(PodStatus::of).filter(is_node_proxy);
            addresses.extend(pods.filter_map(|pod| pod.ip));
        }
        Ok(addresses)
    }

    /// Tells the driver of a namespace before it is made.
    fn announce(&self, link: &Link, namespace: &str) -> Result<(), LabError> {
        let mut names = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        names.push(namespace.to_owned());
        Ok(link.put("/namespaces", &Namespaces { names: names.clone() })?)
    }

    /// toll's own pods, which are made with the first arm.
    fn own_pods(&self) -> Result<Arc<OwnPods>, LabError> {
        let mut slot = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = &*slot {
            return Ok(Arc::clone(own));
        }
        let own = Arc::new(self.make_own_pods()?);
        *slot = Some(Arc::clone(&own));
        Ok(own)
    }

    fn make_own_pods(&self) -> Result<OwnPods, LabError> {
        let namespace = self.run.namespace();
        let at = Place { run: &self.run, namespace: &namespace };
        let (image, silence_s) = (&self.options.image, self.options.longest_silence.as_secs());
        let level = if self.options.exact_cpu { Level::Privileged } else { Level::Restricted };
        self.apply([objects::namespace(at, level), objects::token(at, &self.token)])?;
        self.apply(objects::removal(at))?;
        self.apply(objects::driver(at, image, TOLL, silence_s))?;
        if self.options.exact_cpu {
            self.apply([objects::nodes(at, image, TOLL)])?;
        }
        let driver = self.await_labelled(&namespace, DRIVER, 1)?;
        let nodes = match self.options.exact_cpu {
            true => self.await_labelled(&namespace, NODES, self.nodes.len())?,
            false => Vec::new(),
        };
        let by_node = nodes.iter().filter_map(|pod| Some((pod.node.clone(), address(pod)?)));
        let link = Link::new(self.cluster.clone(), &namespace, DRIVER, &self.token);
        let (link, ended) = (Arc::new(link), Arc::new(AtomicBool::new(false)));
        keep_heard(&link, &ended);
        Ok(OwnPods {
            link,
            ended,
            nodes: by_node.collect(),
            statuses: driver.into_iter().chain(nodes).collect(),
        })
    }

    fn apply(&self, objects: impl IntoIterator<Item = Value>) -> Result<(), LabError> {
        for object in objects {
            self.still_wanted()?;
            self.cluster.apply(&object)?;
        }
        Ok(())
    }

    /// Waits until so many pods of a namespace are there and all are ready.
    fn await_pods(&self, namespace: &str, pods: usize) -> Result<Vec<PodStatus>, LabError> {
        self.await_ready(namespace, pods, "")
    }

    /// The same of those that play one service of toll's own.
    fn await_labelled(
        &self,
        namespace: &str,
        service: &str,
        pods: usize,
    ) -> Result<Vec<PodStatus>, LabError> {
        self.await_ready(namespace, pods, &format!("{}={service}", names::SERVICE_LABEL))
    }

    fn await_ready(
        &self,
        namespace: &str,
        pods: usize,
        labels: &str,
    ) -> Result<Vec<PodStatus>, LabError> {
        let deadline = Instant::now() + LONGEST_START;
        loop {
            self.still_wanted()?;
            let listed = self.cluster.list(Kind::Pod, Some(namespace), labels)?;
            let statuses: Vec<PodStatus> = listed.iter().map(PodStatus::of).collect();
            if statuses.len() >= pods && statuses.iter().all(|pod| pod.ready) {
                return Ok(statuses);
            }
            if Instant::now() > deadline {
                return Err(self.not_ready(namespace, &statuses).into());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn not_ready(&self, namespace: &str, statuses: &[PodStatus]) -> KubernetesError {
        let late = statuses.iter().find(|pod| !pod.ready);
        let log = late.and_then(|pod| {
            let container = pod.containers.first()?;
            Some(self.cluster.log(namespace, &pod.name, &container.name))
        });
        KubernetesError::NotReady {
            pod: late.map_or(namespace.to_owned(), |pod| format!("{namespace}/{}", pod.name)),
            waited_s: LONGEST_START.as_secs(),
            state: late.map_or("fewer pods than expected".to_owned(), |pod| {
                match self.last_warning(namespace, &pod.name) {
                    Some(warning) => format!("{}: {warning}", pod.state),
                    None => pod.state.clone(),
                }
            }),
            log: log.filter(|log| !log.is_empty()),
        }
    }

    /// What the cluster complained of last about a pod.
    fn last_warning(&self, namespace: &str, pod: &str) -> Option<String> {
        let events = self.cluster.list(Kind::Event, Some(namespace), "").ok()?;
        let of_pod =
            |event: &&Value| event["type"] == "Warning" && event["involvedObject"]["name"] == pod;
        let last = events
            .iter()
            .filter(of_pod)
            .max_by_key(|event| event["lastTimestamp"].as_str().unwrap_or_default().to_owned())?;
        Some(last["message"].as_str()?.to_owned())
    }

    fn still_wanted(&self) -> Result<(), LabError> {
        match self.options.interrupt.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }
}

impl Drop for KubernetesLab {
    /// Removes the run's own namespace and waits until all of the run is gone. A run that never came up left nothing.
    fn drop(&mut self) {
        if self.arms.load(Ordering::Relaxed) == 0 {
            return;
        }
        // The driver goes with the run, and must not be missed.
        self.own.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Err(error) = remove(&self.cluster, &self.run.selector()) {
            tracing::warn!("the run was not removed: {error}");
        }
    }
}

impl Drop for OwnPods {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Lets the driver hear of the command, whatever else it is doing.
fn keep_heard(link: &Arc<Link>, ended: &Arc<AtomicBool>) {
    let (link, ended) = (Arc::clone(link), Arc::clone(ended));
    thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            // Whoever waits for something else hears of a driver that does not answer.
            let _ = link.text("/clock");
            thread::sleep(HEARTBEAT);
        }
    });
}

/// What an arm is put together from.
struct Parts<'a> {
    deployment: &'a Deployment,
    own: &'a OwnPods,
    namespace: &'a str,
    logs: &'a Path,
    services: Topology,
    entry_ca: Option<String>,
    plans: Vec<PodPlan>,
    statuses: Vec<PodStatus>,
    load: Vec<PodStatus>,
    job: String,
    mesh: Option<Mesh>,
}

/// The objects that `deployment` would come up with in any cluster, one document an object.
pub(crate) fn render(deployment: &Deployment, image: &str) -> Result<Vec<Rendered>, LabError> {
    let run = RunName::new(0);
    let namespace = run.arm_namespace(&deployment.name, 1);
    let at = Place { run: &run, namespace: &namespace };
    let own_sidecars = !deployment.data_plane.is_installed();
    let services = topology::in_cluster(deployment, &BTreeMap::new(), own_sidecars);
    let mut rendered = vec![document("namespace", &objects::namespace(at, Level::Restricted))?];
    for plan in pods::plan(deployment, &services, None, None)? {
        let mut all =
            vec![objects::service_account(at, &plan.service), objects::service(at, &plan)];
        all.extend(objects::files(at, &plan));
        all.push(objects::workload(at, &plan, image));
        for object in all {
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            rendered.push(document(&format!("{}.{kind}", plan.service), &object)?);
        }
    }
    Ok(rendered)
}

fn document(name: &str, object: &Value) -> Result<Rendered, DataPlaneError> {
    let text = serde_saphyr::to_string(object).map_err(DataPlaneError::Unwritable)?;
    Ok(Rendered { name: format!("{name}.yaml"), text })
}

/// The smallest role with which a run works, as YAML.
pub fn role_of_a_run() -> &'static str {
    include_str!("role.yaml")
}

/// Removes what runs left in the cluster of the current context, and says what that was.
///
/// # Errors
/// When the cluster cannot be reached, or something does not go.
pub fn clean() -> Result<Vec<String>, LabError> {
    let cluster = Cluster::connect()?;
    Ok(remove(&cluster, ALL_RUNS)?)
}

/// Deletes the namespaces with these labels and waits until they are gone. Gives their names.
fn remove(cluster: &Cluster, labels: &str) -> Result<Vec<String>, KubernetesError> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let list = || cluster.list(Kind::Namespace, None, labels);
    let removed: Vec<String> = list()?.iter().map(name).collect();
    for name in &removed {
        cluster.delete(Kind::Namespace, None, name)?;
    }
    let deadline = Instant::now() + LONGEST_REMOVAL;
    loop {
        let left: Vec<String> = list()?.iter().map(name).collect();
        if left.is_empty() {
            return Ok(removed);
        }
        if Instant::now() > deadline {
            return Err(KubernetesError::Left { names: left, waited_s: LONGEST_REMOVAL.as_secs() });
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Whether this is a node's ztunnel, by the container that it runs.
fn is_node_proxy(pod: &PodStatus) -> bool {
    pod.container("istio-proxy").is_some() && pod.name.starts_with("ztunnel-")
}

fn expected(deployment: &Deployment) -> usize {
    deployment.pods().len()
}

fn address(pod: &PodStatus) -> Option<String> {
    pod.ip.map(|ip| format!("{ip}:{PORT}"))
}

/// The pods by the names that the deployment gives them: `nginx-2` is the second of `nginx`, which the cluster calls
/// `nginx-1`.
fn by_pod(deployment: &Deployment, statuses: &[PodStatus]) -> BTreeMap<String, PodStatus> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_pod = BTreeMap::new();
    for (pod, service) in deployment.pods() {
        let ordinal = counts.entry(service.name.as_str()).or_default();
        let name = format!("{}-{ordinal}", service.name);
        *ordinal += 1;
        if let Some(status) = statuses.iter().find(|status| status.name == name) {
            by_pod.insert(pod, status.clone());
        }
    }
    by_pod
}

/// All containers of these pods as one component.
fn of_role(role: Role, pod: &str, statuses: &[PodStatus]) -> Vec<counters::Counted> {
    let component = Component { role, pod: pod.to_owned() };
    let containers = statuses.iter().flat_map(|status| {
        status.containers.iter().map(|container| (status.node.clone(), container.id.clone()))
    });
    containers
        .map(|(node, container)| counters::Counted {
            component: component.clone(),
            node,
            container,
        })
        .collect()
}

/// Sixty-four hexadecimal digits that nobody can guess.
fn random_text() -> String {
    let mut bytes = [0_u8; 32];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
