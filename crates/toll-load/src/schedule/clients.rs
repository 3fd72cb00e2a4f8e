//! The number of clients of a closed loop over time: a profile, rounded to whole clients.

use super::profile::{Line, client_lines};
use crate::{LoadError, Profile};

/// Millionths of a client.
const CLIENT: u128 = 1_000_000;

/// How many clients are at work at an instant of a phase.
#[derive(Debug, Clone)]
pub(crate) struct Clients {
    lines: Vec<Line>,
}

impl Clients {
    /// The clients of a profile.
    ///
    /// # Errors
    /// When the profile cannot be followed, or never comes to one client.
    pub fn new(profile: &Profile) -> Result<Clients, LoadError> {
        let clients = Clients { lines: client_lines(profile)? };
        if clients.highest() == 0 {
            return Err(LoadError::AlwaysZero { field: "clients" });
        }
        Ok(clients)
    }

    /// Clients at this instant; a half counts as a whole.
    pub fn at(&self, since_begin_ns: u64) -> u32 {
        let line = &self.lines[self.index_at(since_begin_ns)];
        clients_at(line, since_begin_ns - line.begin_ns)
    }

    /// The next instant, after this one, at which their number is another.
    pub fn next_change(&self, since_begin_ns: u64) -> Option<u64> {
        let now = self.at(since_begin_ns);
        self.lines[self.index_at(since_begin_ns)..].iter().find_map(|line| {
            let since = since_begin_ns.saturating_sub(line.begin_ns);
            let jumps = clients_at(line, since) != now;
            let change = if jumps { Some(since) } else { next_change(line, now) };
            change.map(|instant| line.begin_ns + instant)
        })
    }

    /// Most clients at any time.
    pub fn highest(&self) -> u32 {
        let ends = |line: &Line| clients_at(line, 0).max(clients_at(line, line.length_ns - 1));
        self.lines.iter().map(ends).max().unwrap_or(0)
    }

    fn index_at(&self, since_begin_ns: u64) -> usize {
        self.lines.partition_point(|line| line.begin_ns <= since_begin_ns) - 1
    }
}

/// Clients so many nanoseconds after the line's begin.
fn clients_at(line: &Line, since: u64) -> u32 {
    let (length, left) = (u128::from(line.length_ns), u128::from(line.length_ns - since));
    let value = u128::from(line.from) * left + u128::from(line.to) * u128::from(since);
    // A profile has a million clients at most.
    ((value + length * CLIENT / 2) / (length * CLIENT)) as u32
}

/// When a line that has `now` clients comes to another number, nanoseconds from its begin.
fn next_change(line: &Line, now: u32) -> Option<u64> {
    let (from, length) = (u128::from(line.from), u128::from(line.length_ns));
    let (rise, half_below) = (u128::from(line.rise()), |n: u128| n * CLIENT - CLIENT / 2);
    let instant = match (line.from < line.to, line.from > line.to) {
        (true, _) => ((half_below(u128::from(now) + 1) - from) * length).div_ceil(rise),
        (_, true) if now > 0 => (from - half_below(now.into())) * length / rise + 1,
        _ => return None,
    };
    (instant < length).then_some(instant as u64)
}
