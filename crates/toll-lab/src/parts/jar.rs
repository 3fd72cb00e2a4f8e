//! Brings a jar, or a folder of programs out of one: downloads with Maven, verifies, unpacks, installs.
//!
//! Maven is used for its download only, so that the user's own mirror, proxy and certificates apply. A jar of
//! programs holds a tar archive compressed with xz; both are read by crates, since a machine need not have those
//! tools.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lzma_rust2::XzReader;
use tempfile::TempDir;
use zip::ZipArchive;

use super::{PartError, Surroundings, sha256, wheel};

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
pub(super) fn fetch(around: &Surroundings, jar: &Jar, target: &Path) -> Result<(), PartError> {
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
) -> Result<(), PartError> {
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
) -> Result<(TempDir, PathBuf), PartError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let scratch =
        wheel::scratch_in(folder).map_err(|source| wheel::cannot_install(target, source))?;
    let file = download(around, jar, scratch.path())?;
    verify(jar, &file)?;
    Ok((scratch, file))
}

/// `dependency:copy` fetches as `dependency:get` does, and puts the file where it is told to: the user's own
/// repository may be anywhere.
fn download(around: &Surroundings, jar: &Jar, into: &Path) -> Result<PathBuf, PartError> {
    let maven = around.on_path("mvn").ok_or(PartError::NoMaven { or: jar.or })?;
    let output = Command::new(maven)
        .args(["-q", "-B", "dependency:copy"])
        .arg(format!("-Dartifact={}", jar.coordinates()))
        .arg(format!("-DoutputDirectory={}", into.display()))
        .env("PATH", &around.path)
        // Maven reads the project of the folder that it runs in.
        .current_dir(into)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| PartError::MavenDoesNotRun { or: jar.or, source })?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        return Err(failure(jar, &String::from_utf8_lossy(&said)));
    }
    let file = into.join(format!("{}-{}.jar", jar.artifact, jar.version));
    if file.is_file() { Ok(file) } else { Err(failure(jar, "it gave no jar")) }
}

/// Tells the failures apart that have different remedies, by what Maven prints.
pub(super) fn failure(jar: &Jar, said: &str) -> PartError {
    const OFFLINE: [&str; 6] = [
        "Unknown host",
        "UnknownHostException",
        "Temporary failure in name resolution",
        "Connection refused",
        "Network is unreachable",
        "timed out",
    ];
    if said.contains("No space left on device") {
        PartError::NoSpace
    } else if OFFLINE.iter().any(|sign| said.contains(sign)) {
        PartError::Offline { what: "the Maven repository", variable: jar.variable }
    } else {
        let first = said.lines().map(str::trim).find(|line| line.starts_with("[ERROR]"));
        let said = first.unwrap_or(said.trim()).to_owned();
        PartError::MavenFailed { said, artifact: jar.coordinates(), variable: jar.variable }
    }
}

fn verify(jar: &Jar, file: &Path) -> Result<(), PartError> {
    let found =
        sha256(file).map_err(|source| PartError::Unreadable { path: file.to_owned(), source })?;
    if found == jar.sha256 {
        return Ok(());
    }
    Err(PartError::WrongChecksum { package: jar.artifact, expected: jar.sha256, found })
}

fn unpack((jar, member): (&Jar, &str), file: &Path, folder: &Path) -> Result<(), PartError> {
    let unpack = || -> io::Result<()> {
        let mut zip = ZipArchive::new(File::open(file)?)?;
        let archive = zip.by_name(member)?;
        tar::Archive::new(XzReader::new(archive, true)).unpack(folder)
    };
    unpack().map_err(|source| match source.kind() {
        io::ErrorKind::StorageFull => PartError::NoSpace,
        _ => PartError::CannotUnpack { package: jar.artifact, source },
    })
}
