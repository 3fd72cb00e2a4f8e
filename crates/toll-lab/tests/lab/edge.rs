//! A gateway whose clients speak TLS, before pods of nginx: what it shows, who believes it, and what is counted.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use toll_lab::artifacts::{Artifact, Fetch, Lacking};
use toll_lab::{
    DataPlane, Deployment, ENTRY_NAME, Environment, Isolation, LabError, Mtls, Nginx, Program,
    Service, Traffic,
};

use crate::support::{
    TestLab, free_ports, in_mesh, in_network_of, is_possible, pid_by_argument, service,
    service_program, skip,
};

/// The page that nginx itself comes with is as long.
const BYTES: usize = 615;

/// Requests of one proof.
const REQUESTS: u64 = 30;

/// `ingress`, which speaks TLS to its clients, hands to so many pods of `nginx`.
fn behind_tls(ports: [u16; 2], replicas: usize) -> Deployment {
    let [ingress, nginx] = ports;
    let page = Program::Nginx(Nginx { bytes: BYTES });
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "bare".into(),
        entry: "ingress".into(),
        services: vec![
            Service { tls: true, ..service("ingress", ingress, &["nginx"], Program::Gateway) },
            Service { replicas, ..service("nginx", nginx, &[], page) },
        ],
        data_plane: DataPlane::Bare,
    }
}

/// What the lab of these tests is made with.
struct Programs {
    service: PathBuf,
    envoy: PathBuf,
    nginx: PathBuf,
}

impl Programs {
    fn found() -> Option<Self> {
        let envoy = Artifact::Envoy.find(Fetch::Forbidden).ok()?.path;
        Some(Self {
            service: service_program()?,
            envoy,
            nginx: Artifact::Nginx.find(Fetch::Forbidden).ok()?.path,
        })
    }

    fn lab(&self, isolation: Isolation) -> TestLab {
        TestLab::with(isolation, &self.service, |options| {
            options.artifacts.put(Artifact::Envoy, self.envoy.clone());
            options.artifacts.put(Artifact::Nginx, self.nginx.clone());
        })
    }
}

/// A lab at a level, or a visible skip.
macro_rules! lab_at {
    ($level:expr) => {{
        let Some(programs) = Programs::found() else {
            skip!("toll-service is not built, or Envoy or nginx is not there")
        };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        programs.lab($level)
    }};
}

/// Where and by whose word a client enters.
#[derive(Clone)]
struct Entry {
    address: SocketAddr,
    ca_pem: String,
    name: &'static str,
}

impl Entry {
    fn of(environment: &Environment) -> Self {
        let url = environment.entry_url();
        let authority = url.trim_start_matches("https://").trim_end_matches('/');
        let address = authority.parse().unwrap();
        Self { address, ca_pem: environment.entry_ca().unwrap(), name: ENTRY_NAME }
    }

    /// Status line and body of one answer on one verified connection.
    fn get(&self) -> io::Result<(String, String)> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.ca_pem.as_bytes()).unwrap();
        roots.add(ca).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from(self.name).unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let tcp = TcpStream::connect(self.address)?;
        tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut stream = StreamOwned::new(session, tcp);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: toll.test\r\nconnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // Envoy closes without a word of TLS.
            Err(e) if e.kind() != io::ErrorKind::UnexpectedEof => return Err(e),
            _ => {}
        }
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Ok((head.lines().next().unwrap().to_owned(), body.to_owned()))
    }
}

/// Acts in the network of the gateway, from which the pods are reached as from the load's.
fn inside<T: Send + 'static>(lab: &TestLab, act: impl FnOnce() -> T + Send + 'static) -> T {
    in_network_of(pid_by_argument(&lab.folder.path().join("lab"), "ingress.envoy.yaml"), act)
}

fn answered(entry: &Entry) -> u64 {
    let is_page =
        |(status, body): &(String, String)| status == "HTTP/1.1 200 OK" && body.len() == BYTES;
    let answers = (0..REQUESTS).map(|_| entry.get().unwrap());
    answers.filter(is_page).count() as u64
}

