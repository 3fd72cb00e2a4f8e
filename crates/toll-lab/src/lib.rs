//! The lab: brings an application up with a data plane, gives samples and proof, takes it down.
//!
//! A leaf: it knows nothing of studies, plans, statistics or of what the load engine's bytes mean. Nothing
//! above this crate knows of namespaces, pids or cgroups; [`Lab`] and [`Environment`] are the seam.
#![deny(missing_docs)]

mod data_plane;
mod deployment;
mod environment;
mod error;
mod fake;
#[cfg(test)]
mod fixture;
mod lab;
mod local;
pub mod parts;
mod proof;
mod sample;
mod sampler;

pub use data_plane::ENTRY_NAME;
pub use deployment::{
    AgentKind, Airline, AirlineDatabase, AirlinePart, Ambient, BuiltIn, Compilers, DataPlane,
    DatabaseServer, Deployment, Egress, EgressGateway, External, JavaAgent, Late, Metrics, Mtls,
    Nginx, NodeProxy, Petclinic, PetclinicPart, Planted, Postgres, Program, Queries, Runtime,
    Service, SidecarProxy, Stall,
};
pub use environment::{Environment, LoadEngine, NextLine};
pub use error::{DataPlaneFailure, LabError};
pub use fake::{FakeCall, FakeLab, FakeLoadScript};
pub use lab::{Lab, LocalOptions, MongoServer, Rendered};
pub use local::{Ending, Holder, Isolation, LocalLab, Reason, clean, survey};
pub use proof::{Asked, Claim, Direction, Proof, ServiceSpans, Spans, Traffic, Traversal};
pub use sample::{
    Component, ComponentSample, HostSample, MemorySample, PodMetrics, Reading, Role, Sample,
};
