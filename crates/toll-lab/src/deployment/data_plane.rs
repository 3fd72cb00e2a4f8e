//! The data planes that can stand in the application's path.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::program::Program;

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
        /// By which way traffic leaves the mesh.
        #[serde(default)]
        egress: Egress,
    },
    /// Mesher beside each service: an explicit HTTP proxy, without identities and mTLS.
    Mesher {
        /// The program.
        binary: PathBuf,
    },
    /// A tracing agent inside each JVM of the application.
    Agent(JavaAgent),
    /// A proxy on each node, for all pods there.
    Ambient(Ambient),
}

impl DataPlane {
    /// Whether there is a proxy beside each service that takes one.
    pub fn has_sidecars(&self) -> bool {
        matches!(self, Self::Sidecar { .. } | Self::Mesher { .. })
    }

    /// Whether it is of a mesh that is installed in the cluster.
    pub fn is_installed(&self) -> bool {
        match self {
            Self::Sidecar { proxy, .. } => *proxy == SidecarProxy::Installed,
            Self::Ambient(ambient) => ambient.proxy == NodeProxy::Installed,
            Self::Bare | Self::Agent(_) | Self::Mesher { .. } => false,
        }
    }

    /// Whether it is Mesher.
    pub fn is_mesher(&self) -> bool {
        matches!(self, Self::Mesher { .. })
    }

    /// By which way traffic leaves a mesh of sidecars.
    pub fn egress(&self) -> Option<&Egress> {
        match self {
            Self::Sidecar { egress, .. } => Some(egress),
            _ => None,
        }
    }

    /// The gateway through which traffic leaves the mesh, if there is one.
    pub fn egress_gateway(&self) -> Option<&EgressGateway> {
        match self.egress() {
            Some(Egress::Gateway(gateway)) => Some(gateway),
            _ => None,
        }
    }

    /// What stands on the nodes, if anything.
    pub fn ambient(&self) -> Option<&Ambient> {
        match self {
            Self::Ambient(ambient) => Some(ambient),
            _ => None,
        }
    }

    /// Whether services have identities and speak mTLS to each other.
    pub fn is_mesh(&self) -> bool {
        matches!(self, Self::Sidecar { .. } | Self::Ambient(_))
    }
}

/// A user's own settings of the sidecars that toll plays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvoySettings {
    /// Worker threads; two when absent.
    pub concurrency: Option<u32>,
    /// Whether each request is logged, into the sidecar's log.
    pub access_log: bool,
    /// HTTP filters before the router, in order.
    pub filters: Vec<serde_json::Value>,
    /// Merged into the configuration last.
    pub overlay: Option<serde_json::Value>,
}

impl EnvoySettings {
    /// Whether all is as toll has it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// By which way traffic to services outside of the mesh goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Egress {
    /// Past the sidecars: their addresses are not captured.
    Bypass,
    /// Through the sidecar of the caller, which knows the host and passes its TLS on by SNI.
    #[default]
    Sidecar,
    /// Through the sidecar of the caller and then through one gateway for all.
    Gateway(EgressGateway),
}

/// The gateway through which traffic leaves the mesh: an Envoy in a pod of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressGateway {
    /// Whether sidecars speak mTLS to it, around the TLS that the application speaks.
    pub mtls: bool,
    /// Whether an nginx in its pod finds the host by the SNI, instead of the gateway's own configuration.
    pub sni_proxy: bool,
    /// The names that it lets out, `*.example.org` for all below one; the external services' own when empty.
    pub hosts: Vec<String>,
}

impl EgressGateway {
    /// Whether it lets traffic to `host`, the name of an external service, out.
    pub fn lets_out(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.pattern_of(host).is_some()
    }

    /// The first of its names that `host` is meant by.
    pub(crate) fn pattern_of(&self, host: &str) -> Option<&str> {
        let is_below = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        };
        let means = |pattern: &&String| match pattern.strip_prefix("*.") {
            Some(domain) => is_below(domain),
            None => *pattern == host,
        };
        self.hosts.iter().find(means).map(String::as_str)
    }
}

/// An ambient data plane: a proxy on each node captures its pods' traffic inside of their networks and carries it
/// to the next node's in HBONE (HTTP/2 CONNECT over mTLS, port 15008).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ambient {
    /// What stands on each node.
    pub proxy: NodeProxy,
    /// What pods accept from outside of the mesh.
    pub mtls: Mtls,
    /// Whether every request also crosses a waypoint, a proxy that reads HTTP.
    pub waypoint: bool,
}

impl Ambient {
    /// Whether it carries the traffic of pods that run `program`. A gateway has no certificate of ztunnel's own
    /// authority, so where that is the node proxy a gateway is captured as any pod.
    pub fn captures(&self, program: &Program) -> bool {
        let gateways = self.proxy != NodeProxy::Envoy;
        program.is_captured() || (gateways && *program == Program::Gateway)
    }
}

/// The node proxies that the lab has an adapter for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeProxy {
    /// Envoy, in the place of ztunnel.
    Envoy,
    /// ztunnel, Istio's own.
    Ztunnel {
        /// The program.
        binary: PathBuf,
    },
    /// That of the mesh which is installed in the cluster.
    Installed,
}

impl NodeProxy {
    /// As reports call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Envoy => "Envoy",
            Self::Ztunnel { .. } => "ztunnel",
            Self::Installed => "the cluster's own",
        }
    }
}

/// A tracing agent for JVMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaAgent {
    /// Which one.
    pub kind: AgentKind,
    /// Its own settings, beside those that the lab makes: name and value, as its documentation calls them.
    pub settings: BTreeMap<String, String>,
    /// Spans that it leaves for each request, whatever is said of the requests, by service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spans: BTreeMap<String, u64>,
}

/// The agents that the lab has an adapter for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// The OpenTelemetry Java agent, of the version that toll fetches or its user names.
    OpenTelemetry,
    /// EaseAgent.
    EaseAgent {
        /// Its jar.
        jar: PathBuf,
    },
}

/// The proxies that the lab has an adapter for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SidecarProxy {
    /// Envoy, configured as Istio configures its sidecar.
    Envoy,
    /// That of the mesh which is installed in the cluster.
    Installed,
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
