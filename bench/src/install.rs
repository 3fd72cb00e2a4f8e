//! Finds the clients and nginx, or fetches them from a registry: Debian packages by apt, oha by cargo, the Go
//! tools by go. Versions are pinned where the registry keeps old ones. What cannot be had is a reason, not an
//! error.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use etcetera::base_strategy::{BaseStrategy as _, Xdg};

use crate::peers::Client;

/// A program that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

/// A program, or why it is not there.
pub(crate) type Found = Result<Program, String>;

/// Everything that was looked for.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) clients: BTreeMap<Client, Found>,
    pub(crate) nginx: Found,
}

impl Programs {
    /// Finds or fetches what `clients` need; `toll` is the command to be compared with them.
    pub(crate) fn gather(clients: &[Client], toll: &Path) -> Programs {
        let found = |client: &Client| (*client, source(*client, toll).obtain(client.name()));
        Programs {
            clients: clients.iter().map(found).collect(),
            nginx: Source::Debian { package: "nginx-light", version_flag: "-v" }.obtain("nginx"),
        }
    }
}

/// Where a program comes from.
enum Source<'a> {
    Built(&'a Path),
    Debian {
        package: &'static str,
        version_flag: &'static str,
    },
    Cargo {
        version: &'static str,
    },
    Go {
        module: &'static str,
        version: &'static str,
    },
    /// A module that replaces others, which `go install` refuses: built as the dependency of an empty one.
    GoBuild {
        module: &'static str,
        version: &'static str,
    },
}

fn source(client: Client, toll: &Path) -> Source<'_> {
    match client {
        Client::Toll | Client::TollSpin => Source::Built(toll),
        Client::Wrk => Source::Debian { package: "wrk", version_flag: "-v" },
        Client::H2load => Source::Debian { package: "nghttp2-client", version_flag: "--version" },
        Client::Oha => Source::Cargo { version: "1.16.0" },
        Client::Fortio => Source::Go { module: "fortio.org/fortio", version: "1.68.0" },
        Client::Hey => Source::Go { module: "github.com/rakyll/hey", version: "0.1.4" },
        Client::Vegeta => {
            Source::GoBuild { module: "github.com/tsenart/vegeta/v12", version: "12.12.0" }
        }
        Client::K6 => Source::Go { module: "go.k6.io/k6", version: "1.8.1" },
    }
}

impl Source<'_> {
    fn obtain(&self, name: &str) -> Found {
        match *self {
            Source::Built(path) => built(path),
            Source::Debian { package, version_flag } => {
                let path = on_path(name).map_or_else(|| apt_install(name, package), Ok)?;
                let version = printed_version(&path, version_flag);
                Ok(Program { path, version })
            }
            Source::Cargo { version } => cached(name, version, |root| {
                let mut command = Command::new("cargo");
                command.args(["install", name, "--version", version, "--locked", "--root"]);
                command.arg(root);
                command
            }),
            Source::Go { module, version } => cached(name, version, |root| {
                let mut command = Command::new("go");
                command.arg("install").arg(format!("{module}@v{version}"));
                command.env("GOBIN", root.join("bin"));
                command
            }),
            Source::GoBuild { module, version } => cached(name, version, |root| {
                // Where this fails, go says that there is no go.mod.
                let _ = fs::create_dir_all(root).and_then(|()| {
                    let text = format!("module bench\n\nrequire {module} v{version}\n");
                    fs::write(root.join("go.mod"), text)
                });
                let mut command = Command::new("go");
                command.args(["build", "-mod=mod", "-o"]).arg(root.join("bin").join(name));
                command.arg(module).current_dir(root);
                command
            }),
        }
    }
}

fn built(path: &Path) -> Found {
    let path = path
        .canonicalize()
        .map_err(|_| format!("{} is missing: cargo build --release --bin toll", path.display()))?;
    Ok(Program { version: printed_version(&path, "--version"), path })
}

/// A program in the user's cache, in a directory of its own for each version.
fn cached(name: &str, version: &str, install: impl Fn(&Path) -> Command) -> Found {
    let home = Xdg::new().map_err(|error| error.to_string())?;
    let root = home.cache_dir().join("toll/bench").join(format!("{name}-{version}"));
    let path = root.join("bin").join(name);
    if !path.exists() {
        run(name, install(&root))?;
    }
    Ok(Program { path, version: version.to_owned() })
}

fn apt_install(name: &str, package: &str) -> Result<PathBuf, String> {
    if !nix::unistd::geteuid().is_root() || on_path("apt-get").is_none() {
        return Err(format!("sudo apt-get install {package}"));
    }
    let mut command = Command::new("apt-get");
    command.args(["install", "-y", "-qq", "--no-install-recommends", package]);
    // A package must not start its service: invoke-rc.d(8) starts none in runlevel 1.
    command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    run(name, command)?;
    on_path(name).ok_or_else(|| format!("package {package} brought no {name}"))
}

fn run(name: &str, mut command: Command) -> Result<(), String> {
    crate::say(&format!("installing {name}: {command:?}"));
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", stderr.trim().lines().last().unwrap_or("failed")))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // nginx lives where only root's PATH leads.
    let directories = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    directories.map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}

fn printed_version(path: &Path, flag: &str) -> String {
    let Ok(output) = Command::new(path).arg(flag).stdin(Stdio::null()).output() else {
        return String::new();
    };
    let text = [output.stdout, output.stderr].concat();
    version_in(&String::from_utf8_lossy(&text)).unwrap_or_default()
}

/// The first number with a dot in it: `h2load nghttp2/1.52.0` -> `1.52.0`.
fn version_in(text: &str) -> Option<String> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print_of_themselves() {
        let printed = [
            ("wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer", "4.1.0"),
            ("h2load nghttp2/1.52.0", "1.52.0"),
            ("nginx version: nginx/1.22.1", "1.22.1"),
            ("toll 0.1.0", "0.1.0"),
        ];
        for (text, version) in printed {
            assert_eq!(version_in(text).as_deref(), Some(version));
        }
        assert_eq!(version_in("h2load"), None);
    }

    #[test]
    fn a_command_that_was_not_built_is_a_reason() {
        let reason = built(Path::new("/nowhere/toll")).unwrap_err();
        assert!(reason.contains("cargo build"), "{reason}");
    }

    #[test]
    fn a_failed_installation_says_the_last_line() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo 'no such package' >&2; exit 1"]);
        assert_eq!(run("x", command).unwrap_err(), "sh: no such package");
    }
}
