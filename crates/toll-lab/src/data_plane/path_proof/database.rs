//! What a database and the proxies on the way to it must show.
//!
//! No proxy counts queries: Envoy as a TCP proxy sees bytes. So the server's count of statements stands for the
//! crossings of the sidecars, given that every connection that it has open comes from its own sidecar, that the
//! sidecars' connections are mTLS, and that enough bytes went through them. A database outside of the mesh has no
//! sidecar: there the hops of [`super::external`] take the place of the last two.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::claims::{at_least_claim, count_claim, merged};
use super::crossing::inbound;
use super::expected::{Bounds, Expected};
use super::external::{LEAST_OF_POSTGRES, Outside};
use super::sidecar::handshake_claim;
use super::trace::{listed, source_claim};
use super::{
    DatabaseSight, Outsider, SIDECAR_SOURCE, Sight, Window, airline, bare, passes_by, proxies_of,
};
use crate::data_plane::Topology;
use crate::data_plane::probe::PathReport;
use crate::deployment::{Program, Service};
use crate::proof::Claim;

/// All databases of a deployment, judged.
#[derive(Debug)]
pub(super) struct Databases<'a>(Vec<Judged<'a>>);

/// One database, judged.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    name: &'a str,
    is_external: bool,
    claims: Vec<Claim>,
    left_out: Vec<String>,
    /// Statements of each pod of the database, as crossings of its sidecar.
    into: BTreeMap<String, u64>,
    /// The same statements, as crossings of the sidecars of the calling pods.
    from: BTreeMap<String, u64>,
}

impl<'a> Databases<'a> {
    /// Of a mesh.
    pub(super) fn of_mesh(
        seen: &Window<'a>,
        expected: &Expected<'_>,
        topology: &Topology,
        outsider: &Outsider,
    ) -> Self {
        let judge = |service: &'a Service| match service.external {
            Some(_) => outside(seen, expected, topology, Some(outsider), service),
            None => behind_sidecars(seen, expected, service),
        };
        Self(databases(seen).map(judge).collect())
    }

    /// Of a bare path.
    pub(super) fn alone(seen: &Window<'a>, expected: &Expected<'_>, topology: &Topology) -> Self {
        let judge = |service: &'a Service| match service.external {
            Some(_) => outside(seen, expected, topology, None, service),
            None => alone(seen, expected, topology, service),
        };
        Self(databases(seen).map(judge).collect())
    }

    /// Behind node proxies, which carry connections unread.
    pub(super) fn carried(seen: &Window<'a>, expected: &Expected<'_>) -> Self {
        Self(databases(seen).map(|service| of_the_server(seen, expected, service)).collect())
    }

    pub(super) fn of(&self, name: &str) -> Option<&Judged<'a>> {
        self.0.iter().find(|judged| judged.name == name)
    }

    /// Of those in the pods of the application.
    pub(super) fn claims(&self) -> Vec<Claim> {
        self.claims_of(false)
    }

    /// Of those outside of the mesh, whom a study is about that has any.
    pub(super) fn external_claims(&self) -> Vec<Claim> {
        self.claims_of(true)
    }

    fn claims_of(&self, external: bool) -> Vec<Claim> {
        let wanted = self.0.iter().filter(|judged| judged.is_external == external);
        wanted.flat_map(|judged| judged.claims.clone()).collect()
    }

    pub(super) fn left_out(&self) -> Vec<String> {
        self.0.iter().flat_map(|judged| judged.left_out.clone()).collect()
    }
}

impl Judged<'_> {
    /// Crossings of the sidecar of a pod of the database.
    pub(super) fn crossings_into(&self, pod: &str) -> u64 {
        self.into.get(pod).copied().unwrap_or(0)
    }

    /// Crossings of the sidecar of a calling pod.
    pub(super) fn crossings_from(&self, pod: &str) -> u64 {
        self.from.get(pod).copied().unwrap_or(0)
    }
}

fn databases<'a>(seen: &Window<'a>) -> impl Iterator<Item = &'a Service> {
    seen.deployment.services.iter().filter(|service| service.program.is_database())
}

fn alone<'a>(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    topology: &Topology,
    database: &'a Service,
) -> Judged<'a> {
    let callers = seen.deployment.callers_of(&database.name);
    let own = callers.flat_map(|caller| bare::sources_of(Some(&caller.name), topology));
    let from = Sources { addresses: own.collect(), whose: "a caller's own" };
    let mut judged = of_the_server(seen, expected, database);
    judged.claims.extend(from.claims(seen, expected, database));
    judged
}

