//! Turns the numbers of rounds into estimates with intervals, and those into verdicts.
//!
//! The round is the unit: every slice here holds one number per round, never one per request
//! (docs/method.md rule 3); only the series that [`settled`] and [`trend`] judge run within and across them. No I/O, no clock, no randomness.
#![deny(missing_docs)]

mod effect;
mod error;
mod estimate;
mod family;
mod jackknife;
mod line;
mod proportion;
mod quantile;
mod regression;
mod rounds;
mod spread;
mod steady;
mod trend;
mod trimmed;

pub use effect::{Effect, Figures};
pub use error::Error;
pub use estimate::{Estimate, Level, mean};
pub use family::{Member, Verdict, holm, holm_adjusted, verdicts};
pub use jackknife::jackknife;
pub use line::{Line, common_line, least_squares, pseudo_values};
pub use proportion::wilson;
pub use quantile::{median, quantile};
pub use regression::{Observation, Regression, regression};
pub use spread::{Sharper, Spread, spread};
pub use steady::settled;
pub use trend::{Trend, sen_slope, trend};
pub use trimmed::{TRIMMED_SHARE, trimmed_mean};
