//! Runs a plan: one thread, one event loop, three phases (METHOD.md, rules 9 and 10).
//!
//! Composes what does not know each other: releases (when), the pool (on which connection) and recorders (what
//! is kept). Nothing is allocated or formatted for a request. All instants are `CLOCK_MONOTONIC`.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::epoll::{EpollEvent, EpollFlags, EpollTimeout};

use crate::checks::check;
use crate::clock::{SECOND_NS, now_ns};
use crate::connection::{Exchange, Received, State};
use crate::http::Answer;
use crate::occupancy::Occupancy;
use crate::pool::{Pool, Source};
use crate::recorder::Recorder;
use crate::releases::{Due, Releases};
use crate::setup::{Length, Setup};
use crate::steady::is_stable;
use crate::timer::Timer;
use crate::{ErrorKind, LoadError, LoadEvent, LoadPlan, LoadReport, Phase, SeriesPoint};

/// Version of [`LoadReport`].
const REPORT_VERSION: u32 = 1;
/// Events taken from the kernel at a time.
const EVENTS: usize = 256;
/// Bytes read from a socket at a time.
const BUFFER: usize = 64 * 1024;
/// Bounds of the time between two looks at timeouts and at slots that rest, nanoseconds.
const SWEEP_NS: (u64, u64) = (5_000_000, 100_000_000);

/// Runs a plan to its end and gives the report; `emit` gets the events before it, each without delay.
///
/// # Errors
/// When the plan cannot be carried out or not one connection can be made. Failed requests are no error.
pub fn run(plan: &LoadPlan, emit: &mut dyn FnMut(LoadEvent)) -> Result<LoadReport, LoadError> {
    run_until(plan, &AtomicBool::new(false), emit)
}

/// As [`run`]; ends with [`LoadError::Stopped`] within a tenth of a second once `stop` is set.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    plan: &LoadPlan,
    stop: &AtomicBool,
    emit: &mut dyn FnMut(LoadEvent),
) -> Result<LoadReport, LoadError> {
    let setup = Setup::new(plan)?;
    let mut engine = Engine::connect(setup, stop, emit)?;
    let warm_up_stable = engine.warm_up()?;
    engine.measure()?;
    engine.drain()?;
    Ok(engine.into_report(plan, warm_up_stable))
}

struct Engine<'a> {
    setup: Setup,
    stop: &'a AtomicBool,
    emit: &'a mut dyn FnMut(LoadEvent),
    timer: Timer,
    pool: Pool,
    phase: Phase,
    releases: Releases,
    occupancy: Occupancy,
    warm_up: Recorder,
    measured: Recorder,
    /// When a request was last sent, answered or given up.
    last_exchange_ns: u64,
    next_sweep_ns: u64,
    events: Vec<EpollEvent>,
    buffer: Vec<u8>,
}

