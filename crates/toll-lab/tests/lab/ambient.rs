//! An ambient data plane with real Envoys on one node and on two: its path is proven, and each way of breaking it
//! breaks the proof.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use toll_lab::artifacts::{Artifact, Fetch};
use toll_lab::{
    Ambient, DataPlane, Deployment, Environment, Isolation, Mtls, Nginx, NodeProxy, Program, Proof,
    Service, Traffic,
};

use crate::support::{
    TestLab, carry_out, chain, in_mesh, in_network_of, is_possible, pid_by_argument, service,
    service_program, skip,
};

/// Requests of one proof.
const REQUESTS: u64 = 40;

/// `ingress`, a gateway, hands to three pods of `nginx`.
fn behind_gateway() -> Deployment {
    replicated(3)
}

fn replicated(replicas: usize) -> Deployment {
    let page = Program::Nginx(Nginx { bytes: 615 });
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "bare".into(),
        entry: "ingress".into(),
        services: vec![
            service("ingress", 8080, &["nginx"], Program::Gateway),
            Service { replicas, ..service("nginx", 80, &[], page) },
        ],
        data_plane: DataPlane::Bare,
    }
}

fn ambient(deployment: Deployment, mtls: Mtls) -> Deployment {
    let ambient = Ambient { proxy: NodeProxy::Envoy, mtls, waypoint: false };
    Deployment { name: "ambient".into(), data_plane: DataPlane::Ambient(ambient), ..deployment }
}

fn with_waypoint(deployment: Deployment) -> Deployment {
    let ambient = Ambient { proxy: NodeProxy::Envoy, mtls: Mtls::Strict, waypoint: true };
    Deployment { data_plane: DataPlane::Ambient(ambient), ..deployment }
}

fn on_nodes(deployment: Deployment, nodes: usize) -> Deployment {
    Deployment { nodes, ..deployment }
}

/// A lab whose load sends [`REQUESTS`] at the same time to the address in its plan.
fn lab(isolation: Isolation, service: &Path, envoy: PathBuf, nginx: PathBuf) -> TestLab {
    TestLab::with(isolation, service, |options| {
        let many = format!("for i in $(seq {REQUESTS}); do set -- \"$@\" --connect \"$at\"; done");
        let load = format!("read -r at; set --; {many}; {} probe \"$@\"", service.display());
        options.load = vec!["sh".into(), "-c".into(), load.into()];
        options.artifacts.put(Artifact::Envoy, envoy);
        options.artifacts.put(Artifact::Nginx, nginx);
    })
}

/// A lab at a level, or a visible skip.
macro_rules! lab_at {
    ($level:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        let Ok(envoy) = Artifact::Envoy.find(Fetch::Forbidden) else { skip!("there is no Envoy") };
        let Ok(nginx) = Artifact::Nginx.find(Fetch::Forbidden) else { skip!("there is no nginx") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        lab($level, &service, envoy.path, nginx.path)
    }};
}

/// When a path is broken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    BeforeTheProof,
    InTheWindow,
}

/// The proof of an environment in which `tamper` does something.
fn prove(lab: &TestLab, deployment: &Deployment, when: When, tamper: impl FnOnce(&Pods)) -> Proof {
    let mut environment = lab.up(deployment);
    let pods = Pods { folder: lab.folder.path().join("lab") };
    let mut tamper = Some(tamper);
    let mut at = |now| {
        if now == when {
            tamper.take().expect("each moment comes once")(&pods);
        }
    };
    at(When::BeforeTheProof);
    environment.open_proof().unwrap();
    send_requests(&mut environment);
    at(When::InTheWindow);
    let proof =
        environment.close_proof(Traffic { requests: REQUESTS, ..Traffic::default() }).unwrap();
    environment.down().unwrap();
    proof
}

fn send_requests(environment: &mut Environment) {
    let url = environment.entry_url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let (lines, outcome) = carry_out(environment, at);
    outcome.unwrap();
    let answered = lines.iter().filter(|line| line.contains("\"status\":200")).count();
    assert_eq!(answered as u64, REQUESTS, "{lines:#?}");
}

/// The pods of a lab that has one environment.
struct Pods {
    folder: PathBuf,
}

