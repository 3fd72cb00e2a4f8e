//! What is needed to start one Envoy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Role;
use crate::error::DataPlaneError;
use crate::topology::socket_below;

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
    /// What is in it.
    pub bootstrap: Value,
    /// Script for `nft -f -` inside the pod; none with explicit capture and for proxies that capture nothing there.
    pub redirect: Option<String>,
    /// Of a node's proxy: the pods in whose networks it has sockets. It inherits their descriptors, and must find
    /// each by a link in the run's folder. To enter them it needs CAP_SYS_ADMIN, and CAP_NET_ADMIN to mark its sockets.
    pub networks: Vec<String>,
    /// Where the proxy's admin interface will listen; its folder must be writable by the proxy.
    pub admin_socket: PathBuf,
    /// Arguments of the proxy's binary.
    pub args: Vec<OsString>,
}

/// Worker threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workers {
    /// As many. Two are Istio's default for a sidecar, so that it costs what its users pay, ztunnel's for a node, and
    /// what a limit of two CPUs gives a waypoint. On a machine of two cores a second thread was measured to gain
    /// nothing, and memory hardly depends on their number.
    Two,
    /// As many as a study says.
    Number(u32),
    /// One for each core that it may run on, as Istio leaves a gateway's to Envoy. So a gateway, which all load
    /// passes, is not the first thing to be full, and it is the same in all variants.
    ForEachCore,
}

impl ProxyPlan {
    /// The Envoy of this pod, with the configuration that `bootstrap` makes of the path of its admin socket; `dir` is
    /// the run's folder.
    ///
    /// # Errors
    /// When the socket's path is too long, or there is no configuration.
    pub(crate) fn new(
        (role, pod): (Role, &str),
        workers: Workers,
        dir: &Path,
        bootstrap: impl FnOnce(&Path) -> Result<Value, DataPlaneError>,
    ) -> Result<Self, DataPlaneError> {
        let admin_socket = socket_below(dir, &format!("{pod}.admin.sock"))?;
        let bootstrap = bootstrap(&admin_socket)?;
        let config_name = format!("{pod}.envoy.yaml");
        Ok(Self {
            pod: pod.to_owned(),
            role,
            config: serde_saphyr::to_string(&bootstrap).map_err(DataPlaneError::Unwritable)?,
            bootstrap,
            redirect: None,
            networks: Vec::new(),
            args: arguments(workers, &dir.join(&config_name)),
            config_name,
            admin_socket,
        })
    }
}

fn arguments(workers: Workers, config: &Path) -> Vec<OsString> {
    let workers = match workers {
        Workers::Two => Some(2),
        Workers::Number(number) => Some(number),
        Workers::ForEachCore => None,
    };
    let workers =
        workers.map(|number| [OsString::from("--concurrency"), number.to_string().into()]);
    // With hot restart, all Envoys of the machine would share one memory segment by its default name.
    let flags = ["--disable-hot-restart", "-l", "warning", "-c"];
    let flags = flags.iter().map(OsString::from);
    workers.into_iter().flatten().chain(flags).chain([config.into()]).collect()
}
