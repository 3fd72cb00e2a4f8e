//! Turns the captured pods of one node into the configuration of its proxy, an Envoy in ztunnel's place.
//!
//! Its sockets are inside of the pods' networks, so that what it sends has the pod's address: one listener has a
//! socket in each pod of a service, and the service's identity (docs/decisions/0010). It reads no HTTP.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::links::network_link;
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::{Deployment, Mtls, Service};
use crate::envoy::bootstrap::{PASSTHROUGH, bootstrap};
use crate::envoy::call::Call;
use crate::envoy::cluster::Cluster;
use crate::envoy::hbone::{self, Taker};
use crate::envoy::listener::{self, Direction};
use crate::error::DataPlaneError;
use crate::topology::{
    HBONE_PORT, INBOUND_PORT, OUTBOUND_PORT, PROXY_MARK, PodAddresses, Topology,
};

/// Streams go on to the pod that they are for.
const TO_PODS: &str = "inbound";

/// The proxy of one node.
#[derive(Debug)]
pub(super) struct Node<'a> {
    services: Vec<Captured<'a>>,
    identities: IdentityFiles,
}

/// The pods of one service on the node.
#[derive(Debug)]
struct Captured<'a> {
    service: &'a str,
    pods: Vec<&'a PodAddresses>,
    /// Where the proxy finds their networks.
    networks: Vec<PathBuf>,
    calls: Vec<(Call<'a>, Taker<'a>)>,
    /// The identities that may open streams to it.
    callers: Vec<&'a str>,
    /// Whether plaintext from outside of the mesh is answered.
    takes_plaintext: bool,
}

impl<'a> Node<'a> {
    /// Looks up all that the proxy of the node at this index needs.
    ///
    /// # Errors
    /// When the topology lacks a pod that is called, or a gateway is called.
    pub(super) fn new(
        deployment: &'a Deployment,
        topology: &'a Topology,
        node: usize,
        mtls: Mtls,
        dir: &Path,
    ) -> Result<Self, DataPlaneError> {
        let captured = |service: &'a Service| {
            let pods = pods_on(topology, service, node);
            Ok(Captured {
                service: &service.name,
                networks: pods.iter().map(|pod| network_link(dir, &pod.pod)).collect(),
                pods,
                calls: captured_calls(deployment, topology, service)?,
                callers: hbone::callers_of(deployment, topology, &service.name),
                // The load stands outside of the mesh, so the entry takes plaintext in both modes.
                takes_plaintext: mtls == Mtls::Permissive || service.name == deployment.entry,
            })
        };
        let here = deployment.services.iter().filter(|service| {
            service.program.is_captured() && !pods_on(topology, service, node).is_empty()
        });
        let services = here.map(captured).collect::<Result<_, _>>()?;
        Ok(Self { services, identities: IdentityFiles::new(dir) })
    }

    /// The pods that it serves.
    pub(super) fn pods(&self) -> Vec<String> {
        let pods = self.services.iter().flat_map(|captured| &captured.pods);
        pods.map(|pod| pod.pod.clone()).collect()
    }

    /// The whole configuration.
    pub(super) fn bootstrap(&self, admin_socket: &Path) -> Value {
        let listeners = self.services.iter().flat_map(|captured| self.listeners(captured));
        bootstrap(admin_socket, listeners.collect(), self.clusters())
    }

    fn listeners(&self, captured: &Captured<'_>) -> Vec<Value> {
        let mut listeners = vec![outbound_listener(captured)];
        // A list of nobody would be no list: Envoy would then let everybody in.
        if !captured.callers.is_empty() {
            listeners.push(self.hbone_listener(captured));
        }
        if captured.takes_plaintext {
            listeners.push(plaintext_listener(captured));
        }
        listeners
    }

    /// Takes streams, but only for pods of the service.
    fn hbone_listener(&self, captured: &Captured<'_>) -> Value {
        let service = captured.service;
        let authority = |pod: &&PodAddresses| format!("{}:{}", pod.ip, pod.app_port);
        let authorities: Vec<String> = captured.pods.iter().map(authority).collect();
        let host = hbone::stream_host(service, &authorities, TO_PODS);
        let filters = [listener::remember_network(), hbone::stream_manager(service, vec![host])];
        let chain =
            hbone::terminating_chain(&self.identities, service, &captured.callers, &filters);
        listener::listener_in_networks(
            &hbone::inbound_name(service),
            Direction::Inbound,
            (HBONE_PORT, &captured.networks),
            vec![chain],
        )
    }

    fn clusters(&self) -> Vec<Value> {
        let calls = self.services.iter().flat_map(|captured| {
            // Calls of a service over one waypoint share its connections.
            let mut takers: Vec<Taker<'_>> = captured.calls.iter().map(|(_, t)| *t).collect();
            takers.dedup();
            takers
                .into_iter()
                .map(|taker| hbone::cluster(&self.identities, captured.service, taker))
        });
        let own = [
            Cluster::to_original_destination(TO_PODS).by_authority(),
            Cluster::to_original_destination(PASSTHROUGH),
        ];
        let clusters = calls.chain(own);
        clusters.map(|c| c.in_remembered_network().marked(Some(PROXY_MARK)).build()).collect()
    }
}

