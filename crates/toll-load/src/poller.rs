//! Waits for events, for an alarm or for a call of the coordinator; decides whether waiting means sleeping.

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;

use crate::clock::now_ns;
use crate::error::kernel;
use crate::timer::Timer;
use crate::transport::Stream;
use crate::{Idle, LoadError};

/// Events taken from the kernel at a time.
const EVENTS: usize = 256;
const TIMER_TOKEN: u64 = u64::MAX;
const CALL_TOKEN: u64 = u64::MAX - 1;

/// An event queue with an alarm.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: Epoll,
    timer: Timer,
    patience: Patience,
    events: Vec<EpollEvent>,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The alarm went off, or the coordinator called: the loop goes round.
    Wake,
    /// Something happened to what was registered under this token.
    Token(u64),
}

impl Poller {
    /// A queue whose alarm has learnt how late wake-ups come, and that a write to `call` wakes.
    ///
    /// # Errors
    /// When the kernel gives no event queue or no timer.
    pub fn new(idle: Idle, call: &EventFd) -> Result<Poller, LoadError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(kernel("epoll_create1"))?;
        let timer = Timer::calibrated()?;
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&timer, EpollEvent::new(edge, TIMER_TOKEN)).map_err(kernel("epoll_ctl"))?;
        epoll.add(call, EpollEvent::new(edge, CALL_TOKEN)).map_err(kernel("epoll_ctl"))?;
        let events = vec![EpollEvent::empty(); EVENTS];
        Ok(Poller { epoll, timer, patience: Patience::new(idle), events })
    }

    /// Asks for all events of a stream, once; each tells of a change.
    ///
    /// # Errors
    /// When the kernel has no room for another.
    pub fn register(&self, stream: &Stream, token: u64) -> Result<(), Errno> {
        let all = EpollFlags::EPOLLIN
            | EpollFlags::EPOLLOUT
            | EpollFlags::EPOLLRDHUP
            | EpollFlags::EPOLLET;
        self.epoll.add(stream, EpollEvent::new(all, token))
    }

    /// How long before a due time the loop must be awake, nanoseconds.
    pub fn margin_ns(&self) -> u64 {
        self.timer.margin_ns()
    }

    /// Waits for events until `wake_ns` at the latest; gives their number.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, wake_ns: u64, now_ns: u64) -> Result<usize, LoadError> {
        if wake_ns <= now_ns {
            return self.poll(EpollTimeout::ZERO);
        }
        let found = self.look_again(wake_ns, now_ns)?;
        if found > 0 || self.patience.never_sleeps() {
            return Ok(found);
        }
        self.timer.arm(wake_ns)?;
        self.poll(EpollTimeout::NONE)
    }

    /// The event with this number of those found last.
    pub fn event(&mut self, number: usize) -> (Source, EpollFlags) {
        let event = self.events[number];
        match event.data() {
            TIMER_TOKEN => {
                self.timer.woke(now_ns());
                (Source::Wake, event.events())
            }
            CALL_TOKEN => (Source::Wake, event.events()),
            token => (Source::Token(token), event.events()),
        }
    }

    fn look_again(&mut self, wake_ns: u64, now_ns: u64) -> Result<usize, LoadError> {
        let budget_ns = self.patience.budget_ns();
        if budget_ns == 0 {
            return Ok(0);
        }
        let end_ns = wake_ns.min(now_ns.saturating_add(budget_ns));
        loop {
            let found = self.poll(EpollTimeout::ZERO)?;
            let over = crate::clock::now_ns() >= end_ns;
            if found > 0 || over {
                self.patience.learn(found > 0);
                return Ok(found);
            }
        }
    }

    fn poll(&mut self, timeout: EpollTimeout) -> Result<usize, LoadError> {
        match self.epoll.wait(&mut self.events, timeout) {
            Err(Errno::EINTR) => Ok(0),
            result => result.map_err(kernel("epoll_wait")),
        }
    }
}

/// How long to look again before sleeping. To sleep and to be woken costs more CPU time than a few
/// microseconds of looking, and delays the next request by it; to look in vain costs both.
#[derive(Debug)]
struct Patience {
    idle: Idle,
    /// Share of the looks that found something, of 256, moving.
    score: u32,
    skipped: u32,
}

impl Patience {
    /// About what it costs to sleep and to be woken on a virtual machine.
    const LOOK_NS: u64 = 12_000;
    /// With less luck than this, of 256, it sleeps at once.
    const WORTH_IT: u32 = 96;
    /// And looks again after so many sleeps whether that has changed.
    const RETRY: u32 = 64;

    fn new(idle: Idle) -> Patience {
        Patience { idle, score: 256, skipped: 0 }
    }

    fn never_sleeps(&self) -> bool {
        self.idle == Idle::Spin
    }

    fn budget_ns(&mut self) -> u64 {
        match self.idle {
            Idle::Block => 0,
            Idle::Spin => u64::MAX,
            Idle::Auto if self.score >= Self::WORTH_IT => Self::LOOK_NS,
            Idle::Auto => {
                self.skipped = (self.skipped + 1) % Self::RETRY;
                if self.skipped == 0 { Self::LOOK_NS } else { 0 }
            }
        }
    }

    fn learn(&mut self, found: bool) {
        let target = if found { 256 } else { 0 };
        // A moving average over about sixteen looks; rounded towards the target, so that it gets there.
        self.score = if target > self.score {
            self.score + (target - self.score).div_ceil(16)
        } else {
            self.score - (self.score - target).div_ceil(16)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_at_once_when_looking_was_in_vain_and_tries_again_later() {
        let mut patience = Patience::new(Idle::Auto);
        assert!(patience.budget_ns() > 0);
        (0..40).for_each(|_| patience.learn(false));
        let looks = (0..256).filter(|_| patience.budget_ns() > 0).count();
        assert_eq!(looks, 4);
    }

    #[test]
    fn luck_brings_patience_back() {
        let mut patience = Patience::new(Idle::Auto);
        (0..40).for_each(|_| patience.learn(false));
        (0..16).for_each(|_| patience.learn(true));
        assert!(patience.budget_ns() > 0);
    }

    #[test]
    fn blocking_never_looks_and_spinning_never_sleeps() {
        assert_eq!(Patience::new(Idle::Block).budget_ns(), 0);
        assert!(Patience::new(Idle::Spin).never_sleeps());
    }
}
