//! An authority of the tests' own, and what it issues, as PEM.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::{Value, json};

/// An authority that nobody else trusts.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, and who vouches for it.
pub struct Identity {
    pub authority: String,
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("no names");
        params.distinguished_name.push(DnType::CommonName, "the outside");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// A certificate for `name` that is valid now.
    pub fn issue(&self, name: &str) -> Identity {
        self.sign(CertificateParams::new([name.to_owned()]).expect("a DNS name"))
    }

    /// A certificate for `name` that was valid long ago.
    pub fn issue_expired(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a DNS name");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 2, 1);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        let authority = self.certificate.clone();
        Identity { authority, certificate, key: key.serialize_pem() }
    }
}

impl Identity {
    /// Writes it into `folder`, and tells where, as a configuration does.
    pub fn write(&self, folder: &Path, name: &str) -> Value {
        let file = |end: &str, text: &str| -> PathBuf {
            let path = folder.join(format!("{name}.{end}"));
            fs::write(&path, text).expect("room for a certificate");
            path
        };
        let both = format!("{}{}", self.certificate, self.key);
        json!({
            "authority": file("ca.crt", &self.authority), "certificate": file("crt", &self.certificate),
            "key": file("key", &self.key), "identity": file("identity.pem", &both),
        })
    }
}
