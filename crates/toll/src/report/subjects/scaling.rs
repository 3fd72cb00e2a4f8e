//! Lines fitted through pods and rate: what they say of a size, what a pod adds, and where two variants cross.
//! Fits nothing.

use super::sweep::Sweep;
use crate::analysis::findings::{Crossing, Estimate, HeldOut, ScaledQuantity, Scaling};
use crate::report::document::Tone;
use crate::report::figures::{Quantity, Scale, change, ends, figure, signed, verbatim};
use crate::report::values::in_first_order;
use crate::report::wording::{interval, listed, outside_zero, several};

/// What a quantity is given in.
pub(in crate::report) fn quantity(of: ScaledQuantity) -> Quantity {
    match of {
        ScaledQuantity::Memory => Quantity::Mebibytes,
        ScaledQuantity::Cpu => Quantity::Millicores,
        ScaledQuantity::AddedP50 | ScaledQuantity::AddedP99 => Quantity::Time,
    }
}

/// `memory`, as it stands in a sentence too.
pub(in crate::report) fn quantity_title(of: ScaledQuantity) -> &'static str {
    match of {
        ScaledQuantity::Memory => "memory",
        ScaledQuantity::Cpu => "CPU",
        ScaledQuantity::AddedP50 => "added p50",
        ScaledQuantity::AddedP99 => "added p99",
    }
}

/// What the line of a variant says of so many pods at such a rate.
pub(in crate::report) fn fitted(scaling: &Scaling, pods: f64, rate_per_s: f64) -> f64 {
    let by_rate = scaling.per_request.map_or(0.0, |per_request| per_request.value * rate_per_s);
    scaling.fixed.value + scaling.per_pod.value * pods + by_rate
}

/// One part of a line.
pub(in crate::report) type Part = fn(&Scaling) -> Option<Estimate>;

/// The unit that the parts of lines share, since they are added up, and each with decimals of its own: a pod costs
/// a fraction of what all of them do.
pub(in crate::report) fn parts(lines: &[&Scaling]) -> (&'static str, [(Part, Scale); 3]) {
    let parts: [Part; 3] = [|s| Some(s.fixed), |s| Some(s.per_pod), |s| s.per_request];
    let values = |part: Part| {
        let values = lines.iter().filter_map(move |s| part(s)).map(|e| e.value);
        values.collect::<Vec<_>>()
    };
    let quantity = lines.first().map_or(Quantity::Mebibytes, |s| quantity(s.quantity));
    let whole = Scale::of(quantity, parts.into_iter().flat_map(values));
    (whole.unit(), parts.map(|part| (part, whole.with_decimals_for(values(part)))))
}

/// What may be said of one crossing.
struct Verdict {
    /// `ambient takes less memory than sidecar`.
    claim: String,
    /// `from 3 to 90 pods`; empty where it is unclear.
    sizes: String,
    tone: Tone,
}

/// What may be said of the crossings of two variants at all rates.
pub(in crate::report) struct Said {
    /// `ambient takes less CPU than sidecar from 3 to 90 pods at 20 requests/s and from 5 to 90 pods at 50 requests/s`.
    pub(in crate::report) sentence: String,
    /// ` (the lines cross at 1.3 [0.9 to 1.7] pods)`; empty when they do not where there can be pods.
    pub(in crate::report) points: String,
    pub(in crate::report) tone: Tone,
}

/// What is said of several rates is one sentence.
pub(in crate::report) fn crossings_in_words(crossings: &[&Crossing]) -> Vec<Said> {
    let all: Vec<(Verdict, &Crossing)> = crossings.iter().map(|c| (verdict(c), *c)).collect();
    let claims = in_first_order(all.iter().map(|(verdict, _)| verdict.claim.as_str()));
    let said = |claim: &str| {
        let of: Vec<&(Verdict, &Crossing)> =
            all.iter().filter(|(verdict, _)| verdict.claim == claim).collect();
        let points: Vec<String> = of.iter().filter_map(|(_, crossing)| point(crossing)).collect();
        let points = if points.is_empty() {
            String::new()
        } else {
            format!(" (the lines cross at {} pods)", listed(&points))
        };
        Said { sentence: sentence(claim, &of), points, tone: of[0].0.tone }
    };
    claims.into_iter().map(said).collect()
}

/// A claim with where it holds and at which rates; rates at which it holds alike stand together.
fn sentence(claim: &str, of: &[&(Verdict, &Crossing)]) -> String {
    let places = in_first_order(of.iter().map(|(verdict, _)| verdict.sizes.as_str()));
    let place = |place: &str| {
        let alike = of.iter().filter(|(verdict, _)| verdict.sizes == place);
        let rates: Vec<String> = alike.filter_map(|(_, c)| c.rate_per_s).map(verbatim).collect();
        let rates = if rates.is_empty() {
            String::new()
        } else {
            format!(" at {}\u{a0}requests/s", listed(&rates))
        };
        format!("{place}{rates}").trim_start().to_owned()
    };
    let places: Vec<String> = places.into_iter().map(place).collect();
    format!("{claim} {}", listed(&places)).trim_end().to_owned()
}

