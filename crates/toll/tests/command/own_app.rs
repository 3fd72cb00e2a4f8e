//! Services of the user's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use crate::run_dir::{assert_complete, ended, measured, now, report};
use crate::skip;
use crate::study_text::{StudyText, bare, free_ports};
use crate::workplace::{TOLL, Workplace, has};

/// A script that plays the called service on `port`.
fn script(place: &Workplace, port: u16) -> PathBuf {
    let config = place.path("service.json");
    let text = format!(
        r#"{{"name": "server", "listen": "0.0.0.0:{port}", "calls": [], "work_us": 50, "reply_bytes": 5, "status": 200}}"#
    );
    fs::write(&config, text).unwrap();
    let script = place.path("serve.sh");
    let text = format!("#!/bin/sh\nexec '{TOLL}' service --config '{}'\n", config.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    script
}

/// A study whose called service runs `command`, as YAML.
fn calling(port: u16, command: &str) -> StudyText {
    bare().server(format!("{{port: {port}, program: {{command: {command}}}}}"))
}

/// What the file has and a comment.
fn touch(script: &Path) -> String {
    let before = fs::read_to_string(script).unwrap();
    fs::write(script, format!("{before}# rebuilt\n")).unwrap();
    before
}

#[test]
fn a_run_is_not_resumed_with_another_version_of_a_program() {
    let place = Workplace::new();
    let [port] = free_ports();
    let script = script(&place, port);
    let study = calling(port, &format!("[sh, {}]", script.display()));
    let mut toll = place.start_run(&study);
    toll.wait_for(&place.run_dir(), |events| ended(events) >= 1 && now(events) == "slices");
    toll.press_ctrl_c();
    toll.finish().assert_status(130);

    let before = touch(&script);
    let refused = place.finish(place.resume_command());
    refused.assert_status(1);
    let file = script.display();
    refused.assert_says(&format!("error: {file} is not the file that the run was begun with"));
    refused.assert_says("help: one run holds one version: begin a new run with `toll run STUDY`");

    fs::write(&script, before).unwrap();
    assert_complete(&place.finish(place.resume_command()), &place.run_dir());
}

#[test]
fn of_a_log_without_end_the_begin_and_the_end_are_kept_and_the_report_says_so() {
    let place = Workplace::new();
    let [port] = free_ports();
    let script = script(&place, port);
    let serve = fs::read_to_string(&script).unwrap();
    let chatty = serve.replace("exec", "echo first\nhead -c 9000000 /dev/zero | tr '\\0' x\nexec");
    fs::write(&script, chatty).unwrap();
    let study = calling(port, &format!("[sh, {}]", script.display())).rest(ONE_ROUND);
    let ended = place.finish(place.run_command(&study));

    let log = place.run_dir().join("rounds/01/original/logs/service-server.log");
    let kept = fs::read(log).unwrap();
    assert!(kept.len() < 6 << 20, "{} bytes: {ended:#?}", kept.len());
    assert!(kept.starts_with(b"first\nxxx"));
    let note = b"bytes are left out here]";
    assert!(kept.windows(note.len()).any(|part| part == note));
    let caveats = report(&place.run_dir())["caveats"].to_string();
    assert!(caveats.contains("cut_logs") && caveats.contains("server"), "{caveats}");
}

/// As short as a run can be.
const ONE_ROUND: &str = "rounds: 1\ncycles: 1\nidle: 100ms";

#[test]
fn an_ambient_variant_without_networks_is_refused_by_the_plan_and_before_anything_starts() {
    let place = Workplace::new();
    let text = bare().text().replace("twin: {}", "ambient: {ambient: {proxy: envoy}}");
    fs::write(place.path("study.yaml"), text).unwrap();
    for command in ["plan", "run"] {
        let mut toll = place.toll();
        toll.args([command, "study.yaml", "--isolation", "loopback"]);
        let refused = place.finish(toll);
        refused.assert_status(1).assert_says("error: ambient has node proxies");
        refused.assert_says("help: run as root or where user namespaces are allowed");
    }
    assert!(!place.path("runs").exists());
}

#[test]
fn a_run_that_can_only_be_read_is_reported() {
    if !geteuid().is_root() || !has("unshare") {
        skip!("a file system that is read only needs root and unshare");
    }
    let place = Workplace::new();
    place.finish(place.run_command(&bare().rest(ONE_ROUND)));
    let read_only = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", read_only]).arg(place.run_dir());
    unshare.args([TOLL, "report"]).arg(place.run_dir());
    let ended = place.finish(unshare);
    ended.assert_status(0).assert_says("is read only: its report files stay as they are");
    assert!(ended.stdout.contains("CPU per request"), "{}", ended.stdout);
}

/// Says what it was told, and plays the called service at the port of its argument.
const TELLING: &str = "#!/bin/sh
echo \"told $GREETING, $PORT, $(pwd)\"
config=$(mktemp)
cat > $config <<END
{\"name\": \"server\", \"listen\": \"$2:$1\", \"calls\": [], \"work_us\": 50, \"reply_bytes\": 5, \"status\": 200}
END
exec 'TOLL' service --config $config
";

#[test]
fn a_command_is_text_with_placeholders_and_runs_in_the_folder_of_the_study() {
    let place = Workplace::new();
    fs::write(place.path("serve.sh"), TELLING.replace("TOLL", TOLL)).unwrap();
    let [port] = free_ports();
    let program =
        "program: {command: \"sh ./serve.sh {port} {host}\"}, env: {GREETING: \"hello {port}\"}";
    let study = bare().server(format!("{{port: {port}, {program}}}")).rest(ONE_ROUND);
    let mut command = place.run_command(&study);
    command.current_dir("/");
    let ended = place.finish(command);
    let log = place.run_dir().join("rounds/01/original/logs/service-server.log");
    let said = fs::read_to_string(log).unwrap();
    let folder = place.path("").canonicalize().unwrap();
    let told = format!("told hello {port}, {port}, {}\n", folder.display());
    assert!(said.contains(&told), "{said}, not {told}: {ended:#?}");

    let mut plan = place.toll();
    plan.args(["plan", "study.yaml"]);
    let planned = place.finish(plan).stdout;
    let line = format!("GREETING='hello {port}'\nPORT={port}\nsh ./serve.sh {port} ");
    let lines: Vec<&str> = planned.lines().map(str::trim_start).collect();
    assert!(lines.join("\n").contains(&line), "{planned}");
}

/// A study whose called service has these keys beside its port, and which of the two arms it is about.
fn with_ready(place: &Workplace, port: u16, listens: u16, keys: &str) -> StudyText {
    let script = script(place, listens);
    let program = format!("program: {{command: [sh, {}]}}", script.display());
    bare().server(format!("{{port: {port}, {program}{keys}}}")).rest(ONE_ROUND)
}

#[test]
fn a_service_on_another_port_is_told_with_that_port_within_seconds() {
    let place = Workplace::new();
    let [port, other] = free_ports();
    let began = Instant::now();
    let ended = place.finish(place.run_command(&with_ready(&place, port, other, "")));
    let patience = Duration::from_secs(30);
    assert!(began.elapsed() < patience, "{:?}: {ended:#?}", began.elapsed());
    ended.assert_status(1);
    ended.assert_says(&format!(
        "waiting for server since 2 s: it listens on port {other}, not on {port}"
    ));
    ended.assert_says(&format!("error: server listens on port {other}, not on {port}"));
    ended.assert_says(&format!("or `port: {other}` into the study"));
}

#[test]
fn a_service_is_ready_when_its_path_is_answered_with_the_status_of_the_study() {
    let place = Workplace::new();
    let [port] = free_ports();
    let never =
        with_ready(&place, port, port, ", ready: {path: /health, status: 204, timeout: 1s}");
    let ended = place.finish(place.run_command(&never));
    ended.assert_status(1).assert_says("error: server was not ready after 1 s");

    let place = Workplace::new();
    let soon = with_ready(&place, port, port, ", ready: {path: /health, timeout: 30s}");
    let ended = place.finish(place.run_command(&soon));
    assert_eq!(measured(&place.run_dir()).len(), 1, "{ended:#?}");
}

#[test]
fn a_service_that_starts_slowly_is_waited_for_and_toll_says_so() {
    let place = Workplace::new();
    let [port] = free_ports();
    let study = with_ready(&place, port, port, "");
    let script = place.path("serve.sh");
    let slow = fs::read_to_string(&script).unwrap().replace("exec", "sleep 3\nexec");
    fs::write(&script, slow).unwrap();
    let ended = place.finish(place.run_command(&study));
    ended.assert_says("waiting for server since 2 s");
    assert_eq!(measured(&place.run_dir()).len(), 1, "{ended:#?}");
}

#[test]
fn a_variant_runs_another_version_of_a_service_and_the_plan_names_it() {
    let place = Workplace::new();
    let [port] = free_ports();
    fs::write(place.path("serve.sh"), TELLING.replace("TOLL", TOLL)).unwrap();
    let program = "program: {command: \"sh ./serve.sh {port} {host} one\"}, env: {GREETING: one}";
    let study = bare().server(format!("{{port: {port}, {program}}}")).rest(ONE_ROUND);
    let newer = "twin: {services: {server: {command: \"sh ./serve.sh {port} {host} two\", env: {GREETING: two}}}}";
    fs::write(place.path("study.yaml"), study.text().replace("twin: {}", newer)).unwrap();
    let mut command = place.toll();
    command.args(["run", "study.yaml", "--seed", "1", "--out"]).arg(place.run_dir());
    let ended = place.finish(command);
    for (arm, told) in [("original", "told one, "), ("twin", "told two, ")] {
        let log = place.run_dir().join(format!("rounds/01/{arm}/logs/service-server.log"));
        let said = fs::read_to_string(log).unwrap();
        assert!(said.starts_with(told), "{arm}: {said}: {ended:#?}");
    }
    let variants = report(&place.run_dir())["variants"].to_string();
    let named = "; server is sh ./serve.sh {port} {host} two with GREETING=two";
    assert!(variants.contains(named), "{variants}");

    let mut plan = place.toll();
    plan.args(["plan", "study.yaml"]);
    let planned = place.finish(plan).stdout;
    assert!(planned.contains("-GREETING=one") && planned.contains("+GREETING=two"), "{planned}");
}
