//! The lab on this machine without a data plane, at each isolation level that it allows.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{
    TestLab, are_proven_side_by_side, ask_once, carry_out, chain, free_ports, in_network_of,
    is_possible, pid_by_argument, script, service_program, skip,
};
use toll_lab::{
    Deployment, Environment, Isolation, LabError, LoadEngine, NextLine, Program, Proof, Reading,
    Role, Sample, Traffic, UserProgram,
};

const NO_WORK: Duration = Duration::ZERO;

/// The deployment answers through the load program, is sampled, proven bare, and leaves nothing.
fn comes_up_and_goes_away(isolation: Isolation, service: &Path) {
    let lab = TestLab::asking(isolation, service, |_| ());
    let mut environment = lab.up(&chain(free_ports(), Duration::from_millis(20)));
    environment.open_proof().unwrap();
    let before = environment.sample();
    assert!(load_generator(&before).is_none(), "it has not been started");
    let mut engine = environment.start_engine().unwrap();
    for _ in 0..3 {
        ask_once(&environment, &mut engine);
    }
    let after = environment.sample();
    assert_burned(&before, &after, Duration::from_millis(3 * 20));
    assert!(matches!(load_generator(&after).unwrap().cpu_ns, Reading::Value(1..)));
    let proof = environment.close_proof(Traffic { requests: 3, ..Traffic::default() }).unwrap();
    assert!(proof.holds(), "{proof:#?}");
    assert_eq!(proof.left_out.is_empty(), isolation != Isolation::Loopback, "{proof:#?}");
    assert!(environment.crashed().is_none());
    engine.end().unwrap();
    environment.down().unwrap();
    assert_eq!(files_in(&lab.folder.path().join("lab")), 0);
}

/// Each of the two services used at least its work and at most ten times it.
fn assert_burned(before: &Sample, after: &Sample, work: Duration) {
    for name in ["client", "server"] {
        let burned = Duration::from_nanos(cpu_of(after, name) - cpu_of(before, name));
        assert!(burned >= work && burned < work * 10, "{name} burned {burned:?} for {work:?}");
    }
}

fn cpu_of(sample: &Sample, pod: &str) -> u64 {
    let of_pod = |c: &&toll_lab::ComponentSample| {
        c.component.role == Role::Application && c.component.pod == pod
    };
    match sample.components.iter().find(of_pod).map(|c| &c.cpu_ns) {
        Some(Reading::Value(ns)) => *ns,
        missing => panic!("no CPU of {pod}: {missing:?}"),
    }
}

fn load_generator(sample: &Sample) -> Option<&toll_lab::ComponentSample> {
    sample.components.iter().find(|c| c.component.role == Role::LoadGenerator)
}

/// Address and port of the entry.
fn authority(environment: &Environment) -> String {
    let url = environment.entry_url();
    url.trim_start_matches("http://").trim_end_matches('/').to_owned()
}

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

fn stand_side_by_side(isolation: Isolation, service: &Path) {
    let lab = TestLab::asking(isolation, service, |_| ());
    are_proven_side_by_side(&lab, &chain(free_ports(), NO_WORK));
}

macro_rules! at_each_level {
    ($act:ident: $($name:ident: $level:expr),+ $(,)?) => {$(
        #[test]
        fn $name() {
            let Some(service) = service_program() else { skip!("toll-service is not built") };
            if !is_possible($level) {
                skip!("isolation level {} is not possible here", $level);
            }
            $act($level, &service);
        }
    )+};
}

at_each_level! { stand_side_by_side:
    two_chains_in_pods_are_proven_side_by_side: Isolation::Pods,
    two_chains_without_root_are_proven_side_by_side: Isolation::Rootless,
    two_chains_on_loopback_are_proven_side_by_side: Isolation::Loopback,
}

