//! What grows with pods and rate: the fits as tables, where two variants cross in words, and how well the fits
//! predict what they did not see. Fits nothing.

use super::Sweep;
use super::words::{at_rate, listed, several, stacked};
use crate::analysis::findings::{Crossing, Estimate, HeldOut, ScaledQuantity, Scaling};
use crate::report::content::{Detail, in_first_order, section};
use crate::report::figures::{Quantity, Scale, change, rounded};
use crate::report::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::wording::{ends, interval, range};

/// What it costs by pods and rate; none when nothing was fitted.
pub(super) fn scaling(sweep: &Sweep<'_>, detail: Detail) -> Option<Section> {
    let findings = sweep.findings;
    let first = findings.scalings.first()?;
    let (service, level) = (&first.service, level(first.fixed));
    let text = format!(
        "A line through the trials of all sizes and rates: fixed part + pods x a pod + rate x a request a second. All groups of pods together, anonymous memory; below each figure its {level} interval."
    );
    let mut pieces = vec![Piece::Text(text)];
    let crossings = crossings(sweep, detail);
    pieces.extend((!crossings.is_empty()).then_some(Piece::List(crossings)));
    let shown: Vec<ScaledQuantity> = quantities(sweep, detail);
    let groups = shown.iter().map(|quantity| fits(&findings.scalings, *quantity)).collect();
    let columns = vec![
        words(""),
        figures("fixed"),
        figures(format!("a {service} pod")),
        figures("a request/s"),
    ];
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

/// One unit for all parts of a line, since they are added up.
pub(super) fn fit_scale(scalings: &[&Scaling]) -> Scale {
    let parts = |s: &&Scaling| {
        let per_request = s.per_request.map(|e| e.value);
        [Some(s.fixed.value), Some(s.per_pod.value), per_request].into_iter().flatten()
    };
    let of = scalings.first().map_or(Quantity::Mebibytes, |s| quantity(s.quantity));
    Scale::of(of, scalings.iter().copied().flat_map(|s| parts(&s).collect::<Vec<_>>()))
}

fn fits(scalings: &[Scaling], quantity: ScaledQuantity) -> Group {
    let of: Vec<&Scaling> = scalings.iter().filter(|s| s.quantity == quantity).collect();
    let whole = fit_scale(&of);
    // A pod costs a fraction of what all of them do: each column has its own decimals.
    let column = |part: fn(&Scaling) -> Option<Estimate>| {
        whole.with_decimals_for(of.iter().filter_map(|s| part(s)).map(|e| e.value))
    };
    let parts: [fn(&Scaling) -> Option<Estimate>; 3] =
        [|s| Some(s.fixed), |s| Some(s.per_pod), |s| s.per_request];
    let scales = parts.map(column);
    let rows = of.iter().flat_map(|s| {
        let cells: Vec<[Cell; 2]> =
            parts.iter().zip(scales).map(|(part, scale)| stacked(scale, part(s))).collect();
        [0, 1].map(|line| {
            let title = if line == 0 { Cell::from(&s.variant) } else { Cell::default() };
            std::iter::once(title).chain(cells.iter().map(|c| c[line].clone())).collect()
        })
    });
    let title = format!("{}, {}", quantity_title(quantity), whole.unit());
    Group { title: Some(title), rows: rows.collect() }
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
        .map(|(told, aside)| Cell::toned(format!("{}{aside}.", told.said), told.tone))
        .collect()
}

/// What may be said of a crossing.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Told {
    /// Without its end, so that a place may follow.
    pub(in crate::report) said: String,
    pub(in crate::report) tone: Tone,
}

/// What is said of several rates alike is said once, with the rates and where the lines cross behind.
pub(super) fn told_crossings(crossings: &[&Crossing]) -> Vec<(Told, String)> {
    let mut told: Vec<(Told, Vec<&Crossing>)> = Vec::new();
    for crossing in crossings {
        let says = told_crossing(crossing);
        match told.iter_mut().find(|(known, _)| *known == says) {
            Some((_, alike)) => alike.push(crossing),
            None => told.push((says, vec![crossing])),
        }
    }
    told.into_iter().map(|(told, alike)| (told, places(&alike))).collect()
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

/// ` at 20 and 50 requests/s (the lines cross at 1.3 pods, 0.9 to 1.7, and at 1.5, 1.1 to 1.9)`.
fn places(crossings: &[&Crossing]) -> String {
    let rates: Vec<String> = crossings.iter().filter_map(|c| c.rate_per_s).map(rounded).collect();
    let at = if rates.is_empty() {
        String::new()
    } else {
        format!(" at {}\u{a0}requests/s", listed(&rates))
    };
    let points: Vec<String> = crossings.iter().filter_map(|c| point(c)).collect();
    if points.is_empty() {
        return at;
    }
    format!("{at} (the lines cross at {} pods)", listed(&points))
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
        "The same lines drawn through {} pods only, and what they say of {size}: {}.",
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
    vec![
        Piece::Heading("Held out: the largest size predicted from the smaller ones".into()),
        Piece::Text(text),
        Piece::Table(Table { columns, groups }),
    ]
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

/// `25.0 MiB + 1.31 MiB a pod`, the parts of a line in words; the slope left out where it may be zero.
pub(super) fn line(scaling: &Scaling) -> String {
    let own = |value: f64| Scale::of(quantity(scaling.quantity), [value]).with_unit(value);
    let is_clear = |e: Estimate| ends(e).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let slope = |e: Estimate, of: &str| {
        if is_clear(e) { format!("{} {of}", own(e.value)) } else { format!("nothing to tell {of}") }
    };
    let by_rate = scaling.per_request.map(|e| slope(e, "a request/s"));
    let parts = [own(scaling.fixed.value), slope(scaling.per_pod, "a pod")];
    parts.into_iter().chain(by_rate).collect::<Vec<_>>().join(" + ")
}

/// The fits of one quantity, in the order of the variants.
pub(super) fn of_quantity<'a>(sweep: &Sweep<'a>, quantity: ScaledQuantity) -> Vec<&'a Scaling> {
    let all = || sweep.findings.scalings.iter().filter(move |s| s.quantity == quantity);
    let names = in_first_order(all().map(|s| s.variant.as_str()));
    names.into_iter().filter_map(|name| all().find(|s| s.variant == name)).collect()
}
