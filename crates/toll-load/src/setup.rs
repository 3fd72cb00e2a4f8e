//! Turns a [`LoadPlan`] into what the event loops work with: checked numbers and origins to connect to.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::connection::Speech;
use crate::error::kernel;
use crate::pool::Shape;
use crate::requests::{Numbers, Requests};
use crate::routes::Routes;
use crate::schedule::{Clients, Slice, Stages, nanoseconds};
use crate::transport::Origin;
use crate::{Iteration, LoadError, LoadModel, LoadPlan, Profile, Protocol, Reuse, Stop};

/// Files that the process has open besides its connections.
const OWN_FILES: u64 = 32;
/// Its event queue, its timer, what wakes it, and what it copies them from.
const FILES_OF_A_LOOP: u64 = 4;

/// A plan that can be carried out.
#[derive(Debug)]
pub(crate) struct Setup {
    /// What was asked for.
    pub plan: LoadPlan,
    /// Number of the route to the origins.
    pub route: usize,
    /// Where connections go, in the order in which the targets name them.
    pub origins: Vec<Origin>,
    /// Time that names took to resolve.
    pub resolved_in: Duration,
    /// Stages of the profile.
    pub stages: Stages,
    /// Longest wait for an answer, nanoseconds.
    pub timeout_ns: u64,
    /// Shortest warm-up, nanoseconds.
    pub warm_up_min_ns: u64,
    /// Longest warm-up, nanoseconds.
    pub warm_up_max_ns: u64,
    /// Length of the measured phase, in all event loops together.
    pub length: Length,
    /// Number of the first request.
    first_number: u64,
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
    /// Checks the whole plan and finds the addresses of its hosts. Its requests are numbered from `next_number` on.
    ///
    /// # Errors
    /// When the plan asks for what cannot be done, or a host has no address.
    pub fn new(plan: &LoadPlan, routes: &mut Routes, next_number: u64) -> Result<Setup, LoadError> {
        let (min_s, max_s) = (plan.warm_up.min_s, plan.warm_up.max_s);
        if min_s > max_s {
            return Err(LoadError::WarmUpBounds { min_s, max_s });
        }
        let mut setup = Setup {
            plan: plan.clone(),
            route: 0,
            origins: Vec::new(),
            resolved_in: Duration::ZERO,
            stages: Stages::new(profile(&plan.model)),
            timeout_ns: at_least_one("timeout_ms", plan.timeout_ms)?.saturating_mul(1_000_000),
            warm_up_min_ns: nanoseconds("warm_up.min_s", min_s)?,
            warm_up_max_ns: nanoseconds("warm_up.max_s", max_s)?,
            length: match plan.stop {
                Stop::AfterSeconds(s) => Length::Time(nanoseconds("stop.after_seconds", s)?),
                Stop::AfterRequests(n) => Length::Requests(at_least_one("stop.after_requests", n)?),
            },
            first_number: 0,
        };
        setup.check_counts()?;
        // A whole number of turns of all loops, and of all engines that share the load: each keeps its own numbers.
        setup.first_number = next_number.next_multiple_of(setup.request_slice(0).stride);
        // Made here once to find what is wrong with it before anything is sent.
        let requests = setup.requests(0)?;
        let timeout = Duration::from_nanos(setup.timeout_ns);
        (setup.route, setup.resolved_in) =
            routes.find(&plan.connection, requests.origins(), timeout)?;
        setup.origins = routes.route(setup.route).origins.clone();
        Ok(setup)
    }

    fn check_counts(&self) -> Result<(), LoadError> {
        let plan = &self.plan;
        at_least_one("threads", plan.threads)?;
        at_least_one("streams", plan.connection.protocol.streams())?;
        at_least_one("part.of", plan.part.of)?;
        match &plan.model {
            LoadModel::Closed { clients, iteration } => {
                at_least_one("iteration.requests", iteration.requests)?;
                nanoseconds("iteration.think_ms", iteration.think_ms / 1e3)?;
                Clients::new(clients)?;
            }
            LoadModel::Open { arrivals, max_connections } => {
                at_least_one("max_connections", *max_connections)?;
                let loops = plan.threads.saturating_mul(plan.part.of);
                if *max_connections < loops {
                    return Err(LoadError::FewerConnectionsThanLoops {
                        connections: *max_connections,
                        loops,
                    });
                }
                crate::schedule::Schedule::new(arrivals, plan.seed, self.slice(0))?;
            }
        }
        Ok(())
    }

