//! Checks what no schema can say: that the parts of a study fit together.
//!
//! Takes the types, gives problems and the places that they are about. Knows nothing of YAML.

use indexmap::IndexMap;

use super::fault::Problem;
use super::model::{App, Changes, Load, Service, Stop, Study, WarmUp};
use super::quantity::{Name, TimeSpan};
use super::tree::Pointer;

/// A problem, the place it is at, and the other places that it follows from.
pub(super) struct Nonsense {
    /// What does not fit.
    pub problem: Problem,
    /// The place to mend.
    pub at: Place,
    /// The other places that it follows from, and what to say there, if anything.
    pub also: Vec<(Place, Option<&'static str>)>,
}

/// A value, or the key of one.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The value at the end of the way.
    Value(Pointer),
    /// The key that the way ends with.
    Key(Pointer),
}

impl Place {
    /// The way to it.
    pub(super) fn pointer(&self) -> &Pointer {
        match self {
            Self::Value(pointer) | Self::Key(pointer) => pointer,
        }
    }
}

/// All that does not fit together.
pub(super) fn check(study: &Study) -> Vec<Nonsense> {
    let services = &study.app.services;
    let mut found = unknown_names(study);
    found.extend(circles(services));
    found.extend(shared_ports(services));
    found.extend(services.iter().flat_map(|(name, service)| built_in_only(name, service)));
    found.extend(services.iter().filter_map(|(name, service)| endless_stall(name, service)));
    found.extend(study.loads.iter().filter_map(|(name, load)| no_duration(name, load)));
    found.extend(warm_up_order(&study.warm_up, &Pointer::to(&["warm_up"])));
    found.extend(changes(&study.quick, &Pointer::to(&["quick"])));
    found.extend(changes(&study.paper, &Pointer::to(&["paper"])));
    found
}

fn at_value(problem: Problem, at: Pointer) -> Nonsense {
    Nonsense { problem, at: Place::Value(at), also: Vec::new() }
}

fn at_key(problem: Problem, at: Pointer) -> Nonsense {
    Nonsense { problem, at: Place::Key(at), also: Vec::new() }
}

impl Nonsense {
    /// Follows from a further place, which needs no words of its own.
    fn from(mut self, place: &[&str]) -> Self {
        self.also.push((Place::Value(Pointer::to(place)), None));
        self
    }
}

fn service_at(name: &Name, key: &str) -> Pointer {
    Pointer::to(&["app", "services", name.as_str(), key])
}

fn unknown_names(study: &Study) -> Vec<Nonsense> {
    let baseline = unknown("variant", &study.baseline, &study.variants);
    let baseline =
        baseline.map(|problem| at_value(problem, Pointer::to(&["baseline"])).from(&["variants"]));
    baseline.into_iter().chain(unknown_services(&study.app)).chain(unknown_figures(study)).collect()
}

fn unknown_services(app: &App) -> Vec<Nonsense> {
    let calls = app.services.iter().flat_map(|(caller, service)| {
        let at = service_at(caller, "calls");
        let numbered = service.calls.iter().enumerate();
        numbered.map(move |(number, called)| (called, at.child(number)))
    });
    let entry = (&app.entry, Pointer::to(&["app", "entry"]));
    let unknown_service = |(name, at)| {
        let problem = unknown("service", name, &app.services)?;
        Some(at_value(problem, at).from(&["app", "services"]))
    };
    [entry].into_iter().chain(calls).filter_map(unknown_service).collect()
}

fn unknown_figures(study: &Study) -> Vec<Nonsense> {
    let at = Pointer::to(&["reference", "figures"]);
    let mut found = Vec::new();
    for (variant, loads) in study.reference.iter().flat_map(|reference| &reference.figures) {
        let at = at.child(variant);
        let unknown_variant = unknown("variant", variant, &study.variants);
        found
            .extend(unknown_variant.map(|problem| at_key(problem, at.clone()).from(&["variants"])));
        let unknown_load = |load| {
            let problem = unknown("load", load, &study.loads)?;
            Some(at_key(problem, at.child(load)).from(&["loads"]))
        };
        found.extend(loads.keys().filter_map(unknown_load));
    }
    found
}

