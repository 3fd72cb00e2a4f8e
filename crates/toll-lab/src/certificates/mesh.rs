//! Turns the services of a deployment into workload identities: a certificate authority for the run, and for
//! each service a key and a certificate that carries its SPIFFE ID
//! (<https://github.com/spiffe/spiffe/blob/main/standards/X509-SVID.md>).
//!
//! Keys are ECDSA P-256. Istio's default is RSA-2048; the kind of key matters per handshake only, and a
//! measured window with keep-alive has next to none.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    SanType,
};

use super::{Identity, authority, failed, leaf_params, make_folder, signed, write};
use crate::deployment::Deployment;
use crate::error::DataPlaneError;
use crate::topology::Topology;

/// All identities of a run are in this trust domain.
pub(crate) const TRUST_DOMAIN: &str = "cluster.local";

/// The identity of a service.
pub(crate) fn spiffe_id(service: &str) -> String {
    format!("spiffe://{TRUST_DOMAIN}/ns/default/sa/{service}")
}

/// Where the identities of a run are kept.
#[derive(Debug, Clone)]
pub(crate) struct IdentityFiles {
    folder: PathBuf,
}

impl IdentityFiles {
    pub(crate) fn new(run_dir: &Path) -> Self {
        Self { folder: run_dir.join("identity") }
    }

    /// The certificate of the run's authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The service's certificate, then the authority's.
    pub(crate) fn chain(&self, service: &str) -> PathBuf {
        self.folder.join(format!("{service}.crt"))
    }

    /// The service's private key.
    pub(crate) fn key(&self, service: &str) -> PathBuf {
        self.folder.join(format!("{service}.key"))
    }
}

/// Writes an authority and the identity of each service under `dir`, gateways and databases included, and those of the
/// waypoint and of the gateway that traffic leaves through. A bare deployment has no identities, nor have services
/// outside of the mesh.
///
/// Keys can be read by the proxies' user only; the proxies of nodes, which hold the keys of all services there, are
/// root's. The authority's own key is on no disk: it is forgotten with what is given, which signs for proxies that ask
/// for their certificates themselves.
///
/// # Errors
/// When a certificate cannot be made or a file cannot be written or given to the proxies' user.
pub(crate) fn issue_identities(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Option<MeshAuthority>, DataPlaneError> {
    if !deployment.data_plane.is_mesh() {
        return Ok(None);
    }
    let files = IdentityFiles::new(dir);
    let owner = topology.capture.proxy_user();
    make_folder(&files.folder, owner)?;
    let (certificate, issuer) =
        authority(TRUST_DOMAIN).map_err(|source| failed("the authority", source))?;
    write(&files.authority(), &certificate.pem(), owner)?;
    let members = deployment.services.iter().filter(|service| service.external.is_none());
    let names = members.map(|service| &service.name);
    let names = names.chain(topology.waypoint.iter().map(|waypoint| &waypoint.pod));
    let names = names.chain(topology.egress.iter().map(|gateway| &gateway.pod));
    let mut members = BTreeSet::new();
    for name in names {
        let identity = leaf(name, &issuer).map_err(|e| failed(name, e))?;
        let chain = format!("{}{}", identity.certificate.pem(), certificate.pem());
        write(&files.chain(name), &chain, owner)?;
        write(&files.key(name), &identity.key.serialize_pem(), owner)?;
        members.insert(spiffe_id(name));
    }
    Ok(Some(MeshAuthority { certificate: certificate.pem(), issuer, members }))
}

/// The authority of a mesh, for as long as its proxies may ask it.
#[derive(Debug)]
pub(crate) struct MeshAuthority {
    /// PEM.
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    /// The identities that it vouches for.
    members: BTreeSet<String>,
}

/// Why a request for a certificate is not granted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this run has no {0}")]
    Stranger(String),
    #[error("it is no certificate request: {0}")]
    NotARequest(rcgen::Error),
    #[error("it cannot be signed: {0}")]
    Unsigned(rcgen::Error),
}

impl MeshAuthority {
    /// A certificate of `identity` for the key of a request, PEM, that holds from now on; then the authority's. What
    /// else the request wants is not looked at, as Istio's authority does.
    ///
    /// # Errors
    /// When nobody has this identity, or it is no request that its key signed.
    pub(crate) fn sign(
        &self,
        identity: &str,
        request: &str,
        lifetime: Duration,
    ) -> Result<[String; 2], Refusal> {
        if !self.members.contains(identity) {
            return Err(Refusal::Stranger(identity.to_owned()));
        }
        let request =
            CertificateSigningRequestParams::from_pem(request).map_err(Refusal::NotARequest)?;
        let mut params = workload_params(identity).map_err(Refusal::Unsigned)?;
        let now = SystemTime::now();
        (params.not_before, params.not_after) = (now.into(), (now + lifetime).into());
        let certificate = params.signed_by(&request.public_key, &self.issuer);
        Ok([certificate.map_err(Refusal::Unsigned)?.pem(), self.certificate.clone()])
    }

    /// The identity of whoever answers in its name on the loopback.
    ///
    /// # Errors
    /// When its certificate cannot be made.
    pub(super) fn server(&self) -> Result<Identity, rcgen::Error> {
        let names = vec![
            SanType::DnsName(Ia5String::try_from("localhost")?),
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ];
        signed(leaf_params(names, vec![ExtendedKeyUsagePurpose::ServerAuth]), &self.issuer)
    }
}

