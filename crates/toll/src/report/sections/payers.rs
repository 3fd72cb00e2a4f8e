//! Turns the attribution of a variant's cost into a sentence and tables: who pays, and what a traversal of a
//! sidecar costs. Draws nothing.

use crate::analysis::findings::{
    AttributedCost, Attribution, Effect, LoadFindings, Metric, Payer, Role, SidecarCost,
    TraversalCosts,
};

use crate::report::document::{Cell, Group, Piece, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale, rounded, share};
use crate::report::owners::{label, pods_name};
use crate::report::wording::{interval, interval_title, tone};

/// Components of a role that are named one by one in a sentence.
const FEW: usize = 2;
/// Components that a sentence names at most, besides the application.
const MOST_PAYERS: usize = 3;

/// Roles in the order of all tables, what they are called, and what the sum of several is.
const PAYERS: [(Role, &str, &str); 8] = [
    (Role::Gateway, "gateway", "all gateways"),
    (Role::Application, "application itself", "application's own"),
    (Role::Sidecar, "sidecars", "all sidecars"),
    (Role::NodeProxy, "node proxies", "all node proxies"),
    (Role::Waypoint, "waypoint", "all waypoints"),
    (Role::EgressGateway, "egress gateway", "all egress gateways"),
    (Role::SniProxy, "SNI proxy", "all SNI proxies"),
    (Role::Database, "database", "all databases"),
];

/// For each variant who pays for its change, then what its sidecars cost.
pub(in crate::report) fn pieces(load: &LoadFindings, baseline: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for attribution in &load.attribution {
        let attribution = &judged(load, attribution);
        pieces.push(Piece::Text(format!("{}: {}.", attribution.variant, sentence(attribution))));
        pieces.push(Piece::Table(table(load, attribution, baseline)));
    }
    if let Some(table) = traversals(load) {
        pieces.push(Piece::Heading(format!("What a sidecar and a traversal cost: {}", load.name)));
        pieces.push(Piece::Table(table));
    }
    pieces
}

/// No component has a share of the change where it is unclear whether CPU changed at all.
fn judged(load: &LoadFindings, attribution: &Attribution) -> Attribution {
    let mut judged = attribution.clone();
    let is_cpu =
        |e: &&Effect| e.variant == attribution.variant && e.metric == Metric::CpuPerRequest;
    let effect = load.effects.iter().find(is_cpu);
    if effect.is_some_and(|effect| tone(effect) == Tone::Unknown) {
        let sums = judged.counted.iter_mut().chain(&mut judged.whole);
        let lines = judged.parts.iter_mut().chain(&mut judged.subtotals).chain(sums);
        lines.for_each(|line| line.share = None);
    }
    judged
}

/// `client sidecar +470 µs, server sidecar +305, application −8`: who pays most first, the application last.
pub(in crate::report) fn sentence(attribution: &Attribution) -> String {
    let payers = payers(attribution);
    let scale = Scale::whole(Quantity::CpuTime);
    // Of next to nothing whole microseconds say nothing.
    let largest = payers.iter().map(|(_, us)| us.abs()).fold(0.0, f64::max);
    let scale = if largest < 10.0 { scale.with_decimals_for([largest]) } else { scale };
    let figure = |(at, (name, us)): (usize, &(String, f64))| {
        let unit = if at == 0 { format!("\u{a0}{}", scale.unit()) } else { String::new() };
        format!("{name}\u{a0}{}{unit}", scale.signed(*us))
    };
    let said: Vec<String> = payers.iter().enumerate().map(figure).collect();
    said.join(", ")
}

/// Each component of a role that has few, else the role; what changed most first, and the application last.
fn payers(attribution: &Attribution) -> Vec<(String, f64)> {
    let mut payers: Vec<(String, f64)> = Vec::new();
    for (role, title, _) in PAYERS.iter().filter(|(role, ..)| *role != Role::Application) {
        let parts: Vec<_> = lines_of(&attribution.parts, *role).collect();
        match parts.len() {
            0 => {}
            1..=FEW => payers.extend(parts.iter().map(|p| (name(p), p.change.value))),
            _ => {
                let sum = of_role(attribution, *role);
                payers.extend(sum.map(|p| ((*title).into(), p.change.value)));
            }
        }
    }
    payers.retain(|(_, us)| us.is_finite());
    payers.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    payers.truncate(MOST_PAYERS);
    let own = of_role(attribution, Role::Application).map(|p| p.change.value);
    payers.extend(own.filter(|us| us.is_finite()).map(|us| ("application".into(), us)));
    payers
}

