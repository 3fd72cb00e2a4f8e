//! Turns a deployment and its addresses into what its proxies need: configuration, identities and redirect
//! rules; reads their counters, and judges from those whether the traffic took the claimed path.
//!
//! It starts no process and enters no namespace: `local/` does. Each proxy is one module: [`proxy_plans`]
//! chooses Envoys by the deployment, which [`ready`] and [`counters`] ask, and [`ztunnel::plans`] ztunnels. The shape
//! of the sidecar is that of Istio's:
//! <https://istio.io/latest/docs/ops/configuration/traffic-management/traffic-routing/>.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use crate::Role;
use crate::deployment::{DataPlane, Deployment, NodeProxy, Program, Service, SidecarProxy};

mod admin_socket;
pub(crate) mod agent;
pub(crate) mod collector;
mod counters;
mod edge;
mod envoy;
mod error;
pub(crate) mod external;
#[cfg(test)]
pub(crate) mod fixture;
mod http;
mod identity;
mod path_proof;
mod probe;
mod redirect;
mod sni_proxy;
pub(crate) mod stub_status;
pub(crate) mod wire;
pub(crate) mod ztunnel;

pub(crate) use admin_socket::short_enough;
pub(crate) use counters::{CallCounters, EgressCounters, HboneCounters, ProxyCounters};
pub use edge::ENTRY_NAME;
pub(crate) use edge::issue_edge;
pub(crate) use error::DataPlaneError;
pub(crate) use external::{ExternalFiles, LAB_CLIENT, issue_external, known_as};
pub(crate) use identity::issue_identities;
pub(crate) use path_proof::{
    DatabaseSight, Fingerprints, Handshake, Jvm, Occupants, Outsider, Sight, Window, Wire,
    prove_agent, prove_ambient, prove_bare, prove_sidecars,
};
pub(crate) use probe::{PathReport, Plaintext, Walk};
pub(crate) use sni_proxy::{SniProxyPlan, sni_proxy_plan};

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
    /// Callers are given the sidecars' own addresses.
    Explicit,
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
    /// Place of its node among [`Topology::nodes`].
    pub node: usize,
    /// Of a gateway whose clients speak TLS: where it takes plaintext from inside of its pod, for probes.
    pub probe_port: Option<u16>,
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

/// All that is needed to start the proxy of one pod: its sidecar, or the gateway that the pod is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyPlan {
    /// Name of the pod.
    pub pod: String,
    /// What the proxy is there for.
    pub role: Role,
    /// Name of the configuration file in the run's folder, for instance `client.envoy.yaml`.
    pub config_name: String,
    /// Its text.
    pub config: String,
    /// Script for `nft -f -` inside the pod; none with explicit capture and for proxies that capture nothing there.
    pub redirect: Option<String>,
    /// Of a node's proxy: the pods in whose networks it has sockets. It inherits their descriptors, and must find
    /// each at [`network_link`]. To enter them it needs CAP_SYS_ADMIN, and CAP_NET_ADMIN to mark its sockets.
    pub networks: Vec<String>,
    /// Where the proxy's admin interface will listen; its folder must be writable by the proxy.
    pub admin_socket: PathBuf,
    /// Arguments of the proxy's binary.
    pub args: Vec<OsString>,
}

/// The firewall's script for a pod that has no proxy of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Name of the pod.
    pub pod: String,
    /// For `nft -f -` inside the pod.
    pub script: String,
}

/// The scripts of the pods that an ambient data plane captures; none with any other.
pub(crate) fn captured_redirects(deployment: &Deployment) -> Vec<Redirect> {
    let Some(ambient) = deployment.data_plane.ambient() else { return Vec::new() };
    let captured = deployment.pods().into_iter().filter(|(_, s)| ambient.captures(&s.program));
    let redirect = |(pod, service): (String, &Service)| {
        let script = redirect::ambient_script(service.port_of_metrics_alone());
        Redirect { pod, script }
    };
    captured.map(redirect).collect()
}

