use proptest::prelude::*;

use super::*;
use crate::span::{SpanId, TraceId};

const OPENED: u64 = 1_000;

fn span(trace: u128, id: u64, parent: u64, shared: bool) -> Span {
    let trace = TraceId::new(trace).unwrap();
    Span { trace, id: SpanId::new(id).unwrap(), parent: SpanId::new(parent), shared, began: None }
}

fn batch(service: &str, spans: &[Span]) -> Batch {
    Batch { service: service.into(), spans: spans.to_vec(), invalid: 0 }
}

fn window(batches: &[Batch]) -> Window {
    let mut window = Window::of(1000, OPENED);
    for batch in batches {
        assert_eq!(window.keep(batch), 0);
    }
    window
}

fn content(batches: &[Batch]) -> Content {
    window(batches).content()
}

#[test]
fn a_span_that_began_before_the_window_is_not_in_it_and_takes_no_room() {
    let began = |id, began| Span { began: Some(began), ..span(1, id, 0, false) };
    let mut window = Window::of(2, OPENED);
    let spans = [began(10, OPENED - 1), began(11, OPENED), span(1, 12, 11, false)];
    assert_eq!(window.keep(&batch("vets", &spans)), 0);
    assert_eq!((window.content().spans["vets"], window.earlier()), (2, 1));
}

#[test]
fn a_span_that_is_delivered_twice_counts_once() {
    let spans = [span(1, 10, 0, false), span(1, 11, 10, false)];
    let once = content(&[batch("vets", &spans)]);
    let twice = content(&[batch("vets", &spans), batch("vets", &spans)]);
    assert_eq!((twice.spans, twice.traces), (once.spans, once.traces));
    assert_eq!((once.repeated, twice.repeated), (0, 2));
}

#[test]
fn a_repetition_after_a_look_is_found_at_the_next() {
    let vets = batch("vets", &[span(1, 10, 0, false)]);
    let mut window = window(std::slice::from_ref(&vets));
    window.content();
    window.keep(&vets);
    assert_eq!(window.content().repeated, 1);
    assert_eq!(window.content().repeated, 1);
}

#[test]
fn the_halves_of_a_call_are_no_repetition() {
    let client = batch("gateway", &[span(1, 10, 0, false)]);
    let server = batch("vets", &[span(1, 10, 0, true)]);
    let content = content(&[client, server]);
    assert_eq!(content.spans, BTreeMap::from([("gateway".into(), 1), ("vets".into(), 1)]));
    assert_eq!(content.repeated, 0);
}

#[test]
fn a_call_of_a_service_to_itself_has_two_halves() {
    let both = batch("vets", &[span(1, 10, 0, false), span(1, 10, 0, true)]);
    assert_eq!(content(&[both]).spans["vets"], 2);
}

#[test]
fn a_full_window_refuses_the_rest() {
    let mut window = Window::of(3, OPENED);
    let two = |trace| batch("vets", &[span(trace, 10, 0, false), span(trace, 11, 0, false)]);
    assert_eq!(window.keep(&two(1)), 0);
    assert_eq!(window.keep(&two(2)), 1);
    assert_eq!(window.keep(&two(3)), 2);
    assert_eq!(window.content().spans["vets"], 3);
}

#[test]
fn a_service_without_spans_is_not_named() {
    assert_eq!(content(&[batch("idle", &[])]).spans, BTreeMap::new());
}

/// A span and its service.
type Delivery = (String, Span);

/// Few traces and ids, so that spans meet: parents, halves, repetitions.
fn any_delivery() -> impl Strategy<Value = Delivery> {
    let names = prop::sample::select(vec!["gateway", "vets", "audit"]);
    let spans = (1..4_u128, 1..6_u64, 0..6_u64, any::<bool>());
    (names, spans).prop_map(|(name, (trace, id, parent, shared))| {
        (name.to_owned(), span(trace, id, parent, shared))
    })
}

/// The same deliveries in two orders.
fn shuffled() -> impl Strategy<Value = (Vec<Delivery>, Vec<Delivery>)> {
    prop::collection::vec(any_delivery(), 0..40)
        .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
}

fn in_batches(deliveries: &[Delivery], longest: usize) -> Vec<Batch> {
    let same = deliveries.chunk_by(|(one, _), (next, _)| one == next);
    let pieces = same.flat_map(|same| same.chunks(longest));
    pieces
        .map(|piece| {
            let spans: Vec<Span> = piece.iter().map(|(_, span)| *span).collect();
            batch(&piece[0].0, &spans)
        })
        .collect()
}

proptest! {
    #[test]
    fn neither_the_order_of_arrival_nor_the_batches_show(
        (deliveries, other_order) in shuffled(), longest in 1..8_usize, look_after in 0..40_usize,
    ) {
        let expected = content(&in_batches(&deliveries, usize::MAX));
        let mut looked_into = Window::of(1000, OPENED);
        for (place, batch) in in_batches(&other_order, longest).iter().enumerate() {
            looked_into.keep(batch);
            if place == look_after {
                looked_into.content();
            }
        }
        prop_assert_eq!(looked_into.content(), expected);
    }

    #[test]
    fn every_delivery_is_a_span_a_link_or_a_repetition((deliveries, _) in shuffled()) {
        let content = content(&in_batches(&deliveries, 8));
        let spans: u64 = content.spans.values().sum();
        prop_assert_eq!(spans + content.repeated, deliveries.len() as u64);
        let linked = |group: &TraceGroup| {
            group.traces * group.links.iter().map(|link| link.count).sum::<u64>()
        };
        prop_assert_eq!(content.traces.iter().map(linked).sum::<u64>(), spans);
    }
}
