//! Turns the cells of a sweep into what a variant costs by pods and rate: fixed + per pod x pods + per request x rate,
//! and into the number of pods at which two variants cost the same.
//!
//! Least squares through the rounds. Cells of a round are no independent witnesses (they share its hour, and those of
//! one size a start), so the intervals are the wider of the textbook's and of the rounds'
//! (`toll_stats::regression`). Scatter is taken for the same at all sizes; where it grows with the size, an interval
//! is too wide at the small ones and too narrow at the large ones.
//!
//! How good the plane is at what it has not seen is tried and reported: fitted without the largest size, it predicts it.

mod sweep;
#[cfg(test)]
mod tests;

use toll_lab::DataPlane;

use super::effects;
use super::findings::{Crossing, HeldOut, ScaledQuantity, Scaling, ScalingPoint};
use crate::plan::Plan;

pub use sweep::{Plane, Series, Sweep, SweptCell};

/// In the order of the report.
pub const QUANTITIES: [ScaledQuantity; 4] = [
    ScaledQuantity::Memory,
    ScaledQuantity::Cpu,
    ScaledQuantity::AddedP50,
    ScaledQuantity::AddedP99,
];

/// Sizes that a plane is fitted to when the largest is held out: two would fit any line.
const LEAST_SIZES: usize = 3;

/// One for each quantity and variant that has enough of them.
pub fn scalings(plan: &Plan, sweep: &Sweep<'_>) -> Vec<Scaling> {
    let of =
        |quantity| plan.ready().filter_map(move |(variant, _)| scaling(sweep, variant, quantity));
    QUANTITIES.into_iter().flat_map(of).collect()
}

/// What a variant costs in one quantity.
pub fn scaling(sweep: &Sweep<'_>, variant: &str, quantity: ScaledQuantity) -> Option<Scaling> {
    let series = sweep.series(variant, quantity);
    let plane = series.plane(sweep, |_| true)?;
    Some(Scaling {
        variant: variant.into(),
        quantity,
        service: sweep.service.into(),
        fixed: plane.fixed(),
        per_pod: plane.per_pod(),
        per_request: plane.per_request(),
        points: points(sweep, &series, &plane),
        held_out: held_out(sweep, &series),
    })
}

fn points(sweep: &Sweep<'_>, series: &Series, plane: &Plane) -> Vec<ScalingPoint> {
    let point = |(at, cell): (usize, &SweptCell<'_>)| {
        let fitted = plane.at(cell.pods as f64, cell.rate_per_s);
        Some(ScalingPoint {
            load: cell.load.into(),
            pods: cell.pods,
            rate_per_s: cell.rate_per_s,
            measured: effects::mean_of(&series.of_cell(at))?,
            fitted: fitted.value,
            band: Some((fitted.low, fitted.high)),
        })
    };
    sweep.cells.iter().enumerate().filter_map(point).collect()
}

/// The cells of the largest size, as the smaller ones predict them.
pub fn held_out(sweep: &Sweep<'_>, series: &Series) -> Vec<HeldOut> {
    let mut sizes = sweep.sizes();
    let largest = sizes.pop().filter(|_| sizes.len() + 1 >= LEAST_SIZES);
    let smaller = largest.and_then(|largest| series.plane(sweep, |cell| cell.pods < largest));
    let Some((largest, plane)) = largest.zip(smaller) else { return vec![] };
    let tried = |(at, cell): (usize, &SweptCell<'_>)| {
        let predicted = plane.predict(cell.pods as f64, cell.rate_per_s);
        let measured = effects::mean_of(&series.of_cell(at))?;
        let error = predicted.value / measured.value - 1.0;
        let (load, fitted_on) = (cell.load.into(), sizes.clone());
        error.is_finite().then_some(HeldOut { load, fitted_on, predicted, measured, error })
    };
    let cells = sweep.cells.iter().enumerate();
    cells.filter(|(_, cell)| cell.pods == largest).filter_map(tried).collect()
}

/// Where two variants cost the same, for each pair, quantity and rate. A pair whose costs of a pod cannot be told
/// apart has none: the interval of a crossing would have no end.
pub fn crossings(plan: &Plan, sweep: &Sweep<'_>) -> Vec<Crossing> {
    // What a bare application costs is in all variants: they add to it, at any size.
    let meshed = |(variant, deployment): (&'_ str, &toll_lab::Deployment)| {
        (deployment.data_plane != DataPlane::Bare).then(|| variant.to_owned())
    };
    let variants: Vec<String> = plan.ready().filter_map(meshed).collect();
    let pairs = variants.iter().enumerate().flat_map(|(i, one)| {
        variants[i + 1..].iter().map(move |other| (one.as_str(), other.as_str()))
    });
    let pairs: Vec<(&str, &str)> = pairs.collect();
    QUANTITIES
        .into_iter()
        .flat_map(|quantity| pairs.iter().map(move |pair| (quantity, *pair)))
        .flat_map(|(quantity, pair)| crossings_of(sweep, quantity, pair))
        .collect()
}

/// The sizes at which a difference may be zero by the rounds of that size and rate alone. A line through all sizes is
/// surer of each than its own rounds are, and wrong where it is none.
fn alike(sweep: &Sweep<'_>, difference: &Series, rate_per_s: f64) -> Vec<usize> {
    let may_be_zero = |at: usize| {
        let measured = effects::mean_of(&difference.of_cell(at));
        measured.is_some_and(|d| d.rounds > 1 && d.low <= 0.0 && d.high >= 0.0)
    };
    let of_rate = sweep.cells.iter().enumerate().filter(|(_, c)| c.rate_per_s == rate_per_s);
    of_rate.filter(|(at, _)| may_be_zero(*at)).map(|(_, cell)| cell.pods).collect()
}

/// The zeros of the difference of two variants, which is taken within rounds, as every comparison is.
fn crossings_of(
    sweep: &Sweep<'_>,
    quantity: ScaledQuantity,
    (one, other): (&str, &str),
) -> Vec<Crossing> {
    let [of_one, of_other] = [one, other].map(|variant| sweep.series(variant, quantity));
    let difference = of_one.above(&of_other);
    let Some(plane) = difference.plane(sweep, |_| true) else { return vec![] };
    let (below, above) = if plane.per_pod().value > 0.0 { (one, other) } else { (other, one) };
    let (rates, sizes) = (sweep.rates(), sweep.sizes());
    let rate_is_swept = rates.len() > 1;
    let crossing = |rate: f64| {
        Some(Crossing {
            quantity,
            below: below.into(),
            above: above.into(),
            rate_per_s: rate_is_swept.then_some(rate),
            pods: plane.zero(rate)?,
            measured: (*sizes.first()?, *sizes.last()?),
            alike: alike(sweep, &difference, rate),
        })
    };
    rates.into_iter().filter_map(crossing).collect()
}
