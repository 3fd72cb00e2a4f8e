//! The answers of a sweep in sentences: what the variants take against each other at the largest size, from how
//! many pods on, what a pod costs, and what a low rate does by itself. Decides nothing.

use super::Sweep;
use super::scaling::{growth, is_between_others, told_crossings};
use super::service_times;
use super::words::{at_largest, quantity_of, rate_title};
use crate::analysis::findings::{Effect, LoadFindings, Metric, ScaledQuantity, Verdict};
use crate::report::content::{in_first_order, value_of};
use crate::report::figures::Scale;
use crate::report::phrases::{phrase, unclear_aside};

const METRICS: [Metric; 4] =
    [Metric::LatencyP50, Metric::LatencyP99, Metric::Memory, Metric::CpuPerRequest];

/// What stands first of all that a report of a sweep says.
pub(in crate::report) fn answers(sweep: &Sweep<'_>) -> Vec<String> {
    let largest = sweep.largest();
    // Of several rates the highest has the most requests behind its percentiles; the table has all.
    let leading = largest.iter().rfind(|load| !load.effects.is_empty());
    let Some(leading) = leading else {
        return vec![
            "Nothing can be told: the largest size has no two variants to compare.".into(),
        ];
    };
    let mut answers = compared(sweep, leading);
    answers.extend(crossing(sweep));
    answers.extend(
        [ScaledQuantity::Memory, ScaledQuantity::Cpu].iter().filter_map(|q| growth(sweep, *q)),
    );
    answers.extend(service_times::answer(sweep));
    answers
}

/// One sentence a pair: between the variants where there are several, else against the baseline.
fn compared(sweep: &Sweep<'_>, load: &LoadFindings) -> Vec<String> {
    let effects = if load.between.is_empty() { &load.effects } else { &load.between };
    let pair = |e: &Effect| {
        let against = e.against.as_deref().unwrap_or(&sweep.findings.baseline);
        format!("{} against {against}", e.variant)
    };
    let pairs: Vec<String> = effects.iter().map(pair).collect();
    let pairs = in_first_order(pairs.iter().map(String::as_str));
    let of = |name: &str| {
        let of_metric = |m: &Metric| effects.iter().find(|e| e.metric == *m && pair(e) == name);
        METRICS.iter().filter_map(of_metric).collect::<Vec<_>>()
    };
    let place = format!("{} {}", at_largest(sweep), rate_title(load));
    pairs.iter().map(|name| format!("{place} {}.", sentence(load, name, &of(name)))).collect()
}

/// `ambient against sidecar takes 0.28 ms off p50 (0.25 to 0.31), ...`.
fn sentence(load: &LoadFindings, pair: &str, effects: &[&Effect]) -> String {
    let (unclear, clear): (Vec<&Effect>, Vec<&Effect>) =
        effects.iter().partition(|e| matches!(e.verdict, Verdict::CannotTell { .. }));
    let aside: String = unclear.iter().map(|e| unclear_aside(e)).collect();
    if clear.is_empty() {
        return format!("nothing can be told of {pair}{aside}");
    }
    let scale = |metric| {
        let means = load.variants.iter().filter_map(|v| value_of(v, metric));
        Scale::of(quantity_of(metric), means)
    };
    let phrases: Vec<_> = clear.iter().map(|e| phrase(e, scale(e.metric))).collect();
    format!("{pair} {}{aside}", in_a_row(&phrases))
}

/// Phrases with commas between them; a verb that follows itself is said once.
fn in_a_row(phrases: &[(&'static str, String)]) -> String {
    let mut last = "";
    let said = phrases.iter().map(|(verb, object)| {
        let said = if *verb == last { object.clone() } else { format!("{verb} {object}") };
        last = verb;
        said
    });
    super::words::listed(&said.collect::<Vec<_>>())
}

/// From how many pods on one variant takes less than another, memory then CPU.
fn crossing(sweep: &Sweep<'_>) -> Option<String> {
    let told = sweep.findings.crossings.iter().filter(|crossing| {
        let quantities = [ScaledQuantity::Memory, ScaledQuantity::Cpu];
        quantities.contains(&crossing.quantity) && is_between_others(sweep, crossing)
    });
    let told = told_crossings(&told.collect::<Vec<_>>());
    let nodes = sweep.of_nodes();
    let said: Vec<String> =
        told.into_iter().map(|said| format!("{}{nodes}.", said.sentence)).collect();
    (!said.is_empty()).then(|| said.join(" "))
}