/// Only what the interval and the rounds of each size allow, and only of sizes that were measured.
fn verdict(crossing: &Crossing) -> Verdict {
    let Crossing { below, above, measured: (least, most), .. } = crossing;
    let cheaper_above = less(crossing, above, below);
    let held = match ends(crossing.pods) {
        Some((low, _)) if low > *most as f64 => Some((less(crossing, below, above), *least)),
        Some((_, high)) if high <= *most as f64 => {
            Some((cheaper_above.clone(), (high.ceil().max(0.0) as usize).max(*least)))
        }
        _ => None,
    };
    let beyond_alike = crossing.alike.iter().max().map_or(0, |alike| alike + 1);
    let held = held.map(|(claim, from)| (claim, from.max(beyond_alike)));
    match held.filter(|(_, from)| from <= most) {
        Some((claim, from)) => Verdict { claim, sizes: from_to(from, *most), tone: Tone::Same },
        None => {
            let claim = format!("from how many pods on {cheaper_above} is unclear");
            Verdict { claim, sizes: String::new(), tone: Tone::Unknown }
        }
    }
}

/// `from 2 to 90 pods`, `with 90 pods`.
fn from_to(from: usize, most: usize) -> String {
    let most_pods = several(most, "pod");
    if from == most { format!("with {most_pods}") } else { format!("from {from} to {most_pods}") }
}

/// `ambient takes less memory than sidecar`.
fn less(crossing: &Crossing, one: &str, other: &str) -> String {
    let takes = match crossing.quantity {
        ScaledQuantity::Memory | ScaledQuantity::Cpu => "takes",
        ScaledQuantity::AddedP50 | ScaledQuantity::AddedP99 => "has",
    };
    format!("{one} {takes} less {} than {other}", quantity_title(crossing.quantity))
}

/// Where the lines cross, when that is at a number of pods that there can be.
fn point(crossing: &Crossing) -> Option<String> {
    let (low, high) = ends(crossing.pods)?;
    let (least, most) = crossing.measured;
    let is_possible = high > least as f64 && low <= most as f64;
    let scale = Scale::of(Quantity::Pods, [crossing.pods.value]);
    let shown =
        || format!("{} [{}]", scale.plain(crossing.pods.value), interval(scale, crossing.pods));
    is_possible.then(shown)
}

/// By how much a prediction is off: by a share of what was measured, or of what is added in its unit.
pub(in crate::report) fn off(of: ScaledQuantity, held: &HeldOut) -> f64 {
    if of.is_added() { held.predicted.value - held.measured.value } else { held.error }
}

/// The same for a table: `+2.2 %`, `+0.12`; what rounds to nothing in the unit of the table is shown in its own.
pub(in crate::report) fn shown_off(of: ScaledQuantity, scale: Scale, off: f64) -> String {
    if !of.is_added() {
        return change(1.0 + off);
    }
    let shown = scale.signed(off);
    let is_zero = !shown.chars().any(|digit| ('1'..='9').contains(&digit));
    let is_lost = off != 0.0 && off.is_finite() && is_zero;
    if is_lost { signed(off, figure(quantity(of), off)) } else { shown }
}

/// [`growth`] of memory and of CPU.
pub(in crate::report) fn growths(sweep: &Sweep<'_>) -> Vec<String> {
    [ScaledQuantity::Memory, ScaledQuantity::Cpu].iter().filter_map(|q| growth(sweep, *q)).collect()
}

/// `each further nginx pod takes, in MiB, 1.31 with bare and 16.7 with sidecar`; none without a line.
fn growth(sweep: &Sweep<'_>, quantity: ScaledQuantity) -> Option<String> {
    let of = of_quantity(sweep, quantity);
    let service = &of.first()?.service;
    let (unit, [_, (_, scale), _]) = parts(&of);
    let slope = |s: &&Scaling| {
        let takes = match ends(s.per_pod) {
            Some(_) if outside_zero(s.per_pod) => scale.plain(s.per_pod.value),
            Some((_, high)) => format!("at most {}", scale.plain(high)),
            None => "what needs a second round".into(),
        };
        format!("{takes} with {}", s.variant)
    };
    let slopes = listed(&of.iter().map(slope).collect::<Vec<_>>());
    Some(format!("each further {service} pod takes, in {unit}, {slopes}"))
}

/// The fits of one quantity, in the order of the variants.
fn of_quantity<'a>(sweep: &Sweep<'a>, quantity: ScaledQuantity) -> Vec<&'a Scaling> {
    let all = || sweep.findings.scalings.iter().filter(move |s| s.quantity == quantity);
    let names = in_first_order(all().map(|s| s.variant.as_str()));
    names.into_iter().filter_map(|name| all().find(|s| s.variant == name)).collect()
}
