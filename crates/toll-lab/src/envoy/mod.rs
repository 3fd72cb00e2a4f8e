//! What Envoys are configured from, whatever they stand for: listeners, clusters, TLS and HBONE as Istio makes them; and
//! their statistics, as counters that fit any proxy.
//!
//! What real Istio adds and this leaves out: the agent beside each Envoy (about 30 MB), configuration over
//! xDS, and the filters of Istio's own Envoy build (peer metadata, request statistics).

pub(crate) mod admin;
pub(crate) mod bootstrap;
pub(crate) mod call;
pub(crate) mod cluster;
pub(crate) mod external;
pub(crate) mod hbone;
pub(crate) mod istio;
pub(crate) mod listener;
pub(crate) mod plan;
pub(crate) mod settings;
pub(crate) mod tls;
