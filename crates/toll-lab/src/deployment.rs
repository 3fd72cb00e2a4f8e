//! What to bring up: an application and the data plane in its path. Pure data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One variant of the application, fully resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The variant's name.
    pub name: String,
    /// Name of the service that the load calls.
    pub entry: String,
    /// In the order of the study file; names are unique and `calls` has no circle.
    pub services: Vec<Service>,
    /// What stands in the path.
    pub data_plane: DataPlane,
}

/// One service of the application graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Unique in the deployment; also its service account.
    pub name: String,
    /// TCP port it listens on.
    pub port: u16,
    /// What runs.
    pub program: Program,
    /// Names of the services that it calls once for each request it gets, in order.
    pub calls: Vec<String>,
}

/// What plays a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The built-in service.
    BuiltIn(BuiltIn),
    /// The user's own program and its arguments; it must listen on the service's port.
    Command(Vec<String>),
}

/// How the built-in service answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuiltIn {
    /// CPU time burned for each request.
    pub work: Duration,
    /// Size of the answer's body.
    pub reply_bytes: usize,
    /// Status code of the answer.
    pub status: u16,
    /// A known-answer fault: the service stops answering at regular times.
    pub stall: Option<Stall>,
}

/// The service answers nothing for `lasting` at the start of each period of length `every`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Length of the period.
    pub every: Duration,
    /// Length of the stall at the start of each period.
    pub lasting: Duration,
}

/// What stands in the application's path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataPlane {
    /// The application alone.
    Bare,
    /// A proxy beside each service.
    Sidecar {
        /// Which proxy.
        proxy: SidecarProxy,
        /// What the sidecars demand of each other.
        mtls: Mtls,
    },
}

/// The proxies that the lab has an adapter for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SidecarProxy {
    /// Envoy, configured as Istio configures its sidecar.
    Envoy,
}

/// What an inbound sidecar accepts. Connections between sidecars are mTLS in both modes.
///
/// The load stands outside the mesh and has no identity, so the entry service's port accepts plaintext in
/// both modes, as an Istio port-level exception would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mtls {
    /// mTLS or plaintext.
    Permissive,
    /// mTLS only: plaintext is refused.
    Strict,
}
