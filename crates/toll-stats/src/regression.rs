//! Turns observations of several terms into the plane through them, with intervals of its coefficients and of what
//! it predicts.
//!
//! Ordinary least squares (Legendre 1805, Gauss 1809) by Householder's orthogonal triangularization (Golub, "Numerical
//! methods for solving linear least squares problems", Numerische Mathematik 7, 1965): the normal equations would
//! square the condition number. Two things say how far a coefficient may be off:
//!
//! * the residuals, by the textbook: `s^2 (X'X)^-1` with `n - p` degrees of freedom (Draper and Smith, "Applied
//!   regression analysis", chapters 1 and 5). It takes every observation for independent, and a plane that does not
//!   fit for noise.
//! * the rounds, by the jackknife over them (Tukey 1958; for regressions Hinkley, "Jackknifing in unbalanced
//!   situations", Technometrics 19, 1977) with one degree of freedom less than rounds. It takes only rounds for
//!   independent: what the observations of a round share (a busy hour, a bring-up that several loads use) narrows no
//!   interval, but it cannot see a plane that misses in every round alike.
//!
//! Each is too narrow where the other is right, so every interval is the wider of the two. One round leaves the
//! textbook's alone.

use crate::Error;
use crate::estimate::{Estimate, Level, student};

/// A column whose share beyond the columns before it is smaller than this depends on them.
const COLLINEAR: f64 = 1e-10;

/// One value, and the terms that it is made of: `value = sum of coefficient x term`. A constant is a term that is 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// As many in every observation.
    pub terms: Vec<f64>,
    /// What was measured.
    pub value: f64,
}

/// A plane through observations.
#[derive(Debug, Clone, PartialEq)]
pub struct Regression {
    coefficients: Vec<f64>,
    residual_variance: f64,
    observations: usize,
    doubts: Vec<Doubt>,
}

/// How far the coefficients may be off, by one way to look at it.
#[derive(Debug, Clone, PartialEq)]
struct Doubt {
    covariance: Vec<Vec<f64>>,
    degrees_of_freedom: f64,
    /// Starts that share the doubt: one start of its own is so many times as uncertain. Zero where it knows of none.
    starts: f64,
}

/// The plane through the observations of all `rounds` that has the least sum of squared distances.
///
/// # Errors
/// [`Error::TooFew`] unless there are more observations than terms, [`Error::UnequalTerms`], [`Error::NotFinite`],
/// [`Error::Collinear`].
pub fn regression(rounds: &[&[Observation]]) -> Result<Regression, Error> {
    let all: Vec<&Observation> = rounds.iter().copied().flatten().collect();
    let solved = Solved::of(&all)?;
    let residuals = residual_variance(&all, &solved.coefficients);
    let textbook = Doubt {
        covariance: scaled(&solved.inverse_square(), residuals),
        degrees_of_freedom: (all.len() - solved.coefficients.len()) as f64,
        starts: 0.0,
    };
    Ok(Regression {
        residual_variance: residuals,
        observations: all.len(),
        doubts: std::iter::once(textbook).chain(doubt_of_rounds(rounds)).collect(),
        coefficients: solved.coefficients,
    })
}

impl Regression {
    /// In the order of the terms.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Standard deviation of the observations around the plane.
    pub fn residual_deviation(&self) -> f64 {
        self.residual_variance.sqrt()
    }

    /// The plane at `terms`, which may also pick a coefficient or be a difference of two places.
    ///
    /// # Panics
    /// Unless there are as many terms as the observations had.
    pub fn at(&self, terms: &[f64], level: Level) -> Estimate {
        self.around(terms, level, |_| 0.0)
    }

    /// Where one more observation at `terms` would lie that has a start of its own. Its own variance is that of the
    /// planes of single rounds, R times the variance of their common one, and that of the residuals, `s^2`: on either
    /// side `sqrt(c'Vc + R c'Vc + s^2)`. By the textbook, which knows of no starts, `sqrt(c'Vc + s^2)`.
    ///
    /// # Panics
    /// Unless there are as many terms as the observations had.
    pub fn predict(&self, terms: &[f64], level: Level) -> Estimate {
        let own = |doubt: &Doubt| doubt.starts * doubt.covariance(terms, terms);
        self.around(terms, level, |doubt| own(doubt) + self.residual_variance)
    }

