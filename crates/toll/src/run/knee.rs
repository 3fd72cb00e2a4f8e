//! Searches for the knee: the highest arrival rate that a variant carries.
//!
//! The closed-loop throughput at a fixed number of connections bounds the knee from above; a bisection over
//! open-loop arrival rates below it finds the highest one that is *carried*: completions within the window keep
//! up with arrivals, the queue does not grow, and the generator is not itself the limit. The path is proven over
//! all tries together. This is the sustainable-throughput definition of Karimov et al., "Benchmarking
//! Distributed Stream Data Processing Systems" (ICDE 2018), applied to requests.

use toll_lab::{Deployment, Environment, Traffic};
use toll_load::{LoadModel, LoadPlan, LoadReport, Stop, WarmUp};

use super::load::{Heard, Stopped, drive, failures, failures_in_words, throughput, traffic};
use super::settle::settle;
use super::standing::{Site, Standing};
use super::{RunError, Session, seeds};
use crate::event::RunEvent;
use crate::plan::{Arm, BringUp, Plan, PlannedLoad};
use crate::store::KneeRecord;

/// Enough to keep every core of a small machine busy, few enough to keep queues short.
const CONNECTIONS: u32 = 32;
/// Bound on outstanding requests while a rate is tried.
const MAX_CONNECTIONS: u32 = 256;
/// Completions per arrival below which a rate is not carried.
const KEEPS_UP: f64 = 0.98;
/// Growth of the median latency from the first to the last third of a try that betrays a growing queue.
const GROWTH: f64 = 2.0;
/// Halvings of the interval above a rate that was carried: three leave one part in sixteen of the upper bound.
const HALVINGS: u32 = 3;
/// Halvings below the closed-loop throughput before the search gives up.
const DESCENTS: u32 = 4;
/// Steps beyond the closed-loop throughput when all below it was carried, and the factor of each.
const CLIMBS: u32 = 6;
const CLIMB: f64 = 1.15;
/// A rate is carried when one of so many tries was.
const TRIES: u32 = 2;
/// Length of each try, seconds; the closed-loop probe is one try, too.
const TRY_S: f64 = 1.5;

/// The knee of one variant. `None` when the search was interrupted.
///
/// What it brings up stays for the trials of a plan that brings each arm up once.
///
/// # Errors
/// When the variant does not come up, bears no rate, or takes another path than it claims.
pub fn search(
    session: &mut Session<'_>,
    standing: &mut Standing,
    variant: &str,
    deployment: &Deployment,
) -> Result<Option<KneeRecord>, RunError> {
    session.emit(&RunEvent::KneeSearch { variant: variant.into() })?;
    let logs = session.store.knee_logs(variant)?;
    let arm = Arm { variant: variant.into(), again: false };
    let site = standing.site(session, &arm, deployment, &logs)?;
    let found = search_in(session, variant, site);
    if found.is_err() || session.plan.bring_up != BringUp::Run {
        standing.take_down(session, &arm, deployment)?;
    }
    match found {
        Ok(knee) => {
            session.emit(&RunEvent::KneeFound {
                variant: variant.into(),
                rate_per_s: knee.rate_per_s,
            })?;
            Ok(Some(knee))
        }
        Err(Stopped::Interrupted) => Ok(None),
        Err(Stopped::Broken(reason)) => Err(RunError::Knee { variant: variant.into(), reason }),
        Err(Stopped::Fatal(error)) => Err(error),
    }
}

fn search_in(
    session: &mut Session<'_>,
    variant: &str,
    site: Site<'_>,
) -> Result<KneeRecord, Stopped> {
    let environment = site.environment;
    if site.fresh {
        *site.settled = settle(session, environment)?.map(Ok);
    }
    if let Some(Ok(settled)) = site.settled {
        session.store.write_knee_settled(variant, settled)?;
    }
    environment.open_proof().map_err(RunError::from)?;
    let capacity = one_try(session, environment, LoadModel::closed(CONNECTIONS), 0)?;
    let upper = throughput(&capacity);
    if upper <= 0.0 || failures(&capacity) > 0 {
        let failed = failures_in_words(&capacity);
        return Err(Stopped::Broken(format!(
            "on {CONNECTIONS} connections in a closed loop: {failed}"
        )));
    }
    let mut tried = Vec::new();
    let mut sent = traffic(asking(session.plan), &capacity);
    let found = highest_carried(upper, |rate_per_s| {
        let model = LoadModel::open(rate_per_s, MAX_CONNECTIONS);
        let mut carried = false;
        // What a neighbour on the machine spoilt once is tried once more; what was carried once can be carried.
        for _ in 0..TRIES {
            let report = one_try(session, environment, model.clone(), sent.requests)?;
            add(&mut sent, &traffic(asking(session.plan), &report));
            carried = is_carried(&report, rate_per_s);
            if carried {
                break;
            }
        }
        tried.push((rate_per_s, carried));
        session.emit(&RunEvent::KneeTried { variant: variant.into(), rate_per_s, carried })?;
        Ok::<_, Stopped>(carried)
    })?;
    prove(environment, sent)?;
    match found {
        Some(rate_per_s) => Ok(KneeRecord { variant: variant.into(), rate_per_s, tried }),
        None => Err(Stopped::Broken(format!(
            "not even {:.1} requests/s were carried",
            tried_last(&tried)
        ))),
    }
}

fn tried_last(tried: &[(f64, bool)]) -> f64 {
    tried.last().map_or(0.0, |(rate_per_s, _)| *rate_per_s)
}

