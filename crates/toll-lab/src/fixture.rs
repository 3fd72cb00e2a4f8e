//! Deployments that unit tests share.

pub(crate) mod graphs;

use std::time::Duration;

use crate::deployment::{
    BuiltIn, Compilers, DataPlane, Deployment, Egress, Metrics, Mtls, Petclinic, PetclinicPart,
    Planted, Program, Runtime, Service, SidecarProxy,
};

/// `client:9000` calls `server:9999`; no data plane.
pub(crate) fn chain() -> Deployment {
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "original".into(),
        entry: "client".into(),
        services: vec![service("client", 9000, &["server"]), service("server", 9999, &[])],
        data_plane: DataPlane::Bare,
    }
}

/// The same with an Envoy beside each service, strict mTLS.
pub(crate) fn in_mesh(deployment: Deployment) -> Deployment {
    let data_plane = DataPlane::Sidecar {
        egress: Egress::Sidecar,
        proxy: SidecarProxy::Envoy,
        mtls: Mtls::Strict,
    };
    Deployment { name: "istio".into(), data_plane, ..deployment }
}

fn service(name: &str, port: u16, calls: &[&str]) -> Service {
    let behaviour = BuiltIn {
        runtime: Runtime::Native,
        work: Duration::from_micros(300),
        reply_bytes: 5,
        status: 200,
        relay: false,
        queries: None,
        stall: None,
        planted: Planted::default(),
    };
    Service {
        external: None,
        node: None,
        tls: false,
        name: name.into(),
        group: "default".into(),
        replicas: 1,
        port,
        program: Program::BuiltIn(behaviour),
        calls: calls.iter().map(|c| (*c).to_owned()).collect(),
        observed_calls: vec![],
        metrics: None,
    }
}

/// `gateway:8080`, with metrics on 9080, calls `vets:8081`, beside `collector:4318`; no data plane.
pub(crate) fn petclinic() -> Deployment {
    let part = |name: &str, port, calls: &[&str], part| Service {
        program: Program::Petclinic(Petclinic { part, heap_mib: 128, compilers: Compilers::Both }),
        ..service(name, port, calls)
    };
    let metrics = Metrics { port: 9080, path: "/metrics".into(), series: vec![] };
    let gateway = part("gateway", 8080, &["vets"], PetclinicPart::Gateway);
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "baseline".into(),
        entry: "gateway".into(),
        services: vec![
            Service { metrics: Some(metrics), ..gateway },
            part("vets", 8081, &[], PetclinicPart::Vets),
            Service { program: Program::Collector, ..service("collector", 4318, &[]) },
        ],
        data_plane: DataPlane::Bare,
    }
}
