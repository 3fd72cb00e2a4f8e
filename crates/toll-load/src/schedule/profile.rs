//! Turns a [`Profile`] into straight lines in whole nanoseconds and whole millionths of its quantity.
//!
//! In these units everything that a line is asked for (its value, its integral, the instant of either) is a
//! fraction of whole numbers, hence exact.

use crate::clock::SECOND_NS;
use crate::{LoadError, Profile, Stage};

/// The longest duration in a plan, seconds: a week.
const LONGEST_S: f64 = 604_800.0;
/// Parts of one request per second, or of one client.
pub(super) const MICRO: f64 = 1e6;
const HIGHEST_RATE: f64 = 1e7;
const MOST_CLIENTS: f64 = 1e6;

/// A straight piece of a profile that lasts for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    /// Nanoseconds since the phase began.
    pub begin_ns: u64,
    /// Never zero.
    pub length_ns: u64,
    /// Millionths at the begin.
    pub from: u64,
    /// Millionths at the end, which is the next line's.
    pub to: u64,
}

impl Line {
    /// A value from `begin_ns` to the end of the nanoseconds, 584 years later.
    pub fn for_ever(begin_ns: u64, value: u64) -> Line {
        Line { begin_ns, length_ns: u64::MAX - begin_ns, from: value, to: value }
    }

    /// How far the value moves, millionths.
    pub fn rise(&self) -> u64 {
        self.to.abs_diff(self.from)
    }
}

/// The lines of an arrival rate; the first begins at zero, the last never ends.
///
/// # Errors
/// When a value or a duration is out of range, or the rate is zero everywhere.
pub(super) fn rate_lines(profile: &Profile) -> Result<Vec<Line>, LoadError> {
    let lines = lines("rate_per_s", profile, rate)?;
    if lines.iter().all(|line| line.from == 0 && line.to == 0) {
        return Err(LoadError::AlwaysZero { field: "rate_per_s" });
    }
    Ok(lines)
}

/// The lines of a number of clients.
///
/// # Errors
/// When a value or a duration is out of range.
pub(super) fn client_lines(profile: &Profile) -> Result<Vec<Line>, LoadError> {
    lines("clients", profile, clients)
}

/// Millionths of a request per second. A rate that would round to zero is refused, not taken for a pause.
fn rate(rate_per_s: f64) -> Result<u64, LoadError> {
    let micro = (rate_per_s * MICRO).round();
    if rate_per_s == 0.0 || (1.0..=HIGHEST_RATE * MICRO).contains(&micro) {
        Ok(micro as u64)
    } else {
        Err(LoadError::BadRate { rate_per_s })
    }
}

/// Millionths of a client.
fn clients(clients: f64) -> Result<u64, LoadError> {
    if (0.0..=MOST_CLIENTS).contains(&clients) {
        Ok((clients * MICRO).round() as u64)
    } else {
        Err(LoadError::BadClients { clients })
    }
}

fn lines(
    field: &'static str,
    profile: &Profile,
    micro: impl Fn(f64) -> Result<u64, LoadError>,
) -> Result<Vec<Line>, LoadError> {
    let Some(last) = profile.stages.last() else {
        return Err(LoadError::NoStage { field });
    };
    let mut lines = Vec::with_capacity(profile.stages.len() + 1);
    let mut begin_ns = 0;
    for stage in &profile.stages {
        let (from, to) = (micro(stage.from)?, micro(stage.to)?);
        let length_ns = nanoseconds("the duration_s of a stage", stage.duration_s)?;
        if length_ns > 0 {
            lines.push(Line { begin_ns, length_ns, from, to });
            begin_ns += length_ns;
            nanoseconds("the duration_s of all stages", begin_ns as f64 / SECOND_NS as f64)?;
        }
    }
    lines.push(Line::for_ever(begin_ns, micro(last.to)?));
    Ok(lines)
}

/// Seconds of a plan in nanoseconds.
///
/// # Errors
/// When they are negative, no number, or more than a week.
pub(crate) fn nanoseconds(field: &'static str, seconds: f64) -> Result<u64, LoadError> {
    if !(0.0..=LONGEST_S).contains(&seconds) {
        return Err(LoadError::BadDuration { field, seconds });
    }
    Ok(to_ns(seconds))
}

fn to_ns(seconds: f64) -> u64 {
    (seconds * SECOND_NS as f64).round() as u64
}

/// Which stage of a profile is in force when.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    bounds: Vec<(u64, u64)>,
}

impl Stages {
    /// The stages of a profile that has at least one.
    pub fn new(profile: &Profile) -> Stages {
        let mut begin_ns = 0_u64;
        let bounds = profile.stages.iter().map(|stage: &Stage| {
            let end_ns = begin_ns.saturating_add(to_ns(stage.duration_s));
            (std::mem::replace(&mut begin_ns, end_ns), end_ns)
        });
        Stages { bounds: bounds.collect() }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bounds.len()
    }

    /// Number of the stage in force. The last one stays; one without duration before others never is.
    pub fn index_at(&self, since_begin_ns: u64) -> usize {
        self.bounds.partition_point(|(begin_ns, _)| *begin_ns <= since_begin_ns) - 1
    }

    /// Begin and end of a stage as written, nanoseconds since the phase began.
    pub fn bounds(&self, index: usize) -> (u64, u64) {
        self.bounds[index]
    }
}
