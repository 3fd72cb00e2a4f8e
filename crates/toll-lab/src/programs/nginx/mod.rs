//! An nginx of the deployment: its configuration, its page, and its count of what it answered.
//!
//! As a container of the official image has it, but for three things: one process instead of a master and a
//! worker, no access log, and no bound on the requests of a connection. Beside the port of the service stands a
//! Unix socket that only the lab knows, where it says how many requests it got:
//! <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>.

pub(crate) mod status;
pub(crate) mod syntax;

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;

use status::AnswerCounter;
use syntax::{arguments, process, quoted_path, status_server, status_server_at, temporary_paths};

use crate::LabError;
use crate::artifacts::{Artifact, Artifacts};
use crate::deployment::Nginx;
use crate::error::DataPlaneError;
use crate::host::files;
use crate::host::spawn::Start;
use crate::image;
use crate::programs::Contained;
use crate::topology::{Site, socket_below};

/// The nginx at `site`, with its page.
///
/// # Errors
/// When it is not there, a socket's path is too long, or its files cannot be written.
pub(super) fn start(
    site: &Site<'_>,
    page: Nginx,
    artifacts: &Artifacts,
) -> Result<Start, LabError> {
    let path = artifacts.path(Artifact::Nginx)?;
    let at = Files::of_site(site);
    files::make_folder(&at.root)?;
    files::write(&at.page(), text(page))?;
    let status = status_server(&at.status);
    files::write(&at.config, config(&at, site.listens_at(), &status))?;
    let mut command = Command::new(path);
    command.args(arguments(&at.temporary, &at.config));
    Ok(Start::new(path.to_owned(), command))
}

/// The nginx at `site` in a container of toll's image.
pub(super) fn contained(site: &Site<'_>, page: Nginx) -> Contained {
    let at = Files::in_container(site);
    let status = status_server_at(&STATUS_PORT.to_string());
    let nginx = image::path_of(Artifact::Nginx);
    let words = arguments(&at.temporary, &at.config).into_iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    Contained {
        command: std::iter::once(nginx.to_owned()).chain(words).collect(),
        files: vec![
            (at.config.clone(), config(&at, site.listens_at(), &status)),
            (at.page(), text(page)),
        ],
    }
}

/// The text of its configuration, and the file's path.
pub(super) fn configuration(site: &Site<'_>) -> (PathBuf, String) {
    let files = Files::of_site(site);
    let text = config(&files, site.listens_at(), &status_server(&files.status));
    (files.config, text)
}

/// The count of what it answers.
///
/// # Errors
/// When a socket's path is too long.
pub(super) fn counter(site: &Site<'_>) -> Result<AnswerCounter, DataPlaneError> {
    let socket = socket_below(site.dir, &status_name(&site.pod.pod))?;
    Ok(AnswerCounter::new(site.pod.pod.clone(), socket))
}

fn status_name(pod: &str) -> String {
    format!("{pod}.status.sock")
}

/// Where the files of one nginx are, below the environment's folder.
#[derive(Debug, Clone)]
struct Files {
    /// Its configuration.
    config: PathBuf,
    /// Where it tells how many requests it got.
    status: PathBuf,
    /// Holds the page, one for all pods of a service.
    root: PathBuf,
    /// What nginx makes when it starts, of which nothing is used: all pods share it.
    temporary: PathBuf,
    pid: PathBuf,
}

impl Files {
    fn of_site(site: &Site<'_>) -> Self {
        Self::new(site.dir, &site.pod.pod, &site.service.name)
    }

    /// In a container what nginx makes goes into its one writable folder.
    fn in_container(site: &Site<'_>) -> Self {
        Self {
            root: site.dir.join("page"),
            temporary: site.dir.to_owned(),
            pid: site.dir.join("nginx.pid"),
            ..Self::of_site(site)
        }
    }

    fn new(folder: &Path, pod: &str, service: &str) -> Self {
        let nginx = folder.join("nginx");
        Self {
            config: folder.join(format!("{pod}.nginx.conf")),
            status: folder.join(status_name(pod)),
            root: nginx.join(service),
            pid: nginx.join(format!("{pod}.pid")),
            temporary: nginx,
        }
    }

    /// The page.
    fn page(&self) -> PathBuf {
        self.root.join(PAGE)
    }
}

const PAGE: &str = "index.html";

/// Where an nginx in a container tells what it has counted.
pub(crate) const STATUS_PORT: u16 = 15_091;

/// The whole configuration of the nginx that listens at `address`.
///
/// The socket for the lab comes first: nginx opens them in order, and who finds the port open finds it, too.
fn config(files: &Files, address: SocketAddrV4, status: &str) -> String {
    let process = process(&files.pid, 1024);
    let root = quoted_path(&files.root);
    let temporary = temporary_paths(&files.temporary);
    format!(
        "{process}
http {{
    types {{
        text/html html;
    }}
    access_log off;
    sendfile on;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
{temporary}
{status}
    server {{
        listen {address};
        root {root};
        index {PAGE};
    }}
}}
"
    )
}

/// A page of that size.
fn text(page: Nginx) -> String {
    const LINE: &str = "A static page of toll's, as long as the study wants it.\n";
    LINE.chars().cycle().take(page.bytes).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_configuration_of_an_nginx() {
        let files = Files::new(Path::new("/run/toll/lab"), "nginx-2", "nginx");
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 80);
        insta::assert_snapshot!(config(&files, address, &status_server(&files.status)));
    }

    #[test]
    fn the_page_has_exactly_the_bytes_that_the_study_wants() {
        for bytes in [0, 1, 615, 100_000] {
            assert_eq!(text(Nginx { bytes }).len(), bytes);
        }
    }

    #[test]
    fn pods_of_a_service_share_the_page_and_nothing_that_they_listen_on() {
        let [one, other] =
            ["nginx-1", "nginx-2"].map(|pod| Files::new(Path::new("x"), pod, "nginx"));
        assert_eq!(one.page(), other.page());
        assert_ne!((one.status, one.config), (other.status, other.config));
    }
}
