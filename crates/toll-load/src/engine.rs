//! Follows the event loops through a plan: agrees with them on when each phase begins, adds their numbers up.
//!
//! The coordinator never touches a request. Four times a second it adds the loops' intervals to a series, tells
//! the caller, and judges whether the warm-up may end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::checks::check;
use crate::clock::{SECOND_NS, now_ns, unix_ns};
use crate::control::{Control, Inbox, Signal};
use crate::merge::Parts;
use crate::recorder::{INTERVAL_NS, Recorder, Taken};
use crate::report::REPORT_VERSION;
use crate::setup::{Length, Setup};
use crate::shard::Finished;
use crate::steady::is_stable;
use crate::{
    Histogram, LoadError, LoadEvent, LoadReport, Phase, Sample, SeriesPoint, TargetReport,
};

/// Between the agreement on an instant and the instant: time for every loop to hear of it, nanoseconds.
const NOTICE_NS: u64 = 2_000_000;
/// How often the coordinator looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Takes a batch of samples.
pub type TakeSamples<'a> = dyn FnMut(&[Sample]) + 'a;

/// Who listens while a load runs.
pub struct Listener<'a> {
    /// Set to end the load early.
    pub stop: &'a AtomicBool,
    /// Gets the events before the report, each without delay.
    pub emit: &'a mut dyn FnMut(LoadEvent),
    /// Gets every single request of the measured phase, in batches, not in order.
    pub samples: Option<&'a mut TakeSamples<'a>>,
}

/// Follows the event loops through the phases.
pub(crate) struct Coordinator<'a, 'l> {
    setup: &'a Setup,
    control: &'a Control,
    inbox: Inbox,
    listener: Listener<'l>,
    threads: usize,
    ready: usize,
    draining: Vec<u64>,
    running: usize,
    warm_up: Course,
    measured: Course,
    /// The phase that was reported to the caller last.
    reported: Option<Phase>,
}

/// One phase as the coordinator sees it.
struct Course {
    begin_ns: u64,
    /// Latencies of the intervals over, for each event loop.
    latencies: Vec<Histogram>,
    errors: Vec<u64>,
    shares: Vec<f64>,
    /// Number of the next interval of each loop.
    next: Vec<u64>,
    /// Whether a loop has given its last one.
    ended: Vec<bool>,
    /// Intervals that not every loop has given yet.
    open: BTreeMap<u64, Gathered>,
    series: Vec<SeriesPoint>,
}

struct Gathered {
    first: usize,
    latency: Box<Histogram>,
    end_ns: u64,
}

impl<'a, 'l> Coordinator<'a, 'l> {
    /// Before the loops have said anything.
    pub fn new(
        setup: &'a Setup,
        control: &'a Control,
        inbox: Inbox,
        listener: Listener<'l>,
    ) -> Coordinator<'a, 'l> {
        let threads = setup.plan.threads as usize;
        Coordinator {
            setup,
            control,
            inbox,
            listener,
            threads,
            ready: 0,
            draining: Vec::new(),
            running: threads,
            warm_up: Course::new(threads),
            measured: Course::new(threads),
            reported: None,
        }
    }

