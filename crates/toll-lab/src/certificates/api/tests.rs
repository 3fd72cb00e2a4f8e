//! The API against a client that asks as ztunnel's sources do: no ztunnel could be had.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::SystemTime;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use prost::Message;
use rcgen::string::Ia5String;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer, X509Certificate};

pub(crate) mod hbone;

use super::*;
use crate::certificates::mesh::{IdentityFiles, issue_identities, spiffe_id};
use crate::fixture::graphs::in_pods;
use crate::fixture::{chain, in_mesh};
use crate::topology::Capture;

/// What ztunnel knows of the authority.
#[derive(Clone)]
pub(crate) struct PlayedClient {
    pub(crate) at: SocketAddr,
    /// PEM.
    pub(crate) root: String,
    pub(crate) token: Option<String>,
    /// How long certificates are to last, seconds.
    pub(crate) validity: i64,
}

/// A certificate that it took, and its key.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) leaf: CertificateDer<'static>,
    pub(crate) root: CertificateDer<'static>,
    pub(crate) key: KeyPair,
}

fn roots(of: impl IntoIterator<Item = CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    of.into_iter().for_each(|root| store.add(root).unwrap());
    store
}

fn pem(text: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| error.to_string())
}

impl PlayedClient {
    /// A certificate of `identity`, which must be one: ztunnel takes no other, nor a chain without a root.
    pub(crate) fn ask(&self, identity: &str) -> Result<Taken, String> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(Ia5String::try_from(identity).unwrap())];
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = CertificateRequest::on_behalf_of(identity, request);
        let request = CertificateRequest { validity_duration: self.validity, ..request };
        let chain = self.post(METHOD, &request)?;
        let [leaf, root] = &chain.cert_chain[..] else { return Err(format!("{chain:?}")) };
        let taken = Taken { leaf: pem(leaf)?, root: pem(root)?, key };
        match taken.identity() == identity {
            true => taken.check(SystemTime::now()).map(|()| taken),
            false => Err(format!("expected {identity}, got {}", taken.identity())),
        }
    }

    fn post(&self, path: &str, message: &impl Message) -> Result<CertificateResponse, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let provider = Arc::new(ring::default_provider());
            let mut config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots([pem(&self.root)?]))
                .with_no_client_auth();
            config.alpn_protocols = vec![b"h2".to_vec()];
            let stream = TcpStream::connect(self.at).await.map_err(|e| e.to_string())?;
            let name = ServerName::from(self.at.ip());
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
            let stream = TokioIo::new(stream.map_err(|e| e.to_string())?);
            let (mut requests, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            let mut request = Request::post(format!("https://{}{path}", self.at))
                .header(CONTENT_TYPE, "application/grpc")
                .header("clusterid", "Kubernetes");
            if let Some(token) = &self.token {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            let request = request.body(Full::<Bytes>::new(grpc::framed(message))).unwrap();
            let answer = requests.send_request(request).await.unwrap();
            read(answer).await
        })
    }
}

async fn read(answer: hyper::Response<Incoming>) -> Result<CertificateResponse, String> {
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap();
    let headers = body.trailers().filter(|_| !head.headers.contains_key("grpc-status"));
    let headers = headers.unwrap_or(&head.headers);
    let text = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap());
    match text("grpc-status") {
        "0" => Ok(CertificateResponse::decode(&body.to_bytes()[5..]).unwrap()),
        status => Err(format!("{status}: {}", text("grpc-message"))),
    }
}

impl Taken {
    pub(crate) fn identity(&self) -> String {
        hbone::identity(&self.leaf)
    }

    /// Returns once nobody takes it any more.
    pub(crate) fn await_expiry(&self) {
        while self.check(SystemTime::now()).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether a peer would take it at this time.
    fn check(&self, at: SystemTime) -> Result<(), String> {
        let verifier = hbone::callers(&self.root);
        let since = UnixTime::since_unix_epoch(at.duration_since(SystemTime::UNIX_EPOCH).unwrap());
        let verified = verifier.verify_client_cert(&self.leaf, &[], since);
        verified.map(drop).map_err(|error| error.to_string())
    }
}

/// The API of a mesh of `client` and `server`, for one node.
struct Mesh {
    api: CertificateApi,
    client: PlayedClient,
    _folder: TempDir,
}

impl Mesh {
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let deployment = in_mesh(chain());
        let topology = in_pods(&deployment, Capture::Explicit);
        let authority = issue_identities(&deployment, &topology, folder.path()).unwrap().unwrap();
        let root = IdentityFiles::new(folder.path()).authority();
        let root = std::fs::read_to_string(root).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let token = new_token().unwrap();
        let api = CertificateApi::serve(authority, &token, vec![listener]).unwrap();
        Self {
            api,
            client: PlayedClient { at, root, token: Some(token), validity: 86_400 },
            _folder: folder,
        }
    }

