//! Turns a count of successes into a share with its interval.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::Error;
use crate::estimate::{Estimate, Level};

/// The share of `successes` among `trials` with its score interval (Wilson, "Probable inference, the law of succession,
/// and statistical inference", JASA 22, 1927), which stays within 0..=1 and holds for shares close to either.
///
/// # Errors
/// [`Error::TooFew`] without trials, or with fewer than successes.
pub fn wilson(successes: usize, trials: usize, level: Level) -> Result<Estimate, Error> {
    let need = successes.max(1);
    if trials < need {
        return Err(Error::TooFew { have: trials, need });
    }
    let (n, share) = (trials as f64, successes as f64 / trials as f64);
    let z = Normal::standard().inverse_cdf(0.5 + level.share() / 2.0);
    let centre = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + (z / (2.0 * n)).powi(2)).sqrt();
    let [low, high] = [centre - half, centre + half].map(|end| end / (1.0 + z * z / n));
    Ok(Estimate { value: share, low: low.max(0.0), high: high.min(1.0), level, samples: trials })
}
