//! Whether the parts of the application fit together: names, ports, calls, queries.

use indexmap::IndexMap;

use super::own_calls::OwnCalls;
use super::{Violation, airline, at_key, at_value, database_at, program_at, service_at, unknown};
use crate::study::fault::Problem;
use crate::study::model::{
    App, BuiltIn, Database, Petclinic, PetclinicPart, Program, Queries, Service, Study,
};
use crate::study::quantity::Name;
use crate::study::tree::Pointer;

/// All that does not fit together in the application.
pub(super) fn check(app: &App) -> Vec<Violation> {
    let services = &app.services;
    let mut found = shared_ports(app);
    found.extend(unknown_entry(app));
    found.extend(replicated_entry(app));
    found.extend(unknown_services(app));
    found.extend(circles(services));
    for (name, service) in services {
        found.extend(other_calls(app, name, service));
        found.extend(metrics_of_nginx(name, service));
        found.extend(series_of_none(name, service));
        found.extend(of_no_command(name, service));
        found.extend(two_signs(name, service));
        found.extend(unknown_places(
            service,
            &Written {
                command: service_at(name, "program").child("command"),
                env: service_at(name, "env"),
                calls: service_at(name, "calls"),
            },
        ));
        if let Program::BuiltIn(built_in) = &service.program {
            found.extend(endless_stall(name, built_in));
            found.extend(nothing_to_relay(name, service, built_in));
        }
    }
    found.extend(queries(app).filter_map(|(name, queries)| unknown_database(app, name, queries)));
    found.extend(queries(app).filter_map(|(name, queries)| uncounted_writes(app, name, queries)));
    found.extend(unasked_databases(app));
    found
}

/// A gateway, a service or a database: what has a name and a port in the application.
pub(super) struct Node<'a> {
    /// Where the application lists it.
    pub section: &'static str,
    kind: &'static str,
    /// Its name.
    pub name: &'a Name,
    port: u16,
    /// Its pods.
    pub replicas: u32,
}

impl Node<'_> {
    fn at(&self) -> Pointer {
        Pointer::to(&["app", self.section, self.name.as_str()])
    }

    /// What messages call it.
    fn title(&self) -> String {
        format!("{} `{}`", self.kind, self.name)
    }
}

/// In the order in which a request meets them.
pub(super) fn nodes(app: &App) -> Vec<Node<'_>> {
    let node =
        |section, kind| move |name, port, replicas| Node { section, kind, name, port, replicas };
    let (gateway, service) = (node("gateways", "gateway"), node("services", "service"));
    let database = node("databases", "database");
    let gateways = app.gateways.iter().map(|(name, g)| gateway(name, g.port, 1));
    let services = app.services.iter().map(|(name, s)| service(name, s.port, s.replicas));
    let databases = app.databases.iter().map(|(name, d)| database(name, d.port, 1));
    gateways.chain(services).chain(databases).collect()
}

/// Each node together with the first of those before it for which `clashes` holds.
fn clashing<'n, 'a>(
    nodes: &'n [Node<'a>],
    clashes: impl Fn(&Node, &Node) -> bool,
) -> Vec<(&'n Node<'a>, &'n Node<'a>)> {
    let numbered = nodes.iter().enumerate();
    let clash = |(number, node): (usize, &'n Node<'a>)| {
        Some((node, nodes[..number].iter().find(|earlier| clashes(node, earlier))?))
    };
    numbered.filter_map(clash).collect()
}

/// Parts whose pods have the same names.
pub(super) fn shared_names(app: &App) -> Vec<Violation> {
    let shared = |(node, other): (&Node, &Node)| {
        let problem = Problem::SameName { one: node.title(), other: other.title() };
        at_key(problem, node.at()).see_key(other.at(), "taken here")
    };
    let clashes = |one: &Node, other: &Node| {
        one.name == other.name || is_pod_of(one, other) || is_pod_of(other, one)
    };
    clashing(&nodes(app), clashes).into_iter().map(shared).collect()
}

/// Whether the one is called as a pod of the other: the pods of several replicas are `NAME-1`, `NAME-2`, ...
fn is_pod_of(one: &Node, other: &Node) -> bool {
    let number = one.name.as_str().strip_prefix(other.name.as_str());
    let number = number.and_then(|rest| rest.strip_prefix('-')?.parse::<u32>().ok());
    other.replicas > 1 && number.is_some_and(|number| (1..=other.replicas).contains(&number))
}

