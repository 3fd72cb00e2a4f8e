//! The connections of an event loop, each in a numbered slot, and the lanes on them.
//!
//! Slots come in banks, one bank for each origin. A slot is open, vacant (may be opened) or resting: a peer that
//! refused it, or closed it before it took a request, is left alone until the next sweep, so that a dead target does
//! not cause a hot loop. Lanes outlive their connection: a request may wait on one for the next.

use std::collections::VecDeque;
use std::io;

use crate::connection::{Connection, Speech};
use crate::plan::ConnectionPlan;
use crate::poller::Poller;
use crate::releases::Due;
use crate::report::Phase;
use crate::transport::{LocalAddresses, Origin};

/// Handshakes under way at a time, half of the shortest accept queue in common use (128).
const MAX_CONNECTING: usize = 64;
/// Requests held back for all origins together when there are several: two megabytes.
const MOST_QUEUED: usize = 1 << 16;

/// A request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The phase it counts in.
    pub phase: Phase,
    /// Number of the plan's target.
    pub target: u32,
    /// Closed loop: the client.
    pub client: u32,
    /// When it ought to have been sent, nanoseconds.
    pub intended_ns: u64,
    /// When it was handed to the kernel, nanoseconds.
    pub sent_ns: u64,
    /// Time that its connection took to be made, when it is the first on it, nanoseconds.
    pub connect_ns: u64,
    /// Bytes of HTTP.
    pub bytes_out: u32,
}

/// What a lane is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Nothing, and nobody knows.
    Free,
    /// Nothing; it is among the idle lanes of its bank.
    Parked,
    /// A request waits for its connection, or for the peer to allow another stream.
    Waiting(Due),
    /// A request was sent, at least in part, and its answer is due.
    Busy(Exchange),
}

/// How many connections to each origin, and how they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Slots in each bank.
    pub slots: usize,
    /// Any connection of a bank carries any of its requests (open loop); otherwise a request has its own lane.
    pub shared: bool,
    /// How to speak on a connection, and its lanes.
    pub speech: Speech,
}

/// An attempt to open a connection that failed at once.
#[derive(Debug)]
pub(crate) struct Unopened {
    /// Where it would have been.
    pub slot: usize,
    /// What the kernel said.
    pub error: io::Error,
}

/// All connections of an event loop.
#[derive(Debug)]
pub(crate) struct Pool {
    shape: Shape,
    banks: Vec<Bank>,
    slots: Vec<Slot>,
    lanes: Vec<Lane>,
    resting: Vec<usize>,
    /// Requests that wait on lanes.
    waiting: usize,
    opened: u64,
}

/// The connections to one origin.
#[derive(Debug)]
struct Bank {
    origin: Origin,
    was_reached: bool,
    /// Connections that an earlier plan has left.
    left: usize,
    locals: LocalAddresses,
    /// Free lanes of open connections, the one used last on top: its caches are warm.
    idle: Vec<usize>,
    /// Slots to open for the requests that are queued.
    vacant: Vec<usize>,
    /// Slots to open for the requests that wait on their lanes.
    demanded: VecDeque<usize>,
    /// Handshakes under way. Each origin has its own: one that hangs must not hold up the others.
    connecting: usize,
    /// Requests that any connection of the bank may carry.
    waiting: VecDeque<Due>,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Connection>,
    /// Tells the events of this connection from those of its predecessor in the slot.
    generation: u32,
    /// Its lanes with a request that waits.
    waiting: u32,
    demanded: bool,
    resting: bool,
    /// The lane that was served first the last time.
    turn: usize,
    /// Time that the connection took to be made; taken by its first request.
    connect_ns: u64,
}

