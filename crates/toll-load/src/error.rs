//! Why a load could not be run at all. A request that fails is no error here: it is counted in the report.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use nix::errno::Errno;

/// What kept the engine from running a plan.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Standard input could not be read.
    #[error("cannot read the load plan")]
    PlanUnreadable(#[source] io::Error),
    /// What came in on standard input is not a plan.
    #[error("the load plan is not valid: {0}")]
    PlanInvalid(#[source] serde_json::Error),
    /// The target's URL cannot be used.
    #[error("cannot use the url `{url}`: {problem}")]
    BadUrl {
        /// As written in the plan.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The method is not a token of HTTP.
    #[error("cannot use `{method}` as a method: it must consist of letters")]
    BadMethod {
        /// As written in the plan.
        method: String,
    },
    /// A header cannot be sent.
    #[error("cannot send the header `{name}`: {problem}")]
    BadHeader {
        /// The header's name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Double braces hold something unknown.
    #[error("there is no placeholder `{{{{{placeholder}}}}}`")]
    UnknownPlaceholder {
        /// What stands between the braces.
        placeholder: String,
        /// The placeholder that was most likely meant.
        nearest: Option<String>,
    },
    /// Double braces are opened and not closed.
    #[error("the placeholder `{{{{{begin}` is not closed")]
    UnclosedPlaceholder {
        /// What follows the braces.
        begin: String,
    },
    /// A random number is asked for from a range that is none.
    #[error("cannot draw `{{{{{placeholder}}}}}`: {problem}")]
    BadRange {
        /// What stands between the braces.
        placeholder: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A template names a column that the rows lack.
    #[error("there is no column `{column}`")]
    UnknownColumn {
        /// As written in the template.
        column: String,
        /// Those that there are.
        columns: Vec<String>,
        /// The column that was most likely meant.
        nearest: Option<String>,
    },
    /// A template takes a value from rows and there are none.
    #[error("`{{{{csv.{column}}}}}` needs rows, and there are none")]
    NoRows {
        /// The column that the template names.
        column: String,
    },
    /// A row has more or fewer values than there are columns.
    #[error("row {row} has {values} values for {columns} columns")]
    RowLength {
        /// Counted from one, without a line of names.
        row: usize,
        /// Values in it.
        values: usize,
        /// Columns of the plan.
        columns: usize,
    },
    /// A value cannot stand where a template puts it.
    #[error("the value of column `{column}` in row {row} {problem}")]
    BadCell {
        /// The column's name.
        column: String,
        /// Counted from one, without a line of names.
        row: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A template's body is not text.
    #[error("a body that is not text cannot hold placeholders")]
    BinaryTemplate,
    /// The arrival rate is out of range.
    #[error("an arrival rate of {rate_per_s} per second is out of range")]
    BadRate {
        /// As written in the plan.
        rate_per_s: f64,
    },
    /// The number of clients is out of range.
    #[error("{clients} clients are out of range")]
    BadClients {
        /// As written in the plan.
        clients: f64,
    },
    /// A profile without a stage.
    #[error("{field} has no stages")]
    NoStage {
        /// The plan's field.
        field: &'static str,
    },
    /// A profile under which nothing would ever be sent.
    #[error("{field} is zero in every stage")]
    AlwaysZero {
        /// The plan's field.
        field: &'static str,
    },
    /// Each event loop needs a connection.
    #[error("{connections} connections are too few for {loops} event loops")]
    FewerConnectionsThanLoops {
        /// Bound of the plan.
        connections: u32,
        /// Event loops of all parts.
        loops: u32,
    },
    /// A duration is out of range.
    #[error("{field} of {seconds} s is out of range")]
    BadDuration {
        /// The plan's field.
        field: &'static str,
        /// As written in the plan, seconds.
        seconds: f64,
    },
    /// The shortest warm-up is longer than the longest.
    #[error("warm_up.min_s of {min_s} s is more than warm_up.max_s of {max_s} s")]
    WarmUpBounds {
        /// As written in the plan, seconds.
        min_s: f64,
        /// As written in the plan, seconds.
        max_s: f64,
    },
    /// A number that must be at least one is zero.
    #[error("{field} is zero")]
    Zero {
        /// The plan's field.
        field: &'static str,
    },
    /// The host's name has no address.
    #[error("cannot find an address of `{host}`")]
    Resolve {
        /// The host as written in the URL.
        host: String,
        /// What the resolver said; nothing when it gave an empty answer.
        source: Option<io::Error>,
    },
    /// Not one connection could be made.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The last address tried.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Not one connection to a Unix socket could be made.
    #[error("cannot connect to {path}: {source}", path = path.display())]
    ConnectUnix {
        /// As in the plan.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// All local ports are taken.
    #[error("cannot connect to {address}: no local port is free")]
    NoFreePort {
        /// The address of the target.
        address: SocketAddr,
    },
    /// A local address cannot be bound to.
    #[error("cannot use the local address {address}: {reason}", reason = errno.desc())]
    LocalAddress {
        /// As in the plan.
        address: IpAddr,
        /// What the kernel said.
        errno: Errno,
    },
    /// The local addresses are IPv4 and the target's IPv6, or the other way round.
    #[error("no local address can reach an address of `{host}`")]
    NoLocalAddress {
        /// The host as written in the URL.
        host: String,
    },
    /// A text of the plan that must be PEM is not.
    #[error("cannot read {field}: {source}")]
    BadPem {
        /// The plan's field.
        field: &'static str,
        /// What is wrong with it.
        source: rustls_pki_types::pem::Error,
    },
    /// A certificate or a key of the plan cannot be used.
    #[error("cannot use {field}: {source}")]
    BadCertificate {
        /// The plan's field.
        field: &'static str,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// The system trusts nobody.
    #[error("cannot find the certificates that this system trusts")]
    NoSystemRoots,
    /// A name that no certificate can carry.
    #[error("cannot verify a certificate for the name `{name}`")]
    BadServerName {
        /// The host of the URL, or the plan's server name.
        name: String,
    },
    /// Nobody who is trusted has signed the certificate.
    #[error("the certificate of {host} does not verify: unknown issuer")]
    CertificateUnknownIssuer {
        /// The host as written in the URL.
        host: String,
    },
    /// The certificate is another's.
    #[error("the certificate of {host} does not verify: it is not valid for the name `{name}`")]
    CertificateWrongName {
        /// The host as written in the URL.
        host: String,
        /// The name asked for.
        name: String,
    },
    /// The certificate's time is over.
    #[error("the certificate of {host} does not verify: it has expired")]
    CertificateExpired {
        /// The host as written in the URL.
        host: String,
    },
    /// The certificate does not verify for another reason.
    #[error("the certificate of {host} does not verify: {reason}")]
    CertificateUnusable {
        /// The host as written in the URL.
        host: String,
        /// The reason.
        reason: rustls::CertificateError,
    },
    /// The server wants to know who its client is.
    #[error("{host} requires a certificate of its clients")]
    ClientCertificateRequired {
        /// The host as written in the URL.
        host: String,
    },
    /// The server does not accept the plan's identity.
    #[error("{host} does not accept the client's certificate: {alert}")]
    ClientCertificateRefused {
        /// The host as written in the URL.
        host: String,
        /// The server's reason, a TLS alert.
        alert: String,
    },
    /// The server speaks another protocol.
    #[error("{host} does not offer {protocol} over TLS")]
    Alpn {
        /// The host as written in the URL.
        host: String,
        /// What was asked for.
        protocol: &'static str,
    },
    /// The server does not want a TLS connection.
    #[error("{host} refused the TLS handshake: {alert}")]
    TlsRefused {
        /// The host as written in the URL.
        host: String,
        /// The server's reason, a TLS alert.
        alert: String,
    },
    /// The server does not speak TLS.
    #[error("what {host} speaks on port {port} is not TLS")]
    NotTls {
        /// The host as written in the URL.
        host: String,
        /// The port as written in the URL.
        port: u16,
    },
    /// The server speaks TLS wrongly.
    #[error("the TLS handshake with {host} failed: {source}")]
    TlsBroken {
        /// The host as written in the URL.
        host: String,
        /// What was wrong.
        source: rustls::Error,
    },
    /// The server has closed the connection.
    #[error("{host} closed the connection on port {port} during the TLS handshake")]
    TlsClosed {
        /// The host as written in the URL.
        host: String,
        /// The port as written in the URL.
        port: u16,
    },
    /// The server says nothing.
    #[error("{host} does not answer the TLS handshake on port {port}")]
    TlsSilent {
        /// The host as written in the URL.
        host: String,
        /// The port as written in the URL.
        port: u16,
    },
    /// The process may not open as many sockets as the plan asks for.
    #[error("cannot open {needed} files: the limit is {limit}")]
    OpenFileLimit {
        /// Files that the plan needs, sockets and the engine's own.
        needed: u64,
        /// The hard limit of this process.
        limit: u64,
    },
    /// The kernel refused something that the engine cannot do without.
    #[error("{call} failed: {errno}")]
    Kernel {
        /// The system call.
        call: &'static str,
        /// What it returned.
        errno: Errno,
    },
    /// The agreed instant has passed before the engine was ready.
    #[error("the instant to start at has passed")]
    StartIsPast,
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The caller, or whoever read the events, wanted no more.
    #[error("the load was stopped before its end")]
    Stopped,
}

impl LoadError {
    /// What the user can do about it, when there is something to say.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            LoadError::PlanUnreadable(_) | LoadError::PlanInvalid(_) => {
                "write JSON load plans to standard input, one after the other".into()
            }
            LoadError::BadUrl { .. } => {
                "write it as http://host:port/path or https://host:port/path".into()
            }
            LoadError::BadMethod { .. } => "use GET, HEAD, POST, PUT, PATCH or DELETE".into(),
            LoadError::BadHeader { .. } => "leave the header out or correct it".into(),
            LoadError::UnknownPlaceholder { nearest, .. } => {
                let all = "there are counter, random, random.LOW.HIGH and csv.COLUMN; \
                           set template to false to send braces as they are";
                did_you_mean(nearest.as_ref().map(|name| format!("{{{{{name}}}}}")), all)
            }
            LoadError::UnclosedPlaceholder { .. } => {
                "close it with }}, or set template to false to send braces as they are".into()
            }
            LoadError::BadRange { .. } => {
                "write {{random.LOW.HIGH}} with two integers, the lower one first".into()
            }
            LoadError::UnknownColumn { columns, nearest, .. } => {
                did_you_mean(nearest.clone(), &format!("the columns are {}", columns.join(", ")))
            }
            LoadError::NoRows { .. } => "give at least one row of values".into(),
            LoadError::RowLength { .. } => "give each row one value for each column".into(),
            LoadError::BadCell { .. } => "correct the value, or leave the row out".into(),
            LoadError::BinaryTemplate => "set template to false for this target".into(),
            LoadError::BadRate { .. } => {
                "choose a rate between 0.000001 and 10000000 per second; a ramp may also begin or end at 0".into()
            }
            LoadError::BadClients { .. } => "choose a number between 0 and 1000000".into(),
            LoadError::NoStage { field } => format!("give {field} at least one stage"),
            LoadError::AlwaysZero { field } => {
                format!("give {field} at least one stage that is not zero")
            }
            LoadError::FewerConnectionsThanLoops { .. } => {
                "allow more connections, or use fewer threads or parts".into()
            }
            LoadError::BadDuration { .. } => {
                "choose a duration between 0 and 604800 seconds".into()
            }
            LoadError::WarmUpBounds { .. } => "make warm_up.max_s the larger one".into(),
            LoadError::Zero { field } => format!("set {field} to 1 or more"),
            LoadError::Resolve { host, .. } => {
                format!("check the spelling of `{host}`, or use an IP address")
            }
            LoadError::Connect { address, .. } => format!(
                "check that the service runs and listens on {address}, and that this process may reach it"
            ),
            LoadError::ConnectUnix { path, .. } => format!(
                "check that the service runs and listens on {}, and that this user may write to it",
                path.display()
            ),
            LoadError::NoFreePort { .. } => {
                "keep connections alive, use fewer of them, or give more local addresses".into()
            }
            LoadError::LocalAddress { .. } => {
                "use an address of this machine; `ip address` lists them".into()
            }
            LoadError::NoLocalAddress { .. } => {
                "give local addresses of the target's kind, IPv4 or IPv6".into()
            }
            LoadError::BadPem { .. }
            | LoadError::BadCertificate { .. }
            | LoadError::NoSystemRoots
            | LoadError::BadServerName { .. }
            | LoadError::CertificateUnknownIssuer { .. }
            | LoadError::CertificateWrongName { .. }
            | LoadError::CertificateExpired { .. }
            | LoadError::CertificateUnusable { .. }
            | LoadError::ClientCertificateRequired { .. }
            | LoadError::ClientCertificateRefused { .. }
            | LoadError::Alpn { .. }
            | LoadError::TlsRefused { .. }
            | LoadError::NotTls { .. }
            | LoadError::TlsBroken { .. }
            | LoadError::TlsSilent { .. }
            | LoadError::TlsClosed { .. } => return self.help_with_tls().map(String::from),
            LoadError::OpenFileLimit { needed, .. } => {
                format!("use fewer connections, or raise the limit: ulimit -n {needed}")
            }
            LoadError::StartIsPast => {
                "agree on a later instant, a few seconds after the last engine is started".into()
            }
            LoadError::Thread(_) | LoadError::Kernel { .. } | LoadError::Stopped => return None,
        })
    }

    fn help_with_tls(&self) -> Option<&'static str> {
        Some(match self {
            LoadError::BadPem { .. } | LoadError::BadCertificate { .. } => {
                "give PEM files: certificates, the own one first, and the key that belongs to it"
            }
            LoadError::NoSystemRoots => {
                "install the package ca-certificates, or give the server's CA with --cacert FILE"
            }
            LoadError::BadServerName { .. } => {
                "give a DNS name or an IP address as the server's name"
            }
            LoadError::CertificateUnknownIssuer { .. } => {
                "give its CA with --cacert FILE, or accept any with --insecure"
            }
            LoadError::CertificateWrongName { .. } => {
                "give a name that stands on it with --server-name NAME, or accept any with --insecure"
            }
            LoadError::CertificateExpired { .. } | LoadError::CertificateUnusable { .. } => {
                "give the server a new one, or accept any with --insecure"
            }
            LoadError::ClientCertificateRequired { .. } => {
                "give one with --cert FILE and --key FILE"
            }
            LoadError::ClientCertificateRefused { .. } => {
                "give one that the server's own CA has signed, with --cert FILE and --key FILE"
            }
            LoadError::Alpn { .. } => "choose the other HTTP version, or switch this one on there",
            LoadError::NotTls { .. }
            | LoadError::TlsSilent { .. }
            | LoadError::TlsClosed { .. } => {
                "write the url with http://, or use the port where the server speaks TLS"
            }
            LoadError::TlsRefused { .. } => {
                "look into the server's log: its TLS versions, ciphers or names differ"
            }
            _ => return None,
        })
    }
}

fn did_you_mean(nearest: Option<String>, all: &str) -> String {
    nearest.map_or(all.into(), |name| format!("did you mean `{name}`? {all}"))
}

/// Names the system call in an error of the kernel.
pub(crate) fn kernel(call: &'static str) -> impl Fn(Errno) -> LoadError {
    move |errno| LoadError::Kernel { call, errno }
}
