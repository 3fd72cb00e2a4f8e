//! Turns the attribution of a variant's cost into a sentence and tables: who pays, and what a traversal of a
//! sidecar costs. Draws nothing.

use crate::analysis::findings::{
    AttributedCost, Attribution, Effect, LoadFindings, Metric, SidecarCost, TraversalCosts, Verdict,
};

use super::figures::{Quantity, Scale, rounded, share};
use super::parts::is_instrument;
use super::phrases::why;
use super::table::{Cell, Group, Piece, Table, Tone, figures, words};
use super::wording::{interval, interval_title};

/// Roles in the order in which a request meets them, what they are called, and what the sum of several is.
const PAYERS: [(&str, &str, &str); 8] = [
    ("gateway", "gateway", "all gateways"),
    ("application", "application itself", "application's own"),
    ("sidecar", "sidecars", "all sidecars"),
    ("node_proxy", "node proxies", "all node proxies"),
    ("waypoint", "waypoint", "all waypoints"),
    ("egress_gateway", "egress gateway", "all egress gateways"),
    ("sni_proxy", "SNI proxy", "all SNI proxies"),
    ("database", "database", "all databases"),
];

/// For each variant who pays for its change, then what its sidecars cost. `by_role` leaves single components out.
pub(super) fn pieces(load: &LoadFindings, baseline: &str, by_role: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for attribution in &load.attribution {
        let effect = cpu_effect(load, &attribution.variant);
        let attribution = &judged(attribution, effect);
        pieces.extend(effect.and_then(unclear).or_else(|| sentence(attribution)).map(Piece::Text));
        pieces.push(Piece::Table(table(load, attribution, baseline, by_role)));
    }
    if let Some(table) = traversals(load) {
        pieces.push(Piece::Heading(format!("What a sidecar and a traversal cost: {}", load.name)));
        pieces.push(Piece::Table(table));
    }
    pieces
}

/// What is compared of the parts' sum.
fn cpu_effect<'a>(load: &'a LoadFindings, variant: &str) -> Option<&'a Effect> {
    let is_cpu = |e: &&Effect| e.variant == variant && e.metric == Metric::CpuPerRequest;
    load.effects.iter().find(is_cpu)
}

/// Only what was judged a difference has shares.
fn judged(attribution: &Attribution, effect: Option<&Effect>) -> Attribution {
    let mut judged = attribution.clone();
    if effect.is_some_and(|effect| effect.verdict != Verdict::Difference) {
        let sums = judged.counted.iter_mut().chain(&mut judged.whole);
        let lines = judged.parts.iter_mut().chain(&mut judged.subtotals).chain(sums);
        lines.for_each(|line| line.share = None);
    }
    judged
}

/// `All in all it cannot be told what agent adds to the CPU of a request: the noise floor is 300 us.`
fn unclear(effect: &Effect) -> Option<String> {
    let Effect { variant, verdict, .. } = effect;
    matches!(verdict, Verdict::CannotTell { .. }).then(|| {
        let why = why(&[effect]);
        format!("All in all it cannot be told what {variant} adds to the CPU of a request{why}.")
    })
}

/// `sidecar adds 1,043 us of CPU to each request: sidecars +878 (84.1 %), ...`; none when it may add nothing.
fn sentence(attribution: &Attribution) -> Option<String> {
    let whole = attribution.whole.as_ref().filter(|whole| whole.share.is_some())?;
    let scale = Sheet::of(attribution).scale;
    let part = |title: &str, line: &AttributedCost| {
        let part = line.share.map(share)?;
        Some(format!("{title}\u{a0}{} ({part})", scale.signed(line.change.value)))
    };
    let payers = PAYERS
        .iter()
        .filter_map(|(role, title, _)| part(title, of_role(attribution, role)?))
        .collect::<Vec<_>>()
        .join(", ");
    let unattributed = attribution.parts.iter().find(|p| p.role == "unattributed");
    let rest = unattributed.and_then(|line| part("unattributed", line));
    let rest = rest.map_or_else(String::new, |rest| format!(", {rest}"));
    let by = scale.with_unit(whole.change.value.abs());
    let does = if whole.change.value < 0.0 {
        format!("takes {by} of CPU off")
    } else {
        format!("adds {by} of CPU to")
    };
    let variant = &attribution.variant;
    Some(format!("All in all {variant} {does} each request: {payers}{rest}."))
}

/// The sum of a role, or its only component.
fn of_role<'a>(attribution: &'a Attribution, role: &str) -> Option<&'a AttributedCost> {
    let sum = attribution.subtotals.iter().find(|line| line.role == role);
    sum.or_else(|| attribution.parts.iter().find(|line| line.role == role))
}

fn table(load: &LoadFindings, attribution: &Attribution, baseline: &str, by_role: bool) -> Table {
    let sheet = Sheet::of(attribution);
    let mut groups: Vec<Group> = if by_role {
        let lines = PAYERS.iter().filter_map(|(role, title, _)| {
            of_role(attribution, role).map(|line| sheet.named(title, line, Tone::Neutral))
        });
        vec![Group { title: None, rows: lines.collect() }]
    } else {
        PAYERS.iter().filter_map(|payer| sheet.role(attribution, payer)).collect()
    };
    groups.push(sheet.sums(attribution));
    groups.push(sheet.instrument(attribution));
    groups.retain(|group| !group.rows.is_empty());
    let columns = vec![
        words(format!("{} a request", sheet.scale.unit())),
        figures(baseline),
        figures(&attribution.variant),
        figures("change"),
        figures(interval_title(&load.effects)),
        figures("share"),
    ];
    Table { columns, groups }
}