    fn refused(&self) -> String {
        self.api.served(0).refused.unwrap_or_default()
    }
}

#[test]
fn a_service_gets_a_certificate_of_its_identity_that_holds_for_a_day() {
    let mesh = Mesh::up();
    let taken = mesh.client.ask(&spiffe_id("client")).unwrap();
    let (_, leaf) = X509Certificate::from_der(&taken.leaf).unwrap();
    let validity = leaf.validity();
    assert_eq!((validity.not_after - validity.not_before).unwrap().whole_hours(), 24);
    assert_eq!(pem(&mesh.client.root).unwrap(), taken.root);
    assert_eq!(mesh.api.served(0), Served { issued: 1, refused: None });
}

#[test]
fn a_certificate_has_the_key_of_the_request() {
    let mesh = Mesh::up();
    let taken = mesh.client.ask(&spiffe_id("server")).unwrap();
    let (_, leaf) = X509Certificate::from_der(&taken.leaf).unwrap();
    let key = leaf.public_key().subject_public_key.data.to_vec();
    assert_eq!(key, taken.key.public_key_raw());
}

#[test]
fn a_certificate_is_of_no_use_after_its_day() {
    let taken = Mesh::up().client.ask(&spiffe_id("client")).unwrap();
    let hours = |hours: u64| SystemTime::now() + Duration::from_secs(hours * 3600);
    assert_eq!(taken.check(hours(23)), Ok(()));
    let expired = taken.check(hours(25)).unwrap_err();
    assert!(expired.contains("certificate expired"), "{expired}");
}

#[test]
fn an_identity_that_the_run_does_not_know_is_refused() {
    let mesh = Mesh::up();
    for stranger in ["spiffe://cluster.local/ns/other/sa/client", &spiffe_id("stranger")] {
        let refused = mesh.client.ask(stranger).unwrap_err();
        assert_eq!(refused, format!("7: this run has no {stranger}"));
    }
    assert_eq!(mesh.api.served(0).issued, 0);
}

#[test]
fn a_request_without_the_token_is_refused() {
    let mesh = Mesh::up();
    let without = PlayedClient { token: None, ..mesh.client.clone() };
    let refused = without.ask(&spiffe_id("client")).unwrap_err();
    assert_eq!(refused, "16: it came without a token");
    let other = PlayedClient { token: Some(new_token().unwrap()), ..mesh.client.clone() };
    let refused = other.ask(&spiffe_id("client")).unwrap_err();
    assert_eq!(refused, "16: it came with another token");
    assert_eq!((mesh.api.served(0).issued, &mesh.refused()[..]), (0, "it came with another token"));
}

#[test]
fn a_request_that_says_for_nobody_is_refused() {
    let mesh = Mesh::up();
    let request = CertificateRequest::on_behalf_of("", String::new());
    let refused = mesh.client.post(METHOD, &request).unwrap_err();
    assert_eq!(refused, "3: it does not say for whom");
}

#[test]
fn what_is_no_certificate_request_is_refused() {
    let mesh = Mesh::up();
    let request = CertificateRequest::on_behalf_of(&spiffe_id("client"), "nothing".to_owned());
    let refused = mesh.client.post(METHOD, &request).unwrap_err();
    assert!(refused.starts_with("3: it is no certificate request"), "{refused}");
}

#[test]
fn another_method_is_not_known() {
    let refused = Mesh::up().client.post("/other/Method", &CertificateResponse::default());
    assert_eq!(refused.unwrap_err(), "12: nothing is known of /other/Method");
}

#[test]
fn a_client_of_another_root_goes_away_and_that_is_seen() {
    let mesh = Mesh::up();
    let other = PlayedClient { root: Mesh::up().client.root, ..mesh.client.clone() };
    let refused = other.ask(&spiffe_id("client")).unwrap_err();
    assert!(refused.contains("invalid peer certificate"), "{refused}");
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    while mesh.refused().is_empty() {
        assert!(std::time::Instant::now() < deadline, "the alert was not seen");
        thread::yield_now();
    }
    assert!(mesh.refused().starts_with("TLS: "), "{}", mesh.refused());
}
