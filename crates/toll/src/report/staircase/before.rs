//! What each case changed at equal rate against the case before it. Draws nothing.

use crate::analysis::findings::{Effect, LoadFindings, Metric};
use crate::report::content::{Detail, effect_cells, effect_columns, in_first_order};
use crate::report::sweep::listed;
use crate::report::table::{Cell, Group, Piece, Table};
use crate::report::wording::{difference_scale, measured_scale, metric_title};

const METRICS: [Metric; 3] = [Metric::LatencyP50, Metric::CpuPerRequest, Metric::MeshCpuPerRequest];

/// A group a metric, a row a case; nothing where each case has only the baseline before it.
pub(in crate::report) fn against_the_case_before(load: &LoadFindings) -> Vec<Piece> {
    let pairs: Vec<String> = in_first_order(load.between.iter().map(|e| e.variant.as_str()))
        .into_iter()
        .filter_map(|variant| {
            let of = load.between.iter().find(|e| e.variant == variant)?;
            Some(format!("{variant} against {}", of.against.as_deref()?))
        })
        .collect();
    let groups: Vec<Group> = METRICS.into_iter().filter_map(|m| group(load, m)).collect();
    if groups.is_empty() {
        return vec![];
    }
    let columns = effect_columns(&load.between);
    let text = format!("Against the case before: {}.", listed(&pairs));
    vec![Piece::Text(text), Piece::Table(Table { columns, groups })]
}

fn group(load: &LoadFindings, metric: Metric) -> Option<Group> {
    let effects: Vec<&Effect> = load.between.iter().filter(|e| e.metric == metric).collect();
    let scale = difference_scale(measured_scale(load, metric), effects.iter().copied());
    let row = |effect: &&Effect| {
        let cells = effect_cells(effect, scale, Detail::Brief);
        std::iter::once(Cell::from(&effect.variant)).chain(cells).collect()
    };
    let rows: Vec<Vec<Cell>> = effects.iter().map(row).collect();
    let title = Some(format!("{}, {}", metric_title(metric), scale.unit()));
    (!rows.is_empty()).then_some(Group { title, rows })
}
