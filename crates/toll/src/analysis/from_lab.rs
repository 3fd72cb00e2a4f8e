//! What the lab says in words, as facts: the one place that looks into its sentences. What its types come to say
//! themselves goes from here.

use std::path::PathBuf;

use toll_lab::{AirlineDatabase, Program};

use super::findings::{Claim, DatabaseServer, Fact, LeftOut, Topic};
use crate::plan::Plan;
use crate::store::RunRecord;

/// What a proof could not claim.
pub fn left_out(what: &str) -> LeftOut {
    if what.starts_with("why ") && what.contains(" spans are missing") {
        LeftOut::MissingSpans
    } else if what.starts_with("that no request crossed a sidecar") {
        LeftOut::NoCrossing
    } else {
        LeftOut::Other(what.into())
    }
}

/// Words of the claims that sum the others up.
const TOPICS: [(&str, Topic); 9] = [
    ("SNI proxy", Topic::SniProxy),
    ("without an identity of the mesh", Topic::Identity),
    ("is the egress gateway's", Topic::EgressAddress),
    ("past every sidecar", Topic::Bypass),
    ("end to end", Topic::EndToEnd),
    ("crossed", Topic::Crossings),
    ("acknowledged", Topic::Acknowledged),
    ("written", Topic::Written),
    ("span", Topic::Spans),
];

/// A claim with what it is about.
pub fn claim(of: &toll_lab::Claim) -> Claim {
    let topic = TOPICS.iter().find(|(words, _)| of.claim.contains(words));
    Claim {
        topic: topic.map_or(Topic::Other, |(_, topic)| *topic),
        claim: of.claim.clone(),
        expected: of.expected.clone(),
        seen: of.seen.clone(),
        holds: of.holds,
    }
}

/// What runs where there is no `mongod`.
const STAND_IN: &str = "mongo-java-server";

/// What the machine and its programs said of themselves; the airline's database in one line, with whatever is known.
pub fn facts(run: &RunRecord) -> Vec<Fact> {
    let Some(server) = database(run) else { return told(run, |_| true) };
    // It is also there by other names: as a part, or as the lab met it.
    let is_database = |label: &str| {
        label == "database" || label.contains(STAND_IN) || label.starts_with("database of ")
    };
    let mut facts = told(run, |label| !is_database(label));
    facts.push(Fact::Database(server));
    facts
}

fn told(run: &RunRecord, is_kept: impl Fn(&str) -> bool) -> Vec<Fact> {
    let kept = run.host.facts.iter().filter(|(label, _)| is_kept(label));
    let kept = kept.map(|(label, value)| Fact::Told(label.clone(), value.clone()));
    kept.chain(run.host.programs.iter().map(program)).collect()
}

/// A file of the user's, which may be another in the next run.
fn program((file, hash): (&PathBuf, &String)) -> Fact {
    const TOLD: usize = 12;
    Fact::Told(format!("program {}", file.display()), format!("sha256 {hash:.TOLD$}"))
}

/// The server of the airline's database.
pub fn database(run: &RunRecord) -> Option<DatabaseServer> {
    let facts = &run.host.facts;
    let labelled = |label: &str| facts.iter().find(|(of, _)| of == label).map(|(_, v)| v.clone());
    if let Some(name) = labelled("database") {
        return Some(DatabaseServer::Named { name });
    }
    let stand_in = || {
        let (label, value) = facts
            .iter()
            .find(|(label, value)| [label, value].iter().any(|t| t.contains(STAND_IN)))?;
        let version = match label.contains(STAND_IN) {
            true => value.as_str(),
            false => value.strip_prefix(STAND_IN)?,
        };
        Some(DatabaseServer::StandIn { version: version.trim().into() })
    };
    match server(&run.plan)? {
        toll_lab::DatabaseServer::Postgres => {
            labelled("PostgreSQL").map(|version| DatabaseServer::Postgres { version })
        }
        // Where both are there, the lab takes `mongod`.
        toll_lab::DatabaseServer::MongoDb => {
            let mongod = labelled("MongoDB").map(|version| DatabaseServer::MongoDb { version });
            mongod.or_else(stand_in)
        }
    }
}

fn server(plan: &Plan) -> Option<toll_lab::DatabaseServer> {
    let mut services = plan.ready().flat_map(|(_, deployment)| &deployment.services);
    services.find_map(|service| match service.program {
        Program::AirlineDatabase(AirlineDatabase { server, .. }) => Some(server),
        _ => None,
    })
}