fn shared_ports(app: &App) -> Vec<Violation> {
    let ports = listeners(app);
    let shared = |(number, one): (usize, &Listener)| {
        let other = ports[..number].iter().find(|other| other.port == one.port)?;
        let (name, taken) = (one.name.to_string(), other.name.to_string());
        let problem = Problem::SamePort { port: one.port, one: name, other: taken };
        Some(at_value(problem, one.at.clone()).see_value(other.at.clone(), "taken here"))
    };
    ports.iter().enumerate().filter_map(shared).collect()
}

/// What has a port: a gateway, a service or a database, and the metrics of a service.
struct Listener<'a> {
    name: &'a Name,
    port: u16,
    at: Pointer,
}

fn listeners(app: &App) -> Vec<Listener<'_>> {
    let own = nodes(app).into_iter().map(|node| {
        let at = node.at().child("port");
        Listener { name: node.name, port: node.port, at }
    });
    let metrics = app.services.iter().filter_map(|(name, service)| {
        let port = service.metrics.as_ref()?.port;
        // Most programs tell of themselves where they listen; the Petclinic's parts do not.
        if port == service.port && !matches!(service.program, Program::Petclinic(_)) {
            return None;
        }
        Some(Listener { name, port, at: service_at(name, "metrics") })
    });
    own.chain(metrics).collect()
}

/// All ports of the application, and where they are written.
pub(super) fn ports(app: &App) -> Vec<(u16, Pointer)> {
    listeners(app).into_iter().map(|listener| (listener.port, listener.at)).collect()
}

fn unknown_entry(app: &App) -> Option<Violation> {
    let known = app.gateways.keys().chain(app.services.keys());
    let kind = if app.gateways.is_empty() { "service" } else { "gateway or service" };
    let problem = unknown(kind, &app.entry, known)?;
    let at = at_value(problem, Pointer::to(&["app", "entry"]));
    Some(at.from(&["app", "services"]).from(&["app", "gateways"]))
}

/// The pods of a service are chosen from by who calls it; the load does not choose.
fn replicated_entry(app: &App) -> Option<Violation> {
    let service = app.services.get(&app.entry).filter(|service| service.replicas > 1)?;
    let (name, replicas) = (app.entry.to_string(), service.replicas);
    let problem = Problem::EntryReplicas { service: name, replicas };
    Some(at_value(problem, service_at(&app.entry, "replicas")).from(&["app", "entry"]))
}

fn unknown_services(app: &App) -> Vec<Violation> {
    let calls = app.services.iter().flat_map(|(caller, service)| {
        let at = service_at(caller, "calls");
        let numbered = service.callees().enumerate();
        numbered.map(move |(number, called)| (called, at.child(number)))
    });
    let handed_on = app.gateways.iter().map(|(name, gateway)| {
        (&gateway.to, Pointer::to(&["app", "gateways", name.as_str(), "to"]))
    });
    let unknown_service = |(name, at): (&Name, Pointer)| {
        let problem = match app.databases.contains_key(name) {
            true => Problem::CallsDatabase {
                database: name.to_string(),
                of_airline: app.databases[name].airline().is_some(),
            },
            false => unknown("service", name, app.services.keys())?,
        };
        (!app.services.contains_key(name)).then(|| at_value(problem, at).from(&["app", "services"]))
    };
    handed_on.chain(calls).filter_map(unknown_service).collect()
}

/// Each circle of calls once, at the call that closes it.
fn circles(services: &IndexMap<Name, Service>) -> Vec<Violation> {
    let mut search =
        CircleSearch { services, way: Vec::new(), done: Vec::new(), found: Vec::new() };
    services.keys().for_each(|service| search.visit(service));
    search.found
}

/// A search in depth; a call back into the way that led here closes a circle.
struct CircleSearch<'s> {
    services: &'s IndexMap<Name, Service>,
    way: Vec<Call<'s>>,
    done: Vec<&'s Name>,
    found: Vec<Violation>,
}

/// A service on the way, and which of its calls the way goes on with.
struct Call<'s> {
    caller: &'s Name,
    number: usize,
}

impl<'s> CircleSearch<'s> {
    fn visit(&mut self, caller: &'s Name) {
        let Some(service) = self.services.get(caller).filter(|_| !self.done.contains(&caller))
        else {
            return;
        };
        for (number, called) in service.callees().enumerate() {
            self.way.push(Call { caller, number });
            match self.way.iter().position(|call| call.caller == called) {
                Some(start) => self.found.push(circle(&self.way[start..])),
                None => self.visit(called),
            }
            self.way.pop();
        }
        self.done.push(caller);
    }
}

