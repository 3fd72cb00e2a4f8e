//! Turns what tracing costs by the number of spans into tables. Fits no line, draws nothing.

use crate::analysis::findings::{Estimate, Findings, LoadFindings, SpanCosts};

use super::content::{Detail, in_first_order, section};
use super::figures::{Quantity, Scale};
use super::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use super::wording::{interval, primary};

/// What [`SpanCosts::of`] is called for all components that are compared.
pub(super) const WHOLE: &str = "all";

/// What a span costs, by variant and pod; none when no two loads differ in spans.
pub(super) fn spans(findings: &Findings, detail: Detail) -> Option<Section> {
    let text = format!(
        "What a variant adds to CPU per request against {}, under loads whose requests leave different numbers of spans. The slope of a line through these effects is what a span costs; the line at zero spans is what a request costs whatever its spans. The line is drawn in each block, the interval is over the blocks; the noise floor is the largest slope that the baseline against itself leaves possible.",
        findings.baseline
    );
    let mut pieces = vec![Piece::Text(text)];
    pieces.extend(left_out(findings, detail).map(Piece::Text));
    for variant in in_first_order(findings.span_costs.iter().map(|costs| costs.variant.as_str())) {
        let of_variant =
            || findings.span_costs.iter().filter(move |costs| costs.variant == variant);
        let shown = of_variant().filter(|costs| detail == Detail::Full || costs.of == WHOLE);
        pieces.push(Piece::Heading(format!(
            "{variant}: what a span costs, and a request whatever its spans"
        )));
        pieces.push(Piece::Table(lines(&of_variant().collect::<Vec<_>>())));
        pieces.push(Piece::Heading(format!("{variant}: effect by number of spans")));
        pieces.push(Piece::Table(points(&shown.collect::<Vec<_>>())));
    }
    (!findings.span_costs.is_empty()).then(|| section("spans", "What a span costs", pieces))
}

/// What the report does not tell of the loads that only serve the line.
fn left_out(findings: &Findings, detail: Detail) -> Option<String> {
    let loads = findings.loads.iter().filter(|load| is_point_only(findings, load));
    let names: Vec<&str> = loads.map(|load| load.name.as_str()).collect();
    let where_to = match detail {
        Detail::Brief => "are told in the HTML report",
        Detail::Full => "are told here",
    };
    (!names.is_empty())
        .then(|| {
            format!("{} only serve this line; they {where_to}, without their pods, JVMs and memory, which report.json has.", names.join(", "))
        })
}

/// Whether a load serves only as a point of what a span costs.
pub(super) fn is_point_only(findings: &Findings, load: &LoadFindings) -> bool {
    let points = findings.span_costs.iter().flat_map(|costs| &costs.points);
    primary(findings) != Some(load) && points.into_iter().any(|point| point.load == load.name)
}

/// Where the loads stand: those that only serve the line come last.
pub(super) fn in_order(findings: &Findings) -> Vec<usize> {
    let mut order: Vec<usize> = (0..findings.loads.len()).collect();
    order.sort_by_key(|i| is_point_only(findings, &findings.loads[*i]));
    order
}

/// The loads that are told in all detail.
pub(super) fn detailed(findings: &Findings) -> Vec<&LoadFindings> {
    findings.loads.iter().filter(|load| !is_point_only(findings, load)).collect()
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

/// `the noise floor is 4.2 µs`, or that there is none.
pub(super) fn floor(costs: &SpanCosts, scale: Scale) -> String {
    match costs.noise_floor_us {
        Some(us) => format!("the noise floor is {}", scale.with_unit(us)),
        None => "without a second run of the baseline there is no noise floor".into(),
    }
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
        figures("noise floor"),
        figures(format!("a request, {}", request.unit())),
        interval_title(),
    ];
    let row = |c: &&SpanCosts| {
        let cells = vec![
            of_whom(c),
            if c.is_told() { span.signed(c.per_span_us.value) } else { "cannot tell".into() },
            interval(span, c.per_span_us),
            c.noise_floor_us.map_or_else(|| "unknown".into(), |us| span.plain(us)),
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
        title: Some(if c.of == WHOLE { of_whom(c) } else { format!("{}, its own spans", c.of) }),
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
