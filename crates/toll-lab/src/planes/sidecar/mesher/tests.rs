use std::net::Ipv4Addr;
use std::path::Path;

use super::*;
use crate::fixture::chain;
use crate::host::isolation::Isolation;
use crate::topology;

fn with_mesher() -> Deployment {
    let data_plane = DataPlane::Mesher { binary: "/opt/mesher/mesher".into() };
    Deployment { name: "mesher".into(), data_plane, ..chain() }
}

#[test]
fn each_pod_has_a_mesher_that_is_told_where_to_listen_and_whom_to_ask() {
    let deployment = with_mesher();
    let topology = topology::plan(&deployment, Isolation::Pods, []);
    let plans = plans(&deployment, &topology, Path::new("/run/toll/lab")).unwrap();
    let texts = plans[1].rendered().map(|file| format!("# {}\n{}", file.name, file.text));
    insta::assert_snapshot!(texts.collect::<Vec<_>>().join("\n"));
    assert_eq!(plans[1].environment[1], ("SERVICE_PORTS", "rest:9999".into()));
    let registry = Registry::plan(&topology, Path::new("/run/toll/lab")).unwrap();
    insta::assert_snapshot!(registry.text);
}

#[test]
fn on_loopback_no_two_meshers_share_a_port_and_none_listens_at_an_address_that_is_refused() {
    let deployment = with_mesher();
    let needed = topology::ports_needed(&deployment);
    let topology = topology::plan(&deployment, Isolation::Loopback, (20_001..).take(needed));
    let at: Vec<MesherAddresses> = topology.pods.iter().filter_map(|pod| pod.mesher).collect();
    let ports = at.iter().flat_map(|at| [at.provider.port(), at.admin.port()]);
    let mut ports: Vec<u16> = ports.chain([at[0].registry.port()]).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 5);
    assert!(at.iter().all(|at| at.provider.ip().is_loopback()));
    assert!(at.iter().all(|at| *at.provider.ip() != Ipv4Addr::LOCALHOST));
    // The load enters the service itself.
    assert_eq!(topology.front("client").unwrap().port(), 9000);
}

#[test]
fn a_service_that_asks_no_proxy_is_refused_by_name() {
    let mut deployment = with_mesher();
    deployment.services[1].program = Program::Gateway;
    let reason = fits(&deployment.services).unwrap_err();
    assert!(reason.ends_with("`server` is neither"), "{reason}");
}

#[test]
fn a_consumers_requests_are_counted_by_the_service_that_they_are_for_also_beyond_a_million() {
    let text = "\
# HELP requests_total requests\n\
requests_total{app=\"default\",service_name=\"server\",version=\"0.0.1\"} 20\n\
requests_total{app=\"default\",service_name=\"other\",version=\"0.0.1\"} 1.234567e+06\n\
successes_total{app=\"default\",service_name=\"server\",version=\"0.0.1\"} 19\n";
    let counters = counters(text);
    assert_eq!(counters.call("server").requests, 20);
    assert_eq!(counters.call("other").requests, 1_234_567);
}
