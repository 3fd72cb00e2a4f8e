//! Two axes and the unit of what is drawn on them.

use crate::analysis::findings::Estimate;
use crate::report::drawing::{Axis, Place, Point};
use crate::report::figures::Scale;
use crate::report::wording::with_interval;

/// The axes of a chart, or of several that compare.
pub(super) struct Axes {
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Of what `y` shows.
    pub(super) scale: Scale,
}

impl Axes {
    /// Where a value is drawn.
    pub(super) fn at(&self, x: f64, value: f64) -> Place {
        (self.x.at(x), self.height(value))
    }

    pub(super) fn height(&self, value: f64) -> f64 {
        self.y.at(self.scale.in_unit(value))
    }

    /// An estimate at a drawn `x`; it says `what` and its figure with the interval.
    pub(super) fn point(&self, x: f64, of: Estimate, what: &str) -> Point {
        let says = format!("{what}: {}", with_interval(self.scale, of));
        Point::of(x, of, |value| self.height(value), says)
    }
}