impl Pods {
    /// Acts in the network of the process with this configuration.
    fn inside<T: Send + 'static>(
        &self,
        config: &str,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        in_network_of(pid_by_argument(&self.folder, config), act)
    }

    fn flush_firewall_of(&self, config: &str) {
        let mut flush = Command::new("nft");
        flush.args(["flush", "ruleset"]);
        assert!(self.inside(config, move || flush.status().unwrap()).success());
    }

    /// The certificate and the key of a service.
    fn identity(&self, service: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let environment = fs::read_dir(&self.folder).unwrap().next().unwrap().unwrap().path();
        let file = |end: &str| fs::read(environment.join(format!("identity/{service}.{end}")));
        let certificate = CertificateDer::from_pem_slice(&file("crt").unwrap()).unwrap();
        (certificate, PrivateKeyDer::from_pem_slice(&file("key").unwrap()).unwrap())
    }
}

fn broken(proof: &Proof) -> Vec<&str> {
    proof.claims.iter().filter(|c| !c.holds).map(|c| c.claim.as_str()).collect()
}

macro_rules! the_path_is_proven {
    ($($name:ident: $level:expr, $deployment:expr;)+) => {$(
        #[test]
        fn $name() {
            let lab = lab_at!($level);
            let proof = prove(&lab, &$deployment, When::BeforeTheProof, |_| ());
            let broken: Vec<_> = proof.claims.iter().filter(|claim| !claim.holds).collect();
            assert!(broken.is_empty(), "{broken:#?}");
        }
    )+};
}

the_path_is_proven! {
    a_gateway_before_nginx_on_one_node_is_proven:
        Isolation::Pods, ambient(behind_gateway(), Mtls::Strict);
    a_gateway_before_nginx_on_two_nodes_is_proven:
        Isolation::Pods, on_nodes(ambient(behind_gateway(), Mtls::Strict), 2);
    a_waypoint_between_gateway_and_nginx_is_proven:
        Isolation::Pods, with_waypoint(behind_gateway());
    a_waypoint_on_two_nodes_is_proven:
        Isolation::Pods, on_nodes(with_waypoint(behind_gateway()), 2);
    a_permissive_mesh_is_proven: Isolation::Pods, ambient(behind_gateway(), Mtls::Permissive);
    services_that_call_each_other_across_nodes_are_proven:
        Isolation::Pods, on_nodes(ambient(two_services(), Mtls::Strict), 2);
    services_that_call_each_other_over_a_waypoint_are_proven:
        Isolation::Pods, on_nodes(with_waypoint(two_services()), 2);
    an_entry_that_calls_nobody_is_proven: Isolation::Pods, ambient(alone(), Mtls::Strict);
    an_ambient_mesh_without_root_is_proven:
        Isolation::Rootless, on_nodes(ambient(behind_gateway(), Mtls::Strict), 2);
    the_same_without_a_mesh_is_proven: Isolation::Pods, on_nodes(behind_gateway(), 2);
    the_same_with_sidecars_is_proven:
        Isolation::Pods, on_nodes(in_mesh(behind_gateway(), Mtls::Strict), 2);
}

fn two_services() -> Deployment {
    chain([9000, 9999], Duration::from_micros(100))
}

/// One service, which the load calls.
fn alone() -> Deployment {
    let mut deployment = two_services();
    deployment.services.truncate(1);
    deployment.services[0].calls.clear();
    deployment
}

#[test]
fn a_captured_pod_without_its_redirect_breaks_the_proof() {
    let lab = lab_at!(Isolation::Pods);
    let deployment = ambient(behind_gateway(), Mtls::Strict);
    let proof = prove(&lab, &deployment, When::BeforeTheProof, |pods| {
        pods.flush_firewall_of("nginx-2.nginx.conf");
    });
    let plaintext = "nginx pods (3) refuse plaintext from outside of the mesh";
    assert_eq!(broken(&proof), [plaintext]);
    let claim = proof.claims.iter().find(|claim| claim.claim == plaintext).unwrap();
    assert_eq!(claim.seen, "nginx-2: an answer with status 200; 2 as expected");
}

/// Permissive: all requests are answered, so that nothing but the proof can tell.
#[test]
fn a_caller_that_its_node_proxy_does_not_capture_breaks_the_proof() {
    let lab = lab_at!(Isolation::Pods);
    let deployment = on_nodes(ambient(two_services(), Mtls::Permissive), 2);
    let proof = prove(&lab, &deployment, When::BeforeTheProof, |pods| {
        pods.flush_firewall_of("client.service.json");
    });
    let broken = broken(&proof);
    assert!(broken[0].starts_with("no plaintext left a pod"), "{broken:?}");
    assert!(broken.contains(&"server: no connection came to its node proxies as plaintext"));
}

