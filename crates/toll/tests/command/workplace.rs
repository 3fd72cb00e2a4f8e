//! The folder of one test: its study, its run directory, the lab's files; and the parts that it may need.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use toll_lab::Isolation;
use toll_lab::artifacts::{Artifact, Fetch};

use crate::process::{Ended, Toll};
use crate::study_text::StudyText;

/// The built command.
pub const TOLL: &str = env!("CARGO_BIN_EXE_toll");

/// Removed at the end of the test.
pub struct Workplace {
    folder: TempDir,
}

impl Workplace {
    /// A new folder that every user can enter, as the sidecars' user must.
    pub fn new() -> Self {
        let open = Permissions::from_mode(0o755);
        let mut folder = tempfile::Builder::new();
        let folder = folder.prefix("toll-").permissions(open.clone()).tempdir_in("/tmp").unwrap();
        fs::create_dir(folder.path().join("lab")).unwrap();
        fs::set_permissions(folder.path().join("lab"), open).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where `run` and `start_run` keep their run.
    pub fn run_dir(&self) -> PathBuf {
        self.path("run")
    }

    /// Writes the study file.
    pub fn study(&self, study: &StudyText) -> PathBuf {
        let path = self.path("study.yaml");
        fs::write(&path, study.text()).unwrap();
        path
    }

    /// `toll`, with the lab's files in this folder.
    pub fn toll(&self) -> Command {
        let mut command = Command::new(TOLL);
        command.current_dir(self.folder.path()).env("TMPDIR", self.path("lab"));
        command
    }

    /// `toll run STUDY --out RUN`; the same seed gives every test the same order of slices.
    pub fn run_command(&self, study: &StudyText) -> Command {
        let mut command = self.toll();
        command
            .arg("run")
            .arg(self.study(study))
            .args(["--seed", "1", "--out"])
            .arg(self.run_dir());
        command
    }

    /// Starts `toll run` and does not wait.
    pub fn start_run(&self, study: &StudyText) -> Toll {
        self.start(self.run_command(study))
    }

    /// Starts a command and does not wait.
    pub fn start(&self, command: Command) -> Toll {
        Toll::start(command, self.path("stdout"), self.path("stderr"))
    }

    /// Runs a command to its end.
    pub fn finish(&self, command: Command) -> Ended {
        self.start(command).finish()
    }

    /// `toll run --resume RUN`.
    pub fn resume_command(&self) -> Command {
        let mut command = self.toll();
        command.args(["run", "--resume"]).arg(self.run_dir());
        command
    }

    /// `toll clean`, which must succeed.
    pub fn clean(&self) {
        let mut command = self.toll();
        command.arg("clean");
        self.finish(command).assert_status(0);
    }

    /// The folders of environments that are up, or were not removed.
    pub fn lab_folders(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("lab")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[track_caller]
    pub fn assert_no_lab_folders(&self) {
        assert!(self.lab_folders().is_empty(), "{:?}", self.lab_folders());
    }

    /// A copy of `program` that every user can reach.
    pub fn reachable(&self, program: &Path) -> PathBuf {
        let copy = self.path(program.file_name().unwrap().to_str().unwrap());
        if fs::hard_link(program, &copy).is_err() {
            fs::copy(program, &copy).unwrap();
        }
        copy
    }
}

/// The real Envoy, when it is there already.
pub fn envoy() -> Option<PathBuf> {
    Artifact::Envoy.find(Fetch::Forbidden).ok().map(|found| found.path)
}

/// Whether this machine and this user can have the level.
pub fn is_possible(isolation: Isolation) -> bool {
    toll_lab::survey().into_iter().any(|(level, outcome)| level == isolation && outcome.is_ok())
}

/// Whether the program can be started.
pub fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// `wrapper` with `inner` as its last arguments, in the same folder and environment.
pub fn within(mut wrapper: Command, inner: &Command) -> Command {
    wrapper.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => wrapper.env(name, value),
            None => wrapper.env_remove(name),
        };
    }
    if let Some(folder) = inner.get_current_dir() {
        wrapper.current_dir(folder);
    }
    wrapper
}
