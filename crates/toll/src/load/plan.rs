//! Turns what was typed into a [`LoadPlan`]. Reads the files that were named; sends nothing.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use toll_load::{
    Arrivals, Body, ConnectionPlan, Identity, Idle, Iteration, LoadModel, LoadPlan, Part, Profile,
    Protocol, Reuse, Rows, Spacing, Stop, Target, Tls, WarmUp,
};

use super::LoadFault;
use super::arguments::{
    ConnectionArguments, IdleChoice, LoadArguments, RequestArguments, ShapeArguments,
};
use super::quantity;
use super::targets::{self, Common};

/// hey's.
const CLIENTS: u32 = 50;
/// Enough for 1,000 requests a second that take a second each; within the file limit of most systems.
const MAX_CONNECTIONS: u32 = 1000;
const DURATION: Duration = Duration::from_secs(10);
/// Of k6's ramping-vus.
const FIRST_CLIENTS: f64 = 1.0;
/// Of k6's ramping-arrival-rate.
const FIRST_RATE: f64 = 0.0;

/// What will be done, and what is worth a word before.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// For the engine.
    pub plan: LoadPlan,
    /// For the person who typed.
    pub notes: Vec<String>,
}

/// Where a plan's ingredients come from.
pub struct World<'a> {
    /// Reads a file; `-` is stdin.
    pub read: &'a mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
    /// The present.
    pub now: jiff::Timestamp,
}

/// A file, or stdin for `-`.
///
/// # Errors
/// As the system says.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The plan that the arguments describe.
///
/// # Errors
/// When a file cannot be read, or the arguments do not fit together.
pub fn order(arguments: &LoadArguments, world: &mut World) -> Result<Order, LoadFault> {
    refuse_length_as_body(&arguments.request)?;
    let protocol = protocol(&arguments.connection);
    let (model, stop) = load(&arguments.shape, protocol);
    let rows = rows(&arguments.request, world)?;
    let engine = &arguments.engine;
    let plan = LoadPlan {
        targets: targets(arguments, world)?,
        rows,
        connection: connection(&arguments.connection, protocol, world)?,
        model,
        warm_up: warm_up(&arguments.shape, engine.part)?,
        stop,
        timeout_ms: arguments.connection.timeout.as_millis().max(1) as u64,
        seed: engine.seed,
        threads: engine.threads,
        idle: idle(engine.idle),
        part: engine.part.unwrap_or_default(),
        start_at_unix_ns: engine.start_at.map(|at| start(at, world.now)).transpose()?,
    };
    Ok(Order { notes: notes(arguments, &plan), plan })
}

fn protocol(arguments: &ConnectionArguments) -> Protocol {
    let streams = arguments.streams.unwrap_or(1);
    match (arguments.http2, arguments.grpc) {
        (_, true) => Protocol::Grpc { streams },
        (true, false) => Protocol::Http2 { streams },
        (false, false) => Protocol::Http1,
    }
}

fn load(shape: &ShapeArguments, protocol: Protocol) -> (LoadModel, Stop) {
    let model = match arrivals(shape) {
        Some(rate_per_s) => open(shape, rate_per_s),
        None => closed(shape, protocol),
    };
    let stop = match (profile(&model).duration_s(), shape.requests) {
        (staged_s, _) if staged_s > 0.0 => Stop::AfterSeconds(staged_s),
        (_, Some(requests)) => Stop::AfterRequests(requests),
        (_, None) => Stop::AfterSeconds(shape.duration.unwrap_or(DURATION).as_secs_f64()),
    };
    (model, stop)
}

/// What the model changes over time.
pub fn profile(model: &LoadModel) -> &Profile {
    match model {
        LoadModel::Closed { clients, .. } => clients,
        LoadModel::Open { arrivals, .. } => &arrivals.rate_per_s,
    }
}

/// The arrivals of an open loop.
fn arrivals(shape: &ShapeArguments) -> Option<Profile> {
    let clients = shape.connections.unwrap_or(CLIENTS);
    if let Some(stages) = &shape.rate_stages {
        return Some(stages.profile(FIRST_RATE));
    }
    let for_all = |per_client: f64| per_client * f64::from(clients);
    shape.rate.or(shape.per_client.map(for_all)).map(Profile::constant)
}

fn open(shape: &ShapeArguments, rate_per_s: Profile) -> LoadModel {
    let of_clients = shape.per_client.map(|_| CLIENTS);
    let bound = shape.max_connections.or(shape.connections).or(of_clients);
    let spacing = if shape.poisson { Spacing::Poisson } else { Spacing::Even };
    LoadModel::Open {
        arrivals: Arrivals { rate_per_s, spacing },
        max_connections: bound.unwrap_or(MAX_CONNECTIONS),
    }
}

fn closed(shape: &ShapeArguments, protocol: Protocol) -> LoadModel {
    LoadModel::Closed {
        clients: clients(shape, protocol),
        iteration: Iteration {
            requests: shape.parallel.unwrap_or(1),
            think_ms: shape.think_time.unwrap_or_default().as_secs_f64() * 1e3,
        },
    }
}

