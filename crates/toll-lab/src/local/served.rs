//! Counts what each nginx of an environment has answered to others than the lab.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::LabError;
use crate::data_plane::stub_status;

/// An nginx that can be asked.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) pod: String,
    status: PathBuf,
    /// How often it was asked: each question is a request, too.
    asked: AtomicU64,
}

impl Served {
    pub(super) fn new(pod: String, status: PathBuf) -> Self {
        Self { pod, status, asked: AtomicU64::new(0) }
    }

    fn requests(&self) -> Result<u64, LabError> {
        let all = stub_status::requests(&self.status)?;
        let own = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(all.saturating_sub(own))
    }
}

/// Requests that each has answered since it started, by pod; those of the lab for this number left out.
///
/// # Errors
/// When one cannot be asked.
pub(super) fn served(all: &[Served]) -> Result<BTreeMap<String, u64>, LabError> {
    all.iter().map(|one| Ok((one.pod.clone(), one.requests()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use crate::deployment::{DataPlane, Deployment, Nginx, Program, Service};
    use crate::lab::LocalOptions;
    use crate::local::environment::LocalEnvironment;
    use crate::local::probe::{Outcome, Speech, probe};
    use crate::local::{Isolation, LocalLab, isolation};
    use crate::{fixture, parts};

    /// The built-in service of this build, whose probes ask.
    fn service() -> Option<OsString> {
        let folder = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
        let service = std::env::var_os("TOLL_SERVICE").map(PathBuf::from);
        let service = service.unwrap_or_else(|| folder.join("toll-service"));
        service.is_file().then(|| service.into())
    }

    fn options(service: OsString, nginx: PathBuf, folder: &Path) -> LocalOptions {
        LocalOptions {
            certificate_lifetime: LocalOptions::CERTIFICATE_LIFETIME,
            mongo: None,
            isolation: Some(Isolation::Pods),
            service: vec![service],
            load: vec!["true".into()],
            envoy: None,
            postgres: None,
            nginx: Some(nginx),
            java: None,
            spring: None,
            petclinic_gateway: None,
            petclinic_vets: None,
            opentelemetry: None,
            collector: vec![],
            realtime: false,
            work_dir: folder.join("lab"),
            interrupt: Arc::default(),
        }
    }

    /// So many pods of nginx, the first of which is the entry.
    fn pods(replicas: usize) -> Deployment {
        let program = Program::Nginx(Nginx { bytes: 615 });
        let service = fixture::chain().services.remove(1);
        Deployment {
            nodes: 1,
            name: "bare".into(),
            entry: "nginx".into(),
            services: vec![Service { name: "nginx".into(), replicas, program, ..service }],
            data_plane: DataPlane::Bare,
        }
    }

    fn ask(environment: &LocalEnvironment, pod: usize, times: usize) {
        let target = environment.topology.pods[pod].ip;
        let (place, service) = (environment.load_place(), &environment.options.service);
        let target = std::net::SocketAddrV4::new(target, 9999);
        for _ in 0..times {
            let answer =
                probe(&environment.launcher, service, &place, target, Speech::Request).unwrap();
            assert_eq!((answer.outcome, answer.body.len()), (Outcome::Answered, 615));
        }
    }

    #[test]
    fn each_nginx_has_served_exactly_what_others_than_the_reader_asked_it_for() {
        let (Some(service), Ok(nginx)) = (service(), parts::nginx()) else {
            eprintln!(
                "SKIP each_nginx_has_served: toll-service is not built, or there is no nginx"
            );
            return;
        };
        if isolation::attempt(Isolation::Pods).is_err() {
            eprintln!("SKIP each_nginx_has_served: pods are not possible here");
            return;
        }
        let folder = tempfile::Builder::new().prefix("toll-").tempdir_in("/tmp").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), mode).unwrap();
        let lab = LocalLab::new(options(service, nginx.path, folder.path())).unwrap();
        let environment = lab.up(&pods(3), &folder.path().join("logs")).unwrap();
        let served = || environment.served().unwrap().into_values().collect::<Vec<_>>();
        // The entry was asked once whether it is there.
        assert_eq!(served(), [1, 0, 0]);
        ask(&environment, 1, 5);
        ask(&environment, 2, 2);
        assert_eq!(served(), [1, 5, 2]);
        assert_eq!(served(), [1, 5, 2], "the reader does not count itself");
        environment.down().unwrap();
    }
}
