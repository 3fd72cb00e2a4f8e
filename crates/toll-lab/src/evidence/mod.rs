//! What a lab can see of a path, in words that fit any proxy, any program and any lab. Pure data, judged by `proof`.

mod counters;
mod reports;
mod snapshot;
mod spans;

pub(crate) use counters::{CallCounters, EgressCounters, HboneCounters, ProxyCounters};
pub(crate) use reports::{PathReport, Plaintext, Walk};
pub(crate) use snapshot::{
    DatabaseSnapshot, Fingerprints, Handshake, Jvm, Occupants, Outsider, PathSnapshot, Wire,
};
pub(crate) use spans::{MISSING, SpanWindow, TraceGroup};
#[cfg(test)]
pub(crate) use {counters::TcpCounters, spans::Link};
