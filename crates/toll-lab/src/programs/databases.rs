//! What a database server itself must show, wherever it stands; the planes judge the ways to it.
//!
//! No proxy counts queries: Envoy as a TCP proxy sees bytes. So the server's count of statements stands for the
//! crossings of the sidecars, given what a plane finds on the way.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::{operations, written_claims};
use crate::claim::{Claim, LeftOut, Topic};
use crate::deployment::Service;
use crate::evidence::{DatabaseSnapshot, PathReport, PathSnapshot, ProxyCounters};
use crate::proof::claims::{count_claim, merged};
use crate::proof::expected::{Expected, times};
use crate::proof::trace::{listed, source_claim};
use crate::proof::window::Window;

/// All databases of a deployment, judged.
#[derive(Debug)]
pub(crate) struct Databases<'a>(Vec<Judged<'a>>);

/// One database, judged.
#[derive(Debug)]
pub(crate) struct Judged<'a> {
    service: &'a Service,
    pub(crate) claims: Vec<Claim>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Statements of each pod of the database, as crossings of its sidecar.
    pub(crate) into: BTreeMap<String, u64>,
    /// The same statements, as crossings of the sidecars of the calling pods.
    pub(crate) from: BTreeMap<String, u64>,
}

impl<'a> Databases<'a> {
    pub(crate) fn judge(seen: &Window<'a>, judge: impl Fn(&'a Service) -> Judged<'a>) -> Self {
        let services = seen.deployment.services.iter();
        Self(services.filter(|service| service.program.is_database()).map(judge).collect())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Judged<'a>> {
        self.0.iter().find(|judged| judged.service.name == name)
    }

    /// Of those in the pods of the application.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.claims_of(false)
    }

    /// Of those outside of the mesh, whom a study is about that has any.
    pub(crate) fn external_claims(&self) -> Vec<Claim> {
        self.claims_of(true)
    }

    fn claims_of(&self, external: bool) -> Vec<Claim> {
        let wanted = self.0.iter().filter(|judged| judged.service.external.is_some() == external);
        wanted.flat_map(|judged| judged.claims.clone()).collect()
    }

    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.0.iter().flat_map(|judged| judged.left_out.clone()).collect()
    }
}

impl Judged<'_> {
    /// Crossings of the sidecar of a pod of the database.
    pub(crate) fn crossings_into(&self, pod: &str) -> u64 {
        self.into.get(pod).copied().unwrap_or(0)
    }

    /// Crossings of the sidecar of a calling pod.
    pub(crate) fn crossings_from(&self, pod: &str) -> u64 {
        self.from.get(pod).copied().unwrap_or(0)
    }
}

/// What the server itself has counted.
pub(crate) fn of_the_server<'a>(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    database: &'a Service,
) -> Judged<'a> {
    let (written, unwritten) = match written_claims(seen, database) {
        Ok(claims) => (claims, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let (statements, unasked) = match statements_claim(seen, expected, database) {
        Ok(claim) => (Some(claim), None),
        Err(why) => (None, Some(why)),
    };
    Judged {
        service: database,
        claims: statements.into_iter().chain(written).collect(),
        left_out: unasked.into_iter().chain(unwritten).collect(),
        into: BTreeMap::new(),
        from: BTreeMap::new(),
    }
}

fn statements_claim(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    database: &Service,
) -> Result<Claim, LeftOut> {
    let name = &database.name;
    if let Some(own) = seen.deployment.callers_of(name).find(|s| s.program.is_users_own()) {
        return Err(LeftOut::Queries { database: name.clone(), program: own.name.clone() });
    }
    let what = operations(&database.program);
    let claim = format!("{name}: the server ran exactly the {what} of the requests");
    let ran = statements(seen, name).map(|pods| pods.values().sum());
    Ok(count_claim(claim, expected.arrivals(name), ran))
}

/// Queries that are known to come: a program of the user's own makes as many as it likes.
pub(crate) fn known_queries(seen: &Window<'_>, expected: &Expected<'_>, name: &str) -> u64 {
    let callers = seen.deployment.callers_of(name).filter(|caller| !caller.program.is_users_own());
    callers.map(|caller| expected.calls(caller, name).least).sum()
}

/// By how much the statements of each pod of the database rose; none when one was not read or began anew.
pub(crate) fn statements(seen: &Window<'_>, name: &str) -> Option<BTreeMap<String, u64>> {
    let growth = |pod: String| {
        let (before, after) = (seen.before.databases.get(&pod)?, seen.after.databases.get(&pod)?);
        Some((pod, after.statements.checked_sub(before.statements + before.looked)?))
    };
    seen.pods_of(name).into_iter().map(growth).collect()
}

/// `statements`, shared out among the calling pods by the requests that each of them got.
pub(crate) fn shares(seen: &Window<'_>, name: &str, statements: u64) -> BTreeMap<String, u64> {
    let pods = seen.deployment.pods().into_iter().filter(|(_, service)| times(service, name) > 0);
    let weigh = |(pod, service): (String, &Service)| {
        let weight =
            seen.pod_growth(&pod, ProxyCounters::inbound).unwrap_or(0) * times(service, name);
        (pod, weight)
    };
    let (pods, weights): (Vec<String>, Vec<u64>) = pods.map(weigh).unzip();
    pods.into_iter().zip(apportioned(statements, &weights)).collect()
}

/// `total` in whole parts that stand to each other as the weights do and add up to it, unless all weights are 0.
fn apportioned(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let up_to = |weight: u128| (u128::from(total) * weight).checked_div(sum).unwrap_or(0);
    let mut below = 0;
    let part = |weight: &u64| {
        let from = up_to(below);
        below += u128::from(*weight);
        u64::try_from(up_to(below) - from).expect("a part is not more than the whole")
    };
    weights.iter().map(part).collect()
}

/// From where the connections to a database must come.
pub(crate) struct Sources {
    pub(crate) addresses: Vec<Ipv4Addr>,
    pub(crate) whose: Whose,
}

/// Who must have made a connection to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    OwnSidecar,
    Caller,
    EgressGateway,
}

