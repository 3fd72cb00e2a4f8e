//! CPU per request of each variant, stacked by component; what no component owns is drawn hollow at the end. Of the
//! data plane or the application alone, too.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, columns, px, short, slug};
use crate::analysis::findings::{LoadFindings, Metric, VariantLoad};
use crate::report::content::value_of;
use crate::report::figures::{Quantity, Scale};
use crate::report::html::palette::Palette;
use crate::report::parts::{self, Part, is_counted, is_data_plane};
use crate::report::sweep::cell_name;

/// Names stand left of the bars, sums right of them.
const LEFT: f64 = 96.0;
const RIGHT: f64 = WIDTH - 72.0;
/// Of many bars each is lower, so that they are seen at a glance.
const FEW_BARS: usize = 3;
const AXIS_HEIGHT: f64 = 24.0;
/// A segment narrower than this has no room for its figure.
const NARROWEST_LABELLED: f64 = 38.0;

/// The chart; none without a component.
pub(in crate::report::html) fn cpu(load: &LoadFindings, palette: &Palette) -> Option<Markup> {
    let by_role = parts::are_too_many(&load.variants);
    let bars = load.variants.iter().map(|v| bar(v, by_role, palette)).collect();
    let drawing = Drawing {
        id: format!("cpu-{}", slug(&load.name)),
        title: format!("Who pays, {}", load.name),
        note: if by_role { "by role" } else { "by component" },
    };
    drawing.of(bars)
}

/// The proxies of the data plane alone, by role; `variants` in the order of their bars.
pub(in crate::report::html) fn data_plane(
    load: &LoadFindings,
    variants: &[&VariantLoad],
    palette: &Palette,
) -> Option<Markup> {
    let bar = |v: &&VariantLoad| {
        let parts = parts::merged(parts::of_costs(&v.cpu_per_request));
        Bar::of(v, Metric::MeshCpuPerRequest, parts, palette, is_data_plane)
    };
    let drawing = Drawing {
        id: format!("data-plane-{}", slug(&load.name)),
        title: format!("CPU per request of the data plane, {}", cell_name(load)),
        note: "by role of the proxy",
    };
    drawing.of(variants.iter().map(bar).collect())
}

/// The application's services alone; `variants` in the order of their bars.
pub(in crate::report::html) fn application(
    load: &LoadFindings,
    variants: &[&VariantLoad],
    palette: &Palette,
) -> Option<Markup> {
    let bar = |v: &&VariantLoad| {
        let parts = parts::of_costs(&v.cpu_per_request);
        let is_own = |role: &str| role == "application";
        Bar::of(v, Metric::ApplicationCpuPerRequest, parts, palette, is_own)
    };
    let drawing = Drawing {
        id: format!("application-{}", slug(&load.name)),
        title: format!("CPU per request of the application itself, {}", cell_name(load)),
        note: "by service",
    };
    drawing.of(variants.iter().map(bar).collect())
}

/// What is said around the bars.
struct Drawing {
    id: String,
    title: String,
    note: &'static str,
}

impl Drawing {
    fn of(self, bars: Vec<Bar>) -> Option<Markup> {
        let widest = bars.iter().map(Bar::length).fold(0.0, f64::max);
        if widest <= 0.0 {
            return None;
        }
        let scale = Scale::of(Quantity::CpuTime, [widest]);
        // The sum would round the digits of its parts away.
        let scale = scale.with_decimals_for([bars
            .iter()
            .flat_map(|b| &b.segments)
            .map(|s| s.us)
            .fold(0.0, f64::max)]);
        let row_height = if bars.len() > FEW_BARS { 25.0 } else { 40.0 };
        let height = row_height * bars.len() as f64;
        let axis = Axis::linear(0.0, scale.in_unit(widest), LEFT, RIGHT);
        let chart = Chart {
            id: self.id,
            title: self.title,
            note: format!("CPU per request, {}, {}", scale.unit(), self.note),
            describes: bars.iter().map(|b| b.describes(scale)).collect::<Vec<_>>().join(" "),
            height: height + AXIS_HEIGHT,
            marks: html! {
                (columns(&axis, 4, 0.0, height))
                @for (i, bar) in bars.iter().enumerate() { (bar.marks(&axis, scale, row_height * i as f64, row_height)) }
            },
            legend: legend(&bars),
        };
        Some(chart.render())
    }
}

