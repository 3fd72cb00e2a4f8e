//! Turns the targets and rows of a plan into bytes to send, request by request, for one event loop. Knows
//! nothing of sockets and clocks.
//!
//! What is the same in every request is rendered when the load is set up; what is not is written into buffers
//! that are used again, so that a request allocates nothing.

mod choice;
mod http1;
mod http2;
mod nearest;
mod parts;
mod random;
mod rows;
mod template;
#[cfg(test)]
mod tests;
mod url;
mod wire;

use crate::{ConnectionPlan, LoadError, Protocol, Rows, Target};

use choice::Choice;
use parts::Parts;
use random::Use;
use rows::Columns;
use template::Values;
use wire::{Buffers, Form, Wire};

pub(crate) use url::{Scheme, Url};

/// Whom connections are made to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OriginKey {
    pub scheme: Scheme,
    /// Name or address, an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
}

/// The requests of one event loop: `base + first`, `base + first + stride`, `base + first + 2 * stride`, …
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The same in each event loop.
    pub base: u64,
    /// Below `stride`, and another one in each event loop.
    pub first: u64,
    /// Event loops of all engines that share the load.
    pub stride: u64,
}

/// One request, ready to be written: first the head, then the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// HTTP/1.1: request line, headers, and the body unless it is large. HTTP/2: the header block.
    pub head: &'a [u8],
    /// HTTP/1.1: a large body. HTTP/2: what DATA frames carry.
    pub body: &'a [u8],
    /// Answers to HEAD have no body, whatever their head says.
    pub is_head: bool,
    /// Bytes of the body, wherever it lies; for gRPC with the prefix of the message.
    pub body_bytes: u64,
}

/// All requests of one event loop.
#[derive(Debug)]
pub(crate) struct Requests {
    origins: Vec<OriginKey>,
    targets: Vec<Prepared>,
    choice: Choice,
    values: Values,
    stride: u64,
    buffers: Buffers,
}

impl Requests {
    /// Checks all targets and renders what is the same in every request.
    ///
    /// # Errors
    /// When a target cannot be sent, or its template cannot be filled.
    pub fn new(
        targets: &[Target],
        rows: &Rows,
        connection: &ConnectionPlan,
        seed: u64,
        numbers: Numbers,
    ) -> Result<Requests, LoadError> {
        let weights = weights(targets)?;
        let mut columns = Columns::new(rows)?;
        let mut origins = Vec::new();
        let mut wires = Vec::new();
        for target in targets {
            let parts = Parts::new(target, &mut columns)?;
            let wire = Wire::new(&parts, connection)?;
            wires.push((origin(&mut origins, &parts.url), is_head(&parts, connection), wire));
        }
        let stream = |of| random::stream(seed, of, numbers.first);
        let mut values = Values {
            number: numbers.base.wrapping_add(numbers.first),
            body_bytes: 0,
            cells: columns.into_cells(),
            rng: stream(Use::Values),
        };
        let prepare = |(origin, is_head, wire): (_, _, Wire)| Prepared {
            origin,
            is_head,
            form: wire.prepared(&mut values),
        };
        Ok(Requests {
            origins,
            targets: wires.into_iter().map(prepare).collect(),
            choice: Choice::new(&weights, stream(Use::Choice)),
            values,
            stride: numbers.stride,
            buffers: Buffers::default(),
        })
    }

    /// Whom the targets are at: each once, in order of first use.
    pub fn origins(&self) -> &[OriginKey] {
        &self.origins
    }

    /// Number of the next request.
    pub fn next_number(&self) -> u64 {
        self.values.number
    }

    /// Draws the target of the next request by weight.
    pub fn choose(&mut self) -> usize {
        self.choice.next()
    }

    /// Which of the origins a target is at.
    pub fn origin_of(&self, target: usize) -> usize {
        self.targets[target].origin
    }

    /// The next request, to this target.
    pub fn render(&mut self, target: usize) -> Message<'_> {
        let Prepared { is_head, form, .. } = &self.targets[target];
        let message = match form {
            Form::Constant { head, body, body_bytes } => {
                Message { head, body, is_head: *is_head, body_bytes: *body_bytes }
            }
            Form::Varying(wire) => {
                Message { is_head: *is_head, ..wire.write(&mut self.values, &mut self.buffers) }
            }
        };
        self.values.number = self.values.number.wrapping_add(self.stride);
        message
    }
}

fn weights(targets: &[Target]) -> Result<Vec<u32>, LoadError> {
    if targets.is_empty() {
        return Err(LoadError::Zero { field: "the number of targets" });
    }
    if targets.iter().any(|target| target.weight == 0) {
        return Err(LoadError::Zero { field: "a target's weight" });
    }
    Ok(targets.iter().map(|target| target.weight).collect())
}

fn origin(origins: &mut Vec<OriginKey>, url: &Url) -> usize {
    let key = OriginKey { scheme: url.scheme, host: url.host.clone(), port: url.port };
    origins.iter().position(|known| *known == key).unwrap_or_else(|| {
        origins.push(key);
        origins.len() - 1
    })
}

fn is_head(parts: &Parts, connection: &ConnectionPlan) -> bool {
    let is_grpc = matches!(connection.protocol, Protocol::Grpc { .. });
    !is_grpc && parts.method.eq_ignore_ascii_case("HEAD")
}

/// A target that needs no more thought.
#[derive(Debug)]
struct Prepared {
    origin: usize,
    is_head: bool,
    form: Form,
}
