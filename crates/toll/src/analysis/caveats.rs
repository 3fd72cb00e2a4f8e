//! What weakens a run's findings, to be shown beside the numbers: what is alike is one sentence, with a count and a few
//! examples.

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::{DataPlane, Deployment, PodMetrics, Reading, Sample, ServiceSpans};
use toll_load::Check;

use super::accounts::{CpuAccount, Owner};
use super::effects;
use super::findings::{
    Caveat, CaveatKind, Effect, Estimate, HeapTrend, LoadFindings, Metric, ProofSummary, Regime,
    SpanCosts, TopTotal, VariantLoad, View,
};
use super::merged::{self, Merged};
use super::summary::{self, STAND_IN};
use super::tally::Tally;
use super::{Counted, study_loads};
use crate::plan::PlannedLoad;
use crate::store::{ArmRecord, RunRecord, SliceRecord};

/// Requests beyond a percentile below which it is that of a few requests (as for curves of latency).
const ENOUGH_BEYOND: f64 = 10.0;
/// What rounding up every pod adds, as a multiple of what was counted, worth a caveat.
const NOTABLE_ROUNDING: f64 = 1.25;
/// At an equal rate, throughputs that differ by more are not the same load (METHOD.md rule 2).
const SAME_RATE: f64 = 0.02;
/// A percentile of latency that lies so far above that of service time is the generator's, too (METHOD.md rule 9).
const NOTABLE_LAG: f64 = 0.05;
/// A sweep with more cells than this is named as a whole.
const MOST_CELLS: usize = 4;
/// Examples that a sentence gives.
const MOST_EXAMPLES: usize = 3;
/// Share of stolen CPU time worth a caveat.
const NOTABLE_STEAL: f64 = 0.02;
/// CPU time that belongs to no component, as a share of what the components used, worth a caveat.
const NOTABLE_OTHERS: f64 = 0.15;

/// What was found so far.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// What counts.
    pub counted: &'a Counted<'a>,
    /// Load by load.
    pub loads: &'a [LoadFindings],
    /// Of every JVM.
    pub heap_trends: &'a [HeapTrend],
    /// Of every variant with an agent.
    pub span_costs: &'a [SpanCosts],
    /// Variant by variant.
    pub proofs: &'a [ProofSummary],
}

/// Whatever weakens the result, kind by kind.
pub fn caveats(run: &RunRecord, seen: &Seen<'_>) -> Vec<Caveat> {
    let loads = seen.loads;
    let grown = seen.heap_trends.iter().filter(|trend| trend.grows);
    let mut caveats = Vec::new();
    let mut add = |kind, texts: Vec<String>| {
        caveats.extend(texts.into_iter().map(|text| Caveat { kind, text }));
    };
    add(CaveatKind::Missing, missing_rounds(run).into_iter().collect());
    add(CaveatKind::StandIn, stand_in(run).into_iter().collect());
    add(
        CaveatKind::Invalid,
        [invalid_arms(run), invalid_slices(run)].into_iter().flatten().collect(),
    );
    add(CaveatKind::Comparison, run.plan.warnings.clone());
    add(CaveatKind::Comparison, unequal_rates(loads).into_iter().collect());
    add(CaveatKind::Comparison, not_carried(run, seen.counted).into_iter().collect());
    add(CaveatKind::Comparison, regimes(loads, &run.plan.baseline));
    add(CaveatKind::Comparison, seen.span_costs.iter().filter_map(uneven_rates).collect());
    add(CaveatKind::Machine, run.host.changes.clone());
    add(CaveatKind::Machine, excused(seen).into_iter().collect());
    add(CaveatKind::Machine, stolen(run, seen.counted).into_iter().collect());
    add(CaveatKind::Machine, other_work(run).into_iter().collect());
    add(CaveatKind::Precision, few_rounds(run, loads).into_iter().collect());
    add(CaveatKind::Precision, few_requests(run, seen.counted).into_iter().collect());
    add(CaveatKind::Precision, few_cycles_decide(loads).into_iter().collect());
    add(CaveatKind::Precision, send_lag(run, seen.counted).into_iter().collect());
    add(CaveatKind::Precision, generator(run).into_iter().collect());
    add(CaveatKind::Settling, never_settled(run).into_iter().collect());
    add(CaveatKind::Settling, grown.map(|trend| leak(trend, run, seen)).collect());
    add(CaveatKind::Proof, left_out(run));
    add(CaveatKind::Proof, seen.proofs.iter().filter_map(dropped).collect());
    add(CaveatKind::Proof, run.plan.ready().filter_map(|(name, _)| uncounted(run, name)).collect());
    add(CaveatKind::Readings, missing_readings(run).into_iter().collect());
    add(CaveatKind::Readings, missing_metrics(run).into_iter().collect());
    add(CaveatKind::Readings, unknown_heaps(loads).into_iter().collect());
    add(CaveatKind::Readings, rounded_up(loads).into_iter().collect());
    add(CaveatKind::Lab, run.host.lacks.clone());
    caveats.sort_by_key(|caveat| caveat.kind);
    caveats
}

