//! Charts as values: marks at their places in a drawing, and what is said around them. Knows axes and labels that do
//! not collide; knows no colours, which are the page's.

use super::figures::reach;
use super::figures::tick;
use crate::analysis::findings::{Estimate, Role};

/// Width of every drawing in its own units. Small, so that text stays legible when a phone shrinks it.
pub const WIDTH: f64 = 480.0;
/// Letters that fit beside a row or a line.
const LABEL_LETTERS: usize = 13;
const LINE_HEIGHT: f64 = 15.0;
/// From the middle of a text to its baseline.
const BASELINE: f64 = 4.5;

/// A drawing with what is said around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Unique in the document, made of letters, digits and hyphens.
    pub id: String,
    /// What is shown; unique in the document.
    pub title: String,
    /// Axes, units and signs, as a line below the title.
    pub note: String,
    /// The content in words, a sentence each, for those who cannot see it.
    pub describes: Vec<String>,
    pub height: f64,
    pub marks: Vec<Mark>,
    /// What each colour is; empty when the drawing is labelled directly.
    pub legend: Vec<(Ink, String)>,
}

/// What has a colour of its own in a whole report.
#[derive(Debug, Clone, PartialEq)]
pub enum Ink {
    Variant(String),
    /// An owner, or a role where owners are merged.
    Part(String, Role),
}

impl Ink {
    pub fn of(variant: &str) -> Self {
        Self::Variant(variant.into())
    }
}

/// Something drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub shape: Shape,
    /// How it is drawn; may be empty.
    pub class: &'static str,
    pub ink: Option<Ink>,
    /// Said where it is pointed at.
    pub title: Option<String>,
}

/// From left and from above.
pub type Place = (f64, f64);

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Group(Vec<Mark>),
    Line { x: [f64; 2], y: [f64; 2] },
    Path(String),
    Circle { at: Place, radius: f64 },
    Rect { at: Place, size: (f64, f64) },
    Text { at: Place, anchor: Option<&'static str>, text: String },
}

impl Mark {
    fn new(class: &'static str, shape: Shape) -> Self {
        Self { shape, class, ink: None, title: None }
    }

    pub fn inked(self, ink: Ink) -> Self {
        Self { ink: Some(ink), ..self }
    }

    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// A text that ends at its place, or has its middle there.
    pub fn anchored(mut self, at: &'static str) -> Self {
        if let Shape::Text { anchor, .. } = &mut self.shape {
            *anchor = Some(at);
        }
        self
    }
}

/// Marks in the colour of a variant.
pub fn group(variant: &str, marks: Vec<Mark>) -> Mark {
    Mark::new("", Shape::Group(marks)).inked(Ink::of(variant))
}

/// Marks together.
pub fn plain_group(class: &'static str, marks: Vec<Mark>) -> Mark {
    Mark::new(class, Shape::Group(marks))
}

pub fn line(class: &'static str, x: [f64; 2], y: [f64; 2]) -> Mark {
    Mark::new(class, Shape::Line { x, y })
}

pub fn upright(x: f64, y: [f64; 2]) -> Mark {
    line("interval", [x, x], y)
}

/// A line through these places.
pub fn path(class: &'static str, places: impl IntoIterator<Item = Place>) -> Mark {
    Mark::new(class, Shape::Path(through(places)))
}

/// What lies between these places.
pub fn area(class: &'static str, places: impl IntoIterator<Item = Place>) -> Mark {
    Mark::new(class, Shape::Path(through(places) + "Z"))
}

/// The band from the lower to the upper of each pair.
pub fn band(pairs: &[[Place; 2]]) -> Mark {
    let up = pairs.iter().map(|[_, high]| *high);
    area("band", up.chain(pairs.iter().rev().map(|[low, _]| *low)))
}

pub fn circle(class: &'static str, at: Place, radius: f64) -> Mark {
    Mark::new(class, Shape::Circle { at, radius })
}

pub fn rect(class: &'static str, at: Place, size: (f64, f64)) -> Mark {
    Mark::new(class, Shape::Rect { at, size })
}

pub fn text(class: &'static str, at: Place, text: impl Into<String>) -> Mark {
    Mark::new(class, Shape::Text { at, anchor: None, text: text.into() })
}

/// A text whose middle is at this height.
pub fn beside(class: &'static str, (x, y): Place, said: impl Into<String>) -> Mark {
    text(class, (x, y + BASELINE), said)
}

