//! The certificates of an environment: of the mesh, of the entry to the load, of services outside of the mesh.

use super::setup::Setup;
use crate::LabError;
use crate::certificates::edge::issue_edge;
use crate::certificates::external::issue_external;
use crate::certificates::mesh::{MeshAuthority, issue_identities};
use crate::evidence::Fingerprints;
use crate::programs::postgres;

/// What was issued for one environment.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    /// Who vouches for the mesh, until its proxies are up.
    pub(super) mesh: Option<MeshAuthority>,
    /// Who vouches for the entry to the load, PEM; none where the load speaks plaintext.
    pub(super) entry_ca: Option<String>,
    /// The certificates of external services and of those who call them.
    pub(super) external: Fingerprints,
}

impl Credentials {
    /// Issues all of them into the environment's folder. Keys of external servers are for the user that databases run
    /// as.
    ///
    /// # Errors
    /// When a certificate cannot be made or written.
    pub(super) fn issue(setup: &Setup) -> Result<Self, LabError> {
        let Setup { deployment, topology, folder, machine, .. } = setup;
        let lifetime = machine.options.certificate_lifetime;
        let server = postgres::user(machine.isolation).owner();
        Ok(Self {
            mesh: issue_identities(deployment, topology, folder)?,
            entry_ca: issue_edge(deployment, topology, folder)?,
            external: issue_external(deployment, topology, folder, lifetime, server)?,
        })
    }
}
