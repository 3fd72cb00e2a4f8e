//! What `kubectl top pods` would add up to. A view (docs/method.md rule 5): nothing is computed from it.
//!
//! metrics-server averages each pod's CPU, its sidecar's with it, over about 15 s, and `kubectl top` rounds every pod
//! up to a whole thousandth of a core: ninety idle pods show as 90m. Slices are shorter than that: each is a reading,
//! and a long one has a reading every 15 s.

use std::collections::HashMap;

use toll_lab::{Component, ComponentSample, Reading, Sample};

use super::effects::mean_observed;
use super::findings::{Role, TopTotal};
use super::resources::boundaries;
use super::tally::{Arms, Tally};

/// How often metrics-server looks.
const REFRESH_NS: u64 = 15_000_000_000;

/// One a variant of `arms` whose counters could be read. Single pods are those of the slices as stored.
pub fn totals(arms: &[Arms<'_>]) -> Vec<TopTotal> {
    let total = |(variant, tallies): &Arms<'_>| {
        let mean = |of: fn(&Top) -> f64| mean_observed(tallies, |tally| Some(of(&top(tally)?)));
        Some(TopTotal {
            variant: (*variant).into(),
            pods: tallies.iter().rev().find_map(|tally| top(tally))?.pods,
            counted_millicores: mean(|top| top.counted)?,
            shown_millicores: mean(|top| top.shown)?,
        })
    };
    arms.iter().filter_map(total).collect()
}

/// One tally.
struct Top {
    pods: usize,
    counted: f64,
    shown: f64,
}

fn top(tally: &Tally<'_>) -> Option<Top> {
    let (mut used_ns, mut window_ns, mut pods) = (0, 0, 0);
    let mut readings: Vec<f64> = Vec::new();
    for slice in &tally.slices {
        let samples = &slice.record.samples;
        let (first, last) = (samples.first()?, samples.last()?);
        let whole = by_pod(first, last)?;
        pods = whole.len();
        used_ns += whole.values().sum::<u64>();
        window_ns += length_ns(first, last)?;
        let instants: Vec<u64> = samples.iter().map(|sample| sample.at_ns).collect();
        let ends = boundaries(&instants, REFRESH_NS);
        for pair in ends.windows(2) {
            readings.push(shown(&samples[pair[0]], &samples[pair[1]])?);
        }
    }
    let shown = readings.iter().sum::<f64>() / readings.len() as f64;
    Some(Top { pods, counted: used_ns as f64 / window_ns as f64 * 1e3, shown })
}

/// Thousandths of a core between two samples, each pod rounded up.
fn shown(begin: &Sample, end: &Sample) -> Option<f64> {
    let window_ns = u128::from(length_ns(begin, end)?);
    let rounded_up = |ns: u64| (u128::from(ns) * 1000).div_ceil(window_ns) as f64;
    Some(by_pod(begin, end)?.into_values().map(rounded_up).sum())
}

fn length_ns(begin: &Sample, end: &Sample) -> Option<u64> {
    end.at_ns.checked_sub(begin.at_ns).filter(|ns| *ns > 0)
}

/// CPU time of each pod that is measured, nanoseconds; `None` when a counter could not be read.
fn by_pod<'a>(begin: &Sample, end: &'a Sample) -> Option<HashMap<&'a str, u64>> {
    let before: HashMap<&Component, &Reading<u64>> =
        begin.components.iter().map(|c| (&c.component, &c.cpu_ns)).collect();
    let mut pods: HashMap<&str, u64> = HashMap::new();
    for ComponentSample { component, cpu_ns, .. } in &end.components {
        if !Role::from(component.role).is_measured() {
            continue;
        }
        let (Reading::Value(now), Some(Reading::Value(then))) = (cpu_ns, before.get(component))
        else {
            return None;
        };
        *pods.entry(&component.pod).or_default() += now.saturating_sub(*then);
    }
    Some(pods)
}