/// A triangle that points down to where something goes on.
pub fn arrow((x, y): Place) -> Mark {
    Mark::new("arrow", Shape::Path(format!("M{} {}l4 7l-8 0Z", px(x), px(y))))
}

/// What a variant shows from place to place; never without one.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve<'a> {
    pub variant: &'a str,
    pub points: Vec<Point>,
}

/// A place of a [`Curve`], the heights of its interval's ends, and what is said there.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub at: Place,
    pub ends: [f64; 2],
    pub says: String,
}

impl Point {
    /// An estimate at `x`; `y` is the height of a value.
    pub fn of(x: f64, of: Estimate, y: impl Fn(f64) -> f64, says: String) -> Self {
        let (low, high) = reach(of);
        Self { at: (x, y(of.value)), ends: [y(low), y(high)], says }
    }

    pub fn dot(&self, class: &'static str, radius: f64) -> Mark {
        circle(class, self.at, radius).titled(&self.says)
    }

    /// With its interval.
    pub fn whole(&self, class: &'static str, radius: f64) -> [Mark; 2] {
        [upright(self.at.0, self.ends), self.dot(class, radius)]
    }
}

impl Curve<'_> {
    pub fn end(&self) -> Place {
        self.points.last().map_or((0.0, 0.0), |point| point.at)
    }

    pub fn line(&self) -> Mark {
        path("line", self.points.iter().map(|point| point.at))
    }

    pub fn band(&self) -> Mark {
        let ends = |Point { at: (x, _), ends: [low, high], .. }: &Point| [(*x, *low), (*x, *high)];
        band(&self.points.iter().map(ends).collect::<Vec<_>>())
    }
}

/// The ends of curves with their names.
pub fn named_ends<'a>(curves: &'a [Curve<'a>]) -> Vec<(&'a str, Place)> {
    curves.iter().map(|curve| (curve.variant, curve.end())).collect()
}

/// Where the axes of a drawing lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// A horizontal axis.
    pub fn across(&self, low: f64, high: f64) -> Axis {
        Axis::linear(low, high, self.left, self.right)
    }

    /// A vertical axis.
    pub fn up(&self, low: f64, high: f64) -> Axis {
        Axis::linear(low, high, self.bottom, self.top)
    }

    /// The same, logarithmic.
    pub fn log_up(&self, low: f64, high: f64) -> Axis {
        Axis::log(low, high, self.bottom, self.top)
    }

    /// Lines across the drawing at the ticks of a vertical axis, with labels at their left.
    pub fn rows(&self, axis: &Axis, about: usize) -> Vec<Mark> {
        let row = |(value, label): (f64, String)| {
            let y = axis.at(value);
            let label = beside("tick", (self.left - 7.0, y), label).anchored("end");
            [line("grid", [self.left, self.right], [y, y]), label]
        };
        axis.ticks(about).into_iter().flat_map(row).collect()
    }

    /// The ticks of a horizontal axis, below.
    pub fn feet(&self, axis: &Axis, about: usize) -> Vec<Mark> {
        columns(axis, about, self.bottom, self.bottom)
    }

    /// Names of variants right of where their lines end, each with a leader, so that none stands on another; `far` is
    /// how far right leader and name are.
    pub fn names(&self, ends: &[(&str, Place)], far: [f64; 2]) -> Vec<[Mark; 2]> {
        let wanted: Vec<f64> = ends.iter().map(|(_, (_, y))| *y).collect();
        let named = |((name, end), y): (&(&str, Place), f64)| {
            let leader = path("leader", [*end, (self.right + far[0], y)]);
            [leader, beside("label", (self.right + far[1], y), short(name))]
        };
        ends.iter().zip(apart(&wanted, self.bottom)).map(named).collect()
    }
}

/// Where each of some rows begins that stand below each other, and where the last ends.
pub fn stacked(heights: impl Iterator<Item = f64>) -> (Vec<f64>, f64) {
    let mut end = 0.0;
    let tops = heights.map(|height| {
        let top = end;
        end += height;
        top
    });
    (tops.collect(), end)
}

/// Lines up the drawing at the ticks of a horizontal axis, with labels below.
pub fn columns(axis: &Axis, about: usize, top: f64, bottom: f64) -> Vec<Mark> {
    let column = |(value, label): (f64, String)| column(axis.at(value), label, top, bottom);
    axis.ticks(about).into_iter().flat_map(column).collect()
}

