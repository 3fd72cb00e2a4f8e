use super::*;
use crate::deployment::Egress;
use crate::fixture::graphs::{airline, in_pods, leaving, ways_out};
use crate::topology::{Bypass, Capture};

const TRANSPARENT: Capture = Capture::Transparent(Bypass::Uid(1337));

fn through(hosts: &[&str]) -> Deployment {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    leaving(airline(), Egress::Gateway(EgressGateway { mtls: true, sni_proxy: true, hosts }))
}

fn planned(deployment: &Deployment, capture: Capture) -> Option<SniProxyPlan> {
    let topology = in_pods(deployment, capture);
    let module = Path::new("/usr/lib/nginx/modules/ngx_stream_module.so");
    plan(deployment, &topology, Some(module), Path::new("/run/toll/lab")).unwrap()
}

fn routes_of(deployment: &Deployment, capture: Capture) -> Vec<(String, String)> {
    let gateway = deployment.data_plane.egress_gateway().unwrap();
    let routes = routes(deployment, gateway, &in_pods(deployment, capture));
    routes.into_iter().map(|(name, to)| (name, to.to_string())).collect()
}

/// With a second database below the same domain.
fn with_archive(mut deployment: Deployment) -> Deployment {
    let mut archive = deployment.services.last().unwrap().clone();
    archive.name = "archive".into();
    archive.external = Some(External { host: "archive.airline.example".into() });
    deployment.services.push(archive);
    deployment
}

#[test]
fn the_configuration_of_the_sni_proxy() {
    let plan = planned(&through(&["*.airline.example"]), TRANSPARENT).unwrap();
    insta::assert_snapshot!(plan.config);
}

#[test]
fn only_the_last_case_has_an_sni_proxy() {
    let has = |egress| planned(&leaving(airline(), egress), TRANSPARENT).is_some();
    assert_eq!(ways_out().map(|(_, egress)| has(egress)), [false, false, false, false, true]);
    assert_eq!(planned(&airline(), TRANSPARENT), None);
}

#[test]
fn a_name_is_let_out_by_itself_or_by_a_wildcard_and_no_other_is() {
    let database = |name: &str| vec![(name.to_owned(), "10.77.0.6:27017".to_owned())];
    let routes = |hosts: &[&str]| routes_of(&through(hosts), TRANSPARENT);
    assert_eq!(routes(&[]), database("db.airline.example"));
    assert_eq!(routes(&["db.airline.example"]), database("db.airline.example"));
    assert_eq!(routes(&["*.airline.example"]), database("*.airline.example"));
    assert_eq!(routes(&["*.example"]), database("*.example"));
    for foreign in ["airline.example", "*.db.airline.example", "*.line.example"] {
        assert_eq!(routes(&[foreign]), [], "{foreign}");
    }
}

#[test]
fn two_databases_behind_one_wildcard_are_told_apart_by_their_names() {
    let routes = routes_of(&with_archive(through(&["*.airline.example"])), TRANSPARENT);
    let names: Vec<&str> = routes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["db.airline.example", "archive.airline.example"]);
}

#[test]
fn without_namespaces_the_database_is_found_by_the_name_that_it_has_there() {
    let routes = routes_of(&through(&["*.airline.example"]), Capture::Explicit);
    assert_eq!(routes, [("localhost".to_owned(), "10.77.0.6:27017".to_owned())]);
    assert_eq!(routes_of(&through(&["*.other.example"]), Capture::Explicit), []);
}

#[test]
fn an_nginx_that_has_streams_built_in_loads_no_module() {
    let deployment = through(&[]);
    let topology = in_pods(&deployment, TRANSPARENT);
    let plan = plan(&deployment, &topology, None, Path::new("/x")).unwrap().unwrap();
    assert!(plan.config.starts_with("daemon off;"));
}
