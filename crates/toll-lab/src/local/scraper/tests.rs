use std::path::Path;

use super::*;
use crate::Metrics;
use crate::fixture::chain;
use crate::fixture::graphs::{customer, with_replicas};
use crate::host::isolation::Isolation;
use crate::topology;

/// A scraper of the pod `server` whose program is this shell script. It ends with the launcher.
fn scraper(script: &str) -> (Scraper, Launcher) {
    let launcher = Launcher::start().unwrap();
    let mut deployment = chain();
    deployment.services[1].metrics =
        Some(Metrics { port: 9080, path: "/".into(), series: vec!["up".into()] });
    let topology = topology::plan(&deployment, Isolation::Pods, []);
    let endpoints = endpoints(Site::all(&deployment, &topology, Path::new("/run/x")));
    let program = ["sh", "-c", script].map(OsString::from);
    let log = tempfile::NamedTempFile::new().unwrap();
    let (context, log) = (SpawnContext::default(), log.path().to_owned());
    (Scraper::start(&launcher, &program, &context, endpoints, log).unwrap(), launcher)
}

fn answer(up: u32) -> String {
    format!(r#"[{{"pod":"server","at_ns":{up},"series":{{"value":{{"up":{up}}}}}}}]"#)
}

/// What was told of the only pod: a value or the reason why there is none.
fn told(pods: &[PodMetrics]) -> Result<f64, &str> {
    match pods {
        [PodMetrics { pod, series: Reading::Value(series), .. }] if pod == "server" => {
            Ok(series["up"])
        }
        [PodMetrics { series: Reading::Missing(why), .. }] => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_question_is_answered_by_the_program_which_knows_its_targets() {
    let expected =
        r#"{"targets":[{"pod":"server","address":"10.77.0.3:9080","path":"/","series":["up"]}]}"#;
    let answer = answer(7);
    let script = format!(
        "read -r line; [ \"$line\" = '{expected}' ] || exit 3; while read -r line; do echo '{answer}'; done"
    );
    let (mut scraper, _launcher) = scraper(&script);
    assert_eq!([(); 3].map(|()| told(&scraper.ask()).unwrap()), [7.0; 3]);
}

#[test]
fn a_program_that_has_ended_is_why_a_reading_is_missing() {
    let (mut scraper, _launcher) = scraper("exit 3");
    while scraper.process().ended().is_none() {
        std::thread::yield_now();
    }
    let why = "the scraper has ended with exit status 3";
    assert_eq!(told(&scraper.ask()), Err(why));
    let in_passing = std::iter::repeat_with(|| scraper.ask_in_passing()).find(|t| !t.is_empty());
    assert_eq!(told(&in_passing.unwrap()), Err(why));
}

#[test]
fn an_answer_that_comes_too_late_is_not_taken_for_that_to_the_next_question() {
    let (late, second) = (answer(1), answer(2));
    let script = format!(
        "read -r targets; read -r line; sleep 2; echo '{late}'; read -r line; echo '{second}'; read -r line"
    );
    let (mut scraper, _launcher) = scraper(&script);
    assert_eq!(told(&scraper.ask()), Err("the scraper did not answer within 1500 ms"));
    assert_eq!(told(&scraper.ask()), Ok(2.0));
}

#[test]
fn who_asks_in_passing_waits_for_nothing_and_has_the_answer_later() {
    let answer = answer(5);
    let script = format!("read -r targets; while read -r line; do echo '{answer}'; done");
    let (mut scraper, _launcher) = scraper(&script);
    assert!(scraper.ask_in_passing().is_empty(), "it has just begun");
    let mut answers = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(3500) {
        answers += usize::from(!scraper.ask_in_passing().is_empty());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!((1..=3).contains(&answers), "{answers} answers in 3.5 s");
}

#[test]
fn a_silent_program_is_told_of_only_after_its_time_is_up() {
    let (mut scraper, _launcher) = scraper("sleep 60");
    scraper.question().unwrap();
    assert!(scraper.ask_in_passing().is_empty());
    scraper.asked -= LONGEST_WAIT;
    assert_eq!(told(&scraper.ask_in_passing()), Err("the scraper did not answer within 1500 ms"));
}

#[test]
fn each_pod_of_a_service_with_an_endpoint_is_asked_for_the_jvms_series_unless_others_are_named() {
    let mut deployment = with_replicas(customer(), "person", 2);
    let endpoint = |series: &[&str]| Metrics {
        port: 9080,
        path: "/metrics".into(),
        series: series.iter().map(|name| (*name).into()).collect(),
    };
    deployment.services[1].metrics = Some(endpoint(&["up"]));
    deployment.services[2].metrics = Some(endpoint(&[]));
    let topology = topology::plan(&deployment, Isolation::Pods, []);
    let asked = endpoints(Site::all(&deployment, &topology, Path::new("/run/x")));
    let pods: Vec<_> = asked
        .iter()
        .map(|e| (e.pod.as_str(), e.address.to_string(), e.series[0].as_str()))
        .collect();
    let jvm = "process_cpu_seconds_total";
    assert_eq!(
        pods,
        [
            ("customer", "10.77.0.3:9080".to_owned(), "up"),
            ("person-1", "10.77.0.4:9080".to_owned(), jvm),
            ("person-2", "10.77.0.5:9080".to_owned(), jvm),
        ]
    );
}
