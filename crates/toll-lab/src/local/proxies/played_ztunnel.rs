//! A program that plays ztunnel: it takes its pods over ZDS, gets their certificates of Istio's certificate API and of
//! nowhere else, and carries the pods' connections in HBONE with them. It follows ztunnel's sources; no ztunnel could
//! be had. Each connection has a TLS session of its own.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, getsockopt, setsockopt, socket, sockopt,
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, split};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::certificates::api::tests::{PlayedClient, Taken, hbone};
use crate::certificates::mesh::spiffe_id;
use crate::planes::ambient::ztunnel::messages::Payload;
use crate::planes::ambient::ztunnel::zds::tests::FakeZtunnel;
use crate::planes::ambient::ztunnel::{METRICS, READINESS};
use crate::topology::{HBONE_PORT, INBOUND_PORT, OUTBOUND_PORT};

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// It shows the authority no token.
    NoToken,
    /// It speaks for all pods with the certificate of one service, and takes it from its like.
    WrongIdentity,
    /// It goes on with certificates that have expired.
    Expired,
    /// It asks for a certificate again whenever its metrics are read.
    Rotates,
}

impl Fault {
    const ALL: [Self; 5] =
        [Self::None, Self::NoToken, Self::WrongIdentity, Self::Expired, Self::Rotates];

    /// By the variable that its script sets.
    fn of_this_process() -> Self {
        let said = env::var("TOLL_FAULT").unwrap_or_default();
        Self::ALL.into_iter().find(|fault| format!("{fault:?}") == said).unwrap_or(Self::None)
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// What all pods of the node have in common.
struct Node {
    fault: Fault,
    /// Services by the addresses of their pods.
    services: BTreeMap<IpAddr, String>,
    /// The waypoints of services that have one, by name and address.
    waypoints: BTreeMap<String, (String, Ipv4Addr)>,
    /// Who may call a service that has a policy.
    callers: BTreeMap<String, Vec<String>>,
    counts: Mutex<BTreeMap<String, u64>>,
}

/// A pod that it carries.
#[derive(Clone)]
struct Pod {
    node: Arc<Node>,
    service: String,
    network: Arc<OwnedFd>,
    acceptor: TlsAcceptor,
    certificate: Arc<Taken>,
}

/// Never returns.
pub(super) fn play() {
    let fault = Fault::of_this_process();
    let zds = FakeZtunnel::hello(Path::new(&variable("INPOD_UDS")));
    let mut given = Vec::new();
    while let (Some(Payload::Add(add)), mut networks) = zds.receive() {
        let info = add.workload_info.unwrap();
        given.push((info.service_account, Arc::new(networks.remove(0))));
        zds.answer("");
    }
    zds.answer("");
    let client = authority(fault);
    let node = Arc::new(Node::read(&variable("LOCAL_XDS_PATH"), fault));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _guard = runtime.enter();
    for (service, network) in given {
        Pod::new(&node, &client, service, network).serve();
    }
    let readings = Arc::clone(&node);
    let metrics = move || {
        if fault == Fault::Rotates {
            client.ask(&spiffe_id(readings.services.values().next().unwrap())).unwrap();
        }
        readings.metrics()
    };
    thread::spawn(move || answer(METRICS, metrics));
    answer(READINESS, || "ready\n".to_owned());
}

/// As ztunnel's configuration names it.
fn authority(fault: Fault) -> PlayedClient {
    let address = variable("CA_ADDRESS");
    let at = address.strip_prefix("https://").expect("TLS").parse().unwrap();
    let root = fs::read_to_string(variable("CA_ROOT_CA")).unwrap();
    let token = fs::read_to_string(variable("AUTH_TOKEN")).unwrap();
    let token = (fault != Fault::NoToken).then_some(token);
    let validity = if fault == Fault::Expired { 1 } else { 86_400 };
    PlayedClient { at, root, token, validity }
}

impl Node {
    fn read(path: &str, fault: Fault) -> Self {
        let config: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let services = list(&config["workloads"]).into_iter().map(|workload| {
            (text(&workload["workloadIps"][0]).parse().unwrap(), text(&workload["serviceAccount"]))
        });
        let callers = list(&config["policies"]).into_iter().map(|policy| {
            let accounts = list(&policy["rules"][0][0][0]["serviceAccounts"]);
            let accounts = accounts.iter().map(|account| text(&account["serviceAccount"]));
            let name = text(&policy["name"]);
            (name.strip_prefix("callers-of-").unwrap().to_owned(), accounts.collect())
        });
        let services: BTreeMap<IpAddr, String> = services.collect();
        let waypoints = list(&config["workloads"]).into_iter().filter_map(|workload| {
            let at = workload["waypoint"]["destination"].as_str()?;
            let at: Ipv4Addr = at.strip_prefix('/').unwrap().parse().unwrap();
            Some((text(&workload["serviceAccount"]), (services[&IpAddr::V4(at)].clone(), at)))
        });
        let (waypoints, callers) = (waypoints.collect(), callers.collect());
        Self { fault, services, waypoints, callers, counts: Mutex::default() }
    }

    fn permits(&self, service: &str, peer: Option<&str>) -> bool {
        let callers = self.callers.get(service);
        let is_caller = |peer| {
            callers.is_some_and(|callers| callers.iter().any(|caller| spiffe_id(caller) == peer))
        };
        callers.is_none() || self.fault == Fault::WrongIdentity || peer.is_some_and(is_caller)
    }

    fn count(&self, metric: &str, reporter: &str, (from, to): (&str, &str), by: u64) {
        let policy = if from == "unknown" { "unknown" } else { "mutual_tls" };
        let line = format!(
            "istio_tcp_{metric}_total{{reporter=\"{reporter}\",source_principal=\"{from}\",\
             destination_principal=\"{to}\",connection_security_policy=\"{policy}\"}}"
        );
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(line).or_default() += by;
    }

    fn metrics(&self) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(line, count)| format!("{line} {count}\n")).collect()
    }
}

