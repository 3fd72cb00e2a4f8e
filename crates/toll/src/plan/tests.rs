//! Plans of the built-in studies and of variations on them, and their listing as a person reads it.

use miette::Diagnostic;
use std::collections::BTreeSet;

use proptest::prelude::*;
use toll_lab::{
    AgentKind, AirlinePart, Compilers, DataPlane, DatabaseServer, Egress, EgressGateway, External,
    NodeProxy, Petclinic, PetclinicPart, Program, Rendered, Runtime,
};

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

/// What comes up in each round, sorted.
fn measured(plan: &Plan) -> Vec<String> {
    let mut labels: Vec<String> = plan.arms.iter().map(Arm::label).collect();
    labels.sort_unstable();
    labels
}

fn minutes(plan: &Plan) -> f64 {
    plan.budget().total_s() / 60.0
}

#[test]
fn every_built_in_study_plans() {
    for (name, text) in study::builtin() {
        for env in [with_all_parts, without_parts] {
            let (study, warnings) = study::read(name, text, &env).unwrap();
            assert_eq!(warnings.len(), 0, "{name}");
            for profile in [Profile::Default, Profile::Quick, Profile::Paper] {
                let plan = plan(&study, &Choices { profile, ..choices() });
                assert!(plan.arms.len() >= 3 && plan.side_by_side, "{name}");
                assert!(plan.needs_capacity() || *name == "ambient-replicas", "{name}");
                assert!(plan.extent.rounds.unwrap() >= 3, "{name}");
                assert!(plan.headline_load().is_some(), "{name}");
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
fn a_mesher_that_is_there_stands_beside_each_service() {
    let plan = plan(&mesher(&with_all_parts), &choices());
    let VariantState::Ready(deployment) = &plan.variants[2].state else { panic!("{plan:?}") };
    let binary = "/opt/part".into();
    assert_eq!(deployment.data_plane, toll_lab::DataPlane::Mesher { binary });
    assert_eq!(measured(&plan), ["istio", "mesher", "original", "original (again)"]);
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
    study.baseline = study.variants.keys().find(|name| name.as_str() == "mesher").cloned();
    insta::assert_snapshot!(refusal(&study, &choices()), @r"
    the baseline `mesher` cannot run: MESHER_BIN is not set
    give what it needs, or name another baseline in the study
    ");
}

#[test]
fn the_arms_are_the_variants_that_run_and_the_baseline_once_more_at_the_end() {
    let plan = plan(&mesher(&without_parts), &choices());
    let labels: Vec<String> = plan.arms.iter().map(Arm::label).collect();
    assert_eq!(labels, ["original", "istio", "original (again)"]);
}

#[test]
fn the_baseline_against_itself_is_the_same_deployment_under_another_name() {
    let plan = plan(&mesher(&without_parts), &Choices { against_itself: true, ..choices() });
    assert_eq!(measured(&plan), ["original", "original (again)", "original-twin"]);
    assert_eq!(plan.deployment("original-twin"), plan.deployment("original"));
}

#[test]
fn a_profile_changes_rounds_cycles_slices_and_idle() {
    let study = mesher(&without_parts);
    let shape = |profile| {
        let plan = plan(&study, &Choices { profile, ..choices() });
        (plan.profile, plan.extent.rounds, plan.cycles, plan.loads[0].slice, plan.idle_s)
    };
    let (slice, minute) = (SliceLength::Seconds(0.4), SliceLength::Seconds(60.0));
    assert_eq!(shape(Profile::Default), ("default".into(), Some(10), 3, slice, 0.5));
    assert_eq!(shape(Profile::Quick), ("quick".into(), Some(6), 1, slice, 0.3));
    assert_eq!(shape(Profile::Paper), ("paper".into(), Some(8), 1, minute, 0.5));
}

/// Rounds, seconds and width of a study that says `written` of how long it takes.
fn extent(written: &str, choices: &Choices) -> (Option<usize>, Option<f64>, Option<f64>) {
    let text = study::annotated_default().replace("\nrounds: 8\n", &format!("\n{written}\n"));
    let (study, _) = study::read("study.yaml", &text, &without_parts).unwrap();
    let extent = plan(&study, choices).extent;
    (extent.rounds, extent.for_s, extent.width)
}

#[test]
fn the_command_line_has_the_last_word_on_how_long() {
    let none = Choices::default();
    let rounds = Choices { rounds: Some(3), ..choices() };
    let time = Choices { for_s: Some(60.0), ..choices() };
    let width = Choices { width: Some(0.02), ..choices() };
    assert_eq!(extent("rounds: 9", &none), (Some(9), None, None));
    assert_eq!(extent("for: 5m", &none), (None, Some(300.0), None));
    assert_eq!(extent("for: 5m\nwidth: 3%", &none), (None, Some(300.0), Some(0.03)));
    for written in ["rounds: 9", "for: 5m", "for: 5m\nwidth: 3%"] {
        assert_eq!(extent(written, &rounds), (Some(3), None, None), "{written}");
        assert_eq!(extent(written, &time), (None, Some(60.0), None), "{written}");
        assert_eq!(extent(written, &width), (None, Some(1800.0), Some(0.02)), "{written}");
        let quick = Choices { profile: Profile::Quick, ..choices() };
        assert_eq!(extent(written, &quick), (Some(4), None, None), "{written}");
    }
}

#[test]
fn cycles_make_room_for_rounds_in_a_given_time() {
    let study = mesher(&without_parts);
    let within = |for_s| {
        let plan = plan(&study, &Choices { for_s: Some(for_s), ..choices() });
        assert!(plan.budget().total_s() <= for_s || plan.budget().rounds == 1, "{for_s}");
        (plan.cycles, plan.budget().rounds, plan.few_rounds().is_some())
    };
    assert_eq!(within(600.0), (3, 21, false));
    assert_eq!(within(200.0), (2, 9, false));
    assert_eq!(within(135.0), (1, 8, false));
    assert_eq!(within(60.0), (1, 3, true));
    assert_eq!(within(1.0), (1, 1, true));
}

#[test]
fn few_starts_are_warned_of_and_jvms_need_fewer() {
    let warned = |study: &Study, rounds| {
        plan(study, &Choices { rounds: Some(rounds), ..choices() }).few_rounds().unwrap_or_default()
    };
    insta::assert_snapshot!(warned(&mesher(&without_parts), 4), @"4 rounds say little of how one start differs from the next, so intervals are wide; take 8 or more");
    assert_eq!(warned(&mesher(&without_parts), 8), "");
    assert_eq!(warned(&petclinic_agent(&without_parts), 4), "");
    assert!(warned(&petclinic_agent(&without_parts), 1).contains("1 round says little"));
    let spring = Choices { rounds: Some(4), ..on_spring() };
    assert_eq!(plan(&customer_360(), &spring).few_rounds(), None);
}

#[test]
fn a_curve_is_added_where_it_is_asked_for() {
    let study = customer_360();
    let asked = Choices { curve: true, ..choices() };
    let plan = plan(&study, &asked);
    let points: Vec<&PlannedLoad> = plan.loads.iter().filter(|l| l.is_of_curve()).collect();
    let names: Vec<&str> = points.iter().map(|load| load.name.as_str()).collect();
    let percents = ["10", "20", "30", "40", "50", "60", "70", "80", "90", "100"];
    assert_eq!(names, percents.map(|percent| format!("curve-{percent}")));
    assert_eq!(points[2].rate_per_s(Some(1000.0)), Some(300.0));
    assert!(points.iter().all(|load| load.request == plan.headline_load().unwrap().request));
    assert_eq!(plan.headline_load().unwrap().name, "same-rate");
    assert_eq!(plan.sizes().len(), 1);
    assert_eq!(resolve(&study, &choices(), vec![]).unwrap().loads.len(), 3);
}

#[test]
fn a_study_that_has_a_curve_gets_no_other_and_has_it_last() {
    let text = study::annotated_default().replace(
        "\nloads:\n",
        "\nloads:\n  rising: {curve: {steps: 2}, slice: 1s, request: {path: /a}}\n",
    );
    let (study, _) = study::read("study.yaml", &text, &without_parts).unwrap();
    let plan = plan(&study, &Choices { curve: true, ..choices() });
    assert_eq!(loads(&plan), ["same-rate", "rising-10", "rising-100"]);
    let point = plan.load("rising-10").unwrap();
    assert_eq!((point.slice, point.request.path.as_str()), (SliceLength::Seconds(1.0), "/a"));
    assert!(plan.needs_capacity());
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
    let choices = Choices { profile: Profile::Quick, curve: true, ..choices() };
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

fn customer_360() -> Study {
    let (_, text) = study::builtin().iter().find(|(name, _)| *name == "customer-360").unwrap();
    study::read("customer-360.yaml", text, &without_parts).unwrap().0
}

fn on_spring() -> Choices {
    Choices { runtime: Some(Runtime::Spring), ..choices() }
}

#[test]
fn the_listing_says_what_is_asked_and_what_is_discarded() {
    let limits = Choices { for_s: Some(300.0), width: Some(0.025), ..choices() };
    let plan = plan(&customer_360(), &limits);
    insta::assert_snapshot!(listing(&plan, &[]));
}

#[test]
fn gateways_services_and_databases_are_services_that_call_each_other() {
    let plan = plan(&customer_360(), &choices());
    let deployment = plan.deployment("sidecar").unwrap();
    let calls: Vec<(&str, Vec<&str>)> = deployment
        .services
        .iter()
        .map(|s| (s.name.as_str(), s.calls.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        calls,
        [
            ("ingress", vec!["customer"]),
            ("customer", vec!["person"]),
            ("person", vec!["name"]),
            ("name", vec!["postgres"]),
            ("postgres", vec![]),
        ]
    );
    assert_eq!(deployment.entry, "ingress");
    assert_eq!(deployment.service("ingress").unwrap().program, Program::Gateway);
    let Program::Postgres(postgres) = &deployment.service("postgres").unwrap().program else {
        panic!("{deployment:?}")
    };
    assert!(postgres.written.is_some() && postgres.seed.contains("CREATE TABLE customers"));
    assert_eq!(deployment.service("ingress").unwrap().group, "ingress");
}

#[test]
fn a_database_is_asked_after_all_calls() {
    let mut study = customer_360();
    let customer = study.app.services.get_mut("customer").unwrap();
    customer.calls = vec![];
    let person: study::Service = customer.clone();
    study.app.services["person"] = person;
    let call = |name: &str| study::Call::from(study::Name::try_from(name.to_owned()).unwrap());
    study.app.services["name"].calls = vec![call("customer"), call("person")];
    let plan = plan(&study, &choices());
    let name = plan.deployment("bare").unwrap().service("name").unwrap();
    assert_eq!(name.calls, ["customer", "person", "postgres"]);
}

#[test]
fn replicas_and_groups_reach_the_deployment() {
    let mut study = customer_360();
    study.app.services["person"].replicas = 2;
    study.app.services["person"].group = String::from("people").try_into().unwrap();
    let plan = plan(&study, &choices());
    let deployment = plan.deployment("bare").unwrap();
    assert_eq!(deployment.service("person").unwrap().group, "people");
    let pods: Vec<String> = deployment.pods().into_iter().map(|(pod, _)| pod).collect();
    assert_eq!(pods, ["ingress", "customer", "person-1", "person-2", "name", "postgres"]);
}

fn runtimes(plan: &Plan) -> Vec<Runtime> {
    let services = plan.ready().flat_map(|(_, deployment)| &deployment.services);
    let runtime = |service: &toll_lab::Service| match &service.program {
        Program::BuiltIn(built_in) => Some(built_in.runtime),
        _ => None,
    };
    services.filter_map(runtime).collect()
}

#[test]
fn a_runtime_is_set_for_every_built_in_service_and_said() {
    let native = plan(&customer_360(), &choices());
    assert_eq!(
        (native.runtime.as_deref(), runtimes(&native)),
        (Some("native"), vec![Runtime::Native; 6])
    );
    let spring = plan(&customer_360(), &on_spring());
    assert_eq!(
        (spring.runtime.as_deref(), runtimes(&spring)),
        (Some("spring"), vec![Runtime::Spring; 6])
    );
    assert_eq!(spring.variants[0].describes, "the application alone, services on Spring Boot");
}

#[test]
fn the_command_line_has_the_last_word_on_the_runtime() {
    let mut study = customer_360();
    let study::Program::BuiltIn(person) = &mut study.app.services["person"].program else {
        panic!("another program")
    };
    person.runtime = study::Runtime::Spring;
    assert_eq!(plan(&study, &choices()).runtime.as_deref(), Some("native and spring"));
    let native = Choices { runtime: Some(Runtime::Native), ..choices() };
    assert_eq!(runtimes(&plan(&study, &native)), vec![Runtime::Native; 6]);
}

#[test]
fn spring_changes_what_the_study_says_on_top_of_the_profile() {
    let study = customer_360();
    let quick = Choices { profile: Profile::Quick, ..on_spring() };
    let plan_of = |choices: &Choices| {
        let plan = plan(&study, choices);
        (plan.extent.rounds, plan.cycles, plan.settle.max_s, plan.idle_s)
    };
    assert_eq!(plan_of(&choices()), (Some(8), 3, 2.0, 0.3));
    assert_eq!(plan_of(&on_spring()), (Some(4), 2, 60.0, 0.3));
    assert_eq!(plan_of(&quick), (Some(4), 2, 60.0, 0.2));
}

#[test]
fn a_runtime_for_programs_of_the_users_own_is_refused() {
    let mut study = mesher(&without_parts);
    for service in study.app.services.values_mut() {
        service.program =
            study::Program::Command(serde_json::from_value("./my-api".into()).unwrap());
    }
    assert_eq!(plan(&study, &choices()).runtime, None);
    insta::assert_snapshot!(refusal(&study, &on_spring()), @r"
    the study has no built-in service to choose a runtime for
    leave --runtime out: none of its services is the built-in one
    ");
}

#[test]
fn a_load_says_what_it_asks() {
    let plan = plan(&customer_360(), &choices());
    let read = PlannedRequest { path: "/api/customer".into(), ..PlannedRequest::default() };
    assert_eq!(plan.loads[1].request, read);
    let writes = &plan.loads[2].request;
    assert!(writes.writes() && !read.writes());
    let target = writes.target("http://10.77.0.2:8080/");
    assert_eq!((target.method.as_str(), target.template), ("POST", true));
    assert_eq!(target.url, "http://10.77.0.2:8080/api/customer");
    assert_eq!(target.headers, [("content-type".into(), "application/json".into())]);
}

#[test]
fn a_placeholder_in_the_path_is_filled_in_too() {
    let read = PlannedRequest { path: "/?n={{counter}}".into(), ..PlannedRequest::default() };
    assert!(read.target("http://a").template);
    assert!(!PlannedRequest::default().target("http://a").template);
}

#[test]
fn a_body_without_a_type_is_json() {
    let mut study = customer_360();
    study.loads["writes"].request.content_type = None;
    let content_type =
        |study: &Study| plan(study, &choices()).loads[2].request.content_type.clone();
    assert_eq!(content_type(&study).as_deref(), Some("application/json"));
    study.loads["writes"].request.body = None;
    assert_eq!(content_type(&study), None);
}

#[test]
fn a_load_that_says_nothing_else_asks_for_the_root() {
    let plan = plan(&mesher(&without_parts), &choices());
    assert!(plan.loads.iter().all(|load| load.request == PlannedRequest::default()));
    assert_eq!(plan.variants[1].describes, "an Envoy sidecar beside each service, mTLS strict");
}

#[test]
fn published_figures_are_listed_by_name_and_pod() {
    let reference = plan(&customer_360(), &choices()).reference.unwrap();
    let of = |variant: &str, figure: &str| {
        let found = reference.figures.iter().find(|f| f.variant == variant && f.figure == figure);
        found.map(|f| (f.load.as_str(), f.value))
    };
    assert_eq!(of("bare", "throughput_per_s"), Some(("flat-out", 7448.3475)));
    assert_eq!(of("sidecar", "latency_ms.p95"), Some(("flat-out", 15.2)));
    assert_eq!(of("sidecar", "cpu_millicores.postgres"), Some(("flat-out", 1030.0)));
    assert_eq!(of("bare", "memory_mib.name"), Some(("flat-out", 3066.0)));
    assert_eq!(reference.figures.len(), 2 * (1 + 8 + 4 + 4));
    assert_eq!(reference.recomputed.len(), 10);
    assert_eq!(reference.recomputed[0].derived, Derived::LatencyP95Change);
}

/// A value that follows from the published figures, computed anew.
fn derived(reference: &PlannedReference, baseline: &str, wanted: &Recomputed) -> f64 {
    let published = |variant: &str, figure: &str| -> f64 {
        let of_load = |f: &&PublishedFigure| f.variant == variant && f.load == wanted.load;
        let of_figure = |f: &&PublishedFigure| {
            f.figure == figure || f.figure.starts_with(&format!("{figure}."))
        };
        reference.figures.iter().filter(of_load).filter(of_figure).map(|f| f.value).sum()
    };
    let cpu_per_request = |variant: &str| {
        published(variant, "cpu_millicores") / published(variant, "throughput_per_s")
    };
    let baseline = wanted.against.as_deref().unwrap_or(baseline);
    let change = |of: &dyn Fn(&str) -> f64| (of(&wanted.variant) / of(baseline) - 1.0) * 100.0;
    let of_pod = |kind: &str| format!("{kind}.{}", wanted.pod.as_deref().unwrap_or("no pod"));
    let load_per_request = |variant: &str| {
        published(variant, &of_pod("cpu_load_percent")) / published(variant, "throughput_per_s")
    };
    let difference =
        |figure: &str| published(&wanted.variant, figure) - published(baseline, figure);
    match wanted.derived {
        Derived::CpuLoadPoints => difference(&of_pod("cpu_load_percent")),
        Derived::HeapDifference => difference(&of_pod("heap_mib")),
        Derived::PodCpuPerRequestChange => change(&load_per_request),
        Derived::LatencyMeanChange => change(&|v| published(v, "latency_ms.mean")),
        Derived::LatencyP99Change => change(&|v| published(v, "latency_ms.p99")),
        Derived::CpuRatio => change(&|v| published(v, "cpu_total_millicores")) / 100.0 + 1.0,
        Derived::MemoryRatio => change(&|v| published(v, "memory_total_mib")) / 100.0 + 1.0,
        Derived::LatencyP90Change => change(&|v| published(v, "latency_ms.p90")),
        Derived::ThroughputChange => change(&|v| published(v, "throughput_per_s")),
        Derived::LatencyP95Change => change(&|v| published(v, "latency_ms.p95")),
        Derived::CpuChange => change(&|v| published(v, "cpu_millicores")),
        Derived::MemoryChange => change(&|v| published(v, "memory_mib")),
        Derived::CpuPerRequest => cpu_per_request(&wanted.variant),
        Derived::CpuPerRequestChange => change(&cpu_per_request),
        Derived::MemoryTotal => published(&wanted.variant, "memory_mib"),
        Derived::MeshCpuPerRequestChange => unreachable!("no figure is of the data plane alone"),
        Derived::UnderWay => {
            let variant = &wanted.variant;
            published(variant, "throughput_per_s") * published(variant, "latency_ms.mean") / 1000.0
        }
    }
}

#[test]
fn every_recomputed_value_follows_from_the_figures_of_its_study() {
    let mut checked = 0;
    for (name, text) in study::builtin() {
        let (study, _) = study::read(name, text, &without_parts).unwrap();
        let plan = plan(&study, &choices());
        let Some(reference) = &plan.reference else { continue };
        for wanted in &reference.recomputed {
            let Some(stated) = wanted.recomputed else { continue };
            let exact = derived(reference, &plan.baseline, wanted);
            let stated = stated.to_string();
            let decimals = stated.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            // `44.0` is read as 44: what is stated with one decimal at the least is held against one.
            let decimals = if wanted.derived == Derived::MemoryTotal { 0 } else { decimals.max(1) };
            let rounded = format!("{exact:.decimals$}").parse::<f64>().unwrap();
            assert_eq!(Some(rounded), wanted.recomputed, "{name}: {:?} is {exact}", wanted.derived);
            checked += 1;
        }
    }
    assert_eq!(checked, 10 + 20);
}

#[test]
fn a_round_takes_what_its_arms_and_slices_take() {
    let mut study = mesher(&without_parts);
    let with_capacity = plan(&study, &choices()).budget();
    assert_eq!((with_capacity.rounds, with_capacity.bring_ups), (10, 3));
    // 1 s up and down and 1.6 s of settling for each arm; 3 cycles of 2 slices of 2 loads for each arm.
    let round_s = 3.0 * 2.6 + 0.5 + 3.0 * 2.0 * 3.0 * 2.0 * 0.55;
    assert!((with_capacity.round_s - round_s).abs() < 1e-6, "{with_capacity:?}");
    assert!((with_capacity.capacity_s - 2.0 * 2.6).abs() < 1e-6, "{with_capacity:?}");
    study.loads.shift_remove("same-rate").unwrap();
    assert_eq!(plan(&study, &choices()).budget().capacity_s, 0.0);
}

#[test]
fn a_slice_of_a_slow_load_lasts_for_twenty_requests() {
    let plan = plan(&ambient_replicas(), &choices());
    let slice_s = |load: &str| plan.load(load).unwrap().slice_s(None);
    assert_eq!(
        (slice_s("get-20x1"), slice_s("get-50x1"), slice_s("wake-up-200x1")),
        (1.0, 0.4, 0.2)
    );
}

#[test]
fn mesher_and_customer_360_end_within_their_time() {
    let of = |study: &Study, profile, runtime| {
        minutes(&plan(study, &Choices { profile, runtime, ..choices() }))
    };
    let mesher = mesher(&without_parts);
    assert!(of(&mesher, Profile::Default, None) < 5.0);
    assert!(of(&mesher, Profile::Quick, None) < 1.75);
    assert!(of(&mesher, Profile::Paper, None) < 100.0);
    let native = Some(Runtime::Native);
    assert!(of(&customer_360(), Profile::Default, native) < 5.5);
    assert!(of(&customer_360(), Profile::Quick, native) < 2.0);
    assert!(of(&customer_360(), Profile::Default, Some(Runtime::Spring)) < 14.5);
}

#[test]
fn the_paper_profile_of_customer_360_sends_a_million_requests_flat_out() {
    let paper = plan(&customer_360(), &Choices { profile: Profile::Paper, ..choices() });
    let slices: Vec<SliceLength> = paper.loads.iter().map(|load| load.slice).collect();
    let minute = SliceLength::Seconds(60.0);
    assert_eq!(slices, [minute, SliceLength::Requests(1_000_000), minute]);
    let of = SliceOf { capacity_per_s: Some(1000.0), guard_s: 0.1, answer_s: 0.0, seed: 1 };
    let engine = paper.loads[1].engine_plan("http://10.77.0.2:8080/", &of).unwrap();
    assert_eq!(engine.stop, Stop::AfterRequests(1_000_000));
}

fn petclinic_agent(env: &dyn Fn(&str) -> Option<String>) -> Study {
    let (_, text) = study::builtin().iter().find(|(name, _)| *name == "petclinic-agent").unwrap();
    study::read("petclinic-agent.yaml", text, env).unwrap().0
}

/// The agent's jar could not be had.
fn without_agent() -> Choices {
    let reason = "the OpenTelemetry Java agent could not be fetched: offline".to_owned();
    Choices { unavailable: vec![("agent".into(), reason)], ..choices() }
}

#[test]
fn the_listing_says_how_users_are_scaled_and_what_the_agents_are_told() {
    let plan = plan(&petclinic_agent(&with_all_parts), &choices());
    insta::assert_snapshot!(listing(&plan, &[]));
}

#[test]
fn every_variant_of_a_study_of_agents_has_the_same_services_and_a_collector() {
    let plan = plan(&petclinic_agent(&with_all_parts), &choices());
    let services = |variant: &str| &plan.deployment(variant).unwrap().services;
    for variant in ["agent", "easeagent"] {
        assert_eq!(services(variant), services("baseline"));
    }
    let collector = services("baseline").last().unwrap();
    assert_eq!((collector.name.as_str(), collector.group.as_str()), ("collector", "toll"));
    assert_eq!((collector.port, &collector.program), (4318, &Program::Collector));
    let [baseline, agent, easeagent] =
        ["baseline", "agent", "easeagent"].map(|v| &plan.deployment(v).unwrap().data_plane);
    assert_eq!(*baseline, DataPlane::Bare);
    let DataPlane::Agent(agent) = agent else { panic!("{agent:?}") };
    assert_eq!((&agent.kind, agent.settings.len()), (&AgentKind::OpenTelemetry, 6));
    assert_eq!(agent.settings["otel.instrumentation.netty.enabled"], "false");
    let DataPlane::Agent(easeagent) = easeagent else { panic!("{easeagent:?}") };
    assert_eq!(easeagent.kind, AgentKind::EaseAgent { jar: "/opt/part".into() });
    let nine = plan.load("same-rate").unwrap();
    let spans =
        |variant: &str| -> u64 { nine.spans_in(plan.deployment(variant).unwrap()).values().sum() };
    assert_eq!((spans("agent"), spans("easeagent")), (10, 11));
}

#[test]
fn the_collector_stays_when_only_variants_without_an_agent_are_chosen() {
    let mut study = petclinic_agent(&without_parts);
    let bare = study.variants["baseline"].clone();
    study.variants.insert(String::from("other").try_into().unwrap(), bare);
    let plan = plan(&study, &only(&["other"]));
    assert!(plan.deployment("other").unwrap().service("collector").is_some());
}

#[test]
fn a_study_without_agents_has_no_collector() {
    let plan = plan(&customer_360(), &choices());
    assert!(plan.ready().all(|(_, deployment)| deployment.service("collector").is_none()));
}

#[test]
fn the_parts_of_the_petclinic_have_the_series_of_a_jvm_and_their_heap() {
    let plan = plan(&petclinic_agent(&without_parts), &choices());
    let vets = plan.deployment("agent").unwrap().service("vets").unwrap();
    let petclinic =
        Petclinic { part: PetclinicPart::Vets, heap_mib: 256, compilers: Compilers::Both };
    assert_eq!(vets.program, Program::Petclinic(petclinic));
    let metrics = vets.metrics.as_ref().unwrap();
    assert_eq!((metrics.port, metrics.path.as_str()), (9081, "/metrics"));
    assert!(metrics.series.contains(&"jvm_memory_pool_collection_used_bytes".to_owned()));
}

#[test]
fn a_first_look_at_the_petclinic_does_without_the_second_compiler_and_a_rehearsal_and_says_so() {
    let of = |profile| {
        let plan = plan(&petclinic_agent(&without_parts), &Choices { profile, ..choices() });
        let program = plan.deployment("agent").unwrap().service("vets").unwrap().program.clone();
        let Program::Petclinic(Petclinic { compilers, .. }) = program else {
            panic!("{program:?}")
        };
        let is_told = plan.warnings.iter().any(|warning| warning.contains("first compiler only"));
        (compilers, plan.rehearsal(0).len(), is_told)
    };
    assert_eq!(of(Profile::Quick), (Compilers::First, 0, true));
    // Six loads, three arms.
    assert_eq!(of(Profile::Default), (Compilers::Both, 18, false));
}

#[test]
fn a_variant_that_is_unavailable_is_skipped_with_its_reason() {
    let plan = plan(&petclinic_agent(&with_all_parts), &without_agent());
    let VariantState::Skipped(reason) = &plan.variants[1].state else { panic!("{plan:?}") };
    assert!(reason.contains("offline"), "{reason}");
    assert_eq!(measured(&plan), ["baseline", "baseline (again)", "easeagent"]);
    assert_eq!(plan.warnings, [""; 0]);
}

#[test]
fn a_baseline_that_lost_all_others_runs_against_itself_and_says_why() {
    let plan = plan(&petclinic_agent(&without_parts), &without_agent());
    assert_eq!(measured(&plan), ["baseline", "baseline (again)", "baseline-twin"]);
    let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["baseline", "agent", "easeagent", "baseline-twin"]);
    assert_eq!(plan.deployment("baseline-twin"), plan.deployment("baseline"));
    insta::assert_snapshot!(plan.warnings.join("\n"), @"baseline runs against itself, which tells the noise and no variant's cost, because agent is skipped: the OpenTelemetry Java agent could not be fetched: offline; easeagent is skipped: EASEAGENT is not set");
}

#[test]
fn a_variant_that_was_asked_for_and_cannot_run_is_an_error() {
    let asked = Choices { variants: vec!["agent".into()], ..without_agent() };
    assert!(refusal(&petclinic_agent(&without_parts), &asked).contains("offline"));
}

#[test]
fn a_study_with_nothing_to_compare_is_refused() {
    let mut study = petclinic_agent(&without_parts);
    study.variants.retain(|name, _| name.as_str() == "baseline");
    let error = resolve(&study, &choices(), vec![]).unwrap_err();
    assert!(matches!(error, PlanError::OnlyBaseline { .. }), "{error}");
}

#[test]
fn a_baseline_that_is_unavailable_is_refused_with_the_reason() {
    let no_jdk =
        Choices { unavailable: vec![("baseline".into(), "no JDK was found".into())], ..choices() };
    assert!(refusal(&petclinic_agent(&without_parts), &no_jdk).contains("no JDK was found"));
}

#[test]
fn an_agent_needs_a_jvm() {
    let mut study = petclinic_agent(&without_parts);
    for service in study.app.services.values_mut() {
        service.program = study::Program::default();
    }
    insta::assert_snapshot!(refusal(&study, &choices()), @r"
    `agent` has an agent for JVMs, and no service runs on one
    use --runtime spring, or make a service's program `{built_in: {runtime: spring}}`, a `petclinic` or a `command`
    ");
    assert_eq!(measured(&plan(&study, &on_spring())), ["agent", "baseline", "baseline (again)"]);
}

#[test]
fn a_runtime_is_nothing_for_the_petclinic() {
    assert!(
        refusal(&petclinic_agent(&without_parts), &on_spring()).contains("none of its services")
    );
}

#[test]
fn users_are_scaled_by_the_slowest_capacity_and_never_beyond_the_study() {
    let plan = plan(&petclinic_agent(&without_parts), &choices());
    let users = |load: &str, capacity| plan.load(load).unwrap().users(capacity);
    assert_eq!(
        (users("vus-320", Some(763.0)), users("vus-700", Some(763.0))),
        (Some(160), Some(350))
    );
    assert_eq!(users("vus-320", Some(9000.0)), Some(320));
    assert_eq!(users("vus-320", Some(0.1)), Some(1));
    assert_eq!(users("vus-320", None), None, "the capacity must be known first");
    assert_eq!(users("same-rate", Some(763.0)), None);
}

fn engine_plan(load: &PlannedLoad, capacity_per_s: f64) -> LoadPlan {
    let of = SliceOf { capacity_per_s: Some(capacity_per_s), guard_s: 0.1, answer_s: 0.0, seed: 1 };
    load.engine_plan("http://10.77.0.2:8080/", &of).unwrap()
}

fn stages(engine: &LoadPlan) -> Vec<(f64, f64, f64)> {
    let LoadModel::Closed { clients, iteration } = &engine.model else { panic!("{engine:?}") };
    assert_eq!((iteration.requests, iteration.think_ms), (4, 1000.0));
    clients.stages.iter().map(|stage| (stage.duration_s, stage.from, stage.to)).collect()
}

#[test]
fn scaled_users_are_all_there_and_come_in_while_they_would_think() {
    let plan = plan(&petclinic_agent(&without_parts), &choices());
    let engine = engine_plan(plan.load("vus-320").unwrap(), 763.0);
    assert_eq!(stages(&engine), [(0.3, 160.0, 160.0)]);
    assert_eq!((engine.warm_up.min_s, engine.stop), (1.0, Stop::AfterSeconds(0.3)));
}

#[test]
fn the_paper_profile_of_petclinic_agent_has_the_published_stages() {
    let paper = Choices { profile: Profile::Paper, ..choices() };
    let plan = plan(&petclinic_agent(&without_parts), &paper);
    let engine = engine_plan(plan.load("vus-320").unwrap(), 763.0);
    assert_eq!(stages(&engine), [(50.0, 5.0, 160.0), (600.0, 160.0, 160.0), (50.0, 160.0, 5.0)]);
    assert_eq!((engine.warm_up.min_s, engine.stop), (0.1, Stop::AfterSeconds(700.0)));
    // Fewer than the study begins with: all of them from the begin on.
    let few = engine_plan(plan.load("vus-320").unwrap(), 10.0);
    assert!(stages(&few).iter().all(|(_, from, to)| (*from, *to) == (2.0, 2.0)), "{few:?}");
    let slice_s = |load: &str| plan.load(load).unwrap().slice_s(Some(763.0));
    assert_eq!((slice_s("vus-700"), slice_s("spans-27")), (800.0, 60.0));
}

#[test]
fn petclinic_agent_ends_within_its_time() {
    let of = |profile, env: &dyn Fn(&str) -> Option<String>| {
        minutes(&plan(&petclinic_agent(env), &Choices { profile, ..choices() }))
    };
    // As the comment in the study file works it out.
    assert!(of(Profile::Default, &without_parts) < 12.5);
    assert!(of(Profile::Quick, &without_parts) < 7.2);
    assert!(of(Profile::Paper, &without_parts) / 60.0 < 12.5);
    assert!(of(Profile::Default, &with_all_parts) < 16.5);
}

#[test]
fn each_load_of_petclinic_agent_asks_for_the_spans_that_it_states() {
    let plan = plan(&petclinic_agent(&without_parts), &choices());
    for load in &plan.loads {
        let asked = load.request.path.split_once("?spans=").unwrap().1;
        assert_eq!(load.spans["vets"].to_string(), asked, "{}", load.name);
        assert_eq!(load.spans["gateway"], 1);
    }
}

fn ambient_replicas() -> Study {
    let (_, text) = study::builtin().iter().find(|(name, _)| *name == "ambient-replicas").unwrap();
    study::read("ambient-replicas.yaml", text, &without_parts).unwrap().0
}

/// Names of the loads of a plan.
fn loads(plan: &Plan) -> Vec<&str> {
    plan.loads.iter().map(|load| load.name.as_str()).collect()
}

#[test]
fn a_swept_load_is_a_load_for_each_cell() {
    let plan = plan(&ambient_replicas(), &choices());
    let of_get = ["1", "10", "50", "90"].iter().flat_map(|n| [("20", n), ("50", n)]);
    let of_get: Vec<String> = of_get.map(|(rate, n)| format!("get-{rate}x{n}")).collect();
    assert_eq!(loads(&plan)[..8], of_get);
    assert_eq!(loads(&plan)[8..], ["wake-up-200x1", "wake-up-800x1"]);
    let load = plan.load("get-50x90").unwrap();
    assert_eq!((load.rate_per_s(None), load.slice), (Some(50.0), SliceLength::Seconds(0.4)));
    let cell = load.cell.as_ref().unwrap();
    assert_eq!((cell.load.as_str(), cell.rate_per_s, cell.nodes), ("get", Some(50.0), None));
    assert_eq!(cell.replicas, Some(("nginx".into(), 90)));
}

#[test]
fn an_arm_comes_up_in_the_size_of_the_loads() {
    let mut study = ambient_replicas();
    study.loads["get"].matrix.as_mut().unwrap().nodes = vec![2];
    let plan = plan(&study, &choices());
    for (number, loads) in plan.sizes().iter().enumerate() {
        for (arm, load) in
            plan.arms.iter().flat_map(|arm| loads.iter().map(move |load| (arm, load)))
        {
            let deployment = plan.deployment_at(arm, number).unwrap();
            let cell = load.cell.as_ref().unwrap();
            let (_, pods) = cell.replicas.clone().unwrap();
            assert_eq!(deployment.name, arm.variant);
            assert_eq!(deployment.service("nginx").unwrap().replicas, pods);
            assert_eq!(deployment.nodes, if cell.load == "get" { 2 } else { 1 });
        }
    }
    assert_eq!(plan.deployment("bare").unwrap().service("nginx").unwrap().replicas, 1);
}

#[test]
fn a_round_has_each_size_once_in_an_order_of_its_own() {
    let plan = plan(&ambient_replicas(), &choices());
    let loads: Vec<usize> = plan.sizes().iter().map(Vec::len).collect();
    assert_eq!(loads, [4, 2, 2, 2]);
    let orders: BTreeSet<Vec<usize>> =
        (1..=8).map(|round| order::sizes_of_round(&plan, round)).collect();
    assert!(orders.len() > 1, "never shuffled");
    for mut order in orders {
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3]);
    }
}

#[test]
fn ambient_replicas_ends_within_its_time() {
    let budget = |profile| plan(&ambient_replicas(), &Choices { profile, ..choices() }).budget();
    let default = budget(Profile::Default);
    // As the comment in the study file works it out.
    assert_eq!((default.rounds, default.bring_ups), (8, 16));
    assert!((default.round_s - 97.1).abs() < 0.1, "{default:?}");
    assert!(budget(Profile::Quick).total_s() < 290.0, "{:?}", budget(Profile::Quick));
    assert!(budget(Profile::Paper).total_s() / 3600.0 < 48.0);
}

#[test]
fn the_figures_of_ambient_replicas_are_of_its_cells() {
    let plan = plan(&ambient_replicas(), &choices());
    let reference = plan.reference.as_ref().unwrap();
    assert_eq!(reference.figures.len(), 8 * (5 + 2));
    assert_eq!(reference.recomputed.len(), 8 * 3 + 2);
    assert!(reference.figures.iter().all(|figure| plan.load(&figure.load).is_some()));
    let of = |load: &str, figure: &str| {
        let found = reference.figures.iter().find(|f| f.load == load && f.figure == figure);
        found.map(|figure| figure.value)
    };
    assert_eq!(of("get-20x90", "latency_ms.p99"), Some(3.036));
    assert_eq!(of("get-50x10", "cpu_total_millicores"), Some(32.98));
    assert_eq!(of("get-50x90", "memory_total_mib"), Some(1097.17));
    for wanted in &reference.recomputed {
        assert_eq!(wanted.against.as_deref(), Some("sidecar"));
        assert!(wanted.derived.is_of_two_variants());
    }
}

fn ambient_of(plan: &Plan) -> (&str, &VariantState) {
    let variant = plan.variants.iter().find(|variant| variant.name == "ambient").unwrap();
    (&variant.describes, &variant.state)
}

#[test]
fn envoy_stands_in_the_place_of_a_ztunnel_that_was_not_found() {
    let plan = plan(&ambient_replicas(), &choices());
    let (describes, state) = ambient_of(&plan);
    assert_eq!(describes, "a node proxy (Envoy in ztunnel's place) on each node, mTLS strict");
    let VariantState::Ready(deployment) = state else { panic!("{state:?}") };
    let ambient = deployment.data_plane.ambient().unwrap();
    assert_eq!((&ambient.proxy, ambient.waypoint), (&NodeProxy::Envoy, false));
}

#[test]
fn a_ztunnel_that_was_found_stands_on_the_nodes_unless_the_study_asks_for_envoy() {
    let found = Choices { ztunnel: Some("/opt/ztunnel".into()), ..choices() };
    let with_ztunnel = plan(&ambient_replicas(), &found);
    let (describes, state) = ambient_of(&with_ztunnel);
    let of_ztunnel = "a node proxy (ztunnel) on each node, also for the gateway's pod, mTLS strict";
    assert_eq!(describes, of_ztunnel);
    let VariantState::Ready(deployment) = state else { panic!("{state:?}") };
    let proxy = NodeProxy::Ztunnel { binary: "/opt/ztunnel".into() };
    assert_eq!(deployment.data_plane.ambient().unwrap().proxy, proxy);
    let mut study = ambient_replicas();
    let ambient = study.variants["ambient"].ambient.as_mut().unwrap();
    (ambient.proxy, ambient.waypoint) = (study::NodeProxy::Envoy, true);
    let with_envoy = plan(&study, &found);
    let (describes, _) = ambient_of(&with_envoy);
    assert_eq!(
        describes,
        "a node proxy (Envoy in ztunnel's place) on each node, and a waypoint (Envoy), mTLS strict"
    );
}

#[test]
fn a_waypoint_stands_behind_a_ztunnel_too() {
    let found = Choices { ztunnel: Some("/opt/ztunnel".into()), ..choices() };
    let mut study = ambient_replicas();
    study.variants["ambient"].ambient.as_mut().unwrap().waypoint = true;
    let plan = plan(&study, &found);
    let (describes, state) = ambient_of(&plan);
    assert_eq!(
        describes,
        "a node proxy (ztunnel) on each node, also for the gateway's pod, and a waypoint (Envoy), \
         mTLS strict"
    );
    let VariantState::Ready(deployment) = state else { panic!("{state:?}") };
    let ambient = deployment.data_plane.ambient().unwrap();
    assert_eq!(ambient.proxy, NodeProxy::Ztunnel { binary: "/opt/ztunnel".into() });
    assert!(ambient.waypoint);
}

#[test]
fn a_study_that_asks_for_ztunnel_skips_the_variant_without_one() {
    let mut study = ambient_replicas();
    study.variants["ambient"].ambient.as_mut().unwrap().proxy = study::NodeProxy::Ztunnel;
    let without = plan(&study, &choices());
    let (_, state) = ambient_of(&without);
    let reason = "no ztunnel was found: ZTUNNEL is not set, and PATH has none".to_owned();
    assert_eq!(*state, VariantState::Skipped(reason));
    assert_eq!(measured(&without), ["bare", "bare (again)", "sidecar"]);
}

#[test]
fn the_listing_of_a_sweep_is_its_matrix_and_its_order_and_each_text_once() {
    let mut plan = plan(&ambient_replicas(), &choices());
    plan.reference = None;
    let sidecar = |pod: usize| file(&format!("nginx-{pod}.envoy.yaml"), "admin: {}\n");
    let gateway = || file("gateway.envoy.yaml", "listeners: []\n");
    let rendered = [
        ("bare".to_owned(), vec![gateway()]),
        ("sidecar".to_owned(), [gateway()].into_iter().chain((1..=90).map(sidecar)).collect()),
        ("ambient".to_owned(), vec![gateway(), file("node-1.envoy.yaml", "node: {}\n")]),
    ];
    let listing = listing(&plan, &rendered);
    assert!(listing.lines().count() < 100, "{} lines", listing.lines().count());
    insta::assert_snapshot!(listing);
}

fn egress_gateway() -> Study {
    let (_, text) = study::builtin().iter().find(|(name, _)| *name == "egress-gateway").unwrap();
    study::read("egress-gateway.yaml", text, &without_parts).unwrap().0
}

#[test]
fn the_variants_of_egress_gateway_differ_by_the_way_out_alone() {
    let plan = plan(&egress_gateway(), &choices());
    let described: Vec<_> =
        plan.variants.iter().map(|v| (v.name.as_str(), v.describes.as_str())).collect();
    assert_eq!(
        described,
        [
            ("none", "the application alone"),
            ("bypass", "Envoy sidecars, mTLS strict; to the database past them"),
            ("sidecar", "Envoy sidecars, mTLS strict; to the database through them"),
            ("gateway", "Envoy sidecars, mTLS strict; to the database through an egress gateway"),
            (
                "gateway-mtls",
                "Envoy sidecars, mTLS strict; to the database through an egress gateway, mTLS to it"
            ),
            (
                "gateway-sni",
                "Envoy sidecars, mTLS strict; to the database through an egress gateway, mTLS to it, SNI proxy"
            ),
        ]
    );
    let of = |variant: &str| plan.deployment(variant).unwrap();
    assert!(plan.ready().all(|(_, deployment)| deployment.services == of("none").services));
    assert_eq!(of("none").data_plane, DataPlane::Bare);
    assert_eq!(of("bypass").data_plane.egress(), Some(&Egress::Bypass));
    assert_eq!(of("sidecar").data_plane.egress(), Some(&Egress::Sidecar));
    let gateway = |mtls, sni_proxy, hosts: &[&str]| EgressGateway {
        mtls,
        sni_proxy,
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
    };
    let built = |variant: &str| of(variant).data_plane.egress_gateway().unwrap().clone();
    assert_eq!(built("gateway"), gateway(false, false, &[]));
    assert_eq!(built("gateway-mtls"), gateway(true, false, &[]));
    assert_eq!(built("gateway-sni"), gateway(true, true, &["*.airline.example"]));
}

#[test]
fn a_case_that_is_left_out_makes_the_case_before_another_and_says_so() {
    let warned = |variants: &[&str]| {
        let warnings = plan(&egress_gateway(), &only(variants)).warnings.into_iter();
        warnings.filter(|said| said.contains("the case before")).collect::<Vec<_>>()
    };
    let said = "cases between were left out, so that `the case before` is another than in the study: gateway-sni against gateway";
    assert_eq!(warned(&["sidecar", "gateway", "gateway-sni"]), [said]);
    assert_eq!(warned(&["sidecar", "gateway"]), [""; 0]);
    assert_eq!(warned(&[]), [""; 0]);
}

#[test]
fn the_airline_calls_its_database_after_its_other_parts() {
    let plan = plan(&egress_gateway(), &choices());
    let deployment = plan.deployment("bypass").unwrap();
    let calls = |name: &str| deployment.service(name).unwrap().calls.join(" ");
    assert_eq!(calls("web"), "flights bookings customers");
    assert_eq!(calls("bookings"), "customers flights airline-db");
    assert_eq!(calls("flights"), "airline-db");
    let database = deployment.service("airline-db").unwrap();
    assert_eq!(database.external, Some(External { host: "db.airline.example".into() }));
    let flights = deployment.service("flights").unwrap();
    let Program::Airline(airline) = &flights.program else { panic!("{flights:?}") };
    assert_eq!((airline.part, airline.connections), (AirlinePart::Flights, 64));
}

#[test]
fn the_command_line_has_the_last_word_on_an_external_database() {
    let server = |database| {
        let plan = plan(&egress_gateway(), &Choices { database, ..choices() });
        let deployment = plan.deployment("none").unwrap();
        match deployment.service("airline-db").unwrap().program {
            Program::AirlineDatabase(database) => database.server,
            _ => panic!("no airline in it"),
        }
    };
    assert_eq!(server(None), DatabaseServer::MongoDb);
    assert_eq!(server(Some(DatabaseServer::Postgres)), DatabaseServer::Postgres);
    let postgres = Choices { database: Some(DatabaseServer::Postgres), ..choices() };
    insta::assert_snapshot!(refusal(&customer_360(), &postgres), @r"
    the study has no external database to choose a server for
    leave --database out, or try it with `toll run egress-gateway`
    ");
}

#[test]
fn a_study_that_needs_mongodb_is_refused_where_its_driver_was_left_out() {
    let lacking = Choices { lacks_mongodb: true, ..choices() };
    insta::assert_snapshot!(refusal(&egress_gateway(), &lacking), @r"
    airline-db is a MongoDB, and this toll was built without MongoDB's driver
    build it with `cargo build --release --locked` (the feature `mongodb` is on by default), or use --database postgres
    ");
    let postgres = Choices { database: Some(DatabaseServer::Postgres), ..lacking.clone() };
    plan(&egress_gateway(), &postgres);
    plan(&customer_360(), &lacking);
}

#[test]
fn a_staircase_is_a_closed_load_for_each_number_of_connections() {
    let plan = plan(&egress_gateway(), &choices());
    let steps = [1, 5, 10, 20, 30, 40, 50, 60];
    let names: Vec<String> = steps.iter().map(|step| format!("clients-{step}")).collect();
    assert_eq!(loads(&plan)[1..], names);
    for (load, connections) in plan.loads[1..].iter().zip(steps) {
        assert_eq!(load.release, Release::Closed { connections });
        assert_eq!(load.cell.as_ref().unwrap().connections, Some(connections));
    }
    let round: Vec<PlannedSlice> = plan.slices(1, 0);
    assert_eq!((round.len(), plan.budget().bring_ups), (2 * 7 * 9, 7));
}

#[test]
fn the_engine_is_told_each_request_of_a_mix_with_its_weight() {
    let plan = plan(&egress_gateway(), &choices());
    for load in &plan.loads {
        let told = engine_plan(load, 1000.0).targets;
        let weights: Vec<u32> = told.iter().map(|target| target.weight).collect();
        assert_eq!(weights, [40, 20, 20, 20], "{}", load.name);
        assert_eq!(
            (told[1].method.as_str(), told[1].url.as_str()),
            ("POST", "http://10.77.0.2:8080/bookings")
        );
        assert!(told.iter().all(|target| target.template));
        assert_eq!(load.request, load.mix[0].request);
    }
}

#[test]
fn egress_gateway_ends_within_its_time() {
    let budget = |profile| plan(&egress_gateway(), &Choices { profile, ..choices() }).budget();
    // As the comment in the study file works it out.
    let default = budget(Profile::Default);
    assert!((default.round_s - 96.1).abs() < 0.1, "{default:?}");
    assert!(default.total_s() < 13.2 * 60.0);
    assert!(budget(Profile::Quick).total_s() < 315.0, "{:?}", budget(Profile::Quick));
    let paper = plan(&egress_gateway(), &Choices { profile: Profile::Paper, ..choices() });
    let slice = |load: &str| paper.load(load).unwrap().slice;
    assert_eq!(slice("clients-20"), SliceLength::Seconds(300.0));
    assert_eq!(slice("same-rate"), SliceLength::Seconds(60.0));
}

#[test]
fn the_published_differences_are_held_against_the_baseline_and_the_case_before() {
    let plan = plan(&egress_gateway(), &Choices { profile: Profile::Quick, ..choices() });
    let reference = plan.reference.as_ref().unwrap();
    // Of all steps together: the staircase's own name is none of a load.
    assert!(reference.recomputed.iter().all(|wanted| wanted.load == "clients"));
    assert!(plan.loads.iter().any(|l| l.cell.as_ref().is_some_and(|cell| cell.load == "clients")));
    let held = |variant: &str| -> Vec<_> {
        let of_variant = reference.recomputed.iter().filter(|wanted| {
            wanted.variant == variant && wanted.derived == Derived::ThroughputChange
        });
        of_variant.map(|wanted| (wanted.against.as_deref(), wanted.printed)).collect()
    };
    assert_eq!(held("gateway-mtls"), [(None, Some(-10.0)), (Some("gateway"), Some(-10.0))]);
    assert_eq!(held("gateway-sni"), [(None, Some(-24.0)), (Some("gateway-mtls"), Some(-24.0))]);
}

#[test]
fn node_proxies_to_an_external_database_are_skipped_with_the_reason() {
    let mut study = egress_gateway();
    let ambient = ambient_replicas().variants["ambient"].clone();
    study.variants.insert(String::from("ambient").try_into().unwrap(), ambient);
    let plan = plan(&study, &choices());
    let reason = "node proxies carry nothing to a database outside of the mesh".to_owned();
    assert_eq!(ambient_of(&plan).1, &VariantState::Skipped(reason));
}

#[test]
fn the_listing_of_a_staircase_says_what_is_mixed_and_by_which_ways_it_leaves_the_mesh() {
    let mut plan = plan(&egress_gateway(), &choices());
    plan.reference = None;
    insta::assert_snapshot!(listing(&plan, &[]));
}

proptest! {
    #[test]
    fn every_cell_is_borne_by_every_arm_in_every_round_whatever_is_swept(
        rates in prop::collection::btree_set(1u32..1000, 0..4),
        replicas in prop::collection::btree_set(1u32..100, 0..4),
        nodes in prop::collection::btree_set(1u32..9, 0..3),
        seed in any::<u64>(),
    ) {
        prop_assume!(!(rates.is_empty() && replicas.is_empty() && nodes.is_empty()));
        let list = |values: &BTreeSet<u32>| values.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let axis = |name: &str, values: &BTreeSet<u32>, text: String| {
            if values.is_empty() { String::new() } else { format!("{name}: {text}, ") }
        };
        let matrix = [
            axis("rate", &rates, format!("[{}]", list(&rates))),
            axis("replicas", &replicas, format!("{{nginx: [{}]}}", list(&replicas))),
            axis("nodes", &nodes, format!("[{}]", list(&nodes))),
        ].concat();
        let (_, text) = study::builtin().iter().find(|(name, _)| *name == "ambient-replicas").unwrap();
        let text = &text[..text.find("\nreference:").unwrap()];
        let text = text.replace("{rate: [20/s, 50/s], replicas: {nginx: [1, 10, 50, 90]}}", &format!("{{{matrix}}}"));
        let (study, _) = study::read("swept.yaml", &text, &without_parts).unwrap();
        let plan = plan(&study, &Choices { seed, ..choices() });
        let cells = rates.len().max(1) * replicas.len().max(1) * nodes.len().max(1);
        let names: BTreeSet<&str> = loads(&plan).into_iter().collect();
        prop_assert_eq!(names.len(), cells + 2);
        let slices = (0..plan.sizes().len()).flat_map(|size| plan.slices(3, size));
        let borne: Vec<_> = slices.map(|s| (s.arm, s.load, s.back)).collect();
        prop_assert_eq!(borne.len(), 2 * 4 * (cells + 2));
        prop_assert_eq!(borne.iter().collect::<BTreeSet<_>>().len(), borne.len());
        let sizes = replicas.len().max(1) * nodes.len().max(1);
        let shared = !replicas.contains(&1) || !nodes.is_empty();
        prop_assert_eq!(plan.budget().bring_ups, 4 * (sizes + usize::from(shared)));
    }
}
