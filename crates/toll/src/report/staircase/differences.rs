//! What each case costs in one table: against the baseline, then against the case before it. Draws nothing.

use super::Stairs;
use super::words::{as_change, marked, microseconds, percents, signed_interval, verdict};
use crate::analysis::findings::{Estimate, NoiseFloors, StaircaseDifference};
use crate::report::content::{Detail, in_first_order, section};
use crate::report::figures::{Scale, ratio, share};
use crate::report::sweep::listed;
use crate::report::table::{Cell, Column, Group, Piece, Section, Table, Tone, figures, words};

/// A group for what each is held against; none without two variants.
pub(super) fn differences(stairs: &Stairs<'_>, detail: Detail) -> Option<Section> {
    let first = stairs.of.differences.first()?;
    let level = first.throughput_ratio.level * 100.0;
    let text = format!(
        "Over all steps, paired within blocks: throughput in % (geometric mean of the steps), CPU of a request in µs (mean of the steps). Below each its {level:.0}\u{a0}% interval. The data plane is sidecars, egress gateway and SNI proxy; what TLS takes inside the services is the application's own. A loop goes flat out, so rates differ. A question mark before a figure: cannot be told; an equals sign: no difference larger than the study's bound."
    );
    let table = Table { columns: columns(detail), groups: groups(stairs, detail) };
    let floors = floors(&stairs.of.noise_floors).map(Piece::Text);
    let pieces = [Piece::Text(text)].into_iter().chain(floors).chain([Piece::Table(table)]);
    Some(section(stairs.id("differences"), stairs.title("What each case costs"), pieces.collect()))
}

/// None without two starts of the baseline.
fn floors(of: &NoiseFloors) -> Option<String> {
    // A baseline without proxies has nothing in which its starts could differ.
    let some = |floor: Option<f64>| floor.filter(|us| *us > 0.0);
    let cpu = |floor| some(floor).map(|us| microseconds([us]).with_unit(us));
    let floors = [
        of.throughput.map(|floor| format!("{} of the throughput", share(floor))),
        cpu(of.mesh_cpu_us).map(|floor| format!("{floor} in the data plane")),
        cpu(of.application_cpu_us).map(|floor| format!("{floor} in the application")),
    ];
    let known: Vec<String> = floors.into_iter().flatten().collect();
    (!known.is_empty())
        .then(|| format!("Noise floors, from the baseline against itself: {}.", listed(&known)))
}

/// A brief report has no room for ratios.
fn columns(detail: Detail) -> Vec<Column> {
    let mut columns = vec![words(""), figures("throughput, %"), figures("data plane, µs")];
    columns.extend((detail == Detail::Full).then(|| figures("ratio")));
    columns.extend([figures("application, µs")]);
    columns.extend((detail == Detail::Full).then(|| words("verdict on throughput")));
    columns
}

fn groups(stairs: &Stairs<'_>, detail: Detail) -> Vec<Group> {
    let baseline = &stairs.findings.baseline;
    let sheet = Sheet { detail, ..Sheet::of(stairs) };
    let all = &stairs.of.differences;
    let group = |against: &str| {
        let of = all.iter().filter(|d| d.against == against);
        let is_before = if against == baseline { "" } else { ", the case before" };
        Group {
            title: Some(format!("against {against}{is_before}")),
            rows: of.flat_map(|d| sheet.rows(d)).collect(),
        }
    };
    in_first_order(all.iter().map(|d| d.against.as_str())).into_iter().map(group).collect()
}

/// The scales that all rows share.
struct Sheet<'a> {
    stairs: Stairs<'a>,
    mesh: Scale,
    application: Scale,
    detail: Detail,
}

impl<'a> Sheet<'a> {
    fn of(stairs: &Stairs<'a>) -> Self {
        let scale = |part: fn(&StaircaseDifference) -> Option<Estimate>| {
            microseconds(stairs.of.differences.iter().filter_map(part).map(|e| e.value))
        };
        Self {
            stairs: *stairs,
            mesh: scale(|d| d.mesh_cpu_us),
            application: scale(|d| d.application_cpu_us),
            detail: Detail::Full,
        }
    }

    /// A row of figures, and one of their intervals.
    fn rows(&self, of: &StaircaseDifference) -> [Vec<Cell>; 2] {
        let change = as_change(of.throughput_ratio);
        let percents = percents();
        let absent = || Cell::toned("–", Tone::Quiet);
        let plain = |scale: Scale, e: Option<Estimate>, verdict| {
            e.map_or_else(absent, |e| marked(verdict, &scale.signed(e.value)))
        };
        // What has none takes nothing less of it.
        let mesh = of.mesh_cpu_us.filter(|_| self.stairs.has_data_plane(&of.variant));
        let below = |scale: Scale, e: Option<Estimate>| {
            e.map_or_else(Cell::default, |e| quiet(signed_interval(scale, e)))
        };
        // A variant without a data plane is no fraction of one that has it.
        let times = of.mesh_cpu_ratio.filter(|e| e.value > 0.0);
        let times = times.map_or_else(absent, |e| ratio(e.value).into());
        let figures = [
            of.variant.as_str().into(),
            marked(Some(of.verdict), &percents.signed(change.value)),
            plain(self.mesh, mesh, of.mesh_cpu_verdict),
            times,
            plain(self.application, of.application_cpu_us, of.application_cpu_verdict),
            judged(of, self.detail),
        ];
        let intervals = [
            Cell::default(),
            quiet(signed_interval(percents, change)),
            below(self.mesh, mesh),
            Cell::default(),
            below(self.application, of.application_cpu_us),
            Cell::default(),
        ];
        [figures, intervals].map(|cells| self.shown(cells))
    }

    fn shown(&self, cells: [Cell; 6]) -> Vec<Cell> {
        let [name, throughput, mesh, times, application, verdict] = cells;
        match self.detail {
            Detail::Brief => vec![name, throughput, mesh, application],
            Detail::Full => vec![name, throughput, mesh, times, application, verdict],
        }
    }
}

pub(super) fn judged(of: &StaircaseDifference, detail: Detail) -> Cell {
    let said = verdict(of.verdict, of.throughput_ratio.value);
    match (detail, said.tone) {
        (Detail::Brief, Tone::Unknown) => Cell::toned("cannot tell", said.tone),
        (Detail::Brief, Tone::Same) => Cell::toned("no difference", said.tone),
        _ => said,
    }
}

fn quiet(text: String) -> Cell {
    Cell::toned(text, Tone::Quiet)
}