/// Answers over HTTPS, the path is proven, and nothing is left.
fn answers_and_is_proven(lab: &TestLab, deployment: &Deployment, isolation: Isolation) {
    let mut environment = lab.up(deployment);
    let entry = Entry::of(&environment);
    environment.open_proof().unwrap();
    let count = move || answered(&entry);
    let pages = if isolation == Isolation::Pods { inside(lab, count) } else { count() };
    assert_eq!(pages, REQUESTS);
    let proof =
        environment.close_proof(Traffic { requests: REQUESTS, ..Traffic::default() }).unwrap();
    assert!(proof.holds(), "{proof:#?}");
    environment.down().unwrap();
    assert_eq!(std::fs::read_dir(lab.folder.path().join("lab")).unwrap().count(), 0);
}

#[test]
fn a_gateway_in_a_pod_of_its_own_serves_the_page_of_three_pods_over_https() {
    let lab = lab_at!(Isolation::Pods);
    answers_and_is_proven(&lab, &behind_tls([443, 80], 3), Isolation::Pods);
}

#[test]
fn sidecars_beside_nginx_take_what_a_gateway_with_tls_hands_on() {
    let lab = lab_at!(Isolation::Pods);
    let deployment = in_mesh(behind_tls([443, 80], 3), Mtls::Strict);
    answers_and_is_proven(&lab, &deployment, Isolation::Pods);
}

#[test]
fn on_loopback_sidecars_beside_nginx_take_what_a_gateway_with_tls_hands_on() {
    let lab = lab_at!(Isolation::Loopback);
    let deployment = in_mesh(behind_tls(free_ports(), 1), Mtls::Strict);
    answers_and_is_proven(&lab, &deployment, Isolation::Loopback);
}

/// The load's network cannot be entered by a test that runs threads: readiness and the proof's walk have to do.
#[test]
fn without_root_a_gateway_with_tls_and_nginx_come_up_on_their_low_ports() {
    let lab = lab_at!(Isolation::Rootless);
    let mut environment = lab.up(&in_mesh(behind_tls([443, 80], 2), Mtls::Strict));
    assert_eq!(environment.entry_url(), "https://10.77.0.2:443/");
    environment.open_proof().unwrap();
    let proof = environment.close_proof(Traffic::default()).unwrap();
    assert!(proof.holds(), "{proof:#?}");
    environment.down().unwrap();
}

#[test]
fn only_the_authority_of_this_run_vouches_for_its_entry_and_only_by_its_name() {
    let lab = lab_at!(Isolation::Pods);
    let another_run = lab.up(&behind_tls([443, 80], 1));
    let another_ca = another_run.entry_ca().unwrap();
    another_run.down().unwrap();
    let environment = lab.up(&behind_tls([443, 80], 1));
    let entry = Entry::of(&environment);
    let foreign = Entry { ca_pem: another_ca, ..entry.clone() };
    let misnamed = Entry { name: "other.test", ..entry.clone() };
    let plain = move || {
        let mut stream = TcpStream::connect(entry.address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: toll.test\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer.len()
    };
    let refusals = inside(&lab, move || [foreign, misnamed].map(|e| e.get().unwrap_err()));
    let refusals = refusals.map(|error| error.to_string());
    assert!(refusals[0].contains("BadSignature"), "{refusals:?}");
    assert!(refusals[1].contains("not valid for name"), "{refusals:?}");
    assert_eq!(inside(&lab, plain), 0, "plaintext is not answered at the port of TLS");
    environment.down().unwrap();
}

#[test]
fn a_lab_without_nginx_says_so_before_anything_starts() {
    let lab = TestLab::with(Isolation::Loopback, Path::new("true"), |options| {
        options.artifacts.put(Artifact::Envoy, "envoy");
    });
    let error = lab.lab.up(&behind_tls([8443, 8080], 1), &lab.logs()).unwrap_err();
    assert!(matches!(error, LabError::Lacking(Lacking(Artifact::Nginx))), "{error}");
    assert!(error.help().unwrap().contains("apt-get install nginx-light"));
}
