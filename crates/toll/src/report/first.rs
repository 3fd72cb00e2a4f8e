//! What the first screen holds, whichever way it is drawn: one table with a row a variant, two pictures and a few lines.
//! Chooses and words; lays nothing out.

use crate::analysis::findings::{
    Attribution, Capacity, Effect, Estimate, Findings, LoadFindings, Metric, Traffic, VariantFacts,
    Verdict, View,
};

use super::answer::{answer, at_load, compared, effect, leading};
use super::caveats;
use super::charts;
use super::document::{Cell, Tone};
use super::drawing::Chart;
use super::figures::ends;
use super::figures::{Quantity, Scale, change, clock, cores_more, half_width, rate, rounded};
use super::sections::payers;
use super::sections::record::{machine_line, rounds_in_words};
use super::sections::staircase::published_answer;
use super::subjects::scaling::growths;
use super::subjects::spans;
use super::subjects::staircase::Stairs;
use super::subjects::sweep::Sweep;
use super::subjects::traffic::{Cost, cost as cost_there, traffic};
use super::values::value_of;
use super::wording::{
    apart, change_in_words, change_range, difference_scale, measured_scale, outside_zero, primary,
    range, several, tone,
};

/// Variants whose cost stands in one line.
const MOST_COSTED: usize = 2;

/// All of it.
pub(super) struct Screen {
    pub(super) study: String,
    pub(super) question: String,
    pub(super) began: String,
    pub(super) machine: String,
    pub(super) answer: String,
    /// What stands proven, how much was measured, and how much weakens it; each in a few words.
    pub(super) badges: Vec<Cell>,
    /// None when nothing was measured.
    pub(super) sheet: Option<Sheet>,
    /// Latency, against the rate where it was swept, and who pays.
    pub(super) pictures: [Option<Chart>; 2],
    capacities: Option<String>,
    payers: Vec<(String, String)>,
    /// What all costs at a round rate, by variant.
    pub(super) cost: Option<(String, String)>,
    /// What a pod or a span costs, a line each; and the published figures beside the measured ones.
    pub(super) further: Vec<String>,
    pub(super) proven: String,
    /// What weakens the result, the most important first.
    pub(super) weak: Vec<String>,
    pub(super) extent: String,
    /// How many more rounds are worth a try.
    pub(super) more_rounds: u32,
}

impl Screen {
    pub(super) fn of(findings: &Findings) -> Self {
        Self {
            study: findings.study.clone(),
            question: findings.question.clone(),
            began: findings.extent.began.clone(),
            machine: machine_line(findings),
            answer: answer(findings),
            badges: badges(findings),
            sheet: sheet(findings),
            pictures: pictures(findings),
            capacities: capacities(findings),
            payers: who_pays(findings),
            cost: cost(findings).map(|said| (cost_title(findings), said)),
            further: further(findings),
            proven: proven(findings),
            weak: findings.caveats.iter().map(|c| caveats::sentence(c, &findings.run)).collect(),
            extent: extent(findings),
            more_rounds: more_rounds(findings),
        }
    }

    /// What is said below the table, with what it is about.
    pub(super) fn said(&self) -> Vec<(String, String)> {
        let mut said: Vec<(String, String)> = Vec::new();
        said.extend(self.capacities.clone().map(|text| ("capacity".into(), text)));
        said.extend(self.payers.iter().cloned());
        said.extend(self.cost.clone());
        said.extend(self.further.iter().map(|text| (String::new(), text.clone())));
        said
    }
}

fn pictures(findings: &Findings) -> [Option<Chart>; 2] {
    let Some(load) = primary(findings) else { return [None, None] };
    let curve = findings.curve.as_ref();
    let against_rate = curve.and_then(|curve| charts::latency_by_rate(curve, load));
    [against_rate.or_else(|| charts::latency(load)), charts::cpu(load)]
}

