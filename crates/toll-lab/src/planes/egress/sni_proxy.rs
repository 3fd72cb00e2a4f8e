//! Turns the names that an egress gateway lets out into the configuration of the nginx in its pod: it reads the SNI of
//! the application's own TLS, finds the host by that and passes all bytes on; TLS for any other name is closed. Starts
//! nothing.
//!
//! This is how Istio lets out hosts that only a wildcard names:
//! <https://istio.io/latest/docs/tasks/traffic-management/egress/wildcard-egress-hosts/>. Modules:
//! <https://nginx.org/en/docs/stream/ngx_stream_ssl_preread_module.html> and, for the counters,
//! <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use crate::artifacts::{Artifact, Artifacts, stream_module};
use crate::certificates::external::{externals, known_as};
use crate::deployment::{Deployment, EgressGateway, External, Service};
use crate::error::DataPlaneError;
use crate::programs::nginx::syntax::{
    arguments, process, quoted, quoted_path, status_server, temporary_paths,
};
use crate::topology::{EgressAddresses, Topology, socket_below};

/// What is needed to start the SNI proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SniProxyPlan {
    /// Name of the pod: the egress gateway's.
    pub pod: String,
    /// Name of the configuration file in the run's folder.
    pub config_name: String,
    /// Its text.
    pub config: String,
    /// Where it tells how many connections it accepted: see `nginx::status`.
    pub status_socket: PathBuf,
    /// A folder that must be there when it starts; the nginxes of an environment share it.
    pub folder: PathBuf,
    /// Arguments of nginx's binary.
    pub args: Vec<OsString>,
}

/// The SNI proxy of a deployment; none where the egress gateway finds hosts itself.
///
/// `module` is nginx's stream module where that is not built in. `dir` is the run's folder.
///
/// # Errors
/// When a socket's path is too long, or the topology lacks the gateway's pod.
pub(crate) fn plan(
    deployment: &Deployment,
    topology: &Topology,
    module: Option<&Path>,
    dir: &Path,
) -> Result<Option<SniProxyPlan>, DataPlaneError> {
    let gateway = deployment.data_plane.egress_gateway().filter(|gateway| gateway.sni_proxy);
    let Some(gateway) = gateway else { return Ok(None) };
    let at = topology.egress_pod()?;
    let config_name = format!("{}.nginx.conf", at.pod);
    let files = Files {
        status: socket_below(dir, &format!("{}.status.sock", at.pod))?,
        folder: dir.join("nginx"),
    };
    Ok(Some(SniProxyPlan {
        config: config(&files, at, module, &routes(deployment, gateway, topology)),
        args: arguments(&files.folder, &dir.join(&config_name)),
        pod: at.pod.clone(),
        config_name,
        status_socket: files.status,
        folder: files.folder,
    }))
}

/// The stream module of the nginx that there is. One that is not there, or lacks it, is refused before anything starts.
pub(crate) fn module(artifacts: &Artifacts) -> Option<PathBuf> {
    stream_module(artifacts.get(Artifact::Nginx)?).ok().flatten()
}

struct Files {
    status: PathBuf,
    folder: PathBuf,
}

/// A name, possibly `*.example.org`, and where what asks for it is sent.
type Route = (String, SocketAddrV4);

/// One for each external service that is let out.
fn routes(deployment: &Deployment, gateway: &EgressGateway, topology: &Topology) -> Vec<Route> {
    let let_out: Vec<(&Service, &External)> =
        externals(deployment).filter(|(_, external)| gateway.lets_out(&external.host)).collect();
    let patterns: Vec<Option<&str>> =
        let_out.iter().map(|(_, external)| gateway.pattern_of(&external.host)).collect();
    let route = |(service, external): &(&Service, &External)| {
        let pod = topology.pods.iter().find(|pod| pod.service == service.name)?;
        let known = known_as(external, topology.capture);
        let pattern = gateway.pattern_of(&external.host).filter(|_| known == external.host);
        let is_its_own = patterns.iter().filter(|other| **other == pattern).count() == 1;
        // Two behind one wildcard can be told apart by their own names only.
        let name = pattern.filter(|_| is_its_own).unwrap_or(known);
        Some((name.to_owned(), SocketAddrV4::new(pod.ip, pod.app_port)))
    };
    let_out.iter().filter_map(route).collect()
}

/// The whole configuration: what it is run as, where it tells its counters, and what it is there for.
fn config(files: &Files, at: &EgressAddresses, module: Option<&Path>, routes: &[Route]) -> String {
    let module =
        module.map(|path| format!("load_module {};\n", quoted_path(path))).unwrap_or_default();
    let process = process(&files.folder.join(format!("{}.pid", at.pod)), 4096);
    let temporary = temporary_paths(&files.folder);
    // The socket for the lab comes first: nginx opens them in order, and who finds the port open finds it, too.
    let (status, stream) = (status_server(&files.status), stream(at, routes));
    format!(
        "{module}{process}
http {{
    access_log off;
{temporary}
{status}}}

{stream}"
    )
}

/// It gives up on connections and closes idle ones as late as the gateway does.
fn stream(at: &EgressAddresses, routes: &[Route]) -> String {
    let listen = SocketAddrV4::new(Ipv4Addr::LOCALHOST, at.sni_port);
    let routes: String =
        routes.iter().map(|(name, to)| format!("        {} {to};\n", quoted(name))).collect();
    format!(
        "stream {{
    access_log off;
    # A DNS name may have 253 characters.
    map_hash_bucket_size 512;

    map $ssl_preread_server_name $host_of_that_name {{
        hostnames;
{routes}        default \"\";
    }}

    server {{
        listen {listen};
        ssl_preread on;
        proxy_pass $host_of_that_name;
        proxy_connect_timeout 10s;
        proxy_timeout 1h;
    }}
}}
"
    )
}

#[cfg(test)]
mod tests;
