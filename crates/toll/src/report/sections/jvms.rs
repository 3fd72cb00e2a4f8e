//! Turns what the JVMs report into the table that the study prints: baseline, variant, difference.
//! Draws nothing.

use crate::analysis::findings::{Estimate, Findings, JvmUse, LoadFindings, Measured, Metric, View};

use super::pods::other_rates;
use crate::report::document::{Cell, Group, Piece, Section, Table, figures, words};
use crate::report::figures::ends;
use crate::report::figures::{Quantity, Scale, change, signed, verbatim};
use crate::report::subjects::spans::detailed;
use crate::report::values::value_of;
use crate::report::wording::{
    difference_scale, interval, interval_title, load_title, measured_scale, metric_title, range,
};

/// The JVMs under each load, those of virtual users first; none when no JVM reported anything.
pub(in crate::report) fn jvms(findings: &Findings) -> Option<Section> {
    let text = "What each JVM tells of itself, mean over rounds; differences are within rounds. CPU load is a share of the time of all cores, by the JVM's own counter. Collecting garbage and compiling take shares of the time that passes.";
    let mut pieces = vec![Piece::Text(text.into())];
    for load in shown(findings) {
        pieces.push(Piece::Heading(load_title(load)));
        pieces.extend(other_rates(&findings.baseline, load));
        let others = load.variants.iter().map(|v| v.variant.as_str());
        for variant in others.filter(|name| *name != findings.baseline) {
            let sheet = Sheet { load, baseline: &findings.baseline, variant };
            pieces.push(Piece::Table(sheet.table()));
        }
    }
    (pieces.len() > 1).then(|| Section::new("jvms", "Inside the JVMs, side by side", pieces))
}

/// All loads with JVMs, those of virtual users first: the study is about them.
fn shown(findings: &Findings) -> Vec<&LoadFindings> {
    let loads = detailed(findings).into_iter().filter(|load| !load.jvms.is_empty());
    let (users, others): (Vec<&LoadFindings>, Vec<&LoadFindings>) =
        loads.partition(|load| load.view == View::Users);
    users.into_iter().chain(others).collect()
}

/// How a reading is shown.
struct Line {
    title: &'static str,
    of: fn(&JvmUse) -> Option<Measured>,
    quantity: Quantity,
    difference: Difference,
}

/// In what a difference is given.
#[derive(Clone, Copy, PartialEq)]
enum Difference {
    /// In the unit of the values.
    Same,
    /// Of shares, in points of per cent.
    Points,
    /// In per cent of the baseline.
    Percent,
}

const LINES: [Line; 7] = [
    line("CPU load", |jvm| jvm.cpu_load, Quantity::Percent, Difference::Points),
    line("CPU per request", |jvm| jvm.cpu_per_request_us, Quantity::CpuTime, Difference::Percent),
    line("heap used", |jvm| jvm.heap_used_mib, Quantity::Mebibytes, Difference::Same),
    line("heap after collection", |jvm| jvm.heap_live_mib, Quantity::Mebibytes, Difference::Same),
    line("time collecting", |jvm| jvm.gc_share, Quantity::Percent, Difference::Points),
    line("time compiling", |jvm| jvm.jit_share, Quantity::Percent, Difference::Points),
    line("threads", |jvm| jvm.threads, Quantity::Threads, Difference::Same),
];

const fn line(
    title: &'static str,
    of: fn(&JvmUse) -> Option<Measured>,
    quantity: Quantity,
    difference: Difference,
) -> Line {
    Line { title, of, quantity, difference }
}

impl Line {
    /// Kind of its published figure, see [`crate::analysis::findings::ReferenceRow::figure`].
    fn published(&self) -> Option<&'static str> {
        match self.title {
            "CPU load" => Some("cpu_load_percent"),
            "heap used" => Some("heap_mib"),
            _ => None,
        }
    }
}

/// One load and one variant beside the baseline.
struct Sheet<'a> {
    load: &'a LoadFindings,
    baseline: &'a str,
    variant: &'a str,
}

