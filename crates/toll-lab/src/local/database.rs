//! Brings up the databases of an environment, fills them, and asks them what they did. The airline's: `airline.rs`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::environment::{LocalEnvironment, Program};
use super::isolation::Isolation;
use super::place::User;
use super::postgres::{self, ROLE, SERVER_UID, SUPERUSER, Server, Tls};
use super::process::Patience;
use super::query::{Row, query};
use super::template::Template;
use super::topology::listen_ip;
use crate::data_plane::{DatabaseSight, ExternalFiles};
use crate::deployment::{self, AirlineDatabase, DatabaseServer, Postgres};
use crate::{Component, LabError, Role};

/// How long a seed may run.
pub(super) const LONGEST_SEED: Duration = Duration::from_secs(120);

/// How long a database may take to say what it did: one that has stopped never does.
pub(super) const LONGEST_LOOK: Duration = Duration::from_secs(20);

/// A database of the deployment: its pod, and the pod's place among all.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pub(super) index: usize,
    pub(super) pod: String,
    pub(super) content: Content,
}

/// What a database holds.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// What the study's seed makes.
    Seeded(Postgres),
    /// The airline.
    Airline(AirlineDatabase),
}

impl Content {
    /// What `program` holds, where it is a database.
    pub(super) fn of(program: &deployment::Program) -> Option<Self> {
        match program {
            deployment::Program::Postgres(postgres) => Some(Self::Seeded(postgres.clone())),
            deployment::Program::AirlineDatabase(airline) => Some(Self::Airline(*airline)),
            _ => None,
        }
    }

    /// What serves it.
    pub(super) fn server(&self) -> DatabaseServer {
        match self {
            Self::Seeded(_) => DatabaseServer::Postgres,
            Self::Airline(airline) => airline.server,
        }
    }
}

impl LocalEnvironment {
    /// Starts the server of each database; a PostgreSQL gets a copy of the template.
    pub(super) fn start_databases(&mut self, template: Option<&Template>) -> Result<(), LabError> {
        for database in self.databases() {
            match (database.content.server(), template) {
                (DatabaseServer::Postgres, Some(template)) => {
                    self.start_postgres(&database, template)?;
                }
                (DatabaseServer::Postgres, None) => return Err(LabError::PostgresMissing),
                (DatabaseServer::MongoDb, _) => self.start_mongo(&database)?,
            }
        }
        Ok(())
    }

    fn start_postgres(&mut self, database: &Database, template: &Template) -> Result<(), LabError> {
        let (server, user) = (self.server(&database.pod), self.server_user());
        let tls = self.tls_of(&database.pod);
        self.make_folder_of(&server, &user)?;
        self.ledger.data_directory(&server.data()).map_err(LabError::Ledger)?;
        let authentication = postgres::host_based_authentication(tls.is_some());
        template.copy_to(&server.data(), &user, authentication)?;
        let service = &self.topology.pods[database.index].service;
        let connections = postgres::connections(&self.deployment, service);
        let path = template.programs.join("postgres");
        let mut command = Command::new(&path);
        let listen = listen_ip(self.topology.capture);
        command.args(postgres::arguments(&server, listen, connections, tls.as_ref()));
        let component = Component { role: Role::Database, pod: database.pod.clone() };
        self.start(Program { component, command, path, user, inherited: vec![] })
    }

    /// Of a database outside of the mesh.
    fn tls_of(&self, pod: &str) -> Option<Tls> {
        let (host, files) = (self.external(pod)?.host, ExternalFiles::new(&self.folder));
        Some(Tls {
            certificate: files.chain(&host),
            key: files.key(&host),
            authority: files.authority(),
        })
    }

    /// Closed to others: who reaches the socket may be the superuser.
    pub(super) fn make_folder_of(&self, server: &Server, user: &User) -> Result<(), LabError> {
        let make = || {
            std::fs::DirBuilder::new().mode(0o700).create(&server.folder)?;
            match user {
                User::Other(uid) => chown(&server.folder, Some(*uid), Some(*uid)),
                User::Caller | User::Mapped(_) => Ok(()),
            }
        };
        make().map_err(|source| LabError::Write { path: server.folder.clone(), source })
    }

    /// The server refuses root, also the root of a user namespace.
    pub(super) fn server_user(&self) -> User {
        match (self.isolation, nix::unistd::geteuid().is_root()) {
            (Isolation::Rootless, _) => User::Mapped(SERVER_UID),
            (Isolation::Pods | Isolation::Loopback, true) => User::Other(SERVER_UID),
            (Isolation::Pods | Isolation::Loopback, false) => User::Caller,
        }
    }

    /// Puts into each database what it holds at first; the servers take connections.
    pub(super) fn seed_databases(&mut self) -> Result<(), LabError> {
        for database in self.databases() {
            match &database.content {
                Content::Seeded(postgres) => {
                    self.ask_database(&database.pod, [ROLE; 2], &postgres.seed, LONGEST_SEED)
                        .map_err(of_seed)?;
                }
                Content::Airline(_) => self.fill(&database)?,
            }
        }
        Ok(())
    }

    /// What each database says of itself. One outside of the mesh that does not take the lab's certificate any
    /// more is left out: that is nothing that keeps the lab from judging, but breaks the proof.
    pub(super) fn database_sights(&self) -> Result<BTreeMap<String, DatabaseSight>, LabError> {
        let mut sights = BTreeMap::new();
        for database in self.databases() {
            let sight = match &database.content {
                Content::Seeded(postgres) => self.seeded_sight(&database.pod, postgres),
                Content::Airline(airline) => self.airline_sight(&database, *airline),
            };
            match (sight, &database.content) {
                (Err(silent @ LabError::Database { .. }), Content::Airline(_)) => {
                    tracing::warn!("{silent}");
                }
                (sight, _) => {
                    sights.insert(database.pod, sight?);
                }
            }
        }
        Ok(sights)
    }

