//! Turns JSON into the part of the airline that the program is to play, and into the stand of its database.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use hyper::header::HeaderValue;
use hyper::http::uri::Authority;
use serde::de::{Deserialize, Deserializer, Error as _};

use crate::config;

/// A part of the airline.
#[derive(Debug, serde::Deserialize)]
#[serde(try_from = "Written")]
pub(crate) struct Config {
    /// Name of the service in the application graph.
    pub(crate) name: String,
    /// Where to listen; port 0 takes any free one.
    pub(crate) listen: SocketAddr,
    /// CPU time to burn for each request.
    pub(super) work: Duration,
    pub(super) calls: Vec<config::Call>,
    pub(super) role: Role<Database>,
}

/// What a part does, with the places of its neighbours among the calls.
#[derive(Debug)]
pub(super) enum Role<D> {
    Web { flights: usize, bookings: usize, customers: usize },
    Flights(D),
    Bookings { customers: usize, flights: usize, database: D },
    Customers(D),
}

impl<D> Role<D> {
    /// The database of the part that has one.
    pub(super) fn database(&self) -> Option<&D> {
        match self {
            Self::Web { .. } => None,
            Self::Flights(database)
            | Self::Bookings { database, .. }
            | Self::Customers(database) => Some(database),
        }
    }
}

/// The parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Web,
    Flights,
    Bookings,
    Customers,
}

/// An external database that is spoken to over TLS and demands a certificate.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Database {
    /// Name of the database server in the application graph.
    pub(super) service: String,
    /// What it speaks.
    pub(super) kind: Kind,
    /// Its DNS name: sent as SNI and verified.
    pub(super) host: String,
    /// Where it is. MongoDB's driver takes the port alone and looks the host up itself.
    pub(super) address: SocketAddr,
    /// The most connections at a time.
    pub(super) connections: NonZeroUsize,
    /// PEM file of the authority that vouches for it.
    pub(super) authority: PathBuf,
    /// PEM file of the certificate to show, with its chain.
    pub(super) certificate: PathBuf,
    /// PEM file of the certificate's key.
    pub(super) key: PathBuf,
    /// Both in one file, as MongoDB's driver wants them.
    #[cfg_attr(
        not(feature = "mongodb"),
        expect(dead_code, reason = "MongoDB's driver alone reads it")
    )]
    pub(super) identity: PathBuf,
}

/// The databases that the airline can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// MongoDB, or a server of its wire protocol.
    MongoDb,
    /// PostgreSQL from version 17 on, which speaks TLS from the first byte on.
    Postgres,
}

/// The database, and what is to be in it at first.
///
/// `deny_unknown_fields` cannot look into what is flattened; what is missing is still refused.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Stand {
    pub(super) database: Database,
    #[serde(flatten)]
    pub(super) inventory: Inventory,
}

/// The database alone; what else is in the file is left unread.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Looked {
    pub(super) database: Database,
}

/// How much the airline begins with.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
pub(super) struct Inventory {
    #[serde(deserialize_with = "some")]
    pub(super) flights: i32,
    /// Of each flight.
    #[serde(deserialize_with = "some")]
    pub(super) seats: i32,
    #[serde(deserialize_with = "some")]
    pub(super) customers: i32,
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let number = i32::deserialize(deserializer)?;
    if number < 1 {
        return Err(D::Error::custom("an airline has at least one flight, seat and customer"));
    }
    Ok(number)
}

/// A configuration as written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    listen: SocketAddr,
    work_us: u64,
    calls: Vec<Call>,
    airline: Airline,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    service: String,
    part: Part,
    #[serde(deserialize_with = "config::some_addresses")]
    addresses: Vec<Authority>,
    #[serde(deserialize_with = "config::from_text")]
    host: HeaderValue,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Airline {
    part: Part,
    #[serde(default)]
    database: Option<Database>,
}

/// Why a part cannot be played as written.
#[derive(Debug, thiserror::Error)]
enum Unplayable {
    #[error("the part {0:?} calls the part {1:?}, which is not among its calls")]
    NoCall(Part, Part),
    #[error("the part {0:?} needs a database")]
    NoDatabase(Part),
    #[error("the part Web has no database")]
    DatabaseOfWeb,
}

