//! The lab: brings an application up with a data plane, gives samples and proof, takes it down.
//!
//! A leaf: it knows nothing of studies, plans, statistics or of what the load engine's bytes mean. Nothing
//! above this crate knows of namespaces, pids or cgroups; [`Lab`] and [`Environment`] are the seam.
//!
//! Each group of modules below uses those above it, and none below.
#![deny(missing_docs)]

mod claim;
mod deployment;
mod evidence;
mod exposition;
mod http;
mod sample;

mod host;

pub mod artifacts;
mod sampler;

mod error;
mod options;
mod output;

mod topology;

mod certificates;

mod probe;

pub mod image;

mod envoy;
mod proof;

mod programs;

mod planes;

mod local;

mod in_cluster;
mod kubernetes;

mod environment;
mod fake;
mod lab;

#[cfg(test)]
mod fixture;

pub use certificates::ENTRY_NAME;
pub use claim::{
    Asked, CallsSeen, Claim, Direction, LeftOut, Proof, ServiceSpans, Spans, Topic, Traffic,
    Traversal,
};
pub use deployment::{
    AgentKind, Airline, AirlineDatabase, AirlinePart, Ambient, BuiltIn, Compilers, DataPlane,
    DatabaseServer, Deployment, Egress, EgressGateway, EnvoySettings, External, JavaAgent, Late,
    Metrics, Mtls, Nginx, NodeProxy, Petclinic, PetclinicPart, Planted, Postgres, Program, Queries,
    Ready, ReadySign, Runtime, Service, SidecarProxy, Stall, UserProgram,
};
pub use environment::{Environment, LoadEngine};
pub use error::{DataPlaneFailure, KubernetesError, LabError};
pub use fake::{FakeCall, FakeLab, FakeLoadScript};
pub use host::error::HostError;
pub use host::isolation::{Isolation, Reason, survey};
pub use host::ports::Holder;
pub use host::process::Ending;
pub use in_cluster::serve_in_cluster;
pub use kubernetes::{
    ClusterSurvey, KubernetesLab, KubernetesOptions, clean as clean_cluster, role_of_a_run,
    survey as survey_cluster,
};
pub use lab::Lab;
pub use local::{LocalLab, clean};
pub use options::{Listener, LocalOptions};
pub use output::{CutLog, NextLine, Rendered};
pub use planes::needs;
pub use planes::sidecar::mesher::fits as fits_mesher;
pub use sample::{
    Component, ComponentSample, HostSample, MemorySample, PodMetrics, Reading, Role, Sample,
};