impl Whose {
    fn words(self) -> &'static str {
        match self {
            Self::OwnSidecar => "its own sidecar's",
            Self::Caller => "a caller's own",
            Self::EgressGateway => "the egress gateway's",
        }
    }

    fn topic(self) -> Topic {
        match self {
            Self::EgressGateway => Topic::EgressAddress,
            Self::OwnSidecar | Self::Caller => Topic::Other,
        }
    }
}

impl Sources {
    pub(crate) fn claims(
        &self,
        seen: &Window<'_>,
        expected: &Expected<'_>,
        database: &Service,
    ) -> Vec<Claim> {
        let name = &database.name;
        // Before the window a program may not have connected yet.
        let needed = u64::from(known_queries(seen, expected, name) > 0);
        let ends = [(seen.before, 0), (seen.after, needed)].map(|(snapshot, needed)| {
            let pods = seen.pods_of(name).into_iter();
            let open = pods.map(|pod| self.open_claim(&pod, snapshot.databases.get(&pod), needed));
            // Not every driver tells over which connection it asks, and the server lists them all.
            let reports = database.external.is_none();
            let callers = seen.deployment.callers_of(name).filter(|_| reports);
            let reported = callers.flat_map(|c| self.reported_claims(seen, snapshot, c, name));
            open.chain(reported).collect()
        });
        let [before, after] = ends;
        merged(before, after)
    }

    /// Of all connections that are open, as the server lists them.
    fn open_claim(&self, pod: &str, snapshot: Option<&DatabaseSnapshot>, needed: u64) -> Claim {
        let own = |peer: &IpAddr| self.addresses.iter().any(|own| *peer == IpAddr::V4(*own));
        let peers = snapshot.map(|snapshot| &snapshot.peers);
        Claim {
            topic: self.whose.topic(),
            claim: format!(
                "{pod}: every open connection's source address is {}",
                self.whose.words()
            ),
            expected: listed(&self.addresses),
            seen: peers.map_or("not asked".to_owned(), texts),
            holds: peers.is_some_and(|peers| {
                peers.values().sum::<u64>() >= needed && peers.keys().all(own)
            }),
        }
    }

    /// Of the connections over which a caller's pods asked the server who they are.
    fn reported_claims(
        &self,
        seen: &Window<'_>,
        snapshot: &PathSnapshot,
        caller: &Service,
        name: &str,
    ) -> Vec<Claim> {
        let walk = snapshot.walk.report.as_ref().and_then(|report| report.find(&caller.name));
        let pods = seen.pods_of(&caller.name);
        let reports = walk.into_iter().chain(pods.iter().filter_map(|p| snapshot.replicas.get(p)));
        let claim = |report: &PathReport| {
            let connection = format!("{} to {name}", caller.name);
            source_claim(connection, &self.addresses, self.whose.words(), report.database_peer)
        };
        reports.map(claim).fold(Vec::new(), merged_within)
    }
}

/// The pods of a service say the same in one claim; the first that differs decides.
fn merged_within(mut claims: Vec<Claim>, claim: Claim) -> Vec<Claim> {
    match claims.first_mut() {
        Some(first) if !first.holds || claim.holds => {}
        Some(first) => *first = claim,
        None => claims.push(claim),
    }
    claims
}

/// For instance `10.77.0.5 (16)`.
fn texts(peers: &BTreeMap<IpAddr, u64>) -> String {
    let texts: Vec<String> =
        peers.iter().map(|(peer, count)| format!("{peer} ({count})")).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}
