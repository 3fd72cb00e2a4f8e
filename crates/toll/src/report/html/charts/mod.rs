//! Charts as inline SVG. Each takes findings and a palette and gives a figure, or nothing when there is nothing to draw.

mod cpu;
mod effects;
mod frame;
mod latency;
mod memory;
mod settled;
mod throughput;

pub(super) use cpu::cpu;
pub(super) use effects::effects;
pub(super) use latency::latency;
pub(super) use memory::memory;
pub(super) use settled::settled;
pub(super) use throughput::throughput;
