//! Turns one number per round into a mean with its interval.
//!
//! All intervals are Student's t intervals (Student, "The probable error of a mean", Biometrika 6,
//! 1908). They assume that rounds are independent and roughly normal.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Error;

/// How often an interval holds the true value over many repetitions, strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Level(f64);

impl Level {
    /// The usual 95 %.
    pub const P95: Self = Self(0.95);

    /// A level as a share: 0.95 for 95 %.
    ///
    /// # Errors
    /// [`Error::LevelOutOfRange`] unless it lies strictly between 0 and 1.
    pub fn new(share: f64) -> Result<Self, Error> {
        let sound = share > 0.0 && share < 1.0;
        if sound { Ok(Self(share)) } else { Err(Error::LevelOutOfRange(share)) }
    }

    /// The level as a share, 0.95 for 95 %.
    pub fn share(self) -> f64 {
        self.0
    }
}

/// A mean over rounds with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive] // Only this crate makes one, so `samples` is never below two.
pub struct Estimate {
    /// The mean over rounds, in the unit of the values; a plain number for a ratio.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Level of the interval.
    pub level: Level,
    /// Number of rounds behind it; of a [`crate::regression`] the observations.
    pub samples: usize,
}

impl Estimate {
    /// Whether zero lies outside the interval.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Half the width of the interval; never negative.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { value: f(self.value), low: f(self.low), high: f(self.high), ..self }
    }
}

/// Mean of `values` with its interval.
///
/// # Errors
/// [`Error::TooFew`] below two values, [`Error::NotFinite`].
pub fn mean(values: &[f64], level: Level) -> Result<Estimate, Error> {
    at_least(2, values)?;
    all_finite(values)?;
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student(level, n - 1.0) * (variance / n).sqrt();
    Ok(Estimate { value, low: value - half, high: value + half, level, samples: values.len() })
}

/// The factor on a standard error with so many degrees of freedom (one or more) that makes its interval.
pub(crate) fn student(level: Level, degrees_of_freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees_of_freedom)
        .expect("an interval has at least one degree of freedom")
        .inverse_cdf(0.5 + level.share() / 2.0)
}

pub(crate) fn at_least(need: usize, values: &[f64]) -> Result<(), Error> {
    let have = values.len();
    if have < need { Err(Error::TooFew { have, need }) } else { Ok(()) }
}

pub(crate) fn all_finite(values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(Error::NotFinite { index }),
        None => Ok(()),
    }
}
