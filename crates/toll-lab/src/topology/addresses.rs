//! Where everything of a deployment listens, and how traffic gets into its proxies.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::LabError;
use crate::error::DataPlaneError;

/// The user that a sidecar runs as when the redirect knows it by its uid; Istio's choice.
pub(crate) const PROXY_UID: u32 = 1337;

/// The mark on a sidecar's own sockets when the redirect knows it by its mark; Istio's choice.
pub(crate) const PROXY_MARK: u32 = 0x539;

/// Where transparent capture sends what an application sends.
pub(crate) const OUTBOUND_PORT: u16 = 15001;

/// Where transparent capture sends what comes in from outside of the pod.
pub(crate) const INBOUND_PORT: u16 = 15006;

/// Where proxies take HBONE; Istio's port.
pub(crate) const HBONE_PORT: u16 = 15008;

/// How traffic gets into a sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    /// The pod's firewall redirects; nobody but the proxy knows.
    Transparent(Bypass),
    /// Callers are given the sidecars' own addresses; all pods share the machine's.
    Explicit,
    /// Callers are given the sidecars' own addresses; each pod has one, and callers know services by another.
    InCluster,
}

impl Capture {
    /// The user that proxies run as and their files belong to; none when that is whoever runs toll.
    pub(crate) fn proxy_user(self) -> Option<u32> {
        match self {
            Self::Transparent(Bypass::Uid(uid)) => Some(uid),
            Self::Transparent(Bypass::Mark(_)) | Self::Explicit | Self::InCluster => None,
        }
    }

    /// Where a gateway listens for probes alone.
    pub(crate) fn probe_ip(self) -> Ipv4Addr {
        match self {
            Self::Transparent(_) | Self::Explicit => Ipv4Addr::LOCALHOST,
            Self::InCluster => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// Where a proxy of a pod with this address listens for others.
    pub(crate) fn proxy_ip(self, pod: Ipv4Addr) -> Ipv4Addr {
        match self {
            Self::Transparent(_) | Self::InCluster => Ipv4Addr::UNSPECIFIED,
            Self::Explicit => pod,
        }
    }
}

/// Whose traffic the redirect lets through: the proxy's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bypass {
    /// Sockets of this user.
    Uid(u32),
    /// Sockets with this `SO_MARK`; for user namespaces, where only one uid is mapped.
    Mark(u32),
}

/// Where the parts of one pod listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodAddresses {
    /// Name of the pod, unique: see [`Deployment::pods`].
    pub pod: String,
    /// Name of the service in the pod.
    pub service: String,
    /// The pod's address.
    pub ip: Ipv4Addr,
    /// Where the application listens; a gateway's Envoy, too.
    pub app_port: u16,
    /// Where the sidecar takes what the application sends, with transparent capture.
    pub outbound_port: u16,
    /// Where the sidecar takes what comes in.
    pub inbound_port: u16,
    /// With explicit capture: the sidecar's listener for each called service.
    pub calls: BTreeMap<String, SocketAddrV4>,
    /// Of a pod with a Mesher.
    pub mesher: Option<MesherAddresses>,
    /// Place of its node among [`Topology::nodes`].
    pub node: usize,
    /// Of a gateway whose clients speak TLS: where it takes plaintext for probes, from inside of its pod or, in a
    /// cluster, from toll's own pods.
    pub probe_port: Option<u16>,
}

/// Where a Mesher listens, and where its registry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MesherAddresses {
    /// What comes in from others. What its own program sends goes to the same port of 127.0.0.1.
    pub provider: SocketAddrV4,
    pub admin: SocketAddrV4,
    pub registry: SocketAddrV4,
}

/// A node, and its proxy's pod where the data plane is ambient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeAddresses {
    /// Name of its proxy's pod: `node-1`.
    pub name: String,
    /// The proxy's address.
    pub ip: Ipv4Addr,
}

/// The waypoint's pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waypoint {
    /// Name of the pod.
    pub pod: String,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Place of its node among [`Topology::nodes`].
    pub node: usize,
}

