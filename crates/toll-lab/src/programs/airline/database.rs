//! The airline's database: what serves it, how it is filled, and what it has seen: from what it says over TLS, as any
//! client is told, from PostgreSQL's own statistics, and from the kernel.
//!
//! The lab asks from inside of the database's pod, by a certificate of its own and through no proxy. That does not
//! count as operations.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::Deserialize;

use super::{inventory_config, mongo};
use crate::artifacts::{Artifact, Artifacts, Need};
use crate::certificates::external::ExternalFiles;
use crate::certificates::serials;
use crate::deployment::{AirlineDatabase, DatabaseServer, Service};
use crate::evidence::DatabaseSnapshot;
use crate::host::files;
use crate::host::isolation::Isolation;
use crate::host::ports;
use crate::host::spawn::Start;
use crate::probe::Outcome;
use crate::programs::handshake::Attempt;
use crate::programs::postgres::template::Template;
use crate::programs::postgres::{self, LEAST_OF_STATEMENT};
use crate::programs::running::{LONGEST_LOOK, LONGEST_SEED, Running};
use crate::topology::{Capture, Site};
use crate::{LabError, Reading};

/// What PostgreSQL's clients offer, and must, where TLS comes first.
const POSTGRES_PROTOCOL: &str = "postgresql";

/// What `look` prints.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Look {
    /// Operations since it began; none where its statistics tell.
    operations: Option<u64>,
    /// Those that the look itself added behind this count.
    own_operations: Option<u64>,
    bookings: u64,
    /// Different ones among the bookings' keys.
    keys: u64,
    seats_taken: u64,
    /// Sessions by the SHA-256 of the client's certificate; none where the server does not tell.
    clients: Option<BTreeMap<String, u64>>,
}

pub(crate) fn need(database: AirlineDatabase) -> Need {
    match database.server {
        DatabaseServer::MongoDb => Need::MongoDb,
        DatabaseServer::Postgres => Need::PostgresWithTls,
    }
}

/// What its clients offer in ALPN.
pub(crate) fn handshake_protocol(database: AirlineDatabase) -> Option<&'static str> {
    match database.server {
        DatabaseServer::MongoDb => None,
        DatabaseServer::Postgres => Some(POSTGRES_PROTOCOL),
    }
}

/// Bytes without which no operation can be asked for.
pub(crate) fn least_operation_bytes(database: AirlineDatabase) -> u64 {
    match database.server {
        DatabaseServer::MongoDb => mongo::LEAST_OF_A_COMMAND,
        DatabaseServer::Postgres => LEAST_OF_STATEMENT,
    }
}

/// Whether what there is can serve it.
///
/// # Errors
/// When it has no name outside of the mesh, or its server is too old.
pub(crate) fn check(
    service: &Service,
    database: AirlineDatabase,
    artifacts: &Artifacts,
) -> Result<(), LabError> {
    if service.external.is_none() {
        return Err(LabError::NotExternal { service: service.name.clone() });
    }
    match database.server {
        DatabaseServer::MongoDb => Ok(()),
        DatabaseServer::Postgres => postgres::check_tls(artifacts.path(Artifact::Postgres)?),
    }
}

/// Its server.
///
/// # Errors
/// When it is not there, or its files cannot be written.
pub(crate) fn start(
    site: &Site<'_>,
    database: AirlineDatabase,
    artifacts: &Artifacts,
    (template, isolation): (Option<&Template>, Isolation),
) -> Result<Start, LabError> {
    match database.server {
        DatabaseServer::MongoDb => mongo::start(site, artifacts),
        DatabaseServer::Postgres => postgres::start(site, template, isolation),
    }
}

/// Whether it takes clients. A PostgreSQL says so itself; a JVM that listens may be seconds away from its first
/// handshake.
///
/// # Errors
/// When a probe gives no result.
pub(crate) fn is_ready(running: &Running<'_>, database: AirlineDatabase) -> Result<bool, LabError> {
    let site = &running.site;
    if database.server == DatabaseServer::Postgres {
        return Ok(postgres::is_ready(site));
    }
    let Some(external) = &site.service.external else { return Ok(false) };
    if !ports::listens(running.pid, site.service.port) {
        return Ok(false);
    }
    let attempt = Attempt::new(site, site.service, external, handshake_protocol(database))?;
    let answer = running.prober.greet(&running.inside, attempt.target, &attempt.with)?;
    Ok(answer.outcome == Outcome::Established)
}

