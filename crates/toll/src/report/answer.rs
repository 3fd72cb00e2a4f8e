//! The answer to a study's question in one sentence, which every report begins with.
//! Decides nothing: the verdicts are the analysis's.

use crate::analysis::findings::{Effect, Estimate, Findings, LoadFindings, Metric, Verdict, View};

use super::figures::ends;
use super::figures::{Quantity, Scale, change, figure};
use super::values::value_of;
use super::wording::{
    apart, change_in_words, change_range, difference_scale, interval, listed, measured_scale,
    metric_title, more, outside_zero, plain_share, primary, range, several,
};

/// Variants beyond this many are summed up by the least and the most among them.
const MOST_NAMED: usize = 2;

/// One sentence.
pub(super) fn answer(findings: &Findings) -> String {
    let Some(load) = primary(findings) else {
        return "No result: no load has a slice that counts.".into();
    };
    let baseline = &findings.baseline;
    if load.variants.iter().all(|v| v.variant != *baseline) {
        let load = &load.name;
        return format!(
            "No result: the baseline {baseline} has no slice that counts under {load}."
        );
    }
    let compared = compared(findings, load);
    match compared.as_slice() {
        [] => format!("Nothing was compared: only the baseline {baseline} has results."),
        few if few.len() <= MOST_NAMED => of_few(findings, load, few),
        many => of_many(findings, load, many),
    }
}

/// Variants but the baseline that have an effect, in the order of the study.
pub(super) fn compared<'a>(findings: &'a Findings, load: &LoadFindings) -> Vec<&'a str> {
    let names = findings.variants.iter().map(|v| v.name.as_str());
    names.filter(|name| load.effects.iter().any(|e| e.variant == *name)).collect()
}

/// `at 540 requests/s`: costs at low rates differ from those at high ones, so the rate always stands by.
pub(super) fn at_load(findings: &Findings, load: &LoadFindings) -> String {
    let of_baseline = load.variants.iter().find(|v| v.variant == findings.baseline);
    let rate = of_baseline.and_then(|v| value_of(v, Metric::Throughput));
    let pods = load.cell.as_ref().and_then(|cell| cell.replicas.as_ref());
    let pods = pods.map_or_else(String::new, |(service, pods)| {
        format!(" with {}", several(*pods, &format!("{service} pod")))
    });
    match (load.view, rate) {
        (View::FlatOut, _) => "flat out".into(),
        (View::Users, _) => format!("with the users of {}", load.name),
        (View::EqualRate, Some(rate)) => format!("at {}{pods}", figure(Quantity::PerSecond, rate)),
        (View::EqualRate, None) => "at equal rate".into(),
    }
}

/// The metrics that lead: of the headline ones, else of what the load has.
pub(super) fn leading<'a>(findings: &'a Findings, load: &LoadFindings) -> Vec<&'a Metric> {
    const USUAL: [Metric; 3] = [Metric::LatencyP50, Metric::LatencyP99, Metric::CpuPerRequest];
    let metrics = if findings.headline.is_empty() { &USUAL[..] } else { &findings.headline };
    metrics.iter().filter(|m| load.variants.iter().any(|v| value_of(v, **m).is_some())).collect()
}

/// The effect of a variant on one metric.
pub(super) fn effect<'a>(load: &'a LoadFindings, variant: &str, of: Metric) -> Option<&'a Effect> {
    load.effects.iter().find(|e| e.variant == variant && e.metric == of)
}

/// `istio adds 0.73 ms to p50 (0.70 to 0.76) and 763 µs of CPU to each request (+61 %, 60 to 63), at 540 requests/s.`
fn of_few(findings: &Findings, load: &LoadFindings, variants: &[&str]) -> String {
    let said: Vec<String> =
        variants.iter().map(|variant| of_variant(findings, load, variant)).collect();
    format!("{}, {}.", said.join("; "), at_load(findings, load))
}

fn of_variant(findings: &Findings, load: &LoadFindings, variant: &str) -> String {
    let leading = leading(findings, load);
    // A sentence has two at most: CPU, and what comes first besides.
    let cpu = leading.iter().position(|m| **m == Metric::CpuPerRequest);
    let other = leading.iter().position(|m| **m != Metric::CpuPerRequest);
    let mut shown: Vec<usize> = cpu.into_iter().chain(other).collect();
    shown.sort_unstable();
    let effects: Vec<&Effect> =
        shown.into_iter().filter_map(|i| effect(load, variant, *leading[i])).collect();
    let phrases: Vec<_> = effects.iter().map(|e| phrase(load, e)).collect();
    if phrases.is_empty() {
        return format!("{} has no results", called(findings, variant));
    }
    format!("{} {}{}", called(findings, variant), join(&phrases), aside(&effects))
}

/// `istio`, `ambient (Envoy in ztunnel's place)`: what another proxy costs is not taken for what ztunnel does.
fn called(findings: &Findings, variant: &str) -> String {
    let facts = findings.variants.iter().find(|facts| facts.name == variant);
    match facts.is_some_and(|facts| facts.envoy_for_ztunnel) {
        true => format!("{variant} (Envoy in ztunnel's place)"),
        false => variant.to_owned(),
    }
}

