//! Adds reports of parts of one load up to the report of the whole: counts and histograms exactly, as if one
//! engine had recorded everything. What cannot be added, the quantiles of a series, is left out.
//!
//! Parts were carried by several engines at the same time, or by one engine in turn; the two differ in what lengths,
//! clients and requests in flight come to.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::{Check, LoadReport, PhaseReport, StageReport, Steps, TargetReport};

/// How parts lie in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    /// At the same time, by several event loops or engines.
    AtOnce,
    /// One after the other, by one engine.
    InTurn,
}

impl LoadReport {
    /// The report of the load whose parts these are, carried at the same time; nothing when there are none.
    pub fn merge(parts: &[LoadReport]) -> Option<LoadReport> {
        LoadReport::add_up(parts, Parts::AtOnce)
    }

    /// The report of all slices of a load that one engine has carried one after the other; nothing when there are
    /// none. Counts and histograms add up, and so do lengths: from `begin_ns` to `end_ns` is the measured time without
    /// the pauses between, so that `completed` by it is the mean throughput.
    pub fn sum(slices: &[LoadReport]) -> Option<LoadReport> {
        let mut whole = LoadReport::add_up(slices, Parts::InTurn)?;
        if slices.len() > 1 {
            whole.checks.iter_mut().for_each(|check| sum_up_seen(check, slices));
        }
        Some(whole)
    }

    /// Good answers to the requests of all phases, warm-up included, whenever they came in.
    pub fn good_in_all_phases(&self) -> u64 {
        self.warm_up.good() + self.measure.good()
    }

    fn add_up(parts: &[LoadReport], lie: Parts) -> Option<LoadReport> {
        let (first, rest) = parts.split_first()?;
        let mut whole = first.clone();
        for part in rest {
            whole.absorb(part, lie);
        }
        if !rest.is_empty() {
            whole.warm_up.series.clear();
            whole.measure.series.clear();
        }
        Some(whole)
    }

    fn absorb(&mut self, part: &LoadReport, lie: Parts) {
        self.warm_up.absorb(&part.warm_up, lie);
        self.warm_up_stable &= part.warm_up_stable;
        self.measure.absorb(&part.measure, lie);
        self.sent_in_all_phases += part.sent_in_all_phases;
        absorb_targets(&mut self.targets, &part.targets);
        self.connections_opened += part.connections_opened;
        self.resolve_us = self.resolve_us.max(part.resolve_us);
        self.threads = match lie {
            Parts::AtOnce => self.threads + part.threads,
            Parts::InTurn => self.threads.max(part.threads),
        };
        self.samples_lost += part.samples_lost;
        self.measure_begin_unix_ns = self.measure_begin_unix_ns.min(part.measure_begin_unix_ns);
        for check in &part.checks {
            absorb_check(&mut self.checks, check);
        }
    }
}

/// Of hundreds of slices one is reported: the first in which the check does not hold.
fn sum_up_seen(check: &mut Check, slices: &[LoadReport]) {
    let all = slices.iter().flat_map(|slice| &slice.checks).filter(|c| c.name == check.name);
    let failed: Vec<&Check> = all.clone().filter(|c| !c.holds).collect();
    let (of, shown) = match failed.first() {
        Some(first) => (failed.len(), Some(*first)),
        None => (slices.len(), all.clone().next()),
    };
    if let Some(shown) = shown {
        let verb = if shown.holds { "holds" } else { "does not hold" };
        let Check { seen, bound, .. } = shown.clone();
        check.seen = format!("{verb} in {of} of {} slices; in the first: {seen}", slices.len());
        check.bound = bound;
    }
}

/// An earlier engine does not tell its targets apart, and so the whole cannot.
fn absorb_targets(targets: &mut Vec<TargetReport>, part: &[TargetReport]) {
    if targets.len() != part.len() {
        return targets.clear();
    }
    targets.iter_mut().zip(part).for_each(|(sum, part)| sum.absorb(*part));
}

