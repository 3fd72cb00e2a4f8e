//! Envoy as an ingress gateway, the same in all variants.

pub(crate) mod claims;
mod config;

use config::Gateway;

use crate::Role;
use crate::envoy::plan::{ProxyPlan, Workers};
use crate::error::DataPlaneError;
use crate::topology::Site;

/// The Envoy that the gateway at `site` is.
///
/// # Errors
/// When a socket's path is too long, or the topology lacks what the gateway calls.
pub(crate) fn plan(site: Site<'_>) -> Result<ProxyPlan, DataPlaneError> {
    let pod = (Role::Gateway, site.pod.pod.as_str());
    ProxyPlan::new(pod, Workers::ForEachCore, site.dir, |admin_socket| {
        Ok(Gateway::new(site)?.bootstrap(admin_socket))
    })
}
