//! Turns one pod of a deployment into the configuration of its sidecar.
//!
//! With transparent capture this is what Istio sends to its sidecars: a listener that takes all outbound
//! connections and hands each to the listener of its port, and one that takes all inbound connections.
//! With explicit capture the same parts listen on addresses that callers are given. What goes to and from a
//! database is TCP to its sidecars, which pass bytes on without a look at them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::{Value, json};

use super::Place;
use super::bootstrap::{ANY_ADDRESS, INBOUND_MTLS, INBOUND_PLAINTEXT, bootstrap};
use super::call::Call;
use super::cluster::Cluster;
use super::listener::{self, Accepts, Direction};
use super::tls::{self, Protocol};
use crate::data_plane::identity::IdentityFiles;
use crate::data_plane::path_proof::SIDECAR_SOURCE;
use crate::data_plane::{Bypass, Capture, DataPlaneError, PodAddresses};
use crate::deployment::Mtls;

/// Traffic to addresses that the mesh does not know goes on as it is.
const PASSTHROUGH: &str = "PassthroughCluster";

/// The sidecar of one pod.
#[derive(Debug)]
pub(super) struct Sidecar<'a> {
    pod: &'a PodAddresses,
    /// What the pod's program speaks.
    protocol: Protocol,
    calls: Vec<Call<'a>>,
    capture: Capture,
    /// Whether plaintext from outside of the mesh is answered.
    takes_plaintext: bool,
    identities: IdentityFiles,
}

impl<'a> Sidecar<'a> {
    /// Looks up all addresses that the sidecar needs.
    ///
    /// # Errors
    /// When the topology lacks a pod, or a gateway is called.
    pub(super) fn new(at: Place<'a>, mtls: Mtls) -> Result<Self, DataPlaneError> {
        let mut calls: Vec<Call<'a>> = Vec::new();
        for name in &at.service.calls {
            if calls.iter().all(|call| call.callee != *name) {
                calls.push(Call::new(at.deployment, at.topology, &at.service.name, name)?);
            }
        }
        Ok(Self {
            pod: at.pod,
            protocol: Protocol::of(at.service),
            calls,
            capture: at.topology.capture,
            // The load stands outside of the mesh, so the entry takes plaintext in both modes.
            takes_plaintext: mtls == Mtls::Permissive || at.service.name == at.deployment.entry,
            identities: IdentityFiles::new(at.dir),
        })
    }

    /// The whole configuration.
    ///
    /// # Errors
    /// When the topology lacks a listener for a call, or calls cannot share one.
    pub(super) fn bootstrap(&self, admin_socket: &Path) -> Result<Value, DataPlaneError> {
        let mut listeners = self.outbound_listeners()?;
        listeners.push(self.inbound_listener());
        Ok(bootstrap(admin_socket, listeners, self.clusters()))
    }

    fn outbound_listeners(&self) -> Result<Vec<Value>, DataPlaneError> {
        match self.capture {
            Capture::Transparent(_) => self.transparent_outbound(),
            Capture::Explicit => {
                self.calls.iter().map(|call| self.explicit_outbound(call)).collect()
            }
        }
    }

    /// The listener that takes all connections, then one for each port that is called.
    fn transparent_outbound(&self) -> Result<Vec<Value>, DataPlaneError> {
        let address = SocketAddrV4::new(ANY_ADDRESS, self.pod.outbound_port);
        let fallback = listener::open_chain(listener::tcp_proxy(PASSTHROUGH, PASSTHROUGH));
        let mut all =
            listener::listener("virtualOutbound", Direction::Outbound, address, vec![fallback]);
        all["use_original_dst"] = json!(true);
        [Ok(all)]
            .into_iter()
            .chain(self.called_ports().map(|port| self.port_listener(port)))
            .collect()
    }

