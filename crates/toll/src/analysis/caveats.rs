//! What weakens a run's findings, a sentence each, to be shown beside the numbers.

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::{DataPlane, Deployment, PodMetrics, Reading, ServiceSpans};

use super::accounts::{CpuAccount, Owner, measured_window};
use super::effects;
use super::findings::{
    HeapTrend, LoadFindings, Metric, ProofSummary, Regime, SpanCosts, TopTotal, VariantLoad, View,
};
use super::regime;
use super::summary::{self, STAND_IN, fastest_calibration};
use crate::plan::{Arm, BringUp};
use crate::store::{Mark, RunRecord, TrialRecord};

/// Blocks below which intervals are too wide to lean on (METHOD.md rule 3).
const ENOUGH_BLOCKS: usize = 5;
/// Requests beyond a percentile below which it is that of a few requests (as for curves of latency).
const ENOUGH_BEYOND: f64 = 10.0;
/// What rounding up every pod adds, as a multiple of what was counted, worth a warning.
const NOTABLE_ROUNDING: f64 = 1.25;
/// At an equal rate, throughputs that differ by more are not the same load (METHOD.md rule 2).
const SAME_RATE: f64 = 0.02;
/// A sweep with more cells than this is named as a whole.
const MOST_CELLS: usize = 4;
/// Share of stolen CPU time worth a warning.
const NOTABLE_STEAL: f64 = 0.02;
/// CPU time that belongs to no component, as a share of what the components used, worth a warning.
const NOTABLE_OTHERS: f64 = 0.15;
/// More CPU per request in the first block than in the later ones, as a share, worth a warning.
const NOTABLE_DRIFT: f64 = 0.1;
/// Slowest over fastest calibration loop worth a warning.
const NOTABLE_CALIBRATION: f64 = 1.25;

/// What was found so far.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Load by load.
    pub loads: &'a [LoadFindings],
    /// Of every JVM.
    pub heap_trends: &'a [HeapTrend],
    /// Of every variant with an agent.
    pub span_costs: &'a [SpanCosts],
    /// Variant by variant.
    pub proofs: &'a [ProofSummary],
}

/// Whatever weakens the result.
pub fn caveats(run: &RunRecord, seen: &Seen<'_>) -> Vec<String> {
    let loads = seen.loads;
    let mut warnings = run.plan.warnings.clone();
    warnings.extend(run.host.lacks.iter().cloned());
    warnings.extend(run.host.changes.iter().cloned());
    warnings.extend(missing_trials(run));
    warnings.extend(started_once(run));
    warnings.extend(started_anew(run));
    warnings.extend(drifts(run));
    warnings.extend(stand_in(run));
    warnings.extend(few_blocks(run, loads));
    warnings.extend(few_requests(run, loads));
    warnings.extend(rounded_up(loads));
    warnings.extend(loads.iter().filter_map(unequal_rates));
    warnings.extend(not_carried(run));
    warnings.extend(loads.iter().flat_map(|load| regimes(load, &run.plan.baseline)));
    warnings.extend(knees_too_low(run));
    warnings.extend(seen.span_costs.iter().filter_map(uneven_rates));
    warnings.extend(seen.heap_trends.iter().filter(|t| t.grows).map(|t| leak(t, run, seen)));
    warnings.extend(seen.proofs.iter().filter_map(dropped));
    warnings.extend(run.plan.ready().filter_map(|(name, _)| uncounted(run, name)));
    warnings.extend(noise(run));
    warnings.extend(other_work(run));
    warnings.extend(unsettled(run));
    warnings.extend(never_settled(run));
    warnings.extend(missing_readings(run));
    warnings.extend(missing_metrics(run));
    warnings.extend(unknown_heaps(loads));
    warnings.extend(left_out(run));
    warnings
}

fn missing_trials(run: &RunRecord) -> Vec<String> {
    let planned = run.plan.trials.len();
    let invalid = run.trials.iter().filter(|t| !t.verdict.invalid.is_empty()).count();
    let mut warnings = Vec::new();
    if run.trials.len() < planned {
        warnings.push(format!(
            "only {} of {planned} trials ran: go on with `toll run --resume {}`",
            run.trials.len(),
            run.name
        ));
    }
    if invalid > 0 {
        warnings.push(format!(
            "{invalid} of {} trials are invalid and count for nothing; the reasons are listed with the trials",
            run.trials.len()
        ));
    }
    warnings
}

