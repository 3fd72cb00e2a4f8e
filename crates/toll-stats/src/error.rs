//! Why a statistic cannot be computed.

/// A statistic that its input does not carry.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Error {
    /// Fewer values than the statistic needs.
    #[error("too few values: {have} of at least {need}")]
    TooFew {
        /// Values given.
        have: usize,
        /// Values needed.
        need: usize,
    },
    /// A ratio needs figures above zero.
    #[error("no ratio with a value of {value} (figure {index})")]
    NotPositive {
        /// Position in [`crate::Figures`], from 0: the variant's, the baseline's, its second arm's.
        index: usize,
        /// The value that is zero or negative.
        value: f64,
    },
    /// A value is infinite or not a number.
    #[error("value {index} is not a finite number")]
    NotFinite {
        /// Position of the value, from 0.
        index: usize,
    },
    /// A line needs points at two places at least.
    #[error("no line through points that all lie at {0}")]
    NoSpread(f64),
    /// Observations of one plane have the same terms.
    #[error("observation {index} has not as many terms as the first")]
    UnequalTerms {
        /// Position of the observation, from 0.
        index: usize,
    },
    /// A term that follows from the ones before it has no coefficient of its own.
    #[error("term {term} follows from the terms before it")]
    Collinear {
        /// Position of the term, from 0.
        term: usize,
    },
    /// The points of a series come in the order of time, no two at once.
    #[error("point {index} is not later than the one before")]
    NotInOrder {
        /// Position of the point, from 0.
        index: usize,
    },
    /// A level of an interval lies strictly between 0 and 1.
    #[error("level {0} of an interval is not between 0 and 1")]
    LevelOutOfRange(f64),
    /// A quantile lies between 0 and 1.
    #[error("quantile {0} is not between 0 and 1")]
    QuantileOutOfRange(f64),
}

impl Error {
    /// What to do about it; absent where only the caller's code can help.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::TooFew { need, .. } => Some(format!("run at least {need} valid rounds")),
            Self::NotPositive { .. } => {
                Some("leave the metric out: a ratio to zero says nothing".into())
            }
            Self::LevelOutOfRange(_) => Some("for 95 % write 0.95".into()),
            Self::QuantileOutOfRange(_) => Some("for the 99th percentile write 0.99".into()),
            Self::NoSpread(_) => Some("vary what the line is drawn over".into()),
            Self::Collinear { .. } => {
                Some("vary each of the terms while the others stay as they are".into())
            }
            Self::NotFinite { .. } | Self::NotInOrder { .. } | Self::UnequalTerms { .. } => None,
        }
    }
}