impl Pool {
    /// A pool with all its slots vacant.
    pub fn new(shape: Shape, origins: &[Origin], plan: &ConnectionPlan) -> Pool {
        let slots = shape.slots * origins.len();
        let bank = |(number, origin): (usize, &Origin)| {
            let all = (number * shape.slots..(number + 1) * shape.slots).rev();
            let vacant = if shape.shared { all.collect() } else { Vec::new() };
            Bank {
                locals: LocalAddresses::new(plan, &origin.remote),
                origin: origin.clone(),
                was_reached: false,
                left: 0,
                idle: Vec::new(),
                vacant,
                demanded: VecDeque::new(),
                connecting: 0,
                waiting: VecDeque::new(),
            }
        };
        Pool {
            banks: origins.iter().enumerate().map(bank).collect(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            lanes: vec![Lane::Free; slots * shape.speech.streams as usize],
            resting: Vec::new(),
            waiting: 0,
            opened: 0,
            shape,
        }
    }

    /// The slot that an event's token stands for, when its connection is still there.
    pub fn slot_of(&self, token: u64) -> Option<usize> {
        let (slot, generation) = (token as u32 as usize, (token >> 32) as u32);
        let current = &self.slots[slot];
        (current.connection.is_some() && current.generation == generation).then_some(slot)
    }

    /// Lanes of all connections to one origin.
    pub fn lanes_in_bank(&self) -> usize {
        self.shape.slots * self.streams()
    }

    /// Lanes of one connection.
    pub fn streams(&self) -> usize {
        self.shape.speech.streams as usize
    }

    /// The lane of a bank that carries the unit of work with this number.
    pub fn lane_of(&self, bank: usize, unit: usize) -> usize {
        bank * self.lanes_in_bank() + unit
    }

    /// The slot that a lane belongs to.
    pub fn slot_of_lane(&self, lane: usize) -> usize {
        lane / self.streams()
    }

    /// The lanes of a slot.
    pub fn lanes_of(&self, slot: usize) -> std::ops::Range<usize> {
        slot * self.streams()..(slot + 1) * self.streams()
    }

    /// The origin of a slot's bank.
    pub fn origin(&self, slot: usize) -> &Origin {
        &self.banks[slot / self.shape.slots].origin
    }

    /// Connections opened since the plan began.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Whether every connection that was asked for is there, or has failed.
    pub fn is_settled(&self) -> bool {
        self.banks.iter().all(|bank| bank.connecting == 0 && bank.demanded.is_empty())
    }

    /// The connection in an open slot.
    pub fn connection(&mut self, slot: usize) -> &mut Connection {
        self.slots[slot].connection.as_mut().expect("only open slots are asked for a connection")
    }

    /// Whether a slot has a connection that can carry requests.
    pub fn is_ready(&self, slot: usize) -> bool {
        self.slots[slot].connection.as_ref().is_some_and(Connection::is_ready)
    }

    /// Time that the slot's connection took, for the first request on it if that waited for it; 0 for all others.
    pub fn take_connect_ns(&mut self, slot: usize, intended_ns: u64) -> u64 {
        let connect_ns = std::mem::take(&mut self.slots[slot].connect_ns);
        let waited = connect_ns > 0 && intended_ns <= self.connection(slot).began_ns();
        if waited { connect_ns } else { 0 }
    }

    /// Whether an answer is due on a lane.
    pub fn is_busy(&self, lane: usize) -> bool {
        matches!(self.lanes[lane], Lane::Busy(_))
    }

    /// A request was sent on a lane.
    pub fn occupy(&mut self, lane: usize, exchange: Exchange) {
        self.lanes[lane] = Lane::Busy(exchange);
    }

    /// Ends the exchange on a lane.
    pub fn vacate(&mut self, lane: usize) -> Option<Exchange> {
        match std::mem::replace(&mut self.lanes[lane], Lane::Free) {
            Lane::Busy(exchange) => Some(exchange),
            other => {
                self.lanes[lane] = other;
                None
            }
        }
    }

    /// Lets a request wait on a lane, and asks for its connection if there is none.
    pub fn wait_on(&mut self, lane: usize, due: Due) {
        let slot = self.slot_of_lane(lane);
        self.lanes[lane] = Lane::Waiting(due);
        self.slots[slot].waiting += 1;
        self.waiting += 1;
        self.demand(slot);
    }

    /// Whether requests wait on lanes of this slot.
    pub fn has_waiting(&self, slot: usize) -> bool {
        self.slots[slot].waiting > 0
    }

    /// Takes the request that waits on a lane.
    pub fn take_waiting(&mut self, lane: usize) -> Option<Due> {
        let Lane::Waiting(due) = self.lanes[lane] else { return None };
        let slot = self.slot_of_lane(lane);
        self.slots[slot].waiting -= 1;
        self.waiting -= 1;
        self.lanes[lane] = Lane::Free;
        Some(due)
    }

    /// Drops every request that waits, and gives them.
    pub fn abandon_waiting(&mut self) -> Vec<Due> {
        let mut dropped: Vec<Due> =
            (0..self.lanes.len()).filter_map(|lane| self.take_waiting(lane)).collect();
        self.banks.iter_mut().for_each(|bank| dropped.extend(bank.waiting.drain(..)));
        dropped
    }

    /// Asks for a connection in this slot.
    pub fn demand(&mut self, slot: usize) {
        let entry = &mut self.slots[slot];
        if entry.connection.is_none() && !entry.demanded && !entry.resting {
            entry.demanded = true;
            self.bank(slot).demanded.push_back(slot);
        }
    }

    /// Asks for the connections that an open loop begins with: as many to each origin as an earlier plan has left,
    /// at least one.
    pub fn demand_first(&mut self) {
        for bank in 0..self.banks.len() {
            let wanted = self.banks[bank].left.max(1);
            for _ in self.ready_in(bank)..wanted {
                if let Some(slot) = self.banks[bank].vacant.pop() {
                    self.demand(slot);
                }
            }
        }
    }

    /// Connections of a bank that can carry requests.
    fn ready_in(&self, bank: usize) -> usize {
        let slots = bank * self.shape.slots..(bank + 1) * self.shape.slots;
        slots.filter(|slot| self.is_ready(*slot)).count()
    }

    /// The slots whose connection can carry requests.
    pub fn ready(&self) -> Vec<usize> {
        (0..self.slots.len()).filter(|slot| self.is_ready(*slot)).collect()
    }

    /// A plan is over: keeps the connections that can carry requests, and nothing else.
    pub fn pause(&mut self) {
        for slot in 0..self.slots.len() {
            if !self.is_ready(slot) {
                self.close(slot);
            }
        }
        for bank in 0..self.banks.len() {
            while let Some(slot) = self.banks[bank].demanded.pop_front() {
                self.slots[slot].demanded = false;
                self.become_vacant(slot);
            }
            self.banks[bank].left = self.ready_in(bank);
        }
    }

    /// The next plan begins, and what happened meanwhile has been noticed. An origin counts as reached when it has
    /// left a connection open.
    pub fn resume(&mut self) {
        self.wake_resting();
        self.opened = 0;
        for bank in 0..self.banks.len() {
            self.banks[bank].was_reached = self.ready_in(bank) > 0;
        }
    }

    /// What it was made for.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Takes a free lane of an open connection.
    pub fn take_idle(&mut self, bank: usize) -> Option<usize> {
        let lane = self.banks[bank].idle.pop()?;
        self.lanes[lane] = Lane::Free;
        Some(lane)
    }

    /// Puts a lane among the free ones of its bank.
    pub fn park(&mut self, lane: usize) {
        let bank = self.bank_of_lane(lane);
        self.lanes[lane] = Lane::Parked;
        self.banks[bank].idle.push(lane);
    }

    /// Queues a request that any connection of the bank may carry.
    pub fn queue(&mut self, bank: usize, due: Due) {
        self.banks[bank].waiting.push_back(due);
    }

    /// Puts a request back that could not be sent; it is the next to go.
    pub fn queue_first(&mut self, lane: usize, due: Due) {
        let bank = self.bank_of_lane(lane);
        self.banks[bank].waiting.push_front(due);
    }

    /// The next request that this lane may carry.
    pub fn next_queued(&mut self, lane: usize) -> Option<Due> {
        let bank = self.bank_of_lane(lane);
        self.banks[bank].waiting.pop_front()
    }

    /// Requests that wait for a connection, on their lane or in the queue of a bank.
    pub fn waiting(&self) -> usize {
        self.waiting + self.banks.iter().map(|bank| bank.waiting.len()).sum::<usize>()
    }

    /// Whether another request may fall due. The requests of one origin queue no further than it has lanes, the
    /// schedule holds the others; with several origins one that is slow must not keep back the others' requests.
    pub fn has_room(&self) -> bool {
        self.banks.len() > 1 || self.waiting() < self.lanes_in_bank()
    }

    /// Whether the queue of a bank is so long that a further request will never be sent.
    pub fn is_full(&self, bank: usize) -> bool {
        self.banks[bank].waiting.len() >= self.lanes_in_bank().max(MOST_QUEUED)
    }

    /// Takes the requests that were due before `since_ns` and wait for a connection that cannot be made.
    pub fn take_hopeless(&mut self, since_ns: u64) -> Vec<Due> {
        let mut hopeless = Vec::new();
        for lane in 0..self.lanes.len() {
            let late = matches!(self.lanes[lane], Lane::Waiting(due) if due.intended_ns < since_ns);
            if late && !self.is_ready(self.slot_of_lane(lane)) {
                hopeless.extend(self.take_waiting(lane));
            }
        }
        for bank in 0..self.banks.len() {
            if self.ready_in(bank) > 0 {
                continue;
            }
            let queue = &mut self.banks[bank].waiting;
            while queue.front().is_some_and(|due| due.intended_ns < since_ns) {
                hopeless.extend(queue.pop_front());
            }
        }
        hopeless
    }

    /// Whether each origin has had a connection.
    pub fn has_reached_all(&self) -> bool {
        self.banks.iter().all(|bank| bank.was_reached)
    }

    /// The lane of a slot whose turn it is to be served first, so that none is starved.
    pub fn take_turn(&mut self, slot: usize) -> usize {
        let streams = self.streams();
        let entry = &mut self.slots[slot];
        entry.turn = (entry.turn + 1) % streams;
        entry.turn
    }

    /// Whether a lane does nothing and nobody knows.
    pub fn is_free(&self, lane: usize) -> bool {
        self.lanes[lane] == Lane::Free
    }

    /// Whether a request that is queued now must wait for an answer: no connection of the bank is free, and those
    /// still to be made are spoken for.
    pub fn is_at_its_limit(&self, bank: usize) -> bool {
        let resting = self.resting.iter().filter(|slot| **slot / self.shape.slots == bank).count();
        let bank = &self.banks[bank];
        let to_come = bank.vacant.len() + bank.connecting + resting;
        bank.idle.is_empty() && bank.waiting.len() >= to_come * self.streams()
    }

    /// The oldest of the requests queued, when it was due.
    pub fn oldest_queued(&self) -> Option<u64> {
        self.banks.iter().filter_map(|bank| bank.waiting.front()).map(|due| due.intended_ns).min()
    }

    fn bank(&mut self, slot: usize) -> &mut Bank {
        &mut self.banks[slot / self.shape.slots]
    }

    fn bank_of_lane(&self, lane: usize) -> usize {
        lane / self.lanes_in_bank()
    }

    /// Begins to open what is asked for, as far as allowed; gives the attempts that failed at once.
    pub fn open_connections(&mut self, poller: &Poller, now_ns: u64) -> Vec<Unopened> {
        let mut failed = Vec::new();
        for bank in 0..self.banks.len() {
            while let Some(slot) = self.next_to_open(bank) {
                if let Err(error) = self.open(slot, poller, now_ns) {
                    self.rest(slot);
                    failed.push(Unopened { slot, error });
                }
            }
        }
        failed
    }

    /// A slot of a bank to open now: one that was asked for, or one for the requests that are queued.
    fn next_to_open(&mut self, bank: usize) -> Option<usize> {
        let streams = self.streams();
        let bank = &mut self.banks[bank];
        if bank.connecting >= MAX_CONNECTING {
            return None;
        }
        if let Some(slot) = bank.demanded.pop_front() {
            self.slots[slot].demanded = false;
            return Some(slot);
        }
        let wanted = bank.waiting.len().div_ceil(streams);
        if bank.connecting < wanted { bank.vacant.pop() } else { None }
    }

    fn open(&mut self, slot: usize, poller: &Poller, now_ns: u64) -> io::Result<()> {
        let bank = &mut self.banks[slot / self.shape.slots];
        let local = bank.locals.take_turn();
        let connection = Connection::begin(&bank.origin, local, self.shape.speech, now_ns)?;
        let entry = &mut self.slots[slot];
        entry.generation = entry.generation.wrapping_add(1);
        poller.register(connection.stream(), u64::from(entry.generation) << 32 | slot as u64)?;
        entry.connection = Some(connection);
        bank.connecting += 1;
        Ok(())
    }

    /// The connection in a slot can carry requests from now on.
    pub fn opened_one(&mut self, slot: usize) {
        let entry = &mut self.slots[slot];
        let connection = entry.connection.as_ref().expect("it has just become ready");
        entry.connect_ns = connection.connect_ns() + connection.tls_ns().unwrap_or(0);
        let bank = self.bank(slot);
        bank.connecting -= 1;
        bank.was_reached = true;
        self.opened += 1;
    }

    /// Closes the connection in a slot. A request that waits on one of its lanes goes over another: the next in
    /// this slot, or any of the bank.
    pub fn close(&mut self, slot: usize) {
        let Some(connection) = self.slots[slot].connection.take() else { return };
        let lanes = self.lanes_of(slot);
        if self.shape.shared && self.has_waiting(slot) {
            lanes.clone().for_each(|lane| self.queue_waiting(lane));
        }
        for lane in &mut self.lanes[lanes.clone()] {
            if *lane == Lane::Parked {
                *lane = Lane::Free;
            }
        }
        let bank = self.bank(slot);
        if connection.is_ready() {
            bank.idle.retain(|lane| !lanes.contains(lane));
        } else {
            bank.connecting -= 1;
        }
        if !connection.was_of_use() {
            self.rest(slot);
            return;
        }
        self.become_vacant(slot);
    }

    fn queue_waiting(&mut self, lane: usize) {
        if let Some(due) = self.take_waiting(lane) {
            self.queue_first(lane, due);
        }
    }

    fn rest(&mut self, slot: usize) {
        self.slots[slot].resting = true;
        self.resting.push(slot);
    }

    fn become_vacant(&mut self, slot: usize) {
        if self.shape.shared {
            self.banks[slot / self.shape.slots].vacant.push(slot);
        } else if self.has_waiting(slot) {
            self.demand(slot);
        }
    }

    /// Lets the slots that rest be opened again.
    pub fn wake_resting(&mut self) {
        for slot in std::mem::take(&mut self.resting) {
            self.slots[slot].resting = false;
            self.become_vacant(slot);
        }
    }

    /// The slots whose handshake began before `since_ns`.
    pub fn opening_since_before(&self, since_ns: u64) -> Vec<usize> {
        let late = |slot: &Slot| {
            slot.connection.as_ref().is_some_and(|c| !c.is_ready() && c.began_ns() < since_ns)
        };
        (0..self.slots.len()).filter(|slot| late(&self.slots[*slot])).collect()
    }

    /// The lanes whose request was sent before `since_ns`.
    pub fn busy_since_before(&self, since_ns: u64) -> Vec<usize> {
        let late =
            |lane: &Lane| matches!(lane, Lane::Busy(exchange) if exchange.sent_ns < since_ns);
        (0..self.lanes.len()).filter(|lane| late(&self.lanes[*lane])).collect()
    }
}
