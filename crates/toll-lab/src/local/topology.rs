//! Turns a deployment and an isolation level into addresses and into what each service is told. Pure.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Serialize;

use super::isolation::Isolation;
use super::network;
use crate::LabError;
use crate::data_plane::{
    Bypass, Capture, INBOUND_PORT, OUTBOUND_PORT, PROXY_MARK, PROXY_UID, PodAddresses, Topology,
};
use crate::deployment::{BuiltIn, DataPlane, Deployment, Service};

/// Where everything of `deployment` listens.
///
/// With loopback isolation the sidecars take their ports from `free`, which must have at least
/// [`ports_needed`].
pub(crate) fn plan(
    deployment: &Deployment,
    isolation: Isolation,
    free: impl IntoIterator<Item = u16>,
) -> Topology {
    match isolation {
        Isolation::Pods => transparent(deployment, Bypass::Uid(PROXY_UID)),
        Isolation::Rootless => transparent(deployment, Bypass::Mark(PROXY_MARK)),
        Isolation::Loopback => explicit(deployment, free.into_iter()),
    }
}

/// Ports that the sidecars take on the loopback address: one for what comes in, one for each called service.
pub(crate) fn ports_needed(deployment: &Deployment) -> usize {
    match deployment.data_plane {
        DataPlane::Bare => 0,
        DataPlane::Sidecar { .. } => {
            deployment.services.iter().map(|service| 1 + service.calls.len()).sum()
        }
    }
}

fn transparent(deployment: &Deployment, bypass: Bypass) -> Topology {
    let pod = |(index, service): (usize, &Service)| PodAddresses {
        pod: service.name.clone(),
        service: service.name.clone(),
        ip: network::service_ip(index),
        app_port: service.port,
        outbound_port: OUTBOUND_PORT,
        inbound_port: INBOUND_PORT,
        calls: BTreeMap::new(),
    };
    Topology {
        pods: deployment.services.iter().enumerate().map(pod).collect(),
        load_ip: network::LOAD_IP,
        capture: Capture::Transparent(bypass),
    }
}

/// Of a bare deployment only the services' own ports mean something.
fn explicit(deployment: &Deployment, mut free: impl Iterator<Item = u16>) -> Topology {
    let meshed = deployment.data_plane != DataPlane::Bare;
    let mut next = || free.next().expect("as many ports are given as ports_needed says");
    let mut pod = |service: &Service| PodAddresses {
        pod: service.name.clone(),
        service: service.name.clone(),
        ip: Ipv4Addr::LOCALHOST,
        app_port: service.port,
        outbound_port: OUTBOUND_PORT,
        inbound_port: if meshed { next() } else { service.port },
        calls: service
            .calls
            .iter()
            .filter(|_| meshed)
            .map(|callee| (callee.clone(), SocketAddrV4::new(Ipv4Addr::LOCALHOST, next())))
            .collect(),
    };
    Topology {
        pods: deployment.services.iter().map(&mut pod).collect(),
        load_ip: Ipv4Addr::LOCALHOST,
        capture: Capture::Explicit,
    }
}

/// Where those outside of the mesh connect to reach `service`.
///
/// # Errors
/// When there is no such service.
pub(crate) fn front(topology: &Topology, service: &str) -> Result<SocketAddrV4, LabError> {
    let pod = pod(topology, service)?;
    let port = match topology.capture {
        Capture::Transparent(_) => pod.app_port,
        Capture::Explicit => pod.inbound_port,
    };
    Ok(SocketAddrV4::new(pod.ip, port))
}

/// Where `caller` connects to call `callee`.
///
/// # Errors
/// When there is no such service.
pub(crate) fn call_address(
    topology: &Topology,
    caller: &str,
    callee: &str,
) -> Result<SocketAddrV4, LabError> {
    match pod(topology, caller)?.calls.get(callee) {
        Some(listener) => Ok(*listener),
        None => {
            let callee = pod(topology, callee)?;
            Ok(SocketAddrV4::new(callee.ip, callee.app_port))
        }
    }
}

fn pod<'a>(topology: &'a Topology, service: &str) -> Result<&'a PodAddresses, LabError> {
    let found = topology.pods.iter().find(|pod| pod.service == service);
    found.ok_or_else(|| LabError::UnknownService(service.to_owned()))
}

