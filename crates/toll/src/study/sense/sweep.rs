//! Whether sweeps fit their loads: what is swept is there, absolute, and makes cells of different names.

use super::{Violation, at_key, at_value, unknown};
use crate::study::fault::Problem;
use crate::study::model::{App, Changes, Combination, Load, LoadModel, Matrix, Study};
use crate::study::quantity::{Name, Rate};
use crate::study::tree::Pointer;

/// Most pods that one service may have.
const MOST_REPLICAS: u32 = 1000;
/// Most nodes.
const MOST_NODES: u32 = 100;
/// Most connections of a closed loop.
const MOST_CONNECTIONS: u32 = 60_000;

/// All that does not fit in the sweeps of the study's own loads.
pub(super) fn check(study: &Study) -> Vec<Violation> {
    let mut found = shared_cells(study);
    for (name, load) in &study.loads {
        if let Some(matrix) = &load.matrix {
            let at = Pointer::to(&["loads", name.as_str(), "matrix"]);
            found.extend(of_matrix(study, (name, load), matrix, &at));
        }
    }
    found
}

/// What a profile says of sweeps.
pub(super) fn changes(study: &Study, changes: &Changes, at: &Pointer) -> Vec<Violation> {
    let one = |(name, matrix): (&Name, &Matrix)| {
        let at = at.child(name);
        match study.loads.get(name) {
            None => {
                let problem = unknown("load", name, study.loads.keys());
                let found = problem.map(|problem| at_key(problem, at).from(&["loads"]));
                found.into_iter().collect()
            }
            Some(load) => of_matrix(study, (name, load), matrix, &at),
        }
    };
    changes.matrices.iter().flat_map(one).collect()
}

/// The application with as many pods of each service as any sweep has: the most names that pods can have.
pub(super) fn largest(study: &Study) -> App {
    let mut app = study.app.clone();
    for (name, replicas) in matrices(study).flat_map(|matrix| &matrix.replicas) {
        if let Some(service) = app.services.get_mut(name) {
            service.replicas = replicas.iter().copied().fold(service.replicas, u32::max);
        }
    }
    app
}

/// The sweeps of the study and of its profiles.
fn matrices(study: &Study) -> impl Iterator<Item = &Matrix> {
    let own = study.loads.values().filter_map(|load| load.matrix.as_ref());
    let profiles = [&study.quick, &study.paper, &study.spring];
    own.chain(profiles.into_iter().flat_map(|changes| changes.matrices.values()))
}