/// The first few, and how many more there are; `None` without any.
fn examples(told: &[String]) -> Option<String> {
    let first = told.iter().take(MOST_EXAMPLES).cloned().collect::<Vec<_>>().join("; ");
    match told.len().saturating_sub(MOST_EXAMPLES) {
        _ if told.is_empty() => None,
        0 => Some(first),
        more => Some(format!("{first}; and {more} more")),
    }
}

/// The most frequent reasons with their counts.
fn reasons(of: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    of.for_each(|reason| *counts.entry(reason).or_default() += 1);
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    examples(
        &counts.iter().map(|(reason, count)| format!("{reason} ({count})")).collect::<Vec<_>>(),
    )
}

fn arms(run: &RunRecord) -> impl Iterator<Item = (usize, &ArmRecord)> {
    run.rounds.iter().flat_map(|round| round.arms.iter().map(|of| (round.number, of)))
}

fn slices(run: &RunRecord) -> impl Iterator<Item = &SliceRecord> {
    arms(run).flat_map(|(_, of)| &of.slices)
}

fn missing_rounds(run: &RunRecord) -> Option<String> {
    let (ran, planned) = (run.rounds.len(), run.plan.extent.rounds?);
    (ran < planned).then(|| {
        format!("only {ran} of {planned} rounds ran: go on with `toll run --resume {}`", run.name)
    })
}

fn invalid_arms(run: &RunRecord) -> Option<String> {
    let invalid = arms(run).filter(|(_, of)| !of.file.invalid.is_empty());
    let told: Vec<String> = invalid
        .map(|(round, of)| {
            format!("{} in round {round} ({})", of.arm.label(), of.file.invalid.join(", "))
        })
        .collect();
    let (count, all) = (told.len(), arms(run).count());
    Some(format!("{count} of {all} arms do not count: {}", examples(&told)?))
}

fn invalid_slices(run: &RunRecord) -> Option<String> {
    let of_sound_arms = arms(run).filter(|(_, of)| of.file.invalid.is_empty());
    let slices: Vec<&SliceRecord> = of_sound_arms.flat_map(|(_, of)| &of.slices).collect();
    let invalid = || slices.iter().filter(|slice| !slice.invalid.is_empty());
    let why = reasons(invalid().flat_map(|slice| slice.invalid.iter().cloned()))?;
    Some(format!("{} of {} slices do not count: {why}", invalid().count(), slices.len()))
}

/// A server that stands in for the one that was asked for costs what it costs.
fn stand_in(run: &RunRecord) -> Option<String> {
    let server = summary::database(run).filter(|server| server.contains(STAND_IN))?;
    Some(format!(
        "the database is {server}: a request costs in it what it would not cost in MongoDB, so the share of the throughput that a variant takes would be another; CPU per request of services and proxies is their own"
    ))
}

/// Cycles that do not count since the machine did something else, and what they would change.
fn excused(seen: &Seen<'_>) -> Option<String> {
    let excused = &seen.counted.excused;
    if excused.throughout {
        return Some("the machine was disturbed throughout: more than a third of all cycles stand out by stolen time or other work, so that none is excused".into());
    }
    let (count, all) = (excused.cycles.len(), excused.all);
    let headline =
        || seen.loads.iter().flat_map(|load| &load.effects).filter(|e| e.verdict.is_some());
    let moved = |effect: &Effect| {
        let with = effect.unexcused_ratio?;
        let told = || format!("{} ({} with them)", figure(effect), change(with.value));
        is_apart(effect.ratio, with.value).then(told)
    };
    let moved: Vec<String> = headline().filter_map(moved).collect();
    let effect = match examples(&moved) {
        None => "with them no headline figure would differ by more than its half-width".into(),
        Some(moved) => format!("with them headline figures would differ: {moved}"),
    };
    (count > 0).then(|| {
        format!("{count} of {all} cycles are excused for stolen time or other work on the machine; {effect}")
    })
}

