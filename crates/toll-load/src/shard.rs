//! One event loop: its share of the load on a thread of its own, in three phases (docs/method.md rules 9 and 10).
//!
//! Composes what does not know each other: a source (when), the pool (on which connection), the requests (what)
//! and recorders (what is kept). Nothing is allocated or formatted for a request. All instants are
//! `CLOCK_MONOTONIC`.

use nix::sys::epoll::EpollFlags;

use crate::clients::{After, Crew};
use crate::clock::now_ns;
use crate::connection::{OpenFault, Scratch};
use crate::connections::{Connections, Kept};
use crate::control::{Control, Outbox, Signal};
use crate::http2::Completion;
use crate::occupancy::Occupancy;
use crate::plan::{LoadModel, Reuse};
use crate::poller::{Poller, Source as EventSource};
use crate::pool::{Exchange, Pool, Unopened};
use crate::recorder::Recorder;
use crate::releases::{Arriving, Bound, Budget, Due};
use crate::report::{ErrorKind, Phase, Sample};
use crate::requests::Requests;
use crate::schedule::{Clients, Schedule};
use crate::setup::{Length, Setup};
use crate::transport::TlsFault;
use crate::{Arrivals, LoadError};

/// Bytes read from a socket at a time.
const BUFFER: usize = 64 * 1024;
/// Bounds of the time between two looks at timeouts and at slots that rest, nanoseconds.
const SWEEP_NS: (u64, u64) = (5_000_000, 100_000_000);
/// One send in so many is timed.
const TIMED_SENDS: u64 = 16;
/// After a stop, answers that are due are waited for at most so long, nanoseconds.
const STOPPED_DRAIN_NS: u64 = 500_000_000;

/// What a finished event loop leaves.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Numbers of the warm-up.
    pub warm_up: Recorder,
    /// Numbers of the measured phase.
    pub measured: Recorder,
    /// Connections opened in all phases.
    pub opened: u64,
    /// Number of the request that would have come next.
    pub next_number: u64,
    /// Samples that nobody took in time.
    pub samples_lost: u64,
}

/// What releases requests.
#[derive(Debug)]
enum Source<'a> {
    Clients(Crew),
    Arrivals { law: &'a Arrivals, arriving: Option<Arriving> },
}

/// An exchange that came to its end.
#[derive(Debug, Clone, Copy)]
struct Ended {
    exchange: Exchange,
    lane: usize,
    completion: Completion,
}

/// An event loop.
#[derive(Debug)]
pub(crate) struct Shard<'a> {
    setup: &'a Setup,
    thread: u32,
    control: &'a Control,
    outbox: Outbox,
    route: usize,
    poller: Poller,
    pool: Pool,
    requests: Requests,
    source: Source<'a>,
    budget: Budget,
    phase: Phase,
    has_begun: bool,
    warm_up: Recorder,
    measured: Recorder,
    occupancy: Occupancy,
    /// When a request was last sent, answered or given up.
    last_exchange_ns: u64,
    next_sweep_ns: u64,
    per_request: bool,
    sends: u64,
    /// Connections with requests that wait to be written together.
    unflushed: Vec<usize>,
    first_failure: Option<LoadError>,
    is_refused: bool,
    scratch: Scratch,
    ended: Vec<Ended>,
}

