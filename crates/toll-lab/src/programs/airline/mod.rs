//! The airline: the configuration of its parts and of what fills its database.

pub(crate) mod calls;
pub(super) mod claims;
pub(super) mod database;
mod mongo;

use std::net::SocketAddrV4;
use std::path::PathBuf;

use serde::Serialize;

use super::config::{CallConfig, http_calls, json, whole};
use crate::LabError;
use crate::certificates::external::{ExternalFiles, LAB_CLIENT, known_as};
use crate::deployment::{
    Airline, AirlineDatabase, AirlinePart, DatabaseServer, Deployment, External, Program, Service,
};
use crate::topology::Site;

/// The configuration file of a part of the airline.
#[derive(Debug, Serialize)]
struct AirlineConfig<'a> {
    name: &'a str,
    listen: SocketAddrV4,
    work_us: u64,
    calls: Vec<AirlineCallConfig>,
    airline: PartConfig<'a>,
}

#[derive(Debug, Serialize)]
struct AirlineCallConfig {
    part: AirlinePart,
    #[serde(flatten)]
    call: CallConfig,
}

#[derive(Debug, Serialize)]
struct PartConfig<'a> {
    part: AirlinePart,
    database: Option<ExternalDatabaseConfig<'a>>,
}

/// How a database outside of the mesh is reached and known, and as whom.
#[derive(Debug, Serialize)]
struct ExternalDatabaseConfig<'a> {
    service: &'a str,
    kind: DatabaseServer,
    host: &'a str,
    address: SocketAddrV4,
    connections: u32,
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    identity: PathBuf,
}

/// What the airline's database is filled with and looked at by.
#[derive(Debug, Serialize)]
struct InventoryConfig<'a> {
    database: ExternalDatabaseConfig<'a>,
    flights: u32,
    seats: u32,
    customers: u32,
}

/// The text of a part's configuration file.
///
/// # Errors
/// When it calls a service that is not there.
pub(super) fn config(site: &Site<'_>, airline: &Airline) -> Result<String, LabError> {
    let calls = http_calls(site)?.into_iter();
    Ok(json(&AirlineConfig {
        name: &site.service.name,
        listen: site.listens_at(),
        work_us: whole(airline.work.as_micros()),
        calls: calls.filter_map(|call| to_part(site.deployment, call)).collect(),
        airline: PartConfig {
            part: airline.part,
            database: asked_database(site, airline.connections)?,
        },
    }))
}

/// Parts of the airline know each other by what they do; it calls nobody else.
fn to_part(deployment: &Deployment, call: CallConfig) -> Option<AirlineCallConfig> {
    match deployment.service(&call.service)?.program {
        Program::Airline(Airline { part, .. }) => Some(AirlineCallConfig { part, call }),
        _ => None,
    }
}

/// The airline's database as the program at `site` reaches it; none for a part that does not call it.
fn asked_database<'a>(
    site: &Site<'a>,
    connections: u32,
) -> Result<Option<ExternalDatabaseConfig<'a>>, LabError> {
    let mut called = site.service.calls.iter().filter_map(|callee| site.deployment.service(callee));
    let Some(server) = called.find_map(AirlineServer::of_service) else { return Ok(None) };
    let address = site.addresses_of(&server.service.name)?[0];
    Ok(Some(server.config(site, address, (&site.service.name, connections))))
}

/// A database of the airline that is outside of the mesh.
#[derive(Debug, Clone, Copy)]
struct AirlineServer<'a> {
    service: &'a Service,
    database: &'a AirlineDatabase,
    external: &'a External,
}

impl<'a> AirlineServer<'a> {
    fn of_service(service: &'a Service) -> Option<Self> {
        match (&service.program, &service.external) {
            (Program::AirlineDatabase(database), Some(external)) => {
                Some(Self { service, database, external })
            }
            _ => None,
        }
    }

    fn config(
        self,
        site: &Site<'a>,
        address: SocketAddrV4,
        (client, connections): (&str, u32),
    ) -> ExternalDatabaseConfig<'a> {
        let files = ExternalFiles::new(site.dir);
        ExternalDatabaseConfig {
            service: &self.service.name,
            kind: self.database.server,
            host: known_as(self.external, site.topology.capture),
            address,
            connections,
            authority: files.authority(),
            certificate: files.chain(client),
            key: files.key(client),
            identity: files.identity(client),
        }
    }
}

/// The configuration of the commands that fill the airline's database at `site` and look into it, JSON. They come as
/// the lab, past all proxies, by one connection; none where it has no name outside of the mesh.
fn inventory_config(site: &Site<'_>) -> Option<String> {
    let server = AirlineServer::of_service(site.service)?;
    let first = site.topology.pods_of(&site.service.name).ok()?[0];
    let address = SocketAddrV4::new(first.ip, first.app_port);
    Some(json(&InventoryConfig {
        database: server.config(site, address, (LAB_CLIENT, 1)),
        flights: server.database.flights,
        seats: server.database.seats,
        customers: server.database.customers,
    }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fixture::graphs::{airline, leaving, on_postgres, ways_out};
    use crate::host::isolation::Isolation;
    use crate::programs::tests::{config_at, config_of};
    use crate::topology;

    #[test]
    fn a_part_of_the_airline_is_told_whom_to_call_and_how_it_knows_the_database() {
        insta::assert_snapshot!(config_of(&airline(), "bookings"));
    }

    #[test]
    fn a_part_of_the_airline_without_a_database_is_told_of_none() {
        let config: serde_json::Value =
            serde_json::from_str(&config_of(&airline(), "web")).unwrap();
        assert_eq!(config["airline"], serde_json::json!({"part": "web", "database": null}));
        assert_eq!(config["calls"][1]["part"], "bookings");
    }

    #[test]
    fn parts_of_the_airline_are_told_the_same_in_all_cases() {
        for (name, egress) in ways_out() {
            let mesh = leaving(airline(), egress);
            assert_eq!(config_of(&mesh, "bookings"), config_of(&airline(), "bookings"), "{name}");
        }
    }

    #[test]
    fn without_namespaces_the_database_is_known_as_localhost() {
        let config = config_at(&airline(), Isolation::Loopback, "flights");
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        let database = &config["airline"]["database"];
        assert_eq!(
            (&database["host"], &database["address"]),
            (&"localhost".into(), &"127.0.0.1:27017".into())
        );
    }

    #[test]
    fn the_inventory_is_made_and_looked_at_by_the_lab_past_all_proxies() {
        let (_, egress) = ways_out().into_iter().find(|(case, _)| *case == "gateway-sni").unwrap();
        let mesh = on_postgres(leaving(airline(), egress));
        let topology = topology::plan(&mesh, Isolation::Pods, []);
        let folder = Path::new("/run/toll/lab");
        let config = |pod| inventory_config(&Site::of_pod(&mesh, &topology, folder, pod).unwrap());
        insta::assert_snapshot!(config("airline-db").unwrap());
        assert_eq!(config("flights"), None);
    }
}
