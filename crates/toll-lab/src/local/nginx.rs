//! Turns an nginx of the deployment into its configuration and its page. Starts nothing.
//!
//! As a container of the official image has it, but for three things: one process instead of a master and a
//! worker, no access log, and no bound on the requests of a connection. Beside the port of the service stands a
//! Unix socket that only the lab knows, where it says how many requests it got:
//! <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>.

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use crate::deployment::Nginx;

/// Where the files of one nginx are, below the environment's folder.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// Its configuration.
    pub(super) config: PathBuf,
    /// Where it tells how many requests it got.
    pub(super) status: PathBuf,
    /// Holds the page, one for all pods of a service.
    pub(super) root: PathBuf,
    /// What nginx makes when it starts, of which nothing is used: all pods share it.
    temporary: PathBuf,
    pid: PathBuf,
}

impl Files {
    pub(super) fn new(folder: &Path, pod: &str, service: &str) -> Self {
        let nginx = folder.join("nginx");
        Self {
            config: folder.join(config_name(pod)),
            status: folder.join(format!("{pod}.status.sock")),
            root: nginx.join(service),
            pid: nginx.join(format!("{pod}.pid")),
            temporary: nginx,
        }
    }

    /// The page.
    pub(super) fn page(&self) -> PathBuf {
        self.root.join(PAGE)
    }

    /// What nginx is started with. Without `-e` it would look for its log of the start where its build says.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let prefix = self.temporary.join("");
        ["-e".into(), "stderr".into(), "-p".into(), prefix.into(), "-c".into()]
            .into_iter()
            .chain([self.config.clone().into()])
            .collect()
    }
}

const PAGE: &str = "index.html";

/// Name of the file that holds [`config`].
pub(super) fn config_name(pod: &str) -> String {
    format!("{pod}.nginx.conf")
}

/// The whole configuration of the nginx that listens at `address`.
///
/// The socket for the lab comes first: nginx opens them in order, and who finds the port open finds it, too.
pub(super) fn config(files: &Files, address: SocketAddrV4) -> String {
    let status = quoted(&format!("unix:{}", files.status.display()));
    let (root, pid) = (quoted_path(&files.root), quoted_path(&files.pid));
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("    {what}_temp_path {};\n", quoted_path(&files.temporary.join(what))))
        .concat();
    format!(
        "daemon off;
master_process off;
worker_processes 1;
# Where the caller is root, nginx would give its folders to a user whom a user namespace does not have.
user root;
pid {pid};
error_log stderr;

events {{
    worker_connections 1024;
}}

http {{
    types {{
        text/html html;
    }}
    access_log off;
    sendfile on;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
{temporary}
    server {{
        listen {status};
        location / {{
            stub_status;
        }}
    }}

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
pub(super) fn page(nginx: Nginx) -> String {
    const LINE: &str = "A static page of toll's, as long as the study wants it.\n";
    LINE.chars().cycle().take(nginx.bytes).collect()
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// As one word of nginx's configuration, whatever is in it; but `$`, for which it has no escape.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_configuration_of_an_nginx() {
        let files = Files::new(Path::new("/run/toll/lab"), "nginx-2", "nginx");
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 80);
        insta::assert_snapshot!(config(&files, address));
    }

    #[test]
    fn the_page_has_exactly_the_bytes_that_the_study_wants() {
        for bytes in [0, 1, 615, 100_000] {
            assert_eq!(page(Nginx { bytes }).len(), bytes);
        }
    }

    #[test]
    fn pods_of_a_service_share_the_page_and_nothing_that_they_listen_on() {
        let [one, other] =
            ["nginx-1", "nginx-2"].map(|pod| Files::new(Path::new("x"), pod, "nginx"));
        assert_eq!(one.page(), other.page());
        assert_ne!((one.status, one.config), (other.status, other.config));
    }

    #[test]
    fn a_folder_with_blanks_and_quotes_is_one_word() {
        assert_eq!(quoted("/tmp/a \"b\""), r#""/tmp/a \"b\"""#);
    }
}
