//! Gives every variant and every component one colour for the whole report, as a CSS class.
//! The baseline is grey, so that colour stands for what is compared; a component's hue is that of its role.

use crate::analysis::findings::{Findings, Role};
use crate::report::owners::label;

/// Colours that the style sheet has for variants, the baseline's grey not counted.
const VARIANT_COLOURS: usize = 6;
/// Shades that the style sheet has for each role.
const SHADES: usize = 4;

/// Who has which colour.
#[derive(Debug, Default)]
pub(super) struct Palette {
    variants: Vec<String>,
    /// Name and role, each pair once.
    components: Vec<(String, Role)>,
}

impl Palette {
    /// Colours in the order in which `findings` names variants and components.
    pub(super) fn of(findings: &Findings) -> Self {
        let others = findings.variants.iter().filter(|v| v.name != findings.baseline);
        let variants = std::iter::once(&findings.baseline).chain(others.map(|v| &v.name));
        let of_variants = findings.loads.iter().flat_map(|l| &l.variants);
        let mut components: Vec<(String, Role)> = Vec::new();
        for variant in of_variants {
            let costs = variant.cpu_per_request.iter().map(|of| &of.owner);
            for owner in costs.chain(variant.memory.iter().map(|of| &of.owner)) {
                let name = label(owner);
                if !components.iter().any(|(known, _)| *known == name) {
                    components.push((name, owner.role));
                }
            }
        }
        Self { variants: variants.cloned().collect(), components }
    }

    /// CSS class with the colour of `variant`.
    pub(super) fn variant(&self, variant: &str) -> String {
        match self.variants.iter().position(|v| v == variant).unwrap_or(0) {
            0 => "v0".into(),
            at => format!("v{}", (at - 1) % VARIANT_COLOURS + 1),
        }
    }

    /// CSS class with the colour of `component`, whose role is `role`.
    pub(super) fn component(&self, component: &str, role: Role) -> String {
        let hue = hue(role);
        let alike = self.components.iter().filter(|(_, of)| self::hue(*of) == hue);
        let at = alike.map(|(n, _)| n).position(|n| n == component).unwrap_or(0);
        format!("k-{hue}-{}", at % SHADES)
    }
}

fn hue(role: Role) -> &'static str {
    match role {
        Role::Application => "application",
        Role::Sidecar | Role::NodeProxy | Role::Waypoint => "proxy",
        Role::EgressGateway => "egress",
        Role::SniProxy => "sni",
        Role::Database => "database",
        Role::Unattributed => "unattributed",
        Role::Gateway => "gateway",
        Role::ControlPlane | Role::Collector | Role::LoadGenerator | Role::Harness => "other",
    }
}
