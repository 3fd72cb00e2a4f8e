//! A neighbour who works in bursts, so that a measurement can be tried on a machine that is not quiet. Says at
//! the end what share of a core it really had.

mod bursts;

use std::hint::black_box;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use nix::sys::signal::{SigSet, Signal};
use nix::time::ClockId;

use crate::bursts::{Burst, Level, bursts};

/// Works in bursts, as other users of a machine do.
#[derive(Debug, Parser)]
struct Options {
    /// How much
    level: Level,
    /// Seed of the bursts; the same one gives the same bursts at the same times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// When to end, e.g. 30s, 10m or 1h; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = time)]
    length: Duration,
}

fn time(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "write it as 30s, 10m or 1h";
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let parts = |(unit, seconds)| Some((text.strip_suffix(unit)?, seconds));
    let (number, seconds) = units.into_iter().find_map(parts).ok_or(WRONG)?;
    let number: u32 = number.parse().map_err(|_| WRONG)?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let (said, code) = match run(&options) {
        Ok(cores) => (format!("{cores:.3} of a core"), ExitCode::SUCCESS),
        Err(error) => (format!("error: {error}"), ExitCode::FAILURE),
    };
    // A standard error that is closed is no reason to fail.
    let _ = writeln!(io::stderr(), "{said}");
    code
}

/// Cores that were busy on average.
fn run(options: &Options) -> io::Result<f64> {
    let begin = Instant::now();
    let signals = blocked_signals()?;
    let schedule = bursts(options.level, options.seed);
    thread::spawn(move || make_noise(begin, schedule));
    wait(signals, options.length);
    let used = Duration::from(ClockId::CLOCK_PROCESS_CPUTIME_ID.now()?);
    Ok(used.div_duration_f64(begin.elapsed()))
}

/// Blocked in this thread and those that it starts.
fn blocked_signals() -> io::Result<SigSet> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block()?;
    Ok(signals)
}

/// Returns at the end of the time, or at a signal.
fn wait(signals: SigSet, length: Duration) {
    let (sender, came) = mpsc::channel();
    thread::spawn(move || sender.send(signals.wait()));
    let _ = came.recv_timeout(length);
}

/// Instants follow from the schedule alone: whoever shares the machine does not move the next burst.
fn make_noise(begin: Instant, schedule: impl Iterator<Item = Burst>) {
    let mut at = begin;
    for Burst { pause, length, threads } in schedule {
        at += pause;
        thread::sleep(at.saturating_duration_since(Instant::now()));
        at += length;
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| work_until(at));
            }
        });
    }
}

fn work_until(end: Instant) {
    let mut state = 1_u64;
    while Instant::now() < end {
        for _ in 0..10_000 {
            state = black_box(state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(time("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["10", "m", "-1s", "1d", ""] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
