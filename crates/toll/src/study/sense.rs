//! Checks what no schema can say: that the parts of a study fit together.
//!
//! Takes the types, gives problems and where they are. Knows nothing of YAML.

mod airline;
mod app;
mod booking;
mod data_plane;
mod load;
mod own_calls;
mod placeholder;
mod reference;
mod request;
mod sweep;

pub(super) use airline::books;

use super::fault::Problem;
use super::model::{Changes, Settle, Study};
use super::quantity::{Name, Share, TimeSpan};
use super::tree::Pointer;

/// A problem, where it is, and what else it follows from.
pub(super) struct Violation {
    /// What does not fit.
    pub problem: Problem,
    /// What to mend.
    pub at: Location,
    /// What else it follows from, and what to say of that, if anything.
    pub also: Vec<(Location, Option<&'static str>)>,
}

/// A value, or the key of one.
#[derive(Debug, Clone)]
pub(super) enum Location {
    /// The value at the end of the way.
    Value(Pointer),
    /// The key that the way ends with.
    Key(Pointer),
}

impl Location {
    /// The way to it.
    pub(super) fn pointer(&self) -> &Pointer {
        match self {
            Self::Value(pointer) | Self::Key(pointer) => pointer,
        }
    }
}

/// All that does not fit together.
pub(super) fn check(study: &Study) -> Vec<Violation> {
    let mut found = unknown_baseline(study);
    found.extend(app::check(&study.app));
    found.extend(app::versions(study));
    found.extend(airline::check(&study.app));
    found.extend(app::shared_names(&sweep::largest(study)));
    found.extend(data_plane::check(study));
    found.extend(request::check(study));
    let sweeps = sweep::check(study);
    // Without sound sweeps it is not known which loads there are.
    found.extend(if sweeps.is_empty() { reference::check(study) } else { Vec::new() });
    found.extend(sweeps);
    found.extend(load::check(study));
    found.extend(extent(study));
    found.extend(hasty_settle(&study.settle, &Pointer::to(&["settle"])));
    for (key, block) in
        [("quick", &study.quick), ("paper", &study.paper), ("spring", &study.spring)]
    {
        found.extend(changes(study, block, &Pointer::to(&[key])));
    }
    found
}

fn at_value(problem: Problem, at: Pointer) -> Violation {
    Violation { problem, at: Location::Value(at), also: Vec::new() }
}

fn at_key(problem: Problem, at: Pointer) -> Violation {
    Violation { problem, at: Location::Key(at), also: Vec::new() }
}

fn service_at(name: &Name, key: &str) -> Pointer {
    Pointer::to(&["app", "services", name.as_str(), key])
}

/// A key of a service's program.
fn program_at(name: &Name, program: &str, key: &str) -> Pointer {
    service_at(name, "program").child(program).child(key)
}

/// What is below the `program` of a database.
pub(super) fn database_at(name: &Name, steps: &[&str]) -> Pointer {
    let program = Pointer::to(&["app", "databases", name.as_str(), "program"]);
    steps.iter().fold(program, |at, step| at.child(step))
}

impl Violation {
    /// Follows from a further value, of which there is nothing to say.
    fn from(self, steps: &[&str]) -> Self {
        self.because_of(Pointer::to(steps))
    }

    fn because_of(mut self, at: Pointer) -> Self {
        self.also.push((Location::Value(at), None));
        self
    }

    /// Follows from a value, of which there is something to say.
    fn see_value(mut self, at: Pointer, what: &'static str) -> Self {
        self.also.push((Location::Value(at), Some(what)));
        self
    }

    /// Follows from a key, of which there is something to say.
    fn see_key(mut self, at: Pointer, what: &'static str) -> Self {
        self.also.push((Location::Key(at), Some(what)));
        self
    }
}

fn unknown_baseline(study: &Study) -> Vec<Violation> {
    let problem =
        study.baseline.as_ref().and_then(|name| unknown("variant", name, study.variants.keys()));
    let at = |problem| at_value(problem, Pointer::to(&["baseline"])).from(&["variants"]);
    problem.map(at).into_iter().collect()
}

/// That the name is none of the known ones, if so.
fn unknown<'n>(
    kind: &'static str,
    name: &Name,
    known: impl Iterator<Item = &'n Name> + Clone,
) -> Option<Problem> {
    let problem = || Problem::UnknownName {
        kind,
        name: name.to_string(),
        known: known.clone().map(Name::to_string).collect(),
    };
    known.clone().all(|known| known != name).then(problem)
}

fn zero(what: &'static str, duration: TimeSpan, at: Pointer) -> Option<Violation> {
    let problem = || Problem::NoDuration { what, duration: duration.to_string() };
    duration.is_zero().then(|| at_value(problem(), at))
}

/// A run that would never end or at once, and a headline metric that is one already.
fn extent(study: &Study) -> Vec<Violation> {
    let headline = study.headline.iter().map(ToString::to_string).collect();
    let mut found = sweep::twice(headline, &Pointer::to(&["headline"]));
    found.extend(study.time.and_then(|time| zero("run", time, Pointer::to(&["for"]))));
    let width = study.width.filter(|width| width.fraction() == 0.0);
    let never = |width: Share| Problem::NoWidth { width: width.to_string() };
    found.extend(width.map(|width| at_value(never(width), Pointer::to(&["width"]))));
    found
}

/// A discarded load that must end before it can be stable.
fn hasty_settle(settle: &Settle, at: &Pointer) -> Option<Violation> {
    let no_slice = zero("slice", settle.slice, at.child("slice"));
    let hasty = settle.max.get() < settle.slice.get() * Settle::SLICES;
    let (slice, max) = (settle.slice.to_string(), settle.max.to_string());
    no_slice.or_else(|| hasty.then(|| at_value(Problem::SettleTooShort { slice, max }, at.clone())))
}

fn changes(study: &Study, changes: &Changes, at: &Pointer) -> Vec<Violation> {
    let slice = changes.slice.and_then(|slice| zero("slice", slice, at.child("slice")));
    let settle = changes.settle.and_then(|settle| hasty_settle(&settle, &at.child("settle")));
    let vus = changes.vus.and_then(|stages| load::no_stages(&stages, at.child("vus")));
    let loads = load::changes(study, &changes.loads, &at.child("loads"));
    let matrices = sweep::changes(study, changes, &at.child("matrices"));
    slice.into_iter().chain(settle).chain(vus).chain(loads).chain(matrices).collect()
}
