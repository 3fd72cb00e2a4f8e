//! The pod that traffic leaves the mesh through: starts the SNI proxy beside its gateway, reads what that has
//! counted, and tries how the gateway takes somebody from outside of the mesh.

use super::environment::LocalEnvironment;
use crate::LabError;
use crate::data_plane::Plaintext;

impl LocalEnvironment {
    /// Connections that the SNI proxy has accepted since it started; none where there is none.
    pub(super) fn sni_accepted(&self) -> Result<Option<u64>, LabError> {
        Ok(None)
    }

    /// What becomes of TLS without a certificate that comes to the gateway from outside of the mesh, by the name
    /// that sidecars send it; none where it takes no mTLS.
    pub(super) fn outside_of_egress(&self) -> Result<Option<Plaintext>, LabError> {
        Ok(None)
    }
}
