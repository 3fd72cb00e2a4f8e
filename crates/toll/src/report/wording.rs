//! Puts findings into words: what a metric is called, what a verdict says, the answer in one sentence a variant.
//! Decides nothing: the verdicts are the analysis's.

use crate::analysis::findings::{
    Effect, Estimate, Findings, LoadFindings, Metric, VariantFacts, Verdict, View,
};

use super::figures::{Quantity, Scale, change, figure};
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
        Metric::Throughput => "throughput",
        Metric::Memory => "memory of application and data plane",
    }
}

/// `p50`, as it is called inside a sentence.
fn metric_in_prose(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyP50 => "p50",
        Metric::LatencyP90 => "p90",
        Metric::LatencyP95 => "p95",
        Metric::LatencyP99 => "p99",
        Metric::Memory => "memory",
        other => metric_title(other),
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

fn blocks_aside(more_blocks: Option<u32>) -> String {
    more_blocks.map(|n| format!("; run {}", more(n))).unwrap_or_default()
}

fn more(blocks: u32) -> String {
    if blocks == 1 { "1 more block".into() } else { format!("{blocks} more blocks") }
}

/// The answer: one sentence a variant that ran, then one about how much it carries, where both were asked.
pub(super) fn answers(findings: &Findings) -> Vec<String> {
    let asked: Vec<&VariantFacts> =
        findings.variants.iter().filter(|v| asked(findings, v)).collect();
    let Some(load) = primary(findings) else {
        return vec!["Nothing can be told: no load has a valid trial.".into()];
    };
    if !load.variants.iter().any(|v| v.variant == findings.baseline) {
        return vec![format!(
            "Nothing can be told: the baseline {} has no valid trial under {}.",
            findings.baseline, load.name
        )];
    }
    if asked.is_empty() {
        let baseline = &findings.baseline;
        return vec![format!("Nothing was compared: only the baseline {baseline} ran.")];
    }
    let at = |load, v: &VariantFacts| answer(load, &findings.baseline, &v.name);
    let flat_out = findings.loads.iter().find(|l| l.view == View::FlatOut && *l != load);
    let carried = flat_out.into_iter().flat_map(|load| {
        let compared = |v: &&&VariantFacts| load.effects.iter().any(|e| e.variant == v.name);
        asked.iter().filter(compared).map(move |v| at(load, v))
    });
    asked.iter().map(|v| at(load, v)).chain(carried).collect()
}

fn asked(findings: &Findings, variant: &VariantFacts) -> bool {
    variant.skipped.is_none() && variant.name != findings.baseline
}

fn answer(load: &LoadFindings, baseline: &str, variant: &str) -> String {
    let leading = match load.view {
        View::EqualRate => [Metric::LatencyP50, Metric::CpuPerRequest],
        View::FlatOut | View::Users => [Metric::Throughput, Metric::CpuPerRequest],
    };
    let find = |m| load.effects.iter().find(|e| e.variant == variant && e.metric == m);
    let effects: Vec<&Effect> = leading.into_iter().filter_map(find).collect();
    if effects.is_empty() {
        return format!("Nothing can be told about {variant}: no valid trial under {}.", load.name);
    }
    let (unclear, clear): (Vec<&Effect>, Vec<&Effect>) =
        effects.into_iter().partition(|e| matches!(e.verdict, Verdict::CannotTell { .. }));
    let place = place(load, baseline);
    if clear.is_empty() {
        return format!(
            "{} {place} cannot be told{}.",
            what_it_does(variant, &unclear),
            why(&unclear)
        );
    }
    let phrases: Vec<_> = clear.iter().map(|e| phrase(e, measured_scale(load, e.metric))).collect();
    let clear = join_phrases(&phrases);
    let aside = unclear.iter().map(|e| unclear_aside(e)).collect::<String>();
    format!("{variant} {clear} {place}{aside}.")
}

/// `at 1,050 requests/s`: costs at low rates differ from those at high ones, so the rate always stands by.
fn place(load: &LoadFindings, baseline: &str) -> String {
    if load.view == View::FlatOut {
        return "flat out".into();
    }
    let of_baseline = load.variants.iter().find(|v| v.variant == baseline);
    let metrics = of_baseline.map(|v| v.metrics.as_slice()).unwrap_or_default();
    match metrics.iter().find(|(m, _)| *m == Metric::Throughput) {
        Some((_, rate)) => format!("at {}", figure(Quantity::PerSecond, rate.value)),
        None => "at equal rate".into(),
    }
}

/// What `effect` says, as a verb and what follows it.
fn phrase(effect: &Effect, scale: Scale) -> (&'static str, String) {
    let scale = difference_scale(scale, [effect]);
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
fn join_phrases(phrases: &[(&'static str, String)]) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut last = "";
    for (verb, object) in phrases {
        said.push(if *verb == last { object.clone() } else { format!("{verb} {object}") });
        last = verb;
    }
    said.join(" and ")
}

fn what_it_does(variant: &str, effects: &[&Effect]) -> String {
    let names: Vec<&str> = effects.iter().map(|e| metric_in_prose(e.metric)).collect();
    format!("What {variant} does to {}", names.join(" and to "))
}

fn unclear_aside(effect: &Effect) -> String {
    let why = why(&[effect]).replacen(": ", " (", 1);
    let close = if why.is_empty() { "" } else { ")" };
    format!("; its effect on {} cannot be told{why}{close}", metric_in_prose(effect.metric))
}

/// `: the noise floor is 0.31 ms in p50 and 40 µs in CPU per request; run 6 more blocks`.
fn why(effects: &[&Effect]) -> String {
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