fn clients(shape: &ShapeArguments, protocol: Protocol) -> Profile {
    if let Some(stages) = &shape.stages {
        return stages.profile(shape.connections.map_or(FIRST_CLIENTS, f64::from));
    }
    if let Some(steps) = &shape.steps {
        return steps.profile();
    }
    let connections = shape.connections.unwrap_or(CLIENTS);
    let clients = u64::from(connections) * u64::from(protocol.streams());
    // More clients than requests would stand idle.
    Profile::constant(clients.min(shape.requests.unwrap_or(u64::MAX)) as f64)
}

fn warm_up(shape: &ShapeArguments, part: Option<Part>) -> Result<WarmUp, LoadFault> {
    if part.is_some() && shape.warm_up_max.is_some() {
        return Err(LoadFault::WarmUpOfPart);
    }
    let min = shape.warm_up.unwrap_or_default();
    let max = shape.warm_up_max.unwrap_or(min);
    if max < min {
        return Err(LoadFault::WarmUp);
    }
    Ok(WarmUp { min_s: min.as_secs_f64(), max_s: max.as_secs_f64() })
}

fn idle(choice: IdleChoice) -> Idle {
    match choice {
        IdleChoice::Block => Idle::Block,
        IdleChoice::Spin => Idle::Spin,
    }
}

fn start(at: jiff::Timestamp, now: jiff::Timestamp) -> Result<u64, LoadFault> {
    let passed = LoadFault::StartPassed { instant: at };
    if at <= now { Err(passed) } else { u64::try_from(at.as_nanosecond()).map_err(|_| passed) }
}

fn targets(arguments: &LoadArguments, world: &mut World) -> Result<Vec<Target>, LoadFault> {
    let request = &arguments.request;
    let common = common(request, world)?;
    let mut targets = match &request.targets {
        Some(path) => targets_of_file(path, &common, world)?,
        None => arguments.urls.iter().map(|url| target(url, request, &common)).collect(),
    };
    for target in &mut targets {
        target.url = with_scheme(&target.url);
        credentials_as_header(target);
    }
    Ok(targets)
}

fn target(url: &str, request: &RequestArguments, common: &Common) -> Target {
    let usual = if has_body(request) { "POST" } else { "GET" };
    Target {
        url: url.into(),
        method: request.method.clone().unwrap_or_else(|| usual.into()),
        headers: common.headers.clone(),
        body: common.body.clone(),
        template: common.template,
        weight: 1,
        expect: vec![],
    }
}

fn has_body(request: &RequestArguments) -> bool {
    request.body.is_some() || request.body_file.is_some()
}

fn with_scheme(url: &str) -> String {
    if url.contains("://") { url.into() } else { format!("http://{url}") }
}

/// `http://user:password@host/`, as vegeta's target files may have it (RFC 3986, 3.2.1; RFC 7617).
fn credentials_as_header(target: &mut Target) {
    let Some((scheme, rest)) = target.url.split_once("://") else { return };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some((user, host)) = rest[..end].rsplit_once('@') else { return };
    target.headers.push(("authorization".into(), basic(&percent_decoded(user))));
    target.url = format!("{scheme}://{host}{}", &rest[end..]);
}

fn basic(credentials: &[u8]) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(credentials))
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).filter(|_| *first == b'%');
        let code = digits.and_then(|two| std::str::from_utf8(two).ok());
        let decoded = code.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &tail[2..] } else { tail };
    }
    bytes
}

fn targets_of_file(
    path: &Path,
    common: &Common,
    world: &mut World,
) -> Result<Vec<Target>, LoadFault> {
    let text = text_of(path, "targets", world)?;
    let targets = targets::parse(&text, common, world.read).map_err(|bad| LoadFault::BadLine {
        path: path.to_owned(),
        line: bad.line,
        problem: bad.problem,
        help: bad.help,
    })?;
    let empty = || LoadFault::Empty { path: path.to_owned(), what: "targets" };
    if targets.is_empty() { Err(empty()) } else { Ok(targets) }
}

fn common(request: &RequestArguments, world: &mut World) -> Result<Common, LoadFault> {
    let body = match (&request.body, &request.body_file) {
        (Some(text), _) => text.as_str().into(),
        (None, Some(path)) => Body(bytes_of(path, "body", world)?),
        (None, None) => Body::default(),
    };
    let template = request.template || request.rows.is_some();
    Ok(Common { headers: headers(request)?, body, template })
}

fn headers(request: &RequestArguments) -> Result<Vec<(String, String)>, LoadFault> {
    let typed = request.headers.iter().map(|header| {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| LoadFault::BadHeader { header: header.clone() })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    });
    let mut headers = typed.collect::<Result<Vec<_>, LoadFault>>()?;
    let short = [
        ("content-type", request.content_type.clone()),
        ("accept", request.accept.clone()),
        ("authorization", request.auth.as_ref().map(|auth| basic(auth.as_bytes()))),
    ];
    headers.extend(short.into_iter().filter_map(|(name, value)| Some((name.into(), value?))));
    Ok(headers)
}