impl<'a> Shard<'a> {
    /// An event loop with the connections that an earlier plan of this kind has left.
    ///
    /// # Errors
    /// When the kernel gives no event queue.
    pub fn new(
        setup: &'a Setup,
        thread: u32,
        control: &'a Control,
        outbox: Outbox,
        kept: &mut Kept,
    ) -> Result<Shard<'a>, LoadError> {
        let plan = &setup.plan;
        let slice = setup.slice(thread);
        let (source, clients) = match &plan.model {
            LoadModel::Closed { clients, iteration } => {
                let crew =
                    Crew::new(Clients::new(clients)?, *iteration, slice, setup.warm_up_max_ns > 0);
                let size = crew.size();
                (Source::Clients(crew), size)
            }
            LoadModel::Open { arrivals, .. } => {
                (Source::Arrivals { law: arrivals, arriving: None }, 0)
            }
        };
        let shape = setup.shape(thread, clients);
        let slots = shape.slots * setup.origins.len();
        let open_loop = shape.shared;
        let recorder = || Recorder::new(slots, &plan.targets, open_loop, &setup.stages);
        let Connections { route, poller, pool } = kept.take(setup, shape, control.call(thread))?;
        let now_ns = now_ns();
        Ok(Shard {
            route,
            poller,
            pool,
            requests: setup.requests(thread)?,
            source,
            budget: Budget::new(Bound::Requests(0)),
            phase: Phase::WarmUp,
            has_begun: false,
            warm_up: recorder(),
            measured: recorder(),
            occupancy: Occupancy::new(plan.seed.wrapping_add(thread.into()), now_ns),
            last_exchange_ns: now_ns,
            next_sweep_ns: now_ns,
            per_request: plan.connection.reuse == Reuse::PerRequest,
            sends: 0,
            unflushed: Vec::new(),
            first_failure: None,
            is_refused: false,
            scratch: Scratch { buffer: vec![0; BUFFER], completions: Vec::new(), now_ns },
            ended: Vec::new(),
            setup,
            thread,
            control,
            outbox,
        })
    }

    /// Opens the first connections, waits for the agreed instant, carries the load out, and leaves the connections
    /// to the next plan.
    ///
    /// # Errors
    /// When not one connection can be made, or the load is stopped before it is measured.
    pub fn run(mut self) -> Result<(Finished, Connections), LoadError> {
        self.catch_up()?;
        self.open()?;
        self.outbox.ready();
        while !self.control.has_begun(now_ns()) {
            self.turn()?;
            self.check_stop()?;
        }
        self.warm_up()?;
        self.measure()?;
        self.drain()?;
        let finished = Finished {
            warm_up: self.warm_up,
            measured: self.measured,
            opened: self.pool.opened(),
            next_number: self.requests.next_number(),
            samples_lost: self.outbox.samples_lost(),
        };
        let Shard { route, poller, pool, .. } = self;
        Ok((finished, Connections { route, poller, pool }))
    }

    /// Notices what has become of the connections since an earlier plan: some the peer has closed, and no request
    /// of this plan shall be the one that finds out.
    fn catch_up(&mut self) -> Result<(), LoadError> {
        loop {
            match self.poller.look()? {
                0 => break,
                found => self.on_events(found),
            }
        }
        // What ended an idle connection is no reason not to run this plan.
        self.first_failure = None;
        self.is_refused = false;
        self.pool.resume();
        for slot in self.pool.ready() {
            self.serve_lanes(slot, now_ns());
        }
        Ok(())
    }

    /// Opens the connections that the load begins with, at least one to each origin. Others that fail are opened,
    /// and counted as errors, while the load runs.
    fn open(&mut self) -> Result<(), LoadError> {
        match &self.source {
            Source::Arrivals { .. } => self.pool.demand_first(),
            Source::Clients(crew) => {
                let lanes = crew.wanted_at_begin().max(1) * crew.requests() as usize;
                let lanes = if self.per_request { 1 } else { lanes };
                for bank in 0..self.setup.origins.len() {
                    for unit in
                        (0..lanes.min(self.pool.lanes_in_bank())).step_by(self.pool.streams())
                    {
                        let slot = self.pool.slot_of_lane(self.pool.lane_of(bank, unit));
                        self.pool.demand(slot);
                    }
                }
            }
        }
        while !self.pool.is_settled() && !self.control.is_stopped() {
            self.turn()?;
        }
        match self.first_failure.take() {
            Some(error) if !self.pool.has_reached_all() => Err(error),
            _ => self.check_stop(),
        }
    }

    fn check_stop(&self) -> Result<(), LoadError> {
        if self.control.is_stopped() { Err(LoadError::Stopped) } else { Ok(()) }
    }

    /// Runs the load until the coordinator says that it is to be measured.
    fn warm_up(&mut self) -> Result<(), LoadError> {
        self.begin(Phase::WarmUp, self.control.begin_ns(), Bound::Until(self.control.measure_ns()));
        while now_ns() < self.control.measure_ns() {
            self.turn()?;
            self.check_stop()?;
            self.budget.end_at(self.control.measure_ns());
        }
        self.end();
        let abandoned = self.abandon_waiting();
        self.warm_up.never_sent(abandoned);
        Ok(())
    }

    fn measure(&mut self) -> Result<(), LoadError> {
        let begin_ns = self.control.measure_ns();
        let bound = match self.setup.length_of(self.thread) {
            Length::Time(ns) => Bound::Until(begin_ns + ns),
            Length::Requests(requests) => Bound::Requests(requests),
        };
        self.begin(Phase::Measure, begin_ns, bound);
        while !self.is_over(now_ns()) && !self.is_stuck() && !self.control.is_stopped() {
            self.turn()?;
        }
        self.end();
        Ok(())
    }

    /// Waits for the answers that are due, at most until each of them has timed out.
    fn drain(&mut self) -> Result<(), LoadError> {
        self.phase = Phase::Drain;
        let begin_ns = now_ns();
        self.outbox.signal(Signal::Draining { at_ns: begin_ns });
        let stopped = self.control.is_stopped();
        let patience_ns = if stopped { STOPPED_DRAIN_NS } else { self.setup.timeout_ns };
        let end_ns = begin_ns + patience_ns.min(self.setup.timeout_ns);
        while self.has_unfinished() && now_ns() < end_ns {
            self.turn()?;
        }
        let abandoned = self.abandon_waiting();
        self.measured.never_sent(abandoned);
        if stopped {
            self.leave_unanswered();
        } else {
            self.give_up_on_sent_before(u64::MAX);
        }
        Ok(())
    }

    /// Drops the requests that wait for a connection; gives their number.
    fn abandon_waiting(&mut self) -> u64 {
        let abandoned = self.pool.abandon_waiting();
        if let Source::Clients(crew) = &mut self.source {
            abandoned.iter().for_each(|due| crew.abandon(due.client));
        }
        abandoned.len() as u64
    }

    /// A load that was stopped does not wait for its answers: these requests neither came back nor failed. Their
    /// connections are of no use to another plan.
    fn leave_unanswered(&mut self) {
        for lane in self.pool.busy_since_before(u64::MAX) {
            if let Some(exchange) = self.pool.vacate(lane) {
                self.recorder(exchange.phase).left_unanswered();
                self.pool.close(self.pool.slot_of_lane(lane));
            }
        }
    }

    fn begin(&mut self, phase: Phase, begin_ns: u64, bound: Bound) {
        self.phase = phase;
        self.has_begun = true;
        self.budget = Budget::new(bound);
        self.occupancy.restart(begin_ns.max(now_ns()));
        let stands = phase == Phase::WarmUp;
        let wanted = match &mut self.source {
            Source::Clients(crew) => {
                crew.begin(begin_ns, stands);
                crew.wanted() as u64
            }
            Source::Arrivals { law, arriving } => {
                let slice = self.setup.slice(self.thread);
                let seed = self.setup.plan.seed;
                let made = if stands { Schedule::at_begin } else { Schedule::new };
                let schedule = made(law, seed, slice).expect("the set-up has made it once");
                *arriving = Some(Arriving::new(schedule, begin_ns));
                0
            }
        };
        let spun_ns = self.poller.spun_ns();
        let recorder = self.recorder(phase);
        recorder.begin(begin_ns, spun_ns);
        recorder.at_work(wanted);
    }

    fn end(&mut self) {
        let now_ns = now_ns();
        // What fell due in the last moment still goes.
        self.release(now_ns);
        let end_ns = self.budget.end_ns().map_or(now_ns, |end_ns| end_ns.min(now_ns));
        let left = match &self.source {
            Source::Arrivals { arriving: Some(arriving), .. } if self.budget.end_ns().is_some() => {
                arriving.left(end_ns)
            }
            _ => self.budget.missing(),
        };
        self.budget.close();
        let mean_in_flight = self.occupancy.mean(end_ns);
        self.give_interval(end_ns);
        let spun_ns = self.poller.spun_ns();
        let recorder = self.recorder(self.phase);
        recorder.never_sent(left);
        recorder.end(end_ns, mean_in_flight, spun_ns);
    }

    /// Whether the measured phase has come to its end: by the clock, or with the last of its answers.
    fn is_over(&self, now_ns: u64) -> bool {
        self.budget.is_over(now_ns) && (self.budget.end_ns().is_some() || !self.has_unfinished())
    }

    /// Whether a phase that ends by number would never end: requests are due, and for as long as a timeout
    /// none could be sent.
    fn is_stuck(&mut self) -> bool {
        if self.occupancy.in_flight() > 0 || self.budget.end_ns().is_some() {
            return false;
        }
        let now_ns = now_ns();
        let idle_since_ns = self.last_exchange_ns.max(self.measured.begin_ns());
        let overdue_ns = match &mut self.source {
            // A client that thinks is not stuck.
            Source::Clients(crew) => crew.next_alarm_ns().unwrap_or(0),
            Source::Arrivals { arriving, .. } => {
                let next = || arriving.as_mut().and_then(|a| a.next_due(&self.budget));
                self.pool.oldest_queued().or_else(next).unwrap_or(u64::MAX)
            }
        };
        overdue_ns <= now_ns && now_ns > overdue_ns.max(idle_since_ns) + self.setup.timeout_ns
    }

    fn has_unfinished(&self) -> bool {
        self.occupancy.in_flight() > 0 || self.pool.waiting() > 0
    }

    /// One turn of the event loop: send what is due, wait, take what has come.
    fn turn(&mut self) -> Result<(), LoadError> {
        let before_ns = now_ns();
        self.release(before_ns);
        self.open_connections(before_ns);
        let (due_ns, alarm_ns) = (self.next_due_ns(), self.next_alarm_ns());
        let found = self.poller.wait(due_ns, alarm_ns, now_ns())?;
        self.on_events(found);
        self.housekeep(now_ns());
        match self.first_failure.take_if(|_| self.is_refused) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    fn on_events(&mut self, found: usize) {
        let open_loop = matches!(self.source, Source::Arrivals { .. });
        for number in 0..found {
            let (source, flags) = self.poller.event(number);
            if let EventSource::Token(token) = source {
                self.on_event(token, flags);
            }
            if open_loop {
                self.release(now_ns());
            }
        }
    }

    /// Sends what is due.
    fn release(&mut self, now_ns: u64) {
        match self.source {
            Source::Clients(_) => self.release_clients(now_ns),
            Source::Arrivals { .. } => self.release_arrivals(now_ns),
        }
        self.flush_all();
    }

    fn release_clients(&mut self, now_ns: u64) {
        let Source::Clients(crew) = &mut self.source else { return };
        let before = crew.wanted();
        crew.advance(now_ns);
        let wanted = crew.wanted();
        if wanted != before {
            self.recorder(self.phase).at_work(wanted as u64);
        }
        self.end_thoughts(now_ns);
        while self.budget.allows(now_ns) {
            let Source::Clients(crew) = &mut self.source else { return };
            let Some(client) = crew.next_rested() else { return };
            self.begin_iteration(client, now_ns);
        }
    }

    fn end_thoughts(&mut self, now_ns: u64) {
        loop {
            let Source::Clients(crew) = &mut self.source else { return };
            let Some(took_ns) = crew.end_of_thought(now_ns) else { return };
            self.recorder(self.phase).iterated(took_ns);
        }
    }

    fn begin_iteration(&mut self, client: u32, now_ns: u64) {
        let Source::Clients(crew) = &mut self.source else { return };
        let each = crew.requests();
        let mut released = 0;
        while released < each && self.budget.allows(now_ns) {
            self.budget.spend();
            released += 1;
        }
        crew.begin_iteration(client, released, now_ns);
        for unit in 0..released {
            let target = self.requests.choose();
            let bank = self.requests.origin_of(target);
            let due = Due { intended_ns: now_ns, waited: false, target: target as u32, client };
            self.dispatch(self.pool.lane_of(bank, (client * each + unit) as usize), due, now_ns);
        }
    }

    /// Sends a request on its own lane, or lets it wait there for the connection.
    fn dispatch(&mut self, lane: usize, due: Due, now_ns: u64) {
        let slot = self.pool.slot_of_lane(lane);
        if self.pool.is_ready(slot) && self.pool.connection(slot).can_start() {
            self.send(lane, due, now_ns);
        } else {
            self.pool.wait_on(lane, due);
        }
    }

    fn release_arrivals(&mut self, now_ns: u64) {
        while self.pool.has_room() {
            let Source::Arrivals { arriving: Some(arriving), .. } = &mut self.source else {
                return;
            };
            let Some(intended_ns) = arriving.fall_due(&mut self.budget, now_ns) else { return };
            let target = self.requests.choose();
            let bank = self.requests.origin_of(target);
            let due = Due { intended_ns, waited: false, target: target as u32, client: 0 };
            match self.pool.take_idle(bank) {
                // Each is stamped on its own: what the sends before it took is lag of this one.
                Some(lane) => self.send(lane, due, crate::clock::now_ns()),
                None if self.pool.is_full(bank) => self.recorder(self.phase).never_sent(1),
                None => {
                    let waited = self.pool.is_at_its_limit(bank);
                    self.pool.queue(bank, Due { waited, ..due });
                }
            }
        }
    }

    fn open_connections(&mut self, now_ns: u64) {
        for Unopened { slot, error } in self.pool.open_connections(&self.poller, now_ns) {
            self.note_failure(slot, OpenFault::Connect(error));
            self.recorder(self.phase).not_opened(ErrorKind::Connect);
        }
    }

    /// When the next request is due, nanoseconds.
    fn next_due_ns(&mut self) -> u64 {
        let is_free = self.pool.has_room();
        let due_ns = match &mut self.source {
            Source::Clients(crew) => crew.next_alarm_ns(),
            // When every lane is busy, only an answer helps.
            Source::Arrivals { arriving: Some(arriving), .. } if is_free => {
                arriving.next_due(&self.budget)
            }
            Source::Arrivals { .. } => None,
        };
        due_ns.unwrap_or(u64::MAX)
    }

    /// When the loop must be awake for other reasons, nanoseconds.
    fn next_alarm_ns(&mut self) -> u64 {
        self.next_sweep_ns.min(match self.phase {
            _ if !self.has_begun => self.control.begin_ns(),
            Phase::Drain => u64::MAX,
            phase => {
                let interval_ns = self.recorder(phase).interval_end_ns();
                interval_ns.min(self.budget.end_ns().unwrap_or(u64::MAX))
            }
        })
    }

    fn on_event(&mut self, token: u64, flags: EpollFlags) {
        let Some(slot) = self.pool.slot_of(token) else { return };
        let hung_up = flags.intersects(EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP);
        let mut incoming = hung_up || flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLERR);
        if !self.pool.is_ready(slot) {
            self.on_progress(slot);
            if !self.pool.is_ready(slot) {
                return;
            }
            incoming |= self.pool.connection(slot).may_have_read_ahead();
        }
        if flags.contains(EpollFlags::EPOLLOUT) && self.pool.connection(slot).has_unwritten() {
            self.flush(slot);
        }
        if incoming && self.pool.is_ready(slot) {
            self.on_bytes(slot, hung_up);
        }
    }

    /// Goes on with the handshakes of a connection.
    fn on_progress(&mut self, slot: usize) {
        match self.pool.connection(slot).advance() {
            Ok(false) => {}
            Ok(true) => self.on_opened(slot),
            Err(fault) => {
                let kind = self.pool.connection(slot).opening_fails_as();
                self.on_not_opened(slot, kind, fault);
            }
        }
    }

    fn on_opened(&mut self, slot: usize) {
        self.pool.opened_one(slot);
        let connection = self.pool.connection(slot);
        let (connect_ns, tls_ns) = (connection.connect_ns(), connection.tls_ns());
        // What a load opens before it begins is the measured phase's: without a warm-up there is no other.
        let phase = if self.has_begun { self.phase } else { Phase::Measure };
        self.recorder(phase).opened(connect_ns, tls_ns);
        self.serve_lanes(slot, now_ns());
        self.flush_all();
    }

    /// Gives the lanes of a connection something to do, as far as the peer allows it: the request that waits on
    /// the lane, in an open loop any that waits for a connection.
    fn serve_lanes(&mut self, slot: usize, now_ns: u64) {
        let is_closed_loop = matches!(self.source, Source::Clients(_));
        if !self.pool.is_ready(slot) || (is_closed_loop && !self.pool.has_waiting(slot)) {
            return;
        }
        let (lanes, turn) = (self.pool.lanes_of(slot), self.pool.take_turn(slot));
        for number in 0..lanes.len() {
            if !self.pool.is_ready(slot) || !self.pool.connection(slot).can_start() {
                return;
            }
            let lane = lanes.start + (turn + number) % lanes.len();
            if let Some(due) = self.pool.take_waiting(lane) {
                self.send(lane, due, now_ns);
            } else if !is_closed_loop && self.pool.is_free(lane) {
                self.offer(lane, now_ns);
            }
        }
    }

    /// A free lane of an open loop takes the request that has waited longest.
    fn offer(&mut self, lane: usize, now_ns: u64) {
        match self.pool.next_queued(lane) {
            Some(due) => self.send(lane, due, now_ns),
            None => self.pool.park(lane),
        }
    }

    /// The first connection that fails tells best why a load cannot be run.
    fn note_failure(&mut self, slot: usize, fault: OpenFault) {
        if self.first_failure.is_none() {
            let origin = self.pool.origin(slot);
            self.first_failure = Some(match fault {
                OpenFault::Connect(source) => origin.connect_error(source),
                OpenFault::Tls(fault) => fault.into_load_error(origin),
            });
        }
    }

    fn on_not_opened(&mut self, slot: usize, kind: ErrorKind, fault: OpenFault) {
        self.note_failure(slot, fault);
        self.pool.close(slot);
        self.recorder(self.phase).not_opened(kind);
    }

    fn on_bytes(&mut self, slot: usize, hung_up: bool) {
        let received = self.pool.connection(slot).receive(&mut self.scratch, hung_up);
        let now_ns = self.scratch.now_ns;
        if let Some(fault) = received.refused {
            self.on_refused(slot, fault);
        }
        self.settle(slot, now_ns);
        self.recorder(self.phase).read(received.bytes);
    }

    /// A server may refuse a client's certificate after the handshake. Before it has answered anything that is
    /// no failed request: the load cannot be run.
    fn on_refused(&mut self, slot: usize, fault: TlsFault) {
        if self.first_failure.is_none() && !self.has_answers() {
            self.first_failure = Some(fault.into_load_error(self.pool.origin(slot)));
            self.is_refused = true;
        }
    }

    fn has_answers(&self) -> bool {
        self.warm_up.has_answers() || self.measured.has_answers()
    }

    /// Ends the exchanges that have completed. The next requests go first: while the service works on them,
    /// these are accounted for.
    fn settle(&mut self, slot: usize, now_ns: u64) {
        let mut ended = std::mem::take(&mut self.ended);
        let first = self.pool.lanes_of(slot).start;
        for completion in self.scratch.completions.drain(..) {
            let lane = first + completion.lane as usize;
            if let Some(exchange) = self.pool.vacate(lane) {
                self.occupancy.leave(now_ns);
                ended.push(Ended { exchange, lane, completion });
            }
        }
        for end in &ended {
            self.tell_edges(&end.exchange, now_ns);
        }
        if ended.iter().any(|end| !end.completion.processed) {
            ended.retain(|end| end.completion.processed || self.send_again(end));
        }
        let used_up = self.per_request && !ended.is_empty();
        if used_up || self.pool.connection(slot).is_over() {
            self.pool.close(slot);
        }
        if !ended.is_empty() {
            self.last_exchange_ns = now_ns;
        }
        for end in &ended {
            self.go_on(end, now_ns);
        }
        self.serve_lanes(slot, now_ns);
        self.flush(slot);
        self.flush_all();
        for end in ended.drain(..) {
            self.account(&end, now_ns);
        }
        self.ended = ended;
    }

    /// A request came to its end: what of its time in flight lies beyond the edges of a phase.
    fn tell_edges(&mut self, exchange: &Exchange, now_ns: u64) {
        let Exchange { phase, sent_ns, .. } = *exchange;
        self.recorder(phase).left(sent_ns, now_ns);
        if phase == Phase::WarmUp && self.phase != Phase::WarmUp {
            self.measured.inherited_left(sent_ns, now_ns);
        }
    }

    /// A request that the peer says it did not process waits for its turn again; it has not ended.
    fn send_again(&mut self, end: &Ended) -> bool {
        let Exchange { phase, target, client, intended_ns, .. } = end.exchange;
        self.recorder(phase).not_processed(&end.exchange);
        let due = Due { intended_ns, waited: true, target, client };
        match self.source {
            Source::Clients(_) => self.pool.wait_on(end.lane, due),
            Source::Arrivals { .. } => self.pool.queue_first(end.lane, due),
        }
        false
    }

    /// A client goes on after one of its requests has come to its end.
    fn go_on(&mut self, end: &Ended, now_ns: u64) {
        let Source::Clients(crew) = &mut self.source else { return };
        let client = end.exchange.client;
        let (after, took_ns) = crew.finished(client, now_ns);
        let counts = crew.has_iterations();
        if let Some(took_ns) = took_ns.filter(|_| counts) {
            self.recorder(end.exchange.phase).iterated(took_ns);
        }
        if after == After::Iteration && self.budget.allows(now_ns) {
            self.begin_iteration(client, now_ns);
        }
    }

    fn account(&mut self, end: &Ended, now_ns: u64) {
        let exchange = &end.exchange;
        let recorder = self.recorder(exchange.phase);
        match &end.completion.outcome {
            Ok(answer) => {
                recorder.done(exchange, now_ns, answer);
                if self.phase != Phase::Drain {
                    self.recorder(self.phase).completed();
                }
            }
            Err(kind) => recorder.failed(exchange, *kind),
        }
        if self.outbox.wants_samples() && exchange.phase != Phase::WarmUp {
            self.sample(end, now_ns);
        }
    }

    fn sample(&mut self, end: &Ended, now_ns: u64) {
        let Ended { exchange, lane, completion } = end;
        let offset_ns = self.control.unix_offset_ns();
        let (first_byte_ns, body_bytes) = match &completion.outcome {
            Ok(answer) => (answer.first_byte_ns, answer.body_bytes),
            Err(_) => (now_ns, 0),
        };
        let client = match &self.source {
            Source::Clients(crew) => crew.number_of(exchange.client),
            Source::Arrivals { .. } => *lane as u32,
        };
        self.outbox.sample(Sample {
            target: exchange.target,
            client,
            intended_ns: exchange.intended_ns + offset_ns,
            sent_ns: exchange.sent_ns + offset_ns,
            first_byte_ns: first_byte_ns + offset_ns,
            done_ns: now_ns + offset_ns,
            connect_ns: exchange.connect_ns,
            bytes_out: exchange.bytes_out,
            body_bytes_in: body_bytes.min(u32::MAX.into()) as u32,
            outcome: completion.outcome.map(|answer| answer.status),
        });
    }

    fn send(&mut self, lane: usize, due: Due, now_ns: u64) {
        let slot = self.pool.slot_of_lane(lane);
        let number = (lane - self.pool.lanes_of(slot).start) as u32;
        let message = self.requests.render(due.target as usize);
        let bytes_out = (message.head.len() + message.body.len()) as u32;
        let body_bytes = message.body_bytes;
        self.sends += 1;
        let connection = self.pool.connection(slot);
        let is_timed = self.sends.is_multiple_of(TIMED_SENDS) && !connection.is_multiplexed();
        let begin_ns = if is_timed { crate::clock::now_ns() } else { 0 };
        let started = connection.start(number, &message);
        let write_ns = is_timed.then(|| crate::clock::now_ns() - begin_ns);
        match started {
            Ok(true) => {}
            Ok(false) => return self.pool.wait_on(lane, due),
            Err(_) => return self.on_unsent(lane, due),
        }
        let exchange = Exchange {
            phase: self.phase,
            target: due.target,
            client: due.client,
            intended_ns: due.intended_ns,
            sent_ns: now_ns,
            connect_ns: self.pool.take_connect_ns(slot, due.intended_ns),
            bytes_out,
        };
        self.pool.occupy(lane, exchange);
        if self.unflushed.last() != Some(&slot) && self.pool.connection(slot).has_unwritten() {
            self.unflushed.push(slot);
        }
        self.occupancy.enter(now_ns);
        self.last_exchange_ns = now_ns;
        let recorder = self.recorder(exchange.phase);
        recorder.sent(&exchange, slot, due.waited, body_bytes);
        if let Some(write_ns) = write_ns {
            recorder.wrote(write_ns);
        }
    }

    /// The peer had closed the connection: the request goes over another.
    fn on_unsent(&mut self, lane: usize, due: Due) {
        let slot = self.pool.slot_of_lane(lane);
        self.pool.close(slot);
        match self.source {
            Source::Clients(_) => self.pool.wait_on(lane, due),
            Source::Arrivals { .. } => self.pool.queue_first(lane, due),
        }
    }

    /// Writes what waits on a connection.
    fn flush(&mut self, slot: usize) {
        if !self.pool.is_ready(slot) || !self.pool.connection(slot).has_unwritten() {
            return;
        }
        if self.pool.connection(slot).flush().is_err() {
            self.break_off(slot, ErrorKind::Reset, now_ns());
        }
    }

    /// Writes what the last sends have left to be written together.
    fn flush_all(&mut self) {
        while let Some(slot) = self.unflushed.pop() {
            self.flush(slot);
        }
    }

    /// Gives a connection up, and with it the requests in flight on it.
    fn break_off(&mut self, slot: usize, kind: ErrorKind, now_ns: u64) {
        self.pool.connection(slot).fail(kind, &mut self.scratch.completions);
        self.settle(slot, now_ns);
    }

    fn housekeep(&mut self, now_ns: u64) {
        if now_ns >= self.next_sweep_ns {
            let (shortest, longest) = SWEEP_NS;
            let timeout_ns = self.setup.timeout_ns;
            self.next_sweep_ns = now_ns + (timeout_ns / 10).clamp(shortest, longest);
            self.give_up_on_begun_before(now_ns.saturating_sub(timeout_ns));
            self.pool.wake_resting();
        }
        if self.has_begun
            && self.phase != Phase::Drain
            && now_ns >= self.recorder(self.phase).interval_end_ns()
        {
            self.give_interval(now_ns);
        }
    }

    /// Gives the coordinator the interval under way; when it has no empty histogram to give back, it grows on.
    fn give_interval(&mut self, end_ns: u64) {
        let phase = self.phase;
        if let Some(empty) = self.outbox.empty_histogram() {
            let share = self.budget.share_released();
            let taken = self.recorder(phase).take_interval(empty);
            self.outbox.signal(Signal::Interval { phase, taken, end_ns, share });
        }
    }

    fn give_up_on_begun_before(&mut self, begin_ns: u64) {
        for slot in self.pool.opening_since_before(begin_ns) {
            let kind = self.pool.connection(slot).opening_fails_as();
            let fault = match kind {
                ErrorKind::Tls => OpenFault::Tls(TlsFault::Silent),
                _ => OpenFault::Connect(std::io::ErrorKind::TimedOut.into()),
            };
            self.on_not_opened(slot, kind, fault);
        }
        self.give_up_on_sent_before(begin_ns);
        self.give_up_on_hopeless(begin_ns);
    }

    fn give_up_on_sent_before(&mut self, sent_ns: u64) {
        for lane in self.pool.busy_since_before(sent_ns) {
            self.give_up(lane);
        }
    }

    /// Requests whose connection cannot be made for as long as a timeout are never sent; their clients go on.
    fn give_up_on_hopeless(&mut self, due_ns: u64) {
        for due in self.pool.take_hopeless(due_ns) {
            self.recorder(self.phase).never_sent(1);
            let Source::Clients(crew) = &mut self.source else { continue };
            let now_ns = now_ns();
            let (after, _) = crew.finished(due.client, now_ns);
            if after == After::Iteration && self.budget.allows(now_ns) {
                self.begin_iteration(due.client, now_ns);
            }
        }
    }

    fn give_up(&mut self, lane: usize) {
        let slot = self.pool.slot_of_lane(lane);
        if !self.pool.is_busy(lane) || !self.pool.is_ready(slot) {
            return;
        }
        let now_ns = now_ns();
        let number = (lane - self.pool.lanes_of(slot).start) as u32;
        if !self.pool.connection(slot).cancel(number) {
            return self.break_off(slot, ErrorKind::Timeout, now_ns);
        }
        let outcome = Err(ErrorKind::Timeout);
        self.scratch.completions.push(Completion { lane: number, outcome, processed: true });
        self.settle(slot, now_ns);
    }

    /// Where a request counts: in the phase that released it; what waited until the drain was due before it.
    fn recorder(&mut self, phase: Phase) -> &mut Recorder {
        match phase {
            Phase::WarmUp => &mut self.warm_up,
            Phase::Measure | Phase::Drain => &mut self.measured,
        }
    }
}
