//! What a span costs, and the loads that only serve to find it.

use crate::analysis::findings::{Findings, LoadFindings, SpanCosts};
use crate::report::figures::{Quantity, Scale, ends};
use crate::report::wording::{interval, primary};

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

/// The loads that are shown in all detail.
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

pub(in crate::report) fn scale_of(costs: &[&SpanCosts]) -> Scale {
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
