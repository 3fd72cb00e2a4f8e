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
    idle: Idle,
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
            idle,
            spun_ns: 0,
            is_real_time: is_real_time(),
            slept_for_ns: 0,
            events,
        })
    }

    /// Asks for all events of a stream, once; each tells of a change.
    ///
    /// # Errors
    /// When the kernel cannot take another.
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
        if self.idle == Idle::Spin {
            return self.look_until(wake_ns, now_ns);
        }
        self.slept_for_ns = due_ns;
        self.timer.arm(wake_ns)?;
        self.poll(EpollTimeout::NONE)
    }

    /// Looks for events once; gives their number.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn look(&mut self) -> Result<usize, LoadError> {
        self.poll(EpollTimeout::ZERO)
    }

    /// What it does from now on when nothing is ready.
    pub fn idle_as(&mut self, idle: Idle) {
        self.idle = idle;
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
