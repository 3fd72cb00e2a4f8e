//! Toll's own row for each request, in the order in which they ended.
//!
//! | column | meaning |
//! |---|---|
//! | target | number of the plan's target, from zero |
//! | client | closed loop: the client; open loop: the connection; from zero |
//! | intended_unix_us | when it was due, microseconds since 1970 (UTC) |
//! | send_lag_us | from due to handed to the kernel |
//! | connect_us | TCP and TLS of its connection, when it was the first on it; else 0 |
//! | wait_us | from sent to the first byte of the answer |
//! | read_us | from the first to the last byte of the answer |
//! | latency_us | from due to answered or given up |
//! | service_time_us | from sent to answered or given up |
//! | status | the status code; empty when the request failed |
//! | error | the kind of failure; empty when it was answered |
//! | bytes_out | bytes written for it |
//! | body_bytes_in | bytes of the answer's body |
//!
//! Times are microseconds with three digits behind the point, as exact as they were taken.

use std::fmt;
use std::io::{self, Write};

use toll_load::Sample;

pub(super) const HEADER: &str = "target,client,intended_unix_us,send_lag_us,connect_us,wait_us,\
read_us,latency_us,service_time_us,status,error,bytes_out,body_bytes_in";

pub(super) fn write(sample: &Sample, out: &mut impl Write) -> io::Result<()> {
    let Sample { target, client, bytes_out, body_bytes_in, .. } = sample;
    write!(out, "{target},{client},")?;
    for time in [
        Microseconds(sample.intended_ns),
        Microseconds::between(sample.intended_ns, sample.sent_ns),
        Microseconds(sample.connect_ns),
        Microseconds::between(sample.sent_ns, sample.first_byte_ns),
        Microseconds::between(sample.first_byte_ns, sample.done_ns),
        Microseconds::between(sample.intended_ns, sample.done_ns),
        Microseconds::between(sample.sent_ns, sample.done_ns),
    ] {
        write!(out, "{time},")?;
    }
    match sample.outcome {
        Ok(status) => write!(out, "{status},,")?,
        Err(kind) => write!(out, ",{},", kind.name())?,
    }
    writeln!(out, "{bytes_out},{body_bytes_in}")
}

/// Nanoseconds, written as microseconds without going through a float.
struct Microseconds(u64);

impl Microseconds {
    fn between(from_ns: u64, to_ns: u64) -> Microseconds {
        Microseconds(to_ns.saturating_sub(from_ns))
    }
}

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
