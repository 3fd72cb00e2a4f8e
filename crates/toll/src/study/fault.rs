//! What can be wrong with a study file, where, and what to do about it.
//!
//! Says nothing on how it was found; rendering is `miette`'s.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use super::tree::Span;

/// All that is wrong with one study file, in the order of its lines.
#[derive(Debug)]
pub struct StudyErrors {
    source: NamedSource<String>,
    faults: Vec<Fault>,
}

/// Something that weakens the results of a study that can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A gateway that does not let an external database's host out: its variant cannot work.
    #[error(
        "line {line}: the egress gateway of {variant} does not let {host} out, so nothing of it will count"
    )]
    NotLetOut {
        /// Line of the file, from 1.
        line: usize,
        /// The variant.
        variant: String,
        /// The host.
        host: String,
    },
    /// A booking that finds no free seat is refused, and the slices of those that come later do not count.
    #[error(
        "line {line}: {database} has {seats} seats in all, which a run may sell out; write `seats: {enough}` or more"
    )]
    FewSeats {
        /// Line of the file, from 1.
        line: usize,
        /// The database.
        database: String,
        /// Seats of all flights.
        seats: u64,
        /// Seats of each flight that no run sells out.
        enough: u64,
    },
    /// An agent is there and traces nothing.
    #[error(
        "line {line}: with `{setting}` the agent of {variant} traces nothing; remove it to measure tracing"
    )]
    Untraced {
        /// Line of the file, from 1.
        line: usize,
        /// The variant.
        variant: String,
        /// The setting, as `name: value`.
        setting: String,
    },
}