#[test]
fn one_request_past_the_node_proxies_breaks_the_proof() {
    let lab = lab_at!(Isolation::Pods);
    let deployment = ambient(behind_gateway(), Mtls::Permissive);
    let proof = prove(&lab, &deployment, When::InTheWindow, |pods| {
        let answer = pods.inside("ingress.envoy.yaml", || {
            let mut stream = TcpStream::connect(pod(1, 80)).unwrap();
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer).unwrap()
        });
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    });
    let broken = broken(&proof);
    assert_eq!(broken.len(), 3, "{broken:?}");
    assert!(broken[0].starts_with("no plaintext left a pod"), "{broken:?}");
    assert!(broken[1].contains("as plaintext") && broken[2].contains("answered exactly"));
}

#[test]
fn a_peer_with_the_identity_of_no_caller_is_refused_and_breaks_the_proof() {
    let lab = lab_at!(Isolation::Pods);
    let deployment = ambient(behind_gateway(), Mtls::Strict);
    let proof = prove(&lab, &deployment, When::InTheWindow, |pods| {
        let [right, wrong] = ["ingress", "nginx"].map(|service| pods.identity(service));
        let at = pod(1, 15008);
        let [right, wrong] = pods.inside("ingress.envoy.yaml", move || {
            [right, wrong].map(|identity| hbone_answers(at, identity))
        });
        assert!(right.is_ok(), "{right:?}");
        assert!(wrong.is_err());
    });
    assert_eq!(broken(&proof), ["nginx: every peer over HBONE has the identity of a caller"]);
}

#[test]
fn a_program_beside_nginx_in_its_pod_breaks_the_proof() {
    let lab = lab_at!(Isolation::Pods);
    let deployment = ambient(behind_gateway(), Mtls::Strict);
    let mut stranger: Option<Child> = None;
    let proof = prove(&lab, &deployment, When::BeforeTheProof, |pods| {
        let sleep = || {
            use std::os::unix::process::CommandExt as _;
            let mut sleep = Command::new("sleep");
            sleep.arg("60").stdout(Stdio::null()).process_group(0).spawn().unwrap()
        };
        stranger = Some(pods.inside("nginx-3.nginx.conf", sleep));
    });
    let mut stranger = stranger.unwrap();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    let claim = "nginx pods (3): no program but its own runs in each of their networks";
    assert_eq!(broken(&proof), [claim]);
}

/// The address of the pod with this place among the services' pods.
fn pod(place: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2 + place)), port)
}

/// Whether a proxy speaks HTTP/2 with a client of this identity.
fn hbone_answers(
    at: SocketAddr,
    (certificate, key): (CertificateDer<'static>, PrivateKeyDer<'static>),
) -> io::Result<()> {
    let verifier = Arc::new(Anyone);
    let builder = ClientConfig::builder().dangerous().with_custom_certificate_verifier(verifier);
    let mut config = builder.with_client_auth_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::IpAddress(at.ip().into());
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let tcp = TcpStream::connect(at)?;
    tcp.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut stream = StreamOwned::new(session, tcp);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")?;
    stream.read_exact(&mut [0])
}

/// Takes any server for the right one.
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
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256]
    }
}

/// Prints how long a proof takes that should take little; the figures are a developer's to judge.
#[test]
#[ignore = "measures; run it alone"]
fn a_proof_of_ninety_pods_costs_little() {
    let lab = lab_at!(Isolation::Pods);
    for deployment in [
        replicated(90),
        in_mesh(replicated(90), Mtls::Strict),
        ambient(replicated(90), Mtls::Strict),
    ] {
        let mut environment = lab.up(&deployment);
        for _ in 0..3 {
            let began = Instant::now();
            environment.open_proof().unwrap();
            let opened = began.elapsed();
            send_requests(&mut environment);
            let began = Instant::now();
            let traffic = Traffic { requests: REQUESTS, ..Traffic::default() };
            let proof = environment.close_proof(traffic).unwrap();
            let (name, closed) = (&deployment.name, began.elapsed());
            let count = proof.claims.len();
            eprintln!("{name}: open {opened:.0?}, close {closed:.0?}, {count} claims");
            assert!(proof.holds(), "{:#?}", broken(&proof));
        }
        environment.down().unwrap();
    }
}