/// First what a report shows first.
fn outside<'a>(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    topology: &Topology,
    outsider: Option<&Outsider>,
    database: &'a Service,
) -> Judged<'a> {
    let outside = Outside { seen, expected, topology, outsider, service: database };
    let (end_to_end, unseen) = outside.end_to_end();
    let (hops, mesh_tls) = (outside.hop_claims(), outside.mesh_tls_claims());
    let (addresses, whose) = outside.sources();
    let peers = Sources { addresses, whose }.claims(seen, expected, database);
    let mut judged = of_the_server(seen, expected, database);
    if seen.deployment.data_plane.has_sidecars() && !passes_by(seen.deployment, &database.name) {
        if hops.iter().chain(&peers).all(|claim| claim.holds) {
            let ran = statements(seen, &database.name).unwrap_or_default();
            judged.from = shares(seen, &database.name, ran.values().sum());
        }
        judged.left_out.push(format!(
            "a count of operations by the proxies on the way to {}: they pass its TLS on unread, so that the \
             operations that it ran stand for them, given that enough bytes went through each",
            database.name
        ));
    }
    judged.claims = [end_to_end, hops, judged.claims, mesh_tls, peers].concat();
    judged.left_out.extend(unseen);
    judged
}

fn behind_sidecars<'a>(
    seen: &Window<'a>,
    expected: &Expected<'_>,
    database: &'a Service,
) -> Judged<'a> {
    let name = &database.name;
    let sidecars = Sources { addresses: vec![SIDECAR_SOURCE], whose: "its own sidecar's" };
    let mut way = sidecars.claims(seen, expected, database);
    way.extend(inbound_claims(seen, expected, database));
    for caller in seen.deployment.callers_of(name) {
        way.extend(outbound_claims(seen, expected, caller, name));
    }
    let mut judged = of_the_server(seen, expected, database);
    if way.iter().all(|claim| claim.holds) {
        judged.into = statements(seen, name).unwrap_or_default();
        judged.from = shares(seen, name, judged.into.values().sum());
    }
    judged.claims.extend(way);
    judged.left_out.push(format!(
        "a count of queries by the sidecars on the way to {name}: they pass bytes on unread, so that the \
         statements that it ran stand for them, given that its connections are those of its sidecar"
    ));
    judged
}

/// What the server itself has counted.
fn of_the_server<'a>(
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
        name: &database.name,
        is_external: database.external.is_some(),
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
) -> Result<Claim, String> {
    let name = &database.name;
    if let Some(own) = seen.deployment.callers_of(name).find(|s| is_users_own(s)) {
        return Err(format!(
            "the queries of {name}: how many {} makes, a program of the user's own, is not known",
            own.name
        ));
    }
    let what = match database.program {
        Program::AirlineDatabase(_) => "operations",
        _ => "queries",
    };
    let claim = format!("{name}: the server ran exactly the {what} of the requests");
    let ran = statements(seen, name).map(|pods| pods.values().sum());
    Ok(count_claim(claim, expected.arrivals(name), ran))
}

/// Queries that are known to come: a program of the user's own makes as many as it likes.
fn known_queries(seen: &Window<'_>, expected: &Expected<'_>, name: &str) -> u64 {
    let callers = seen.deployment.callers_of(name).filter(|caller| !is_users_own(caller));
    callers.map(|caller| expected.calls(caller, name).least).sum()
}

fn is_users_own(service: &Service) -> bool {
    matches!(service.program, Program::Command(_))
}

/// By how much the statements of each pod of the database rose; none when one was not read or began anew.
fn statements(seen: &Window<'_>, name: &str) -> Option<BTreeMap<String, u64>> {
    let growth = |pod: String| {
        let (before, after) = (seen.before.databases.get(&pod)?, seen.after.databases.get(&pod)?);
        Some((pod, after.statements.checked_sub(before.statements + before.looked)?))
    };
    seen.pods_of(name).into_iter().map(growth).collect()
}

