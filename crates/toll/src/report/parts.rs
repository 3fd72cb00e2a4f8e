//! Splits a variant's cost into its components, or into roles where the components are too many to take in.

use crate::analysis::findings::{ComponentCost, MemorySeries, Role, VariantLoad};

use super::drawing::Ink;
use super::owners::{label, role_name};

/// With more components than this, colours repeat and tables outgrow the screen.
const MOST_COMPONENTS: usize = 12;

/// A share of a variant's CPU or memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// The owner, or the role when parts are merged.
    pub(super) name: String,
    pub(super) role: Role,
    /// In the unit of what was split.
    pub(super) value: f64,
}

impl Part {
    pub(super) fn ink(&self) -> Ink {
        Ink::Part(self.name.clone(), self.role)
    }
}

/// Whether there are too many components to show each.
pub(super) fn are_too_many(variants: &[VariantLoad]) -> bool {
    variants.iter().any(|v| v.cpu_per_request.len().max(v.memory.len()) > MOST_COMPONENTS)
}

/// CPU by component.
pub(super) fn of_costs(costs: &[ComponentCost]) -> Vec<Part> {
    let part =
        |c: &ComponentCost| Part { name: label(&c.owner), role: c.owner.role, value: c.cost.value };
    by_role(costs.iter().map(part).collect())
}

/// Mean memory by component, bytes; a component without a reading is left out.
pub(super) fn of_memory(memory: &[MemorySeries]) -> Vec<Part> {
    let part = |s: &MemorySeries| {
        let value = mean_in_window(s)?;
        Some(Part { name: label(&s.owner), role: s.owner.role, value })
    };
    by_role(memory.iter().filter_map(part).collect())
}

/// Parts of one role side by side.
pub(super) fn by_role(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by_key(|part| part.role);
    parts
}

/// One part a role, in the order in which the roles come.
pub(super) fn merged(parts: Vec<Part>) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::new();
    for part in parts {
        match merged.iter_mut().find(|m| m.role == part.role) {
            Some(sum) => sum.value += part.value,
            None => merged.push(Part { name: role_name(part.role).into(), ..part }),
        }
    }
    merged
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
    use crate::analysis::findings::{Owner, Pods};

    #[test]
    fn merged_parts_keep_the_sum_of_their_role() {
        let part = |name: &str, role, value| Part { name: name.into(), role, value };
        let parts = vec![
            part("a", Role::Sidecar, 1.0),
            part("b", Role::LoadGenerator, 4.0),
            part("c", Role::Sidecar, 2.0),
        ];
        let expected = vec![
            part("sidecars", Role::Sidecar, 3.0),
            part("load generator", Role::LoadGenerator, 4.0),
        ];
        assert_eq!(merged(parts), expected);
    }

    #[test]
    fn readings_before_the_measured_phase_do_not_count() {
        let points = vec![(-5.0, 900.0), (0.0, 10.0), (5.0, 20.0)];
        let owner = Owner { role: Role::Application, pods: Pods::one("a") };
        assert_eq!(of_memory(&[MemorySeries { owner, points }])[0].value, 15.0);
    }
}
