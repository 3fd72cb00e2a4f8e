//! What is known of a span: who it is, whose child, and when it began. Its name, end and attributes are not read.

use std::num::NonZeroU64;

/// What a service is called that does not say its name, as OpenTelemetry has it.
pub(crate) const UNNAMED: &str = "unknown_service";

/// Which trace; never zero.
// Two halves: a `u128` would widen every kept span to the next 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TraceId {
    high: u64,
    low: u64,
}

impl TraceId {
    /// None for zero, which both OTLP and Zipkin forbid.
    pub(crate) fn new(id: u128) -> Option<Self> {
        let high = u64::try_from(id >> 64).expect("64 bits are left");
        // The lower half: the upper is in `high`.
        let low = id as u64;
        (id != 0).then_some(Self { high, low })
    }
}

/// Which span of its trace; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpanId(NonZeroU64);

impl SpanId {
    /// None for zero, which both OTLP and Zipkin forbid.
    pub(crate) fn new(id: u64) -> Option<Self> {
        NonZeroU64::new(id).map(Self)
    }
}

/// A span as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    /// None at the root of a trace.
    pub(crate) parent: Option<SpanId>,
    /// The server's half of a call in Zipkin's model: it has the id of the client's half.
    pub(crate) shared: bool,
    /// Nanoseconds since 1970; none when its sender does not say.
    pub(crate) began: Option<u64>,
}

/// Spans of one service that arrived together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) service: String,
    pub(crate) spans: Vec<Span>,
    /// Spans without a valid id: they belong to no trace.
    pub(crate) invalid: u64,
}

impl Batch {
    /// An empty batch of `service`.
    pub(crate) fn of(service: &str) -> Self {
        Self { service: service.to_owned(), ..Self::default() }
    }

    /// Adds a span; None is one without a valid id.
    pub(crate) fn add(&mut self, span: Option<Span>) {
        match span {
            Some(span) => self.spans.push(span),
            None => self.invalid += 1,
        }
    }
}