    /// Listens until every loop has ended.
    ///
    /// # Errors
    /// When the agreed instant is past.
    pub fn follow(&mut self) -> Result<(), LoadError> {
        while self.running > 0 {
            if self.listener.stop.load(Ordering::Relaxed) && !self.control.is_stopped() {
                self.control.stop();
            }
            self.tell_phases();
            match self.inbox.signals.recv_timeout(self.patience()) {
                Ok((thread, signal)) => self.hear(thread, signal)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    /// Until the next phase begins, or the next look at `stop`.
    fn patience(&self) -> Duration {
        let next_ns = match self.reported {
            None => self.control.begin_ns(),
            Some(Phase::WarmUp) => self.control.measure_ns(),
            _ => u64::MAX,
        };
        LOOK.min(Duration::from_nanos(next_ns.saturating_sub(now_ns())))
    }

    fn hear(&mut self, thread: usize, signal: Signal) -> Result<(), LoadError> {
        match signal {
            Signal::Ready => {
                self.ready += 1;
                if self.ready == self.threads {
                    self.agree_on_begin()?;
                }
            }
            Signal::Interval { phase, taken, end_ns, share } => {
                self.on_interval(thread, phase, taken, end_ns, share);
            }
            Signal::Samples(samples) => {
                if let Some(take) = &mut self.listener.samples {
                    take(&samples);
                }
                self.inbox.took_samples();
            }
            Signal::Draining { at_ns } => {
                self.draining.push(at_ns);
                self.tell_phases();
                self.measured.ended[thread] = true;
                self.complete_whole(Phase::Measure);
            }
            Signal::Ended => self.running -= 1,
        }
        Ok(())
    }

    fn agree_on_begin(&mut self) -> Result<(), LoadError> {
        let earliest_ns = now_ns() + NOTICE_NS;
        let begin_ns = match self.setup.plan.start_at_unix_ns {
            None => earliest_ns,
            Some(start_ns) => {
                let wait_ns = start_ns.checked_sub(unix_ns()).filter(|wait| *wait > NOTICE_NS);
                let Some(wait_ns) = wait_ns else {
                    self.control.stop();
                    return Err(LoadError::StartIsPast);
                };
                now_ns() + wait_ns
            }
        };
        let measure_ns = begin_ns + self.setup.warm_up_max_ns;
        self.warm_up.begin_ns = begin_ns;
        self.control.begin_at(begin_ns, measure_ns);
        Ok(())
    }

    /// Tells the caller of the phases that have begun.
    fn tell_phases(&mut self) {
        let now_ns = now_ns();
        if self.reported.is_none() && self.control.has_begun(now_ns) {
            self.tell(Phase::WarmUp, self.control.begin_ns());
        }
        if self.reported == Some(Phase::WarmUp) && self.control.measure_ns() <= now_ns {
            self.measured.begin_ns = self.control.measure_ns();
            self.tell(Phase::Measure, self.control.measure_ns());
        }
        if self.reported == Some(Phase::Measure) && self.draining.len() == self.threads {
            let at_ns = self.draining.iter().copied().max().unwrap_or(now_ns);
            self.tell(Phase::Drain, at_ns);
        }
    }

    fn tell(&mut self, phase: Phase, at_ns: u64) {
        self.reported = Some(phase);
        (self.listener.emit)(LoadEvent::Phase { phase, at_ns });
    }

    fn on_interval(
        &mut self,
        thread: usize,
        phase: Phase,
        taken: Taken,
        end_ns: u64,
        share: Option<f64>,
    ) {
        // An interval of the measured phase may come before this thread has noticed that the phase began.
        self.tell_phases();
        let course = if phase == Phase::WarmUp { &mut self.warm_up } else { &mut self.measured };
        course.errors[thread] = taken.errors;
        course.shares[thread] = share.unwrap_or(0.0);
        if let Some(spare) = course.add(thread, taken, end_ns) {
            self.inbox.give_back(thread, spare);
        }
        self.complete_whole(phase);
    }

    /// Completes the intervals to which no loop has anything more to add.
    fn complete_whole(&mut self, phase: Phase) {
        loop {
            let course =
                if phase == Phase::WarmUp { &mut self.warm_up } else { &mut self.measured };
            let Some(number) = course.first_whole() else { return };
            self.complete(phase, number);
        }
    }

    fn complete(&mut self, phase: Phase, number: u64) {
        let course = if phase == Phase::WarmUp { &mut self.warm_up } else { &mut self.measured };
        let Some(gathered) = course.open.remove(&number) else { return };
        let point = course.point(number, &gathered);
        let errors = course.errors.iter().sum();
        let released = course.shares.iter().sum::<f64>() / self.threads as f64;
        self.inbox.give_back(gathered.first, gathered.latency);
        let Some(point) = point else { return };
        course.series.push(point);
        let share = match (phase, self.setup.length) {
            (Phase::Measure, Length::Time(ns)) => {
                Some((point.at_s * SECOND_NS as f64 / ns as f64).min(1.0))
            }
            (Phase::Measure, Length::Requests(_)) => Some(released),
            // Warm-up ends when it is stable, nobody knows when.
            _ => None,
        };
        let SeriesPoint { at_s: elapsed_s, throughput_per_s, p50_us, p99_us } = point;
        (self.listener.emit)(LoadEvent::Progress {
            phase,
            elapsed_s,
            share,
            throughput_per_s,
            p50_us,
            p99_us,
            errors,
        });
        if phase == Phase::WarmUp {
            self.judge_warm_up();
        }
    }

    fn judge_warm_up(&mut self) {
        let now_ns = now_ns();
        let earliest_ns = self.warm_up.begin_ns + self.setup.warm_up_min_ns;
        if now_ns >= earliest_ns && is_stable(&self.warm_up.series) {
            self.control.measure_at(now_ns + NOTICE_NS);
        }
    }

    /// The report, from what the loops have left.
    pub fn into_report(self, finished: Vec<Finished>) -> LoadReport {
        let opened = finished.iter().map(|f| f.opened).sum();
        let samples_lost = finished.iter().map(|f| f.samples_lost).sum();
        let targets = targets(&finished, self.setup.plan.targets.len());
        let (warm_ups, measured): (Vec<Recorder>, Vec<Recorder>) =
            finished.into_iter().map(|f| (f.warm_up, f.measured)).unzip();
        let warm_up_stable = is_stable(&self.warm_up.series);
        let warm_up = self.warm_up.into_report(warm_ups, self.setup);
        let measure = self.measured.into_report(measured, self.setup);
        LoadReport {
            version: REPORT_VERSION,
            warm_up_stable,
            sent_in_all_phases: warm_up.sent + measure.sent,
            targets,
            connections_opened: opened,
            resolve_us: self.setup.resolved_in.as_nanos() as f64 / 1e3,
            threads: self.setup.plan.threads,
            samples_lost,
            measure_begin_unix_ns: measure.begin_ns + self.control.unix_offset_ns(),
            checks: check(&self.setup.plan, &measure),
            warm_up,
            measure,
        }
    }
}

/// By target, of all loops and phases.
fn targets(finished: &[Finished], count: usize) -> Vec<TargetReport> {
    let mut targets = vec![TargetReport::default(); count];
    for recorder in finished.iter().flat_map(|f| [&f.warm_up, &f.measured]) {
        targets.iter_mut().zip(recorder.targets()).for_each(|(sum, part)| sum.absorb(*part));
    }
    targets
}

impl Course {
    fn new(threads: usize) -> Course {
        Course {
            begin_ns: 0,
            latencies: vec![Histogram::new(); threads],
            errors: vec![0; threads],
            shares: vec![0.0; threads],
            next: vec![0; threads],
            ended: vec![false; threads],
            open: BTreeMap::new(),
            series: Vec::new(),
        }
    }

    /// Adds a loop's interval; gives the histogram back when it is not needed any more.
    fn add(&mut self, thread: usize, taken: Taken, end_ns: u64) -> Option<Box<Histogram>> {
        self.latencies[thread].merge(&taken.latency);
        self.next[thread] = taken.number + 1;
        match self.open.get_mut(&taken.number) {
            None => {
                let Taken { number, latency, .. } = taken;
                self.open.insert(number, Gathered { first: thread, latency, end_ns });
                None
            }
            Some(gathered) => {
                gathered.latency.merge(&taken.latency);
                gathered.end_ns = gathered.end_ns.max(end_ns);
                Some(taken.latency)
            }
        }
    }

    /// The earliest interval not reported yet, if every loop has given it, or has ended before it.
    fn first_whole(&self) -> Option<u64> {
        let number = *self.open.keys().next()?;
        let mut loops = self.next.iter().zip(&self.ended);
        loops.all(|(next, ended)| *next > number || *ended).then_some(number)
    }

    /// The point of a whole interval. One that was cut short adds none: its rate would be noise.
    fn point(&self, number: u64, gathered: &Gathered) -> Option<SeriesPoint> {
        let begin_ns = number * INTERVAL_NS;
        let end_ns = gathered.end_ns.saturating_sub(self.begin_ns).min(begin_ns + INTERVAL_NS);
        let length_ns = end_ns.saturating_sub(begin_ns);
        let latency = &gathered.latency;
        (length_ns >= INTERVAL_NS / 2).then(|| SeriesPoint {
            at_s: end_ns as f64 / SECOND_NS as f64,
            throughput_per_s: latency.count() as f64 * SECOND_NS as f64 / length_ns as f64,
            p50_us: latency.quantile_us(0.5),
            p99_us: latency.quantile_us(0.99),
        })
    }

    fn into_report(self, recorders: Vec<Recorder>, setup: &Setup) -> crate::PhaseReport {
        let parts = recorders.into_iter().zip(self.latencies);
        let mut reports = parts.map(|(recorder, latency)| {
            recorder.into_report(latency, &crate::setup::profile(&setup.plan.model).stages)
        });
        let mut whole = reports.next().unwrap_or_default();
        reports.for_each(|part| whole.absorb(&part, Parts::AtOnce));
        whole.series = self.series;
        whole
    }
}
