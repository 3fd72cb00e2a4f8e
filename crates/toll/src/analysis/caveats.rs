//! Finds what weakens a run's findings, to be shown beside the numbers. Words nothing, rounds nothing.

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::{DataPlane, Deployment, PodMetrics, Reading, Sample, ServiceSpans};
use toll_load::Check;

use super::accounts::owned_and_others;
use super::database::database;
use super::effects;
use super::findings::*;
use super::merged::{self, Merged};
use super::tally::Tally;
use super::{Counted, study_loads, summary};
use crate::plan::PlannedLoad;
use crate::store::{ArmRecord, RunRecord, SliceRecord};

/// Requests beyond a percentile below which it is that of a few requests (as for curves of latency).
const ENOUGH_BEYOND: f64 = 10.0;
/// What rounding up every pod adds, as a multiple of what was counted, worth a caveat.
const NOTABLE_ROUNDING: f64 = 1.25;
/// At an equal rate, throughputs that differ by more are not the same load (docs/method.md rule 2).
const SAME_RATE: f64 = 0.02;
/// A percentile of latency that lies so far above that of service time is the generator's, too (docs/method.md rule 9).
const NOTABLE_LAG: f64 = 0.05;
/// A sweep with more cells than this is named as a whole.
const MOST_CELLS: usize = 4;
/// Share of stolen CPU time worth a caveat.
const NOTABLE_STEAL: f64 = 0.02;
/// CPU time that belongs to no component, as a share of what the components used, worth a caveat.
const NOTABLE_OTHERS: f64 = 0.15;

/// What was found so far.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub counted: &'a Counted<'a>,
    pub loads: &'a [LoadFindings],
    pub heap_trends: &'a [HeapTrend],
    pub span_costs: &'a [SpanCosts],
    pub proofs: &'a [ProofSummary],
}

/// Whatever weakens the result, kind by kind.
pub fn caveats(run: &RunRecord, seen: &Seen<'_>) -> Vec<Caveat> {
    let Seen { counted, loads, heap_trends, span_costs, proofs } = *seen;
    let grown = heap_trends.iter().filter(|trend| trend.grows);
    let variants = run.plan.ready().map(|(name, _)| name);
    let parts = [
        found([missing_rounds(run), stand_in(run), invalid_arms(run), invalid_slices(run)]),
        texts(CaveatKind::Comparison, &run.plan.warnings),
        found([unequal_rates(loads), not_carried(run, counted)]),
        found([other_calls(run)]),
        near_limit(loads, &run.plan.baseline),
        span_costs.iter().filter_map(uneven_rates).collect(),
        texts(CaveatKind::Machine, &run.host.changes),
        found([excused(seen), stolen(run, counted), other_work(run)]),
        found([few_rounds(run, loads), few_requests(run, counted)]),
        found([few_cycles_decide(loads), send_lag(run, counted)]),
        found([generator(run), never_settled(run)]),
        grown.map(|trend| leak(trend, run, seen)).collect(),
        left_out(run),
        proofs.iter().filter_map(dropped).collect(),
        variants.filter_map(|name| uncounted(run, name)).collect(),
        found([
            missing_readings(run),
            missing_metrics(run),
            unknown_heaps(loads),
            rounded_up(loads),
        ]),
        found([cut_logs(run)]),
        texts(CaveatKind::Lab, &run.host.lacks),
    ];
    parts.concat()
}

fn found<const N: usize>(of: [Option<Caveat>; N]) -> Vec<Caveat> {
    of.into_iter().flatten().collect()
}

fn texts(kind: CaveatKind, texts: &[String]) -> Vec<Caveat> {
    texts.iter().map(|text| Caveat::Text { kind, text: text.clone() }).collect()
}

fn arms(run: &RunRecord) -> impl Iterator<Item = (usize, &ArmRecord)> {
    run.rounds.iter().flat_map(|round| round.arms.iter().map(|of| (round.number, of)))
}

fn slices(run: &RunRecord) -> impl Iterator<Item = &SliceRecord> {
    arms(run).flat_map(|(_, of)| &of.slices)
}

/// How often each comes, each once.
fn counts<T: Ord>(all: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts.into_iter().collect()
}

fn missing_rounds(run: &RunRecord) -> Option<Caveat> {
    let (ran, planned) = (run.rounds.len(), run.plan.extent.rounds?);
    (ran < planned).then_some(Caveat::MissingRounds { ran, planned })
}

