//! Turns findings into the sections that every study has: one per load, the headline metrics in full, caveats.
//! Chooses and orders; draws nothing.

use crate::analysis::findings::{
    Caveat, CaveatKind, Effect, Estimate, Findings, LoadFindings, Metric, Scatter, View,
};

use super::rates::rate_check;
use super::regimes;
use crate::report::caveats::{kind_title, sentence};
use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::drawing::Chart;
use crate::report::figures::ends;
use crate::report::figures::{Scale, change};
use crate::report::loads::describe;
use crate::report::values::{in_first_order, value_of};
use crate::report::wording::{
    capital, change_in_words, change_range, difference_scale, interval, interval_title, is_primary,
    load_title, measured_scale, metric_title, primary, range, tone, verdict,
};

/// Variants that a line of answer names at most.
const MOST_ANSWERED: usize = 3;

/// Whatever weakens the result, by what it is about.
pub(in crate::report) fn caveats(findings: &Findings) -> Section {
    let said = |caveat: &Caveat| sentence(caveat, &findings.run);
    let mut kinds: Vec<CaveatKind> = findings.caveats.iter().map(Caveat::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut pieces = Vec::new();
    for kind in kinds {
        let of: Vec<&Caveat> = findings.caveats.iter().filter(|c| c.kind() == kind).collect();
        pieces.push(Piece::Heading(format!("{} ({})", kind_title(kind), of.len())));
        let entries = of.iter().map(|c| Cell::toned(capital(&said(c)), Tone::Unknown));
        pieces.push(Piece::List(entries.collect()));
    }
    if pieces.is_empty() {
        let nothing = "Nothing: every variant ran and every slice counts.";
        pieces.push(Piece::List(vec![Cell::toned(nothing, Tone::Same)]));
    }
    let answer = match findings.caveats.as_slice() {
        [] => "nothing".into(),
        [only] => said(only),
        [first, rest @ ..] => format!("{}; {} more", said(first), rest.len()),
    };
    Section::new("caveats", "Things to know", pieces).saying(answer)
}

/// What one load showed: all figures, one row a metric; with `further` charts behind its own.
pub(in crate::report) fn load(findings: &Findings, index: usize, further: Vec<Chart>) -> Section {
    let load = &findings.loads[index];
    let mut pieces = vec![Piece::Text(describe(findings, load))];
    pieces.extend(beware(load.view).map(|text| Piece::Text(text.into())));
    pieces.extend(regimes::pieces(load));
    pieces.extend(all_figures(load, &findings.baseline).map(Piece::Table));
    pieces.extend(between(load).map(Piece::Table));
    pieces.extend(rate_check(load));
    let absent = absent(findings, load)
        .map(|v| Cell::toned(format!("{v} has no slice that counts under this load"), Tone::Worse));
    let absent: Vec<Cell> = absent.collect();
    let charts = drawn(findings, load).into_iter().chain(further).collect();
    pieces.extend((!absent.is_empty()).then_some(Piece::List(absent)));
    Section::new(format!("load-{}", index + 1), load_title(load), pieces)
        .showing(charts)
        .saying(answer(findings, load))
}

/// What changed, and latency unless the first screen has it.
fn drawn(findings: &Findings, load: &LoadFindings) -> Vec<Chart> {
    let is_drawn = is_primary(findings, load) && findings.curve.is_none();
    let latency = (!is_drawn).then(|| charts::latency(load)).flatten();
    charts::effects(load, leading(load.view)).into_iter().chain(latency).collect()
}

/// What the effects of a view are drawn of.
fn leading(view: View) -> &'static [Metric] {
    use Metric::{CpuPerRequest, LatencyP50, LatencyP90, LatencyP99, Throughput};
    match view {
        View::EqualRate => &[LatencyP50, LatencyP90, LatencyP99, CpuPerRequest],
        View::FlatOut => &[Throughput, LatencyP50, LatencyP99, CpuPerRequest],
        View::Users => &[Throughput, LatencyP50, LatencyP90, CpuPerRequest],
    }
}

/// Why the figures of a view do not stand beside those at equal rate.
fn beware(view: View) -> Option<&'static str> {
    match view {
        View::EqualRate => None,
        View::FlatOut => Some(
            "Each variant ran as fast as it could, so the rates differ: do not hold these figures against those at equal rate.",
        ),
        View::Users => Some(
            "Users pause between their requests and wait for the answers: a slower variant is asked less, so its throughput mirrors its latency. Do not hold these figures against those at equal rate.",
        ),
    }
}

