use std::os::unix::fs::MetadataExt;

use tempfile::TempDir;
use x509_parser::pem::Pem;

use super::*;
use crate::fixture::graphs::{airline, customer, in_pods};
use crate::topology::Bypass;

const HOUR: Duration = Duration::from_secs(3600);

struct Issued {
    files: ExternalFiles,
    fingerprints: Fingerprints,
    _dir: TempDir,
}

fn issued(capture: Capture, lifetime: Duration, server: Option<u32>) -> Issued {
    let dir = tempfile::tempdir().unwrap();
    let deployment = airline();
    let topology = in_pods(&deployment, capture);
    let fingerprints =
        issue_external(&deployment, &topology, dir.path(), lifetime, server).unwrap();
    Issued { files: ExternalFiles::new(dir.path()), fingerprints, _dir: dir }
}

fn in_namespaces() -> Issued {
    issued(Capture::Transparent(Bypass::Uid(1337)), HOUR, None)
}

fn pems(path: &Path) -> Vec<Pem> {
    Pem::iter_from_buffer(&fs::read(path).unwrap()).map(Result::unwrap).collect()
}

fn names_of(issued: &Issued, name: &str) -> Vec<String> {
    let chain = pems(&issued.files.chain(name));
    let leaf = chain[0].parse_x509().unwrap();
    let names = leaf.subject_alternative_name().unwrap();
    names.iter().flat_map(|n| &n.value.general_names).map(ToString::to_string).collect()
}

#[test]
fn those_who_call_the_database_have_a_certificate_and_so_has_the_lab_but_nobody_else() {
    let Fingerprints { servers, clients } = in_namespaces().fingerprints;
    assert_eq!(servers.into_keys().collect::<Vec<_>>(), ["airline-db"]);
    let clients: Vec<_> = clients.into_keys().collect();
    assert_eq!(clients, ["bookings", "customers", "flights", "toll"]);
}

#[test]
fn the_server_is_certified_for_the_name_that_callers_know_it_by() {
    assert_eq!(names_of(&in_namespaces(), "db.airline.example"), ["DNSName(db.airline.example)"]);
    let on_loopback = issued(Capture::Explicit, HOUR, None);
    assert_eq!(names_of(&on_loopback, "db.airline.example"), ["DNSName(localhost)"]);
}

#[test]
fn servers_serve_and_clients_call_and_their_common_authority_signed_both() {
    let issued = in_namespaces();
    let authority = pems(&issued.files.authority());
    let usage = |name: &str| {
        let chain = pems(&issued.files.chain(name));
        assert_eq!(chain[1].contents, authority[0].contents);
        let leaf = chain[0].parse_x509().unwrap();
        leaf.verify_signature(Some(authority[0].parse_x509().unwrap().public_key())).unwrap();
        let usage = leaf.extended_key_usage().unwrap().unwrap().value.clone();
        (usage.server_auth, usage.client_auth)
    };
    assert_eq!(usage("db.airline.example"), (true, false));
    assert_eq!(usage("flights"), (false, true));
    assert_eq!(usage(LAB_CLIENT), (false, true));
}

#[test]
fn a_certificate_holds_from_an_hour_ago_until_its_lifetime_has_passed() {
    let lifetime = Duration::from_secs(20);
    let issued = issued(Capture::Explicit, lifetime, None);
    let chain = pems(&issued.files.chain("flights"));
    let validity = chain[0].parse_x509().unwrap().validity().clone();
    let length = validity.not_after.timestamp() - validity.not_before.timestamp();
    assert_eq!(length, 3620);
    assert!(validity.is_valid());
    let left = validity.time_to_expiration().unwrap();
    assert!(left.whole_seconds() <= 20, "{left:?}");
}

#[test]
fn fingerprints_are_those_that_openssl_tells() {
    let issued = in_namespaces();
    let certificate = issued.files.chain("flights");
    let openssl = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(certificate)
        .output();
    let Ok(said) = openssl else {
        eprintln!("SKIP fingerprints_are_those_that_openssl_tells: no openssl");
        return;
    };
    let said = String::from_utf8(said.stdout).unwrap();
    let (_, told) = said.trim().split_once('=').unwrap();
    assert_eq!(issued.fingerprints.clients["flights"], told.replace(':', "").to_lowercase());
}

#[test]
fn an_identity_is_certificates_and_key_in_one_file() {
    let issued = in_namespaces();
    let [chain, key, identity] = [
        issued.files.chain("flights"),
        issued.files.key("flights"),
        issued.files.identity("flights"),
    ]
    .map(|path| fs::read_to_string(path).unwrap());
    assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"), "PKCS #8");
    assert_eq!(identity, format!("{chain}{key}"));
}

#[test]
fn keys_are_read_by_their_owner_only_and_certificates_by_everybody() {
    let issued = in_namespaces();
    let mode = |path: PathBuf| path.metadata().unwrap().mode() & 0o777;
    assert_eq!(mode(issued.files.key("flights")), 0o400);
    assert_eq!(mode(issued.files.identity("db.airline.example")), 0o400);
    assert_eq!(mode(issued.files.authority()), 0o444);
    assert_eq!(mode(issued.files.chain("flights")), 0o444);
}

#[test]
fn the_databases_user_reads_its_own_key_and_no_callers() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("SKIP the_databases_user_reads_its_own_key_and_no_callers: not root");
        return;
    }
    let issued = issued(Capture::Explicit, HOUR, Some(1338));
    let owner = |path: PathBuf| path.metadata().unwrap().uid();
    assert_eq!(owner(issued.files.key("db.airline.example")), 1338);
    assert_eq!(owner(issued.files.identity("db.airline.example")), 1338);
    assert_eq!(owner(issued.files.key("flights")), 0);
    let folder = issued.files.authority().parent().unwrap().to_owned();
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o711);
}

#[test]
fn without_external_services_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let topology = in_pods(&customer(), Capture::Explicit);
    let issued = issue_external(&customer(), &topology, dir.path(), HOUR, None).unwrap();
    assert_eq!(issued, Fingerprints::default());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