    /// The `x` at which the plane at `terms + x * along` is zero, by Fieller's theorem (Fieller, "Some problems in
    /// interval estimation", JRSS B 16, 1954). `None` where the slope along the way may be zero: then the interval
    /// has no end, and any `x` or none may be it.
    ///
    /// # Panics
    /// Unless there are as many terms as the observations had.
    pub fn zero(&self, terms: &[f64], along: &[f64], level: Level) -> Option<Estimate> {
        let (height, slope) = (dot(&self.coefficients, terms), dot(&self.coefficients, along));
        let ends: Option<Vec<(f64, f64)>> = self
            .doubts
            .iter()
            .map(|doubt| {
                let t = student(level, doubt.degrees_of_freedom);
                let squared = |a: &[f64], b: &[f64]| t * t * doubt.covariance(a, b);
                ends(
                    slope * slope - squared(along, along),
                    height * slope - squared(terms, along),
                    height * height - squared(terms, terms),
                )
            })
            .collect();
        let ends = ends?;
        Some(Estimate {
            value: -height / slope,
            low: ends.iter().map(|(low, _)| *low).fold(f64::INFINITY, f64::min),
            high: ends.iter().map(|(_, high)| *high).fold(f64::NEG_INFINITY, f64::max),
            level,
            samples: self.observations,
        })
    }

    fn around(&self, terms: &[f64], level: Level, own: impl Fn(&Doubt) -> f64) -> Estimate {
        let half = |doubt: &Doubt| {
            let variance = doubt.covariance(terms, terms) + own(doubt);
            student(level, doubt.degrees_of_freedom) * variance.max(0.0).sqrt()
        };
        let half = self.doubts.iter().map(half).fold(0.0, f64::max);
        let value = dot(&self.coefficients, terms);
        let (low, high) = (value - half, value + half);
        Estimate { value, low, high, level, samples: self.observations }
    }
}

impl Doubt {
    fn covariance(&self, a: &[f64], b: &[f64]) -> f64 {
        self.covariance.iter().zip(a).map(|(row, weight)| weight * dot(row, b)).sum()
    }
}

/// The roots of `a x^2 + 2 b x + c`, between which it is negative; `None` where that is not between two ends.
fn ends(a: f64, b: f64, c: f64) -> Option<(f64, f64)> {
    if a <= 0.0 {
        return None;
    }
    // The estimate lies in its interval, so that a root below zero is one of rounding.
    let root = (b * b - a * c).max(0.0).sqrt();
    Some(((-b - root) / a, (-b + root) / a))
}

/// The scatter of what each round says of the coefficients; `None` where a round cannot be left out.
fn doubt_of_rounds(rounds: &[&[Observation]]) -> Option<Doubt> {
    let n = rounds.len() as f64;
    let without = |left_out: usize| -> Option<Vec<f64>> {
        let kept = rounds.iter().enumerate().filter(|(i, _)| *i != left_out);
        let kept: Vec<&Observation> = kept.flat_map(|(_, round)| round.iter()).collect();
        Some(Solved::of(&kept).ok()?.coefficients)
    };
    let without: Vec<Vec<f64>> = (0..rounds.len()).map(without).collect::<Option<_>>()?;
    if without.len() < 2 {
        return None;
    }
    let mean = |at: usize| without.iter().map(|c| c[at]).sum::<f64>() / n;
    let means: Vec<f64> = (0..without[0].len()).map(mean).collect();
    let entry = |i: usize, j: usize| {
        let products = without.iter().map(|c| (c[i] - means[i]) * (c[j] - means[j]));
        products.sum::<f64>() * (n - 1.0) / n
    };
    let covariance = square(means.len(), entry);
    Some(Doubt { covariance, degrees_of_freedom: n - 1.0, starts: n })
}

/// The coefficients, and the triangle `R` with `X'X = R'R`.
struct Solved {
    coefficients: Vec<f64>,
    triangle: Vec<Vec<f64>>,
}