/// `CPU per request: istio +61 % ±1.5`: the change that the view is about, of the first variants.
fn answer(findings: &Findings, load: &LoadFindings) -> String {
    let about = match load.view {
        View::EqualRate => Metric::CpuPerRequest,
        View::FlatOut | View::Users => Metric::Throughput,
    };
    let of: Vec<&Effect> = load.effects.iter().filter(|e| e.metric == about).collect();
    let said = |e: &&Effect| format!("{} {}", e.variant, change_in_words(e.ratio));
    let said: Vec<String> = of.iter().take(MOST_ANSWERED).map(said).collect();
    if said.is_empty() {
        return describe(findings, load);
    }
    let more = of.len().saturating_sub(MOST_ANSWERED);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    format!("{}: {}{more}", about.name(), said.join(", "))
}

/// What a view compares; throughput is no effect at an equal rate.
const METRICS: [Metric; 10] = [
    Metric::Throughput,
    Metric::LatencyP50,
    Metric::LatencyP90,
    Metric::LatencyP95,
    Metric::LatencyP99,
    Metric::LatencyMean,
    Metric::CpuPerRequest,
    Metric::MeshCpuPerRequest,
    Metric::ApplicationCpuPerRequest,
    Metric::Memory,
];

/// A row a metric with one of intervals below, a column a variant; none when nothing was measured.
fn all_figures(load: &LoadFindings, baseline: &str) -> Option<Table> {
    let shown =
        METRICS.iter().filter(|m| load.view != View::EqualRate || **m != Metric::Throughput);
    let rows: Vec<Vec<Cell>> = shown.flat_map(|metric| metric_rows(load, *metric)).collect();
    let heads = load.variants.iter().map(|v| match v.variant == baseline {
        true => figures(format!("{} (baseline)", v.variant)),
        false => figures(&v.variant),
    });
    let columns = std::iter::once(words("")).chain(heads).collect();
    (!rows.is_empty()).then_some(Table::new(columns, rows))
}

fn metric_rows(load: &LoadFindings, metric: Metric) -> Vec<Vec<Cell>> {
    if load.variants.iter().all(|v| value_of(v, metric).is_none()) {
        return vec![];
    }
    let scale = measured_scale(load, metric);
    let effects = || load.effects.iter().filter(|e| e.metric == metric);
    let differences = difference_scale(scale, effects());
    let title = format!("{}, {}", metric_title(metric), scale.unit());
    let (mut values, mut intervals): (Vec<Cell>, Vec<Cell>) =
        (vec![title.into()], vec![Cell::default()]);
    for variant in &load.variants {
        let effect = effects().find(|e| e.variant == variant.variant);
        // With the change, that of the rounds which both have.
        let shown = effect.map_or_else(|| value_of(variant, metric), |effect| Some(effect.value));
        let value = shown.map_or_else(|| "–".into(), |value| scale.plain(value));
        let (value, below) = match effect {
            Some(e) => {
                // Of next to nothing a change in percent says nothing.
                let by = match metric {
                    Metric::Memory => differences.signed(e.difference.value),
                    _ => change(e.ratio.value),
                };
                let below = signed_interval(differences, e.difference);
                (Cell::toned(format!("{value} ({by})"), tone(e)), below)
            }
            None => (value.into(), String::new()),
        };
        values.push(value);
        intervals.push(Cell::toned(below, Tone::Quiet));
    }
    vec![values, intervals]
}

/// `+0.58 to +0.66`: a change has a sign at both ends.
fn signed_interval(scale: Scale, of: Estimate) -> String {
    ends(of).map_or_else(
        || "no interval".into(),
        |(low, high)| range(&scale.signed(low), &scale.signed(high)),
    )
}

