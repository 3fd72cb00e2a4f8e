//! Certificates for the tests.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

use crate::Identity;

pub(super) struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for these names or IP addresses.
    pub fn issue(&self, names: &[&str]) -> Identity {
        self.sign(CertificateParams::new(names.iter().map(|n| n.to_string()).collect::<Vec<_>>()))
    }

    /// A certificate of last century.
    pub fn issue_expired(&self, names: &[&str]) -> Identity {
        let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
        self.sign(CertificateParams::new(names).map(|mut params| {
            params.not_before = date_time_ymd(1998, 1, 1);
            params.not_after = date_time_ymd(1999, 1, 1);
            params
        }))
    }

    fn sign(&self, params: Result<CertificateParams, rcgen::Error>) -> Identity {
        let key = KeyPair::generate().unwrap();
        let certificate = params.unwrap().signed_by(&key, &self.issuer).unwrap();
        Identity { chain_pem: certificate.pem(), key_pem: key.serialize_pem() }
    }
}
