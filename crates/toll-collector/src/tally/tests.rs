use super::*;
use crate::span::{Span, SpanId, TraceId};

fn batch(ids: std::ops::Range<u64>) -> Batch {
    let trace = TraceId::new(1).unwrap();
    let span =
        |id| Span { trace, id: SpanId::new(id).unwrap(), parent: None, shared: false, began: None };
    Batch { service: "vets".into(), spans: ids.map(span).collect(), invalid: 0 }
}

#[test]
fn without_a_window_spans_are_counted_and_not_kept() {
    let mut tally = Tally::default();
    tally.take(&[batch(1..4)]);
    assert_eq!(tally.report(), None);
    assert_eq!((tally.counters().arrived_ever, tally.counters().kept), (3, None));
}

#[test]
fn a_window_holds_what_arrived_since_it_was_opened() {
    let mut tally = Tally::default();
    tally.take(&[batch(1..4)]);
    tally.open_window(0);
    tally.take(&[batch(4..6)]);
    let report = tally.report().unwrap();
    assert_eq!((report.spans["vets"], report.arrived_ever), (2, 5));
}

#[test]
fn a_window_that_is_opened_again_begins_empty() {
    let mut tally = Tally::default();
    tally.open_window(0);
    tally.take(&[batch(1..4)]);
    tally.refuse_body();
    tally.pass_over();
    tally.open_window(0);
    let report = tally.report().unwrap();
    assert_eq!((report.spans.len(), report.refused, report.not_spans), (0, 0, 0));
    assert_eq!(report.arrived_ever, 3);
}

#[test]
fn a_closed_window_forgets_what_it_held() {
    let mut tally = Tally::default();
    tally.open_window(0);
    tally.take(&[batch(1..4)]);
    tally.close_window();
    assert_eq!((tally.report(), tally.counters().kept), (None, None));
}

#[test]
fn spans_without_valid_ids_and_bodies_not_understood_are_refused() {
    let mut tally = Tally::default();
    tally.open_window(0);
    let refused = tally.take(&[Batch { invalid: 2, ..batch(1..4) }]);
    tally.refuse_body();
    let report = tally.report().unwrap();
    assert_eq!((refused, report.refused), (2, 3));
    assert_eq!((report.spans["vets"], report.arrived_ever), (3, 5));
}

#[test]
fn a_report_reads_as_it_is_documented() {
    let mut tally = Tally::default();
    tally.open_window(0);
    tally.take(&[batch(1..3)]);
    assert_eq!(
        serde_json::to_string(&tally.report().unwrap()).unwrap(),
        concat!(
            r#"{"spans":{"vets":2},"#,
            r#""traces":[{"links":[{"parent":null,"service":"vets","count":2}],"traces":1}],"#,
            r#""arrived_ever":2,"repeated":0,"earlier":0,"refused":0,"not_spans":0}"#
        )
    );
}
