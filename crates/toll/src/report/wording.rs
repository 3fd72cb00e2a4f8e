//! Puts findings into words: what a metric is called, what a verdict says.
//! Decides nothing: the verdicts are the analysis's.

use crate::analysis::findings::{Effect, Estimate, Findings, LoadFindings, Metric, Verdict, View};

use super::figures::{Quantity, Scale};
use super::table::{Cell, Tone};

/// The load whose findings answer the study's question: at equal rate where there is one (METHOD.md rule 1).
pub(super) fn primary(findings: &Findings) -> Option<&LoadFindings> {
    let equal_rate = findings.loads.iter().find(|l| l.view == View::EqualRate);
    equal_rate.or(findings.loads.first())
}

/// `At equal rate: same-rate`.
pub(super) fn load_title(load: &LoadFindings) -> String {
    match load.view {
        View::EqualRate => format!("At equal rate: {}", load.name),
        View::FlatOut => format!("Flat out: {}", load.name),
        View::Users => format!("Virtual users: {}", load.name),
    }
}

/// `p50 latency`.
pub(super) fn metric_title(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyP50 => "p50 latency",
        Metric::LatencyP90 => "p90 latency",
        Metric::LatencyP95 => "p95 latency",
        Metric::LatencyP99 => "p99 latency",
        Metric::LatencyMean => "mean latency",
        Metric::CpuPerRequest => "CPU per request",
        Metric::ApplicationCpuPerRequest => "CPU per request of the application alone",
        Metric::MeshCpuPerRequest => "CPU per request of the data plane",
        Metric::Throughput => "throughput",
        Metric::Memory => "memory of application and data plane",
    }
}

/// `95 % interval`, by the level that the effects carry.
pub(super) fn interval_title(effects: &[Effect]) -> String {
    let level = effects.first().map_or(0.95, |e| e.difference.level);
    format!("{:.0}\u{a0}% interval", level * 100.0)
}

/// `0.58 to 0.66`; signs only where the ends differ in sign.
pub(super) fn interval(scale: Scale, estimate: Estimate) -> String {
    let Some((low, high)) = ends(estimate) else { return "no interval".into() };
    if low < 0.0 && high > 0.0 {
        return range(&scale.signed(low), &scale.signed(high));
    }
    range(&scale.plain(low), &scale.plain(high))
}

/// `low to high`, never broken over two lines.
pub(super) fn range(low: &str, high: &str) -> String {
    format!("{low}\u{a0}to\u{a0}{high}")
}

/// Both ends of an interval; none when one block, or a number that does not exist, left it without.
pub(super) fn ends(estimate: Estimate) -> Option<(f64, f64)> {
    let known = estimate.blocks > 1 && estimate.low.is_finite() && estimate.high.is_finite();
    known.then_some((estimate.low, estimate.high))
}

/// The scale in which a report shows `metric` under `load`, the same in tables, charts and sentences.
pub(super) fn measured_scale(load: &LoadFindings, metric: Metric) -> Scale {
    let means = load.variants.iter().flat_map(|v| &v.metrics).filter(|(m, _)| *m == metric);
    Scale::of(Quantity::of(metric), means.map(|(_, mean)| mean.value))
}

/// The scale for differences of one metric, in the unit of `scale`.
pub(super) fn difference_scale<'a>(
    scale: Scale,
    effects: impl IntoIterator<Item = &'a Effect>,
) -> Scale {
    let size = |e: Estimate| e.value.abs().max(e.low.abs()).max(e.high.abs());
    scale.with_decimals_for(effects.into_iter().map(|e| size(e.difference)))
}

/// The verdict in words, with its bound or noise floor in the unit of `scale`.
pub(super) fn verdict(effect: &Effect, scale: Scale) -> Cell {
    let text = match effect.verdict {
        Verdict::Difference if effect.difference.value < 0.0 => "lower".into(),
        Verdict::Difference => "higher".into(),
        Verdict::NoDifference { bound } => {
            format!("no difference larger than {}", scale.with_unit(bound))
        }
        Verdict::CannotTell { floor, more_blocks } => {
            format!("cannot tell{}{}", floor_aside(floor, scale), blocks_aside(more_blocks))
        }
    };
    Cell::toned(text, tone(effect))
}

/// Whether the effect is a cost, a gain or neither.
pub(super) fn tone(effect: &Effect) -> Tone {
    let more_is_better = effect.metric == Metric::Throughput;
    match effect.verdict {
        Verdict::NoDifference { .. } => Tone::Same,
        Verdict::CannotTell { .. } => Tone::Unknown,
        Verdict::Difference if (effect.difference.value > 0.0) == more_is_better => Tone::Better,
        Verdict::Difference => Tone::Worse,
    }
}

fn floor_aside(floor: f64, scale: Scale) -> String {
    if !(floor.is_finite() && floor > 0.0) {
        return String::new();
    }
    format!(": the noise floor is {}", scale.with_unit(floor))
}

pub(super) fn blocks_aside(more_blocks: Option<u32>) -> String {
    more_blocks.map(|n| format!("; run {}", more(n))).unwrap_or_default()
}

pub(super) fn more(blocks: u32) -> String {
    if blocks == 1 { "1 more block".into() } else { format!("{blocks} more blocks") }
}
