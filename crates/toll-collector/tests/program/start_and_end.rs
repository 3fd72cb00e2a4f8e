//! How the program starts, refuses to start, and ends.

use std::net::TcpListener;
use std::process::{Command, Output};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::running::{Running, program};

fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let socket = folder.path().join("admin.sock");
    let output = program(&address.to_string(), &socket).output().unwrap();
    let port = address.port();
    assert_eq!(
        complaint(&output),
        format!(
            "cannot listen on {address}: address in use\n\
             help: `ss -ltnp 'sport = :{port}'` names the program that holds the port\n"
        )
    );
    assert!(!socket.exists());
}

#[test]
fn a_taken_socket_is_named_with_what_to_do() {
    let collector = Running::start();
    let output = program("127.0.0.1:0", &collector.socket).output().unwrap();
    assert_eq!(
        complaint(&output),
        format!(
            "cannot listen on {}: address in use\n\
             help: another collector has it, or one was killed: then remove the file\n",
            collector.socket.display()
        )
    );
    assert_eq!(collector.admin("GET", "/counts").status, 200);
}

#[test]
fn a_socket_in_no_folder_is_named_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    let output = program("127.0.0.1:0", &folder.path().join("no/admin.sock")).output().unwrap();
    assert!(complaint(&output).ends_with("help: create its folder first\n"), "{output:?}");
}

#[test]
fn without_arguments_the_usage_is_shown() {
    let output = Command::new(env!("CARGO_BIN_EXE_toll-collector")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("--listen <ADDRESS:PORT>"), "{output:?}");
}

#[test]
fn sigterm_ends_it_and_its_socket_is_gone() {
    let mut collector = Running::start();
    kill(Pid::from_raw(collector.process.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(collector.process.wait().unwrap().code(), Some(0));
    assert!(!collector.socket.exists());
}
