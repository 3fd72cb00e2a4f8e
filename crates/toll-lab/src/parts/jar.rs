//! Brings a folder of programs out of a jar: downloads with Maven, verifies, unpacks, installs.
//!
//! Maven is used for its download only, so that the user's own mirror, proxy and certificates apply. The jar
//! holds a tar archive compressed with xz; both are read by crates, since a machine need not have those tools.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lzma_rust2::XzReader;
use zip::ZipArchive;

use super::{PartError, Surroundings, sha256, wheel};

/// A jar that holds an archive of programs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jar {
    pub group: &'static str,
    pub artifact: &'static str,
    pub version: &'static str,
    /// SHA-256 of the jar, 64 hexadecimal digits.
    pub sha256: &'static str,
    /// The archive's path in the jar.
    pub member: &'static str,
}

/// Unpacks the jar's archive into the new folder `target`.
///
/// The folder appears there whole or not at all: two runs of toll that fetch at once cannot harm each other.
///
/// # Errors
/// When Maven is missing or fails, the jar is not the pinned one, or the target cannot be written.
pub(super) fn fetch(around: &Surroundings, jar: &Jar, target: &Path) -> Result<(), PartError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let cannot_install = |source| wheel::cannot_install(target, source);
    let scratch = wheel::scratch_in(folder).map_err(cannot_install)?;
    let file = download(around, jar, scratch.path())?;
    verify(jar, &file)?;
    let unpacked = scratch.path().join("unpacked");
    unpack(jar, &file, &unpacked)?;
    match fs::rename(&unpacked, target) {
        // Another run was faster; what it installed is the same.
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        outcome => outcome.map_err(cannot_install),
    }
}

/// `dependency:copy` fetches as `dependency:get` does, and puts the file where it is told to: the user's own
/// repository may be anywhere.
fn download(around: &Surroundings, jar: &Jar, into: &Path) -> Result<PathBuf, PartError> {
    let maven = around.on_path("mvn").ok_or(PartError::NoMaven)?;
    let output = Command::new(maven)
        .args(["-q", "-B", "dependency:copy"])
        .arg(format!("-Dartifact={}:{}:{}", jar.group, jar.artifact, jar.version))
        .arg(format!("-DoutputDirectory={}", into.display()))
        .env("PATH", &around.path)
        // Maven reads the project of the folder that it runs in.
        .current_dir(into)
        .stdin(Stdio::null())
        .output()
        .map_err(PartError::MavenDoesNotRun)?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        return Err(failure(&String::from_utf8_lossy(&said)));
    }
    let file = into.join(format!("{}-{}.jar", jar.artifact, jar.version));
    if file.is_file() { Ok(file) } else { Err(PartError::MavenGaveNothing) }
}

/// Tells the failures apart that have different remedies, by what Maven prints.
pub(super) fn failure(said: &str) -> PartError {
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
        PartError::Offline { what: "the Maven repository" }
    } else {
        let first = said.lines().map(str::trim).find(|line| line.starts_with("[ERROR]"));
        PartError::MavenFailed { said: first.unwrap_or("nothing").to_owned() }
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

fn unpack(jar: &Jar, file: &Path, folder: &Path) -> Result<(), PartError> {
    let unpack = || -> io::Result<()> {
        let mut zip = ZipArchive::new(File::open(file)?)?;
        let archive = zip.by_name(jar.member)?;
        tar::Archive::new(XzReader::new(archive, true)).unpack(folder)
    };
    unpack().map_err(|source| match source.kind() {
        io::ErrorKind::StorageFull => PartError::NoSpace,
        _ => PartError::CannotUnpack { package: jar.artifact, source },
    })
}
