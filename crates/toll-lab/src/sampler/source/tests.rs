//! Each real counter of this machine against a known burn of CPU time and a known block of memory.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::unistd::Pid;

use super::*;
use crate::host::hierarchy::Hierarchies;

/// Shell loops that burn, on any machine of today, between 50 ms and 10 s.
const LOOPS: u32 = 300_000;

/// A shell that burns CPU when it gets a line on its stdin, and then waits for another.
struct Burner(Child);

impl Burner {
    fn start() -> Self {
        let script =
            format!("read x; i=0; while [ $i -lt {LOOPS} ]; do i=$((i + 1)); done; echo; read x");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().try_into().unwrap())
    }

    /// Returns when the burn is over and the process still lives.
    fn burn(&mut self) {
        use std::io::{Read, Write};
        self.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        self.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A cgroup of a test; removed with it.
struct TestGroup(PathBuf);

impl TestGroup {
    fn make(mount: Option<PathBuf>, name: &str) -> Option<Self> {
        let dir = mount?.join(format!("toll-test-{}-{name}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self(dir))
    }

    fn join(&self, pid: Pid) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for TestGroup {
    fn drop(&mut self) {
        crate::host::cgroups::remove(&self.0).unwrap();
    }
}

fn mounts() -> Hierarchies {
    Hierarchies::of_this_machine().unwrap()
}

fn value(reading: &Reading<u64>) -> u64 {
    match reading {
        Reading::Value(value) => *value,
        Reading::Missing(reason) => panic!("missing: {reason}"),
    }
}

/// What `group` counts of a burn, over what the process clock counts of it.
fn ratio_to_clock(cpu: Cpu, burner: &mut Burner) -> f64 {
    let clock = Source { cpu: Cpu::of_process(burner.pid()), memory: Memory::Missing("".into()) };
    let tested = Source { cpu, memory: Memory::Missing("".into()) };
    let read = || (value(&tested.cpu_ns()) as f64, value(&clock.cpu_ns()) as f64);
    let before = read();
    burner.burn();
    let after = read();
    assert!(after.1 - before.1 > 20e6, "the burn is long enough to be told from noise");
    (after.0 - before.0) / (after.1 - before.1)
}

fn assert_counts_as_the_clock_does(ratio: f64) {
    assert!((0.9..1.1).contains(&ratio), "ratio {ratio}");
}

#[test]
fn cgroup_v2_cpu_stat_counts_a_burn_as_the_process_clock_does() {
    let Some(group) = TestGroup::make(mounts().unified, "v2") else {
        eprintln!("SKIP cgroup v2 cpu.stat: no group can be made here");
        return;
    };
    let mut burner = Burner::start();
    group.join(burner.pid());
    assert_counts_as_the_clock_does(ratio_to_clock(Cpu::of_v2(&group.0).unwrap(), &mut burner));
}

#[test]
fn cgroup_v1_cpuacct_counts_a_burn_as_the_process_clock_does() {
    let Some(group) = TestGroup::make(mounts().cpuacct, "v1") else {
        eprintln!("SKIP cgroup v1 cpuacct.usage: no group can be made here");
        return;
    };
    let mut burner = Burner::start();
    group.join(burner.pid());
    assert_counts_as_the_clock_does(ratio_to_clock(Cpu::of_v1(&group.0).unwrap(), &mut burner));
}

#[test]
fn the_process_clock_counts_a_burn_as_the_kernels_ticks_do() {
    let mut burner = Burner::start();
    let source = Source::of(&Hierarchies::default(), burner.pid());
    let before = value(&source.cpu_ns());
    burner.burn();
    let burned = (value(&source.cpu_ns()) - before) as f64;
    let ticks_ns = user_and_system_ticks(burner.pid()) as f64 * 10e6;
    assert!((0.5..2.0).contains(&(burned / ticks_ns)), "{burned} ns against {ticks_ns} ns");
}

/// Fields 14 and 15 of `/proc/PID/stat`: the shell has used next to nothing before the burn.
fn user_and_system_ticks(pid: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    after_name.split_whitespace().skip(11).take(2).map(|f| f.parse::<u64>().unwrap()).sum()
}

/// 64 MiB of this process's own, touched.
fn block() -> Vec<u8> {
    std::hint::black_box(vec![1; 64 << 20])
}

#[test]
fn the_memory_of_a_process_grows_by_what_it_touches() {
    let source = Source::of(&Hierarchies::default(), nix::unistd::getpid());
    let before = source.memory();
    let block = block();
    let after = source.memory();
    let grown = value(&after.anonymous) - value(&before.anonymous);
    assert!((32 << 20..160 << 20).contains(&grown), "{grown} B for {} B", block.len());
    assert!(value(&after.current) >= value(&after.anonymous));
    assert!(value(&after.peak) >= grown);
}

#[test]
fn the_memory_of_a_cgroup_is_that_of_its_processes() {
    let mounts = mounts();
    let v1 = TestGroup::make(mounts.memory, "m1");
    let v2 = TestGroup::make(mounts.unified, "m2");
    let of_v2 = v2.as_ref().and_then(|group| Some((group, Memory::of_v2(&group.0)?)));
    let of_v1 = v1.as_ref().and_then(|group| Some((group, Memory::of_v1(&group.0)?)));
    let Some((group, memory)) = of_v2.or(of_v1) else {
        eprintln!("SKIP memory of a cgroup: no group with a memory counter can be made here");
        return;
    };
    let shell = Command::new("sh")
        .args(["-c", "read x; x=$(printf %33554432s); echo; read y"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut shell = Burner(shell.unwrap());
    group.join(shell.pid());
    let source = Source { cpu: Cpu::Missing("".into()), memory };
    shell.burn();
    let held = value(&source.memory().anonymous);
    assert!((16 << 20..512 << 20).contains(&held), "{held} B for a string of 32 MiB");
    assert!(value(&source.memory().peak) >= held);
}

#[test]
fn a_process_that_is_gone_reads_as_missing_with_a_reason() {
    let burner = Burner::start();
    let source = Source::of(&Hierarchies::default(), burner.pid());
    drop(burner);
    assert!(matches!(source.cpu_ns(), Reading::Missing(_)), "{:?}", source.cpu_ns());
    assert!(matches!(source.memory().anonymous, Reading::Missing(_)));
}

#[test]
fn what_is_not_counted_follows_from_the_counters_in_use() {
    let pid = nix::unistd::getpid();
    let lacks = |cpu, memory| Source { cpu, memory }.lacks();
    let group = || Cpu::V1 { usage: fs::File::open("/dev/null").unwrap() };
    let clock = || Cpu::of_process(pid);
    assert_eq!(lacks(group(), Memory::Missing("".into())), None);
    assert!(
        lacks(group(), Memory::of_process(pid)).unwrap().starts_with("no cgroup counts memory")
    );
    let cpu_only = lacks(clock(), Memory::Missing("".into())).unwrap();
    assert!(cpu_only.starts_with("no cgroup counts CPU time"));
    assert!(lacks(clock(), Memory::of_process(pid)).unwrap().starts_with("no cgroups"));
}
