//! What the first screen, the sections and the charts share on a subject: which of the findings belong to it, and in
//! which words. Draws nothing, lays nothing out.

pub(super) mod heap;
pub(super) mod scaling;
pub(super) mod spans;
pub(super) mod staircase;
pub(super) mod sweep;
pub(super) mod traffic;
