//! How an agent takes its settings.

use std::collections::BTreeMap;

use crate::error::DataPlaneError;

/// Milliseconds after which an agent sends its spans at the latest, unless a study says otherwise: the spans of a
/// round are to arrive soon after it.
pub(super) const BATCH_DELAY_MS: u64 = 200;

/// How an agent takes its settings.
pub(super) struct Manner {
    /// The system property that names its file.
    pub(super) file_property: &'static str,
    /// Settings that a study cannot change: who the service is, and where the collector is.
    pub(super) fixed: Vec<(&'static str, String)>,
    /// Settings that a study may change.
    pub(super) defaults: Vec<(&'static str, String)>,
    /// Settings that are no properties of the agent's file but of the JVM.
    pub(super) of_the_jvm: &'static [&'static str],
    /// Whether it leaves folders in the temporary directory: it gets one in the run's folder, which is removed.
    pub(super) leaves_folders: bool,
    /// As `Launch::withheld`.
    pub(super) variables: &'static [&'static str],
}

impl Manner {
    /// All settings, those of the study over the defaults.
    pub(super) fn settings(
        &self,
        study: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, DataPlaneError> {
        if let Some((name, _)) = self.fixed.iter().find(|(name, _)| study.contains_key(*name)) {
            return Err(DataPlaneError::AgentSettingFixed { name });
        }
        let own = self.defaults.iter().chain(&self.fixed);
        let mut settings: BTreeMap<String, String> =
            own.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        settings.extend(study.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(settings)
    }
}