/// The scales that all lines of a table share.
struct Sheet {
    scale: Scale,
}

impl Sheet {
    fn of(attribution: &Attribution) -> Self {
        let values = attribution.parts.iter().flat_map(|p| [p.baseline, p.value]).flatten();
        let changes = attribution.parts.iter().map(|p| p.change.value.abs());
        let changes = changes.filter(|change| change.is_finite());
        // The largest part sets the decimals, or the largest change where that would be rounded away with it:
        // those of the smallest would be noise in the sum.
        let largest = [values.fold(0.0, f64::max), changes.fold(0.0, f64::max)];
        Self { scale: Scale::of(Quantity::CpuTime, largest) }
    }

    fn role(
        &self,
        attribution: &Attribution,
        (role, title, all): &(&str, &str, &str),
    ) -> Option<Group> {
        let of_role = |lines: &[AttributedCost], tone| -> Vec<Vec<Cell>> {
            let lines = lines.iter().filter(|line| line.role == *role);
            lines.map(|line| self.named(&line.component, line, tone)).collect()
        };
        let mut rows = of_role(&attribution.parts, Tone::Neutral);
        let sum = attribution.subtotals.iter().find(|line| line.role == *role);
        rows.extend(sum.map(|line| self.named(all, line, Tone::Sum)));
        (!rows.is_empty()).then(|| Group { title: Some((*title).into()), rows })
    }

    fn sums(&self, attribution: &Attribution) -> Group {
        let unattributed = attribution.parts.iter().filter(|p| p.role == "unattributed");
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        let sum = |line: &AttributedCost, title| self.named(title, line, Tone::Sum);
        rows.extend(attribution.counted.iter().map(|line| sum(line, "CPU per request")));
        rows.extend(unattributed.map(|line| self.named("unattributed", line, Tone::Neutral)));
        rows.extend(attribution.whole.iter().map(|line| sum(line, "in all")));
        Group { title: Some("sum".into()), rows }
    }

    fn instrument(&self, attribution: &Attribution) -> Group {
        let lines = attribution.parts.iter().filter(|line| is_instrument(&line.role));
        let rows = lines.map(|line| self.named(&line.component, line, Tone::Neutral)).collect();
        Group { title: Some("the instrument's own, not in the sum".into()), rows }
    }

    fn named(&self, name: &str, line: &AttributedCost, tone: Tone) -> Vec<Cell> {
        let absent = || Cell::toned("–", Tone::Quiet);
        let figure = |value: Option<f64>| value.map_or_else(absent, |v| self.scale.plain(v).into());
        let mut cells = vec![
            Cell::from(name),
            figure(line.baseline),
            figure(line.value),
            self.scale.signed(line.change.value).into(),
            interval(self.scale, line.change).into(),
            line.share.map_or_else(absent, |s| share(s).into()),
        ];
        if tone == Tone::Sum {
            cells.iter_mut().for_each(|cell| cell.tone = tone);
        }
        cells
    }
}

/// What each sidecar costs for a request and for a traversal; none without sidecars.
fn traversals(load: &LoadFindings) -> Option<Table> {
    let with: Vec<(&str, &TraversalCosts)> = load
        .variants
        .iter()
        .filter_map(|v| Some((v.variant.as_str(), v.traversals.as_ref()?)))
        .collect();
    // Not the total: its decimals would round the sidecars beyond what the other tables show of them.
    let sidecars = || with.iter().flat_map(|(_, costs)| &costs.sidecars);
    let largest = sidecars().map(|c| c.cpu_us.value).fold(0.0, f64::max);
    let scale = Scale::of(Quantity::CpuTime, [largest]);
    let each = sidecars().filter_map(|c| c.per_traversal_us).map(|e| e.value);
    let each = scale.with_decimals_for([each.fold(0.0, f64::max)]);
    let unit = scale.unit();
    let columns = vec![
        words(""),
        figures("a request"),
        figures("traversals"),
        figures("a traversal"),
        figures(interval_title(&load.effects)),
    ];
    let group = |(variant, costs): &(&str, &TraversalCosts)| {
        let lines = costs
            .sidecars
            .iter()
            .map(|c| traversal_row(&format!("{} sidecar", c.pod), c, [scale, each], Tone::Neutral));
        let total = traversal_row("all sidecars", &costs.total, [scale, each], Tone::Sum);
        let title = format!("{variant}, {unit} of CPU");
        Group { title: Some(title), rows: lines.chain([total]).collect() }
    };
    let groups: Vec<Group> = with.iter().map(group).collect();
    (!groups.is_empty()).then_some(Table { columns, groups })
}

fn traversal_row(
    name: &str,
    cost: &SidecarCost,
    [scale, each]: [Scale; 2],
    tone: Tone,
) -> Vec<Cell> {
    let absent = || Cell::toned("–", Tone::Quiet);
    let per = cost.per_traversal_us;
    let cells = [
        Cell::from(name),
        scale.plain(cost.cpu_us.value).into(),
        rounded(cost.traversals.value).into(),
        per.map_or_else(absent, |e| each.plain(e.value).into()),
        per.map_or_else(absent, |e| interval(each, e).into()),
    ];
    cells
        .into_iter()
        .map(|cell| if tone == Tone::Sum { Cell { tone, ..cell } } else { cell })
        .collect()
}
