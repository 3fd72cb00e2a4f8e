//! The application of a study as the services that a lab brings up: gateways, services and databases in a row.

use std::path::Path;

use toll_lab::{
    Airline, AirlineDatabase, AirlinePart, BuiltIn, Compilers, DatabaseServer, External, Metrics,
    Nginx, Petclinic, PetclinicPart, Planted, Postgres, Program, Queries, Ready, ReadySign,
    Runtime, Service, Stall, UserProgram,
};

use crate::study::{self, App, Study, Variant};

/// What a JVM tells of itself in the Prometheus Java client's words: its CPU time, its heap now and after its last
/// collections, the time its collector and its compiler took, its threads.
const JVM_SERIES: [&str; 7] = [
    "process_cpu_seconds_total",
    "jvm_memory_used_bytes",
    "jvm_memory_pool_collection_used_bytes",
    "jvm_gc_collection_seconds_sum",
    "jvm_gc_collection_seconds_count",
    "jvm_compilation_time_seconds_total",
    "jvm_threads_current",
];
/// The group that holds what is toll's own.
const OWN_GROUP: &str = "toll";

/// What the user chose of the application.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    /// Of all built-in services.
    pub runtime: Option<Runtime>,
    /// Of all external databases.
    pub database: Option<DatabaseServer>,
    /// Of all parts of the Petclinic.
    pub compilers: Compilers,
    /// Where relative paths of commands lead from.
    pub directory: &'a Path,
}

/// The application's services, and the collector where one of the variants has an agent: then all have it, so that
/// nothing but the agent tells them apart. What was chosen goes before what the study says.
pub fn services(study: &Study, chosen: Chosen<'_>) -> Vec<Service> {
    let traced = study.variants.values().any(|variant| variant.java_agent.is_some());
    let mut services = of_app(&study.app, chosen);
    services.extend(traced.then(collector));
    services
}

/// The same as a variant has them: some of the services are other versions of theirs.
pub fn of_variant(
    services: &[Service],
    study: &Study,
    variant: &Variant,
    chosen: Chosen<'_>,
) -> Vec<Service> {
    let mut services = services.to_vec();
    for (name, written) in &study.app.services {
        if variant.services.contains_key(name) {
            let own = services.iter_mut().filter(|service| service.name == name.as_str());
            let version = variant.version_of(name, written);
            own.for_each(|service| service.program = program(&version, chosen));
        }
    }
    services
}

fn collector() -> Service {
    Service {
        external: None,
        name: study::COLLECTOR.into(),
        group: OWN_GROUP.into(),
        replicas: 1,
        port: study::COLLECTOR_PORT,
        program: Program::Collector,
        calls: vec![],
        observed_calls: vec![],
        metrics: None,
        tls: false,
        node: None,
    }
}

/// In the order in which a request meets them.
fn of_app(app: &App, chosen: Chosen<'_>) -> Vec<Service> {
    let gateways = app.gateways.iter().map(|(name, written)| gateway(name.as_str(), written));
    let services =
        app.services.iter().map(|(name, written)| service(name.as_str(), written, chosen));
    let databases =
        app.databases.iter().map(|(name, written)| database(name.as_str(), written, chosen));
    gateways.chain(services).chain(databases).collect()
}

fn gateway(name: &str, gateway: &study::Gateway) -> Service {
    Service {
        external: None,
        name: name.into(),
        group: gateway.group.to_string(),
        replicas: 1,
        port: gateway.port,
        program: Program::Gateway,
        calls: vec![gateway.to.to_string()],
        observed_calls: vec![],
        metrics: None,
        tls: gateway.tls,
        node: gateway.node.map(|node| node as usize),
    }
}

fn database(name: &str, database: &study::Database, chosen: Chosen<'_>) -> Service {
    let external = database.airline().map(|airline| External { host: airline.host.clone() });
    Service {
        external,
        name: name.into(),
        group: database.group.to_string(),
        replicas: 1,
        port: database.port,
        program: contents(database, chosen),
        calls: vec![],
        observed_calls: vec![],
        metrics: None,
        tls: false,
        node: None,
    }
}

fn contents(database: &study::Database, chosen: Chosen<'_>) -> Program {
    match &database.program {
        study::DatabaseProgram::Postgres(postgres) => Program::Postgres(Postgres {
            seed: postgres.seed.clone(),
            written: postgres.written.clone(),
        }),
        study::DatabaseProgram::Airline(airline) => Program::AirlineDatabase(AirlineDatabase {
            server: chosen.database.unwrap_or(airline.server.into()),
            flights: airline.flights,
            seats: airline.seats,
            customers: airline.customers,
        }),
    }
}

