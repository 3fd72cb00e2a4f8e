//! The parts of the findings: per load, per variant, per trial.

use toll_lab::{AirlineDatabase, DatabaseServer, Deployment, Egress, Program, Spans};
use toll_load::Stop;

use super::accounts::{self, CpuAccount, Owner};
use super::effects::{self, Judged, Versus};
use super::findings::*;
use super::{
    attribution, hey, jvm, k6, latency, pods, reference, regime, resources, staircases, traversals,
    vegeta,
};
use crate::plan::{
    Arm, BringUp, Plan, PlannedLoad, PlannedRate, PlannedReference, PlannedUsers, Release,
    VariantState,
};
use crate::store::{Mark, RunRecord, TrialRecord};

/// All that one load showed.
pub fn load_findings(run: &RunRecord, load: &PlannedLoad, valid: &[&TrialRecord]) -> LoadFindings {
    let trials = |variant: &str, again: bool| -> Vec<&TrialRecord> {
        let arm = Arm { variant: variant.into(), again };
        valid.iter().copied().filter(|t| t.trial.load == load.name && t.trial.arm == arm).collect()
    };
    let baseline = run.plan.baseline.as_str();
    let mut names: Vec<&str> = run.plan.ready().map(|(name, _)| name).collect();
    names.sort_by_key(|name| *name != baseline);
    let variants = names
        .iter()
        .map(|name| (*name, trials(name, false)))
        .filter(|(_, trials)| !trials.is_empty())
        .map(|(name, trials)| variant_load(run, load, name, &trials))
        .collect();
    let arms: Vec<Arms<'_>> = names.iter().map(|name| (*name, trials(name, false))).collect();
    let floors = floors(run, load, &trials(baseline, false), &trials(baseline, true));
    let of_load = reference::OfLoad { load: &load.name, baseline, cores: run.host.cores };
    LoadFindings {
        name: load.name.clone(),
        view: view(load),
        cell: load.cell.clone(),
        between: between(run, &arms, &floors),
        resources: resources::rows(&arms),
        top_totals: vec![],
        describes: describe(run, load),
        variants,
        effects: load_effects(run, &arms, &floors),
        attribution: attribution::attribution(&arms),
        top_pods: pods::top(&run.plan, load, &arms),
        jvms: jvm::rows(&arms, run.host.cores),
        regimes: regime::regimes(run, load, &arms),
        reference: run.plan.reference.as_ref().map_or_else(Vec::new, |published| {
            reference::rows(published, &of_load, |variant| trials(variant, false))
        }),
        recomputed: run.plan.reference.as_ref().map_or_else(Vec::new, |published| {
            reference::recomputed(published, &of_load, |variant| trials(variant, false))
        }),
    }
}

/// A variant and its valid trials under one load.
pub type Arms<'a> = (&'a str, Vec<&'a TrialRecord>);

/// What each variant changed against the baseline.
fn load_effects(run: &RunRecord, arms: &[Arms<'_>], floors: &Floors) -> Vec<Effect> {
    let Some((baseline, others)) = arms.split_first() else { return vec![] };
    others.iter().flat_map(|arm| held_against(run, baseline, arm, floors)).collect()
}

/// What each variant but the baseline changed against those before it; where each variant of the study goes a step
/// further than the last, against that one only.
fn between(run: &RunRecord, arms: &[Arms<'_>], floors: &Floors) -> Vec<Effect> {
    let arm = |variant: &str| arms.iter().find(|(name, _)| *name == variant);
    let of = |[earlier, variant]: [&str; 2]| -> Vec<Effect> {
        let Some((earlier, variant)) = arm(earlier).zip(arm(variant)) else { return vec![] };
        let against = Some(earlier.0.to_owned());
        let effects = held_against(run, earlier, variant, floors);
        effects.into_iter().map(|e| Effect { against: against.clone(), ..e }).collect()
    };
    let pairs = if goes_by_steps(&run.plan) {
        staircases::successive(&run.plan)
    } else {
        all_pairs(arms.get(1..).unwrap_or_default())
    };
    pairs.into_iter().flat_map(of).collect()
}

/// Each of the arms behind each of those before it.
fn all_pairs<'a>(arms: &[Arms<'a>]) -> Vec<[&'a str; 2]> {
    let behind = |(place, (variant, _)): (usize, &Arms<'a>)| {
        let variant = *variant;
        arms[..place].iter().map(move |(earlier, _)| [*earlier, variant]).collect::<Vec<_>>()
    };
    arms.iter().enumerate().flat_map(behind).collect()
}

