//! CPU per request of each variant, stacked by component; what no component owns is drawn hollow at the end. Of the
//! data plane or the application alone, too.

use crate::analysis::findings::{LoadFindings, Metric, Role, VariantLoad};
use crate::report::drawing::{
    Axis, Chart, Ink, Mark, WIDTH, beside, columns, plain_group, rect, short, slug,
};
use crate::report::figures::{Quantity, Scale};
use crate::report::parts::{self, Part};
use crate::report::subjects::sweep::cell_name;
use crate::report::values::value_of;

/// Names stand left of the bars, sums right of them.
const LEFT: f64 = 96.0;
const RIGHT: f64 = WIDTH - 72.0;
/// Of many bars each is lower, so that they are seen at a glance.
const FEW_BARS: usize = 3;
const AXIS_HEIGHT: f64 = 24.0;
/// A segment narrower than this has no figure in it.
const NARROWEST_LABELLED: f64 = 38.0;

/// The parts that serve the request, and what nobody owns; none without a component.
pub(in crate::report) fn cpu(load: &LoadFindings) -> Option<Chart> {
    let by_role = parts::are_too_many(&load.variants);
    let bar = |v| Bar::of(v, Metric::CpuPerRequest, by_role, |role| !role.is_instrument());
    let drawing = Drawing {
        id: format!("cpu-{}", slug(&load.name)),
        title: format!("Who pays, {}", load.name),
        note: if by_role { "by role" } else { "by component" },
    };
    drawing.of(&load.variants.iter().map(bar).collect::<Vec<_>>())
}

/// The proxies of the data plane alone, by role; `variants` in the order of their bars.
pub(in crate::report) fn data_plane(
    load: &LoadFindings,
    variants: &[&VariantLoad],
) -> Option<Chart> {
    let bar =
        |v: &&'_ VariantLoad| Bar::of(v, Metric::MeshCpuPerRequest, true, Role::is_data_plane);
    let drawing = Drawing {
        id: format!("data-plane-{}", slug(&load.name)),
        title: format!("CPU per request of the data plane, {}", cell_name(load)),
        note: "by role of the proxy",
    };
    drawing.of(&variants.iter().map(bar).collect::<Vec<_>>())
}

/// The application's services alone; `variants` in the order of their bars.
pub(in crate::report) fn application(
    load: &LoadFindings,
    variants: &[&VariantLoad],
) -> Option<Chart> {
    let is_own = |role| role == Role::Application;
    let bar = |v: &&'_ VariantLoad| Bar::of(v, Metric::ApplicationCpuPerRequest, false, is_own);
    let drawing = Drawing {
        id: format!("application-{}", slug(&load.name)),
        title: format!("CPU per request of the application itself, {}", cell_name(load)),
        note: "by service",
    };
    drawing.of(&variants.iter().map(bar).collect::<Vec<_>>())
}

/// What is said around the bars.
struct Drawing {
    id: String,
    title: String,
    note: &'static str,
}

impl Drawing {
    fn of(self, bars: &[Bar]) -> Option<Chart> {
        let widest = bars.iter().map(Bar::length).fold(0.0, f64::max);
        if widest <= 0.0 {
            return None;
        }
        let largest = bars.iter().flat_map(|bar| &bar.parts).map(|part| part.value);
        // The sum would round the digits of its parts away.
        let scale =
            Scale::of(Quantity::CpuTime, [widest]).with_decimals_for([largest.fold(0.0, f64::max)]);
        let row_height = if bars.len() > FEW_BARS { 25.0 } else { 40.0 };
        let height = row_height * bars.len() as f64;
        let axis = Axis::linear(0.0, scale.in_unit(widest), LEFT, RIGHT);
        let marks = bars
            .iter()
            .enumerate()
            .flat_map(|(i, bar)| bar.marks(&axis, scale, [row_height * i as f64, row_height]));
        Some(Chart {
            id: self.id,
            title: self.title,
            note: format!("CPU per request, {}, {}", scale.unit(), self.note),
            describes: bars.iter().map(|bar| bar.describes(scale)).collect(),
            height: height + AXIS_HEIGHT,
            marks: columns(&axis, 4, 0.0, height).into_iter().chain(marks).collect(),
            legend: legend(bars),
        })
    }
}

/// The parts that are drawn of a variant, and the metric that they add up to.
struct Bar {
    variant: String,
    total: Option<f64>,
    parts: Vec<Part>,
}

fn legend(bars: &[Bar]) -> Vec<(Ink, String)> {
    let mut entries: Vec<&Part> = Vec::new();
    for part in bars.iter().flat_map(|bar| &bar.parts) {
        if !entries.iter().any(|known| known.name == part.name) {
            entries.push(part);
        }
    }
    // What nobody owns ends every bar, so it ends the legend too.
    entries.sort_by_key(|part| part.role == Role::Unattributed);
    entries.into_iter().map(|part| (part.ink(), part.name.clone())).collect()
}

impl Bar {
    fn of(
        variant: &VariantLoad,
        total: Metric,
        by_role: bool,
        is_drawn: impl Fn(Role) -> bool,
    ) -> Self {
        let parts = parts::of_costs(&variant.cpu_per_request);
        let mut parts = if by_role { parts::merged(parts) } else { parts };
        parts.retain(|part| is_drawn(part.role) && part.value > 0.0 && part.value.is_finite());
        Self { variant: variant.variant.clone(), total: value_of(variant, total), parts }
    }

    fn length(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }

    fn describes(&self, scale: Scale) -> String {
        let part = |part: &Part| format!("{} {}", part.name, scale.with_unit(part.value));
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        format!("{}: {}.", self.variant, parts.join(", "))
    }

    fn marks(&self, axis: &Axis, scale: Scale, [top, row_height]: [f64; 2]) -> Vec<Mark> {
        let nothing = if self.parts.is_empty() { "0" } else { "" };
        let figure = self.total.map_or_else(|| nothing.into(), |t| scale.with_unit(t));
        let middle = top + row_height / 2.0;
        let at = |us: f64| axis.at(scale.in_unit(us));
        let mut marks = vec![
            beside("name", (LEFT - 7.0, middle), short(&self.variant)).anchored("end"),
            beside("figure", (at(self.length()) + 7.0, middle), figure),
        ];
        let mut from = 0.0;
        for part in &self.parts {
            let x = at(from);
            from += part.value;
            let width = at(from) - x;
            let place = ((x, top + 3.0), (width, row_height - 6.0));
            let mut segment = vec![rect("segment", place.0, place.1).inked(part.ink())];
            segment.extend((width >= NARROWEST_LABELLED).then(|| {
                let figure = beside("inside", (x + width / 2.0, middle), scale.plain(part.value));
                figure.anchored("middle").inked(part.ink())
            }));
            let figure = scale.with_unit(part.value);
            let says = format!("{}, {}: {figure}", self.variant, part.name);
            marks.push(plain_group("", segment).titled(says));
        }
        marks
    }
}
