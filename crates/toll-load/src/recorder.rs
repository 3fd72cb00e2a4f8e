//! Keeps what happened to the requests of one phase on one event loop: counts and histograms. Knows neither
//! sockets nor schedules, and allocates nothing while requests are counted.
//!
//! Latency goes into the histogram of the interval under way, which the coordinator takes four times a second:
//! one record serves the live view, the series and the whole. What most requests have in common is not recorded
//! again: service time, lag and the steps of an answer follow from latency, corrected by those that differ.

use std::collections::BTreeMap;

use crate::clock::{SECOND_NS, Usage};
use crate::http::Answer;
use crate::pool::Exchange;
use crate::schedule::Stages;
use crate::{ErrorKind, Histogram, PhaseReport, Stage, StageReport, Steps, Target, TargetReport};

/// Length of an interval of the series.
pub(crate) const INTERVAL_NS: u64 = SECOND_NS / 4;
/// A status code has three digits.
const STATUSES: usize = 1000;

/// The numbers of one phase as they grow.
#[derive(Debug)]
pub(crate) struct Recorder {
    begin_ns: u64,
    end_ns: u64,
    usage: Usage,
    /// Of the event loop: at the begin of the phase, then in the phase.
    spun_ns: u64,
    sent: u64,
    /// Of these, requests that the peer did not process.
    sent_in_vain: u64,
    done: u64,
    completed: u64,
    unsent: u64,
    unanswered: u64,
    waited: u64,
    used: Vec<bool>,
    statuses: Box<[u64; STATUSES]>,
    unexpected: BTreeMap<u16, u64>,
    grpc_statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<ErrorKind, u64>,
    /// By the number of the target.
    asked: Box<[Target]>,
    targets: Box<[TargetReport]>,
    bytes: Bytes,
    interval: Interval,
    open_loop: bool,
    /// Requests that were sent later than intended: all of an open loop, in a closed one those that waited for
    /// a connection.
    late: Late,
    /// Requests whose answer came in more than one piece.
    pieces: Pieces,
    connect: Histogram,
    tls: Histogram,
    write: Histogram,
    iterations: Histogram,
    clients: Option<(u64, u64)>,
    stages: Vec<StageRecord>,
    bounds: Stages,
    mean_in_flight: f64,
    edges: Edges,
}

/// Time in flight on the other side of the phase's edges, nanoseconds, summed over requests.
#[derive(Debug, Default)]
struct Edges {
    /// Of this phase's requests, after its end.
    after_end_ns: u64,
    /// Of earlier requests, after its begin.
    inherited_ns: u64,
    /// Whether the phase is over.
    over: bool,
}

#[derive(Debug, Default)]
struct Bytes {
    out: u64,
    r#in: u64,
    body_out: u64,
    body_in: u64,
}

/// The interval under way.
#[derive(Debug)]
struct Interval {
    latency: Box<Histogram>,
    number: u64,
    completed: u64,
}

#[derive(Debug, Default)]
struct Late {
    latency: Histogram,
    service_time: Histogram,
    send_lag: Histogram,
    sent: u64,
}

#[derive(Debug, Default)]
struct Pieces {
    service_time: Histogram,
    wait: Histogram,
    read: Histogram,
}

#[derive(Debug, Default)]
struct StageRecord {
    done: u64,
    failed: u64,
    latency: Histogram,
}

/// What the coordinator takes four times a second.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Number of the interval in its phase.
    pub number: u64,
    /// Latencies of the interval.
    pub latency: Box<Histogram>,
    /// Failures since the phase began.
    pub errors: u64,
}

