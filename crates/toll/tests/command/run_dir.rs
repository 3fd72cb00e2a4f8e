//! What a run's directory holds, read as any other program would read it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use crate::process::Ended;

/// Rounds of every study here, each with two variants and the baseline's second arm.
pub const ROUNDS: usize = 2;

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

/// Rounds that have ended.
pub fn ended(events: &[Event]) -> usize {
    events.iter().filter(|event| event.is("round_ended")).count()
}

/// The stage that the run is in.
pub fn now(events: &[Event]) -> &str {
    events.iter().rfind(|event| event.is("stage")).map_or("", |event| event.text("stage"))
}

/// Every line of `events.jsonl` is whole.
#[track_caller]
pub fn assert_log_is_whole(run: &Path) {
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let broken: Vec<&str> = text.lines().filter(|line| Event::parse(line).is_none()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A round that was measured to its end, and what tells whether it was written again.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    inode: u64,
    modified_ns: i128,
    /// Of each arm, by the name of its folder, why it does not count.
    invalid: BTreeMap<String, Vec<String>>,
}

impl Measured {
    /// Why an arm does not count.
    pub fn invalid(&self, arm: &str) -> &[String] {
        &self.invalid[arm]
    }
}

/// The measured rounds of a run, by the names of their folders.
pub fn measured(run: &Path) -> BTreeMap<String, Measured> {
    let folders = fs::read_dir(run.join("rounds")).unwrap().map(|entry| entry.unwrap());
    let read = |folder: fs::DirEntry| {
        let metadata = fs::metadata(folder.path().join("round.json")).ok()?;
        let modified_ns =
            i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let invalid = reasons(&folder.path());
        let name = folder.file_name().into_string().unwrap();
        Some((name, Measured { inode: metadata.ino(), modified_ns, invalid }))
    };
    folders.filter_map(read).collect()
}

fn reasons(round: &Path) -> BTreeMap<String, Vec<String>> {
    let arms = fs::read_dir(round).unwrap().map(|entry| entry.unwrap());
    let read = |arm: fs::DirEntry| {
        let file: Value =
            serde_json::from_slice(&fs::read(arm.path().join("arm.json")).ok()?).unwrap();
        let reasons = file["invalid"].as_array().expect("every arm has the list");
        Some((arm.file_name().into_string().unwrap(), reasons.iter().map(as_text).collect()))
    };
    arms.filter_map(read).collect()
}

/// A reason: a text, or the JSON of a claim that does not hold.
pub fn as_text(reason: &Value) -> String {
    reason.as_str().map_or_else(|| reason.to_string(), str::to_owned)
}

/// None of the rounds was measured again.
#[track_caller]
pub fn assert_kept(rounds: &BTreeMap<String, Measured>, run: &Path) {
    let now = measured(run);
    for (name, before) in rounds {
        assert_eq!(now.get(name), Some(before), "{name}");
    }
}

/// All rounds are measured, and every arm counts.
#[track_caller]
pub fn assert_complete(ended: &Ended, run: &Path) {
    let rounds = measured(run);
    assert_eq!(rounds.len(), ROUNDS, "{ended:#?}");
    let others: Vec<&String> =
        rounds.values().flat_map(|round| round.invalid.values()).flatten().collect();
    assert!(others.is_empty(), "{others:#?}");
    let counting = report(run)["loads"][0]["variants"].as_array().unwrap().len();
    ended.assert_status(if counting == 2 { 0 } else { 3 });
}

/// `report.json`.
pub fn report(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("report.json")).unwrap()).unwrap()
}
