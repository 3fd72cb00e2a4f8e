//! The answers to a study's question: a sentence or two a variant, first of all that a report says.
//! Decides nothing: the verdicts are the analysis's.

use std::collections::BTreeSet;

use crate::analysis::findings::{
    Effect, Estimate, Findings, LoadFindings, Metric, SpanCosts, VariantFacts, Verdict, View,
};

use super::figures::{Quantity, Scale, change};
use super::phrases::{join_phrases, phrase, place, unclear_aside, what_it_does, why};
use super::spans::{WHOLE, floor};
use super::staircase::{self, Stairs};
use super::sweep::{self, Sweep};
use super::wording::{difference_scale, interval, measured_scale, primary, range};

/// What stands first: one answer a variant that ran, or two where it traces requests; then one about how much it
/// carries, where both were asked. A staircase and a sweep have answers of their own.
pub(super) fn answers(findings: &Findings) -> Vec<String> {
    let stairs = Stairs::all(findings);
    if !stairs.is_empty() {
        return staircase::answers(&stairs);
    }
    if let Some(sweep) = Sweep::of(findings) {
        return sweep::answers(&sweep);
    }
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
    // Of a variant that showed nothing at all it is said once.
    let ran = |v: &&&VariantFacts| load.variants.iter().any(|of| of.variant == v.name);
    let carried = flat_out.into_iter().flat_map(|load| {
        let asked = asked.iter().filter(ran);
        asked.map(move |v| answer(findings, load, &v.name, leading(load.view)))
    });
    costs.chain(carried).collect()
}

fn asked(findings: &Findings, variant: &VariantFacts) -> bool {
    variant.skipped.is_none() && variant.name != findings.baseline
}

/// Whether `variant` left spans, so that what one of them costs is the question.
pub(super) fn traces(findings: &Findings, variant: &str) -> bool {
    let proven = findings.proofs.iter().any(|p| p.variant == variant && !p.spans.is_empty());
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
    let costs = findings.span_costs.iter().find(of)?;
    let each = costs.per_span_us;
    let scale = Scale::of(Quantity::CpuTime, [each.value]);
    let interval = interval(scale, each);
    if costs.is_told() {
        return Some(format!("A span costs {} of CPU ({interval}).", scale.with_unit(each.value)));
    }
    let floor = floor(costs, scale);
    Some(format!("What a span costs cannot be told ({interval}\u{a0}{}; {floor}).", scale.unit()))
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
