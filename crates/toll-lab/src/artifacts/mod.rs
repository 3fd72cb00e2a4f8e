//! The programs and jars that toll drives and does not contain: where each is found, and how it is brought.
//!
//! Nothing is asked and nothing is printed here; a fetch takes seconds, so callers say that it happens.

mod agent;
mod artifact;
mod built;
mod envoy;
mod error;
mod found;
mod jar;
mod java;
mod manifest;
mod mongod;
mod need;
mod nginx;
mod postgres;
mod surroundings;
mod wheel;
mod ztunnel;

#[cfg(test)]
mod tests;

pub use artifact::{Artifact, Artifacts, Lacking};
pub use error::ArtifactError;
pub use found::{Fetch, Found, Source};
pub use need::{ArtifactStatus, Need, statuses};
pub(crate) use nginx::stream_module;
