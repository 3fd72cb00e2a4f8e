//! A service that a proxy sends to: what it speaks, and where its pods are.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::bootstrap::call_cluster;
use super::cluster::Cluster;
use super::tls::Protocol;
use super::{listener, tls};
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::{Deployment, Program};
use crate::error::DataPlaneError;
use crate::topology::{Capture, PodAddresses, Topology, distinct};

/// One called service and its pods.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub callee: &'a str,
    /// The service's own port.
    pub port: u16,
    pub protocol: Protocol,
    pods: Vec<&'a PodAddresses>,
}

impl<'a> Call<'a> {
    /// Looks up the service and its pods.
    ///
    /// # Errors
    /// When there is no such service, it has no pod, or it is a gateway: those take the load only.
    pub(crate) fn new(
        deployment: &'a Deployment,
        topology: &'a Topology,
        caller: &str,
        callee: &str,
    ) -> Result<Self, DataPlaneError> {
        let unknown = || DataPlaneError::PodWithoutAddresses { pod: callee.to_owned() };
        let service = deployment.service(callee).ok_or_else(unknown)?;
        if service.program == Program::Gateway {
            let (caller, gateway) = (caller.to_owned(), callee.to_owned());
            return Err(DataPlaneError::GatewayCalled { caller, gateway });
        }
        let pods: Vec<_> = topology.pods.iter().filter(|pod| pod.service == callee).collect();
        let port = pods.first().ok_or_else(unknown)?.app_port;
        Ok(Self { callee: &service.name, port, protocol: Protocol::of(service), pods })
    }

    /// Name of the cluster for the call, by which its counters are found again.
    pub(crate) fn cluster_name(&self) -> String {
        call_cluster(self.port, self.callee)
    }

    /// Where callers outside of the mesh connect: the pods' own ports, though a redirect may take what comes.
    pub(crate) fn plaintext_cluster(&self) -> Cluster {
        self.cluster(|pod| pod.app_port)
    }

    /// Where `caller` connects as a member of the mesh.
    pub(crate) fn mesh_cluster(
        &self,
        caller: &str,
        capture: Capture,
        identities: &IdentityFiles,
    ) -> Cluster {
        let cluster = self.cluster(|pod| match capture {
            Capture::Transparent(_) => pod.app_port,
            Capture::Explicit | Capture::InCluster => pod.inbound_port,
        });
        cluster.over(tls::upstream(identities, caller, self.callee, (self.port, self.protocol)))
    }

    /// Hands each connection to an internal listener, which is told the pod's own port.
    pub(crate) fn internal_cluster(&self, listener: &str) -> Cluster {
        Cluster::to_internal(&self.cluster_name(), listener, &self.addresses())
    }

    /// The pods' own ports.
    pub(crate) fn addresses(&self) -> Vec<SocketAddrV4> {
        distinct(self.pods.iter().map(|pod| SocketAddrV4::new(pod.ip, pod.app_port)))
    }

    /// The pods' addresses.
    pub(crate) fn ips(&self) -> Vec<Ipv4Addr> {
        self.pods.iter().map(|pod| pod.ip).collect()
    }

    fn cluster(&self, port: impl Fn(&PodAddresses) -> u16) -> Cluster {
        let endpoint = |pod: &&PodAddresses| SocketAddrV4::new(pod.ip, port(pod));
        let endpoints = distinct(self.pods.iter().map(endpoint));
        Cluster::to(&self.cluster_name(), &endpoints)
    }

    /// Applications may call a service by its name or by the address of any of its pods.
    pub(crate) fn virtual_host(&self) -> serde_json::Value {
        let (name, port) = (self.callee, self.port);
        let mut domains = vec![name.to_owned(), format!("{name}:{port}")];
        let addresses = |pod: &&PodAddresses| [pod.ip.to_string(), format!("{}:{port}", pod.ip)];
        domains.extend(self.pods.iter().flat_map(addresses));
        listener::virtual_host(name, &domains, listener::route_with_retries(&self.cluster_name()))
    }
}
