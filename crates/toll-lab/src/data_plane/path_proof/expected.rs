//! How often each service is asked, and each call made, when the entry gets the requests of a window. A query of
//! a database is one call of it.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, Mul};

use super::{Window, distinct};
use crate::deployment::{Deployment, Service};

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
        Self { retries, ..Self::of(seen.deployment, seen.traffic.requests) }
    }

    /// Without any request that is sent again.
    pub(super) fn of(deployment: &'a Deployment, requests: u64) -> Self {
        Self { deployment, requests, retries: BTreeMap::new() }
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
        let each = caller.calls.iter().filter(|name| *name == callee).count() as u64;
        let again = self.retries.get(&(caller.name.as_str(), callee)).copied().unwrap_or(0);
        self.arrivals(&caller.name) * each + Bounds { least: 0, most: again }
    }

    /// Ways through sidecars: into each service that has one, and out of it for each call.
    pub(super) fn crossings(&self) -> Bounds {
        let with_sidecar = self.deployment.services.iter().filter(|s| s.program.takes_sidecar());
        with_sidecar.map(|service| self.crossings_of(service)).sum()
    }

    fn crossings_of(&self, service: &Service) -> Bounds {
        let callees = distinct(service.calls.iter().map(String::as_str)).into_iter();
        let calls: Bounds = callees.map(|callee| self.calls(service, callee)).sum();
        self.arrivals(&service.name) + calls
    }
}
