//! Turns findings into the sections and tables that every report shows. Chooses and orders; draws nothing.

use crate::analysis::findings::{
    Effect, Findings, LoadFindings, Metric, ProofSummary, TrialLine, VariantLoad, View,
};

use super::figures::{Quantity, Scale, ratio, rounded, share};
use super::hey;
use super::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use super::wording::{
    difference_scale, interval, interval_title, load_title, measured_scale, metric_title, verdict,
};

/// How much a report shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// What a terminal has room for.
    Brief,
    /// Everything.
    Full,
}

/// Rates further apart than this are not equal (METHOD.md rule 2).
const EQUAL_RATE_TOLERANCE: f64 = 0.02;
/// Claims that a brief report names before it only counts the rest.
const KEY_CLAIMS: usize = 3;
/// Words of the claims that sum the others up, on traversals and on a database's rows: they are named first.
const KEY_WORDS: [&str; 3] = ["crossed", "acknowledged", "written"];

/// What weakens the result: variants that did not run, warnings, trials that do not count.
pub(super) fn caveats(findings: &Findings) -> Section {
    let skipped = findings.variants.iter().filter_map(|v| {
        v.skipped
            .as_ref()
            .map(|why| Cell::toned(format!("{} did not run: {why}", v.name), Tone::Unknown))
    });
    let warnings = findings.warnings.iter().map(|w| Cell::toned(w, Tone::Unknown));
    let invalid = findings.trials.iter().filter_map(|t| {
        t.invalid
            .as_ref()
            .map(|why| Cell::toned(format!("{} does not count: {why}", trial_name(t)), Tone::Worse))
    });
    let mut entries: Vec<Cell> = skipped.chain(warnings).chain(invalid).collect();
    if entries.is_empty() {
        entries.push(Cell::toned("None: every variant ran and every trial counts.", Tone::Same));
    }
    section("caveats", "Caveats", vec![Piece::List(entries)])
}

fn trial_name(trial: &TrialLine) -> String {
    format!("Trial {} ({} under {}, block {})", trial.index, trial.variant, trial.load, trial.block)
}

/// What one load showed: latency and CPU per request, at equal rate or flat out.
pub(super) fn load(findings: &Findings, index: usize, detail: Detail) -> Section {
    let load = &findings.loads[index];
    let mut pieces = vec![Piece::Text(load.describes.clone())];
    if load.view == View::FlatOut {
        pieces.push(Piece::Text(
            "Each variant ran as fast as it could, so the rates differ: do not hold these figures against those at equal rate.".into(),
        ));
    }
    pieces.extend(
        effects_table(load, &findings.baseline, metrics(load.view, detail), detail)
            .map(Piece::Table),
    );
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
    section(format!("load-{}", index + 1), load_title(load), pieces)
}

