//! Plays Mesher for tests, as far as toll knows it: reads the same files and variables, registers, and carries calls from
//! the consumer's side to the provider's with the headers and counters of the real one. It is no Mesher, and what it
//! costs says nothing of one. `PLAYED_FAULT` leaves something out: `pass_by`, `uncounted` or `unmarked`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, fs};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;

type Failure = Box<dyn Error + Send + Sync>;
type Answer = Response<Full<Bytes>>;

/// What is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The consumer dials the application itself, and bears both headers.
    PassBy,
    /// The third request is not counted.
    Uncounted,
    /// The provider adds no header.
    Unmarked,
}

/// Which of its three ports.
#[derive(Debug, Clone, Copy)]
enum Side {
    Consumer,
    Provider,
    Admin,
}

struct Mesher {
    name: String,
    registry: String,
    /// Where the application listens when a request does not say.
    app_port: String,
    fault: Fault,
    client: Client<HttpConnector, Full<Bytes>>,
    /// Endpoints by service, as the registry told.
    cache: Mutex<BTreeMap<String, String>>,
    requests: Mutex<BTreeMap<String, u64>>,
}

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(env::var_os("CHASSIS_CONF_DIR").ok_or("no CHASSIS_CONF_DIR")?);
    let read = |name: &str| -> Result<Value, Failure> {
        Ok(serde_saphyr::from_str(&fs::read_to_string(folder.join(name))?)?)
    };
    let (chassis, own) = (read("chassis.yaml")?, read("microservice.yaml")?);
    let text = |pointer: &str| {
        let value = chassis.pointer(pointer).and_then(Value::as_str);
        value.map(str::to_owned).ok_or_else(|| format!("{pointer} is missing"))
    };
    let name = own.pointer("/servicecomb/service/name").and_then(Value::as_str);
    let ports = env::var("SERVICE_PORTS")?;
    let mesher = Mesher {
        name: name.ok_or("no name")?.to_owned(),
        registry: text("/servicecomb/registry/address")?,
        app_port: ports.strip_prefix("rest:").ok_or("no port of rest")?.to_owned(),
        fault: match env::var("PLAYED_FAULT").as_deref() {
            Ok("pass_by") => Fault::PassBy,
            Ok("uncounted") => Fault::Uncounted,
            Ok("unmarked") => Fault::Unmarked,
            _ => Fault::None,
        },
        client: Client::builder(TokioExecutor::new()).build_http(),
        cache: Mutex::default(),
        requests: Mutex::default(),
    };
    let listen: SocketAddr = text("/servicecomb/protocols/http/listenAddress")?.parse()?;
    let admin: SocketAddr = text("/servicecomb/protocols/rest-admin/listenAddress")?.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(Arc::new(mesher), listen, admin))
}

/// Opens no port before the registry has taken it.
async fn run(mesher: Arc<Mesher>, listen: SocketAddr, admin: SocketAddr) -> Result<(), Failure> {
    if listen.ip().is_unspecified() {
        return Err("0.0.0.0 is refused".into());
    }
    mesher.register(listen).await?;
    let consumer = SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port()));
    let serving = serve(TcpListener::bind(admin).await?, Side::Admin, &mesher);
    let consuming = serve(TcpListener::bind(consumer).await?, Side::Consumer, &mesher);
    tokio::spawn(serving);
    tokio::spawn(consuming);
    if listen != consumer {
        serve(TcpListener::bind(listen).await?, Side::Provider, &mesher).await;
    }
    std::future::pending().await
}

fn serve(
    listener: TcpListener,
    side: Side,
    mesher: &Arc<Mesher>,
) -> impl Future<Output = ()> + Send + 'static {
    let mesher = Arc::clone(mesher);
    async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let mesher = Arc::clone(&mesher);
            let service = service_fn(move |request| {
                let mesher = Arc::clone(&mesher);
                async move { Ok::<_, Infallible>(mesher.answer(side, request).await) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move { drop(connection.await) });
        }
    }
}

impl Mesher {
    async fn register(&self, listen: SocketAddr) -> Result<(), Failure> {
        let existence = format!(
            "/existence?type=microservice&appId=default&serviceName={}&version=0.0.1",
            self.name
        );
        let known = self.tell(Method::GET, &existence, &json!({})).await?;
        let id = known["serviceId"].as_str().ok_or("the registry gives no serviceId")?;
        let endpoints = [format!("rest://{listen}")];
        let instance = json!({"instance": {
            "serviceId": id, "endpoints": endpoints, "hostName": "played", "status": "UP",
        }});
        self.tell(Method::POST, &format!("/microservices/{id}/instances"), &instance).await?;
        Ok(())
    }

    async fn tell(&self, method: Method, path: &str, body: &Value) -> Result<Value, Failure> {
        let uri = format!("{}/v4/default/registry{path}", self.registry);
        let body = Full::new(Bytes::from(body.to_string()));
        let request = Request::builder().method(method).uri(uri).body(body)?;
        let answer = self.client.request(request).await?;
        if !answer.status().is_success() {
            return Err(format!("the registry answered {path} with {}", answer.status()).into());
        }
        Ok(serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?)
    }