fn stand_in(run: &RunRecord) -> Option<Caveat> {
    let is_one = |server: &DatabaseServer| matches!(server, DatabaseServer::StandIn { .. });
    let server = database(run).filter(is_one)?;
    Some(Caveat::StandIn { server })
}

fn cut_logs(run: &RunRecord) -> Option<Caveat> {
    let mut most: BTreeMap<String, u64> = BTreeMap::new();
    for log in arms(run).flat_map(|(_, of)| &of.file.cut_logs) {
        let known = most.entry(log.component.clone()).or_default();
        *known = log.written_bytes.max(*known);
    }
    (!most.is_empty()).then(|| Caveat::CutLogs { logs: most.into_iter().collect() })
}

fn invalid_arms(run: &RunRecord) -> Option<Caveat> {
    let invalid = arms(run).filter(|(_, of)| !of.file.invalid.is_empty());
    let of = |(round, of): (usize, &ArmRecord)| InvalidArm {
        arm: of.arm.label(),
        round,
        reasons: of.file.invalid.clone(),
    };
    let arms_of: Vec<InvalidArm> = invalid.map(of).collect();
    let all = arms(run).count();
    (!arms_of.is_empty()).then_some(Caveat::InvalidArms { arms: arms_of, all })
}

fn invalid_slices(run: &RunRecord) -> Option<Caveat> {
    let of_sound_arms = arms(run).filter(|(_, of)| of.file.invalid.is_empty());
    let slices: Vec<&SliceRecord> = of_sound_arms.flat_map(|(_, of)| &of.slices).collect();
    let reasons = counts(slices.iter().flat_map(|slice| slice.invalid.iter().cloned()));
    let invalid = slices.iter().filter(|slice| !slice.invalid.is_empty()).count();
    (invalid > 0).then_some(Caveat::InvalidSlices { slices: invalid, all: slices.len(), reasons })
}

/// Cycles that do not count since the machine did something else, and what they would change.
fn excused(seen: &Seen<'_>) -> Option<Caveat> {
    let excused = &seen.counted.excused;
    if excused.throughout {
        return Some(Caveat::DisturbedThroughout);
    }
    let moved = two_figures(seen.loads, |effect| {
        effect.verdict?;
        effect.unexcused_ratio.map(|with| with.value)
    });
    let (cycles, all) = (excused.cycles.len(), excused.all);
    (cycles > 0).then_some(Caveat::Excused { cycles, all, moved })
}

/// Figures of which a few cycles decide.
fn few_cycles_decide(loads: &[LoadFindings]) -> Option<Caveat> {
    let figures = two_figures(loads, |effect| effect.trimmed_ratio);
    (!figures.is_empty()).then_some(Caveat::FewCyclesDecide { figures })
}

/// Effects from which the ratio that `other` gives is apart.
fn two_figures(loads: &[LoadFindings], other: impl Fn(&Effect) -> Option<f64>) -> Vec<TwoFigures> {
    let effects = loads.iter().flat_map(|load| load.effects.iter().map(move |e| (load, e)));
    let apart = |(load, effect): (&LoadFindings, &Effect)| {
        let other_ratio = other(effect).filter(|other| is_apart(effect.ratio, *other))?;
        Some(TwoFigures {
            load: load.name.clone(),
            variant: effect.variant.clone(),
            metric: effect.metric,
            ratio: effect.ratio.value,
            other_ratio,
        })
    };
    effects.filter_map(apart).collect()
}

/// Whether a ratio lies further from an estimate than its half-width, and than numbers are exact.
fn is_apart(estimate: Estimate, ratio: f64) -> bool {
    let Estimate { value, low, high, rounds, .. } = estimate;
    rounds > 1 && (ratio / value).ln().abs() > (high / low).ln() / 2.0 + 1e-9
}

/// Percentiles of an open loop in which the generator's own lateness shows.
fn send_lag(run: &RunRecord, counted: &Counted<'_>) -> Option<Caveat> {
    let variants: Vec<&str> = run.plan.ready().map(|(name, _)| name).collect();
    let of_load = |load: &PlannedLoad| {
        let under = counted.tallies.iter().filter(|tally| tally.load == load.name);
        let under: Vec<&Tally<'_>> = under.collect();
        let late = variants.iter().flat_map(|variant| {
            let tallies: Vec<&Tally<'_>> = effects::of_variant(&under, variant).collect();
            late(variant, &load.name, &tallies)
        });
        late.collect::<Vec<_>>()
    };
    let open = study_loads(&run.plan).filter(|load| summary::view(load) == View::EqualRate);
    let percentiles: Vec<LatePercentile> = open.flat_map(of_load).collect();
    (!percentiles.is_empty()).then_some(Caveat::SendLag { percentiles })
}