    fn called_ports(&self) -> impl Iterator<Item = u16> {
        let mut ports: Vec<u16> = self.calls.iter().map(|call| call.port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.into_iter()
    }

    /// Binds nothing: the listener of all connections hands over those for `port`.
    fn port_listener(&self, port: u16) -> Result<Value, DataPlaneError> {
        let name = format!("{ANY_ADDRESS}_{port}");
        let here: Vec<&Call<'_>> = self.calls.iter().filter(|call| call.port == port).collect();
        let filter = match here.as_slice() {
            [call] if call.protocol == Protocol::Tcp => to_database(call),
            calls if calls.iter().all(|call| call.protocol == Protocol::Http) => {
                by_host(&format!("outbound_{name}"), calls)
            }
            calls => return Err(self.cannot_share(port, calls)),
        };
        let address = SocketAddrV4::new(ANY_ADDRESS, port);
        let chain = listener::open_chain(filter);
        let mut listener = listener::listener(&name, Direction::Outbound, address, vec![chain]);
        listener["bind_to_port"] = json!(false);
        Ok(listener)
    }

    fn cannot_share(&self, port: u16, calls: &[&Call<'_>]) -> DataPlaneError {
        let callees: Vec<&str> = calls.iter().map(|call| call.callee).collect();
        DataPlaneError::PortShared {
            caller: self.pod.service.clone(),
            port,
            callees: callees.join("`, `"),
        }
    }

    fn explicit_outbound(&self, call: &Call<'_>) -> Result<Value, DataPlaneError> {
        let address =
            self.pod.calls.get(call.callee).ok_or_else(|| self.no_listener_for(call.callee))?;
        let name = format!("outbound_{}", call.callee);
        let filter = match call.protocol {
            Protocol::Tcp => to_database(call),
            Protocol::Http => {
                let route = listener::route_with_retries(&call.cluster_name());
                let host = listener::virtual_host(call.callee, &["*".to_owned()], route);
                listener::http_connection_manager(Direction::Outbound, &name, vec![host])
            }
        };
        let chain = listener::open_chain(filter);
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
            Accepts::Tls(self.protocol.callers_alpn()),
            self.original_port(),
            self.to_application(INBOUND_MTLS),
        );
        chain["transport_socket"] =
            tls::downstream(&self.identities, &self.pod.service, self.protocol);
        chain
    }

    fn plaintext_chain(&self) -> Value {
        listener::matched_chain(
            INBOUND_PLAINTEXT,
            Accepts::Plaintext,
            self.original_port(),
            self.to_application(INBOUND_PLAINTEXT),
        )
    }

    /// The port that a redirected connection was meant for; unknown when nothing was redirected.
    fn original_port(&self) -> Option<u16> {
        match self.capture {
            Capture::Transparent(_) => Some(self.pod.app_port),
            Capture::Explicit => None,
        }
    }

    fn to_application(&self, stat_prefix: &str) -> Value {
        let cluster = self.application_cluster_name();
        if self.protocol == Protocol::Tcp {
            return listener::tcp_proxy(stat_prefix, &cluster);
        }
        let host =
            listener::virtual_host(stat_prefix, &["*".to_owned()], listener::route(&cluster));
        listener::http_connection_manager(Direction::Inbound, stat_prefix, vec![host])
    }

    fn clusters(&self) -> Vec<Value> {
        let (caller, capture) = (&self.pod.service, self.capture);
        let calls =
            self.calls.iter().map(|call| call.mesh_cluster(caller, capture, &self.identities));
        let mut clusters: Vec<Cluster> = calls.chain([self.application_cluster()]).collect();
        if let Capture::Transparent(_) = self.capture {
            clusters.push(Cluster::to_original_destination(PASSTHROUGH));
        }
        clusters.into_iter().map(|cluster| cluster.marked(self.mark()).build()).collect()
    }

    fn application_cluster(&self) -> Cluster {
        let name = self.application_cluster_name();
        let cluster = match self.capture {
            Capture::Transparent(_) => Cluster::to_original_destination(&name),
            Capture::Explicit => {
                Cluster::to(&name, &[SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.pod.app_port)])
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

/// Hands every connection to the one database of the port: nothing in it tells databases apart.
fn to_database(call: &Call<'_>) -> Value {
    listener::tcp_proxy(&call.cluster_name(), &call.cluster_name())
}

/// Tells the services of a port apart by the `Host` of each request.
fn by_host(stat_prefix: &str, calls: &[&Call<'_>]) -> Value {
    let everything =
        listener::virtual_host("allow_any", &["*".to_owned()], listener::route(PASSTHROUGH));
    let hosts = calls.iter().map(|call| call.virtual_host()).chain([everything]).collect();
    listener::http_connection_manager(Direction::Outbound, stat_prefix, hosts)
}
