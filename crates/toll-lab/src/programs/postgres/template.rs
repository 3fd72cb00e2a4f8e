//! Makes a PostgreSQL cluster once a lab, for every environment to copy: `initdb` takes longer than the rest.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::ending::end_server;
use crate::LabError;
use crate::host::error::HostError;
use crate::host::files::closed_above;
use crate::host::isolation::Isolation;
use crate::host::ledger::Ledger;
use crate::host::process::Launcher;
use crate::host::spawn::{SpawnContext, User};

/// The user that makes a cluster when the caller is root. `initdb` wants one that the system has a name for;
/// the server does not.
const NOBODY_UID: u32 = 65_534;

/// The first user of a cluster, who connects over the socket only.
pub(super) const SUPERUSER: &str = "postgres";

/// Turns a fresh cluster into one that a deployment's seed can go into, a statement a line.
const PREPARATION: &str = "\
CREATE ROLE toll LOGIN
CREATE DATABASE toll OWNER toll
CREATE EXTENSION pg_stat_statements
";

/// A cluster to copy, and the programs that run it. Dropping it removes both.
#[derive(Debug)]
pub(crate) struct Template {
    /// The folder of the programs, one that the server's user can enter.
    pub(crate) programs: PathBuf,
    data: PathBuf,
    ledger: Ledger,
}

impl Template {
    /// Makes a cluster below `work_dir` with the program `server` and those beside it.
    ///
    /// # Errors
    /// When `initdb` or the server itself fails.
    pub(crate) fn make(
        server: &Path,
        work_dir: &Path,
        isolation: Isolation,
    ) -> Result<Self, LabError> {
        let programs = server.parent().unwrap_or(server);
        let mut ledger = Ledger::open(end_server).map_err(LabError::Ledger)?;
        let folder = work_dir.join(&ledger.id);
        let data = folder.join("data");
        ledger.directory(&folder).map_err(LabError::Ledger)?;
        ledger.data_directory(&data).map_err(LabError::Ledger)?;
        let user = maker(isolation);
        // From here on its drop removes what a failing step leaves.
        let mut template = Self { programs: programs.to_owned(), data, ledger };
        make_folder(&folder, &user)?;
        template.programs = reachable(programs, &folder, &user)?;
        template.fill(&user)?;
        Ok(template)
    }

    fn fill(&self, user: &User) -> Result<(), LabError> {
        let launcher = Launcher::start().map_err(LabError::Ledger)?;
        let context = SpawnContext { user: user.clone(), ..SpawnContext::default() };
        let run = |name: &str, args: &[&str], script: &str| {
            let mut command = Command::new(self.programs.join(name));
            command.args(args).arg("-D").arg(&self.data);
            if name == "postgres" {
                command.arg(SUPERUSER);
            }
            let output = context.apply(&mut command).and_then(|()| launcher.run(command, script));
            succeeded(output).map_err(|message| LabError::Cluster { message })
        };
        // A server that loses its cluster loses nothing: it need not reach the disk.
        let auth = ["--auth=trust", "--no-sync", "--no-instructions"];
        // The same order of texts on every machine.
        let locale = ["--locale=C", "--encoding=UTF8", "-U", SUPERUSER];
        run("initdb", &[auth.as_slice(), &locale].concat(), "")?;
        run("postgres", &["--single", "-c", "exit_on_error=on"], PREPARATION)
    }

    /// Copies the cluster to `data`, a new folder, for `user`; `authentication` says who may connect.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn copy_to(
        &self,
        data: &Path,
        user: &User,
        authentication: &str,
    ) -> Result<(), LabError> {
        let copy = || {
            copy_tree(&self.data, data, user)?;
            fs::write(data.join("pg_hba.conf"), authentication)
        };
        copy().map_err(|source| HostError::Write { path: data.to_owned(), source }.into())
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        if let Err(left) = self.ledger.settle() {
            tracing::warn!("a database's template was not removed: {}", left.join(", "));
        }
    }
}

/// The server's programs refuse root.
fn maker(isolation: Isolation) -> User {
    match (nix::unistd::geteuid().is_root(), isolation) {
        (false, _) => User::Caller,
        (true, Isolation::Rootless) => User::Mapped(NOBODY_UID),
        (true, Isolation::Pods | Isolation::Loopback) => User::Other(NOBODY_UID),
    }
}

/// A new folder that belongs to `user`, closed to all but its owner and the lab unless others must go through.
fn make_folder(folder: &Path, user: &User) -> Result<(), LabError> {
    let write = |source| HostError::Write { path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(write)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).map_err(write)?;
    let User::Other(uid) = user else { return Ok(()) };
    chown(folder, Some(*uid), Some(*uid)).map_err(write)?;
    match closed_above(folder) {
        Some(dir) => Err(LabError::WorkDirClosed(dir)),
        None => Ok(()),
    }
}

/// The programs, or a copy of them where `user` cannot enter the folders above them, as in root's cache: the
/// server looks for its libraries beside its own program, by its path.
fn reachable(programs: &Path, folder: &Path, user: &User) -> Result<PathBuf, LabError> {
    if !matches!(user, User::Other(_)) || closed_above(&programs.join("postgres")).is_none() {
        return Ok(programs.to_owned());
    }
    let (from, to) = (programs.parent().unwrap_or(programs), folder.join("server"));
    let copy = || -> io::Result<()> {
        fs::create_dir(&to)?;
        for part in ["bin", "lib", "share"] {
            copy_tree(&from.join(part), &to.join(part), &User::Caller)?;
        }
        Ok(())
    };
    copy().map_err(|source| HostError::Write { path: to.clone(), source })?;
    Ok(to.join("bin"))
}

/// Copies a folder with all that is in it for `user`, modes and links as they are.
fn copy_tree(from: &Path, to: &Path, user: &User) -> io::Result<()> {
    let mode = fs::metadata(from)?.permissions().mode();
    fs::DirBuilder::new().mode(mode).create(to)?;
    give(to, user)?;
    for entry in fs::read_dir(from)? {
        let (entry, kind) = entry.and_then(|e| e.file_type().map(|kind| (e, kind)))?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_tree(&entry.path(), &target, user)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            give(&target, user)?;
        }
    }
    Ok(())
}

fn give(path: &Path, user: &User) -> io::Result<()> {
    match user.owner() {
        Some(uid) => chown(path, Some(uid), Some(uid)),
        None => Ok(()),
    }
}

/// What a program printed when it failed, or what kept it from starting.
fn succeeded(output: io::Result<Output>) -> Result<(), String> {
    match output {
        Err(e) => Err(e.to_string()),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
