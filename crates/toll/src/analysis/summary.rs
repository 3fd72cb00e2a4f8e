//! The parts of the findings: per load, per variant, per round.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;

use toll_lab::{Ambient, DataPlane, Deployment, Egress, NodeProxy, Program, Proof, Spans};
use toll_load::LoadReport;

use super::accounts::{ByOwner, CpuAccount};
use super::counts::seconds;
use super::database::{database, is_database};
use super::effects::{self, Versus};
use super::excuse::{CycleKey, Disturbance, Excused};
use super::findings::*;
use super::memory;
use super::tally::{self, Arms, Tally};
use super::verdicts::{Judged, with_verdicts};
use super::{
    Counted, attribution, hey, jvm, k6, kubectl_top, latency, merged, pods, reference, regime,
    resources, staircases, traversals, vegeta,
};
use crate::plan::{Plan, PlannedLoad, PlannedReference, SliceOf, VariantState};
use crate::store::{ArmRecord, CapacityRecord, RoundRecord, RunRecord, SliceRecord};

/// All that one load showed.
pub fn load_findings(run: &RunRecord, load: &PlannedLoad, counted: &Counted<'_>) -> LoadFindings {
    let arms = arms_under(run, load, &counted.tallies);
    let tallies_of = |variant: &str| {
        let arm = arms.iter().find(|(name, _)| *name == variant);
        arm.map(|(_, tallies)| tallies.clone()).unwrap_or_default()
    };
    let of_load =
        reference::OfLoad { load: &load.name, baseline: &run.plan.baseline, cores: run.host.cores };
    let reference = run.plan.reference.as_ref();
    let ran = arms.iter().filter(|(_, tallies)| !tallies.is_empty());
    LoadFindings {
        name: load.name.clone(),
        view: view(load),
        cell: load.cell.clone(),
        release: load.release,
        rate_per_s: load.rate_per_s(capacity_per_s(run)),
        slice: slice(run, load),
        variants: ran.map(|(name, tallies)| variant_load(run, load, name, tallies)).collect(),
        effects: effects_under(run, load, counted),
        again: again(run, load, &arms),
        between: between(run, load, &arms),
        attribution: attribution::attribution(&arms),
        top_pods: pods::top(&run.plan, load, &arms),
        resources: resources::rows(&arms),
        top_totals: kubectl_top::totals(&arms),
        jvms: jvm::rows(&arms, run.host.cores),
        regimes: regime::regimes(run, load, &arms),
        reference: reference
            .map_or_else(Vec::new, |published| reference::rows(published, &of_load, tallies_of)),
        recomputed: reference.map_or_else(Vec::new, |published| {
            reference::recomputed(published, &of_load, tallies_of)
        }),
    }
}

/// Every variant that runs, the baseline first.
fn arms_under<'t>(
    run: &'t RunRecord,
    load: &PlannedLoad,
    tallies: &'t [Tally<'_>],
) -> Vec<Arms<'t>> {
    let of_load: Vec<&Tally<'_>> = tallies.iter().filter(|tally| tally.load == load.name).collect();
    let mut names: Vec<&str> = run.plan.ready().map(|(name, _)| name).collect();
    names.sort_by_key(|name| *name != run.plan.baseline);
    names.iter().map(|name| (*name, effects::of_variant(&of_load, name).collect())).collect()
}

/// What each variant changed against the baseline: with verdicts where the load is the one that has them.
pub fn effects_under(run: &RunRecord, load: &PlannedLoad, counted: &Counted<'_>) -> Vec<Effect> {
    let found = judged(run, load, &counted.tallies);
    let mut effects = match is_headline(run, load) {
        true => with_verdicts(&run.plan, found),
        false => without_verdicts(found),
    };
    let unexcused = counted.unexcused.as_ref().map(|tallies| judged(run, load, tallies));
    for (effect, _) in unexcused.into_iter().flatten() {
        let same = |e: &&mut Effect| e.variant == effect.variant && e.metric == effect.metric;
        if let Some(known) = effects.iter_mut().find(same) {
            known.unexcused_ratio = Some(effect.ratio);
        }
    }
    effects
}