/// Checks of the load generator that did not hold, but for those that make a slice invalid and for its lateness, of which
/// each percentile tells.
fn generator(run: &RunRecord) -> Option<Caveat> {
    let told_elsewhere = [Check::ERRORS, Check::SCHEDULE, Check::SEND_LAG];
    let failed = slices(run).flat_map(|slice| slice.report.checks.iter().filter(|c| !c.holds));
    let failed = failed.map(|check| check.name.as_str());
    let checks = counts(failed.filter(|name| !told_elsewhere.contains(name)));
    let checks: Vec<_> =
        checks.into_iter().map(|(name, slices)| (name.to_owned(), slices)).collect();
    (!checks.is_empty()).then_some(Caveat::Generator { checks })
}

fn late(variant: &str, load: &str, tallies: &[&Tally<'_>]) -> Vec<LatePercentile> {
    let merged = [merged::latency, merged::service_time]
        .map(|histogram: merged::Pick| Merged::of_tallies(tallies, histogram));
    let [Some(latency), Some(service_time)] = merged else { return vec![] };
    let metrics = [Metric::LatencyP50, Metric::LatencyP90, Metric::LatencyP95, Metric::LatencyP99];
    let late = metrics.into_iter().filter_map(|metric| {
        let quantile = metric.quantile()?;
        let share = latency.quantile(quantile).all / service_time.quantile(quantile).all - 1.0;
        let (load, variant) = (load.into(), variant.into());
        (share > NOTABLE_LAG).then_some(LatePercentile { load, variant, metric, share })
    });
    late.collect()
}

/// Loads of which variants have few rounds: how many at the fewest and at the most.
fn few_rounds(run: &RunRecord, loads: &[LoadFindings]) -> Option<Caveat> {
    if run.rounds.len() == 1 {
        return Some(Caveat::OneRound);
    }
    // docs/method.md rule 3.
    let enough = run.plan.extent.least_rounds;
    let is_few = |variant: &&VariantLoad| variant.rounds < enough;
    let mut names: Vec<&str> = Vec::new();
    let mut few: Vec<VariantRounds> = Vec::new();
    for load in loads.iter().filter(|load| load.variants.iter().any(|v| is_few(&v))) {
        names.push(&load.name);
        for VariantLoad { variant, rounds, .. } in load.variants.iter().filter(is_few) {
            match few.iter_mut().find(|known| known.variant == *variant) {
                Some(known) => {
                    known.fewest = known.fewest.min(*rounds);
                    known.most = known.most.max(*rounds);
                }
                None => few.push(VariantRounds {
                    variant: variant.clone(),
                    fewest: *rounds,
                    most: *rounds,
                }),
            }
        }
    }
    let loads = load_names(run, &names);
    (!few.is_empty()).then_some(Caveat::FewRounds { loads, variants: few, enough })
}

/// The loads' names; where all cells of a larger sweep are among them, its name instead of theirs.
fn load_names(run: &RunRecord, names: &[&str]) -> Vec<LoadNames> {
    let sweep_of = |name: &str| Some(run.plan.load(name)?.cell.as_ref()?.load.as_str());
    let whole = |sweep: &str| {
        let of_sweep = run.plan.loads.iter().map(|load| load.name.as_str());
        let cells: Vec<&str> = of_sweep.filter(|name| sweep_of(name) == Some(sweep)).collect();
        let are_all = cells.iter().all(|cell| names.contains(cell));
        let load = sweep.to_owned();
        let cells = cells.len();
        (are_all && cells > MOST_CELLS).then_some(LoadNames::Sweep { load, cells })
    };
    let named = |name: &&str| {
        sweep_of(name).and_then(whole).unwrap_or_else(|| LoadNames::Load((*name).to_owned()))
    };
    let mut named: Vec<LoadNames> = names.iter().map(named).collect();
    named.dedup();
    named
}

/// Loads of so few requests that their 99th percentile is about the slowest of them.
fn few_requests(run: &RunRecord, counted: &Counted<'_>) -> Option<Caveat> {
    let beyond = |name: &str| {
        let mut answered: BTreeMap<&str, u64> = BTreeMap::new();
        for tally in counted.tallies.iter().filter(|tally| tally.load == name) {
            *answered.entry(&tally.arm.variant).or_default() += tally.latency().count();
        }
        answered.into_values().min().map(|fewest| fewest as f64 * 0.01)
    };
    let few =
        study_loads(&run.plan).filter_map(|load| Some((load.name.as_str(), beyond(&load.name)?)));
    let (names, beyond): (Vec<&str>, Vec<f64>) =
        few.filter(|(_, beyond)| *beyond < ENOUGH_BEYOND).unzip();
    let fewest = beyond.into_iter().reduce(f64::min)?;
    let loads = load_names(run, &names);
    Some(Caveat::FewRequests { loads, fewest, enough: ENOUGH_BEYOND })
}

/// What `kubectl top pods` would show where rounding every pod up makes the most of little.
fn rounded_up(loads: &[LoadFindings]) -> Option<Caveat> {
    let totals = loads.iter().flat_map(|load| load.top_totals.iter().map(move |top| (load, top)));
    let ratio = |top: &TopTotal| top.shown_millicores.value / top.counted_millicores.value;
    let notable = totals.filter(|(_, top)| ratio(top) > NOTABLE_ROUNDING);
    let (load, top) = notable.max_by(|(_, one), (_, other)| ratio(one).total_cmp(&ratio(other)))?;
    Some(Caveat::RoundedUp {
        load: load.name.clone(),
        variant: top.variant.clone(),
        pods: top.pods,
        counted_millicores: top.counted_millicores.value,
        shown_millicores: top.shown_millicores.value,
    })
}

/// Calls that a variant does not make as often as the baseline: then more differs than the data plane.
fn other_calls(run: &RunRecord) -> Option<Caveat> {
    let calls: Vec<CallRate> =
        super::calls::calls(run).into_iter().filter(CallRate::differs).collect();
    (!calls.is_empty()).then_some(Caveat::OtherCalls { calls })
}

/// Loads at an equal rate that was not equal.
fn unequal_rates(loads: &[LoadFindings]) -> Option<Caveat> {
    let rates = |load: &LoadFindings| {
        let throughput = |v: &VariantLoad| {
            v.metrics.iter().find(|(m, _)| *m == Metric::Throughput).map(|(_, e)| e.value)
        };
        let (low_per_s, high_per_s) = range(load.variants.iter().filter_map(throughput))?;
        Some(LoadRates { load: load.name.clone(), low_per_s, high_per_s })
    };
    let at_equal_rate = loads.iter().filter(|load| load.view == View::EqualRate);
    let loads: Vec<LoadRates> = at_equal_rate.filter_map(rates).collect();
    (!loads.is_empty()).then_some(Caveat::UnequalRates { loads })
}

/// The lowest and the highest of rates that are apart.
fn range(rates: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let ends = rates.fold((f64::INFINITY, 0.0_f64), |(l, h), rate| (l.min(rate), h.max(rate)));
    (ends.1 > ends.0 * (1.0 + SAME_RATE)).then_some(ends)
}

/// Arms whose answers did not keep up with arrivals.
fn not_carried(run: &RunRecord, counted: &Counted<'_>) -> Option<Caveat> {
    let is_point = |name: &str| run.plan.load(name).is_some_and(PlannedLoad::is_of_curve);
    let lags = |tally: &&Tally<'_>| {
        let planned = tally.slices.iter().find_map(|slice| slice.record.rate_per_s);
        let seen = effects::throughput(tally);
        planned.zip(seen).is_some_and(|(planned, seen)| seen < planned * (1.0 - SAME_RATE))
    };
    let lagging = counted.tallies.iter().filter(|tally| !is_point(tally.load)).filter(lags);
    let arms = counts(lagging.map(|tally| (tally.arm.label(), tally.load)));
    let arms =
        arms.into_iter().map(|((arm, load), rounds)| LaggingArm { arm, load: load.into(), rounds });
    let arms: Vec<LaggingArm> = arms.collect();
    (!arms.is_empty()).then_some(Caveat::NotCarried { arms })
}

