//! Puts findings into words: what a metric is called, what an interval and a verdict say.
//! Decides nothing: the verdicts are the analysis's.

use crate::analysis::findings::{Effect, Estimate, Findings, LoadFindings, Metric, Verdict, View};

use super::document::{Cell, Tone};
use super::figures::{Quantity, Scale, change, ends, half_width};

/// The load whose findings answer the study's question: that of the verdicts, else the first at equal rate
/// (docs/method.md rule 1).
pub(super) fn primary(findings: &Findings) -> Option<&LoadFindings> {
    let named = findings.headline_load.as_ref();
    let named = named.and_then(|name| findings.loads.iter().find(|l| l.name == *name));
    let equal_rate = || findings.loads.iter().find(|l| l.view == View::EqualRate);
    named.or_else(equal_rate).or(findings.loads.first())
}

/// Whether the first screen shows this load.
pub(super) fn is_primary(findings: &Findings, load: &LoadFindings) -> bool {
    primary(findings).is_some_and(|first| std::ptr::eq(first, load))
}

/// `At equal rate: same-rate`.
pub(super) fn load_title(load: &LoadFindings) -> String {
    match load.view {
        View::EqualRate => format!("At equal rate: {}", load.name),
        View::FlatOut => format!("Flat out: {}", load.name),
        View::Users => format!("Virtual users: {}", load.name),
    }
}

/// `p50 latency`: over a table of its own.
pub(super) fn metric_title(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyP50 => "p50 latency",
        Metric::LatencyP90 => "p90 latency",
        Metric::LatencyP95 => "p95 latency",
        Metric::LatencyP99 => "p99 latency",
        Metric::ApplicationCpuPerRequest => "CPU per request, application",
        Metric::MeshCpuPerRequest => "CPU per request, data plane",
        other => other.name(),
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

/// `804 requests/s (788 to 820)`.
pub(super) fn with_interval(scale: Scale, of: Estimate) -> String {
    format!("{} ({})", scale.with_unit(of.value), interval(scale, of))
}

/// Whether an interval leaves zero out.
pub(super) fn outside_zero(estimate: Estimate) -> bool {
    ends(estimate).is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

/// `+7.1 % ±1.6`: a ratio as a change with half of its interval's width, where it has one.
pub(super) fn change_in_words(ratio: Estimate) -> String {
    let half = ends(ratio).map(|(low, high)| half_width(ratio.value, (high - low) / 2.0));
    format!(
        "{}{}",
        change(ratio.value),
        half.map_or_else(String::new, |half| format!("\u{a0}{half}"))
    )
}

/// `−0.8 to +0.5 %`: the interval of a ratio as changes.
pub(super) fn change_range(ratio: Estimate) -> String {
    let Some((low, high)) = ends(ratio) else { return "no interval".into() };
    range(change(low).trim_end_matches("\u{a0}%"), &change(high))
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

/// A scale in which the ends of an interval are two figures: 1,262 (1,260 to 1,265), where 1,260 (1,260 to 1,260) has
/// none.
pub(super) fn apart(scale: Scale, Estimate { low, high, .. }: Estimate) -> Scale {
    // A hundred times the width has the digit of the width itself as its third.
    let finer = || scale.with_decimals_for([(high - low) * 100.0]);
    if low < high && scale.plain(low) == scale.plain(high) { finer() } else { scale }
}

/// The verdict in words; empty where none is given.
pub(super) fn verdict(effect: &Effect) -> Cell {
    let text = match effect.verdict {
        None => String::new(),
        Some(Verdict::Higher) => "higher".into(),
        Some(Verdict::Lower) => "lower".into(),
        Some(Verdict::NoDifference { bound }) => {
            format!("no difference larger than {}", plain_share(bound))
        }
        Some(Verdict::CannotTell { more_rounds: None }) => "cannot tell".into(),
        Some(Verdict::CannotTell { more_rounds: Some(n) }) => {
            format!("cannot tell; run {}", more(n))
        }
    };
    Cell::toned(text, tone(effect))
}

/// With its first letter as a sentence begins.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `5 %` for a bound of 0.05.
pub(super) fn plain_share(share: f64) -> String {
    change(1.0 + share).trim_start_matches('+').into()
}

/// Whether the effect is a cost, a gain or neither: by its verdict, else by its interval.
pub(super) fn tone(effect: &Effect) -> Tone {
    let more_is_better = effect.metric == Metric::Throughput;
    let clear = |higher: bool| if higher == more_is_better { Tone::Better } else { Tone::Worse };
    match effect.verdict {
        Some(Verdict::NoDifference { .. }) => Tone::Same,
        Some(Verdict::CannotTell { .. }) => Tone::Unknown,
        Some(Verdict::Higher) => clear(true),
        Some(Verdict::Lower) => clear(false),
        None if outside_zero(effect.difference) => clear(effect.difference.value > 0.0),
        None => Tone::Unknown,
    }
}

/// `1 more round`, `6 more rounds`.
pub(super) fn more(rounds: u32) -> String {
    if rounds == 1 { "1 more round".into() } else { format!("{rounds} more rounds") }
}

/// `1 pod`, `90 pods`.
pub(super) fn several(count: usize, what: &str) -> String {
    format!("{count}\u{a0}{what}{}", if count == 1 { "" } else { "s" })
}

/// `sidecar, ambient and bare`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `95 %`.
pub(super) fn level(estimate: Estimate) -> String {
    format!("{:.0}\u{a0}%", estimate.level * 100.0)
}
