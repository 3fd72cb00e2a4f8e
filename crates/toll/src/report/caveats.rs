//! Words what weakens a result: a sentence each, without a full stop; what is alike with a count and a few examples.

use toll_lab::ServiceSpans;

use crate::analysis::findings::{
    Caveat, CaveatKind, DatabaseServer, Growth, InvalidArm, LaggingArm, LoadNames, Regime,
    RegimePair, TwoFigures, VariantRounds,
};

use super::figures::{self, Quantity};
use super::left_out::left_out;
use super::owners;

/// Examples that a sentence gives.
const MOST_EXAMPLES: usize = 3;

/// Over the caveats of a kind.
pub(super) fn kind_title(kind: CaveatKind) -> &'static str {
    match kind {
        CaveatKind::Missing => "What did not run",
        CaveatKind::StandIn => "What stands for something else",
        CaveatKind::Invalid => "What does not count",
        CaveatKind::Comparison => "How it was compared",
        CaveatKind::Machine => "What else the machine did",
        CaveatKind::Precision => "How precise it is",
        CaveatKind::Settling => "What had not settled",
        CaveatKind::Proof => "What was not proven",
        CaveatKind::Readings => "Readings that are missing",
        CaveatKind::Lab => "The lab",
    }
}

/// A caveat of the run of that name, in words.
pub(super) fn sentence(caveat: &Caveat, run: &str) -> String {
    match caveat {
        Caveat::MissingRounds { ran, planned } => {
            format!("only {ran} of {planned} rounds ran: go on with `toll run --resume {run}`")
        }
        Caveat::StandIn { server } => format!(
            "the database is {}: a request costs in it what it would not cost in MongoDB, so the share of the throughput that a variant takes would be another; CPU per request of services and proxies is their own",
            database(server)
        ),
        Caveat::InvalidArms { arms, all } => format!(
            "{} of {all} arms do not count: {}",
            arms.len(),
            examples(arms.iter().map(invalid_arm))
        ),
        Caveat::InvalidSlices { slices, all, reasons } => format!(
            "{slices} of {all} slices do not count: {}",
            most_frequent(reasons.iter().map(|(why, slices)| (why.to_string(), *slices)))
        ),
        Caveat::CutLogs { logs } => format!(
            "only the first MiB and the last 4 MiB of these logs are kept, and what a service logs costs it CPU: {}",
            examples(logs.iter().map(|(service, bytes)| {
                format!("{service} wrote {} in a round", figures::figure(Quantity::Bytes, *bytes as f64))
            }))
        ),
        Caveat::Text { text, .. } => text.clone(),
        Caveat::OtherCalls { calls } => format!(
            "a request does not lead to as many calls as in the baseline, so more differs than the data plane: {}",
            examples(calls.iter().map(|call| {
                let per_request = call.per_request.map_or(f64::NAN, |rate| rate.value);
                let difference = call.difference.map_or(f64::NAN, |rate| rate.value);
                format!(
                    "{}: {} calls {} {per_request:.3} times, {difference:+.3}",
                    call.variant, call.caller, call.callee
                )
            }))
        ),
        Caveat::UnequalRates { loads } => format!(
            "the variants did not complete the same rate, so this is not an equal-rate comparison; lower the rate: {}",
            examples(
                loads
                    .iter()
                    .map(|of| format!("{} ({:.0} to {:.0}/s)", of.load, of.low_per_s, of.high_per_s))
            )
        ),
        Caveat::NotCarried { arms } => {
            let arm = |of: &LaggingArm| (format!("{} under {}", of.arm, of.load), of.rounds);
            format!(
                "answers did not keep up with arrivals, or took longer than the guard: their latency may be that of a growing queue; rounds: {}",
                most_frequent(arms.iter().map(arm))
            )
        }
        Caveat::NearLimit { both, comparisons } => {
            let said = examples(comparisons.iter().map(regimes));
            match both {
                true => format!(
                    "both are at or near their limit, so that their latencies are those of queues and throughput is the machine's; CPU per request can still be compared: {said}"
                ),
                false => format!(
                    "one is at or near its limit and the other is not, so that the ratio of their latencies says little about what a request pays: {said}"
                ),
            }
        }
        Caveat::UnevenSpanRates { variant, low_per_s, high_per_s } => format!(
            "the cost per span of {variant} is drawn through loads of {low_per_s:.0} to {high_per_s:.0} requests/s: work of the agent that does not depend on the rate weighs more on a request at the lower ones"
        ),
        Caveat::DisturbedThroughout => "the machine was disturbed throughout: more than a third of all cycles stand out by stolen time or other work, so that none is excused".into(),
        Caveat::Excused { cycles, all, moved } => format!(
            "{cycles} of {all} cycles are excused for stolen time or other work on the machine; {}",
            with_excused(moved)
        ),
        Caveat::Stolen { share } => format!(
            "the hypervisor took up to {:.0} % of the CPU time of a round: figures are noisier than the machine's own",
            share * 100.0
        ),
        Caveat::OtherWork { slices, all, share } => format!(
            "in {slices} of {all} slices more than {:.0} % of the CPU time that was used belongs to no component: the kernel, the arms that stood by, or other work on this machine",
            share * 100.0
        ),
        Caveat::OneRound => "each arm was started once: how one start differs from the next is in no interval, and there is no verdict".into(),
        Caveat::FewRounds { loads, variants, enough } => format!(
            "{}: rounds that count: {}; below {enough} they say little of how one start differs from the next, and intervals are wide",
            load_names(loads),
            variants.iter().map(rounds).collect::<Vec<_>>().join(", ")
        ),
        Caveat::FewRequests { loads, fewest, enough } => format!(
            "{}: p99 rests on fewer than {enough:.0} requests beyond it in all rounds of a variant, at the fewest on {}: it is about the slowest request, and its interval is wide; more rounds or cycles help",
            load_names(loads),
            fewest.ceil()
        ),
        Caveat::FewCyclesDecide { figures } => {
            let trimmed = |of: &TwoFigures| {
                format!("{} under {} ({} trimmed)", figure(of), of.load, change(of.other_ratio))
            };
            format!(
                "a few cycles decide {} figures, whose trimmed mean lies further than a half-width away: {}",
                figures.len(),
                examples(figures.iter().map(trimmed))
            )
        }
        Caveat::SendLag { percentiles } => format!(
            "requests were sent late enough to show in {} percentiles, which are above what the services did: {}",
            percentiles.len(),
            examples(percentiles.iter().map(|of| {
                let (name, by) = (of.metric.name(), of.share * 100.0);
                format!("{name} of {} under {} by {by:.0} %", of.variant, of.load)
            }))
        ),
        Caveat::Generator { checks } => format!(
            "checks of the load generator did not hold, so that it may have been the limit (slices): {}",
            most_frequent(checks.iter().cloned())
        ),
        Caveat::Unsettled { arms, all } => format!(
            "{arms} of {all} arms had not settled when their load began: throughput and CPU per request may still drift; a longer settle.max may help"
        ),
        Caveat::Leak { variant, pod, mib_per_minute, p_value, baseline } => format!(
            "what collections leave in the heap of {pod} ({variant}) grows by {mib_per_minute:.1} MiB a minute (p = {p_value:.1e}): a leak, or something that still fills up{}",
            match baseline {
                None => "",
                Some(Growth::Grows) => "; the baseline's grows, too",
                Some(Growth::DoesNot) => "; the baseline's does not",
                Some(Growth::Unknown) => "; whether the baseline's does is not known",
            }
        ),
        Caveat::LeftOut { variants, what } => {
            format!("{}: left out of the proof: {}", variants.join(", "), left_out(what))
        }
        Caveat::DroppedSpans { variant, services } => format!(
            "{variant}: spans that never came to the collector: {}; what was not sent costs less than what was",
            services.iter().map(dropped).collect::<Vec<_>>().join(", ")
        ),
        Caveat::UncountedSpans { variant, loads } => format!(
            "{variant}: whether spans were dropped is not known under {}: the load does not say how many a request leaves (`spans:`)",
            load_names(loads)
        ),
        Caveat::MissingReadings { reasons } => format!(
            "readings are missing, and what they are of is left out (slices): {}",
            most_frequent(reasons.iter().map(|(owner, why, slices)| {
                (format!("{}: {why}", owners::label(owner)), *slices)
            }))
        ),
        Caveat::MissingMetrics { reasons } => format!(
            "metrics of pods are missing (slices): {}",
            most_frequent(
                reasons.iter().map(|(pod, why, slices)| (format!("{pod}: {why}"), *slices))
            )
        ),
        Caveat::UnknownHeaps { pods } => format!(
            "what collections leave in the heap of {} is not known: the old generation was never collected, so a leak cannot be ruled out",
            pods.join(", ")
        ),
        Caveat::RoundedUp { load, variant, pods, counted_millicores, shown_millicores } => format!(
            "{load}: `kubectl top pods` would show {shown_millicores:.0}m for the {pods} pods of {variant}, by counters it is {counted_millicores:.1}m: every pod that did anything is rounded up to 1m; no figure here comes from that view"
        ),
    }
}