/// Comparisons of latencies of which one at least is that of a queue. Flat out both are meant to be.
fn near_limit(loads: &[LoadFindings], baseline: &str) -> Vec<Caveat> {
    let mut pairs: [Vec<RegimePair>; 2] = [vec![], vec![]];
    for load in loads.iter().filter(|load| load.view != View::FlatOut) {
        let of = |variant: &str| load.regimes.iter().find(|regime| regime.variant == variant);
        let Some(base) = of(baseline) else { continue };
        for other in load.regimes.iter().filter(|regime| regime.variant != baseline) {
            if base.near_limit || other.near_limit {
                let is_one = usize::from(base.near_limit != other.near_limit);
                let (baseline, variant) = (base.clone(), other.clone());
                pairs[is_one].push(RegimePair { load: load.name.clone(), baseline, variant });
            }
        }
    }
    let caveats = [true, false].into_iter().zip(pairs);
    let caveats = caveats.filter(|(_, comparisons)| !comparisons.is_empty());
    caveats.map(|(both, comparisons)| Caveat::NearLimit { both, comparisons }).collect()
}

/// A line through loads that did not run at the same rate.
fn uneven_rates(costs: &SpanCosts) -> Option<Caveat> {
    let (low_per_s, high_per_s) = range(costs.points.iter().filter_map(|point| point.rate_per_s))?;
    let variant = costs.variant.clone();
    costs.service.is_none().then_some(Caveat::UnevenSpanRates { variant, low_per_s, high_per_s })
}