at_each_level! { comes_up_and_goes_away:
    a_chain_in_pods_answers_is_sampled_and_leaves_nothing: Isolation::Pods,
    a_chain_without_root_answers_is_sampled_and_leaves_nothing: Isolation::Rootless,
    a_chain_on_loopback_answers_is_sampled_and_leaves_nothing: Isolation::Loopback,
}

/// A lab at a level with namespaces, or a visible skip.
macro_rules! lab_in {
    ($level:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        TestLab::at($level, &service)
    }};
}

fn broken(proof: &Proof) -> Vec<(&str, &str)> {
    let broken = proof.claims.iter().filter(|claim| !claim.holds);
    broken.map(|claim| (claim.claim.as_str(), claim.seen.as_str())).collect()
}

#[test]
fn requests_that_the_load_did_not_send_break_the_bare_proof() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let lab = TestLab::at(Isolation::Loopback, &service);
    let mut environment = lab.up(&chain(free_ports(), NO_WORK));
    environment.open_proof().unwrap();
    let mut stream = std::net::TcpStream::connect(authority(&environment)).unwrap();
    let request = "GET / HTTP/1.1\r\nhost: client\r\nvia: 1.1 a\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    let proof = environment.close_proof(Traffic { requests: 0, ..Traffic::default() }).unwrap();
    assert_eq!(
        broken(&proof),
        [
            ("no request crossed a sidecar", "1"),
            ("client: the application got exactly the requests that were sent", "1"),
            ("client: no request bore the mark of a proxy", "1"),
            ("server: the application got exactly the requests that were sent", "1"),
        ]
    );
}

#[test]
fn a_foreign_program_in_a_pod_breaks_the_bare_proof_and_is_named() {
    let lab = lab_in!(Isolation::Pods);
    let mut environment = lab.up(&chain(free_ports(), NO_WORK));
    environment.open_proof().unwrap();
    let service = pid_by_argument(&lab.folder.path().join("lab"), "client.service.json");
    let mut foreign = in_network_of(service, || Command::new("sleep").arg("600").spawn().unwrap());
    let proof = environment.close_proof(Traffic { requests: 0, ..Traffic::default() }).unwrap();
    foreign.kill().unwrap();
    foreign.wait().unwrap();
    let seen = format!("only its own before the load, sleep (pid {}) after it", foreign.id());
    let claim = "client pod: no program but its own runs in its network";
    assert_eq!(broken(&proof), [(claim, seen.as_str())]);
}

#[test]
fn a_redirect_in_a_pod_breaks_the_bare_proof() {
    let lab = lab_in!(Isolation::Pods);
    let mut environment = lab.up(&chain(free_ports(), NO_WORK));
    environment.open_proof().unwrap();
    let service = pid_by_argument(&lab.folder.path().join("lab"), "server.service.json");
    in_network_of(service, || {
        let nft =
            |rule: &[&str]| assert!(Command::new("nft").args(rule).status().unwrap().success());
        nft(&["add", "table", "ip", "t"]);
        nft(&["add", "chain", "ip", "t", "c", "{ type nat hook output priority 0; }"]);
        nft(&["add", "rule", "ip", "t", "c", "tcp", "dport", "9", "redirect", "to", ":10"]);
    });
    let proof = environment.close_proof(Traffic { requests: 0, ..Traffic::default() }).unwrap();
    let claim = "server pod: no firewall rule redirects its traffic";
    assert_eq!(broken(&proof), [(claim, "no such rule before the load, 1 such rules after it")]);
}

#[test]
fn services_may_be_called_as_the_labs_own_parts_are() {
    let lab = lab_in!(Isolation::Pods);
    let mut deployment = chain(free_ports(), NO_WORK);
    let [entry, callee] = ["load", "load.sidecar"].map(str::to_owned);
    deployment.services[0].calls = vec![callee.clone()];
    deployment.services[0].name.clone_from(&entry);
    deployment.services[1].name = callee;
    deployment.entry = entry;
    let mut environment = lab.up(&deployment);
    let (lines, outcome) = carry_out(&mut environment, "hello");
    outcome.unwrap();
    assert_eq!(lines, ["hello"]);
    environment.down().unwrap();
    assert_eq!(files_in(&lab.logs()), 3, "a log each for two services and the load");
}

