//! Turns a gateway into the configuration of its Envoy, as Istio configures its ingress gateway.
//!
//! It stands in all variants: what differs between a bare one and one in a mesh is the transport socket to
//! what it calls and, with explicit capture, the port there. In an ambient mesh it speaks HBONE of its own, as
//! Istio's gateways do: nobody captures what it sends, but a ztunnel, whose certificates it has none of. Where its
//! clients speak TLS, it has a second listener that only the lab's probes come to, from inside of its pod and in
//! plaintext: they are not counted as arrivals.

use std::net::SocketAddrV4;
use std::path::Path;

use serde_json::Value;

use crate::certificates::edge::EdgeFiles;
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::{Ambient, DataPlane, NodeProxy};
use crate::envoy::bootstrap::{INBOUND_EDGE, INBOUND_PLAINTEXT, PROBE, bootstrap};
use crate::envoy::call::Call;
use crate::envoy::cluster::Cluster;
use crate::envoy::hbone::{Origination, Taker};
use crate::envoy::listener::{self, Direction};
use crate::envoy::tls::{self, Protocol};
use crate::error::DataPlaneError;
use crate::topology::{Capture, PodAddresses, Site};

/// The Envoy of one gateway pod.
#[derive(Debug)]
pub(super) struct Gateway<'a> {
    pod: &'a PodAddresses,
    call: Call<'a>,
    capture: Capture,
    upstream: Upstream<'a>,
    /// None where the load speaks plaintext.
    edge: Option<EdgeFiles>,
}

/// How it speaks to what it calls.
#[derive(Debug)]
enum Upstream<'a> {
    Plaintext,
    Mtls(IdentityFiles),
    Hbone(IdentityFiles, Taker<'a>),
}

impl<'a> Gateway<'a> {
    /// Looks up where the gateway sends to.
    ///
    /// # Errors
    /// When the topology lacks that service, or there is not exactly one that speaks HTTP.
    pub(super) fn new(at: Site<'a>) -> Result<Self, DataPlaneError> {
        let unroutable = || DataPlaneError::GatewayRoute { gateway: at.service.name.clone() };
        let [callee] = at.service.calls.as_slice() else { return Err(unroutable()) };
        let call = Call::new(at.deployment, at.topology, &at.service.name, callee)?;
        if call.protocol != Protocol::Http {
            return Err(unroutable());
        }
        let identities = IdentityFiles::new(at.dir);
        let upstream = match &at.deployment.data_plane {
            DataPlane::Bare | DataPlane::Agent(_) | DataPlane::Mesher { .. } => Upstream::Plaintext,
            // Its node's ztunnel carries what it sends.
            DataPlane::Ambient(Ambient {
                proxy: NodeProxy::Ztunnel { .. } | NodeProxy::Installed,
                ..
            }) => Upstream::Plaintext,
            DataPlane::Sidecar { .. } => Upstream::Mtls(identities),
            DataPlane::Ambient(_) => {
                let taker = Taker::of_call(at.topology, callee);
                Upstream::Hbone(identities, taker)
            }
        };
        let edge = at.service.tls.then(|| EdgeFiles::new(at.dir));
        Ok(Self { pod: at.pod, call, capture: at.topology.capture, upstream, edge })
    }

    /// The whole configuration.
    pub(super) fn bootstrap(&self, admin_socket: &Path) -> Value {
        let (service, mut listeners) = (&self.pod.service, self.listeners());
        let clusters = match &self.upstream {
            Upstream::Plaintext => vec![self.call.plaintext_cluster()],
            Upstream::Mtls(files) => vec![self.call.mesh_cluster(service, self.capture, files)],
            Upstream::Hbone(files, taker) => {
                let onward = Origination::new(files, service, &self.call, *taker);
                listeners.push(onward.listener);
                onward.clusters.into()
            }
        };
        let clusters = clusters.into_iter().map(Cluster::build).collect();
        bootstrap(admin_socket, listeners, clusters)
    }

    fn listeners(&self) -> Vec<Value> {
        let ip = self.capture.proxy_ip(self.pod.ip);
        let address = SocketAddrV4::new(ip, self.pod.app_port);
        let Some(edge) = &self.edge else {
            return vec![listen_at(address, self.chain(INBOUND_PLAINTEXT))];
        };
        let mut chain = self.chain(INBOUND_EDGE);
        chain["transport_socket"] = tls::edge(edge, &self.pod.service);
        let probes = self.pod.probe_port.map(|port| {
            listen_at(SocketAddrV4::new(self.capture.probe_ip(), port), self.chain(PROBE))
        });
        [Some(listen_at(address, chain)), probes].into_iter().flatten().collect()
    }

    /// Takes every connection and hands every request on.
    fn chain(&self, stat_prefix: &str) -> Value {
        let route = listener::route_with_retries(&self.call.cluster_name());
        let host = listener::virtual_host(self.call.callee, &["*".to_owned()], route);
        let manager = listener::http_connection_manager(Direction::Edge, stat_prefix, vec![host]);
        listener::open_chain(manager)
    }
}

fn listen_at(address: SocketAddrV4, chain: Value) -> Value {
    let name = address.to_string().replace(':', "_");
    listener::listener(&name, Direction::Edge, address, vec![chain])
}