/// Of each metric, the largest difference that the A/A pair leaves possible.
type Floors = Vec<(Metric, Option<f64>)>;

fn floors(
    run: &RunRecord,
    load: &PlannedLoad,
    baseline: &[&TrialRecord],
    again: &[&TrialRecord],
) -> Floors {
    let pair = Versus::new(baseline, again);
    let metrics = effects::compared(view(load), is_of_data_planes(&run.plan, load));
    metrics.map(|metric| (metric, pair.noise_floor(metric))).collect()
}

/// Whether the load is there to tell data planes apart, by what they cost alone: on a staircase of clients, and where
/// variants differ by the way on which traffic leaves the mesh. Elsewhere all CPU per request says it, and who pays
/// for it.
fn is_of_data_planes(plan: &Plan, load: &PlannedLoad) -> bool {
    is_staircase(load) || chooses_egress(plan)
}

/// Whether the variants of the study are successive cases, each a step further than the one before.
fn goes_by_steps(plan: &Plan) -> bool {
    plan.loads.iter().any(is_staircase) || chooses_egress(plan)
}

/// Of a closed loop that is swept over its number of clients.
fn is_staircase(load: &PlannedLoad) -> bool {
    load.cell.as_ref().is_some_and(|cell| cell.connections.is_some())
}

fn chooses_egress(plan: &Plan) -> bool {
    let chooses = |deployment: &Deployment| {
        deployment.data_plane.egress().is_some_and(|egress| *egress != Egress::Sidecar)
    };
    plan.ready().any(|(_, deployment)| chooses(deployment))
}

fn held_against(
    run: &RunRecord,
    (_, against): &Arms<'_>,
    (variant, trials): &Arms<'_>,
    floors: &Floors,
) -> Vec<Effect> {
    let versus = Versus::new(against, trials);
    let effect = |(metric, floor): &(Metric, Option<f64>)| {
        let judged = Judged { metric: *metric, floor: *floor, bound: run.plan.bound };
        versus.effect(variant, judged)
    };
    floors.iter().filter_map(effect).collect()
}

fn view(load: &PlannedLoad) -> View {
    match load.release {
        Release::Open { .. } => View::EqualRate,
        Release::Closed { .. } => View::FlatOut,
        Release::Users(_) => View::Users,
    }
}

fn describe(run: &RunRecord, load: &PlannedLoad) -> String {
    let length = match load.stop {
        Stop::AfterSeconds(seconds) => format!("{seconds} s a trial"),
        Stop::AfterRequests(count) => format!("{count} requests a trial"),
    };
    match load.release {
        Release::Closed { connections } => {
            format!("closed loop, {connections} connections, as fast as each goes, {length}")
        }
        Release::Users(users) => users_in_words(run, &users),
        Release::Open { rate, poisson, .. } => {
            let law = if poisson { "Poisson" } else { "constant" };
            format!("open loop, {}, {law} arrivals, {length}", rate_in_words(run, load, rate))
        }
    }
}

/// `84 of 320 virtual users (...): 4 requests at once, then 1 s of pause; 5 at first, all for 4 s, ... a trial`.
fn users_in_words(run: &RunRecord, users: &PlannedUsers) -> String {
    let PlannedUsers { ramp_s, hold_s, ramp_down_s, think_s, parallel, .. } = users;
    let requests = if *parallel == 1 { "request" } else { "requests at once" };
    format!(
        "{}: {parallel} {requests}, then {think_s} s of pause; up in {ramp_s} s, all for {hold_s} s, down in {ramp_down_s} s",
        how_many(run, users)
    )
}

fn how_many(run: &RunRecord, users: &PlannedUsers) -> String {
    let all = users.users;
    let Some(made_for) = users.made_for_knee_per_s else { return format!("{all} virtual users") };
    match run.lowest_knee().map(|knee| (users.scaled(Some(knee.rate_per_s)), knee)) {
        Some((Some(here), knee)) => format!(
            "{here} of {all} virtual users (the knee of {} is {:.0}/s here, {made_for:.0}/s where there were {all})",
            knee.variant, knee.rate_per_s
        ),
        _ => format!("up to {all} virtual users, by a knee not yet known"),
    }
}

fn knee_per_s(run: &RunRecord) -> Option<f64> {
    run.lowest_knee().map(|knee| knee.rate_per_s)
}

