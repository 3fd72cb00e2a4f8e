//! What a run says while it goes on: the seam between running and showing. Also `events.jsonl`.

use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run begins, or goes on after `--resume`.
    Started {
        /// Rounds in the plan; absent where time or width ends the run.
        rounds: Option<usize>,
        /// Rounds measured before.
        done: usize,
        /// Arms of a round.
        arms: usize,
        /// Estimated length of the rest, seconds.
        estimate_s: f64,
    },
    /// A round begins.
    RoundStarted {
        /// From 1.
        round: usize,
        /// Estimated length of the rest of the run, this round included, seconds.
        remaining_s: f64,
    },
    /// A part of the round begins.
    Stage {
        /// What happens.
        stage: Stage,
        /// The arm that it is about; absent for all.
        arm: Option<String>,
    },
    /// A slice of the discarded load on fresh services is over.
    Settling {
        arm: String,
        /// Its end, seconds since settling began.
        at_s: f64,
        /// Completed requests per second.
        throughput_per_s: f64,
        /// CPU time of all that is measured per completed request, microseconds, when it is known.
        cpu_per_request_us: Option<f64>,
    },
    /// What a variant carries flat out is known.
    CapacityFound {
        variant: String,
        /// Requests per second.
        per_s: f64,
    },
    /// The virtual users of a load are scaled to the machine.
    UsersScaled {
        load: String,
        /// Users here.
        users: u32,
        /// Users as the study says.
        of: u32,
        /// What the slowest variant carries here, requests per second.
        capacity_per_s: f64,
        /// What it carried where the users were chosen.
        made_for_per_s: f64,
    },
    /// A slice is over.
    SliceEnded {
        /// The cycle, from 1.
        cycle: usize,
        /// Slices of the round and size so far, and all of them.
        progress: (usize, usize),
        arm: String,
        load: String,
        /// Completed requests per second.
        throughput_per_s: f64,
        /// Median latency, microseconds.
        p50_us: f64,
        /// Why it does not count; empty when it does.
        invalid: Vec<String>,
    },
    /// None of an arm's slices in this round counts.
    ArmInvalid {
        arm: String,
        /// Why.
        reason: String,
    },
    /// A round is measured and kept.
    RoundEnded {
        /// From 1.
        round: usize,
        /// Estimated length of the rest of the run, seconds.
        remaining_s: f64,
    },
    Ended {
        /// Whether it was interrupted.
        interrupted: bool,
    },
}

/// A part of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Arms come up.
    BringUp,
    /// Fresh services bear a load that is not counted.
    Settle,
    /// What each variant carries flat out.
    Capacity,
    /// JVMs bear each load once, uncounted.
    Rehearse,
    /// No load at all.
    Idle,
    /// Paths are probed and counters read, before the slices or after them.
    Proof,
    /// The load goes round the arms.
    Slices,
    /// Arms go down.
    TakeDown,
}

impl Stage {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::BringUp => "bring up",
            Self::Settle => "settle",
            Self::Capacity => "measure capacity",
            Self::Rehearse => "rehearse",
            Self::Idle => "idle",
            Self::Proof => "prove the path",
            Self::Slices => "slices",
            Self::TakeDown => "take down",
        }
    }
}
