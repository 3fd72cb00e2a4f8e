//! Files and folders of an environment, whose proxies and databases run as users of their own.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use super::error::HostError;

/// Writes a file anew.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), HostError> {
    fs::write(path, text).map_err(|source| HostError::Write { path: path.to_owned(), source })
}

/// Writes a new file that nobody but the caller may read.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<(), HostError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o400).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| HostError::Write { path: path.to_owned(), source })
}

/// Makes a folder and those above it; one that is there is fine.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_folder(path: &Path) -> Result<(), HostError> {
    fs::create_dir_all(path).map_err(|source| HostError::Write { path: path.to_owned(), source })
}

/// Makes a folder of `owner`'s that every user can enter; without an owner it is the caller's. Gives the folder above it
/// that not every user can enter, if there is one and the owner is another than the caller.
///
/// # Errors
/// When it cannot be made or given away.
pub(crate) fn make_passable(path: &Path, owner: Option<u32>) -> Result<Option<PathBuf>, HostError> {
    let write = |source| HostError::Write { path: path.to_owned(), source };
    make_folder(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(write)?;
    let Some(uid) = owner else { return Ok(None) };
    chown(path, Some(uid), None).map_err(write)?;
    Ok(closed_above(path))
}

/// The folder above `path` that not every user can enter.
pub(crate) fn closed_above(path: &Path) -> Option<PathBuf> {
    let closed = |dir: &&Path| dir.metadata().is_ok_and(|m| m.mode() & 0o001 == 0);
    let mut above = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
    above.find(closed).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_cannot_enter_is_named() {
        let top = tempfile::tempdir().unwrap();
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(top.path(), mode).unwrap();
        assert_eq!(closed_above(&top.path().join("inner")).as_deref(), Some(top.path()));
    }
}