fn rate_in_words(run: &RunRecord, load: &PlannedLoad, rate: PlannedRate) -> String {
    match (rate, run.lowest_knee()) {
        (PlannedRate::PerSecond(rate), _) => format!("{rate} requests/s"),
        (PlannedRate::OfKnee(share), None) => {
            format!("{:.0} % of a knee not yet known", share * 100.0)
        }
        (PlannedRate::OfKnee(share), Some(knee)) => {
            let rate = load.rate_per_s(Some(knee.rate_per_s)).unwrap_or_default();
            let (percent, knee_rate) = (share * 100.0, knee.rate_per_s);
            format!(
                "{rate:.0} requests/s ({percent:.0} % of the knee of {}, {knee_rate:.0}/s)",
                knee.variant
            )
        }
    }
}

fn variant_load(
    run: &RunRecord,
    load: &PlannedLoad,
    name: &str,
    trials: &[&TrialRecord],
) -> VariantLoad {
    let histograms: Vec<_> =
        trials.iter().filter_map(|t| t.load.as_ref()).map(|load| &load.measure.latency).collect();
    VariantLoad {
        variant: name.into(),
        trials: trials.len(),
        metrics: effects::over_blocks(trials, is_of_data_planes(&run.plan, load)),
        latency_curve: latency::curve(&histograms),
        hey: (view(load) == View::FlatOut).then(|| hey::of_trials(trials)).flatten(),
        vegeta: (view(load) == View::EqualRate).then(|| vegeta::of_trials(trials)).flatten(),
        k6: (view(load) == View::Users).then(|| as_k6(run, load, trials)).flatten(),
        throughput_by_block: trials.iter().filter_map(|t| effects::throughput(t)).collect(),
        cpu_per_request: costs(trials, request_cpu_us),
        traversals: traversals::costs(trials),
        idle_cpu: costs(trials, idle_millicores),
        memory: typical_memory(trials),
    }
}

fn as_k6(run: &RunRecord, load: &PlannedLoad, trials: &[&TrialRecord]) -> Option<K6Summary> {
    let plan = load.engine_plan("", knee_per_s(run), run.plan.seed)?;
    k6::of_trials(trials, &plan.model)
}

/// CPU per request by owner, microseconds.
fn request_cpu_us(trial: &TrialRecord) -> Vec<(Owner, Option<f64>)> {
    let account = CpuAccount::measured(trial);
    let completed = trial.load.as_ref().map_or(0, |load| load.measure.completed);
    per(account, |_| (completed > 0).then_some(completed as f64 * 1e3))
}

/// CPU in the idle window by owner, thousandths of a core.
fn idle_millicores(trial: &TrialRecord) -> Vec<(Owner, Option<f64>)> {
    let account = CpuAccount::between(&trial.samples, Mark::IdleBegin, Mark::IdleEnd);
    per(account, |window_ns| (window_ns > 0).then_some(window_ns as f64 / 1e3))
}

fn per(
    account: Option<CpuAccount>,
    divisor: impl Fn(u64) -> Option<f64>,
) -> Vec<(Owner, Option<f64>)> {
    let Some(account) = account else { return vec![] };
    let divisor = divisor(account.window_ns);
    account
        .by_owner
        .into_iter()
        .map(|(owner, ns)| (owner, ns.zip(divisor).map(|(n, d)| n / d)))
        .collect()
}

/// The mean over trials of what `cost` says of each owner, owners in the order of first appearance.
fn costs(
    trials: &[&TrialRecord],
    cost: impl Fn(&TrialRecord) -> Vec<(Owner, Option<f64>)>,
) -> Vec<ComponentCost> {
    let mut by_owner: Vec<(Owner, Vec<f64>)> = Vec::new();
    for (owner, value) in trials.iter().flat_map(|trial| cost(trial)) {
        let Some(value) = value else { continue };
        match by_owner.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, values)) => values.push(value),
            None => by_owner.push((owner, vec![value])),
        }
    }
    by_owner
        .into_iter()
        .filter_map(|(owner, values)| {
            let cost = effects::mean_of(&values)?;
            Some(ComponentCost { component: owner.label(), role: owner.role().into(), cost })
        })
        .collect()
}

/// Memory over time in the trial whose mean is the median.
fn typical_memory(trials: &[&TrialRecord]) -> Vec<MemorySeries> {
    let mut by_mean: Vec<(f64, &TrialRecord)> =
        trials.iter().filter_map(|t| Some((accounts::mean_memory(&t.samples)?, *t))).collect();
    by_mean.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, typical)) = by_mean.get(by_mean.len() / 2) else { return vec![] };
    let Some(zero) = typical.samples.iter().find(|s| s.mark == Mark::MeasureBegin) else {
        return vec![];
    };
    let seconds = |at_ns: u64| (at_ns as f64 - zero.sample.at_ns as f64) / 1e9;
    accounts::memory_series(&typical.samples)
        .into_iter()
        .map(|(owner, points)| MemorySeries {
            component: owner.label(),
            role: owner.role().into(),
            points: points.into_iter().map(|(at, bytes)| (seconds(at), bytes)).collect(),
        })
        .collect()
}

