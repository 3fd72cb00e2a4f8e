//! What grows with pods and rate: the fits as tables, where two variants cross in words, and how well the fits
//! predict what they did not see. Fits nothing.

use super::Sweep;
use super::words::{at_rate, listed, several, stacked};
use crate::analysis::findings::{Crossing, Estimate, HeldOut, ScaledQuantity, Scaling};
use crate::report::content::{Detail, in_first_order, section};
use crate::report::figures::{Quantity, Scale, change, rounded, verbatim};
use crate::report::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::wording::{ends, interval, range};

/// What it costs by pods and rate; none when nothing was fitted.
pub(super) fn scaling(sweep: &Sweep<'_>, detail: Detail) -> Option<Section> {
    let findings = sweep.findings;
    let first = findings.scalings.first()?;
    let (service, level) = (&first.service, level(first.fixed));
    let text = "A line through the trials of all sizes and rates: fixed part + pods x a pod + rate x a request a second; of all groups of pods, anonymous memory.";
    let mut pieces = vec![Piece::Text(text.into())];
    let crossings = crossings(sweep, detail);
    pieces.extend((!crossings.is_empty()).then_some(Piece::List(crossings)));
    let shown: Vec<ScaledQuantity> = quantities(sweep, detail);
    let groups = shown.iter().map(|quantity| fits(&findings.scalings, *quantity, detail)).collect();
    let interval = || figures(format!("{level} interval"));
    let a_pod = figures(format!("a {service} pod"));
    let mut columns =
        vec![words(""), figures("fixed"), interval(), a_pod, interval(), figures("a request/s")];
    columns.extend((detail == Detail::Full).then(interval));
    pieces.push(Piece::Table(Table { columns, groups }));
    pieces.extend(held_out(&findings.scalings, &shown));
    Some(section("scaling", "What grows with pods and rate", pieces))
}

/// `95 %`.
pub(in crate::report) fn level(estimate: Estimate) -> String {
    format!("{:.0}\u{a0}%", estimate.level * 100.0)
}

/// Memory and CPU first; what is added to latency only where there is room.
fn quantities(sweep: &Sweep<'_>, detail: Detail) -> Vec<ScaledQuantity> {
    use ScaledQuantity::{AddedP50, AddedP99, Cpu, Memory};
    let all: &[ScaledQuantity] = match detail {
        Detail::Brief => &[Memory, Cpu],
        Detail::Full => &[Memory, Cpu, AddedP50, AddedP99],
    };
    let is_fitted = |quantity: &&ScaledQuantity| {
        sweep.findings.scalings.iter().any(|s| s.quantity == **quantity)
    };
    all.iter().filter(is_fitted).copied().collect()
}

/// What a quantity is given in.
pub(in crate::report) fn quantity(of: ScaledQuantity) -> Quantity {
    match of {
        ScaledQuantity::Memory => Quantity::Mebibytes,
        ScaledQuantity::Cpu => Quantity::Millicores,
        ScaledQuantity::AddedP50 | ScaledQuantity::AddedP99 => Quantity::Time,
    }
}

/// `memory`, as it stands in a sentence too.
pub(in crate::report) fn quantity_title(of: ScaledQuantity) -> &'static str {
    match of {
        ScaledQuantity::Memory => "memory",
        ScaledQuantity::Cpu => "CPU",
        ScaledQuantity::AddedP50 => "added p50",
        ScaledQuantity::AddedP99 => "added p99",
    }
}

/// What the line of a variant says of so many pods at such a rate.
pub(in crate::report) fn fitted(scaling: &Scaling, pods: f64, rate_per_s: f64) -> f64 {
    let by_rate = scaling.per_request.map_or(0.0, |per_request| per_request.value * rate_per_s);
    scaling.fixed.value + scaling.per_pod.value * pods + by_rate
}

/// One part of a line.
type Part = fn(&Scaling) -> Option<Estimate>;

/// A row a variant; a terminal has no room for the interval of the last part.
fn fits(scalings: &[Scaling], quantity: ScaledQuantity, detail: Detail) -> Group {
    let of: Vec<&Scaling> = scalings.iter().filter(|s| s.quantity == quantity).collect();
    let (unit, parts) = parts(&of);
    let rows = of.iter().map(|s| {
        let cells = parts.iter().enumerate().flat_map(|(at, (part, scale))| {
            let [value, interval] = stacked(*scale, part(s));
            let has_interval = at < 2 || detail == Detail::Full;
            std::iter::once(value).chain(has_interval.then_some(interval))
        });
        std::iter::once(Cell::from(&s.variant)).chain(cells).collect()
    });
    let title = format!("{}, {unit}", quantity_title(quantity));
    Group { title: Some(title), rows: rows.collect() }
}