fn circle(way: &[Call]) -> Violation {
    let at = |call: &Call| service_at(call.caller, "calls").child(call.number);
    let (last, others) = way.split_last().expect("a circle has at least the call that closes it");
    let callers = way.iter().chain(way.first()).map(|call| call.caller.to_string());
    let found = at_value(Problem::CallCircle { circle: callers.collect() }, at(last));
    others.iter().fold(found, |found, call| found.see_value(at(call), "this call leads there"))
}

/// The built-in service and the user's own program call what the study says; others do not.
fn other_calls(app: &App, name: &Name, service: &Service) -> Option<Violation> {
    let nothing = |program: &str| OwnCalls {
        fit: service.calls.is_empty(),
        rule: format!("{program} and calls nothing"),
        example: vec![],
    };
    let own = match &service.program {
        Program::BuiltIn(_) | Program::Command(_) => return None,
        Program::Nginx(_) => nothing("nginx"),
        Program::Petclinic(Petclinic { part: PetclinicPart::Vets, .. }) => {
            nothing("the Petclinic's vets")
        }
        Program::Petclinic(Petclinic { part: PetclinicPart::Gateway, .. }) => OwnCalls {
            fit: service.calls.len() == 1,
            rule: "the Petclinic's gateway and calls one service".into(),
            example: vec!["vets".into()],
        },
        Program::Airline(airline) => airline::own_calls(app, airline.part(), service)?,
    };
    let OwnCalls { fit, rule, example } = own;
    let at = service_at(name, if service.calls.is_empty() { "program" } else { "calls" });
    let problem = || Problem::OtherCalls { service: name.to_string(), rule, example };
    let found = (!fit).then(|| at_value(problem(), at))?.because_of(service_at(name, "calls"));
    let found = found.because_of(program_at(name, "petclinic", "part"));
    let parts = [name].into_iter().chain(service.callees());
    Some(parts.fold(found, |found, part| found.because_of(program_at(part, "airline", "part"))))
}

fn metrics_of_nginx(name: &Name, service: &Service) -> Option<Violation> {
    let has = service.metrics.is_some() && matches!(service.program, Program::Nginx(_));
    let problem = Problem::MetricsOfNginx { service: name.to_string() };
    has.then(|| at_key(problem, service_at(name, "metrics")))
}

fn series_of_none(name: &Name, service: &Service) -> Option<Violation> {
    let surplus = !service.series.is_empty() && service.metrics.is_none();
    let problem = Problem::SeriesOfNoMetrics { service: name.to_string() };
    surplus.then(|| {
        at_key(problem, service_at(name, "series")).because_of(service_at(name, "metrics"))
    })
}

fn endless_stall(name: &Name, service: &BuiltIn) -> Option<Violation> {
    let stall = service.stall.filter(|stall| stall.lasting >= stall.every)?;
    let at = program_at(name, "built_in", "stall");
    let (lasting, every) = (stall.lasting.to_string(), stall.every.to_string());
    let found = at_value(Problem::StallFillsPeriod { lasting, every }, at.child("for"));
    Some(found.see_value(at.child("every"), "the period"))
}

fn nothing_to_relay(name: &Name, service: &Service, built_in: &BuiltIn) -> Option<Violation> {
    let problem = Problem::NothingToRelay { service: name.to_string() };
    (built_in.reply.relay && service.calls.is_empty()).then(|| {
        let at = program_at(name, "built_in", "reply").child("relay");
        at_value(problem, at).because_of(service_at(name, "calls"))
    })
}

/// The services that query, and what.
fn queries(app: &App) -> impl Iterator<Item = (&Name, &Queries)> {
    app.services.iter().filter_map(|(name, service)| Some((name, service.program.queries()?)))
}

fn unknown_database(app: &App, name: &Name, queries: &Queries) -> Option<Violation> {
    let problem = unknown("database", &queries.database, app.databases.keys())?;
    let at = program_at(name, "built_in", "postgres").child("database");
    Some(at_value(problem, at).from(&["app", "databases"]))
}

/// Writes that could not be checked: nothing says how many rows they have made.
fn uncounted_writes(app: &App, name: &Name, queries: &Queries) -> Option<Violation> {
    let uncounted =
        |database: &&Database| database.written().is_none() && database.airline().is_none();
    app.databases.get(&queries.database).filter(uncounted)?;
    queries.write.as_ref()?;
    let postgres = database_at(&queries.database, &["postgres"]);
    let problem = Problem::UncountedWrites { database: queries.database.to_string() };
    let found = at_value(problem, program_at(name, "built_in", "postgres").child("write"));
    let found = found.because_of(postgres.child("written"));
    Some(found.see_key(postgres, "`written` is missing here"))
}

