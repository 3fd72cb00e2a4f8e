//! What can go wrong in a lab, and what to do about it.

use std::io;
use std::path::PathBuf;

mod data_plane;
mod kubernetes;

pub(crate) use data_plane::DataPlaneError;
pub use kubernetes::KubernetesError;

use crate::artifacts::{ArtifactError, Lacking};
use crate::host::error::HostError;
use crate::host::isolation::{Isolation, Reason};
use crate::host::ports::Holder;
use crate::host::process::Ending;

/// Why the lab cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "most fields say it by their names")]
pub enum LabError {
    /// The isolation level that was asked for.
    #[error("isolation level `{isolation}` is not possible here: {reason}")]
    IsolationImpossible {
        isolation: Isolation,
        #[source]
        reason: Reason,
    },
    /// Real-time scheduling was asked for.
    #[error("real-time scheduling is not permitted here")]
    RealtimeRefused(#[source] io::Error),
    /// A bridge has a bounded number of ports.
    #[error("{services} services are too many for one machine, {most} is the most")]
    TooManyServices {
        /// In the deployment.
        services: usize,
        most: usize,
    },
    /// On one network several pods cannot have the same port.
    #[error(
        "service `{service}` has {replicas} replicas, and all pods share the machine's network"
    )]
    ReplicasNeedPods { service: String, replicas: usize },
    /// On one network there is but one node.
    #[error("the deployment has {nodes} nodes, and all pods share the machine's network")]
    NodesNeedPods { nodes: usize },
    /// The lab has pods of its own.
    #[error("`{pod}` is the name of a pod of the application and of the data plane's own")]
    PodNameTaken { pod: String },
    /// toll or a proxy would have more files open than it may.
    #[error("the lab needs {needed} open files in one process, and {limit} are allowed")]
    TooFewOpenFiles {
        /// By toll or by a node's proxy.
        needed: u64,
        limit: u64,
    },
    /// The kernel forgets neighbours when its one table for all networks is full.
    #[error("the pods need {needed} entries of the machine's ARP table, which holds {limit}")]
    NeighbourTableSmall {
        /// By all pods.
        needed: u64,
        limit: u64,
    },
    /// A deployment names a service that it does not have.
    #[error("there is no service `{0}`")]
    UnknownService(String),
    /// With loopback isolation programs of the user's own use the ports of the host.
    #[error("port {port} of service `{service}` is taken{}", .holder.as_ref().map_or(String::new(), |h| format!(" by {h}")))]
    PortInUse {
        port: u16,
        /// Who wants it.
        service: String,
        /// Who has it, when that can be seen.
        holder: Option<Holder>,
    },
    /// A deployment needs what the lab was not given.
    #[error(transparent)]
    Lacking(#[from] Lacking),
    /// The deployment has a database outside of the mesh, which needs TLS from the first byte on.
    #[error(
        "`{version}` is too old for a database outside of the mesh: PostgreSQL speaks TLS from the first byte on since version 17"
    )]
    PostgresTooOld {
        /// What it says its version is.
        version: String,
    },
    /// The airline's database has TLS of its own, which is for a name.
    #[error("the airline's database `{service}` has no name outside of the mesh")]
    NotExternal {
        /// The database's service.
        service: String,
    },
    /// The egress gateway has an SNI proxy, which this nginx cannot be.
    #[error("this nginx cannot be an SNI proxy: {source}")]
    NotAnSniProxy {
        /// Why not.
        source: Box<ArtifactError>,
    },
    /// The cluster that databases are copies of.
    #[error("cannot make a PostgreSQL cluster: {message}")]
    Cluster {
        /// What `initdb` or the server says.
        message: String,
    },
    /// A database that runs refuses what the lab asks it: its seed, or what it did.
    #[error("the {pod} database does not answer as it should: {message}")]
    Database {
        pod: String,
        /// What it says.
        message: String,
    },
    /// The user wants to leave: the lab stopped waiting.
    #[error("interrupted")]
    Interrupted,
    /// Proxies and databases run as users of their own, who must reach their files.
    #[error("the users of proxies and databases cannot enter {0}")]
    WorkDirClosed(PathBuf),
    /// The machine refused something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The ledger that lets a later run clean up.
    #[error("cannot keep the ledger of what the lab makes")]
    Ledger(#[source] io::Error),
    /// Without them nothing can be said of what the machine used beyond the components.
    #[error("cannot read the machine's counters in /proc/stat")]
    HostCounters(#[source] io::Error),
    /// A component's program.
    #[error("cannot start {component}: {}", .program.display())]
    Start {
        /// For instance `client sidecar`.
        component: String,
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A component ended although nobody asked it to.
    #[error("{component} ended by itself with {ending}{}", log_words(.log))]
    Crashed {
        /// For instance `client sidecar`.
        component: String,
        /// How.
        ending: Ending,
        /// The last lines that it wrote.
        log: Vec<String>,
    },
    /// A component did not become ready.
    #[error("{component} was not ready after {waited_s} s{}", log_words(.log))]
    NotReady {
        /// For instance `client sidecar`.
        component: String,
        /// How long the lab waited.
        waited_s: u64,
        /// The last lines that it wrote.
        log: Vec<String>,
    },
    /// A program of the user's listens where nobody looks for it.
    #[error("{component} listens on port {}, not on {port}, which the study gives it{}", .listens.iter().map(u16::to_string).collect::<Vec<_>>().join(", "), log_words(.log))]
    OtherPort {
        /// For instance `shop`.
        component: String,
        /// Where it should.
        port: u16,
        /// Where it does.
        listens: Vec<u16>,
        /// The last lines that it wrote.
        log: Vec<String>,
    },
    /// The probe program gave no result.
    #[error("the probe of {target} gave no result: {message}")]
    Probe {
        target: String,
        /// What it said instead.
        message: String,
    },
    /// A proof was closed that had not been opened.
    #[error("the proof was not opened")]
    ProofNotOpen,
    /// The load program's pipes.
    #[error("cannot speak with the load program{}", log_words(.log))]
    LoadPipe {
        /// What the system says.
        source: io::Error,
        /// The last lines that it wrote to stderr.
        log: Vec<String>,
    },
    /// The load program goes on though there are no more plans.
    #[error("the load program did not end within {waited_s} s after its last plan{}", log_words(.log))]
    LoadStuck {
        /// How long the lab waited.
        waited_s: u64,
        /// The last lines that it wrote to stderr.
        log: Vec<String>,
    },
    /// Sidecars, identities, counters.
    #[error(transparent)]
    DataPlane(#[from] Box<DataPlaneFailure>),
    /// The cluster that the lab is in.
    #[error(transparent)]
    Kubernetes(#[from] Box<KubernetesError>),
    /// Something outlives the lab.
    #[error("cannot remove {}", .0.join(", "))]
    Left(Vec<String>),
}

/// What can go wrong with sidecars, identities and their counters.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DataPlaneFailure(DataPlaneError);

impl From<DataPlaneError> for LabError {
    fn from(error: DataPlaneError) -> Self {
        Self::DataPlane(Box::new(DataPlaneFailure(error)))
    }
}

impl From<KubernetesError> for LabError {
    fn from(error: KubernetesError) -> Self {
        Self::Kubernetes(Box::new(error))
    }
}

impl LabError {
    /// What the user can do about it, with the command or key to type.
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Self::IsolationImpossible { reason, .. } => return reason.help(),
            Self::DataPlane(failure) => return failure.0.help(),
            Self::Kubernetes(error) => return error.help(),
            Self::NotAnSniProxy { source } => return source.help(),
            Self::Lacking(lacking) => lacking.help(),
            Self::Host(error) => error.help(),
            Self::RealtimeRefused(_) => {
                "run under sudo outside of a child `cpu` cgroup, or leave `--realtime` out"
            }
            Self::TooManyServices { .. } => "use fewer replicas, or `--on kubernetes`",
            Self::PortInUse { .. } => {
                "end that program, change the service's port, or choose `--isolation rootless`"
            }
            Self::ReplicasNeedPods { .. } => {
                "choose `--isolation rootless` or `--isolation pods`, or give it one replica"
            }
            Self::NodesNeedPods { .. } => {
                "choose `--isolation rootless` or `--isolation pods`, or one node"
            }
            Self::PodNameTaken { .. } => "give the service another name in the study",
            Self::TooFewOpenFiles { needed, .. } => {
                return Some(format!(
                    "raise the limit in this shell by `ulimit -n {needed}` (as root where the hard limit is lower), \
                     or use fewer replicas"
                ));
            }
            Self::NeighbourTableSmall { needed, .. } => {
                return Some(format!(
                    "as root: `sysctl -w net.ipv4.neigh.default.gc_thresh3={needed}`, or use fewer replicas"
                ));
            }
            Self::PostgresTooOld { .. } => {
                "run `toll doctor --fetch`, which brings a newer one, or set POSTGRES to one"
            }
            Self::NotExternal { .. } => "give it an `external` host in the study",
            Self::Database { .. } => {
                "correct the database's `seed` or `written` in the study, or see its log in the run's directory"
            }
            Self::Cluster { .. } => {
                "run `toll doctor`: it says which PostgreSQL this is; set POSTGRES to another one"
            }
            Self::WorkDirClosed(_) => "set TMPDIR to a folder that every user can enter, as /tmp",
            Self::Crashed { .. } => "the whole log is in the run's directory",
            Self::NotReady { .. } => {
                "it must listen on the port that the study gives it, on all addresses; the whole log is in the run's directory"
            }
            Self::OtherPort { listens, .. } => {
                return Some(format!(
                    "write {{port}} into its `command`, or `port: {}` into the study; if it opens its port later than others, say how \
                     long it may take: `ready: {{timeout: 60s}}`",
                    listens[0]
                ));
            }
            Self::Start { .. } => "check that the program is there and may be run by you",
            Self::Left(_) => "run `toll clean`",
            Self::Ledger(_) => {
                "make the state folder writable: /run/toll, or $XDG_RUNTIME_DIR/toll"
            }
            Self::HostCounters(_) => "run where /proc is mounted and nothing hides /proc/stat",
            Self::UnknownService(_)
            | Self::Probe { .. }
            | Self::Interrupted
            | Self::ProofNotOpen
            | Self::LoadPipe { .. }
            | Self::LoadStuck { .. } => return None,
        };
        Some(text.to_owned())
    }
}

fn log_words(log: &[String]) -> String {
    match log {
        [] => "; it wrote nothing".to_owned(),
        lines => format!("; its last lines:\n  {}", lines.join("\n  ")),
    }
}