    fn seeded_sight(&self, pod: &str, database: &Postgres) -> Result<DatabaseSight, LabError> {
        let mut sight = self.statistics(pod)?;
        if let Some(sql) = &database.written {
            // Not as the services' role, whose statements are counted.
            let rows = self.ask_database(pod, [SUPERUSER, ROLE], sql, LONGEST_LOOK)?;
            let written = written(&rows);
            sight.written = Some(written.ok_or_else(|| {
                unreadable(pod, "the study's `written` (one row of two whole numbers)")
            })?);
        }
        Ok(sight)
    }

    /// What a PostgreSQL has counted itself, and who is connected.
    pub(super) fn statistics(&self, pod: &str) -> Result<DatabaseSight, LabError> {
        let rows = self.ask_database(pod, [SUPERUSER; 2], postgres::SIGHT, LONGEST_LOOK)?;
        sight(&rows).ok_or_else(|| unreadable(pod, "the statistics"))
    }

    /// Sessions of a PostgreSQL by the serial number of the client's certificate.
    pub(super) fn certified(&self, pod: &str) -> Result<BTreeMap<String, u64>, LabError> {
        let rows = self.ask_database(pod, [SUPERUSER; 2], postgres::CLIENTS, LONGEST_LOOK)?;
        let client = |row: &Row| Some((text(row, 0)?.to_owned(), text(row, 1)?.parse().ok()?));
        let clients = rows.iter().map(client).collect::<Option<_>>();
        clients.ok_or_else(|| unreadable(pod, "the clients' certificates"))
    }

    fn ask_database(
        &self,
        pod: &str,
        [user, database]: [&str; 2],
        sql: &str,
        limit: Duration,
    ) -> Result<Vec<Row>, LabError> {
        let server = self.server(pod);
        let interrupt = &*self.options.interrupt;
        let patience = Patience { limit, interrupt };
        query(&self.launcher, &self.options.service, &server, [user, database], sql, &patience)
            .map_err(|message| match interrupt.load(Ordering::Relaxed) {
                true => LabError::Interrupted,
                false => LabError::Database { pod: pod.to_owned(), message },
            })
    }

    /// In the order of the pods.
    pub(super) fn databases(&self) -> Vec<Database> {
        let pods = self.deployment.pods().into_iter().enumerate();
        pods.filter_map(|(index, (pod, service))| {
            Some(Database { index, pod, content: Content::of(&service.program)? })
        })
        .collect()
    }

    /// The folder's name is short: a socket's path has at most 107 bytes.
    pub(super) fn server(&self, pod: &str) -> Server {
        let index = self.place_of(pod);
        Server {
            folder: self.folder.join(format!("db{index}")),
            port: self.topology.pods[index].app_port,
        }
    }
}

/// Reads the rows of [`postgres::SIGHT`].
fn sight(rows: &[Row]) -> Option<DatabaseSight> {
    let mut sight = DatabaseSight::default();
    for row in rows {
        let number: u64 = text(row, 2)?.parse().ok()?;
        match text(row, 0)? {
            "statements" => sight.statements = number,
            _ => {
                let peer: IpAddr = text(row, 1)?.parse().ok()?;
                sight.peers.insert(peer, number);
            }
        }
    }
    Some(sight)
}

/// The one row of two whole numbers that a study's `written` gives.
fn written(rows: &[Row]) -> Option<(u64, u64)> {
    match rows {
        [row] if row.len() == 2 => Some((text(row, 0)?.parse().ok()?, text(row, 1)?.parse().ok()?)),
        _ => None,
    }
}

fn text(row: &Row, column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

fn of_seed(error: LabError) -> LabError {
    match error {
        LabError::Database { pod, message } => {
            LabError::Database { pod, message: format!("the seed: {message}") }
        }
        other => other,
    }
}

pub(super) fn unreadable(pod: &str, what: &str) -> LabError {
    let message = format!("{what} did not give the rows that it should");
    LabError::Database { pod: pod.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: &[Option<&str>]) -> Row {
        texts.iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn statements_and_peers_are_told_apart() {
        let rows = [
            row(&[Some("statements"), None, Some("42")]),
            row(&[Some("peer"), Some("10.77.0.5"), Some("16")]),
            row(&[Some("peer"), Some("127.0.0.6"), Some("1")]),
        ];
        let peers = [("10.77.0.5", 16), ("127.0.0.6", 1)].map(|(ip, n)| (ip.parse().unwrap(), n));
        let expected = DatabaseSight {
            clients: None,
            seats_taken: None,
            statements: 42,
            looked: 0,
            peers: peers.into(),
            written: None,
        };
        assert_eq!(sight(&rows), Some(expected));
        assert_eq!(sight(&[row(&[Some("peer"), None, Some("1")])]), None);
    }

    #[test]
    fn what_was_written_is_one_row_of_two_whole_numbers() {
        assert_eq!(written(&[row(&[Some("7"), Some("6")])]), Some((7, 6)));
        assert_eq!(written(&[row(&[Some("7")])]), None);
        assert_eq!(written(&[row(&[Some("7"), None])]), None);
        assert_eq!(written(&[]), None);
    }
}
