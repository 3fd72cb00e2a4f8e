//! Memory over time, one chart a variant on shared axes, stacked by component.

use crate::analysis::findings::{LoadFindings, MemorySeries, VariantLoad};
use crate::report::drawing::{Axis, Chart, Frame, Ink, Mark, Place, WIDTH, area, line, slug, text};
use crate::report::figures::{Quantity, Scale};
use crate::report::owners::{label, role_name};
use crate::report::parts::are_too_many;

const FRAME: Frame = Frame { left: 46.0, right: WIDTH - 14.0, top: 20.0, bottom: 180.0 };
const HEIGHT: f64 = 204.0;
/// Instants at which the stack is drawn; a screen shows no more.
const INSTANTS: usize = 160;

/// One chart for each variant that has readings.
pub(in crate::report) fn memory(load: &LoadFindings) -> Vec<Chart> {
    let by_role = are_too_many(&load.variants);
    let stacks: Vec<Stack> = load.variants.iter().filter_map(|v| Stack::of(v, by_role)).collect();
    let highest = stacks.iter().map(Stack::highest).fold(0.0, f64::max);
    let scale = Scale::of(Quantity::BinaryBytes, [highest]);
    let (first, last) = stacks.iter().fold((f64::MAX, f64::MIN), |(f, l), s| {
        (f.min(s.instants[0]), l.max(s.instants[INSTANTS]))
    });
    let plot = Plot {
        x: FRAME.across(first, last),
        y: FRAME.up(0.0, scale.in_unit(highest) * 1.05),
        scale,
        warm_up: first < 0.0 && last > 0.0,
    };
    stacks.iter().map(|stack| plot.chart(stack, &load.name)).collect()
}

/// Layers of memory on a shared grid of instants.
struct Stack {
    variant: String,
    /// `INSTANTS + 1` instants, seconds since the measured phase began.
    instants: Vec<f64>,
    layers: Vec<Layer>,
}

struct Layer {
    name: String,
    ink: Ink,
    /// Bytes at each instant.
    bytes: Vec<f64>,
}

impl Stack {
    fn of(variant: &VariantLoad, by_role: bool) -> Option<Self> {
        let known = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
        let times = || variant.memory.iter().flat_map(|s| &s.points).filter(known).map(|(t, _)| *t);
        times().next()?;
        let first = times().fold(f64::MAX, f64::min);
        let last = times().fold(f64::MIN, f64::max);
        let instants: Vec<f64> =
            (0..=INSTANTS).map(|i| first + (last - first) * i as f64 / INSTANTS as f64).collect();
        let mut stack = Self { variant: variant.variant.clone(), instants, layers: vec![] };
        let mut in_order: Vec<&MemorySeries> = variant.memory.iter().collect();
        in_order.sort_by_key(|series| series.owner.role);
        in_order.into_iter().for_each(|series| stack.add(series, by_role));
        Some(stack)
    }

    fn add(&mut self, series: &MemorySeries, by_role: bool) {
        let bytes: Vec<f64> = self.instants.iter().map(|t| reading_at(series, *t)).collect();
        let role = series.owner.role;
        let name = if by_role { role_name(role).into() } else { label(&series.owner) };
        match self.layers.iter_mut().find(|l| l.name == name) {
            Some(layer) => layer.bytes.iter_mut().zip(bytes).for_each(|(sum, b)| *sum += b),
            None => self.layers.push(Layer { ink: Ink::Part(name.clone(), role), name, bytes }),
        }
    }

    fn highest(&self) -> f64 {
        (0..=INSTANTS).map(|i| self.total(i)).fold(0.0, f64::max)
    }

    fn total(&self, instant: usize) -> f64 {
        self.layers.iter().map(|l| l.bytes[instant]).sum()
    }
}

/// The last reading at or before `instant`; the first one before any.
fn reading_at(series: &MemorySeries, instant: f64) -> f64 {
    let known = || series.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite());
    let before = known().take_while(|p| p.0 <= instant).last();
    before.or(known().next()).map_or(0.0, |p| p.1)
}

struct Plot {
    x: Axis,
    y: Axis,
    scale: Scale,
    warm_up: bool,
}

impl Plot {
    fn chart(&self, stack: &Stack, load: &str) -> Chart {
        let end = self.scale.with_unit(stack.total(INSTANTS));
        let start = self.scale.with_unit(stack.total(0));
        // Top of the stack first, as the eye reads it.
        let legend = stack.layers.iter().rev().map(|l| (l.ink.clone(), l.name.clone()));
        Chart {
            id: format!("memory-{}-{}", slug(load), slug(&stack.variant)),
            title: format!("Memory of {}, {load}", stack.variant),
            note: format!("{} by seconds since measuring began", self.scale.unit()),
            describes: vec![format!("{} goes from {start} to {end}.", stack.variant)],
            height: HEIGHT,
            marks: self.marks(stack),
            legend: legend.collect(),
        }
    }

    fn marks(&self, stack: &Stack) -> Vec<Mark> {
        let mut marks = [FRAME.rows(&self.y, 4), FRAME.feet(&self.x, 6)].concat();
        let mut below = vec![0.0; stack.instants.len()];
        for layer in &stack.layers {
            let end = self.scale.with_unit(layer.bytes[INSTANTS]);
            let says = format!("{}, {}: {end} at the end", stack.variant, layer.name);
            marks.push(self.area(stack, layer, &mut below).inked(layer.ink.clone()).titled(says));
        }
        if self.warm_up {
            let (zero, top) = (self.x.at(0.0), FRAME.top - 6.0);
            marks.push(line("zero", [zero, zero], [top, FRAME.bottom]));
            marks.push(text("tick", (zero + 5.0, top), "measured from here"));
        }
        marks
    }

    /// The area between `below` and `below` plus the layer, which becomes the next `below`.
    fn area(&self, stack: &Stack, layer: &Layer, below: &mut [f64]) -> Mark {
        let point = |i: usize, bytes: f64| -> Place {
            (self.x.at(stack.instants[i]), self.y.at(self.scale.in_unit(bytes)))
        };
        let floor: Vec<Place> = below.iter().enumerate().map(|(i, b)| point(i, *b)).collect();
        below.iter_mut().zip(&layer.bytes).for_each(|(sum, bytes)| *sum += bytes);
        let roof = below.iter().enumerate().map(|(i, b)| point(i, *b));
        area("segment", roof.chain(floor.into_iter().rev()))
    }
}
