//! What the lab knows of servers of MongoDB's wire protocol: what each is started with.
//!
//! `mongod`: <https://www.mongodb.com/docs/manual/reference/program/mongod/>. All it has is its default but for what
//! the lab needs: a fresh data directory, TLS with client certificates, and no socket in /tmp.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;

use crate::LabError;
use crate::artifacts::{Artifact, Artifacts};
use crate::certificates::external::ExternalFiles;
use crate::deployment::Compilers;
use crate::host::error::HostError;
use crate::host::spawn::Start;
use crate::programs::jvm::{Jvm, Size};
use crate::topology::Site;

/// No command is shorter: an OP_MSG of one section whose document names a command and a database, as in
/// <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>.
pub(super) const LEAST_OF_A_COMMAND: u64 = 26 + 12 + 11;

/// Heap of the stand-in, MiB: all that is booked in an hour is in it.
const STAND_IN_HEAP_MIB: u32 = 1024;

/// `mongod` on a fresh data directory, which goes with the environment's folder; the stand-in where there is none.
///
/// # Errors
/// When neither is there, or the directory cannot be made.
pub(super) fn start(site: &Site<'_>, artifacts: &Artifacts) -> Result<Start, LabError> {
    let external = site.service.external.as_ref();
    let not_external = || LabError::NotExternal { service: site.service.name.clone() };
    let host = &external.ok_or_else(not_external)?.host;
    let (at, files) = (site.listens_at(), ExternalFiles::new(site.dir));
    if let Some(mongod) = artifacts.get(Artifact::Mongod) {
        let data = site.data_folder();
        fs::create_dir(&data).map_err(|source| HostError::Write { path: data.clone(), source })?;
        let mut command = Command::new(mongod);
        command.args(arguments(at, &data, &files, host));
        return Ok(Start::new(mongod.to_owned(), command));
    }
    let jar = artifacts.path(Artifact::MongoStandIn)?;
    let size = Size { heap_mib: STAND_IN_HEAP_MIB, compilers: Compilers::First };
    let jvm = Jvm { jar, size, archive: true };
    let mut start = jvm.start(artifacts.path(Artifact::Java)?, site.dir);
    start.command.args(stand_in_arguments(at, &files, host));
    Ok(start)
}

/// What `mongod` is started with, whose certificate is that of `host`.
fn arguments(at: SocketAddrV4, data: &Path, files: &ExternalFiles, host: &str) -> Vec<OsString> {
    let words = [
        ("--dbpath", data.into()),
        ("--bind_ip", at.ip().to_string().into()),
        ("--port", at.port().to_string().into()),
        ("--tlsMode", "requireTLS".into()),
        ("--tlsCertificateKeyFile", files.identity(host).into()),
        // With an authority it asks every client for a certificate, and refuses those without.
        ("--tlsCAFile", files.authority().into()),
        // Every five minutes it would write what counts as an operation of the services.
        ("--setParameter", "disableLogicalSessionCacheRefresh=true".into()),
    ];
    flags(words).chain(["--nounixsocket".into()]).collect()
}

/// What the stand-in's jar is given.
fn stand_in_arguments(at: SocketAddrV4, files: &ExternalFiles, host: &str) -> Vec<OsString> {
    let words = [
        ("--listen", at.to_string().into()),
        ("--certificate", files.chain(host).into()),
        ("--key", files.key(host).into()),
        ("--authority", files.authority().into()),
    ];
    flags(words).collect()
}

fn flags<const N: usize>(words: [(&str, OsString); N]) -> impl Iterator<Item = OsString> {
    words.into_iter().flat_map(|(flag, value)| [flag.into(), value])
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const AT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 27017);

    const HOST: &str = "db.airline.example";

    fn files() -> (&'static Path, ExternalFiles) {
        let folder = Path::new("/run/toll/lab");
        (folder, ExternalFiles::new(folder))
    }

    fn lines(arguments: &[OsString]) -> String {
        let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        words.join("\n")
    }

    #[test]
    fn mongod_demands_tls_and_the_certificates_of_its_clients() {
        let (folder, files) = files();
        insta::assert_snapshot!(lines(&arguments(AT, &folder.join("db4/data"), &files, HOST)));
    }

    #[test]
    fn the_stand_in_is_told_where_to_listen_and_who_it_is() {
        insta::assert_snapshot!(lines(&stand_in_arguments(AT, &files().1, HOST)));
    }
}
