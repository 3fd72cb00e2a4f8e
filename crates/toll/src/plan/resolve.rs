//! Turns a study and the user's choices into a plan. Collects every problem before it gives up.

use std::time::Duration;

use toll_lab::{
    BuiltIn, DataPlane, Deployment, Mtls, Program, Runtime, Service, SidecarProxy, Stall,
};
use toll_load::{Stop, WarmUp};

use super::{
    Arm, BringUp, FORMAT, Plan, PlannedLoad, PlannedRate, PlannedReference, PlannedRequest,
    PlannedVariant, PublishedFigure, Release, VariantState, order,
};
use crate::study::{self, Profile, Study};

/// What the user chose on the command line.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// How thoroughly.
    pub profile: Profile,
    /// Blocks instead of the study's.
    pub blocks: Option<usize>,
    /// Only these variants (the baseline always runs); all when empty.
    pub variants: Vec<String>,
    /// Hold the baseline against itself as if it were a variant.
    pub against_itself: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Why a study cannot be planned as chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// `--variants` names one that the study does not have.
    #[error("the study has no variant `{name}`")]
    UnknownVariant {
        /// As typed.
        name: String,
        /// Those that it has.
        known: Vec<String>,
        /// The one that was probably meant.
        nearest: Option<String>,
    },
    /// Nothing is left to hold against the baseline.
    #[error("nothing to compare: only the baseline `{baseline}` would run")]
    OnlyBaseline {
        /// The baseline.
        baseline: String,
        /// Why the others do not run.
        skipped: Vec<String>,
    },
    /// The baseline itself cannot run.
    #[error("the baseline `{baseline}` cannot run: {reason}")]
    BaselineSkipped {
        /// The baseline.
        baseline: String,
        /// Why.
        reason: String,
    },
    /// Too few blocks for an interval.
    #[error("{blocks} blocks give no interval")]
    TooFewBlocks {
        /// As chosen.
        blocks: usize,
    },
}

impl PlanError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::UnknownVariant { known, nearest, .. } => {
                let guess = nearest
                    .as_ref()
                    .map_or(String::new(), |name| format!("did you mean `{name}`? "));
                format!("{guess}the study's variants: {}", known.join(", "))
            }
            Self::OnlyBaseline { skipped, .. } => {
                let reasons: String = skipped.iter().map(|reason| format!("{reason}; ")).collect();
                format!("{reasons}use --aa to hold the baseline against itself")
            }
            Self::BaselineSkipped { .. } => {
                "give what it needs, or name another baseline in the study".into()
            }
            Self::TooFewBlocks { .. } => {
                "use --blocks 2 or more; 5 and up for figures to lean on".into()
            }
        })
    }
}

/// The plan of a study. `study_warnings` are what reading the study file warned of.
///
/// # Errors
/// When a choice does not fit the study.
pub fn resolve(
    study: &Study,
    choices: &Choices,
    study_warnings: Vec<String>,
) -> Result<Plan, PlanError> {
    let study = study.clone().with_profile(choices.profile);
    let blocks = choices.blocks.unwrap_or(study.blocks as usize);
    if blocks < 2 {
        return Err(PlanError::TooFewBlocks { blocks });
    }
    let variants = variants(&study, choices)?;
    let arms = arms(&variants, study.baseline.as_str())?;
    let loads: Vec<PlannedLoad> =
        study.loads.iter().map(|(name, load)| planned_load(&study, name.as_str(), load)).collect();
    let names: Vec<String> = loads.iter().map(|load| load.name.clone()).collect();
    Ok(Plan {
        version: FORMAT,
        study: study.name.to_string(),
        question: study.question.clone().unwrap_or_default(),
        baseline: study.baseline.to_string(),
        seed: choices.seed,
        profile: profile_name(choices.profile).into(),
        bound: study.bound.fraction(),
        idle_s: study.idle.get().as_secs_f64(),
        blocks,
        bring_up: BringUp::default(),
        settle: None,
        trials: order::trials(&arms, &names, blocks, choices.seed),
        variants,
        loads,
        reference: study.reference.as_ref().map(reference),
        warnings: study_warnings,
    })
}

fn profile_name(profile: Profile) -> &'static str {
    match profile {
        Profile::Default => "default",
        Profile::Quick => "quick",
        Profile::Paper => "paper",
    }
}

fn variants(study: &Study, choices: &Choices) -> Result<Vec<PlannedVariant>, PlanError> {
    check_names(study, &choices.variants)?;
    let baseline = study.baseline.as_str();
    let wanted = |name: &str| {
        choices.variants.is_empty()
            || name == baseline
            || choices.variants.iter().any(|v| v == name)
    };
    let mut variants: Vec<PlannedVariant> = study
        .variants
        .iter()
        .filter(|(name, _)| wanted(name.as_str()))
        .map(|(name, variant)| planned_variant(study, name.as_str(), variant))
        .collect();
    if choices.against_itself {
        variants.retain(|variant| variant.name == baseline);
        let twin = format!("{baseline}-twin");
        let itself = variants.first().map(|v| PlannedVariant { name: twin, ..v.clone() });
        variants.extend(itself);
    }
    Ok(variants)
}

fn check_names(study: &Study, names: &[String]) -> Result<(), PlanError> {
    let known: Vec<String> = study.variants.keys().map(ToString::to_string).collect();
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(PlanError::UnknownVariant {
            nearest: study::nearest(name, &known).map(str::to_owned),
            name: name.clone(),
            known,
        }),
    }
}

