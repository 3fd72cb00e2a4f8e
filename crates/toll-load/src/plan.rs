//! What to send, at what instants, for how long. Pure data; the wire form is JSON.

use serde::{Deserialize, Serialize};

/// Everything the engine needs for one trial's load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// Where the requests go.
    pub target: Target,
    /// How requests are released.
    pub model: LoadModel,
    /// The phase before the measured one.
    pub warm_up: WarmUp,
    /// When the measured phase ends.
    pub stop: Stop,
    /// A request without an answer after this many milliseconds is an error of kind `timeout`.
    pub timeout_ms: u64,
    /// Seed of every random choice (Poisson gaps).
    pub seed: u64,
}

/// One HTTP/1.1 request, sent again and again over kept-alive connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// `http://host:port/path`.
    pub url: String,
    /// Method, `GET` when absent.
    #[serde(default = "get")]
    pub method: String,
    /// Further headers, in order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Request body, empty when absent.
    #[serde(default)]
    pub body: String,
}

fn get() -> String {
    "GET".into()
}

/// How requests are released.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadModel {
    /// N connections; on each the next request waits for the answer to the last.
    Closed {
        /// Connections, each with one request in flight.
        connections: u32,
    },
    /// An arrival schedule that does not wait for answers.
    Open {
        /// When requests are due.
        arrivals: Arrivals,
        /// Bound on connections, and so on outstanding requests.
        max_connections: u32,
    },
}

/// The law of the intended send times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// Evenly spaced.
    Constant {
        /// Arrivals per second.
        rate_per_s: f64,
    },
    /// Exponential gaps (a Poisson process), from the plan's seed.
    Poisson {
        /// Mean arrivals per second.
        rate_per_s: f64,
    },
}

/// Warm-up ends when the series is stable, at the latest after `max_s`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// Never shorter than this, seconds.
    pub min_s: f64,
    /// Never longer than this, seconds.
    pub max_s: f64,
}

/// When the measured phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stop {
    /// After this many seconds.
    AfterSeconds(f64),
    /// After this many requests were released.
    AfterRequests(u64),
}
