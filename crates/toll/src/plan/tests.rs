//! Plans of the built-in studies and of variations on them, and their listing as a person reads it.

use toll_lab::Rendered;
use toll_load::Stop;

use super::*;
use crate::study::{self, Profile, Study};

/// A value for every variable that a study may ask for.
fn with_all_parts(_: &str) -> Option<String> {
    Some("/opt/part".into())
}

fn without_parts(_: &str) -> Option<String> {
    None
}

fn mesher(env: &dyn Fn(&str) -> Option<String>) -> Study {
    let (_, text) = study::builtin().iter().find(|(name, _)| *name == "mesher").unwrap();
    study::read("mesher.yaml", text, env).unwrap().0
}

fn plan(study: &Study, choices: &Choices) -> Plan {
    resolve(study, choices, vec![]).unwrap()
}

/// The help of the error with which planning ends, below its text.
fn refusal(study: &Study, choices: &Choices) -> String {
    let error = resolve(study, choices, vec![]).unwrap_err();
    format!("{error}\n{}", error.help().unwrap())
}

fn only(variants: &[&str]) -> Choices {
    Choices { variants: variants.iter().map(|name| (*name).to_owned()).collect(), ..choices() }
}

fn choices() -> Choices {
    Choices { seed: 7, ..Choices::default() }
}

/// Names of the variants whose trials are planned, each once.
fn measured(plan: &Plan) -> Vec<String> {
    let mut labels: Vec<String> = plan.trials.iter().map(|t| t.arm.label()).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

#[test]
fn every_built_in_study_plans() {
    for (name, text) in study::builtin() {
        for env in [with_all_parts, without_parts] {
            let (study, warnings) = study::read(name, text, &env).unwrap();
            assert_eq!(warnings.len(), 0, "{name}");
            for profile in [Profile::Default, Profile::Quick, Profile::Paper] {
                let plan = plan(&study, &Choices { profile, ..choices() });
                assert!(plan.trials.len() >= 3 * plan.blocks, "{name}");
            }
        }
    }
}

#[test]
fn a_variant_whose_part_is_missing_is_skipped_with_its_reason() {
    let plan = plan(&mesher(&without_parts), &choices());
    let skipped: Vec<_> = plan.variants.iter().filter(|v| v.name == "mesher").collect();
    let reason = "MESHER_BIN is not set".to_owned();
    assert_eq!(skipped[0].state, VariantState::Skipped(reason));
    assert_eq!(measured(&plan), ["istio", "original", "original (again)"]);
}

#[test]
fn a_mesher_that_is_there_is_skipped_too_because_no_adapter_was_ever_tried() {
    let plan = plan(&mesher(&with_all_parts), &choices());
    let VariantState::Skipped(reason) = &plan.variants[2].state else { panic!("{plan:?}") };
    assert!(reason.contains("no adapter for /opt/part"), "{reason}");
    assert_eq!(measured(&plan), ["istio", "original", "original (again)"]);
}

#[test]
fn chosen_variants_run_beside_the_baseline_and_no_others() {
    let mut study = mesher(&without_parts);
    let istio = study.variants.values().nth(1).unwrap().clone();
    study.variants.insert(String::from("another").try_into().unwrap(), istio);
    let plan = plan(&study, &only(&["another"]));
    assert_eq!(measured(&plan), ["another", "original", "original (again)"]);
}

#[test]
fn an_unknown_variant_is_answered_with_the_nearest_one() {
    insta::assert_snapshot!(refusal(&mesher(&without_parts), &only(&["isto"])), @r"
    the study has no variant `isto`
    did you mean `istio`? the study's variants: original, istio, mesher
    ");
}

#[test]
fn a_baseline_that_is_left_alone_is_refused_with_the_reasons() {
    insta::assert_snapshot!(refusal(&mesher(&without_parts), &only(&["mesher"])), @r"
    nothing to compare: only the baseline `original` would run
    mesher is skipped: MESHER_BIN is not set; use --aa to hold the baseline against itself
    ");
}

#[test]
fn a_baseline_that_cannot_run_is_refused_with_the_reason() {
    let mut study = mesher(&without_parts);
    study.baseline = study.variants.keys().find(|name| name.as_str() == "mesher").unwrap().clone();
    insta::assert_snapshot!(refusal(&study, &choices()), @r"
    the baseline `mesher` cannot run: MESHER_BIN is not set
    give what it needs, or name another baseline in the study
    ");
}

#[test]
fn a_single_block_is_refused() {
    let one = Choices { blocks: Some(1), ..choices() };
    insta::assert_snapshot!(refusal(&mesher(&without_parts), &one), @r"
    1 blocks give no interval
    use --blocks 2 or more; 5 and up for figures to lean on
    ");
}

#[test]
fn the_baseline_against_itself_is_the_same_deployment_under_another_name() {
    let plan = plan(&mesher(&without_parts), &Choices { against_itself: true, ..choices() });
    assert_eq!(measured(&plan), ["original", "original (again)", "original-twin"]);
    assert_eq!(plan.deployment("original-twin"), plan.deployment("original"));
}

#[test]
fn a_profile_changes_blocks_durations_warm_up_and_idle() {
    let study = mesher(&without_parts);
    let shape = |profile| {
        let plan = plan(&study, &Choices { profile, ..choices() });
        let load = plan.loads[0].clone();
        (plan.profile, plan.blocks, load.stop, load.warm_up.max_s, plan.idle_s)
    };
    for (profile, name) in
        [(Profile::Default, "default"), (Profile::Quick, "quick"), (Profile::Paper, "paper")]
    {
        let changed = study.clone().with_profile(profile);
        let study::Stop::Duration(duration) = changed.loads[0].stop else { panic!("by time") };
        let expected = (
            name.to_owned(),
            changed.blocks as usize,
            Stop::AfterSeconds(duration.get().as_secs_f64()),
            changed.warm_up.max.get().as_secs_f64(),
            changed.idle.get().as_secs_f64(),
        );
        assert_eq!(shape(profile), expected);
    }
    assert_ne!(shape(Profile::Quick), shape(Profile::Default));
    assert_ne!(shape(Profile::Paper), shape(Profile::Default));
}

#[test]
fn the_command_line_has_the_last_word_on_blocks() {
    let quick = Choices { profile: Profile::Quick, blocks: Some(3), ..choices() };
    let plan = plan(&mesher(&without_parts), &quick);
    assert_eq!((plan.blocks, plan.trials.last().unwrap().block), (3, 3));
}

#[test]
fn a_plan_survives_json() {
    let plan = plan(&mesher(&with_all_parts), &choices());
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

fn file(name: &str, text: &str) -> Rendered {
    Rendered { name: name.into(), text: text.into() }
}

#[test]
fn the_listing_says_what_runs_and_how_the_variants_differ() {
    let choices = Choices { profile: Profile::Quick, blocks: Some(2), ..choices() };
    let plan = plan(&mesher(&without_parts), &choices);
    let client =
        |calls: &str| file("client.service.json", &format!("{{\n  \"calls\": {calls}\n}}\n"));
    let server = file("server.service.json", "{\n  \"calls\": []\n}\n");
    let rendered = [
        ("original".to_owned(), vec![client("\"10.0.0.3:9999\""), server.clone()]),
        (
            "istio".to_owned(),
            vec![client("\"server:9999\""), server, file("client.envoy.json", "{\n}\n")],
        ),
    ];
    insta::assert_snapshot!(listing(&plan, &rendered));
}
