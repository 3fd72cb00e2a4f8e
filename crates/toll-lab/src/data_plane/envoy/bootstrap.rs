//! Turns one service of a deployment into the configuration of its sidecar.
//!
//! With transparent capture this is what Istio sends to its sidecars: a listener that takes all outbound
//! connections and hands each to the listener of its port, and one that takes all inbound connections.
//! With explicit capture the same parts listen on addresses that callers are given.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::listener::{self, Accepts, Direction};
use super::tls::{self, MESH_ALPN};
use crate::data_plane::identity::IdentityFiles;
use crate::data_plane::path_proof::SIDECAR_SOURCE;
use crate::data_plane::{Bypass, Capture, DataPlaneError, PodAddresses, Topology};
use crate::deployment::{Deployment, Mtls, Service};

/// Name of the counters for requests that come in over mTLS.
pub(super) const INBOUND_MTLS: &str = "inbound_mtls";

/// Name of the counters for requests that come in as plaintext.
pub(super) const INBOUND_PLAINTEXT: &str = "inbound_plaintext";

/// Traffic to addresses that the mesh does not know goes on as it is.
const PASSTHROUGH: &str = "PassthroughCluster";

const ANY_ADDRESS: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// Name of the cluster for the calls to a service, as Istio writes it.
pub(super) fn call_cluster(port: u16, callee: &str) -> String {
    format!("outbound|{port}||{callee}")
}

/// The service that such a cluster is for; none for other clusters.
pub(super) fn callee_of(cluster: &str) -> Option<&str> {
    cluster.strip_prefix("outbound|")?.split_once("||").map(|(_, callee)| callee)
}

/// The sidecar of one service.
#[derive(Debug)]
pub(super) struct Sidecar<'a> {
    pod: &'a PodAddresses,
    calls: Vec<Call<'a>>,
    capture: Capture,
    /// Whether plaintext from outside of the mesh is answered.
    takes_plaintext: bool,
    identities: IdentityFiles,
}

/// One service that the sidecar's application calls.
#[derive(Debug)]
struct Call<'a> {
    callee: &'a PodAddresses,
    cluster: String,
}

impl<'a> Sidecar<'a> {
    /// Looks up all addresses that the sidecar needs.
    ///
    /// # Errors
    /// When the topology lacks a pod.
    pub(super) fn new(
        deployment: &Deployment,
        mtls: Mtls,
        topology: &'a Topology,
        service: &Service,
        dir: &Path,
    ) -> Result<Self, DataPlaneError> {
        let mut calls: Vec<Call<'a>> = Vec::new();
        for name in &service.calls {
            if calls.iter().all(|call| call.callee.service != *name) {
                let callee = pod_of(topology, name)?;
                calls.push(Call { callee, cluster: call_cluster(callee.app_port, name) });
            }
        }
        Ok(Self {
            pod: pod_of(topology, &service.name)?,
            calls,
            capture: topology.capture,
            // The load stands outside of the mesh, so the entry takes plaintext in both modes.
            takes_plaintext: mtls == Mtls::Permissive || service.name == deployment.entry,
            identities: IdentityFiles::new(dir),
        })
    }

    /// The whole configuration.
    ///
    /// # Errors
    /// When the topology lacks a listener for a call.
    pub(super) fn bootstrap(&self, admin_socket: &Path) -> Result<Value, DataPlaneError> {
        let mut listeners = self.outbound_listeners()?;
        listeners.push(self.inbound_listener());
        Ok(json!({
            "admin": admin(admin_socket),
            "static_resources": {"listeners": listeners, "clusters": self.clusters()},
        }))
    }

    fn outbound_listeners(&self) -> Result<Vec<Value>, DataPlaneError> {
        match self.capture {
            Capture::Transparent(_) => Ok(self.transparent_outbound()),
            Capture::Explicit => {
                self.calls.iter().map(|call| self.explicit_outbound(call)).collect()
            }
        }
    }

    /// The listener that takes all connections, then one for each port that is called.
    fn transparent_outbound(&self) -> Vec<Value> {
        let address = SocketAddrV4::new(ANY_ADDRESS, self.pod.outbound_port);
        let fallback = listener::open_chain(listener::tcp_proxy(PASSTHROUGH, PASSTHROUGH));
        let mut all =
            listener::listener("virtualOutbound", Direction::Outbound, address, vec![fallback]);
        all["use_original_dst"] = json!(true);
        [all].into_iter().chain(self.called_ports().map(|port| self.port_listener(port))).collect()
    }