/// Whether a ratio lies further from an estimate than its half-width, and than numbers are exact.
fn is_apart(estimate: Estimate, ratio: f64) -> bool {
    let Estimate { value, low, high, rounds, .. } = estimate;
    rounds > 1 && (ratio / value).ln().abs() > (high / low).ln() / 2.0 + 1e-9
}

/// `CPU per request of sidecar +62.0 %`.
fn figure(effect: &Effect) -> String {
    format!("{} of {} {}", effect.metric.name(), effect.variant, change(effect.ratio.value))
}

fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

/// Figures of which a few cycles decide: the mean and the trimmed mean disagree.
fn few_cycles_decide(loads: &[LoadFindings]) -> Option<String> {
    let effects = loads.iter().flat_map(|load| load.effects.iter().map(move |e| (load, e)));
    let stray = |(load, effect): (&LoadFindings, &Effect)| {
        let trimmed = effect.trimmed_ratio.filter(|trimmed| is_apart(effect.ratio, *trimmed))?;
        Some(format!("{} under {} ({} trimmed)", figure(effect), load.name, change(trimmed)))
    };
    let told: Vec<String> = effects.filter_map(stray).collect();
    let count = told.len();
    Some(format!(
        "a few cycles decide {count} figures, whose trimmed mean lies further than a half-width away: {}",
        examples(&told)?
    ))
}

/// Percentiles of an open loop in which the generator's own lateness shows.
fn send_lag(run: &RunRecord, counted: &Counted<'_>) -> Option<String> {
    let valid: Vec<&Tally<'_>> = counted.tallies.iter().collect();
    let variants: Vec<&str> = run.plan.ready().map(|(name, _)| name).collect();
    let of_load = |load: &PlannedLoad| {
        let under = valid.iter().copied().filter(|tally| tally.load == load.name);
        let under: Vec<&Tally<'_>> = under.collect();
        let told = variants.iter().filter_map(|variant| {
            let tallies: Vec<&Tally<'_>> = effects::of_variant(&under, variant).collect();
            late(variant, &load.name, &tallies)
        });
        told.flatten().collect::<Vec<_>>()
    };
    let open = study_loads(&run.plan).filter(|load| summary::view(load) == View::EqualRate);
    let told: Vec<String> = open.flat_map(of_load).collect();
    let count = told.len();
    Some(format!(
        "requests were sent late enough to show in {count} percentiles, which are above what the services did: {}",
        examples(&told)?
    ))
}

/// Checks of the load generator that did not hold, but for those that make a slice invalid and for its lateness, of which
/// each percentile tells.
fn generator(run: &RunRecord) -> Option<String> {
    let told_elsewhere = [Check::ERRORS, Check::SCHEDULE, Check::SEND_LAG];
    let failed = |slice: &SliceRecord| {
        let checks = slice.report.checks.clone().into_iter().filter(|check| !check.holds);
        checks.map(|check| check.name).filter(|name| !told_elsewhere.contains(&name.as_str()))
    };
    let why = reasons(slices(run).flat_map(failed))?;
    Some(format!(
        "checks of the load generator did not hold, so that it may have been the limit (slices): {why}"
    ))
}

