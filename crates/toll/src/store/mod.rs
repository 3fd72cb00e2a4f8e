//! One directory a run, written as it happens: a crash loses at most the trial under way.
//!
//! ```text
//! study.yaml  plan.json  host.json  knees.json  events.jsonl  report.{html,md,json}
//! knee/istio/{settled.json, *.log}
//! trials/0007-istio-same-rate/{settled.json, load.json, samples.jsonl, proof.json,
//! trial.json, logs/}
//! ```
//! `trial.json` is written last and whole; a trial directory without it was interrupted and is run again.

mod record;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::RunEvent;
use crate::plan::{Plan, PlannedTrial};

pub use record::{
    HostFacts, KneeRecord, Mark, MarkedSample, Noise, RunRecord, SettleRecord, SettleSlice,
    TRIAL_FORMAT, TrialRecord, TrialVerdict,
};

/// What can go wrong with a run's directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory for a new run is already there and not empty.
    #[error("the run directory {} already exists", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// Not a run's directory, or one whose plan was never written.
    #[error("{} is not a run: it has no plan.json", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// Another toll runs in the directory.
    #[error("another toll runs in {}", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A file could not be read, written or locked.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write` or `lock`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what this version of toll writes.
    #[error("{} is not in the form this version of toll reads: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where it goes wrong.
        source: serde_json::Error,
    },
    /// A file was written by another version of toll.
    #[error("{} has format version {found}; this toll reads version {wanted}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u32,
        /// What is read.
        wanted: u32,
    },
}

impl StoreError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Exists { path } => Some(format!(
                "continue it with `toll run --resume {}`, or name another directory with --out",
                path.display()
            )),
            Self::NotARun { .. } => {
                Some("give the directory that `toll run` printed, for instance one under runs/".into())
            }
            Self::Busy { .. } => Some("wait until it has ended, or end it with Ctrl-C".into()),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(
                "the disk is full: make room, then `toll run --resume RUN`; measured trials are kept"
                    .into(),
            ),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("choose a directory you may write to with --out DIR".into())
            }
            Self::Version { .. } => Some("run the study again with this version".into()),
            Self::Io { .. } | Self::Format { .. } => None,
        }
    }
}