/// The variants of the study, skipped ones included.
pub fn variants(plan: &Plan) -> Vec<VariantFacts> {
    plan.variants
        .iter()
        .map(|variant| VariantFacts {
            name: variant.name.clone(),
            describes: variant.describes.clone(),
            skipped: match &variant.state {
                VariantState::Ready(_) => None,
                VariantState::Skipped(reason) => Some(reason.clone()),
            },
        })
        .collect()
}

/// The knees that were searched for.
pub fn knees(run: &RunRecord) -> Vec<Knee> {
    let knee = |k: &crate::store::KneeRecord| Knee {
        variant: k.variant.clone(),
        rate_per_s: k.rate_per_s,
    };
    run.knees.iter().map(knee).collect()
}

/// Where the published figures come from, and what to know about them, a sentence each.
pub fn published(plan: &Plan) -> Vec<String> {
    let sentences = |reference: &PlannedReference| {
        let source = format!("Published in: {}.", reference.source);
        std::iter::once(source).chain(reference.notes.iter().cloned()).collect()
    };
    plan.reference.as_ref().map_or_else(Vec::new, sentences)
}

/// Proof of path, per variant that ran.
pub fn proofs(run: &RunRecord) -> Vec<ProofSummary> {
    let ran = run.plan.ready().map(|(name, _)| name);
    ran.map(|name| {
        let trials: Vec<_> = run.trials.iter().filter(|t| t.trial.arm.variant == name).collect();
        let proven = |t: &&&TrialRecord| t.proof.as_ref().is_some_and(toll_lab::Proof::holds);
        let last = last_at_the_largest_size(run, &trials).and_then(|t| t.proof.as_ref());
        ProofSummary {
            variant: name.into(),
            trials: trials.len(),
            proven: trials.iter().filter(proven).count(),
            claims: last.map_or_else(Vec::new, |proof| {
                let claim = |c: &toll_lab::Claim| {
                    (c.claim.clone(), c.expected.clone(), c.seen.clone(), c.holds)
                };
                proof.claims.iter().map(claim).collect()
            }),
            spans: spans_of_loads(run, &trials),
        }
    })
    .collect()
}

/// The last trial with a proof; of a sweep one of those with the most pods, whose claims cover the most.
fn last_at_the_largest_size<'a>(
    run: &RunRecord,
    trials: &[&'a TrialRecord],
) -> Option<&'a TrialRecord> {
    let pods = |trial: &TrialRecord| {
        let load = run.plan.loads.iter().find(|load| load.name == trial.trial.load);
        let replicas = load.and_then(|load| load.cell.as_ref()?.replicas.as_ref());
        replicas.map_or(0, |(_, pods)| *pods)
    };
    let proven = trials.iter().copied().filter(|t| t.proof.is_some());
    proven.max_by_key(|trial| pods(trial))
}

/// The loads put together whose requests leave the same spans.
fn spans_of_loads(run: &RunRecord, trials: &[&TrialRecord]) -> Vec<SpansOfLoads> {
    let mut alike: Vec<Vec<&PlannedLoad>> = Vec::new();
    for load in &run.plan.loads {
        match alike.iter_mut().find(|loads| loads[0].spans == load.spans) {
            Some(loads) => loads.push(load),
            None => alike.push(vec![load]),
        }
    }
    let of_loads = |loads: &Vec<&PlannedLoad>| {
        let ran = |load: &PlannedLoad| {
            trials.iter().filter(|t| t.trial.load == load.name).copied().collect::<Vec<_>>()
        };
        let counted = loads.iter().filter(|load| spans_of(&ran(load)).is_some());
        let spans = spans_of(&loads.iter().flat_map(|load| ran(load)).collect::<Vec<_>>())?;
        Some(SpansOfLoads { loads: counted.map(|load| load.name.clone()).collect(), spans })
    };
    alike.iter().filter_map(of_loads).collect()
}

/// Spans of all valid trials that counted them, by service in the order of the proofs.
fn spans_of(trials: &[&TrialRecord]) -> Option<Spans> {
    let valid = trials.iter().filter(|t| t.verdict.invalid.is_empty());
    valid.filter_map(|t| t.proof.as_ref()?.spans.clone()).reduce(|mut sum, spans| {
        sum.requests += spans.requests;
        sum.whole += spans.whole;
        for of in spans.services {
            match sum.services.iter_mut().find(|known| known.service == of.service) {
                Some(known) => {
                    known.expected += of.expected;
                    known.arrived += of.arrived;
                }
                None => sum.services.push(of),
            }
        }
        sum
    })
}

