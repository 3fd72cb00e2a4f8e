//! Plans and checks in words.

use toll_load::{Check, LoadModel, LoadPlan, LoadReport, Profile, Protocol, Reuse, Spacing, Stop};

use crate::load::fault::Bottleneck;
use crate::load::figures;

/// What was run, in one line: `closed loop, 50 clients, 10 s, HTTP/1.1: GET http://…`.
pub fn headline(plan: &LoadPlan) -> String {
    let pieces = [
        Some(model(&plan.model)),
        iteration(&plan.model),
        Some(length(plan.stop)),
        Some(connection(plan)),
        (plan.part.of > 1).then(|| format!("part {} of {}", plan.part.index + 1, plan.part.of)),
    ];
    let pieces: Vec<String> = pieces.into_iter().flatten().collect();
    format!("{}: {}", pieces.join(", "), targets(plan))
}

fn model(model: &LoadModel) -> String {
    match model {
        LoadModel::Closed { clients, .. } => {
            let one = clients.highest() == 1.0;
            format!("closed loop, {}", over_time(clients, if one { " client" } else { " clients" }))
        }
        LoadModel::Open { arrivals, .. } => {
            let poisson = if arrivals.spacing == Spacing::Poisson { ", Poisson" } else { "" };
            format!("open loop, {}{poisson}", over_time(&arrivals.rate_per_s, " requests/s"))
        }
    }
}

fn over_time(profile: &Profile, unit: &str) -> String {
    let values = || profile.stages.iter().flat_map(|stage| [stage.from, stage.to]);
    let (lowest, highest) = (values().fold(f64::INFINITY, f64::min), profile.highest());
    if lowest == highest {
        return format!("{}{unit}", figures::number(highest));
    }
    format!("{} to {}{unit}", figures::number(lowest), figures::number(highest))
}

fn iteration(model: &LoadModel) -> Option<String> {
    let LoadModel::Closed { iteration, .. } = model else { return None };
    let at_once =
        (iteration.requests > 1).then(|| format!("{} requests at once", iteration.requests));
    let think = (iteration.think_ms > 0.0)
        .then(|| format!("think time {}", figures::length(iteration.think_ms / 1e3)));
    let pieces: Vec<String> = [at_once, think].into_iter().flatten().collect();
    (!pieces.is_empty()).then(|| pieces.join(", "))
}

fn length(stop: Stop) -> String {
    match stop {
        Stop::AfterSeconds(seconds) => figures::length(seconds),
        Stop::AfterRequests(1) => "1 request".into(),
        Stop::AfterRequests(requests) => format!("{} requests", figures::count(requests)),
    }
}

fn connection(plan: &LoadPlan) -> String {
    let (name, streams) = match plan.connection.protocol {
        Protocol::Http1 => ("HTTP/1.1", 1),
        Protocol::Http2 { streams } => ("HTTP/2", streams),
        Protocol::Grpc { streams } => ("gRPC", streams),
    };
    let streams = if streams > 1 { format!(" x {streams} streams") } else { String::new() };
    let secured = plan.targets.iter().any(|target| target.url.starts_with("https:"));
    let secured = if secured { " over TLS" } else { "" };
    let socket = if plan.connection.unix_socket.is_some() { " on a Unix socket" } else { "" };
    let reuse = match plan.connection.reuse {
        Reuse::KeepAlive => "",
        Reuse::PerRequest => ", a connection per request",
    };
    format!("{name}{streams}{secured}{socket}{reuse}")
}

fn targets(plan: &LoadPlan) -> String {
    match plan.targets.as_slice() {
        [target] => format!("{}\u{a0}{}", target.method, target.url),
        targets => format!("{} targets", targets.len()),
    }
}

/// The name of a gRPC status (gRPC, `doc/statuscodes.md`).
pub fn grpc_name(code: u16) -> String {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES.get(usize::from(code)).map_or_else(|| code.to_string(), |name| (*name).into())
}

/// What a check that does not hold says of the generator, and what to change.
pub fn advice(check: &Check, report: &LoadReport) -> String {
    let cause = match check.name.as_str() {
        "own-cpu" => "the generator was the bottleneck: ",
        Check::SEND_LAG if report.measure.waited_for_connection > 0 => {
            "every connection was busy: "
        }
        Check::SEND_LAG => "the generator was late: ",
        // Looked at alone, the schedule does not tell who was the limit.
        Check::SCHEDULE => return Bottleneck::of(report).advice().into(),
        _ => "",
    };
    format!("{cause}{}", check.advice)
}