    /// The share of arrivals, clients and request numbers of one event loop.
    pub fn slice(&self, thread: u32) -> Slice {
        let part = self.plan.part;
        Slice {
            first: u64::from(part.index) + u64::from(part.of) * u64::from(thread),
            stride: u64::from(part.of) * u64::from(self.plan.threads),
        }
    }

    /// The share of the requests of one event loop: none where there is no client to send them.
    fn request_slice(&self, thread: u32) -> Slice {
        let Slice { first, stride } = self.slice(thread);
        let senders = match &self.plan.model {
            LoadModel::Closed { clients, .. } => (clients.highest().round() as u64).max(1),
            LoadModel::Open { .. } => stride,
        };
        Slice { first, stride: stride.min(senders) }
    }

    /// The measured phase's length for one event loop.
    pub fn length_of(&self, thread: u32) -> Length {
        match self.length {
            Length::Time(ns) => Length::Time(ns),
            Length::Requests(all) => {
                let Slice { first, stride } = self.request_slice(thread);
                let share = all.saturating_sub(first).div_ceil(stride);
                Length::Requests(if first < stride { share } else { 0 })
            }
        }
    }

    /// The requests of one event loop.
    ///
    /// # Errors
    /// When a target cannot be sent.
    pub fn requests(&self, thread: u32) -> Result<Requests, LoadError> {
        let Slice { first, stride } = self.request_slice(thread);
        let plan = &self.plan;
        let numbers = Numbers { base: self.first_number, first, stride };
        Requests::new(&plan.targets, &plan.rows, &plan.connection, plan.seed, numbers)
    }

    /// The connections of one event loop, which has so many clients.
    pub fn shape(&self, thread: u32, clients: usize) -> Shape {
        let protocol = self.plan.connection.protocol;
        let per_request = self.plan.connection.reuse == Reuse::PerRequest;
        let streams = if per_request { 1 } else { protocol.streams() };
        let (slots, shared) = match &self.plan.model {
            LoadModel::Closed { iteration, .. } => {
                let lanes = clients * iteration.requests as usize;
                (lanes.div_ceil(streams as usize), false)
            }
            LoadModel::Open { max_connections, .. } => {
                let Slice { first, stride } = self.slice(thread);
                let share = u64::from(*max_connections).saturating_sub(first).div_ceil(stride);
                (share as usize, true)
            }
        };
        let speech = Speech {
            http2: protocol != Protocol::Http1,
            grpc: matches!(protocol, Protocol::Grpc { .. }),
            streams,
        };
        Shape { slots, shared, speech }
    }

    /// Makes sure that the process may open all its connections, beside those that earlier plans have left.
    ///
    /// # Errors
    /// When the hard limit is too low for this plan.
    pub fn raise_file_limit(&self) -> Result<(), LoadError> {
        let own = OWN_FILES + FILES_OF_A_LOOP * u64::from(self.plan.threads);
        let needed = self.most_connections() * self.origins.len() as u64 + own;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(kernel("getrlimit"))?;
        if hard < needed {
            return Err(LoadError::OpenFileLimit { needed, limit: hard });
        }
        if soft < hard {
            setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(kernel("setrlimit"))?;
        }
        Ok(())
    }

    fn most_connections(&self) -> u64 {
        let slots = |thread| self.shape(thread, self.clients_of(thread)).slots as u64;
        (0..self.plan.threads).map(slots).sum()
    }

    /// The most clients of one event loop.
    fn clients_of(&self, thread: u32) -> usize {
        let LoadModel::Closed { clients, .. } = &self.plan.model else { return 0 };
        let Slice { first, stride } = self.slice(thread);
        (clients.highest().round() as u64).saturating_sub(first).div_ceil(stride) as usize
    }
}

/// What the load follows over time.
pub(crate) fn profile(model: &LoadModel) -> &Profile {
    match model {
        LoadModel::Closed { clients, .. } => clients,
        LoadModel::Open { arrivals, .. } => &arrivals.rate_per_s,
    }
}

/// Whether a client's next request follows its last answer at once.
pub(crate) fn is_plain(iteration: Iteration) -> bool {
    iteration == Iteration::default()
}

fn at_least_one<N: Copy + Into<u64>>(field: &'static str, number: N) -> Result<N, LoadError> {
    if number.into() == 0 { Err(LoadError::Zero { field }) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;

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
        let plan = plan(r#"{"stop": {"after_seconds": 0.25}}"#);
        let setup = Setup::new(&plan, &mut Routes::default(), 0).unwrap();
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
            let error = Setup::new(&plan(change), &mut Routes::default(), 0).expect_err(change);
            assert!(error.help().is_some(), "{error}");
        }
    }
}
