//! How often each service is asked, and each call made, when the entry gets the requests of a window. A query of
//! a database is one call of it. A service calls once for each request that it gets, unless its program is known to
//! call by what the entry was asked for.

use std::collections::BTreeMap;

use super::bounds::Bounds;
use super::window::Window;
use crate::deployment::{Deployment, Service};

/// Calls that are known from what the entry was asked for, by caller and callee.
pub(crate) type KnownCalls<'a> = BTreeMap<(&'a str, &'a str), Bounds>;

/// The requests of a window, followed along the calls of a deployment.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    deployment: &'a Deployment,
    requests: u64,
    known: KnownCalls<'a>,
    /// Requests that the caller's proxies sent again of their own accord, by caller and callee.
    retries: BTreeMap<(&'a str, &'a str), u64>,
}

impl<'a> Expected<'a> {
    pub(crate) fn new(seen: &Window<'a>, known: KnownCalls<'a>) -> Self {
        let mut retries = BTreeMap::new();
        for caller in &seen.deployment.services {
            for callee in &caller.calls {
                let again = seen.growth(&caller.name, |c| c.call(callee).retries);
                retries.insert((caller.name.as_str(), callee.as_str()), again.unwrap_or(0));
            }
        }
        Self { known, retries, ..Self::of_requests(seen.deployment, seen.traffic.requests) }
    }

    /// Without any request that is sent again, and without known calls.
    pub(crate) fn of_requests(deployment: &'a Deployment, requests: u64) -> Self {
        Self { deployment, requests, known: BTreeMap::new(), retries: BTreeMap::new() }
    }

    /// Requests that come to a service, or queries that come to a database.
    pub(crate) fn arrivals(&self, service: &str) -> Bounds {
        let from_load = if service == self.deployment.entry { self.requests } else { 0 };
        self.called(service) + Bounds::exactly(from_load)
    }

    /// Those of them that other services send.
    pub(crate) fn called(&self, service: &str) -> Bounds {
        self.deployment.callers_of(service).map(|caller| self.calls(caller, service)).sum()
    }

    /// Calls of `caller` to `callee`.
    pub(crate) fn calls(&self, caller: &Service, callee: &str) -> Bounds {
        let again = self.retries_of(caller, callee);
        let made = match self.known.get(&(caller.name.as_str(), callee)) {
            // Which of its requests a proxy sent again, and so what that led to, is not known.
            Some(known) => *known + Bounds { least: 0, most: self.sent_again(caller) },
            None => self.arrivals(&caller.name) * times(caller, callee),
        };
        made + Bounds { least: 0, most: again }
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
}

/// How often `callee` is among the calls of `caller`.
pub(crate) fn times(caller: &Service, callee: &str) -> u64 {
    caller.calls.iter().filter(|name| *name == callee).count() as u64
}
