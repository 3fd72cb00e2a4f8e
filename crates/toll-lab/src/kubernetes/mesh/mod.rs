//! The meshes that can be installed in a cluster: how an arm joins one, and what its proxies say of the arm's requests.
//!
//! Written after the meshes' documentation and tried on answers that were recorded from them; a cluster with the real
//! mesh decides. What cannot be read or understood is said in the words of whoever answered.

mod istio;
mod linkerd;
mod proof;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names::SERVICE_LABEL;
use super::objects::{Level, Place};
use crate::deployment::{DataPlane, Deployment, Mtls};

pub(super) use proof::{Evidence, prove};

/// A mesh that is installed in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mesh {
    /// Istio with a proxy beside each program.
    Istio,
    /// Istio with a proxy on each node.
    IstioAmbient,
    /// Linkerd.
    Linkerd,
}

/// What the proxies of one pod, or of one node, have counted since they started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// What came in over mTLS: by the service whose pods it was for and the service that sent it. Requests; of ambient,
    /// connections.
    pub(super) over_mtls: BTreeMap<(String, String), u64>,
    /// The same from identities that are no service of the arm, by the service that it was for.
    pub(super) from_others: BTreeMap<String, u64>,
    /// What came in as plaintext, by the service that it was for.
    pub(super) plaintext: BTreeMap<String, u64>,
    /// What was sent, by the service that sent it and the service that was called.
    pub(super) sent: BTreeMap<(String, String), u64>,
}

impl Mesh {
    /// The meshes that a deployment can join, of those whose control plane is in the cluster.
    pub(super) fn of(deployment: &Deployment, control_planes: &[String]) -> Option<Self> {
        let has = |name: &str| control_planes.iter().any(|there| there == name);
        match &deployment.data_plane {
            DataPlane::Ambient(_) => has(istio::CONTROL_PLANE).then_some(Self::IstioAmbient),
            DataPlane::Sidecar { .. } if has(istio::CONTROL_PLANE) => Some(Self::Istio),
            DataPlane::Sidecar { .. } if has(linkerd::CONTROL_PLANE) => Some(Self::Linkerd),
            DataPlane::Sidecar { .. }
            | DataPlane::Bare
            | DataPlane::Agent(_)
            | DataPlane::Mesher { .. } => None,
        }
    }

    /// The container that it puts into each pod; none where it stands on the nodes.
    pub(super) fn container(self) -> Option<&'static str> {
        match self {
            Self::Istio => Some(istio::CONTAINER),
            Self::IstioAmbient => None,
            Self::Linkerd => Some(linkerd::CONTAINER),
        }
    }

    /// What the proxies beside programs set up in their pods needs more than `restricted`, unless a plug-in of the
    /// network does it for them.
    pub(super) fn level(self) -> Level {
        match self {
            Self::Istio | Self::Linkerd => Level::Privileged,
            Self::IstioAmbient => Level::Restricted,
        }
    }

    /// The namespace of an arm that is in the mesh.
    pub(super) fn joined(self, mut namespace: Value) -> Value {
        let metadata = &mut namespace["metadata"];
        match self {
            Self::Istio => metadata["labels"]["istio-injection"] = json!("enabled"),
            Self::IstioAmbient => {
                metadata["labels"]["istio.io/dataplane-mode"] = json!("ambient");
            }
            Self::Linkerd => {
                metadata["annotations"]["linkerd.io/inject"] = json!("enabled");
            }
        }
        namespace
    }

    /// What says who may call whom in this arm. The load is outside of the mesh, so the entry takes plaintext.
    pub(super) fn policies(self, at: Place<'_>, deployment: &Deployment, mtls: Mtls) -> Vec<Value> {
        let entry = json!({"matchLabels": {SERVICE_LABEL: deployment.entry}});
        match (self, mtls) {
            (Self::Istio | Self::IstioAmbient, Mtls::Strict) => istio::strict_but(at, &entry),
            (Self::Istio | Self::IstioAmbient, Mtls::Permissive) | (Self::Linkerd, _) => Vec::new(),
        }
    }

    /// The annotations of a service's pods.
    pub(super) fn annotations(
        self,
        is_entry: bool,
        mtls: Mtls,
    ) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Istio | Self::IstioAmbient => Vec::new(),
            Self::Linkerd => linkerd::annotations(is_entry, mtls),
        }
    }

    /// Where a proxy tells what it has counted: port and path.
    pub(super) fn statistics(self) -> (u16, &'static str) {
        match self {
            Self::Istio => istio::OF_SIDECAR,
            Self::IstioAmbient => istio::OF_ZTUNNEL,
            Self::Linkerd => linkerd::STATISTICS,
        }
    }

    /// What that says of the services of the arm in `namespace`; `pod` is the service whose pod the proxy is in.
    pub(super) fn counted(self, text: &str, namespace: &str, pod: &str) -> Counted {
        match self {
            Self::Istio => istio::requests(text, namespace),
            Self::IstioAmbient => istio::connections(text, namespace),
            Self::Linkerd => linkerd::requests(text, namespace, pod),
        }
    }
}

impl Counted {
    fn note_inbound(&mut self, callee: String, from: Option<String>, value: u64) {
        match from {
            Some(caller) => *self.over_mtls.entry((callee, caller)).or_default() += value,
            None => *self.from_others.entry(callee).or_default() += value,
        }
    }

    /// All of them together.
    pub(super) fn sum(all: &[Self]) -> Self {
        fn add<K: Clone + Ord>(sum: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
            more.iter().for_each(|(key, value)| *sum.entry(key.clone()).or_default() += value);
        }
        let mut sum = Self::default();
        for one in all {
            add(&mut sum.over_mtls, &one.over_mtls);
            add(&mut sum.from_others, &one.from_others);
            add(&mut sum.plaintext, &one.plaintext);
            add(&mut sum.sent, &one.sent);
        }
        sum
    }
}
