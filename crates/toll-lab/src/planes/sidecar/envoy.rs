//! Turns one pod of a deployment into the configuration of its sidecar.
//!
//! With transparent capture this is what Istio sends to its sidecars: a listener that takes all outbound
//! connections and hands each to the listener of its port, and one that takes all inbound connections.
//! With explicit capture the same parts listen on addresses that callers are given. What goes to and from a
//! database is TCP to its sidecars, which pass bytes on without a look at them. A service outside of the mesh is known
//! by the name in its clients' TLS, which is passed on to it or to the gateway that traffic leaves through.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::{Value, json};

use crate::certificates::external::externals_of;
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::{Egress, Mtls};
use crate::envoy::bootstrap::{
    ANY_ADDRESS, INBOUND_MTLS, INBOUND_PLAINTEXT, PASSTHROUGH, bootstrap,
};
use crate::envoy::call::Call;
use crate::envoy::cluster::Cluster;
use crate::envoy::external::{ExternalCall, by_name};
use crate::envoy::istio::SIDECAR_SOURCE;
use crate::envoy::listener::{self, Accepts, Direction};
use crate::envoy::tls::{self, Protocol};
use crate::error::DataPlaneError;
use crate::topology::{Bypass, Capture, EgressAddresses, PodAddresses, Site};

/// The sidecar of one pod.
#[derive(Debug)]
pub(super) struct Sidecar<'a> {
    pod: &'a PodAddresses,
    /// What the pod's program speaks.
    protocol: Protocol,
    calls: Vec<Call<'a>>,
    /// What it calls outside of the mesh; none that its program reaches by itself.
    externals: Vec<ExternalCall<'a>>,
    way_out: WayOut<'a>,
    capture: Capture,
    /// Whether plaintext from outside of the mesh is answered.
    takes_plaintext: bool,
    identities: IdentityFiles,
}

/// Where it sends what is for services outside of the mesh.
#[derive(Debug, Clone, Copy)]
enum WayOut<'a> {
    /// To these themselves.
    Straight,
    /// To the gateway for all of them.
    Gateway { pod: &'a EgressAddresses, mtls: bool },
}

impl<'a> WayOut<'a> {
    fn new(at: Site<'a>) -> Result<Self, DataPlaneError> {
        let Some(gateway) = at.deployment.data_plane.egress_gateway() else {
            return Ok(Self::Straight);
        };
        Ok(Self::Gateway { pod: at.topology.egress_pod()?, mtls: gateway.mtls })
    }
}

