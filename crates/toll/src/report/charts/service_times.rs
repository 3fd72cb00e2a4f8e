//! Median service time against the rate on a logarithmic axis, one line a variant: they fall together.

use super::axes::Axes;
use crate::analysis::findings::{Estimate, ServiceTimeCurve, ServiceTimes};
use crate::report::drawing::{
    Axis, Chart, Curve, Frame, Mark, Point, WIDTH, column, group, named_ends, slug,
};
use crate::report::figures::reach;
use crate::report::figures::{Quantity, Scale, verbatim};
use crate::report::subjects::sweep::Sweep;

const FRAME: Frame = Frame { left: 54.0, right: WIDTH - 104.0, top: 14.0, bottom: 206.0 };
const HEIGHT: f64 = 232.0;

/// A chart a size that had loads of several rates.
pub(in crate::report) fn service_times(sweep: &Sweep<'_>) -> Vec<Chart> {
    let all = sweep.findings.service_times.iter().enumerate();
    all.filter_map(|(index, times)| chart(index, times)).collect()
}

/// Rate and service time of a curve, as far as they can be drawn.
fn points(curve: &ServiceTimeCurve) -> impl Iterator<Item = (f64, Estimate)> {
    let points = curve.points.iter().map(|(_, rate, time)| (*rate, *time));
    points.filter(|(rate, time)| *rate > 0.0 && rate.is_finite() && time.value.is_finite())
}

fn chart(index: usize, times: &ServiceTimes) -> Option<Chart> {
    let all = || times.variants.iter().flat_map(points);
    let mut rates: Vec<f64> = all().map(|(rate, _)| rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let highest = all().map(|(_, time)| reach(time).1).fold(0.0, f64::max);
    let (first, last) = (*rates.first()?, *rates.last()?);
    if last <= first || highest <= 0.0 {
        return None;
    }
    let scale = Scale::of(Quantity::Time, [highest]);
    let x = Axis::log(first / 1.15, last * 1.15, FRAME.left, FRAME.right);
    let axes = Axes { x, y: FRAME.up(0.0, scale.in_unit(highest) * 1.06), scale };
    let drawn = || times.variants.iter().filter(|curve| points(curve).next().is_some());
    let curve = |of: &'_ ServiceTimeCurve| -> Vec<Point> {
        let point = |(rate, time): (f64, Estimate)| {
            let what = format!("{} at {} requests/s", of.variant, verbatim(rate));
            axes.point(axes.x.at(rate), time, &what)
        };
        points(of).map(point).collect()
    };
    let curves: Vec<Curve<'_>> =
        drawn().map(|of| Curve { variant: &of.variant, points: curve(of) }).collect();
    let columns = rates
        .iter()
        .flat_map(|rate| column(axes.x.at(*rate), verbatim(*rate), FRAME.top, FRAME.bottom));
    let describes = |of: &ServiceTimeCurve| {
        let point = |(rate, time): (f64, Estimate)| {
            format!("{} at {}/s", scale.with_unit(time.value), verbatim(rate))
        };
        format!("{}: {}.", of.variant, points(of).map(point).collect::<Vec<_>>().join(", "))
    };
    let size = times.replicas.as_ref().map_or_else(String::new, |(service, pods)| {
        format!(", {pods} {service} pod{}", if *pods == 1 { "" } else { "s" })
    });
    Some(Chart {
        id: format!("service-times-{}", slug(&(index + 1).to_string())),
        title: format!("Median service time by rate{size}"),
        note: format!(
            "{} by requests a second (logarithmic); bar the interval over the rounds",
            scale.unit()
        ),
        describes: drawn().map(describes).collect(),
        height: HEIGHT,
        marks: FRAME.rows(&axes.y, 5).into_iter().chain(columns).chain(lines(&curves)).collect(),
        legend: vec![],
    })
}

fn lines(curves: &[Curve<'_>]) -> impl Iterator<Item = Mark> {
    let names = FRAME.names(&named_ends(curves), [8.0, 12.0]);
    curves.iter().zip(names).map(|(curve, name)| {
        let dots = curve.points.iter().flat_map(|point| point.whole("dot", 4.5));
        group(curve.variant, [curve.line()].into_iter().chain(name).chain(dots).collect())
    })
}
