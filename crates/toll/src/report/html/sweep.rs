//! The page of a sweep: charts beside the sections that they belong to, cells folded until asked for.

use maud::{Markup, html};

use super::palette::Palette;
use super::{charts, load_charts, section};
use crate::analysis::findings::{LoadFindings, Metric};
use crate::report::sweep::{Folded, Part, Sweep, full};
use crate::report::table::Section;

/// All parts of the report.
pub(super) fn parts(sweep: &Sweep<'_>) -> Markup {
    let palette = Palette::of(sweep.findings);
    html! {
        @for part in full(sweep, &sweep.cells) {
            @match part {
                Part::Open(part) => (section(&part, &charts_of(sweep, &part, &palette))),
                Part::Folded(part) => (folded(sweep, &part, &palette)),
            }
        }
    }
}

/// What is drawn of a section that all read.
fn charts_of(sweep: &Sweep<'_>, section: &Section, palette: &Palette) -> Markup {
    match section.id.as_str() {
        "overview" => html! {
            div.charts {
                @for metric in [Metric::LatencyP50, Metric::LatencyP99] {
                    @if let Some(chart) = charts::cells(sweep, metric, palette) { (chart) }
                }
            }
        },
        "scaling" => html! { div.charts { (charts::scaling(sweep, palette)) } },
        "service-times" => html! { div.charts { (charts::service_times(sweep, palette)) } },
        id => match load_of(sweep, id, "load-") {
            Some(load) => load_charts(load, palette),
            None => html! {},
        },
    }
}

fn folded(sweep: &Sweep<'_>, part: &Folded, palette: &Palette) -> Markup {
    let load = load_of(sweep, &part.id, "cell-");
    let of = |section: &Section| match load {
        Some(load) => charts_of_cell(sweep, section, load, palette),
        None => html! {},
    };
    html! {
        details id=(part.id) {
            summary { (part.title) }
            @for inner in &part.sections { (section(inner, &of(inner))) }
        }
    }
}

/// Memory over time is drawn of the largest cells only: the others would fill the page with flat lines.
fn charts_of_cell(
    sweep: &Sweep<'_>,
    section: &Section,
    load: &LoadFindings,
    palette: &Palette,
) -> Markup {
    let is_largest = sweep.largest().iter().any(|largest| std::ptr::eq(*largest, load));
    match section.id.rsplit('-').next() {
        Some("cpu") => {
            html! { div.charts { @if let Some(chart) = charts::cpu(load, palette) { (chart) } } }
        }
        Some("memory") if is_largest => html! { div.charts { (charts::memory(load, palette)) } },
        _ if section.id.starts_with("load-") => load_charts(load, palette),
        _ => html! {},
    }
}

/// The load that an id counts, from 1.
fn load_of<'a>(sweep: &Sweep<'a>, id: &str, prefix: &str) -> Option<&'a LoadFindings> {
    let number: usize = id.strip_prefix(prefix)?.parse().ok()?;
    sweep.findings.loads.get(number.checked_sub(1)?)
}