/// A heap that grew; the baseline says whether the variant has something to do with it.
fn leak(trend: &HeapTrend, run: &RunRecord, seen: &Seen<'_>) -> Caveat {
    let HeapTrend { variant, pod, mib_per_minute, p_value, .. } = trend;
    let baseline = &run.plan.baseline;
    let other = seen.heap_trends.iter().find(|t| t.variant == *baseline && t.pod == *pod);
    let growth = match other {
        Some(other) if other.grows => Growth::Grows,
        Some(other) if other.p_value.is_some() => Growth::DoesNot,
        _ => Growth::Unknown,
    };
    Caveat::Leak {
        variant: variant.clone(),
        pod: pod.clone(),
        mib_per_minute: mib_per_minute.unwrap_or_default(),
        p_value: p_value.unwrap_or_default(),
        baseline: (variant != baseline).then_some(growth),
    }
}

/// Spans that never came to the collector.
fn dropped(proof: &ProofSummary) -> Option<Caveat> {
    let mut services: Vec<ServiceSpans> = Vec::new();
    for of in proof.spans.iter().flat_map(|of_loads| &of_loads.spans.services) {
        match services.iter_mut().find(|known| known.service == of.service) {
            Some(sum) => {
                sum.expected += of.expected;
                sum.arrived += of.arrived;
            }
            None => services.push(of.clone()),
        }
    }
    services.retain(|of| of.arrived < of.expected);
    let variant = proof.variant.clone();
    (!services.is_empty()).then_some(Caveat::DroppedSpans { variant, services })
}

/// Loads under which an agent's spans were not counted, since nobody said how many there should be.
fn uncounted(run: &RunRecord, variant: &str) -> Option<Caveat> {
    let is_agent = |deployment: &Deployment| matches!(deployment.data_plane, DataPlane::Agent(_));
    run.plan.deployment(variant).filter(|deployment| is_agent(deployment))?;
    let silent = run.plan.loads.iter().filter(|load| load.spans.is_empty());
    let silent: Vec<&str> = silent.map(|load| load.name.as_str()).collect();
    let (variant, loads) = (variant.into(), load_names(run, &silent));
    (!silent.is_empty()).then_some(Caveat::UncountedSpans { variant, loads })
}

/// The hypervisor's share of the round that it took most of.
fn stolen(run: &RunRecord, counted: &Counted<'_>) -> Option<Caveat> {
    let share = summary::extent(run, counted).steal;
    (share > NOTABLE_STEAL).then_some(Caveat::Stolen { share })
}

/// Slices during which the machine worked for others, too.
fn other_work(run: &RunRecord) -> Option<Caveat> {
    let disturbed = |slice: &&SliceRecord| {
        let [first, .., last] = slice.samples.as_slice() else { return false };
        let used = owned_and_others(first, last);
        used.is_some_and(|[owned, others]| others > owned * NOTABLE_OTHERS)
    };
    let (count, all) = (slices(run).filter(disturbed).count(), slices(run).count());
    let share = NOTABLE_OTHERS / (1.0 + NOTABLE_OTHERS);
    (count > 0).then_some(Caveat::OtherWork { slices: count, all, share })
}