/// A lab whose built-in service is not needed.
fn loopback() -> TestLab {
    TestLab::at(Isolation::Loopback, Path::new("true"))
}

#[test]
fn a_taken_port_is_refused_with_its_holder() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let lab = loopback();
    let error = lab.lab.up(&script(port, "sleep 60"), &lab.logs()).unwrap_err();
    let LabError::PortInUse { holder, .. } = &error else { panic!("{error}") };
    let pid = i32::try_from(std::process::id()).unwrap();
    assert_eq!(holder.as_ref().map(|h| h.pid), Some(pid));
    assert!(error.to_string().contains(&format!("(pid {pid})")), "{error}");
}

/// A chain whose server is the user's own, at a port that only its file names.
fn with_a_fixed_port(lab: &TestLab, service: &Path) -> Deployment {
    let [client, server] = free_ports();
    let file = lab.folder.path().join("own.json");
    let text = format!(
        r#"{{"name": "server", "listen": "127.0.0.1:{server}", "calls": [], "work_us": 0,
            "reply_bytes": 5, "status": 200}}"#
    );
    std::fs::write(&file, text).unwrap();
    let mut deployment = chain([client, server], NO_WORK);
    let argv = [service, Path::new("--config"), &file].map(|word| word.display().to_string());
    deployment.services[1].program =
        Program::Command(UserProgram { argv: argv.into(), ..UserProgram::default() });
    deployment
}

#[test]
fn a_program_with_a_port_of_its_own_stands_alone_on_loopback() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let lab = TestLab::at(Isolation::Loopback, &service);
    let deployment = with_a_fixed_port(&lab, &service);
    assert!(lab.lab.stands_alone(&deployment));
    let environment = lab.up(&deployment);
    let second = lab.lab.up(&deployment, &lab.logs()).unwrap_err();
    assert!(matches!(second, LabError::PortInUse { .. }), "{second}");
    environment.down().unwrap();
    lab.up(&deployment).down().unwrap();
    assert!(!lab.lab.stands_alone(&chain(free_ports(), NO_WORK)));
}

#[test]
fn a_program_that_dies_at_its_start_shows_its_status_and_last_words() {
    let lab = loopback();
    let [port] = free_ports();
    let dies = "echo no database >&2; exit 3";
    let error = lab.lab.up(&script(port, dies), &lab.logs()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("only ended by itself with exit status 3"), "{text}");
    assert!(text.ends_with("its last lines:\n  no database"), "{text}");
    assert_eq!(files_in(&lab.folder.path().join("lab")), 0, "a failed start leaves nothing");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let lab = loopback();
    let [port] = free_ports();
    let mut deployment = script(port, "");
    deployment.services[0].program = Program::Command(UserProgram::of(["/no/such/program"]));
    let error = lab.lab.up(&deployment, &lab.logs()).unwrap_err();
    assert_eq!(error.to_string(), "cannot start only: /no/such/program");
}

