//! A real nginx in each of several pods, and how often each says that it was asked.

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::artifacts::{Artifact, Fetch};
use crate::deployment::{DataPlane, Deployment, Nginx, Program, Service};
use crate::fixture::chain;
use crate::host::isolation::{self, Isolation};
use crate::local::{LocalEnvironment, LocalLab};
use crate::options::LocalOptions;
use crate::probe::{Outcome, Speech};

/// The built-in service of this build, whose probes ask.
fn service() -> Option<OsString> {
    let folder = env::current_exe().ok()?.parent()?.parent()?.to_owned();
    let service = env::var_os("TOLL_SERVICE").map(PathBuf::from);
    let service = service.unwrap_or_else(|| folder.join("toll-service"));
    service.is_file().then(|| service.into())
}

fn options(service: OsString, nginx: PathBuf, folder: &Path) -> LocalOptions {
    let load = vec!["true".into()];
    let mut options = LocalOptions::new(vec![service], load, folder.join("lab"));
    options.isolation = Some(Isolation::Pods);
    options.artifacts.put(Artifact::Nginx, nginx);
    options
}

/// So many pods of nginx, the first of which is the entry.
fn pods(replicas: usize) -> Deployment {
    let program = Program::Nginx(Nginx { bytes: 615 });
    let service = chain().services.remove(1);
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "bare".into(),
        entry: "nginx".into(),
        services: vec![Service { name: "nginx".into(), replicas, program, ..service }],
        data_plane: DataPlane::Bare,
    }
}

fn ask(environment: &LocalEnvironment, pod: usize, times: usize) {
    let LocalEnvironment { setup, pods, processes, .. } = environment;
    let target = SocketAddrV4::new(setup.topology.pods[pod].ip, 9999);
    let (context, prober) = (pods.load(&setup.machine), processes.prober(&setup.machine.options));
    for _ in 0..times {
        let answer = prober.probe(&context, target, Speech::Request).unwrap();
        assert_eq!((answer.outcome, answer.body.len()), (Outcome::Answered, 615));
    }
}

#[test]
fn each_nginx_has_served_exactly_what_others_than_the_reader_asked_it_for() {
    let (Some(service), Ok(nginx)) = (service(), Artifact::Nginx.find(Fetch::Forbidden)) else {
        eprintln!("SKIP each_nginx_has_served: toll-service is not built, or there is no nginx");
        return;
    };
    if isolation::attempt(Isolation::Pods).is_err() {
        eprintln!("SKIP each_nginx_has_served: pods are not possible here");
        return;
    }
    let folder = tempfile::Builder::new().prefix("toll-").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let lab = LocalLab::new(options(service, nginx.path, folder.path())).unwrap();
    let environment = lab.up(&pods(3), &folder.path().join("logs")).unwrap();
    let answered = || environment.observer().answered().unwrap().into_values().collect::<Vec<_>>();
    // The entry was asked once whether it is there.
    assert_eq!(answered(), [1, 0, 0]);
    ask(&environment, 1, 5);
    ask(&environment, 2, 2);
    assert_eq!(answered(), [1, 5, 2]);
    assert_eq!(answered(), [1, 5, 2], "the reader does not count itself");
    environment.down().unwrap();
}
