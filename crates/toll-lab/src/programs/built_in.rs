//! The built-in service: native, or the same node on Spring.

use std::net::SocketAddrV4;

use serde::Serialize;

use super::config::{CallConfig, http_calls, json, whole};
use super::jvm::Size;
use super::postgres::ROLE;
use crate::LabError;
use crate::artifacts::Artifact;
use crate::deployment::{BuiltIn, Compilers, Planted, Queries, Runtime};
use crate::topology::Site;

/// Of the Spring form.
const SPRING: Size = Size { heap_mib: 256, compilers: Compilers::Both };

/// Its jar and the size of its JVM, where it is on one.
pub(super) fn jar(built_in: &BuiltIn) -> Option<(Artifact, Size)> {
    match built_in.runtime {
        Runtime::Native => None,
        Runtime::Spring => Some((Artifact::Spring, SPRING)),
    }
}

/// The configuration file, whatever it is written in.
#[derive(Debug, Serialize)]
struct ServiceConfig<'a> {
    name: &'a str,
    listen: SocketAddrV4,
    calls: Vec<CallConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_proxy: Option<SocketAddrV4>,
    work_us: u64,
    reply_bytes: usize,
    status: u16,
    relay: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stall: Option<StallConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    planted: Option<PlantedConfig>,
}

#[derive(Debug, Serialize)]
struct DatabaseConfig<'a> {
    service: &'a str,
    address: SocketAddrV4,
    user: &'static str,
    database: &'static str,
    connections: u32,
    read: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct StallConfig {
    every_ms: u64,
    lasting_ms: u64,
}

#[derive(Debug, Serialize)]
struct PlantedConfig {
    iterations: u64,
    sleep_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<LateConfig>,
    ballast_bytes: u64,
}

#[derive(Debug, Serialize)]
struct LateConfig {
    one_in: u32,
    by_ms: u64,
}

/// The text of that file.
///
/// # Errors
/// When it calls a service that is not there.
pub(super) fn config(site: &Site<'_>, built_in: &BuiltIn) -> Result<String, LabError> {
    Ok(json(&ServiceConfig {
        name: &site.service.name,
        listen: site.listens_at(),
        calls: http_calls(site)?,
        http_proxy: site.http_proxy(),
        work_us: whole(built_in.work.as_micros()),
        reply_bytes: built_in.reply_bytes,
        status: built_in.status,
        relay: built_in.relay,
        database: built_in.queries.as_ref().map(|queries| database(site, queries)).transpose()?,
        stall: built_in.stall.map(|stall| StallConfig {
            every_ms: whole(stall.every.as_millis()),
            lasting_ms: whole(stall.lasting.as_millis()),
        }),
        planted: (!built_in.planted.is_nothing()).then(|| planted(&built_in.planted)),
    }))
}

fn planted(planted: &Planted) -> PlantedConfig {
    let late = planted
        .late
        .map(|late| LateConfig { one_in: late.one_in, by_ms: whole(late.by.as_millis()) });
    PlantedConfig {
        iterations: planted.iterations,
        sleep_us: whole(planted.sleep.as_micros()),
        late,
        ballast_bytes: planted.ballast_bytes,
    }
}

fn database<'a>(site: &Site<'_>, queries: &'a Queries) -> Result<DatabaseConfig<'a>, LabError> {
    Ok(DatabaseConfig {
        service: &queries.database,
        address: site.addresses_of(&queries.database)?[0],
        user: ROLE,
        database: ROLE,
        connections: queries.connections,
        read: &queries.read,
        write: queries.write.as_deref(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::deployment::{Late, Planted, Program};
    use crate::fixture::graphs::{customer, with_replicas};
    use crate::fixture::{chain, in_mesh};
    use crate::programs::tests::config_of;

    #[test]
    fn the_services_configuration_does_not_change_with_transparent_sidecars() {
        assert_eq!(config_of(&chain(), "client"), config_of(&in_mesh(chain()), "client"));
    }

    #[test]
    fn a_service_is_told_where_to_listen_and_whom_to_call() {
        insta::assert_snapshot!(config_of(&chain(), "client"));
    }

    #[test]
    fn a_service_is_told_of_what_is_planted_in_it() {
        let mut planted = chain();
        let Program::BuiltIn(client) = &mut planted.services[0].program else { unreachable!() };
        client.planted = Planted {
            iterations: 1000,
            sleep: Duration::from_micros(50),
            late: Some(Late { one_in: 100, by: Duration::from_millis(20) }),
            ballast_bytes: 10 << 20,
        };
        let config: serde_json::Value =
            serde_json::from_str(&config_of(&planted, "client")).unwrap();
        let expected = serde_json::json!({
            "iterations": 1000, "sleep_us": 50, "late": {"one_in": 100, "by_ms": 20},
            "ballast_bytes": 10_485_760,
        });
        assert_eq!(config["planted"], expected);
    }

    #[test]
    fn a_service_with_a_database_is_told_of_it_apart_from_its_calls() {
        insta::assert_snapshot!(config_of(&customer(), "name"));
    }

    #[test]
    fn a_bare_caller_is_given_every_pod_of_what_it_calls() {
        let config = config_of(&with_replicas(customer(), "person", 3), "customer");
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        let addresses = ["10.77.0.4:8082", "10.77.0.5:8082", "10.77.0.6:8082"];
        assert_eq!(config["calls"][0]["addresses"], serde_json::json!(addresses));
    }
}
