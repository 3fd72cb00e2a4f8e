//! Turns kept spans into the shapes of their traces: whose children the spans of each service are, and how often.
//!
//! Pure: the same spans give the same shapes, in whichever order and in whichever batches they arrived.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::span::{SpanId, TraceId};

/// A span that is kept. In order of trace and id, a client's half before the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) shared: bool,
    /// Place of the service's name in a list.
    pub(crate) service: u32,
    pub(crate) parent: Option<SpanId>,
}

impl Kept {
    /// Whether an exporter delivered the same span again.
    ///
    /// The two halves of a call in Zipkin's model have one id, but only the server's is `shared`.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        (self.trace, self.id, self.shared, self.service)
            == (other.trace, other.id, other.shared, other.service)
    }
}

/// How many spans of `service` in a trace are children of spans of `parent`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Link {
    /// None at the root; `?` when the trace has no span with the parent's id.
    pub(crate) parent: Option<String>,
    pub(crate) service: String,
    pub(crate) count: u64,
}

/// Traces of one shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TraceGroup {
    /// Roots first, then by name.
    pub(crate) links: Vec<Link>,
    pub(crate) traces: u64,
}

/// Spans of each service.
pub(crate) fn spans_by_service(kept: &[Kept], names: &[String]) -> BTreeMap<String, u64> {
    let mut counts = vec![0; names.len()];
    for span in kept {
        counts[index(span.service)] += 1;
    }
    names.iter().cloned().zip(counts).filter(|(_, count)| *count > 0).collect()
}

/// The traces in `kept`, which is sorted and without repetitions; the most frequent shape first.
pub(crate) fn trace_groups(kept: &[Kept], names: &[String]) -> Vec<TraceGroup> {
    let order = Order::of(names);
    let mut shapes: HashMap<Vec<Tie>, u64> = HashMap::new();
    let mut ties = Vec::new();
    for trace in kept.chunk_by(|one, next| one.trace == next.trace) {
        ties.clear();
        ties.extend(trace.iter().map(|span| order.tie(span, trace)));
        ties.sort_unstable();
        // Most traces have a shape that was seen before: those cost no allocation.
        match shapes.get_mut(ties.as_slice()) {
            Some(traces) => *traces += 1,
            None => drop(shapes.insert(ties.clone(), 1)),
        }
    }
    let mut shapes: Vec<(Vec<Tie>, u64)> = shapes.into_iter().collect();
    shapes.sort_unstable_by(|(ties, traces), (other_ties, others)| {
        others.cmp(traces).then_with(|| ties.cmp(other_ties))
    });
    shapes
        .into_iter()
        .map(|(ties, traces)| TraceGroup { links: order.links(&ties), traces })
        .collect()
}

/// Whose child a span is; services by their rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Parent {
    Nobody,
    Missing,
    Service(u32),
}

/// A span's parent and its own service, by rank.
type Tie = (Parent, u32);

/// Services in the order of their names: that in which they arrived must not show.
struct Order<'a> {
    by_rank: Vec<&'a str>,
    ranks: Vec<u32>,
}

impl<'a> Order<'a> {
    fn of(names: &'a [String]) -> Self {
        let mut by_rank: Vec<&str> = names.iter().map(String::as_str).collect();
        by_rank.sort_unstable();
        let rank_of = |name: &String| {
            let rank = by_rank.binary_search(&name.as_str()).expect("it holds all names");
            u32::try_from(rank).expect("services are numbered in 32 bits")
        };
        let ranks = names.iter().map(rank_of).collect();
        Self { by_rank, ranks }
    }

    fn rank(&self, span: &Kept) -> u32 {
        self.ranks[index(span.service)]
    }

    fn tie(&self, span: &Kept, trace: &[Kept]) -> Tie {
        (self.parent(span, trace), self.rank(span))
    }

    fn parent(&self, span: &Kept, trace: &[Kept]) -> Parent {
        if let Some(client) = self.client_half(span, trace) {
            return Parent::Service(client);
        }
        match span.parent {
            None => Parent::Nobody,
            // No span is its own parent.
            Some(id) if id == span.id => Parent::Missing,
            Some(id) => self.nearest(span, with_id(trace, id)),
        }
    }

    /// The client of the call whose server's half `span` is.
    fn client_half(&self, span: &Kept, trace: &[Kept]) -> Option<u32> {
        let halves = with_id(trace, span.id).iter().filter(|half| span.shared && !half.shared);
        halves.map(|half| self.rank(half)).min()
    }

    /// Of the spans that have the parent's id: the one in the same service, else the server's half of a call.
    fn nearest(&self, span: &Kept, candidates: &[Kept]) -> Parent {
        let distance = |half: &&Kept| (half.service != span.service, !half.shared, self.rank(half));
        let nearest = candidates.iter().min_by_key(distance);
        nearest.map_or(Parent::Missing, |half| Parent::Service(self.rank(half)))
    }

    fn links(&self, ties: &[Tie]) -> Vec<Link> {
        ties.chunk_by(|one, next| one == next).map(|same| self.link(same[0], same.len())).collect()
    }

    fn link(&self, (parent, service): Tie, count: usize) -> Link {
        let name = |rank: u32| self.by_rank[index(rank)].to_owned();
        let parent = match parent {
            Parent::Nobody => None,
            Parent::Missing => Some("?".into()),
            Parent::Service(rank) => Some(name(rank)),
        };
        Link { parent, service: name(service), count: count as u64 }
    }
}

/// The spans of a sorted trace that have this id: one, or the halves of a call.
fn with_id(trace: &[Kept], id: SpanId) -> &[Kept] {
    let from = trace.partition_point(|span| span.id < id);
    let to = from + trace[from..].partition_point(|span| span.id == id);
    &trace[from..to]
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("a list's index")
}

#[cfg(test)]
mod tests;
