//! `toll load` against a small server: what arrives there, what is printed, and the exit status.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::process::{Ended, wait_until};
use crate::workplace::Workplace;

/// Answers every request on kept-alive connections, a thread each, and counts.
struct Server {
    url: String,
    requests: Arc<AtomicU64>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let counter = Arc::clone(&counter);
                thread::spawn(move || serve(stream.unwrap(), &counter));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Requests here have no body: each ends with its first empty line.
fn serve(mut stream: TcpStream, requests: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
        requests.fetch_add(1, Ordering::Relaxed);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

fn toll(arguments: &[&str]) -> Ended {
    let place = Workplace::new();
    let mut command = place.toll();
    command.args(arguments);
    place.finish(command)
}

fn load(server: &Server, arguments: &[&str]) -> Ended {
    toll(&[&["load", &server.url], arguments].concat())
}

#[test]
fn as_many_requests_arrive_as_were_asked_for() {
    let server = Server::start();
    let ended = load(&server, &["-n", "200", "-c", "10"]);
    ended.assert_status(0);
    assert_eq!(server.requests(), 200);
    for words in
        ["closed loop, 10 clients, 200 requests", "200 answered", "200: 200 (100 %)", "p99.9"]
    {
        assert!(ended.stdout.contains(words), "`{words}` is not in: {}", ended.stdout);
    }
    assert_eq!(ended.stderr, "", "a short load has nothing to talk of");
}

#[test]
fn json_holds_the_plan_and_the_report() {
    let server = Server::start();
    let ended = load(&server, &["-n", "20", "--rate", "200", "--output", "json"]);
    ended.assert_status(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["report"]["measure"]["done"], 20);
    assert_eq!(json["plan"]["model"]["open"]["arrivals"]["spacing"], "even");
}

#[test]
fn no_password_is_written_into_a_result() {
    let server = Server::start();
    let with_user = server.url.replace("http://", "http://ann:swordfish@");
    // base64 of "ann:swordfish".
    let secrets = ["swordfish", "YW5uOnN3b3JkZmlzaA"];
    for request in [
        &["load", &with_user][..],
        &["load", &server.url, "-a", "ann:swordfish"],
        &["load", &server.url, "-H", "AUTHORIZATION: Bearer swordfish"],
        &["load", &server.url, "-H", "Cookie: session=swordfish"],
    ] {
        let ended = toll(&[request, &["-n", "5", "-c", "1", "--output", "json"]].concat());
        ended.assert_status(0);
        assert!(!secrets.iter().any(|secret| ended.stdout.contains(secret)), "{}", ended.stdout);
    }
}

#[test]
fn a_file_gets_its_form_beside_the_summary() {
    let server = Server::start();
    let place = Workplace::new();
    let mut command = place.toll();
    command.args(["load", &server.url, "-n", "20", "-c", "2", "--output", "json=out.json"]);
    let ended = place.finish(command);
    ended.assert_status(0);
    assert!(ended.stdout.contains("20 answered"), "{}", ended.stdout);
    let text = fs::read_to_string(place.path("out.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
}

#[test]
fn a_condition_that_is_met_sets_the_status_and_is_told() {
    let server = Server::start();
    let conditions = ["--fail-if", "p99>1ns", "--fail-if", "errors>0", "--fail-if", "rate<1"];
    let ended = load(&server, &[&["-n", "50", "-c", "5"][..], &conditions].concat());
    ended.assert_status(99).assert_says("failed: p99>1ns: ");
    assert!(!ended.stderr.contains("errors>0"), "{}", ended.stderr);
    load(&server, &["-n", "50", "-c", "5", "--fail-if", "p99>1h"]).assert_status(0);
}

/// Answers the first request, after two seconds the second, and so on.
fn slow() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer_slowly(stream.unwrap()));
        }
    });
    url
}

fn answer_slowly(mut stream: TcpStream) {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
        thread::sleep(Duration::from_secs(2));
    }
}

#[test]
fn a_schedule_that_was_not_kept_has_a_status_of_its_own() {
    let arguments = ["--rate", "100", "-z", "500ms", "--max-connections", "1", "--timeout", "1s"];
    let with = |more: &[&str]| toll(&[&["load", &slow()], &arguments[..], more].concat());
    let ended = with(&[]);
    ended.assert_status(4).assert_says("error: the schedule was not kept: ");
    ended.assert_says("of 50 requests were never sent");
    ended
        .assert_says("help: the service did not keep up: lower the rate, or allow more --max-conn");
    assert!(ended.stdout.contains("never sent"), "{}", ended.stdout);
    with(&["--fail-if", "unsent>0"]).assert_status(99).assert_says("failed: unsent>0: ");
    with(&["--fail-if", "rate>1000"]).assert_status(4);
}

