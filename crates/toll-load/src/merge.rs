//! Adds reports of parts of one load up to the report of the whole: counts and histograms exactly, as if one
//! engine had recorded everything. What cannot be added, the quantiles of a series, is left out.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::{Check, LoadReport, PhaseReport, StageReport, Steps, TargetReport};

impl LoadReport {
    /// The report of the load whose parts these are; nothing when there are none.
    pub fn merge(parts: &[LoadReport]) -> Option<LoadReport> {
        let (first, rest) = parts.split_first()?;
        let mut whole = first.clone();
        for part in rest {
            whole.absorb(part);
        }
        if !rest.is_empty() {
            whole.warm_up.series.clear();
            whole.measure.series.clear();
        }
        Some(whole)
    }

    fn absorb(&mut self, part: &LoadReport) {
        self.warm_up.absorb(&part.warm_up);
        self.warm_up_stable &= part.warm_up_stable;
        self.measure.absorb(&part.measure);
        self.sent_in_all_phases += part.sent_in_all_phases;
        absorb_targets(&mut self.targets, &part.targets);
        self.connections_opened += part.connections_opened;
        self.resolve_us = self.resolve_us.max(part.resolve_us);
        self.threads += part.threads;
        self.samples_lost += part.samples_lost;
        self.measure_begin_unix_ns = self.measure_begin_unix_ns.min(part.measure_begin_unix_ns);
        for check in &part.checks {
            absorb_check(&mut self.checks, check);
        }
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

/// A check holds for the whole when it holds for each part; what was seen is told of each.
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
    /// Adds a part's numbers. Clocks of two machines do not compare, lengths do: the phase lasts as long as its
    /// longest part.
    pub(crate) fn absorb(&mut self, part: &PhaseReport) {
        let length_ns = |phase: &PhaseReport| phase.end_ns.saturating_sub(phase.begin_ns);
        self.end_ns = self.begin_ns + length_ns(self).max(length_ns(part));
        self.scheduled += part.scheduled;
        self.sent += part.sent;
        self.done += part.done;
        self.completed += part.completed;
        self.unsent += part.unsent;
        self.unanswered += part.unanswered;
        self.waited_for_connection += part.waited_for_connection;
        self.connections_used += part.connections_used;
        add_counts(&mut self.statuses, &part.statuses);
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
        self.clients = (self.clients.0 + part.clients.0, self.clients.1 + part.clients.1);
        for (stage, other) in self.stages.iter_mut().zip(&part.stages) {
            stage.absorb(other);
        }
        self.cpu_ns += part.cpu_ns;
        self.spun_ns += part.spun_ns;
        self.mean_in_flight += part.mean_in_flight;
        self.after_end_ns += part.after_end_ns;
        self.inherited_ns += part.inherited_ns;
        self.involuntary_switches += part.involuntary_switches;
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
            prop_assert_eq!(LoadReport::merge(&sent).unwrap(), recorded(&requests));
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
    }
}