impl<'a> Sidecar<'a> {
    /// Looks up all addresses that the sidecar needs.
    ///
    /// # Errors
    /// When the topology lacks a pod, or a gateway is called.
    pub(super) fn new(at: Site<'a>, mtls: Mtls) -> Result<Self, DataPlaneError> {
        let outside: Vec<_> = externals_of(at.deployment, at.service).collect();
        let mut calls: Vec<Call<'a>> = Vec::new();
        for name in &at.service.calls {
            let is_outside = outside.iter().any(|(service, _)| service.name == *name);
            if !is_outside && calls.iter().all(|call| call.callee != *name) {
                calls.push(Call::new(at.deployment, at.topology, &at.service.name, name)?);
            }
        }
        let passed = at.deployment.data_plane.egress() != Some(&Egress::Bypass);
        let outside = outside.into_iter().filter(|_| passed);
        let externals = outside.map(|(s, external)| ExternalCall::new(at.topology, s, external));
        Ok(Self {
            externals: externals.collect::<Result<_, _>>()?,
            way_out: WayOut::new(at)?,
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
            Capture::Explicit | Capture::InCluster => {
                let calls = self.calls.iter().map(|call| self.explicit_outbound(call));
                calls.chain(self.externals.iter().map(|call| self.explicit_way_out(call))).collect()
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
        let outside = self.externals.iter().map(|call| call.port);
        let mut ports: Vec<u16> = self.calls.iter().map(|call| call.port).chain(outside).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.into_iter()
    }

    /// Binds nothing: the listener of all connections hands over those for `port`.
    fn port_listener(&self, port: u16) -> Result<Value, DataPlaneError> {
        let name = format!("{ANY_ADDRESS}_{port}");
        let here: Vec<&Call<'_>> = self.calls.iter().filter(|call| call.port == port).collect();
        let outside = self.externals.iter().filter(|call| call.port == port);
        let outside: Vec<Value> = outside.map(ExternalCall::chain).collect();
        let listen = |chains| {
            let address = SocketAddrV4::new(ANY_ADDRESS, port);
            listener::listener(&name, Direction::Outbound, address, chains)
        };
        let mut listener = match (here.as_slice(), outside.is_empty()) {
            ([], _) => by_name(listen(outside)),
            ([call], true) if call.protocol == Protocol::Tcp => {
                listen(vec![listener::open_chain(to_database(call))])
            }
            (calls, true) if calls.iter().all(|call| call.protocol == Protocol::Http) => {
                listen(vec![listener::open_chain(by_host(&format!("outbound_{name}"), calls))])
            }
            _ => return Err(self.cannot_share(port)),
        };
        listener["bind_to_port"] = json!(false);
        Ok(listener)
    }

    fn cannot_share(&self, port: u16) -> DataPlaneError {
        let calls = self.calls.iter().map(|call| (call.port, call.callee));
        let outside = self.externals.iter().map(|call| (call.port, call.callee));
        let here = calls.chain(outside).filter(|(of, _)| *of == port);
        let callees: Vec<&str> = here.map(|(_, callee)| callee).collect();
        DataPlaneError::PortShared {
            caller: self.pod.service.clone(),
            port,
            callees: callees.join("`, `"),
        }
    }

    fn explicit_outbound(&self, call: &Call<'_>) -> Result<Value, DataPlaneError> {
        let address = self.listens_for(call.callee)?;
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
        Ok(listener::listener(&name, Direction::Outbound, address, vec![chain]))
    }

    fn explicit_way_out(&self, call: &ExternalCall<'_>) -> Result<Value, DataPlaneError> {
        let address = self.listens_for(call.callee)?;
        let name = format!("outbound_{}", call.callee);
        let chains = vec![call.chain()];
        Ok(by_name(listener::listener(&name, Direction::Outbound, address, chains)))
    }

    fn listens_for(&self, callee: &str) -> Result<SocketAddrV4, DataPlaneError> {
        let listener = self.pod.calls.get(callee).copied();
        listener.ok_or_else(|| DataPlaneError::CallWithoutListener {
            caller: self.pod.service.clone(),
            callee: callee.to_owned(),
        })
    }

    fn inbound_listener(&self) -> Value {
        let mut chains = vec![self.mtls_chain()];
        if self.takes_plaintext {
            chains.push(self.plaintext_chain());
        }
        let filters = match self.capture {
            Capture::Transparent(_) => {
                vec![listener::original_destination(), listener::tls_inspector()]
            }
            Capture::Explicit | Capture::InCluster => vec![listener::tls_inspector()],
        };
        let ip = self.capture.proxy_ip(self.pod.ip);
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
            Capture::Explicit | Capture::InCluster => None,
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
        let calls = calls.chain(self.externals.iter().map(|call| self.cluster_out(call)));
        let mut clusters: Vec<Cluster> = calls.chain([self.application_cluster()]).collect();
        if let Capture::Transparent(_) = self.capture {
            clusters.push(Cluster::to_original_destination(PASSTHROUGH));
        }
        clusters.into_iter().map(|cluster| cluster.marked(self.mark()).build()).collect()
    }

    /// The TLS of the application passes: what goes around it is for the gateway.
    fn cluster_out(&self, call: &ExternalCall<'_>) -> Cluster {
        let WayOut::Gateway { pod, mtls } = self.way_out else { return call.own_cluster() };
        let cluster = call.cluster_by_way_of(SocketAddrV4::new(pod.ip, pod.port));
        if !mtls {
            return cluster;
        }
        let (caller, sni) = (&self.pod.service, call.gateway_sni());
        cluster.over(tls::to_egress(&self.identities, caller, &pod.pod, &sni))
    }

    fn application_cluster(&self) -> Cluster {
        let name = self.application_cluster_name();
        let cluster = match self.capture {
            Capture::Transparent(_) => Cluster::to_original_destination(&name),
            Capture::Explicit | Capture::InCluster => {
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
            Capture::Transparent(Bypass::Uid(_)) | Capture::Explicit | Capture::InCluster => None,
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
