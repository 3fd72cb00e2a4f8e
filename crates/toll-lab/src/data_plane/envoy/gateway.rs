//! Turns a gateway into the configuration of its Envoy, as Istio configures its ingress gateway.
//!
//! It stands in all variants: what differs between a bare one and one in a mesh is the transport socket to
//! what it calls and, with explicit capture, the port there. It terminates no TLS: the load speaks plaintext.

use std::net::SocketAddrV4;
use std::path::Path;

use serde_json::Value;

use super::Place;
use super::bootstrap::{ANY_ADDRESS, INBOUND_PLAINTEXT, bootstrap};
use super::call::Call;
use super::listener::{self, Direction};
use super::tls::Protocol;
use crate::data_plane::identity::IdentityFiles;
use crate::data_plane::{Capture, DataPlaneError, PodAddresses};

/// The Envoy of one gateway pod.
#[derive(Debug)]
pub(super) struct Gateway<'a> {
    pod: &'a PodAddresses,
    call: Call<'a>,
    capture: Capture,
    /// None outside of a mesh.
    identities: Option<IdentityFiles>,
}

impl<'a> Gateway<'a> {
    /// Looks up where the gateway sends to.
    ///
    /// # Errors
    /// When the topology lacks that service, or there is not exactly one that speaks HTTP.
    pub(super) fn new(at: Place<'a>) -> Result<Self, DataPlaneError> {
        let unroutable = || DataPlaneError::GatewayRoute { gateway: at.service.name.clone() };
        let [callee] = at.service.calls.as_slice() else { return Err(unroutable()) };
        let call = Call::new(at, callee)?;
        if call.protocol != Protocol::Http {
            return Err(unroutable());
        }
        let meshed = at.deployment.data_plane.has_sidecars();
        let identities = meshed.then(|| IdentityFiles::new(at.dir));
        Ok(Self { pod: at.pod, call, capture: at.topology.capture, identities })
    }

    /// The whole configuration.
    pub(super) fn bootstrap(&self, admin_socket: &Path) -> Value {
        bootstrap(admin_socket, vec![self.listener()], vec![self.cluster()])
    }

    fn listener(&self) -> Value {
        let ip = match self.capture {
            Capture::Transparent(_) => ANY_ADDRESS,
            Capture::Explicit => self.pod.ip,
        };
        let address = SocketAddrV4::new(ip, self.pod.app_port);
        let route = listener::route_with_retries(&self.call.cluster_name());
        let host = listener::virtual_host(self.call.callee, &["*".to_owned()], route);
        let manager =
            listener::http_connection_manager(Direction::Edge, INBOUND_PLAINTEXT, vec![host]);
        let chain = listener::open_chain(manager);
        listener::listener(
            &address.to_string().replace(':', "_"),
            Direction::Edge,
            address,
            vec![chain],
        )
    }

    fn cluster(&self) -> Value {
        match &self.identities {
            None => self.call.plaintext_cluster(),
            Some(files) => self.call.mesh_cluster(&self.pod.service, self.capture, files),
        }
        .build()
    }
}
