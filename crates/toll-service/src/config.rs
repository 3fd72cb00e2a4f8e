//! Turns a JSON file into what the service is to play. Says where the file is wrong; opens nothing else.

use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use hyper::http::uri::Authority;
use serde::de::{self, Deserialize as _, Deserializer};

use crate::error::Error;
use crate::stall::Stall;

/// What the service is to play.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Name of the service in the application graph.
    pub(crate) name: String,
    /// Where to listen; port 0 takes any free one.
    pub(crate) listen: SocketAddr,
    /// The services to call once for each request, in order.
    pub(crate) calls: Vec<Call>,
    /// CPU time to burn for each request, microseconds.
    pub(crate) work_us: u64,
    /// Size of the answer's body.
    pub(crate) reply_bytes: usize,
    /// Status of the answer.
    #[serde(deserialize_with = "final_status")]
    pub(crate) status: StatusCode,
    /// A known-answer fault.
    #[serde(default)]
    pub(crate) stall: Option<Stall>,
}

/// A service to call.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// Name of the service in the application graph.
    pub(crate) service: String,
    /// Where to connect to.
    #[serde(deserialize_with = "from_text")]
    pub(crate) address: Authority,
    /// What to ask for in the Host header.
    #[serde(deserialize_with = "from_text")]
    pub(crate) host: HeaderValue,
}

impl Config {
    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path)
            .map_err(|source| Error::ConfigUnreadable { path: path.into(), source })?;
        serde_json::from_str(&text)
            .map_err(|source| Error::ConfigInvalid { path: path.into(), source })
    }
}

fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|why| de::Error::custom(format_args!("`{text}`: {why}")))
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
            "calls": [{"service": "server", "address": "server:9999", "host": "server:9999"}],
            "work_us": 300, "reply_bytes": 5, "status": 200,
            "stall": {"every_ms": 1000, "lasting_ms": 100},
        })
    }

    fn complaint(pointer: &str, wrong: Value) -> String {
        let mut config = valid();
        *config.pointer_mut(pointer).unwrap() = wrong;
        serde_json::from_value::<Config>(config).unwrap_err().to_string()
    }

    #[test]
    fn a_valid_configuration_is_taken_with_and_without_a_stall() {
        let mut config = valid();
        assert!(serde_json::from_value::<Config>(config.clone()).unwrap().stall.is_some());
        config.as_object_mut().unwrap().remove("stall");
        assert!(serde_json::from_value::<Config>(config).unwrap().stall.is_none());
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
        let why = complaint("/calls/0/address", json!("not an address"));
        assert!(why.contains("`not an address`"), "{why}");
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