impl TargetReport {
    pub(crate) fn absorb(&mut self, part: TargetReport) {
        self.sent += part.sent;
        self.succeeded += part.succeeded;
    }
}

/// A check holds for the whole when it holds for each part; what was seen is given for each.
fn absorb_check(checks: &mut Vec<Check>, other: &Check) {
    match checks.iter_mut().find(|check| check.name == other.name) {
        None => checks.push(other.clone()),
        Some(check) => {
            check.holds &= other.holds;
            check.seen = format!("{}; {}", check.seen, other.seen);
        }
    }
}

impl PhaseReport {
    /// Complete answers that were expected.
    pub fn good(&self) -> u64 {
        self.done.saturating_sub(self.refused())
    }

    /// Requests that failed or were answered otherwise than expected.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum::<u64>() + self.refused()
    }

    /// How requests failed, kind by kind, in words.
    pub fn failures(&self) -> Vec<(String, u64)> {
        let errors = self.errors.iter().map(|(kind, count)| (kind.name().to_owned(), *count));
        let statuses = self.unexpected.iter().map(|(code, n)| (format!("status {code}"), *n));
        let calls = self.grpc_statuses.iter().filter(|(status, _)| **status != 0);
        let calls = calls.map(|(code, count)| (format!("grpc-status {code}"), *count));
        errors.chain(statuses).chain(calls).collect()
    }

    fn refused(&self) -> u64 {
        let calls = self.grpc_statuses.iter().filter(|(status, _)| **status != 0);
        self.unexpected.values().sum::<u64>() + calls.map(|(_, count)| count).sum::<u64>()
    }

    /// Adds a part's numbers.
    pub(crate) fn absorb(&mut self, part: &PhaseReport, lie: Parts) {
        match lie {
            Parts::AtOnce => self.beside(part),
            Parts::InTurn => self.followed_by(part),
        }
        self.scheduled += part.scheduled;
        self.sent += part.sent;
        self.done += part.done;
        self.completed += part.completed;
        self.unsent += part.unsent;
        self.unanswered += part.unanswered;
        self.waited_for_connection += part.waited_for_connection;
        add_counts(&mut self.statuses, &part.statuses);
        add_counts(&mut self.unexpected, &part.unexpected);
        add_counts(&mut self.grpc_statuses, &part.grpc_statuses);
        add_counts(&mut self.errors, &part.errors);
        self.bytes_out += part.bytes_out;
        self.bytes_in += part.bytes_in;
        self.body_bytes_out += part.body_bytes_out;
        self.body_bytes_in += part.body_bytes_in;
        self.latency.merge(&part.latency);
        self.service_time.merge(&part.service_time);
        self.send_lag.merge(&part.send_lag);
        self.steps.absorb(&part.steps);
        self.iterations.merge(&part.iterations);
        for (stage, other) in self.stages.iter_mut().zip(&part.stages) {
            stage.absorb(other);
        }
        self.cpu_ns += part.cpu_ns;
        self.spun_ns += part.spun_ns;
        self.after_end_ns += part.after_end_ns;
        self.inherited_ns += part.inherited_ns;
        self.involuntary_switches += part.involuntary_switches;
    }

    /// Clocks of two machines do not compare, lengths do: the phase lasts as long as its longest part.
    fn beside(&mut self, part: &PhaseReport) {
        self.end_ns = self.begin_ns + self.length_ns().max(part.length_ns());
        self.connections_used += part.connections_used;
        self.clients = (self.clients.0 + part.clients.0, self.clients.1 + part.clients.1);
        self.mean_in_flight += part.mean_in_flight;
    }

    /// The connections of one slice are those of the next, as far as is known.
    fn followed_by(&mut self, part: &PhaseReport) {
        let (before, after) = (self.length_ns() as f64, part.length_ns() as f64);
        let in_flight = self.mean_in_flight * before + part.mean_in_flight * after;
        self.mean_in_flight = in_flight / (before + after).max(1.0);
        self.end_ns = self.begin_ns + self.length_ns() + part.length_ns();
        self.connections_used = self.connections_used.max(part.connections_used);
        let (fewest, most) = self.clients;
        self.clients = (fewest.min(part.clients.0), most.max(part.clients.1));
    }

    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