/// One thing that is wrong, and where.
#[derive(Debug)]
pub(super) struct Fault {
    problem: Problem,
    at: Span,
    also: Vec<(Span, &'static str)>,
}

/// What is wrong. Texts in it are as the file has them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Problem {
    #[error("not YAML: {said}")]
    Syntax { said: String },
    #[error("the file holds no study")]
    EmptyFile,
    #[error("a second document begins here")]
    SecondDocument,
    #[error("a key must be text")]
    KeyIsNotText,
    #[error("the key `{key}` stands here twice")]
    DuplicateKey { key: String },
    #[error("unknown key `{key}`")]
    UnknownKey { key: String, allowed: Vec<String> },
    #[error("{program} has no key `{key}`")]
    UnknownKeyOfProgram { program: String, key: String, allowed: Vec<String> },
    #[error("`{written}` is of an older kind of study file")]
    Retired { written: String, instead: &'static str },
    #[error("a {kind} has {} in its `program`, not beside it", listed(.keys))]
    BesideProgram { kind: &'static str, keys: Vec<String>, program: String },
    #[error("the key `{key}` is missing")]
    MissingKey { key: String, example: String },
    #[error("one of the keys {} must be there", listed(.keys))]
    MissingOneOf { keys: Vec<String> },
    #[error("only one of the keys {} may be there", listed(.keys))]
    MoreThanOneOf { keys: Vec<String> },
    #[error("{wanted} is wanted here, not {found}")]
    WrongType { wanted: String, found: &'static str, examples: Vec<String> },
    #[error("`{value}` is not allowed here")]
    BadChoice { value: String, allowed: Vec<String> },
    #[error("`{text}` is not {wanted}")]
    Unreadable { text: String, wanted: String, examples: Vec<String> },
    #[error("{number} is outside the allowed range")]
    OutOfRange { number: String, range: String },
    #[error("at least one entry is wanted here")]
    Empty,
    #[error("the environment variable {variable} is not set")]
    VariableNotSet { variable: String },
    #[error("the file fits its schema, but not its types: {said}")]
    SchemaDisagrees { said: String },
    #[error("unknown {kind} `{name}`")]
    UnknownName { kind: &'static str, name: String, known: Vec<String> },
    #[error("the calls go in a circle: {}", .circle.join(" -> "))]
    CallCircle { circle: Vec<String> },
    #[error("`{database}` is a database: it is queried, not called")]
    CallsDatabase { database: String, of_airline: bool },
    #[error("`{one}` and `{other}` listen on the same port {port}")]
    SamePort { port: u16, one: String, other: String },
    #[error("{one} and {other} would have pods of one name")]
    SameName { one: String, other: String },
    #[error("`{service}` has no `metrics` whose series these could be")]
    SeriesOfNoMetrics { service: String },
    #[error(
        "{taken} is the {what} of the collector, which every variant has when one has a `java_agent`"
    )]
    CollectorHas { what: &'static str, taken: String },
    #[error("`{service}` is {rule}")]
    OtherCalls { service: String, rule: String, example: Vec<String> },
    #[error("`{service}` is nginx, which has no metrics that could be read")]
    MetricsOfNginx { service: String },
    #[error("`{service}` is nginx with one page and has no answer to a POST")]
    PostToNginx { service: String },
    #[error("a variant has one of {}: what each costs could not be told apart", listed(.keys))]
    SeveralDataPlanes { keys: Vec<String> },
    #[error("`{name}` would have the name of a pod that an ambient data plane brings along")]
    NameOfTheMesh { name: String },
    #[error("`{name}` would have the name of the egress gateway's pod")]
    NameOfTheGateway { name: String },
    #[error("the matrix sweeps nothing")]
    NothingSwept,
    #[error("only an open load has a rate to sweep, and `{load}` is none")]
    RateOfNoOpenLoad { load: String },
    #[error("a swept rate is absolute, not {rate}")]
    SweptShare { rate: String },
    #[error("the capacity is another at each size, and `{axis}` is swept")]
    CapacityOfSizes { axis: &'static str },
    #[error("one service is swept, not {}", listed(.services))]
    SweptServices { services: Vec<String> },
    #[error("`{value}` stands in this list twice")]
    SweptTwice { value: String },
    #[error("`{name}` is a load of `{other}` already")]
    SameCell { name: String, other: String },
    #[error("the figure is not held against `{against}`")]
    AgainstNothing { against: String },
    #[error("`{derived}` is not had of all steps of `{load}` together")]
    NotOfAStaircase { derived: String, load: String, step: String },
    #[error("the stall ({lasting}) is not shorter than its period ({every})")]
    StallFillsPeriod { lasting: String, every: String },
    #[error("`{service}` is to hand on an answer, but calls nothing")]
    NothingToRelay { service: String },
    #[error("the load calls `{service}` at one address, and it has {replicas} pods")]
    EntryReplicas { service: String, replicas: u32 },
    #[error("no service queries the database `{database}`")]
    UnaskedDatabase { database: String, of_airline: bool },
    #[error(
        "`{one}` has its part of the airline in `{database}`, and `{other}` in another database"
    )]
    AirlineInTwo { one: String, database: String, other: String },
    #[error("a booking has a body, and this one has none")]
    BookingOfNothing,
    #[error("no booking can be read from this body: {problem}")]
    UnreadableBooking { problem: String },
    #[error("two bookings may have one key, `{key}`")]
    SameBooking { key: String },
    #[error("`{database}` holds no airline")]
    NoAirlineIn { database: String, known: Vec<String> },
    #[error("only parts of the airline use the database `{database}`")]
    AirlinesDatabase { database: String },
    #[error("`{one}` and `{other}` are outside of the mesh under one name, `{host}`")]
    SameHost { host: String, one: String, other: String },
    #[error("traffic leaves a mesh of sidecars by an `egress`, and the variant has no `sidecar`")]
    EgressOfNoSidecar,
    #[error("the application has no external database that an `egress` could lead to")]
    EgressToNowhere,
    #[error("the load has a `mix`, so that this `request` is never asked")]
    RequestBesideMix,
    #[error("the airline's {part} has no answer to {asked}")]
    UnknownOfAirline { part: &'static str, asked: String, known: Vec<String> },
    #[error("only a closed load has connections to sweep, and `{load}` is none")]
    ConnectionsOfNoClosedLoad { load: String },
    #[error("the writes to `{database}` could not be checked")]
    UncountedWrites { database: String },
    #[error("`{service}` queries a database and has no answer to a POST")]
    PostToReadOnly { service: String },
    #[error("a GET has no body")]
    BodyOfGet,
    #[error("there is no body whose type it could be")]
    TypeOfNoBody,
    #[error("a {what} cannot last {duration}")]
    NoDuration { what: &'static str, duration: String },
    #[error("a width of {width} is never reached")]
    NoWidth { width: String },
    #[error("the stages of virtual users cannot all last 0s")]
    NoStages,
    #[error("a slice of virtual users is all their stages: `{key}` is for other loads")]
    LengthOfUsers { key: &'static str },
    #[error("only a slice of a closed loop ends after a number of requests, and `{load}` is none")]
    RequestsOfNoClosedLoad { load: String },
    #[error("only a load of virtual users has stages, and `{load}` is none")]
    StagesOfNoUsers { load: String },
    #[error("what the users were chosen for is a rate of its own, not {rate}")]
    CapacityOfCapacity { rate: String },
    #[error("the figure is derived of one pod: the key `pod` is missing")]
    NoPod,
    #[error("the figure is derived of all pods together, not of `{pod}`")]
    PodOfAll { pod: String },
    #[error(
        "the discarded load ends after {max}, before six slices of {slice} could show it stable"
    )]
    SettleTooShort { slice: String, max: String },
}

impl StudyErrors {
    /// All faults of the file; `faults` is not empty.
    pub(super) fn new(name: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| (fault.at.start, fault.at.end));
        Self { source: NamedSource::new(name, text.to_owned()), faults }
    }
}

impl fmt::Display for StudyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.faults.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{count} error{plural} in the study file {}", self.source.name())
    }
}

