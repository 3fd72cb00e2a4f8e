//! Failed requests: how many, of which kinds, and whether that is more than the study tolerates.
//!
//! Without tolerance one failed request costs its slice (`slice.rs`). With it an arm is judged by all its requests of a
//! round: a slice has too few to show one in a hundred.

use std::collections::BTreeMap;

use toll_lab::{Deployment, Environment, Service};
use toll_load::LoadReport;

use crate::plan::{Plan, PlannedLoad};
use crate::store::{Failing, LastLines};

/// Share of failed requests up to which a run goes on without tolerance: slices without one count.
const BEARABLE: f64 = 0.01;

/// Requests of some slices, and how they failed.
#[derive(Debug, Clone, Default)]
pub struct Failures {
    sent: u64,
    failed: u64,
    how: BTreeMap<String, u64>,
}

impl Failures {
    /// Adds a slice, its guard included.
    pub fn add(&mut self, report: &LoadReport) {
        self.sent += report.sent_in_all_phases;
        for phase in [&report.warm_up, &report.measure] {
            self.failed += phase.failed();
            for (how, count) in phase.failures() {
                *self.how.entry(how).or_default() += count;
            }
        }
    }

    /// What there is to say when more failed than that share.
    fn beyond(&self, tolerated: f64) -> Option<Failing> {
        let is_beyond = self.failed as f64 > tolerated * self.sent as f64;
        is_beyond.then(|| Failing {
            failed: self.failed,
            sent: self.sent,
            how: self.how.clone().into_iter().collect(),
            most: (tolerated * self.sent as f64) as u64,
            log: None,
        })
    }
}

/// What there is to say when an arm fails so often while it settles that none of the loads could count.
pub fn while_settling(plan: &Plan, report: &LoadReport) -> Option<Failing> {
    let mut seen = Failures::default();
    seen.add(report);
    seen.beyond(plan.loads.iter().map(|load| load.tolerated).fold(BEARABLE, f64::max))
}

/// What there is to say when an arm fails more often under a load than it tolerates.
pub fn under(load: &PlannedLoad, seen: &Failures) -> Option<Failing> {
    (load.tolerated > 0.0).then(|| seen.beyond(load.tolerated)).flatten()
}

/// What the last service on the path that logs anything logged last: who calls it fails because of it.
pub fn last_lines(environment: &Environment, deployment: &Deployment) -> Option<LastLines> {
    let deepest_first = by_depth(&deployment.services, &deployment.entry).into_iter().rev();
    let logged = deepest_first.map(|service| LastLines {
        lines: environment.last_lines(&service.name),
        service: service.name.clone(),
    });
    logged.into_iter().find(|logged| !logged.lines.is_empty())
}

/// The services that a request reaches, the entry first.
fn by_depth<'a>(services: &'a [Service], entry: &'a str) -> Vec<&'a Service> {
    let mut names = vec![entry];
    let mut reached: Vec<&Service> = Vec::new();
    let mut next = 0;
    while let Some(name) = names.get(next).copied() {
        next += 1;
        let found = services.iter().find(|service| service.name == name);
        let is_known = reached.iter().any(|service| service.name == name);
        if let Some(service) = found.filter(|_| !is_known) {
            reached.push(service);
            names.extend(service.calls.iter().map(String::as_str));
        }
    }
    reached
}