    async fn answer(&self, side: Side, request: Request<Incoming>) -> Answer {
        let carried = match side {
            Side::Consumer => self.consume(request).await,
            Side::Provider => self.provide(request).await,
            Side::Admin => return self.admin(request.uri().path()),
        };
        carried.unwrap_or_else(|failure| answer_of(StatusCode::BAD_GATEWAY, failure.to_string()))
    }

    /// Finds the service by the URL's host.
    async fn consume(&self, mut request: Request<Incoming>) -> Result<Answer, Failure> {
        let Some(authority) = request.uri().authority().cloned() else {
            return Ok(answer_of(StatusCode::BAD_REQUEST, "not an absolute form".to_owned()));
        };
        self.count(authority.host());
        let provider = self.find(authority.host()).await?;
        let context = json!({"x-cse-src-microservice": self.name}).to_string();
        let headers = request.headers_mut();
        headers.insert("x-cse-context", HeaderValue::from_str(&context)?);
        headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
        headers.entry("content-type").or_insert(HeaderValue::from_static("application/json"));
        if let Some(port) = authority.port_u16() {
            headers.insert("x-forwarded-port", port.into());
        }
        if self.fault != Fault::PassBy {
            return self.carry(request, &provider).await;
        }
        headers.insert("x-forwarded-host", HeaderValue::from_str(authority.host())?);
        let (ip, _) = provider.split_once(':').ok_or("an endpoint without a port")?;
        let ip = if ip.starts_with("127.") { "127.0.0.1" } else { ip };
        let port = authority.port_u16().ok_or("no port")?;
        self.carry(request, &format!("{ip}:{port}")).await
    }

    /// Dials the application.
    async fn provide(&self, mut request: Request<Incoming>) -> Result<Answer, Failure> {
        let headers = request.headers_mut();
        let port = headers.get("x-forwarded-port").and_then(|port| port.to_str().ok());
        let port = port.unwrap_or(&self.app_port).to_owned();
        if self.fault != Fault::Unmarked {
            let host = headers.get(HOST).cloned().ok_or("no Host")?;
            headers.insert("x-forwarded-host", host);
        }
        self.carry(request, &format!("127.0.0.1:{port}")).await
    }

    async fn carry(&self, request: Request<Incoming>, to: &str) -> Result<Answer, Failure> {
        let (mut head, body) = request.into_parts();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = format!("http://{to}{path}").parse::<Uri>()?;
        let body = Full::new(body.collect().await?.to_bytes());
        let (head, body) = self.client.request(Request::from_parts(head, body)).await?.into_parts();
        Ok(Response::from_parts(head, Full::new(body.collect().await?.to_bytes())))
    }

    async fn find(&self, service: &str) -> Result<String, Failure> {
        if let Some(known) = self.cache.lock().expect("nobody panics with it").get(service) {
            return Ok(known.clone());
        }
        let wanted = json!({"appId": "default", "serviceName": service, "version": "0+"});
        let query = json!({"consumerServiceId": self.name, "services": [{"service": wanted}]});
        let told = self.tell(Method::POST, "/instances/action?type=query&rev=0", &query).await?;
        let endpoint = told.pointer("/services/updated/0/instances/0/endpoints/0");
        let endpoint = endpoint.and_then(Value::as_str).ok_or("no instance")?;
        let address = endpoint.strip_prefix("rest://").ok_or("not rest")?.to_owned();
        self.cache
            .lock()
            .expect("nobody panics with it")
            .insert(service.to_owned(), address.clone());
        Ok(address)
    }

    fn count(&self, service: &str) {
        let mut requests = self.requests.lock().expect("nobody panics with it");
        let seen = requests.values().sum::<u64>();
        let skipped = requests.contains_key("");
        if self.fault == Fault::Uncounted && seen == 2 && !skipped {
            requests.insert(String::new(), 0);
            return;
        }
        *requests.entry(service.to_owned()).or_default() += 1;
    }

    fn admin(&self, path: &str) -> Answer {
        match path {
            "/v1/mesher/health" => answer_of(StatusCode::OK, "{\"status\":\"UP\"}".to_owned()),
            "/v1/mesher/metrics" => answer_of(StatusCode::OK, self.metrics()),
            _ => answer_of(StatusCode::NOT_FOUND, String::new()),
        }
    }

    fn metrics(&self) -> String {
        let requests = self.requests.lock().expect("nobody panics with it");
        let line = |(service, count): (&String, &u64)| {
            let labels = format!("app=\"default\",service_name=\"{service}\",version=\"0.0.1\"");
            format!("requests_total{{{labels}}} {count}\n")
        };
        requests.iter().filter(|(service, _)| !service.is_empty()).map(line).collect()
    }
}

fn answer_of(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer
}
