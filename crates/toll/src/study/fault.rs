//! What can be wrong with a study file, where, and what to do about it.
//!
//! Says nothing on how it was found; rendering is `miette`'s.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource};

use super::command_line::NoCommandLine;

/// A part of the text, in bytes.
pub(super) type Span = Range<usize>;

/// All that is wrong with one study file, in the order of its lines.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{} in the study file {}", counted(faults.len()), text.name())]
pub struct StudyErrors {
    #[source_code]
    text: NamedSource<String>,
    #[related]
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
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub(super) struct Fault {
    problem: Problem,
    at: Span,
    also: Vec<(Span, &'static str)>,
}

/// What is wrong. Texts in it are as the file has them.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(super) enum Problem {
    #[error("not YAML: {said}")]
    #[diagnostic(help(
        "check the indentation, the brackets and the quotes here and on the line above"
    ))]
    Syntax { said: String },
    #[error("the file holds no study")]
    #[diagnostic(help("`toll study --default` prints one to start from"))]
    EmptyFile,
    #[error("a second document begins here")]
    #[diagnostic(help("give each study a file of its own"))]
    SecondDocument,
    #[error("a key must be text")]
    #[diagnostic(help("write `key: value`"))]
    KeyIsNotText,
    #[error("the key `{key}` stands here twice")]
    #[diagnostic(help("keep one of the two"))]
    DuplicateKey { key: String },
    #[error("unknown key `{key}`")]
    #[diagnostic(help("{}", choice_help(key, allowed, "allowed here")))]
    UnknownKey { key: String, allowed: Vec<String> },
    #[error("{program} has no key `{key}`")]
    #[diagnostic(help("{}", choice_help(key, allowed, "allowed here")))]
    UnknownKeyOfProgram { program: String, key: String, allowed: Vec<String> },
    #[error("`{written}` is of an older kind of study file")]
    #[diagnostic(help("{instead}"))]
    Retired { written: String, instead: &'static str },
    #[error("a {kind} has {} in its `program`, not beside it", listed(.keys))]
    #[diagnostic(help("write `program: {program}`"))]
    BesideProgram { kind: &'static str, keys: Vec<String>, program: String },
    #[error("the key `{key}` is missing")]
    #[diagnostic(help("add it, for example `{key}: {example}`"))]
    MissingKey { key: String, example: String },
    #[error("one of the keys {} must be there", listed(.keys))]
    #[diagnostic(help("add one of them"))]
    MissingOneOf { keys: Vec<String> },
    #[error("only one of the keys {} may be there", listed(.keys))]
    #[diagnostic(help("keep one of them"))]
    MoreThanOneOf { keys: Vec<String> },
    #[error("{wanted} is wanted here, not {found}")]
    #[diagnostic(help("for example {}", listed(examples)))]
    WrongType { wanted: String, found: &'static str, examples: Vec<String> },
    #[error("`{value}` is not allowed here")]
    #[diagnostic(help("{}", choice_help(value, allowed, "allowed here")))]
    BadChoice { value: String, allowed: Vec<String> },
    #[error("`{text}` is not {wanted}")]
    #[diagnostic(help("for example {}", listed(examples)))]
    Unreadable { text: String, wanted: String, examples: Vec<String> },
    #[error("{why}")]
    #[diagnostic(help("{}", command_help(why, text)))]
    NoCommandLine { why: NoCommandLine, text: String },
    #[error("`{service}` is no program of yours, and only such a one has `{key}`")]
    #[diagnostic(help("remove `{key}`, or write `program: {{command: ...}}`"))]
    OfNoCommand { service: String, key: &'static str },
    #[error("`{service}` is no program of yours, and only such a one has versions")]
    #[diagnostic(help(
        "write its `program: {{command: ...}}` in the application, and another `command` here"
    ))]
    VersionOfNoCommand { service: String },
    #[error("{number} is outside the allowed range")]
    #[diagnostic(help("allowed here: {range}"))]
    OutOfRange { number: String, range: String },
    #[error("at least one entry is wanted here")]
    #[diagnostic(help("`toll study --default` shows one"))]
    Empty,
    #[error("the environment variable {variable} is not set")]
    #[diagnostic(help("export {variable}=..., then try again"))]
    VariableNotSet { variable: String },
    #[error("the file fits its schema, but not its types: {said}")]
    #[diagnostic(help("this is a fault of toll: please report it"))]
    SchemaDisagrees { said: String },
    #[error("unknown {kind} `{name}`")]
    #[diagnostic(help("{}", choice_help(name, known, "known")))]
    UnknownName { kind: &'static str, name: String, known: Vec<String> },
    #[error("the calls go in a circle: {}", .circle.join(" -> "))]
    #[diagnostic(help("a request would never end: remove one of these calls"))]
    CallCircle { circle: Vec<String> },
    #[error("`{database}` is a database: it is queried, not called")]
    #[diagnostic(help("{}", query_help(database, *of_airline, ": ", "")))]
    CallsDatabase { database: String, of_airline: bool },
    #[error("`{one}` and `{other}` listen on the same port {port}")]
    #[diagnostic(help("give each its own: on one machine they may share one address"))]
    SamePort { port: u16, one: String, other: String },
    #[error("{one} and {other} would have pods of one name")]
    #[diagnostic(help(
        "rename one of them;\nthe pods of several replicas are `NAME-1`, `NAME-2`, ..."
    ))]
    SameName { one: String, other: String },
    #[error("`{service}` has no `metrics` whose series these could be")]
    #[diagnostic(help("say where they are, for example `metrics: http://localhost:9404/metrics`"))]
    SeriesOfNoMetrics { service: String },
    #[error(
        "{taken} is the {what} of the collector, which every variant has when one has a `java_agent`"
    )]
    #[diagnostic(help("give the service another {what}"))]
    CollectorHas { what: &'static str, taken: String },
    #[error("`{service}` is {rule}")]
    #[diagnostic(help("{}", calls_help(example)))]
    OtherCalls { service: String, rule: String, example: Vec<String> },
    #[error("`{service}` is nginx, which has no metrics that could be read")]
    #[diagnostic(help("remove `metrics`"))]
    MetricsOfNginx { service: String },
    #[error("`{service}` is nginx with one page and has no answer to a POST")]
    #[diagnostic(help("write `method: GET`"))]
    PostToNginx { service: String },
    #[error("a variant has one of {}: what each costs could not be told apart", listed(.keys))]
    #[diagnostic(help("make a variant of each"))]
    SeveralDataPlanes { keys: Vec<String> },
    #[error("`{name}` would have the name of a pod that an ambient data plane brings along")]
    #[diagnostic(help("rename it; the proxies are called `node-1`, `node-2`, ... and `waypoint`"))]
    NameOfTheMesh { name: String },
    #[error("`{name}` would have the name of the egress gateway's pod")]
    #[diagnostic(help("rename it"))]
    NameOfTheGateway { name: String },
    #[error("the matrix sweeps nothing")]
    #[diagnostic(help(
        "write what it sweeps, for example `{{rate: [20/s, 50/s], replicas: {{nginx: [1, 10]}}}}`"
    ))]
    NothingSwept,
    #[error("only an open load has a rate to sweep, and `{load}` is none")]
    #[diagnostic(help("remove `rate`, or write `open: {{rate: 20/s}}`"))]
    RateOfNoOpenLoad { load: String },
    #[error("a swept rate is absolute, not {rate}")]
    #[diagnostic(help("write requests per second, for example `rate: [20/s, 50/s]`"))]
    SweptShare { rate: String },
    #[error("the capacity is another at each size, and `{axis}` is swept")]
    #[diagnostic(help(
        "write requests per second, for example `rate: 50/s`, or sweep the rate as well: `matrix: {{rate: [20/s, 50/s]}}`"
    ))]
    CapacityOfSizes { axis: &'static str },
    #[error("one service is swept, not {}", listed(.services))]
    #[diagnostic(help(
        "keep one of them, and give the others their `replicas` in the application"
    ))]
    SweptServices { services: Vec<String> },
    #[error("`{value}` stands in this list twice")]
    #[diagnostic(help("keep one of the two"))]
    SweptTwice { value: String },
    #[error("`{name}` is a load of `{other}` already")]
    #[diagnostic(help(
        "rename one of the loads; cells are called `LOAD-20x90` (rate or connections x replicas)"
    ))]
    SameCell { name: String, other: String },
    #[error("the figure is not held against `{against}`")]
    #[diagnostic(help(
        "remove `against`, or name another variant for a figure that holds two against each other"
    ))]
    AgainstNothing { against: String },
    #[error("`{derived}` is not had of all steps of `{load}` together")]
    #[diagnostic(help("name one of its steps, for example `load: {step}`"))]
    NotOfAStaircase { derived: String, load: String, step: String },
    #[error("the stall ({lasting}) is not shorter than its period ({every})")]
    #[diagnostic(help("shorten it: the service must answer between two stalls"))]
    StallFillsPeriod { lasting: String, every: String },
    #[error("`{service}` is to hand on an answer, but calls nothing")]
    #[diagnostic(help("name in `calls` whose answer it hands on, or remove `relay`"))]
    NothingToRelay { service: String },
    #[error("the load calls `{service}` at one address, and it has {replicas} pods")]
    #[diagnostic(help(
        "put a gateway before it: `gateways: {{ingress: {{port: 8080, to: {service}}}}}`, `entry: ingress`"
    ))]
    EntryReplicas { service: String, replicas: u32 },
    #[error("no service queries the database `{database}`")]
    #[diagnostic(help("{}", query_help(database, *of_airline, ", ", ", or remove it")))]
    UnaskedDatabase { database: String, of_airline: bool },
    #[error(
        "`{one}` has its part of the airline in `{database}`, and `{other}` in another database"
    )]
    #[diagnostic(help(
        "write `database: {database}`: bookings and seats are counted in one database"
    ))]
    AirlineInTwo { one: String, database: String, other: String },
    #[error("a booking has a body, and this one has none")]
    #[diagnostic(help("for example `body: '{BOOKING}'`"))]
    BookingOfNothing,
    #[error("no booking can be read from this body: {problem}")]
    #[diagnostic(help("for example `body: '{BOOKING}'`"))]
    UnreadableBooking { problem: String },
    #[error("two bookings may have one key, `{key}`")]
    #[diagnostic(help(
        "each booking must be found again: write `{{{{counter}}}}-{{{{random}}}}` into the key"
    ))]
    SameBooking { key: String },
    #[error("`{database}` holds no airline")]
    #[diagnostic(help("{}", airline_help(known)))]
    NoAirlineIn { database: String, known: Vec<String> },
    #[error("only parts of the airline use the database `{database}`")]
    #[diagnostic(help(
        "give the service a database of its own: `program: {{postgres: {{seed: ...}}}}`"
    ))]
    AirlinesDatabase { database: String },
    #[error("`{one}` and `{other}` are outside of the mesh under one name, `{host}`")]
    #[diagnostic(help("give each a name of its own: the way out is found by it"))]
    SameHost { host: String, one: String, other: String },
    #[error("Mesher has no mTLS: its traffic is plaintext on every hop")]
    #[diagnostic(help("remove `mtls`, or choose `proxy: envoy`"))]
    MtlsOfMesher,
    #[error("Mesher lets no traffic out of a mesh")]
    #[diagnostic(help("remove `egress`, or choose `sidecar: {{proxy: envoy}}`"))]
    EgressOfMesher,
    #[error("traffic leaves a mesh of sidecars by an `egress`, and the variant has no `sidecar`")]
    #[diagnostic(help("remove `egress`, or add `sidecar: {{proxy: envoy, mtls: strict}}`"))]
    EgressOfNoSidecar,
    #[error("the application has no external database that an `egress` could lead to")]
    #[diagnostic(help(
        "remove `egress`, or add a database that is outside: `program: {{airline: {{host: db.airline.example}}}}`"
    ))]
    EgressToNowhere,
    #[error("the load has a `mix`, so that this `request` is never asked")]
    #[diagnostic(help("make it one of the `mix`, or remove one of the two"))]
    RequestBesideMix,
    #[error("the airline's {part} has no answer to {asked}")]
    #[diagnostic(help("{}", choice_help(asked, known, "known")))]
    UnknownOfAirline { part: &'static str, asked: String, known: Vec<String> },
    #[error("only a closed load has connections to sweep, and `{load}` is none")]
    #[diagnostic(help("remove `connections`, or write `closed: {{connections: 20}}`"))]
    ConnectionsOfNoClosedLoad { load: String },
    #[error("the writes to `{database}` could not be checked")]
    #[diagnostic(help(
        "add what counts the rows that writes have made and the different ones among them,\nfor example `written: SELECT count(key), count(DISTINCT key) FROM orders`"
    ))]
    UncountedWrites { database: String },
    #[error("`{service}` queries a database and has no answer to a POST")]
    #[diagnostic(help(
        "say what it runs for a POST, for example\n`write: INSERT INTO orders (key) SELECT $1::text::json ->> 'key'`"
    ))]
    PostToReadOnly { service: String },
    #[error("a {method} has no body")]
    #[diagnostic(help("write `method: POST`, or remove the body"))]
    BodyOfRead { method: &'static str },
    #[error("there is no body whose type it could be")]
    #[diagnostic(help("add a `body`, or remove `content_type`"))]
    TypeOfNoBody,
    #[error("a request has one body")]
    #[diagnostic(help("keep `body` or `body_file`"))]
    TwoBodies,
    #[error("there is no Envoy of toll's own beside the services of this variant")]
    #[diagnostic(help("add `sidecar: {{proxy: envoy}}`, or remove `envoy`"))]
    SettingsOfNoEnvoy,
    #[error("the traffic there cannot be {rate}")]
    #[diagnostic(help("write requests per second, for example `rate: 2000/s`"))]
    RelativeTraffic { rate: String },
    #[error("`{name}` is no name of a header")]
    #[diagnostic(help("letters, digits and dashes, for example `x-tenant: acme`"))]
    NoHeader { name: String },
    #[error("toll sets the header `{name}` itself")]
    #[diagnostic(help("{}", header_help(name)))]
    HeaderOfToll { name: String },
    #[error("a {what} cannot last {duration}")]
    #[diagnostic(help("{}", duration_help(what)))]
    NoDuration { what: &'static str, duration: String },
    #[error("a width of {width} is never reached")]
    #[diagnostic(help("write a share of the figures, for example `width: 3%`"))]
    NoWidth { width: String },
    #[error("the stages of virtual users cannot all last 0s")]
    #[diagnostic(help(
        "write how long the users come, stay and go, for example `{{ramp: 1s, hold: 10s, ramp_down: 1s}}`"
    ))]
    NoStages,
    #[error("a slice of virtual users is all their stages: `{key}` is for other loads")]
    #[diagnostic(help("remove `{key}`; `ramp`, `hold` and `ramp_down` say how long it is"))]
    LengthOfUsers { key: &'static str },
    #[error("only a slice of a closed loop ends after a number of requests, and `{load}` is none")]
    #[diagnostic(help("write `slice: 400ms`"))]
    RequestsOfNoClosedLoad { load: String },
    #[error("only a load of virtual users has stages, and `{load}` is none")]
    #[diagnostic(help("write `slice` or `requests`"))]
    StagesOfNoUsers { load: String },
    #[error("what the users were chosen for is a rate of its own, not {rate}")]
    #[diagnostic(help(
        "write what the slowest variant carried there, for example `capacity: 1526/s`"
    ))]
    CapacityOfCapacity { rate: String },
    #[error("the figure is derived of one pod: the key `pod` is missing")]
    #[diagnostic(help("add the service's name, for example `pod: vets`"))]
    NoPod,
    #[error("the figure is derived of all pods together, not of `{pod}`")]
    #[diagnostic(help("remove `pod`"))]
    PodOfAll { pod: String },
    #[error(
        "the discarded load ends after {max}, before six slices of {slice} could show it stable"
    )]
    #[diagnostic(help("leave it room, for example `{{slice: 250ms, max: 3s}}`"))]
    SettleTooShort { slice: String, max: String },
}