/// Each variant against the one before it, where neither is the baseline; a row a pair and headline kind of metric.
fn between(load: &LoadFindings) -> Option<Table> {
    let shown = [Metric::LatencyP50, Metric::LatencyP99, Metric::CpuPerRequest, Metric::Memory];
    let row = |e: &Effect| {
        let scale = difference_scale(measured_scale(load, e.metric), [e]);
        let title = format!("{}, {}", metric_title(e.metric), scale.unit());
        let cells = [scale.signed(e.difference.value), interval(scale, e.difference)];
        let ratio = Cell::toned(change_in_words(e.ratio), tone(e));
        std::iter::once(title).chain(cells).map(Cell::from).chain([ratio]).collect()
    };
    let pair = |e: &Effect| format!("{} against {}", e.variant, e.against.as_deref().unwrap_or(""));
    let pairs: Vec<String> = load.between.iter().map(pair).collect();
    let group = |name: &str| Group {
        title: Some(name.into()),
        rows: load
            .between
            .iter()
            .filter(|e| pair(e) == name && shown.contains(&e.metric))
            .map(row)
            .collect(),
    };
    let groups: Vec<Group> =
        in_first_order(pairs.iter().map(String::as_str)).into_iter().map(group).collect();
    let columns =
        vec![words(""), figures("change"), figures(interval_title(&load.between)), figures("in %")];
    (!groups.is_empty()).then_some(Table { columns, groups })
}

/// The headline metrics with all that tells how sure they are; none without an effect.
pub(in crate::report) fn headline(findings: &Findings) -> Option<Section> {
    let load = primary(findings)?;
    let of = |metric: &Metric| {
        let metric = *metric;
        load.effects.iter().filter(move |e| e.metric == metric)
    };
    let groups: Vec<Group> = findings
        .headline
        .iter()
        .map(|metric| Group {
            title: Some(metric_title(*metric).into()),
            rows: of(metric).map(headline_row).collect(),
        })
        .filter(|group| !group.rows.is_empty())
        .collect();
    let effects: Vec<&Effect> = findings.headline.iter().flat_map(of).collect();
    let (proven, all) =
        (effects.iter().filter(|e| tone(e) != Tone::Unknown).count(), effects.len());
    let columns = vec![
        words(""),
        figures("change"),
        figures(interval_title(&load.effects)),
        figures("trimmed mean"),
        figures("with excused"),
        figures("rounds"),
        words("verdict"),
    ];
    let text = "A verdict is given for these metrics only, corrected for their number. The trimmed mean over cycles leaves the extreme ones out; beside it the change with the cycles that were excused for a disturbance of the machine.";
    let mut pieces = vec![Piece::Text(text.into())];
    let is_empty = groups.is_empty();
    pieces.push(Piece::Table(Table { columns, groups }));
    let scatters: Vec<Cell> = effects.iter().filter_map(|e| scatter(e)).collect();
    pieces.extend((!scatters.is_empty()).then_some(Piece::List(scatters)));
    let section = Section::new("headline", "How sure the headline figures are", pieces);
    (!is_empty).then(|| section.saying(format!("{proven} of {all} effects are clear")))
}

fn headline_row(effect: &Effect) -> Vec<Cell> {
    let trimmed = effect.trimmed_ratio.map_or_else(Cell::absent, |ratio| change(ratio).into());
    let with_excused =
        effect.unexcused_ratio.map_or_else(Cell::absent, |ratio| change_in_words(ratio).into());
    vec![
        effect.variant.as_str().into(),
        Cell::toned(change(effect.ratio.value), tone(effect)),
        change_range(effect.ratio).into(),
        trimmed,
        with_excused,
        effect.ratio.rounds.to_string().into(),
        verdict(effect),
    ]
}

/// `CPU per request of istio: most of the spread lies between starts, so more rounds would help, not longer ones`.
fn scatter(effect: &Effect) -> Option<Cell> {
    let Scatter { share_of_starts, rounds_help_more, .. } = effect.scatter?;
    let of = format!("{} of {}", metric_title(effect.metric), effect.variant);
    let place = if share_of_starts > 0.5 {
        "most of the spread lies between starts"
    } else {
        "most of the spread lies from cycle to cycle"
    };
    let help = if rounds_help_more {
        "more rounds would help, not longer ones"
    } else {
        "longer rounds would help as much as more of them"
    };
    Some(Cell::toned(format!("{of}: {place}; {help}"), Tone::Quiet))
}

/// Variants that ran, but without a slice that counts under this load.
fn absent<'a>(findings: &'a Findings, load: &'a LoadFindings) -> impl Iterator<Item = &'a str> {
    let ran = findings.variants.iter().filter(|v| v.skipped.is_none()).map(|v| v.name.as_str());
    ran.filter(|name| load.variants.iter().all(|v| v.variant != *name))
}
