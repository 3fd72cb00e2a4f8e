//! CPU of a request by who uses it: the data plane's proxies by role, and the application's services apart.

use super::throughput::by_clients;
use super::words::microseconds;
use crate::analysis::findings::{Estimate, Metric, Role, VariantLoad};
use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::Scale;
use crate::report::parts::{self, Part};
use crate::report::subjects::staircase::{Stairs, in_order, several_clients};
use crate::report::values::in_first_order;
use crate::report::wording::interval;

/// A table of one step by role, and the data plane at every step.
pub(super) fn cpu(stairs: &Stairs<'_>) -> Option<Section> {
    let (clients, load) = stairs.nearest()?;
    let all = in_order(stairs, load);
    let text = format!(
        "CPU time by completed request with {}, µs, means over rounds. The application's own is that of its services alone, TLS to the database included.",
        several_clients(clients)
    );
    let pieces = vec![
        Piece::Text(text),
        Piece::Table(by_role(&all)),
        Piece::Heading(stairs.title("Data plane by clients, µs a request")),
        Piece::Table(by_clients(stairs, microseconds, false, |step| step.mesh_cpu_us)),
    ];
    let charts = [
        charts::data_plane(load, &all),
        charts::application(load, &all),
        charts::data_plane_by_clients(stairs),
    ];
    let section = Section::new(stairs.id("cpu"), stairs.title("CPU of a request"), pieces);
    Some(section.showing(charts.into_iter().flatten().collect()))
}

fn by_role(all: &[&VariantLoad]) -> Table {
    let split: Vec<Vec<Part>> =
        all.iter().map(|v| parts::merged(parts::of_costs(&v.cpu_per_request))).collect();
    let scale = microseconds(split.iter().flatten().map(|part| part.value));
    let sheet = Sheet { all, split, scale };
    let mesh = sheet.roles(Role::is_data_plane).into_iter();
    let others = sheet.sums("application's own", Metric::ApplicationCpuPerRequest).into_iter();
    let others = others.chain(sheet.roles(|role| role == Role::Database));
    let groups = [
        ("data plane", mesh.chain(sheet.sums("all of it", Metric::MeshCpuPerRequest)).collect()),
        ("apart from it", others.collect()),
        ("together", sheet.sums("CPU of a request", Metric::CpuPerRequest)),
    ];
    let groups = groups.into_iter().filter(|(_, rows): &(_, Vec<_>)| !rows.is_empty());
    let groups = groups.map(|(title, rows)| Group { title: Some(title.into()), rows }).collect();
    let heads = all.iter().map(|v| figures(&v.variant));
    Table { columns: std::iter::once(words("")).chain(heads).collect(), groups }
}

/// The variants, their CPU by role, and how it is shown.
struct Sheet<'a> {
    all: &'a [&'a VariantLoad],
    split: Vec<Vec<Part>>,
    scale: Scale,
}

impl Sheet<'_> {
    /// A row a role.
    fn roles(&self, is_shown: impl Fn(Role) -> bool) -> Vec<Vec<Cell>> {
        let parts = self.split.iter().flatten().filter(|part| is_shown(part.role)).cloned();
        let parts = parts::by_role(parts.collect());
        let row = |name: &str| {
            let value = |of: &Vec<Part>| of.iter().find(|p| p.name == name).map(|p| p.value);
            self.row(name, self.split.iter().map(value))
        };
        in_first_order(parts.iter().map(|p| p.name.as_str())).into_iter().map(row).collect()
    }

    fn row(&self, title: &str, values: impl Iterator<Item = Option<f64>>) -> Vec<Cell> {
        let cells =
            values.map(|value| value.map_or_else(Cell::absent, |v| self.scale.plain(v).into()));
        std::iter::once(title.into()).chain(cells).collect()
    }

    /// A metric of all variants, with the intervals below.
    fn sums(&self, title: &str, metric: Metric) -> Vec<Vec<Cell>> {
        let values: Vec<Option<Estimate>> = self.all.iter().map(|v| of(v, metric)).collect();
        if values.iter().all(Option::is_none) {
            return vec![];
        }
        let sums = self.row(title, values.iter().map(|e| e.map(|e| e.value)));
        let sums = sums.into_iter().map(|cell| Cell::toned(cell.text, Tone::Sum)).collect();
        let below = |e: &Option<Estimate>| {
            Cell::toned(e.map_or_else(String::new, |e| interval(self.scale, e)), Tone::Quiet)
        };
        let intervals = std::iter::once(Cell::default()).chain(values.iter().map(below)).collect();
        vec![sums, intervals]
    }
}

fn of(variant: &VariantLoad, metric: Metric) -> Option<Estimate> {
    variant.metrics.iter().find(|(m, _)| *m == metric).map(|(_, of)| *of)
}
