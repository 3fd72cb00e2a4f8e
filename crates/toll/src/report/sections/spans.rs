//! Turns what tracing costs by the number of spans into tables. Fits no line, draws nothing.

use crate::analysis::findings::{Estimate, Findings, LoadFindings, SpanCosts};

use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::ends;
use crate::report::figures::{Quantity, Scale};
use crate::report::values::in_first_order;
use crate::report::wording::{interval, primary};

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

/// What the report does not tell of the loads that only serve the line.
fn left_out(findings: &Findings) -> Option<String> {
    let loads = findings.loads.iter().filter(|load| is_point_only(findings, load));
    let names: Vec<&str> = loads.map(|load| load.name.as_str()).collect();
    (!names.is_empty())
        .then(|| {
            format!("{} only serve this line; they are told without their pods, JVMs and memory, which report.json has.", names.join(", "))
        })
}

/// Whether a load serves only as a point of what a span costs.
pub(in crate::report) fn is_point_only(findings: &Findings, load: &LoadFindings) -> bool {
    let points = findings.span_costs.iter().flat_map(|costs| &costs.points);
    primary(findings) != Some(load) && points.into_iter().any(|point| point.load == load.name)
}

/// Where the loads stand: those that only serve the line come last.
pub(in crate::report) fn in_order(findings: &Findings) -> Vec<usize> {
    let mut order: Vec<usize> = (0..findings.loads.len()).collect();
    order.sort_by_key(|i| is_point_only(findings, &findings.loads[*i]));
    order
}

/// The loads that are told in all detail.
pub(in crate::report) fn detailed(findings: &Findings) -> Vec<&LoadFindings> {
    findings.loads.iter().filter(|load| !is_point_only(findings, load)).collect()
}

/// `all pods`, or the pod.
pub(in crate::report) fn of_whom(costs: &SpanCosts) -> String {
    costs.service.clone().unwrap_or_else(|| "all pods".into())
}

/// One unit for all lines and points of a report, so that pods compare.
pub(in crate::report) fn scale(findings: &Findings) -> Scale {
    scale_of(&findings.span_costs.iter().collect::<Vec<_>>())
}

fn scale_of(costs: &[&SpanCosts]) -> Scale {
    let points = costs.iter().flat_map(|c| &c.points).map(|p| p.effect_us.value.abs());
    Scale::of(Quantity::CpuTime, [points.filter(|us| us.is_finite()).fold(0.0, f64::max)])
}

/// `each further span costs 13.1 µs (12.2 to 14.0)`: of all pods together.
pub(in crate::report) fn price(costs: &SpanCosts) -> String {
    let span = costs.per_span_us;
    let scale = Scale::whole(Quantity::CpuTime).with_decimals_for([span.value]);
    match (costs.is_clear(), ends(span)) {
        (true, _) => {
            let figure = scale.with_unit(span.value);
            format!("each further span costs {figure} of CPU ({})", interval(scale, span))
        }
        (false, Some((low, high))) => {
            let (low, high) = (scale.signed(low), scale.with_sign_and_unit(high));
            format!("each further span costs between {low} and {high} of CPU: cannot tell")
        }
        (false, None) => "what a further span costs needs a second round".into(),
    }
}

/// [`price`] of each variant, over all its pods.
pub(in crate::report) fn prices(findings: &Findings) -> Vec<String> {
    let whole = findings.span_costs.iter().filter(|costs| costs.service.is_none());
    whole.map(|costs| format!("{}: {}", costs.variant, price(costs))).collect()
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