/// `statements`, shared out among the calling pods by the requests that each of them got.
fn shares(seen: &Window<'_>, name: &str, statements: u64) -> BTreeMap<String, u64> {
    let calls = |service: &Service| service.calls.iter().filter(|c| *c == name).count() as u64;
    let pods = seen.deployment.pods().into_iter().filter(|(_, service)| calls(service) > 0);
    let weigh = |(pod, service): (String, &Service)| {
        let weight = seen.pod_growth(&pod, inbound).unwrap_or(0) * calls(service);
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

/// Rows made by writes, against what the load sent and got acknowledged; an error says why that is not judged.
fn written_claims(seen: &Window<'_>, database: &Service) -> Result<Vec<Claim>, String> {
    let name = &database.name;
    match &database.program {
        Program::AirlineDatabase(_) => Ok(booking_claims(seen, name)),
        Program::Postgres(postgres) => match (&postgres.written, seen.traffic.writes) {
            (Some(_), _) => Ok(row_claims(seen, name)),
            (None, 0) => Ok(Vec::new()),
            (None, _) => {
                Err(format!("the rows of {name}: the study does not say how to count them"))
            }
        },
        _ => Ok(Vec::new()),
    }
}

/// Of a database whose rows the study counts.
fn row_claims(seen: &Window<'_>, name: &str) -> Vec<Claim> {
    let [all, different] = written(seen, name);
    let claim = format!("{name}: no row was written twice");
    vec![rows_claim(seen, name, all), doubled_claim(claim, all, different)]
}

/// Of the airline's: no seat may be lost or sold twice, whatever became of a request.
fn booking_claims(seen: &Window<'_>, name: &str) -> Vec<Claim> {
    let [all, different] = written(seen, name);
    let made = airline::bookings(&seen.traffic.asked);
    let claim = format!("{name}: every acknowledged booking is there, and none that was not sent");
    let doubled = format!("{name}: no booking was made twice");
    let claims = [
        airline::untold(seen),
        Some(range_claim(claim, made, all)),
        Some(doubled_claim(doubled, all, different)),
        Some(seats_claim(seen, name, all)),
    ];
    claims.into_iter().flatten().collect()
}

fn seats_claim(seen: &Window<'_>, name: &str, bookings: Option<u64>) -> Claim {
    let taken = growth(seen, name, |sight| sight.seats_taken);
    let text = |count: Option<u64>, what: &str| match count {
        Some(count) => format!("{count} {what}"),
        None => format!("no {what} read"),
    };
    Claim {
        claim: format!("{name}: one seat is taken for each booking, none was lost or doubled"),
        expected: text(bookings, "seats"),
        seen: text(taken, "seats"),
        holds: taken.is_some() && taken == bookings,
    }
}

fn doubled_claim(claim: String, all: Option<u64>, different: Option<u64>) -> Claim {
    let doubled = all.zip(different).map(|(all, different)| all.saturating_sub(different));
    count_claim(claim, Bounds::exactly(0), doubled)
}

/// By how much all rows that writes make, and different ones among them, rose.
fn written(seen: &Window<'_>, name: &str) -> [Option<u64>; 2] {
    [
        growth(seen, name, |sight| sight.written.map(|(all, _)| all)),
        growth(seen, name, |sight| sight.written.map(|(_, different)| different)),
    ]
}

/// By how much a count of all pods of a database rose; none when one was not read or began anew.
fn growth(
    seen: &Window<'_>,
    name: &str,
    pick: impl Fn(&DatabaseSight) -> Option<u64>,
) -> Option<u64> {
    let of = |sight: &Sight, pod: &String| sight.databases.get(pod).and_then(&pick);
    let growth = |pod: &String| of(seen.after, pod)?.checked_sub(of(seen.before, pod)?);
    seen.pods_of(name).iter().map(growth).sum()
}

fn rows_claim(seen: &Window<'_>, name: &str, rows: Option<u64>) -> Claim {
    // Each write makes as many rows as it leads to queries of those that write.
    let once = Expected::of(seen.deployment, 1);
    let writers = seen.deployment.callers_of(name).filter(|caller| writes(caller));
    let each: u64 = writers.map(|caller| once.calls(caller, name).least).sum();
    let (least, most) = (seen.traffic.acknowledged * each, seen.traffic.writes * each);
    let claim = format!("{name}: every acknowledged write is there, and nothing that was not sent");
    range_claim(claim, Bounds { least, most }, rows)
}

/// Proxies send again only what had no effect, so that more rows than writes are a fault.
fn range_claim(claim: String, Bounds { least, most }: Bounds, rows: Option<u64>) -> Claim {
    Claim {
        claim,
        expected: if least == most { least.to_string() } else { format!("{least} to {most}") },
        seen: rows.map_or("no rows read".to_owned(), |rows| rows.to_string()),
        holds: rows.is_some_and(|rows| (least..=most).contains(&rows)),
    }
}

fn writes(service: &Service) -> bool {
    match &service.program {
        Program::BuiltIn(behaviour) => {
            behaviour.queries.as_ref().is_some_and(|queries| queries.write.is_some())
        }
        Program::Command(_) | Program::Airline(_) => true,
        Program::Gateway
        | Program::Postgres(_)
        | Program::AirlineDatabase(_)
        | Program::Petclinic(_)
        | Program::Nginx(_)
        | Program::Collector => false,
    }
}

/// From where the connections to a database must come.
struct Sources {
    addresses: Vec<Ipv4Addr>,
    whose: &'static str,
}

impl Sources {
    fn claims(&self, seen: &Window<'_>, expected: &Expected<'_>, database: &Service) -> Vec<Claim> {
        let name = &database.name;
        // Before the window a program may not have connected yet.
        let needed = u64::from(known_queries(seen, expected, name) > 0);
        let ends = [(seen.before, 0), (seen.after, needed)].map(|(sight, needed)| {
            let pods = seen.pods_of(name).into_iter();
            let open = pods.map(|pod| self.open_claim(&pod, sight.databases.get(&pod), needed));
            // Not every driver tells over which connection it asks, and the server lists them all.
            let telling = database.external.is_none();
            let callers = seen.deployment.callers_of(name).filter(|_| telling);
            let told = callers.flat_map(|caller| self.told_claims(seen, sight, caller, name));
            open.chain(told).collect()
        });
        let [before, after] = ends;
        merged(before, after)
    }

    /// Of all connections that are open, as the server lists them.
    fn open_claim(&self, pod: &str, sight: Option<&DatabaseSight>, needed: u64) -> Claim {
        let own = |peer: &IpAddr| self.addresses.iter().any(|own| *peer == IpAddr::V4(*own));
        let peers = sight.map(|sight| &sight.peers);
        Claim {
            claim: format!("{pod}: every open connection's source address is {}", self.whose),
            expected: listed(&self.addresses),
            seen: peers.map_or("not asked".to_owned(), texts),
            holds: peers.is_some_and(|peers| {
                peers.values().sum::<u64>() >= needed && peers.keys().all(own)
            }),
        }
    }

    /// Of the connections over which a caller's pods asked the server who they are.
    fn told_claims(
        &self,
        seen: &Window<'_>,
        sight: &Sight,
        caller: &Service,
        name: &str,
    ) -> Vec<Claim> {
        let walk = sight.walk.report.as_ref().and_then(|report| report.of(&caller.name));
        let pods = seen.pods_of(&caller.name);
        let reports = walk.into_iter().chain(pods.iter().filter_map(|p| sight.replicas.get(p)));
        let claim = |report: &PathReport| {
            let connection = format!("{} to {name}", caller.name);
            source_claim(connection, &self.addresses, self.whose, report.database_peer)
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

/// What the database's own sidecars must have counted.
fn inbound_claims(seen: &Window<'_>, expected: &Expected<'_>, database: &Service) -> Vec<Claim> {
    let name = &database.name;
    let queries = known_queries(seen, expected, name);
    let claim = |what: &str| format!("{}, inbound: {what}", proxies_of(database));
    let open: u64 = seen
        .pods_of(name)
        .iter()
        .filter_map(|pod| seen.before.databases.get(pod))
        .flat_map(|sight| sight.peers.values())
        .sum();
    let needed = open.max(u64::from(queries > 0));
    let mtls = seen.total(name, |c| c.tcp_mtls.connections);
    let plaintext = seen.growth(name, |c| c.tcp_plaintext.connections);
    let received = seen.growth(name, |c| c.tcp_mtls.received_bytes);
    vec![
        // Since its start: connections are older than the window.
        at_least_claim(claim("every open connection came over mTLS"), needed, Some(mtls)),
        count_claim(claim("no connection came as plaintext"), Bounds::exactly(0), plaintext),
        at_least_claim(
            claim("enough bytes for every query"),
            queries * LEAST_OF_POSTGRES,
            received,
        ),
    ]
}

/// What the sidecars of one caller must have counted.
fn outbound_claims(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    caller: &Service,
    name: &str,
) -> Vec<Claim> {
    let queries = expected.calls(caller, name).least;
    let tried = seen.total(&caller.name, |c| c.call(name).connections);
    if queries == 0 || is_users_own(caller) && tried == 0 {
        return Vec::new();
    }
    let mut claims = vec![handshake_claim(seen, &caller.name, name)];
    if !is_users_own(caller) {
        let what = format!("outbound: enough bytes for every query of {name}");
        let sent = seen.growth(&caller.name, |c| c.call(name).sent_bytes);
        let claim = format!("{}, {what}", proxies_of(caller));
        claims.push(at_least_claim(claim, queries * LEAST_OF_POSTGRES, sent));
    }
    claims
}