fn rows(request: &RequestArguments, world: &mut World) -> Result<Rows, LoadFault> {
    let Some(path) = &request.rows else { return Ok(Rows::default()) };
    let text = text_of(path, "rows", world)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let columns = reader.headers().map(cells).map_err(|error| bad_row(path, &error))?;
    let rows = reader.records().map(|record| record.map(|record| cells(&record)));
    let rows: Vec<Vec<String>> =
        rows.collect::<Result<_, _>>().map_err(|error| bad_row(path, &error))?;
    let empty = || LoadFault::Empty { path: path.to_owned(), what: "rows" };
    if rows.is_empty() { Err(empty()) } else { Ok(Rows { columns, rows }) }
}

fn bad_row(path: &Path, error: &csv::Error) -> LoadFault {
    let line = error.position().map_or(1, csv::Position::line);
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} values where the header has {expected_len} names")
        }
        _ => error.to_string(),
    };
    LoadFault::BadLine {
        path: path.to_owned(),
        line: usize::try_from(line).unwrap_or(usize::MAX),
        problem,
        help: "the first line names the columns; every further line has a value for each",
    }
}

fn connection(
    arguments: &ConnectionArguments,
    protocol: Protocol,
    world: &mut World,
) -> Result<ConnectionPlan, LoadFault> {
    Ok(ConnectionPlan {
        protocol,
        reuse: if arguments.disable_keepalive { Reuse::PerRequest } else { Reuse::KeepAlive },
        tls: tls(arguments, world)?,
        unix_socket: arguments.unix_socket.clone(),
        resolve: arguments.resolve.clone(),
        local_addresses: arguments.laddr.iter().flat_map(|list| list.0.iter().copied()).collect(),
    })
}

fn tls(arguments: &ConnectionArguments, world: &mut World) -> Result<Tls, LoadFault> {
    let ca_pem = arguments.cacert.as_ref().map(|path| text_of(path, "certificates", world));
    Ok(Tls {
        server_name: arguments.server_name.clone(),
        ca_pem: ca_pem.transpose()?,
        identity: identity(arguments, world)?,
        insecure: arguments.insecure,
        resumption: !arguments.no_resumption,
    })
}

fn identity(
    arguments: &ConnectionArguments,
    world: &mut World,
) -> Result<Option<Identity>, LoadFault> {
    let Some(cert) = &arguments.cert else { return Ok(None) };
    let key = arguments.key.as_ref().unwrap_or(cert);
    Ok(Some(Identity {
        chain_pem: text_of(cert, "certificate", world)?,
        key_pem: text_of(key, "key", world)?,
    }))
}

fn bytes_of(path: &Path, what: &'static str, world: &mut World) -> Result<Vec<u8>, LoadFault> {
    let unreadable = |source| LoadFault::Unreadable { what, path: path.to_owned(), source };
    (world.read)(path).map_err(unreadable)
}

fn text_of(path: &Path, what: &'static str, world: &mut World) -> Result<String, LoadFault> {
    let bytes = bytes_of(path, what, world)?;
    String::from_utf8(bytes).map_err(|error| LoadFault::Unreadable {
        what,
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()),
    })
}

/// What is done as typed, though something else may have been meant.
fn notes(arguments: &LoadArguments, plan: &LoadPlan) -> Vec<String> {
    [
        fewer_clients(&arguments.shape, plan),
        body_that_is_no_body(&arguments.request),
        engine_part(plan),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn fewer_clients(shape: &ShapeArguments, plan: &LoadPlan) -> Option<String> {
    let (typed, requests) = (shape.connections?, shape.requests?);
    let LoadModel::Closed { clients, .. } = &plan.model else { return None };
    let used = clients.highest() as u64;
    let few = used < u64::from(typed) * u64::from(plan.connection.protocol.streams());
    few.then(|| {
        format!("{requests} requests keep no more than {used} clients busy: {used} are used")
    })
}

/// wrk's `-d 5s` and vegeta's `-duration=5s` (here `-d` with `uration=5s`) would POST to a service that was to be
/// read. Who types the method means a body.
fn refuse_length_as_body(request: &RequestArguments) -> Result<(), LoadFault> {
    let (None, Some(body)) = (&request.method, &request.body) else { return Ok(()) };
    let (typed, length) = match body.strip_prefix("uration") {
        Some(rest) => (format!("-d{body}"), rest.strip_prefix('=').unwrap_or("TIME")),
        None if quantity::some_time(body).is_ok() => (format!("-d {body}"), body.as_str()),
        None => return Ok(()),
    };
    Err(LoadFault::LengthAsBody { typed, length: length.into() })
}

/// A habit of curl's: `-d @file` reads a file.
fn body_that_is_no_body(request: &RequestArguments) -> Option<String> {
    let body = request.body.as_deref()?;
    let file = body.strip_prefix('@')?;
    Some(format!("the body is the text `{body}`; for the file it is -D {file}"))
}

fn engine_part(plan: &LoadPlan) -> Option<String> {
    let part = plan.part;
    let alone = part.of > 1 && plan.start_at_unix_ns.is_none();
    alone.then(|| {
        "this part begins at once; --start-at makes all parts begin at the same instant".into()
    })
}

#[cfg(test)]
mod tests;