/// The configuration file of the built-in service.
#[derive(Debug, Serialize)]
struct ServiceConfig<'a> {
    name: &'a str,
    listen: SocketAddrV4,
    calls: Vec<CallConfig>,
    work_us: u64,
    reply_bytes: usize,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    stall: Option<StallConfig>,
}

#[derive(Debug, Serialize)]
struct CallConfig {
    service: String,
    address: SocketAddrV4,
    host: String,
}

#[derive(Debug, Serialize)]
struct StallConfig {
    every_ms: u64,
    lasting_ms: u64,
}

/// The configuration of a built-in service, JSON.
///
/// # Errors
/// When it calls a service that is not there.
pub(crate) fn service_config(
    topology: &Topology,
    service: &Service,
    behaviour: &BuiltIn,
) -> Result<String, LabError> {
    let call = |callee: &String| -> Result<CallConfig, LabError> {
        Ok(CallConfig {
            service: callee.clone(),
            address: call_address(topology, &service.name, callee)?,
            host: format!("{callee}:{}", pod(topology, callee)?.app_port),
        })
    };
    let config = ServiceConfig {
        name: &service.name,
        listen: SocketAddrV4::new(listen_ip(topology.capture), service.port),
        calls: service.calls.iter().map(call).collect::<Result<_, _>>()?,
        work_us: whole(behaviour.work.as_micros()),
        reply_bytes: behaviour.reply_bytes,
        status: behaviour.status,
        stall: behaviour.stall.map(|stall| StallConfig {
            every_ms: whole(stall.every.as_millis()),
            lasting_ms: whole(stall.lasting.as_millis()),
        }),
    };
    Ok(serde_json::to_string_pretty(&config).expect("plain fields always have a JSON form") + "\n")
}

/// With transparent capture each service has a namespace to itself.
fn listen_ip(capture: Capture) -> Ipv4Addr {
    match capture {
        Capture::Transparent(_) => Ipv4Addr::UNSPECIFIED,
        Capture::Explicit => Ipv4Addr::LOCALHOST,
    }
}

fn whole(duration: u128) -> u64 {
    u64::try_from(duration).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{chain, in_mesh};

    #[test]
    fn pods_have_their_own_addresses_and_keep_the_ports_of_the_study() {
        let topology = plan(&chain(), Isolation::Pods, []);
        let server = &topology.pods[1];
        assert_eq!((server.ip, server.app_port), (Ipv4Addr::new(10, 77, 0, 3), 9999));
        assert_eq!(topology.capture, Capture::Transparent(Bypass::Uid(1337)));
    }

    #[test]
    fn without_namespaces_a_bare_client_calls_the_server_itself() {
        let topology = plan(&chain(), Isolation::Loopback, []);
        assert_eq!(call_address(&topology, "client", "server").unwrap(), local(9999));
        assert_eq!(front(&topology, "client").unwrap(), local(9000));
    }

    #[test]
    fn without_namespaces_callers_and_load_are_given_the_sidecars_ports() {
        let mesh = in_mesh(chain());
        assert_eq!(ports_needed(&mesh), 3);
        let topology = plan(&mesh, Isolation::Loopback, [20_001, 20_002, 20_003]);
        assert_eq!(front(&topology, "client").unwrap(), local(20_001));
        assert_eq!(call_address(&topology, "client", "server").unwrap(), local(20_002));
        assert_eq!(front(&topology, "server").unwrap(), local(20_003));
    }

    #[test]
    fn the_services_configuration_does_not_change_with_transparent_sidecars() {
        let config = |deployment: &Deployment| {
            let topology = plan(deployment, Isolation::Pods, []);
            let service = &deployment.services[0];
            service_config(&topology, service, &crate::fixture::built_in(service)).unwrap()
        };
        assert_eq!(config(&chain()), config(&in_mesh(chain())));
    }

    #[test]
    fn a_service_is_told_where_to_listen_and_whom_to_call() {
        let deployment = chain();
        let topology = plan(&deployment, Isolation::Pods, []);
        let client = &deployment.services[0];
        let behaviour = crate::fixture::built_in(client);
        insta::assert_snapshot!(service_config(&topology, client, &behaviour).unwrap());
    }

    #[test]
    fn a_call_to_a_service_that_is_not_there_is_an_error() {
        let topology = plan(&chain(), Isolation::Pods, []);
        let error = call_address(&topology, "client", "nobody").unwrap_err();
        assert!(matches!(error, LabError::UnknownService(name) if name == "nobody"));
    }

    fn local(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
    }
}
