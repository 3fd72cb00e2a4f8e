//! The load engine: turns a [`LoadPlan`] into HTTP requests and a [`LoadReport`].
//!
//! A leaf: it knows nothing of labs, variants or studies. In a lab it runs as a process of its own that
//! reads JSON [`LoadPlan`]s from standard input, carries out each as it comes, and writes [`LoadEvent`]s, one JSON
//! object a line, to standard output; the last one of each plan carries its report. Connections stay open from plan
//! to plan ([`Session`]), so that a load can be given in short slices.
//!
//! Inside, three parts that know nothing of each other are composed by the `engine` module: a *schedule*
//! (when requests are due), *connections* (bytes out, answers in) and a *recorder* (what is kept of them).
#![deny(missing_docs)]

mod checks;
mod clients;
mod clock;
mod connection;
mod connections;
mod control;
mod engine;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod histogram;
mod http;
mod http2;
mod merge;
mod occupancy;
mod plan;
mod poller;
mod pool;
mod process;
mod recorder;
mod releases;
mod report;
mod requests;
mod routes;
mod schedule;
mod session;
mod setup;
mod shard;
mod steady;
mod timer;
mod transport;

pub use engine::{Listener, TakeSamples};
pub use error::LoadError;
pub use histogram::Histogram;
pub use plan::{
    Arrivals, Body, ConnectionPlan, Identity, Idle, Iteration, LoadModel, LoadPlan, Part, Profile,
    Protocol, Resolve, Reuse, Rows, Spacing, Stage, Stop, Target, Tls, WarmUp,
};
pub use process::serve;
pub use report::{
    Check, ErrorKind, LoadEvent, LoadReport, Phase, PhaseReport, Sample, SeriesPoint, StageReport,
    Steps, TargetReport,
};
pub use session::{Session, run, run_until, run_with};
