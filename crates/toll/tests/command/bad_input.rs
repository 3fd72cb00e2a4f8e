//! What the user got wrong, and what the user's services do wrong: said clearly, and nothing is lost.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use crate::process::Ended;
use crate::run_dir::measured;
use crate::skip;
use crate::study_text::{StudyText, bare, free_ports, meshed};
use crate::workplace::{Workplace, has};

/// Accepts connections, reads the request and closes without an answer.
const CLOSER: &str = "\
import socket, sys
listener = socket.create_server((\"0.0.0.0\", int(sys.argv[1])), backlog=128)
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.close()
";

/// `toll run` with this study, these options and a run directory that does not exist.
fn run(study: &StudyText, options: &[&str]) -> (Workplace, Ended) {
    let place = Workplace::new();
    let mut command = place.run_command(study);
    command.args(options);
    let ended = place.finish(command);
    (place, ended)
}

/// `toll run` refuses before it writes or starts anything.
#[track_caller]
fn refused(study: &StudyText, options: &[&str], status: i32) -> Ended {
    let (place, ended) = run(study, options);
    ended.assert_status(status);
    assert!(!place.run_dir().exists());
    place.assert_no_lab_folders();
    ended
}

/// `toll run` brings the study up and gives up: nothing is measured, and nothing of it runs on.
#[track_caller]
fn given_up(study: &StudyText) -> (Workplace, Ended) {
    let (place, ended) = run(study, &[]);
    ended.assert_status(1);
    assert_eq!(measured(&place.run_dir()).len(), 0);
    assert!(place.run_dir().join("report.html").exists());
    place.assert_no_lab_folders();
    (place, ended)
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest_key() {
    let ended = refused(&bare().rest("ronuds: 2"), &[], 2);
    ended.assert_says("unknown key `ronuds`").assert_says("study.yaml:14:1");
    ended.assert_says("help: did you mean `rounds`?");
}

#[test]
fn services_that_call_in_a_circle_are_refused() {
    let [port] = free_ports();
    let ended = refused(&bare().server(format!("{{port: {port}, calls: [client]}}")), &[], 2);
    ended.assert_says("the calls go in a circle: client -> server -> client");
    ended.assert_says("help: a request would never end: remove one of these calls");
}

#[test]
fn no_round_at_all_is_refused() {
    refused(&bare(), &["--rounds", "0"], 2).assert_says("a number from 1 to");
}

#[test]
fn more_rounds_of_no_run_are_refused_with_the_way() {
    let ended = refused(&bare(), &["--rounds", "+2"], 2);
    ended.assert_says("error: `--rounds +2` adds to a run, and none is named");
    ended.assert_says("help: use `--resume RUN --rounds +2`, or `--rounds 2`");
}

#[test]
fn a_study_of_the_old_shape_is_told_what_took_the_place_of_each_key() {
    let old = refused(&bare().rest("blocks: 5\nbring_up: together"), &[], 2);
    old.assert_says("`blocks`").assert_says("`rounds: 8`").assert_says("`bring_up`");
}

#[test]
fn an_unknown_variant_is_refused_with_the_nearest_one() {
    let ended = refused(&meshed(), &["--variants", "isto"], 2);
    ended.assert_says("error: the study has no variant `isto`");
    ended.assert_says("help: did you mean `istio`? the study's variants: original, istio");
}

#[test]
fn an_unknown_study_is_refused_with_the_nearest_one() {
    let place = Workplace::new();
    let mut command = place.toll();
    command.args(["run", "meshr", "--out"]).arg(place.run_dir());
    let ended = place.finish(command);
    ended.assert_status(2).assert_says("error: no built-in study and no file is called `meshr`");
    ended.assert_says("help: did you mean `mesher`?");
    assert!(!place.run_dir().exists());
}

#[test]
fn an_envoy_that_is_named_and_not_there_is_refused_without_fetching_another() {
    let place = Workplace::new();
    let mut command = place.run_command(&meshed());
    command.env("ENVOY", "/nonexistent");
    let ended = place.finish(command);
    ended.assert_status(1).assert_says("error: ENVOY names /nonexistent, which cannot be found");
    ended.assert_says("help: correct the variable ENVOY, or unset it");
    assert!(!ended.stderr.contains("fetching"), "{}", ended.stderr);
    assert!(!place.run_dir().exists());
}

#[test]
fn a_run_directory_that_holds_something_is_refused_and_kept() {
    let place = Workplace::new();
    fs::create_dir(place.run_dir()).unwrap();
    let precious = place.run_dir().join("plan.json");
    fs::write(&precious, "precious").unwrap();
    let ended = place.finish(place.run_command(&bare()));
    let run = place.run_dir();
    ended.assert_status(1);
    ended.assert_says(&format!("error: the run directory {} already exists", run.display()));
    ended.assert_says(&format!("help: continue it with `toll run --resume {}`", run.display()));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(fs::read_dir(&run).unwrap().count(), 1);
}

#[test]
fn resuming_what_is_no_run_is_refused_and_leaves_it_as_it_is() {
    let place = Workplace::new();
    fs::create_dir(place.run_dir()).unwrap();
    let precious = place.run_dir().join("precious");
    fs::write(&precious, "precious").unwrap();
    let ended = place.finish(place.resume_command());
    ended.assert_status(1);
    ended.assert_says(&format!("{} is not a run: it has no plan.json", place.run_dir().display()));
    ended.assert_says("help: give the directory that `toll run` printed");
    assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
    assert_eq!(fs::read_dir(place.run_dir()).unwrap().count(), 1);
}

#[test]
fn choices_that_a_resumed_run_cannot_take_are_named() {
    let place = Workplace::new();
    let mut command = place.resume_command();
    command.args(["--width", "4%"]);
    let ended = place.finish(command);
    ended.assert_status(2).assert_says("cannot be used with");
    ended.assert_says("--width <SHARE>");
}

#[test]
fn a_port_in_use_is_told_with_its_holder() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    // Only a program of the user's own has a port that cannot be another.
    let study = bare().server(format!("{{port: {port}, program: {{command: [sleep, \"600\"]}}}}"));
    let (place, ended) = run(&study, &["--isolation", "loopback"]);
    ended.assert_status(1);
    ended.assert_says(&format!("error: port {port} of service `server` is taken by"));
    ended.assert_says(&format!("(pid {})", std::process::id()));
    ended.assert_says("help: end that program, change the service's port, or choose");
    assert!(place.run_dir().join("plan.json").exists(), "it can be resumed when the port is free");
    place.assert_no_lab_folders();
}

#[test]
fn a_service_that_answers_500_ends_the_run() {
    let [port] = free_ports();
    let study = bare()
        .server(format!("{{port: {port}, program: {{built_in: {{reply: {{status: 500}}}}}}}}"));
    let (_, ended) = given_up(&study);
    ended.assert_says(": not one request was answered well: ");
    ended.assert_says("help: look at the logs of the services and the database in the run's");
}

#[test]
fn a_called_service_that_closes_without_an_answer_ends_the_run() {
    if !has("python3") {
        skip!("the service is a Python program");
    }
    let [port] = free_ports();
    let (_, ended) = given_up(&bare().server(closer(port)));
    ended.assert_says("not one request was answered well: ");
}

#[test]
fn an_entry_that_closes_without_an_answer_ends_the_run() {
    if !has("python3") {
        skip!("the service is a Python program");
    }
    let [port] = free_ports();
    let (_, ended) = given_up(&bare().client(closer(port)));
    ended.assert_says("not one request was answered well: ");
}

/// A service that closes each connection without an answer, as YAML.
fn closer(port: u16) -> String {
    let program = serde_json::json!(["python3", "-c", CLOSER, port.to_string()]);
    format!("{{port: {port}, program: {{command: {program}}}}}")
}

#[test]
fn a_command_that_dies_at_its_start_is_told_with_the_last_lines_of_its_log() {
    let [port] = free_ports();
    let dies = "echo no database >&2; exit 7";
    let command = serde_json::json!(["sh", "-c", dies]);
    let (place, ended) =
        given_up(&bare().server(format!("{{port: {port}, program: {{command: {command}}}}}")));
    ended.assert_says(
        "error: server ended by itself with exit status 7; its last lines: no database",
    );
    ended.assert_says("help: the whole log is in the run's directory");
    assert!(is_logged(&place.run_dir(), "no database"));
}

/// Whether some log of the arm that came up first holds the line.
fn is_logged(run: &Path, line: &str) -> bool {
    let logs = fs::read_dir(run.join("rounds/01/original/logs")).unwrap();
    let mut texts = logs.map(|log| fs::read_to_string(log.unwrap().path()).unwrap());
    texts.any(|text| text.lines().any(|logged| logged == line))
}

#[test]
fn a_command_that_is_not_there_is_told_with_the_systems_reason_before_anything_starts() {
    let [port] = free_ports();
    let study = bare().server(format!("{{port: {port}, program: {{command: [./no-such]}}}}"));
    let ended = refused(&study, &[], 1);
    ended.assert_says("/no-such: No such file or directory");
    ended.assert_says("help: build it, or mend the `command` in the study");
}

#[test]
fn a_runtime_without_its_jvm_is_skipped_with_its_reason() {
    let place = Workplace::new();
    let mut command = place.run_command(&bare());
    command.args(["--runtime", "spring"]).env("PATH", "/nonexistent").env_remove("JAVA_HOME");
    let ended = place.finish(command);
    ended.assert_status(1).assert_says("error: the spring runtime is skipped: java is neither");
    ended.assert_says("`--runtime native` does without");
    assert!(!place.run_dir().exists());
}