impl Recorder {
    /// For a phase that uses up to `connections` to these targets, in an open loop or a closed one.
    pub fn new(
        connections: usize,
        targets: &[Target],
        open_loop: bool,
        stages: &Stages,
    ) -> Recorder {
        let several = if stages.len() > 1 { stages.len() } else { 0 };
        Recorder {
            begin_ns: 0,
            end_ns: 0,
            usage: Usage::default(),
            spun_ns: 0,
            sent: 0,
            sent_in_vain: 0,
            done: 0,
            completed: 0,
            unsent: 0,
            unanswered: 0,
            waited: 0,
            used: vec![false; connections],
            statuses: Box::new([0; STATUSES]),
            unexpected: BTreeMap::new(),
            grpc_statuses: BTreeMap::new(),
            errors: BTreeMap::new(),
            asked: targets.into(),
            targets: vec![TargetReport::default(); targets.len()].into(),
            bytes: Bytes::default(),
            interval: Interval { latency: Box::default(), number: 0, completed: 0 },
            open_loop,
            late: Late::default(),
            pieces: Pieces::default(),
            connect: Histogram::new(),
            tls: Histogram::new(),
            write: Histogram::new(),
            iterations: Histogram::new(),
            clients: None,
            stages: (0..several).map(|_| StageRecord::default()).collect(),
            bounds: stages.clone(),
            mean_in_flight: 0.0,
            edges: Edges::default(),
        }
    }

    /// The phase begins, and with it its first interval.
    pub fn begin(&mut self, begin_ns: u64, spun_ns: u64) {
        self.spun_ns = spun_ns;
        self.begin_ns = begin_ns;
        self.end_ns = begin_ns;
        self.usage = Usage::of_this_thread();
    }

    /// The phase ended at `end_ns`; answers may still come in.
    pub fn end(&mut self, end_ns: u64, mean_in_flight: f64, spun_ns: u64) {
        self.spun_ns = spun_ns - self.spun_ns;
        self.end_ns = end_ns;
        self.usage = Usage::of_this_thread().since(self.usage);
        self.mean_in_flight = mean_in_flight;
        self.edges.over = true;
    }

    /// One of the phase's requests, sent at `sent_ns`, came to its end. What waited for a connection may have been
    /// sent only when the phase was over.
    pub fn left(&mut self, sent_ns: u64, now_ns: u64) {
        if self.edges.over {
            self.edges.after_end_ns += now_ns.saturating_sub(self.end_ns.max(sent_ns));
        }
    }

    /// A request of an earlier phase, sent at `sent_ns`, came to its end.
    pub fn inherited_left(&mut self, sent_ns: u64, now_ns: u64) {
        let until_ns = if self.edges.over { self.end_ns.min(now_ns) } else { now_ns };
        self.edges.inherited_ns += until_ns.saturating_sub(self.begin_ns.max(sent_ns));
    }

    /// A connection can carry requests.
    pub fn opened(&mut self, connect_ns: u64, tls_ns: Option<u64>) {
        self.connect.record_ns(connect_ns);
        if let Some(tls_ns) = tls_ns {
            self.tls.record_ns(tls_ns);
        }
    }

    /// A request was handed to the kernel on the connection in `slot`.
    pub fn sent(&mut self, exchange: &Exchange, slot: usize, waited: bool, body_bytes: u64) {
        self.sent += 1;
        self.targets[exchange.target as usize].sent += 1;
        self.waited += u64::from(waited);
        self.used[slot] = true;
        self.bytes.out += u64::from(exchange.bytes_out);
        self.bytes.body_out += body_bytes;
        if self.is_late(exchange) {
            self.late.sent += 1;
            self.late.send_lag.record_ns(exchange.sent_ns - exchange.intended_ns);
        }
    }

    /// Handing a request to the kernel took so long.
    pub fn wrote(&mut self, took_ns: u64) {
        self.write.record_ns(took_ns);
    }

