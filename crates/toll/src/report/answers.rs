//! The answers to a study's question: a sentence or two a variant, first of all that a report says.
//! Decides nothing: the verdicts are the analysis's.

use std::collections::BTreeSet;

use crate::analysis::findings::{
    Effect, Estimate, Findings, LoadFindings, Metric, SpanCosts, VariantFacts, Verdict, View,
};

use super::figures::{Quantity, Scale, change, figure};
use super::spans::WHOLE;
use super::wording::{
    blocks_aside, difference_scale, interval, measured_scale, metric_title, more, primary, range,
};

/// What stands first: one answer a variant that ran, or two where it traces requests; then one about how much it
/// carries, where both were asked.
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
    let flat_out = findings.loads.iter().find(|l| l.view == View::FlatOut && *l != load);
    let costs = asked.iter().flat_map(|v| costs(findings, load, &v.name));
    let carried = flat_out.into_iter().flat_map(|load| {
        asked.iter().map(move |v| answer(findings, load, &v.name, leading(load.view)))
    });
    costs.chain(carried).collect()
}

fn asked(findings: &Findings, variant: &VariantFacts) -> bool {
    variant.skipped.is_none() && variant.name != findings.baseline
}

/// Whether `variant` left spans, so that what one of them costs is the question.
pub(super) fn traces(findings: &Findings, variant: &str) -> bool {
    let proven = findings.proofs.iter().any(|p| p.variant == variant && p.spans.is_some());
    proven || findings.span_costs.iter().any(|costs| costs.variant == variant)
}

fn leading(view: View) -> &'static [Metric] {
    match view {
        View::EqualRate => &[Metric::LatencyP50, Metric::CpuPerRequest],
        View::FlatOut | View::Users => &[Metric::Throughput, Metric::CpuPerRequest],
    }
}

/// What `variant` costs under the load that answers the question. A tracer's cost is CPU first, then latency.
fn costs(findings: &Findings, load: &LoadFindings, variant: &str) -> Vec<String> {
    if !traces(findings, variant) || effects(load, variant, leading(load.view)).is_empty() {
        return vec![answer(findings, load, variant, leading(load.view))];
    }
    let cpu = share_of_cpu(findings, load, variant)
        .unwrap_or_else(|| answer(findings, load, variant, &[Metric::CpuPerRequest]));
    let cpu = [cpu].into_iter().chain(span(findings, variant)).collect::<Vec<_>>().join(" ");
    let latency = [Metric::LatencyP50, Metric::LatencyP90];
    vec![cpu, answer(findings, load, variant, &latency)]
}

/// `agent costs +47 % CPU per request (+42 % to +52 %) at 180 requests/s: 131 µs.`
fn share_of_cpu(findings: &Findings, load: &LoadFindings, variant: &str) -> Option<String> {
    let effect = *effects(load, variant, &[Metric::CpuPerRequest]).first()?;
    let dearer = effect.verdict == Verdict::Difference && effect.difference.value > 0.0;
    let Estimate { value, low, high, .. } = effect.ratio;
    let (percent, range) = (change(value), range(&change(low), &change(high)));
    let scale = difference_scale(measured_scale(load, effect.metric), [effect]);
    let by = scale.with_unit(effect.difference.value);
    let place = place(load, &findings.baseline);
    dearer.then(|| format!("{variant} costs {percent} CPU per request ({range}) {place}: {by}."))
}

/// `A span costs 14.2 µs of CPU (12.9 to 15.6).`
fn span(findings: &Findings, variant: &str) -> Option<String> {
    let of = |costs: &&SpanCosts| costs.variant == variant && costs.of == WHOLE;
    let each = findings.span_costs.iter().find(of)?.per_span_us;
    let scale = Scale::of(Quantity::CpuTime, [each.value]);
    let interval = interval(scale, each);
    if each.blocks > 1 && each.low <= 0.0 {
        return Some(format!(
            "What a span costs cannot be told ({interval}\u{a0}{}).",
            scale.unit()
        ));
    }
    Some(format!("A span costs {} of CPU ({interval}).", scale.with_unit(each.value)))
}

fn effects<'a>(load: &'a LoadFindings, variant: &str, metrics: &[Metric]) -> Vec<&'a Effect> {
    let find = |m: &Metric| load.effects.iter().find(|e| e.variant == variant && e.metric == *m);
    metrics.iter().filter_map(find).collect()
}

fn answer(findings: &Findings, load: &LoadFindings, variant: &str, metrics: &[Metric]) -> String {
    let effects = effects(load, variant, metrics);
    if effects.is_empty() {
        return nothing(findings, load, variant);
    }
    let (unclear, clear): (Vec<&Effect>, Vec<&Effect>) =
        effects.into_iter().partition(|e| matches!(e.verdict, Verdict::CannotTell { .. }));
    let place = place(load, &findings.baseline);
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

/// Why there is no answer: what is left of the trials.
fn nothing(findings: &Findings, load: &LoadFindings, variant: &str) -> String {
    let ran = |name: &str| load.variants.iter().any(|v| v.variant == name);
    let (load, baseline) = (&load.name, &findings.baseline);
    let blocks = |name: &str| valid_blocks(findings, load, name);
    let pairs = blocks(baseline).intersection(&blocks(variant)).count();
    match pairs {
        _ if !ran(variant) => {
            format!("Nothing can be told about {variant}: no valid trial under {load}.")
        }
        _ if !ran(baseline) => format!(
            "Nothing can be told about {variant}: the baseline {baseline} has no valid trial under {load}."
        ),
        1 => format!("{variant} under {load}: one valid pair is left: no interval."),
        0 => format!("{variant} under {load}: no block has a valid trial of it and of {baseline}."),
        _ => format!("Nothing can be told about {variant} under {load}: readings are missing."),
    }
}

fn valid_blocks(findings: &Findings, load: &str, variant: &str) -> BTreeSet<usize> {
    let valid = findings.trials.iter().filter(|t| t.invalid.is_none());
    valid.filter(|t| t.load == load && t.variant == variant).map(|t| t.block).collect()
}

/// `at 1,050 requests/s`: costs at low rates differ from those at high ones, so the rate always stands by.
fn place(load: &LoadFindings, baseline: &str) -> String {
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
