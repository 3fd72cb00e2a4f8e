//! The ways of the probes, held against the deployment: who should have reported, who did, and what each arrival
//! shows.

use std::net::{IpAddr, Ipv4Addr};

use super::claims::merged;
use super::{Window, distinct};
use crate::data_plane::probe::{PathReport, Walk};
use crate::deployment::{Deployment, Program, Service};
use crate::proof::Claim;

/// One arrival of the probe at a built-in service.
pub(super) struct Hop<'a> {
    /// None for the load.
    pub caller: Option<&'a str>,
    pub report: &'a PathReport,
}

impl Hop<'_> {
    pub(super) fn name(&self) -> String {
        hop_name(self.caller, &self.report.service)
    }
}

fn hop_name(caller: Option<&str>, callee: &str) -> String {
    format!("{} to {callee}", caller.unwrap_or("load"))
}

/// The ways of both probes, judged.
pub(super) struct Traces<'a> {
    /// Of each arrival, both ends of the window in one.
    pub claims: Vec<Claim>,
    /// Built-in services that reported, in the order of their first arrival.
    pub reporting: Vec<&'a str>,
    /// Why some arrivals cannot be judged.
    pub left_out: Vec<String>,
}

impl<'a> Traces<'a> {
    pub(super) fn judge(seen: &Window<'a>, judge: impl Fn(&Hop<'_>) -> Vec<Claim>) -> Self {
        let [before, after] =
            [seen.before, seen.after].map(|sight| Trace::new(seen.deployment, &sight.walk));
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
    left_out: Vec<String>,
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
        match service.program {
            Program::Gateway => {
                for callee in &service.calls {
                    self.follow(Some(name), callee, report);
                }
            }
            // They tell nothing of themselves.
            Program::Postgres(_)
            | Program::AirlineDatabase(_)
            | Program::Petclinic(_)
            | Program::Nginx(_)
            | Program::Collector => {}
            Program::BuiltIn(_) | Program::Command(_) | Program::Airline(_) => {
                self.arrive(caller, service, report);
            }
        }
    }

    fn arrive(
        &mut self,
        caller: Option<&'a str>,
        service: &'a Service,
        report: Option<&'a PathReport>,
    ) {
        let arrival = hop_name(caller, &service.name);
        match report {
            Some(report) if report.service == service.name => {
                self.hops.push(Hop { caller, report });
                for (index, callee) in self.asked_by(service).into_iter().enumerate() {
                    let call = report.calls.get(index).and_then(Option::as_ref);
                    self.follow(Some(&service.name), callee, call);
                }
            }
            None if !all_built_in(self.deployment, service) => {
                self.left_out.push(format!(
                    "{arrival}: a program of the user's own does not report how requests reach it"
                ));
            }
            _ => self.silent.push(silent_claim(&arrival, report)),
        }
    }

    /// The services whose reports are in that of `service`, in order.
    fn asked_by(&self, service: &'a Service) -> Vec<&'a str> {
        let is_database =
            |name: &str| self.deployment.service(name).is_some_and(|s| s.program.is_database());
        service.calls.iter().map(String::as_str).filter(|name| !is_database(name)).collect()
    }
}

/// Whether the service and all that it calls can report; a report of only some of them is never made.
fn all_built_in(deployment: &Deployment, service: &Service) -> bool {
    let mut callees = service.calls.iter().filter_map(|name| deployment.service(name));
    !matches!(service.program, Program::Command(_))
        && callees.all(|callee| all_built_in(deployment, callee))
}

fn silent_claim(arrival: &str, report: Option<&PathReport>) -> Claim {
    Claim {
        claim: format!("{arrival}: the service reports the probe"),
        expected: "a report".to_owned(),
        seen: report.map_or("no report".to_owned(), |r| format!("a report of `{}`", r.service)),
        holds: false,
    }
}

/// That a service's connection came from one of these addresses.
pub(super) fn peer_claim(hop: &Hop<'_>, addresses: &[Ipv4Addr], whose: &str) -> Claim {
    source_claim(hop.name(), addresses, whose, Some(hop.report.peer.ip()))
}

/// That a connection came from one of these addresses.
pub(super) fn source_claim(
    connection: String,
    addresses: &[Ipv4Addr],
    whose: &str,
    peer: Option<IpAddr>,
) -> Claim {
    Claim {
        claim: format!("{connection}: the connection's source address is {whose}"),
        expected: listed(addresses),
        seen: peer.map_or("no address".to_owned(), |ip| ip.to_string()),
        holds: peer.is_some_and(|ip| addresses.iter().any(|own| ip == IpAddr::V4(*own))),
    }
}

/// Addresses as a claim expects them.
pub(super) fn listed(addresses: &[Ipv4Addr]) -> String {
    let texts: Vec<String> = addresses.iter().map(Ipv4Addr::to_string).collect();
    if texts.is_empty() { "no known address".to_owned() } else { texts.join(" or ") }
}

/// What the entry's answer says about who sent it.
pub(super) fn server_claim(walk: &Walk, expected: &str, fits: fn(Option<&str>) -> bool) -> Claim {
    let server = walk.server.as_deref();
    Claim {
        claim: "the `server` header of the entry's answer".to_owned(),
        expected: expected.to_owned(),
        seen: server.unwrap_or("none").to_owned(),
        holds: fits(server),
    }
}
