//! Counts times and gives their quantiles; in JSON the form that other tools read.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// An HDR histogram of nanoseconds (3 significant digits), in JSON as the base64 of its V2 form.
///
/// It grows with the largest value, at most some twenty times, from 16 KB to 260: an engine has dozens of them, and
/// most stay small.
#[derive(Clone)]
pub struct Histogram(pub hdrhistogram::Histogram<u64>);

/// Two are equal when they count the same, whatever their capacity.
impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        let counts = |histogram: &Histogram| -> Vec<(u64, u64)> {
            let recorded = histogram.0.iter_recorded();
            recorded.map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
        };
        counts(self) == counts(other)
    }
}

impl Histogram {
    /// Width of a bucket as a share of its value: three significant digits.
    pub const RESOLUTION: f64 = 1e-3;

    /// Values above this, one hour, are recorded as this.
    const HIGHEST_NS: u64 = 3_600_000_000_000;

    /// An empty histogram, for values from a nanosecond to an hour.
    pub fn new() -> Histogram {
        let mut inner = hdrhistogram::Histogram::new_with_bounds(1, 2, 3)
            .expect("the bounds and the digits are in the range of the format");
        inner.auto(true);
        Histogram(inner)
    }

    /// Counts one value, nanoseconds.
    pub fn record_ns(&mut self, value_ns: u64) {
        self.record_n_ns(value_ns, 1);
    }

    /// Counts the same value so many times.
    pub fn record_n_ns(&mut self, value_ns: u64, count: u64) {
        let value_ns = value_ns.min(Self::HIGHEST_NS);
        self.0.record_n(value_ns, count).expect("a histogram that grows holds any value");
    }

    /// Adds the other's counts to these; the result is what one histogram of all values would be.
    pub fn merge(&mut self, other: &Histogram) {
        // A histogram that came in as JSON may have been made for a wider range.
        self.0.auto(true);
        self.0.add(&other.0).expect("a histogram that grows holds any other");
    }

    /// Takes out values that were counted here, and counts others instead.
    pub(crate) fn replace(&mut self, counted: &Histogram, instead: &Histogram) {
        self.0.subtract(&counted.0).expect("only what was counted is taken out");
        self.merge(instead);
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that the share `quantile` (0..=1) of all values does not exceed, microseconds. Zero when empty.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The same, read between the edges of its bucket by how many of the bucket's values lie below it: histograms that
    /// differ by few values differ by a part of a bucket. Microseconds; zero when empty.
    pub fn interpolated_quantile_us(&self, quantile: f64) -> f64 {
        let within = self.0.value_at_quantile(quantile);
        let [low, next] = [self.0.lowest_equivalent(within), self.0.next_non_equivalent(within)];
        let in_bucket = self.0.count_at(within);
        if in_bucket == 0 {
            return 0.0;
        }
        let below = if low > 0 { self.0.count_between(0, low - 1) } else { 0 };
        let share = (quantile * self.count() as f64 - below as f64) / in_bucket as f64;
        (low as f64 + share.clamp(0.0, 1.0) * (next - low) as f64) / 1e3
    }

    /// The arithmetic mean, microseconds. Zero when empty.
    pub fn mean_us(&self) -> f64 {
        self.0.mean() / 1e3
    }

    /// The standard deviation, microseconds. Zero when empty.
    pub fn deviation_us(&self) -> f64 {
        self.0.stdev() / 1e3
    }

    /// The smallest value, microseconds. Zero when empty.
    pub fn min_us(&self) -> f64 {
        self.0.min() as f64 / 1e3
    }

    /// The largest value, microseconds. Zero when empty.
    pub fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }
}

/// Counts and the quantiles people ask for first; the buckets would fill pages.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("p50_us", &self.quantile_us(0.5))
            .field("p99_us", &self.quantile_us(0.99))
            .field("max_us", &self.max_us())
            .finish()
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).map_err(ser::Error::custom)?;
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(de::Error::custom)?;
        let inner = hdrhistogram::serialization::Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(de::Error::custom)?;
        Ok(Histogram(inner))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.record_ns(*v));
        histogram
    }

    #[test]
    fn quantiles_come_in_microseconds() {
        let histogram = histogram(&(1..=1000).map(|ms| ms * 1_000_000).collect::<Vec<_>>());
        assert!((histogram.quantile_us(0.99) / 990_000.0 - 1.0).abs() < 0.001);
        assert!((histogram.mean_us() / 500_500.0 - 1.0).abs() < 0.001);
        assert!((histogram.max_us() / 1_000_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn an_empty_histogram_reads_as_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.quantile_us(0.5), empty.mean_us()), (0, 0.0, 0.0));
    }

    #[test]
    fn a_value_beyond_an_hour_is_recorded_as_an_hour() {
        let hour_us = 3.6e9;
        assert!((histogram(&[u64::MAX]).max_us() / hour_us - 1.0).abs() < 0.001);
    }

    #[test]
    fn text_that_is_no_histogram_is_refused() {
        assert!(serde_json::from_str::<Histogram>("\"%%%\"").is_err());
        assert!(serde_json::from_str::<Histogram>("\"AAAA\"").is_err());
    }

    proptest! {
        #[test]
        fn a_histogram_survives_json(values in prop::collection::vec(0_u64..10_000_000_000, 0..200)) {
            let before = histogram(&values);
            let json = serde_json::to_string(&before).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), before);
        }

        #[test]
        fn two_halves_merge_to_the_whole(
            values in prop::collection::vec(0_u64..10_000_000_000, 0..200),
            cut in 0_usize..200,
        ) {
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = histogram(left);
            merged.merge(&histogram(right));
            prop_assert_eq!(merged, histogram(&values));
        }
    }
}
