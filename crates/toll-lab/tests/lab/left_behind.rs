//! A toll that is killed leaves no process, and the next one removes its files and cgroups.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    Traces, is_possible, open_folder, postgres, service_program, skip, target_folder,
};
use toll_lab::Isolation;

/// A toll in another process that holds a lab.
struct Held {
    owner: Child,
    folder: tempfile::TempDir,
}

impl Held {
    fn at(isolation: Isolation, service: &Path, postgres: Option<&Path>) -> Self {
        let folder = open_folder();
        let program = target_folder().unwrap().join("examples/hold");
        let mut owner = Command::new(program)
            .args([isolation.to_string().as_ref(), service.as_os_str(), folder.path().as_os_str()])
            .args(postgres)
            .stdout(Stdio::piped())
            .spawn()
            .expect("`cargo test` builds the example `hold`; with `--test` run `cargo build --examples` first");
        let mut said = String::new();
        BufReader::new(owner.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "up\n");
        Self { owner, folder }
    }

    /// Processes that the owner started.
    fn processes(&self) -> Vec<u32> {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| parent(*pid) == Some(self.owner.id())).collect()
    }

    /// As a power cut for the process: no handler, no destructor runs.
    fn kill(&mut self) {
        self.owner.kill().unwrap();
        self.owner.wait().unwrap();
    }
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

fn wait_until_gone(pids: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(Instant::now() < deadline, "still alive after 10 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The directories of the owner's labs in all hierarchies.
fn cgroups_of(owner: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let points = mounts.filter_map(|line| line.split(' ').nth(4));
    let groups = points.filter_map(|point| fs::read_dir(point).ok()).flatten().flatten();
    let is_owners =
        |name: std::ffi::OsString| name.to_string_lossy().starts_with(&format!("toll-{owner}-"));
    groups.filter(|group| is_owners(group.file_name())).map(|group| group.path()).collect()
}

/// Without a database, and with one where there is PostgreSQL.
fn nothing_outlives_its_owner(isolation: Isolation) {
    nothing_is_left_by(isolation, None);
    match postgres() {
        Some(postgres) => nothing_is_left_by(isolation, Some(&postgres)),
        None => skip!("there is no PostgreSQL"),
    }
}

fn nothing_is_left_by(isolation: Isolation, postgres: Option<&Path>) {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    if !is_possible(isolation) {
        skip!("isolation level {isolation} is not possible here");
    }
    let mut held = Held::at(isolation, &service, postgres);
    let files = held.folder.path().join("lab");
    let (processes, cgroups) = (held.processes(), cgroups_of(held.owner.id()));
    // With a database: its server, and the folder of the template that it is a copy of.
    let more = usize::from(postgres.is_some());
    assert_eq!(processes.len(), 3 + more, "client, server and load run");
    assert_eq!(fs::read_dir(&files).unwrap().count(), 1 + more);
    let traces = postgres.map(|_| Traces::of_servers_below(held.folder.path()));
    held.kill();
    wait_until_gone(&processes);
    if cgroups.is_empty() {
        eprintln!("SKIP clean-up of cgroups: isolation level {isolation} made none here");
    }
    // Another test's lab may have cleaned already, so what is said is not compared.
    toll_lab::clean().unwrap();
    assert_eq!(fs::read_dir(&files).unwrap().count(), 0);
    if let Some(traces) = traces {
        traces.assert_gone();
    }
    assert!(cgroups.iter().all(|group| !group.exists()), "{cgroups:?}");
}

#[test]
fn killing_the_owner_of_pods_ends_everything() {
    nothing_outlives_its_owner(Isolation::Pods);
}

#[test]
fn killing_the_owner_of_a_rootless_lab_ends_everything() {
    nothing_outlives_its_owner(Isolation::Rootless);
}

#[test]
fn killing_the_owner_of_a_loopback_lab_ends_everything() {
    nothing_outlives_its_owner(Isolation::Loopback);
}
