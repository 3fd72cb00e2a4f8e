//! The measured window: what was deployed, what was sent, and what was seen before and after it.

use crate::Role;
use crate::claim::Traffic;
use crate::deployment::{Deployment, Reports, Service};
use crate::evidence::{Fingerprints, PathReport, PathSnapshot, ProxyCounters, SpanWindow};

/// What was seen of a deployment around the requests of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    /// What was deployed.
    pub deployment: &'a Deployment,
    /// What was sent to the entry between the two snapshots.
    pub traffic: &'a Traffic,
    /// When the window began.
    pub before: &'a PathSnapshot,
    /// When the window ended.
    pub after: &'a PathSnapshot,
    /// What the collector got between the two snapshots; none without one.
    pub spans: Option<&'a SpanWindow>,
    /// The certificates of external services and their callers; none where no service is external.
    pub issued: Option<&'a Fingerprints>,
    /// How what comes to a service is spread over its pods.
    pub spread: Spread,
}

/// How what comes to a service is spread over its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Its callers know its pods, and take them in turn.
    InTurn,
    /// The cluster gives each connection to one of them.
    ByConnection,
}

impl Window<'_> {
    /// By how much the counters of a service's proxies rose, those of all its pods added up; none when a reading
    /// is missing or a proxy was restarted.
    pub(crate) fn growth(
        &self,
        service: &str,
        pick: impl Fn(&ProxyCounters) -> u64,
    ) -> Option<u64> {
        self.growth_in(&self.pods_of(service), pick)
    }

    /// The same for the proxies in these pods.
    pub(crate) fn growth_in(
        &self,
        pods: &[String],
        pick: impl Fn(&ProxyCounters) -> u64,
    ) -> Option<u64> {
        if pods.is_empty() {
            return None;
        }
        pods.iter().map(|pod| self.pod_growth(pod, &pick)).sum()
    }

    /// The same for one pod.
    pub(crate) fn pod_growth(
        &self,
        pod: &str,
        pick: impl Fn(&ProxyCounters) -> u64,
    ) -> Option<u64> {
        let (before, after) = (self.before.counters.get(pod)?, self.after.counters.get(pod)?);
        pick(after).checked_sub(pick(before))
    }

    /// Requests that a pod of nginx has answered in the window; none when a reading is missing.
    pub(crate) fn answered(&self, pod: &str) -> Option<u64> {
        self.after.answered.get(pod)?.checked_sub(*self.before.answered.get(pod)?)
    }

    /// What a service's proxies have counted since their start, up to the end of the window.
    pub(crate) fn total(&self, service: &str, pick: impl Fn(&ProxyCounters) -> u64) -> u64 {
        self.total_in(&self.pods_of(service), pick)
    }

    /// The same for the proxies in these pods.
    pub(crate) fn total_in(&self, pods: &[String], pick: impl Fn(&ProxyCounters) -> u64) -> u64 {
        pods.iter().filter_map(|pod| self.after.counters.get(pod)).map(pick).sum()
    }

    /// By how much a service's own count rose, its pods added up; none without two reports or after a restart.
    pub(crate) fn reported(&self, service: &Service, pick: fn(&PathReport) -> u64) -> Option<u64> {
        let pods = self.pods_of(&service.name);
        pods.iter().map(|pod| self.reported_by(service, pod, pick)).sum()
    }

    /// The same for one pod.
    pub(crate) fn reported_by(
        &self,
        service: &Service,
        pod: &str,
        pick: fn(&PathReport) -> u64,
    ) -> Option<u64> {
        let [before, after] = [self.before, self.after].map(|snapshot| match service.replicas {
            0 | 1 => snapshot.walk.report.as_ref().and_then(|report| report.find(&service.name)),
            _ => snapshot.replicas.get(pod),
        });
        pick(after?).checked_sub(pick(before?))
    }

    pub(crate) fn pods_of(&self, service: &str) -> Vec<String> {
        let pods = self.deployment.pods().into_iter();
        pods.filter(|(_, of)| of.name == service).map(|(pod, _)| pod).collect()
    }

    /// Whether the load comes in through a gateway, whose headers are on every request in all variants.
    pub(crate) fn is_behind_gateway(&self) -> bool {
        let entry = self.deployment.service(&self.deployment.entry);
        entry.is_some_and(|entry| entry.program.role() == Role::Gateway)
    }

    /// Whether the requests of `service` may bear a gateway's headers: from the gateway itself, or handed on by a
    /// program of the user's own. The built-in services hand none on but the request's id.
    pub(crate) fn bears_gateway_headers(&self, service: &str) -> bool {
        let mut callers = self.deployment.callers_of(service);
        self.is_behind_gateway()
            && callers.any(|caller| caller.program.reports() != Reports::Always)
    }
}