impl Solved {
    fn of(observations: &[&Observation]) -> Result<Self, Error> {
        let terms = observations.first().map_or(0, |first| first.terms.len());
        check(observations, terms)?;
        let mut columns: Vec<Vec<f64>> =
            (0..terms).map(|at| observations.iter().map(|o| o.terms[at]).collect()).collect();
        let mut values: Vec<f64> = observations.iter().map(|o| o.value).collect();
        let sizes: Vec<f64> = columns.iter().map(|column| norm(column)).collect();
        for at in 0..terms {
            let mirror = Mirror::onto(&columns[at], at);
            columns[at..].iter_mut().for_each(|column| mirror.reflect(column));
            mirror.reflect(&mut values);
            if columns[at][at].abs() <= COLLINEAR * sizes[at] {
                return Err(Error::Collinear { term: at });
            }
        }
        let triangle = square(terms, |i, j| if i <= j { columns[j][i] } else { 0.0 });
        Ok(Self { coefficients: backward(&triangle, &values[..terms]), triangle })
    }

    /// `(X'X)^-1`.
    fn inverse_square(&self) -> Vec<Vec<f64>> {
        let n = self.triangle.len();
        let unit = |at: usize| (0..n).map(|i| f64::from(u8::from(i == at))).collect::<Vec<_>>();
        // Column by column of the inverse triangle; the product of its rows is what is asked.
        let columns: Vec<Vec<f64>> = (0..n).map(|at| backward(&self.triangle, &unit(at))).collect();
        square(n, |i, j| columns.iter().map(|column| column[i] * column[j]).sum())
    }
}

fn check(observations: &[&Observation], terms: usize) -> Result<(), Error> {
    let (have, need) = (observations.len(), terms + 1);
    if have < need {
        return Err(Error::TooFew { have, need });
    }
    let position =
        |wrong: &dyn Fn(&Observation) -> bool| observations.iter().position(|o| wrong(o));
    if let Some(index) = position(&|o| o.terms.len() != terms) {
        return Err(Error::UnequalTerms { index });
    }
    match position(&|o| o.terms.iter().chain([&o.value]).any(|v| !v.is_finite())) {
        Some(index) => Err(Error::NotFinite { index }),
        None => Ok(()),
    }
}

/// The reflection that leaves nothing of a column below one of its places (Householder 1958).
struct Mirror {
    from: usize,
    normal: Vec<f64>,
    squared: f64,
}

impl Mirror {
    fn onto(column: &[f64], from: usize) -> Self {
        let mut normal = column[from..].to_vec();
        // Away from zero: the other sign would take almost equal numbers from each other.
        normal[0] += norm(&normal).copysign(normal[0]);
        let squared = dot(&normal, &normal);
        Self { from, normal, squared }
    }

    fn reflect(&self, column: &mut [f64]) {
        if self.squared == 0.0 {
            return;
        }
        let tail = &mut column[self.from..];
        let by = 2.0 * dot(&self.normal, tail) / self.squared;
        tail.iter_mut().zip(&self.normal).for_each(|(value, normal)| *value -= by * normal);
    }
}

/// The solution of `triangle x = right`, last first.
fn backward(triangle: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; right.len()];
    for at in (0..right.len()).rev() {
        let known = dot(&triangle[at][at + 1..], &solution[at + 1..]);
        solution[at] = (right[at] - known) / triangle[at][at];
    }
    solution
}

fn residual_variance(observations: &[&Observation], coefficients: &[f64]) -> f64 {
    let squared = observations.iter().map(|o| (o.value - dot(&o.terms, coefficients)).powi(2));
    squared.sum::<f64>() / (observations.len() - coefficients.len()) as f64
}

fn square(size: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect()
}

fn scaled(matrix: &[Vec<f64>], by: f64) -> Vec<Vec<f64>> {
    matrix.iter().map(|row| row.iter().map(|v| v * by).collect()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "as many terms as the observations had");
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(column: &[f64]) -> f64 {
    dot(column, column).sqrt()
}
