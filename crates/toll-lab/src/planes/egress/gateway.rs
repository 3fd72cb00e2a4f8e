//! Turns the gateway that traffic leaves the mesh through into the configuration of its Envoy: a listener that all
//! sidecars send to, a filter chain for each external service that it lets out, and a cluster for each.
//!
//! Without mTLS it finds the chain by the SNI of the application's own TLS, which it passes on. With mTLS it finds it
//! by the SNI that the sidecar sends, demands the sidecar's certificate, and passes on what is inside: the
//! application's TLS, unread. With an SNI proxy in its pod it hands everything to that. The gateway is Istio's:
//! <https://istio.io/latest/docs/tasks/traffic-management/egress/egress-gateway/>.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::{Value, json};

use crate::certificates::external::externals;
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::{Deployment, EgressGateway};
use crate::envoy::bootstrap::{EGRESS, bootstrap};
use crate::envoy::cluster::Cluster;
use crate::envoy::external::{ExternalCall, by_name};
use crate::envoy::listener::{self, Direction};
use crate::envoy::tls::{self, Protocol};
use crate::error::DataPlaneError;
use crate::topology::{Capture, EgressAddresses, Topology};

/// What leads nowhere; Istio's name for it.
const BLACK_HOLE: &str = "BlackHoleCluster";

/// The Envoy of the egress gateway's pod.
#[derive(Debug)]
pub(super) struct Gateway<'a> {
    pod: &'a EgressAddresses,
    settings: &'a EgressGateway,
    /// What it lets out.
    calls: Vec<ExternalCall<'a>>,
    capture: Capture,
    identities: IdentityFiles,
}

impl<'a> Gateway<'a> {
    /// Looks up what it lets out.
    ///
    /// # Errors
    /// When the topology lacks an external service, or two have one name.
    pub(super) fn new(
        deployment: &'a Deployment,
        settings: &'a EgressGateway,
        topology: &'a Topology,
        pod: &'a EgressAddresses,
        dir: &Path,
    ) -> Result<Self, DataPlaneError> {
        let let_out = externals(deployment).filter(|(_, e)| settings.lets_out(&e.host));
        let calls = let_out.map(|(service, e)| ExternalCall::new(topology, service, e));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        all_have_names_of_their_own(&calls)?;
        let identities = IdentityFiles::new(dir);
        Ok(Self { pod, settings, calls, capture: topology.capture, identities })
    }

    /// The whole configuration.
    pub(super) fn bootstrap(&self, admin_socket: &Path) -> Value {
        let clusters = self.clusters().into_iter().map(Cluster::build).collect();
        bootstrap(admin_socket, vec![self.listener()], clusters)
    }

    fn listener(&self) -> Value {
        let ip = self.capture.proxy_ip(self.pod.ip);
        let address = SocketAddrV4::new(ip, self.pod.port);
        let chains = match self.calls.as_slice() {
            [] => vec![self.dead_end()],
            calls => calls.iter().map(|call| self.chain(call)).collect(),
        };
        let mut listener = listener::listener(EGRESS, Direction::Outbound, address, chains);
        listener["stat_prefix"] = json!(EGRESS);
        by_name(listener)
    }

    fn chain(&self, call: &ExternalCall<'_>) -> Value {
        let filter = listener::tcp_proxy(EGRESS, &call.cluster_name());
        if !self.settings.mtls {
            return listener::named_chain(&[call.host], filter);
        }
        let mut chain = listener::named_chain(&[&call.gateway_sni()], filter);
        chain["transport_socket"] = tls::downstream(&self.identities, &self.pod.pod, Protocol::Tcp);
        chain
    }

    /// Envoy takes no listener without a chain: where only names of nobody are let out, these are.
    fn dead_end(&self) -> Value {
        let names: Vec<&str> = self.settings.hosts.iter().map(String::as_str).collect();
        listener::named_chain(&names, listener::tcp_proxy(BLACK_HOLE, BLACK_HOLE))
    }

    fn clusters(&self) -> Vec<Cluster> {
        let sni_proxy = SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.pod.sni_port);
        let onward = |call: &ExternalCall<'_>| match self.settings.sni_proxy {
            true => call.cluster_by_way_of(sni_proxy),
            false => call.own_cluster(),
        };
        match self.calls.as_slice() {
            [] => vec![Cluster::to(BLACK_HOLE, &[])],
            calls => calls.iter().map(onward).collect(),
        }
    }
}

fn all_have_names_of_their_own(calls: &[ExternalCall<'_>]) -> Result<(), DataPlaneError> {
    for (index, call) in calls.iter().enumerate() {
        if let Some(other) = calls[..index].iter().find(|other| other.host == call.host) {
            let services = [other.callee.to_owned(), call.callee.to_owned()];
            return Err(DataPlaneError::HostShared { host: call.host.to_owned(), services });
        }
    }
    Ok(())
}
