//! Gives every variant and every component one colour for the whole report, as a CSS class.
//! The baseline is grey, so that colour stands for what is compared; a component's hue is that of its role.

use crate::analysis::findings::Findings;

/// Colours that the style sheet has for variants, the baseline's grey not counted.
const VARIANT_COLOURS: usize = 6;
/// Shades that the style sheet has for each role.
const SHADES: usize = 4;

/// Who has which colour.
pub(super) struct Palette {
    variants: Vec<String>,
    /// Name and role, each pair once.
    components: Vec<(String, String)>,
}

impl Palette {
    /// Colours in the order in which `findings` names variants and components.
    pub(super) fn of(findings: &Findings) -> Self {
        let others = findings.variants.iter().filter(|v| v.name != findings.baseline);
        let variants = std::iter::once(&findings.baseline).chain(others.map(|v| &v.name));
        let of_variants = findings.loads.iter().flat_map(|l| &l.variants);
        let mut components: Vec<(String, String)> = Vec::new();
        for variant in of_variants {
            let costs = variant.cpu_per_request.iter().map(|c| (&c.component, &c.role));
            let memory = variant.memory.iter().map(|m| (&m.component, &m.role));
            for (name, role) in costs.chain(memory) {
                if !components.iter().any(|(n, _)| n == name) {
                    components.push((name.clone(), role.clone()));
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
    pub(super) fn component(&self, component: &str, role: &str) -> String {
        let hue = hue(role);
        let alike = self.components.iter().filter(|(_, r)| self::hue(r) == hue);
        let at = alike.map(|(n, _)| n).position(|n| n == component).unwrap_or(0);
        format!("k-{hue}-{}", at % SHADES)
    }
}

fn hue(role: &str) -> &'static str {
    match role {
        "application" => "application",
        "sidecar" | "node_proxy" | "waypoint" | "agent" => "proxy",
        "egress_gateway" => "egress",
        "sni_proxy" => "sni",
        "database" => "database",
        "unattributed" => "unattributed",
        role if role.contains("gateway") => "gateway",
        _ => "other",
    }
}