fn metrics(view: View, detail: Detail) -> &'static [Metric] {
    use Metric::{
        ApplicationCpuPerRequest as AppCpu, CpuPerRequest as Cpu, LatencyMean as Mean,
        LatencyP50 as P50, LatencyP90 as P90, LatencyP95 as P95, LatencyP99 as P99, Throughput,
    };
    match (view, detail) {
        (View::EqualRate, Detail::Brief) => &[P50, P99, Cpu, AppCpu],
        (View::EqualRate, Detail::Full) => &[P50, P90, P95, P99, Mean, Cpu, AppCpu],
        (View::FlatOut | View::Users, Detail::Brief) => &[Throughput, P50, P99, Cpu],
        (View::FlatOut | View::Users, Detail::Full) => {
            &[Throughput, P50, P90, P95, P99, Mean, Cpu, AppCpu]
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
    (!rows.is_empty()).then_some(Group { title, rows })
}

fn effect_cells(effect: &Effect, scale: Scale, detail: Detail) -> Vec<Cell> {
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

/// Completed requests per second, of the slowest and of the fastest variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    low: f64,
    high: f64,
}

impl Rates {
    /// How far they are apart, as a share of the higher one.
    pub(super) fn apart(self) -> f64 {
        (self.high - self.low) / self.high
    }

    /// Whether the variants did the same amount of work a second (METHOD.md rule 2).
    pub(super) fn are_equal(self) -> bool {
        self.apart() <= EQUAL_RATE_TOLERANCE
    }
}

/// What the variants achieved; none when there are not two to compare.
pub(super) fn achieved_rates(load: &LoadFindings) -> Option<Rates> {
    let rates: Vec<f64> =
        load.variants.iter().filter_map(|v| value_of(v, Metric::Throughput)).collect();
    let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
    (rates.len() > 1 && high > 0.0).then_some(Rates { low, high })
}

/// At equal rate throughput is no effect but a check that the rates were equal.
fn rate_check(load: &LoadFindings) -> Option<Piece> {
    if load.view != View::EqualRate {
        return None;
    }
    let rates = achieved_rates(load)?;
    let Rates { low, high } = rates;
    // "within 0.0 %" would claim more than one decimal can show.
    let apart = share(rates.apart().max(0.001));
    let rate = Scale::of(Quantity::PerSecond, [high]);
    if rates.are_equal() {
        let rate = rate.with_unit(high);
        return Some(Piece::Text(format!("Check: all variants completed {rate}, within {apart}.")));
    }
    let from = rate.plain(low);
    let to = rate.with_unit(high);
    let text =
        format!("The rates were not equal: the variants completed {from} to {to}, {apart} apart.");
    Some(Piece::List(vec![Cell::toned(text, Tone::Worse)]))
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

/// Proof of path: how many trials are proven, and the claims behind it.
pub(super) fn proof(findings: &Findings, detail: Detail) -> Section {
    let text = "A trial counts only if the traffic provably took the path that its variant claims.";
    let mut pieces = vec![Piece::Text(text.into())];
    match detail {
        Detail::Brief => {
            pieces.push(Piece::List(findings.proofs.iter().flat_map(proof_lines).collect()));
        }
        Detail::Full if !findings.proofs.is_empty() => {
            let columns = vec![words("claim"), words("expected"), words("seen"), words("holds")];
            let groups = findings.proofs.iter().map(proof_group).collect();
            pieces.push(Piece::Table(Table { columns, groups }));
        }
        Detail::Full => {}
    }
    section("proof", "Proof of path", pieces)
}

fn proof_title(proof: &ProofSummary) -> String {
    format!("{}: {} of {} trials proven", proof.variant, proof.proven, proof.trials)
}

/// The claims that hold, those that sum others up first.
fn leading_claims(proof: &ProofSummary) -> Vec<&str> {
    let mut claims: Vec<&str> =
        proof.claims.iter().filter(|claim| claim.3).map(|claim| claim.0.as_str()).collect();
    let rank = |claim: &str| KEY_WORDS.iter().position(|word| claim.contains(word));
    claims.sort_by_key(|claim| rank(claim).unwrap_or(KEY_WORDS.len()));
    claims
}

/// One line for a variant: its leading claims, or those that failed.
fn proof_lines(proof: &ProofSummary) -> Vec<Cell> {
    let all_hold = proof.proven == proof.trials && proof.trials > 0;
    let failed: Vec<Cell> = proof
        .claims
        .iter()
        .filter(|(.., holds)| !holds)
        .map(|(claim, expected, seen, _)| {
            Cell::toned(
                format!("{}: {claim}: expected {expected}, saw {seen}", proof.variant),
                Tone::Worse,
            )
        })
        .collect();
    let mut names = leading_claims(proof);
    let rest = names.len().saturating_sub(KEY_CLAIMS);
    names.truncate(KEY_CLAIMS);
    let more =
        if rest > 0 { format!("; {rest} more, all in the HTML report") } else { String::new() };
    let claims =
        if names.is_empty() { String::new() } else { format!(": {}{more}", names.join("; ")) };
    let tone = if all_hold { Tone::Same } else { Tone::Worse };
    let mut lines = vec![Cell::toned(format!("{}{claims}", proof_title(proof)), tone)];
    lines.extend(failed);
    lines
}

fn proof_group(proof: &ProofSummary) -> Group {
    let rows = proof
        .claims
        .iter()
        .map(|(claim, expected, seen, holds)| {
            let holds = if *holds {
                Cell::toned("yes", Tone::Same)
            } else {
                Cell::toned("no", Tone::Worse)
            };
            vec![claim.into(), expected.into(), seen.into(), holds]
        })
        .collect();
    Group { title: Some(proof_title(proof)), rows }
}

/// Every trial of the run.
pub(super) fn trials(findings: &Findings) -> Section {
    let valid = findings.trials.iter().filter(|t| t.invalid.is_none()).count();
    let text = format!("{valid} of {} trials count.", findings.trials.len());
    let columns = vec![
        figures("trial"),
        figures("block"),
        words("variant"),
        words("load"),
        figures("steal"),
        figures("calibration"),
        words("counts"),
    ];
    let rows = findings.trials.iter().map(trial_row).collect();
    let table = Piece::Table(Table::new(columns, rows));
    section("trials", "Trials", vec![Piece::Text(text), table])
}

fn trial_row(trial: &TrialLine) -> Vec<Cell> {
    let counts = match &trial.invalid {
        None => Cell::toned("yes", Tone::Same),
        Some(why) => Cell::toned(format!("no: {why}"), Tone::Worse),
    };
    vec![
        trial.index.to_string().into(),
        trial.block.to_string().into(),
        Cell::from(&trial.variant),
        Cell::from(&trial.load),
        share(trial.steal).into(),
        ratio(trial.calibration).into(),
        counts,
    ]
}

/// The variants, the machine and the run.
pub(super) fn machine(findings: &Findings) -> Section {
    let rows = |pairs: Vec<(&String, &String)>| -> Vec<Vec<Cell>> {
        pairs.into_iter().map(|(label, value)| vec![label.into(), value.into()]).collect()
    };
    let variants = findings.variants.iter().map(|v| (&v.name, &v.describes)).collect();
    let manifest = findings.manifest.iter().map(|(label, value)| (label, value)).collect();
    let groups = vec![
        Group { title: Some("variants".into()), rows: rows(variants) },
        Group { title: Some("machine and run".into()), rows: rows(manifest) },
    ];
    let table = Table { columns: vec![words(""), words("")], groups };
    section("machine", "Machine and manifest", vec![Piece::Table(table)])
}

pub(super) fn section(
    id: impl Into<String>,
    title: impl Into<String>,
    pieces: Vec<Piece>,
) -> Section {
    Section { id: id.into(), title: title.into(), pieces }
}

/// What the words of the report mean.
pub(super) fn reading() -> Section {
    let rows = [
        (
            "block",
            "Every variant once, in shuffled order. The block is the unit: all differences are taken within one.",
        ),
        ("change", "Variant minus baseline, paired within blocks, then averaged."),
        (
            "interval",
            "Where the true change lies at the stated level, judged by how much the blocks differ. It comes from the blocks, never from single requests.",
        ),
        (
            "noise floor",
            "The change that the baseline shows against itself in this run. A change below it may be nothing but noise.",
        ),
        (
            "higher, lower",
            "The interval excludes zero and the change stands above the noise floor.",
        ),
        (
            "no difference larger than",
            "The whole interval lies within the bound that the study states.",
        ),
        ("cannot tell", "Neither of these. More blocks may narrow the interval."),
        (
            "at equal rate",
            "Requests arrive on the same schedule for every variant, whether or not earlier ones are done. Latency counts from the scheduled instant.",
        ),
        (
            "flat out",
            "A fixed number of connections, each sending its next request when the last one is answered. A slower variant then gets less load, so this view answers how much a variant carries, not what it costs.",
        ),
        (
            "CPU per request",
            "CPU time of application and data plane divided by completed requests. Plain CPU use misleads when rates differ; it is shown only as a view, with how far the rates are apart.",
        ),
        (
            "steal, calibration",
            "Signs of a disturbed machine: CPU time that the hypervisor gave to others, and how much slower a fixed piece of work ran than at its fastest.",
        ),
    ];
    let rows = rows.map(|(word, meaning)| vec![word.into(), meaning.into()]).to_vec();
    let table = Table::new(vec![words(""), words("")], rows);
    section("reading", "How to read this", vec![Piece::Table(table)])
}
