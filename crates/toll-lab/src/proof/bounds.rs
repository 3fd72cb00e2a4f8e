//! What a count may show.

use std::iter::Sum;
use std::ops::{Add, Mul};

/// The least and the most that a count may show: proxies may send requests again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub least: u64,
    pub most: u64,
}

impl Bounds {
    /// Nobody knows how many.
    pub(crate) const ANY: Self = Self { least: 0, most: u64::MAX };

    pub(crate) fn exactly(count: u64) -> Self {
        Self { least: count, most: count }
    }
}

impl Add for Bounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }
}

impl Mul<u64> for Bounds {
    type Output = Self;

    fn mul(self, factor: u64) -> Self {
        Self { least: self.least.saturating_mul(factor), most: self.most.saturating_mul(factor) }
    }
}

impl Sum for Bounds {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}