impl Steps {
    fn absorb(&mut self, part: &Steps) {
        self.connect.merge(&part.connect);
        self.tls.merge(&part.tls);
        self.write.merge(&part.write);
        self.wait.merge(&part.wait);
        self.read.merge(&part.read);
    }
}

impl StageReport {
    fn absorb(&mut self, part: &StageReport) {
        self.done += part.done;
        self.failed += part.failed;
        self.latency.merge(&part.latency);
    }
}

fn add_counts<K: Ord + Copy, N: AddAssign + Copy + Default>(
    sum: &mut BTreeMap<K, N>,
    part: &BTreeMap<K, N>,
) {
    for (key, count) in part {
        *sum.entry(*key).or_default() += *count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    /// One request as an engine would record it.
    #[derive(Debug, Clone, Copy)]
    struct Request {
        latency_ns: u64,
        lag_ns: u64,
        outcome: Result<u16, ErrorKind>,
        bytes: u64,
        stage: usize,
    }

    fn requests() -> impl Strategy<Value = Vec<Request>> {
        let outcome = prop_oneof![
            8 => (200_u16..600).prop_map(Ok),
            1 => Just(Err(ErrorKind::Timeout)),
            1 => Just(Err(ErrorKind::Reset)),
        ];
        let request = (1..4_000_000_000_u64, 0..1_000_000_u64, outcome, 0..10_000_u64, 0..3_usize)
            .prop_map(|(latency_ns, lag_ns, outcome, bytes, stage)| Request {
                latency_ns,
                lag_ns,
                outcome,
                bytes,
                stage,
            });
        prop::collection::vec(request, 0..300)
    }

    fn recorded(requests: &[Request]) -> LoadReport {
        let mut phase = PhaseReport { end_ns: 5_000_000_000, ..PhaseReport::default() };
        let stage = |n: usize| StageReport {
            begin_s: n as f64,
            end_s: n as f64 + 1.0,
            from: 1.0,
            to: 2.0,
            done: 0,
            failed: 0,
            latency: crate::Histogram::new(),
        };
        phase.stages = (0..3).map(stage).collect();
        for request in requests {
            phase.scheduled += 1;
            phase.sent += 1;
            phase.bytes_in += request.bytes;
            phase.send_lag.record_ns(request.lag_ns);
            match request.outcome {
                Ok(status) => {
                    phase.done += 1;
                    *phase.statuses.entry(status).or_default() += 1;
                    phase.latency.record_ns(request.latency_ns);
                    phase.steps.wait.record_ns(request.latency_ns);
                    phase.stages[request.stage].done += 1;
                    phase.stages[request.stage].latency.record_ns(request.latency_ns);
                }
                Err(kind) => {
                    *phase.errors.entry(kind).or_default() += 1;
                    phase.stages[request.stage].failed += 1;
                }
            }
        }
        LoadReport { measure: phase, warm_up_stable: true, ..LoadReport::default() }
    }

    proptest! {
        #[test]
        fn the_merge_of_the_parts_is_the_whole(
            requests in requests(),
            assigned in prop::collection::vec(0..5_usize, 300),
            parts in 1..5_usize,
        ) {
            let mut shares = vec![Vec::new(); parts];
            for (request, part) in requests.iter().zip(assigned) {
                shares[part % parts].push(*request);
            }
            let shares: Vec<LoadReport> = shares.iter().map(|share| recorded(share)).collect();
            // As other machines' reports arrive: through JSON.
            let sent: Vec<LoadReport> = shares
                .iter()
                .map(|part| serde_json::from_str(&serde_json::to_string(part).unwrap()).unwrap())
                .collect();
            let whole = recorded(&requests);
            prop_assert_eq!(LoadReport::merge(&sent).unwrap(), whole.clone());
            let mut summed = LoadReport::sum(&sent).unwrap();
            prop_assert_eq!(summed.measure.length_ns(), parts as u64 * whole.measure.length_ns());
            summed.measure.end_ns = whole.measure.end_ns;
            prop_assert_eq!(summed, whole);
        }
    }

    #[test]
    fn a_check_holds_for_the_whole_when_it_holds_for_each_part() {
        let part = |holds| {
            let check = Check { name: "send-lag".into(), holds, ..Check::default() };
            LoadReport { checks: vec![check], ..LoadReport::default() }
        };
        let held = |parts: &[LoadReport]| LoadReport::merge(parts).unwrap().checks[0].holds;
        assert!(held(&[part(true), part(true)]));
        assert!(!held(&[part(true), part(false)]));
    }

    #[test]
    fn targets_of_parts_add_up_unless_a_part_does_not_tell_them_apart() {
        let part = |counts: &[(u64, u64)]| {
            let target = |&(sent, succeeded): &(u64, u64)| TargetReport { sent, succeeded };
            LoadReport { targets: counts.iter().map(target).collect(), ..LoadReport::default() }
        };
        let merged = |parts: &[LoadReport]| LoadReport::merge(parts).unwrap().targets;
        let (one, other) = (part(&[(5, 4), (3, 3)]), part(&[(2, 2), (9, 0)]));
        assert_eq!(merged(&[one.clone(), other]), part(&[(7, 6), (12, 3)]).targets);
        assert_eq!(merged(&[one, part(&[])]), []);
    }

    #[test]
    fn nothing_merges_to_nothing() {
        assert_eq!(LoadReport::merge(&[]), None);
        assert_eq!(LoadReport::sum(&[]), None);
    }

    /// A slice of so many milliseconds, at some time of the day.
    fn slice(length_ms: u64, clients: u64, mean_in_flight: f64) -> LoadReport {
        let begin_ns = 77_000_000 * clients;
        let measure = PhaseReport {
            begin_ns,
            end_ns: begin_ns + length_ms * 1_000_000,
            completed: length_ms,
            connections_used: clients,
            clients: (clients, clients),
            mean_in_flight,
            cpu_ns: 5,
            ..PhaseReport::default()
        };
        LoadReport { measure, threads: 2, connections_opened: 3, ..LoadReport::default() }
    }

    #[test]
    fn slices_that_follow_each_other_add_up_in_length() {
        let LoadReport { measure, threads, connections_opened, .. } =
            LoadReport::sum(&[slice(400, 3, 2.0), slice(100, 5, 4.0), slice(500, 4, 1.0)]).unwrap();
        assert_eq!((measure.length_ns(), measure.completed), (1_000_000_000, 1_000));
        assert_eq!((measure.clients, measure.connections_used), ((3, 5), 5));
        assert!((measure.mean_in_flight - 1.7).abs() < 1e-9, "{}", measure.mean_in_flight);
        assert_eq!((measure.cpu_ns, threads, connections_opened), (15, 2, 9));
    }

    #[test]
    fn a_check_of_a_sum_tells_the_first_slice_in_which_it_does_not_hold() {
        let slice = |holds: bool, seen: &str| {
            let check =
                Check { name: "own-cpu".into(), holds, seen: seen.into(), ..Check::default() };
            LoadReport { checks: vec![check], ..LoadReport::default() }
        };
        let checked = |slices: &[LoadReport]| LoadReport::sum(slices).unwrap().checks.remove(0);
        let check = checked(&[slice(true, "5 %"), slice(false, "90 %"), slice(false, "95 %")]);
        assert!(!check.holds);
        assert_eq!(check.seen, "does not hold in 2 of 3 slices; in the first: 90 %");
        assert!(checked(&[slice(true, "5 %"), slice(true, "6 %")]).holds);
    }

    #[test]
    fn answers_are_counted_in_all_phases() {
        let phase = |done| PhaseReport { done, ..PhaseReport::default() };
        let report = LoadReport { warm_up: phase(3), measure: phase(4), ..LoadReport::default() };
        assert_eq!(report.good_in_all_phases(), 7);
    }
}
