//! The adapter for Mesher, ServiceComb's sidecar: from a deployment to what each is started with, and from its metrics
//! back to `ProxyCounters`.
//!
//! Mesher captures nothing: a caller asks it as its HTTP proxy. The *consumer* side beside the caller finds the service by
//! the URL's host; the *provider* side beside the service dials it on 127.0.0.1 at the URL's port. The provider opens
//! only at an address that is neither 127.0.0.1 nor 0.0.0.0. The load enters its service directly, as in the published
//! study.

pub(crate) mod claims;
mod config;
mod registry;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::deployment::{BuiltIn, DataPlane, Deployment, Program, Runtime, Service};
use crate::error::DataPlaneError;
use crate::evidence::{CallCounters, ProxyCounters};
use crate::exposition::samples;
use crate::output::Rendered;
use crate::topology::{MesherAddresses, Site, Topology};

pub(crate) use registry::Registry;

/// Tells that it lives; its registry may still be unknown to it.
pub(crate) const HEALTH: &str = "/v1/mesher/health";

/// Where it tells its metrics.
pub(crate) const METRICS: &str = "/v1/mesher/metrics";

/// All that is needed to start the Mesher of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The pod that it runs in.
    pub pod: String,
    /// The program.
    pub binary: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// All variables that it gets.
    pub environment: Vec<(&'static str, OsString)>,
    /// Holds its configuration.
    pub folder: PathBuf,
    /// Name in the folder and text of each file.
    pub files: Vec<(&'static str, String)>,
    /// Where it listens.
    pub at: MesherAddresses,
}

impl Plan {
    /// Its files, as a reader of the study's plan sees them.
    pub(crate) fn rendered(&self) -> impl Iterator<Item = Rendered> + '_ {
        let file = |(name, text): &(&str, String)| Rendered {
            name: format!("{}.mesher.{name}", self.pod),
            text: text.clone(),
        };
        self.files.iter().map(file)
    }
}

/// The Meshers of a deployment that has them, in the order of its pods.
///
/// # Errors
/// When a program cannot be carried, or a configuration cannot be written.
pub(crate) fn plans(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<Plan>, DataPlaneError> {
    let DataPlane::Mesher { binary } = &deployment.data_plane else { return Ok(Vec::new()) };
    fits(&deployment.services).map_err(|reason| DataPlaneError::NotForMesher { reason })?;
    let plan = |site| plan(site, binary);
    Site::all(deployment, topology, dir).map(plan).collect()
}

fn plan(site: Site<'_>, binary: &Path) -> Result<Plan, DataPlaneError> {
    let pod = &site.pod.pod;
    let missing = || DataPlaneError::PodWithoutAddresses { pod: pod.clone() };
    let at = site.pod.mesher.ok_or_else(missing)?;
    let folder = site.file("mesher");
    let ports = format!("rest:{}", site.service.port);
    Ok(Plan {
        pod: pod.clone(),
        binary: binary.to_owned(),
        args: vec![
            "--config".into(),
            folder.join("mesher.yaml").into(),
            "--mode".into(),
            "sidecar".into(),
            "--service-ports".into(),
            ports.clone().into(),
        ],
        environment: vec![
            ("CHASSIS_CONF_DIR", folder.clone().into()),
            ("SERVICE_PORTS", ports.into()),
        ],
        files: config::files(&site.service.name, at)?,
        folder,
        at,
    })
}

/// Whether Mesher can stand beside all of these.
///
/// # Errors
/// Why not, in words.
pub fn fits(services: &[Service]) -> Result<(), String> {
    let asks_a_proxy = |program: &Program| match program {
        Program::BuiltIn(BuiltIn { runtime, .. }) => *runtime == Runtime::Native,
        Program::Command(_) => true,
        _ => false,
    };
    match services.iter().find(|service| !asks_a_proxy(&service.program)) {
        None => Ok(()),
        Some(service) => Err(format!(
            "Mesher carries only what asks an HTTP proxy: native built-in services and programs of your own; `{}` is neither",
            service.name
        )),
    }
}

/// What the metrics of one Mesher say of its calls.
pub(crate) fn counters(text: &str) -> ProxyCounters {
    let mut counters = ProxyCounters::default();
    for sample in samples(text, "requests_total") {
        let callee = sample.label("service_name").to_owned();
        let call: &mut CallCounters = counters.calls.entry(callee).or_default();
        call.requests += sample.value;
    }
    counters
}