/// The unit that the parts of lines share, since they are added up, and each with decimals of its own: a pod costs
/// a fraction of what all of them do.
fn parts(lines: &[&Scaling]) -> (&'static str, [(Part, Scale); 3]) {
    let parts: [Part; 3] = [|s| Some(s.fixed), |s| Some(s.per_pod), |s| s.per_request];
    let values = |part: Part| {
        let values = lines.iter().filter_map(move |s| part(s)).map(|e| e.value);
        values.collect::<Vec<_>>()
    };
    let quantity = lines.first().map_or(Quantity::Mebibytes, |s| quantity(s.quantity));
    let whole = Scale::of(quantity, parts.into_iter().flat_map(values));
    (whole.unit(), parts.map(|part| (part, whole.with_decimals_for(values(part)))))
}

/// Where variants cross, a line a pair and quantity. A brief report leaves the baseline out: it is what costs least.
fn crossings(sweep: &Sweep<'_>, detail: Detail) -> Vec<Cell> {
    let baseline = &sweep.findings.baseline;
    let shown = sweep.findings.crossings.iter().filter(|crossing| {
        let is_between = [&crossing.below, &crossing.above].iter().all(|name| *name != baseline);
        is_between || detail == Detail::Full
    });
    told_crossings(&shown.collect::<Vec<_>>())
        .into_iter()
        .map(|(told, at)| {
            Cell::toned(format!("{}{}{}.", told.said, at.rates, at.points), told.tone)
        })
        .collect()
}

/// What may be said of a crossing.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Told {
    /// Without its end, so that a place may follow.
    pub(in crate::report) said: String,
    pub(in crate::report) tone: Tone,
}

/// What is said of several rates alike is said once: where it holds, and at how many pods the lines cross.
pub(super) fn told_crossings(crossings: &[&Crossing]) -> Vec<(Told, Place)> {
    let mut told: Vec<(Told, Vec<&Crossing>)> = Vec::new();
    for crossing in crossings {
        let says = told_crossing(crossing);
        match told.iter_mut().find(|(known, _)| *known == says) {
            Some((_, alike)) => alike.push(crossing),
            None => told.push((says, vec![crossing])),
        }
    }
    told.into_iter().map(|(told, alike)| (told, Place::of(&alike))).collect()
}

/// Where something is said of crossings.
pub(super) struct Place {
    /// ` at 20 and 50 requests/s`; empty when the rate is not swept.
    pub(super) rates: String,
    /// ` (the lines cross at 1.3 [0.9 to 1.7] pods)`; empty when they do not where there can be pods.
    pub(super) points: String,
}

impl Place {
    fn of(crossings: &[&Crossing]) -> Self {
        let rates: Vec<String> =
            crossings.iter().filter_map(|c| c.rate_per_s).map(verbatim).collect();
        let points: Vec<String> = crossings.iter().filter_map(|c| point(c)).collect();
        let unless_none =
            |of: &[String], said: String| if of.is_empty() { String::new() } else { said };
        Self {
            rates: unless_none(&rates, format!(" at {}\u{a0}requests/s", listed(&rates))),
            points: unless_none(&points, format!(" (the lines cross at {} pods)", listed(&points))),
        }
    }
}

/// `From 3 pods on ambient takes less memory than sidecar`: only what the interval allows.
pub(in crate::report) fn told_crossing(crossing: &Crossing) -> Told {
    let Crossing { below, above, quantity, measured_up_to, pods, .. } = crossing;
    let what = quantity_title(*quantity);
    let less = |one: &str, other: &str| match quantity {
        ScaledQuantity::Memory | ScaledQuantity::Cpu => {
            format!("{one} takes less {what} than {other}")
        }
        _ => format!("{one} has less {what} than {other}"),
    };
    let said = |said: String, tone| Told { said, tone };
    let up_to = several(*measured_up_to, "pod");
    match ends(*pods) {
        Some((_, high)) if high <= 1.0 => {
            said(format!("With any number of pods {}", less(above, below)), Tone::Same)
        }
        Some((low, _)) if low > *measured_up_to as f64 => said(
            format!("Up to {up_to}, as far as was measured, {}", less(below, above)),
            Tone::Same,
        ),
        Some((_, high)) if high <= *measured_up_to as f64 => {
            let from = several(high.ceil() as usize, "pod");
            said(format!("From {from} on {}", less(above, below)), Tone::Same)
        }
        _ => said(
            format!("From how many pods on {} cannot be told", less(above, below)),
            Tone::Unknown,
        ),
    }
}

/// Where the lines cross, when that is at a number of pods that there can be.
fn point(crossing: &Crossing) -> Option<String> {
    let (low, high) = ends(crossing.pods)?;
    let scale = Scale::of(Quantity::Threads, [crossing.pods.value]);
    let said = |value| scale.plain(value);
    let is_possible = high > 1.0 && low <= crossing.measured_up_to as f64;
    is_possible
        .then(|| format!("{} [{}]", said(crossing.pods.value), range(&said(low), &said(high))))
}