/// Where a node's proxy looks for the network of a pod: a link to the descriptor that it inherits, so that its
/// configuration is the same whatever number that has.
pub(crate) fn network_link(dir: &Path, pod: &str) -> PathBuf {
    dir.join("networks").join(pod)
}

/// The gateways of a deployment and, unless it is bare, its sidecars, in the order of its pods, and the gateway that
/// traffic leaves the mesh through; or behind the gateways the proxies of an ambient data plane's nodes and its waypoint.
///
/// `dir` is the run's folder: it will hold the configurations and admin sockets, and it holds what
/// [`issue_identities`] wrote.
///
/// # Errors
/// When a socket's path is too long, the topology lacks a pod or a call, calls cannot share a port, a
/// gateway is called or has nowhere to send to, an ambient data plane has no networks to be in or is asked for what is
/// outside of it, or a waypoint would stand behind ztunnels.
pub(crate) fn proxy_plans(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<ProxyPlan>, DataPlaneError> {
    let place = |pod: &str| topology.pods.iter().find(|addresses| addresses.pod == pod);
    let plan = |(pod, service): (String, &Service)| {
        let Some(pod) = place(&pod) else {
            return Some(Err(DataPlaneError::PodWithoutAddresses { pod }));
        };
        let at = envoy::Place { deployment, topology, service, pod, dir };
        match (&service.program, &deployment.data_plane) {
            (Program::Gateway, _) => Some(envoy::gateway_plan(at)),
            (_, DataPlane::Sidecar { proxy: SidecarProxy::Envoy, mtls, .. }) => {
                service.takes_sidecar().then(|| envoy::sidecar_plan(at, *mtls))
            }
            (_, DataPlane::Bare | DataPlane::Agent(_) | DataPlane::Ambient(_)) => None,
        }
    };
    let in_pods = deployment.pods().into_iter().filter_map(plan);
    let mut plans = in_pods.collect::<Result<Vec<_>, _>>()?;
    if let Some(gateway) = deployment.data_plane.egress_gateway() {
        plans.push(envoy::egress_plan(deployment, gateway, topology, dir)?);
    }
    plans.extend(ambient_plans(deployment, topology, dir)?);
    Ok(plans)
}

fn ambient_plans(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<ProxyPlan>, DataPlaneError> {
    let Some(ambient) = deployment.data_plane.ambient() else { return Ok(Vec::new()) };
    if topology.capture == Capture::Explicit {
        return Err(DataPlaneError::AmbientWithoutNetworks);
    }
    if let Some((service, _)) = external::externals(deployment).next() {
        return Err(DataPlaneError::ExternalInAmbient { service: service.name.clone() });
    }
    match &ambient.proxy {
        NodeProxy::Envoy => envoy::ambient_plans(deployment, ambient, topology, dir),
        NodeProxy::Ztunnel { .. } if ambient.waypoint => Err(DataPlaneError::ZtunnelWaypoint),
        // It is no Envoy: see `ztunnel::plans`.
        NodeProxy::Ztunnel { .. } => Ok(Vec::new()),
    }
}

/// The name that sidecars ask an egress gateway with mTLS for, on the way to an external service.
pub(crate) fn gateway_sni(port: u16, host: &str) -> String {
    envoy::gateway_sni(port, host)
}

/// Whether the proxy takes traffic. A socket that is not there yet means no.
///
/// # Errors
/// When the admin interface answers something that is not HTTP, or not at all for 5 s.
pub(crate) fn ready(admin_socket: &Path) -> Result<bool, DataPlaneError> {
    envoy::ready(admin_socket)
}

/// The proxy's counters. Costs the proxy up to 1 ms of CPU time: read before and after a window, not in it.
///
/// # Errors
/// When the admin interface cannot be reached or read.
pub(crate) fn counters(admin_socket: &Path) -> Result<ProxyCounters, DataPlaneError> {
    envoy::counters(admin_socket)
}
