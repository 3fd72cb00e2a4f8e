//! The machine: networks and processes of pods, what counts and what removes them. Knows no program and no proxy.

pub(crate) mod cgroups;
pub(crate) mod concurrent;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod firewall;
pub(crate) mod hierarchy;
pub(crate) mod isolation;
pub(crate) mod ledger;
pub(crate) mod lifetime;
mod link;
pub(crate) mod listeners;
pub(crate) mod log;
pub(crate) mod namespace;
pub(crate) mod network;
pub(crate) mod networks;
pub(crate) mod occupants;
pub(crate) mod pinning;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod spawn;
pub(crate) mod timing;
pub(crate) mod tools;
mod wire;