impl<'a> Engine<'a> {
    /// An engine with the connections that the load begins with.
    fn connect(
        setup: Setup,
        stop: &'a AtomicBool,
        emit: &'a mut dyn FnMut(LoadEvent),
    ) -> Result<Engine<'a>, LoadError> {
        setup.raise_file_limit()?;
        let timer = Timer::calibrated()?;
        let (address, first) = setup.connect()?;
        let mut pool = Pool::new(address, setup.connections, setup.request.is_head, &timer)?;
        pool.adopt(first);
        for _ in 1..setup.connections_at_begin() {
            // Those that fail now are opened, and counted as errors, while the load runs.
            let Ok(stream) = setup.connect_to(address) else { break };
            pool.adopt(stream);
        }
        Ok(Engine::new(setup, stop, emit, timer, pool))
    }

    fn new(
        setup: Setup,
        stop: &'a AtomicBool,
        emit: &'a mut dyn FnMut(LoadEvent),
        timer: Timer,
        pool: Pool,
    ) -> Engine<'a> {
        let recorder = || Recorder::new(setup.connections, setup.schedule.is_some());
        let now_ns = now_ns();
        Engine {
            warm_up: recorder(),
            measured: recorder(),
            releases: setup.releases(Length::Time(0), now_ns),
            stop,
            emit,
            timer,
            pool,
            phase: Phase::WarmUp,
            occupancy: Occupancy::new(setup.seed, now_ns),
            last_exchange_ns: now_ns,
            next_sweep_ns: now_ns,
            events: vec![EpollEvent::empty(); EVENTS],
            buffer: vec![0; BUFFER],
            setup,
        }
    }

    /// Runs the load until its series is stable; gives whether it was.
    fn warm_up(&mut self) -> Result<bool, LoadError> {
        let begin_ns = self.begin(Phase::WarmUp, Length::Time(self.setup.warm_up_max_ns));
        let earliest_end_ns = begin_ns + self.setup.warm_up_min_ns;
        let mut judged = 0;
        while !self.releases.is_over(now_ns()) {
            self.turn()?;
            let series = self.warm_up.series();
            if series.len() > judged && now_ns() >= earliest_end_ns {
                judged = series.len();
                if is_stable(series) {
                    break;
                }
            }
        }
        self.end();
        self.warm_up.never_sent(self.releases.abandon());
        Ok(is_stable(self.warm_up.series()))
    }

    fn measure(&mut self) -> Result<(), LoadError> {
        self.begin(Phase::Measure, self.setup.length);
        while !self.releases.is_over(now_ns()) && !self.is_stuck() {
            self.turn()?;
        }
        self.end();
        Ok(())
    }

    /// Waits for the answers that are due, at most until each of them has timed out.
    fn drain(&mut self) -> Result<(), LoadError> {
        self.phase = Phase::Drain;
        let begin_ns = now_ns();
        (self.emit)(LoadEvent::Phase { phase: Phase::Drain, at_ns: begin_ns });
        let end_ns = begin_ns + self.setup.timeout_ns;
        while self.has_unfinished() && now_ns() < end_ns {
            self.turn()?;
        }
        self.measured.never_sent(self.releases.abandon());
        self.give_up_on_begun_before(u64::MAX);
        Ok(())
    }

    fn into_report(self, plan: &LoadPlan, warm_up_stable: bool) -> LoadReport {
        let (warm_up, measure) = (self.warm_up.into_report(), self.measured.into_report());
        LoadReport {
            version: REPORT_VERSION,
            warm_up_stable,
            resolve_us: 0.0,
            threads: 1,
            samples_lost: 0,
            measure_begin_unix_ns: 0,
            sent_in_all_phases: warm_up.sent + measure.sent,
            connections_opened: self.pool.opened(),
            checks: check(plan, &measure),
            warm_up,
            measure,
        }
    }

    fn begin(&mut self, phase: Phase, length: Length) -> u64 {
        let begin_ns = now_ns();
        self.phase = phase;
        self.releases = self.setup.releases(length, begin_ns);
        self.occupancy.restart(begin_ns);
        self.recorder(phase).begin(begin_ns);
        (self.emit)(LoadEvent::Phase { phase, at_ns: begin_ns });
        begin_ns
    }

    fn end(&mut self) {
        let now_ns = now_ns();
        // What fell due in the last moment still goes.
        self.release(now_ns);
        let end_ns = self.releases.end_ns().map_or(now_ns, |end_ns| end_ns.min(now_ns));
        let unsent = self.releases.close(now_ns);
        let mean_in_flight = self.occupancy.mean(end_ns);
        let recorder = self.recorder(self.phase);
        recorder.never_sent(unsent);
        recorder.end(end_ns, mean_in_flight);
    }

    /// Whether a phase that ends by number would never end: requests are due, and for as long as a timeout
    /// none could be sent.
    fn is_stuck(&mut self) -> bool {
        if self.occupancy.in_flight() > 0 || self.releases.end_ns().is_some() {
            return false;
        }
        let now_ns = now_ns();
        let idle_since_ns = self.last_exchange_ns.max(self.measured.begin_ns());
        let overdue = self.releases.overdue_since(now_ns);
        overdue.is_some_and(|due| now_ns > due.max(idle_since_ns) + self.setup.timeout_ns)
    }

    fn has_unfinished(&self) -> bool {
        self.occupancy.in_flight() > 0 || self.releases.wanted(now_ns()) > 0
    }

    /// One turn of the event loop: send what is due, wait, take what has come.
    fn turn(&mut self) -> Result<(), LoadError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        let before_ns = now_ns();
        self.release(before_ns);
        self.open_connections(before_ns);
        let count = self.wait()?;
        for index in 0..count {
            let event = self.events[index];
            self.on_event(&event);
            if self.releases.is_open() {
                self.release(now_ns());
            }
        }
        self.housekeep(now_ns());
        Ok(())
    }

    /// Sends what is due on connections that are idle.
    fn release(&mut self, now_ns: u64) {
        self.releases.pull(now_ns, self.pool.size() - self.occupancy.in_flight());
        while self.pool.has_idle() && self.releases.wanted(now_ns) > 0 {
            // Each is stamped on its own: what the sends before it took is lag of this one.
            let sent_ns = crate::clock::now_ns();
            match (self.releases.next(sent_ns), self.pool.take_idle()) {
                (Some(due), Some(slot)) => self.send(slot, due, sent_ns),
                _ => break,
            }
        }
    }

    fn open_connections(&mut self, now_ns: u64) {
        while self.pool.may_open(self.releases.wanted(now_ns)) {
            if !self.pool.open_one(now_ns) {
                self.recorder(self.phase).failed(ErrorKind::Connect);
            }
        }
    }

    /// Waits for events, until shortly before the next request is due; from then on only looks for them.
    fn wait(&mut self) -> Result<usize, LoadError> {
        let margin_ns = self.timer.margin_ns();
        let send_ns = self.releases.next_due().map(|due| due.saturating_sub(margin_ns));
        let wake_ns = self.next_alarm_ns().min(send_ns.unwrap_or(u64::MAX));
        if wake_ns <= now_ns() {
            return self.pool.wait(&mut self.events, EpollTimeout::ZERO);
        }
        self.timer.arm(wake_ns)?;
        self.pool.wait(&mut self.events, EpollTimeout::NONE)
    }

    fn next_alarm_ns(&mut self) -> u64 {
        let sweep_ns = self.next_sweep_ns;
        match self.phase {
            Phase::Drain => sweep_ns,
            phase => {
                let interval_ns = self.recorder(phase).interval_end_ns();
                let end_ns = self.releases.end_ns().unwrap_or(u64::MAX);
                sweep_ns.min(interval_ns).min(end_ns)
            }
        }
    }

    fn on_event(&mut self, event: &EpollEvent) {
        match self.pool.source(event) {
            Source::Timer => self.timer.woke(now_ns()),
            Source::Slot(slot) => self.on_slot(slot, event.events()),
            Source::Gone => {}
        }
    }

    fn on_slot(&mut self, slot: usize, flags: EpollFlags) {
        let hung_up = flags.intersects(EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP);
        let incoming = hung_up || flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLERR);
        match self.pool.connection(slot).state() {
            State::Connecting { .. } => self.on_connected(slot),
            State::Busy(exchange) => {
                if flags.contains(EpollFlags::EPOLLOUT) && !self.write_on(slot, &exchange) {
                    return;
                }
                if incoming {
                    self.on_bytes(slot, &exchange, hung_up);
                }
            }
            // The peer closed the connection, or spoke without being asked.
            State::Idle if incoming => self.pool.close(slot),
            State::Idle => {}
        }
    }

    fn on_connected(&mut self, slot: usize) {
        if self.pool.finish_connecting(slot) {
            self.on_free(slot, now_ns());
        } else {
            self.recorder(self.phase).failed(ErrorKind::Connect);
        }
    }

    /// Writes the rest of a request that did not fit; false when the connection broke.
    fn write_on(&mut self, slot: usize, exchange: &Exchange) -> bool {
        match self.pool.connection(slot).write_on(&self.setup.request.bytes) {
            Ok(0) => true,
            Ok(bytes) => {
                self.recorder(exchange.phase).wrote(bytes);
                true
            }
            Err(_) => {
                self.on_failure(slot, exchange, ErrorKind::Reset, now_ns());
                false
            }
        }
    }

    fn on_bytes(&mut self, slot: usize, exchange: &Exchange, hung_up: bool) {
        let (bytes, received) = self.pool.connection(slot).receive(&mut self.buffer, hung_up);
        let now_ns = now_ns();
        match received {
            Received::Incomplete => {}
            Received::Answer(answer) => self.on_answer(slot, exchange, answer, now_ns),
            Received::Failure(kind) => self.on_failure(slot, exchange, kind, now_ns),
        }
        self.recorder(exchange.phase).read(bytes);
    }

    fn on_answer(&mut self, slot: usize, exchange: &Exchange, answer: Answer, now_ns: u64) {
        self.occupancy.leave(now_ns);
        self.last_exchange_ns = now_ns;
        // The next request goes first: while the service works on it, this one is accounted for.
        if answer.keep_alive {
            self.on_free(slot, now_ns)
        } else {
            self.pool.close(slot)
        }
        self.recorder(exchange.phase).done(exchange, now_ns, answer.status);
        if self.phase != Phase::Drain {
            self.recorder(self.phase).completed();
        }
    }

    fn on_failure(&mut self, slot: usize, exchange: &Exchange, kind: ErrorKind, now_ns: u64) {
        self.occupancy.leave(now_ns);
        self.last_exchange_ns = now_ns;
        self.pool.close(slot);
        self.recorder(exchange.phase).failed(kind);
    }

    fn on_free(&mut self, slot: usize, now_ns: u64) {
        match self.releases.next(now_ns) {
            Some(due) => self.send(slot, due, now_ns),
            None => self.pool.park(slot),
        }
    }

    fn send(&mut self, slot: usize, due: Due, now_ns: u64) {
        let exchange =
            Exchange { phase: self.phase, intended_ns: due.intended_ns, sent_ns: now_ns };
        match self.pool.connection(slot).send(exchange, &self.setup.request.bytes) {
            Ok(bytes) => {
                self.last_exchange_ns = now_ns;
                self.occupancy.enter(now_ns);
                let recorder = self.recorder(exchange.phase);
                recorder.sent(&exchange, slot, due.waited);
                recorder.wrote(bytes);
            }
            Err(_) => {
                self.releases.put_back(due);
                self.pool.close(slot);
            }
        }
    }

    fn housekeep(&mut self, now_ns: u64) {
        if now_ns >= self.next_sweep_ns {
            let (shortest, longest) = SWEEP_NS;
            let timeout_ns = self.setup.timeout_ns;
            self.next_sweep_ns = now_ns + (timeout_ns / 10).clamp(shortest, longest);
            self.give_up_on_begun_before(now_ns.saturating_sub(timeout_ns));
            self.pool.wake_resting();
        }
        if self.phase != Phase::Drain && now_ns >= self.recorder(self.phase).interval_end_ns() {
            self.report_progress(now_ns);
        }
    }

    fn give_up_on_begun_before(&mut self, begin_ns: u64) {
        for (slot, state) in self.pool.begun_before(begin_ns) {
            match state {
                State::Busy(exchange) => {
                    self.on_failure(slot, &exchange, ErrorKind::Timeout, now_ns());
                }
                State::Connecting { .. } => {
                    self.pool.close(slot);
                    self.recorder(self.phase).failed(ErrorKind::Connect);
                }
                State::Idle => {}
            }
        }
    }

    fn report_progress(&mut self, now_ns: u64) {
        let recorder = self.recorder(self.phase);
        recorder.close_interval(now_ns);
        let elapsed_ns = now_ns - recorder.begin_ns();
        let errors = recorder.errors();
        let Some(point) = recorder.series().last().copied() else { return };
        let SeriesPoint { throughput_per_s, p50_us, p99_us, .. } = point;
        let elapsed_s = elapsed_ns as f64 / SECOND_NS as f64;
        let share = self.share_over(elapsed_ns);
        let phase = self.phase;
        (self.emit)(LoadEvent::Progress {
            phase,
            elapsed_s,
            share,
            throughput_per_s,
            p50_us,
            p99_us,
            errors,
        });
    }

    /// Share of the phase that is over. Warm-up ends when it is stable, nobody knows when.
    fn share_over(&self, elapsed_ns: u64) -> Option<f64> {
        match (self.phase, self.setup.length) {
            (Phase::Measure, Length::Time(ns)) => Some((elapsed_ns as f64 / ns as f64).min(1.0)),
            (Phase::Measure, Length::Requests(_)) => self.releases.share_released(),
            _ => None,
        }
    }

    /// Where a request counts: in the phase that released it; what waited until the drain was due before it.
    fn recorder(&mut self, phase: Phase) -> &mut Recorder {
        match phase {
            Phase::WarmUp => &mut self.warm_up,
            Phase::Measure | Phase::Drain => &mut self.measured,
        }
    }
}