fn late(variant: &str, load: &str, tallies: &[&Tally<'_>]) -> Option<Vec<String>> {
    let latency = Merged::of_tallies(tallies, merged::latency)?;
    let service_time = Merged::of_tallies(tallies, merged::service_time)?;
    let metrics = [Metric::LatencyP50, Metric::LatencyP90, Metric::LatencyP95, Metric::LatencyP99];
    let told = metrics.into_iter().filter_map(|metric| {
        let quantile = metric.quantile()?;
        let [latency, service] = [&latency, &service_time].map(|m| m.quantile(quantile).all);
        let more = latency / service - 1.0;
        (more > NOTABLE_LAG).then(|| {
            format!("{} of {variant} under {load} by {:.0} %", metric.name(), more * 100.0)
        })
    });
    Some(told.collect())
}

/// Loads of which variants have few rounds, in one sentence: how many at the fewest and at the most.
fn few_rounds(run: &RunRecord, loads: &[LoadFindings]) -> Option<String> {
    if run.rounds.len() == 1 {
        return Some("each arm was started once: how one start differs from the next is in no interval, and there is no verdict".into());
    }
    // METHOD.md rule 3.
    let enough = run.plan.extent.least_rounds;
    let is_few = |variant: &&VariantLoad| variant.rounds < enough;
    let mut names: Vec<&str> = Vec::new();
    let mut few: Vec<(&str, usize, usize)> = Vec::new();
    for load in loads.iter().filter(|load| load.variants.iter().any(|v| is_few(&v))) {
        names.push(&load.name);
        for VariantLoad { variant, rounds, .. } in load.variants.iter().filter(is_few) {
            match few.iter_mut().find(|(known, ..)| known == variant) {
                Some((_, low, high)) => (*low, *high) = ((*low).min(*rounds), (*high).max(*rounds)),
                None => few.push((variant, *rounds, *rounds)),
            }
        }
    }
    let range = |(variant, low, high): &(&str, usize, usize)| match low == high {
        true => format!("{variant} {low}"),
        false => format!("{variant} {low} to {high}"),
    };
    let few: Vec<String> = few.iter().map(range).collect();
    (!few.is_empty()).then(|| {
        format!(
            "{}: rounds that count: {}; below {enough} they say little of how one start differs from the next, and intervals are wide",
            listed(run, &names),
            few.join(", ")
        )
    })
}

/// The loads' names; where all cells of a larger sweep are among them, its name instead of theirs.
fn listed(run: &RunRecord, names: &[&str]) -> String {
    let sweep_of = |name: &str| Some(run.plan.load(name)?.cell.as_ref()?.load.as_str());
    let whole = |sweep: &&str| {
        let of_sweep = run.plan.loads.iter().map(|load| load.name.as_str());
        let cells: Vec<&str> = of_sweep.filter(|name| sweep_of(name) == Some(*sweep)).collect();
        let are_all = cells.iter().all(|cell| names.contains(cell));
        (are_all && cells.len() > MOST_CELLS).then_some(cells.len())
    };
    let named = names.iter().map(|name| {
        let sweep = sweep_of(name).and_then(|sweep| Some((sweep, whole(&sweep)?)));
        sweep.map_or_else(|| (*name).to_owned(), |(sweep, cells)| format!("{sweep} (all {cells})"))
    });
    let mut once: Vec<String> = named.collect();
    once.dedup();
    once.join(", ")
}

/// Loads of so few requests that their 99th percentile is about the slowest of them.
fn few_requests(run: &RunRecord, counted: &Counted<'_>) -> Option<String> {
    let beyond = |name: &str| {
        let mut answered: BTreeMap<&str, u64> = BTreeMap::new();
        for tally in counted.tallies.iter().filter(|tally| tally.load == name) {
            *answered.entry(&tally.arm.variant).or_default() += tally.latency().count();
        }
        answered.into_values().min().map(|fewest| fewest as f64 * 0.01)
    };
    let few =
        study_loads(&run.plan).filter_map(|load| Some((load.name.as_str(), beyond(&load.name)?)));
    let few: Vec<(&str, f64)> = few.filter(|(_, beyond)| *beyond < ENOUGH_BEYOND).collect();
    let fewest = few.iter().map(|(_, beyond)| *beyond).reduce(f64::min)?;
    let names: Vec<&str> = few.iter().map(|(name, _)| *name).collect();
    Some(format!(
        "{}: p99 rests on fewer than {ENOUGH_BEYOND:.0} requests beyond it in all rounds of a variant, at the fewest on {}: it is about the slowest request, and its interval is wide; more rounds or cycles help",
        listed(run, &names),
        fewest.ceil()
    ))
}

/// What `kubectl top pods` would show where rounding every pod up makes the most of little.
fn rounded_up(loads: &[LoadFindings]) -> Option<String> {
    let totals = loads.iter().flat_map(|load| load.top_totals.iter().map(move |top| (load, top)));
    let ratio = |top: &TopTotal| top.shown_millicores.value / top.counted_millicores.value;
    let notable = totals.filter(|(_, top)| ratio(top) > NOTABLE_ROUNDING);
    let (load, top) = notable.max_by(|(_, one), (_, other)| ratio(one).total_cmp(&ratio(other)))?;
    Some(format!(
        "{}: `kubectl top pods` would show {:.0}m for the {} pods of {}, by counters it is {:.1}m: every pod that did anything is rounded up to 1m; no figure here comes from that view",
        load.name, top.shown_millicores.value, top.pods, top.variant, top.counted_millicores.value
    ))
}

/// Loads at an equal rate that was not equal.
fn unequal_rates(loads: &[LoadFindings]) -> Option<String> {
    let told = loads.iter().filter(|load| load.view == View::EqualRate).filter_map(|load| {
        let throughput = |v: &VariantLoad| {
            v.metrics.iter().find(|(m, _)| *m == Metric::Throughput).map(|(_, e)| e.value)
        };
        let rates = || load.variants.iter().filter_map(throughput);
        let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
        (high > low * (1.0 + SAME_RATE)).then(|| format!("{} ({low:.0} to {high:.0}/s)", load.name))
    });
    let told: Vec<String> = told.collect();
    Some(format!(
        "the variants did not complete the same rate, so this is not an equal-rate comparison; lower the rate: {}",
        examples(&told)?
    ))
}

/// Arms whose answers did not keep up with arrivals.
fn not_carried(run: &RunRecord, counted: &Counted<'_>) -> Option<String> {
    let is_point = |name: &str| run.plan.load(name).is_some_and(PlannedLoad::is_of_curve);
    let lags = |tally: &&Tally<'_>| {
        let planned = tally.slices.iter().find_map(|slice| slice.record.rate_per_s);
        let seen = effects::throughput(tally);
        planned.zip(seen).is_some_and(|(planned, seen)| seen < planned * (1.0 - SAME_RATE))
    };
    let lagging = counted.tallies.iter().filter(|tally| !is_point(tally.load)).filter(lags);
    let told = reasons(lagging.map(|tally| format!("{} under {}", tally.arm.label(), tally.load)))?;
    Some(format!(
        "answers did not keep up with arrivals, or took longer than the guard: their latency may be that of a growing queue; rounds: {told}"
    ))
}

