//! What `kubectl top pods` would add up to. A view (METHOD.md rule 5): nothing is computed from it.
//!
//! metrics-server averages each pod's CPU, its sidecar's with it, over about 15 s, and `kubectl top` rounds every pod
//! up to a whole thousandth of a core: ninety idle pods show as 90m. Readings are each 15 s of the measured window, or
//! the window itself when it is shorter.

use std::collections::HashMap;

use toll_lab::{Component, ComponentSample, Reading, Sample};

use super::accounts::{Owner, measured_window};
use super::effects::{mean_of, of_arm};
use super::findings::{LoadFindings, TopTotal};
use super::resources::boundaries;
use crate::store::TrialRecord;

/// How often metrics-server looks.
const REFRESH_NS: u64 = 15_000_000_000;

/// One a variant of the load whose counters could be read. `valid` are the trials as stored, pod by pod.
pub fn totals(load: &LoadFindings, valid: &[&TrialRecord]) -> Vec<TopTotal> {
    let of_load: Vec<&TrialRecord> =
        valid.iter().copied().filter(|t| t.trial.load == load.name).collect();
    let total = |variant: &str| {
        let trials: Vec<Top> = of_arm(&of_load, variant).filter_map(top).collect();
        let mean = |of: fn(&Top) -> f64| mean_of(&trials.iter().map(of).collect::<Vec<_>>());
        Some(TopTotal {
            variant: variant.into(),
            pods: trials.last()?.pods,
            counted_millicores: mean(|top| top.counted)?,
            shown_millicores: mean(|top| top.shown)?,
        })
    };
    load.variants.iter().filter_map(|of| total(&of.variant)).collect()
}

/// One trial.
struct Top {
    pods: usize,
    counted: f64,
    shown: f64,
}

fn top(trial: &TrialRecord) -> Option<Top> {
    let samples: Vec<&Sample> =
        measured_window(&trial.samples)?.iter().map(|marked| &marked.sample).collect();
    let (first, last) = (samples.first()?, samples.last()?);
    let whole = by_pod(first, last)?;
    let ends = boundaries(&samples, REFRESH_NS);
    let readings: Option<Vec<f64>> =
        ends.windows(2).map(|pair| shown(samples[pair[0]], samples[pair[1]])).collect();
    let readings = readings.filter(|readings| !readings.is_empty())?;
    let window_ns = length_ns(first, last)?;
    Some(Top {
        pods: whole.len(),
        counted: whole.values().sum::<u64>() as f64 / window_ns as f64 * 1e3,
        shown: readings.iter().sum::<f64>() / readings.len() as f64,
    })
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
        if !Owner::Component(component.clone()).is_measured() {
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
