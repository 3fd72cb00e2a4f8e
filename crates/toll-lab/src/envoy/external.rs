//! A service outside of the mesh that a proxy sends to. It speaks TLS of its own, of which proxies read the first
//! message only: the name in it (SNI) chooses the filter chain, and all bytes are passed on.

use std::net::SocketAddrV4;

use serde_json::{Value, json};

use super::bootstrap::call_cluster;
use super::cluster::Cluster;
use super::{listener, tls};
use crate::certificates::external::known_as;
use crate::deployment::{External, Service};
use crate::error::DataPlaneError;
use crate::topology::Topology;

/// One external service, where it is and what it is called.
#[derive(Debug)]
pub(crate) struct ExternalCall<'a> {
    pub callee: &'a str,
    /// The service's own port.
    pub port: u16,
    /// What its clients send as SNI.
    pub host: &'a str,
    /// Its own.
    addresses: Vec<SocketAddrV4>,
}

impl<'a> ExternalCall<'a> {
    /// Looks up its pods.
    ///
    /// # Errors
    /// When it has none.
    pub(crate) fn new(
        topology: &Topology,
        service: &'a Service,
        external: &'a External,
    ) -> Result<Self, DataPlaneError> {
        let pods = topology.pods.iter().filter(|pod| pod.service == service.name);
        let addresses: Vec<_> = pods.map(|pod| SocketAddrV4::new(pod.ip, pod.app_port)).collect();
        if addresses.is_empty() {
            return Err(DataPlaneError::PodWithoutAddresses { pod: service.name.clone() });
        }
        let host = known_as(external, topology.capture);
        Ok(Self { callee: &service.name, port: service.port, host, addresses })
    }

    /// Name of the cluster for the call, by which its counters are found again.
    pub(crate) fn cluster_name(&self) -> String {
        call_cluster(self.port, self.callee)
    }

    /// The name that a sidecar asks the egress gateway for.
    pub(crate) fn gateway_sni(&self) -> String {
        tls::outbound_sni(self.port, self.host)
    }

    /// Sends to the service itself.
    pub(crate) fn own_cluster(&self) -> Cluster {
        Cluster::to(&self.cluster_name(), &self.addresses)
    }

    /// Sends to somebody who knows the way.
    pub(crate) fn cluster_by_way_of(&self, next: SocketAddrV4) -> Cluster {
        Cluster::to(&self.cluster_name(), &[next])
    }

    /// Takes what is for the service, by its name.
    pub(crate) fn chain(&self) -> Value {
        let filter = listener::tcp_proxy(&self.cluster_name(), &self.cluster_name());
        listener::named_chain(&[self.host], filter)
    }
}

/// Has `listener` read the name that its clients ask for; who asks for none that a chain has is closed.
pub(crate) fn by_name(mut listener: Value) -> Value {
    listener["listener_filters"] = json!([listener::tls_inspector()]);
    listener["listener_filters_timeout"] = json!("5s");
    listener
}
