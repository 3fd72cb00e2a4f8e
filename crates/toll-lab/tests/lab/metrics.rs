//! Readings from the pods' own Prometheus endpoints, at each isolation level, and what slow or absent ones cost.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{
    TestLab, chain, free_ports, in_mesh, in_network_of, is_possible, pid_by_argument, script,
    servers_below, service_program, skip,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use toll_lab::artifacts::{Artifact, Fetch};
use toll_lab::{
    Deployment, Environment, Isolation, Metrics, Mtls, PodMetrics, Reading, Sample, Traffic,
};

const NO_WORK: Duration = Duration::ZERO;

/// `service` has the series `up` and `down` at this port.
fn with_metrics(mut deployment: Deployment, service: usize, port: u16) -> Deployment {
    let series = ["up", "down"].map(str::to_owned).to_vec();
    deployment.services[service].metrics = Some(Metrics { port, path: "/metrics".into(), series });
    deployment
}

/// The only reading of a sample: its series as `name=value`, or why there is none.
fn told(sample: &Sample) -> Result<Vec<String>, String> {
    let [PodMetrics { at_ns, series, .. }] = sample.metrics.as_slice() else {
        panic!("one reading: {:?}", sample.metrics)
    };
    assert!(*at_ns >= sample.at_ns + sample.took_ns, "the endpoint is asked after the counters");
    match series {
        Reading::Value(series) => Ok(series.iter().map(|(key, v)| format!("{key}={v}")).collect()),
        Reading::Missing(why) => Err(why.clone()),
    }
}

/// Samples until the endpoint, which starts in its own time, has told something.
fn first_told(environment: &mut Environment) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match told(&environment.sample()) {
            Ok(series) => return series,
            Err(why) => assert!(Instant::now() < deadline, "{why}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A program of the user's own that serves a file is read, whatever the file says next; nothing stays behind.
fn a_file_is_read(isolation: Isolation, service: &Path) {
    let lab = TestLab::at(isolation, service);
    let folder = lab.folder.path().join("served");
    std::fs::create_dir(&folder).unwrap();
    let write = |text: &str| std::fs::write(folder.join("metrics"), text).unwrap();
    write("up{a=\"b\",c=\"d\"} 1\ndown 0\nother 3\n");
    let [port, metrics] = free_ports();
    let serve = format!("python3 -m http.server --directory {}", folder.display());
    let both = format!("cd {}; {serve} {metrics} & {serve} {port}", folder.display());
    let mut environment = lab.up(&with_metrics(script(port, &both), 0, metrics));
    assert_eq!(first_told(&mut environment), ["down=0", "up{a=\"b\",c=\"d\"}=1"]);
    write("up{a=\"b\",c=\"d\"} 2\ndown NaN\n");
    assert_eq!(told(&environment.sample()).unwrap(), ["up{a=\"b\",c=\"d\"}=2"]);
    write("# down for maintenance\n");
    let none = "its answer has no value of up, down";
    assert_eq!(told(&environment.sample()).unwrap_err(), none);
    std::fs::remove_file(folder.join("metrics")).unwrap();
    assert_eq!(told(&environment.sample()).unwrap_err(), "it answered 404 Not Found");
    assert!(environment.crashed().is_none());
    environment.down().unwrap();
    assert_eq!(servers_below(lab.folder.path()), [0; 0]);
    assert_eq!(std::fs::read_dir(lab.folder.path().join("lab")).unwrap().count(), 0);
}

fn has_python() -> bool {
    Command::new("python3").args(["-c", "import http.server"]).status().is_ok_and(|s| s.success())
}

macro_rules! at_each_level {
    ($($name:ident: $level:expr),+ $(,)?) => {$(
        #[test]
        fn $name() {
            let Some(service) = service_program() else { skip!("toll-service is not built") };
            if !is_possible($level) {
                skip!("isolation level {} is not possible here", $level);
            }
            if !has_python() {
                skip!("there is no python3 with its http.server");
            }
            a_file_is_read($level, &service);
        }
    )+};
}

at_each_level! {
    an_endpoint_in_a_pod_is_read_and_may_change_its_series: Isolation::Pods,
    an_endpoint_in_a_pod_without_root_is_read_and_may_change_its_series: Isolation::Rootless,
    an_endpoint_on_loopback_is_read_and_may_change_its_series: Isolation::Loopback,
}

/// Serves `up 1` over kept connections at a listener, after a `delay` before each answer.
fn serve(listener: TcpListener, delay: Duration) {
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut request = [0; 4096];
                // A request of the scraper's comes in one piece.
                while matches!(stream.read(&mut request), Ok(1..)) {
                    thread::sleep(delay);
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nup 1\n";
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// A chain on loopback whose server has an endpoint that answers after a delay.
fn chain_with_endpoint(service: &Path, delay: Duration) -> (TestLab, Environment) {
    let lab = TestLab::at(Isolation::Loopback, service);
    let [client, server, metrics] = free_ports();
    let mut environment = lab.up(&with_metrics(chain([client, server], NO_WORK), 1, metrics));
    let refused = told(&environment.sample()).unwrap_err();
    assert!(refused.starts_with("it cannot be asked: Connection refused"), "{refused}");
    serve(TcpListener::bind((Ipv4Addr::LOCALHOST, metrics)).unwrap(), delay);
    (lab, environment)
}

#[test]
fn an_endpoint_that_hangs_delays_no_counter_and_a_sample_only_within_bounds() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let (_lab, mut environment) = chain_with_endpoint(&service, Duration::from_secs(60));
    let begin = Instant::now();
    let sample = environment.sample();
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(Duration::from_nanos(sample.took_ns) < Duration::from_millis(500));
    assert_eq!(told(&sample).unwrap_err(), "it did not answer within 1000 ms");
    for _ in 0..50 {
        let begin = Instant::now();
        environment.sample_in_passing();
        assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
        thread::sleep(Duration::from_millis(40));
    }
    environment.down().unwrap();
}

#[test]
fn ticks_have_a_reading_at_most_once_a_second_and_marks_always() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let (_lab, mut environment) = chain_with_endpoint(&service, Duration::ZERO);
    for _ in 0..5 {
        assert_eq!(told(&environment.sample()).unwrap(), ["up=1"]);
    }
    let mut readings = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) {
        readings += environment.sample_in_passing().metrics.len();
        thread::sleep(Duration::from_millis(50));
    }
    assert!((1..=4).contains(&readings), "{readings} in 4 s");
    environment.down().unwrap();
}

/// The process whose stderr is the scraper's log of this lab.
fn scraper_of(lab: &TestLab) -> Pid {
    let log = lab.logs().join("scraper.log");
    let writes_it =
        |pid: &i32| std::fs::read_link(format!("/proc/{pid}/fd/2")).is_ok_and(|file| file == log);
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|e| e.file_name().to_str()?.parse().ok());
    Pid::from_raw(pids.find(writes_it).expect("the scraper runs"))
}