impl std::error::Error for StudyErrors {}

impl Diagnostic for StudyErrors {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.faults.iter().map(|fault| fault as &dyn Diagnostic)))
    }
}

impl Fault {
    /// A problem at one place.
    pub(super) fn new(problem: Problem, at: Span) -> Self {
        Self { problem, at, also: Vec::new() }
    }

    /// Points at a further place, and says what is there.
    pub(super) fn also(mut self, at: Span, what: &'static str) -> Self {
        self.also.push((at, what));
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl Diagnostic for Fault {
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = self.problem.label().map(str::to_owned);
        let first = LabeledSpan::new_primary_with_span(label, self.at.clone());
        let others = self.also.iter();
        let others = others.map(|(at, what)| LabeledSpan::at(at.clone(), *what));
        Some(Box::new([first].into_iter().chain(others)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}

impl Problem {
    /// A word or two at the place itself, where the message does not say enough.
    fn label(&self) -> Option<&'static str> {
        match self {
            Self::MissingKey { .. } | Self::MissingOneOf { .. } => Some("missing in here"),
            Self::DuplicateKey { .. } => Some("again here"),
            _ => None,
        }
    }

    /// What to do about it.
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Syntax { .. } => {
                "check the indentation, the brackets and the quotes here and on the line above"
                    .into()
            }
            Self::EmptyFile => "`toll study --default` prints one to start from".into(),
            Self::SecondDocument => "give each study a file of its own".into(),
            Self::KeyIsNotText => "write `key: value`".into(),
            Self::DuplicateKey { .. } => "keep one of the two".into(),
            Self::UnknownKey { key, allowed } | Self::UnknownKeyOfProgram { key, allowed, .. } => {
                choice_help(key, allowed, "allowed here")
            }
            Self::Retired { instead, .. } => (*instead).into(),
            Self::BesideProgram { program, .. } => format!("write `program: {program}`"),
            Self::MissingKey { key, example } => format!("add it, for example `{key}: {example}`"),
            Self::MissingOneOf { .. } => "add one of them".into(),
            Self::MoreThanOneOf { .. } => "keep one of them".into(),
            Self::BadChoice { value, allowed } => choice_help(value, allowed, "allowed here"),
            Self::WrongType { examples, .. } | Self::Unreadable { examples, .. } => {
                format!("for example {}", listed(examples))
            }
            Self::OutOfRange { range, .. } => format!("allowed here: {range}"),
            Self::Empty => "`toll study --default` shows one".into(),
            Self::VariableNotSet { variable } => format!("export {variable}=..., then try again"),
            Self::SchemaDisagrees { .. } => "this is a fault of toll: please report it".into(),
            Self::UnknownName { name, known, .. } => choice_help(name, known, "known"),
            Self::CallCircle { .. } => {
                "a request would never end: remove one of these calls".into()
            }
            Self::SamePort { .. } => {
                "give each its own: on one machine they may share one address".into()
            }
            Self::SeriesOfNoMetrics { .. } => {
                "say where they are, for example `metrics: http://localhost:9404/metrics`".into()
            }
            Self::CollectorHas { what, .. } => format!("give the service another {what}"),
            Self::OtherCalls { example, .. } if example.is_empty() => "remove `calls`".into(),
            Self::OtherCalls { example, .. } => {
                format!("write what it calls, for example `calls: [{}]`", example.join(", "))
            }
            Self::MetricsOfNginx { .. } => "remove `metrics`".into(),
            Self::PostToNginx { .. } => "write `method: GET`".into(),
            Self::SeveralDataPlanes { .. } => "make a variant of each".into(),
            Self::NameOfTheMesh { .. } => {
                "rename it; the proxies are called `node-1`, `node-2`, ... and `waypoint`".into()
            }
            Self::NameOfTheGateway { .. } => "rename it".into(),
            Self::NothingSwept => {
                "write what it sweeps, for example `{rate: [20/s, 50/s], replicas: {nginx: [1, 10]}}`".into()
            }
            Self::RateOfNoOpenLoad { .. } => "remove `rate`, or write `open: {rate: 20/s}`".into(),
            Self::SweptShare { .. } => "write requests per second, for example `rate: [20/s, 50/s]`".into(),
            Self::CapacityOfSizes { .. } => {
                "write requests per second, for example `rate: 50/s`, or sweep the rate as well: `matrix: {rate: [20/s, 50/s]}`".into()
            }
            Self::SweptServices { .. } => {
                "keep one of them, and give the others their `replicas` in the application".into()
            }
            Self::SweptTwice { .. } => "keep one of the two".into(),
            Self::SameCell { .. } => {
                "rename one of the loads; cells are called `LOAD-20x90` (rate or connections x replicas)".into()
            }
            Self::AgainstNothing { .. } => {
                "remove `against`, or name another variant for a figure that holds two against each other".into()
            }
            Self::NotOfAStaircase { step, .. } => {
                format!("name one of its steps, for example `load: {step}`")
            }
            Self::SameName { .. } => {
                "rename one of them;\nthe pods of several replicas are `NAME-1`, `NAME-2`, ..."
                    .into()
            }
            Self::CallsDatabase { database, of_airline: true } => {
                format!("name it in the `program` of a part of the airline: `database: {database}`")
            }
            Self::CallsDatabase { database, of_airline: false } => {
                format!("query it from a built-in service: `postgres: {{database: {database}, read: ...}}`")
            }
            Self::EntryReplicas { service, .. } => {
                format!("put a gateway before it: `gateways: {{ingress: {{port: 8080, to: {service}}}}}`, `entry: ingress`")
            }
            Self::NothingToRelay { .. } => {
                "name in `calls` whose answer it hands on, or remove `relay`".into()
            }
            Self::UnaskedDatabase { database, of_airline: true } => {
                format!("name it in the `program` of a part of the airline, `database: {database}`, or remove it")
            }
            Self::UnaskedDatabase { database, of_airline: false } => format!(
                "query it from a built-in service, `postgres: {{database: {database}, read: ...}}`, or remove it"
            ),
            Self::AirlineInTwo { database, .. } => format!(
                "write `database: {database}`: bookings and seats are counted in one database"
            ),
            Self::BookingOfNothing | Self::UnreadableBooking { .. } => {
                format!("for example `body: '{BOOKING}'`")
            }
            Self::SameBooking { .. } => {
                "each booking must be found again: write `{{counter}}-{{random}}` into the key".into()
            }
            Self::NoAirlineIn { known, .. } if known.is_empty() => {
                "add one that does: `databases: {airline-db: {port: 27017, program: {airline: {host: db.airline.example}}}}`".into()
            }
            Self::NoAirlineIn { known, .. } => format!("those that do: {}", listed(known)),
            Self::AirlinesDatabase { .. } => {
                "give the service a database of its own: `program: {postgres: {seed: ...}}`".into()
            }
            Self::SameHost { .. } => "give each a name of its own: the way out is found by it".into(),
            Self::EgressOfNoSidecar => {
                "remove `egress`, or add `sidecar: {proxy: envoy, mtls: strict}`".into()
            }
            Self::EgressToNowhere => {
                "remove `egress`, or add a database that is outside: `program: {airline: {host: db.airline.example}}`".into()
            }
            Self::RequestBesideMix => "make it one of the `mix`, or remove one of the two".into(),
            Self::UnknownOfAirline { asked, known, .. } => choice_help(asked, known, "known"),
            Self::ConnectionsOfNoClosedLoad { .. } => {
                "remove `connections`, or write `closed: {connections: 20}`".into()
            }
            Self::UncountedWrites { .. } => {
                "add what counts the rows that writes have made and the different ones among them,\n\
                 for example `written: SELECT count(key), count(DISTINCT key) FROM orders`"
                    .into()
            }
            Self::PostToReadOnly { .. } => {
                "say what it runs for a POST, for example\n\
                 `write: INSERT INTO orders (key) SELECT $1::text::json ->> 'key'`"
                    .into()
            }
            Self::BodyOfGet => "write `method: POST`, or remove `body`".into(),
            Self::TypeOfNoBody => "add a `body`, or remove `content_type`".into(),
            Self::StallFillsPeriod { .. } => {
                "shorten it: the service must answer between two stalls".into()
            }
            Self::NoDuration { what: "run", .. } => "write how long the run may take, for example `for: 5m`".into(),
            Self::NoDuration { .. } => "for example `slice: 400ms`".into(),
            Self::NoWidth { .. } => "write a share of the figures, for example `width: 3%`".into(),
            Self::NoStages => {
                "write how long the users come, stay and go, for example `{ramp: 1s, hold: 10s, ramp_down: 1s}`".into()
            }
            Self::LengthOfUsers { key } => {
                format!("remove `{key}`; `ramp`, `hold` and `ramp_down` say how long it is")
            }
            Self::RequestsOfNoClosedLoad { .. } => "write `slice: 400ms`".into(),
            Self::StagesOfNoUsers { .. } => "write `slice` or `requests`".into(),
            Self::CapacityOfCapacity { .. } => {
                "write what the slowest variant carried there, for example `capacity: 1526/s`".into()
            }
            Self::NoPod => "add the service's name, for example `pod: vets`".into(),
            Self::PodOfAll { .. } => "remove `pod`".into(),
            Self::SettleTooShort { .. } => {
                "leave it room, for example `{slice: 250ms, max: 3s}`".into()
            }
        };
        Some(help)
    }
}

/// A booking as the built-in study has it.
const BOOKING: &str = r#"{"key": "{{counter}}-{{random}}", "customer": {{random.0.4999}}, "flight": {{random.0.199}}}"#;

/// `port` -> "`port`"; several are joined by commas.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn choice_help(written: &str, choices: &[String], what: &str) -> String {
    let all = format!("{what}: {}", listed(choices));
    match nearest(written, choices) {
        Some(choice) => format!("did you mean `{choice}`?\n{all}"),
        None => all,
    }
}

/// The choice that the writer most likely meant, if one is near enough.
///
/// Near is at most half of the letters changed, or a choice that begins as written.
pub fn nearest<'c>(written: &str, choices: &'c [String]) -> Option<&'c str> {
    let distance = |choice: &str| strsim::damerau_levenshtein(written, choice);
    let near = |choice: &str| distance(choice) * 2 <= choice.len().max(written.len());
    let begun = |choice: &str| written.len() >= 2 && choice.starts_with(written);
    let candidates =
        choices.iter().map(String::as_str).filter(|choice| near(choice) || begun(choice));
    candidates.min_by_key(|choice| distance(choice))
}
