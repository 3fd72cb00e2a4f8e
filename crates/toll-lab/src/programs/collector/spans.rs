//! Judges the spans that a collector got: how many, of whom, and whose children they are.
//!
//! Links are held against the deployment at the level of services, which is what an agent must get right: a
//! request's first span is the entry's, that of a called service hangs below a span of its caller, and all else
//! below a span of its own service. A trace of which spans are missing fits as long as what came is a part of that.

use std::collections::{BTreeMap, BTreeSet};

use crate::claim::{Claim, LeftOut, ServiceSpans, Spans, Topic};
use crate::deployment::{Deployment, Program};
use crate::evidence::{MISSING, SpanWindow, TraceGroup};
use crate::proof::claims::at_least_claim;
use crate::proof::expected::Expected;
use crate::proof::window::Window;

/// Spans judged.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub claims: Vec<Claim>,
    pub left_out: Vec<LeftOut>,
    /// None where the load does not say of every request how many there should be, or the collector said nothing.
    pub spans: Option<Spans>,
}

/// Of traced requests.
pub(crate) fn judge(seen: &Window<'_>) -> Judged {
    let (Some(window), Some(expected)) = (seen.spans, seen.traffic.spans()) else {
        return only_some(seen);
    };
    let traced = seen.deployment.services.iter().filter_map(|service| {
        let service = service.name.as_str();
        Some(ServiceSpans {
            service: service.to_owned(),
            expected: *expected.get(service).filter(|expected| **expected > 0)?,
            arrived: window.spans.get(service).copied().unwrap_or(0),
        })
    });
    let services: Vec<ServiceSpans> = traced.collect();
    let mut judged = Judged {
        claims: vec![count_claim(seen, &services), foreign_claim(&services, window)],
        left_out: missing(&services, window.refused).into_iter().collect(),
        spans: None,
    };
    let mut whole = 0;
    match Shapes::new(seen) {
        Ok(shapes) => {
            whole = shapes.whole(window);
            judged.claims.push(whole_claim(seen.traffic.requests, whole, window));
            judged.claims.extend(shapes.link_claims(window));
        }
        Err(why) => judged.left_out.push(why),
    }
    judged.spans = Some(Spans { services, requests: seen.traffic.requests, whole });
    judged
}

/// That no spans came.
pub(crate) fn none_claim(seen: &Window<'_>) -> Claim {
    let came = seen.spans.map(|window| window.spans.values().sum::<u64>());
    Claim {
        topic: Topic::Spans,
        claim: "collector: no span came".to_owned(),
        expected: "0".to_owned(),
        seen: match (came, seen.spans) {
            (Some(1..), Some(window)) => listed(&window.spans),
            (Some(_), _) => "0".to_owned(),
            (None, _) => "no counters".to_owned(),
        },
        holds: came == Some(0),
    }
}

/// All that can be said where nobody knows how many spans there should be.
fn only_some(seen: &Window<'_>) -> Judged {
    let came = seen.spans.map(|window| window.spans.values().sum());
    let claim = at_least_claim("collector: spans came".to_owned(), 1, came);
    Judged {
        claims: vec![claim.about(Topic::Spans)],
        left_out: vec![LeftOut::SpanCounts],
        spans: None,
    }
}

/// At most what the requests leave, as one that failed may leave less; and at least half of it.
fn count_claim(seen: &Window<'_>, services: &[ServiceSpans]) -> Claim {
    let asked = || seen.traffic.asked.iter().filter(|asked| asked.requests > 0);
    let each = counts(asked().map(|asked| asked.spans.values().sum()));
    let of = |service: &ServiceSpans| {
        let left = asked().map(|asked| asked.spans.get(&service.service).copied().unwrap_or(0));
        format!("{} of {}", counts(left), service.service)
    };
    let of: Vec<String> = services.iter().map(of).collect();
    let expected: u64 = services.iter().map(|s| s.expected).sum();
    Claim {
        topic: Topic::Spans,
        claim: format!("collector: every request left {each} spans: {}", of.join(", ")),
        expected: expected.to_string(),
        seen: arrived_words(services, expected),
        holds: services.iter().all(|s| s.arrived <= s.expected && s.arrived * 2 >= s.expected),
    }
}

/// Different ones of these, the least first: `10`, or `10 or 20`.
fn counts(of: impl Iterator<Item = u64>) -> String {
    let different: BTreeSet<u64> = of.collect();
    different.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ")
}

fn arrived_words(services: &[ServiceSpans], expected: u64) -> String {
    let arrived: u64 = services.iter().map(|s| s.arrived).sum();
    let odd = |s: &&ServiceSpans| s.arrived > s.expected || s.arrived * 2 < s.expected;
    let odd: Vec<String> = services
        .iter()
        .filter(odd)
        .map(|s| format!("{} of {} of {}", s.arrived, s.expected, s.service))
        .collect();
    match odd.as_slice() {
        [] if arrived == expected => arrived.to_string(),
        [] => format!(
            "{arrived} of {expected} arrived, {} dropped",
            share(expected - arrived, expected)
        ),
        odd => odd.join(", "),
    }
}

