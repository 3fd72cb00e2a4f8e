//! Real Envoys, and a real nginx, on loopback addresses between a client and an echo server that speak mutual TLS to
//! each other: the sidecar of the client's pod, and what stands behind it on the way out of the mesh.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, ServerConfig,
    ServerConnection, SignatureScheme, StreamOwned,
};

use super::*;
use crate::certificates::external::{ExternalFiles, issue_external};
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::EgressGateway;
use crate::envoy::tls::outbound_sni;
use crate::evidence::Fingerprints;
use crate::fixture::graphs::{airline, leaving, on_loopback, ways_out};
use crate::planes::egress::sni_proxy;
use crate::programs::nginx::status;

const MESSAGE: &[u8; 32] = b"what the database is asked for..";

/// What the database is known as where there are no namespaces.
const HOST: &str = "localhost";

/// `flights` and its sidecar, the egress gateway where there is one, and the database.
struct WayOut {
    deployment: Deployment,
    topology: Topology,
    database: Arc<Echo>,
    files: ExternalFiles,
    issued: Fingerprints,
    proxies: Proxies,
    nginx: Option<Nginx>,
    dir: TempDir,
}

impl WayOut {
    fn up(envoy: &Found, egress: Egress) -> Self {
        Self::up_with(envoy, egress, |_| {})
    }

    /// The same, but something is done to the folder of the run before anything starts.
    fn up_with(envoy: &Found, egress: Egress, tamper: impl Fn(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = listen();
        let deployment = leaving(flights(port(&listener)), egress);
        let topology = addresses(&deployment);
        let day = Duration::from_secs(24 * 3600);
        let issued = issue_external(&deployment, &topology, dir.path(), day, None).unwrap();
        issue_identities(&deployment, &topology, dir.path()).unwrap();
        tamper(dir.path());
        let files = ExternalFiles::new(dir.path());
        let database = Echo::start(&files, listener);
        let nginx = Nginx::start(&deployment, &topology, dir.path());
        let plans = proxy_plans(&deployment, &topology, dir.path()).unwrap();
        let proxies = Proxies::start(envoy, plans, dir.path());
        Self { deployment, topology, database, files, issued, proxies, nginx, dir }
    }

    /// Where `flights` is told that the database is.
    fn told(&self) -> SocketAddrV4 {
        match self.deployment.data_plane.egress() {
            Some(Egress::Bypass) => self.database_itself(),
            _ => self.topology.pods[0].calls["airline-db"],
        }
    }

    fn database_itself(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.topology.pods[1].app_port)
    }

    fn gateway(&self) -> SocketAddrV4 {
        let egress = self.topology.egress.as_ref().unwrap();
        SocketAddrV4::new(egress.ip, egress.port)
    }

    fn sni_proxy(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.topology.egress.as_ref().unwrap().sni_port)
    }

    /// Asks as `flights`, whoever is at that address, for the host of that name.
    fn ask(&self, at: SocketAddrV4, name: &'static str) -> Result<Answer, String> {
        let (chain, key) = (self.files.chain("flights"), self.files.key("flights"));
        let authority = trusted(&self.files.authority());
        let config = ClientConfig::builder()
            .with_root_certificates(authority)
            .with_client_auth_cert(certificates(&chain), private_key(&key));
        exchange(at, name, config.unwrap())
    }

    fn seen(&self) -> Seen {
        let counters = self.proxies.counters();
        let out = counters["flights"].call("airline-db");
        let gateway = counters.get("egress").cloned().unwrap_or_default();
        let on = gateway.call("airline-db");
        Seen {
            sidecar: (out.connections, out.handshakes),
            gateway: (gateway.egress.connections, gateway.egress.handshakes),
            onward: (on.connections, on.handshakes),
            sni_proxy: self.nginx.as_ref().map(|nginx| status::accepted(&nginx.status).unwrap()),
        }
    }
}

/// Connections and handshakes of the mesh's mTLS at each hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    sidecar: (u64, u64),
    gateway: (u64, u64),
    onward: (u64, u64),
    sni_proxy: Option<u64>,
}

/// The part of the airline that finds flights, and the database, at that port.
fn flights(database: u16) -> Deployment {
    let mut deployment = airline();
    deployment.entry = "flights".into();
    deployment.services.retain(|s| ["flights", "airline-db"].contains(&s.name.as_str()));
    deployment.services[1].port = database;
    deployment
}

