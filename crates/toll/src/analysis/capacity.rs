//! Turns a run that sweeps replicas into what a fleet of any size would cost: CPU, memory and added latency of each
//! variant, with the interval in which one more start of that size would lie.
//!
//! The planes are those of the findings ([`super::scaling`]). Outside of the sizes and rates that were measured
//! nothing speaks for a plane: then there is no answer, unless the user asks for one all the same, and it is marked.

use serde::Serialize;
use toll_lab::{DataPlane, Deployment};

use super::findings::{Estimate, HeldOut, ScaledQuantity};
use super::scaling::{QUANTITIES, Sweep, held_out};
use super::tally::Tally;
use crate::store::RunRecord;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// Pods of the service that the run swept.
    pub pods: usize,
    /// Requests per second to all of them together.
    pub rate_per_s: f64,
    /// Whether an answer is wanted outside of what was measured.
    pub extrapolate: bool,
}

/// What a fleet would cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    pub study: String,
    /// Name of the run's directory.
    pub run: String,
    /// The service whose pods are asked for.
    pub service: String,
    /// As asked.
    pub pods: usize,
    /// As asked.
    pub rate_per_s: f64,
    /// What latency is added to.
    pub baseline: String,
    /// What the answer rests on.
    pub measured: MeasuredBox,
    /// In what the question lies outside of it; empty inside.
    pub outside: Vec<Outside>,
    /// In the order of the study.
    pub variants: Vec<VariantCapacity>,
}

/// The sizes and rates of a run, the smallest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredBox {
    /// Pods of the service.
    pub pods: Vec<usize>,
    /// Requests per second.
    pub rates_per_s: Vec<f64>,
    /// Nodes that the pods stood on, at every size alike.
    pub nodes: usize,
}

/// How far a question lies outside of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outside {
    /// In what.
    pub of: Asked,
    /// As asked.
    pub asked: f64,
    /// The nearest that was measured: the smallest or the largest.
    pub nearest: f64,
    /// `asked` divided by `nearest`.
    pub times: f64,
}

/// What a question has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Pods.
    Pods,
    /// Requests per second.
    Rate,
}

/// What a fleet would cost in one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantCapacity {
    pub variant: String,
    /// Whether it has a proxy on each node: what that costs is in the fixed part, once for each measured node.
    pub has_node_proxies: bool,
    /// Memory, CPU, added latency; the baseline adds none to itself.
    pub predictions: Vec<Prediction>,
}

/// One quantity of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// What is predicted.
    pub quantity: ScaledQuantity,
    /// On the plane; the interval is that of one more start.
    pub predicted: Estimate,
    /// Whether it lies outside of what was measured.
    pub extrapolated: bool,
    /// The cells of the largest size as the smaller ones predict them; empty with fewer than three sizes.
    pub held_out: Vec<HeldOut>,
}

/// Why a run does not answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// No load of the run sweeps replicas.
    #[error("the run {run} sweeps no replicas: it does not know what a pod costs")]
    NoSweep {
        /// Name of the run's directory.
        run: String,
    },
    /// The rounds carry no plane.
    #[error("the run {run} has too few rounds that count to tell what a pod of {service} costs")]
    TooFew {
        /// Name of the run's directory.
        run: String,
        service: String,
    },
    /// All slices had one rate, and it is not the one that is asked for.
    #[error(
        "{asked} requests/s are asked for, and all slices ran at {measured}: what another rate costs is not known"
    )]
    OneRate {
        /// As asked.
        asked: f64,
        /// The only rate.
        measured: f64,
    },
    /// Outside of what was measured.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Outside(Vec<Outside>),
}

impl CapacityError {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::NoSweep { .. } => "`toll run ambient-replicas` sweeps them, as does any study with a load that has `matrix: {rate: [20/s, 50/s], replicas: {SERVICE: [1, 10, 50]}}`".into(),
            Self::TooFew { .. } => "finish it with `toll run --resume RUN`; `toll report RUN` says which slices do not count, and why".into(),
            Self::OneRate { measured, .. } => {
                format!("ask for `--rate {measured}`, or sweep the rate, too: `matrix: {{rate: [20/s, 50/s], ...}}`")
            }
            Self::Outside(_) => "measure that far (the study's `matrix`); or let `--extrapolate` take the costs for straight lines beyond what was measured".into(),
        }
    }
}

