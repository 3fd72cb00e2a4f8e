//! Turns findings into the sections and tables that every report shows. Chooses and orders; draws nothing.

use crate::analysis::findings::{
    Effect, Findings, LoadFindings, Metric, TrialLine, VariantLoad, View,
};

use super::answers::traces;
use super::figures::{Scale, ratio, rounded};
use super::rates::rate_check;
use super::staircase::against_the_case_before;
use super::table::{Cell, Column, Group, Piece, Section, Table, Tone, figures, words};
use super::wording::{
    difference_scale, interval, interval_title, load_title, measured_scale, metric_title, verdict,
};
use super::{hey, k6, regimes};

/// More trials than this that do not count are told by what they failed in; a full report lists all of them.
const MOST_INVALID: usize = 5;

/// How much a report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// What a terminal has room for.
    Brief,
    /// Everything.
    Full,
}

/// What weakens the result: variants that did not run, warnings, trials that do not count.
pub(super) fn caveats(findings: &Findings) -> Section {
    let skipped = findings.variants.iter().filter_map(|v| {
        v.skipped
            .as_ref()
            .map(|why| Cell::toned(format!("{} did not run: {why}", v.name), Tone::Unknown))
    });
    let warnings = findings.warnings.iter().map(|w| Cell::toned(w, Tone::Unknown));
    let invalid = invalid(findings).into_iter().map(|said| Cell::toned(said, Tone::Worse));
    let mut entries: Vec<Cell> = skipped.chain(warnings).chain(invalid).collect();
    if entries.is_empty() {
        entries.push(Cell::toned("None: every variant ran and every trial counts.", Tone::Same));
    }
    section("caveats", "Caveats", vec![Piece::List(entries)])
}

/// Trials that do not count, with their reasons: each, or of many the first that failed in each way.
fn invalid(findings: &Findings) -> Vec<String> {
    let invalid = findings.trials.iter().filter_map(|t| Some((t, t.invalid.as_deref()?)));
    let invalid: Vec<(&TrialLine, &str)> = invalid.collect();
    let said = |(t, why): &(&TrialLine, &str)| format!("{} does not count: {why}", trial_name(t));
    if invalid.len() <= MOST_INVALID {
        return invalid.iter().map(said).collect();
    }
    let check = |why: &'_ str| why.split(':').next().unwrap_or(why).to_owned();
    let checks: Vec<String> = invalid.iter().map(|(_, why)| check(why)).collect();
    let first = |name: &str| {
        let alike: Vec<_> = invalid.iter().filter(|(_, why)| check(why) == name).collect();
        match alike.as_slice() {
            [only] => said(only),
            several => format!("{}; {} more for {name}", said(several[0]), several.len() - 1),
        }
    };
    in_first_order(checks.iter().map(String::as_str)).into_iter().map(first).collect()
}

fn trial_name(trial: &TrialLine) -> String {
    format!("Trial {} ({} under {}, block {})", trial.index, trial.variant, trial.load, trial.block)
}

/// What one load showed: latency and CPU per request, at equal rate or flat out.
pub(super) fn load(findings: &Findings, index: usize, detail: Detail) -> Section {
    let load = &findings.loads[index];
    let mut pieces = vec![Piece::Text(load.describes.clone())];
    pieces.extend(beware(load.view).map(|text| Piece::Text(text.into())));
    pieces.extend(regimes::pieces(load, detail));
    let traced = load.effects.iter().any(|e| traces(findings, &e.variant));
    pieces.extend(
        effects_table(load, &findings.baseline, metrics(load.view, detail, traced), detail)
            .map(Piece::Table),
    );
    if load.view == View::EqualRate && !findings.staircases.is_empty() {
        pieces.extend(against_the_case_before(load));
    }
    if index == 0 {
        pieces.push(Piece::Text(
            "Changes and ratios are paired within blocks. A ratio is the geometric mean of the blocks' ratios, so it can differ from the ratio of the means.".into(),
        ));
    }
    pieces.extend(rate_check(load));
    pieces.extend(absent(findings, load).map(|v| {
        Piece::List(vec![Cell::toned(
            format!("{v} has no valid trial under this load"),
            Tone::Worse,
        )])
    }));
    if load.view == View::FlatOut {
        pieces.extend(knees(findings));
        pieces.extend(hey::pieces(load));
    }
    if load.view == View::Users {
        pieces.extend(k6::pieces(load));
    }
    section(format!("load-{}", index + 1), load_title(load), pieces)
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

/// What a view compares. Of a tracer p90 is asked; all its CPU is the application's.
fn metrics(view: View, detail: Detail, traced: bool) -> &'static [Metric] {
    use Metric::{
        ApplicationCpuPerRequest as AppCpu, CpuPerRequest as Cpu, LatencyMean as Mean,
        LatencyP50 as P50, LatencyP90 as P90, LatencyP95 as P95, LatencyP99 as P99,
        MeshCpuPerRequest as MeshCpu, Throughput,
    };
    match (view, detail) {
        (View::EqualRate, Detail::Brief) if traced => &[Cpu, P50, P90, P99],
        (View::EqualRate, Detail::Full) if traced => &[Cpu, P50, P90, P95, P99, Mean],
        (View::EqualRate, Detail::Brief) => &[P50, P99, Cpu, MeshCpu, AppCpu],
        (View::EqualRate, Detail::Full) => &[P50, P90, P95, P99, Mean, Cpu, MeshCpu, AppCpu],
        (View::FlatOut, Detail::Brief) => &[Throughput, P50, P99, Cpu],
        (View::Users, Detail::Brief) => &[Throughput, P50, P90, Cpu],
        (View::Users, Detail::Full) if traced => &[Throughput, P50, P90, P95, P99, Mean, Cpu],
        (View::FlatOut | View::Users, Detail::Full) => {
            &[Throughput, P50, P90, P95, P99, Mean, Cpu, MeshCpu, AppCpu]
        }
    }
}

