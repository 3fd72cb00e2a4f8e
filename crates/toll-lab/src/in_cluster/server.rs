//! The HTTP server of toll's own pods: who may ask, and which role answers what.

use std::convert::Infallible;
use std::env;
use std::net::Ipv4Addr;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::driver::Driver;
use super::exchange::{Question, Reply};
use super::load::Load;
use super::node::Node;
use super::protocol::{Clock, PORT, TOKEN_VARIABLE};

/// What a pod of toll's own is there for.
#[derive(Debug)]
pub(super) enum Role {
    Driver,
    /// With the program that it starts the load engine and probes of.
    Load(String),
    Node,
}

impl Role {
    pub(super) fn of(arguments: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["driver"] => Ok(Self::Driver),
            ["load", program] => Ok(Self::Load((*program).to_owned())),
            ["node"] => Ok(Self::Node),
            _ => Err("expected `driver`, `load PROGRAM` or `node`".into()),
        }
    }
}

/// A pod of toll's own.
#[derive(Debug)]
pub(super) struct Pod {
    token: String,
    duty: Duty,
}

#[derive(Debug)]
enum Duty {
    Driver(Arc<Driver>),
    Load(Arc<Load>),
    Node(Arc<Node>),
}

impl Pod {
    /// What the environment and the arguments say it is.
    pub(super) fn new(role: Role) -> Result<Self, String> {
        let token = env::var(TOKEN_VARIABLE).map_err(|_| format!("{TOKEN_VARIABLE} is not set"))?;
        let duty = match role {
            Role::Driver => Duty::Driver(Arc::new(Driver::from_environment(token.clone())?)),
            Role::Load(program) => Duty::Load(Arc::new(Load::new(program))),
            Role::Node => Duty::Node(Arc::new(Node::open().map_err(|error| error.to_string())?)),
        };
        Ok(Self { token, duty })
    }

    async fn answer(&self, request: Request<Incoming>) -> Reply {
        let expected = format!("Bearer {}", self.token);
        let given = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes().to_vec());
        if given.as_deref() != Some(expected.as_bytes()) {
            return Reply::refused(StatusCode::UNAUTHORIZED, "the run's token is missing");
        }
        let method = request.method().clone();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        match request.into_body().collect().await {
            Ok(body) => self.reply(Question { method, path, body: body.to_bytes() }).await,
            Err(error) => Reply::refused(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }

    async fn reply(&self, question: Question) -> Reply {
        if question.segments() == ["clock"] {
            return Reply::json(&Clock::now());
        }
        match &self.duty {
            Duty::Driver(driver) => driver.reply(question).await,
            // These wait, for lines or for a probe: not on the threads that serve.
            Duty::Load(load) => {
                let load = Arc::clone(load);
                aside(move || load.reply(&question)).await
            }
            Duty::Node(node) => {
                let node = Arc::clone(node);
                aside(move || node.reply(&question)).await
            }
        }
    }
}

async fn aside(answer: impl FnOnce() -> Reply + Send + 'static) -> Reply {
    let failed = |error: tokio::task::JoinError| {
        Reply::refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
    };
    tokio::task::spawn_blocking(answer).await.unwrap_or_else(failed)
}

/// Serves until the process is ended.
pub(super) fn run(pod: Pod) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(serve(Arc::new(pod))).map_err(|error| error.to_string())
}

async fn serve(pod: Arc<Pod>) -> std::io::Result<()> {
    if let Duty::Driver(driver) = &pod.duty {
        tokio::spawn(Arc::clone(driver).watch_heartbeat());
    }
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let pod = Arc::clone(&pod);
        let service = service_fn(move |request| {
            let pod = Arc::clone(&pod);
            async move { Ok::<_, Infallible>(response(pod.answer(request).await)) }
        });
        tokio::spawn(async move {
            // A peer that breaks off asks again.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn response(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(reply.body));
    *response.status_mut() = reply.status;
    response
}