/// Arms that were still getting cheaper when their first block was measured: the same services served the others.
fn drifts(run: &RunRecord) -> Option<String> {
    if run.plan.bring_up != BringUp::Run {
        return None;
    }
    let arms = run.plan.trials.iter().map(|t| (&t.arm, &t.load)).collect::<BTreeSet<_>>();
    let drifts: Vec<(String, &str, f64)> = arms
        .into_iter()
        .filter_map(|(arm, load)| Some((arm.label(), load.as_str(), drift(run, arm, load)?)))
        .collect();
    let (low, high) = drifts.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), (.., more)| {
        (low.min(*more), high.max(*more))
    });
    let [low, high] = [low, high].map(|more| format!("{:.0}", more * 100.0));
    let more = if low == high { high } else { format!("{low} to {high}") };
    let which = arms_and_loads(run, &drifts);
    (!drifts.is_empty()).then(|| {
        format!(
            "the first block cost {more} % more CPU per request than the later ones on the same services, which were still warming up: {which}; a longer settle.max may help"
        )
    })
}

/// `agent under same-rate, spans-1; baseline under same-rate`.
fn arms_and_loads(run: &RunRecord, drifts: &[(String, &str, f64)]) -> String {
    let mut loads_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (arm, load, _) in drifts {
        loads_of.entry(arm).or_default().push(load);
    }
    let of_arm = |(arm, loads): (&str, Vec<&str>)| format!("{arm} under {}", listed(run, &loads));
    loads_of.into_iter().map(of_arm).collect::<Vec<_>>().join("; ")
}

/// What the first block cost more than the later ones, as a share, if that is worth a warning.
fn drift(run: &RunRecord, arm: &Arm, load: &str) -> Option<f64> {
    let valid = run.trials.iter().filter(|t| t.verdict.invalid.is_empty());
    let of_arm = valid.filter(|t| t.trial.arm == *arm && t.trial.load == load);
    let costs: Vec<f64> =
        of_arm.filter_map(|t| effects::observe(t, Metric::CpuPerRequest)).collect();
    let (first, later) = costs.split_first()?;
    let later = later.iter().sum::<f64>() / later.len().max(1) as f64;
    let more = first / later - 1.0;
    (later > 0.0 && more > NOTABLE_DRIFT).then_some(more)
}

/// Blocks on the same services say nothing of how one start differs from the next.
fn started_once(run: &RunRecord) -> Option<String> {
    (run.plan.bring_up == BringUp::Run).then(|| {
        "each arm was started once: the intervals leave out how one start differs from the next, of which the noise floor, from two starts of the baseline, shows something".into()
    })
}

/// Trials on another start than those before them in their block.
fn started_anew(run: &RunRecord) -> Option<String> {
    let told = |t: &TrialRecord| {
        let reason = t.verdict.started_anew.as_ref()?;
        Some(format!("{} began with trial {} ({reason})", t.trial.arm.label(), t.trial.index))
    };
    let told: Vec<String> = run.trials.iter().filter_map(told).collect();
    (!told.is_empty()).then(|| {
        format!(
            "what stood had ended between two trials, so that later ones ran on a fresh start: {}",
            told.join("; ")
        )
    })
}

/// A server that stands in for the one that was asked for costs what it costs.
fn stand_in(run: &RunRecord) -> Option<String> {
    let server = summary::database(run).filter(|server| server.contains(STAND_IN))?;
    Some(format!(
        "the database is {server}: a request costs in it what it would not cost in MongoDB, so the share of the throughput that a variant takes would be another; CPU per request of services and proxies is their own"
    ))
}

