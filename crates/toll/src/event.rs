//! What a run says while it goes on: the seam between running and showing. Also `events.jsonl`.

use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run begins, or goes on after `--resume`.
    Started {
        /// Trials in the plan.
        trials: usize,
        /// Of these, already measured.
        done: usize,
        /// Blocks in the plan.
        #[serde(default)]
        blocks: usize,
        /// Estimated length of the rest, seconds.
        estimate_s: f64,
        /// Environments that are to come up for it.
        #[serde(default)]
        bring_ups: usize,
        /// Of the rest, what bringing up and taking down takes, seconds.
        #[serde(default)]
        bring_ups_s: f64,
        /// Of the rest, what the trials take, seconds.
        #[serde(default)]
        trials_s: f64,
    },
    /// The search for a variant's knee begins.
    KneeSearch {
        /// The variant.
        variant: String,
    },
    /// One arrival rate was tried.
    KneeTried {
        /// The variant.
        variant: String,
        /// Requests per second offered.
        rate_per_s: f64,
        /// Whether the variant carried it.
        carried: bool,
    },
    /// The knee of a variant is known.
    KneeFound {
        /// The variant.
        variant: String,
        /// Requests per second.
        rate_per_s: f64,
    },
    /// The virtual users of a load are scaled to the machine.
    UsersScaled {
        /// The load.
        load: String,
        /// Users here.
        users: u32,
        /// Users as the study says.
        of: u32,
        /// What the slowest variant carries here, requests per second.
        knee_per_s: f64,
        /// What it carried where the users were chosen.
        made_for_knee_per_s: f64,
    },
    /// What an arm had standing had ended between two trials, and is brought up anew.
    StartedAnew {
        /// `original`, `original (again)`, `istio`.
        arm: String,
        /// What ended, and how.
        reason: String,
    },
    /// A trial begins.
    TrialStarted {
        /// Position in the plan, from 1.
        index: usize,
        /// Block, from 1.
        block: usize,
        /// `original`, `original (again)`, `istio`.
        arm: String,
        /// Name of the load.
        load: String,
        /// Estimated length of the rest of the run, this trial included, seconds.
        #[serde(default)]
        remaining_s: f64,
    },
    /// A part of the trial begins.
    Stage {
        /// `bring up`, `settle`, `prove path`, `idle`, `warm up`, `measure`, `drain`, `take down`.
        stage: String,
    },
    /// A slice of the discarded run on fresh services is over.
    Settling {
        /// Its end, seconds since the discarded run began.
        at_s: f64,
        /// Completed requests per second.
        throughput_per_s: f64,
        /// CPU time of all that is measured per completed request, microseconds, when it is known.
        cpu_per_request_us: Option<f64>,
    },
    /// About four times a second under load.
    Progress {
        /// Share of the stage that is over, 0..1, when known.
        share: Option<f64>,
        /// Completed requests per second.
        throughput_per_s: f64,
        /// Median latency, microseconds.
        p50_us: f64,
        /// 99th percentile, microseconds.
        p99_us: f64,
        /// Errors in the stage so far.
        errors: u64,
    },
    /// A trial ended.
    TrialEnded {
        /// Position in the plan, from 1.
        index: usize,
        /// Why it does not count; empty when valid.
        invalid: Vec<String>,
        /// Estimated length of the rest of the run, seconds.
        remaining_s: f64,
    },
    /// The run ended.
    Ended {
        /// Whether it was interrupted.
        interrupted: bool,
    },
}
