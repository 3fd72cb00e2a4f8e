//! A program of a deployment that runs, for those who ask it what it did.

use std::process::Command;
use std::time::Duration;

use nix::unistd::Pid;

use crate::LabError;
use crate::evidence::Fingerprints;
use crate::host::spawn::SpawnContext;
use crate::probe::Prober;
use crate::topology::Site;

/// How long a seed may run.
pub(super) const LONGEST_SEED: Duration = Duration::from_secs(120);

/// How long a database may take to say what it did: one that has stopped never does.
pub(super) const LONGEST_LOOK: Duration = Duration::from_secs(20);

/// One program, in its pod.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    pub(crate) site: Site<'a>,
    /// Its first process.
    pub(crate) pid: Pid,
    pub(crate) prober: Prober<'a>,
    /// In the pod, where names are known as its program knows them.
    pub(crate) inside: SpawnContext,
    /// The certificates of external services and of those who call them.
    pub(crate) issued: &'a Fingerprints,
}

impl Running<'_> {
    /// What `command`, run from there, prints, which asks this database.
    ///
    /// # Errors
    /// What keeps the database from answering.
    pub(super) fn ask(
        &self,
        command: Command,
        from: &SpawnContext,
        limit: Duration,
    ) -> Result<Vec<u8>, LabError> {
        self.prober.ask_database(&self.site.pod.pod, command, from, limit)
    }

    /// This database answered in an unknown form.
    pub(super) fn unreadable(&self, what: &str) -> LabError {
        let message = format!("{what} did not give the rows that it should");
        LabError::Database { pod: self.site.pod.pod.clone(), message }
    }
}
