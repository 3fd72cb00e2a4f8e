//! Turns the external services of a deployment into certificates: a server's for each, for the name that callers know
//! it by, and a client's for each service that calls one and for the lab. Their authority is not the mesh's, and no
//! proxy has a key of it: a session that shows the server a caller's certificate was not terminated on the way.
//!
//! Fingerprints are SHA-256 over the certificate's DER form, as `openssl x509 -fingerprint -sha256` makes them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use rcgen::{Certificate, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};

use super::{Identity, authority, failed, fingerprint, leaf_params, make_folder, signed, write};
use crate::deployment::{Deployment, External, Service};
use crate::error::DataPlaneError;
use crate::evidence::Fingerprints;
use crate::topology::{Capture, Topology};

/// The name of the lab's own client certificate, among those of the callers.
pub(crate) const LAB_CLIENT: &str = "toll";

/// How long before they were made certificates hold: clocks of clients may be late.
const LEEWAY: Duration = Duration::from_secs(3600);

/// Anybody may pass through the folder to the files of its own.
const PASSABLE: u32 = 0o711;

/// Anybody may read what everybody is shown.
const PUBLIC: u32 = 0o444;

/// Where the certificates of a run's external services are kept.
#[derive(Debug, Clone)]
pub(crate) struct ExternalFiles {
    folder: PathBuf,
}

impl ExternalFiles {
    pub(crate) fn new(run_dir: &Path) -> Self {
        Self { folder: run_dir.join("external") }
    }

    /// The certificate of the authority of all of them.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The certificate and then the authority's. `name` is a server's [`External::host`], a calling service's name
    /// or [`LAB_CLIENT`].
    pub(crate) fn chain(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    /// The private key, PKCS #8.
    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }

    /// Certificates and key in one file, as MongoDB's programs want them.
    pub(crate) fn identity(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.identity.pem"))
    }
}

/// The name by which callers look an external service up, send it as SNI and verify it. Without namespaces nobody
/// can be given a hosts file, so that it is the one name that every machine has.
pub(crate) fn known_as(external: &External, capture: Capture) -> &str {
    match capture {
        Capture::Transparent(_) => &external.host,
        Capture::Explicit | Capture::InCluster => "localhost",
    }
}

/// The external services of a deployment, and by which names they are known.
pub(crate) fn externals(deployment: &Deployment) -> impl Iterator<Item = (&Service, &External)> {
    deployment.services.iter().filter_map(|s| s.external.as_ref().map(|external| (s, external)))
}

/// The external services that `caller` calls, each once.
pub(crate) fn externals_of<'a>(
    deployment: &'a Deployment,
    caller: &'a Service,
) -> impl Iterator<Item = (&'a Service, &'a External)> {
    externals(deployment).filter(|(service, _)| caller.calls.contains(&service.name))
}

/// The services that call an external one.
pub(crate) fn callers(deployment: &Deployment) -> impl Iterator<Item = &Service> {
    deployment.services.iter().filter(|s| externals_of(deployment, s).next().is_some())
}

/// Writes an authority under `dir`, a certificate for each external service and one for each of its callers and for
/// the lab, valid from an hour ago for `lifetime` from now on. Without external services it writes nothing.
///
/// Servers' keys can be read by the user `server` only, or by whoever runs toll when there is none, callers' by the
/// latter. The authority's own key is forgotten.
///
/// # Errors
/// When a certificate cannot be made or a file cannot be written or given to `server`.
pub(crate) fn issue_external(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
    lifetime: Duration,
    server: Option<u32>,
) -> Result<Fingerprints, DataPlaneError> {
    let mut fingerprints = Fingerprints::default();
    if externals(deployment).next().is_none() {
        return Ok(fingerprints);
    }
    let office = Office::open(dir, lifetime)?;
    for (service, external) in externals(deployment) {
        let host = known_as(external, topology.capture);
        let issued = office.issue(&external.host, Some(host), server)?;
        fingerprints.servers.insert(service.name.clone(), issued);
    }
    for name in callers(deployment).map(|caller| caller.name.as_str()).chain([LAB_CLIENT]) {
        let issued = office.issue(name, None, None)?;
        fingerprints.clients.insert(name.to_owned(), issued);
    }
    Ok(fingerprints)
}

/// What issues the certificates of one run.
struct Office {
    files: ExternalFiles,
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    lifetime: Duration,
}

impl Office {
    fn open(dir: &Path, lifetime: Duration) -> Result<Self, DataPlaneError> {
        let files = ExternalFiles::new(dir);
        make_folder(&files.folder, None)?;
        permit(&files.folder, PASSABLE)?;
        let (certificate, issuer) = authority("toll external services")
            .map_err(|source| failed("the authority of external services", source))?;
        let office = Self { files, certificate, issuer, lifetime };
        office.publish(&office.files.authority(), &office.certificate.pem())?;
        Ok(office)
    }

    /// Writes the three files of `name`, a server that is known as `host` or else a client, and gives the certificate's
    /// fingerprint.
    fn issue(
        &self,
        name: &str,
        host: Option<&str>,
        owner: Option<u32>,
    ) -> Result<String, DataPlaneError> {
        let issued = self.leaf(name, host).map_err(|source| failed(name, source))?;
        let chain = format!("{}{}", issued.certificate.pem(), self.certificate.pem());
        let key = issued.key.serialize_pem();
        self.publish(&self.files.chain(name), &chain)?;
        write(&self.files.key(name), &key, owner)?;
        write(&self.files.identity(name), &format!("{chain}{key}"), owner)?;
        Ok(fingerprint(issued.certificate.der()))
    }

    fn publish(&self, path: &Path, text: &str) -> Result<(), DataPlaneError> {
        write(path, text, None)?;
        permit(path, PUBLIC)
    }

    /// With a common name: PostgreSQL's views and MongoDB's log tell clients apart by the subject.
    fn leaf(&self, name: &str, host: Option<&str>) -> Result<Identity, rcgen::Error> {
        let (names, uses) = match host {
            Some(host) => {
                (vec![SanType::DnsName(host.try_into()?)], ExtendedKeyUsagePurpose::ServerAuth)
            }
            None => (Vec::new(), ExtendedKeyUsagePurpose::ClientAuth),
        };
        let mut params = leaf_params(names, vec![uses]);
        params.distinguished_name.push(DnType::CommonName, name);
        let now = since_epoch();
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(LEEWAY);
        params.not_after = epoch + now + self.lifetime;
        signed(params, &self.issuer)
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn permit(path: &Path, mode: u32) -> Result<(), DataPlaneError> {
    let changed: io::Result<()> = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    changed.map_err(|source| DataPlaneError::WriteIdentity { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