fn judged(run: &RunRecord, load: &PlannedLoad, tallies: &[Tally<'_>]) -> Vec<Judged> {
    let arms = arms_under(run, load, tallies);
    let Some((baseline, others)) = arms.split_first() else { return vec![] };
    others.iter().flat_map(|arm| held_against(run, load, baseline, arm)).collect()
}

fn without_verdicts(judged: Vec<Judged>) -> Vec<Effect> {
    judged.into_iter().map(|(effect, _)| effect).collect()
}

fn is_headline(run: &RunRecord, load: &PlannedLoad) -> bool {
    run.plan.headline_load().is_some_and(|headline| headline.name == load.name)
}

/// The baseline's second arm against its first.
fn again(run: &RunRecord, load: &PlannedLoad, arms: &[Arms<'_>]) -> Vec<Effect> {
    let Some((_, baseline)) = arms.first() else { return vec![] };
    let [first, second]: [Vec<&Tally<'_>>; 2] = [false, true]
        .map(|again| baseline.iter().copied().filter(|t| t.arm.again == again).collect());
    let Some(label) = second.first().map(|tally| tally.arm.label()) else { return vec![] };
    without_verdicts(held_against(run, load, &(&run.plan.baseline, first), &(&label, second)))
}

/// What each variant but the baseline changed against those before it; where each variant of the study goes a step
/// further than the last, against that one only.
fn between(run: &RunRecord, load: &PlannedLoad, arms: &[Arms<'_>]) -> Vec<Effect> {
    let arm = |variant: &str| arms.iter().find(|(name, _)| *name == variant);
    let of = |[earlier, variant]: [&str; 2]| -> Vec<Effect> {
        let Some((earlier, variant)) = arm(earlier).zip(arm(variant)) else { return vec![] };
        let against = Some(earlier.0.to_owned());
        let effects = without_verdicts(held_against(run, load, earlier, variant));
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
    load: &PlannedLoad,
    (_, against): &Arms<'_>,
    (variant, tallies): &Arms<'_>,
) -> Vec<Judged> {
    let versus = Versus::new(against, tallies);
    let (metrics, setup_cycles) = (metrics(run, load).into_iter(), run.plan.setup_cycles());
    metrics.filter_map(|metric| versus.effect(variant, metric, setup_cycles)).collect()
}

/// What is compared under a load: under the headline load whatever the study wants a verdict of, too.
fn metrics(run: &RunRecord, load: &PlannedLoad) -> Vec<Metric> {
    let mut metrics: Vec<Metric> =
        effects::compared(view(load), is_of_data_planes(&run.plan, load)).collect();
    let wanted = run.plan.headline.iter().filter(|_| is_headline(run, load));
    let further: Vec<Metric> = wanted.filter(|metric| !metrics.contains(metric)).copied().collect();
    metrics.extend(further);
    metrics
}

/// Which of the views that never share a table.
pub fn view(load: &PlannedLoad) -> View {
    match load.release {
        Release::Open { .. } => View::EqualRate,
        Release::Closed { .. } => View::FlatOut,
        Release::Users(_) => View::Users,
    }
}

/// A slice of so many seconds is longer where few requests would fall into it.
fn slice(run: &RunRecord, load: &PlannedLoad) -> SliceLength {
    match load.slice {
        SliceLength::Seconds(_) => SliceLength::Seconds(load.slice_s(capacity_per_s(run))),
        SliceLength::Requests(count) => SliceLength::Requests(count),
    }
}

fn capacity_per_s(run: &RunRecord) -> Option<f64> {
    run.lowest_capacity().map(|lowest| lowest.per_s)
}

fn variant_load(
    run: &RunRecord,
    load: &PlannedLoad,
    name: &str,
    tallies: &[&Tally<'_>],
) -> VariantLoad {
    let histograms: Vec<_> = merged::rounds(tallies, merged::latency).into_values().collect();
    let throughputs = effects::means_by_round(tallies, effects::throughput);
    let whole = tally::report(tallies);
    let in_view = |wanted| whole.as_ref().filter(|_| view(load) == wanted);
    VariantLoad {
        variant: name.into(),
        rounds: tallies.iter().map(|tally| tally.round).collect::<BTreeSet<_>>().len(),
        slices: tallies.iter().map(|tally| tally.slices.len()).sum(),
        metrics: effects::over_rounds(tallies, is_of_data_planes(&run.plan, load)),
        latency_curve: latency::curve(&histograms.iter().collect::<Vec<_>>()),
        hey: in_view(View::FlatOut).map(|whole| hey::summary(whole, seconds(&whole.measure))),
        vegeta: in_view(View::EqualRate).map(vegeta::summary),
        k6: in_view(View::Users).and_then(|whole| as_k6(run, load, whole)),
        throughput_by_round: throughputs.into_values().collect(),
        cpu_per_request: costs(tallies, request_cpu_us),
        traversals: traversals::costs(tallies),
        idle_cpu: costs(tallies, idle_millicores),
        memory: typical_memory(tallies),
    }
}

fn as_k6(run: &RunRecord, load: &PlannedLoad, whole: &LoadReport) -> Option<K6Summary> {
    let (capacity_per_s, guard_s) = (capacity_per_s(run), load.guard_s(run.plan.guard_s));
    let of = SliceOf { capacity_per_s, guard_s, answer_s: 0.0, seed: run.plan.seed };
    let plan = load.engine_plan("", &of)?;
    Some(k6::of_slices(whole, &plan.model, load.slice_s(capacity_per_s)))
}

/// CPU per request by owner, microseconds.
fn request_cpu_us(tally: &Tally<'_>) -> ByOwner {
    let answered = tally.sums.answered;
    per(&tally.sums.cpu, (answered > 0).then_some(answered as f64 * 1e3))
}

/// CPU in the idle window by owner, thousandths of a core.
fn idle_millicores(tally: &Tally<'_>) -> ByOwner {
    let Some(idle) = &tally.stay.idle else { return vec![] };
    per(idle, (idle.window_ns > 0).then_some(idle.window_ns as f64 / 1e3))
}

fn per(account: &CpuAccount, divisor: Option<f64>) -> ByOwner {
    let per = |ns: Option<f64>| Some(ns? / divisor?);
    account.by_owner.iter().map(|(owner, ns)| (Rc::clone(owner), per(*ns))).collect()
}

/// The mean over rounds of what `cost` says of each owner, owners in the order of first appearance.
fn costs(tallies: &[&Tally<'_>], cost: impl Fn(&Tally<'_>) -> ByOwner) -> Vec<ComponentCost> {
    let mut owners: Vec<Rc<Owner>> = Vec::new();
    for (owner, _) in tallies.iter().flat_map(|tally| cost(tally)) {
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let of_owner = |owner: Rc<Owner>| {
        let of_tally = |tally: &Tally<'_>| {
            cost(tally).into_iter().find(|(known, _)| *known == owner).and_then(|(_, cost)| cost)
        };
        let cost = effects::mean_observed(tallies, of_tally)?;
        Some(ComponentCost { owner: Owner::clone(&owner), cost })
    };
    owners.into_iter().filter_map(of_owner).collect()
}

/// Memory over time in the round whose mean is the median.
fn typical_memory(tallies: &[&Tally<'_>]) -> Vec<MemorySeries> {
    let mut by_mean: Vec<(f64, &Tally<'_>)> =
        tallies.iter().filter_map(|t| Some((memory::mean_memory(t)?, *t))).collect();
    by_mean.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, typical)) = by_mean.get(by_mean.len() / 2) else { return vec![] };
    let zero_ns = typical.snapshots().next().map_or(0, |snapshot| snapshot.at_ns);
    let seconds = |at_ns: u64| (at_ns as f64 - zero_ns as f64) / 1e9;
    memory::memory_series(typical)
        .into_iter()
        .map(|(owner, points)| MemorySeries {
            owner: Owner::clone(&owner),
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
            envoy_for_ztunnel: match &variant.state {
                VariantState::Ready(deployment) => has_envoys_on_nodes(&deployment.data_plane),
                VariantState::Skipped(_) => false,
            },
        })
        .collect()
}

fn has_envoys_on_nodes(data_plane: &DataPlane) -> bool {
    matches!(data_plane, DataPlane::Ambient(Ambient { proxy: NodeProxy::Envoy, .. }))
}

/// What each variant carries flat out.
pub fn capacities(run: &RunRecord) -> Vec<Capacity> {
    let capacity = |of: &CapacityRecord| Capacity { variant: of.variant.clone(), per_s: of.per_s };
    run.capacities.iter().map(capacity).collect()
}

/// Where the published figures come from.
pub fn published(plan: &Plan) -> Option<Publication> {
    let PlannedReference { source, notes, .. } = plan.reference.as_ref()?;
    Some(Publication { source: source.clone(), notes: notes.clone() })
}

/// Proof of path, per variant that ran.
pub fn proofs(run: &RunRecord) -> Vec<ProofSummary> {
    let ran = run.plan.ready().map(|(name, _)| name);
    ran.map(|name| {
        let arms = run.rounds.iter().flat_map(|round| &round.arms);
        let arms: Vec<&ArmRecord> = arms.filter(|of| of.arm.variant == name).collect();
        let last = last_at_the_largest_size(&run.plan, &arms);
        ProofSummary {
            variant: name.into(),
            arms: arms.len(),
            proven: arms.iter().filter(|of| is_proven(of)).count(),
            claims: last.map_or_else(Vec::new, |proof| proof.claims.clone()),
            spans: spans_of_loads(&run.plan, &arms),
        }
    })
    .collect()
}

fn is_proven(of: &ArmRecord) -> bool {
    of.proof.as_ref().is_some_and(Proof::holds)
}

/// The last proof; of a sweep one of those with the most pods, whose claims cover the most.
fn last_at_the_largest_size<'a>(plan: &Plan, arms: &[&'a ArmRecord]) -> Option<&'a Proof> {
    let proven = arms.iter().filter_map(|of| Some((replicas(plan, of.size), of.proof.as_ref()?)));
    proven.max_by_key(|(pods, _)| *pods).map(|(_, proof)| proof)
}

/// Pods of the service that is swept, when one is.
fn replicas(plan: &Plan, size: usize) -> Option<usize> {
    let sizes = plan.sizes();
    let cell = sizes.get(size)?.first()?.cell.as_ref()?;
    cell.replicas.as_ref().map(|(_, pods)| *pods)
}

/// A proof has the spans of all loads of its arm together.
fn spans_of_loads(plan: &Plan, arms: &[&ArmRecord]) -> Vec<SpansOfLoads> {
    let ran = |load: &&PlannedLoad| {
        arms.iter().flat_map(|of| &of.slices).any(|slice| slice.load == load.name)
    };
    let loads = plan.loads.iter().filter(ran).map(|load| load.name.clone()).collect();
    let spans = spans_of(arms);
    spans.map(|spans| SpansOfLoads { loads, spans }).into_iter().collect()
}

/// Spans of all arms that count and had theirs counted, by service in the order of the proofs.
fn spans_of(arms: &[&ArmRecord]) -> Option<Spans> {
    let valid = arms.iter().filter(|of| of.file.invalid.is_empty());
    valid.filter_map(|of| of.proof.as_ref()?.spans.clone()).reduce(|mut sum, spans| {
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

/// How much was measured.
pub fn extent(run: &RunRecord, counted: &Counted<'_>) -> Extent {
    let lines = round_lines(run, &counted.excused);
    let arms = || run.rounds.iter().flat_map(|round| &round.arms);
    let (count, all) = lines
        .iter()
        .fold((0, 0), |(count, all), line| (count + line.slices.0, all + line.slices.1));
    let stolen = |round: &RoundRecord| stolen(run, round.arms.iter().flat_map(|of| &of.slices));
    let started = run.host.facts.iter().find(|(label, _)| label == "started");
    Extent {
        rounds: run.rounds.len(),
        planned: run.plan.extent.rounds,
        wall_s: run.rounds.iter().map(|round| round.wall_s).sum(),
        slices: (count, all),
        excused: (counted.excused.cycles.len(), counted.excused.all),
        proven: (arms().filter(|of| is_proven(of)).count(), arms().count()),
        steal: run.rounds.iter().map(stolen).fold(0.0, f64::max),
        began: started.map_or_else(String::new, |(_, at)| at.chars().take(TO_MINUTES).collect()),
    }
}

/// Characters of `2026-11-23 14:02`.
const TO_MINUTES: usize = 16;

fn stolen<'a>(run: &RunRecord, slices: impl IntoIterator<Item = &'a SliceRecord>) -> f64 {
    run.host.cores.map_or(0.0, |cores| Disturbance::of(slices).stolen(cores))
}

/// Every arm that was brought up.
pub fn round_lines(run: &RunRecord, excused: &Excused) -> Vec<RoundLine> {
    let line = |round: &RoundRecord, of: &ArmRecord| {
        let key = |cycle| CycleKey { round: round.number, size: of.size, cycle };
        let counts = |slice: &&SliceRecord| {
            let is_excused = excused.cycles.contains(&key(slice.cycle));
            of.file.invalid.is_empty() && slice.invalid.is_empty() && !is_excused
        };
        let reasons = of.file.invalid.iter().chain(of.slices.iter().flat_map(|s| &s.invalid));
        let reasons: BTreeSet<&Invalid> = reasons.collect();
        RoundLine {
            round: round.number,
            arm: of.arm.label(),
            replicas: replicas(&run.plan, of.size),
            slices: (of.slices.iter().filter(counts).count(), of.slices.len()),
            proven: is_proven(of),
            invalid: reasons.into_iter().cloned().collect(),
            steal: stolen(run, &of.slices),
        }
    };
    let of_round =
        |round: &RoundRecord| round.arms.iter().map(|of| line(round, of)).collect::<Vec<_>>();
    run.rounds.iter().flat_map(of_round).collect()
}

/// What each built-in service burns for a request.
fn work(plan: &Plan) -> Option<Fact> {
    let (_, deployment) = plan.ready().next()?;
    let burned = deployment.services.iter().filter_map(|service| match &service.program {
        Program::BuiltIn(of) => Some((service.name.clone(), of.work.as_nanos() as u64)),
        _ => None,
    });
    let burned: Vec<(String, u64)> = burned.collect();
    (!burned.is_empty()).then_some(Fact::Work { services: burned })
}

/// The artifacts; the server of the airline's database under that name.
fn programs(run: &RunRecord) -> Vec<Fact> {
    let server = database(run);
    let is_server = |artifact| server.as_ref().is_some_and(|server| is_database(server, artifact));
    let others = run.host.artifacts.iter().filter(|(artifact, _)| !is_server(*artifact));
    let others = others.map(|(artifact, version)| Fact::Artifact {
        artifact: *artifact,
        version: version.clone(),
    });
    others.chain(server.clone().map(Fact::Database)).collect()
}

/// What the machine and the run were.
pub fn facts(run: &RunRecord) -> Vec<Fact> {
    let plan = &run.plan;
    let host = run.host.facts.iter();
    let mut facts: Vec<Fact> = host
        .map(|(label, value)| Fact::Labelled { label: label.clone(), value: value.clone() })
        .collect();
    facts.extend(programs(run));
    facts.extend(run.host.programs.iter().map(program));
    facts.push(Fact::Profile(plan.profile.clone()));
    facts.extend(plan.runtime.clone().map(Fact::Runtime));
    facts.extend(work(plan));
    facts.extend([
        Fact::Arms { count: plan.arms.len(), side_by_side: plan.side_by_side },
        Fact::Cycles(plan.cycles),
        Fact::GuardS(plan.guard_s),
        Fact::Seed(plan.seed),
    ]);
    facts
}

/// A file of the user's, which may be another in the next run.
fn program((file, hash): (&PathBuf, &String)) -> Fact {
    const DIGITS: usize = 12;
    let label = format!("program {}", file.display());
    Fact::Labelled { label, value: format!("sha256 {hash:.DIGITS$}") }
}
