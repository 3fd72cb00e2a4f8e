//! What all charts share: the figure around the drawing, axes, labels that do not collide.

use maud::{Markup, html};

use crate::report::figures::tick;

/// Width of every drawing in its own units. Small, so that text stays legible when a phone shrinks it.
pub(super) const WIDTH: f64 = 480.0;
/// Letters that fit beside a row or a line.
const LABEL_LETTERS: usize = 13;
const LINE_HEIGHT: f64 = 15.0;

/// A drawing with what is said around it.
pub(super) struct Chart {
    /// Unique in the document, made of letters, digits and hyphens.
    pub(super) id: String,
    /// What is shown; unique in the document.
    pub(super) title: String,
    /// Axes, units and signs, as a line below the title.
    pub(super) note: String,
    /// The content in words, for those who cannot see it.
    pub(super) describes: String,
    pub(super) height: f64,
    pub(super) marks: Markup,
    /// Class and name of each colour; empty when the drawing is labelled directly.
    pub(super) legend: Vec<(String, String)>,
}

impl Chart {
    pub(super) fn render(self) -> Markup {
        let (title_id, desc_id) = (format!("{}-title", self.id), format!("{}-desc", self.id));
        html! {
            figure id=(self.id) {
                figcaption { b { (self.title) } span { (self.note) } }
                svg viewBox=(format!("0 0 {WIDTH} {}", self.height)) role="img"
                    aria-labelledby=(format!("{title_id} {desc_id}")) {
                    title id=(title_id) { (self.title) }
                    desc id=(desc_id) { (self.describes) }
                    (self.marks)
                }
                @if !self.legend.is_empty() {
                    ul.legend {
                        @for (class, name) in &self.legend { li { i class=(class) {} (name) } }
                    }
                }
            }
        }
    }
}

/// Maps values to positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Axis {
    /// A linear axis over `low..high` drawn at `from..to`. An empty range is widened to one unit.
    pub(super) fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = bounded(low, high);
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, log: false }
    }

    /// A logarithmic axis; `low` must be above zero.
    pub(super) fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = bounded(low, high);
        let high = if high > low { high } else { low * 10.0 };
        Self { low, high, from, to, log: true }
    }

    /// Where `value` lies; values outside the axis lie at its ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// Whether `value` lies on the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values along the axis with their labels.
    pub(super) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
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
pub(super) fn round_step(rough: f64) -> f64 {
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let fits = steps.into_iter().find(|s| s * decade >= rough * 0.999);
    fits.unwrap_or(10.0) * decade
}

/// Lines across the drawing at the ticks of a vertical axis, with labels at their left.
pub(super) fn rows(axis: &Axis, about: usize, left: f64, right: f64) -> Markup {
    html! {
        @for (value, label) in axis.ticks(about) {
            @let y = axis.at(value);
            line.grid x1=(px(left)) x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
            text.tick x=(px(left - 7.0)) y=(px(y + 4.5)) text-anchor="end" { (label) }
        }
    }
}

/// Lines up the drawing at the ticks of a horizontal axis, with labels below.
pub(super) fn columns(axis: &Axis, about: usize, top: f64, bottom: f64) -> Markup {
    html! {
        @for (value, label) in axis.ticks(about) { (column(axis.at(value), &label, top, bottom)) }
    }
}

/// One line up the drawing with its label below.
pub(super) fn column(x: f64, label: &str, top: f64, bottom: f64) -> Markup {
    html! {
        line.grid x1=(px(x)) x2=(px(x)) y1=(px(top)) y2=(px(bottom)) {}
        text.tick x=(px(x)) y=(px(bottom + 17.0)) text-anchor="middle" { (label) }
    }
}

/// A coordinate with the one decimal that a screen can show.
pub(super) fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// A path through `points`.
pub(super) fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let steps: Vec<String> =
        points.into_iter().map(|(x, y)| format!("{} {}", px(x), px(y))).collect();
    format!("M{}", steps.join("L"))
}

/// `name`, cut to what fits beside a row.
pub(super) fn short(name: &str) -> String {
    cut(name, LABEL_LETTERS)
}

fn cut(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.into();
    }
    name.chars().take(letters - 1).chain(['…']).collect()
}

/// Pushes labels apart that want the same place; gives positions in the order of `wanted`.
pub(super) fn apart(wanted: &[f64], bottom: f64) -> Vec<f64> {
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
pub(super) fn slug(text: &str) -> String {
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
