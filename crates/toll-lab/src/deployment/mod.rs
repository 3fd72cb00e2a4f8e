//! What to bring up: an application and the data plane in its path. Pure data.

mod data_plane;
mod program;

use serde::{Deserialize, Serialize};

pub use data_plane::{
    AgentKind, Ambient, DataPlane, Egress, EgressGateway, EnvoySettings, JavaAgent, Mtls,
    NodeProxy, SidecarProxy,
};
pub use program::{
    Airline, AirlineDatabase, AirlinePart, BuiltIn, Compilers, DatabaseServer, Late, Nginx,
    Petclinic, PetclinicPart, Planted, Postgres, Program, Queries, Ready, ReadySign, Runtime,
    Stall, UserProgram,
};
pub(crate) use program::{Database, Reports};

/// One variant of the application, fully resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The variant's name.
    pub name: String,
    /// Name of the service that the load calls: often a gateway.
    pub entry: String,
    /// Gateways and databases included; names are unique and `calls` has no circle.
    pub services: Vec<Service>,
    /// What stands in the path.
    pub data_plane: DataPlane,
    /// Of its sidecars, where toll plays them with Envoy.
    #[serde(default, skip_serializing_if = "EnvoySettings::is_default")]
    pub envoy: Box<EnvoySettings>,
    /// Nodes that the pods are spread over, at least one.
    #[serde(default = "one")]
    pub nodes: usize,
}

fn one() -> usize {
    1
}

impl Deployment {
    /// The service of that name.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// Whether a port that the study names is more than a wish: a program of the user's own has it, and those of the
    /// services around it, wherever its author wrote them down.
    pub(crate) fn has_fixed_ports(&self) -> bool {
        self.services.iter().any(|service| service.program.is_users_own())
    }

    /// The service that takes the spans of tracing agents, in every variant of a study that compares agents.
    pub(crate) fn collector(&self) -> Option<&Service> {
        self.services.iter().find(|service| service.program == Program::Collector)
    }

    /// Whether each pod of `service` has a sidecar.
    pub(crate) fn has_sidecar(&self, service: &Service) -> bool {
        self.data_plane.has_sidecars() && service.takes_sidecar()
    }

    /// Whether the service of this name speaks TCP of its own rather than HTTP.
    pub(crate) fn is_database(&self, name: &str) -> bool {
        self.service(name).is_some_and(|service| service.program.is_database())
    }

    /// Whether what the mesh calls by this name is outside of it and called past the sidecars.
    pub(crate) fn passes_by(&self, callee: &str) -> bool {
        self.data_plane.egress() == Some(&Egress::Bypass)
            && self.service(callee).is_some_and(|service| service.external.is_some())
    }

    /// The services that call `callee`.
    pub(crate) fn callers_of(&self, callee: &str) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(move |s| s.calls.iter().any(|name| name == callee))
    }

    /// Every pod, in the order of the services, as its name and its service.
    ///
    /// A pod has its service's name, followed by `-1`, `-2`, ... when the service has several.
    pub fn pods(&self) -> Vec<(String, &Service)> {
        let names = |service: &'_ Service| match service.replicas {
            0 | 1 => vec![service.name.clone()],
            many => (1..=many).map(|number| format!("{}-{number}", service.name)).collect(),
        };
        let named = |service| names(service).into_iter().map(move |pod| (pod, service));
        self.services.iter().flat_map(named).collect()
    }
}

/// One service of the application graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Unique in the deployment; also its service account.
    pub name: String,
    /// The group (namespace) under which reports list it.
    pub group: String,
    /// Pods that play it, at least one.
    pub replicas: usize,
    /// TCP port it listens on.
    pub port: u16,
    /// What runs.
    pub program: Program,
    /// Names of the services that it calls once for each request it gets, in order; a database is queried.
    pub calls: Vec<String>,
    /// Those of `calls` of which nobody knows how many a request leads to: a program of the user's may keep answers, or
    /// call again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_calls: Vec<String>,
    /// Where each of its pods tells of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Whether its clients speak TLS to it; gateways only.
    #[serde(default)]
    pub tls: bool,
    /// Of a service outside of the mesh: by which name it is spoken to, over TLS of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// The node, from 1 on, that all its pods are on, counted round where there are fewer; without one its pods
    /// go to the nodes in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
}

/// What a service outside of the mesh has: a name and, of an authority that is not the mesh's, a certificate for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// Its DNS name, for instance `db.airline.example`: clients look it up, send it as SNI and verify it.
    pub host: String,
}

impl Service {
    /// Whether a data plane of sidecars puts one beside each of its pods.
    pub fn takes_sidecar(&self) -> bool {
        self.external.is_none() && self.program.takes_sidecar()
    }

    /// Connections that each of its pods keeps to `database` at the most.
    pub(crate) fn connections_to(&self, database: &str) -> u32 {
        let is_called = self.calls.iter().any(|callee| callee == database);
        match &self.program {
            Program::BuiltIn(BuiltIn { queries: Some(queries), .. })
                if queries.database == database =>
            {
                queries.connections
            }
            Program::Airline(airline) if is_called => airline.connections,
            _ => 0,
        }
    }

    /// The TCP ports that each of its pods listens on.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        let of_metrics = self.metrics.iter().map(|metrics| metrics.port);
        std::iter::once(self.port).chain(of_metrics)
    }

    /// The port on which it tells of itself and does nothing else.
    pub(crate) fn port_of_metrics_alone(&self) -> Option<u16> {
        self.metrics.as_ref().map(|metrics| metrics.port).filter(|port| *port != self.port)
    }
}

/// A Prometheus text endpoint in the pods of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// TCP port.
    pub port: u16,
    /// Path, from the slash on.
    pub path: String,
    /// Names of the series that are kept, each with all its labels; [`Metrics::OF_JVM`] when there are none.
    pub series: Vec<String>,
}

impl Metrics {
    /// What the Prometheus Java client tells of its JVM, in the names of its version 1.
    pub const OF_JVM: [&str; 7] = [
        "process_cpu_seconds_total",
        "jvm_memory_used_bytes",
        "jvm_memory_pool_collection_used_bytes",
        "jvm_gc_collection_seconds_sum",
        "jvm_gc_collection_seconds_count",
        "jvm_compilation_time_seconds_total",
        "jvm_threads_current",
    ];

    /// Names of the series that are kept.
    pub fn selected(&self) -> Vec<&str> {
        match self.series.as_slice() {
            [] => Self::OF_JVM.to_vec(),
            series => series.iter().map(String::as_str).collect(),
        }
    }
}
