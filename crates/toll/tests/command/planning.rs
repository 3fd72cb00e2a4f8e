//! `toll plan` shows what would run, and starts nothing.

use serde_json::Value;

use crate::study_text::{StudyText, meshed};
use crate::workplace::Workplace;

fn plan(study: &StudyText, options: &[&str]) -> String {
    let place = Workplace::new();
    let mut command = place.toll();
    command.arg("plan").arg(place.study(study)).args(options);
    let ended = place.finish(command);
    ended.assert_status(0);
    place.assert_no_lab_folders();
    ended.stdout
}

#[test]
fn an_a_a_run_is_planned_as_two_variants_that_deploy_the_same() {
    let plan: Value = serde_json::from_str(&plan(&meshed(), &["--aa", "--json"])).unwrap();
    let [original, twin] = &plan["variants"].as_array().unwrap()[..] else { panic!("{plan:#}") };
    assert_eq!((&original["name"], &twin["name"]), (&"original".into(), &"original-twin".into()));
    assert!(original["state"]["ready"].is_object(), "{plan:#}");
    assert_eq!(original["state"], twin["state"]);
    let arms_of = |variant: &Value| {
        let arms = plan["arms"].as_array().unwrap().iter();
        arms.filter(|arm| arm["variant"] == *variant).count()
    };
    assert_eq!((arms_of(&original["name"]), arms_of(&twin["name"])), (2, 1));
}

#[test]
fn a_plan_shows_the_rendered_configurations_and_how_the_variants_differ() {
    let listing = plan(&meshed(), &["--isolation", "loopback"]);
    for file in ["original: client.service.json", "istio: client.envoy.yaml"] {
        assert!(listing.contains(&format!("===== {file}\n")), "{file} is not in: {listing}");
    }
    let (_, difference) = listing.split_once("DIFFERENCE original -> istio\n").unwrap();
    assert!(difference.contains("only here: client.envoy.yaml"), "{difference}");
    assert!(difference.contains("differs:   client.service.json"), "{difference}");
}

#[test]
fn the_runtime_that_is_typed_is_planned_and_said() {
    let planned = |options: &[&str]| -> Value {
        serde_json::from_str(&plan(&meshed(), &[options, &["--json"]].concat())).unwrap()
    };
    assert_eq!(planned(&[])["runtime"], "native");
    let spring = planned(&["--runtime", "spring"]);
    assert_eq!(spring["runtime"], "spring");
    let program = &spring["variants"][0]["state"]["ready"]["services"][0]["program"];
    assert_eq!(program["built_in"]["runtime"], "spring");
}