/// Databases that no service queries; when a query names none that there is, one of them may be meant.
fn unasked_databases(app: &App) -> Vec<Violation> {
    let asked = app.services.values().filter_map(|service| service.program.database());
    let asked: Vec<&Name> = asked.collect();
    if asked.iter().any(|name| !app.databases.contains_key(*name)) {
        return Vec::new();
    }
    let unasked = |(name, database): (&Name, &Database)| {
        let of_airline = database.airline().is_some();
        let problem = Problem::UnaskedDatabase { database: name.to_string(), of_airline };
        let found = at_key(problem, Pointer::to(&["app", "databases", name.as_str()]));
        // A slip in any service may be the query that is missing.
        let keys = app.services.keys().flat_map(|service| {
            [("built_in", "postgres"), ("airline", "database")]
                .map(|(program, key)| program_at(service, program, key))
        });
        keys.fold(found, Violation::because_of)
    };
    app.databases.iter().filter(|(name, _)| !asked.contains(name)).map(unasked).collect()
}

/// Keys that only a program of the user's has.
fn of_no_command(name: &Name, service: &Service) -> Vec<Violation> {
    if let Program::Command(_) = service.program {
        return Vec::new();
    }
    let written = [("env", !service.env.is_empty()), ("ready", service.ready.is_some())];
    let found = written.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| {
        let problem = Problem::OfNoCommand { service: name.to_string(), key };
        at_key(problem, service_at(name, key)).because_of(service_at(name, "program"))
    });
    found.collect()
}

/// Two signs of one thing.
fn two_signs(name: &Name, service: &Service) -> Option<Violation> {
    let ready = service.ready.as_ref()?;
    let keys = ["path", "tcp"].map(str::to_owned).into();
    let both = ready.path.is_some() && ready.tcp.is_some();
    both.then(|| at_value(Problem::MoreThanOneOf { keys }, service_at(name, "ready")))
}

/// Versions of services that are not there or are toll's own, and their placeholders.
pub(super) fn versions(study: &Study) -> Vec<Violation> {
    let mut found = Vec::new();
    for (variant, written) in &study.variants {
        for (name, version) in &written.services {
            let at = Pointer::to(&["variants", variant.as_str(), "services", name.as_str()]);
            let Some(service) = study.app.services.get(name) else {
                let problem = unknown("service", name, study.app.services.keys());
                let from = ["app", "services"];
                found.extend(problem.map(|problem| at_key(problem, at).from(&from)));
                continue;
            };
            if !matches!(service.program, Program::Command(_)) {
                let problem = Problem::VersionOfNoCommand { service: name.to_string() };
                found.push(at_key(problem, at).because_of(service_at(name, "program")));
                continue;
            }
            let own = Service { env: version.env.clone(), ..written.version_of(name, service) };
            found.extend(unknown_places(
                &own,
                &Written {
                    command: at.child("command"),
                    env: at.child("env"),
                    calls: service_at(name, "calls"),
                },
            ));
        }
    }
    found
}

/// Where parts of a service are written.
struct Written {
    command: Pointer,
    env: Pointer,
    calls: Pointer,
}

/// Placeholders for services that this one does not call.
fn unknown_places(service: &Service, written: &Written) -> Vec<Violation> {
    let Program::Command(line) = &service.program else { return Vec::new() };
    let words = line.words().iter().map(|word| (word.clone(), written.command.clone()));
    let variables = service.env.iter();
    let variables =
        variables.map(|(variable, value)| (value.to_string(), written.env.child(variable)));
    let is_called = |callee: &String| service.callees().any(|of| of.as_str() == callee);
    let mut found = Vec::new();
    for (text, at) in words.chain(variables) {
        let uncalled_ones = callees_of(&text).into_iter().filter(|callee| !is_called(callee));
        found.extend(
            uncalled_ones.map(|callee| {
                uncalled(callee, service, at.clone()).because_of(written.calls.clone())
            }),
        );
    }
    found
}

fn uncalled(name: String, service: &Service, at: Pointer) -> Violation {
    let known = service.callees().map(Name::to_string).collect();
    at_value(Problem::UnknownName { kind: "called service", name, known }, at)
}

/// The services that `{url.NAME}` and `{address.NAME}` in a text are about.
fn callees_of(text: &str) -> Vec<String> {
    let after = ["{url.", "{address."].into_iter().flat_map(|begin| text.split(begin).skip(1));
    after.filter_map(|rest| Some(rest.split_once('}')?.0.to_owned())).collect()
}
