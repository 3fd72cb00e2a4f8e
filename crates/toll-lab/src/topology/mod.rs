//! Turns a deployment and an isolation level into addresses: who listens where, and what callers are given. Pure.

mod addresses;
mod cluster;
mod names;
mod plan;
mod site;

#[cfg(test)]
pub(crate) use addresses::Waypoint;
pub(crate) use addresses::{
    Bypass, Capture, EgressAddresses, HBONE_PORT, INBOUND_PORT, MesherAddresses, NodeAddresses,
    OUTBOUND_PORT, PROXY_MARK, PodAddresses, Topology, distinct,
};
pub(crate) use cluster::{in_cluster, with_addresses};
pub(crate) use names::hosts;
pub(crate) use plan::{ends, plan, ports_needed, with_own_ports};
pub(crate) use site::{Site, socket_below};
