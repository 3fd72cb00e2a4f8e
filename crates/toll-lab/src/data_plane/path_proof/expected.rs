//! How often each service is asked, and each call made, when the entry gets the requests of a window. A query of
//! a database is one call of it. Parts of the airline call by what the entry was asked for, all others once for each
//! request.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, Mul};

use super::airline::{self, Callee};
use super::{Window, distinct, passes_by};
use crate::deployment::{AirlinePart, Deployment, Program, Service};
use crate::proof::Asked;

/// The least and the most that a count may show: proxies may send requests again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub least: u64,
    pub most: u64,
}

impl Bounds {
    pub(super) fn exactly(count: u64) -> Self {
        Self { least: count, most: count }
    }
}

impl Add for Bounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { least: self.least + other.least, most: self.most + other.most }
    }
}

impl Mul<u64> for Bounds {
    type Output = Self;

    fn mul(self, factor: u64) -> Self {
        Self { least: self.least * factor, most: self.most * factor }
    }
}

impl Sum for Bounds {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// The requests of a window, followed along the calls of a deployment.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    deployment: &'a Deployment,
    requests: u64,
    /// What the requests asked for; only the airline makes a difference.
    asked: &'a [Asked],
    /// Requests that the caller's proxies sent again of their own accord, by caller and callee.
    retries: BTreeMap<(&'a str, &'a str), u64>,
}

impl<'a> Expected<'a> {
    pub(super) fn new(seen: &Window<'a>) -> Self {
        let mut retries = BTreeMap::new();
        for caller in &seen.deployment.services {
            for callee in &caller.calls {
                let again = seen.growth(&caller.name, |c| c.call(callee).retries);
                retries.insert((caller.name.as_str(), callee.as_str()), again.unwrap_or(0));
            }
        }
        let once = Self::of(seen.deployment, seen.traffic.requests);
        Self { retries, asked: &seen.traffic.asked, ..once }
    }

    /// Without any request that is sent again, and of no airline.
    pub(super) fn of(deployment: &'a Deployment, requests: u64) -> Self {
        Self { deployment, requests, asked: &[], retries: BTreeMap::new() }
    }

    /// Requests that come to a service, or queries that come to a database.
    pub(super) fn arrivals(&self, service: &str) -> Bounds {
        let from_load = if service == self.deployment.entry { self.requests } else { 0 };
        let callers = self.deployment.callers_of(service);
        let called: Bounds = callers.map(|caller| self.calls(caller, service)).sum();
        called + Bounds::exactly(from_load)
    }

    /// Calls of `caller` to `callee`.
    pub(super) fn calls(&self, caller: &Service, callee: &str) -> Bounds {
        let each = times(caller, callee);
        let again = self.retries_of(caller, callee);
        let made = match self.airlines(caller, callee) {
            // Which of its requests a proxy sent again, and so what that led to, is not known.
            Some((part, to)) if each > 0 => {
                let again = Bounds { least: 0, most: self.sent_again(caller) };
                airline::calls(self.asked, part, to) + again
            }
            _ => self.arrivals(&caller.name) * each,
        };
        made + Bounds { least: 0, most: again }
    }

    /// The row of the airline's table for a call, if it is one of the airline's.
    fn airlines(&self, caller: &Service, callee: &str) -> Option<(AirlinePart, Callee)> {
        let part = |service: &Service| match &service.program {
            Program::Airline(airline) => Some(airline.part),
            _ => None,
        };
        let callee = self.deployment.service(callee)?;
        let to = match callee.program.is_database() {
            true => Callee::Database,
            false => Callee::Part(part(callee)?),
        };
        Some((part(caller)?, to))
    }

    /// Requests that come to a service only because proxies on their way sent some again.
    fn sent_again(&self, service: &Service) -> u64 {
        let callers = self.deployment.callers_of(&service.name);
        let from = |caller: &Service| {
            self.sent_again(caller) * times(caller, &service.name)
                + self.retries_of(caller, &service.name)
        };
        callers.map(from).sum()
    }

    fn retries_of(&self, caller: &Service, callee: &str) -> u64 {
        self.retries.get(&(caller.name.as_str(), callee)).copied().unwrap_or(0)
    }

    /// Ways through sidecars: into each service that has one, and out of it for each call.
    pub(super) fn crossings(&self) -> Bounds {
        let with_sidecar = self.deployment.services.iter().filter(|s| s.takes_sidecar());
        with_sidecar.map(|service| self.crossings_of(service)).sum()
    }

    fn crossings_of(&self, service: &Service) -> Bounds {
        let callees = distinct(service.calls.iter().map(String::as_str)).into_iter();
        let through = callees.filter(|callee| !passes_by(self.deployment, callee));
        let calls: Bounds = through.map(|callee| self.calls(service, callee)).sum();
        self.arrivals(&service.name) + calls
    }
}

/// How often `callee` is among the calls of `caller`.
fn times(caller: &Service, callee: &str) -> u64 {
    caller.calls.iter().filter(|name| *name == callee).count() as u64
}
