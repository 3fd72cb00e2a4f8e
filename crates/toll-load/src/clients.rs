//! The clients of a closed loop: each sends the requests of an iteration, waits for all answers, thinks, and
//! begins again. How many are at work follows the plan's profile. Knows no connections.
//!
//! A client that is no longer wanted ends its iteration first.
//!
//! Clients that think do not begin together: they would all ask at once, and again each time they have thought. The
//! first iterations of a warm-up are spread evenly over the think time, so that after one think time the load is as
//! steady as it ever gets, and a short measured phase sees it so wherever it begins.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::plan::Iteration;
use crate::schedule::{Clients, Slice};

/// This event loop's clients.
#[derive(Debug)]
pub(crate) struct Crew {
    clients: Vec<Client>,
    profile: Clients,
    slice: Slice,
    requests: u32,
    think_ns: u64,
    /// Over how long the first iterations are spread.
    spread_ns: u64,
    begin_ns: u64,
    /// The profile stands at its first value.
    stands: bool,
    /// Clients wanted now, the first ones.
    wanted: usize,
    next_change_ns: Option<u64>,
    /// Clients that have not begun yet, and when they do.
    to_begin: VecDeque<(u64, u32)>,
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
    /// Clients that may begin an iteration.
    rested: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Client {
    outstanding: u32,
    began_ns: u64,
    /// Among those `to_begin`, the `thinking` or the `rested`.
    queued: bool,
}

/// What a client does after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// It waits for other answers of its iteration, it thinks, or it is not wanted any more.
    Nothing,
    /// It begins an iteration.
    Iteration,
}

impl Crew {
    /// The clients of this slice, all at rest. Where there is a warm-up their first iterations are spread.
    pub fn new(profile: Clients, iteration: Iteration, slice: Slice, has_warm_up: bool) -> Crew {
        let think_ns = (iteration.think_ms * 1e6) as u64;
        let mut crew = Crew {
            clients: Vec::new(),
            slice,
            requests: iteration.requests,
            think_ns,
            spread_ns: if has_warm_up { think_ns } else { 0 },
            begin_ns: 0,
            stands: true,
            wanted: 0,
            next_change_ns: None,
            to_begin: VecDeque::new(),
            thinking: BinaryHeap::new(),
            rested: Vec::new(),
            profile,
        };
        let all = crew.share_of(crew.profile.highest());
        crew.clients = vec![Client::default(); all];
        crew
    }

    /// Clients of this slice among the first `clients` of all.
    fn share_of(&self, clients: u32) -> usize {
        let beyond_first = u64::from(clients).saturating_sub(self.slice.first);
        beyond_first.div_ceil(self.slice.stride) as usize
    }

    /// All clients that may ever be at work here.
    pub fn size(&self) -> usize {
        self.clients.len()
    }

    /// Requests of an iteration, all sent at once.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Whether an iteration is more than a request.
    pub fn has_iterations(&self) -> bool {
        self.requests > 1 || self.think_ns > 0
    }

    /// Clients wanted now.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Clients that are wanted when a phase begins.
    pub fn wanted_at_begin(&self) -> usize {
        self.share_of(self.profile.at(0))
    }

    /// The number of a client among those of all event loops.
    pub fn number_of(&self, client: u32) -> u32 {
        (self.slice.first + u64::from(client) * self.slice.stride) as u32
    }

    /// Begins a phase: with the profile from its begin, or standing at its first value.
    pub fn begin(&mut self, begin_ns: u64, stands: bool) {
        self.begin_ns = begin_ns;
        self.stands = stands;
        self.wanted = 0;
        self.rested.clear();
        for client in &mut self.clients {
            client.queued = false;
        }
        let thinking = self.thinking.iter().map(|Reverse((_, client))| *client);
        for client in thinking.chain(self.to_begin.iter().map(|(_, client)| *client)) {
            self.clients[client as usize].queued = true;
        }
        if stands && self.spread_ns > 0 {
            self.spread();
        }
        self.follow(0);
    }

    /// Client k of n begins k/n of the think time later.
    fn spread(&mut self) {
        let all = u64::from(self.profile.at(0));
        for client in 0..self.wanted_at_begin() as u32 {
            let later_ns = u64::from(self.number_of(client)) * self.spread_ns / all;
            self.to_begin.push_back((self.begin_ns + later_ns, client));
            self.clients[client as usize].queued = true;
        }
    }