/// The highest tried rate that `carries` accepts, to `upper / 2^(HALVINGS + 1)`: down by halves until one is
/// carried, then by bisection up to the last that was not.
fn highest_carried<E>(
    upper: f64,
    mut carries: impl FnMut(f64) -> Result<bool, E>,
) -> Result<Option<f64>, E> {
    let mut high = upper;
    for _ in 0..DESCENTS {
        let mut low = high / 2.0;
        if carries(low)? {
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(low, high);
                if carries(middle)? { low = middle } else { high = middle }
            }
            if high < upper {
                return Ok(Some(low));
            }
            return climb(low, carries).map(Some);
        }
        high = low;
    }
    Ok(None)
}

/// From a rate that was carried, on to the last before one that was not. A closed loop on few connections bounds the
/// knee only while the services are at their best: a JVM that still compiles carries more a minute later.
fn climb<E>(from: f64, mut carries: impl FnMut(f64) -> Result<bool, E>) -> Result<f64, E> {
    let mut carried = from;
    for _ in 0..CLIMBS {
        let next = carried * CLIMB;
        if !carries(next)? {
            break;
        }
        carried = next;
    }
    Ok(carried)
}

/// A knee found on another path than the variant's would set a wrong rate for the whole run.
fn prove(environment: &mut Environment, sent: Traffic) -> Result<(), Stopped> {
    let proof = environment.close_proof(sent).map_err(RunError::from)?;
    match proof.claims.iter().find(|claim| !claim.holds) {
        None => Ok(()),
        Some(claim) => {
            Err(Stopped::Broken(format!("path not proven: {}: saw {}", claim.claim, claim.seen)))
        }
    }
}

/// What the first load asks whose rate refers to the knee: another request has another knee.
fn asking(plan: &Plan) -> &PlannedLoad {
    let of_rate = plan.loads.iter().find(|load| load.share_of_knee().is_some());
    let load = of_rate.or_else(|| plan.loads.iter().find(|load| load.refers_to_knee()));
    load.expect("a knee is searched for when a load refers to it")
}

/// All tries ask the same, and so leave the same spans for each request.
fn add(sum: &mut Traffic, further: &Traffic) {
    for (asked, again) in sum.asked.iter_mut().zip(&further.asked) {
        asked.requests += again.requests;
        asked.acknowledged += again.acknowledged;
    }
    sum.requests += further.requests;
    sum.writes += further.writes;
    sum.acknowledged += further.acknowledged;
}

/// `number` tells the tries apart: how many requests were sent before.
fn one_try(
    session: &mut Session<'_>,
    environment: &mut Environment,
    model: LoadModel,
    number: u64,
) -> Result<LoadReport, Stopped> {
    let targets = asking(session.plan).targets(&environment.entry_url());
    let first = targets[0].clone();
    let plan = LoadPlan {
        targets,
        warm_up: WarmUp { min_s: 0.3, max_s: 0.5 },
        timeout_ms: 5_000,
        seed: seeds::of_try(session.plan, number),
        ..LoadPlan::new(first, model, Stop::AfterSeconds(TRY_S))
    };
    let ignore = &mut |_: &mut Environment, _: Heard| Ok(());
    drive(environment, &plan, session.interrupt, ignore)
}

fn is_carried(report: &LoadReport, rate_per_s: f64) -> bool {
    let measured = &report.measure;
    let keeps_up = throughput(report) >= KEEPS_UP * rate_per_s && measured.unsent == 0;
    let generator_is_fit = report.checks.iter().all(|check| check.name != "own-cpu" || check.holds);
    let third = (measured.series.len() / 3).max(1);
    let medians = |points: &[toll_load::SeriesPoint]| {
        points.iter().map(|point| point.p50_us).sum::<f64>() / points.len().max(1) as f64
    };
    let first = medians(&measured.series[..third.min(measured.series.len())]);
    let last = medians(&measured.series[measured.series.len().saturating_sub(third)..]);
    keeps_up && generator_is_fit && failures(report) == 0 && last <= GROWTH * first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_just_below_the_rate_that_is_not_carried() {
        let knee = highest_carried(1000.0, |rate| Ok::<_, ()>(rate <= 777.0)).unwrap().unwrap();
        assert!(knee <= 777.0 && knee > 777.0 - 1000.0 / 16.0, "{knee}");
    }

    #[test]
    fn a_variant_that_carries_more_than_the_closed_loop_showed_is_asked_for_more() {
        let knee = highest_carried(1000.0, |rate| Ok::<_, ()>(rate <= 1500.0)).unwrap().unwrap();
        assert!((1500.0 / CLIMB..=1500.0).contains(&knee), "{knee}");
    }

    #[test]
    fn the_search_ends_above_a_variant_that_carries_everything() {
        let mut tries = 0;
        let carries = |_| {
            tries += 1;
            Ok::<_, ()>(true)
        };
        assert!(highest_carried(1000.0, carries).unwrap().unwrap() > 2000.0);
        assert_eq!(tries, 1 + HALVINGS + CLIMBS);
    }

    #[test]
    fn a_knee_is_always_a_rate_that_was_tried_and_carried() {
        for limit in [60.0, 100.0, 130.0, 260.0, 490.0, 510.0, 990.0, 1600.0] {
            let mut carried = vec![];
            let found = highest_carried(1000.0, |rate| {
                if rate <= limit {
                    carried.push(rate);
                }
                Ok::<_, ()>(rate <= limit)
            });
            let knee = found.unwrap();
            assert_eq!(knee, carried.last().copied(), "limit {limit}");
        }
    }

    #[test]
    fn a_variant_that_carries_nothing_has_no_knee() {
        assert_eq!(highest_carried(1000.0, |_| Ok::<_, ()>(false)), Ok(None));
    }
}
