//! Counts what each nginx of an environment has answered to others than the lab.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::LabError;
use crate::data_plane::stub_status;

/// An nginx that can be asked.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) pod: String,
    status: PathBuf,
    /// How often it was asked: each question is a request, too.
    asked: AtomicU64,
}

impl Served {
    pub(super) fn new(pod: String, status: PathBuf) -> Self {
        Self { pod, status, asked: AtomicU64::new(0) }
    }

    fn requests(&self) -> Result<u64, LabError> {
        let all = stub_status::requests(&self.status)?;
        let own = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(all.saturating_sub(own))
    }
}

/// Requests that each has answered since it started, by pod; those of the lab for this number left out.
///
/// # Errors
/// When one cannot be asked.
pub(super) fn served(all: &[Served]) -> Result<BTreeMap<String, u64>, LabError> {
    all.iter().map(|one| Ok((one.pod.clone(), one.requests()?))).collect()
}