impl Pod {
    fn new(
        node: &Arc<Node>,
        client: &PlayedClient,
        service: String,
        network: Arc<OwnedFd>,
    ) -> Self {
        let speaks_for = match node.fault {
            Fault::WrongIdentity => node.services.values().last().unwrap(),
            _ => &service,
        };
        let certificate = insist(client, speaks_for);
        if node.fault == Fault::Expired {
            certificate.await_expiry();
        }
        let acceptor = Arc::new(hbone::server(&certificate)).into();
        let certificate = Arc::new(certificate);
        Self { node: Arc::clone(node), service, network, acceptor, certificate }
    }

    fn serve(self) {
        let (out, plain, tunnels) = (self.clone(), self.clone(), self.clone());
        self.listen(OUTBOUND_PORT, move |stream| out.clone().go_out(stream));
        self.listen(INBOUND_PORT, move |stream| plain.clone().come_in(stream));
        self.listen(HBONE_PORT, move |stream| tunnels.clone().take_tunnel(stream));
    }

    fn listen<F>(&self, port: u16, act: impl Fn(tokio::net::TcpStream) -> F + Send + 'static)
    where
        F: Future<Output = Option<()>> + Send + 'static,
    {
        let listener =
            inside(&self.network, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap());
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(act(stream));
            }
        });
    }

    /// A socket of the pod's that the redirect lets through.
    async fn connect(&self, to: SocketAddrV4) -> Option<tokio::net::TcpStream> {
        let network = Arc::clone(&self.network);
        let mark: u32 = variable("PACKET_MARK").parse().unwrap();
        let connect = move || {
            inside(&network, || {
                let flags = SockFlag::SOCK_CLOEXEC;
                let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
                setsockopt(&socket, sockopt::Mark, &mark).unwrap();
                connect(socket.as_raw_fd(), &SockaddrIn::from(to)).ok()?;
                Some(TcpStream::from(socket))
            })
        };
        let stream = tokio::task::spawn_blocking(connect).await.unwrap()?;
        stream.set_nonblocking(true).ok()?;
        tokio::net::TcpStream::from_std(stream).ok()
    }

    async fn go_out(self, stream: tokio::net::TcpStream) -> Option<()> {
        let to = original(&stream);
        let Some(callee) = self.node.services.get(&IpAddr::V4(*to.ip())) else {
            let other = self.connect(to).await?;
            return join(stream, other, |_| ()).await;
        };
        let direct = (callee.clone(), *to.ip());
        let (callee, hop) = self.node.waypoints.get(callee).unwrap_or(&direct);
        let socket = self.connect(SocketAddrV4::new(*hop, HBONE_PORT)).await?;
        let peer = match self.node.fault {
            Fault::WrongIdentity => self.certificate.identity(),
            _ => spiffe_id(callee),
        };
        let connector = TlsConnector::from(Arc::new(hbone::client(&self.certificate, peer)));
        let name = IpAddr::V4(*to.ip()).into();
        let tls = connector.connect(name, socket).await.map_err(|e| eprintln!("{e}")).ok()?;
        let executor = TokioExecutor::new();
        let (mut requests, connection) =
            hyper::client::conn::http2::handshake(executor, TokioIo::new(tls)).await.ok()?;
        tokio::spawn(connection);
        let request = Request::connect(to.to_string()).body(Empty::<Bytes>::new()).unwrap();
        let answer = requests.send_request(request).await.ok()?;
        let ends = (&self.certificate.identity()[..], &spiffe_id(callee)[..]);
        self.node.count("connections_opened", "source", ends, 1);
        if answer.status() != StatusCode::OK {
            return None;
        }
        join(stream, TokioIo::new(hyper::upgrade::on(answer).await.ok()?), |_| ()).await
    }

    async fn come_in(self, stream: tokio::net::TcpStream) -> Option<()> {
        let own = spiffe_id(&self.service);
        if !self.node.permits(&self.service, None) || self.node.callers.contains_key(&self.service)
        {
            return None;
        }
        let to = self.connect(original(&stream)).await?;
        self.node.count("connections_opened", "destination", ("unknown", &own), 1);
        let count =
            |bytes| self.node.count("received_bytes", "destination", ("unknown", &own), bytes);
        join(stream, to, count).await
    }

    async fn take_tunnel(self, stream: tokio::net::TcpStream) -> Option<()> {
        let tls = self.acceptor.accept(stream).await.map_err(|e| eprintln!("{e}")).ok()?;
        let peer = hbone::peer(tls.get_ref().1);
        let open = service_fn(move |request| {
            let (pod, peer) = (self.clone(), peer.clone());
            async move { pod.open(request, &peer).await }
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.serve_connection(TokioIo::new(tls), open).await.ok()
    }

    async fn open(
        &self,
        request: Request<Incoming>,
        peer: &str,
    ) -> Result<Response<Empty<Bytes>>, hyper::Error> {
        let mut answer = Response::new(Empty::new());
        let to = request.uri().authority().and_then(|to| to.as_str().parse().ok());
        let is_tunnel = *request.method() == Method::CONNECT;
        if !is_tunnel || !self.node.permits(&self.service, Some(peer)) {
            *answer.status_mut() = StatusCode::UNAUTHORIZED;
            return Ok(answer);
        }
        let own = spiffe_id(&self.service);
        self.node.count("connections_opened", "destination", (peer, &own), 1);
        let Some(stream) = self.connect(to.unwrap()).await else {
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(answer);
        };
        tokio::spawn(async move {
            let tunnel = hyper::upgrade::on(request).await.ok()?;
            join(TokioIo::new(tunnel), stream, |_| ()).await
        });
        Ok(answer)
    }
}

/// Without its certificates it is never ready, as ztunnel, which asks again and again.
fn insist(client: &PlayedClient, service: &str) -> Taken {
    loop {
        match client.ask(&spiffe_id(service)) {
            Ok(taken) => return taken,
            Err(refused) => eprintln!("{refused}"),
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// On a thread that ends with it: the network is the thread's.
fn inside<T: Send>(network: &OwnedFd, act: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        setns(network, CloneFlags::CLONE_NEWNET).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

/// Where a redirected connection was to go.
fn original(stream: &tokio::net::TcpStream) -> SocketAddrV4 {
    let to = getsockopt(stream, sockopt::OriginalDst).unwrap();
    let (ip, port) = (u32::from_be(to.sin_addr.s_addr), u16::from_be(to.sin_port));
    SocketAddrV4::new(ip.into(), port)
}

/// Carries bytes both ways until both ends have ended; `count` is told of those of `one`.
async fn join(
    one: impl AsyncRead + AsyncWrite,
    other: impl AsyncRead + AsyncWrite,
    count: impl Fn(u64),
) -> Option<()> {
    let ((mut from_one, mut to_one), (mut from_other, mut to_other)) = (split(one), split(other));
    let there = async {
        let mut bytes = vec![0; 16 * 1024];
        loop {
            let length = from_one.read(&mut bytes).await.unwrap_or(0);
            count(length as u64);
            if length == 0 || to_other.write_all(&bytes[..length]).await.is_err() {
                return to_other.shutdown().await.ok();
            }
            let _ = to_other.flush().await;
        }
    };
    let back = async {
        let _ = copy(&mut from_other, &mut to_one).await;
        to_one.shutdown().await.ok()
    };
    tokio::join!(there, back).0
}

/// Gives everybody who asks the same.
fn answer((port, path): (u16, &str), body: impl Fn() -> String) {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
    for mut stream in listener.incoming().map(Result::unwrap) {
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).unwrap();
        let known = request[..length].starts_with(format!("GET {path} ").as_bytes());
        let (status, body) = (if known { "200 OK" } else { "404 Not Found" }, body());
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).unwrap();
    }
}
