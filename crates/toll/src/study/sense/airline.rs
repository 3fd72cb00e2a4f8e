//! Whether the parts of the airline and their databases outside of the mesh fit together.
//!
//! Which part calls which, and which has something in the database, is the application's own: a file can only say
//! which service plays which part.

use super::own_calls::OwnCalls;
use super::{Violation, at_value, database_at, program_at, unknown};
use crate::study::fault::Problem;
use crate::study::model::{Airline, AirlinePart, App, Database, Request, Service, Study};
use crate::study::quantity::{Name, is_host};
use crate::study::tree::Pointer;

/// All that does not fit in the airline and its databases.
pub(super) fn check(app: &App) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, service) in &app.services {
        let data = service.program.airline().and_then(Airline::data);
        found.extend(data.and_then(|data| database_of(app, name, &data.database)));
    }
    for (name, database) in &app.databases {
        found.extend(host(name, database));
        found.extend(queried(app, name, database));
    }
    found.extend(shared_hosts(app));
    found.extend(several_databases(app));
    found
}

/// One service each of the parts that it calls, and no other. Calls of what is not there are another problem.
pub(super) fn own_calls(app: &App, part: AirlinePart, caller: &Service) -> Option<OwnCalls> {
    let called: Option<Vec<&Service>> =
        caller.callees().map(|name| app.services.get(name)).collect();
    let mut parts: Vec<Option<AirlinePart>> = called?.into_iter().map(part_of).collect();
    let mut wanted: Vec<Option<AirlinePart>> = part.calls().iter().copied().map(Some).collect();
    parts.sort_unstable();
    wanted.sort_unstable();
    let names: Vec<&str> = part.calls().iter().map(|part| part.name()).collect();
    let called = match names.as_slice() {
        [] => "nothing".into(),
        [first @ .., last] => format!("one service each that is {} and {last}", first.join(", ")),
    };
    Some(OwnCalls {
        fit: parts == wanted,
        rule: format!("the airline's {} and calls {called}", part.name()),
        example: part.calls().iter().map(|part| first_of(app, *part)).collect(),
    })
}

fn part_of(service: &Service) -> Option<AirlinePart> {
    service.program.airline().map(Airline::part)
}

/// The service that plays the part; the part's own name while there is none.
fn first_of(app: &App, part: AirlinePart) -> String {
    let found = app.services.iter().find(|(_, service)| part_of(service) == Some(part));
    found.map_or_else(|| part.name().to_owned(), |(name, _)| name.to_string())
}

/// Each part but the web asks a database that holds the airline.
fn database_of(app: &App, name: &Name, database: &Name) -> Option<Violation> {
    let problem = match app.databases.get(database) {
        None => unknown("database", database, app.databases.keys())?,
        Some(held) if held.airline().is_some() => return None,
        Some(_) => Problem::NoAirlineIn {
            database: database.to_string(),
            known: app.external().map(|(name, _)| name.to_string()).collect(),
        },
    };
    let at = program_at(name, "airline", "database");
    let found = at_value(problem, at).because_of(database_at(database, &["airline"]));
    Some(found.from(&["app", "databases"]))
}

/// Bookings in one database and their seats in another: no count would fit.
fn several_databases(app: &App) -> Vec<Violation> {
    let held =
        |database: &Name| app.databases.get(database).is_some_and(|held| held.airline().is_some());
    let mut parts = app.services.iter().filter_map(|(name, service)| {
        let database = &service.program.airline()?.data()?.database;
        held(database).then_some((name, database))
    });
    let Some((first, database)) = parts.next() else { return Vec::new() };
    let others = parts.filter(|(_, other)| *other != database);
    let at = |service: &Name| program_at(service, "airline", "database");
    let found = |(other, _): (&Name, &Name)| {
        let (one, database) = (first.to_string(), database.to_string());
        let problem = Problem::AirlineInTwo { one, database, other: other.to_string() };
        let found = at_value(problem, at(other)).see_value(at(first), "the first is here");
        found.from(&["app", "databases"])
    };
    others.map(found).collect()
}

fn host(name: &Name, database: &Database) -> Option<Violation> {
    let host = &database.airline()?.host;
    let problem = Problem::Unreadable {
        text: host.clone(),
        wanted: "a DNS name with a dot in it".into(),
        examples: vec!["db.airline.example".into()],
    };
    (!is_host(host)).then(|| at_value(problem, database_at(name, &["airline", "host"])))
}

/// Queries of a service that is no part of the airline.
fn queried(app: &App, name: &Name, database: &Database) -> Vec<Violation> {
    let queries = app.services.iter().filter(|(_, service)| {
        service.program.queries().is_some_and(|queries| queries.database == *name)
    });
    let found = |(service, _): (&Name, &Service)| {
        let problem = Problem::AirlinesDatabase { database: name.to_string() };
        at_value(problem, program_at(service, "built_in", "postgres").child("database"))
            .from(&["app", "databases"])
    };
    queries.filter(|_| database.airline().is_some()).map(found).collect()
}

/// What is outside of the mesh is found by its name.
fn shared_hosts(app: &App) -> Vec<Violation> {
    let hosts: Vec<(&Name, &str)> = app.external().collect();
    let at = |name: &Name| database_at(name, &["airline", "host"]);
    let shared = |(number, (name, host)): (usize, &(&Name, &str))| {
        let (other, _) = hosts[..number].iter().find(|(_, earlier)| earlier == host)?;
        let (host, one, other_name) = ((*host).into(), name.to_string(), other.to_string());
        let problem = Problem::SameHost { host, one, other: other_name };
        Some(at_value(problem, at(name)).see_value(at(other), "taken here"))
    };
    hosts.iter().enumerate().filter_map(shared).collect()
}

/// The service that the load calls, behind a gateway or not, and its part.
fn called_part(app: &App) -> Option<(&Name, AirlinePart)> {
    let entry = app.gateways.get(&app.entry).map_or(&app.entry, |gateway| &gateway.to);
    Some((entry, part_of(app.services.get(entry)?)?))
}

/// Whether the request makes a booking.
pub(in crate::study) fn books(app: &App, request: &Request) -> bool {
    let asked = in_words(request);
    let answered = |(_, part): (_, AirlinePart)| part.answers().contains(&asked.as_str());
    asked == "POST /bookings" && called_part(app).is_some_and(answered)
}

/// That the part of the airline which the load calls has no such answer, if so.
pub(super) fn unanswered(study: &Study, request: &Request, at: &Pointer) -> Option<Violation> {
    let (entry, part) = called_part(&study.app)?;
    let asked = in_words(request);
    if part.answers().contains(&asked.as_str()) {
        return None;
    }
    let known = part.answers().iter().map(|answer| (*answer).to_owned()).collect();
    let problem = Problem::UnknownOfAirline { part: part.name(), asked, known };
    let found = at_value(problem, at.child("path")).because_of(at.child("method"));
    Some(found.from(&["app", "entry"]).because_of(program_at(entry, "airline", "part")))
}

/// `GET /customers/N`: method and path, without the query, the last step a number or a placeholder of one.
fn in_words(request: &Request) -> String {
    let method = request.method.name();
    let path = request.path.as_str().split('?').next().unwrap_or_default();
    let number = |step: &str| {
        let digits = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        digits || (step.starts_with("{{") && step.ends_with("}}"))
    };
    match path.rsplit_once('/') {
        Some((path, last)) if number(last) => format!("{method} {path}/N"),
        _ => format!("{method} {path}"),
    }
}
