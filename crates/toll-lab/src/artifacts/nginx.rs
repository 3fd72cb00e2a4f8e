//! Finds nginx, and checks that it can count what it answers and, where it is to be an SNI proxy, read names in TLS.
//! Fetches nothing: the system's packages bring one.

use std::path::{Path, PathBuf};

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Found, Source};
use super::surroundings::{Surroundings, is_executable, said_by};

/// As `toll doctor` says it.
pub(super) const WANTED: &str = "1.19.5 or later";

/// Before it, the log of the start could not be sent anywhere else.
const OLDEST: [u32; 3] = [1, 19, 5];

/// What makes it tell how many requests it got.
const MODULE: &str = "http_stub_status_module";

/// What lets it pass connections on, and the module's file where it is not built in.
const STREAM: (&str, &str) = ("stream", "ngx_stream_module.so");

/// What lets it read the name in the first bytes of TLS, as part of the former.
const PREREAD: &str = "stream_ssl_preread_module";

/// As [`find`], and it can be an SNI proxy: it has the module `stream`, built in or as a file, and in it `ssl_preread`.
///
/// # Errors
/// When there is none, or it lacks that.
pub(super) fn find_sni_proxy(around: &Surroundings) -> Result<Found, ArtifactError> {
    let found = find(around)?;
    stream_module(&found.path)?;
    Ok(found)
}

/// The file of the module by which `nginx` passes connections on and reads names in TLS; none where that is built in.
///
/// # Errors
/// When it cannot.
pub(crate) fn stream_module(nginx: &Path) -> Result<Option<PathBuf>, ArtifactError> {
    let lacks = |module| ArtifactError::LacksModule { path: nginx.to_owned(), module };
    match stream_in(&said_by(nginx, "-V")?).map_err(lacks)? {
        Some(module) if !module.is_file() => {
            Err(ArtifactError::LacksFile { path: nginx.to_owned(), module })
        }
        module => Ok(module),
    }
}

/// The file of that module according to its configure arguments; else the module that they lack.
fn stream_in(said: &str) -> Result<Option<PathBuf>, &'static str> {
    let arguments = || said.split_whitespace();
    let has = |option: &str| arguments().any(|argument| argument == option);
    let value = |option: &str| arguments().find_map(|argument| argument.strip_prefix(option));
    if !has(&format!("--with-{PREREAD}")) {
        return Err(PREREAD);
    }
    let (module, file) = STREAM;
    if has(&format!("--with-{module}")) {
        return Ok(None);
    }
    let modules = value("--modules-path=").map(PathBuf::from);
    let modules = modules.or_else(|| Some(Path::new(value("--prefix=")?).join("modules")));
    match modules {
        Some(modules) if has(&format!("--with-{module}=dynamic")) => Ok(Some(modules.join(file))),
        _ => Err(module),
    }
}

/// Looks for the variable's, on `PATH`, then where the system's packages put it.
///
/// # Errors
/// When there is none, it is too old, or it cannot count its requests.
pub(super) fn find(around: &Surroundings) -> Result<Found, ArtifactError> {
    if let Some(path) = around.named_program(Artifact::Nginx)? {
        return inspect(path, Source::Environment);
    }
    if let Some(path) = around.on_path("nginx") {
        return inspect(path, Source::Path);
    }
    // Users who are not root seldom have it on `PATH`.
    let path = around.system_programs.join("nginx");
    match is_executable(&path) {
        true => inspect(path, Source::System),
        false => Err(ArtifactError::Missing(Artifact::Nginx)),
    }
}

fn inspect(path: PathBuf, source: Source) -> Result<Found, ArtifactError> {
    let said = said_by(&path, "-V")?;
    let Some(version) = version_in(&said) else {
        return Err(ArtifactError::NotTheProgram { path, what: "nginx" });
    };
    if numbers(&version) < OLDEST.to_vec() {
        let oldest = OLDEST.map(|number| number.to_string()).join(".");
        return Err(ArtifactError::TooOld { path, version, oldest });
    }
    if !said.contains(&format!("--with-{MODULE}")) {
        return Err(ArtifactError::LacksModule { path, module: MODULE });
    }
    Found::new(path, version, source)
}

/// The version in `nginx version: nginx/1.22.1`; others put a name behind it.
fn version_in(said: &str) -> Option<String> {
    let (_, version) = said.split_once("nginx version: nginx/")?;
    version.split_whitespace().next().map(str::to_owned)
}

/// The numbers of a version.
pub(super) fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_number_by_number() {
        assert!(numbers("1.9.15") < numbers("1.19.5"));
        assert!(numbers("1.22.1") > OLDEST.to_vec());
    }

    const DEBIAN: &str = "configure arguments: --with-cc-opt='-g -O2' --modules-path=/usr/lib/nginx/modules \
                          --with-stream_ssl_module --with-stream_ssl_preread_module --with-stream=dynamic";

    #[test]
    fn a_module_of_its_own_is_where_the_modules_are() {
        let module = "/usr/lib/nginx/modules/ngx_stream_module.so".into();
        assert_eq!(stream_in(DEBIAN), Ok(Some(module)));
        let by_prefix =
            DEBIAN.replace("--modules-path=/usr/lib/nginx/modules", "--prefix=/opt/nginx");
        let module = "/opt/nginx/modules/ngx_stream_module.so".into();
        assert_eq!(stream_in(&by_prefix), Ok(Some(module)));
    }

    #[test]
    fn what_is_built_in_needs_no_module() {
        let official = DEBIAN.replace("--with-stream=dynamic", "--with-stream");
        assert_eq!(stream_in(&official), Ok(None));
    }

    #[test]
    fn without_the_stream_module_or_its_part_that_reads_names_there_is_none() {
        assert_eq!(stream_in(&DEBIAN.replace("--with-stream=dynamic", "")), Err("stream"));
        let blind = DEBIAN.replace("--with-stream_ssl_preread_module", "");
        assert_eq!(stream_in(&blind), Err("stream_ssl_preread_module"));
    }

    #[test]
    fn the_version_of_a_distribution_is_without_the_distributions_name() {
        let said = "nginx version: nginx/1.24.0 (Ubuntu)\nbuilt with OpenSSL 3.0.13\n";
        assert_eq!(version_in(said).as_deref(), Some("1.24.0"));
    }
}
