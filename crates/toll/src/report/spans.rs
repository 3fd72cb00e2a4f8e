//! Turns what tracing costs by the number of spans into tables. Fits no line, draws nothing.

use crate::analysis::findings::{Estimate, Findings, SpanCosts};

use super::content::{Detail, in_first_order, section};
use super::figures::{Quantity, Scale};
use super::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use super::wording::interval;

/// What [`SpanCosts::of`] is called for all components that are compared.
pub(super) const WHOLE: &str = "all";

/// What a span costs, by variant and pod; none when no two loads differ in spans.
pub(super) fn spans(findings: &Findings, detail: Detail) -> Option<Section> {
    let text = format!(
        "What a variant adds to CPU per request against {}, under loads whose requests leave different numbers of spans. The slope of a line through these effects is what a span costs; the line at zero spans is what a request costs whatever its spans. The line is drawn in each block, the interval is over the blocks.",
        findings.baseline
    );
    let mut pieces = vec![Piece::Text(text)];
    for variant in in_first_order(findings.span_costs.iter().map(|costs| costs.variant.as_str())) {
        let of_variant =
            || findings.span_costs.iter().filter(move |costs| costs.variant == variant);
        let shown = of_variant().filter(|costs| detail == Detail::Full || costs.of == WHOLE);
        pieces.push(Piece::Heading(format!("{variant}: a span, and a request")));
        pieces.push(Piece::Table(lines(&of_variant().collect::<Vec<_>>())));
        pieces.push(Piece::Heading(format!("{variant}: effect by number of spans")));
        pieces.push(Piece::Table(points(&shown.collect::<Vec<_>>())));
    }
    (!findings.span_costs.is_empty()).then(|| section("spans", "What a span costs", pieces))
}

/// `all pods`, or the pod.
pub(super) fn of_whom(costs: &SpanCosts) -> String {
    if costs.of == WHOLE { "all pods".into() } else { costs.of.clone() }
}

/// One unit for all lines and points of a report, so that pods compare.
pub(super) fn scale(findings: &Findings) -> Scale {
    scale_of(&findings.span_costs.iter().collect::<Vec<_>>())
}

fn scale_of(costs: &[&SpanCosts]) -> Scale {
    let points = costs.iter().flat_map(|c| &c.points).map(|p| p.effect_us.value.abs());
    Scale::of(Quantity::CpuTime, [points.filter(|us| us.is_finite()).fold(0.0, f64::max)])
}

/// Slope and intercept of each line.
fn lines(costs: &[&SpanCosts]) -> Table {
    // Never in milliseconds: a span costs less than one.
    let each = |of: fn(&SpanCosts) -> Estimate| {
        let sizes = costs.iter().map(|c| of(c).value.abs()).filter(|us| us.is_finite());
        Scale::whole(Quantity::CpuTime).with_decimals_for([sizes.fold(0.0, f64::max)])
    };
    let (span, request) = (each(|c| c.per_span_us), each(|c| c.per_request_us));
    let level = costs.first().map_or(0.95, |c| c.per_span_us.level) * 100.0;
    let interval_title = || figures(format!("{level:.0}\u{a0}% interval"));
    let columns = vec![
        words(""),
        figures(format!("a span, {}", span.unit())),
        interval_title(),
        figures(format!("a request, {}", request.unit())),
        interval_title(),
    ];
    let row = |c: &&SpanCosts| {
        let cells = vec![
            of_whom(c),
            span.signed(c.per_span_us.value),
            interval(span, c.per_span_us),
            request.signed(c.per_request_us.value),
            interval(request, c.per_request_us),
        ];
        let tone = if c.of == WHOLE { Tone::Sum } else { Tone::Neutral };
        cells.into_iter().map(|text| Cell::toned(text, tone)).collect()
    };
    let (whole, pods): (Vec<&SpanCosts>, Vec<&SpanCosts>) =
        costs.iter().partition(|c| c.of == WHOLE);
    Table::new(columns, pods.iter().chain(&whole).map(row).collect())
}

/// The effects that a line goes through.
fn points(costs: &[&SpanCosts]) -> Table {
    let scale = scale_of(costs);
    let level = costs.first().map_or(0.95, |c| c.per_span_us.level) * 100.0;
    let columns = vec![
        words("load"),
        figures("spans a request"),
        figures(format!("effect, {}", scale.unit())),
        figures(format!("{level:.0}\u{a0}% interval")),
    ];
    let group = |c: &&SpanCosts| Group {
        title: Some(of_whom(c)),
        rows: c
            .points
            .iter()
            .map(|p| {
                vec![
                    Cell::from(&p.load),
                    p.spans.to_string().into(),
                    scale.signed(p.effect_us.value).into(),
                    interval(scale, p.effect_us).into(),
                ]
            })
            .collect(),
    };
    Table { columns, groups: costs.iter().map(group).collect() }
}
