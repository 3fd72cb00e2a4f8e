//! The instrument tried on itself: plans rounds of equal arms and rounds with planted effects, and turns what they
//! brought into a page with pass marks.
//!
//! Equal arms must not be told apart more often than toll says it errs, and effects of known size must be found as
//! often, and as large, as it says. What runs is an ordinary plan in an ordinary run's directory, one for each part.

mod chance;
mod design;
mod equal;
mod figures;
mod loop_cost;
mod marks;
mod observed;
mod order;
mod page;
mod planted;
mod studies;
mod subsets;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::store::{RunRecord, Store, StoreError};

pub use design::{SHARE_OF_EQUAL, Unfit};
use equal::Equal;
use marks::Mark;
use observed::Round;
use order::Order;
pub use page::{html, terminal};
use planted::Found;
pub use planted::Plant;

/// Version of `calibration.json`.
pub const FORMAT: u32 = 1;
/// Its name, in the directory of the run of equal arms.
pub const FILE: &str = "calibration.json";
/// Directory of the run with planted effects, in the same.
pub const PLANTED: &str = "planted";

/// What a calibration found: `calibration.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Version of this format.
    pub version: u32,
    /// The study that it was tried on.
    pub study: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// What was demanded, and how it was met.
    pub marks: Vec<Mark>,
    /// What studies of equal arms said; absent below two rounds.
    pub equal: Option<Equal>,
    /// What the order of slices did to equal arms.
    pub order: Vec<Order>,
    /// Rounds with planted effects in which no arm broke.
    pub planted_rounds: usize,
    /// What was planted.
    pub plants: Vec<Plant>,
    /// What was found of it.
    pub planted: Vec<Found>,
}

/// The rounds of equal arms, for so many seconds.
///
/// # Errors
/// [`Unfit`].
pub fn equal_arms(plan: &Plan, for_s: f64) -> Result<Plan, Unfit> {
    design::equal(plan, for_s)
}

/// The rounds with planted effects, for so many seconds, and what is planted: as large as what the equal arms showed
/// that a report finds. Measures for about a second what computing costs on these `cores`.
///
/// # Errors
/// [`Unfit`].
pub fn planted_effects(
    plan: &Plan,
    run: &RunRecord,
    for_s: f64,
    cores: usize,
) -> Result<Option<(Plan, Vec<Plant>)>, Unfit> {
    let cost = loop_cost::measure(cores);
    let capacity_per_s = run.lowest_capacity().map(|lowest| lowest.per_s);
    let rate_per_s = run.plan.loads.first().and_then(|load| load.rate_per_s(capacity_per_s));
    let sized_by = |rounds: &[Round]| {
        let equal = Equal::of(rounds, plan.bound, plan.seed)?;
        let mut plants = planted::plants(&equal, cost);
        let planted = design::planted(plan, &mut plants, rate_per_s, for_s);
        Some(planted.map(|planted| (planted, plants)))
    };
    let rounds = observed::rounds(run);
    let Some((whole, _)) = sized_by(&rounds).transpose()? else { return Ok(None) };
    // More arms stand in a round with planted effects, so that fewer cycles fit: as many of the equal arms tell what
    // is found there.
    let rounds: Vec<Round> = rounds.iter().map(|round| round.of_cycles(whole.cycles)).collect();
    sized_by(&rounds).transpose()
}

/// What it found, for programs.
pub fn json(calibration: &Calibration) -> String {
    serde_json::to_string_pretty(calibration).expect("numbers, texts and lists") + "\n"
}

/// What the parts that were measured say.
pub fn calibration(equal: &RunRecord, planted: Option<(&RunRecord, Vec<Plant>)>) -> Calibration {
    let plan = &equal.plan;
    let rounds = observed::rounds(equal);
    let (planted_rounds, plants) = match planted {
        Some((run, plants)) => (observed::rounds(run), plants),
        None => (vec![], vec![]),
    };
    let mut calibration = Calibration {
        version: FORMAT,
        study: plan.study.clone(),
        seed: plan.seed,
        marks: vec![],
        equal: Equal::of(&rounds, plan.bound, plan.seed),
        order: order::of(&rounds),
        planted_rounds: planted_rounds.len(),
        planted: planted::found(&planted_rounds, &plants, plan.bound, plan.seed),
        plants,
    };
    calibration.marks = marks::of(&calibration);
    calibration
}

/// What the stored parts say.
///
/// # Errors
/// When one cannot be read.
pub fn computed(
    equal: &Store,
    planted: Option<(&Store, Vec<Plant>)>,
) -> Result<Calibration, StoreError> {
    let planted = match planted {
        Some((store, plants)) => Some((store.read()?, plants)),
        None => None,
    };
    let planted = planted.as_ref().map(|(run, plants)| (run, plants.clone()));
    Ok(calibration(&equal.read()?, planted))
}

/// An earlier calibration, computed again from what was measured, when the directory is one's.
///
/// # Errors
/// When it cannot be read.
pub fn earlier(store: &Store) -> Result<Option<Calibration>, StoreError> {
    let Some(earlier) = store.read_report::<Calibration>(FILE)? else { return Ok(None) };
    let planted = match earlier.plants.is_empty() {
        true => None,
        false => Some(Store::open(&store.dir().join(PLANTED))?.0),
    };
    Ok(Some(computed(store, planted.as_ref().map(|store| (store, earlier.plants)))?))
}
