//! What a run found: the numbers that every report shows. Plain data, nothing rounded, stable order.

use serde::{Deserialize, Serialize};

/// Everything a report needs; `report.json` is this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Version of this format.
    pub version: u32,
    /// Name of the study.
    pub study: String,
    /// The question the study asks.
    pub question: String,
    /// Name of the run's directory.
    pub run: String,
    /// The variant the others are held against.
    pub baseline: String,
    /// In the order of the study.
    pub variants: Vec<VariantFacts>,
    /// One per load of the study; equal-rate views first.
    pub loads: Vec<LoadFindings>,
    /// The knee of each variant, when it was searched for.
    pub knees: Vec<Knee>,
    /// Where published figures come from, and what to know about them.
    #[serde(default)]
    pub published: Vec<String>,
    /// One per variant that ran.
    pub proofs: Vec<ProofSummary>,
    /// Whatever weakens the result.
    pub warnings: Vec<String>,
    /// What ran, in order.
    pub trials: Vec<TrialLine>,
    /// What the machine and the run were, as label and value, in the order to print.
    pub manifest: Vec<(String, String)>,
}

/// A variant of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantFacts {
    /// As in the study file.
    pub name: String,
    /// One line: `Envoy sidecar at both ends, mTLS strict`.
    pub describes: String,
    /// Why it did not run.
    pub skipped: Option<String>,
}

/// The two views that never share a table (METHOD.md rule 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// All variants at the same arrival rate: the primary comparison.
    EqualRate,
    /// Closed loop, as fast as each variant goes.
    FlatOut,
}

/// All that one load showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadFindings {
    /// As in the study file.
    pub name: String,
    /// Which of the two views.
    pub view: View,
    /// One line: `open loop, 1050/s constant (60 % of the knee of istio, 1750/s)`.
    pub describes: String,
    /// One per variant with at least one valid trial, the baseline first.
    pub variants: Vec<VariantLoad>,
    /// One per metric and variant but the baseline; latency first, then CPU per request.
    pub effects: Vec<Effect>,
    /// The published figures, when the study has some for this load.
    pub reference: Vec<ReferenceRow>,
}

/// A quantity that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Median latency, microseconds.
    LatencyP50,
    /// 90th percentile of latency, microseconds.
    LatencyP90,
    /// 99th percentile of latency, microseconds.
    LatencyP99,
    /// Mean latency, microseconds.
    LatencyMean,
    /// CPU time of all components but the load generator and toll itself per completed request, microseconds.
    CpuPerRequest,
    /// CPU time of the application's services alone per completed request, microseconds.
    ApplicationCpuPerRequest,
    /// Completed requests per second.
    Throughput,
    /// Anonymous memory of application and data plane at its mean in the measured window, bytes.
    Memory,
}

/// A mean over blocks with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over blocks, in the metric's unit (or a plain ratio).
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Level of the interval, 0.95 for 95 %.
    pub level: f64,
    /// Number of blocks behind it.
    pub blocks: usize,
}

/// What one variant showed under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantLoad {
    /// The variant.
    pub variant: String,
    /// Valid trials behind these numbers.
    pub trials: usize,
    /// Mean over blocks of each metric.
    pub metrics: Vec<(Metric, Estimate)>,
    /// Latency by quantile, from p1 to as far as the samples carry: merged histogram, and the lowest and highest block.
    pub latency_curve: Vec<CurvePoint>,
    /// Completed requests per second, one per block.
    pub throughput_by_block: Vec<f64>,
    /// CPU per request by component; the last entry is `unattributed` (host busy minus the sum).
    pub cpu_per_request: Vec<ComponentCost>,
    /// CPU without load, thousandths of a core, by component.
    pub idle_cpu: Vec<ComponentCost>,
    /// Anonymous memory by component over the trial, of the block whose mean is the median.
    pub memory: Vec<MemorySeries>,
}

/// One point of a latency curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// 0..1.
    pub quantile: f64,
    /// Of the histogram merged over blocks, microseconds.
    pub merged_us: f64,
    /// Of the lowest block, microseconds.
    pub low_us: f64,
    /// Of the highest block, microseconds.
    pub high_us: f64,
}

/// What one component costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComponentCost {
    /// `client`, `client sidecar`, `load generator`, `toll`, `unattributed`.
    pub component: String,
    /// Which group it belongs to: `application`, `sidecar`, `load_generator`, `harness`, `unattributed`.
    pub role: String,
    /// Mean over blocks: microseconds per request, or thousandths of a core.
    pub cost: Estimate,
}

/// Memory of one component over a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemorySeries {
    /// As in [`ComponentCost`].
    pub component: String,
    /// As in [`ComponentCost`].
    pub role: String,
    /// Seconds since the measured phase began (negative: before it), bytes.
    pub points: Vec<(f64, f64)>,
}

/// What a variant changed, paired within blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The variant held against the baseline.
    pub variant: String,
    /// What is compared.
    pub metric: Metric,
    /// Mean of the baseline in the paired blocks.
    pub baseline: f64,
    /// Mean of the variant in the paired blocks.
    pub value: f64,
    /// variant - baseline.
    pub difference: Estimate,
    /// variant / baseline.
    pub ratio: Estimate,
    /// Largest difference that the A/A pair leaves possible; absent without an A/A pair.
    pub noise_floor: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
}

/// What may be said of an effect (METHOD.md rule 4).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval excludes zero and the effect stands above the noise floor.
    Difference,
    /// The whole interval lies within plus or minus this bound (metric's unit).
    NoDifference {
        /// The bound stated by the study, in the metric's unit.
        bound: f64,
    },
    /// Neither; more blocks may tell.
    CannotTell {
        /// The noise floor here, in the metric's unit.
        floor: f64,
        /// Further blocks that would bring the interval inside the bound, by its present width; absent when it cannot be estimated.
        more_blocks: Option<u32>,
    },
}

/// A published figure beside the measured one. Ratios are compared, not absolute values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRow {
    /// The variant.
    pub variant: String,
    /// What was published: `throughput_per_s`, `latency_ms.mean`.
    pub figure: String,
    /// As published.
    pub published: f64,
    /// Measured here, same unit; absent when the variant did not run.
    pub measured: Option<f64>,
    /// Published figure divided by the published figure of the baseline; absent for the baseline itself.
    pub published_ratio: Option<f64>,
    /// Measured ratio to the baseline with its interval.
    pub measured_ratio: Option<Estimate>,
}

/// The highest arrival rate that a variant carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The variant.
    pub variant: String,
    /// Requests per second.
    pub rate_per_s: f64,
}

/// Proof of path, summed up over the trials of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofSummary {
    /// The variant.
    pub variant: String,
    /// Trials run.
    pub trials: usize,
    /// Trials whose claims all held.
    pub proven: usize,
    /// The claims as of the last trial: claim, expected, seen, holds.
    pub claims: Vec<(String, String, String, bool)>,
}

/// One trial of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialLine {
    /// Position in the plan, from 1.
    pub index: usize,
    /// Block, from 1.
    pub block: usize,
    /// The variant; the A/A partner of the baseline carries ` (again)`.
    pub variant: String,
    /// The load.
    pub load: String,
    /// Why it does not count; absent when valid.
    pub invalid: Option<String>,
    /// Share of CPU time stolen by the hypervisor, 0..1.
    pub steal: f64,
    /// Time of the calibration loop, as a ratio to the fastest of the run (1 = undisturbed).
    pub calibration: f64,
}
