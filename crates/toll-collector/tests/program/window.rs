//! The window, over the Unix socket.

use serde_json::json;

use crate::running::{Running, export};

const PROTOBUF: &str = "content-type: application/x-protobuf\r\n";

fn send(collector: &Running, service: &str, spans: &[(u64, u64)]) {
    assert_eq!(collector.post("/v1/traces", PROTOBUF, &export(service, spans)).status, 200);
}

#[test]
fn a_window_tells_the_shape_of_a_trace_whose_spans_came_apart() {
    let collector = Running::with_window();
    send(&collector, "vets", &[(12, 11), (13, 11)]);
    send(&collector, "gateway", &[(10, 0)]);
    send(&collector, "vets", &[(11, 10)]);
    let links = json!([
        { "parent": null, "service": "gateway", "count": 1 },
        { "parent": "gateway", "service": "vets", "count": 1 },
        { "parent": "vets", "service": "vets", "count": 2 },
    ]);
    assert_eq!(
        collector.window(),
        json!({
            "spans": { "gateway": 1, "vets": 3 },
            "traces": [{ "links": links, "traces": 1 }],
            "arrived_ever": 4, "repeated": 0, "earlier": 0, "refused": 0, "not_spans": 0,
        })
    );
}

#[test]
fn an_export_that_is_tried_again_counts_once() {
    let collector = Running::with_window();
    send(&collector, "vets", &[(10, 0), (11, 10)]);
    send(&collector, "vets", &[(10, 0), (11, 10)]);
    let window = collector.window();
    assert_eq!((&window["spans"], &window["repeated"]), (&json!({ "vets": 2 }), &json!(2)));
    assert_eq!(window["arrived_ever"], 4);
}

#[test]
fn a_window_that_is_opened_again_begins_empty() {
    let collector = Running::with_window();
    send(&collector, "vets", &[(10, 0)]);
    assert_eq!(collector.admin("POST", "/window").status, 204);
    send(&collector, "gateway", &[(10, 0)]);
    let window = collector.window();
    assert_eq!((&window["spans"], &window["arrived_ever"]), (&json!({ "gateway": 1 }), &json!(2)));
}

#[test]
fn without_a_window_spans_are_only_counted() {
    let collector = Running::start();
    send(&collector, "vets", &[(10, 0)]);
    let reply = collector.admin("GET", "/window");
    assert_eq!(reply.status, 404);
    assert_eq!(reply.text(), "no window is open: POST /window opens one\n");
    let counts =
        json!({ "arrived_ever": 1, "kept": null, "earlier": null, "refused": 0, "not_spans": 0 });
    assert_eq!(collector.counts(), counts);
}

#[test]
fn a_closed_window_is_gone() {
    let collector = Running::with_window();
    send(&collector, "vets", &[(10, 0)]);
    assert_eq!(collector.counts()["kept"], 1);
    assert_eq!(collector.admin("DELETE", "/window").status, 204);
    assert_eq!(collector.admin("GET", "/window").status, 404);
    assert_eq!(collector.counts()["kept"], json!(null));
}

#[test]
fn another_question_is_answered_with_what_can_be_asked() {
    let reply = Running::start().admin("GET", "/spans");
    assert_eq!(reply.status, 404);
    assert_eq!(reply.text(), "POST, GET or DELETE /window, GET /counts\n");
}