/// One line up the drawing with its label below.
pub fn column(x: f64, label: impl Into<String>, top: f64, bottom: f64) -> [Mark; 2] {
    let label = text("tick", (x, bottom + 17.0), label).anchored("middle");
    [line("grid", [x, x], [top, bottom]), label]
}

/// Maps values to positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    /// A linear axis over `low..high` drawn at `from..to`. An empty range is widened to one unit.
    pub fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = bounded(low, high);
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, log: false }
    }

    /// A logarithmic axis; `low` must be above zero.
    pub fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = bounded(low, high);
        let high = if high > low { high } else { low * 10.0 };
        Self { low, high, from, to, log: true }
    }

    /// Where `value` lies; values outside the axis lie at its ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// Whether `value` lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values along the axis with their labels.
    pub fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        if self.log { self.log_ticks() } else { self.linear_ticks(about) }
    }

    fn linear_ticks(&self, about: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / about as f64);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).map(|v| (v, tick(v, step))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let steps: &[f64] =
            if (self.high / self.low).log10() < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        decades
            .flat_map(|d| steps.iter().map(move |s| (s * 10f64.powi(d), 10f64.powi(d))))
            .filter(|(v, _)| (self.low * 0.999..=self.high * 1.001).contains(v))
            .map(|(v, decade)| (v, tick(v, decade)))
            .collect()
    }
}

/// Ticks over an endless axis would never end.
fn bounded(low: f64, high: f64) -> (f64, f64) {
    if (high - low).is_finite() { (low, high) } else { (1.0, 2.0) }
}

/// The next of 1, 2, 5, 10 ... at or above `rough`.
fn round_step(rough: f64) -> f64 {
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let fits = steps.into_iter().find(|s| s * decade >= rough * 0.999);
    fits.unwrap_or(10.0) * decade
}

/// A coordinate with the one decimal that a screen can show.
pub fn px(value: f64) -> String {
    format!("{value:.1}")
}

fn through(places: impl IntoIterator<Item = Place>) -> String {
    let step = |(x, y): Place| format!("{} {}", px(x), px(y));
    format!("M{}", places.into_iter().map(step).collect::<Vec<_>>().join("L"))
}

/// `name`, cut to what fits beside a row.
pub fn short(name: &str) -> String {
    if name.chars().count() <= LABEL_LETTERS {
        return name.into();
    }
    name.chars().take(LABEL_LETTERS - 1).chain(['…']).collect()
}

/// Pushes labels apart that want the same place; gives positions in the order of `wanted`.
fn apart(wanted: &[f64], bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed = wanted.to_vec();
    for pair in order.windows(2) {
        placed[pair[1]] = placed[pair[1]].max(placed[pair[0]] + LINE_HEIGHT);
    }
    let mut limit = bottom;
    for at in order.into_iter().rev() {
        placed[at] = placed[at].min(limit);
        limit = placed[at] - LINE_HEIGHT;
    }
    placed
}

/// `text` as part of an id; different texts give different ids.
pub fn slug(text: &str) -> String {
    let letter = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '-' => c.to_string(),
        c => format!("_{:x}_", c as u32),
    };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_lie_on_the_axis() {
        let labels = |axis: Axis| axis.ticks(4).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(labels(Axis::linear(0.0, 870.0, 0.0, 1.0)), ["0", "500"]);
        assert_eq!(labels(Axis::linear(-0.13, 0.31, 0.0, 1.0)), ["0.0", "0.2"]);
        assert_eq!(labels(Axis::log(0.8, 60.0, 0.0, 1.0)), ["1", "2", "5", "10", "20", "50"]);
    }

    #[test]
    fn an_axis_without_range_still_places_its_value() {
        assert!(Axis::linear(5.0, 5.0, 0.0, 100.0).at(5.0).is_finite());
        assert!(Axis::log(5.0, 5.0, 0.0, 100.0).at(5.0).is_finite());
        assert!(Axis::linear(0.0, f64::INFINITY, 0.0, 100.0).ticks(5).len() < 10);
        assert!(Axis::log(1.0, f64::INFINITY, 0.0, 100.0).ticks(5).len() < 10);
    }

    #[test]
    fn labels_that_want_one_place_end_up_a_line_apart_and_inside() {
        let placed = apart(&[50.0, 52.0, 10.0, 99.0], 100.0);
        let mut sorted = placed.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|w| w[1] - w[0] >= LINE_HEIGHT), "{placed:?}");
        assert!(sorted[3] <= 100.0);
    }
}
