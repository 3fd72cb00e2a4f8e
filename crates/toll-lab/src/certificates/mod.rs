//! Certificates of a run: of the mesh's workloads, of gateways whose clients speak TLS, and of services outside of the
//! mesh and their callers. Each kind has an authority of its own, whose key is forgotten; that of a mesh whose proxies
//! ask for certificates themselves lives in toll's memory as long as the mesh stands.

pub(crate) mod api;
pub(crate) mod edge;
pub(crate) mod external;
pub(crate) mod mesh;
pub(crate) mod serials;

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

pub use edge::ENTRY_NAME;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use ring::digest::{SHA256, digest};

use crate::error::DataPlaneError;

/// A key and the certificate for it.
struct Identity {
    key: KeyPair,
    certificate: Certificate,
}

fn authority(organization: &str) -> Result<(Certificate, Issuer<'static, KeyPair>), rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate, Issuer::new(params, key)))
}

/// Without a subject, of no authority.
fn leaf_params(names: Vec<SanType>, uses: Vec<ExtendedKeyUsagePurpose>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.subject_alt_names = names;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = uses;
    params
}

fn signed(
    params: CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<Identity, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok(Identity { key, certificate })
}

/// SHA-256, hexadecimal.
fn fingerprint(der: &[u8]) -> String {
    digest(&SHA256, der).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn make_folder(folder: &Path, owner: Option<u32>) -> Result<(), DataPlaneError> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)))
        .and_then(|()| chown(folder, owner, None))
        .map_err(|source| DataPlaneError::WriteIdentity { path: folder.to_owned(), source })
}

fn write(path: &Path, text: &str, owner: Option<u32>) -> Result<(), DataPlaneError> {
    write_private(path, text, owner)
        .map_err(|source| DataPlaneError::WriteIdentity { path: path.to_owned(), source })
}

fn write_private(path: &Path, text: &str, owner: Option<u32>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(path)?;
    file.write_all(text.as_bytes())?;
    chown(path, owner, None)
}

fn failed(service: &str, source: rcgen::Error) -> DataPlaneError {
    DataPlaneError::Certificate { service: service.to_owned(), source }
}
