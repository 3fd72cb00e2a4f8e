//! What all configurations of nginx have in common, whatever it is there for.

use std::ffi::OsString;
use std::path::Path;

/// What nginx is started with. Without `-e` it would look for its log of the start where its build says.
pub(crate) fn arguments(prefix: &Path, config: &Path) -> Vec<OsString> {
    let prefix = prefix.join("");
    ["-e".into(), "stderr".into(), "-p".into(), prefix.into(), "-c".into(), config.into()].into()
}

/// One process that does not leave, for the whole of a configuration.
pub(crate) fn process(pid: &Path, connections: u32) -> String {
    let pid = quoted_path(pid);
    format!(
        "daemon off;
master_process off;
worker_processes 1;
# Where the caller is root, nginx would give its folders to a user whom a user namespace does not have.
user root;
pid {pid};
error_log stderr;

events {{
    worker_connections {connections};
}}
"
    )
}

/// Folders that nginx makes when it starts, of which nothing is used, below this one.
pub(crate) fn temporary_paths(folder: &Path) -> String {
    ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("    {what}_temp_path {};\n", quoted_path(&folder.join(what))))
        .concat()
}

/// Where it tells what it has counted: a socket that only the lab knows.
pub(crate) fn status_server(socket: &Path) -> String {
    status_server_at(&quoted(&format!("unix:{}", socket.display())))
}

/// The same, on a port.
pub(crate) fn status_server_at(listen: &str) -> String {
    format!(
        "    server {{
        listen {listen};
        location / {{
            stub_status;
        }}
    }}
"
    )
}

pub(crate) fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// As one word of nginx's configuration, whatever is in it; but `$`, for which it has no escape.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_blanks_and_quotes_is_one_word() {
        assert_eq!(quoted("/tmp/a \"b\""), r#""/tmp/a \"b\"""#);
    }
}