/// Proxies get an address of their own; the database and the SNI proxy are at 127.0.0.1.
fn addresses(deployment: &Deployment) -> Topology {
    let mut topology = on_loopback(deployment, address_of_its_own(), 14_006);
    topology.pods[1].ip = Ipv4Addr::LOCALHOST;
    if let Some(egress) = &mut topology.egress {
        egress.sni_port = port(&listen());
    }
    topology
}

fn case(name: &str) -> Egress {
    ways_out().into_iter().find(|(case, _)| *case == name).unwrap().1
}

/// The one that is installed, and its module where it has one. Ends with it.
struct Nginx {
    child: Child,
    status: PathBuf,
}

impl Nginx {
    /// None where the deployment has no SNI proxy.
    fn start(deployment: &Deployment, topology: &Topology, dir: &Path) -> Option<Self> {
        let module = nginx().and_then(|nginx| module_of(&nginx.path));
        let plan = sni_proxy::plan(deployment, topology, module.as_deref(), dir).unwrap()?;
        fs::create_dir_all(&plan.folder).unwrap();
        fs::write(dir.join(&plan.config_name), &plan.config).unwrap();
        let mut command = Command::new(nginx().unwrap().path);
        let child = command.args(&plan.args).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while status::accepted(&plan.status_socket).is_err() {
            assert!(Instant::now() < deadline, "nginx is not ready after 20 s:\n{}", plan.config);
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { child, status: plan.status_socket })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// With streams, or a visible skip.
fn nginx() -> Option<Found> {
    let found = match Need::Artifact(Artifact::Nginx).find(Fetch::Forbidden) {
        Err(ArtifactError::Missing(_)) => None,
        found => Some(found.unwrap().remove(0).1),
    };
    let said = found.as_ref().map(|nginx| options_of(&nginx.path)).unwrap_or_default();
    if !said.contains("--with-stream=dynamic") || module_of(&found.as_ref()?.path).is_some() {
        return found.filter(|_| said.contains("--with-stream_ssl_preread_module"));
    }
    None
}

fn skipped() {
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    eprintln!("SKIP {name}: no nginx with streams");
}

fn options_of(nginx: &Path) -> String {
    let output = Command::new(nginx).arg("-V").output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn module_of(nginx: &Path) -> Option<PathBuf> {
    let options = options_of(nginx);
    let folder = options.split_whitespace().find_map(|o| o.strip_prefix("--modules-path="))?;
    let module = Path::new(folder).join("ngx_stream_module.so");
    (options.contains("--with-stream=dynamic") && module.exists()).then_some(module)
}

/// A server outside of the mesh: demands a client's certificate, and answers with what it is sent.
#[derive(Debug, Default)]
struct Echo {
    /// Connections, whether or not anything was said over them.
    accepted: AtomicU32,
    /// Certificates of clients whose sessions came about, SHA-256.
    clients: Mutex<Vec<String>>,
}

impl Echo {
    fn start(files: &ExternalFiles, listener: TcpListener) -> Arc<Self> {
        let host = "db.airline.example";
        let authority = Arc::new(trusted(&files.authority()));
        let verifier = WebPkiClientVerifier::builder(authority).build().unwrap();
        let config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(certificates(&files.chain(host)), private_key(&files.key(host)));
        let (config, echo) = (Arc::new(config.unwrap()), Arc::new(Self::default()));
        let this = Arc::clone(&echo);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                this.accepted.fetch_add(1, Ordering::Relaxed);
                let (this, config) = (Arc::clone(&this), Arc::clone(&config));
                std::thread::spawn(move || this.serve(config, stream.unwrap()));
            }
        });
        echo
    }

    fn serve(&self, config: Arc<ServerConfig>, tcp: TcpStream) {
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), tcp);
        let mut message = [0; MESSAGE.len()];
        while stream.read_exact(&mut message).is_ok() {
            let client = sha256(&stream.conn.peer_certificates().unwrap()[0]);
            self.clients.lock().unwrap().push(client);
            let _ = stream.write_all(&message);
        }
    }

    fn clients(&self) -> Vec<String> {
        self.clients.lock().unwrap().clone()
    }
}

