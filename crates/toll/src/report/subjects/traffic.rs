//! What a variant costs where the application is going to run, or else at a round rate. Chooses and scales; words nothing.

use crate::analysis::findings::{Estimate, Findings, LoadFindings, Metric, Traffic};

use crate::report::answer::effect;

/// The rate at which costs are given where the study names none; for another rate multiply.
const ROUND: Traffic = Traffic { per_s: 1000.0, pods: None };

/// What a variant costs more than the baseline.
pub(in crate::report) struct Cost {
    /// Cores.
    pub(in crate::report) cores: Estimate,
    /// Bytes.
    pub(in crate::report) memory: Option<Estimate>,
}

/// Where costs are given.
pub(in crate::report) fn traffic(findings: &Findings) -> Traffic {
    findings.traffic.unwrap_or(ROUND)
}

/// CPU grows with the requests, memory with the pods; none where a variant has no effect on CPU.
pub(in crate::report) fn cost(
    load: &LoadFindings,
    variant: &str,
    traffic: Traffic,
) -> Option<Cost> {
    let cpu_us = effect(load, variant, Metric::CpuPerRequest)?.difference;
    let memory = effect(load, variant, Metric::Memory).map(|effect| effect.difference);
    let pods = traffic.pods.map_or(1.0, |(there, here)| there as f64 / here.max(1) as f64);
    Some(Cost {
        cores: times(cpu_us, traffic.per_s / 1e6),
        memory: memory.filter(|bytes| bytes.value.is_finite()).map(|bytes| times(bytes, pods)),
    })
}

fn times(estimate: Estimate, factor: f64) -> Estimate {
    Estimate {
        value: estimate.value * factor,
        low: estimate.low * factor,
        high: estimate.high * factor,
        ..estimate
    }
}
