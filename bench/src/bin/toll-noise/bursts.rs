//! Turns a level and a seed into bursts of work and the pauses before them. Knows no clock and burns nothing.

use std::iter;
use std::time::Duration;

use clap::ValueEnum;

/// How busy the machine's other user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// No work at all
    Quiet,
    /// 0.3 of a core on average, one thread at a time
    Ordinary,
    /// 1 core on average, one or two threads at a time
    Noisy,
}

impl Level {
    /// Cores that are busy on average.
    fn cores(self) -> f64 {
        match self {
            Level::Quiet => 0.0,
            Level::Ordinary => 0.3,
            Level::Noisy => 1.0,
        }
    }

    /// A burst has from one to so many threads, each number as likely as the others.
    fn most_threads(self) -> u32 {
        if self == Level::Noisy { 2 } else { 1 }
    }
}

/// Work without a break, and the pause before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Burst {
    pub(crate) pause: Duration,
    pub(crate) length: Duration,
    pub(crate) threads: u32,
}

const SHORTEST_S: f64 = 0.05;
const LONGEST_S: f64 = 2.0;

/// The bursts of a level, without end; of a quiet one none. The same seed gives the same on every machine.
///
/// Pauses are exponential: when a burst ends, nothing tells when the next one begins.
pub(crate) fn bursts(level: Level, seed: u64) -> impl Iterator<Item = Burst> {
    let mut random = SplitMix(seed);
    let pause_s = mean_pause_s(level);
    let burst = move || Burst {
        pause: Duration::from_secs_f64(pause_s * -(-random.uniform()).ln_1p()),
        length: Duration::from_secs_f64(SHORTEST_S + (LONGEST_S - SHORTEST_S) * random.uniform()),
        threads: 1 + (f64::from(level.most_threads()) * random.uniform()) as u32,
    };
    let count = if level == Level::Quiet { 0 } else { usize::MAX };
    iter::repeat_with(burst).take(count)
}

/// Work of a mean burst over the level, less the burst itself.
fn mean_pause_s(level: Level) -> f64 {
    let length_s = f64::midpoint(SHORTEST_S, LONGEST_S);
    let threads = f64::midpoint(1.0, level.most_threads().into());
    length_s * threads / level.cores() - length_s
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In 0..1, from the 53 bits that a double can hold.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(level: Level) -> Vec<Burst> {
        bursts(level, 7).take(50_000).collect()
    }

    /// Busy cores on average over all of them.
    fn mean_cores(bursts: &[Burst]) -> f64 {
        let work_s = |burst: &Burst| burst.length.as_secs_f64() * f64::from(burst.threads);
        let time_s = |burst: &Burst| (burst.pause + burst.length).as_secs_f64();
        bursts.iter().map(work_s).sum::<f64>() / bursts.iter().map(time_s).sum::<f64>()
    }

    #[test]
    fn a_long_schedule_does_the_work_of_its_level() {
        for (level, cores) in [(Level::Ordinary, 0.3), (Level::Noisy, 1.0)] {
            let mean = mean_cores(&many(level));
            assert!((mean / cores - 1.0).abs() < 0.05, "{level:?}: {mean}");
        }
    }

    #[test]
    fn a_burst_takes_50_ms_to_2_s() {
        let allowed = Duration::from_millis(50)..=Duration::from_secs(2);
        for level in [Level::Ordinary, Level::Noisy] {
            assert!(many(level).iter().all(|burst| allowed.contains(&burst.length)));
        }
    }

    #[test]
    fn only_noisy_bursts_have_two_threads() {
        let share_of_two = |level| {
            let all = many(level);
            all.iter().filter(|burst| burst.threads == 2).count() as f64 / all.len() as f64
        };
        assert!(many(Level::Noisy).iter().all(|burst| (1..=2).contains(&burst.threads)));
        assert!((share_of_two(Level::Noisy) - 0.5).abs() < 0.02);
        assert!(share_of_two(Level::Ordinary) == 0.0);
    }

    #[test]
    fn quiet_has_no_bursts() {
        assert_eq!(bursts(Level::Quiet, 7).next(), None);
    }

    #[test]
    fn a_seed_gives_the_same_bursts_again_and_another_seed_others() {
        let first = |seed| bursts(Level::Noisy, seed).take(100).collect::<Vec<_>>();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn the_random_numbers_are_those_of_the_reference() {
        // https://prng.di.unimi.it/splitmix64.c from the state 1234567.
        let mut random = SplitMix(1_234_567);
        let numbers = [random.next(), random.next(), random.next()];
        let reference =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers, reference);
    }
}
