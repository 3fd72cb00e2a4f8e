//! The parts of an answer: what an effect says as a verb and its object, where it holds, why it cannot be told.

use crate::analysis::findings::{Effect, Estimate, LoadFindings, Metric, Verdict, View};

use super::figures::{Quantity, Scale, change, figure};
use super::wording::{blocks_aside, difference_scale, interval, metric_title, more};

/// `at 1,050 requests/s`: costs at low rates differ from those at high ones, so the rate always stands by.
pub(super) fn place(load: &LoadFindings, baseline: &str) -> String {
    match load.view {
        View::FlatOut => return "flat out".into(),
        View::Users => return format!("with the users of {}", load.name),
        View::EqualRate => {}
    }
    let of_baseline = load.variants.iter().find(|v| v.variant == baseline);
    let metrics = of_baseline.map(|v| v.metrics.as_slice()).unwrap_or_default();
    match metrics.iter().find(|(m, _)| *m == Metric::Throughput) {
        Some((_, rate)) => format!("at {}", figure(Quantity::PerSecond, rate.value)),
        None => "at equal rate".into(),
    }
}

/// What `effect` says, as a verb and what follows it.
pub(super) fn phrase(effect: &Effect, scale: Scale) -> (&'static str, String) {
    let scale = apart(difference_scale(scale, [effect]), effect.difference);
    let name = metric_in_prose(effect.metric);
    let by = scale.with_unit(effect.difference.value.abs());
    let range = size_aside(effect, scale);
    let percent = change(effect.ratio.value);
    match (effect.verdict, effect.metric, effect.difference.value > 0.0) {
        (Verdict::NoDifference { bound }, ..) => {
            ("changes", format!("{name} by no more than {}", scale.with_unit(bound)))
        }
        (_, Metric::Throughput, true) => ("carries", format!("{by} more{range}, {percent},")),
        (_, Metric::Throughput, false) => ("carries", format!("{by} less{range}, {percent},")),
        (_, Metric::CpuPerRequest, true) => ("adds", format!("{by} {name} ({percent})")),
        (_, Metric::CpuPerRequest, false) => ("saves", format!("{by} {name} ({percent})")),
        (_, _, true) => ("adds", format!("{by} to {name}{range}")),
        (_, _, false) => ("takes", format!("{by} off {name}{range}")),
    }
}

/// A scale in which the ends of an interval are two figures: 1,262 (1,260 to 1,265), where 1,260 (1,260 to 1,260) has
/// none.
fn apart(scale: Scale, Estimate { low, high, .. }: Estimate) -> Scale {
    // A hundred times the width has the digit of the width itself as its third.
    let finer = || scale.with_decimals_for([(high - low) * 100.0]);
    if low < high && scale.plain(low) == scale.plain(high) { finer() } else { scale }
}

/// ` (0.58 to 0.66)`: the interval of the difference's size.
fn size_aside(effect: &Effect, scale: Scale) -> String {
    let Estimate { value, low, high, .. } = effect.difference;
    let size = if value < 0.0 {
        Estimate { low: -high, high: -low, value: -value, ..effect.difference }
    } else {
        Estimate { low, high, ..effect.difference }
    };
    format!(" ({})", interval(scale, size))
}

/// A verb that two phrases share is said once.
pub(super) fn join_phrases(phrases: &[(&'static str, String)]) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut last = "";
    for (verb, object) in phrases {
        said.push(if *verb == last { object.clone() } else { format!("{verb} {object}") });
        last = verb;
    }
    said.join(" and ")
}

pub(super) fn what_it_does(variant: &str, effects: &[&Effect]) -> String {
    let names: Vec<&str> = effects.iter().map(|e| metric_in_prose(e.metric)).collect();
    format!("What {variant} does to {}", names.join(" and to "))
}

pub(super) fn unclear_aside(effect: &Effect) -> String {
    let why = why(&[effect]).replacen(": ", " (", 1);
    let close = if why.is_empty() { "" } else { ")" };
    format!("; its effect on {} cannot be told{why}{close}", metric_in_prose(effect.metric))
}

/// `: the noise floor is 0.31 ms in p50 and 40 µs in CPU per request; run 6 more blocks`.
pub(super) fn why(effects: &[&Effect]) -> String {
    let named = |e: &Effect| Some(format!("{} in {}", floor_figure(e)?, metric_in_prose(e.metric)));
    let floors: Vec<String> = match effects {
        [only] => floor_figure(only).into_iter().collect(),
        several => several.iter().filter_map(|e| named(e)).collect(),
    };
    let more = effects.iter().filter_map(|e| more_blocks(e)).max();
    match (floors.is_empty(), more) {
        (true, None) => String::new(),
        (true, Some(n)) => format!(": run {}", self::more(n)),
        (false, _) => {
            format!(": the noise floor is {}{}", floors.join(" and "), blocks_aside(more))
        }
    }
}

fn floor_figure(effect: &Effect) -> Option<String> {
    let Verdict::CannotTell { floor, .. } = effect.verdict else { return None };
    (floor.is_finite() && floor > 0.0).then(|| figure(Quantity::of(effect.metric), floor))
}

fn more_blocks(effect: &Effect) -> Option<u32> {
    match effect.verdict {
        Verdict::CannotTell { more_blocks, .. } => more_blocks,
        _ => None,
    }
}

/// `p50`, as it is called inside a sentence.
pub(super) fn metric_in_prose(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyP50 => "p50",
        Metric::LatencyP90 => "p90",
        Metric::LatencyP95 => "p95",
        Metric::LatencyP99 => "p99",
        Metric::Memory => "memory",
        other => metric_title(other),
    }
}
