//! How often each service is asked, and each call made, when the entry gets the requests of a window. A query of
//! a database is one call of it. A service calls once for each request that it gets, unless its program is known to
//! call by what the entry was asked for. A program of the user's calls as often as it likes, where the study does not
//! say how often: then what one place has counted is held against all others.

use std::collections::BTreeMap;

use super::bounds::Bounds;
use super::window::Window;
use crate::claim::CallsSeen;
use crate::deployment::{Deployment, Service};
use crate::evidence::ProxyCounters;

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
    pub(crate) fn new(seen: &Window<'a>, mut known: KnownCalls<'a>) -> Self {
        for caller in &seen.deployment.services {
            for callee in &caller.observed_calls {
                let calls = observed(seen, caller, callee).map_or(Bounds::ANY, Bounds::exactly);
                // The study says that it calls.
                let calls = Bounds { least: calls.least.max(1), most: calls.most.max(1) };
                known.insert((caller.name.as_str(), callee.as_str()), calls);
            }
        }
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

/// The calls whose number nobody knows before: how often each was made, where somebody counts it.
pub(crate) fn calls_seen(seen: &Window<'_>) -> Vec<CallsSeen> {
    let callers = seen.deployment.services.iter();
    let calls = callers.flat_map(|caller| caller.observed_calls.iter().map(move |to| (caller, to)));
    let call = |(caller, callee): (&Service, &String)| CallsSeen {
        caller: caller.name.clone(),
        callee: callee.clone(),
        calls: observed(seen, caller, callee),
        requests: seen.traffic.requests,
    };
    calls.map(call).collect()
}

/// Calls as the caller's own proxies counted them, or else whoever stands before the callee or is it, where nobody else
/// calls it.
fn observed(seen: &Window<'_>, caller: &Service, callee: &str) -> Option<u64> {
    let by_caller = || {
        let counted = |c: &ProxyCounters| c.call(callee).requests;
        let again = |c: &ProxyCounters| c.call(callee).retries;
        let sent =
            seen.growth(&caller.name, counted)?.checked_sub(seen.growth(&caller.name, again)?)?;
        let knows = |pod: &String| {
            seen.after.counters.get(pod).is_some_and(|c| c.calls.contains_key(callee))
        };
        seen.pods_of(&caller.name).iter().any(knows).then_some(sent)
    };
    let is_alone =
        seen.deployment.callers_of(callee).count() == 1 && seen.deployment.entry != callee;
    let by_callee = || {
        let service = seen.deployment.service(callee).filter(|_| is_alone)?;
        let answered = || seen.pods_of(callee).iter().map(|pod| seen.answered(pod)).sum();
        seen.growth(callee, ProxyCounters::inbound)
            .or_else(|| seen.reported(service, |report| report.requests))
            .or_else(answered)
    };
    by_caller().or_else(by_callee)
}

/// How often `callee` is among the calls of `caller`.
pub(crate) fn times(caller: &Service, callee: &str) -> u64 {
    caller.calls.iter().filter(|name| *name == callee).count() as u64
}
