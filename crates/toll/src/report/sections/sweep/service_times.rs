//! Service time against the rate: what of the time at low rates is the machine waking up, in every variant alike.

use super::words::below;
use crate::analysis::findings::{Estimate, ServiceTimeCurve, ServiceTimes};
use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::ends;
use crate::report::figures::{Quantity, Scale, verbatim};
use crate::report::subjects::sweep::Sweep;
use crate::report::wording::{interval, several};

/// Service time by rate; none where no size had several rates.
pub(super) fn service_times(sweep: &Sweep<'_>) -> Option<Section> {
    let widest = widest(sweep)?;
    let text = "Median, from sending to the answer. At low rates a request has to wake what sleeps: what falls with the rate in the baseline too is no cost of another variant.";
    let mut pieces = vec![Piece::Text(text.into())];
    pieces.push(Piece::List(verdicts(sweep, widest)));
    let all = &sweep.findings.service_times;
    let columns = all.iter().flat_map(|t| t.variants.iter().map(|c| c.variant.as_str()));
    let columns = crate::report::values::in_first_order(columns);
    let groups = all.iter().map(|times| group(times, &columns)).collect();
    let heads = std::iter::once(words("")).chain(columns.iter().map(|name| figures(*name)));
    pieces.push(Piece::Table(Table { columns: heads.collect(), groups }));
    Some(
        Section::new("service-times", "Service time against the rate", pieces)
            .showing(charts::service_times(sweep))
            .saying(answer(sweep).unwrap_or_default()),
    )
}

/// The size with the widest range of rates: it shows the effect best.
fn widest<'a>(sweep: &Sweep<'a>) -> Option<&'a ServiceTimes> {
    let factor = |times: &&ServiceTimes| {
        let (low, high) = span(times).unwrap_or((1.0, 1.0));
        high / low
    };
    let several = sweep.findings.service_times.iter().filter(|t| span(t).is_some());
    several.max_by(|a, b| factor(a).total_cmp(&factor(b)))
}

/// Lowest and highest rate; none when there are not two.
fn span(times: &ServiceTimes) -> Option<(f64, f64)> {
    let rates = || times.variants.iter().flat_map(|c| &c.points).map(|(_, rate, _)| *rate);
    let (low, high) = rates().fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(r), h.max(r)));
    (low > 0.0 && high > low).then_some((low, high))
}

/// `the median falls by 0.23 ms (0.20 to 0.26) from 20 to 800 requests/s in bare, too: ...`.
fn answer(sweep: &Sweep<'_>) -> Option<String> {
    let times = widest(sweep)?;
    let (low, high) = span(times)?;
    let of = |name: &str| times.variants.iter().find(|c| c.variant == name);
    let baseline = &sweep.findings.baseline;
    let fall = of(baseline)?.fall?;
    let (from, to) = (verbatim(low), verbatim(high));
    let place = format!("from {from} to {to}\u{a0}requests/s");
    if !ends(fall).is_some_and(|(_, high)| high < 0.0) {
        let said = format!("whether the median falls {place} in {baseline} is unclear");
        return Some(format!("{said}{}", aside(fall)));
    }
    let by = size(fall);
    Some(format!(
        "the median falls by {by} {place} in {baseline}, too: waking up, no variant's cost"
    ))
}

/// `0.23 ms (0.20 to 0.26)`, the size of a fall.
fn size(fall: Estimate) -> String {
    let positive = Estimate { value: -fall.value, low: -fall.high, high: -fall.low, ..fall };
    let scale = Scale::of(Quantity::Time, [positive.value]);
    format!("{} ({})", scale.with_unit(positive.value), interval(scale, positive))
}

fn aside(fall: Estimate) -> String {
    if ends(fall).is_none() {
        return String::new();
    }
    let scale = Scale::of(Quantity::Time, [fall.low, fall.high]);
    format!(" ({}\u{a0}{})", interval(scale, fall), scale.unit())
}

/// What of the fall is a variant's own, a line each.
fn verdicts(sweep: &Sweep<'_>, times: &ServiceTimes) -> Vec<Cell> {
    let others = times.variants.iter().filter(|c| c.variant != sweep.findings.baseline);
    others.filter_map(|curve| own(&sweep.findings.baseline, curve)).collect()
}

fn own(baseline: &str, curve: &ServiceTimeCurve) -> Option<Cell> {
    let (own, variant) = (curve.own_fall?, &curve.variant);
    let (said, tone) = match ends(own) {
        Some((_, high)) if high < 0.0 => {
            (format!("In {variant} it falls by {} more than in {baseline}", size(own)), Tone::Worse)
        }
        Some((low, _)) if low > 0.0 => {
            let less = Estimate { value: -own.value, low: -own.high, high: -own.low, ..own };
            (format!("In {variant} it falls by {} less than in {baseline}", size(less)), Tone::Same)
        }
        _ => (
            format!(
                "Whether it falls by more in {variant} than in {baseline} is unclear{}",
                aside(own)
            ),
            Tone::Unknown,
        ),
    };
    Some(Cell::toned(said, tone))
}

fn group(times: &ServiceTimes, columns: &[&str]) -> Group {
    let mut rates: Vec<f64> =
        times.variants.iter().flat_map(|c| &c.points).map(|(_, rate, _)| *rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let values = times.variants.iter().flat_map(|c| &c.points).map(|(.., time)| time.value);
    let scale = Scale::of(Quantity::Time, values);
    let of = |name: &str| times.variants.iter().find(|c| c.variant == name);
    let at = |name: &str, rate: f64| {
        let point = of(name)?.points.iter().find(|(_, r, _)| *r == rate)?;
        Some(Cell::from(scale.plain(point.2.value)))
    };
    let mut rows: Vec<Vec<Cell>> = rates
        .iter()
        .map(|rate| {
            let cells = columns.iter().map(|name| at(name, *rate).unwrap_or_else(Cell::absent));
            std::iter::once(format!("{}/s", verbatim(*rate)).into()).chain(cells).collect()
        })
        .collect();
    rows.extend(changes("change", columns, scale, |name| of(name)?.fall));
    rows.extend(changes("of it its own", columns, scale, |name| of(name)?.own_fall));
    Group { title: Some(title(times, scale)), rows }
}

fn title(times: &ServiceTimes, scale: Scale) -> String {
    let with = times.replicas.as_ref().map_or_else(String::new, |(service, pods)| {
        format!(", {}", several(*pods, &format!("{service} pod")))
    });
    format!("service time{with}, {}", scale.unit())
}

/// A row of changes and one of their intervals; none where there is no change.
fn changes(
    title: &str,
    columns: &[&str],
    scale: Scale,
    of: impl Fn(&str) -> Option<Estimate>,
) -> Vec<Vec<Cell>> {
    let found: Vec<Option<Estimate>> = columns.iter().map(|name| of(name)).collect();
    if found.iter().all(Option::is_none) {
        return vec![];
    }
    let value =
        |e: &Option<Estimate>| e.map_or_else(Cell::absent, |e| scale.signed(e.value).into());
    let range = |e: &Option<Estimate>| e.map_or_else(Cell::default, |e| below(scale, e));
    let values = std::iter::once(title.into()).chain(found.iter().map(value));
    let ranges = std::iter::once(Cell::default()).chain(found.iter().map(range));
    vec![values.collect(), ranges.collect()]
}
