//! The lab with many pods and with several nodes: it comes up and goes away in seconds and leaves nothing. The
//! bounds are wide: tests run beside each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::{
    TestLab, carry_out, chain, free_ports, is_possible, pid_by_argument, service_program, skip,
};
use toll_lab::{
    Ambient, DataPlane, Deployment, Environment, Isolation, LabError, Mtls, NodeProxy, Traffic,
};

/// Requests of one proof.
const REQUESTS: u64 = 20;

/// A lab whose load sends [`REQUESTS`] to the address in its plan, each over a new connection.
fn lab(isolation: Isolation, service: &Path) -> TestLab {
    TestLab::with(isolation, service, |options| {
        let probe = format!("{} probe --connect \"$at\"", service.display());
        let load =
            format!("read -r at; i=0; while [ $i -lt {REQUESTS} ]; do {probe}; i=$((i + 1)); done");
        options.load = vec!["sh".into(), "-c".into(), load.into()];
    })
}

macro_rules! lab_at {
    ($level:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        lab($level, &service)
    }};
}

/// `client` calls `server`, which has so many pods.
fn with_replicas(replicas: usize) -> Deployment {
    let mut deployment = chain(free_ports(), Duration::ZERO);
    deployment.services[1].replicas = replicas;
    deployment
}

fn answered(environment: &mut Environment) -> usize {
    let url = environment.entry_url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let (lines, outcome) = carry_out(environment, at);
    outcome.unwrap();
    lines.iter().filter(|line| line.contains("\"status\":200")).count()
}

/// What of one environment could stay in the system, while it stands.
struct Belongings {
    files: Vec<PathBuf>,
    /// Of pods that have one of their own: `net:[4026532000]`.
    networks: BTreeSet<PathBuf>,
}

impl Belongings {
    fn of(lab: &TestLab) -> Self {
        let folder = lab.folder.path().join("lab");
        let environment = fs::read_dir(&folder).unwrap().flatten().next().unwrap();
        let id = environment.file_name().to_string_lossy().into_owned();
        let ledgers = [PathBuf::from("/run/toll").join(format!("{id}.ledger"))];
        let own = network_of(std::process::id());
        let pods = ["client.service.json", "server-90.service.json"];
        let networks = pods.map(|pod| network_of(pid_by_argument(&folder, pod)));
        Self {
            files: cgroups(&id).into_iter().chain(ledgers).chain([environment.path()]).collect(),
            networks: networks.into_iter().filter(|network| *network != own).collect(),
        }
    }

    fn assert_gone(&self) {
        let left: Vec<_> = self.files.iter().filter(|file| file.exists()).collect();
        assert!(left.is_empty(), "{left:?}");
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let left: Vec<_> = pids.filter(|pid| self.networks.contains(&network_of(*pid))).collect();
        assert!(left.is_empty(), "in the pods' networks: {left:?}");
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let open = open.filter_map(|fd| fs::read_link(fd.path()).ok());
        let left: Vec<_> = open.filter(|file| self.networks.contains(file)).collect();
        assert!(left.is_empty(), "open in toll: {left:?}");
    }
}

fn network_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/net")).unwrap_or_default()
}

fn cgroups(id: &str) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let points = mounts.filter_map(|line| line.split(' ').nth(4));
    let groups = points.map(|point| Path::new(point).join(format!("toll-{id}")));
    groups.filter(|group| group.exists()).collect()
}

fn ninety_pods_come_and_go(lab: &TestLab) {
    let began = Instant::now();
    let mut environment = lab.up(&with_replicas(90));
    let up = began.elapsed();
    let belongings = Belongings::of(lab);
    assert_eq!(belongings.networks.len(), 2, "each pod has a network of its own");
    environment.open_proof().unwrap();
    assert_eq!(answered(&mut environment) as u64, REQUESTS);
    let traffic = Traffic { requests: REQUESTS, ..Traffic::default() };
    let proof = environment.close_proof(traffic).unwrap();
    assert!(proof.holds(), "{:#?}", proof.claims.iter().filter(|c| !c.holds).collect::<Vec<_>>());
    assert_eq!(environment.sample().components.len(), 91 + 2, "services, load and toll");
    let began = Instant::now();
    environment.down().unwrap();
    let down = began.elapsed();
    belongings.assert_gone();
    assert!(up < Duration::from_secs(15), "up in {up:?}");
    assert!(down < Duration::from_secs(8), "down in {down:?}");
}

