//! What can go wrong between a deployment and its proxies, agents and collector.

use std::io;
use std::path::PathBuf;

use crate::http::HttpError;

/// Why proxies and agents cannot be planned, proxies given an identity, or they and the collector read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataPlaneError {
    #[error("no addresses for the pod `{pod}`")]
    PodWithoutAddresses { pod: String },
    #[error("no listener for the calls of `{caller}` to `{callee}`")]
    CallWithoutListener { caller: String, callee: String },
    #[error(
        "`{caller}` calls `{callees}` on port {port}, where only HTTP services can share a listener"
    )]
    PortShared { caller: String, port: u16, callees: String },
    #[error(
        "the gateway `{gateway}` does not hand requests to exactly one service that speaks HTTP"
    )]
    GatewayRoute { gateway: String },
    #[error("`{caller}` calls the gateway `{gateway}`, which takes requests of the load only")]
    GatewayCalled { caller: String, gateway: String },
    #[error(
        "the egress gateway cannot tell `{}` and `{}` apart: both are known as `{host}`",
        services[0],
        services[1]
    )]
    HostShared { host: String, services: [String; 2] },
    #[error("`{service}` is outside of the mesh, which toll knows no ambient data plane for")]
    ExternalInAmbient { service: String },
    #[error("an ambient data plane needs pods that have networks of their own")]
    AmbientWithoutNetworks,
    #[error("{reason}")]
    NotForMesher { reason: String },
    #[error("the Mesher of `{pod}` gave no metrics: {outcome}")]
    MesherSilent { pod: String, outcome: String },
    #[error("the ztunnel of `{node}` gave no metrics: {outcome}")]
    ZtunnelSilent { node: String, outcome: String },
    #[error("cannot give `{node}` the networks of its pods")]
    Zds { node: String, source: io::Error },
    #[error("the ztunnel of `{node}` does not do with the networks of its pods: {reason}")]
    ZdsRefused { node: String, reason: String },
    #[error("a socket's path has {length} bytes, and at most {limit} are possible: {path}")]
    SocketPathTooLong { path: PathBuf, length: usize, limit: usize },
    #[error("cannot write the proxy's configuration as YAML")]
    Unwritable(#[source] serde_saphyr::ser::Error),
    #[error("cannot serve the certificates of node proxies")]
    CertificateApi(#[source] io::Error),
    #[error("the ztunnel of `{node}` asked for a certificate that it cannot have: {reason}")]
    CertificateRefused { node: String, reason: String },
    #[error("cannot make the identity of `{service}`")]
    Certificate { service: String, source: rcgen::Error },
    #[error("cannot write {path}")]
    WriteIdentity { path: PathBuf, source: io::Error },
    #[error("cannot read {path} of the proxy at {socket}")]
    Admin { socket: PathBuf, path: &'static str, source: HttpError },
    #[error("the proxy at {socket} answered {path} with status {status}")]
    AdminStatus { socket: PathBuf, path: &'static str, status: u16 },
    #[error("the proxy at {socket} answered {path} in an unknown form")]
    AdminForm { socket: PathBuf, path: &'static str, source: serde_json::Error },
    #[error("the agent's setting `{name}` is made by toll")]
    AgentSettingFixed { name: &'static str },
    #[error("a JVM cannot be given an option with such a path: {path}")]
    AgentPath { path: PathBuf },
    #[error("cannot ask the nginx at {socket} for its counters")]
    Status { socket: PathBuf, source: HttpError },
    #[error("the nginx at {socket} gives its counters in an unknown form")]
    StatusForm { socket: PathBuf },
    #[error("cannot ask the collector at {socket}")]
    Collector { socket: PathBuf, source: HttpError },
    #[error("the collector at {socket} answered with status {status}")]
    CollectorStatus { socket: PathBuf, status: u16 },
    #[error("the collector at {socket} answered in an unknown form")]
    CollectorForm { socket: PathBuf, source: serde_json::Error },
}

impl DataPlaneError {
    /// What the user can do about it.
    pub(crate) fn help(&self) -> Option<String> {
        let text = match self {
            Self::SocketPathTooLong { .. } => {
                "set TMPDIR to a folder with a shorter path, for instance /tmp"
            }
            Self::AmbientWithoutNetworks => {
                "choose `--isolation pods` or `--isolation rootless`: `toll doctor` shows what is possible here"
            }
            Self::HostShared { .. } => {
                "give each a host of its own in the study, and choose `--isolation pods` or `--isolation rootless`: without namespaces all are `localhost`"
            }
            Self::ExternalInAmbient { .. } => {
                "choose sidecars or no mesh for a study with services outside of it"
            }
            Self::CertificateApi(_) => {
                "check that nothing else listens on port 15012 of a node, and that toll may open files"
            }
            Self::ZtunnelSilent { .. }
            | Self::ZdsRefused { .. }
            | Self::CertificateRefused { .. } => {
                "read its log in the run's directory; toll knows ztunnel by its sources of 2026 only"
            }
            Self::NotForMesher { .. } => "choose another data plane for this study",
            Self::MesherSilent { .. } => {
                "read its log in the run's directory: it has probably ended"
            }
            Self::PortShared { .. } => "give each database a port of its own in the study",
            Self::GatewayRoute { .. } => "name one of the study's services as the gateway's `to`",
            Self::GatewayCalled { .. } => "call the service that the gateway hands requests to",
            Self::WriteIdentity { .. } => {
                "check that the run's folder is writable and its disk is not full"
            }
            Self::Admin { .. } | Self::AdminStatus { .. } => {
                "read the proxy's log in the run's directory: it has probably ended"
            }
            Self::AdminForm { .. } => {
                "check that the proxy is an Envoy 1.40: `toll doctor` shows which one is used"
            }
            Self::AgentSettingFixed { .. } => "leave it out of the study's `settings`",
            Self::AgentPath { .. } => {
                "put the agent's jar, and TMPDIR, where no path has `=`, two kinds of quotes or odd bytes"
            }
            Self::Collector { .. } | Self::CollectorStatus { .. } => {
                "read the collector's log in the run's directory: it has probably ended"
            }
            Self::Zds { .. } => "set TMPDIR to a folder that takes sockets, for instance /tmp",
            Self::Status { .. } => "read its log in the run's directory: it has probably ended",
            Self::StatusForm { .. }
            | Self::CollectorForm { .. }
            | Self::PodWithoutAddresses { .. }
            | Self::CallWithoutListener { .. }
            | Self::Unwritable(_)
            | Self::Certificate { .. } => return None,
        };
        Some(text.to_owned())
    }
}