impl std::fmt::Display for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { of, asked, nearest, times } = self;
        let what = match of {
            Asked::Pods if *asked == 1.0 => "pod is",
            Asked::Pods => "pods are",
            Asked::Rate => "requests/s are",
        };
        let end = if times > &1.0 { "largest" } else { "smallest" };
        // 1.04 times would read as inside when it is shown as 1.0.
        let digits = if (times - 1.0).abs() < 0.1 || times < &0.1 { 3 } else { 1 };
        write!(f, "{asked} {what} {times:.digits$} times the {end} measured, {nearest}")
    }
}

/// What the fleet that is asked for would cost.
///
/// # Errors
/// When the run does not know, or the question lies outside of what it measured.
pub fn capacity(run: &RunRecord, question: &Question) -> Result<Capacity, CapacityError> {
    let counted = super::Counted::of(run, |_| true);
    let valid: Vec<&Tally<'_>> = counted.tallies.iter().collect();
    let no_sweep = || CapacityError::NoSweep { run: run.name.clone() };
    let sweep = Sweep::of(run, &valid).ok_or_else(no_sweep)?;
    let measured =
        MeasuredBox { pods: sweep.sizes(), rates_per_s: sweep.rates(), nodes: sweep.nodes };
    let outside = measured.leaves_out(question)?;
    if !outside.is_empty() && !question.extrapolate {
        return Err(CapacityError::Outside(outside));
    }
    let variants = variants(run, &sweep, question, !outside.is_empty());
    if variants.is_empty() {
        let (run, service) = (run.name.clone(), sweep.service.into());
        return Err(CapacityError::TooFew { run, service });
    }
    Ok(Capacity {
        study: run.plan.study.clone(),
        run: run.name.clone(),
        service: sweep.service.into(),
        pods: question.pods,
        rate_per_s: question.rate_per_s,
        baseline: run.plan.baseline.clone(),
        measured,
        outside,
        variants,
    })
}

impl MeasuredBox {
    /// In what a question lies outside; an error where no plane reaches it.
    fn leaves_out(&self, question: &Question) -> Result<Vec<Outside>, CapacityError> {
        if let [measured] = self.rates_per_s[..] {
            let asked = question.rate_per_s;
            if asked != measured {
                return Err(CapacityError::OneRate { asked, measured });
            }
        }
        let pods: Vec<f64> = self.pods.iter().map(|pods| *pods as f64).collect();
        let of_pods = beyond(Asked::Pods, question.pods as f64, &pods);
        let of_rate = beyond(Asked::Rate, question.rate_per_s, &self.rates_per_s);
        Ok(of_pods.into_iter().chain(of_rate).collect())
    }
}

fn beyond(of: Asked, asked: f64, measured: &[f64]) -> Option<Outside> {
    let (least, most) = (measured.first()?, measured.last()?);
    let nearest = asked.clamp(*least, *most);
    (nearest != asked).then(|| Outside { of, asked, nearest, times: asked / nearest })
}

fn variants(
    run: &RunRecord,
    sweep: &Sweep<'_>,
    question: &Question,
    extrapolated: bool,
) -> Vec<VariantCapacity> {
    let prediction = |variant: &str, quantity| {
        let series = sweep.series(variant, quantity);
        let plane = series.plane(sweep, |_| true)?;
        let predicted = plane.predict(question.pods as f64, question.rate_per_s);
        let held_out = held_out(sweep, &series);
        Some(Prediction { quantity, predicted, extrapolated, held_out })
    };
    let of_variant = |(variant, deployment): (&str, &Deployment)| {
        let predictions = QUANTITIES.into_iter().filter_map(|q| prediction(variant, q)).collect();
        let has_node_proxies = matches!(deployment.data_plane, DataPlane::Ambient(_));
        VariantCapacity { variant: variant.into(), has_node_proxies, predictions }
    };
    let variants = run.plan.ready().map(of_variant);
    variants.filter(|variant| !variant.predictions.is_empty()).collect()
}

#[cfg(test)]
mod tests;
