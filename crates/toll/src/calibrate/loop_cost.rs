//! What an iteration of the planted loop costs on this machine: measured once, on all cores at a time as under load.

use std::thread;

use toll_stats::{Level, mean};

use super::planted::LoopCost;

/// Iterations of one part: some 20 ms.
const ITERATIONS: u64 = 10_000_000;
/// Parts of each core.
const PARTS: usize = 50;

/// Measures it; takes about a second.
pub fn measure(cores: usize) -> LoopCost {
    let part = || toll_service::cpu_time_of(ITERATIONS).as_secs_f64() * 1e6 / ITERATIONS as f64;
    let parts = || (0..PARTS).map(|_| part()).collect::<Vec<f64>>();
    let parts: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(parts)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it only computes")).collect()
    });
    let of_all = mean(&parts, Level::P95).expect("there are parts, and time passes");
    // Of an interval of 95 % of so many parts, half the width is two standard errors.
    LoopCost { us: of_all.value, error: of_all.half_width() / 2.0 }
}
