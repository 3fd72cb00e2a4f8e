//! Turns a CPU time into exactly that much computing.
//!
//! The thread's own CPU clock decides when it is enough, not a count of rounds and not the wall clock. So a
//! request costs the same CPU time whether the clock rate drops or neighbours take the CPU away: they make
//! it later, never cheaper, as they do for a real application.

use std::future::poll_fn;
use std::hint::black_box;
use std::task::Poll;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// More than a round takes on any machine (some 2 ns, 10 in a debug build), so that the end is neared from below.
const NANOSECONDS_PER_ROUND: u128 = 16;

/// Some 1 us of computing: what `burn` may overshoot by.
const FEWEST_ROUNDS: u128 = 500;

/// As [`burn`], while another worker of the runtime watches the sockets. No time is no work at all.
pub(crate) async fn burn_aside(work: Duration) {
    if !work.is_zero() {
        leave_the_sockets_to_another_worker().await;
        burn(work);
    }
}

/// Computes so many rounds, however long they take, while another worker watches the sockets.
pub(crate) async fn compute_aside(rounds: u128) {
    if rounds > 0 {
        leave_the_sockets_to_another_worker().await;
        compute(1, rounds);
    }
}

/// Computes until the calling thread has used `work` more CPU time.
///
/// Looks at the clock more often as the end comes near: each look is a system call, and with many of them
/// the burned time would be counted as the kernel's, not the application's.
fn burn(work: Duration) {
    let end = thread_cpu_time() + work;
    let mut state = 1;
    while let Some(rest) = end.checked_sub(thread_cpu_time()) {
        state = compute(state, rounds_within(rest));
    }
}

/// Lets another worker watch the sockets before this one computes.
///
/// The worker that a socket wakes is the one that watches all sockets. While it computes nobody would, and a
/// second request would wait beside an idle CPU. A task that wakes itself goes to the queue's end, and tokio
/// then wakes a sleeping worker to help; whichever of the two does not get the task watches the sockets.
/// `yield_now` wakes nobody, and tokio's own cure, `enable_eager_driver_handoff`, is unstable.
async fn leave_the_sockets_to_another_worker() {
    let mut queued = false;
    poll_fn(|context| {
        if queued {
            return Poll::Ready(());
        }
        queued = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn rounds_within(rest: Duration) -> u128 {
    (rest.as_nanos() / NANOSECONDS_PER_ROUND).max(FEWEST_ROUNDS)
}

/// Rounds of a xorshift generator (Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8, 2003).
fn compute(mut state: u64, rounds: u128) -> u64 {
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state)
}

/// CPU time that so many rounds take here.
pub(crate) fn cpu_time_of(rounds: u128) -> Duration {
    let before = thread_cpu_time();
    compute(1, rounds);
    thread_cpu_time() - before
}

/// CPU time that the calling thread has used.
pub(crate) fn thread_cpu_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).expect("Linux counts the CPU time of each thread").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_the_cpu_time_that_was_asked_for() {
        let before = thread_cpu_time();
        burn(Duration::from_millis(20));
        let burned = thread_cpu_time() - before;
        assert!(
            (Duration::from_millis(20)..Duration::from_millis(25)).contains(&burned),
            "{burned:?}"
        );
    }
}
