//! Turns a stall's times into a gate that is shut for exactly so long. A fault with a known answer: a load
//! generator must show in its latencies what arithmetic says.
//!
//! tokio's timers count whole milliseconds, so a thread of its own sleeps to absolute deadlines.

use std::io;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use tokio::sync::watch;

/// Nothing is answered for `lasting` at the start of each period of length `every`.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(try_from = "Milliseconds")]
pub(crate) struct Stall {
    every: Duration,
    lasting: Duration,
}

/// A stall as written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Milliseconds {
    every_ms: u64,
    lasting_ms: u64,
}

/// A stall that would shut the gate for good.
#[derive(Debug, thiserror::Error)]
#[error("a stall of {lasting_ms} ms every {every_ms} ms never ends")]
pub(crate) struct Endless {
    every_ms: u64,
    lasting_ms: u64,
}

impl TryFrom<Milliseconds> for Stall {
    type Error = Endless;

    fn try_from(Milliseconds { every_ms, lasting_ms }: Milliseconds) -> Result<Self, Endless> {
        if lasting_ms >= every_ms {
            return Err(Endless { every_ms, lasting_ms });
        }
        let [every, lasting] = [every_ms, lasting_ms].map(Duration::from_millis);
        Ok(Self { every, lasting })
    }
}

/// What every request has to pass.
#[derive(Debug)]
pub(crate) struct Gate(Option<watch::Receiver<bool>>);

impl Gate {
    /// A gate that is never shut.
    pub(crate) fn always_open() -> Self {
        Self(None)
    }

    /// A gate that is shut for the first stall from now on.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub(crate) fn shut_by(stall: Stall) -> io::Result<Self> {
        let start = now();
        let (open, gate) = watch::channel(false);
        thread::Builder::new().name("stall".into()).spawn(move || keep(stall, start, &open))?;
        Ok(Self(Some(gate)))
    }

    /// Waits until the gate is open; at once when it is.
    pub(crate) async fn pass(&self) {
        let Some(gate) = &self.0 else { return };
        if !*gate.borrow() {
            gate.clone().wait_for(|open| *open).await.expect("the keeper of the gate never ends");
        }
    }
}

fn keep(stall: Stall, start: Duration, open: &watch::Sender<bool>) -> ! {
    // By default the kernel may wake a sleeper 50 us late to save wake-ups; a refusal costs just that.
    let _ = prctl::set_timerslack(1);
    let mut begin = start;
    loop {
        sleep_until(begin);
        open.send_replace(false);
        sleep_until(begin + stall.lasting);
        open.send_replace(true);
        begin += stall.every;
    }
}

/// Time of the monotonic clock.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux always has a monotonic clock").into()
}

fn sleep_until(deadline: Duration) {
    let deadline = TimeSpec::from(deadline);
    let until = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, until, &deadline) == Err(Errno::EINTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(400);
    const LASTING: Duration = Duration::from_millis(200);

    fn pass(gate: &Gate) -> Duration {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("no drivers");
        runtime.block_on(gate.pass());
        now()
    }

    #[test]
    fn the_gate_opens_when_each_stall_ends() {
        let before = now();
        let gate = Gate::shut_by(Stall { every: EVERY, lasting: LASTING }).unwrap();
        let start = now();
        let first = pass(&gate);
        assert!(first >= before + LASTING && first < start + EVERY, "{:?}", first - before);

        sleep_until(start + EVERY + LASTING / 2);
        let second = pass(&gate);
        assert!(second >= before + EVERY + LASTING, "{:?}", second - before);
        assert!(second < start + 2 * EVERY, "{:?}", second - before);
    }

    #[test]
    fn a_gate_without_stalls_lets_everything_pass_at_once() {
        let before = now();
        assert!(pass(&Gate::always_open()) - before < LASTING);
    }
}
