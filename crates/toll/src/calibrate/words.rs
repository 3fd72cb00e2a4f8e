//! The words for the figures of a calibration: shares and changes, each with its interval.

use serde::{Deserialize, Serialize};
use toll_stats::{Effect, Estimate, Level};

use crate::plan::Metric;

/// Half-width of an interval that says something.
const WIDEST: f64 = 5.0;

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// These.
    pub count: usize,
    /// Of these.
    pub of: usize,
    /// 0..1.
    pub share: f64,
    /// Wilson's interval of 95 %, as if all were independent.
    pub interval: [f64; 2],
}

/// A change, and the ends of its interval of 95 %: shares of the baseline, -0.1 for ten per cent less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The change.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Share {
    /// `None` of nothing.
    pub fn of(count: usize, of: usize) -> Option<Self> {
        let Estimate { value, low, high, .. } =
            toll_stats::wilson(count, of, Level::P95).ok().filter(|_| of > 0)?;
        Some(Self { count, of, share: value, interval: [low, high] })
    }
}

impl Change {
    /// That of an effect.
    pub fn of(effect: &Effect) -> Self {
        let Estimate { value, low, high, .. } = effect.change();
        Self { value, low, high }
    }

    /// Of logarithms of ratios.
    pub fn of_logarithms(Estimate { value, low, high, .. }: Estimate) -> Self {
        Self { value: value.exp_m1(), low: low.exp_m1(), high: high.exp_m1() }
    }
}

/// For people; CPU is that of a request.
pub fn name_of(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerRequest => "CPU",
        Metric::LatencyP50 => "p50",
        Metric::LatencyP99 => "p99",
        Metric::Memory => "memory",
        _ => "other",
    }
}

/// `+1.2 %`
pub fn signed(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// `1.2 %`
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `+1.2 % +-1.3`
pub fn change(change: &Change) -> String {
    let Change { value, low, high } = change;
    match (high - low) / 2.0 {
        half if half < WIDEST => format!("{} +-{:.1}", signed(*value), half * 100.0),
        _ => "not known".into(),
    }
}
