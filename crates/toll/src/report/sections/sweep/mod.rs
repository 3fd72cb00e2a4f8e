//! Turns a run that sweeps a load (a cell for each rate and size) into few sections: one overview of all cells, what
//! grows with what; what one cell shows has sections of its own. Draws nothing.

mod cells;
mod overview;
mod published;
mod resources;
mod scaling;
mod service_times;
mod words;

use crate::report::document::Section;
use crate::report::subjects::sweep::Sweep;

pub(in crate::report) use cells::cells;
pub(in crate::report) use published::published;

/// What all cells show together.
pub(in crate::report) fn sections(sweep: &Sweep<'_>) -> Vec<Section> {
    let sections = [
        sweep.is_of_pods_or_rates().then(|| overview::overview(sweep)),
        scaling::scaling(sweep),
        service_times::service_times(sweep),
        resources::resources(sweep),
        resources::top(sweep),
    ];
    sections.into_iter().flatten().collect()
}
