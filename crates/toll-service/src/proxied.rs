//! Connections of the HTTP client: to the host of each request, or all to one explicit proxy, which is then asked in the
//! absolute form (RFC 9112, 3.2.2).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

type ConnectError = <HttpConnector as Service<Uri>>::Error;

/// Connects the client.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    proxy: Option<Uri>,
}

/// A connection, which knows whether a proxy is at its other end.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TokioIo<TcpStream>,
    is_proxied: bool,
}

impl Connector {
    /// To this proxy, or to whom each request is for.
    pub(crate) fn new(proxy: Option<Authority>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        Self { tcp, proxy: proxy.map(root_of) }
    }
}

fn root_of(authority: Authority) -> Uri {
    let uri = Uri::builder().scheme(Scheme::HTTP).authority(authority);
    uri.path_and_query(PathAndQuery::from_static("/")).build().expect("all parts make a URI")
}

impl Service<Uri> for Connector {
    type Response = Link;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Link, ConnectError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.tcp.poll_ready(context)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let is_proxied = self.proxy.is_some();
        let connecting = self.tcp.call(self.proxy.clone().unwrap_or(target));
        Box::pin(async move { Ok(Link { stream: connecting.await?, is_proxied }) })
    }
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_proxied)
    }
}

impl Read for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}
