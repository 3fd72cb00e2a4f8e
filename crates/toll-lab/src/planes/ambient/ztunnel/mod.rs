//! The adapter for ztunnel, Istio's own node proxy: from a deployment to what each node's ztunnel is started with and
//! told, and from its metrics back to `ProxyCounters`.
//!
//! It follows ztunnel's sources (<https://github.com/istio/ztunnel>: `Development.md`, `src/config.rs`, `src/rbac.rs`,
//! `src/identity/`, `proto/zds.proto`). It runs as in Istio, shared by a node and with sockets in its pods' networks,
//! but its workloads come from a file in place of a control plane, and its certificates from toll's own authority
//! (docs/decisions/0010, 0018). A gateway is captured as any pod.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::certificates::api;
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::{Ambient, Deployment, NodeProxy};
use crate::error::DataPlaneError;
use crate::topology::{Capture, NodeAddresses, PROXY_MARK, PodAddresses, Topology, socket_below};

pub(crate) mod messages;
mod metrics;
mod workload;
mod workloads;
pub(crate) mod zds;

#[cfg(test)]
mod tests;

pub(crate) use metrics::counters;
use workload::CLUSTER;
pub(crate) use workload::Workload;

/// Where it tells whether it is ready, and what to ask there.
pub(crate) const READINESS: (u16, &str) = (15021, "/healthz/ready");

/// Where it tells its metrics.
pub(crate) const METRICS: (u16, &str) = (15020, "/metrics");

/// Worker threads: its own default, told to it so that no surroundings change it.
const WORKERS: u16 = 2;

/// All that is needed to start the ztunnel of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Name of the node, and of the pod that it runs in.
    pub node: String,
    /// The program.
    pub binary: PathBuf,
    /// Its arguments.
    pub args: [&'static str; 2],
    /// All variables that it gets.
    pub environment: Vec<(&'static str, OsString)>,
    /// Name of the file in the run's folder that tells it the workloads of all nodes.
    pub config_name: String,
    /// Its text.
    pub config: String,
    /// Where it asks for the networks of its pods.
    pub zds_socket: PathBuf,
    /// The pods whose networks it is given.
    pub workloads: Vec<Workload>,
}

/// The ztunnels of a deployment that has them, in the order of the nodes.
///
/// # Errors
/// When a socket's path is too long, or pods have no networks of their own.
pub(crate) fn plans(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<Plan>, DataPlaneError> {
    let Some(ambient) = deployment.data_plane.ambient() else { return Ok(Vec::new()) };
    let NodeProxy::Ztunnel { binary } = &ambient.proxy else { return Ok(Vec::new()) };
    if !matches!(topology.capture, Capture::Transparent(_)) {
        return Err(DataPlaneError::AmbientWithoutNetworks);
    }
    let captured = captured(deployment, ambient, topology);
    let config = workloads::config(deployment, ambient.mtls, topology, &captured)?;
    let plan = |(index, node): (usize, &NodeAddresses)| {
        let config_name = format!("{}.ztunnel.yaml", node.name);
        let zds_socket = socket_below(dir, &format!("{}.zds.sock", node.name))?;
        let here = captured.iter().filter(|pod| pod.node == index);
        Ok(Plan {
            environment: environment(&node.name, dir, &dir.join(&config_name), &zds_socket),
            node: node.name.clone(),
            binary: binary.clone(),
            args: ["proxy", "ztunnel"],
            config: config.clone(),
            config_name,
            zds_socket,
            workloads: here.map(|pod| Workload::new(pod)).collect(),
        })
    };
    topology.nodes.iter().enumerate().map(plan).collect()
}

fn captured<'a>(
    deployment: &Deployment,
    ambient: &Ambient,
    topology: &'a Topology,
) -> Vec<&'a PodAddresses> {
    let is_captured = |pod: &&PodAddresses| {
        deployment.service(&pod.service).is_some_and(|s| ambient.captures(&s.program))
    };
    topology.pods.iter().filter(is_captured).collect()
}

/// Where the token is that it shows the authority: below the folder that it starts in, as older ones look there without
/// being told.
pub(crate) fn token_file(dir: &Path) -> PathBuf {
    dir.join("var/run/secrets/tokens/istio-token")
}

/// Names and values that `src/config.rs` reads.
fn environment(
    node: &str,
    dir: &Path,
    config: &Path,
    zds_socket: &Path,
) -> Vec<(&'static str, OsString)> {
    vec![
        // One for a node, with sockets in its pods' networks; older ones want to be told so.
        ("PROXY_MODE", "shared".into()),
        ("INPOD_ENABLED", "true".into()),
        ("INPOD_UDS", zds_socket.into()),
        // By this mark the redirect knows what it sends.
        ("PACKET_MARK", PROXY_MARK.to_string().into()),
        // The application sees its pod as the peer, as behind Envoy: the caller's own address would need routes
        // that istio-cni makes in each pod.
        ("ENABLE_ORIG_SRC", "false".into()),
        ("IPV6_ENABLED", "false".into()),
        ("CA_ADDRESS", format!("https://{}:{}", Ipv4Addr::LOCALHOST, api::PORT).into()),
        ("CA_ROOT_CA", IdentityFiles::new(dir).authority().into()),
        ("AUTH_TOKEN", token_file(dir).into()),
        ("SECRET_TTL", format!("{}s", api::LIFETIME.as_secs()).into()),
        ("XDS_ADDRESS", OsString::new()),
        ("LOCAL_XDS_PATH", config.into()),
        ("NODE_NAME", node.into()),
        ("CLUSTER_ID", CLUSTER.into()),
        ("ZTUNNEL_WORKER_THREADS", WORKERS.to_string().into()),
        // A line for each connection is Istio's default; the lab's Envoys write none either.
        ("RUST_LOG", "warn".into()),
    ]
}
