//! Finds nginx, and checks that it can count what it answers. Fetches nothing: the system's packages bring one.

use std::path::PathBuf;

use super::error::MissingPart;
use super::{Part, PartError, Source, Surroundings, is_executable, named, part, said_by};

/// As `toll doctor` says it.
pub(super) const WANTED: &str = "1.19.5 or later";

/// Before it, the log of the start could not be sent anywhere else.
const OLDEST: [u32; 3] = [1, 19, 5];

/// What makes it tell how many requests it got.
const MODULE: &str = "http_stub_status_module";

/// Looks for the variable's, on `PATH`, then where the system's packages put it.
///
/// # Errors
/// See [`super::nginx`].
pub(super) fn find(around: &Surroundings) -> Result<Part, PartError> {
    if let Some(path) = &around.nginx {
        return inspect(named("NGINX", path)?, Source::Environment);
    }
    if let Some(path) = around.on_path("nginx") {
        return inspect(path, Source::Path);
    }
    // Users who are not root seldom have it on `PATH`.
    let path = around.system_programs.join("nginx");
    match is_executable(&path) {
        true => inspect(path, Source::System),
        false => Err(PartError::Missing { part: MissingPart::Nginx }),
    }
}

fn inspect(path: PathBuf, source: Source) -> Result<Part, PartError> {
    let said = said_by(&path, "-V")?;
    let Some(version) = version_in(&said) else {
        return Err(PartError::NotThePart { path, part: "nginx" });
    };
    if numbers(&version) < OLDEST.to_vec() {
        let oldest = OLDEST.map(|number| number.to_string()).join(".");
        return Err(PartError::TooOld { path, version, oldest });
    }
    if !said.contains(&format!("--with-{MODULE}")) {
        return Err(PartError::LacksModule { path, module: MODULE });
    }
    part(path, version, source)
}

/// The version in `nginx version: nginx/1.22.1`; others put a name behind it.
fn version_in(said: &str) -> Option<String> {
    let (_, version) = said.split_once("nginx version: nginx/")?;
    version.split_whitespace().next().map(str::to_owned)
}

fn numbers(version: &str) -> Vec<u32> {
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

    #[test]
    fn the_version_of_a_distribution_is_without_the_distributions_name() {
        let said = "nginx version: nginx/1.24.0 (Ubuntu)\nbuilt with OpenSSL 3.0.13\n";
        assert_eq!(version_in(said).as_deref(), Some("1.24.0"));
    }
}