impl TryFrom<Written> for Config {
    type Error = Unplayable;

    fn try_from(written: Written) -> Result<Self, Unplayable> {
        let role = role(written.airline, &written.calls)?;
        Ok(Self {
            name: written.name,
            listen: written.listen,
            work: Duration::from_micros(written.work_us),
            calls: written.calls.into_iter().map(config::Call::from).collect(),
            role,
        })
    }
}

impl From<Call> for config::Call {
    fn from(Call { service, addresses, host, .. }: Call) -> Self {
        Self { service, addresses, host }
    }
}

fn role(airline: Airline, calls: &[Call]) -> Result<Role<Database>, Unplayable> {
    let index = |called| {
        let index = calls.iter().position(|call| call.part == called);
        index.ok_or(Unplayable::NoCall(airline.part, called))
    };
    let database = airline.database.ok_or(Unplayable::NoDatabase(airline.part));
    Ok(match airline.part {
        Part::Web if database.is_ok() => return Err(Unplayable::DatabaseOfWeb),
        Part::Web => Role::Web {
            flights: index(Part::Flights)?,
            bookings: index(Part::Bookings)?,
            customers: index(Part::Customers)?,
        },
        Part::Flights => Role::Flights(database?),
        Part::Bookings => Role::Bookings {
            customers: index(Part::Customers)?,
            flights: index(Part::Flights)?,
            database: database?,
        },
        Part::Customers => Role::Customers(database?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn call(part: &str) -> Value {
        json!({"service": part, "part": part, "addresses": ["127.0.0.1:80"], "host": part})
    }

    fn written(part: &str, calls: &[&str], database: bool) -> Value {
        let database = database.then(|| {
            json!({
                "service": "airline-db", "kind": "postgres", "host": "localhost",
                "address": "127.0.0.1:5432", "connections": 2, "authority": "/ca",
                "certificate": "/c", "key": "/k", "identity": "/i",
            })
        });
        json!({
            "name": part, "listen": "127.0.0.1:0", "work_us": 300,
            "calls": calls.iter().map(|part| call(part)).collect::<Vec<_>>(),
            "airline": {"part": part, "database": database},
        })
    }

    fn read(part: &str, calls: &[&str], database: bool) -> Result<Config, String> {
        serde_json::from_value(written(part, calls, database)).map_err(|why| why.to_string())
    }

    #[test]
    fn neighbours_are_found_by_part_in_whatever_order_they_are_written() {
        let config = read("web", &["customers", "flights", "bookings"], false).unwrap();
        let Role::Web { flights, bookings, customers } = config.role else { panic!("{config:?}") };
        assert_eq!((customers, flights, bookings), (0, 1, 2));
        assert_eq!(config.work, Duration::from_micros(300));
    }

    #[test]
    fn a_part_without_a_neighbour_that_it_calls_is_refused() {
        let why = read("bookings", &["customers"], true).unwrap_err();
        assert_eq!(why, "the part Bookings calls the part Flights, which is not among its calls");
    }

    #[test]
    fn all_parts_but_web_have_a_database() {
        for part in ["flights", "customers"] {
            assert!(read(part, &[], true).is_ok());
            assert!(read(part, &[], false).unwrap_err().ends_with("needs a database"));
        }
        let why = read("web", &["customers", "flights", "bookings"], true).unwrap_err();
        assert_eq!(why, "the part Web has no database");
    }

    #[test]
    fn an_airline_without_flights_seats_or_customers_is_refused() {
        for missing in ["flights", "seats", "customers"] {
            let mut stand = json!({"flights": 1, "seats": 1, "customers": 1});
            assert!(serde_json::from_value::<Inventory>(stand.clone()).is_ok());
            stand[missing] = json!(0);
            let why = serde_json::from_value::<Inventory>(stand).unwrap_err().to_string();
            assert_eq!(why, "an airline has at least one flight, seat and customer");
        }
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let mut config = written("flights", &[], true);
        config["airline"]["database"]["retries"] = json!(1);
        let why = serde_json::from_value::<Config>(config).unwrap_err().to_string();
        assert!(why.contains("unknown field `retries`"), "{why}");
    }
}