/// What a session with the database gave.
#[derive(Debug)]
struct Answer {
    bytes: Vec<u8>,
    /// SHA-256 of the certificate that was shown.
    server: String,
}

/// Says the message over TLS for that name, and waits for the answer.
fn exchange(at: SocketAddrV4, name: &str, config: ClientConfig) -> Result<Answer, String> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let tcp = TcpStream::connect(at).map_err(|error| error.to_string())?;
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(session, tcp);
    let mut bytes = vec![0; MESSAGE.len()];
    let outcome = stream.write_all(MESSAGE).and_then(|()| stream.read_exact(&mut bytes));
    outcome.map_err(|error| error.to_string())?;
    let server = sha256(&stream.conn.peer_certificates().unwrap()[0]);
    Ok(Answer { bytes, server })
}

fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap).collect()
}

fn private_key(path: &Path) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_file(path).unwrap()
}

fn trusted(authority: &Path) -> RootCertStore {
    let mut store = RootCertStore::empty();
    certificates(authority).into_iter().for_each(|certificate| store.add(certificate).unwrap());
    store
}

fn sha256(certificate: &CertificateDer<'_>) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A client that takes any server for the right one, and shows this certificate, if any.
fn careless(shown: Option<(PathBuf, PathBuf)>) -> ClientConfig {
    let verifier = Arc::new(Anyone);
    let builder = ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier);
    match shown {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            builder.with_client_auth_cert(certificates(&chain), private_key(&key)).unwrap()
        }
    }
}

#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// One session as `flights` has it: it is the database's own and the client's own, whatever stands between.
fn assert_end_to_end(way: &WayOut) -> Seen {
    let answer = way.ask(way.told(), HOST).unwrap();
    assert_eq!(answer.bytes, MESSAGE);
    assert_eq!(answer.server, way.issued.servers["airline-db"]);
    assert_eq!(way.database.clients(), [way.issued.clients["flights"].clone()]);
    way.seen()
}

const NONE: (u64, u64) = (0, 0);
const PLAIN: (u64, u64) = (1, 0);
const WRAPPED: (u64, u64) = (1, 1);

#[test]
fn who_bypasses_the_sidecar_meets_no_proxy() {
    let Some(envoy) = envoy() else { return };
    let way = WayOut::up(&envoy, case("bypass"));
    let expected = Seen { sidecar: NONE, gateway: NONE, onward: NONE, sni_proxy: None };
    assert_eq!(assert_end_to_end(&way), expected);
}

#[test]
fn a_session_passes_the_sidecar_untouched() {
    let Some(envoy) = envoy() else { return };
    let way = WayOut::up(&envoy, case("sidecar"));
    let expected = Seen { sidecar: PLAIN, gateway: NONE, onward: NONE, sni_proxy: None };
    assert_eq!(assert_end_to_end(&way), expected);
}

#[test]
fn a_session_passes_sidecar_and_gateway_untouched() {
    let Some(envoy) = envoy() else { return };
    let way = WayOut::up(&envoy, case("gateway"));
    let expected = Seen { sidecar: PLAIN, gateway: PLAIN, onward: PLAIN, sni_proxy: None };
    assert_eq!(assert_end_to_end(&way), expected);
    let counters = way.proxies.counters();
    let (sidecar, gateway) = (counters["flights"].call("airline-db"), &counters["egress"]);
    // A handshake with certificates of both, and the message.
    assert!(sidecar.sent_bytes > 1000, "{sidecar:?}");
    assert_eq!(sidecar.sent_bytes, gateway.egress.received_bytes);
    assert_eq!(sidecar.sent_bytes, gateway.call("airline-db").sent_bytes);
}

#[test]
fn a_session_passes_inside_of_the_mtls_between_sidecar_and_gateway() {
    let Some(envoy) = envoy() else { return };
    let way = WayOut::up(&envoy, case("gateway-mtls"));
    let expected = Seen { sidecar: WRAPPED, gateway: WRAPPED, onward: PLAIN, sni_proxy: None };
    assert_eq!(assert_end_to_end(&way), expected);
    let gateway = &way.proxies.counters()["egress"];
    let within = gateway.egress.received_bytes;
    assert_eq!(within, gateway.call("airline-db").sent_bytes, "what is inside goes on");
}

