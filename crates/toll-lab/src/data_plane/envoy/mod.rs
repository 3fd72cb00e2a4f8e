//! The adapter for Envoy: from a deployment to sidecars as Istio configures them, and from Envoy's statistics
//! back to [`ProxyCounters`](super::ProxyCounters).
//!
//! What real Istio adds and this leaves out: the agent beside each Envoy (about 30 MB), configuration over
//! xDS, and the filters of Istio's own Envoy build (peer metadata, request statistics).

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Capture, DataPlaneError, ProxyPlan, Topology, redirect};
use crate::Role;
use crate::deployment::{Deployment, Mtls, Service};

mod admin;
mod bootstrap;
mod cluster;
mod listener;
mod tls;

#[cfg(test)]
mod tests;

pub(super) use admin::{counters, ready};

/// Worker threads of a sidecar: Istio's default, so that the sidecar costs what its users pay. On a machine of
/// two cores a second thread was measured to gain nothing, and memory hardly depends on their number.
const WORKER_THREADS: &str = "2";

/// Longest path of a Unix socket: `sun_path` of `sockaddr_un` without its final zero.
const LONGEST_SOCKET_PATH: usize = 107;

/// One Envoy beside each service.
///
/// # Errors
/// When a socket's path is too long, or the topology lacks a pod or a call.
pub(super) fn proxy_plans(
    deployment: &Deployment,
    mtls: Mtls,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<ProxyPlan>, DataPlaneError> {
    let plan = |service| proxy_plan(deployment, mtls, topology, service, dir);
    deployment.services.iter().map(plan).collect()
}

fn proxy_plan(
    deployment: &Deployment,
    mtls: Mtls,
    topology: &Topology,
    service: &Service,
    dir: &Path,
) -> Result<ProxyPlan, DataPlaneError> {
    let config_name = format!("{}.envoy.yaml", service.name);
    let admin_socket = admin_socket(dir, &service.name)?;
    let sidecar = bootstrap::Sidecar::new(deployment, mtls, topology, service, dir)?;
    let bootstrap = sidecar.bootstrap(&admin_socket)?;
    Ok(ProxyPlan {
        pod: service.name.clone(),
        role: Role::Sidecar,
        config: serde_saphyr::to_string(&bootstrap).map_err(DataPlaneError::Unwritable)?,
        redirect: match topology.capture {
            Capture::Transparent(bypass) => Some(redirect::script(bypass)),
            Capture::Explicit => None,
        },
        args: arguments(&dir.join(&config_name)),
        config_name,
        admin_socket,
    })
}

fn admin_socket(dir: &Path, service: &str) -> Result<PathBuf, DataPlaneError> {
    let path = dir.join(format!("{service}.admin.sock"));
    let length = path.as_os_str().as_bytes().len();
    if length > LONGEST_SOCKET_PATH {
        let limit = LONGEST_SOCKET_PATH;
        return Err(DataPlaneError::AdminSocketPathTooLong { path, length, limit });
    }
    Ok(path)
}

fn arguments(config: &Path) -> Vec<OsString> {
    // With hot restart, all Envoys of the machine would share one memory segment by its default name.
    let flags = ["--concurrency", WORKER_THREADS, "--disable-hot-restart", "-l", "warning", "-c"];
    flags.iter().map(OsString::from).chain([config.into()]).collect()
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
