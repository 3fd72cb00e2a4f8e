//! Charts of findings, as values. Each gives nothing when there is nothing to draw.

mod axes;
mod by_rate;
mod cells;
mod climb;
mod cpu;
mod effects;
mod heap;
mod latency;
mod memory;
mod response;
mod scaling;
mod service_times;
mod settled;
mod spans;

pub(super) use by_rate::{cpu_by_rate, latency_by_rate};
pub(super) use cells::cells;
pub(super) use climb::{data_plane_by_clients, throughput_by_clients};
pub(super) use cpu::{application, cpu, data_plane};
pub(super) use effects::effects;
pub(super) use heap::heap;
pub(super) use latency::latency;
pub(super) use memory::memory;
pub(super) use response::response;
pub(super) use scaling::scaling;
pub(super) use service_times::service_times;
pub(super) use settled::settled;
pub(super) use spans::spans;

use super::figures::Scale;
use crate::analysis::findings::Estimate;

/// `p50: bare 1.20 ms, sidecar 2.08 ms.`
fn described(name: &str, variants: &[(&str, Estimate)], scale: Scale) -> String {
    let figures =
        variants.iter().map(|(variant, of)| format!("{variant} {}", scale.with_unit(of.value)));
    format!("{name}: {}.", figures.collect::<Vec<_>>().join(", "))
}
