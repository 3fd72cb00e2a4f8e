//! What the machine is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf, absolute};
use std::thread::available_parallelism;

use ring::digest::{SHA256, digest};
use toll_lab::Lab;
use toll_lab::artifacts::{Artifact, Found};

use super::RunError;
use crate::plan::Plan;
use crate::store::HostFacts;

/// Cores that toll may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The machine, the artifacts, the lab, and how it starts the plan's programs, for the report's
/// manifest (docs/method.md rule 11).
///
/// # Errors
/// When a deployment asks for what the lab does not have, or a program of the user's cannot be read.
pub fn host_facts(
    lab: &Lab,
    realtime: bool,
    artifacts: &BTreeMap<Artifact, Found>,
    plan: &Plan,
) -> Result<HostFacts, RunError> {
    let mut facts = vec![fact("toll", format!("{} ({})", env!("CARGO_PKG_VERSION"), own_hash()))];
    if lab.image().is_none() {
        facts.extend(this_machine());
    }
    facts.push(fact("started", started()));
    facts.extend(lab.facts());
    for (_, deployment) in plan.ready() {
        // Most hold for several variants.
        let more = lab.facts_of(deployment)?;
        let new = more.into_iter().filter(|fact| !facts.contains(fact)).collect::<Vec<_>>();
        facts.extend(new);
    }
    Ok(HostFacts {
        facts,
        artifacts: artifacts.iter().map(|(artifact, found)| (*artifact, version(found))).collect(),
        cores: Some(lab.cores().unwrap_or_else(cores)),
        programs: programs(lab, plan)?,
        lacks: lab.lacks(),
        isolation: lab.isolation(),
        cluster: None,
        realtime,
        changes: vec![],
    })
}

/// What the arms run on, where that is this machine.
fn this_machine() -> Vec<(String, String)> {
    vec![
        fact("kernel", read_line("/proc/sys/kernel/osrelease")),
        fact("CPU", format!("{}, {} cores for toll", cpu_model(), cores())),
        fact("virtual machine", if is_virtual() { "yes" } else { "no" }),
        fact("frequency governor", governor()),
        fact("memory", total_memory()),
    ]
}

/// The files of the user's own programs in all variants, and their hashes.
fn programs(lab: &Lab, plan: &Plan) -> Result<BTreeMap<PathBuf, String>, RunError> {
    let files = plan.ready().flat_map(|(_, deployment)| lab.files_of_user(deployment));
    let hashed = files.map(|file| {
        let file = absolute(&file).unwrap_or(file);
        match fs::read(&file) {
            Ok(bytes) => Ok((file, hex(&bytes, SHA256.output_len()))),
            Err(source) => Err(RunError::NoProgram { file, source }),
        }
    });
    hashed.collect()
}

/// The first bytes of the SHA-256, in hexadecimal.
fn hex(bytes: &[u8], first: usize) -> String {
    digest(&SHA256, bytes).as_ref().iter().take(first).map(|byte| format!("{byte:02x}")).collect()
}

fn fact(label: &str, value: impl Into<String>) -> (String, String) {
    (label.into(), value.into())
}

fn version(Found { version, sha256, source, .. }: &Found) -> String {
    format!("{version} (sha256 {}, {source})", &sha256[..sha256.len().min(12)])
}

fn own_hash() -> String {
    let bytes = std::env::current_exe().and_then(fs::read);
    bytes.map_or_else(
        |error| format!("hash unknown: {error}"),
        |bytes| format!("sha256 {}", hex(&bytes, 6)),
    )
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}

fn cpu_model() -> String {
    field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown model".into())
}

fn is_virtual() -> bool {
    field("/proc/cpuinfo", "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"))
}

fn governor() -> String {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    if Path::new(path).exists() { read_line(path) } else { "not visible here".into() }
}

fn total_memory() -> String {
    let kib = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    kib.map_or_else(|| "unknown".into(), |kib| format!("{:.1} GB", kib * 1024.0 / 1e9))
}

fn started() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line =
        text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}