impl StudyErrors {
    /// All faults of the file; `faults` is not empty.
    pub(super) fn new(name: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| (fault.at.start, fault.at.end));
        Self { text: NamedSource::new(name, text.to_owned()), faults }
    }
}

impl Fault {
    /// A problem at one span of the text.
    pub(super) fn new(problem: Problem, at: Span) -> Self {
        Self { problem, at, also: Vec::new() }
    }

    /// Points at a further span, and says what is there.
    pub(super) fn also(mut self, at: Span, what: &'static str) -> Self {
        self.also.push((at, what));
        self
    }
}

impl Diagnostic for Fault {
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = self.problem.label().map(str::to_owned);
        let first = LabeledSpan::new_primary_with_span(label, self.at.clone());
        let others = self.also.iter();
        let others = others.map(|(at, what)| LabeledSpan::at(at.clone(), *what));
        Some(Box::new([first].into_iter().chain(others)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help()
    }
}

impl Problem {
    /// A word or two at the span itself, where the message does not say enough.
    fn label(&self) -> Option<&'static str> {
        match self {
            Self::MissingKey { .. } | Self::MissingOneOf { .. } => Some("missing in here"),
            Self::DuplicateKey { .. } => Some("again here"),
            _ => None,
        }
    }
}

/// A booking as the built-in study has it.
const BOOKING: &str = r#"{"key": "{{counter}}-{{random}}", "customer": {{random.0.4999}}, "flight": {{random.0.199}}}"#;