fn unknown<V>(kind: &'static str, name: &Name, known: &IndexMap<Name, V>) -> Option<Problem> {
    let problem = || Problem::UnknownName {
        kind,
        name: name.to_string(),
        known: known.keys().map(Name::to_string).collect(),
    };
    (!known.contains_key(name)).then(problem)
}

/// Each circle of calls once, at the call that closes it.
fn circles(services: &IndexMap<Name, Service>) -> Vec<Nonsense> {
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
    found: Vec<Nonsense>,
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
        for (number, called) in service.calls.iter().enumerate() {
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

fn circle(way: &[Call]) -> Nonsense {
    let place = |call: &Call| Place::Value(service_at(call.caller, "calls").child(call.number));
    let (last, others) = way.split_last().expect("a circle has at least the call that closes it");
    let callers = way.iter().chain(way.first()).map(|call| call.caller.to_string());
    Nonsense {
        problem: Problem::CallCircle { circle: callers.collect() },
        at: place(last),
        also: others.iter().map(|call| (place(call), Some("this call leads there"))).collect(),
    }
}

fn shared_ports(services: &IndexMap<Name, Service>) -> Vec<Nonsense> {
    let shared = |(number, (name, service)): (usize, (&Name, &Service))| {
        let mut earlier = services.iter().take(number);
        let (other, _) = earlier.find(|(_, other)| other.port == service.port)?;
        let (service, port) = (name.to_string(), service.port);
        Some(Nonsense {
            problem: Problem::SamePort { port, service, other: other.to_string() },
            at: Place::Value(service_at(name, "port")),
            also: vec![(Place::Value(service_at(other, "port")), Some("taken here"))],
        })
    };
    services.iter().enumerate().filter_map(shared).collect()
}

fn built_in_only(name: &Name, service: &Service) -> Vec<Nonsense> {
    if service.command.is_none() {
        return Vec::new();
    }
    let keys = [
        ("work", service.work.is_some()),
        ("reply", service.reply.is_some()),
        ("stall", service.stall.is_some()),
    ];
    let problem = |key| Problem::BuiltInOnly { key, service: name.to_string() };
    let written = keys.into_iter().filter(|(_, written)| *written);
    written.map(|(key, _)| at_key(problem(key), service_at(name, key))).collect()
}

fn endless_stall(name: &Name, service: &Service) -> Option<Nonsense> {
    let stall = service.stall.filter(|stall| stall.lasting >= stall.every)?;
    let at = service_at(name, "stall");
    let (lasting, every) = (stall.lasting.to_string(), stall.every.to_string());
    Some(Nonsense {
        problem: Problem::StallFillsPeriod { lasting, every },
        at: Place::Value(at.child("for")),
        also: vec![(Place::Value(at.child("every")), Some("the period"))],
    })
}

fn no_duration(name: &Name, load: &Load) -> Option<Nonsense> {
    match load.stop {
        Stop::Duration(duration) => {
            zero(duration, Pointer::to(&["loads", name.as_str(), "duration"]))
        }
        Stop::Requests(_) => None,
    }
}

fn zero(duration: TimeSpan, at: Pointer) -> Option<Nonsense> {
    let problem = || Problem::NoDuration { duration: duration.to_string() };
    duration.is_zero().then(|| at_value(problem(), at))
}

fn warm_up_order(warm_up: &WarmUp, at: &Pointer) -> Option<Nonsense> {
    let problem =
        || Problem::WarmUpOrder { min: warm_up.min.to_string(), max: warm_up.max.to_string() };
    (warm_up.min > warm_up.max).then(|| Nonsense {
        problem: problem(),
        at: Place::Value(at.clone()),
        also: Vec::new(),
    })
}

fn changes(changes: &Changes, at: &Pointer) -> Vec<Nonsense> {
    let duration = changes.duration.and_then(|duration| zero(duration, at.child("duration")));
    let warm_up = changes.warm_up.and_then(|warm_up| warm_up_order(&warm_up, &at.child("warm_up")));
    duration.into_iter().chain(warm_up).collect()
}