#[test]
fn a_port_where_nobody_listens_is_told_with_advice() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ended = toll(&["load", &format!("http://{free}/"), "-n", "10"]);
    ended.assert_status(1).assert_says(&format!("error: cannot connect to {free}"));
    ended.assert_says("help: check that the service runs and listens on");
}

#[test]
fn a_service_that_only_closes_has_a_summary_and_a_status() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // Reads first: closing with bytes unread would reset.
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || BufReader::new(stream.unwrap()).lines().take(3).for_each(drop));
        }
    });
    let ended = toll(&["load", &url, "-z", "300ms", "-c", "2", "--timeout", "1s"]);
    ended.assert_status(1).assert_says("error: not one request was answered");
    ended.assert_says("help: look at the service's log");
    assert!(ended.stdout.contains("0 of"), "{}", ended.stdout);
}

#[test]
fn a_wrong_command_line_is_refused() {
    for (arguments, said) in [
        (&["-c", "0"][..], "it must be 1 or more"),
        (&["-n", "5", "-z", "5s"], "cannot be used with"),
        (&["--output", "jsn"], "did you mean `json`?"),
        (&["--fail-if", "p99>20"], "`20` needs a unit: 20ms or 20s"),
        (&["-D", "missing.json"], "error: cannot read missing.json (body)"),
        (&["--output", "json=no/such/folder.json"], "help: check that the folder exists"),
    ] {
        let ended = toll(&[&["load", "http://127.0.0.1:1/"], arguments].concat());
        let status = if said.contains("folder") { 1 } else { 2 };
        ended.assert_status(status).assert_says(said);
    }
    toll(&["load"]).assert_status(2).assert_says("required arguments were not provided");
}

#[test]
fn more_clients_than_requests_are_noted_and_all_requests_are_sent() {
    let server = Server::start();
    let ended = load(&server, &["-n", "10", "-c", "50"]);
    ended.assert_status(0).assert_says("note: 10 requests keep no more than 10 clients busy");
    assert_eq!(server.requests(), 10);
}

#[test]
fn ctrl_c_ends_a_load_with_the_status_for_it() {
    let server = Server::start();
    let place = Workplace::new();
    let mut command = place.toll();
    command.args(["load", &server.url, "-z", "60s", "-c", "2"]);
    let toll = place.start(command);
    wait_until(|| server.requests() > 0, || "no request came".into());
    toll.press_ctrl_c();
    toll.finish().assert_status(130).assert_says("ending the load");
}

#[test]
fn a_log_is_told_how_a_long_load_goes_on_unless_it_shall_be_quiet() {
    let server = Server::start();
    let arguments = ["--rate", "50", "-z", "5300ms"];
    load(&server, &arguments).assert_status(0).assert_says("measure 0:0");
    let quiet = load(&server, &["-n", "10", "-c", "50", "--quiet"]);
    quiet.assert_status(0);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn results_of_other_loads_do_not_merge() {
    let server = Server::start();
    let place = Workplace::new();
    for (clients, file) in [("1", "a.json"), ("2", "b.json")] {
        let mut command = place.toll();
        command.args(["load", &server.url, "-n", "10", "-c", clients, "--output"]);
        command.arg(format!("json={file}"));
        place.finish(command).assert_status(0);
    }
    let mut command = place.toll();
    command.args(["merge", "a.json", "b.json"]);
    let ended = place.finish(command);
    ended.assert_status(2).assert_says("error: b.json is the result of another load than a.json");
    let mut alone = place.toll();
    alone.args(["merge", "a.json"]);
    let merged = place.finish(alone);
    merged.assert_status(0);
    assert!(merged.stdout.contains("10 answered"), "{}", merged.stdout);
}

#[test]
fn parts_that_ran_one_after_the_other_merge_with_a_note() {
    let server = Server::start();
    let place = Workplace::new();
    for part in ["1", "2"] {
        let mut command = place.toll();
        command.args(["load", &server.url, "-n", "10", "-c", "2", "--quiet"]);
        command.args(["--part", &format!("{part}/2"), "--output", &format!("json={part}.json")]);
        place.finish(command).assert_status(0);
        thread::sleep(Duration::from_millis(60));
    }
    let mut command = place.toll();
    command.args(["merge", "1.json", "2.json"]);
    let ended = place.finish(command);
    ended.assert_status(0).assert_says("note: the parts did not run at the same time: ");
    assert!(ended.stdout.contains("10 answered"), "{}", ended.stdout);
}

#[test]
fn a_part_whose_warm_up_would_end_on_its_own_is_refused() {
    let ended = toll(&["load", "http://127.0.0.1:1/", "--part", "1/2", "--warm-up-max", "5s"]);
    ended.assert_status(2).assert_says("help: give every part the same --warm-up");
}

#[test]
fn a_start_that_has_passed_is_refused() {
    let passed = "2026-01-01T00:00:00Z";
    let ended = toll(&["load", "http://127.0.0.1:1/", "--start-at", passed]);
    ended.assert_status(2).assert_says("of --start-at has passed");
}