/// A run's directory.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Makes the directory of a new run and writes what is known before it starts.
    ///
    /// # Errors
    /// When the directory exists and holds something, or cannot be written.
    pub fn create(
        dir: &Path,
        study: &str,
        plan: &Plan,
        host: &HostFacts,
    ) -> Result<Self, StoreError> {
        if dir.exists() && fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_some()) {
            return Err(StoreError::Exists { path: dir.into() });
        }
        let store = Self { dir: dir.into() };
        store.make_dir(&dir.join("trials"))?;
        store.write_whole(&dir.join("study.yaml"), study.as_bytes())?;
        store.write_host(host)?;
        // Last: a directory with a plan is a run that can be resumed.
        store.write_json(&dir.join("plan.json"), plan)?;
        Ok(store)
    }

    /// Opens the directory of an earlier run.
    ///
    /// # Errors
    /// When it is not a run's directory or was written by another version.
    pub fn open(dir: &Path) -> Result<(Self, Plan), StoreError> {
        let path = dir.join("plan.json");
        if !path.exists() {
            return Err(StoreError::NotARun { path: dir.into() });
        }
        check_version(&path, crate::plan::FORMAT)?;
        let plan = read_json(&path)?;
        Ok((Self { dir: dir.into() }, plan))
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory's name: how a run is called.
    pub fn name(&self) -> String {
        let absolute = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        absolute
            .file_name()
            .map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
    }

    /// Keeps other tolls from running in this directory for as long as the lock lives. The kernel lets go of it
    /// with the process, however that ends. Readers need no lock.
    ///
    /// # Errors
    /// When another has it, or the directory cannot be read.
    pub fn lock(&self) -> Result<RunLock, StoreError> {
        // The plan is written once and never replaced: there is no need for a file of its own.
        let path = self.dir.join("plan.json");
        let plan = File::open(&path).map_err(|source| io_error("read", &path, source))?;
        match plan.try_lock() {
            Ok(()) => Ok(RunLock { _plan: plan }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy { path: self.dir.clone() }),
            Err(TryLockError::Error(source)) => Err(io_error("lock", &path, source)),
        }
    }

    /// What the machine was when the run began.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn host(&self) -> Result<HostFacts, StoreError> {
        read_json(&self.dir.join("host.json"))
    }

    /// Stores what the machine is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_host(&self, host: &HostFacts) -> Result<(), StoreError> {
        self.write_json(&self.dir.join("host.json"), host)
    }

    /// Whether the trial was measured to its end.
    pub fn is_done(&self, trial: &PlannedTrial) -> bool {
        self.trial_dir(trial).join("trial.json").exists()
    }

    /// An empty directory for a trial; what an interrupted one left is removed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin_trial(&self, trial: &PlannedTrial) -> Result<TrialDir, StoreError> {
        let dir = self.trial_dir(trial);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|source| io_error("write", &dir, source))?;
        }
        self.make_dir(&dir.join("logs"))?;
        let path = dir.join("samples.jsonl");
        let samples = File::create(&path).map_err(|source| io_error("write", &path, source))?;
        Ok(TrialDir { store: self.clone(), dir, samples })
    }

    /// An empty place for the logs of what comes up before the turn of the first trial that uses it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn bring_up_logs(&self, first: &PlannedTrial) -> Result<PathBuf, StoreError> {
        let dir = self.dir.join("bring-ups").join(first.slug());
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|source| io_error("write", &dir, source))?;
        }
        self.make_dir(&dir)?;
        Ok(dir)
    }

    /// A place for the logs of a knee search.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn knee_logs(&self, variant: &str) -> Result<PathBuf, StoreError> {
        let dir = self.dir.join("knee").join(variant);
        self.make_dir(&dir)?;
        Ok(dir)
    }

    /// Stores the discarded run before a knee search.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_knee_settled(
        &self,
        variant: &str,
        settled: &SettleRecord,
    ) -> Result<(), StoreError> {
        self.write_json(&self.knee_logs(variant)?.join("settled.json"), settled)
    }

    /// Stores the knees found so far.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_knees(&self, knees: &[KneeRecord]) -> Result<(), StoreError> {
        self.write_json(&self.dir.join("knees.json"), knees)
    }

    /// The knees found so far; none before the first search.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn knees(&self) -> Result<Vec<KneeRecord>, StoreError> {
        let path = self.dir.join("knees.json");
        if path.exists() { read_json(&path) } else { Ok(vec![]) }
    }

    /// Adds a line to `events.jsonl`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn log_event(&self, event: &RunEvent) -> Result<(), StoreError> {
        let path = self.dir.join("events.jsonl");
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|source| io_error("write", &path, source))?;
        let whole_lines = file.metadata().map_err(|source| io_error("read", &path, source))?.len();
        write_line(&mut file, event).map_err(|source| {
            // On a full disk a part of the line may be there: the resumed run must not go on behind it.
            let _ = file.set_len(whole_lines);
            io_error("write", &path, source)
        })
    }

    /// Writes one of the reports.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_report(&self, name: &str, text: &str) -> Result<PathBuf, StoreError> {
        let path = self.dir.join(name);
        self.write_whole(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Reads all that was measured.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(&self) -> Result<RunRecord, StoreError> {
        let (_, plan) = Self::open(&self.dir)?;
        let trials = plan
            .trials
            .iter()
            .filter(|trial| self.is_done(trial))
            .map(|trial| self.read_trial(trial))
            .collect::<Result<_, _>>()?;
        Ok(RunRecord { name: self.name(), host: self.host()?, knees: self.knees()?, plan, trials })
    }

    fn read_trial(&self, trial: &PlannedTrial) -> Result<TrialRecord, StoreError> {
        let dir = self.trial_dir(trial);
        check_version(&dir.join("trial.json"), record::TRIAL_FORMAT)?;
        Ok(TrialRecord {
            trial: trial.clone(),
            verdict: read_json(&dir.join("trial.json"))?,
            load: read_json_if_there(&dir.join("load.json"))?,
            proof: read_json_if_there(&dir.join("proof.json"))?,
            samples: read_lines(&dir.join("samples.jsonl"))?,
            settled: read_json_if_there(&dir.join("settled.json"))?,
        })
    }

    fn trial_dir(&self, trial: &PlannedTrial) -> PathBuf {
        self.dir.join("trials").join(trial.slug())
    }

    fn make_dir(&self, dir: &Path) -> Result<(), StoreError> {
        fs::create_dir_all(dir).map_err(|source| io_error("write", dir, source))
    }

    fn write_json(&self, path: &Path, value: &(impl Serialize + ?Sized)) -> Result<(), StoreError> {
        let text = serde_json::to_vec_pretty(value)
            .map_err(|source| StoreError::Format { path: path.into(), source })?;
        self.write_whole(path, &text)
    }

    /// Whole or not at all: a reader never sees half a file.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let partial = path.with_extension("partial");
        fs::write(&partial, bytes)
            .and_then(|()| fs::rename(&partial, path))
            .map_err(|source| io_error("write", path, source))
    }
}