    /// A request was answered.
    pub fn done(&mut self, exchange: &Exchange, done_ns: u64, answer: &Answer) {
        let latency_ns = done_ns - exchange.intended_ns;
        self.done += 1;
        self.statuses[usize::from(answer.status)] += 1;
        self.targets[exchange.target as usize].succeeded += u64::from(answer.status < 300);
        if !self.asked[exchange.target as usize].expects(answer.status) {
            *self.unexpected.entry(answer.status).or_default() += 1;
        }
        self.bytes.body_in += answer.body_bytes;
        self.interval.latency.record_ns(latency_ns);
        if self.is_late(exchange) {
            self.late.latency.record_ns(latency_ns);
            self.late.service_time.record_ns(done_ns - exchange.sent_ns);
        }
        if answer.first_byte_ns != done_ns {
            self.pieces.service_time.record_ns(done_ns - exchange.sent_ns);
            self.pieces.wait.record_ns(answer.first_byte_ns.saturating_sub(exchange.sent_ns));
            self.pieces.read.record_ns(done_ns - answer.first_byte_ns);
        }
        if let Some(status) = answer.grpc_status {
            *self.grpc_statuses.entry(status).or_default() += 1;
        }
        if let Some(stage) = self.stage_of(exchange) {
            stage.done += 1;
            stage.latency.record_ns(latency_ns);
        }
    }

    /// An answer came in during the phase, whichever phase had sent the request.
    pub fn completed(&mut self) {
        self.completed += 1;
        self.interval.completed += 1;
    }

    /// An attempt to connect failed.
    pub fn not_opened(&mut self, kind: ErrorKind) {
        *self.errors.entry(kind).or_default() += 1;
    }

    /// A request failed.
    pub fn failed(&mut self, exchange: &Exchange, kind: ErrorKind) {
        *self.errors.entry(kind).or_default() += 1;
        if let Some(stage) = self.stage_of(exchange) {
            stage.failed += 1;
        }
    }

    /// A request that was sent was not processed, and will be sent again.
    pub fn not_processed(&mut self, exchange: &Exchange) {
        self.sent_in_vain += 1;
        self.targets[exchange.target as usize].sent -= 1;
    }

    /// A request that was sent is not waited for.
    pub fn left_unanswered(&mut self) {
        self.unanswered += 1;
    }

    /// So many requests fell due and will never be sent.
    pub fn never_sent(&mut self, requests: u64) {
        self.unsent += requests;
    }

    /// Bytes were read.
    pub fn read(&mut self, bytes: u64) {
        self.bytes.r#in += bytes;
    }

    /// An iteration ended.
    pub fn iterated(&mut self, took_ns: u64) {
        self.iterations.record_ns(took_ns);
    }

    /// So many clients are at work.
    pub fn at_work(&mut self, clients: u64) {
        let (fewest, most) = self.clients.unwrap_or((clients, clients));
        self.clients = Some((fewest.min(clients), most.max(clients)));
    }

    /// Whether any request was answered.
    pub fn has_answers(&self) -> bool {
        self.done > 0
    }

    /// What was sent and what succeeded, by the number of the target.
    pub fn targets(&self) -> &[TargetReport] {
        &self.targets
    }

    /// When the phase began, nanoseconds.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// When the interval under way is over, nanoseconds.
    pub fn interval_end_ns(&self) -> u64 {
        self.begin_ns + (self.interval.number + 1) * INTERVAL_NS
    }

    /// Ends the interval under way; `empty` is the histogram of the next.
    pub fn take_interval(&mut self, empty: Box<Histogram>) -> Taken {
        let number = self.interval.number;
        self.interval.number += 1;
        let latency = std::mem::replace(&mut self.interval.latency, empty);
        Taken { number, latency, errors: self.errors.values().sum() }
    }

    fn is_late(&self, exchange: &Exchange) -> bool {
        self.open_loop || exchange.sent_ns != exchange.intended_ns
    }

    fn stage_of(&mut self, exchange: &Exchange) -> Option<&mut StageRecord> {
        if self.stages.is_empty() {
            return None;
        }
        let since_begin_ns = exchange.intended_ns.saturating_sub(self.begin_ns);
        self.stages.get_mut(self.bounds.index_at(since_begin_ns))
    }

