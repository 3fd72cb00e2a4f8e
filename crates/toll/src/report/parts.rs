//! Splits a variant's cost into its components, or into roles where the components are too many to take in.

use crate::analysis::findings::{ComponentCost, MemorySeries, VariantLoad};

/// With more components than this, colours repeat and tables outgrow the screen.
const MOST_COMPONENTS: usize = 12;

/// A share of a variant's CPU or memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// The component, or the role when parts are merged.
    pub(super) name: String,
    pub(super) role: String,
    /// In the unit of what was split.
    pub(super) value: f64,
}

/// Whether there are too many components to show each.
pub(super) fn are_too_many(variants: &[VariantLoad]) -> bool {
    variants.iter().any(|v| v.cpu_per_request.len().max(v.memory.len()) > MOST_COMPONENTS)
}

/// Whether CPU of this role is part of CPU per request.
pub(super) fn is_counted(role: &str) -> bool {
    !is_instrument(role) && role != "unattributed"
}

/// Whether a component of this role is toll's own: shown, and part of no sum.
pub(super) fn is_instrument(role: &str) -> bool {
    matches!(role, "load_generator" | "harness" | "collector")
}

/// CPU by component.
pub(super) fn of_costs(costs: &[ComponentCost]) -> Vec<Part> {
    let part = |c: &ComponentCost| Part {
        name: c.component.clone(),
        role: c.role.clone(),
        value: c.cost.value,
    };
    by_role(costs.iter().map(part).collect())
}

/// Mean memory by component, bytes; a component without a reading is left out.
pub(super) fn of_memory(memory: &[MemorySeries]) -> Vec<Part> {
    let part = |s: &MemorySeries| {
        let value = mean_in_window(s)?;
        Some(Part { name: s.component.clone(), role: s.role.clone(), value })
    };
    by_role(memory.iter().filter_map(part).collect())
}

/// Parts of one role side by side, roles in the order in which a request meets them.
pub(super) fn by_role(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by_key(|part| place(&part.role));
    parts
}

/// Where a role stands among the others.
pub(super) fn place(role: &str) -> usize {
    match role {
        role if role.contains("gateway") && !is_data_plane(role) => 0,
        "application" => 1,
        "egress_gateway" => 3,
        "sni_proxy" => 4,
        "database" => 5,
        role if is_counted(role) => 2,
        _ => 6,
    }
}

/// One part a role, in the order in which the roles come.
pub(super) fn merged(parts: Vec<Part>) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::new();
    for part in parts {
        match merged.iter_mut().find(|m| m.role == part.role) {
            Some(sum) => sum.value += part.value,
            None => merged.push(Part { name: role_name(&part.role), ..part }),
        }
    }
    merged
}

/// Whether a component of this role is a proxy that the mesh puts in the way.
pub(super) fn is_data_plane(role: &str) -> bool {
    matches!(role, "sidecar" | "node_proxy" | "waypoint" | "egress_gateway" | "sni_proxy")
}

/// `load generator` for `load_generator`.
pub(super) fn role_name(role: &str) -> String {
    match role {
        "sidecar" => "sidecars".into(),
        "sni_proxy" => "SNI proxy".into(),
        other => other.replace('_', " "),
    }
}

/// Mean over the measured phase; over everything when no point lies in it.
fn mean_in_window(series: &MemorySeries) -> Option<f64> {
    let within: Vec<f64> = series.points.iter().filter(|(t, _)| *t >= 0.0).map(|p| p.1).collect();
    let points =
        if within.is_empty() { series.points.iter().map(|p| p.1).collect() } else { within };
    (!points.is_empty()).then(|| points.iter().sum::<f64>() / points.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_parts_keep_the_sum_of_their_role() {
        let part =
            |name: &str, role: &str, value| Part { name: name.into(), role: role.into(), value };
        let parts = vec![
            part("a", "sidecar", 1.0),
            part("b", "load_generator", 4.0),
            part("c", "sidecar", 2.0),
        ];
        let expected =
            vec![part("sidecars", "sidecar", 3.0), part("load generator", "load_generator", 4.0)];
        assert_eq!(merged(parts), expected);
    }

    #[test]
    fn readings_before_the_measured_phase_do_not_count() {
        let points = vec![(-5.0, 900.0), (0.0, 10.0), (5.0, 20.0)];
        let series = MemorySeries { component: "a".into(), role: "application".into(), points };
        assert_eq!(of_memory(&[series])[0].value, 15.0);
    }
}