/// Every trial that ran.
pub fn trial_lines(run: &RunRecord) -> Vec<TrialLine> {
    let fastest = fastest_calibration(run);
    run.trials
        .iter()
        .map(|t| TrialLine {
            index: t.trial.index,
            block: t.trial.block,
            variant: t.trial.arm.label(),
            load: t.trial.load.clone(),
            invalid: (!t.verdict.invalid.is_empty()).then(|| t.verdict.invalid.join("; ")),
            steal: t.verdict.noise.steal,
            calibration: t.verdict.noise.calibration_ns as f64 / fastest,
        })
        .collect()
}

/// The shortest calibration loop of the run, nanoseconds; never zero.
pub fn fastest_calibration(run: &RunRecord) -> f64 {
    run.trials.iter().map(|t| t.verdict.noise.calibration_ns).min().unwrap_or(1).max(1) as f64
}

/// What each built-in service burns for a request: `client 500 µs, server 500 µs`.
fn work(plan: &Plan) -> Option<String> {
    let (_, deployment) = plan.ready().next()?;
    let burned = deployment.services.iter().filter_map(|service| match &service.program {
        Program::BuiltIn(built_in) => Some(format!("{} {:?}", service.name, built_in.work)),
        _ => None,
    });
    let burned: Vec<String> = burned.collect();
    (!burned.is_empty()).then(|| burned.join(", "))
}

/// Label in the manifest of the database server that ran outside of the mesh.
const DATABASE: &str = "database";
/// What runs where there is no `mongod`.
pub const STAND_IN: &str = "mongo-java-server";

/// The server of the airline's database, by what the machine's facts say of it: `PostgreSQL 17.2 (...)`.
pub fn database(run: &RunRecord) -> Option<String> {
    let facts = &run.host.facts;
    let labelled = |label: &str| facts.iter().find(|(known, _)| known == label);
    if let Some((_, known)) = labelled(DATABASE) {
        return Some(known.clone());
    }
    let said = |(label, value): &(String, String)| format!("{label} {value}");
    let is_stand_in = |fact: &&(String, String)| said(fact).contains(STAND_IN);
    match server(&run.plan)? {
        DatabaseServer::Postgres => labelled("PostgreSQL").map(said),
        // Where both are there, the lab takes `mongod`.
        DatabaseServer::MongoDb => labelled("MongoDB").map(said).or_else(|| {
            let (label, value) = facts.iter().find(is_stand_in)?;
            let named = if label.contains(STAND_IN) {
                format!("{STAND_IN} {value}")
            } else {
                value.clone()
            };
            Some(format!("{named}, a stand-in for MongoDB"))
        }),
    }
}

/// Whether a fact of the machine is the airline's database by another name: as a part, or as the lab met it.
fn names_the_database(label: &str) -> bool {
    label == DATABASE || label.contains(STAND_IN) || label.starts_with("database of ")
}

fn server(plan: &Plan) -> Option<DatabaseServer> {
    let mut services = plan.ready().flat_map(|(_, deployment)| &deployment.services);
    services.find_map(|service| match service.program {
        Program::AirlineDatabase(AirlineDatabase { server, .. }) => Some(server),
        _ => None,
    })
}

fn bring_up(bring_up: BringUp) -> &'static str {
    match bring_up {
        BringUp::Trial => "for each trial",
        BringUp::Block => "for all loads of an arm in a block",
        BringUp::Together => "once for each block, all arms side by side",
        BringUp::Run => "once for each arm, all side by side",
    }
}

/// What the machine and the run were.
pub fn manifest(run: &RunRecord) -> Vec<(String, String)> {
    let mut manifest = run.host.facts.clone();
    if let Some(server) = database(run) {
        // One line names it, with whatever is known of it.
        manifest.retain(|(label, _)| !names_the_database(label));
        manifest.push((DATABASE.into(), server));
    }
    manifest.push(("profile".into(), run.plan.profile.clone()));
    manifest.extend(run.plan.runtime.clone().map(|runtime| ("runtime".into(), runtime)));
    manifest.extend(work(&run.plan).map(|work| ("work".into(), work)));
    manifest.push(("bring-up".into(), bring_up(run.plan.bring_up).into()));
    manifest.push(("blocks".into(), run.plan.blocks.to_string()));
    manifest.push(("seed".into(), run.plan.seed.to_string()));
    manifest
}
