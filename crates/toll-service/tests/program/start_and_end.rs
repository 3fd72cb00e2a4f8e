//! How the program starts, refuses to start, and ends.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::running::{Running, config_file, plain, play, run, with};

fn complaint_about(config: &serde_json::Value) -> String {
    let output = play(&config_file(config)).output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = taken.local_addr().unwrap();
    let complaint = complaint_about(&with(plain("server"), "listen", json!(address)));
    let port = address.port();
    assert_eq!(
        complaint,
        format!(
            "cannot listen on {address}: address in use\n\
             help: `ss -ltnp 'sport = :{port}'` names the program that holds the port\n"
        )
    );
}

#[test]
fn a_wrong_configuration_is_named_with_its_place() {
    let complaint = complaint_about(&with(plain("server"), "status", json!("ok")));
    assert!(complaint.contains("cannot understand "), "{complaint}");
    assert!(complaint.contains("at line 1 column "), "{complaint}");
}

#[test]
fn a_missing_configuration_is_named() {
    let output = run(&["--config", "no-such-file.json"]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        complaint.starts_with("cannot read no-such-file.json: entity not found"),
        "{complaint}"
    );
}

#[test]
fn without_arguments_the_usage_is_shown() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--config <FILE>"), "{output:?}");
}

#[test]
fn sigterm_ends_a_service_at_once_even_while_it_works() {
    let work = Duration::from_secs(30);
    let mut server = Running::start(&with(plain("server"), "work_us", json!(work.as_micros())));
    let idle = server.cpu_time();
    let mut asking = TcpStream::connect(server.address).unwrap();
    asking.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n").unwrap();
    while server.cpu_time() - idle < Duration::from_millis(100) {
        thread::sleep(Duration::from_millis(1));
    }
    let told = Instant::now();
    kill(Pid::from_raw(server.process.id().cast_signed()), Signal::SIGTERM).unwrap();
    let status = server.process.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(told.elapsed() < work / 2, "{:?}", told.elapsed());
}