/// One group a metric: the baseline's value, then each variant's with what it changed.
pub(super) fn effects_table(
    load: &LoadFindings,
    baseline: &str,
    metrics: &[Metric],
    detail: Detail,
) -> Option<Table> {
    let groups: Vec<Group> =
        metrics.iter().filter_map(|m| metric_group(load, baseline, *m, detail)).collect();
    let mut columns = vec![
        words(""),
        figures("mean"),
        figures("change"),
        figures(interval_title(&load.effects)),
        figures("ratio"),
    ];
    if detail == Detail::Full {
        columns.extend([figures("noise floor"), figures("blocks")]);
    }
    columns.push(words("verdict"));
    (!groups.is_empty()).then_some(Table { columns, groups })
}

fn metric_group(
    load: &LoadFindings,
    baseline: &str,
    metric: Metric,
    detail: Detail,
) -> Option<Group> {
    let measured: Vec<(&VariantLoad, f64)> =
        load.variants.iter().filter_map(|v| Some((v, value_of(v, metric)?))).collect();
    let effects: Vec<&Effect> = load.effects.iter().filter(|e| e.metric == metric).collect();
    let scale = measured_scale(load, metric);
    let differences = difference_scale(scale, effects.iter().copied());
    let rows: Vec<Vec<Cell>> = measured
        .iter()
        .map(|(v, value)| {
            let mut row = vec![Cell::from(&v.variant), Cell::from(scale.plain(*value))];
            match effects.iter().find(|e| e.variant == v.variant) {
                Some(effect) => row.extend(effect_cells(effect, differences, detail)),
                None => row.extend(no_effect_cells(v.variant == baseline, detail)),
            }
            row
        })
        .collect();
    let title = Some(format!("{}, {}", metric_title(metric), scale.unit()));
    // What only one arm has cannot be compared.
    let compares = metric != Metric::MeshCpuPerRequest || !effects.is_empty();
    (!rows.is_empty() && compares).then_some(Group { title, rows })
}

/// Over a name and the brief [`effect_cells`].
pub(super) fn effect_columns(effects: &[Effect]) -> Vec<Column> {
    vec![
        words(""),
        figures("change"),
        figures(interval_title(effects)),
        figures("ratio"),
        words("verdict"),
    ]
}

pub(super) fn effect_cells(effect: &Effect, scale: Scale, detail: Detail) -> Vec<Cell> {
    let mut cells = vec![
        scale.signed(effect.difference.value).into(),
        interval(scale, effect.difference).into(),
        ratio(effect.ratio.value).into(),
    ];
    if detail == Detail::Full {
        cells.push(effect.noise_floor.map_or(Cell::default(), |f| scale.plain(f).into()));
        cells.push(effect.difference.blocks.to_string().into());
    }
    cells.push(verdict(effect, scale));
    cells
}

fn no_effect_cells(is_baseline: bool, detail: Detail) -> Vec<Cell> {
    let figures = if detail == Detail::Full { 5 } else { 3 };
    let said = if is_baseline { "baseline" } else { "not paired with the baseline" };
    let mut cells = vec![Cell::default(); figures];
    cells.push(Cell::toned(said, Tone::Quiet));
    cells
}

/// Mean over blocks of `metric`, when the variant has it.
pub(super) fn value_of(variant: &VariantLoad, metric: Metric) -> Option<f64> {
    variant.metrics.iter().find(|(m, _)| *m == metric).map(|(_, e)| e.value)
}

/// Variants that ran, but not once validly under this load.
fn absent<'a>(findings: &'a Findings, load: &'a LoadFindings) -> impl Iterator<Item = &'a str> {
    let ran = findings.variants.iter().filter(|v| v.skipped.is_none()).map(|v| v.name.as_str());
    ran.filter(|name| load.variants.iter().all(|v| v.variant != *name))
}

fn knees(findings: &Findings) -> Option<Piece> {
    let knees: Vec<String> = findings
        .knees
        .iter()
        .map(|k| format!("{} {}/s", k.variant, rounded(k.rate_per_s)))
        .collect();
    let text = format!("Knee, the highest rate carried without a queue: {}.", knees.join(", "));
    (!knees.is_empty()).then_some(Piece::Text(text))
}

/// Each name once, where it came first.
pub(super) fn in_first_order<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

pub(super) fn section(
    id: impl Into<String>,
    title: impl Into<String>,
    pieces: Vec<Piece>,
) -> Section {
    Section { id: id.into(), title: title.into(), pieces }
}