fn service(name: &str, service: &study::Service, chosen: Chosen<'_>) -> Service {
    // A database is asked after all calls.
    let database = service.program.database();
    Service {
        external: None,
        name: name.into(),
        group: service.group.to_string(),
        replicas: service.replicas as usize,
        port: service.port,
        program: program(service, chosen),
        calls: calls(service).chain(database).map(ToString::to_string).collect(),
        observed_calls: observed_calls(service),
        metrics: service.metrics.as_ref().map(|endpoint| Metrics {
            port: endpoint.port,
            path: endpoint.path.clone(),
            series: series(service),
        }),
        tls: false,
        node: service.node.map(|node| node as usize),
    }
}

/// Each as often as it is made.
fn calls(service: &study::Service) -> impl Iterator<Item = &study::Name> {
    let times = |call: &study::Call| call.per_request.unwrap_or(1) as usize;
    service.calls.iter().flat_map(move |call| std::iter::repeat_n(&call.to, times(call)))
}

fn observed_calls(service: &study::Service) -> Vec<String> {
    let is_free = matches!(service.program, study::Program::Command(_));
    let free = service.calls.iter().filter(|call| is_free && call.per_request.is_none());
    free.map(|call| call.to.to_string()).collect()
}

fn series(service: &study::Service) -> Vec<String> {
    match service.series.as_slice() {
        [] => JVM_SERIES.map(str::to_owned).to_vec(),
        chosen => chosen.to_vec(),
    }
}

fn program(service: &study::Service, chosen: Chosen<'_>) -> Program {
    match &service.program {
        study::Program::BuiltIn(service) => Program::BuiltIn(BuiltIn {
            runtime: chosen.runtime.unwrap_or(service.runtime.into()),
            work: service.work.cpu.get(),
            reply_bytes: service.reply.bytes as usize,
            status: service.reply.status,
            relay: service.reply.relay,
            queries: service.postgres.as_ref().map(queries),
            stall: service.stall.map(|s| Stall { every: s.every.get(), lasting: s.lasting.get() }),
            planted: Planted::default(),
        }),
        study::Program::Command(line) => Program::Command(UserProgram {
            argv: line.words().to_vec(),
            env: service
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect(),
            directory: chosen.directory.into(),
            ready: service.ready.as_ref().map(ready),
        }),
        study::Program::Nginx(nginx) => Program::Nginx(Nginx { bytes: nginx.bytes as usize }),
        study::Program::Petclinic(petclinic) => Program::Petclinic(Petclinic {
            part: match petclinic.part {
                study::PetclinicPart::Gateway => PetclinicPart::Gateway,
                study::PetclinicPart::Vets => PetclinicPart::Vets,
            },
            heap_mib: petclinic.heap_mib,
            compilers: chosen.compilers,
        }),
        study::Program::Airline(airline) => Program::Airline(Airline {
            part: match airline.part() {
                study::AirlinePart::Web => AirlinePart::Web,
                study::AirlinePart::Flights => AirlinePart::Flights,
                study::AirlinePart::Bookings => AirlinePart::Bookings,
                study::AirlinePart::Customers => AirlinePart::Customers,
            },
            work: airline.work().cpu.get(),
            connections: airline.connections(),
        }),
    }
}

fn ready(written: &study::Ready) -> Ready {
    let sign = match (&written.path, written.tcp) {
        (Some(path), _) => ReadySign::Answers { path: path.to_string(), status: written.status },
        (None, Some(port)) => ReadySign::ListensOn(port),
        (None, None) => ReadySign::Listens,
    };
    Ready { sign, timeout: written.timeout.get() }
}

impl From<study::Runtime> for Runtime {
    fn from(runtime: study::Runtime) -> Self {
        match runtime {
            study::Runtime::Native => Self::Native,
            study::Runtime::Spring => Self::Spring,
        }
    }
}

impl From<study::Server> for DatabaseServer {
    fn from(server: study::Server) -> Self {
        match server {
            study::Server::Postgres => Self::Postgres,
            study::Server::Mongodb => Self::MongoDb,
        }
    }
}

fn queries(queries: &study::Queries) -> Queries {
    Queries {
        database: queries.database.to_string(),
        connections: queries.connections,
        read: queries.read.clone(),
        write: queries.write.clone(),
    }
}