/// The table.
pub(super) struct Sheet {
    /// `at 540 requests/s`.
    pub(super) at_load: String,
    pub(super) columns: Vec<Head>,
    /// The baseline where the study has it.
    pub(super) rows: Vec<Row>,
    /// What the first column changes from one variant to the next, in the order of the rows; empty where no two
    /// variants follow each other.
    pub(super) steps: Vec<Option<Change>>,
    /// Throughput against the baseline when each goes as fast as it can, in the order of the rows.
    pub(super) throughput: Vec<Option<Change>>,
}

/// What heads a column.
pub(super) struct Head {
    /// `CPU per request`.
    pub(super) title: &'static str,
    /// `CPU`: for narrow columns.
    pub(super) brief: &'static str,
    pub(super) unit: &'static str,
    pub(super) is_capacity: bool,
}

/// A variant.
pub(super) struct Row {
    pub(super) name: String,
    /// What it is.
    pub(super) describes: String,
    pub(super) is_baseline: bool,
    /// Why it has no figures.
    pub(super) missing: Option<String>,
    /// One a column.
    pub(super) cells: Vec<Option<Figure>>,
}

/// What a variant showed of a metric.
pub(super) struct Figure {
    pub(super) value: String,
    pub(super) change: Option<Change>,
}

/// What changed against the baseline.
pub(super) struct Change {
    /// `+54 %`, of memory `+31.5`.
    pub(super) figure: String,
    /// `±2`; empty without an interval.
    pub(super) half: String,
    /// `+0.70 to +0.76`, in the unit of the column.
    pub(super) range: String,
    /// Value and ends of the interval where a drawing places them: a column has one scale.
    pub(super) at: f64,
    pub(super) ends: Option<(f64, f64)>,
    pub(super) tone: Tone,
}

fn sheet(findings: &Findings) -> Option<Sheet> {
    let load = primary(findings)?;
    let mut metrics: Vec<Metric> = leading(findings, load).into_iter().copied().collect();
    let leading_one = *metrics.first()?;
    let has_memory = load.variants.iter().any(|v| value_of(v, Metric::Memory).is_some());
    if has_memory && !metrics.contains(&Metric::Memory) {
        metrics.push(Metric::Memory);
    }
    let mut columns: Vec<Head> = metrics.iter().map(|metric| head(load, *metric)).collect();
    let has_capacity = !findings.capacities.is_empty();
    let carries = if flat_out(findings).is_some() { "flat out" } else { "capacity" };
    columns.extend(has_capacity.then_some(Head {
        title: carries,
        brief: carries,
        unit: "requests/s",
        is_capacity: true,
    }));
    let row = |variant: &VariantFacts| {
        let mut cells: Vec<Option<Figure>> =
            metrics.iter().map(|metric| cell(load, &variant.name, *metric)).collect();
        cells.extend(has_capacity.then(|| capacity(findings, &variant.name)));
        let ran = load.variants.iter().any(|v| v.variant == variant.name);
        let why = variant.skipped.as_ref().map(|why| format!("did not run: {why}"));
        Row {
            name: variant.name.clone(),
            describes: variant.describes.clone(),
            is_baseline: variant.name == findings.baseline,
            missing: why.or((!ran).then(|| "no slice that counts under this load".into())),
            cells,
        }
    };
    let rows: Vec<Row> = findings.variants.iter().map(row).collect();
    let steps = steps(findings, load, leading_one, &rows);
    let throughput = rows.iter().map(|row| throughput(findings, &row.name)).collect();
    Some(Sheet { at_load: at_load(findings, load), columns, rows, steps, throughput })
}

fn head(load: &LoadFindings, metric: Metric) -> Head {
    let unit = measured_scale(load, metric).unit();
    let title = metric.name();
    let brief = if metric == Metric::CpuPerRequest { "CPU" } else { title };
    Head { title, brief, unit, is_capacity: false }
}

fn cell(load: &LoadFindings, variant: &str, metric: Metric) -> Option<Figure> {
    let of = load.variants.iter().find(|v| v.variant == variant)?;
    let effect = effect(load, variant, metric);
    let shown = effect.map_or_else(|| value_of(of, metric), |effect| Some(effect.value));
    let value = measured_scale(load, metric).plain(shown?);
    let change = effect.map(|effect| change_of(load, effect));
    Some(Figure { value, change })
}