/// Kept by the one toll that runs in a directory.
#[derive(Debug)]
pub struct RunLock {
    /// The lock goes with the open file.
    _plan: File,
}

/// The directory of the trial under way.
#[derive(Debug)]
pub struct TrialDir {
    store: Store,
    dir: PathBuf,
    samples: File,
}

impl TrialDir {
    /// Where the processes of the trial write their logs.
    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_sample(&mut self, sample: &MarkedSample) -> Result<(), StoreError> {
        write_line(&mut self.samples, sample)
            .map_err(|source| io_error("write", &self.dir.join("samples.jsonl"), source))
    }

    /// Stores what the load engine reported.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_load(&self, load: &toll_load::LoadReport) -> Result<(), StoreError> {
        self.store.write_json(&self.dir.join("load.json"), load)
    }

    /// Stores the discarded run before the load.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_settled(&self, settled: &SettleRecord) -> Result<(), StoreError> {
        self.store.write_json(&self.dir.join("settled.json"), settled)
    }

    /// Stores the proof of path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_proof(&self, proof: &toll_lab::Proof) -> Result<(), StoreError> {
        self.store.write_json(&self.dir.join("proof.json"), proof)
    }

    /// Ends the trial: from here on it counts as measured.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self, verdict: &TrialVerdict) -> Result<(), StoreError> {
        self.store.write_json(&self.dir.join("trial.json"), verdict)
    }
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let bytes = fs::read(path).map_err(|source| io_error("read", path, source))?;
    serde_json::from_slice(&bytes)
        .map_err(|source| StoreError::Format { path: path.into(), source })
}

fn read_json_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    if path.exists() { read_json(path).map(Some) } else { Ok(None) }
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, StoreError> {
    let file = File::open(path).map_err(|source| io_error("read", path, source))?;
    BufReader::new(file)
        .lines()
        .map(|line| {
            let line = line.map_err(|source| io_error("read", path, source))?;
            serde_json::from_str(&line)
                .map_err(|source| StoreError::Format { path: path.into(), source })
        })
        .collect()
}

fn check_version(path: &Path, wanted: u32) -> Result<(), StoreError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version: found } = read_json(path)?;
    if found == wanted {
        Ok(())
    } else {
        Err(StoreError::Version { path: path.into(), found, wanted })
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { action, path: path.into(), source }
}

#[cfg(test)]
mod tests;
