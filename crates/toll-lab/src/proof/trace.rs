//! The ways of the probes, held against the deployment: who should have reported, who did, and what each arrival
//! shows.

use std::net::{IpAddr, Ipv4Addr};

use super::claims::{distinct, merged};
use super::window::Window;
use crate::claim::{Claim, LeftOut, Topic};
use crate::deployment::{Deployment, Reports, Service};
use crate::evidence::{PathReport, Walk};

/// One arrival of the probe at a built-in service.
pub(crate) struct Hop<'a> {
    /// None for the load.
    pub caller: Option<&'a str>,
    pub report: &'a PathReport,
}

impl Hop<'_> {
    pub(crate) fn name(&self) -> String {
        hop_name(self.caller, &self.report.service)
    }
}

fn hop_name(caller: Option<&str>, callee: &str) -> String {
    format!("{} to {callee}", caller.unwrap_or("load"))
}

/// The ways of both probes, judged.
pub(crate) struct Traces<'a> {
    /// Of each arrival, both ends of the window in one.
    pub claims: Vec<Claim>,
    /// Built-in services that reported, in the order of their first arrival.
    pub reporting: Vec<&'a str>,
    /// Why some arrivals cannot be judged.
    pub left_out: Vec<LeftOut>,
}

impl<'a> Traces<'a> {
    pub(crate) fn judge(seen: &Window<'a>, judge: impl Fn(&Hop<'_>) -> Vec<Claim>) -> Self {
        let [before, after] =
            [seen.before, seen.after].map(|snapshot| Trace::new(seen.deployment, &snapshot.walk));
        let hops = before.hops.iter().chain(&after.hops);
        let reporting = distinct(hops.map(|hop| hop.report.service.as_str()));
        let mut left_out = before.left_out.clone();
        left_out.extend(after.left_out.iter().filter(|o| !before.left_out.contains(o)).cloned());
        let claims = |trace: Trace<'_>| {
            trace.hops.iter().flat_map(&judge).chain(trace.silent).collect::<Vec<_>>()
        };
        Self { claims: merged(claims(before), claims(after)), reporting, left_out }
    }
}

/// The probe's way, held against the deployment.
struct Trace<'a> {
    deployment: &'a Deployment,
    hops: Vec<Hop<'a>>,
    /// Built-in services on the way that did not report.
    silent: Vec<Claim>,
    /// Why some arrivals cannot be judged.
    left_out: Vec<LeftOut>,
}

impl<'a> Trace<'a> {
    fn new(deployment: &'a Deployment, walk: &'a Walk) -> Self {
        let mut trace =
            Self { deployment, hops: Vec::new(), silent: Vec::new(), left_out: Vec::new() };
        trace.follow(None, &deployment.entry, walk.report.as_ref());
        trace
    }

    /// A gateway hands the report of what it calls through; a database makes none.
    fn follow(&mut self, caller: Option<&'a str>, name: &'a str, report: Option<&'a PathReport>) {
        let Some(service) = self.deployment.service(name) else { return };
        match service.program.reports() {
            Reports::OfItsCallee => {
                for callee in &service.calls {
                    self.follow(Some(name), callee, report);
                }
            }
            Reports::Never => {}
            Reports::Always | Reports::Perhaps => self.arrive(caller, service, report),
        }
    }

    fn arrive(
        &mut self,
        caller: Option<&'a str>,
        service: &'a Service,
        report: Option<&'a PathReport>,
    ) {
        match report {
            Some(report) if report.service == service.name => {
                self.hops.push(Hop { caller, report });
                for (index, callee) in self.asked_by(service).into_iter().enumerate() {
                    let call = report.calls.get(index).and_then(Option::as_ref);
                    self.follow(Some(&service.name), callee, call);
                }
            }
            None if !all_built_in(self.deployment, service) => {
                let (caller, service) = (caller.map(str::to_owned), service.name.clone());
                self.left_out.push(LeftOut::Arrival { caller, service });
            }
            _ => self.silent.push(silent_claim(&hop_name(caller, &service.name), report)),
        }
    }

    /// The services whose reports are in that of `service`, in order.
    fn asked_by(&self, service: &'a Service) -> Vec<&'a str> {
        let callees = service.calls.iter().map(String::as_str);
        callees.filter(|callee| !self.deployment.is_database(callee)).collect()
    }
}

/// Whether the service and all that it calls can report; a report of only some of them is never made.
fn all_built_in(deployment: &Deployment, service: &Service) -> bool {
    let mut callees = service.calls.iter().filter_map(|name| deployment.service(name));
    service.program.reports() != Reports::Perhaps
        && callees.all(|callee| all_built_in(deployment, callee))
}

fn silent_claim(arrival: &str, report: Option<&PathReport>) -> Claim {
    Claim {
        topic: Topic::Other,
        claim: format!("{arrival}: the service reports the probe"),
        expected: "a report".to_owned(),
        seen: report.map_or("no report".to_owned(), |r| format!("a report of `{}`", r.service)),
        holds: false,
    }
}

/// That a service's connection came from one of these addresses.
pub(crate) fn peer_claim(hop: &Hop<'_>, addresses: &[Ipv4Addr], whose: &str) -> Claim {
    source_claim(hop.name(), addresses, whose, Some(hop.report.peer.ip()))
}

/// That a connection came from one of these addresses.
pub(crate) fn source_claim(
    connection: String,
    addresses: &[Ipv4Addr],
    whose: &str,
    peer: Option<IpAddr>,
) -> Claim {
    Claim {
        topic: Topic::Other,
        claim: format!("{connection}: the connection's source address is {whose}"),
        expected: listed(addresses),
        seen: peer.map_or("no address".to_owned(), |ip| ip.to_string()),
        holds: peer.is_some_and(|ip| addresses.iter().any(|own| ip == IpAddr::V4(*own))),
    }
}

/// Addresses as a claim expects them.
pub(crate) fn listed(addresses: &[Ipv4Addr]) -> String {
    let texts: Vec<String> = addresses.iter().map(Ipv4Addr::to_string).collect();
    if texts.is_empty() { "no known address".to_owned() } else { texts.join(" or ") }
}

/// What the entry's answer says about who sent it.
pub(crate) fn server_claim(walk: &Walk, expected: &str, fits: fn(Option<&str>) -> bool) -> Claim {
    let server = walk.server.as_deref();
    Claim {
        topic: Topic::Other,
        claim: "the `server` header of the entry's answer".to_owned(),
        expected: expected.to_owned(),
        seen: server.unwrap_or("none").to_owned(),
        holds: fits(server),
    }
}
