//! What several views look up in findings.

use crate::analysis::findings::{Metric, VariantLoad};

/// Mean over rounds of `metric`, when the variant has it.
pub(in crate::report) fn value_of(variant: &VariantLoad, metric: Metric) -> Option<f64> {
    variant.metrics.iter().find(|(m, _)| *m == metric).map(|(_, e)| e.value)
}

/// Each name once, where it came first.
pub(in crate::report) fn in_first_order<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}