    /// The finished report, given the latencies of the intervals that were taken.
    pub fn into_report(self, mut latency: Histogram, profile: &[Stage]) -> PhaseReport {
        latency.merge(&self.interval.latency);
        let mut service_time = latency.clone();
        service_time.replace(&self.late.latency, &self.late.service_time);
        let mut wait = service_time.clone();
        wait.replace(&self.pieces.service_time, &self.pieces.wait);
        let mut read = zeros(service_time.count() - self.pieces.read.count());
        read.merge(&self.pieces.read);
        let mut send_lag = zeros(self.sent - self.late.sent);
        send_lag.merge(&self.late.send_lag);
        let sent = self.sent - self.sent_in_vain;
        PhaseReport {
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
            scheduled: sent + self.unsent,
            sent,
            done: self.done,
            completed: self.completed,
            unsent: self.unsent,
            unanswered: self.unanswered,
            waited_for_connection: self.waited,
            connections_used: self.used.iter().filter(|used| **used).count() as u64,
            statuses: by_code(&self.statuses),
            unexpected: self.unexpected,
            grpc_statuses: self.grpc_statuses,
            errors: self.errors,
            bytes_out: self.bytes.out,
            bytes_in: self.bytes.r#in,
            body_bytes_out: self.bytes.body_out,
            body_bytes_in: self.bytes.body_in,
            latency,
            service_time,
            send_lag,
            steps: Steps { connect: self.connect, tls: self.tls, write: self.write, wait, read },
            iterations: self.iterations,
            clients: self.clients.unwrap_or_default(),
            stages: stage_reports(self.stages, &self.bounds, profile),
            series: Vec::new(),
            cpu_ns: self.usage.cpu_ns,
            spun_ns: self.spun_ns,
            mean_in_flight: self.mean_in_flight,
            after_end_ns: self.edges.after_end_ns,
            inherited_ns: self.edges.inherited_ns,
            involuntary_switches: self.usage.involuntary_switches,
        }
    }
}

fn stage_reports(
    records: Vec<StageRecord>,
    bounds: &Stages,
    profile: &[Stage],
) -> Vec<StageReport> {
    let report = |(index, record): (usize, StageRecord)| {
        let (begin_ns, end_ns) = bounds.bounds(index);
        StageReport {
            begin_s: begin_ns as f64 / SECOND_NS as f64,
            end_s: end_ns as f64 / SECOND_NS as f64,
            from: profile[index].from,
            to: profile[index].to,
            done: record.done,
            failed: record.failed,
            latency: record.latency,
        }
    };
    records.into_iter().enumerate().map(report).collect()
}

fn zeros(count: u64) -> Histogram {
    let mut histogram = Histogram::new();
    histogram.record_n_ns(0, count);
    histogram
}