/// Loads of which variants have few valid trials, in one sentence: how many at the fewest and at the most.
fn few_blocks(run: &RunRecord, loads: &[LoadFindings]) -> Option<String> {
    let is_few = |variant: &&VariantLoad| variant.trials < ENOUGH_BLOCKS;
    let mut names: Vec<&str> = Vec::new();
    let mut few: Vec<(&str, usize, usize)> = Vec::new();
    for load in loads.iter().filter(|load| load.variants.iter().any(|v| is_few(&v))) {
        names.push(&load.name);
        for VariantLoad { variant, trials, .. } in load.variants.iter().filter(is_few) {
            match few.iter_mut().find(|(known, ..)| known == variant) {
                Some((_, low, high)) => (*low, *high) = ((*low).min(*trials), (*high).max(*trials)),
                None => few.push((variant, *trials, *trials)),
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
            "{}: valid trials: {}; below {ENOUGH_BLOCKS} blocks intervals are wide",
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
fn few_requests(run: &RunRecord, loads: &[LoadFindings]) -> Option<String> {
    let beyond = |name: &str| {
        let of_load = run.trials.iter().filter(|t| t.trial.load == name);
        let valid = of_load.filter(|t| t.verdict.invalid.is_empty() && !t.trial.arm.again);
        let mut answered: BTreeMap<&str, u64> = BTreeMap::new();
        for t in valid {
            let done = t.load.as_ref().map_or(0, |load| load.measure.latency.count());
            *answered.entry(&t.trial.arm.variant).or_default() += done;
        }
        answered.into_values().min().map(|fewest| fewest as f64 * 0.01)
    };
    let few = loads.iter().filter_map(|load| Some((load.name.as_str(), beyond(&load.name)?)));
    let few: Vec<(&str, f64)> = few.filter(|(_, beyond)| *beyond < ENOUGH_BEYOND).collect();
    let fewest = few.iter().map(|(_, beyond)| *beyond).reduce(f64::min)?;
    let names: Vec<&str> = few.iter().map(|(name, _)| *name).collect();
    Some(format!(
        "{}: p99 rests on fewer than {ENOUGH_BEYOND:.0} requests beyond it in all blocks of a variant, at the fewest on {}: it is about the slowest request, and its interval is wide; a longer duration helps",
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

fn unequal_rates(load: &LoadFindings) -> Option<String> {
    let rates = || {
        let throughput = |v: &VariantLoad| {
            v.metrics.iter().find(|(m, _)| *m == Metric::Throughput).map(|(_, e)| e.value)
        };
        load.variants.iter().filter_map(throughput)
    };
    let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    (load.view == View::EqualRate && high > low * (1.0 + SAME_RATE)).then(|| {
        format!(
            "{}: the variants did not complete the same rate ({low:.0} to {high:.0}/s), so this is not an equal-rate comparison; lower the rate",
            load.name
        )
    })
}

/// Trials in which answers did not keep up with arrivals: their latency is that of a growing queue.
fn not_carried(run: &RunRecord) -> Vec<String> {
    let lagging = |t: &&TrialRecord| {
        let planned = t.verdict.rate_per_s;
        let seen = effects::throughput(t);
        planned.zip(seen).is_some_and(|(planned, seen)| seen < planned * (1.0 - SAME_RATE))
    };
    let valid = run.trials.iter().filter(|t| t.verdict.invalid.is_empty());
    valid
        .filter(lagging)
        .map(|t| {
            format!(
                "trial {} ({} under {}) completed {:.0} of {:.0} requests/s: its latency is that of a growing queue; lower the rate",
                t.trial.index,
                t.trial.arm.label(),
                t.trial.load,
                effects::throughput(t).unwrap_or_default(),
                t.verdict.rate_per_s.unwrap_or_default(),
            )
        })
        .collect()
}

/// Comparisons of latencies of which one at least is that of a queue. Flat out both are meant to be.
fn regimes(load: &LoadFindings, baseline: &str) -> Vec<String> {
    let of = |variant: &str| load.regimes.iter().find(|regime| regime.variant == variant);
    let Some(base) = of(baseline).filter(|_| load.view != View::FlatOut) else { return vec![] };
    let others = load.regimes.iter().filter(|regime| regime.variant != baseline);
    others.filter_map(|other| regime(&load.name, base, other)).collect()
}

fn regime(load: &str, base: &Regime, other: &Regime) -> Option<String> {
    let at = |r: &Regime| {
        format!("{:.0} of the {:.0}/s that it carries", r.throughput_per_s, r.knee_per_s)
    };
    match (base.near_knee, other.near_knee) {
        (false, false) => None,
        (true, true) => Some(format!(
            "{load}: {} ({}) and {} ({}) are both at or near their limit: their latencies are those of queues, and throughput is about what the machine carries; CPU per request can still be compared",
            base.variant,
            at(base),
            other.variant,
            at(other)
        )),
        (base_is_near, _) => {
            let (near, below) = if base_is_near { (base, other) } else { (other, base) };
            Some(format!(
                "{load}: {} is at or near its limit ({}), {} is not ({}): the latency of {} is that of a queue, the other's is not, so their ratio says little about what {} adds to a request",
                near.variant,
                at(near),
                below.variant,
                at(below),
                near.variant,
                other.variant
            ))
        }
    }
}

/// Knees that the trials themselves prove wrong, in one sentence.
fn knees_too_low(run: &RunRecord) -> Option<String> {
    let valid: Vec<&TrialRecord> =
        run.trials.iter().filter(|t| t.verdict.invalid.is_empty()).collect();
    let found = regime::too_low(run, &valid);
    let said = |of: &regime::TooLow<'_>| {
        let regime::TooLow { trial, throughput_per_s, knee_per_s } = of;
        let planned = &trial.trial;
        format!(
            "the search found {knee_per_s:.0}/s, trial {} (under {}) completed {throughput_per_s:.0}/s",
            planned.index, planned.load
        )
    };
    let variant = |of: &regime::TooLow<'_>| of.trial.trial.arm.variant.clone();
    let told = match &found[..] {
        [] => return None,
        [one] => format!("the knee of {} was found too low: {}", variant(one), said(one)),
        all => {
            let each = all.iter().map(|of| format!("{}: {}", variant(of), said(of)));
            format!("knees were found too low: {}", each.collect::<Vec<_>>().join("; "))
        }
    };
    let weaker =
        "loads set by it are lighter than planned, and what is said of that limit holds less";
    Some(format!("{told}; {weaker}{}", overtaken(run, &found)))
}

/// Why many clients carry more than the search: it comes first, when what runs on a JVM is still cold.
fn overtaken(run: &RunRecord, found: &[regime::TooLow<'_>]) -> &'static str {
    let is_step = |of: &regime::TooLow<'_>| {
        let cell = run.plan.load(&of.trial.trial.load).and_then(|load| load.cell.as_ref());
        cell.is_some_and(|cell| cell.connections.is_some())
    };
    let warms_up = summary::database(run).is_some_and(|server| server.contains(STAND_IN));
    if warms_up && found.iter().any(is_step) {
        ". The database is on a JVM that warms up after the search: this is no surprise"
    } else {
        ""
    }
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

/// Whose work it may be that no component did.
fn whose(run: &RunRecord) -> &'static str {
    match run.plan.bring_up {
        BringUp::Together | BringUp::Run => "the arms that stood by, or other work on this machine",
        BringUp::Trial | BringUp::Block => "other work ran on this machine",
    }
}

/// Trials during which the machine worked for others, too.
fn other_work(run: &RunRecord) -> Option<String> {
    let disturbed = |t: &&TrialRecord| {
        let account = CpuAccount::measured(t);
        account.is_some_and(|account| {
            let others = account.total_ns(|owner| *owner == Owner::Unattributed);
            let owned = account.total_ns(|owner| *owner != Owner::Unattributed);
            others.zip(owned).is_some_and(|(others, owned)| others > owned * NOTABLE_OTHERS)
        })
    };
    let count = run.trials.iter().filter(disturbed).count();
    let whose = whose(run);
    (count > 0).then(|| {
        format!(
            "in {count} of {} trials more than {:.0} % of the CPU time that was used belongs to no component: {whose}",
            run.trials.len(),
            100.0 * NOTABLE_OTHERS / (1.0 + NOTABLE_OTHERS)
        )
    })
}

/// Counters that could not be read, by reason.
fn missing_readings(run: &RunRecord) -> Vec<String> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for trial in run.trials.iter().filter(|t| t.verdict.invalid.is_empty()) {
        let Some(end) = trial.samples.iter().find(|s| s.mark == Mark::MeasureEnd) else { continue };
        for component in &end.sample.components {
            for reading in [&component.cpu_ns, &component.memory.anonymous] {
                if let Reading::Missing(reason) = reading {
                    let owner = Owner::Component(component.component.clone()).label();
                    *reasons.entry(format!("{owner}: {reason}")).or_default() += 1;
                }
            }
        }
    }
    let warning =
        |(what, count): (String, usize)| format!("a reading is missing, trials: {count}: {what}");
    reasons.into_iter().map(warning).collect()
}

/// What pods did not tell of themselves in the measured window, by reason.
fn missing_metrics(run: &RunRecord) -> Vec<String> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for trial in run.trials.iter().filter(|t| t.verdict.invalid.is_empty()) {
        let samples = measured_window(&trial.samples).unwrap_or_default();
        let missing = samples.iter().flat_map(|marked| &marked.sample.metrics);
        let missing: BTreeSet<String> = missing.filter_map(why_missing).collect();
        missing.into_iter().for_each(|reason| *reasons.entry(reason).or_default() += 1);
    }
    let warning =
        |(what, count): (String, usize)| format!("metrics are missing, trials: {count}: {what}");
    reasons.into_iter().map(warning).collect()
}

/// JVMs of which no trial tells what is alive in their heaps.
fn unknown_heaps(loads: &[LoadFindings]) -> Vec<String> {
    let jvms = || loads.iter().flat_map(|load| &load.jvms);
    let known: BTreeSet<&str> = jvms()
        .filter(|row| row.uses.iter().any(|of| of.heap_live_mib.is_some()))
        .map(|row| row.pod.as_str())
        .collect();
    let unknown: BTreeSet<&str> =
        jvms().map(|row| row.pod.as_str()).filter(|pod| !known.contains(pod)).collect();
    let warning = |pod| {
        format!(
            "what collections leave in the heap of {pod} is not known: its old generation was never collected, so of a leak nothing can be told"
        )
    };
    unknown.into_iter().map(warning).collect()
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
    for trial in &run.trials {
        let left_out = trial.proof.iter().flat_map(|proof| &proof.left_out);
        for what in left_out.filter(|what| !is_said_elsewhere(run, what)) {
            variants_of.entry(needs(what)).or_default().insert(&trial.trial.arm.variant);
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

fn noise(run: &RunRecord) -> Vec<String> {
    let mut warnings = Vec::new();
    let steal = run.trials.iter().map(|t| t.verdict.noise.steal).fold(0.0, f64::max);
    if steal > NOTABLE_STEAL {
        warnings.push(format!(
            "the hypervisor took up to {:.0} % of the CPU time during a trial: figures are noisier than the machine's own",
            steal * 100.0
        ));
    }
    let slowest =
        run.trials.iter().map(|t| t.verdict.noise.calibration_ns).max().unwrap_or(0) as f64;
    let spread = slowest / fastest_calibration(run);
    if spread > NOTABLE_CALIBRATION {
        warnings.push(format!(
            "the same calibration loop took up to {spread:.2} times its fastest time: {}",
            whose(run)
        ));
    }
    warnings
}

/// Trials that began before the series was stable. A warm-up of one length was not asked to wait for that.
fn unsettled(run: &RunRecord) -> Option<String> {
    let may_wait = |t: &&TrialRecord| {
        let load = run.plan.load(&t.trial.load);
        load.is_some_and(|load| load.warm_up.min_s < load.warm_up.max_s)
    };
    let count = run
        .trials
        .iter()
        .filter(|t| t.verdict.invalid.is_empty())
        .filter(may_wait)
        .filter(|t| t.load.as_ref().is_some_and(|load| !load.warm_up_stable))
        .count();
    (count > 0).then(|| {
        let planned = run.trials.len();
        format!("in {count} of {planned} trials the warm-up ended at its limit before the series was stable; a longer warm_up.max may narrow the intervals")
    })
}

/// Discarded runs at whose end the services were still changing.
fn never_settled(run: &RunRecord) -> Option<String> {
    let settled = || run.trials.iter().filter_map(|t| t.settled.as_ref());
    let count = settled().filter(|record| !record.stable).count();
    (count > 0).then(|| {
        let all = settled().count();
        format!("{count} of {all} discarded runs ended at their limit before throughput and CPU per request were stable: what follows them may still drift; a longer settle.max may help")
    })
}
