//! Turns the numbers of blocks into estimates with intervals, and those into verdicts.
//!
//! The block is the unit: every slice here holds one number per block, never one per request
//! (METHOD.md rule 3); only the series that [`settled`] and [`trend`] judge run within and across them. No I/O, no clock, no randomness.
#![deny(missing_docs)]

mod error;
mod estimate;
mod jackknife;
mod line;
mod quantile;
mod regression;
mod steady;
mod trend;
mod verdict;

pub use error::Error;
pub use estimate::{Estimate, Level, mean, paired_difference, paired_ratio};
pub use jackknife::{jackknife, jackknife_ratio};
pub use line::{Line, common_line, least_squares, pseudo_values};
pub use quantile::{median, quantile};
pub use regression::{Observation, Regression, regression};
pub use steady::settled;
pub use trend::{Trend, sen_slope, trend};
pub use verdict::{Verdict, noise_floor, verdict};