/// For instance `0.4 %`, never rounded to nothing.
fn share(part: u64, of: u64) -> String {
    let tenths = (part * 1000 + of / 2) / of;
    match tenths {
        0 => "less than 0.1 %".to_owned(),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

fn missing(services: &[ServiceSpans], refused: u64) -> Option<LeftOut> {
    let missing: u64 = services.iter().map(|s| s.expected.saturating_sub(s.arrived)).sum();
    (missing > 0).then_some(LeftOut::MissingSpans { missing, refused })
}

fn foreign_claim(traced: &[ServiceSpans], window: &SpanWindow) -> Claim {
    let mut foreign = window.spans.clone();
    foreign.retain(|service, _| traced.iter().all(|of| of.service != *service));
    Claim {
        topic: Topic::Spans,
        claim: "collector: no other service sent spans".to_owned(),
        expected: "none".to_owned(),
        seen: if foreign.is_empty() { "none".to_owned() } else { listed(&foreign) },
        holds: foreign.is_empty(),
    }
}

fn listed(spans: &BTreeMap<String, u64>) -> String {
    let text = |(service, count): (&String, &u64)| format!("{count} of {service}");
    spans.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn whole_claim(requests: u64, whole: u64, window: &SpanWindow) -> Claim {
    let traces: u64 = window.traces.iter().map(|group| group.traces).sum();
    let mut claim =
        at_least_claim("collector: traces came whole".to_owned(), requests.min(1), Some(whole));
    claim.seen = format!("{whole} of {traces}");
    claim.about(Topic::Spans)
}

/// Whose child a span is, and whose span it is; no parent at the root.
type Tie<'a> = (Option<&'a str>, &'a str);

/// What all requests should leave: each shape of a trace, and how many traces have it.
#[derive(Debug)]
struct Shapes<'a>(Vec<(Shape<'a>, u64)>);

impl<'a> Shapes<'a> {
    /// An error says why they are not known.
    fn new(seen: &Window<'a>) -> Result<Self, LeftOut> {
        let mut shapes: Vec<(Shape<'a>, u64)> = Vec::new();
        for asked in seen.traffic.asked.iter().filter(|asked| asked.requests > 0) {
            let shape = Shape::new(seen.deployment, &asked.spans)?;
            match shapes.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, traces)) => *traces += asked.requests,
                None => shapes.push((shape, asked.requests)),
            }
        }
        Ok(Self(shapes))
    }

    /// Traces that came with all their spans; of each shape at most as many as there should be.
    fn whole(&self, window: &SpanWindow) -> u64 {
        let whole = |(shape, traces): &(Shape<'_>, u64)| {
            let came = window.traces.iter().filter(|group| ties_of(group) == shape.ties);
            came.map(|group| group.traces).sum::<u64>().min(*traces)
        };
        self.0.iter().map(whole).sum()
    }

    /// One for each service, in the order of their names.
    fn link_claims(&self, window: &SpanWindow) -> Vec<Claim> {
        let ties = self.0.iter().flat_map(|(shape, _)| shape.ties.keys());
        let services: BTreeSet<&str> = ties.map(|(_, service)| *service).collect();
        services.into_iter().map(|service| self.link_claim(service, window)).collect()
    }

    fn link_claim(&self, service: &str, window: &SpanWindow) -> Claim {
        let wrong = self.wrong(service, window);
        Claim {
            topic: Topic::Spans,
            claim: format!("{service}: its spans in a trace: {}", self.links(service)),
            expected: "in every trace".to_owned(),
            seen: match wrong {
                0 => "in every trace".to_owned(),
                wrong => format!("{wrong} traces have others"),
            },
            holds: wrong == 0,
        }
    }

    /// For instance `1 below gateway, 8 or 18 below vets`.
    fn links(&self, service: &str) -> String {
        let links = self.0.iter().flat_map(|(shape, _)| links_of(&shape.ties, service));
        let parents: BTreeSet<Option<&str>> = links.map(|(parent, _)| parent).collect();
        let below = |parent: Option<&str>| {
            let of = self.0.iter().map(|(shape, _)| count_of(&shape.ties, (parent, service)));
            match parent {
                None => format!("{} at the root", counts(of)),
                Some(name) => format!("{} below {name}", counts(of)),
            }
        };
        parents.into_iter().map(below).collect::<Vec<_>>().join(", ")
    }

    /// Traces whose spans of `service` are no part of what a request leaves. Those that fit only some shapes are
    /// too many when they are more than the requests of these.
    fn wrong(&self, service: &str, window: &SpanWindow) -> u64 {
        let mut traces: BTreeMap<Vec<bool>, u64> = BTreeMap::new();
        for group in &window.traces {
            let ties = ties_of(group);
            if total(&ties, service) == 0 {
                continue;
            }
            let fits = self.0.iter().map(|(shape, _)| shape.fits(&ties, service)).collect();
            *traces.entry(fits).or_default() += group.traces;
        }
        let none = traces.remove(&vec![false; self.0.len()]).unwrap_or(0);
        let within = |few: &[bool], fits: &[bool]| few.iter().zip(fits).all(|(f, of)| !f || *of);
        let too_many = |fits: &Vec<bool>| {
            let fitting = self.0.iter().zip(fits).filter(|(_, fits)| **fits);
            let most: u64 = fitting.map(|((_, traces), _)| traces).sum();
            let of = traces.iter().filter(|(few, _)| within(few, fits));
            of.map(|(_, traces)| traces).sum::<u64>().saturating_sub(most)
        };
        none + traces.keys().map(too_many).max().unwrap_or(0)
    }
}