    fn called_ports(&self) -> impl Iterator<Item = u16> {
        let mut ports: Vec<u16> = self.calls.iter().map(|call| call.callee.app_port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.into_iter()
    }

    /// Binds nothing: the listener of all connections hands over those for `port`.
    fn port_listener(&self, port: u16) -> Value {
        let name = format!("{ANY_ADDRESS}_{port}");
        let here = self.calls.iter().filter(|call| call.callee.app_port == port);
        let mut hosts: Vec<Value> = here.map(virtual_host).collect();
        hosts.push(listener::virtual_host(
            "allow_any",
            &["*".to_owned()],
            listener::route(PASSTHROUGH),
        ));
        let manager = listener::http_connection_manager(
            Direction::Outbound,
            &format!("outbound_{name}"),
            hosts,
        );
        let address = SocketAddrV4::new(ANY_ADDRESS, port);
        let chain = listener::open_chain(manager);
        let mut listener = listener::listener(&name, Direction::Outbound, address, vec![chain]);
        listener["bind_to_port"] = json!(false);
        listener
    }

    fn explicit_outbound(&self, call: &Call<'_>) -> Result<Value, DataPlaneError> {
        let callee = &call.callee.service;
        let address = self.pod.calls.get(callee).ok_or_else(|| self.no_listener_for(callee))?;
        let name = format!("outbound_{callee}");
        let route = listener::route_with_retries(&call.cluster);
        let host = listener::virtual_host(callee, &["*".to_owned()], route);
        let manager = listener::http_connection_manager(Direction::Outbound, &name, vec![host]);
        let chain = listener::open_chain(manager);
        Ok(listener::listener(&name, Direction::Outbound, *address, vec![chain]))
    }

    fn no_listener_for(&self, callee: &str) -> DataPlaneError {
        DataPlaneError::CallWithoutListener {
            caller: self.pod.service.clone(),
            callee: callee.to_owned(),
        }
    }

    fn inbound_listener(&self) -> Value {
        let mut chains = vec![self.mtls_chain()];
        if self.takes_plaintext {
            chains.push(self.plaintext_chain());
        }
        let (ip, filters) = match self.capture {
            Capture::Transparent(_) => {
                (ANY_ADDRESS, vec![listener::original_destination(), listener::tls_inspector()])
            }
            Capture::Explicit => (self.pod.ip, vec![listener::tls_inspector()]),
        };
        let address = SocketAddrV4::new(ip, self.pod.inbound_port);
        let mut listener =
            listener::listener("virtualInbound", Direction::Inbound, address, chains);
        listener["listener_filters"] = json!(filters);
        listener["listener_filters_timeout"] = json!("5s");
        listener
    }

    fn mtls_chain(&self) -> Value {
        let mut chain = listener::matched_chain(
            INBOUND_MTLS,
            Accepts::Tls(&MESH_ALPN),
            self.original_port(),
            self.inbound_manager(INBOUND_MTLS),
        );
        chain["transport_socket"] = tls::downstream(&self.identities, &self.pod.service);
        chain
    }

    fn plaintext_chain(&self) -> Value {
        listener::matched_chain(
            INBOUND_PLAINTEXT,
            Accepts::Plaintext,
            self.original_port(),
            self.inbound_manager(INBOUND_PLAINTEXT),
        )
    }

    /// The port that a redirected connection was meant for; unknown when nothing was redirected.
    fn original_port(&self) -> Option<u16> {
        match self.capture {
            Capture::Transparent(_) => Some(self.pod.app_port),
            Capture::Explicit => None,
        }
    }

    fn inbound_manager(&self, stat_prefix: &str) -> Value {
        let route = listener::route(&self.application_cluster_name());
        let host = listener::virtual_host(stat_prefix, &["*".to_owned()], route);
        listener::http_connection_manager(Direction::Inbound, stat_prefix, vec![host])
    }

    fn clusters(&self) -> Vec<Value> {
        let calls = self.calls.iter().map(|call| self.call_cluster(call));
        let mut clusters: Vec<Cluster> = calls.chain([self.application_cluster()]).collect();
        if let Capture::Transparent(_) = self.capture {
            clusters.push(Cluster::to_original_destination(PASSTHROUGH));
        }
        clusters.into_iter().map(|cluster| cluster.marked(self.mark()).build()).collect()
    }

    fn call_cluster(&self, call: &Call<'_>) -> Cluster {
        let port = match self.capture {
            Capture::Transparent(_) => call.callee.app_port,
            Capture::Explicit => call.callee.inbound_port,
        };
        let address = SocketAddrV4::new(call.callee.ip, port);
        let transport = tls::upstream(
            &self.identities,
            &self.pod.service,
            &call.callee.service,
            call.callee.app_port,
        );
        Cluster::to(&call.cluster, address).over(transport)
    }

    fn application_cluster(&self) -> Cluster {
        let name = self.application_cluster_name();
        let cluster = match self.capture {
            Capture::Transparent(_) => Cluster::to_original_destination(&name),
            Capture::Explicit => {
                Cluster::to(&name, SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.pod.app_port))
            }
        };
        cluster.from(SIDECAR_SOURCE)
    }

    fn application_cluster_name(&self) -> String {
        format!("inbound|{}||", self.pod.app_port)
    }

    fn mark(&self) -> Option<u32> {
        match self.capture {
            Capture::Transparent(Bypass::Mark(mark)) => Some(mark),
            Capture::Transparent(Bypass::Uid(_)) | Capture::Explicit => None,
        }
    }
}

/// Applications may call a service by its name or by its address.
fn virtual_host(call: &Call<'_>) -> Value {
    let (name, ip, port) = (&call.callee.service, call.callee.ip, call.callee.app_port);
    let domains = [name.clone(), format!("{name}:{port}"), ip.to_string(), format!("{ip}:{port}")];
    listener::virtual_host(name, &domains, listener::route_with_retries(&call.cluster))
}

fn pod_of<'a>(topology: &'a Topology, service: &str) -> Result<&'a PodAddresses, DataPlaneError> {
    topology
        .pods
        .iter()
        .find(|pod| pod.service == service)
        .ok_or_else(|| DataPlaneError::PodWithoutAddresses { service: service.to_owned() })
}

/// On a socket that only its owner and root may use: it takes no port, and no redirect meets it.
fn admin(socket: &Path) -> Value {
    json!({"address": {"pipe": {"path": path_text(socket), "mode": 0o600}}})
}

/// A path as Envoy's configuration holds it.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
