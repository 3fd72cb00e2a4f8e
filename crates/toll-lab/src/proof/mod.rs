//! Turns what was seen around a window into the claims that make a round of an arm count (docs/method.md rule 7). Pure; it
//! knows no proxy and no program, but what those are by nature.
//!
//! Each request that the entry gets is followed along the `calls` of the deployment: that gives how often each
//! service and each call must have been counted, by the proxies, by the programs themselves and by the
//! databases. A proxy that is bypassed by mistake counts nothing, and one that stands in a bare path leaves an
//! address, a header on the requests that it passes, or a process in a pod; each makes a claim fail.

pub(crate) mod bounds;
pub(crate) mod claims;
pub(crate) mod expected;
pub(crate) mod network;
pub(crate) mod outsider;
pub(crate) mod own_counts;
pub(crate) mod trace;
pub(crate) mod window;
pub(crate) mod wire;
