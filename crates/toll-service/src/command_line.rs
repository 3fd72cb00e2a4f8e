//! Turns arguments into what the program is to do.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery};
use rustls::pki_types::ServerName;

const EXAMPLES: &str = r#"Examples:
  toll-service --config client.json
  toll-service probe --connect 10.77.0.2:9000 --header 'x-toll-probe: 1'
  toll-service query --socket /run/postgresql --user postgres --database postgres 'SELECT 1'

A configuration (addresses are called in turn; relay, database, its write, stall and planted are optional; relay answers
what the last call answered; the stall answers nothing for the first 100 ms of each second; what is planted costs each
request so many rounds of computing and so long a sleep, makes one request in 100 late, and holds memory;
"http_proxy": "127.0.0.1:30101" would send all calls through that proxy, which is asked for the host of each):
  {"name": "name", "listen": "10.77.0.2:8083",
   "calls": [{"service": "audit", "addresses": ["10.77.0.3:8084"], "host": "audit:8084"}],
   "work_us": 300, "reply_bytes": 5, "status": 200, "relay": false,
   "database": {"service": "postgres", "address": "10.77.0.6:5432", "user": "toll", "database": "toll",
                "connections": 16, "read": "SELECT id, name FROM customers WHERE id = 1",
                "write": "INSERT INTO customers (document) VALUES ($1::text::json)"},
   "stall": {"every_ms": 1000, "lasting_ms": 100},
   "planted": {"iterations": 1000, "sleep_us": 50, "late": {"one_in": 100, "by_ms": 20}, "ballast_bytes": 10485760}}

A part of the airline (web calls flights, bookings and customers and has no database; bookings calls customers and
flights; kind: mongo_db or postgres; identity: certificate and key in one file):
  {"name": "bookings", "listen": "10.77.0.4:8080", "work_us": 0,
   "calls": [{"service": "customers", "part": "customers", "addresses": ["10.77.0.5:8080"], "host": "customers:8080"},
             {"service": "flights", "part": "flights", "addresses": ["10.77.0.3:8080"], "host": "flights:8080"}],
   "airline": {"part": "bookings", "database": {
     "service": "airline-db", "kind": "mongo_db", "host": "db.airline.example", "address": "10.77.0.6:27017",
     "connections": 16, "authority": "external/ca.crt", "certificate": "external/bookings.crt",
     "key": "external/bookings.key", "identity": "external/bookings.identity.pem"}}}

The registry that Mesher asks for its services:
  {"listen": "10.77.0.1:30100", "registry": {"instances": {"server": ["rest://10.77.0.3:30101"]}}}"#;

const PROBE_EXAMPLES: &str = r#"Examples:
  toll-service probe --connect 10.77.0.2:9000 --header 'x-toll-probe: 1'
  toll-service probe --connect 10.77.0.3:15006 --host server:9999 --timeout-ms 500
  toll-service probe --connect 127.0.0.1:30101 --through-proxy --host server:9999
  toll-service probe --connect 10.77.0.6:5432 --speak postgres
  toll-service probe --connect 10.77.0.2:15008 --connect 10.77.0.3:15008 --speak tls
  toll-service probe --connect 10.77.0.6:27017 --speak tls --server-name db.airline.example \
    --authority ca.crt --certificate flights.crt --key flights.key

Prints one line for each --connect, in the same order:
  {"outcome":"answered","status":200,"headers":{"content-length":"5"},"body":"hello"}
  {"outcome":"answered","body":"N"}
  {"outcome":"refused","message":"connection refused"}
  {"outcome":"established","server":"<SHA-256 of its certificate>","protocol":"TLSv1.3"}
  {"outcome":"untrusted","message":"certificate expired"}
Outcomes: answered, established, untrusted, refused, reset, closed, timeout, unreachable, garbled. All of them exit
with 0. `untrusted` is for what the probe itself has against the server's certificate: certificate expired,
certificate not valid yet, certificate of another name, unknown issuer, or another reason in full."#;

const QUERY_EXAMPLES: &str = r#"Example:
  toll-service query --socket /run/postgresql --user postgres --database toll \
    'CREATE TABLE customers (id int, name text)' "SELECT 1, 'abc', NULL"

Prints one line, the rows of the last statement, all values as texts:
  {"rows":[["1","abc",null]]}"#;

const SCRAPE_EXAMPLES: &str = r#"Example:
  toll-service scrape <<'END'
  {"targets": [{"pod": "vets", "address": "10.77.0.3:9080", "path": "/metrics", "series": ["jvm_threads_current"]}]}
  now
  END