impl Sheet<'_> {
    fn table(&self) -> Table {
        let mut columns = vec![
            words(""),
            figures(self.baseline),
            figures(self.variant),
            figures("difference"),
            figures(interval_title(&self.load.effects)),
        ];
        columns.extend(self.has_published().then(|| figures("published: base / variant / diff")));
        let pods = self.load.jvms.iter().map(|row| Group {
            title: Some(row.pod.clone()),
            rows: LINES.iter().filter_map(|line| self.row(line, &row.pod)).collect(),
        });
        let whole = [Metric::LatencyP90, Metric::Throughput];
        let whole = Group {
            title: Some("the whole application".into()),
            rows: whole.into_iter().filter_map(|metric| self.metric(metric)).collect(),
        };
        let groups = pods.chain([whole]).filter(|group| !group.rows.is_empty()).collect();
        Table { columns, groups }
    }

    fn has_published(&self) -> bool {
        !self.load.reference.is_empty()
    }

    /// What the JVM of `pod` reported in both variants; none when it did so in neither.
    fn row(&self, line: &Line, pod: &str) -> Option<Vec<Cell>> {
        let uses = &self.load.jvms.iter().find(|row| row.pod == pod)?.uses;
        let of = |variant| uses.iter().find(|u| u.variant == variant).and_then(line.of);
        let [base, variant] = [of(self.baseline), of(self.variant)];
        if base.is_none() && variant.is_none() {
            return None;
        }
        let worth = if line.quantity == Quantity::Percent { 100.0 } else { 1.0 };
        let means = [base, variant].map(|m| m.map(|m| m.mean.value * worth));
        // A difference is shown with the decimals of its values, so never without its last whole digit.
        let scale = Scale::of(line.quantity, [largest(&means).min(999.0)]);
        let title = match line.quantity {
            Quantity::Threads => line.title.into(),
            _ => format!("{}, {}", line.title, scale.unit()),
        };
        let mut cells = vec![Cell::from(title)];
        cells.extend(means.map(|mean| mean.map_or_else(Cell::absent, |m| scale.plain(m).into())));
        cells.extend(difference_cells(line, variant, scale, worth));
        let figure = line.published().map(|kind| format!("{kind}.{pod}"));
        cells.extend(self.published(figure.as_deref()));
        Some(cells)
    }

    /// Latency or throughput of the whole application.
    fn metric(&self, metric: Metric) -> Option<Vec<Cell>> {
        let of = |name: &str| {
            let variant = self.load.variants.iter().find(|v| v.variant == name);
            variant.and_then(|v| value_of(v, metric))
        };
        let means = [of(self.baseline), of(self.variant)];
        means.iter().flatten().next()?;
        let scale = measured_scale(self.load, metric);
        let effects = &self.load.effects;
        let effect = effects.iter().find(|e| e.variant == self.variant && e.metric == metric);
        let mut cells = vec![Cell::from(format!("{}, {}", metric_title(metric), scale.unit()))];
        cells.extend(means.map(|mean| mean.map_or_else(Cell::absent, |m| scale.plain(m).into())));
        let by = effect.map(|e| e.difference);
        let differences = difference_scale(scale, effect);
        cells.push(by.map_or_else(Cell::absent, |by| with_sign(differences, by.value)));
        cells.push(by.map_or_else(Cell::absent, |by| interval(differences, by).into()));
        let figure = match metric {
            Metric::LatencyP90 => "latency_ms.p90",
            _ => "throughput_per_s",
        };
        cells.extend(self.published(Some(figure)));
        Some(cells)
    }

    /// `33.2 / 44.4 / +11.2`, where the study has both.
    fn published(&self, figure: Option<&str>) -> Option<Cell> {
        let rows = &self.load.reference;
        let of = |variant: &str| {
            let row = rows.iter().find(|r| r.variant == variant && Some(&*r.figure) == figure);
            row.map(|r| r.published)
        };
        let cell = match (of(self.baseline), of(self.variant)) {
            (Some(base), Some(variant)) => {
                let places = places(base.abs().max(variant.abs()));
                let difference = to_places(variant - base, places);
                let difference = signed(difference, verbatim(difference));
                let [base, variant] = [base, variant].map(|v| verbatim(to_places(v, places)));
                format!("{base} / {variant} / {difference}").into()
            }
            _ => Cell::absent(),
        };
        self.has_published().then_some(cell)
    }
}

/// Decimals that leave a published figure three digits, and all whole ones: more would not fit its column.
fn places(largest: f64) -> i32 {
    (2.0 - largest.log10().floor()).clamp(0.0, 6.0) as i32
}

fn to_places(value: f64, places: i32) -> f64 {
    let by = 10_f64.powi(places);
    (value * by).round() / by
}

fn largest(means: &[Option<f64>]) -> f64 {
    means.iter().flatten().copied().filter(|m| m.is_finite()).fold(0.0, f64::max)
}

/// The difference with its unit, and its interval.
fn difference_cells(line: &Line, variant: Option<Measured>, scale: Scale, worth: f64) -> [Cell; 2] {
    let Some(measured) = variant else { return [Cell::absent(), Cell::absent()] };
    if line.difference == Difference::Percent {
        let Some(ratio) = measured.ratio else { return [Cell::absent(), Cell::absent()] };
        return [change(ratio.value).into(), interval_of_ratio(ratio).into()];
    }
    let mean = measured.mean.value;
    let Some(by) = measured.change.map(|e| times(e, worth)) else {
        return [Cell::absent(), Cell::absent()];
    };
    let scale = match line.difference {
        // Points of a small difference need a decimal more, those of a tiny one no third.
        Difference::Points => scale
            .with_decimals_for([mean * worth, by.value.abs().max(1.0)])
            .called(Quantity::Points),
        _ => scale,
    };
    [with_sign(scale, by.value), interval(scale, by).into()]
}

/// `+11.2 points`.
fn with_sign(scale: Scale, by: f64) -> Cell {
    format!("{}\u{a0}{}", scale.signed(by), scale.unit()).into()
}

/// `+42 % to +52 %`.
fn interval_of_ratio(ratio: Estimate) -> String {
    ends(ratio).map_or_else(|| "no interval".into(), |(l, h)| range(&change(l), &change(h)))
}

fn times(estimate: Estimate, worth: f64) -> Estimate {
    let Estimate { value, low, high, .. } = estimate;
    Estimate { value: value * worth, low: low * worth, high: high * worth, ..estimate }
}