#[test]
fn ninety_pods_come_up_and_go_away_in_seconds_and_leave_nothing() {
    ninety_pods_come_and_go(&lab_at!(Isolation::Pods));
}

#[test]
fn ninety_pods_without_root_come_up_and_go_away_in_seconds_and_leave_nothing() {
    ninety_pods_come_and_go(&lab_at!(Isolation::Rootless));
}

#[test]
fn a_bring_up_that_is_interrupted_ends_at_once_and_leaves_nothing() {
    let lab = lab_at!(Isolation::Pods);
    lab.interrupt.store(true, Ordering::Relaxed);
    let error = lab.lab.up(&with_replicas(90), &lab.logs()).unwrap_err();
    assert!(matches!(error, LabError::Interrupted), "{error}");
    assert_eq!(fs::read_dir(lab.folder.path().join("lab")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(lab.logs()).unwrap().count(), 0, "nothing was started");
}

/// The client is on the first node, the server on the second.
fn a_request_crosses_nodes(lab: &TestLab) {
    let deployment = Deployment { nodes: 2, ..chain(free_ports(), Duration::ZERO) };
    let mut environment = lab.up(&deployment);
    environment.open_proof().unwrap();
    assert_eq!(answered(&mut environment) as u64, REQUESTS);
    let traffic = Traffic { requests: REQUESTS, ..Traffic::default() };
    let proof = environment.close_proof(traffic).unwrap();
    assert!(proof.holds(), "{proof:#?}");
    environment.down().unwrap();
    assert_eq!(fs::read_dir(lab.folder.path().join("lab")).unwrap().count(), 0);
}

#[test]
fn a_request_crosses_from_node_to_node() {
    a_request_crosses_nodes(&lab_at!(Isolation::Pods));
}

#[test]
fn a_request_crosses_from_node_to_node_without_root() {
    a_request_crosses_nodes(&lab_at!(Isolation::Rootless));
}

#[test]
fn nodes_on_one_network_are_refused_with_advice() {
    let lab = TestLab::at(Isolation::Loopback, Path::new("/no/service"));
    let deployment = Deployment { nodes: 2, ..chain(free_ports(), Duration::ZERO) };
    let error = lab.lab.up(&deployment, &lab.logs()).unwrap_err();
    assert!(matches!(error, LabError::NodesNeedPods { nodes: 2 }), "{error}");
    assert!(error.help().unwrap().contains("`--isolation rootless`"));
}

#[test]
fn more_pods_than_a_bridge_has_ports_are_refused_before_anything_starts() {
    let lab = lab_at!(Isolation::Rootless);
    let error = lab.lab.up(&with_replicas(1023), &lab.logs()).unwrap_err();
    assert!(matches!(error, LabError::TooManyServices { services: 1024, most: 1023 }), "{error}");
    assert!(!lab.folder.path().join("lab").exists());
}

#[test]
fn a_service_called_as_a_pod_of_the_data_plane_is_refused_by_name() {
    let lab = lab_at!(Isolation::Rootless);
    let ambient = Ambient { proxy: NodeProxy::Envoy, mtls: Mtls::Strict, waypoint: true };
    let mut deployment = with_replicas(1);
    deployment.data_plane = DataPlane::Ambient(ambient);
    deployment.services[1].name = "waypoint".into();
    let error = lab.lab.up(&deployment, &lab.logs()).unwrap_err();
    assert!(matches!(&error, LabError::PodNameTaken { pod } if pod == "waypoint"), "{error}");
}
