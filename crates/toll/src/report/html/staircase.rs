//! The page of a staircase: charts beside the sections that they belong to, steps folded until asked for.

use maud::{Markup, html};

use super::palette::Palette;
use super::{charts, load_charts, section};
use crate::analysis::findings::{Findings, LoadFindings};
use crate::report::staircase::{Stairs, full, in_order, nearest, part_of};
use crate::report::sweep::{Folded, Part};
use crate::report::table::Section;

/// All parts of the report.
pub(super) fn parts(all: &[Stairs<'_>], findings: &Findings) -> Markup {
    let palette = Palette::of(findings);
    let detailed: Vec<&LoadFindings> = all.iter().flat_map(Stairs::steps).collect();
    html! {
        @for part in full(all, findings, &detailed) {
            @match part {
                Part::Open(part) => (section(&part, &charts_of(all, &part, &palette))),
                Part::Folded(part) => (folded(all, findings, &part, &palette)),
            }
        }
    }
}

/// What is drawn of a section that all read.
fn charts_of(all: &[Stairs<'_>], section: &Section, palette: &Palette) -> Markup {
    let Some((stairs, part)) = part_of(all, &section.id) else {
        return match load_of(all, &section.id, "load-") {
            Some(load) => load_charts(load, palette),
            None => html! {},
        };
    };
    html! {
        div.charts {
            @match part {
                "throughput" => { @if let Some(chart) = charts::throughput_by_clients(stairs, palette) { (chart) } }
                "response" => { @if let Some(chart) = charts::response(stairs, palette) { (chart) } }
                _ => (cpu_charts(stairs, palette)),
            }
        }
    }
}

fn cpu_charts(stairs: &Stairs<'_>, palette: &Palette) -> Markup {
    let Some((_, load)) = stairs.nearest() else { return html! {} };
    let variants = in_order(stairs, load);
    html! {
        @if let Some(chart) = charts::data_plane(load, &variants, palette) { (chart) }
        @if let Some(chart) = charts::application(load, &variants, palette) { (chart) }
        @if let Some(chart) = charts::data_plane_by_clients(stairs, palette) { (chart) }
    }
}

fn folded(all: &[Stairs<'_>], findings: &Findings, part: &Folded, palette: &Palette) -> Markup {
    let load = load_of_findings(findings, &part.id, "cell-");
    let of = |section: &Section| match load {
        Some(load) => charts_of_step(all, section, load, palette),
        None => html! {},
    };
    html! {
        details id=(part.id) {
            summary { (part.title) }
            @for inner in &part.sections { (section(inner, &of(inner))) }
        }
    }
}

/// Memory over time is drawn of the step that leads only: the others would fill the page with flat lines.
fn charts_of_step(
    all: &[Stairs<'_>],
    section: &Section,
    load: &LoadFindings,
    palette: &Palette,
) -> Markup {
    let leads = nearest(all).iter().any(|leading| std::ptr::eq(*leading, load));
    match section.id.rsplit('-').next() {
        Some("cpu") => {
            html! { div.charts { @if let Some(chart) = charts::cpu(load, palette) { (chart) } } }
        }
        Some("memory") if leads => html! { div.charts { (charts::memory(load, palette)) } },
        _ if section.id.starts_with("load-") => load_charts(load, palette),
        _ => html! {},
    }
}

/// The load that an id counts, from 1.
fn load_of<'a>(all: &[Stairs<'a>], id: &str, prefix: &str) -> Option<&'a LoadFindings> {
    load_of_findings(all.first()?.findings, id, prefix)
}

fn load_of_findings<'a>(
    findings: &'a Findings,
    id: &str,
    prefix: &str,
) -> Option<&'a LoadFindings> {
    let number: usize = id.strip_prefix(prefix)?.parse().ok()?;
    findings.loads.get(number.checked_sub(1)?)
}
