//! Brings a jar, or a folder of programs out of one: downloads with Maven, verifies, unpacks, installs.
//!
//! Maven is used for its download only, so that the user's own mirror, proxy and certificates apply. A jar of
//! programs holds a tar archive compressed with xz; both are read by crates, since a machine need not have those
//! tools.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lzma_rust2::XzReader;
use nix::unistd::getpid;
use tempfile::TempDir;
use zip::ZipArchive;

use super::error::ArtifactError;
use super::found::sha256;
use super::surroundings::Surroundings;
use super::wheel;
use crate::host::lifetime::die_with;

/// Maven waits without end for a repository that answers and sends nothing.
const LONGEST_FETCH: Duration = Duration::from_secs(600);

/// How often it is looked whether Maven has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A jar of one version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jar {
    pub group: &'static str,
    pub artifact: &'static str,
    pub version: &'static str,
    /// SHA-256 of the jar, 64 hexadecimal digits.
    pub sha256: &'static str,
    /// The variable that leads to the part when it is somewhere else.
    pub variable: &'static str,
    /// What helps without Maven: an imperative.
    pub or: &'static str,
}

impl Jar {
    /// As Maven names it.
    fn coordinates(&self) -> String {
        format!("{}:{}:{}", self.group, self.artifact, self.version)
    }
}

/// Puts the jar at `target`, whole or not at all.
///
/// # Errors
/// When Maven is missing or fails, the jar is not the pinned one, or the target cannot be written.
pub(super) fn fetch(around: &Surroundings, jar: &Jar, target: &Path) -> Result<(), ArtifactError> {
    let (_scratch, file) = verified(around, jar, target)?;
    fs::rename(&file, target).map_err(|source| wheel::cannot_install(target, source))
}

/// Unpacks the archive that is the jar's `member` into the new folder `target`.
///
/// The folder appears there whole or not at all: two runs of toll that fetch at once cannot harm each other.
///
/// # Errors
/// When Maven is missing or fails, the jar is not the pinned one, or the target cannot be written.
pub(super) fn fetch_programs(
    around: &Surroundings,
    (jar, member): (&Jar, &str),
    target: &Path,
) -> Result<(), ArtifactError> {
    let (scratch, file) = verified(around, jar, target)?;
    let unpacked = scratch.path().join("unpacked");
    unpack((jar, member), &file, &unpacked)?;
    match fs::rename(&unpacked, target) {
        // Another run was faster; what it installed is the same.
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        outcome => outcome.map_err(|source| wheel::cannot_install(target, source)),
    }
}

/// The jar as it was published, in a folder beside the target that goes when it is dropped.
fn verified(
    around: &Surroundings,
    jar: &Jar,
    target: &Path,
) -> Result<(TempDir, PathBuf), ArtifactError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let scratch =
        wheel::scratch_in(folder).map_err(|source| wheel::cannot_install(target, source))?;
    let file = download(around, jar, scratch.path())?;
    verify(jar, &file)?;
    Ok((scratch, file))
}

/// `dependency:copy` fetches as `dependency:get` does, and puts the file where it is told to: the user's own
/// repository may be anywhere.
fn download(around: &Surroundings, jar: &Jar, into: &Path) -> Result<PathBuf, ArtifactError> {
    let maven = around.on_path("mvn").ok_or(ArtifactError::NoMaven { or: jar.or })?;
    let mut command = Command::new(maven);
    command
        .args(["-q", "-B", "dependency:copy"])
        .arg(format!("-Dartifact={}", jar.coordinates()))
        .arg(format!("-DoutputDirectory={}", into.display()))
        .env("PATH", &around.path)
        // Maven reads the project of the folder that it runs in.
        .current_dir(into);
    let (status, said) = run_within(LONGEST_FETCH, command, &into.join("said"))
        .map_err(|source| ArtifactError::MavenDoesNotRun { or: jar.or, source })?;
    match status {
        Some(status) if status.success() => {}
        Some(_) => return Err(failure(jar, &said)),
        None => return Err(failure(jar, "it did not end within 10 minutes")),
    }
    let file = into.join(format!("{}-{}.jar", jar.artifact, jar.version));
    if file.is_file() { Ok(file) } else { Err(failure(jar, "it gave no jar")) }
}

/// Runs `command` to its end, by way of the file `said` for what it prints. No status when it was killed after
/// `limit`; it does not outlive toll either.
pub(super) fn run_within(
    limit: Duration,
    mut command: Command,
    said: &Path,
) -> io::Result<(Option<ExitStatus>, String)> {
    let file = File::create(said)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let parent = getpid();
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(move || die_with(parent)) };
    let mut child = command.spawn()?;
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() < deadline => thread::sleep(LOOK_EVERY),
            None => {
                child.kill()?;
                child.wait()?;
                break None;
            }
        }
    };
    Ok((status, String::from_utf8_lossy(&fs::read(said)?).into_owned()))
}

/// Tells the failures apart that have different remedies, by what Maven prints.
pub(super) fn failure(jar: &Jar, said: &str) -> ArtifactError {
    const OFFLINE: [&str; 6] = [
        "Unknown host",
        "UnknownHostException",
        "Temporary failure in name resolution",
        "Connection refused",
        "Network is unreachable",
        "timed out",
    ];
    if said.contains("No space left on device") {
        ArtifactError::NoSpace
    } else if OFFLINE.iter().any(|sign| said.contains(sign)) {
        ArtifactError::Offline { what: "the Maven repository", variable: jar.variable }
    } else {
        let first = said.lines().map(str::trim).find(|line| line.starts_with("[ERROR]"));
        let said = match first.unwrap_or(said.trim()) {
            "" => "it printed nothing".to_owned(),
            said => said.to_owned(),
        };
        ArtifactError::MavenFailed { said, artifact: jar.coordinates(), variable: jar.variable }
    }
}

fn verify(jar: &Jar, file: &Path) -> Result<(), ArtifactError> {
    let found = sha256(file)
        .map_err(|source| ArtifactError::Unreadable { path: file.to_owned(), source })?;
    if found == jar.sha256 {
        return Ok(());
    }
    Err(ArtifactError::WrongChecksum { package: jar.artifact, expected: jar.sha256, found })
}

fn unpack((jar, member): (&Jar, &str), file: &Path, folder: &Path) -> Result<(), ArtifactError> {
    let unpack = || -> io::Result<()> {
        let mut zip = ZipArchive::new(File::open(file)?)?;
        let archive = zip.by_name(member)?;
        tar::Archive::new(XzReader::new(archive, true)).unpack(folder)
    };
    unpack().map_err(|source| match source.kind() {
        io::ErrorKind::StorageFull => ArtifactError::NoSpace,
        _ => ArtifactError::CannotUnpack { package: jar.artifact, source },
    })
}