/// Counters that could not be read at the end of slices.
fn missing_readings(run: &RunRecord) -> Option<Caveat> {
    let of_slice = |slice: &SliceRecord| slice.samples.last().map(unread).unwrap_or_default();
    let reasons = counts(slices(run).flat_map(of_slice));
    let reasons = reasons.into_iter().map(|((owner, why), slices)| (owner, why, slices));
    let reasons: Vec<_> = reasons.collect();
    (!reasons.is_empty()).then_some(Caveat::MissingReadings { reasons })
}

fn unread(sample: &Sample) -> BTreeSet<(Owner, String)> {
    let mut reasons = BTreeSet::new();
    for of in &sample.components {
        for reading in [&of.cpu_ns, &of.memory.anonymous] {
            if let Reading::Missing(why) = reading {
                reasons.insert((Owner::of(&of.component), why.clone()));
            }
        }
    }
    reasons
}

/// What pods did not tell of themselves.
fn missing_metrics(run: &RunRecord) -> Option<Caveat> {
    let reasons = counts(slices(run).flat_map(|slice| {
        let metrics = slice.samples.iter().flat_map(|sample| &sample.metrics);
        metrics.filter_map(why_missing).collect::<BTreeSet<_>>()
    }));
    let reasons =
        reasons.into_iter().map(|((pod, why), slices)| (pod.clone(), why.clone(), slices));
    let reasons: Vec<_> = reasons.collect();
    (!reasons.is_empty()).then_some(Caveat::MissingMetrics { reasons })
}

fn why_missing(metrics: &PodMetrics) -> Option<(&String, &String)> {
    match &metrics.series {
        Reading::Missing(why) => Some((&metrics.pod, why)),
        Reading::Value(_) => None,
    }
}

/// JVMs of which no round tells what is alive in their heaps.
fn unknown_heaps(loads: &[LoadFindings]) -> Option<Caveat> {
    let jvms = || loads.iter().flat_map(|load| &load.jvms);
    let known = jvms().filter(|row| row.uses.iter().any(|of| of.heap_live_mib.is_some()));
    let known: BTreeSet<&String> = known.map(|row| &row.pod).collect();
    let unknown: BTreeSet<&String> =
        jvms().map(|row| &row.pod).filter(|pod| !known.contains(pod)).collect();
    let pods: Vec<String> = unknown.into_iter().cloned().collect();
    (!pods.is_empty()).then_some(Caveat::UnknownHeaps { pods })
}

/// What the proofs could not claim, once for all variants of which it is so.
fn left_out(run: &RunRecord) -> Vec<Caveat> {
    let mut variants_of: BTreeMap<&LeftOut, BTreeSet<&str>> = BTreeMap::new();
    for (_, of) in arms(run) {
        let left_out = of.proof.iter().flat_map(|proof| &proof.left_out);
        for what in left_out {
            if is_news(run, what) {
                variants_of.entry(what).or_default().insert(&of.arm.variant);
            }
        }
    }
    let caveat = |(what, variants): (&LeftOut, BTreeSet<&str>)| {
        let names = run.plan.variants.iter().map(|variant| &variant.name);
        let variants = names.filter(|name| variants.contains(name.as_str())).cloned().collect();
        Caveat::LeftOut { variants, what: what.clone() }
    };
    variants_of.into_iter().map(caveat).collect()
}

/// Spans that are missing have a caveat of their own, and where nothing runs a sidecar none can be crossed.
fn is_news(run: &RunRecord, what: &LeftOut) -> bool {
    let has_sidecar = |(_, deployment): (&str, &Deployment)| deployment.data_plane.has_sidecars();
    match what {
        LeftOut::MissingSpans { .. } => false,
        LeftOut::NoCrossing => run.plan.ready().any(has_sidecar),
        _ => true,
    }
}

/// Arms at whose first slice the services were still changing.
fn never_settled(run: &RunRecord) -> Option<Caveat> {
    let settled = || arms(run).filter_map(|(_, of)| of.file.settled.as_ref());
    let (count, all) = (settled().filter(|record| !record.stable).count(), settled().count());
    (count > 0).then_some(Caveat::Unsettled { arms: count, all })
}