/// In percent; of memory in its unit, since a baseline of next to nothing would make thousands of percent.
fn change_of(load: &LoadFindings, effect: &Effect) -> Change {
    let scale = difference_scale(measured_scale(load, effect.metric), [effect]);
    let scale = apart(scale, effect.difference);
    let ends_of = ends(effect.difference);
    let in_unit = effect.metric == Metric::Memory;
    let half = match (ends_of, ends(effect.ratio)) {
        (Some((low, high)), _) if in_unit => {
            let half = (high - low) / 2.0;
            // A hundred times it has its first digit as the third.
            format!("±{}", scale.with_decimals_for([half * 100.0]).plain(half))
        }
        (_, Some((low, high))) if !in_unit => half_width(effect.ratio.value, (high - low) / 2.0),
        _ => String::new(),
    };
    let of = if in_unit { effect.difference } else { effect.ratio };
    let zero = if in_unit { 0.0 } else { 1.0 };
    Change {
        figure: match in_unit {
            true => {
                scale.with_decimals_for([effect.difference.value]).signed(effect.difference.value)
            }
            false => change(effect.ratio.value),
        },
        half,
        range: ends_of.map_or_else(
            || "no interval".into(),
            |(low, high)| range(&scale.signed(low), &scale.signed(high)),
        ),
        at: of.value - zero,
        ends: ends(of).map(|(low, high)| (low - zero, high - zero)),
        tone: tone(effect),
    }
}

/// A change that is known as a ratio only; more of it is good.
fn change_of_ratio(ratio: Estimate) -> Change {
    let minus_one = |v: f64| v - 1.0;
    let of = Estimate {
        value: ratio.value - 1.0,
        low: ratio.low - 1.0,
        high: ratio.high - 1.0,
        ..ratio
    };
    Change {
        figure: change(ratio.value),
        half: ends(ratio).map_or_else(String::new, |(l, h)| half_width(ratio.value, (h - l) / 2.0)),
        range: change_range(ratio),
        at: minus_one(ratio.value),
        ends: ends(ratio).map(|(l, h)| (minus_one(l), minus_one(h))),
        tone: match outside_zero(of) {
            false => Tone::Unknown,
            true if ratio.value > 1.0 => Tone::Better,
            true => Tone::Worse,
        },
    }
}

/// Each variant against the one before it; what follows the baseline has that effect already.
fn steps(
    findings: &Findings,
    load: &LoadFindings,
    metric: Metric,
    rows: &[Row],
) -> Vec<Option<Change>> {
    if load.between.is_empty() {
        return vec![];
    }
    let step = |at: usize| {
        let name = &rows[at].name;
        let between = load.between.iter().find(|e| e.variant == *name && e.metric == metric);
        let follows = at > 0 && rows[at - 1].name == findings.baseline;
        let first = follows.then(|| effect(load, name, metric)).flatten();
        between.or(first).map(|e| change_of(load, e))
    };
    (0..rows.len()).map(step).collect()
}

/// Over a staircase where there is one, else flat out.
fn throughput_ratio(findings: &Findings, variant: &str) -> Option<Estimate> {
    let stairs = findings.staircases.first();
    let of_stairs = stairs.and_then(|s| {
        s.differences.iter().find(|d| d.variant == variant && d.against == findings.baseline)
    });
    let of_load = || Some(effect(flat_out(findings)?, variant, Metric::Throughput)?.ratio);
    of_stairs.map(|d| d.throughput_ratio).or_else(of_load)
}

fn flat_out(findings: &Findings) -> Option<&LoadFindings> {
    findings.loads.iter().find(|load| load.view == View::FlatOut && load.cell.is_none())
}

fn throughput(findings: &Findings, variant: &str) -> Option<Change> {
    throughput_ratio(findings, variant).map(change_of_ratio)
}

