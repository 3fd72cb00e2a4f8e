//! One directory a run, written as it happens: a crash loses at most the round under way.
//!
//! ```text
//! study.yaml  plan.json  host.json  capacities.json  events.jsonl  report.{html,md,json}
//! rounds/07/round.json
//! rounds/07/istio/{arm.json, slices.jsonl, proof.json, logs/}
//! ```
//! In a sweep of sizes the arms of a further one are in `size-2/`. `round.json` is written last and whole; a round without it
//! was interrupted and is measured again.

mod record;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::RunEvent;
use crate::plan::{Arm, Plan};

pub use record::{
    ArmFile, ArmRecord, CapacityRecord, ClusterChoice, Failing, HostFacts, Invalid, LastLines,
    RoundFile, RoundRecord, RunRecord, SettleRecord, SettleSlice, SliceRecord,
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
    /// Whether a file may not be written by this user, or by nobody.
    pub fn is_forbidden(&self) -> bool {
        let forbidden = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
        matches!(self, Self::Io { source, .. } if forbidden.contains(&source.kind()))
    }

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
                "the disk is full: make room, then `toll run --resume RUN`; measured rounds are kept"
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
        store.make_dir(&dir.join("rounds"))?;
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
        let path = &self.dir;
        let dir = File::open(path).map_err(|source| io_error("read", path, source))?;
        match dir.try_lock() {
            Ok(()) => Ok(RunLock { _dir: dir }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy { path: self.dir.clone() }),
            Err(TryLockError::Error(source)) => Err(io_error("lock", path, source)),
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

    /// Stores a plan that goes further than before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn extend(&self, plan: &Plan) -> Result<(), StoreError> {
        self.write_json(&self.dir.join("plan.json"), plan)
    }

    /// The numbers of the rounds that were measured to their end, in order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn rounds(&self) -> Result<Vec<usize>, StoreError> {
        let dir = self.dir.join("rounds");
        let entries = fs::read_dir(&dir).map_err(|source| io_error("read", &dir, source))?;
        let number = |entry: fs::DirEntry| {
            let is_done = entry.path().join("round.json").exists();
            entry.file_name().to_str()?.parse().ok().filter(|_| is_done)
        };
        let mut rounds: Vec<usize> = entries.flatten().filter_map(number).collect();
        rounds.sort_unstable();
        Ok(rounds)
    }

    /// What the rounds that were measured took together, seconds.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn measured_s(&self) -> Result<f64, StoreError> {
        let file = |number| read_json::<RoundFile>(&self.round_dir(number).join("round.json"));
        self.rounds()?.into_iter().map(|number| Ok(file(number)?.wall_s)).sum()
    }

    /// An empty directory for a round; what an interrupted one left is removed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin_round(&self, number: usize) -> Result<RoundDir, StoreError> {
        let dir = self.round_dir(number);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|source| io_error("write", &dir, source))?;
        }
        self.make_dir(&dir)?;
        Ok(RoundDir { store: self.clone(), dir })
    }

    /// Stores what each variant carries flat out.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_capacities(&self, capacities: &[CapacityRecord]) -> Result<(), StoreError> {
        self.write_json(&self.dir.join("capacities.json"), capacities)
    }

    /// What each variant carries flat out; none before it was measured.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn capacities(&self) -> Result<Vec<CapacityRecord>, StoreError> {
        Ok(read_json_if_there(&self.dir.join("capacities.json"))?.unwrap_or_default())
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

    /// What one of the reports for programs says; absent before it was written.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn read_report<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StoreError> {
        read_json_if_there(&self.dir.join(name))
    }

    /// Reads all that was measured.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(&self) -> Result<RunRecord, StoreError> {
        let (_, plan) = Self::open(&self.dir)?;
        let rounds = self.rounds()?.into_iter().map(|number| self.read_round(&plan, number));
        let rounds = rounds.collect::<Result<_, _>>()?;
        let (name, host, capacities) = (self.name(), self.host()?, self.capacities()?);
        Ok(RunRecord { name, host, capacities, plan, rounds })
    }

    fn read_round(&self, plan: &Plan, number: usize) -> Result<RoundRecord, StoreError> {
        let dir = self.round_dir(number);
        let path = dir.join("round.json");
        check_version(&path, record::ROUND_FORMAT)?;
        let RoundFile { wall_s, .. } = read_json(&path)?;
        let mut arms = Vec::new();
        for size in 0..plan.sizes().len() {
            for arm in &plan.arms {
                arms.push(read_arm(&dir.join(arm_name(arm, size)), arm, size)?);
            }
        }
        Ok(RoundRecord { number, wall_s, arms: arms.into_iter().flatten().collect() })
    }

    fn round_dir(&self, number: usize) -> PathBuf {
        self.dir.join("rounds").join(format!("{number:02}"))
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
    _dir: File,
}

/// The directory of the round under way.
#[derive(Debug)]
pub struct RoundDir {
    store: Store,
    dir: PathBuf,
}

impl RoundDir {
    /// A directory for an arm at one of the plan's sizes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn arm(&self, arm: &Arm, size: usize) -> Result<ArmDir, StoreError> {
        let dir = self.dir.join(arm_name(arm, size));
        self.store.make_dir(&dir.join("logs"))?;
        let path = dir.join("slices.jsonl");
        let slices = File::create(&path).map_err(|source| io_error("write", &path, source))?;
        Ok(ArmDir { store: self.store.clone(), dir, slices })
    }

    /// Ends the round: from here on it counts as measured.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self, wall_s: f64) -> Result<(), StoreError> {
        let file = RoundFile { version: record::ROUND_FORMAT, wall_s };
        self.store.write_json(&self.dir.join("round.json"), &file)
    }
}

/// The directory of one arm of the round under way.
#[derive(Debug)]
pub struct ArmDir {
    store: Store,
    dir: PathBuf,
    slices: File,
}

impl ArmDir {
    /// Where the processes of the arm write their logs.
    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Adds a slice.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_slice(&mut self, slice: &SliceRecord) -> Result<(), StoreError> {
        write_line(&mut self.slices, slice)
            .map_err(|source| io_error("write", &self.dir.join("slices.jsonl"), source))
    }

    /// Stores the proof of path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_proof(&self, proof: &toll_lab::Proof) -> Result<(), StoreError> {
        self.store.write_json(&self.dir.join("proof.json"), proof)
    }

    /// Stores how the arm came up and ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self, file: &ArmFile) -> Result<(), StoreError> {
        self.store.write_json(&self.dir.join("arm.json"), file)
    }
}

/// `istio`, `original-again`; of further sizes `size-2/istio`.
fn arm_name(arm: &Arm, size: usize) -> String {
    if size == 0 { arm.slug() } else { format!("size-{}/{}", size + 1, arm.slug()) }
}

/// `None` for one that a changed plan does not have in this round.
fn read_arm(dir: &Path, arm: &Arm, size: usize) -> Result<Option<ArmRecord>, StoreError> {
    let Some(file) = read_json_if_there(&dir.join("arm.json"))? else { return Ok(None) };
    Ok(Some(ArmRecord {
        arm: arm.clone(),
        size,
        file,
        proof: read_json_if_there(&dir.join("proof.json"))?,
        slices: read_lines(&dir.join("slices.jsonl"))?,
    }))
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