    /// Follows the profile to `now_ns`, and lets those begin whose turn has come.
    pub fn advance(&mut self, now_ns: u64) {
        if self.next_change_ns.is_some_and(|change| change <= now_ns) {
            self.follow(now_ns - self.begin_ns);
        }
        while self.to_begin.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let Some((_, client)) = self.to_begin.pop_front() else { return };
            self.clients[client as usize].queued = false;
            if (client as usize) < self.wanted {
                self.rest(client);
            }
        }
    }

    fn follow(&mut self, since_begin_ns: u64) {
        let at_ns = if self.stands { 0 } else { since_begin_ns };
        let before = self.wanted;
        self.wanted = self.share_of(self.profile.at(at_ns));
        let change = if self.stands { None } else { self.profile.next_change(since_begin_ns) };
        self.next_change_ns = change.map(|change| self.begin_ns + change);
        for client in before..self.wanted {
            self.rest(client as u32);
        }
    }

    fn rest(&mut self, client: u32) {
        let entry = &mut self.clients[client as usize];
        if entry.outstanding == 0 && !entry.queued {
            entry.queued = true;
            self.rested.push(client);
        }
    }

    /// A client that has thought long enough by `now_ns`, and how long its iteration took, nanoseconds. It may
    /// begin another.
    pub fn end_of_thought(&mut self, now_ns: u64) -> Option<u64> {
        let Reverse((end_ns, client)) = *self.thinking.peek()?;
        if end_ns > now_ns {
            return None;
        }
        self.thinking.pop();
        let entry = &mut self.clients[client as usize];
        entry.queued = false;
        let took_ns = now_ns - entry.began_ns;
        if (client as usize) < self.wanted {
            self.rest(client);
        }
        Some(took_ns)
    }

    /// A client that may begin an iteration.
    pub fn next_rested(&mut self) -> Option<u32> {
        while let Some(client) = self.rested.pop() {
            self.clients[client as usize].queued = false;
            if (client as usize) < self.wanted {
                return Some(client);
            }
        }
        None
    }

    /// A client begins an iteration of so many requests.
    pub fn begin_iteration(&mut self, client: u32, requests: u32, now_ns: u64) {
        let entry = &mut self.clients[client as usize];
        entry.outstanding = requests;
        entry.began_ns = now_ns;
    }

    /// One of a client's requests was answered, or failed. Gives what the client does now, and the length of the
    /// iteration that ended with it, nanoseconds.
    pub fn finished(&mut self, client: u32, now_ns: u64) -> (After, Option<u64>) {
        let entry = &mut self.clients[client as usize];
        entry.outstanding -= 1;
        if entry.outstanding > 0 {
            return (After::Nothing, None);
        }
        if self.think_ns > 0 {
            entry.queued = true;
            self.thinking.push(Reverse((now_ns + self.think_ns, client)));
            return (After::Nothing, None);
        }
        let wanted = (client as usize) < self.wanted;
        let after = if wanted { After::Iteration } else { After::Nothing };
        (after, Some(now_ns - entry.began_ns))
    }

    /// One of a client's requests will never be sent.
    pub fn abandon(&mut self, client: u32) {
        self.clients[client as usize].outstanding -= 1;
    }

    /// When something happens here next, nanoseconds.
    pub fn next_alarm_ns(&self) -> Option<u64> {
        let thought = self.thinking.peek().map(|Reverse((end_ns, _))| *end_ns);
        let first = self.to_begin.front().map(|(at_ns, _)| *at_ns);
        [thought, first, self.next_change_ns].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, Stage};

    const S: u64 = 1_000_000_000;

    fn crew(profile: &Profile, iteration: Iteration, slice: Slice) -> Crew {
        Crew::new(Clients::new(profile).unwrap(), iteration, slice, false)
    }

    fn alone() -> Slice {
        Slice { first: 0, stride: 1 }
    }

    fn ramp(from: f64, to: f64) -> Profile {
        Profile { stages: vec![Stage { duration_s: 10.0, from, to }] }
    }

    fn begin_all(crew: &mut Crew, now_ns: u64) -> Vec<u32> {
        let mut begun = Vec::new();
        while let Some(client) = crew.next_rested() {
            crew.begin_iteration(client, crew.requests(), now_ns);
            begun.push(client);
        }
        begun.sort_unstable();
        begun
    }

    #[test]
    fn all_clients_of_a_constant_profile_begin_at_once() {
        let mut crew = crew(&Profile::constant(3.0), Iteration::default(), alone());
        crew.begin(S, false);
        assert_eq!(begin_all(&mut crew, S), [0, 1, 2]);
        assert_eq!(crew.finished(1, 2 * S), (After::Iteration, Some(S)));
        assert_eq!(crew.next_alarm_ns(), None);
    }

    #[test]
    fn an_iteration_ends_with_the_last_of_its_answers() {
        let iteration = Iteration { requests: 3, think_ms: 0.0 };
        let mut crew = crew(&Profile::constant(1.0), iteration, alone());
        crew.begin(0, false);
        begin_all(&mut crew, 0);
        assert_eq!(crew.finished(0, 5), (After::Nothing, None));
        assert_eq!(crew.finished(0, 6), (After::Nothing, None));
        assert_eq!(crew.finished(0, 7), (After::Iteration, Some(7)));
    }

    #[test]
    fn a_client_thinks_before_it_begins_again() {
        let iteration = Iteration { requests: 1, think_ms: 1000.0 };
        let mut crew = crew(&Profile::constant(1.0), iteration, alone());
        crew.begin(0, false);
        begin_all(&mut crew, 0);
        assert_eq!(crew.finished(0, S), (After::Nothing, None));
        assert_eq!(crew.next_alarm_ns(), Some(2 * S));
        assert_eq!(crew.end_of_thought(2 * S - 1), None);
        assert_eq!(crew.end_of_thought(2 * S), Some(2 * S), "think time is part of the iteration");
        assert_eq!(begin_all(&mut crew, 2 * S), [0]);
    }

    /// When the clients of a slice begin, of 4 that think for a second.
    fn begins(slice: Slice) -> Vec<u64> {
        let iteration = Iteration { requests: 1, think_ms: 1000.0 };
        let clients = Clients::new(&Profile::constant(4.0)).unwrap();
        let mut crew = Crew::new(clients, iteration, slice, true);
        crew.begin(S, true);
        let mut begun = begin_all(&mut crew, S).iter().map(|_| S).collect::<Vec<_>>();
        while let Some(at_ns) = crew.next_alarm_ns() {
            crew.advance(at_ns);
            begun.extend(begin_all(&mut crew, at_ns).iter().map(|_| at_ns));
        }
        begun
    }

    #[test]
    fn clients_that_think_begin_a_warm_up_evenly_over_the_think_time() {
        assert_eq!(begins(alone()), [S, S + S / 4, S + S / 2, S + 3 * S / 4]);
        assert_eq!(begins(Slice { first: 1, stride: 2 }), [S + S / 4, S + 3 * S / 4]);
    }

    #[test]
    fn who_has_not_begun_when_a_phase_begins_keeps_its_turn() {
        let iteration = Iteration { requests: 1, think_ms: 1000.0 };
        let clients = Clients::new(&Profile::constant(2.0)).unwrap();
        let mut crew = Crew::new(clients, iteration, alone(), true);
        crew.begin(0, true);
        crew.advance(0);
        assert_eq!(begin_all(&mut crew, 0), [0]);
        crew.begin(S / 10, false);
        assert_eq!(begin_all(&mut crew, S / 10), [0; 0]);
        crew.advance(S / 2);
        assert_eq!(begin_all(&mut crew, S / 2), [1]);
    }

    #[test]
    fn clients_join_and_leave_as_the_profile_says() {
        let mut up = crew(&ramp(0.0, 4.0), Iteration::default(), alone());
        up.begin(0, false);
        assert_eq!(begin_all(&mut up, 0), [0; 0]);
        let mut joined = Vec::new();
        while let Some(change) = up.next_alarm_ns() {
            up.advance(change);
            joined.push(begin_all(&mut up, change));
        }
        assert_eq!(joined, [[0], [1], [2], [3]]);
        let mut down = crew(&ramp(2.0, 0.0), Iteration::default(), alone());
        down.begin(0, false);
        begin_all(&mut down, 0);
        down.advance(8 * S);
        assert_eq!(down.finished(0, 8 * S).0, After::Nothing);
        assert_eq!(down.wanted(), 0);
    }

    #[test]
    fn slices_share_the_clients_in_turn() {
        let sizes: Vec<usize> = (0..3)
            .map(|first| {
                let slice = Slice { first, stride: 3 };
                crew(&Profile::constant(8.0), Iteration::default(), slice).size()
            })
            .collect();
        assert_eq!(sizes, [3, 3, 2]);
        let slice = Slice { first: 2, stride: 3 };
        let crew = crew(&Profile::constant(8.0), Iteration::default(), slice);
        assert_eq!(crew.number_of(1), 5);
    }

    #[test]
    fn who_is_busy_when_a_phase_begins_goes_on_after_its_answer() {
        let mut crew = crew(&Profile::constant(2.0), Iteration::default(), alone());
        crew.begin(0, true);
        begin_all(&mut crew, 0);
        crew.finished(0, S);
        crew.begin(S, false);
        assert_eq!(begin_all(&mut crew, S), [0]);
        assert_eq!(crew.finished(1, 2 * S).0, After::Iteration);
    }
}
