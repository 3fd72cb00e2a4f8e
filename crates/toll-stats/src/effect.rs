//! Turns the figures of rounds into the effect of a variant: its ratio to the baseline, with its interval, and the
//! difference in the metric's unit that goes with it.
//!
//! The effect of a round is the logarithm of the variant's figure less the mean of the logarithms of the baseline's
//! arms, so that what disturbs a round as a whole cancels out, and swapped arms give exactly the inverse ratio (Fleming
//! and Wallace, "How not to lie with statistics", CACM 29, 1986). Over rounds it has Student's t interval (Student 1908),
//! and a figure of histograms merged over rounds the jackknife's. Mean, ratio and difference come from the same rounds
//! and cannot contradict each other: the difference is the baseline's mean x (ratio - 1), interval included.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Error;
use crate::estimate::{Estimate, Level, all_finite, mean, student};
use crate::jackknife::jackknife;

/// One metric of a variant and of the baseline: in one round, or merged over rounds. All above zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The variant's.
    pub variant: f64,
    /// The baseline's.
    pub baseline: f64,
    /// That of the baseline's second arm, where there is one.
    pub again: Option<f64>,
}

/// What a variant changes in one metric; of two rounds or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    baseline: f64,
    logarithm: Estimate,
}

impl Figures {
    /// The logarithm of the ratio of the variant to the baseline, whose arms count alike.
    ///
    /// # Errors
    /// [`Error::NotFinite`] and [`Error::NotPositive`] with the position of the figure.
    pub fn log_ratio(&self) -> Result<f64, Error> {
        let figures: Vec<f64> =
            [self.variant, self.baseline].into_iter().chain(self.again).collect();
        all_finite(&figures)?;
        if let Some(index) = figures.iter().position(|figure| *figure <= 0.0) {
            return Err(Error::NotPositive { index, value: figures[index] });
        }
        let baseline = self
            .again
            .map_or(self.baseline.ln(), |again| f64::midpoint(self.baseline.ln(), again.ln()));
        Ok(self.variant.ln() - baseline)
    }

    fn of_baseline(&self) -> f64 {
        self.again.map_or(self.baseline, |again| f64::midpoint(self.baseline, again))
    }
}

impl Effect {
    /// The effect of a metric that each round has a figure of.
    ///
    /// # Errors
    /// [`Error::TooFew`] below two rounds, [`Error::NotFinite`], [`Error::NotPositive`].
    pub fn over_rounds(rounds: &[Figures], level: Level) -> Result<Self, Error> {
        let logarithm = mean(&log_ratios(rounds)?, level)?;
        let of_baseline = rounds.iter().map(Figures::of_baseline);
        Ok(Self { baseline: of_baseline.sum::<f64>() / rounds.len() as f64, logarithm })
    }

    /// The effect of a metric that needs all rounds together, such as a percentile of merged histograms: from the
    /// figures of `all` rounds and of all but each one. `resolution` is the width of a histogram's bucket as a share of its
    /// value: a figure lies anywhere in one, which has a variance of its own (width squared / 12).
    ///
    /// # Errors
    /// [`Error::TooFew`] below two rounds, [`Error::NotFinite`], [`Error::NotPositive`].
    pub fn of_merged(
        all: Figures,
        without: &[Figures],
        resolution: f64,
        level: Level,
    ) -> Result<Self, Error> {
        let of_rounds = jackknife(all.log_ratio()?, &log_ratios(without)?, level)?;
        let of_buckets = resolution * (2.0_f64 / 12.0).sqrt();
        let half =
            of_rounds.half_width().hypot(student(level, without.len() as f64 - 1.0) * of_buckets);
        let logarithm =
            Estimate { low: of_rounds.value - half, high: of_rounds.value + half, ..of_rounds };
        Ok(Self { baseline: all.of_baseline(), logarithm })
    }

    /// The baseline's mean over the same rounds and both of its arms.
    pub fn baseline(&self) -> f64 {
        self.baseline
    }

    /// What goes with it for the variant: the baseline's mean x ratio.
    pub fn variant(&self) -> f64 {
        self.baseline * self.ratio().value
    }

    /// Variant divided by baseline.
    pub fn ratio(&self) -> Estimate {
        self.logarithm.map(f64::exp)
    }

    /// By which share of the baseline the variant lies above it: -0.1 for ten per cent less.
    pub fn change(&self) -> Estimate {
        self.logarithm.map(f64::exp_m1)
    }

    /// The change in the metric's unit. It has the ratio's sign, and excludes zero where that excludes one.
    pub fn difference(&self) -> Estimate {
        self.change().map(|share| self.baseline * share)
    }

    /// The mean of the rounds' logarithms; its half width is nearly that of the ratio as a share of the ratio.
    pub fn log_ratio(&self) -> Estimate {
        self.logarithm
    }

    /// How likely so large an effect, up or down, is where there is none (Student's t, two-sided).
    pub fn p_value(&self) -> f64 {
        (2.0 * self.tail(self.logarithm.value.abs())).min(1.0)
    }

    /// How likely an effect as close to none as this one is where the true change is `bound` (a share of the baseline,
    /// above zero) or more, up or down: two one-sided tests (Schuirmann, "A comparison of the two one-sided tests
    /// procedure and the power approach", Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
    pub fn p_value_within(&self, bound: f64) -> f64 {
        let below = self.tail(bound.ln_1p() - self.logarithm.value);
        // Nothing falls by more than all.
        let above =
            if bound < 1.0 { self.tail(self.logarithm.value - (-bound).ln_1p()) } else { 0.0 };
        below.max(above)
    }

    /// Whether a `trimmed` mean of the logarithms of single cycles lies further from this effect than its half width:
    /// then a few cycles decide one of the two.
    pub fn strays_from(&self, trimmed: f64) -> bool {
        (trimmed - self.logarithm.value).abs() > self.logarithm.half_width()
    }

    /// Standard error of [`Effect::log_ratio`].
    pub fn standard_error(&self) -> f64 {
        self.logarithm.half_width() / student(self.logarithm.level, self.degrees_of_freedom())
    }

    pub(crate) fn degrees_of_freedom(&self) -> f64 {
        self.logarithm.samples as f64 - 1.0
    }

    /// How likely a mean lies so far `above` the truth.
    fn tail(&self, above: f64) -> f64 {
        let error = self.standard_error();
        if error == 0.0 {
            return if above > 0.0 { 0.0 } else { 1.0 };
        }
        StudentsT::new(0.0, 1.0, self.degrees_of_freedom())
            .expect("two rounds have a degree of freedom")
            .sf(above / error)
    }
}

fn log_ratios(rounds: &[Figures]) -> Result<Vec<f64>, Error> {
    rounds.iter().map(Figures::log_ratio).collect()
}