#[test]
fn a_component_that_dies_later_is_reported_as_crashed() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let lab = TestLab::at(Isolation::Loopback, &service);
    let [port] = free_ports();
    let config = lab.folder.path().join("only.json");
    let text = format!(
        r#"{{"name": "only", "listen": "127.0.0.1:{port}", "calls": [], "work_us": 0,
            "reply_bytes": 5, "status": 200}}"#
    );
    std::fs::write(&config, text).unwrap();
    let trigger = lab.folder.path().join("die");
    let dies = format!(
        "{} --config {} & until [ -e {} ]; do sleep 0.01; done; kill -KILL $$",
        service.display(),
        config.display(),
        trigger.display(),
    );
    let mut environment = lab.up(&script(port, &dies));
    assert!(environment.crashed().is_none());
    std::fs::write(&trigger, "").unwrap();
    let crash = loop {
        match environment.crashed() {
            Some(crash) => break crash.to_string(),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert!(crash.contains("only ended by itself with signal SIGKILL"), "{crash}");
    environment.down().unwrap();
    assert!(TcpListener::bind(("127.0.0.1", port)).is_ok(), "what it started is gone too");
}

#[test]
fn a_load_program_that_fails_tells_its_last_words() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let lab = TestLab::with(Isolation::Loopback, &service, |options| {
        options.load = ["sh", "-c", "echo bad plan >&2; exit 2"].map(Into::into).to_vec();
    });
    let mut environment = lab.up(&chain(free_ports(), NO_WORK));
    let (lines, outcome) = carry_out(&mut environment, "{}");
    let text = outcome.unwrap_err().to_string();
    assert!(lines.is_empty());
    assert!(text.contains("exit status 2") && text.ends_with("bad plan"), "{text}");
}

#[test]
fn a_load_program_that_takes_no_more_plans_is_told_of_by_its_next_line() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let lab = TestLab::at(Isolation::Loopback, &service);
    let mut environment = lab.up(&chain(free_ports(), NO_WORK));
    let mut engine = environment.start_engine().unwrap();
    engine.send(0, b"only").unwrap();
    let next = |engine: &mut LoadEngine| engine.next_line(Duration::from_secs(60));
    assert!(matches!(next(&mut engine), NextLine::Line(line) if line == "only"));
    assert!(matches!(next(&mut engine), NextLine::Ended(Ok(()))));
    engine.send(0, b"one more").unwrap();
    assert!(matches!(next(&mut engine), NextLine::Ended(Ok(()))));
    engine.end().unwrap();
}

#[test]
fn a_level_that_is_forced_and_not_possible_is_an_error_with_advice() {
    if is_possible(Isolation::Pods) {
        skip!("pods are possible here");
    }
    let program = || vec!["true".into()];
    let options = toll_lab::LocalOptions {
        isolation: Some(Isolation::Pods),
        ..toll_lab::LocalOptions::new(program(), program(), std::env::temp_dir())
    };
    let error = toll_lab::Lab::local(options).unwrap_err();
    assert!(error.to_string().starts_with("isolation level `pods` is not possible here"));
    assert!(error.help().is_some());
}

#[test]
fn an_environment_that_is_dropped_is_taken_down() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let lab = TestLab::at(Isolation::Loopback, &service);
    let environment = lab.up(&chain(free_ports(), NO_WORK));
    let entry = authority(&environment);
    assert!(TcpListener::bind(&entry).is_err());
    drop(environment);
    assert!(TcpListener::bind(&entry).is_ok());
    assert_eq!(files_in(&lab.folder.path().join("lab")), 0);
}

#[test]
fn real_time_scheduling_is_used_or_refused_with_advice() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let folder = tempfile::tempdir().unwrap();
    let load = ["cat", "/proc/self/stat"].map(Into::into).to_vec();
    let work_dir = folder.path().join("lab");
    let options = toll_lab::LocalOptions {
        isolation: Some(Isolation::Loopback),
        realtime: true,
        ..toll_lab::LocalOptions::new(vec![service.into()], load, work_dir)
    };
    let lab = match toll_lab::Lab::local(options) {
        Ok(lab) => lab,
        Err(error) => return assert!(error.help().unwrap().contains("leave `--realtime` out")),
    };
    let mut environment = lab.up(&chain(free_ports(), NO_WORK), folder.path()).unwrap();
    let (lines, outcome) = carry_out(&mut environment, "");
    outcome.unwrap();
    // Fields 40 and 41 of proc_pid_stat(5): real-time priority and policy, 2 is SCHED_RR.
    let fields: Vec<&str> = lines[0].split(' ').collect();
    assert_eq!(fields[39..41], ["5", "2"]);
}
