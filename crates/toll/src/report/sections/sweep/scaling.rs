//! What grows with pods and rate: the fits as tables, where two variants cross in words, and how well the fits
//! predict what they did not see. Fits nothing.

use super::words::{at_rate, stacked};
use crate::analysis::findings::{HeldOut, ScaledQuantity, Scaling};
use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, figures, words};
use crate::report::figures::{Scale, change};
use crate::report::subjects::scaling::{
    crossings_in_words, growths, off, parts, quantity, quantity_title, shown_off,
};
use crate::report::subjects::sweep::Sweep;
use crate::report::wording::{interval, level, listed, several};

/// What it costs by pods and rate; none when nothing was fitted.
pub(super) fn scaling(sweep: &Sweep<'_>) -> Option<Section> {
    let findings = sweep.findings;
    let first = findings.scalings.first()?;
    let (service, level) = (&first.service, level(first.fixed));
    let text = format!(
        "A line through the rounds of all sizes and rates{}: fixed part + pods × a pod + rate × a request/s; CPU and anonymous memory of all pods.",
        sweep.of_nodes()
    );
    let mut pieces = vec![Piece::Text(text)];
    let crossings = crossings(sweep);
    pieces.extend((!crossings.is_empty()).then_some(Piece::List(crossings)));
    let shown: Vec<ScaledQuantity> = quantities(sweep);
    let groups = shown.iter().map(|quantity| fits(&findings.scalings, *quantity)).collect();
    let interval = || figures(format!("{level} interval"));
    let a_pod = figures(format!("a {service} pod"));
    let columns = vec![
        words(""),
        figures("fixed"),
        interval(),
        a_pod,
        interval(),
        figures("a request/s"),
        interval(),
    ];
    pieces.push(Piece::Table(Table { columns, groups }));
    pieces.extend(held_out(&findings.scalings, &shown));
    Some(
        Section::new("scaling", "What grows with pods and rate", pieces)
            .showing(charts::scaling(findings))
            .saying(growths(sweep).join("; ")),
    )
}

/// Memory and CPU first.
fn quantities(sweep: &Sweep<'_>) -> Vec<ScaledQuantity> {
    use ScaledQuantity::{AddedP50, AddedP99, Cpu, Memory};
    let all = [Memory, Cpu, AddedP50, AddedP99];
    let is_fitted = |quantity: &&ScaledQuantity| {
        sweep.findings.scalings.iter().any(|s| s.quantity == **quantity)
    };
    all.iter().filter(is_fitted).copied().collect()
}

/// A row a variant.
fn fits(scalings: &[Scaling], quantity: ScaledQuantity) -> Group {
    let of: Vec<&Scaling> = scalings.iter().filter(|s| s.quantity == quantity).collect();
    let (unit, parts) = parts(&of);
    let rows = of.iter().map(|s| {
        let cells = parts.iter().flat_map(|(part, scale)| stacked(*scale, part(s)));
        std::iter::once(Cell::from(&s.variant)).chain(cells).collect()
    });
    let title = format!("{}, {unit}", quantity_title(quantity));
    Group { title: Some(title), rows: rows.collect() }
}

/// Where variants cross, a line a pair and quantity.
fn crossings(sweep: &Sweep<'_>) -> Vec<Cell> {
    let crossings = crossings_in_words(&sweep.findings.crossings.iter().collect::<Vec<_>>());
    crossings
        .into_iter()
        .map(|said| Cell::toned(said.sentence + &said.points + ".", said.tone))
        .collect()
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

/// `memory is off by 0.8 % at most`, `added p50 is off by 0.12 ms at most`.
fn worst(of: ScaledQuantity, fits: &[&Scaling]) -> Option<String> {
    let errors = fits.iter().flat_map(|s| &s.held_out).map(|held| off(of, held).abs());
    let worst = errors.filter(|e| e.is_finite()).max_by(f64::total_cmp)?;
    let by = if of.is_added() {
        Scale::of(quantity(of), [worst]).with_unit(worst)
    } else {
        change(1.0 + worst).trim_start_matches('+').to_owned()
    };
    Some(format!("{} is off by {by} at most", quantity_title(of)))
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
            shown_off(quantity, scale, off(quantity, held)).into(),
        ]
    };
    let rows = fits.iter().flat_map(|s| s.held_out.iter().map(move |held| row(s, held)));
    let title = format!("{}, {}", quantity_title(quantity), scale.unit());
    Group { title: Some(title), rows: rows.collect() }
}
