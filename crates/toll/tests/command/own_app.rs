//! Services of the user's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::run_dir::{assert_complete, ended, now};
use crate::study_text::{StudyText, bare, free_ports};
use crate::workplace::{TOLL, Workplace};

/// A script that plays the called service on `port`; it waits for a file `go` when there is one to wait for.
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
