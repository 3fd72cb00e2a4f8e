//! The integral of an arrival rate and its inverse: how many arrivals are to be expected, and by when.
//!
//! The integral of a straight line is a quadratic. With the rate in millionths per second and the time in
//! nanoseconds its double is a whole number, so that the pieces add up without rounding. The inverse is floored
//! to a nanosecond and exact: closed form in floating point, settled in whole numbers where that is in doubt.

use std::sync::Arc;

use super::profile::Line;

/// One arrival in the unit of the integral: 2 x (millionths per second) x nanoseconds.
pub(super) const ARRIVAL: u128 = 2_000_000_000_000_000;

/// The closed form's relative error: a dozen roundings of 2^-53 each, and some more.
const RELATIVE_ERROR: f64 = 16.0 * f64::EPSILON;

/// The integral of a rate, asked for ever higher values.
#[derive(Debug, Clone)]
pub(super) struct CumulativeRate {
    pieces: Arc<[Piece]>,
    current: usize,
}

impl CumulativeRate {
    pub fn new(lines: Vec<Line>) -> CumulativeRate {
        let mut before = 0;
        let piece = |line| {
            let piece = Piece::new(line, before);
            before = piece.after;
            piece
        };
        CumulativeRate { pieces: lines.into_iter().map(piece).collect(), current: 0 }
    }

    /// The first whole nanosecond after which the integral is more than `expected`; `None` when it never is.
    /// Hence a stretch of rate zero has no arrival, and exactly ceil(integral up to t) fall before any t.
    /// Calls must not go back.
    pub fn instant_past(&mut self, expected: u128) -> Option<u64> {
        loop {
            let piece = self.pieces.get(self.current)?;
            if expected < piece.after {
                return Some(piece.line.begin_ns + piece.instant(expected - piece.before));
            }
            self.current += 1;
        }
    }
}

/// One line with its integral.
#[derive(Debug, Clone)]
struct Piece {
    line: Line,
    /// Integral up to the line's begin.
    before: u128,
    /// Integral up to its end.
    after: u128,
    /// Change of the rate each nanosecond, millionths per second.
    slope: f64,
    /// How far the closed form may be off, nanoseconds.
    doubt: f64,
}

impl Piece {
    fn new(line: Line, before: u128) -> Piece {
        let length = line.length_ns as f64;
        let area = u128::from(line.from + line.to) * u128::from(line.length_ns);
        Piece {
            line,
            before,
            after: before + area,
            slope: line.rise() as f64 / length,
            doubt: 1e-6 + length * RELATIVE_ERROR,
        }
    }

    /// Nanoseconds, floored, from the line's begin until its own integral is `area`, which it exceeds.
    fn instant(&self, area: u128) -> u64 {
        if self.line.from == self.line.to {
            // `area` is below 2^64 times the divisor, which is the line's length at most.
            return (area / u128::from(2 * self.line.from)) as u64;
        }
        let instant = self.closed_form(area);
        let floor = instant as u64;
        let above = instant - floor as f64;
        if above > self.doubt && above < 1.0 - self.doubt {
            return floor;
        }
        self.settle(floor, area)
    }

    /// The root of a quadratic, from the end at which the rate is lower: all terms are positive there, nothing
    /// cancels, and a ramp to zero is as exact as one from zero.
    fn closed_form(&self, area: u128) -> f64 {
        let Line { from, to, length_ns, .. } = self.line;
        let root = |lower: u64, area: u128| {
            let (lower, area) = (lower as f64, to_f64(area));
            // At the very begin of a ramp from zero this is 0 / 0, and `max` makes it 0.
            (area / (lower + (lower * lower + self.slope * area).sqrt())).max(0.0)
        };
        if from < to {
            root(from, area)
        } else {
            length_ns as f64 - root(to, self.after - self.before - area)
        }
    }

    /// Corrects an estimate. The answer lies before the line's end, behind which the quadratic means nothing.
    fn settle(&self, estimate: u64, area: u128) -> u64 {
        let last = self.line.length_ns - 1;
        let mut instant = estimate.min(last);
        while !self.within(instant, area) {
            instant -= 1;
        }
        while instant < last && self.within(instant + 1, area) {
            instant += 1;
        }
        instant
    }

    /// Whether the line's integral after so many nanoseconds is at most `area`, in whole numbers.
    fn within(&self, instant: u64, area: u128) -> bool {
        let (t, length) = (u128::from(instant), u128::from(self.line.length_ns));
        let (rise, base) = (u128::from(self.line.rise()), 2 * u128::from(self.line.from) * t);
        // rise * t * t / length, in two steps because the product may not fit.
        let (whole, rest) = (t * t / length, rise * (t * t % length));
        let bend = rise * whole + rest / length;
        if self.line.from < self.line.to {
            base + bend + u128::from(rest % length > 0) <= area
        } else {
            base <= area + bend
        }
    }
}

/// Off by two roundings at most, at a fraction of the time that the exact conversion takes.
fn to_f64(number: u128) -> f64 {
    const TWO_TO_THE_64: f64 = 18_446_744_073_709_551_616.0;
    (number >> 64) as u64 as f64 * TWO_TO_THE_64 + number as u64 as f64
}
