//! What a run's directory holds, read as any other program would read it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use crate::process::Ended;

/// Trials of every study here: two blocks with two variants and the baseline's second arm.
pub const TRIALS: usize = 6;

/// What a disturbed machine may find fault with. `errors` is not among them: a service that fails is no noise.
const CHECKS_OF_THE_LOAD: [&str; 4] = ["send-lag: ", "own-cpu: ", "littles-law: ", "schedule: "];

/// One line of `events.jsonl`.
#[derive(Debug)]
pub struct Event(Value);

impl Event {
    /// Those since the run began or was last resumed; a line that is being written does not count yet.
    pub fn of_latest_start(run: &Path) -> Vec<Self> {
        let text = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let mut events: Vec<Self> = lines.filter_map(Self::parse).collect();
        let start = events.iter().rposition(|event| event.is("started")).unwrap_or(0);
        events.split_off(start)
    }

    fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok().map(Self)
    }

    pub fn is(&self, event: &str) -> bool {
        self.0["event"] == event
    }

    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }
}

/// Trials that have ended.
pub fn ended(events: &[Event]) -> usize {
    events.iter().filter(|event| event.is("trial_ended")).count()
}

/// The arm and the stage that the run is in.
pub fn now(events: &[Event]) -> (&str, &str) {
    let last = |kind, key| events.iter().rfind(|event| event.is(kind)).map_or("", |e| e.text(key));
    (last("trial_started", "arm"), last("stage", "stage"))
}

/// Every line of `events.jsonl` is whole.
#[track_caller]
pub fn assert_log_is_whole(run: &Path) {
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let broken: Vec<&str> = text.lines().filter(|line| Event::parse(line).is_none()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The verdict of a trial that was measured to its end, and what tells whether it was written again.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    inode: u64,
    modified_ns: i128,
    verdict: Value,
}

impl Measured {
    /// Why the trial does not count.
    pub fn invalid(&self) -> Vec<&str> {
        let reasons = self.verdict["invalid"].as_array().expect("every verdict has the list");
        reasons.iter().map(|reason| reason.as_str().unwrap()).collect()
    }
}

/// The measured trials of a run, by the names of their folders.
pub fn measured(run: &Path) -> BTreeMap<String, Measured> {
    let folders = fs::read_dir(run.join("trials")).unwrap().map(|entry| entry.unwrap());
    let read = |folder: fs::DirEntry| {
        let path = folder.path().join("trial.json");
        let metadata = fs::metadata(&path).ok()?;
        let modified_ns =
            i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let verdict = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let name = folder.file_name().into_string().unwrap();
        Some((name, Measured { inode: metadata.ino(), modified_ns, verdict }))
    };
    folders.filter_map(read).collect()
}

/// None of the trials was run again.
#[track_caller]
pub fn assert_kept(trials: &BTreeMap<String, Measured>, run: &Path) {
    let now = measured(run);
    for (name, before) in trials {
        assert_eq!(now.get(name), Some(before), "{name}");
    }
}

/// All trials are measured, and what does not count is the fault of a busy machine.
#[track_caller]
pub fn assert_complete(ended: &Ended, run: &Path) {
    let trials = measured(run);
    assert_eq!(trials.len(), TRIALS, "{ended:#?}");
    let reasons = trials.values().flat_map(Measured::invalid);
    let others: Vec<&str> = reasons
        .filter(|reason| !CHECKS_OF_THE_LOAD.iter().any(|check| reason.starts_with(check)))
        .collect();
    assert!(others.is_empty(), "{others:#?}");
    let counting = report(run)["loads"][0]["variants"].as_array().unwrap().len();
    ended.assert_status(if counting == 2 { 0 } else { 3 });
}

/// `report.json`.
pub fn report(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("report.json")).unwrap()).unwrap()
}
