//! How long a slice of a load lasts: its guard, and what is counted behind it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlannedLoad, PlannedUsers, Release};

/// How long a slice is behind its guard.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SliceLength {
    /// So many seconds, and longer where the load is so slow that fewer than [`LEAST_REQUESTS`] would fall into it.
    Seconds(f64),
    /// As long as so many requests take.
    Requests(u64),
}

/// How long a load is rehearsed behind its guard: what compiles for it does so in the rest that follows, seconds.
pub const REHEARSED_S: f64 = 0.8;

/// Requests that a slice has at the least: a shorter one would be mostly guard and drain.
pub const LEAST_REQUESTS: f64 = 20.0;

/// Requests a second that a small machine answers, to guess how long a count of them takes.
const GUESSED_PER_S: f64 = 2000.0;

impl PlannedLoad {
    /// Begin of a slice that is sent and not counted, seconds. Users come in over the time that they think, so that
    /// what is counted begins in the midst of their ways.
    pub fn guard_s(&self, guard_s: f64) -> f64 {
        match self.release {
            Release::Users(PlannedUsers { think_s, ramp_s: 0.0, .. }) => think_s.max(guard_s),
            _ => guard_s,
        }
    }

    /// Length of a slice behind its guard, seconds; a guess when it ends by count and the capacity is not known.
    pub fn slice_s(&self, capacity_per_s: Option<f64>) -> f64 {
        let per_s = self.rate_per_s(capacity_per_s).or(capacity_per_s);
        match (self.release, self.slice) {
            (Release::Users(users), _) => users.length_s(),
            (_, SliceLength::Seconds(seconds)) => {
                per_s.map_or(seconds, |per_s| seconds.max(LEAST_REQUESTS / per_s))
            }
            (_, SliceLength::Requests(count)) => count as f64 / per_s.unwrap_or(GUESSED_PER_S),
        }
    }
}

/// What a slice needs to know besides its load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceOf {
    /// What relative rates refer to, when it is known.
    pub capacity_per_s: Option<f64>,
    /// Begin that is not counted, seconds.
    pub guard_s: f64,
    /// How long an answer of the slowest arm takes, seconds; 0 where nobody knows.
    pub answer_s: f64,
    /// The same for all arms of a cycle: they have the same arrivals.
    pub seed: u64,
}

/// Answers that a guard is long at the least: what is on its way when the counted part begins and when it ends is then
/// about the same.
const ANSWERS_OF_A_GUARD: f64 = 1.5;
/// Answers that a slice of a closed loop is long at the least: its connections begin together, so with few of them the
/// count would depend on where the last ones fall.
const ANSWERS_OF_A_SLICE: f64 = 8.0;

impl SliceOf {
    /// The guard where answers may be slow, seconds.
    pub fn guard_s(&self) -> f64 {
        self.guard_s.max(ANSWERS_OF_A_GUARD * self.answer_s)
    }

    /// At least so long, seconds, is what is counted of a closed loop.
    pub fn least_closed_s(&self) -> f64 {
        ANSWERS_OF_A_SLICE * self.answer_s
    }
}
