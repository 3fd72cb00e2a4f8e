//! The adapter for Envoy: from a deployment to sidecars and gateways as Istio configures them, and from Envoy's
//! statistics back to [`ProxyCounters`](super::ProxyCounters).
//!
//! What real Istio adds and this leaves out: the agent beside each Envoy (about 30 MB), configuration over
//! xDS, and the filters of Istio's own Envoy build (peer metadata, request statistics).

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Capture, DataPlaneError, PodAddresses, ProxyPlan, Topology, redirect};
use crate::Role;
use crate::deployment::{Deployment, Mtls, Service};

mod admin;
mod bootstrap;
mod call;
mod cluster;
mod gateway;
mod listener;
mod sidecar;
mod tls;

#[cfg(test)]
mod tests;

pub(super) use admin::{counters, ready};

/// Worker threads of a sidecar: Istio's default, so that the sidecar costs what its users pay. On a machine of
/// two cores a second thread was measured to gain nothing, and memory hardly depends on their number.
const SIDECAR_WORKERS: Option<u32> = Some(2);

/// A gateway's worker threads are left to Envoy, as Istio does: one for each core that it may run on. So a
/// gateway, which all load passes, is not the first thing to be full, and it is the same in all variants.
const GATEWAY_WORKERS: Option<u32> = None;

/// Longest path of a Unix socket: `sun_path` of `sockaddr_un` without its final zero.
const LONGEST_SOCKET_PATH: usize = 107;

/// What the proxy of one pod is planned from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub deployment: &'a Deployment,
    pub topology: &'a Topology,
    pub service: &'a Service,
    pub pod: &'a PodAddresses,
    /// The run's folder.
    pub dir: &'a Path,
}

/// The Envoy beside a pod's program.
///
/// # Errors
/// When a socket's path is too long, the topology lacks a pod or a call, or calls cannot share a port.
pub(super) fn sidecar_plan(at: Place<'_>, mtls: Mtls) -> Result<ProxyPlan, DataPlaneError> {
    let admin_socket = admin_socket(at)?;
    let config = sidecar::Sidecar::new(at, mtls)?.bootstrap(&admin_socket)?;
    let redirect = match at.topology.capture {
        Capture::Transparent(bypass) => {
            Some(redirect::script(bypass, at.service.port_of_metrics_alone()))
        }
        Capture::Explicit => None,
    };
    let plan = proxy_plan(at, Role::Sidecar, &config, SIDECAR_WORKERS, admin_socket)?;
    Ok(ProxyPlan { redirect, ..plan })
}

/// The Envoy that a gateway is.
///
/// # Errors
/// When a socket's path is too long, or the topology lacks what the gateway calls.
pub(super) fn gateway_plan(at: Place<'_>) -> Result<ProxyPlan, DataPlaneError> {
    let admin_socket = admin_socket(at)?;
    let config = gateway::Gateway::new(at)?.bootstrap(&admin_socket);
    proxy_plan(at, Role::Gateway, &config, GATEWAY_WORKERS, admin_socket)
}

fn proxy_plan(
    at: Place<'_>,
    role: Role,
    config: &Value,
    workers: Option<u32>,
    admin_socket: PathBuf,
) -> Result<ProxyPlan, DataPlaneError> {
    let config_name = format!("{}.envoy.yaml", at.pod.pod);
    Ok(ProxyPlan {
        pod: at.pod.pod.clone(),
        role,
        config: serde_saphyr::to_string(config).map_err(DataPlaneError::Unwritable)?,
        redirect: None,
        args: arguments(workers, &at.dir.join(&config_name)),
        config_name,
        admin_socket,
    })
}

fn admin_socket(at: Place<'_>) -> Result<PathBuf, DataPlaneError> {
    let path = at.dir.join(format!("{}.admin.sock", at.pod.pod));
    let length = path.as_os_str().as_bytes().len();
    if length > LONGEST_SOCKET_PATH {
        let limit = LONGEST_SOCKET_PATH;
        return Err(DataPlaneError::AdminSocketPathTooLong { path, length, limit });
    }
    Ok(path)
}

fn arguments(workers: Option<u32>, config: &Path) -> Vec<OsString> {
    let workers = workers.map(|n| ["--concurrency".to_owned(), n.to_string()]);
    // With hot restart, all Envoys of the machine would share one memory segment by its default name.
    let flags = ["--disable-hot-restart", "-l", "warning", "-c"].map(OsString::from);
    let workers = workers.into_iter().flatten().map(OsString::from);
    workers.chain(flags).chain([config.into()]).collect()
}

/// Wraps a message's fields as Envoy's `Any`.
fn typed(kind: &str, fields: Value) -> Value {
    let mut message = json!({"@type": format!("type.googleapis.com/{kind}")});
    if let (Value::Object(message), Value::Object(fields)) = (&mut message, fields) {
        message.extend(fields);
    }
    message
}

fn socket_address(address: SocketAddrV4) -> Value {
    let (ip, port) = (address.ip().to_string(), address.port());
    json!({"socket_address": {"address": ip, "port_value": port}})
}