The first line of stdin names the targets; each line after it, whatever it says, asks all of them once and is answered
with one line, in the order of the targets:
  [{"pod":"vets","at_ns":123,"series":{"value":{"jvm_threads_current":18.0}}}]
  [{"pod":"vets","at_ns":456,"series":{"missing":"it answered 503 Service Unavailable"}}]
`at_ns` is CLOCK_MONOTONIC when the target was asked. Ends with stdin."#;

const AIRLINE_EXAMPLES: &str = r#"A configuration (kind: mongo_db or postgres; look needs the database alone):
  {"database": {"service": "airline-db", "kind": "mongo_db", "host": "db.airline.example", "address": "10.77.0.6:27017",
                "connections": 16, "authority": "external/ca.crt", "certificate": "external/toll.crt",
                "key": "external/toll.key", "identity": "external/toll.identity.pem"},
   "flights": 200, "seats": 1000000, "customers": 1000}

`look` prints:
  {"server":"PostgreSQL 17.11","operations":null,"own_operations":null,"bookings":12,"keys":12,"seats_taken":12,"clients":null}
Bookings and different keys are without those that `fill` made. Of MongoDB, `operations` are queries, inserts, updates
and deletes from the server's start to this look, and `own_operations` are those that the look itself added."#;

/// Plays a node of an application graph over HTTP/1.1
#[derive(Debug, Parser)]
#[command(name = "toll-service", version, after_help = EXAMPLES)]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    serve: Option<Serve>,
    #[command(subcommand)]
    other: Option<Other>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// What to play, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Other {
    /// Sends one plain HTTP/1.1 GET to each address and tells how it ended, as one line of JSON
    #[command(after_help = PROBE_EXAMPLES)]
    Probe(Probe),
    /// Runs SQL in turn over a PostgreSQL server's Unix socket
    #[command(after_help = QUERY_EXAMPLES)]
    Query(Query),
    /// Fills the airline's database, or tells what is in it
    #[command(subcommand, after_help = AIRLINE_EXAMPLES)]
    Airline(AirlineCommand),
    /// Reads series from Prometheus text endpoints each time a line comes in
    #[command(after_help = SCRAPE_EXAMPLES)]
    Scrape,
}

#[derive(Debug, Args)]
pub(crate) struct Probe {
    /// Where to connect to; may be given more than once, then all are asked at the same time
    #[arg(long, value_name = "ADDRESS:PORT", required = true, value_parser = address_with_port)]
    pub(crate) connect: Vec<Authority>,
    /// Instead of the GET: a PostgreSQL client's question for TLS, which is answered with one byte, or TLS without a
    /// certificate and in it the beginning of HTTP/2
    #[arg(long, value_enum, default_value_t = Speak::Http)]
    pub(crate) speak: Speak,
    /// Host header, if it is not the address
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<HeaderValue>,
    /// Whether the address is an HTTP proxy, which is asked in the absolute form for what the Host header names
    #[arg(long, requires = "host")]
    pub(crate) through_proxy: bool,
    /// What to ask for
    #[arg(long, default_value = "/")]
    pub(crate) path: PathAndQuery,
    /// How long to wait for the whole answer, in milliseconds
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = milliseconds)]
    pub(crate) timeout_ms: Duration,
    /// Another header; may be given more than once
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// With --speak tls: no HTTP/2 but a whole handshake with the server of this name, to the point where it has
    /// taken the certificate that it was shown, or not
    #[arg(long, value_name = "HOST", requires = "speak", value_parser = server_name)]
    pub(crate) server_name: Option<ServerName<'static>>,
    /// PEM of the certificates that vouch for the server; without it any server is taken for the right one
    #[arg(long, value_name = "FILE", requires = "server_name")]
    pub(crate) authority: Option<PathBuf>,
    /// PEM of the certificate to show, and its chain
    #[arg(long, value_name = "FILE", requires = "key", requires = "server_name")]
    pub(crate) certificate: Option<PathBuf>,
    /// PEM of the certificate's key
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Protocol to offer inside of TLS, for instance `postgresql`; may be given more than once
    #[arg(long, value_name = "NAME", requires = "server_name")]
    pub(crate) alpn: Vec<String>,
}

