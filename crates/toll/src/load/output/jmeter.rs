//! JMeter's result file: CSV with the columns that JMeter 5 writes when nothing is configured.
//!
//! - timeStamp is when the request was due; elapsed and Latency run from there, in whole milliseconds, and
//!   thus hold Connect, as in JMeter.
//! - label is the method and the path of the target, URL the target's; placeholders stand as they were written.
//! - A failed request carries the Java exception by which JMeter would have named it, so that filters work, and
//!   toll's kind of failure as the message. Its Latency is 0, as in JMeter.
//! - responseMessage is the registered name of the status; the text that the server wrote is not kept.
//! - bytes are those of the answer's body; JMeter adds its head.
//! - threadName numbers clients (closed loop) or connections (open loop) from 1. grpThreads and allThreads are
//!   the clients of a closed loop of constant size, else 0: how many were at work at a time is not kept.

use std::io::{self, Write};

use toll_load::{ErrorKind, LoadModel, LoadPlan, Sample, Target};

use crate::analysis::status::reason;

pub(super) const HEADER: &str = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,\
dataType,success,failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect";

/// What the rows take from the plan.
#[derive(Debug)]
pub(super) struct Labels {
    targets: Vec<Named>,
    threads: u64,
}

/// A target's columns, quoted where CSV asks for it.
#[derive(Debug)]
struct Named {
    label: String,
    url: String,
}

impl Labels {
    pub(super) fn new(plan: &LoadPlan) -> Labels {
        let targets = plan.targets.iter().map(Named::new).collect();
        Labels { targets, threads: constant_clients(&plan.model) }
    }

    pub(super) fn write(&self, sample: &Sample, out: &mut impl Write) -> io::Result<()> {
        let Named { label, url } = &self.targets[sample.target as usize];
        let (intended, done) = (sample.intended_ns, sample.done_ns);
        let elapsed = milliseconds(done.saturating_sub(intended));
        write!(out, "{},{elapsed},{label},", milliseconds(intended))?;
        write_outcome(sample.outcome, out)?;
        let success = sample.outcome.is_ok_and(|status| status < 400);
        let (thread, threads) = (u64::from(sample.client) + 1, self.threads);
        let (bytes_in, bytes_out) = (sample.body_bytes_in, sample.bytes_out);
        write!(out, ",Thread Group 1-{thread},text,{success},,{bytes_in},{bytes_out},")?;
        let latency = match sample.outcome {
            Ok(_) => milliseconds(sample.first_byte_ns.saturating_sub(intended)),
            Err(_) => 0,
        };
        let connect = milliseconds(sample.connect_ns);
        writeln!(out, "{threads},{threads},{url},{latency},0,{connect}")
    }
}

impl Named {
    fn new(target: &Target) -> Named {
        let behind_scheme = target.url.split_once("://").map_or("", |(_, rest)| rest);
        let path = behind_scheme.find('/').map_or("/", |slash| &behind_scheme[slash..]);
        Named { label: quoted(&format!("{} {path}", target.method)), url: quoted(&target.url) }
    }
}

fn write_outcome(outcome: Result<u16, ErrorKind>, out: &mut impl Write) -> io::Result<()> {
    match outcome {
        Ok(status) => write!(out, "{status},{}", reason(status)),
        Err(kind) => write!(
            out,
            "Non HTTP response code: {},Non HTTP response message: {}",
            exception(kind),
            kind.name()
        ),
    }
}

fn exception(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "org.apache.http.conn.HttpHostConnectException",
        ErrorKind::Reset => "java.net.SocketException",
        ErrorKind::Closed => "org.apache.http.NoHttpResponseException",
        ErrorKind::Timeout => "java.net.SocketTimeoutException",
        ErrorKind::Garbage | ErrorKind::Oversize => {
            "org.apache.http.client.ClientProtocolException"
        }
        ErrorKind::Tls => "javax.net.ssl.SSLException",
    }
}

fn constant_clients(model: &LoadModel) -> u64 {
    let LoadModel::Closed { clients, .. } = model else { return 0 };
    let highest = clients.highest();
    let mut values = clients.stages.iter().flat_map(|stage| [stage.from, stage.to]);
    if values.all(|value| value == highest) { highest.round() as u64 } else { 0 }
}

fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

/// Quoted when it holds a comma, a quote or the end of a line (RFC 4180 section 2).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
