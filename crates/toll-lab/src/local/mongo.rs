//! What the lab knows of servers of MongoDB's wire protocol: what each is started with.
//!
//! `mongod`: <https://www.mongodb.com/docs/manual/reference/program/mongod/>. All it has is its default but for what
//! the lab needs: a fresh data directory, TLS with client certificates, and no socket in /tmp.

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::Path;

use crate::data_plane::ExternalFiles;

/// What `mongod` is started with, whose certificate is that of `host`.
pub(super) fn arguments(
    at: SocketAddrV4,
    data: &Path,
    files: &ExternalFiles,
    host: &str,
) -> Vec<OsString> {
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
pub(super) fn stand_in_arguments(
    at: SocketAddrV4,
    files: &ExternalFiles,
    host: &str,
) -> Vec<OsString> {
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