/// The spans of one request, by what they hang below.
#[derive(Debug, PartialEq, Eq)]
struct Shape<'a> {
    ties: BTreeMap<Tie<'a>, u64>,
}

impl<'a> Shape<'a> {
    /// Of a request that leaves these spans. An error says why it is not known.
    fn new(deployment: &'a Deployment, spans: &BTreeMap<String, u64>) -> Result<Self, LeftOut> {
        let one = Expected::of_requests(deployment, 1);
        let left = |name: &str| spans.get(name).copied().filter(|count| *count > 0);
        let mut shape = Self { ties: BTreeMap::new() };
        for service in deployment.services.iter().map(|service| service.name.as_str()) {
            let Some(each) = left(service) else { continue };
            let from_load = u64::from(service == deployment.entry);
            shape.add((None, service), from_load);
            for caller in deployment.callers_of(service) {
                let calls = one.calls(caller, service).least;
                match &caller.program {
                    _ if left(&caller.name).is_some() => {
                        shape.add((Some(&caller.name), service), calls);
                    }
                    // It makes no span, and the load gives it no context to pass on.
                    Program::Gateway => shape.add((None, service), calls),
                    _ => return Err(broken_by(&caller.name, service)),
                }
            }
            let inner = each.saturating_sub(one.arrivals(service).least);
            shape.add((Some(service), service), inner);
        }
        Ok(shape)
    }

    fn add(&mut self, tie: Tie<'a>, count: u64) {
        if count > 0 {
            *self.ties.entry(tie).or_default() += count;
        }
    }

    /// Whether the spans of `service` in a trace are part of what a request leaves.
    fn fits(&self, trace: &BTreeMap<Tie<'_>, u64>, service: &str) -> bool {
        let placed = |(parent, count): (Option<&str>, u64)| {
            parent == Some(MISSING) || count <= count_of(&self.ties, (parent, service))
        };
        links_of(trace, service).all(placed)
            && count_of(trace, (Some(MISSING), service)) <= self.orphans(trace, service)
    }

    /// How many spans of `service` may have lost their parents: those that are not where they should be, and
    /// that belong below a service of which spans are missing.
    fn orphans(&self, trace: &BTreeMap<Tie<'_>, u64>, service: &str) -> u64 {
        let lost = |parent: &str| total(trace, parent) < total(&self.ties, parent);
        links_of(&self.ties, service)
            .filter_map(|(parent, count)| Some((parent?, count)))
            .filter(|(parent, _)| lost(parent))
            .map(|(parent, count)| count.saturating_sub(count_of(trace, (Some(parent), service))))
            .sum()
    }
}

fn broken_by(caller: &str, service: &str) -> LeftOut {
    LeftOut::SpanParents { service: service.to_owned(), caller: caller.to_owned() }
}

fn ties_of(group: &TraceGroup) -> BTreeMap<Tie<'_>, u64> {
    let mut ties = BTreeMap::new();
    for link in &group.links {
        let (key, count) = ((link.parent.as_deref(), link.service.as_str()), link.count);
        *ties.entry(key).or_default() += count;
    }
    ties
}

fn links_of<'a>(
    ties: &BTreeMap<Tie<'a>, u64>,
    service: &str,
) -> impl Iterator<Item = (Option<&'a str>, u64)> {
    ties.iter()
        .filter(move |((_, of), _)| *of == service)
        .map(|((parent, _), count)| (*parent, *count))
}

fn count_of(ties: &BTreeMap<Tie<'_>, u64>, tie: Tie<'_>) -> u64 {
    ties.get(&tie).copied().unwrap_or(0)
}

fn total(ties: &BTreeMap<Tie<'_>, u64>, service: &str) -> u64 {
    links_of(ties, service).map(|(_, count)| count).sum()
}
