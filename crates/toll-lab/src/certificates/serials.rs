//! Tells which certificate has which serial number: a PostgreSQL knows its clients by that alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use x509_parser::pem::parse_x509_pem;

use super::fingerprint;

/// Which certificate each of these files begins with: serial number, as PostgreSQL writes it, and SHA-256.
///
/// # Errors
/// The path of a file that is none.
pub(crate) fn by_serial(
    files: impl IntoIterator<Item = PathBuf>,
) -> Result<BTreeMap<String, String>, PathBuf> {
    files.into_iter().map(|path| serial_and_hash(&path).ok_or(path)).collect()
}

fn serial_and_hash(path: &Path) -> Option<(String, String)> {
    let text = fs::read(path).ok()?;
    let (_, pem) = parse_x509_pem(&text).ok()?;
    let serial = pem.parse_x509().ok()?.serial.to_string();
    Some((serial, fingerprint(&pem.contents)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_known_by_its_serial_number_in_decimals() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.serial_number = Some(rcgen::SerialNumber::from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0]));
        let certificate = params.self_signed(&key).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), certificate.pem() + &certificate.pem()).unwrap();
        let found = by_serial([file.path().to_owned()]).unwrap();
        let hash = fingerprint(certificate.der());
        // 2^64: more than any whole number that a processor has.
        assert_eq!(found, BTreeMap::from([("18446744073709551616".to_owned(), hash)]));
        let missing = PathBuf::from("/nowhere.crt");
        assert_eq!(by_serial([missing.clone()]), Err(missing));
    }
}
