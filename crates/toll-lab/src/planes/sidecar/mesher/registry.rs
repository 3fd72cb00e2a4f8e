//! What plays the registry of the Meshers: the service program, in the load's pod, told of all instances beforehand.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::topology::Topology;

/// Where it listens, and the file that says what it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registry {
    pub at: SocketAddrV4,
    pub file: PathBuf,
    pub text: String,
}

impl Registry {
    /// Of a deployment whose pods have Meshers; none without.
    pub(crate) fn plan(topology: &Topology, dir: &Path) -> Option<Self> {
        let mut instances = BTreeMap::<&str, Vec<String>>::new();
        for pod in &topology.pods {
            let endpoint = format!("rest://{}", pod.mesher?.provider);
            instances.entry(&pod.service).or_default().push(endpoint);
        }
        let at = topology.pods.first()?.mesher?.registry;
        let config = json!({"listen": at, "registry": {"instances": instances}});
        Some(Self { at, file: dir.join("registry.json"), text: format!("{config:#}\n") })
    }
}
