//! A user without any privilege: loopback isolation works and says what it lacks, pods are refused.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;

use nix::unistd::geteuid;

use crate::run_dir::{assert_complete, report};
use crate::skip;
use crate::study_text::{StudyText, bare, meshed};
use crate::workplace::{TOLL, Workplace, envoy, has, within};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// A workplace in which `nobody` has a home and all that it needs.
struct Home {
    place: Workplace,
    toll: PathBuf,
}

impl Home {
    fn new() -> Self {
        let place = Workplace::new();
        fs::create_dir(place.path("home")).unwrap();
        if geteuid().is_root() {
            for folder in ["home", "lab"] {
                chown(place.path(folder), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let toll = place.reachable(TOLL.as_ref());
        Self { place, toll }
    }

    fn run_dir(&self) -> PathBuf {
        self.place.path("home/run")
    }

    /// `toll run` as `nobody`; as the caller when that is not root anyway.
    fn run_command(&self, study: &StudyText, isolation: &str) -> Command {
        let study = self.place.study(study);
        let mut toll = Command::new(&self.toll);
        toll.arg("run").arg(study).args(["--isolation", isolation, "--out"]).arg(self.run_dir());
        toll.current_dir(self.place.path("home")).env("TMPDIR", self.place.path("lab"));
        toll.env("HOME", self.place.path("home")).env("XDG_RUNTIME_DIR", self.place.path("home"));
        if !geteuid().is_root() {
            return toll;
        }
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        within(setpriv, &toll)
    }
}

fn can_drop_privilege() -> bool {
    !geteuid().is_root() || has("setpriv")
}

#[test]
fn a_user_without_privilege_measures_on_loopback_and_the_report_says_what_that_lacks() {
    let Some(envoy) = envoy() else { skip!("there is no Envoy") };
    if !can_drop_privilege() {
        skip!("there is no setpriv");
    }
    let home = Home::new();
    let mut command = home.run_command(&meshed(), "loopback");
    command.env("ENVOY", home.place.reachable(&envoy));
    let ended = home.place.finish(command);
    let run = home.run_dir();
    assert_complete(&ended, &run);
    home.place.assert_no_lab_folders();

    let report = report(&run);
    let facts = report["facts"].as_array().unwrap();
    let isolation = serde_json::json!({"labelled": {"label": "isolation", "value": "loopback"}});
    assert!(facts.contains(&isolation), "{facts:#?}");
    let warnings = report["caveats"].to_string();
    let page = fs::read_to_string(run.join("report.md")).unwrap().to_lowercase();
    for lack in ["no transparent capture", "no network between pods", "no cgroups"] {
        assert!(warnings.contains(lack) && page.contains(lack), "{lack}: {warnings}");
    }
}

#[test]
fn pods_are_refused_to_a_user_without_privilege_before_anything_is_written() {
    if !can_drop_privilege() {
        skip!("there is no setpriv");
    }
    let home = Home::new();
    let ended = home.place.finish(home.run_command(&bare(), "pods"));
    ended.assert_status(1);
    ended
        .assert_says("error: isolation level `pods` is not possible here: only root can make them");
    ended.assert_says("help: run under sudo, or choose `--isolation rootless`");
    assert!(!home.run_dir().exists());
}
