//! Sockets and addresses, without TLS.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::thread;

use proptest::prelude::*;

use super::server::Server;
use super::*;
use crate::Resolve;

fn plan() -> ConnectionPlan {
    ConnectionPlan::default()
}

fn local(text: &str) -> ConnectionPlan {
    let addresses = text.split(' ').map(|address| address.parse().unwrap()).collect();
    ConnectionPlan { local_addresses: addresses, ..plan() }
}

#[test]
fn a_megabyte_comes_back_over_tcp_and_every_byte_is_counted() {
    let server = Server::plain(1);
    let origin = origin(Scheme::Http, "127.0.0.1", server.port, &plan());
    let mut driver = Driver::ready(&origin, &plan()).unwrap();
    driver.narrow();
    assert!(driver.exchange(&megabyte()).unwrap() == megabyte());
    assert!(driver.blocked > 0, "all of it went at once");
    drop(driver);
    assert_eq!(server.seen().failure, None);
}

#[test]
fn a_unix_socket_is_used_whatever_the_host_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(&request).unwrap();
    });
    let plan = ConnectionPlan { unix_socket: Some(path.clone()), ..plan() };
    let origin = origin(Scheme::Http, "name.invalid", 80, &plan);
    assert_eq!((origin.addresses(), &origin.remote), (&[][..], &Remote::Unix(path)));
    let mut driver = Driver::ready(&origin, &plan).unwrap();
    assert_eq!(driver.exchange(b"ping").unwrap(), b"ping");
    assert_eq!(driver.next().unwrap(), "", "the peer has closed the connection");
}

#[test]
fn a_unix_socket_that_nobody_listens_on_is_an_error_with_its_path() {
    let plan = ConnectionPlan { unix_socket: Some("/nowhere/service.sock".into()), ..plan() };
    let origin = origin(Scheme::Http, "localhost", 80, &plan);
    let error = origin.connect_error(Stream::connect(&origin, None).unwrap_err());
    assert_told(
        &error,
        "cannot connect to /nowhere/service.sock: No such file or directory (os error 2); check that the \
         service runs and listens on /nowhere/service.sock, and that this user may write to it",
    );
}

#[test]
fn a_port_that_nobody_listens_on_refuses_the_connection() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let origin = origin(Scheme::Http, "127.0.0.1", port, &plan());
    let refused = match Driver::connected(&origin, &plan()) {
        Ok(_) => panic!("somebody listens on port {port}"),
        Err(error) => error,
    };
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert!(
        matches!(origin.connect_error(refused), LoadError::Connect { address, .. } if address.port() == port)
    );
}

#[test]
fn ports_that_ran_out_are_told_from_other_failures() {
    let origin = origin(Scheme::Http, "127.0.0.1", 80, &plan());
    let error = io::Error::from_raw_os_error(nix::errno::Errno::EADDRNOTAVAIL as i32);
    assert_told(
        &origin.connect_error(error),
        "cannot connect to 127.0.0.1:80: no local port is free; keep connections alive, use fewer \
         of them, or give more local addresses",
    );
}

#[test]
fn a_name_without_address_is_an_error_with_its_name() {
    let error = Origin::find(Scheme::Http, "name.invalid", 80, &plan()).unwrap_err();
    assert!(matches!(&error, LoadError::Resolve { host, .. } if host == "name.invalid"), "{error}");
}

#[test]
fn an_address_of_the_plan_comes_before_the_resolver() {
    let given = |host: &str, port, address: &str| Resolve {
        host: host.into(),
        port,
        address: address.parse().unwrap(),
    };
    let plan = ConnectionPlan {
        resolve: vec![
            given("other.invalid", 80, "127.0.0.9"),
            given("Name.Invalid", 80, "127.0.0.2"),
            given("name.invalid", 81, "127.0.0.3"),
            given("name.invalid", 80, "::1"),
        ],
        ..plan()
    };
    let origin = origin(Scheme::Http, "name.invalid", 80, &plan);
    assert_eq!(origin.addresses(), ["127.0.0.2:80".parse().unwrap(), "[::1]:80".parse().unwrap()]);
    assert_eq!(origin.remote, Remote::Tcp(origin.addresses()[0]));
}

#[test]
fn an_ipv6_address_may_stand_in_brackets() {
    for host in ["[::1]", "::1"] {
        let origin = origin(Scheme::Http, host, 80, &plan());
        assert_eq!(origin.addresses(), ["[::1]:80".parse().unwrap()]);
    }
}

#[test]
fn the_server_sees_the_local_addresses_in_turn() {
    let server = Server::plain(3);
    let plan = local("127.0.0.2 ::1 127.0.0.3");
    let origin = origin(Scheme::Http, "127.0.0.1", server.port, &plan);
    let mut locals = LocalAddresses::new(&plan, &origin.remote);
    let seen: Vec<IpAddr> = (0..3)
        .map(|_| {
            let mut driver = Driver::begin(&origin, &mut locals).unwrap();
            driver.wait();
            driver.stream.finish_connecting().unwrap();
            drop(driver);
            server.seen().peer
        })
        .collect();
    let expected: [IpAddr; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.2"].map(|a| a.parse().unwrap());
    assert_eq!(seen, expected);
}

#[test]
fn a_local_address_of_another_machine_is_an_error_with_advice() {
    let error = Origin::find(Scheme::Http, "127.0.0.1", 80, &local("192.0.2.1")).unwrap_err();
    assert_told(
        &error,
        "cannot use the local address 192.0.2.1: Cannot assign requested address; use an address of \
         this machine; `ip address` lists them",
    );
}

#[test]
fn a_local_address_of_the_other_family_is_an_error_with_advice() {
    let error = Origin::find(Scheme::Http, "127.0.0.1", 80, &local("::1")).unwrap_err();
    assert_told(
        &error,
        "no local address can reach an address of `127.0.0.1`; give local addresses of the target's \
         kind, IPv4 or IPv6",
    );
}

proptest! {
    #[test]
    fn each_local_address_gets_its_share(count in 1_u8..20, turns in 0_usize..100) {
        let addresses: Vec<IpAddr> = (1..=count).map(|last| [127, 0, 0, last].into()).collect();
        let plan = ConnectionPlan { local_addresses: addresses.clone(), ..plan() };
        let remote = Remote::Tcp(([127, 0, 0, 1], 80).into());
        let mut locals = LocalAddresses::new(&plan, &remote);
        let taken: Vec<IpAddr> = (0..turns).filter_map(|_| locals.take_turn()).collect();
        let expected: Vec<IpAddr> = addresses.iter().copied().cycle().take(turns).collect();
        prop_assert_eq!(taken, expected);
    }
}

fn assert_told(error: &LoadError, expected: &str) {
    assert_eq!(told(error), expected);
}
