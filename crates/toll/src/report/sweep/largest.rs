//! The answer in figures: what each variant adds at the largest size, and what one takes against another.

use super::Sweep;
use super::words::{at_largest, quantity_of, rate_title, short_title, told};
use crate::analysis::findings::{Effect, LoadFindings, Metric, VariantFacts};
use crate::report::content::{in_first_order, section, value_of};
use crate::report::figures::Scale;
use crate::report::table::{Cell, Column, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::wording::{difference_scale, interval_title};

const METRICS: [Metric; 4] =
    [Metric::LatencyP50, Metric::LatencyP99, Metric::CpuPerRequest, Metric::Memory];

/// A table of the largest cells, a group a rate; none when nothing could be compared there.
pub(super) fn largest(sweep: &Sweep<'_>) -> Option<Section> {
    let loads = sweep.largest();
    let compared = || loads.iter().flat_map(|load| load.effects.iter().chain(&load.between));
    let first = compared().next()?;
    let text = format!(
        "Added to {} (and as a ratio), paired within blocks; below it the {}.",
        sweep.findings.baseline,
        interval_title(std::slice::from_ref(first))
    );
    let columns = in_first_order_of(compared());
    let groups: Vec<Group> = loads.iter().filter_map(|load| group(sweep, load, &columns)).collect();
    let heads: Vec<Column> = [words(""), figures(&sweep.findings.baseline)]
        .into_iter()
        .chain(columns.iter().map(|(variant, against)| figures(head(variant, *against))))
        .collect();
    let pieces = vec![
        Piece::List(sweep.findings.variants.iter().filter_map(who_played).collect()),
        Piece::Text(text),
        Piece::Table(Table { columns: heads, groups }),
    ];
    Some(section("largest", at_largest(sweep), pieces))
}

/// `ambient: a node proxy (Envoy in ztunnel's place) on each node, mTLS strict`: which proxy played the part.
fn who_played(variant: &VariantFacts) -> Option<Cell> {
    let said = || Cell::toned(format!("{}: {}", variant.name, variant.describes), Tone::Quiet);
    variant.skipped.is_none().then(said)
}

/// A variant and what it is held against, where that is not the baseline.
type Pair<'a> = (&'a str, Option<&'a str>);

fn in_first_order_of<'a>(effects: impl Iterator<Item = &'a Effect> + Clone) -> Vec<Pair<'a>> {
    let against = effects.clone().filter(|e| e.against.is_none());
    let variants = in_first_order(against.map(|e| e.variant.as_str()));
    let mut pairs: Vec<Pair<'_>> = variants.into_iter().map(|variant| (variant, None)).collect();
    for effect in effects.filter(|e| e.against.is_some()) {
        let pair = (effect.variant.as_str(), effect.against.as_deref());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

fn head(variant: &str, against: Option<&str>) -> String {
    match against {
        Some(against) => format!("{variant} against {against}"),
        None => format!("{variant} adds"),
    }
}

fn group(sweep: &Sweep<'_>, load: &LoadFindings, columns: &[Pair<'_>]) -> Option<Group> {
    let rows: Vec<Vec<Cell>> =
        METRICS.iter().flat_map(|metric| rows(sweep, load, *metric, columns)).collect();
    (!rows.is_empty()).then(|| Group { title: Some(rate_title(load)), rows })
}

/// A row of figures and below it one of their intervals; none when nothing was compared.
fn rows(
    sweep: &Sweep<'_>,
    load: &LoadFindings,
    metric: Metric,
    columns: &[Pair<'_>],
) -> Vec<Vec<Cell>> {
    let all = || load.effects.iter().chain(&load.between).filter(|e| e.metric == metric);
    if all().next().is_none() {
        return vec![];
    }
    let means = load.variants.iter().filter_map(|v| value_of(v, metric));
    let scale = Scale::of(quantity_of(metric), means);
    let differences = difference_scale(scale, all());
    let baseline = load.variants.iter().find(|v| v.variant == sweep.findings.baseline);
    let mean = baseline.and_then(|v| value_of(v, metric));
    let effect = |pair: &Pair<'_>| {
        let is_it = |e: &&Effect| (e.variant.as_str(), e.against.as_deref()) == *pair;
        all().find(is_it).map(|e| told(e, differences)).unwrap_or_default()
    };
    let mean = mean.map_or_else(Cell::default, |mean| scale.plain(mean).into());
    let mut figures: Vec<Cell> = vec![title(metric, scale).into(), mean];
    let mut intervals = vec![Cell::default(), Cell::default()];
    for [figure, interval] in columns.iter().map(effect) {
        figures.push(figure);
        intervals.push(interval);
    }
    vec![figures, intervals]
}

fn title(metric: Metric, scale: Scale) -> String {
    format!("{}, {}", short_title(metric), scale.unit())
}
