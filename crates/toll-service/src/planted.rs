//! Effects of known size that `toll calibrate` plants in the service, to find them again: turns a size into exactly
//! that much computing, waiting or memory.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::prctl;

use crate::work;

/// What is planted, as written; nothing by default.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Planted {
    /// Rounds of computing for each request: a count, so that it costs what the machine makes of it.
    iterations: u64,
    /// Time that each request sleeps.
    sleep_us: u64,
    /// Requests that are late.
    late: Option<Late>,
    /// Memory that is written once and kept.
    ballast_bytes: usize,
}

/// One of so many requests waits for so long.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Late {
    one_in: std::num::NonZeroU64,
    by_ms: u64,
}

/// What was planted, at work.
#[derive(Debug)]
pub(crate) struct Plant {
    planted: Planted,
    requests: AtomicU64,
    _ballast: Vec<u8>,
}

impl Plant {
    /// Begins to hold the ballast.
    pub(crate) fn new(planted: Planted) -> Self {
        // Not zeros: those the kernel would give without a page behind them.
        let ballast = black_box(vec![1; planted.ballast_bytes]);
        Self { planted, requests: AtomicU64::new(0), _ballast: ballast }
    }

    /// What one request has to bear on top of its work.
    pub(crate) async fn bear(&self) {
        let Planted { iterations, sleep_us, late, .. } = self.planted;
        work::compute_aside(u128::from(iterations)).await;
        sleep(Duration::from_micros(sleep_us));
        if let Some(late) = late.filter(|late| self.is_late(*late)) {
            tokio::time::sleep(Duration::from_millis(late.by_ms)).await;
        }
    }

    fn is_late(&self, late: Late) -> bool {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        (before + 1).is_multiple_of(late.one_in.get())
    }
}

/// Sleeps on the worker itself, as [`work::burn_aside`] computes on it: tokio's timers count whole milliseconds, and
/// another way to be woken would cost more CPU time than one system call.
fn sleep(time: Duration) {
    if !time.is_zero() {
        // By default the kernel may wake a sleeper 50 us late to save wake-ups; a refusal costs just that.
        let _ = prctl::set_timerslack(1);
        thread::sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;
    use crate::work::thread_cpu_time;

    fn plant(planted: serde_json::Value) -> Plant {
        Plant::new(serde_json::from_value(planted).unwrap())
    }

    /// Wall time and CPU time of each of `requests` requests on one thread.
    fn bear(plant: &Plant, requests: usize) -> Vec<(Duration, Duration)> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        let one = |_| {
            let (wall, cpu) = (Instant::now(), thread_cpu_time());
            runtime.block_on(plant.bear());
            (wall.elapsed(), thread_cpu_time() - cpu)
        };
        (0..requests).map(one).collect()
    }

    #[test]
    fn a_sleep_moves_the_clock_on_the_wall_and_not_the_cpus() {
        let borne = bear(&plant(json!({"sleep_us": 5000})), 20);
        assert!(borne.iter().all(|(wall, _)| *wall >= Duration::from_millis(5)), "{borne:?}");
        let cpu: Duration = borne.iter().map(|(_, cpu)| *cpu).sum();
        assert!(cpu < Duration::from_millis(10), "{cpu:?} of CPU time in 100 ms of sleep");
    }

    #[test]
    fn one_request_in_a_hundred_is_late() {
        let borne = bear(&plant(json!({"late": {"one_in": 100, "by_ms": 20}})), 300);
        let is_late = |(wall, _): &(Duration, Duration)| *wall >= Duration::from_millis(20);
        assert_eq!(borne.iter().filter(|request| is_late(request)).count(), 3, "{borne:?}");
    }

    #[test]
    fn ten_times_the_iterations_take_about_ten_times_the_cpu_time() {
        let cpu_of = |iterations: u64| {
            let borne = bear(&plant(json!({ "iterations": iterations })), 9);
            borne.into_iter().map(|(_, cpu)| cpu).min().unwrap().as_secs_f64()
        };
        let ratio = cpu_of(10_000_000) / cpu_of(1_000_000);
        // Other work on the machine slows a core by half and more.
        assert!((4.0..25.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn nothing_planted_costs_nothing() {
        let borne = bear(&plant(json!({})), 100);
        let fastest = borne.iter().map(|(wall, _)| *wall).min().unwrap();
        assert!(fastest < Duration::from_micros(200), "{fastest:?}");
    }

    #[test]
    fn a_lateness_that_never_comes_is_refused() {
        let never = json!({"late": {"one_in": 0, "by_ms": 20}});
        assert!(serde_json::from_value::<Planted>(never).is_err());
    }
}
