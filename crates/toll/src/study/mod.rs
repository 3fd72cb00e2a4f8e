//! Turns the YAML text of a study file into a [`Study`], or into all its errors at once.
//!
//! text -> tree (every value knows where it stands) -> shape (held against the schema of the types) ->
//! sense (do the parts fit together). Resolves nothing and starts nothing: that is the plan's work.
//! The types in `model` are the one source: schema, checks and annotated default follow from them.

mod command_line;
mod environment;
mod fault;
mod model;
mod quantity;
mod retired;
mod schema;
mod sense;
mod shape;
mod tree;

pub use environment::OF_ENVIRONMENT;
pub use fault::{StudyErrors, Warning, nearest};
pub use model::{
    AirlinePart, Ambient, App, Arrivals, By, Call, Combination, Curve, Database, DatabaseProgram,
    Derived, Egress, EgressGateway, EnvoySettings, Gateway, JavaAgent, Length, Load, LoadModel,
    Metric, Mtls, NodeProxy, PetclinicPart, Profile, Program, Queries, Ready, Reference, Request,
    Runtime, Server, Service, Settle, Sidecar, Study, Traffic, Variant, Version, Vus, Weighted,
};
pub use quantity::{Name, Rate, Share, TimeSpan};
pub use schema::schema;

use fault::{Fault, Problem};
use sense::{Location, Violation};
use shape::Mended;
use tree::{Node, Pointer};

/// The service that takes the spans of tracing agents; every variant has it when one has an agent.
pub const COLLECTOR: &str = "collector";
/// Where it listens: OTLP's own port over HTTP.
pub const COLLECTOR_PORT: u16 = 4318;

/// The studies that toll brings along: name and text of the file.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    &[
        ("ambient-replicas", include_str!("../../../../studies/ambient-replicas.yaml")),
        ("customer-360", include_str!("../../../../studies/customer-360.yaml")),
        ("egress-gateway", include_str!("../../../../studies/egress-gateway.yaml")),
        ("mesher", include_str!("../../../../studies/mesher.yaml")),
        ("petclinic-agent", include_str!("../../../../studies/petclinic-agent.yaml")),
    ]
}

/// A study file that names every key with its default and says what it is for.
///
/// Lines that begin with `#:` are alternatives: without the mark, the file is a study as well.
pub fn annotated_default() -> &'static str {
    include_str!("default.yaml")
}