/// The first few, and how many more there are.
fn examples(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(MOST_EXAMPLES);
    let first = all.take(MOST_EXAMPLES).collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{first}; and {more} more") } else { first }
}

/// The most frequent of what came so many times.
fn most_frequent(all: impl Iterator<Item = (String, usize)>) -> String {
    let mut all: Vec<(String, usize)> = all.collect();
    all.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    examples(all.into_iter().map(|(text, times)| format!("{text} ({times})")))
}

fn invalid_arm(InvalidArm { arm, round, reasons }: &InvalidArm) -> String {
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    format!("{arm} in round {round} ({})", reasons.join(", "))
}

/// `nine: bare at 100 of the 300/s that it carries, mesh at 100 of the 105/s that it carries`.
fn regimes(RegimePair { load, baseline, variant }: &RegimePair) -> String {
    let at = |Regime { variant, throughput_per_s, capacity_per_s, .. }: &Regime| {
        format!("{variant} at {throughput_per_s:.0} of the {capacity_per_s:.0}/s that it carries")
    };
    format!("{load}: {}, {}", at(baseline), at(variant))
}

fn with_excused(moved: &[TwoFigures]) -> String {
    if moved.is_empty() {
        return "with them no headline figure would differ by more than its half-width".into();
    }
    let figures = moved.iter();
    let figures =
        figures.map(|of| format!("{} ({} with them)", figure(of), change(of.other_ratio)));
    format!("with them headline figures would differ: {}", examples(figures))
}

