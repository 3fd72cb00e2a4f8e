//! Turns a JSON file into what the service is to play. Says where the file is wrong; opens nothing else.

use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::str::FromStr;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use hyper::http::uri::Authority;
use serde::de::{self, Deserialize as _, DeserializeOwned, Deserializer};

use crate::error::Error;
use crate::planted::Planted;
use crate::stall::Stall;

/// What the built-in service is to play.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Name of the service in the application graph.
    pub(crate) name: String,
    /// Where to listen; port 0 takes any free one.
    pub(crate) listen: SocketAddr,
    /// The services to call once for each request, in order.
    pub(crate) calls: Vec<Call>,
    /// An HTTP proxy that all calls go through, asked in the absolute form for the host of each call.
    #[serde(default)]
    pub(crate) http_proxy: Option<SocketAddr>,
    /// CPU time to burn for each request, microseconds.
    pub(crate) work_us: u64,
    /// Size of the answer's body.
    pub(crate) reply_bytes: usize,
    /// Status of the answer.
    #[serde(deserialize_with = "final_status")]
    pub(crate) status: StatusCode,
    /// Whether to answer what the last of `calls` answered, instead of a body and status of its own.
    #[serde(default)]
    pub(crate) relay: bool,
    /// Asked after the calls; its answer is the service's.
    #[serde(default)]
    pub(crate) database: Option<Database>,
    /// A known-answer fault.
    #[serde(default)]
    pub(crate) stall: Option<Stall>,
    /// Effects of known size.
    #[serde(default)]
    pub(crate) planted: Planted,
}

/// A service to call.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// Name of the service in the application graph.
    pub(crate) service: String,
    /// Where to connect to, in turn: at least one.
    #[serde(deserialize_with = "some_addresses")]
    pub(crate) addresses: Vec<Authority>,
    /// What to ask for in the Host header.
    #[serde(deserialize_with = "from_text")]
    pub(crate) host: HeaderValue,
}

/// A PostgreSQL database that asks for no password, and what to ask it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Database {
    /// Name of the database server in the application graph.
    pub(crate) service: String,
    /// Where to connect to.
    pub(crate) address: SocketAddr,
    /// Role to connect as.
    pub(crate) user: String,
    /// Name of the database on its server.
    pub(crate) database: String,
    /// The most connections at a time.
    pub(crate) connections: NonZeroUsize,
    /// SQL without parameters for each GET and HEAD.
    pub(crate) read: String,
    /// SQL for each POST, whose body is its one parameter, a text.
    #[serde(default)]
    pub(crate) write: Option<String>,
}

/// Reads the JSON file at `path`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    parse(path, &text_of(path)?)
}

pub(crate) fn text_of(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::ConfigUnreadable { path: path.into(), source })
}

pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|source| Error::ConfigInvalid { path: path.into(), source })
}

pub(crate) fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|why| de::Error::custom(format_args!("`{text}`: {why}")))
}

pub(crate) fn some_addresses<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Authority>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    if texts.is_empty() {
        return Err(de::Error::custom("a call needs at least one address"));
    }
    let parse = |text: &String| {
        text.parse().map_err(|why| de::Error::custom(format_args!("`{text}`: {why}")))
    };
    texts.iter().map(parse).collect()
}

fn final_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StatusCode, D::Error> {
    let code = u16::deserialize(deserializer)?;
    let status = StatusCode::from_u16(code).ok().filter(|status| status.as_u16() >= 200);
    status.ok_or_else(|| {
        de::Error::custom(format_args!("status {code} cannot end an answer (200 to 999)"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn valid() -> Value {
        json!({
            "name": "client", "listen": "127.0.0.1:9000",
            "calls": [{"service": "server", "addresses": ["server:9999"], "host": "server:9999"}],
            "http_proxy": "127.0.0.1:30101",
            "work_us": 300, "reply_bytes": 5, "status": 200, "relay": true,
            "database": {
                "service": "postgres", "address": "10.77.0.6:5432", "user": "toll",
                "database": "toll", "connections": 16, "read": "SELECT 1", "write": "SELECT $1",
            },
            "stall": {"every_ms": 1000, "lasting_ms": 100},
        })
    }

    fn complaint(pointer: &str, wrong: Value) -> String {
        let mut config = valid();
        *config.pointer_mut(pointer).unwrap() = wrong;
        serde_json::from_value::<Config>(config).unwrap_err().to_string()
    }

    #[test]
    fn a_valid_configuration_is_taken_with_and_without_what_is_optional() {
        let mut config = valid();
        let whole: Config = serde_json::from_value(config.clone()).unwrap();
        assert!(whole.relay && whole.database.unwrap().write.is_some() && whole.stall.is_some());

        let keys = config.as_object_mut().unwrap();
        keys["database"].as_object_mut().unwrap().remove("write");
        keys.retain(|key, _| !["relay", "stall", "http_proxy"].contains(&key.as_str()));
        let lean: Config = serde_json::from_value(config.clone()).unwrap();
        assert!(
            !lean.relay
                && lean.http_proxy.is_none()
                && lean.database.unwrap().write.is_none()
                && lean.stall.is_none()
        );

        config.as_object_mut().unwrap().remove("database");
        assert!(serde_json::from_value::<Config>(config).unwrap().database.is_none());
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let mut config = valid();
        config["work_ms"] = json!(1);
        let why = serde_json::from_value::<Config>(config).unwrap_err().to_string();
        assert!(why.contains("unknown field `work_ms`"), "{why}");
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        let why = complaint("/calls/0/addresses/0", json!("not an address"));
        assert!(why.contains("`not an address`"), "{why}");
    }

    #[test]
    fn a_call_without_addresses_is_refused() {
        let why = complaint("/calls/0/addresses", json!([]));
        assert!(why.contains("a call needs at least one address"), "{why}");
    }

    #[test]
    fn a_pool_without_connections_is_refused() {
        let why = complaint("/database/connections", json!(0));
        assert!(why.contains("nonzero"), "{why}");
    }

    #[test]
    fn a_status_that_does_not_end_an_answer_is_refused() {
        let why = complaint("/status", json!(100));
        assert!(why.contains("status 100 cannot end an answer"), "{why}");
    }

    #[test]
    fn a_stall_without_end_is_refused() {
        let why = complaint("/stall", json!({"every_ms": 100, "lasting_ms": 100}));
        assert!(why.contains("a stall of 100 ms every 100 ms never ends"), "{why}");
    }
}
