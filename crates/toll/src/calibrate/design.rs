//! Turns the plan of a study into the two of its calibration: rounds of equal arms, and rounds with planted effects.

use toll_lab::{DataPlane, Deployment, Program, Runtime};

use super::planted::{BASE, BASELINE, Dose, Plant, proxy};
use crate::plan::{
    Arm, Plan, PlannedExtent, PlannedLoad, PlannedRate, PlannedVariant, Release, VariantState,
};

/// Equal arms of a round.
const EQUAL_ARMS: usize = 6;
/// Rounds of equal arms that there are to be at the least: three studies of eight share no round.
const EQUAL_ROUNDS: usize = 24;
/// Rounds with planted effects: two reports of eight.
const PLANTED_ROUNDS: usize = 16;
/// Begins of slices that are not counted, in turn, seconds: how far what an arm leaves behind reaches. Every other round
/// has that of studies.
const GUARDS_S: [f64; 4] = [0.25, 0.1, 0.0, 0.1];
/// Share of the time that is for the equal arms.
pub const SHARE_OF_EQUAL: f64 = 0.6;

/// Why a study cannot be calibrated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Nothing can be planted in it.
    #[error("{study} has no built-in service on the native runtime to plant effects in")]
    NoService { study: String },
    /// It has no load at an equal rate.
    #[error(
        "{study} has no open load, and equal arms are held against each other at an equal rate"
    )]
    NoLoad { study: String },
}

impl Unfit {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::NoService { .. } => {
                "calibrate `mesher`, or another study whose services are built in".into()
            }
            Self::NoLoad { .. } => "give it a load such as `open: {rate: 50% of capacity}`".into(),
        }
    }
}

/// The study's baseline six times under its headline load, for so many seconds.
///
/// # Errors
/// [`Unfit`].
pub fn equal(plan: &Plan, for_s: f64) -> Result<Plan, Unfit> {
    let baseline = baseline(plan)?;
    let numbers = 1..=EQUAL_ARMS;
    let variants = numbers.map(|number| {
        let describes = format!("the baseline `{}`, {number} of {EQUAL_ARMS}", plan.baseline);
        variant(&format!("a{number}"), describes, baseline.clone())
    });
    let variants: Vec<PlannedVariant> = variants.collect();
    let arms = variants.iter().map(|variant| arm(&variant.name)).collect();
    let question = "Does toll tell six equal arms apart?".into();
    let mut equal = Plan {
        question,
        baseline: "a1".into(),
        guards_s: GUARDS_S.into(),
        arms,
        variants,
        ..part(plan, load(plan)?, for_s, EQUAL_ROUNDS)
    };
    equal.fit_into_its_time();
    Ok(equal)
}

/// The baseline, its second arm and the plants side by side, for so many seconds; at the rate that the equal arms had,
/// where it is known.
///
/// # Errors
/// [`Unfit`].
pub fn planted(
    plan: &Plan,
    plants: &mut Vec<Plant>,
    rate_per_s: Option<f64>,
    for_s: f64,
) -> Result<Plan, Unfit> {
    let baseline = baseline(plan)?;
    let mut load = load(plan)?;
    if let (Release::Open { rate, .. }, Some(per_s)) = (&mut load.release, rate_per_s) {
        *rate = PlannedRate::PerSecond(per_s);
    }
    let bearing = |dose: Dose, of: &Deployment| bearing(of.clone(), dose);
    let described = format!("the baseline `{}`", plan.baseline);
    let mut variants = vec![variant(BASELINE, described, bearing(BASE, baseline))];
    for plant in plants.iter() {
        let dose = plant.dose.unwrap_or(BASE);
        variants.push(variant(&plant.name, plant.describes.clone(), bearing(dose, baseline)));
    }
    if let Some((name, deployment)) = one_proxy_more(plan) {
        let plant = proxy(name);
        variants.push(variant(&plant.name, plant.describes.clone(), bearing(BASE, deployment)));
        plants.push(plant);
    }
    let again = Arm { variant: BASELINE.into(), again: true };
    let arms = variants.iter().map(|variant| arm(&variant.name)).chain([again]).collect();
    let mut planted = Plan {
        question: "Does toll find effects of known size?".into(),
        baseline: BASELINE.into(),
        arms,
        variants,
        ..part(plan, load, for_s, PLANTED_ROUNDS)
    };
    planted.fit_into_its_time();
    Ok(planted)
}

fn part(plan: &Plan, load: PlannedLoad, for_s: f64, least_rounds: usize) -> Plan {
    Plan {
        extent: PlannedExtent { rounds: None, for_s: Some(for_s), width: None, least_rounds },
        loads: vec![load],
        idle_s: 0.0,
        reference: None,
        ..plan.clone()
    }
}

fn baseline(plan: &Plan) -> Result<&Deployment, Unfit> {
    let is_fit = |deployment: &&Deployment| service_of(deployment).is_some();
    let no_service = || Unfit::NoService { study: plan.study.clone() };
    plan.deployment(&plan.baseline).filter(is_fit).ok_or_else(no_service)
}

fn load(plan: &Plan) -> Result<PlannedLoad, Unfit> {
    let no_load = || Unfit::NoLoad { study: plan.study.clone() };
    plan.headline_load().cloned().ok_or_else(no_load)
}

/// The study's first variant with sidecars.
fn one_proxy_more(plan: &Plan) -> Option<(&str, &Deployment)> {
    plan.ready().find(|(name, deployment)| {
        *name != plan.baseline && matches!(deployment.data_plane, DataPlane::Sidecar { .. })
    })
}

fn bearing(mut deployment: Deployment, dose: Dose) -> Deployment {
    let at = service_of(&deployment);
    let program = at.map(|at| &mut deployment.services[at].program);
    if let Some(Program::BuiltIn(service)) = program {
        service.planted = dose.planted();
    }
    deployment
}

/// Where effects are planted: the entry if it can be, else the first service that can.
fn service_of(deployment: &Deployment) -> Option<usize> {
    let can = |at: &usize| {
        let program = &deployment.services[*at].program;
        matches!(program, Program::BuiltIn(service) if service.runtime == Runtime::Native)
    };
    let fit: Vec<usize> = (0..deployment.services.len()).filter(can).collect();
    let entry = fit.iter().find(|at| deployment.services[**at].name == deployment.entry);
    entry.or(fit.first()).copied()
}

fn variant(name: &str, describes: String, deployment: Deployment) -> PlannedVariant {
    let state = VariantState::Ready(Deployment { name: name.into(), ..deployment });
    PlannedVariant { name: name.into(), describes, state }
}

fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), again: false }
}