/// What to do with the airline's database.
#[derive(Debug, Subcommand)]
pub(crate) enum AirlineCommand {
    /// Makes its tables or collections anew, with all that the airline begins with
    Fill {
        /// The database and what is to be in it, as JSON
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Prints what is in it, and what the server did, as one line of JSON
    Look {
        /// The database, as JSON; the file of `fill` will do
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// The protocol of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speak {
    Http,
    Postgres,
    Tls,
}

#[derive(Debug, Args)]
pub(crate) struct Query {
    /// Folder of the server's socket
    #[arg(long, value_name = "DIR")]
    pub(crate) socket: PathBuf,
    /// Port that the socket's name ends with
    #[arg(long, default_value_t = 5432)]
    pub(crate) port: u16,
    /// Role to connect as
    #[arg(long)]
    pub(crate) user: String,
    /// Database to connect to
    #[arg(long)]
    pub(crate) database: String,
    /// What to run; one text may hold several statements, which are then one transaction
    #[arg(required = true, allow_hyphen_values = true)]
    pub(crate) sql: Vec<String>,
}

/// What the program is to do.
pub(crate) enum Command {
    Serve(Serve),
    Probe(Probe),
    Query(Query),
    Airline(AirlineCommand),
    Scrape,
}

impl CommandLine {
    pub(crate) fn into_command(self) -> Command {
        match self.other {
            Some(Other::Probe(probe)) => Command::Probe(probe),
            Some(Other::Query(query)) => Command::Query(query),
            Some(Other::Airline(command)) => Command::Airline(command),
            Some(Other::Scrape) => Command::Scrape,
            None => Command::Serve(self.serve.expect("--config is required without a subcommand")),
        }
    }
}

fn address_with_port(text: &str) -> Result<Authority, String> {
    let address: Authority = text.parse().map_err(|why| format!("{why}"))?;
    match address.port_u16() {
        Some(_) => Ok(address),
        None => Err("the port is missing".into()),
    }
}

fn server_name(text: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(text.to_owned()).map_err(|why| why.to_string())
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written `name: value`")?;
    let name = name.trim().parse().map_err(|why| format!("{why}"))?;
    let value = value.trim().parse().map_err(|why| format!("{why}"))?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn the_configuration_in_the_help_is_valid() {
        let start = EXAMPLES.find("  {\"name\"").unwrap();
        let end = EXAMPLES.find("\n\nA part of the airline").unwrap();
        serde_json::from_str::<crate::config::Config>(&EXAMPLES[start..end]).unwrap();
        let start = end + EXAMPLES[end..].find("  {\"name\"").unwrap();
        let end = EXAMPLES.find("\n\nThe registry").unwrap();
        serde_json::from_str::<crate::airline::Config>(&EXAMPLES[start..end]).unwrap();
        let start = end + EXAMPLES[end..].find("  {\"listen\"").unwrap();
        serde_json::from_str::<crate::registry::Config>(&EXAMPLES[start..]).unwrap();
    }

    #[test]
    fn the_stand_of_the_airline_in_the_help_is_valid() {
        let start = AIRLINE_EXAMPLES.find("  {\"database\"").unwrap();
        let end = AIRLINE_EXAMPLES.find("\n\n`look`").unwrap();
        serde_json::from_str::<crate::airline::Stand>(&AIRLINE_EXAMPLES[start..end]).unwrap();
    }

    #[test]
    fn the_targets_in_the_help_are_valid() {
        let line = SCRAPE_EXAMPLES.lines().find(|line| line.contains("targets\":")).unwrap();
        serde_json::from_str::<crate::scrape::Targets>(line).unwrap();
    }

    #[test]
    fn sql_may_begin_with_a_comment() {
        let sql = "-- the seed\nSELECT 1";
        let line =
            ["toll-service", "query", "--socket", "/s", "--user", "u", "--database", "d", sql];
        let Command::Query(query) = CommandLine::try_parse_from(line).unwrap().into_command()
        else {
            panic!("no query")
        };
        assert_eq!((query.sql, query.port), (vec![sql.to_owned()], 5432));
    }

    #[test]
    fn a_probe_without_an_address_is_refused() {
        let line = ["toll-service", "probe", "--speak", "tls"];
        assert!(CommandLine::try_parse_from(line).is_err());
    }

    #[test]
    fn a_header_is_split_at_its_first_colon() {
        let (name, value) = header("X-Where: http://server:80").unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-where", &b"http://server:80"[..]));
    }

    #[test]
    fn an_address_without_a_port_is_refused() {
        assert_eq!(address_with_port("10.77.0.2").unwrap_err(), "the port is missing");
        assert_eq!(address_with_port("server:80").unwrap().port_u16(), Some(80));
    }
}