struct Bar {
    name: String,
    total: Option<f64>,
    segments: Vec<Segment>,
}

struct Segment {
    name: String,
    class: String,
    us: f64,
}

/// The parts that serve the request, and what nobody owns; not the instrument's own.
fn bar(variant: &VariantLoad, by_role: bool, palette: &Palette) -> Bar {
    let is_drawn = |role: &str| is_counted(role) || role == "unattributed";
    let parts = parts::of_costs(&variant.cpu_per_request);
    let parts = if by_role { parts::merged(parts) } else { parts };
    Bar::of(variant, Metric::CpuPerRequest, parts, palette, is_drawn)
}

fn legend(bars: &[Bar]) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    for segment in bars.iter().flat_map(|b| &b.segments) {
        if !entries.iter().any(|(_, name)| *name == segment.name) {
            entries.push((segment.class.clone(), segment.name.clone()));
        }
    }
    // What nobody owns ends every bar, so it ends the legend too.
    entries.sort_by_key(|(_, name)| name == "unattributed");
    entries
}

impl Bar {
    /// The parts of roles that are drawn, with the metric that they add up to.
    fn of(
        variant: &VariantLoad,
        total: Metric,
        parts: Vec<Part>,
        palette: &Palette,
        is_drawn: impl Fn(&str) -> bool,
    ) -> Self {
        let has_length = |part: &Part| part.value > 0.0 && part.value.is_finite();
        let segment = |part: Part| Segment {
            class: palette.component(&part.name, &part.role),
            name: part.name,
            us: part.value,
        };
        let drawn = parts.into_iter().filter(|part| is_drawn(&part.role) && has_length(part));
        Self {
            name: variant.variant.clone(),
            total: value_of(variant, total),
            segments: drawn.map(segment).collect(),
        }
    }

    fn length(&self) -> f64 {
        self.segments.iter().map(|s| s.us).sum()
    }

    fn describes(&self, scale: Scale) -> String {
        let parts: Vec<String> =
            self.segments.iter().map(|s| format!("{} {}", s.name, scale.with_unit(s.us))).collect();
        format!("{}: {}.", self.name, parts.join(", "))
    }

    fn marks(&self, axis: &Axis, scale: Scale, top: f64, row_height: f64) -> Markup {
        let nothing = if self.segments.is_empty() { "0" } else { "" };
        let figure = self.total.map_or_else(|| nothing.into(), |t| scale.with_unit(t));
        let middle = top + row_height / 2.0 + 4.5;
        let end = axis.at(scale.in_unit(self.length()));
        html! {
            text.name x=(px(LEFT - 7.0)) y=(px(middle)) text-anchor="end" { (short(&self.name)) }
            text.figure x=(px(end + 7.0)) y=(px(middle)) { (figure) }
            @for (segment, from) in self.segments.iter().zip(self.starts()) {
                @let x = axis.at(scale.in_unit(from));
                @let width = axis.at(scale.in_unit(from + segment.us)) - x;
                g {
                    title { (format!("{}, {}: {}", self.name, segment.name, scale.with_unit(segment.us))) }
                    rect class=(format!("segment {}", segment.class)) x=(px(x)) y=(px(top + 3.0)) width=(px(width)) height=(px(row_height - 6.0)) {}
                    @if width >= NARROWEST_LABELLED {
                        text class=(format!("inside {}", segment.class)) x=(px(x + width / 2.0)) y=(px(middle)) text-anchor="middle" { (scale.plain(segment.us)) }
                    }
                }
            }
        }
    }

    fn starts(&self) -> impl Iterator<Item = f64> {
        self.segments.iter().scan(0.0, |end, s| {
            let start = *end;
            *end += s.us;
            Some(start)
        })
    }
}