/// Reads a study file; `name` is what messages call it, `env` gives the values of `${NAME}`.
///
/// # Errors
/// All faults of the file. Only text that is not YAML ends the reading at its first fault.
pub fn read(
    name: &str,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(Study, Vec<Warning>), StudyErrors> {
    let mut faults = Vec::new();
    match read_into(text, env, &mut faults) {
        Some(read) if faults.is_empty() => Ok(read),
        _ => Err(StudyErrors::new(name, text, faults)),
    }
}

/// What any YAML text holds.
///
/// # Errors
/// What is wrong with it, in words.
pub fn yaml(text: &str) -> Result<serde_json::Value, String> {
    let mut faults = Vec::new();
    let root = tree::grow(text, &mut faults).map_err(|fault| fault.to_string())?;
    match faults.first() {
        Some(fault) => Err(fault.to_string()),
        None => Ok(root.plain()),
    }
}

/// The study as far as it can be read; `None` and faulty results come with at least one fault.
fn read_into(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
    faults: &mut Vec<Fault>,
) -> Option<(Study, Vec<Warning>)> {
    let mut root = tree::grow(text, faults).map_err(|fault| faults.push(fault)).ok()?;
    environment::fill_in(&mut root, env);
    retired::move_programs(&mut root, faults);
    let mended = shape::check(&root, &schema(), faults);
    let study = typed(&mended, faults)?;
    let violations = sense::check(&study).into_iter();
    faults.extend(
        violations.filter(|found| mended.is_written(found)).map(|found| found.located(&root)),
    );
    let mut warnings = untraced(&study, &root, text);
    warnings.extend(not_let_out(&study, &root, text));
    warnings.extend(few_seats(&study, &root, text));
    Some((study, warnings))
}

fn typed(mended: &Mended, faults: &mut Vec<Fault>) -> Option<Study> {
    let study = serde_json::from_value(mended.value.clone());
    let disagrees = |error: serde_json::Error| {
        Fault::new(Problem::SchemaDisagrees { said: error.to_string() }, 0..0)
    };
    match study {
        Ok(study) => Some(study),
        // A stand-in may not fit in its place; the fault that it stands for is already noted.
        Err(_) if !faults.is_empty() => None,
        Err(error) => {
            faults.push(disagrees(error));
            None
        }
    }
}

/// Settings with which an agent is there and traces nothing: its cost would not be that of tracing.
const NO_TRACING: [(&str, &str); 5] = [
    ("otel.sdk.disabled", "true"),
    ("otel.javaagent.enabled", "false"),
    ("otel.traces.exporter", "none"),
    ("otel.traces.sampler", "always_off"),
    ("plugin.observability.global.tracing.enabled", "false"),
];

fn line_of(at: &Pointer, root: &Node, text: &str) -> Option<usize> {
    Some(text[..root.at(at)?.span.start].lines().count())
}

/// The warnings about agents that trace nothing.
fn untraced(study: &Study, root: &Node, text: &str) -> Vec<Warning> {
    let mut found = Vec::new();
    for (variant, written) in &study.variants {
        let Some(agent) = &written.java_agent else { continue };
        let off = agent.settings().iter().map(|(name, value)| (name, value.to_string()));
        let off = off.filter(|(name, value)| NO_TRACING.contains(&(name.as_str(), value.as_str())));
        let at = Pointer::to(&["variants", variant.as_str(), "java_agent", "settings"]);
        found.extend(off.filter_map(|(name, value)| {
            let line = line_of(&at.child(name), root, text)?;
            Some(Warning::Untraced {
                line,
                variant: variant.to_string(),
                setting: format!("{name}: {value}"),
            })
        }));
    }
    found
}

/// The warnings about gateways that know no external database's host. That is no error: someone may want to see the
/// path proven wrong.
fn not_let_out(study: &Study, root: &Node, text: &str) -> Vec<Warning> {
    let mut found = Vec::new();
    for (name, variant) in &study.variants {
        let Some(Egress::Gateway(gateway)) = &variant.egress else { continue };
        let shut_in = |host: &str| {
            let hosts = &gateway.hosts;
            !hosts.is_empty() && !hosts.iter().any(|pattern| quantity::lets_out(pattern, host))
        };
        let at = Pointer::to(&["variants", name.as_str(), "egress", "gateway", "hosts"]);
        let hosts = study.app.external().filter(|(_, host)| shut_in(host));
        found.extend(hosts.filter_map(|(_, host)| {
            let line = line_of(&at, root, text)?;
            Some(Warning::NotLetOut { line, variant: name.to_string(), host: host.into() })
        }));
    }
    found
}

/// Seats of all flights that hardly a run sells out: a hundred seconds at a thousand bookings a second.
const ENOUGH_SEATS: u64 = 100_000;

/// The warnings about flights that the loads may fill.
fn few_seats(study: &Study, root: &Node, text: &str) -> Vec<Warning> {
    let books = |load: &Load| load.asked().iter().any(|(asked, _)| sense::books(&study.app, asked));
    if !study.loads.values().any(books) {
        return Vec::new();
    }
    let warning = |(name, database): (&Name, &Database)| {
        let airline = database.airline()?;
        let seats = u64::from(airline.flights) * u64::from(airline.seats);
        let at = sense::database_at(name, &["airline", "seats"]);
        let line = line_of(&at, root, text)?;
        let enough = ENOUGH_SEATS.div_ceil(u64::from(airline.flights));
        let database = name.to_string();
        (seats < ENOUGH_SEATS).then_some(Warning::FewSeats { line, database, seats, enough })
    };
    study.app.databases.iter().filter_map(warning).collect()
}

impl Mended {
    /// Whether the finding is about what the file says, not about a stand-in.
    fn is_written(&self, found: &Violation) -> bool {
        let also = found.also.iter().map(|(location, _)| location);
        let mut locations = [&found.at].into_iter().chain(also).map(Location::pointer);
        locations.all(|at| !self.stand_ins.iter().any(|replaced| replaced.leads_to(at)))
    }
}

impl Violation {
    fn located(self, root: &Node) -> Fault {
        let span = |location: &Location| match location {
            Location::Value(pointer) => root.at(pointer).map(|node| node.span.clone()),
            Location::Key(pointer) => root.key_at(pointer),
        };
        let also =
            self.also.iter().filter_map(|(location, what)| Some((span(location)?, (*what)?)));
        let at = span(&self.at).unwrap_or(0..0);
        also.fold(Fault::new(self.problem, at), |fault, (at, what)| fault.also(at, what))
    }
}

#[cfg(test)]
mod tests;