/// Comparisons of latencies of which one at least is that of a queue. Flat out both are meant to be.
fn regimes(loads: &[LoadFindings], baseline: &str) -> Vec<String> {
    let (mut both, mut one) = (Vec::new(), Vec::new());
    for load in loads.iter().filter(|load| load.view != View::FlatOut) {
        let of = |variant: &str| load.regimes.iter().find(|regime| regime.variant == variant);
        let Some(base) = of(baseline) else { continue };
        for other in load.regimes.iter().filter(|regime| regime.variant != baseline) {
            let told = format!("{}: {}, {}", load.name, at(base), at(other));
            match (base.near_limit, other.near_limit) {
                (false, false) => {}
                (true, true) => both.push(told),
                _ => one.push(told),
            }
        }
    }
    let both = examples(&both).map(|told| {
        format!("both are at or near their limit, so that their latencies are those of queues and throughput is the machine's; CPU per request can still be compared: {told}")
    });
    let one = examples(&one).map(|told| {
        format!("one is at or near its limit and the other is not, so that the ratio of their latencies says little about what a request pays: {told}")
    });
    both.into_iter().chain(one).collect()
}

/// `mesh at 100 of the 105/s that it carries`.
fn at(regime: &Regime) -> String {
    let Regime { variant, throughput_per_s, capacity_per_s, .. } = regime;
    format!("{variant} at {throughput_per_s:.0} of the {capacity_per_s:.0}/s that it carries")
}

/// A line through loads that did not run at the same rate.
fn uneven_rates(costs: &SpanCosts) -> Option<String> {
    let rates = || costs.points.iter().filter_map(|point| point.rate_per_s);
    let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    (costs.of == "all" && high > low * (1.0 + SAME_RATE)).then(|| {
        format!(
            "the cost per span of {} is drawn through loads of {low:.0} to {high:.0} requests/s: work of the agent that does not depend on the rate weighs more on a request at the lower ones",
            costs.variant
        )
    })
}