/// Predictions of the largest size from the smaller ones, with a sentence on the worst of each quantity.
fn held_out(scalings: &[Scaling], shown: &[ScaledQuantity]) -> Vec<Piece> {
    let of = |quantity: &ScaledQuantity| {
        let of = |s: &&Scaling| s.quantity == *quantity && !s.held_out.is_empty();
        scalings.iter().filter(of).collect::<Vec<_>>()
    };
    let fits: Vec<(ScaledQuantity, Vec<&Scaling>)> =
        shown.iter().map(|q| (*q, of(q))).filter(|(_, fits)| !fits.is_empty()).collect();
    let Some(first) = fits.first().and_then(|(_, fits)| fits[0].held_out.first()) else {
        return vec![];
    };
    let sizes: Vec<String> = first.fitted_on.iter().map(ToString::to_string).collect();
    let held = fits[0].1[0].points.iter().find(|p| p.load == first.load).map(|p| p.pods);
    let size = held.map_or_else(|| "the largest size".into(), |pods| several(pods, "pod"));
    let worst = fits.iter().filter_map(|(quantity, fits)| worst(*quantity, fits));
    let text = format!(
        "Held out: lines drawn through {} pods only, and what they say of {size}: {}.",
        listed(&sizes),
        worst.collect::<Vec<_>>().join(", ")
    );
    let level = level(first.predicted);
    let columns = vec![
        words(""),
        figures("predicted"),
        figures(format!("{level} interval")),
        figures("measured"),
        figures("error"),
    ];
    let groups = fits.iter().map(|(quantity, fits)| predictions(*quantity, fits)).collect();
    vec![Piece::Text(text), Piece::Table(Table { columns, groups })]
}

/// `memory is off by 0.8 % at most`.
fn worst(quantity: ScaledQuantity, fits: &[&Scaling]) -> Option<String> {
    let errors = fits.iter().flat_map(|s| &s.held_out).map(|h| h.error.abs());
    let worst = errors.filter(|e| e.is_finite()).max_by(f64::total_cmp)?;
    let percent = change(1.0 + worst);
    let name = quantity_title(quantity);
    Some(format!("{name} is off by {} at most", percent.trim_start_matches('+')))
}

fn predictions(quantity: ScaledQuantity, fits: &[&Scaling]) -> Group {
    let all = || fits.iter().flat_map(|s| &s.held_out);
    let values = all().flat_map(|h| [h.predicted.value, h.measured.value]);
    let scale = Scale::of(self::quantity(quantity), values);
    let row = |s: &Scaling, held: &HeldOut| -> Vec<Cell> {
        let rate = s.points.iter().find(|p| p.load == held.load).map(|p| at_rate(p.rate_per_s));
        let place = rate.unwrap_or_else(|| held.load.clone());
        vec![
            format!("{} {place}", s.variant).into(),
            scale.plain(held.predicted.value).into(),
            interval(scale, held.predicted).into(),
            scale.plain(held.measured.value).into(),
            change(1.0 + held.error).into(),
        ]
    };
    let rows = fits.iter().flat_map(|s| s.held_out.iter().map(move |held| row(s, held)));
    let title = format!("{}, {}", quantity_title(quantity), scale.unit());
    Group { title: Some(title), rows: rows.collect() }
}

/// `Each further nginx pod takes, in MiB of memory, 1.31 with bare and 16.7 with sidecar, on top of 24.8 and 20.4.`;
/// none without a line.
pub(super) fn growth(sweep: &Sweep<'_>, quantity: ScaledQuantity) -> Option<String> {
    let of = of_quantity(sweep, quantity);
    let service = &of.first()?.service;
    let name = quantity_title(quantity);
    let (unit, [_, (_, scale), _]) = parts(&of);
    let slope = |s: &&Scaling| {
        let is_clear = ends(s.per_pod).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        let takes =
            if is_clear { scale.plain(s.per_pod.value) } else { "what cannot be told".into() };
        format!("{takes} with {}", s.variant)
    };
    let slopes = listed(&of.iter().map(slope).collect::<Vec<_>>());
    let fixed: Vec<String> = of.iter().map(|s| rounded(s.fixed.value)).collect();
    let by_rate: Vec<String> =
        of.iter().filter_map(|s| s.per_request).map(|e| rounded(e.value)).collect();
    // What memory grows with the rate is next to nothing; the table has it.
    let tells_rate = quantity == ScaledQuantity::Cpu && by_rate.len() == of.len();
    let rate = if tells_rate {
        format!(" and of {} for each request/s", listed(&by_rate))
    } else {
        String::new()
    };
    let fixed = listed(&fixed);
    Some(format!(
        "Each further {service} pod takes, in {unit} of {name}, {slopes}, on top of {fixed}{rate}."
    ))
}

/// The fits of one quantity, in the order of the variants.
fn of_quantity<'a>(sweep: &Sweep<'a>, quantity: ScaledQuantity) -> Vec<&'a Scaling> {
    let all = || sweep.findings.scalings.iter().filter(move |s| s.quantity == quantity);
    let names = in_first_order(all().map(|s| s.variant.as_str()));
    names.into_iter().filter_map(|name| all().find(|s| s.variant == name)).collect()
}
