//! Brings up and fills the airline's database, and tells what it has seen: from what it says over TLS, as any client
//! is told, from PostgreSQL's own statistics, and from the kernel.
//!
//! The lab asks from inside of the database's pod, by a certificate of its own and through no proxy. That does not
//! count as operations.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Deserialize;

use super::bring_up::of_toll;
use super::database::{Database, LONGEST_LOOK, LONGEST_SEED, unreadable};
use super::environment::{self, LocalEnvironment};
use super::jvm::{self, Jvm};
use super::place::{Place, User};
use super::process::Patience;
use super::{mongo, ports, serials, topology};
use crate::data_plane::{Capture, DatabaseSight, ExternalFiles};
use crate::deployment::{AirlineDatabase, DatabaseServer, Deployment, External, Program, Service};
use crate::lab::{LocalOptions, MongoServer};
use crate::parts::stand_in_version;
use crate::{Component, LabError, Reading, Role};

/// What `look` prints.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Look {
    /// Name and version of what serves.
    server: String,
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

impl LocalEnvironment {
    pub(super) fn start_mongo(&mut self, database: &Database) -> Result<(), LabError> {
        let server = self.options.mongo.clone().ok_or(LabError::MongoMissing)?;
        let (path, command) = match &server {
            MongoServer::Mongod(binary) => (binary.clone(), self.mongod(binary, database)?),
            MongoServer::StandIn(jar) => {
                let java = self.options.java.clone().ok_or(LabError::JavaMissing)?;
                let mut command = Jvm::of_stand_in(jar).command(&java, &self.folder);
                let (at, host) = (self.listens_at(database), self.host_of(database)?);
                let files = ExternalFiles::new(&self.folder);
                command.args(mongo::stand_in_arguments(at, &files, &host));
                jvm::shield(&mut command, std::env::vars_os());
                (java, command)
            }
        };
        let component = Component { role: Role::Database, pod: database.pod.clone() };
        let (user, inherited) = (User::Caller, vec![]);
        self.start(environment::Program { component, command, path, user, inherited })
    }

    /// On a fresh data directory, which goes with the environment's folder.
    fn mongod(&self, binary: &Path, database: &Database) -> Result<Command, LabError> {
        let data = self.server(&database.pod).folder;
        fs::create_dir(&data).map_err(|source| LabError::Write { path: data.clone(), source })?;
        let (at, host) = (self.listens_at(database), self.host_of(database)?);
        let files = ExternalFiles::new(&self.folder);
        let mut command = Command::new(binary);
        command.args(mongo::arguments(at, &data, &files, &host));
        Ok(command)
    }

    fn listens_at(&self, database: &Database) -> SocketAddrV4 {
        topology::listen_at(&self.topology, self.topology.pods[database.index].app_port)
    }

    /// The name under which its certificate is kept.
    fn host_of(&self, database: &Database) -> Result<String, LabError> {
        let external = self.external(&database.pod);
        external.map(|external| external.host).ok_or_else(|| self.not_external(database))
    }

    fn not_external(&self, database: &Database) -> LabError {
        let service = self.topology.pods[database.index].service.clone();
        LabError::NotExternal { service }
    }

    /// What the service in this pod is outside of the mesh, if it is.
    pub(super) fn external(&self, pod: &str) -> Option<External> {
        let pods = self.deployment.pods();
        pods.into_iter().find(|(name, _)| name == pod)?.1.external.clone()
    }

    /// Puts the inventory into the database, and keeps what serves it.
    pub(super) fn fill(&mut self, database: &Database) -> Result<(), LabError> {
        self.ask_airline(database, "fill", LONGEST_SEED)?;
        let server = self.look(database)?.server;
        self.database_servers.insert(database.pod.clone(), server);
        Ok(())
    }

    fn look(&self, database: &Database) -> Result<Look, LabError> {
        let told = self.ask_airline(database, "look", LONGEST_LOOK)?;
        serde_json::from_slice(&told)
            .map_err(|e| unreadable(&database.pod, &format!("`look` ({e})")))
    }

    /// What the program prints that does this with the airline's database.
    fn ask_airline(
        &self,
        database: &Database,
        what: &str,
        limit: Duration,
    ) -> Result<Vec<u8>, LabError> {
        let config = self.folder.join(format!("{}.airline.json", database.pod));
        fs::write(&config, self.inventory(database)?)
            .map_err(|source| LabError::Write { path: config.clone(), source })?;
        let (_, mut command) = of_toll(&self.options.service);
        command.args(["airline", what, "--config"]).arg(config);
        let place = Place {
            namespace: self.namespace_of(&database.pod).cloned(),
            hosts: self.hosts_of(&database.pod),
            ..Place::default()
        };
        let interrupt = &*self.options.interrupt;
        let patience = Patience { limit, interrupt };
        let ran = place
            .apply(&mut command)
            .and_then(|()| self.launcher.run_within(command, &patience))
            .map_err(|e| e.to_string())
            .and_then(|output| match output.status.success() {
                true => Ok(output.stdout),
                false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            });
        ran.map_err(|message| match interrupt.load(Ordering::Relaxed) {
            true => LabError::Interrupted,
            false => LabError::Database { pod: database.pod.clone(), message },
        })
    }

