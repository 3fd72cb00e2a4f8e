//! Keeps what happened to the requests of one phase: counts, histograms, a series. Knows neither sockets nor
//! schedules, and allocates nothing while requests are counted.

use std::collections::BTreeMap;

use crate::clock::{SECOND_NS, Usage};
use crate::connection::Exchange;
use crate::{ErrorKind, Histogram, PhaseReport, SeriesPoint, Steps};

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
    sent: u64,
    done: u64,
    completed: u64,
    unsent: u64,
    waited: u64,
    used: Vec<bool>,
    statuses: Box<[u64; STATUSES]>,
    errors: BTreeMap<ErrorKind, u64>,
    bytes_out: u64,
    bytes_in: u64,
    latency: Latency,
    waiting: Option<Waiting>,
    series: Vec<SeriesPoint>,
    mean_in_flight: f64,
}

/// Latency of the interval under way and of all before it: one record for each request serves both.
#[derive(Debug, Default)]
struct Latency {
    interval: Histogram,
    earlier: Histogram,
    interval_begin_ns: u64,
}

/// What an open loop keeps besides latency. In a closed loop intended = sent, and both follow from latency.
#[derive(Debug, Default)]
struct Waiting {
    service_time: Histogram,
    send_lag: Histogram,
}

impl Recorder {
    /// For a phase that uses up to `connections`, in an open loop or a closed one.
    pub fn new(connections: usize, open_loop: bool) -> Recorder {
        Recorder {
            begin_ns: 0,
            end_ns: 0,
            usage: Usage::default(),
            sent: 0,
            done: 0,
            completed: 0,
            unsent: 0,
            waited: 0,
            used: vec![false; connections],
            statuses: Box::new([0; STATUSES]),
            errors: BTreeMap::new(),
            bytes_out: 0,
            bytes_in: 0,
            latency: Latency::default(),
            waiting: open_loop.then(Waiting::default),
            series: Vec::new(),
            mean_in_flight: 0.0,
        }
    }

    /// The phase begins, and with it its first interval.
    pub fn begin(&mut self, now_ns: u64) {
        self.begin_ns = now_ns;
        self.end_ns = now_ns;
        self.latency.interval_begin_ns = now_ns;
        self.usage = Usage::now();
    }

    /// The phase ended at `end_ns`; answers may still come in.
    pub fn end(&mut self, end_ns: u64, mean_in_flight: f64) {
        self.close_interval(end_ns);
        self.end_ns = end_ns;
        self.usage = Usage::now().since(self.usage);
        self.mean_in_flight = mean_in_flight;
    }

    /// A request was handed to the kernel on the connection in `slot`.
    pub fn sent(&mut self, exchange: &Exchange, slot: usize, waited: bool) {
        self.sent += 1;
        self.waited += u64::from(waited);
        self.used[slot] = true;
        if let Some(waiting) = &mut self.waiting {
            waiting.send_lag.record_ns(exchange.sent_ns - exchange.intended_ns);
        }
    }

    /// A request was answered.
    pub fn done(&mut self, exchange: &Exchange, done_ns: u64, status: u16) {
        self.done += 1;
        self.statuses[usize::from(status)] += 1;
        self.latency.interval.record_ns(done_ns - exchange.intended_ns);
        if let Some(waiting) = &mut self.waiting {
            waiting.service_time.record_ns(done_ns - exchange.sent_ns);
        }
    }

    /// An answer came in during the phase, whichever phase had sent the request.
    pub fn completed(&mut self) {
        self.completed += 1;
    }

    /// A request, or an attempt to connect, failed.
    pub fn failed(&mut self, kind: ErrorKind) {
        *self.errors.entry(kind).or_default() += 1;
    }

    /// So many requests fell due and will never be sent.
    pub fn never_sent(&mut self, requests: u64) {
        self.unsent += requests;
    }

    /// Bytes were written.
    pub fn wrote(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }

    /// Bytes were read.
    pub fn read(&mut self, bytes: u64) {
        self.bytes_in += bytes;
    }

    /// When the phase began, nanoseconds.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// When the interval under way is over, nanoseconds.
    pub fn interval_end_ns(&self) -> u64 {
        self.latency.interval_begin_ns + INTERVAL_NS
    }

    /// The intervals that are over.
    pub fn series(&self) -> &[SeriesPoint] {
        &self.series
    }

