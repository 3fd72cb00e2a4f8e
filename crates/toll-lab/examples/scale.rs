//! Brings nginx with many pods behind an HTTPS gateway up and down and says how long each step took, for
//! developers.
//!
//! `scale LEVEL SERVICE_PROGRAM FOLDER REPLICAS NODES [sidecar|ambient]`

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use toll_lab::artifacts::{Artifact, Fetch};
use toll_lab::{
    Ambient, DataPlane, Deployment, Isolation, Lab, LocalOptions, Mtls, Nginx, NodeProxy, Program,
    Service, SidecarProxy,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [level, service, folder, replicas, nodes, variant @ ..] = &arguments[..] else {
        return Err("scale LEVEL SERVICE_PROGRAM FOLDER REPLICAS NODES [sidecar|ambient]".into());
    };
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    log.with_writer(std::io::stderr).with_target(false).init();
    let folder = PathBuf::from(folder);
    let load = vec!["cat".into()];
    let mut options = LocalOptions::new(vec![service.into()], load, folder.join("lab"));
    options.isolation = Isolation::ALL.into_iter().find(|known| known.to_string() == *level);
    for artifact in [Artifact::Envoy, Artifact::Nginx] {
        if let Ok(found) = artifact.find(Fetch::Forbidden) {
            options.artifacts.put(artifact, found.path);
        }
    }
    let lab = Lab::local(options)?;
    let deployment = Deployment {
        nodes: nodes.parse()?,
        envoy: Box::default(),
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
        Some("sidecar") => DataPlane::Sidecar {
            egress: toll_lab::Egress::Sidecar,
            proxy: SidecarProxy::Envoy,
            mtls,
        },
        Some("ambient") => {
            DataPlane::Ambient(Ambient { proxy: NodeProxy::Envoy, mtls, waypoint: false })
        }
        _ => DataPlane::Bare,
    }
}

fn deployment(replicas: usize) -> Deployment {
    let page = Program::Nginx(Nginx { bytes: 615 });
    let gateway = Service {
        port: 443,
        calls: vec!["nginx".into()],
        tls: true,
        ..service("gateway", 1, Program::Gateway)
    };
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "scale".into(),
        entry: "gateway".into(),
        services: vec![gateway, service("nginx", replicas, page)],
        data_plane: DataPlane::Bare,
    }
}

fn service(name: &str, replicas: usize, program: Program) -> Service {
    Service {
        external: None,
        node: None,
        tls: false,
        name: name.into(),
        group: "default".into(),
        replicas,
        port: 80,
        program,
        calls: Vec::new(),
        observed_calls: vec![],
        metrics: None,
    }
}