/// Requests per second that a variant carries: under the study's closed loop, in the rounds of the change that stands
/// beside it; without one what the first round showed.
fn carried(findings: &Findings, variant: &str) -> Option<f64> {
    let of_load = flat_out(findings).and_then(|load| {
        let effects = || load.effects.iter().filter(|e| e.metric == Metric::Throughput);
        match variant == findings.baseline {
            true => effects().next().map(|effect| effect.baseline),
            false => effects().find(|e| e.variant == variant).map(|effect| effect.value),
        }
    });
    let first = findings.capacities.iter().find(|c| c.variant == variant);
    of_load.or(first.map(|capacity| capacity.per_s))
}

/// What a variant carries, and against the baseline.
fn capacity(findings: &Findings, variant: &str) -> Option<Figure> {
    let value = carried(findings, variant)?;
    let by_figures = || {
        let ratio = value / carried(findings, &findings.baseline)?;
        let of = Estimate { value: ratio, low: ratio, high: ratio, level: 0.95, rounds: 1 };
        Some(Change { range: String::new(), tone: Tone::Neutral, ..change_of_ratio(of) })
    };
    let change = (variant != findings.baseline)
        .then(|| throughput(findings, variant).or_else(by_figures))
        .flatten();
    Some(Figure { value: rounded(value), change })
}

/// `original 1,780 requests/s, istio 1,120 (−37 % ±2)`; none when no rate refers to it.
fn capacities(findings: &Findings) -> Option<String> {
    let said = |(at, c): (usize, &Capacity)| {
        let unit = if at == 0 { "\u{a0}requests/s" } else { "" };
        let figure = capacity(findings, &c.variant)?;
        let change = figure.change.map_or_else(String::new, |c| format!(" ({})", with_half(&c)));
        Some(format!("{} {}{unit}{change}", c.variant, figure.value))
    };
    let said: Vec<String> = findings.capacities.iter().enumerate().filter_map(said).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// `−37 % ±2`.
pub(super) fn with_half(change: &Change) -> String {
    match change.half.as_str() {
        "" => change.figure.clone(),
        half => format!("{}\u{a0}{half}", change.figure),
    }
}

/// Who pays, a line a variant; of many the one that changes most.
fn who_pays(findings: &Findings) -> Vec<(String, String)> {
    let Some(load) = primary(findings) else { return vec![] };
    let is_one = compared(findings, load).len() == 1;
    let costed = costed(findings, load);
    let of = costed.iter().filter_map(|name| load.attribution.iter().find(|a| a.variant == *name));
    let said = |a: &Attribution| {
        let of_whom = if is_one { String::new() } else { format!(" for {}", a.variant) };
        (format!("who pays{of_whom}"), payers::sentence(a))
    };
    of.map(said).collect()
}

/// The variants whose cost is shown: all if they are few, else the one that costs most.
fn costed<'a>(findings: &'a Findings, load: &LoadFindings) -> Vec<&'a str> {
    let all = compared(findings, load);
    if all.len() <= MOST_COSTED {
        return all;
    }
    let cost = |name: &&str| {
        effect(load, name, Metric::CpuPerRequest).map_or(f64::MIN, |e| e.difference.value)
    };
    all.into_iter().max_by(|a, b| cost(a).total_cmp(&cost(b))).into_iter().collect()
}

/// What stands before [`cost`]: `at 1,000 requests/s`, `at 2,000 requests/s in 12 pods`.
fn cost_title(findings: &Findings) -> String {
    let Traffic { per_s, pods } = traffic(findings);
    let pods = pods.map_or_else(String::new, |(there, _)| format!(" in {}", several(there, "pod")));
    format!("at {}{pods}", rate(per_s))
}