/// The sum of a role, or its only component.
fn of_role(attribution: &Attribution, role: Role) -> Option<&AttributedCost> {
    let sum = lines_of(&attribution.subtotals, role).next();
    sum.or_else(|| lines_of(&attribution.parts, role).next())
}

fn lines_of(lines: &[AttributedCost], role: Role) -> impl Iterator<Item = &AttributedCost> {
    lines.iter().filter(move |line| line.payer.role() == Some(role))
}

/// Of a line that has an owner.
fn name(line: &AttributedCost) -> String {
    match &line.payer {
        Payer::Owner(owner) => label(owner),
        Payer::Role(_) | Payer::Counted | Payer::Whole => String::new(),
    }
}

fn table(load: &LoadFindings, attribution: &Attribution, baseline: &str) -> Table {
    let sheet = Sheet::of(attribution);
    let mut groups: Vec<Group> =
        PAYERS.iter().filter_map(|payer| sheet.role(attribution, payer)).collect();
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
        (role, title, all): &(Role, &str, &str),
    ) -> Option<Group> {
        let mut rows = self.parts(attribution, |of| of == *role);
        let sum = lines_of(&attribution.subtotals, *role);
        rows.extend(sum.map(|line| self.named(all, line, Tone::Sum)));
        (!rows.is_empty()).then(|| Group { title: Some((*title).into()), rows })
    }

    /// A row an owner of the roles that `is_shown` picks.
    fn parts(&self, of: &Attribution, is_shown: impl Fn(Role) -> bool) -> Vec<Vec<Cell>> {
        let shown = of.parts.iter().filter(|line| line.payer.role().is_some_and(&is_shown));
        shown.map(|line| self.named(&name(line), line, Tone::Neutral)).collect()
    }

    fn sums(&self, attribution: &Attribution) -> Group {
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        let sum = |line: &AttributedCost, title| self.named(title, line, Tone::Sum);
        rows.extend(attribution.counted.iter().map(|line| sum(line, "CPU per request")));
        rows.extend(self.parts(attribution, |role| role == Role::Unattributed));
        rows.extend(attribution.whole.iter().map(|line| sum(line, "in all")));
        Group { title: Some("sum".into()), rows }
    }

    fn instrument(&self, attribution: &Attribution) -> Group {
        let rows = self.parts(attribution, Role::is_instrument);
        Group { title: Some("the instrument's own, not in the sum".into()), rows }
    }

    fn named(&self, name: &str, line: &AttributedCost, tone: Tone) -> Vec<Cell> {
        let figure =
            |value: Option<f64>| value.map_or_else(Cell::absent, |v| self.scale.plain(v).into());
        let mut cells = vec![
            Cell::from(name),
            figure(line.baseline),
            figure(line.value),
            self.scale.signed(line.change.value).into(),
            interval(self.scale, line.change).into(),
            line.share.map_or_else(Cell::absent, |s| share(s).into()),
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
            .map(|c| traversal_row(&sidecars_of(c), c, [scale, each], Tone::Neutral));
        let total = traversal_row("all sidecars", &costs.total, [scale, each], Tone::Sum);
        let title = format!("{variant}, {unit} of CPU");
        Group { title: Some(title), rows: lines.chain([total]).collect() }
    };
    let groups: Vec<Group> = with.iter().map(group).collect();
    (!groups.is_empty()).then_some(Table { columns, groups })
}

/// `client sidecar`.
fn sidecars_of(cost: &SidecarCost) -> String {
    cost.pods.as_ref().map_or_else(String::new, |pods| format!("{} sidecar", pods_name(pods)))
}

fn traversal_row(
    name: &str,
    cost: &SidecarCost,
    [scale, each]: [Scale; 2],
    tone: Tone,
) -> Vec<Cell> {
    let per = cost.per_traversal_us;
    let cells = [
        Cell::from(name),
        scale.plain(cost.cpu_us.value).into(),
        rounded(cost.traversals.value).into(),
        per.map_or_else(Cell::absent, |e| each.plain(e.value).into()),
        per.map_or_else(Cell::absent, |e| interval(each, e).into()),
    ];
    cells
        .into_iter()
        .map(|cell| if tone == Tone::Sum { Cell { tone, ..cell } } else { cell })
        .collect()
}
