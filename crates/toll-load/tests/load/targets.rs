//! Several targets, templates and bodies: what the servers heard is what the plan says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::engine::{closed, measured, open, plan};
use crate::server::{OK, Reply, Request, Server};
use toll_load::{LoadModel, Rows, Stop, Target, TargetReport, WarmUp};

type Heard = Arc<Mutex<Vec<String>>>;

/// A server that keeps something of each request.
pub fn hearing(keep: impl Fn(&Request) -> String + Send + Sync + 'static) -> (Server, Heard) {
    let heard = Heard::default();
    let kept = Arc::clone(&heard);
    let server = Server::hear(move |request: &Request| {
        kept.lock().unwrap().push(keep(request));
        Reply::ok()
    });
    (server, heard)
}

pub fn template(url: String) -> Target {
    Target { template: true, ..Target::get(url) }
}

fn counts(heard: &Heard) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for text in heard.lock().unwrap().iter() {
        *counts.entry(text.clone()).or_default() += 1;
    }
    counts
}

fn models() -> [LoadModel; 2] {
    [closed(4), open(2000.0, 8)]
}

#[test]
fn each_of_two_servers_gets_exactly_its_share() {
    for model in models() {
        let servers = [Server::start(|_| Reply::ok()), Server::start(|_| Reply::ok())];
        let mut plan = plan(servers[0].url(), model, Stop::AfterRequests(400));
        plan.targets[0].weight = 3;
        plan.targets.push(Target::get(servers[1].url()));
        let report = measured(&plan);
        assert_eq!((servers[0].requests(), servers[1].requests()), (300, 100));
        assert_eq!((report.measure.done, report.measure.errors.len()), (400, 0));
        let connections = servers[0].connections() + servers[1].connections();
        assert_eq!(report.connections_opened, connections);
    }
}

#[test]
fn what_each_target_got_and_answered_well_is_told_of_all_loops_and_phases() {
    for model in models() {
        let refusing = |_: &Request| Reply::Keep(OK.replace("200 OK", "404 Not Found"));
        let servers = [Server::start(|_| Reply::ok()), Server::hear(refusing)];
        let mut plan = plan(servers[0].url(), model, Stop::AfterRequests(400));
        plan.targets.push(Target::get(servers[1].url()));
        plan.warm_up = WarmUp { min_s: 0.05, max_s: 0.1 };
        plan.threads = 2;
        let report = measured(&plan);
        let (well, badly) = (servers[0].requests(), servers[1].requests());
        assert!(well > 200, "{well} of the warm-up and the measured phase");
        let target = |sent, succeeded| TargetReport { sent, succeeded };
        assert_eq!(report.targets, [target(well, well), target(badly, 0)]);
        assert_eq!(report.sent_in_all_phases, well + badly);
    }
}

#[test]
fn a_counter_gives_each_number_once_over_two_threads() {
    for model in models() {
        let (server, heard) = hearing(|request| request.path().into());
        let mut plan = plan(server.url(), model, Stop::AfterRequests(301));
        plan.targets = vec![template(format!("{}{{{{counter}}}}", server.url()))];
        plan.threads = 2;
        measured(&plan);
        let heard: BTreeSet<String> = heard.lock().unwrap().iter().cloned().collect();
        assert_eq!(heard, (0..301).map(|n| format!("/{n}")).collect());
    }
}

#[test]
fn rows_are_used_in_turn() {
    let (server, heard) = hearing(|request| request.path().into());
    let mut plan = plan(server.url(), closed(3), Stop::AfterRequests(90));
    plan.targets = vec![template(format!("{}{{{{csv.user}}}}?k={{{{csv.key}}}}", server.url()))];
    let row = |user: &str, key: &str| vec![user.to_owned(), key.to_owned()];
    plan.rows = Rows {
        columns: row("user", "key"),
        rows: vec![row("ann", "1"), row("bob", "2"), row("cid", "3")],
    };
    measured(&plan);
    let expected = ["/ann?k=1", "/bob?k=2", "/cid?k=3"].map(|path| (path.to_owned(), 30));
    assert_eq!(counts(&heard), expected.into());
}

#[test]
fn bodies_arrive_whole_and_are_counted() {
    let large = "x".repeat(300_000);
    let (server, heard) = hearing(|request| format!("{} {}", request.line, request.body.len()));
    let mut plan = plan(server.url(), closed(2), Stop::AfterRequests(40));
    let post = |body: &str, template| Target {
        method: "POST".into(),
        body: body.into(),
        template,
        ..Target::get(server.url())
    };
    plan.targets = vec![post(&large, false), post("{{random.10.99}}", true)];
    let report = measured(&plan);
    let expected = [("POST / HTTP/1.1 300000".into(), 20), ("POST / HTTP/1.1 2".into(), 20)];
    assert_eq!(counts(&heard), expected.into());
    let bytes = 20 * 300_002;
    assert_eq!((report.measure.body_bytes_out, server.body_bytes()), (bytes, bytes));
}

#[test]
fn head_among_gets_waits_for_no_body() {
    let server = Server::hear(|request| {
        let head_only = &OK[..OK.len() - 2];
        let is_head = request.line.starts_with("HEAD ");
        Reply::Keep(if is_head { head_only.into() } else { OK.into() })
    });
    for model in models() {
        let mut plan = plan(server.url(), model, Stop::AfterRequests(100));
        plan.targets.push(Target { method: "HEAD".into(), ..Target::get(server.url()) });
        let report = measured(&plan);
        assert_eq!((report.measure.done, report.measure.errors.len()), (100, 0));
        assert_eq!(report.measure.body_bytes_in, 2 * 50);
    }
}

#[test]
fn headers_are_sent_as_written_with_their_placeholders_filled() {
    let (server, heard) =
        hearing(|request| request.headers.iter().find(|h| h.starts_with("x-id")).unwrap().clone());
    let mut plan = plan(server.url(), closed(1), Stop::AfterRequests(3));
    plan.targets[0].headers = vec![("x-id".into(), "n-{{counter}}".into())];
    plan.targets[0].template = true;
    measured(&plan);
    assert_eq!(*heard.lock().unwrap(), ["x-id: n-0", "x-id: n-1", "x-id: n-2"]);
}