/// The names under which loads are borne, those of every profile included.
pub(super) fn names_of_loads(study: &Study) -> Vec<Name> {
    let own = study.loads.iter().filter(|(_, load)| load.matrix.is_none());
    let own = own.flat_map(|(name, load)| load.names(name));
    let own = own.filter_map(|name| name.parse().ok());
    let mut names: Vec<Name> = Vec::new();
    for name in own.chain(cells(study).map(|(name, _)| name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The application of the size that a load has.
pub(super) fn app_under(study: &Study, load: &Name) -> App {
    let mut app = study.app.clone();
    let cell = cells(study).find(|(name, _)| name == load).and_then(|(_, cell)| cell.replicas);
    if let Some((name, replicas)) = cell
        && let Some(service) = app.services.get_mut(&name)
    {
        service.replicas = replicas;
    }
    app
}

/// The cells of the study and of its profiles. What is too long for a name cannot be referred to.
fn cells(study: &Study) -> impl Iterator<Item = (Name, Combination)> {
    let own = study.loads.iter().filter_map(|(name, load)| Some((name, load.matrix.as_ref()?)));
    let profiles = [&study.quick, &study.paper, &study.spring];
    let all = own.chain(profiles.into_iter().flat_map(|changes| &changes.matrices));
    all.flat_map(|(load, matrix)| {
        let cells = matrix.combinations().into_iter();
        cells.filter_map(|cell| Some((cell.name(load.as_str()).parse().ok()?, cell)))
    })
}

fn of_matrix(
    study: &Study,
    (name, load): (&Name, &Load),
    matrix: &Matrix,
    at: &Pointer,
) -> Vec<Violation> {
    let mut found: Vec<Violation> = nothing_swept(matrix, at).into_iter().collect();
    found.extend(rate_of_none(name, load, matrix, at));
    found.extend(rates_of_capacity(matrix, at));
    found.extend(connections_of_none(name, load, matrix, at));
    found.extend(counts(&matrix.connections, MOST_CONNECTIONS, &at.child("connections")));
    found.extend(capacity_of_sizes(name, load, matrix, at));
    found.extend(services(study, matrix, at));
    let rates = matrix.rate.iter().map(Rate::to_string).collect();
    found.extend(twice(rates, &at.child("rate")));
    found.extend(counts(&matrix.nodes, MOST_NODES, &at.child("nodes")));
    found
}

fn nothing_swept(matrix: &Matrix, at: &Pointer) -> Option<Violation> {
    let nothing = *matrix == Matrix::default();
    let axes = ["rate", "connections", "replicas", "nodes"];
    nothing.then(|| {
        let found = at_value(Problem::NothingSwept, at.clone());
        axes.iter().fold(found, |found, axis| found.because_of(at.child(axis)))
    })
}

/// Only an open load has a rate of its own.
fn rate_of_none(name: &Name, load: &Load, matrix: &Matrix, at: &Pointer) -> Option<Violation> {
    let surplus = !matrix.rate.is_empty() && !matches!(load.model, LoadModel::Open(_));
    let problem = Problem::RateOfNoOpenLoad { load: name.to_string() };
    surplus.then(|| {
        let found = at_key(problem, at.child("rate"));
        super::load::of_a_load(found, &Pointer::to(&["loads", name.as_str()]))
    })
}

/// Only a closed load is as many connections as are written: in an open one they are a bound.
fn connections_of_none(
    name: &Name,
    load: &Load,
    matrix: &Matrix,
    at: &Pointer,
) -> Option<Violation> {
    let surplus = !matrix.connections.is_empty() && !matches!(load.model, LoadModel::Closed(_));
    let problem = Problem::ConnectionsOfNoClosedLoad { load: name.to_string() };
    surplus.then(|| {
        let found = at_key(problem, at.child("connections"));
        super::load::of_a_load(found, &Pointer::to(&["loads", name.as_str()]))
    })
}

fn rates_of_capacity(matrix: &Matrix, at: &Pointer) -> Vec<Violation> {
    let of_capacity = |(number, rate): (usize, &Rate)| {
        let problem = Problem::SweptShare { rate: rate.to_string() };
        let share = matches!(rate, Rate::OfCapacity(_));
        share.then(|| at_value(problem, at.child("rate").child(number)))
    };
    matrix.rate.iter().enumerate().filter_map(of_capacity).collect()
}

/// The capacity is measured at one size: shares of it would be other loads at each of the others.
fn capacity_of_sizes(name: &Name, load: &Load, matrix: &Matrix, at: &Pointer) -> Option<Violation> {
    let axis = if matrix.replicas.is_empty() { "nodes" } else { "replicas" };
    let sized = !matrix.replicas.is_empty() || !matrix.nodes.is_empty();
    let load_at = Pointer::to(&["loads", name.as_str()]);
    let capacity = match load.model {
        LoadModel::Open(open) if matrix.rate.is_empty() => {
            matches!(open.rate, Rate::OfCapacity(_)).then(|| load_at.child("open").child("rate"))
        }
        LoadModel::Curve(_) => Some(load_at.child("curve")),
        LoadModel::Vus(vus) => vus.scale.map(|_| load_at.child("vus").child("scale")),
        LoadModel::Open(_) | LoadModel::Closed(_) => None,
    };
    let capacity = capacity.filter(|_| sized)?;
    let found = at_value(Problem::CapacityOfSizes { axis }, capacity);
    Some(found.see_key(at.child(axis), "swept here"))
}

/// One service, one that there is, and as many pods as there can be.
fn services(study: &Study, matrix: &Matrix, at: &Pointer) -> Vec<Violation> {
    let at = at.child("replicas");
    let mut found = Vec::new();
    if matrix.replicas.len() > 1 {
        let services = matrix.replicas.keys().map(ToString::to_string).collect();
        found.push(at_value(Problem::SweptServices { services }, at.clone()));
    }
    for (name, replicas) in &matrix.replicas {
        let problem = unknown("service", name, study.app.services.keys());
        let at_name = |problem| at_key(problem, at.child(name)).from(&["app", "services"]);
        found.extend(problem.map(at_name));
        found.extend(replicas.is_empty().then(|| at_value(Problem::NothingSwept, at.child(name))));
        found.extend(counts(replicas, MOST_REPLICAS, &at.child(name)));
        let most = replicas.iter().copied().max().unwrap_or(0);
        found.extend((most > 1 && *name == study.app.entry).then(|| {
            let problem = Problem::EntryReplicas { service: name.to_string(), replicas: most };
            at_value(problem, at.child(name)).from(&["app", "entry"])
        }));
    }
    found
}

/// At least one, each in its range, none twice.
fn counts(counts: &[u32], most: u32, at: &Pointer) -> Vec<Violation> {
    let outside = |(number, count): (usize, &u32)| {
        let range = format!("1 to {most}");
        let problem = Problem::OutOfRange { number: count.to_string(), range };
        (!(1..=most).contains(count)).then(|| at_value(problem, at.child(number)))
    };
    let outside = counts.iter().enumerate().filter_map(outside);
    outside.chain(twice(counts.iter().map(u32::to_string).collect(), at)).collect()
}

/// Values that stand in a list before: cells of a sweep would have one name.
pub(super) fn twice(values: Vec<String>, at: &Pointer) -> Vec<Violation> {
    let again = |(number, value): (usize, &String)| {
        let first = values[..number].iter().position(|earlier| earlier == value)?;
        let found = at_value(Problem::SweptTwice { value: value.clone() }, at.child(number));
        Some(found.see_value(at.child(first), "here first"))
    };
    values.iter().enumerate().filter_map(again).collect()
}

/// A cell that is called as another load, or as a cell of it.
fn shared_cells(study: &Study) -> Vec<Violation> {
    let mut taken: Vec<(String, &Name)> = Vec::new();
    let mut found = Vec::new();
    for (name, load) in &study.loads {
        let names = load.names(name);
        let clash = taken.iter().find(|(known, other)| names.contains(known) && *other != name);
        if let Some((shared, other)) = clash {
            let at = |load: &Name| Pointer::to(&["loads", load.as_str()]);
            let problem = Problem::SameCell { name: shared.clone(), other: other.to_string() };
            found.push(at_key(problem, at(name)).see_key(at(other), "the other load"));
        }
        taken.extend(names.into_iter().map(|cell| (cell, name)));
    }
    found
}
