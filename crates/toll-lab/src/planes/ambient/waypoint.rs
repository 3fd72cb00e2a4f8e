//! Turns the called services of a deployment into the configuration of their waypoint, as Istio configures it.
//!
//! It takes streams for any captured service, reads the HTTP in them, picks a pod for each request, and sends it on
//! over HBONE in its own name. Bytes of databases it passes on unread, but picks a pod as well.

use std::net::SocketAddrV4;
use std::path::Path;

use serde_json::Value;

use crate::certificates::mesh::IdentityFiles;
use crate::deployment::Deployment;
use crate::envoy::bootstrap::{ANY_ADDRESS, INBOUND_MTLS, bootstrap};
use crate::envoy::call::Call;
use crate::envoy::cluster::Cluster;
use crate::envoy::hbone::{self, Origination, Taker};
use crate::envoy::listener::{self, Direction};
use crate::envoy::tls::Protocol;
use crate::error::DataPlaneError;
use crate::topology::{HBONE_PORT, Topology};

/// The Envoy of the waypoint's pod.
#[derive(Debug)]
pub(super) struct Waypoint<'a> {
    /// Its pod, and its identity.
    name: &'a str,
    calls: Vec<Call<'a>>,
    /// All that call any of these.
    callers: Vec<&'a str>,
    identities: IdentityFiles,
}

impl<'a> Waypoint<'a> {
    /// Looks up all that is called.
    ///
    /// # Errors
    /// When the topology lacks a pod that is called.
    pub(super) fn new(
        deployment: &'a Deployment,
        topology: &'a Topology,
        name: &'a str,
        dir: &Path,
    ) -> Result<Self, DataPlaneError> {
        let captured = deployment.services.iter().filter(|s| s.program.is_captured());
        let mut calls = Vec::new();
        let mut callers: Vec<&str> = Vec::new();
        for service in captured {
            let of_service = hbone::applications_that_call(deployment, &service.name);
            if let Some(first) = of_service.first() {
                calls.push(Call::new(deployment, topology, first, &service.name)?);
            }
            callers.extend(of_service);
        }
        callers.sort_unstable();
        callers.dedup();
        Ok(Self { name, calls, callers, identities: IdentityFiles::new(dir) })
    }

    /// The whole configuration.
    pub(super) fn bootstrap(&self, admin_socket: &Path) -> Value {
        let mut listeners = vec![];
        let mut clusters = vec![];
        if !self.callers.is_empty() {
            listeners.push(self.hbone_listener());
        }
        for call in &self.calls {
            let taker = Taker::Pods(call.callee);
            let onward = Origination::new(&self.identities, self.name, call, taker);
            listeners.extend([reading_listener(call), onward.listener]);
            clusters.push(Cluster::to_internal_listener(&entrance(call), &reader(call)).build());
            clusters.extend(onward.clusters.map(Cluster::build));
        }
        bootstrap(admin_socket, listeners, clusters)
    }

    /// Takes streams, and tells services apart by their authority.
    fn hbone_listener(&self) -> Value {
        let host = |call: &Call<'_>| {
            let authorities: Vec<String> =
                call.addresses().iter().map(ToString::to_string).collect();
            hbone::stream_host(call.callee, &authorities, &entrance(call))
        };
        let hosts = self.calls.iter().map(host).collect();
        let filters = [hbone::stream_manager(self.name, hosts)];
        let chain = hbone::terminating_chain(&self.identities, self.name, &self.callers, &filters);
        let name = hbone::inbound_name(self.name);
        let at = SocketAddrV4::new(ANY_ADDRESS, HBONE_PORT);
        let mut listener = listener::listener(&name, Direction::Inbound, at, vec![chain]);
        listener["stat_prefix"] = serde_json::json!(name);
        listener
    }
}

/// Name of the cluster that hands the streams for a service to what reads them.
fn entrance(call: &Call<'_>) -> String {
    format!("streams|{}", call.callee)
}

/// Name of the internal listener that reads what is in the streams for a service.
fn reader(call: &Call<'_>) -> String {
    format!("inbound|{}", call.callee)
}

fn reading_listener(call: &Call<'_>) -> Value {
    let cluster = call.cluster_name();
    let filter = match call.protocol {
        Protocol::Tcp => listener::tcp_proxy(INBOUND_MTLS, &cluster),
        Protocol::Http => {
            let route = listener::route_with_retries(&cluster);
            let host = listener::virtual_host(call.callee, &["*".to_owned()], route);
            listener::http_connection_manager(Direction::Inbound, INBOUND_MTLS, vec![host])
        }
    };
    listener::internal_listener(&reader(call), vec![listener::open_chain(filter)])
}