/// `CPU per request of sidecar +62.0 %`.
fn figure(of: &TwoFigures) -> String {
    format!("{} of {} {}", of.metric.name(), of.variant, change(of.ratio))
}

fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

fn rounds(VariantRounds { variant, fewest, most }: &VariantRounds) -> String {
    if fewest == most {
        format!("{variant} {fewest}")
    } else {
        format!("{variant} {fewest} to {most}")
    }
}

/// `same-rate, clients (all 8)`.
fn load_names(names: &[LoadNames]) -> String {
    let name = |of: &LoadNames| match of {
        LoadNames::Load(name) => name.clone(),
        LoadNames::Sweep { load, cells } => format!("{load} (all {cells})"),
    };
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// `1.00 % of 3600 from vets`.
fn dropped(ServiceSpans { service, expected, arrived }: &ServiceSpans) -> String {
    let share = 1.0 - *arrived as f64 / *expected as f64;
    format!("{:.2} % of {expected} from {service}", share * 100.0)
}

/// `PostgreSQL 17.2 (...)`.
pub(super) fn database(server: &DatabaseServer) -> String {
    match server {
        DatabaseServer::Postgres { version } => format!("PostgreSQL {version}"),
        DatabaseServer::MongoDb { version } => format!("MongoDB {version}"),
        DatabaseServer::StandIn { version } => {
            format!("mongo-java-server {version}, a stand-in for MongoDB")
        }
    }
}