    /// All errors so far.
    pub fn errors(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Ends the interval under way. One that has just begun adds no point: its rate would be noise.
    pub fn close_interval(&mut self, now_ns: u64) {
        let length_ns = now_ns.saturating_sub(self.latency.interval_begin_ns);
        if length_ns >= INTERVAL_NS / 2 {
            let since_begin_ns = now_ns.saturating_sub(self.begin_ns);
            self.series.push(self.latency.point(since_begin_ns, length_ns));
        }
        self.latency.fold(now_ns);
    }

    /// The finished report.
    pub fn into_report(mut self) -> PhaseReport {
        self.latency.fold(self.end_ns);
        let latency = self.latency.earlier;
        let (service_time, send_lag) = match self.waiting {
            Some(waiting) => (waiting.service_time, waiting.send_lag),
            None => (latency.clone(), zeros(self.sent)),
        };
        PhaseReport {
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
            scheduled: self.sent + self.unsent,
            sent: self.sent,
            done: self.done,
            completed: self.completed,
            unsent: self.unsent,
            waited_for_connection: self.waited,
            connections_used: self.used.iter().filter(|used| **used).count() as u64,
            statuses: by_code(&self.statuses),
            errors: self.errors,
            grpc_statuses: BTreeMap::new(),
            body_bytes_out: 0,
            body_bytes_in: 0,
            steps: Steps::default(),
            iterations: Histogram::new(),
            clients: (0, 0),
            stages: Vec::new(),
            bytes_out: self.bytes_out,
            bytes_in: self.bytes_in,
            latency,
            service_time,
            send_lag,
            series: self.series,
            cpu_ns: self.usage.cpu_ns,
            mean_in_flight: self.mean_in_flight,
            involuntary_switches: self.usage.involuntary_switches,
        }
    }
}

impl Latency {
    fn point(&self, at_ns: u64, length_ns: u64) -> SeriesPoint {
        SeriesPoint {
            at_s: at_ns as f64 / SECOND_NS as f64,
            throughput_per_s: self.interval.count() as f64 * SECOND_NS as f64 / length_ns as f64,
            p50_us: self.interval.quantile_us(0.5),
            p99_us: self.interval.quantile_us(0.99),
        }
    }

    fn fold(&mut self, now_ns: u64) {
        self.earlier.merge(&self.interval);
        self.interval.clear();
        self.interval_begin_ns = now_ns;
    }
}

fn zeros(count: u64) -> Histogram {
    let mut histogram = Histogram::new();
    histogram.0.saturating_record_n(0, count);
    histogram
}

fn by_code(statuses: &[u64; STATUSES]) -> BTreeMap<u16, u64> {
    let counts = (0..).zip(statuses.iter().copied());
    counts.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;

    const US: u64 = 1_000;

    fn exchange(intended_us: u64, sent_us: u64) -> Exchange {
        let (intended_ns, sent_ns) = (intended_us * US, sent_us * US);
        Exchange { phase: Phase::Measure, intended_ns, sent_ns }
    }

    fn record(open_loop: bool, intended_us: u64, sent_us: u64, done_us: u64) -> PhaseReport {
        let mut recorder = Recorder::new(2, open_loop);
        recorder.begin(0);
        recorder.sent(&exchange(intended_us, sent_us), 1, false);
        recorder.done(&exchange(intended_us, sent_us), done_us * US, 200);
        recorder.end(SECOND_NS, 0.0);
        recorder.into_report()
    }

    #[track_caller]
    fn assert_holds_one_of(histogram: &Histogram, value_us: f64) {
        assert_eq!(histogram.count(), 1);
        let seen = histogram.quantile_us(0.5);
        assert!((seen - value_us).abs() <= value_us / 1000.0, "{seen} us instead of {value_us} us");
    }

    #[test]
    fn a_late_send_counts_toward_latency_not_service_time() {
        let report = record(true, 100, 350, 500);
        assert_holds_one_of(&report.latency, 400.0);
        assert_holds_one_of(&report.service_time, 150.0);
        assert_holds_one_of(&report.send_lag, 250.0);
    }

    #[test]
    fn a_closed_loop_intends_what_it_sends() {
        let report = record(false, 350, 350, 500);
        assert_holds_one_of(&report.latency, 150.0);
        assert_holds_one_of(&report.service_time, 150.0);
        assert_holds_one_of(&report.send_lag, 0.0);
    }

    #[test]
    fn intervals_add_up_to_the_phase() {
        let mut recorder = Recorder::new(1, false);
        recorder.begin(0);
        for k in 1..=10 {
            recorder.done(&exchange(0, 0), k * 10 * US, 200);
            recorder.close_interval(k * INTERVAL_NS);
        }
        recorder.done(&exchange(0, 0), 110 * US, 503);
        recorder.end(10 * INTERVAL_NS + INTERVAL_NS / 10, 0.0);
        let report = recorder.into_report();
        assert_eq!(report.latency.count(), 11);
        assert_eq!(report.series.len(), 10, "a stub of an interval is no point");
        assert_eq!(report.series[3].throughput_per_s, 4.0);
        assert_eq!(report.statuses, BTreeMap::from([(200, 10), (503, 1)]));
    }

    #[test]
    fn an_answer_after_the_end_still_counts() {
        let mut recorder = Recorder::new(1, true);
        recorder.begin(0);
        recorder.sent(&exchange(10, 10), 0, false);
        recorder.end(SECOND_NS, 0.0);
        recorder.done(&exchange(10, 10), 2 * SECOND_NS, 200);
        let report = recorder.into_report();
        assert_eq!((report.done, report.latency.count()), (1, 1));
        assert_eq!(report.end_ns, SECOND_NS);
    }
}
