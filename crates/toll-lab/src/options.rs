//! What the lab on this machine is made with.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::LabError;
use crate::artifacts::Artifacts;
use crate::host::isolation::Isolation;

/// What the lab on this machine is made with.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The isolation level; the best possible one when none.
    pub isolation: Option<Isolation>,
    /// The built-in service's program and first arguments; it takes `--config FILE` and `probe ...`.
    pub service: Vec<OsString>,
    /// The load program and its arguments: JSON plans on stdin, a line each, and JSON lines on stdout.
    pub load: Vec<OsString>,
    /// The collector's program and first arguments; it takes `--listen ADDRESS --admin SOCKET`.
    pub collector: Vec<OsString>,
    /// What deployments need that toll does not contain.
    pub artifacts: Artifacts,
    /// How long the certificates of external services and their callers hold.
    pub certificate_lifetime: Duration,
    /// Whether all processes of the lab run as `SCHED_RR`, which starves what else the machine does.
    pub realtime: bool,
    /// Holds a folder for each environment. Its path must be short: sockets are below it.
    pub work_dir: PathBuf,
    /// Hears what the lab waits for, once that takes longer than it should.
    pub listener: Listener,
    /// Set when the user wants to leave: whoever waits for a deployment to come up stops waiting.
    pub interrupt: Arc<AtomicBool>,
}

/// Hears a sentence now and then; nobody by default.
#[derive(Clone, Default)]
pub struct Listener(Option<Arc<Hears>>);

type Hears = dyn Fn(&str) + Send + Sync;

impl Listener {
    /// One that does this with each sentence.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    pub(crate) fn tell(&self, sentence: &str) {
        self.0.iter().for_each(|hear| hear(sentence));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Listener" } else { "nobody" })
    }
}

impl LocalOptions {
    /// How long certificates hold unless somebody wants to see them expire.
    pub const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

    /// Without a collector and any artifact.
    pub fn new(service: Vec<OsString>, load: Vec<OsString>, work_dir: impl Into<PathBuf>) -> Self {
        Self {
            isolation: None,
            service,
            load,
            collector: Vec::new(),
            artifacts: Artifacts::default(),
            certificate_lifetime: Self::CERTIFICATE_LIFETIME,
            realtime: false,
            work_dir: work_dir.into(),
            listener: Listener::default(),
            interrupt: Arc::default(),
        }
    }

    /// An error once the user wants to leave.
    pub(crate) fn still_wanted(&self) -> Result<(), LabError> {
        match self.interrupt.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted),
            false => Ok(()),
        }
    }
}