/// What runs in each block: every variant, and the baseline once more for the A/A pair.
fn arms(variants: &[PlannedVariant], baseline: &str) -> Result<Vec<Arm>, PlanError> {
    let mut arms = Vec::new();
    let mut skipped = Vec::new();
    for variant in variants {
        match &variant.state {
            VariantState::Ready(_) => {
                arms.push(Arm { variant: variant.name.clone(), again: false })
            }
            VariantState::Skipped(reason) if variant.name == baseline => {
                return Err(PlanError::BaselineSkipped {
                    baseline: baseline.into(),
                    reason: reason.clone(),
                });
            }
            VariantState::Skipped(reason) => {
                skipped.push(format!("{} is skipped: {reason}", variant.name));
            }
        }
    }
    if arms.len() < 2 {
        return Err(PlanError::OnlyBaseline { baseline: baseline.into(), skipped });
    }
    arms.push(Arm { variant: baseline.into(), again: true });
    Ok(arms)
}

fn planned_variant(study: &Study, name: &str, variant: &study::Variant) -> PlannedVariant {
    let (describes, data_plane) = data_plane(variant);
    let state = match data_plane {
        Err(reason) => VariantState::Skipped(reason),
        Ok(data_plane) => VariantState::Ready(Deployment {
            name: name.into(),
            entry: study.app.entry.to_string(),
            services: study
                .app
                .services
                .iter()
                .map(|(name, s)| service(name.as_str(), s))
                .collect(),
            data_plane,
        }),
    };
    PlannedVariant { name: name.into(), describes, state }
}

/// What stands in the path, in words and resolved; or why it cannot.
fn data_plane(variant: &study::Variant) -> (String, Result<DataPlane, String>) {
    match &variant.sidecar {
        None => ("the application alone".into(), Ok(DataPlane::Bare)),
        Some(study::Sidecar::Envoy { mtls }) => {
            let (word, mtls) = match mtls {
                study::Mtls::Permissive => ("permissive", Mtls::Permissive),
                study::Mtls::Strict => ("strict", Mtls::Strict),
            };
            let describes = format!("an Envoy sidecar beside each service, mTLS {word}");
            (describes, Ok(DataPlane::Sidecar { proxy: SidecarProxy::Envoy, mtls }))
        }
        Some(study::Sidecar::Mesher { binary }) => {
            let reason = match binary.path() {
                Err(variable) => format!("{variable} is not set"),
                Ok(path) => format!(
                    "toll has no adapter for {} yet: no Mesher could be had to try one against",
                    path.display()
                ),
            };
            ("a Mesher sidecar beside each service".into(), Err(reason))
        }
    }
}

fn service(name: &str, service: &study::Service) -> Service {
    let program = match service.program() {
        study::Program::Command(command) => Program::Command(command.to_vec()),
        study::Program::BuiltIn { work, reply, stall } => Program::BuiltIn(BuiltIn {
            runtime: Runtime::Native,
            relay: false,
            queries: None,
            work: work.cpu.get(),
            reply_bytes: reply.bytes as usize,
            status: reply.status,
            stall: stall.map(|s| Stall { every: s.every.get(), lasting: s.lasting.get() }),
        }),
    };
    Service {
        name: name.into(),
        group: "default".into(),
        replicas: 1,
        port: service.port,
        program,
        calls: service.calls.iter().map(ToString::to_string).collect(),
    }
}

fn planned_load(study: &Study, name: &str, load: &study::Load) -> PlannedLoad {
    let seconds = |span: Duration| span.as_secs_f64();
    PlannedLoad {
        name: name.into(),
        request: PlannedRequest::default(),
        release: release(&load.model),
        stop: match load.stop {
            study::Stop::Duration(span) => Stop::AfterSeconds(seconds(span.get())),
            study::Stop::Requests(count) => Stop::AfterRequests(count),
        },
        warm_up: WarmUp {
            min_s: seconds(study.warm_up.min.get()),
            max_s: seconds(study.warm_up.max.get()),
        },
    }
}

fn release(model: &study::LoadModel) -> Release {
    match model {
        study::LoadModel::Closed(closed) => Release::Closed { connections: closed.connections },
        study::LoadModel::Open(open) => Release::Open {
            rate: match open.rate {
                study::Rate::PerSecond(rate) => PlannedRate::PerSecond(rate),
                study::Rate::OfKnee(share) => PlannedRate::OfKnee(share.fraction()),
            },
            poisson: open.arrivals == study::Arrivals::Poisson,
            max_connections: open.connections,
        },
    }
}

fn reference(reference: &study::Reference) -> PlannedReference {
    let mut figures = Vec::new();
    for (variant, loads) in &reference.figures {
        for (load, published) in loads {
            let mean = published.latency_ms.and_then(|latency| latency.mean);
            let named =
                [("throughput_per_s", published.throughput_per_s), ("latency_ms.mean", mean)];
            figures.extend(named.into_iter().filter_map(|(figure, value)| {
                Some(PublishedFigure {
                    variant: variant.to_string(),
                    load: load.to_string(),
                    figure: figure.into(),
                    value: value?,
                })
            }));
        }
    }
    PlannedReference {
        source: reference.source.clone(),
        notes: reference.note.clone(),
        figures,
        recomputed: Vec::new(),
    }
}
