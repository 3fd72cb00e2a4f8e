//! The connections of a load, each in a numbered slot, registered once for edge-triggered events.
//!
//! A slot is idle, busy, connecting, vacant (may be opened) or resting: a peer that refused it, or closed it
//! without an answer, is left alone until the next sweep, so that a dead target does not cause a hot loop.

use std::io;
use std::net::{SocketAddr, TcpStream};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::LoadError;
use crate::connection::{Connection, Exchange, State};
use crate::error::kernel;
use crate::timer::Timer;

/// Handshakes under way at a time, half of the shortest accept queue in common use (128).
const MAX_CONNECTING: usize = 64;
/// The event of the timer.
const TIMER_TOKEN: u64 = u64::MAX;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The alarm went off.
    Timer,
    /// Something happened on the connection in this slot.
    Slot(usize),
    /// The connection is no more.
    Gone,
}

/// All connections to one target.
#[derive(Debug)]
pub(crate) struct Pool {
    epoll: Epoll,
    address: SocketAddr,
    to_head_request: bool,
    slots: Vec<Slot>,
    idle: Vec<usize>,
    vacant: Vec<usize>,
    resting: Vec<usize>,
    connecting: usize,
    opened: u64,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Connection>,
    /// Tells the events of this connection from those of its predecessor in the slot.
    generation: u32,
}

impl Pool {
    /// A pool of `size` slots, all vacant.
    ///
    /// # Errors
    /// When the kernel gives no event queue.
    pub fn new(
        address: SocketAddr,
        size: usize,
        to_head_request: bool,
        timer: &Timer,
    ) -> Result<Pool, LoadError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(kernel("epoll_create1"))?;
        let alarm = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER_TOKEN);
        epoll.add(timer, alarm).map_err(kernel("epoll_ctl"))?;
        Ok(Pool {
            epoll,
            address,
            to_head_request,
            slots: (0..size).map(|_| Slot::default()).collect(),
            idle: Vec::with_capacity(size),
            vacant: (0..size).rev().collect(),
            resting: Vec::with_capacity(size),
            connecting: 0,
            opened: 0,
        })
    }

    /// Waits for events, at most so long; gives their number.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(
        &self,
        events: &mut [EpollEvent],
        timeout: EpollTimeout,
    ) -> Result<usize, LoadError> {
        match self.epoll.wait(events, timeout) {
            Err(nix::errno::Errno::EINTR) => Ok(0),
            result => result.map_err(kernel("epoll_wait")),
        }
    }

    /// What an event is about.
    pub fn source(&self, event: &EpollEvent) -> Source {
        if event.data() == TIMER_TOKEN {
            return Source::Timer;
        }
        let (slot, generation) = (event.data() as u32 as usize, (event.data() >> 32) as u32);
        let current = &self.slots[slot];
        if current.connection.is_some() && current.generation == generation {
            Source::Slot(slot)
        } else {
            Source::Gone
        }
    }

    /// Slots, whatever they do.
    pub fn size(&self) -> usize {
        self.slots.len()
    }

    /// Connections opened so far.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// The connection in a slot that is not vacant.
    pub fn connection(&mut self, slot: usize) -> &mut Connection {
        self.slots[slot].connection.as_mut().expect("an event's source is a slot with a connection")
    }

    /// Takes an idle connection, the one used last: its caches are warm.
    pub fn take_idle(&mut self) -> Option<usize> {
        self.idle.pop()
    }

    /// Whether a connection is idle.
    pub fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Puts a connection among the idle ones.
    pub fn park(&mut self, slot: usize) {
        self.idle.push(slot);
    }

    /// Whether another connection may be opened for one of `wanted` requests.
    pub fn may_open(&self, wanted: usize) -> bool {
        self.connecting < wanted.min(MAX_CONNECTING) && !self.vacant.is_empty()
    }

    /// Begins to open a connection in a vacant slot; false when that failed at once.
    pub fn open_one(&mut self, now_ns: u64) -> bool {
        let Some(slot) = self.vacant.pop() else { return false };
        let connection = Connection::begin(self.address, self.to_head_request, now_ns);
        let begun = self.register(slot, connection);
        self.connecting += usize::from(begun);
        begun
    }

    /// Takes a connected stream into a vacant slot and makes it idle.
    pub fn adopt(&mut self, stream: TcpStream) {
        let Some(slot) = self.vacant.pop() else { return };
        let connection = Connection::established(stream, self.to_head_request);
        if self.register(slot, connection) {
            self.opened += 1;
            self.park(slot);
        }
    }

    /// Ends a handshake; false when it failed and the slot rests.
    pub fn finish_connecting(&mut self, slot: usize) -> bool {
        if self.connection(slot).finish_connecting().is_err() {
            self.close(slot);
            return false;
        }
        self.connecting -= 1;
        self.opened += 1;
        true
    }

    /// Closes the connection in a slot.
    pub fn close(&mut self, slot: usize) {
        let Some(connection) = self.slots[slot].connection.take() else { return };
        match connection.state() {
            State::Connecting { .. } => self.connecting -= 1,
            State::Idle => self.idle.retain(|s| *s != slot),
            State::Busy(_) => {}
        }
        let free = if connection.has_answered() { &mut self.vacant } else { &mut self.resting };
        free.push(slot);
    }

    /// Lets the slots that rest be opened again.
    pub fn wake_resting(&mut self) {
        self.vacant.append(&mut self.resting);
    }

    /// The slots whose handshake or exchange began before `since_ns`, and what they are doing.
    pub fn begun_before(&self, since_ns: u64) -> Vec<(usize, State)> {
        let late = |state: &State| match state {
            State::Connecting { since_ns: begun } => *begun < since_ns,
            State::Busy(Exchange { sent_ns, .. }) => *sent_ns < since_ns,
            State::Idle => false,
        };
        let states = self.slots.iter().enumerate();
        states
            .filter_map(|(slot, s)| s.connection.as_ref().map(|c| (slot, c.state())))
            .filter(|(_, state)| late(state))
            .collect()
    }

    /// Puts a connection into a slot and asks for its events; without one, or without events, the slot rests.
    fn register(&mut self, slot: usize, connection: io::Result<Connection>) -> bool {
        let entry = &mut self.slots[slot];
        entry.generation = entry.generation.wrapping_add(1);
        let flags = EpollFlags::EPOLLIN
            | EpollFlags::EPOLLOUT
            | EpollFlags::EPOLLRDHUP
            | EpollFlags::EPOLLET;
        let event = EpollEvent::new(flags, u64::from(entry.generation) << 32 | slot as u64);
        let is_registered = |c: &Connection| self.epoll.add(c.stream(), event).is_ok();
        entry.connection = connection.ok().filter(is_registered);
        if entry.connection.is_none() {
            self.resting.push(slot);
        }
        entry.connection.is_some()
    }
}