/// The egress gateway's pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EgressAddresses {
    /// Name of the pod; the gateway's identity, too.
    pub pod: String,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Place of its node among [`Topology::nodes`].
    pub node: usize,
    /// Where the gateway takes what leaves the mesh.
    pub port: u16,
    /// Where its SNI proxy takes what the gateway hands on, from inside of the pod only.
    pub sni_port: u16,
}

/// Where everything listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topology {
    /// In the order of [`Deployment::pods`].
    pub pods: Vec<PodAddresses>,
    /// At least one.
    pub nodes: Vec<NodeAddresses>,
    /// Of an ambient data plane that has one.
    pub waypoint: Option<Waypoint>,
    /// Of a data plane whose traffic leaves through a gateway.
    pub egress: Option<EgressAddresses>,
    /// Where the load comes from.
    pub load_ip: Ipv4Addr,
    /// How traffic gets into the sidecars.
    pub capture: Capture,
}

impl Topology {
    /// The pod of this name.
    pub(crate) fn pod(&self, name: &str) -> Option<&PodAddresses> {
        self.pods.iter().find(|pod| pod.pod == name)
    }

    /// The pods of a service, at least one.
    ///
    /// # Errors
    /// When there is no such service.
    pub(crate) fn pods_of(&self, service: &str) -> Result<Vec<&PodAddresses>, LabError> {
        let pods: Vec<_> = self.pods.iter().filter(|pod| pod.service == service).collect();
        if pods.is_empty() {
            return Err(LabError::UnknownService(service.to_owned()));
        }
        Ok(pods)
    }

    /// Where those outside of the mesh connect to reach `service`: its first pod.
    ///
    /// # Errors
    /// When there is no such service.
    pub(crate) fn front(&self, service: &str) -> Result<SocketAddrV4, LabError> {
        Ok(self.pod_front(self.pods_of(service)?[0]))
    }

    /// Where those outside of the mesh connect to reach this pod.
    pub(crate) fn pod_front(&self, pod: &PodAddresses) -> SocketAddrV4 {
        let port = match self.capture {
            Capture::Transparent(_) => pod.app_port,
            Capture::Explicit | Capture::InCluster => pod.inbound_port,
        };
        SocketAddrV4::new(pod.ip, port)
    }

    /// Where `caller`, a pod, connects to call `callee`, a service: all its pods, to be taken in turn.
    ///
    /// # Errors
    /// When there is no such pod or service.
    pub(crate) fn call_addresses(
        &self,
        caller: &str,
        callee: &str,
    ) -> Result<Vec<SocketAddrV4>, LabError> {
        let unknown = || LabError::UnknownService(callee.to_owned());
        let caller = self.pod(caller).ok_or_else(unknown)?;
        let callees = self.pods_of(callee)?;
        Ok(match caller.calls.get(callee) {
            Some(listener) => vec![*listener],
            None => distinct(callees.iter().map(|pod| SocketAddrV4::new(pod.ip, pod.app_port))),
        })
    }

    /// The pod that traffic leaves through.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn egress_pod(&self) -> Result<&EgressAddresses, DataPlaneError> {
        let missing = || DataPlaneError::PodWithoutAddresses { pod: "egress".to_owned() };
        self.egress.as_ref().ok_or_else(missing)
    }

    /// The address that the program of this pod listens on: with transparent capture each pod has a namespace to
    /// itself; in a cluster a program behind a sidecar of toll's is reached through that alone.
    pub(crate) fn listen_ip(&self, pod: &PodAddresses) -> Ipv4Addr {
        match self.capture {
            Capture::Transparent(_) => Ipv4Addr::UNSPECIFIED,
            Capture::Explicit => Ipv4Addr::LOCALHOST,
            Capture::InCluster if pod.inbound_port == pod.app_port => Ipv4Addr::UNSPECIFIED,
            Capture::InCluster => Ipv4Addr::LOCALHOST,
        }
    }
}

/// Each once, in order: in a cluster all pods of a service are reached by one address.
pub(crate) fn distinct(addresses: impl Iterator<Item = SocketAddrV4>) -> Vec<SocketAddrV4> {
    let mut distinct: Vec<SocketAddrV4> = Vec::new();
    for address in addresses {
        if !distinct.contains(&address) {
            distinct.push(address);
        }
    }
    distinct
}