/// A heap that grew; the baseline says whether the variant has something to do with it.
fn leak(trend: &HeapTrend, run: &RunRecord, seen: &Seen<'_>) -> String {
    let HeapTrend { variant, pod, mib_per_minute, p_value, .. } = trend;
    let baseline = &run.plan.baseline;
    let other = seen.heap_trends.iter().find(|t| t.variant == *baseline && t.pod == *pod);
    let compared = match other {
        _ if variant == baseline => "",
        Some(other) if other.grows => "; the baseline's grows, too",
        Some(other) if other.p_value.is_some() => "; the baseline's does not",
        _ => "; of the baseline's nothing can be told",
    };
    format!(
        "what collections leave in the heap of {pod} ({variant}) grows by {:.1} MiB a minute (p = {:.1e}): a leak, or something that still fills up{compared}",
        mib_per_minute.unwrap_or_default(),
        p_value.unwrap_or_default()
    )
}

/// Spans that never came to the collector: what an agent saves by dropping them is not in its cost.
fn dropped(proof: &ProofSummary) -> Option<String> {
    let mut services: Vec<(&str, [u64; 2])> = Vec::new();
    for ServiceSpans { service, expected, arrived } in
        proof.spans.iter().flat_map(|of_loads| &of_loads.spans.services)
    {
        match services.iter_mut().find(|(known, _)| known == service) {
            Some((_, [all, came])) => (*all, *came) = (*all + expected, *came + arrived),
            None => services.push((service, [*expected, *arrived])),
        }
    }
    let lost: Vec<(&str, [u64; 2])> =
        services.into_iter().filter(|(_, [expected, arrived])| arrived < expected).collect();
    let each = lost.iter().map(|(service, [expected, arrived])| {
        let share = 1.0 - *arrived as f64 / *expected as f64;
        format!("{:.2} % of {expected} from {service}", share * 100.0)
    });
    let each = each.collect::<Vec<_>>().join(", ");
    (!lost.is_empty()).then(|| {
        format!("{}: spans that never came to the collector: {each}; what was not sent costs less than what was", proof.variant)
    })
}

/// Loads under which an agent's spans were not counted, since nobody said how many there should be.
fn uncounted(run: &RunRecord, variant: &str) -> Option<String> {
    let is_agent = |deployment: &Deployment| matches!(deployment.data_plane, DataPlane::Agent(_));
    run.plan.deployment(variant).filter(|deployment| is_agent(deployment))?;
    let silent = run.plan.loads.iter().filter(|load| load.spans.is_empty());
    let silent: Vec<&str> = silent.map(|load| load.name.as_str()).collect();
    (!silent.is_empty()).then(|| {
        format!(
            "{variant}: whether spans were dropped is not known under {}: the load does not say how many a request leaves (`spans:`)",
            listed(run, &silent)
        )
    })
}

/// The hypervisor's share of the round that it took most of.
fn stolen(run: &RunRecord, counted: &Counted<'_>) -> Option<String> {
    let steal = summary::extent(run, counted).steal;
    (steal > NOTABLE_STEAL).then(|| {
        format!(
            "the hypervisor took up to {:.0} % of the CPU time of a round: figures are noisier than the machine's own",
            steal * 100.0
        )
    })
}

/// Slices during which the machine worked for others, too.
fn other_work(run: &RunRecord) -> Option<String> {
    let disturbed = |slice: &&SliceRecord| {
        let [first, .., last] = slice.samples.as_slice() else { return false };
        let account = CpuAccount::of(first, last);
        let others = account.total_ns(|owner| *owner == Owner::Unattributed);
        let owned = account.total_ns(|owner| *owner != Owner::Unattributed);
        others.zip(owned).is_some_and(|(others, owned)| others > owned * NOTABLE_OTHERS)
    };
    let (count, all) = (slices(run).filter(disturbed).count(), slices(run).count());
    (count > 0).then(|| {
        format!(
            "in {count} of {all} slices more than {:.0} % of the CPU time that was used belongs to no component: the kernel, the arms that stood by, or other work on this machine",
            100.0 * NOTABLE_OTHERS / (1.0 + NOTABLE_OTHERS)
        )
    })
}