    /// What the program is told of the database.
    fn inventory(&self, database: &Database) -> Result<String, LabError> {
        let service = &self.topology.pods[database.index].service;
        let (deployment, topology) = (&self.deployment, &self.topology);
        let config = topology::inventory_config(deployment, topology, &self.folder, service);
        config.ok_or_else(|| self.not_external(database))
    }

    /// What the airline's database says of itself.
    pub(super) fn airline_sight(
        &self,
        database: &Database,
        airline: AirlineDatabase,
    ) -> Result<DatabaseSight, LabError> {
        let look = self.look(database)?;
        let mut sight = match airline.server {
            DatabaseServer::Postgres => {
                let clients = self.known_clients(database)?;
                let clients = Some(Reading::Value(clients));
                DatabaseSight { clients, ..self.statistics(&database.pod)? }
            }
            DatabaseServer::MongoDb => self.mongo_sight(database, &look)?,
        };
        sight.written = Some((look.bookings, look.keys));
        sight.seats_taken = Some(look.seats_taken);
        // The lab's own: its connections end when it has got its answers, and the kernel keeps them for a while.
        if let Capture::Transparent(_) = self.topology.capture {
            sight.peers.remove(&IpAddr::from(self.topology.pods[database.index].ip));
        }
        Ok(sight)
    }

    /// Sessions by the SHA-256 of the client's certificate.
    fn known_clients(&self, database: &Database) -> Result<BTreeMap<String, u64>, LabError> {
        let files = ExternalFiles::new(&self.folder);
        let issued = self.issued.clients.keys().map(|name| files.chain(name));
        let hashes = serials::by_serial(issued).map_err(|path| {
            unreadable(&database.pod, &format!("the certificate {}", path.display()))
        })?;
        let sessions = self.certified(&database.pod)?.into_iter();
        // A certificate that the lab did not issue is no client's that is known.
        let known = |serial: String| hashes.get(&serial).cloned().unwrap_or(serial);
        Ok(sessions.map(|(serial, sessions)| (known(serial), sessions)).collect())
    }

    /// Who is connected is the kernel's to tell.
    fn mongo_sight(&self, database: &Database, look: &Look) -> Result<DatabaseSight, LabError> {
        const SILENT: &str = "this server does not tell which certificates its clients show";
        let operations = look.operations.ok_or_else(|| unreadable(&database.pod, "opcounters"))?;
        let mut components = self.components.iter();
        let component = components
            .find(|(c, _)| c.role == Role::Database && c.pod == database.pod)
            .expect("a database that is looked at has been started");
        let port = self.topology.pods[database.index].app_port;
        let peers = ports::peers(component.1.pid, port)
            .map_err(|e| unreadable(&database.pod, &format!("the connections ({e})")))?;
        let clients = look.clients.clone();
        let clients = clients.map_or_else(|| Reading::Missing(SILENT.to_owned()), Reading::Value);
        Ok(DatabaseSight {
            statements: operations,
            looked: look.own_operations.unwrap_or(0),
            peers,
            clients: Some(clients),
            ..DatabaseSight::default()
        })
    }

    /// What serves each external database, by pod.
    pub(crate) fn servers_in_words(&self) -> BTreeMap<String, String> {
        let words = |(pod, server): (&String, &String)| (pod.clone(), in_words(server));
        self.database_servers.iter().map(words).collect()
    }
}

/// A server that is none of MongoDB's own speaks for it.
fn in_words(server: &str) -> String {
    match server.starts_with("mongo-java-server") {
        true => format!("{server} (a stand-in for MongoDB)"),
        false => server.to_owned(),
    }
}

/// What will serve the databases outside of the mesh, for the report's manifest: what each says when it is asked for
/// its version.
pub(super) fn facts(deployment: &Deployment, options: &LocalOptions) -> Vec<(String, String)> {
    let fact = |service: &Service| {
        let Program::AirlineDatabase(database) = &service.program else { return None };
        let server = match database.server {
            DatabaseServer::Postgres => {
                let programs = options.postgres.as_deref()?;
                version_of(&programs.join("postgres"))?
                    .replace("postgres (PostgreSQL)", "PostgreSQL")
            }
            DatabaseServer::MongoDb => match options.mongo.as_ref()? {
                MongoServer::Mongod(binary) => {
                    version_of(binary)?.replace("db version v", "mongod ")
                }
                MongoServer::StandIn(jar) => {
                    in_words(&format!("mongo-java-server {}", stand_in_version(jar)?))
                }
            },
        };
        Some((format!("database of {}", service.name), server))
    };
    deployment.services.iter().filter_map(fact).collect()
}

/// The first line of what it says.
fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_stands_in_for_mongodb_is_called_so() {
        let words = "mongo-java-server 1.47.0 (a stand-in for MongoDB)";
        assert_eq!(in_words("mongo-java-server 1.47.0"), words);
        assert_eq!(in_words("mongod 7.0.14"), "mongod 7.0.14");
        assert_eq!(in_words("PostgreSQL 17.11"), "PostgreSQL 17.11");
    }

    #[test]
    fn what_a_server_tells_is_read_and_what_it_does_not_tell_is_absent() {
        let text = r#"{"server":"mongod 7.0.14","operations":7,"own_operations":3,"bookings":2,"keys":2,
                       "seats_taken":2,"clients":null}"#;
        let look: Look = serde_json::from_str(text).unwrap();
        assert_eq!((look.operations, look.own_operations, look.clients), (Some(7), Some(3), None));
    }
}