/// `port` -> "`port`"; several are joined by commas.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// How services ask a database.
fn query_help(database: &str, of_airline: bool, colon: &str, else_what: &str) -> String {
    match of_airline {
        true => format!(
            "name it in the `program` of a part of the airline{colon}`database: {database}`{else_what}"
        ),
        false => format!(
            "query it from a built-in service{colon}`postgres: {{database: {database}, read: ...}}`{else_what}"
        ),
    }
}

fn calls_help(example: &[String]) -> String {
    match example {
        [] => "remove `calls`".into(),
        names => format!("write what it calls, for example `calls: [{}]`", names.join(", ")),
    }
}

fn airline_help(known: &[String]) -> String {
    match known {
        [] => "add one that does: `databases: {airline-db: {port: 27017, program: {airline: {host: db.airline.example}}}}`".into(),
        names => format!("those that do: {}", listed(names)),
    }
}

fn duration_help(what: &str) -> &'static str {
    match what {
        "run" => "write how long the run may take, for example `for: 5m`",
        _ => "for example `slice: 400ms`",
    }
}

fn header_help(name: &str) -> &'static str {
    match name.to_ascii_lowercase().as_str() {
        "content-type" => "write `content_type: ...` beside the body",
        _ => "leave it out: it follows from the URL and the body",
    }
}

fn counted(errors: usize) -> String {
    format!("{errors} error{}", if errors == 1 { "" } else { "s" })
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

fn command_help(why: &NoCommandLine, text: &str) -> String {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    let with_shell = format!("start a shell: `command: [\"sh\", \"-c\", \"exec {quoted}\"]`");
    match why {
        NoCommandLine::Empty => "for example `command: ./my-api --port {port}`".into(),
        NoCommandLine::OpenQuote => {
            "close it, or write the words as a list: `[./my-api, --name, \"it's\"]`".into()
        }
        NoCommandLine::Variable(_) => {
            format!("write it into `env` of the service, or {with_shell}")
        }
        NoCommandLine::Shell('$') => format!(
            "write `${{NAME}}` for a variable of toll's own environment, `{{port}}` or `{{url.NAME}}` for what toll knows; or {with_shell}"
        ),
        NoCommandLine::Shell(_) => with_shell,
    }
}