/// Takes all that the pods send: calls leave as streams, everything else as it is.
fn outbound_listener(captured: &Captured<'_>) -> Value {
    let call = |(call, taker): &(Call<'_>, Taker<'_>)| {
        let tunnel = hbone::into_tunnel(&call.cluster_name(), captured.service, *taker);
        listener::destined_chain(&call.ips(), call.port, &[listener::remember_network(), tunnel])
    };
    let mut all = listener::listener_in_networks(
        &format!("outbound|{}", captured.service),
        Direction::Outbound,
        (OUTBOUND_PORT, &captured.networks),
        captured.calls.iter().map(call).collect(),
    );
    all["listener_filters"] = serde_json::json!([listener::original_destination()]);
    all["default_filter_chain"] = passthrough_chain(PASSTHROUGH);
    all
}

/// Takes what comes in past HBONE.
fn plaintext_listener(captured: &Captured<'_>) -> Value {
    let name = hbone::plaintext_name(captured.service);
    let mut all = listener::listener_in_networks(
        &name,
        Direction::Inbound,
        (INBOUND_PORT, &captured.networks),
        vec![passthrough_chain(&name)],
    );
    all["listener_filters"] = serde_json::json!([listener::original_destination()]);
    all
}

fn passthrough_chain(stat_prefix: &str) -> Value {
    let filters = [listener::remember_network(), listener::tcp_proxy(stat_prefix, PASSTHROUGH)];
    serde_json::json!({"filters": filters})
}

/// What `service` calls and an ambient data plane captures, each once.
fn captured_calls<'a>(
    deployment: &'a Deployment,
    topology: &'a Topology,
    service: &Service,
) -> Result<Vec<(Call<'a>, Taker<'a>)>, DataPlaneError> {
    let mut calls: Vec<(Call<'a>, Taker<'a>)> = Vec::new();
    for name in &service.calls {
        if calls.iter().any(|(call, _)| call.callee == *name) {
            continue;
        }
        let call = Call::new(deployment, topology, &service.name, name)?;
        if deployment.service(name).is_some_and(|callee| callee.program.is_captured()) {
            let taker = Taker::of_call(topology, call.callee);
            calls.push((call, taker));
        }
    }
    Ok(calls)
}

fn pods_on<'a>(topology: &'a Topology, service: &Service, node: usize) -> Vec<&'a PodAddresses> {
    let of_service = |pod: &&PodAddresses| pod.service == service.name && pod.node == node;
    topology.pods.iter().filter(of_service).collect()
}
