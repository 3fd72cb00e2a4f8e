//! Turns the gateways of a deployment whose clients speak TLS into server certificates, of an authority that the
//! load is told to trust. It is not the mesh's: a bare deployment has it as well, and it vouches for no workload.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};

use super::{Identity, authority, failed, leaf_params, make_folder, signed, write};
use crate::deployment::{Deployment, Service};
use crate::error::DataPlaneError;
use crate::topology::Topology;

/// The name that gateways have for their clients, wherever they are; reserved for tests by RFC 6761.
pub const ENTRY_NAME: &str = "toll.test";

/// Where the certificates of a run's gateways are kept.
#[derive(Debug, Clone)]
pub(crate) struct EdgeFiles {
    folder: PathBuf,
}

impl EdgeFiles {
    pub(crate) fn new(run_dir: &Path) -> Self {
        Self { folder: run_dir.join("edge") }
    }

    /// The gateway's certificate; clients have the authority's.
    pub(crate) fn certificate(&self, service: &str) -> PathBuf {
        self.folder.join(format!("{service}.crt"))
    }

    /// The gateway's private key.
    pub(crate) fn key(&self, service: &str) -> PathBuf {
        self.folder.join(format!("{service}.key"))
    }
}

/// Writes a certificate under `dir` for each gateway whose clients speak TLS, and gives that of the authority, PEM;
/// none where there is no such gateway.
///
/// Keys can be read by the proxies' user only. The authority's own key is forgotten.
///
/// # Errors
/// When a certificate cannot be made or a file cannot be written or given to the proxies' user.
pub(crate) fn issue_edge(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Option<String>, DataPlaneError> {
    let gateways: Vec<&Service> = deployment.services.iter().filter(|s| s.tls).collect();
    if gateways.is_empty() {
        return Ok(None);
    }
    let files = EdgeFiles::new(dir);
    let owner = topology.capture.proxy_user();
    make_folder(&files.folder, owner)?;
    let (certificate, issuer) =
        authority("toll").map_err(|source| failed("the edge's authority", source))?;
    for gateway in gateways {
        let name = &gateway.name;
        let server = leaf(name, topology, &issuer).map_err(|source| failed(name, source))?;
        write(&files.certificate(name), &server.certificate.pem(), owner)?;
        write(&files.key(name), &server.key.serialize_pem(), owner)?;
    }
    Ok(Some(certificate.pem()))
}

/// For the name that all gateways have, and for the addresses of this one's pods.
fn leaf(
    gateway: &str,
    topology: &Topology,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<Identity, rcgen::Error> {
    let pods = topology.pods.iter().filter(|pod| pod.service == gateway);
    let mut names = vec![SanType::DnsName(ENTRY_NAME.try_into()?)];
    names.extend(pods.map(|pod| SanType::IpAddress(IpAddr::V4(pod.ip))));
    signed(leaf_params(names, vec![ExtendedKeyUsagePurpose::ServerAuth]), issuer)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use x509_parser::pem::Pem;
    use x509_parser::prelude::*;

    use super::*;
    use crate::fixture::graphs::{behind_tls, customer, in_pods};
    use crate::topology::Capture;

    fn pem(text: &[u8]) -> Pem {
        Pem::iter_from_buffer(text).next().unwrap().unwrap()
    }

    #[test]
    fn a_gateway_is_vouched_for_by_name_and_address_as_a_server_only() {
        let dir = tempfile::tempdir().unwrap();
        let deployment = behind_tls(customer());
        let topology = in_pods(&deployment, Capture::Explicit);
        let authority = issue_edge(&deployment, &topology, dir.path()).unwrap().unwrap();
        let file = EdgeFiles::new(dir.path()).certificate("ingress");
        let (authority, leaf) = (pem(authority.as_bytes()), pem(&fs::read(file).unwrap()));
        let (authority, leaf) = (authority.parse_x509().unwrap(), leaf.parse_x509().unwrap());
        leaf.verify_signature(Some(authority.public_key())).unwrap();
        let names = leaf.subject_alternative_name().unwrap().unwrap();
        let expected = [GeneralName::DNSName("toll.test"), GeneralName::IPAddress(&[10, 77, 0, 2])];
        assert_eq!(names.value.general_names, expected);
        let usage = leaf.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && !usage.client_auth);
    }

    #[test]
    fn where_clients_speak_plaintext_there_is_no_authority() {
        let dir = tempfile::tempdir().unwrap();
        let topology = in_pods(&customer(), Capture::Explicit);
        assert_eq!(issue_edge(&customer(), &topology, dir.path()).unwrap(), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