/// `+0.76 cores (0.75 to 0.78), +31 MiB`: what the data plane and all else cost at that rate, by variant.
fn cost(findings: &Findings) -> Option<String> {
    let load = primary(findings)?;
    let costed = costed(findings, load);
    let is_one = compared(findings, load).len() == 1;
    let said: Vec<String> = costed
        .iter()
        .filter_map(|name| {
            let said = cost_of(findings, load, name)?;
            Some(if is_one { said } else { format!("{name} {said}") })
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn cost_of(findings: &Findings, load: &LoadFindings, variant: &str) -> Option<String> {
    let Cost { cores, memory } = cost_there(load, variant, traffic(findings))?;
    let memory = memory.map_or_else(String::new, |bytes| {
        let scale = Scale::of(Quantity::BinaryBytes, [bytes.value]);
        format!(", {}", scale.with_sign_and_unit(bytes.value))
    });
    Some(format!("{}{memory}", cores_more(cores)))
}

fn badges(findings: &Findings) -> Vec<Cell> {
    let (proven, all) = findings.extent.proven;
    let tone = if proven == all { Tone::Better } else { Tone::Worse };
    let mut badges = vec![
        Cell::toned(format!("{} proven", paths(findings)), tone),
        Cell::from(extent(findings)),
    ];
    badges.extend(against_itself(findings).map(|(of, ratio)| {
        let (change, range) = (change(ratio.value), change_range(ratio));
        Cell::from(format!("baseline against itself: {of} {change} ({range})"))
    }));
    let weak = findings.caveats.len();
    badges.push(match weak {
        0 => Cell::from("nothing weakens this"),
        1 => Cell::toned("1 thing to know", Tone::Unknown),
        _ => Cell::toned(format!("{weak} things to know"), Tone::Unknown),
    });
    badges
}

fn further(findings: &Findings) -> Vec<String> {
    let mut lines = spans::prices(findings);
    lines.extend(Sweep::of(findings).iter().flat_map(growths));
    let published = published_answer(&Stairs::all(findings));
    lines.extend((!published.is_empty()).then(|| format!("published {published}")));
    lines
}

/// `30 of 30 paths proven`.
fn paths(findings: &Findings) -> String {
    let (proven, all) = findings.extent.proven;
    format!("{proven} of {all} paths")
}

/// The baseline's second arm against its first: of what, and as a ratio; CPU per request where there is such.
fn against_itself(findings: &Findings) -> Option<(&'static str, Estimate)> {
    let load = primary(findings)?;
    let leading = leading(findings, load);
    let metrics = std::iter::once(Metric::CpuPerRequest).chain(leading.into_iter().copied());
    let of = |metric: Metric| load.again.iter().find(|e| e.metric == metric);
    let again = metrics.into_iter().find_map(of).filter(|e| e.ratio.value.is_finite())?;
    let of = match again.metric {
        Metric::CpuPerRequest => "CPU",
        other => other.name(),
    };
    Some((of, again.ratio))
}

/// `30 of 30 paths; baseline against itself −0.1 % ±0.7 of CPU`.
fn proven(findings: &Findings) -> String {
    let again = against_itself(findings)
        .map(|(of, ratio)| format!("; baseline against itself {} of {of}", change_in_words(ratio)));
    format!("{}{}", paths(findings), again.unwrap_or_default())
}

/// `10 rounds in 5:02`.
fn extent(findings: &Findings) -> String {
    let extent = &findings.extent;
    let planned = extent.planned.filter(|planned| *planned > extent.rounds);
    let of = planned.map_or_else(String::new, |planned| format!(" of {planned}"));
    let rounds = rounds_in_words(extent.rounds);
    format!("{rounds}{of} in {}", clock(extent.wall_s))
}

/// As many as the verdicts ask for, else those left of the plan or as many again.
fn more_rounds(findings: &Findings) -> u32 {
    let effects = primary(findings).map(|load| load.effects.as_slice()).unwrap_or_default();
    let asked = effects.iter().filter_map(|e| match e.verdict {
        Some(Verdict::CannotTell { more_rounds }) => more_rounds,
        _ => None,
    });
    let rounds = findings.extent.rounds;
    let left = findings.extent.planned.map_or(0, |planned| planned.saturating_sub(rounds));
    let as_many_again = if left > 0 { left } else { rounds.max(1) };
    asked.max().unwrap_or(as_many_again as u32)
}
