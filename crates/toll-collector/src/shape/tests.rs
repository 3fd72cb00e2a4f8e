use super::*;

const GATEWAY: u32 = 0;
const VETS: u32 = 1;

fn names() -> Vec<String> {
    vec!["gateway".into(), "vets".into()]
}

/// A span of trace `trace`; parent 0 is none.
fn span(trace: u128, id: u64, parent: u64, service: u32) -> Kept {
    Kept {
        trace: TraceId::new(trace).unwrap(),
        id: SpanId::new(id).unwrap(),
        shared: false,
        service,
        parent: SpanId::new(parent),
    }
}

/// The server's half of the call `id`.
fn half(trace: u128, id: u64, parent: u64, service: u32) -> Kept {
    Kept { shared: true, ..span(trace, id, parent, service) }
}

/// Groups as texts: `3 x null>gateway:1 gateway>vets:2`.
fn groups_of(kept: &[Kept], names: &[String]) -> Vec<String> {
    let mut kept = kept.to_vec();
    kept.sort_unstable();
    trace_groups(&kept, names).iter().map(as_text).collect()
}

fn groups(kept: &[Kept]) -> Vec<String> {
    groups_of(kept, &names())
}

fn as_text(group: &TraceGroup) -> String {
    let link = |link: &Link| {
        let parent = link.parent.as_deref().unwrap_or("null");
        format!(" {parent}>{}:{}", link.service, link.count)
    };
    format!("{} x{}", group.traces, group.links.iter().map(link).collect::<String>())
}

#[test]
fn a_span_hangs_below_the_service_of_its_parent() {
    let trace = [
        span(1, 10, 0, GATEWAY),
        span(1, 11, 10, VETS),
        span(1, 12, 11, VETS),
        span(1, 13, 11, VETS),
    ];
    assert_eq!(groups(&trace), ["1 x null>gateway:1 gateway>vets:1 vets>vets:2"]);
}

#[test]
fn traces_of_one_shape_are_one_group() {
    let trace = |trace| [span(trace, 10, 0, GATEWAY), span(trace, 11, 10, VETS)];
    assert_eq!(
        groups(&[trace(1), trace(2), trace(3)].concat()),
        ["3 x null>gateway:1 gateway>vets:1"]
    );
}

#[test]
fn one_span_less_is_another_shape() {
    let whole = [span(1, 10, 0, GATEWAY), span(1, 11, 10, VETS), span(1, 12, 11, VETS)];
    let lacking = [span(2, 10, 0, GATEWAY), span(2, 11, 10, VETS)];
    assert_eq!(
        groups(&[&whole[..], &lacking].concat()),
        ["1 x null>gateway:1 gateway>vets:1", "1 x null>gateway:1 gateway>vets:1 vets>vets:1"]
    );
}

#[test]
fn the_most_frequent_shape_comes_first() {
    let lone = |trace| span(trace, 10, 0, VETS);
    let odd = span(1, 10, 0, GATEWAY);
    assert_eq!(groups(&[odd, lone(2), lone(3)]), ["2 x null>vets:1", "1 x null>gateway:1"]);
}

#[test]
fn a_parent_of_another_trace_is_missing() {
    let spans = [span(1, 10, 0, GATEWAY), span(2, 11, 10, VETS)];
    assert_eq!(groups(&spans), ["1 x null>gateway:1", "1 x ?>vets:1"]);
}

#[test]
fn no_span_is_its_own_parent() {
    assert_eq!(groups(&[span(1, 10, 10, VETS)]), ["1 x ?>vets:1"]);
}

#[test]
fn spans_that_are_each_others_parents_still_have_a_shape() {
    let spans = [span(1, 10, 11, GATEWAY), span(1, 11, 10, VETS)];
    assert_eq!(groups(&spans), ["1 x gateway>vets:1 vets>gateway:1"]);
}

#[test]
fn roots_come_before_missing_parents_before_names() {
    let spans = [span(1, 10, 0, VETS), span(1, 11, 99, VETS), span(1, 12, 10, GATEWAY)];
    assert_eq!(groups(&spans), ["1 x null>vets:1 ?>vets:1 vets>gateway:1"]);
}

#[test]
fn the_servers_half_of_a_call_hangs_below_the_clients() {
    let spans = [
        span(1, 10, 0, GATEWAY),
        span(1, 11, 10, GATEWAY),
        half(1, 11, 10, VETS),
        span(1, 12, 11, VETS),
    ];
    assert_eq!(groups(&spans), ["1 x null>gateway:1 gateway>gateway:1 gateway>vets:1 vets>vets:1"]);
}

#[test]
fn a_child_of_both_halves_hangs_below_that_of_its_own_service() {
    let halves = [span(1, 11, 0, GATEWAY), half(1, 11, 0, VETS)];
    let child = |service| [&halves[..], &[span(1, 12, 11, service)]].concat();
    assert_eq!(groups(&child(GATEWAY)), ["1 x null>gateway:1 gateway>gateway:1 gateway>vets:1"]);
    assert_eq!(groups(&child(VETS)), ["1 x null>gateway:1 gateway>vets:1 vets>vets:1"]);
}

#[test]
fn a_child_of_neither_halfs_service_hangs_below_the_servers() {
    let names = ["gateway", "vets", "audit"].map(String::from);
    let spans = [span(1, 11, 0, GATEWAY), half(1, 11, 0, VETS), span(1, 12, 11, 2)];
    assert_eq!(groups_of(&spans, &names), ["1 x null>gateway:1 gateway>vets:1 vets>audit:1"]);
}

#[test]
fn a_servers_half_without_the_clients_hangs_below_its_parent() {
    let spans = [span(1, 10, 0, GATEWAY), half(1, 11, 10, VETS)];
    assert_eq!(groups(&spans), ["1 x null>gateway:1 gateway>vets:1"]);
    assert_eq!(groups(&[half(1, 11, 10, VETS)]), ["1 x ?>vets:1"]);
}

#[test]
fn a_repeated_span_has_the_same_trace_id_service_and_half() {
    let one = span(1, 10, 0, VETS);
    assert!(one.repeats(&span(1, 10, 0, VETS)));
    // The parent is no part of a span's identity.
    assert!(one.repeats(&span(1, 10, 9, VETS)));
    for other in
        [span(2, 10, 0, VETS), span(1, 11, 0, VETS), span(1, 10, 0, GATEWAY), half(1, 10, 0, VETS)]
    {
        assert!(!one.repeats(&other), "{other:?}");
    }
}

#[test]
fn spans_are_counted_by_the_names_of_their_services() {
    let spans = [span(1, 10, 0, VETS), span(1, 11, 10, VETS)];
    assert_eq!(spans_by_service(&spans, &names()), BTreeMap::from([("vets".into(), 2)]));
}

#[test]
fn a_kept_span_takes_forty_bytes() {
    assert_eq!(size_of::<Kept>(), 40);
}