#[test]
fn a_scraper_that_was_killed_costs_its_readings_and_nothing_else() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let (lab, mut environment) = chain_with_endpoint(&service, Duration::ZERO);
    assert_eq!(told(&environment.sample()).unwrap(), ["up=1"]);
    kill(scraper_of(&lab), Signal::SIGKILL).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while told(&environment.sample()).is_ok() {
        assert!(Instant::now() < deadline, "it is not seen to have ended");
    }
    let why = told(&environment.sample()).unwrap_err();
    assert!(why.starts_with("the scraper has ended"), "{why}");
    assert!(environment.crashed().is_none());
    environment.down().unwrap();
}

/// A server with an endpoint beside its own port, and a sidecar in strict mode between.
#[test]
fn an_endpoint_behind_a_strict_sidecar_is_read_at_its_own_port_and_is_no_request_of_the_path() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let Ok(envoy) = Artifact::Envoy.find(Fetch::Forbidden) else { skip!("there is no Envoy") };
    if !is_possible(Isolation::Pods) {
        skip!("isolation level {} is not possible here", Isolation::Pods);
    }
    let lab = TestLab::with(Isolation::Pods, &service, |options| {
        options.artifacts.put(Artifact::Envoy, envoy.path)
    });
    let mesh = in_mesh(chain([9000, 9999], NO_WORK), Mtls::Strict);
    let mut environment = lab.up(&with_metrics(mesh, 1, 9080));
    let server = pid_by_argument(&lab.folder.path().join("lab"), "server.service.json");
    let listen = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 9080)).unwrap();
    serve(in_network_of(server, listen), Duration::ZERO);
    environment.open_proof().unwrap();
    for _ in 0..3 {
        assert_eq!(told(&environment.sample()).unwrap(), ["up=1"]);
    }
    let proof = environment.close_proof(Traffic::default()).unwrap();
    let counts =
        proof.claims.iter().filter(|claim| claim.claim.contains("server sidecar, inbound"));
    assert!(counts.clone().count() > 0 && counts.clone().all(|claim| claim.holds), "{proof:#?}");
    environment.down().unwrap();
}

/// What a service tells on its very port, strict mTLS keeps from those outside of the mesh.
#[test]
fn an_endpoint_on_the_services_own_port_is_refused_by_a_strict_sidecar() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let Ok(envoy) = Artifact::Envoy.find(Fetch::Forbidden) else { skip!("there is no Envoy") };
    if !is_possible(Isolation::Rootless) {
        skip!("isolation level {} is not possible here", Isolation::Rootless);
    }
    let lab = TestLab::with(Isolation::Rootless, &service, |options| {
        options.artifacts.put(Artifact::Envoy, envoy.path)
    });
    let mesh = in_mesh(chain([9000, 9999], NO_WORK), Mtls::Strict);
    let mut environment = lab.up(&with_metrics(mesh, 1, 9999));
    let why = told(&environment.sample()).unwrap_err();
    assert!(why.starts_with("it cannot be asked: "), "{why}");
    environment.down().unwrap();
}
