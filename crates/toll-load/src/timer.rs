//! Wakes the engine shortly before an instant, by a margin that it learns from how late wake-ups come.
//!
//! A timer interrupt, the exit from an idle state and the scheduler make a sleeper late: on a small virtual machine
//! by 30 to 60 us when it sleeps for 100 us, by 100 to 170 us when it sleeps for a millisecond. So the alarm is set
//! early by the 98th percentile of that lateness and the rest is spent polling: the percentile minus the mean, for
//! each request. (A second, short sleep instead was tried: it is as late as the first one too often.)
//!
//! The percentile is tracked by stochastic approximation (H. Robbins, S. Monro, A Stochastic Approximation Method,
//! 1951): up by 49 steps when exceeded, down by one when not.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::LoadError;
use crate::clock::{SECOND_NS, now_ns};
use crate::error::kernel;

/// An alarm on `CLOCK_MONOTONIC` and its learnt lateness.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: TimerFd,
    armed_for_ns: u64,
    margin: Margin,
}

impl Timer {
    const TRIALS: u32 = 32;
    const TRIAL_NS: u64 = 400_000;

    /// A timer that has learnt its margin from some short sleeps, 15 ms in all.
    ///
    /// # Errors
    /// When the kernel gives no timer.
    pub fn calibrated() -> Result<Timer, LoadError> {
        let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
            .map_err(kernel("timerfd_create"))?;
        let mut timer = Timer { fd, armed_for_ns: 0, margin: Margin::default() };
        for _ in 0..Self::TRIALS {
            timer.arm(now_ns() + Self::TRIAL_NS)?;
            timer.fd.wait().map_err(kernel("read of the timer"))?;
            timer.woke(now_ns());
        }
        Ok(timer)
    }

    /// How long before a due time the alarm must be set, nanoseconds.
    pub fn margin_ns(&self) -> u64 {
        self.margin.ns
    }

    /// Sets the alarm, unless it is already set for that instant.
    pub fn arm(&mut self, at_ns: u64) -> Result<(), LoadError> {
        if self.armed_for_ns == at_ns {
            return Ok(());
        }
        let at = TimeSpec::new((at_ns / SECOND_NS) as i64, (at_ns % SECOND_NS) as i64);
        self.fd
            .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .map_err(kernel("timerfd_settime"))?;
        self.armed_for_ns = at_ns;
        Ok(())
    }

    /// The alarm went off, and this is when it was noticed.
    pub fn woke(&mut self, now_ns: u64) {
        self.margin.learn(now_ns.saturating_sub(self.armed_for_ns));
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A running estimate of the 98th percentile of lateness.
#[derive(Debug)]
struct Margin {
    ns: u64,
}

impl Margin {
    const STEP_NS: u64 = 100;
    const STEPS_UP: u64 = 49;
    const LOWEST_NS: u64 = 5_000;
    /// Polling longer than this would take the CPU from the service on a shared core.
    const HIGHEST_NS: u64 = 150_000;

    fn learn(&mut self, lateness_ns: u64) {
        let next = if lateness_ns > self.ns {
            self.ns + Self::STEPS_UP * Self::STEP_NS
        } else {
            self.ns - Self::STEP_NS
        };
        self.ns = next.clamp(Self::LOWEST_NS, Self::HIGHEST_NS);
    }
}

impl Default for Margin {
    fn default() -> Margin {
        Margin { ns: 40_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_settles_above_ninety_eight_of_a_hundred() {
        let mut margin = Margin::default();
        for k in 0..40_000_u64 {
            // 0..=60 us, each equally often, in an order without pattern.
            margin.learn(k * 7_919 % 61 * 1_000);
        }
        assert!((54_000..75_000).contains(&margin.ns), "{}", margin.ns);
    }

    #[test]
    fn the_margin_stays_within_its_bounds() {
        let mut margin = Margin::default();
        (0..1_000).for_each(|_| margin.learn(u64::MAX));
        assert_eq!(margin.ns, Margin::HIGHEST_NS);
        (0..10_000).for_each(|_| margin.learn(0));
        assert_eq!(margin.ns, Margin::LOWEST_NS);
    }

    #[test]
    fn a_timer_does_not_go_off_early() {
        let mut timer = Timer::calibrated().unwrap();
        let at_ns = now_ns() + 2_000_000;
        timer.arm(at_ns).unwrap();
        timer.fd.wait().unwrap();
        assert!(now_ns() >= at_ns);
    }
}