/// With an empty subject, which makes the name in the URI critical (RFC 5280, section 4.2.1.6).
fn workload_params(identity: &str) -> Result<CertificateParams, rcgen::Error> {
    let names = vec![SanType::URI(Ia5String::try_from(identity)?)];
    let uses = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(leaf_params(names, uses))
}

fn leaf(service: &str, issuer: &Issuer<'_, KeyPair>) -> Result<Identity, rcgen::Error> {
    signed(workload_params(&spiffe_id(service))?, issuer)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::Ipv4Addr;
    use std::os::unix::fs::MetadataExt;

    use tempfile::TempDir;
    use x509_parser::pem::Pem;
    use x509_parser::prelude::*;

    use super::*;
    use crate::deployment::{Ambient, DataPlane, Mtls, NodeProxy};
    use crate::fixture::graphs::{airline, in_pods, leaving, on_nodes, ways_out};
    use crate::fixture::{chain, in_mesh};
    use crate::topology::{Bypass, Capture};

    fn issued(capture: Capture) -> (TempDir, IdentityFiles) {
        let dir = tempfile::tempdir().unwrap();
        let topology = Topology {
            egress: None,
            nodes: Vec::new(),
            waypoint: None,
            pods: Vec::new(),
            load_ip: Ipv4Addr::LOCALHOST,
            capture,
        };
        issue_identities(&in_mesh(chain()), &topology, dir.path()).unwrap();
        let files = IdentityFiles::new(dir.path());
        (dir, files)
    }

    fn pems(path: &Path) -> Vec<Pem> {
        Pem::iter_from_buffer(&fs::read(path).unwrap()).map(Result::unwrap).collect()
    }

    #[test]
    fn a_leaf_has_no_subject_and_one_critical_name_its_spiffe_id() {
        let (_dir, files) = issued(Capture::Explicit);
        let pems = pems(&files.chain("client"));
        let leaf = pems[0].parse_x509().unwrap();
        let names = leaf.subject_alternative_name().unwrap().unwrap();
        assert_eq!(leaf.subject().iter().count(), 0);
        assert!(names.critical);
        assert_eq!(
            names.value.general_names,
            [GeneralName::URI("spiffe://cluster.local/ns/default/sa/client")]
        );
    }

    #[test]
    fn a_leaf_serves_as_server_and_as_client_and_signs_no_others() {
        let (_dir, files) = issued(Capture::Explicit);
        let pems = pems(&files.chain("server"));
        let leaf = pems[0].parse_x509().unwrap();
        let usage = leaf.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && usage.client_auth);
        assert!(!leaf.is_ca());
    }

    #[test]
    fn a_chain_ends_in_the_authority_that_signed_its_leaf() {
        let (_dir, files) = issued(Capture::Explicit);
        let chain = pems(&files.chain("client"));
        let authority = pems(&files.authority());
        assert_eq!(chain[1].contents, authority[0].contents);
        let authority = authority[0].parse_x509().unwrap();
        assert!(authority.is_ca());
        let leaf = chain[0].parse_x509().unwrap();
        leaf.verify_signature(Some(authority.public_key())).unwrap();
    }

    #[test]
    fn nobody_but_the_sidecars_user_may_read_a_key() {
        let (_dir, files) = issued(Capture::Explicit);
        assert_eq!(files.key("client").metadata().unwrap().mode() & 0o777, 0o400);
    }

    #[test]
    fn an_ambient_mesh_has_an_identity_for_each_service_and_for_its_waypoint() {
        let ambient = Ambient { proxy: NodeProxy::Envoy, mtls: Mtls::Strict, waypoint: true };
        let mesh = Deployment { data_plane: DataPlane::Ambient(ambient), ..chain() };
        let topology = on_nodes(in_pods(&mesh, Capture::Explicit), &mesh, 2);
        let dir = tempfile::tempdir().unwrap();
        issue_identities(&mesh, &topology, dir.path()).unwrap();
        let files = IdentityFiles::new(dir.path());
        let has = |name: &str| files.key(name).exists();
        assert_eq!(["client", "server", "waypoint", "node-1"].map(has), [true, true, true, false]);
    }

    #[test]
    fn the_egress_gateway_has_an_identity_and_what_is_outside_of_the_mesh_has_none() {
        let [.., (_, through_gateway)] = ways_out();
        let mesh = leaving(airline(), through_gateway);
        let dir = tempfile::tempdir().unwrap();
        issue_identities(&mesh, &in_pods(&mesh, Capture::Explicit), dir.path()).unwrap();
        let files = IdentityFiles::new(dir.path());
        let has = |name: &str| files.key(name).exists();
        assert_eq!(["flights", "egress", "airline-db"].map(has), [true, true, false]);
    }

    #[test]
    fn a_bare_deployment_has_no_identities() {
        let dir = tempfile::tempdir().unwrap();
        let capture = Capture::Explicit;
        let topology = Topology {
            egress: None,
            nodes: Vec::new(),
            waypoint: None,
            pods: Vec::new(),
            load_ip: Ipv4Addr::LOCALHOST,
            capture,
        };
        issue_identities(&chain(), &topology, dir.path()).unwrap();
        assert!(!IdentityFiles::new(dir.path()).authority().exists());
    }

    #[test]
    fn files_are_given_to_the_uid_that_the_redirect_lets_through() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("SKIP files_are_given_to_the_uid_that_the_redirect_lets_through: not root");
            return;
        }
        let (_dir, files) = issued(Capture::Transparent(Bypass::Uid(1337)));
        assert_eq!(files.key("client").metadata().unwrap().uid(), 1337);
    }
}
