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
    spun_ns: u64,
    is_real_time: bool,
    /// The due time that it slept for last.
    slept_for_ns: u64,
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
        Ok(Poller {
            epoll,
            timer,
            patience: Patience::new(idle),
            spun_ns: 0,
            is_real_time: is_real_time(),
            slept_for_ns: 0,
            events,
        })
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

    /// Waits for events until `due_ns`, sharp, or `alarm_ns`, about; gives their number. Shortly before `due_ns`
    /// it only looks for them: a sleeper would be woken late.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, due_ns: u64, alarm_ns: u64, now_ns: u64) -> Result<usize, LoadError> {
        let wake_ns = alarm_ns.min(due_ns.saturating_sub(self.margin_ns(due_ns, now_ns)));
        if wake_ns <= now_ns {
            return self.look_until(due_ns.min(alarm_ns.max(now_ns)), now_ns);
        }
        let budget_ns = self.patience.budget_ns();
        if budget_ns > 0 {
            let found = self.look_until(wake_ns.min(now_ns.saturating_add(budget_ns)), now_ns)?;
            self.patience.learn(found > 0);
            if found > 0 || self.patience.never_sleeps() {
                return Ok(found);
            }
        }
        self.slept_for_ns = due_ns;
        self.timer.arm(wake_ns)?;
        self.poll(EpollTimeout::NONE)
    }

    /// Time spent looking for events in vain so far, nanoseconds: CPU time that the load did not need.
    pub fn spun_ns(&self) -> u64 {
        self.spun_ns
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

    /// How long before a due time to stop sleeping. The kernel takes the CPU for 50 ms from a real-time thread that
    /// has not slept for 95 % of a second (sched(7)): such a thread sleeps half of the time that it has, once.
    fn margin_ns(&self, due_ns: u64, now_ns: u64) -> u64 {
        let margin_ns = self.timer.margin_ns();
        if self.is_real_time && self.slept_for_ns != due_ns {
            margin_ns.min(due_ns.saturating_sub(now_ns) / 2)
        } else {
            margin_ns
        }
    }

    /// Looks for events again and again, at least once.
    fn look_until(&mut self, end_ns: u64, begin_ns: u64) -> Result<usize, LoadError> {
        let mut looked_ns = begin_ns;
        loop {
            let found = self.poll(EpollTimeout::ZERO)?;
            if found == 0 {
                let now_ns = now_ns();
                self.spun_ns += now_ns - looked_ns;
                looked_ns = now_ns;
            }
            if found > 0 || looked_ns >= end_ns {
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

/// Whether this thread runs under a real-time policy (proc_pid_stat(5), field 41).
fn is_real_time() -> bool {
    let policy = |stat: String| {
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_ascii_whitespace().nth(41 - 3)?.parse::<u32>().ok()
    };
    let policy = std::fs::read_to_string("/proc/thread-self/stat").ok().and_then(policy);
    // SCHED_OTHER, SCHED_BATCH and SCHED_IDLE are not.
    policy.is_some_and(|policy| ![0, 3, 5].contains(&policy))
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
