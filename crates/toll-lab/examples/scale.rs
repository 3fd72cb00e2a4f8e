//! Brings one service with many pods up and down and says how long each step took, for developers.
//!
//! `scale LEVEL SERVICE_PROGRAM FOLDER REPLICAS NODES [sidecar|ambient]`

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toll_lab::parts::{self, Fetch};
use toll_lab::{
    Ambient, BuiltIn, DataPlane, Deployment, Isolation, Lab, LocalOptions, Mtls, NodeProxy,
    Program, Runtime, Service, SidecarProxy,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [level, service, folder, replicas, nodes, variant @ ..] = &arguments[..] else {
        return Err("scale LEVEL SERVICE_PROGRAM FOLDER REPLICAS NODES [sidecar|ambient]".into());
    };
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    log.with_writer(std::io::stderr).with_target(false).init();
    let folder = PathBuf::from(folder);
    let lab = Lab::local(LocalOptions {
        isolation: Isolation::ALL.into_iter().find(|known| known.to_string() == *level),
        service: vec![service.into()],
        load: vec!["cat".into()],
        nginx: None,
        envoy: parts::envoy(Fetch::Forbidden).ok().map(|part| part.path),
        postgres: None,
        java: None,
        spring: None,
        petclinic_gateway: None,
        petclinic_vets: None,
        opentelemetry: None,
        collector: vec![],
        realtime: false,
        work_dir: folder.join("lab"),
        interrupt: Arc::default(),
    })?;
    let deployment = Deployment {
        nodes: nodes.parse()?,
        data_plane: data_plane(variant.first().map(String::as_str)),
        ..deployment(replicas.parse()?)
    };
    let began = Instant::now();
    let mut environment = lab.up(&deployment, &folder.join("logs"))?;
    let up = began.elapsed();
    let sampled = Instant::now();
    for _ in 0..10 {
        environment.sample();
    }
    let sample = sampled.elapsed() / 10;
    let began = Instant::now();
    environment.open_proof()?;
    let open = began.elapsed();
    let began = Instant::now();
    environment.down()?;
    let down = began.elapsed();
    writeln!(
        std::io::stdout(),
        "up {up:.2?}, open proof {open:.2?}, a sample {sample:.2?}, down {down:.2?}"
    )?;
    Ok(())
}

fn data_plane(variant: Option<&str>) -> DataPlane {
    let mtls = Mtls::Strict;
    match variant {
        Some("sidecar") => DataPlane::Sidecar { proxy: SidecarProxy::Envoy, mtls },
        Some("ambient") => {
            DataPlane::Ambient(Ambient { proxy: NodeProxy::Envoy, mtls, waypoint: false })
        }
        _ => DataPlane::Bare,
    }
}

/// `front` calls `back`, which has many pods.
fn deployment(replicas: usize) -> Deployment {
    Deployment {
        nodes: 1,
        name: "scale".into(),
        entry: "front".into(),
        services: vec![service("front", 1, &["back"]), service("back", replicas, &[])],
        data_plane: DataPlane::Bare,
    }
}

fn service(name: &str, replicas: usize, calls: &[&str]) -> Service {
    let behaviour = BuiltIn {
        runtime: Runtime::Native,
        work: Duration::ZERO,
        reply_bytes: 615,
        status: 200,
        relay: false,
        queries: None,
        stall: None,
    };
    Service {
        node: None,
        tls: false,
        name: name.into(),
        group: "default".into(),
        replicas,
        port: 8080,
        program: Program::BuiltIn(behaviour),
        calls: calls.iter().map(|c| (*c).to_owned()).collect(),
        metrics: None,
    }
}