fn by_code(statuses: &[u64; STATUSES]) -> BTreeMap<u16, u64> {
    let counts = (0..).zip(statuses.iter().copied());
    counts.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, Profile};

    const US: u64 = 1_000;

    fn exchange(intended_us: u64, sent_us: u64) -> Exchange {
        Exchange {
            phase: Phase::Measure,
            target: 0,
            client: 0,
            intended_ns: intended_us * US,
            sent_ns: sent_us * US,
            connect_ns: 0,
            bytes_out: 40,
        }
    }

    fn answer(status: u16, first_byte_us: u64) -> Answer {
        Answer {
            status,
            keep_alive: true,
            first_byte_ns: first_byte_us * US,
            body_bytes: 3,
            grpc_status: None,
        }
    }

    fn recorder(open_loop: bool) -> Recorder {
        let targets = [Target::get("http://a"), Target::get("http://b")];
        let mut recorder =
            Recorder::new(2, &targets, open_loop, &Stages::new(&Profile::constant(1.0)));
        recorder.begin(0, 0);
        recorder
    }

    fn finished(mut recorder: Recorder) -> PhaseReport {
        recorder.end(SECOND_NS, 0.0, 0);
        recorder.into_report(Histogram::new(), &[])
    }

    fn record(open_loop: bool, intended_us: u64, sent_us: u64, done_us: u64) -> PhaseReport {
        let mut recorder = recorder(open_loop);
        recorder.sent(&exchange(intended_us, sent_us), 1, false, 0);
        recorder.done(&exchange(intended_us, sent_us), done_us * US, &answer(200, done_us));
        finished(recorder)
    }

    #[track_caller]
    fn assert_holds_one_of(histogram: &Histogram, value_us: f64) {
        assert_eq!(histogram.count(), 1);
        let seen = histogram.quantile_us(0.5);
        assert!((seen - value_us).abs() <= value_us / 1000.0, "{seen} us instead of {value_us} us");
    }

    #[test]
    fn time_in_flight_beyond_the_edges_of_a_phase_is_told_apart() {
        let mut recorder = recorder(false);
        recorder.begin(SECOND_NS, 0);
        let at = |tenths: u64| SECOND_NS * tenths / 10;
        recorder.inherited_left(at(8), at(11));
        recorder.left(at(11), at(12));
        recorder.end(at(20), 0.0, 0);
        recorder.inherited_left(at(8), at(25));
        recorder.left(at(15), at(23));
        // It waited for a connection until the phase was over.
        recorder.left(at(21), at(26));
        let report = recorder.into_report(Histogram::new(), &[]);
        assert_eq!((report.inherited_ns, report.after_end_ns), (at(1 + 10), at(3 + 5)));
    }

    #[test]
    fn a_late_send_counts_toward_latency_not_service_time() {
        for open_loop in [true, false] {
            let report = record(open_loop, 100, 350, 500);
            assert_holds_one_of(&report.latency, 400.0);
            assert_holds_one_of(&report.service_time, 150.0);
            assert_holds_one_of(&report.send_lag, 250.0);
        }
    }

    #[test]
    fn a_closed_loop_intends_what_it_sends() {
        let report = record(false, 350, 350, 500);
        assert_holds_one_of(&report.latency, 150.0);
        assert_holds_one_of(&report.service_time, 150.0);
        assert_holds_one_of(&report.send_lag, 0.0);
    }

    #[test]
    fn an_answer_in_one_piece_was_waited_for_and_an_answer_in_pieces_read() {
        let mut recorder = recorder(true);
        for (first_byte_us, done_us) in [(500, 500), (400, 900)] {
            let exchange = exchange(90, 100);
            recorder.sent(&exchange, 0, false, 0);
            recorder.done(&exchange, done_us * US, &answer(200, first_byte_us));
        }
        let steps = finished(recorder).steps;
        let near = |histogram: &Histogram, expected: [f64; 2]| {
            assert_eq!(histogram.count(), 2);
            for (seen, expected) in [histogram.min_us(), histogram.max_us()].iter().zip(expected) {
                assert!((seen - expected).abs() <= expected / 500.0, "{seen}, not {expected}");
            }
        };
        near(&steps.wait, [300.0, 400.0]);
        near(&steps.read, [0.0, 500.0]);
    }

    #[test]
    fn the_intervals_that_were_taken_and_what_came_later_are_the_whole() {
        let mut recorder = recorder(false);
        let mut earlier = Histogram::new();
        for k in 1..=4 {
            recorder.done(&exchange(0, 0), k * 10 * US, &answer(200, k * 10));
            let taken = recorder.take_interval(Box::default());
            assert_eq!((taken.number, taken.latency.count()), (k - 1, 1));
            assert_eq!(recorder.interval_end_ns(), (k + 1) * INTERVAL_NS);
            earlier.merge(&taken.latency);
        }
        recorder.done(&exchange(0, 0), 110 * US, &answer(503, 110));
        recorder.end(SECOND_NS, 0.0, 0);
        let report = recorder.into_report(earlier, &[]);
        assert_eq!((report.latency.count(), report.service_time.count()), (5, 5));
        assert_eq!(report.statuses, BTreeMap::from([(200, 4), (503, 1)]));
    }

    #[test]
    fn a_request_counts_in_the_stage_in_which_it_fell_due() {
        let stage = |from, to| Stage { duration_s: 1.0, from, to };
        let profile = Profile { stages: vec![stage(1.0, 1.0), stage(5.0, 5.0)] };
        let target = [Target::get("http://a")];
        let mut recorder = Recorder::new(1, &target, false, &Stages::new(&profile));
        recorder.begin(0, 0);
        let second = SECOND_NS / US;
        for intended_us in [0, second - 1, second, 3 * second] {
            let done_us = intended_us + 700;
            recorder.done(&exchange(intended_us, intended_us), done_us * US, &answer(200, done_us));
        }
        recorder.failed(&exchange(10, 10), ErrorKind::Reset);
        recorder.end(2 * SECOND_NS, 0.0, 0);
        let stages = recorder.into_report(Histogram::new(), &profile.stages).stages;
        let counts: Vec<_> = stages.iter().map(|s| (s.from, s.done, s.failed)).collect();
        assert_eq!(counts, [(1.0, 2, 1), (5.0, 2, 0)]);
        assert_eq!((stages[1].begin_s, stages[1].end_s), (1.0, 2.0));
    }

    #[test]
    fn an_answer_after_the_end_still_counts() {
        let mut recorder = recorder(true);
        recorder.sent(&exchange(10, 10), 0, false, 0);
        recorder.end(SECOND_NS, 0.0, 0);
        let late_us = 2 * SECOND_NS / US;
        recorder.done(&exchange(10, 10), late_us * US, &answer(200, late_us));
        let report = recorder.into_report(Histogram::new(), &[]);
        assert_eq!((report.done, report.latency.count()), (1, 1));
        assert_eq!(report.end_ns, SECOND_NS);
    }

    #[test]
    fn what_was_sent_and_what_succeeded_is_told_of_each_target() {
        let mut recorder = recorder(false);
        let to = |target| Exchange { target, ..exchange(0, 0) };
        for (target, status) in [(0, 200), (1, 201), (1, 404), (1, 302)] {
            recorder.sent(&to(target), 0, false, 0);
            recorder.done(&to(target), 5, &answer(status, 0));
        }
        recorder.sent(&to(0), 0, false, 0);
        recorder.failed(&to(0), ErrorKind::Reset);
        let told = recorder.targets().iter().map(|t| (t.sent, t.succeeded)).collect::<Vec<_>>();
        assert_eq!(told, [(2, 1), (3, 1)]);
    }

    #[test]
    fn a_request_that_the_peer_did_not_process_was_not_sent_to_its_target() {
        let mut recorder = recorder(false);
        recorder.sent(&exchange(0, 0), 0, false, 0);
        recorder.not_processed(&exchange(0, 0));
        recorder.sent(&exchange(0, 0), 0, false, 0);
        assert_eq!(recorder.targets()[0].sent, 1);
        assert_eq!(finished(recorder).sent, 1);
    }

    #[test]
    fn bytes_are_those_of_heads_and_bodies() {
        let mut recorder = recorder(true);
        recorder.sent(&exchange(0, 0), 0, false, 11);
        recorder.done(&exchange(0, 0), 5, &answer(200, 0));
        recorder.read(150);
        let report = finished(recorder);
        assert_eq!((report.bytes_out, report.body_bytes_out), (40, 11));
        assert_eq!((report.bytes_in, report.body_bytes_in), (150, 3));
    }

    #[test]
    fn a_target_says_which_statuses_it_expects() {
        let expecting = Target { expect: vec![404], ..Target::get("http://b") };
        let targets = [Target::get("http://a"), expecting];
        let stages = Stages::new(&Profile::constant(1.0));
        let mut recorder = Recorder::new(1, &targets, false, &stages);
        recorder.begin(0, 0);
        for (target, status) in [(0, 200), (0, 404), (1, 404), (1, 200), (1, 200)] {
            let exchange = Exchange { target, ..exchange(0, 0) };
            recorder.done(&exchange, 5, &answer(status, 0));
        }
        let report = recorder.into_report(Histogram::new(), &[]);
        assert_eq!(report.unexpected, BTreeMap::from([(200, 2), (404, 1)]));
        assert_eq!((report.good(), report.failed()), (2, 3));
    }
}