/// What an effect says, as a verb and what follows it.
fn phrase(load: &LoadFindings, effect: &Effect) -> (&'static str, String) {
    let scale = difference_scale(measured_scale(load, effect.metric), [effect]);
    let scale = apart(scale, effect.difference);
    let name = effect.metric.name();
    let by = scale.with_unit(effect.difference.value.abs());
    let percent = change(effect.ratio.value);
    match (is_clear(effect), effect.metric, effect.difference.value > 0.0) {
        (Clear::Within(bound), ..) => {
            let ends = signed_range(scale, effect.difference);
            ("leaves", format!("{name} within {} ({ends})", plain_share(bound)))
        }
        (Clear::No, ..) => ("changes", format!("{name} by {}", between(scale, effect.difference))),
        (Clear::Yes, Metric::Throughput, true) => {
            ("carries", format!("{percent} more{}", aside_of(effect)))
        }
        (Clear::Yes, Metric::Throughput, false) => {
            let percent = percent.trim_start_matches('−');
            ("carries", format!("{percent} less{}", aside_of(effect)))
        }
        (Clear::Yes, Metric::CpuPerRequest, more) => {
            let (verb, to) = if more { ("adds", "to") } else { ("takes", "off") };
            let ends = match ends(effect.ratio) {
                Some(_) => format!(", {}", size_range(effect.ratio)),
                None => String::new(),
            };
            (verb, format!("{by} of CPU {to} each request ({percent}{ends})"))
        }
        (Clear::Yes, _, true) => ("adds", format!("{by} to {name}{}", size(scale, effect))),
        (Clear::Yes, _, false) => ("takes", format!("{by} off {name}{}", size(scale, effect))),
    }
}

/// Whether an effect is clear, by its verdict or else by its interval.
enum Clear {
    Yes,
    No,
    /// It lies within this share of the baseline.
    Within(f64),
}

fn is_clear(effect: &Effect) -> Clear {
    match effect.verdict {
        Some(Verdict::Higher | Verdict::Lower) => Clear::Yes,
        Some(Verdict::NoDifference { bound }) => Clear::Within(bound),
        Some(Verdict::CannotTell { .. }) => Clear::No,
        // Without an interval there is only the figure.
        None if ends(effect.difference).is_none() || outside_zero(effect.difference) => Clear::Yes,
        None => Clear::No,
    }
}

/// `between −0.2 and +0.5 ms`: what is known where the verdict is that toll cannot tell.
fn between(scale: Scale, of: Estimate) -> String {
    match ends(of) {
        Some((low, high)) => {
            format!("between {} and {}", scale.signed(low), scale.with_sign_and_unit(high))
        }
        None => format!("{}, by one round only", scale.with_sign_and_unit(of.value)),
    }
}

fn signed_range(scale: Scale, of: Estimate) -> String {
    ends(of).map_or_else(
        || "no interval".into(),
        |(low, high)| range(&scale.signed(low), &scale.with_sign_and_unit(high)),
    )
}

/// ` (0.58 to 0.66)`: the interval of the difference's size.
fn size(scale: Scale, effect: &Effect) -> String {
    if ends(effect.difference).is_none() {
        return String::new();
    }
    let Estimate { value, low, high, .. } = effect.difference;
    let size = match value < 0.0 {
        true => Estimate { low: -high, high: -low, value: -value, ..effect.difference },
        false => effect.difference,
    };
    format!(" ({})", interval(scale, size))
}

/// ` (22 to 26 %)`.
fn aside_of(effect: &Effect) -> String {
    ends(effect.ratio).map_or_else(String::new, |_| format!(" ({})", size_range(effect.ratio)))
}

/// `60 to 63` for +60 to +63 %: behind a change its ends need neither sign nor unit, where both have the same sign.
fn size_range(ratio: Estimate) -> String {
    let size = |end: f64| {
        change(end).trim_start_matches(['+', '−']).trim_end_matches("\u{a0}%").to_owned()
    };
    match ends(ratio) {
        Some((low, high)) if low > 1.0 => range(&size(low), &size(high)),
        Some((low, high)) if high < 1.0 => range(&size(high), &size(low)),
        _ => change_range(ratio),
    }
}

/// A verb that two phrases share is said once.
fn join(phrases: &[(&'static str, String)]) -> String {
    let mut last = "";
    let said = phrases.iter().map(|(verb, object)| {
        let said = if *verb == last { object.clone() } else { format!("{verb} {object}") };
        last = verb;
        said
    });
    listed(&said.collect::<Vec<_>>())
}

/// ` (cannot tell p50; 6 more rounds would)`, or that one round has no interval.
fn aside(effects: &[&Effect]) -> String {
    if effects.iter().all(|e| e.difference.rounds < 2) {
        return " (one round, so no interval)".into();
    }
    let unclear: Vec<&&Effect> =
        effects.iter().filter(|e| matches!(e.verdict, Some(Verdict::CannotTell { .. }))).collect();
    let rounds = unclear.iter().filter_map(|e| match e.verdict {
        Some(Verdict::CannotTell { more_rounds }) => more_rounds,
        _ => None,
    });
    let rounds = rounds.max().map_or_else(String::new, |n| format!("; {} would", more(n)));
    let names: Vec<String> = unclear.iter().map(|e| e.metric.name().to_owned()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(" (cannot tell {}{rounds})", listed(&names))
}

/// `Against bypass, CPU per request changes from −26 % ±2 (none) to +10 % ±2 (gateway-sni), at 200 requests/s.`
fn of_many(findings: &Findings, load: &LoadFindings, variants: &[&str]) -> String {
    let at_load = at_load(findings, load);
    let metric = leading(findings, load).first().map_or(Metric::CpuPerRequest, |m| **m);
    let mut effects: Vec<&Effect> =
        variants.iter().filter_map(|variant| effect(load, variant, metric)).collect();
    effects.retain(|e| e.ratio.value.is_finite());
    effects.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    let (Some(least), Some(most)) = (effects.first(), effects.last()) else {
        return format!("No result for {} {at_load}.", metric_title(metric));
    };
    let said =
        |e: &Effect| format!("{} ({})", change_in_words(e.ratio), called(findings, &e.variant));
    format!(
        "Against {}, {} changes from {} to {}, {at_load}.",
        findings.baseline,
        metric_title(metric),
        said(least),
        said(most)
    )
}