#[test]
fn a_session_passes_the_sni_proxy_untouched_as_well() {
    let Some(envoy) = envoy() else { return };
    if nginx().is_none() {
        return skipped();
    }
    let way = WayOut::up(&envoy, case("gateway-sni"));
    let expected = Seen { sidecar: WRAPPED, gateway: WRAPPED, onward: PLAIN, sni_proxy: Some(1) };
    assert_eq!(assert_end_to_end(&way), expected);
    let before = way.seen().sni_proxy;
    assert_eq!(way.seen().sni_proxy, before, "questions do not count");
    // Each hop closes what asks for another name, before the database hears of it.
    let heard = way.database.accepted.load(Ordering::Relaxed);
    way.ask(way.sni_proxy(), "db.other.example").unwrap_err();
    way.ask(way.told(), "db.other.example").unwrap_err();
    assert_eq!(way.database.accepted.load(Ordering::Relaxed), heard);
}

#[test]
fn a_name_that_nobody_registered_is_closed_by_sidecar_and_gateway() {
    let Some(envoy) = envoy() else { return };
    let way = WayOut::up(&envoy, case("gateway"));
    for at in [way.told(), way.gateway()] {
        let error = way.ask(at, "db.other.example").unwrap_err();
        assert!(
            ["unexpected end of file", "Connection reset", "eof"].iter().any(|e| error.contains(e)),
            "{error}"
        );
    }
    assert_eq!(way.database.accepted.load(Ordering::Relaxed), 0);
    assert_eq!(way.seen().sidecar, NONE);
}

#[test]
fn a_gateway_that_lets_only_others_out_closes_what_the_sidecar_sends_it() {
    let Some(envoy) = envoy() else { return };
    let hosts = vec!["*.other.example".to_owned()];
    let gateway = EgressGateway { mtls: false, sni_proxy: false, hosts };
    let way = WayOut::up(&envoy, Egress::Gateway(gateway));
    way.ask(way.told(), HOST).unwrap_err();
    assert_eq!(way.database.accepted.load(Ordering::Relaxed), 0);
    assert_eq!(way.seen().sidecar, PLAIN);
}

#[test]
fn a_gateway_with_mtls_refuses_who_has_no_identity_of_the_mesh() {
    let Some(envoy) = envoy() else { return };
    let way = WayOut::up(&envoy, case("gateway-mtls"));
    let name = outbound_sni(way.topology.pods[1].app_port, HOST);
    let foreign = (way.files.chain("flights"), way.files.key("flights"));
    let nobody = exchange(way.gateway(), &name, careless(None)).unwrap_err();
    assert!(nobody.contains("CertificateRequired"), "{nobody}");
    let foreigner = exchange(way.gateway(), &name, careless(Some(foreign))).unwrap_err();
    assert!(foreigner.contains("UnknownCA"), "{foreigner}");
    let took = way.proxies.counters()["egress"].egress;
    assert_eq!((took.handshakes, took.no_certificate, took.wrong_identity), (0, 1, 1));
    assert_eq!(way.database.clients(), [""; 0]);
    // The same client is let in when the mesh knows it: what is inside then is not TLS, and the database ends it.
    let mesh = IdentityFiles::new(way.dir.path());
    let known = (mesh.chain("flights"), mesh.key("flights"));
    exchange(way.gateway(), &name, careless(Some(known))).unwrap_err();
    assert_eq!(way.proxies.counters()["egress"].egress.handshakes, 1);
}

#[test]
fn a_sidecar_sends_nothing_to_a_gateway_of_another_identity() {
    let Some(envoy) = envoy() else { return };
    let way = WayOut::up_with(&envoy, case("gateway-mtls"), |dir| {
        let mesh = IdentityFiles::new(dir);
        for (of, to) in [
            (mesh.chain("flights"), mesh.chain("egress")),
            (mesh.key("flights"), mesh.key("egress")),
        ] {
            fs::remove_file(&to).unwrap();
            fs::copy(of, to).unwrap();
        }
    });
    way.ask(way.told(), HOST).unwrap_err();
    assert_eq!(way.seen().sidecar.1, 0);
    assert_eq!(way.database.clients(), [""; 0]);
}
