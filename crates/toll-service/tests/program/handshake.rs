//! What a probe tells of a whole TLS handshake: whose certificates are taken by whom, and that it is told apart why not.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::probe::probe_with;
use crate::running::run;

const HOST: &str = "db.airline.example";

/// An authority, and certificates that it issued as PEM files.
struct Authority {
    folder: TempDir,
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

struct Leaf {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        Self::named("airline")
    }

    fn named(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.crt"), certificate.pem()).unwrap();
        Self { folder, certificate, issuer: Issuer::new(params, key) }
    }

    /// A certificate for `name` that ends with `year`.
    fn issue(&self, name: &str, year: i32) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 12, 31);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.folder.path().join(format!("{name}.crt")), certificate.pem()).unwrap();
        fs::write(self.folder.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
        Leaf { certificate, key }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The options of a probe that trusts this authority.
    fn options(&self) -> Vec<String> {
        let options = ["--speak", "tls", "--server-name", HOST, "--authority"];
        options.map(str::to_owned).into_iter().chain([self.file("ca.crt")]).collect()
    }

    /// The options of a probe that also shows the certificate of `client`.
    fn options_of(&self, client: &str) -> Vec<String> {
        let files = [format!("{client}.crt"), format!("{client}.key")].map(|name| self.file(&name));
        let [certificate, key] = files;
        let own = ["--certificate".to_owned(), certificate, "--key".to_owned(), key];
        self.options().into_iter().chain(own).collect()
    }

    /// Takes clients of this authority only.
    fn server(&self, leaf: &Leaf, alpn: &[&[u8]]) -> ServerConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let clients = Arc::new(roots);
        let verifier = WebPkiClientVerifier::builder_with_provider(clients, Arc::clone(&provider));
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_client_cert_verifier(verifier.build().unwrap());
        let key = PrivatePkcs8KeyDer::from(leaf.key.serialize_der()).into();
        let mut config =
            builder.with_single_cert(vec![leaf.certificate.der().clone()], key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config
    }
}

/// What a server saw of a session.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    name: Option<String>,
    alpn: Option<Vec<u8>>,
    client: Option<Vec<u8>>,
}

/// What the probe tells, and what the server saw.
fn probe(server: ServerConfig, options: &[String]) -> (Value, Seen) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let sees = Arc::clone(&seen);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let told = probe_with(&options, move |stream| *sees.lock().unwrap() = serve(server, stream));
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (told, seen)
}

/// Says nothing, and reads until the other end is done.
fn serve(config: ServerConfig, mut stream: TcpStream) -> Seen {
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    let _ = rustls::Stream::new(&mut server, &mut stream).read(&mut [0]);
    Seen {
        name: server.server_name().map(str::to_owned),
        alpn: server.alpn_protocol().map(<[u8]>::to_vec),
        client: server.peer_certificates().map(|chain| chain[0].to_vec()),
    }
}

fn sha256(der: &[u8]) -> String {
    let digest = ::ring::digest::digest(&::ring::digest::SHA256, der);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_server_that_takes_the_certificate_is_told_by_its_own() {
    let authority = Authority::new();
    let (server, client) = (authority.issue(HOST, 2100), authority.issue("flights", 2100));
    let (told, seen) = probe(authority.server(&server, &[]), &authority.options_of("flights"));
    let expected = sha256(server.certificate.der());
    assert_eq!(told, json!({"outcome": "established", "server": expected, "protocol": "TLSv1.3"}));
    assert_eq!(seen.name.as_deref(), Some(HOST));
    assert_eq!(seen.client.as_deref(), Some(&client.certificate.der()[..]));
}

#[test]
fn a_refusal_after_the_handshake_is_no_consent() {
    let authority = Authority::new();
    let server = authority.issue(HOST, 2100);
    let (told, _) = probe(authority.server(&server, &[]), &authority.options());
    assert_eq!(told["outcome"], "closed", "{told}");
    assert!(told["message"].as_str().unwrap().contains("CertificateRequired"), "{told}");
    authority.issue("flights", 2001);
    let (told, _) = probe(authority.server(&server, &[]), &authority.options_of("flights"));
    assert_eq!(told["outcome"], "closed", "{told}");
    assert!(told["message"].as_str().unwrap().contains("CertificateExpired"), "{told}");
}

#[test]
fn what_is_wrong_with_the_servers_certificate_is_told_apart() {
    let (authority, other) = (Authority::new(), Authority::named("other"));
    authority.issue("flights", 2100);
    let wrong = [
        (authority.issue(HOST, 2001), "certificate expired"),
        (authority.issue("db.elsewhere.example", 2100), "certificate of another name"),
        (other.issue(HOST, 2100), "unknown issuer"),
    ];
    for (leaf, message) in wrong {
        let (told, _) = probe(authority.server(&leaf, &[]), &authority.options_of("flights"));
        assert_eq!(told, json!({"outcome": "untrusted", "message": message}));
    }
}

#[test]
fn a_connection_that_ends_without_a_word_is_closed() {
    let authority = Authority::new();
    let options = authority.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let told = probe_with(&options, |mut stream| drop(stream.read(&mut [0; 1024])));
    assert!(["closed", "reset"].contains(&told["outcome"].as_str().unwrap()), "{told}");
}

#[test]
fn the_protocol_inside_of_tls_is_offered() {
    let authority = Authority::new();
    let server = authority.issue(HOST, 2100);
    authority.issue("flights", 2100);
    let mut options = authority.options_of("flights");
    options.extend(["--alpn".to_owned(), "postgresql".to_owned()]);
    let (told, seen) = probe(authority.server(&server, &[b"postgresql"]), &options);
    assert_eq!(
        (told["outcome"].as_str(), seen.alpn),
        (Some("established"), Some(b"postgresql".to_vec()))
    );
}

#[test]
fn a_file_that_holds_no_certificate_is_named() {
    let connect = ["probe", "--connect", "127.0.0.1:1", "--speak", "tls", "--server-name", HOST];
    let output = run(&[&connect[..], &["--authority", "/dev/null"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("cannot read certificates or a key in /dev/null"), "{said}");
}

#[test]
fn a_name_without_tls_is_a_usage_error() {
    let connect = ["probe", "--connect", "127.0.0.1:1", "--server-name", HOST];
    let output = run(&[&connect[..], &["--authority", "/dev/null"]].concat());
    assert_eq!(output.status.code(), Some(2));
}
