//! Turns what tracing costs by the number of spans into tables. Fits no line, draws nothing.

use crate::analysis::findings::{Estimate, Findings, SpanCosts};

use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale};
use crate::report::subjects::spans::{is_point_only, of_whom, prices, scale_of};
use crate::report::values::in_first_order;
use crate::report::wording::interval;

/// What a span costs, by variant and pod; none when no two loads differ in spans.
pub(in crate::report) fn spans(findings: &Findings) -> Option<Section> {
    let text = format!(
        "What a variant adds to CPU per request against {}, under loads whose requests leave different numbers of spans. The slope of a line through these effects is what a span costs; the line at zero spans is what a request costs whatever its spans. One line goes through all rounds; its interval is over the rounds. The same line of the baseline against itself stands beside it.",
        findings.baseline
    );
    let mut pieces = vec![Piece::Text(text)];
    pieces.extend(left_out(findings).map(Piece::Text));
    for variant in in_first_order(findings.span_costs.iter().map(|costs| costs.variant.as_str())) {
        let of_variant =
            || findings.span_costs.iter().filter(move |costs| costs.variant == variant);
        pieces.push(Piece::Heading(format!(
            "{variant}: what a span costs, and a request whatever its spans"
        )));
        pieces.push(Piece::Table(lines(&of_variant().collect::<Vec<_>>())));
        pieces.push(Piece::Heading(format!("{variant}: effect by number of spans")));
        pieces.push(Piece::Table(points(&of_variant().collect::<Vec<_>>())));
    }
    let section = Section::new("spans", "What a span costs", pieces);
    (!findings.span_costs.is_empty())
        .then(|| section.showing(charts::spans(findings)).saying(prices(findings).join("; ")))
}

/// Which loads are shown in less detail.
fn left_out(findings: &Findings) -> Option<String> {
    let loads = findings.loads.iter().filter(|load| is_point_only(findings, load));
    let names: Vec<&str> = loads.map(|load| load.name.as_str()).collect();
    (!names.is_empty())
        .then(|| {
            format!("{} only serve this line; they are shown without their pods, JVMs and memory, which are in report.json.", names.join(", "))
        })
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
        figures("baseline again"),
        figures(format!("a request, {}", request.unit())),
        interval_title(),
    ];
    let row = |c: &&SpanCosts| {
        let cells = vec![
            of_whom(c),
            span.signed(c.per_span_us.value),
            interval(span, c.per_span_us),
            c.again_us.map_or_else(|| "–".into(), |again| interval(span, again)),
            request.signed(c.per_request_us.value),
            interval(request, c.per_request_us),
        ];
        let tone = if c.service.is_none() { Tone::Sum } else { Tone::Neutral };
        cells.into_iter().map(|text| Cell::toned(text, tone)).collect()
    };
    let (whole, pods): (Vec<&SpanCosts>, Vec<&SpanCosts>) =
        costs.iter().partition(|c| c.service.is_none());
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
        title: Some(match &c.service {
            None => of_whom(c),
            Some(service) => format!("{service}, its own spans"),
        }),
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