/// Puts the inventory into the database, and looks whether it tells what it holds.
///
/// # Errors
/// When it does not answer as it should.
pub(crate) fn fill(running: &Running<'_>) -> Result<(), LabError> {
    ask(running, "fill", LONGEST_SEED)?;
    look(running).map(drop)
}

fn look(running: &Running<'_>) -> Result<Look, LabError> {
    let printed = ask(running, "look", LONGEST_LOOK)?;
    serde_json::from_slice(&printed).map_err(|e| running.unreadable(&format!("`look` ({e})")))
}

/// What the program prints that does this with the airline's database.
fn ask(running: &Running<'_>, what: &str, limit: Duration) -> Result<Vec<u8>, LabError> {
    let site = &running.site;
    let config = site.file("airline.json");
    let not_external = || LabError::NotExternal { service: site.service.name.clone() };
    files::write(&config, inventory_config(site).ok_or_else(not_external)?)?;
    let mut command = running.prober.command();
    command.args(["airline", what, "--config"]).arg(config);
    running.ask(command, &running.inside, limit)
}

/// What it says of itself. One that does not take the lab's certificate any more says nothing: that does not keep the
/// lab from judging, but breaks the proof.
///
/// # Errors
/// When the user wants to leave, or the lab itself fails.
pub(crate) fn snapshot(
    running: &Running<'_>,
    database: AirlineDatabase,
) -> Result<Option<DatabaseSnapshot>, LabError> {
    match full_snapshot(running, database) {
        Err(silent @ LabError::Database { .. }) => {
            tracing::warn!("{silent}");
            Ok(None)
        }
        snapshot => snapshot.map(Some),
    }
}

fn full_snapshot(
    running: &Running<'_>,
    database: AirlineDatabase,
) -> Result<DatabaseSnapshot, LabError> {
    let look = look(running)?;
    let mut snapshot = match database.server {
        DatabaseServer::Postgres => {
            let clients = Some(Reading::Value(known_clients(running)?));
            DatabaseSnapshot { clients, ..postgres::statistics(running)? }
        }
        DatabaseServer::MongoDb => mongo_snapshot(running, &look)?,
    };
    snapshot.written = Some((look.bookings, look.keys));
    snapshot.seats_taken = Some(look.seats_taken);
    // The lab's own: its connections end when it has got its answers, and the kernel keeps them for a while.
    if let Capture::Transparent(_) = running.site.topology.capture {
        snapshot.peers.remove(&IpAddr::from(running.site.pod.ip));
    }
    Ok(snapshot)
}

/// Sessions by the SHA-256 of the client's certificate.
fn known_clients(running: &Running<'_>) -> Result<BTreeMap<String, u64>, LabError> {
    let files = ExternalFiles::new(running.site.dir);
    let issued = running.issued.clients.keys().map(|name| files.chain(name));
    let hashes = serials::by_serial(issued)
        .map_err(|path| running.unreadable(&format!("the certificate {}", path.display())))?;
    let sessions = postgres::certified(running)?.into_iter();
    // A certificate that the lab did not issue is no client's that is known.
    let known = |serial: String| hashes.get(&serial).cloned().unwrap_or(serial);
    Ok(sessions.map(|(serial, sessions)| (known(serial), sessions)).collect())
}

/// The kernel knows who is connected.
fn mongo_snapshot(running: &Running<'_>, look: &Look) -> Result<DatabaseSnapshot, LabError> {
    const SILENT: &str = "this server does not tell which certificates its clients show";
    let peers = ports::peers(running.pid, running.site.service.port)
        .map_err(|e| running.unreadable(&format!("the connections ({e})")))?;
    let clients = look.clients.clone();
    Ok(DatabaseSnapshot {
        statements: look.operations.ok_or_else(|| running.unreadable("opcounters"))?,
        looked: look.own_operations.unwrap_or(0),
        peers,
        clients: Some(clients.map_or_else(|| Reading::Missing(SILENT.to_owned()), Reading::Value)),
        ..DatabaseSnapshot::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_tells_is_read_and_what_it_does_not_tell_is_absent() {
        let text = r#"{"server":"mongod 7.0.14","operations":7,"own_operations":3,"bookings":2,"keys":2,
                       "seats_taken":2,"clients":null}"#;
        let look: Look = serde_json::from_str(text).unwrap();
        assert_eq!((look.operations, look.own_operations, look.clients), (Some(7), Some(3), None));
    }
}