/// Counters that could not be read, by reason.
fn missing_readings(run: &RunRecord) -> Option<String> {
    let why = reasons(slices(run).flat_map(|slice| {
        let last = slice.samples.last().into_iter();
        last.flat_map(unread).collect::<BTreeSet<String>>()
    }))?;
    Some(format!("readings are missing, and what they are of is left out (slices): {why}"))
}

fn unread(sample: &Sample) -> Vec<String> {
    let mut told = Vec::new();
    for component in &sample.components {
        for reading in [&component.cpu_ns, &component.memory.anonymous] {
            if let Reading::Missing(reason) = reading {
                let owner = Owner::Component(component.component.clone()).label();
                told.push(format!("{owner}: {reason}"));
            }
        }
    }
    told
}

/// What pods did not tell of themselves, by reason.
fn missing_metrics(run: &RunRecord) -> Option<String> {
    let why = reasons(slices(run).flat_map(|slice| {
        let metrics = slice.samples.iter().flat_map(|sample| &sample.metrics);
        metrics.filter_map(why_missing).collect::<BTreeSet<String>>()
    }))?;
    Some(format!("metrics of pods are missing (slices): {why}"))
}

/// JVMs of which no round tells what is alive in their heaps.
fn unknown_heaps(loads: &[LoadFindings]) -> Option<String> {
    let jvms = || loads.iter().flat_map(|load| &load.jvms);
    let known: BTreeSet<&str> = jvms()
        .filter(|row| row.uses.iter().any(|of| of.heap_live_mib.is_some()))
        .map(|row| row.pod.as_str())
        .collect();
    let unknown: BTreeSet<&str> =
        jvms().map(|row| row.pod.as_str()).filter(|pod| !known.contains(pod)).collect();
    let pods = unknown.into_iter().collect::<Vec<_>>().join(", ");
    (!pods.is_empty()).then(|| {
        format!(
            "what collections leave in the heap of {pods} is not known: the old generation was never collected, so of a leak nothing can be told"
        )
    })
}

fn why_missing(metrics: &PodMetrics) -> Option<String> {
    match &metrics.series {
        Reading::Missing(reason) => Some(format!("{}: {reason}", metrics.pod)),
        Reading::Value(_) => None,
    }
}

/// What the proofs could not claim, once for all variants of which it is so.
fn left_out(run: &RunRecord) -> Vec<String> {
    let mut variants_of: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (_, of) in arms(run) {
        let left_out = of.proof.iter().flat_map(|proof| &proof.left_out);
        for what in left_out.filter(|what| !is_said_elsewhere(run, what)) {
            variants_of.entry(needs(what)).or_default().insert(&of.arm.variant);
        }
    }
    let sentence = |(what, variants): (String, BTreeSet<&str>)| {
        let names = run.plan.variants.iter().map(|variant| variant.name.as_str());
        let variants: Vec<&str> = names.filter(|name| variants.contains(name)).collect();
        format!("{}: left out of the proof: {what}", variants.join(", "))
    };
    variants_of.into_iter().map(sentence).collect()
}

/// What a claim needs that this study does not have.
fn needs(what: &str) -> String {
    let needed = ", a claim that needs a service that reports its requests";
    what.replace(": no service reports its requests", needed)
}

/// Spans that are missing have a caveat of their own, and where nothing runs a sidecar none can be crossed.
fn is_said_elsewhere(run: &RunRecord, what: &str) -> bool {
    let has_sidecar = |(_, deployment): (&str, &Deployment)| deployment.data_plane.has_sidecars();
    let of_sidecars = what.starts_with("that no request crossed a sidecar");
    (what.starts_with("why ") && what.contains(" spans are missing"))
        || (of_sidecars && !run.plan.ready().any(has_sidecar))
}

/// Arms at whose first slice the services were still changing.
fn never_settled(run: &RunRecord) -> Option<String> {
    let settled = || arms(run).filter_map(|(_, of)| of.file.settled.as_ref());
    let count = settled().filter(|record| !record.stable).count();
    (count > 0).then(|| {
        let all = settled().count();
        format!("{count} of {all} arms had not settled when their load began: throughput and CPU per request may still drift; a longer settle.max may help")
    })
}
