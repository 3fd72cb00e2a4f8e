//! Turns a [`LoadPlan`] into what the engine works with: checked numbers, a request, a first connection.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::clock::SECOND_NS;
use crate::error::kernel;
use crate::http::Request;
use crate::releases::{Bound, Releases};
use crate::schedule::Schedule;
use crate::{LoadError, LoadModel, LoadPlan, Stop};

/// Files that the process has open besides its connections.
const OWN_FILES: u64 = 32;
/// The longest duration in a plan, seconds: a week.
const LONGEST_S: f64 = 604_800.0;

/// A plan that can be carried out.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The request that is sent again and again.
    pub request: Request,
    /// Connections at most.
    pub connections: usize,
    /// When requests are due; `None` in a closed loop.
    pub schedule: Option<Schedule>,
    /// Longest wait for an answer, nanoseconds.
    pub timeout_ns: u64,
    /// Shortest warm-up, nanoseconds.
    pub warm_up_min_ns: u64,
    /// Longest warm-up, nanoseconds.
    pub warm_up_max_ns: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Length of the measured phase.
    pub length: Length,
}

/// How long a phase lasts, whenever it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Nanoseconds.
    Time(u64),
    /// Requests released.
    Requests(u64),
}

impl Setup {
    /// Checks every number of the plan.
    ///
    /// # Errors
    /// When the plan asks for what cannot be done.
    pub fn new(plan: &LoadPlan) -> Result<Setup, LoadError> {
        let (connections, schedule) = match &plan.model {
            LoadModel::Closed { clients, .. } => {
                (at_least_one("clients", clients.highest() as u32)?, None)
            }
            LoadModel::Open { arrivals, max_connections } => (
                at_least_one("max_connections", *max_connections)?,
                Some(Schedule::new(arrivals, plan.seed)?),
            ),
        };
        let (min_s, max_s) = (plan.warm_up.min_s, plan.warm_up.max_s);
        if min_s > max_s {
            return Err(LoadError::WarmUpBounds { min_s, max_s });
        }
        Ok(Setup {
            request: Request::new(&plan.targets[0])?,
            connections: connections as usize,
            schedule,
            timeout_ns: at_least_one("timeout_ms", plan.timeout_ms)?.saturating_mul(1_000_000),
            warm_up_min_ns: nanoseconds("warm_up.min_s", min_s)?,
            warm_up_max_ns: nanoseconds("warm_up.max_s", max_s)?,
            seed: plan.seed,
            length: match plan.stop {
                Stop::AfterSeconds(s) => Length::Time(nanoseconds("stop.after_seconds", s)?),
                Stop::AfterRequests(n) => Length::Requests(at_least_one("stop.after_requests", n)?),
            },
        })
    }

    /// The releases of a phase of this length that begins at `begin_ns`.
    pub fn releases(&self, length: Length, begin_ns: u64) -> Releases {
        let bound = match length {
            Length::Time(ns) => Bound::Until(begin_ns + ns),
            Length::Requests(requests) => Bound::Requests(requests),
        };
        match &self.schedule {
            None => Releases::closed(bound),
            Some(schedule) => Releases::open(bound, schedule.clone(), begin_ns, self.connections),
        }
    }

    /// Connections to open before the load begins: all of a closed loop, one of an open loop that grows.
    pub fn connections_at_begin(&self) -> usize {
        if self.schedule.is_some() { 1 } else { self.connections }
    }

    /// Makes sure that the process may open all its connections.
    ///
    /// # Errors
    /// When the hard limit is lower.
    pub fn raise_file_limit(&self) -> Result<(), LoadError> {
        let needed = self.connections as u64 + OWN_FILES;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(kernel("getrlimit"))?;
        if hard < needed {
            return Err(LoadError::OpenFileLimit { needed, limit: hard });
        }
        if soft < needed {
            setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(kernel("setrlimit"))?;
        }
        Ok(())
    }

    /// Connects to the first of the target's addresses that answers.
    ///
    /// # Errors
    /// When the host has no address, or none of them accepts a connection within the timeout.
    pub fn connect(&self) -> Result<(SocketAddr, TcpStream), LoadError> {
        let host = &self.request.host;
        let unresolved = |source| LoadError::Resolve { host: host.clone(), source };
        let addresses = (host.as_str(), self.request.port).to_socket_addrs();
        let mut failure = unresolved(None);
        for address in addresses.map_err(|error| unresolved(Some(error)))? {
            match self.connect_to(address) {
                Ok(stream) => return Ok((address, stream)),
                Err(source) => failure = LoadError::Connect { address, source },
            }
        }
        Err(failure)
    }

    /// Connects and waits for it, at most for the timeout.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect_timeout(&address, Duration::from_nanos(self.timeout_ns))
    }
}

fn at_least_one<N: Copy + Into<u64>>(field: &'static str, number: N) -> Result<N, LoadError> {
    if number.into() == 0 { Err(LoadError::Zero { field }) } else { Ok(number) }
}

fn nanoseconds(field: &'static str, seconds: f64) -> Result<u64, LoadError> {
    if !(0.0..=LONGEST_S).contains(&seconds) {
        return Err(LoadError::BadDuration { field, seconds });
    }
    Ok((seconds * SECOND_NS as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str) -> LoadPlan {
        let text = r#"{"targets": [{"url": "http://127.0.0.1:1"}], "model": {"closed": {"clients": [{"duration_s": 0, "from": 2, "to": 2}]}},
                       "warm_up": {"min_s": 0, "max_s": 1}, "stop": {"after_seconds": 1},
                       "timeout_ms": 100, "seed": 1}"#;
        let mut plan: serde_json::Value = serde_json::from_str(text).unwrap();
        let changed: serde_json::Value = serde_json::from_str(json).unwrap();
        for (key, value) in changed.as_object().unwrap() {
            plan[key] = value.clone();
        }
        serde_json::from_value(plan).unwrap()
    }

    #[test]
    fn numbers_become_nanoseconds() {
        let setup = Setup::new(&plan(r#"{"stop": {"after_seconds": 0.25}}"#)).unwrap();
        assert_eq!(setup.length, Length::Time(250_000_000));
        assert_eq!((setup.timeout_ns, setup.warm_up_max_ns), (100_000_000, SECOND_NS));
    }

    #[test]
    fn plans_that_cannot_be_carried_out_are_refused() {
        for change in [
            r#"{"model": {"closed": {"clients": [{"duration_s": 0, "from": 0, "to": 0}]}}}"#,
            r#"{"model": {"open": {"arrivals": {"rate_per_s": [{"duration_s": 0, "from": 5, "to": 5}]}, "max_connections": 0}}}"#,
            r#"{"model": {"open": {"arrivals": {"spacing": "poisson", "rate_per_s": [{"duration_s": 0, "from": -5, "to": -5}]}, "max_connections": 1}}}"#,
            r#"{"stop": {"after_requests": 0}}"#,
            r#"{"stop": {"after_seconds": -1}}"#,
            r#"{"warm_up": {"min_s": 2, "max_s": 1}}"#,
            r#"{"timeout_ms": 0}"#,
        ] {
            let error = Setup::new(&plan(change)).expect_err(change);
            assert!(error.help().is_some(), "{error}");
        }
    }
}
