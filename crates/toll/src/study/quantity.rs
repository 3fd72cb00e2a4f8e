//! Turns the short texts of a study file (`300us`, `5%`, `50% of capacity`) into quantities, and back.
//!
//! Each type states its own form in its JSON schema: `title` is what a message calls it,
//! `examples` are what a message shows, and `format` is what [`fits`] checks.

use std::borrow::Borrow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::environment;

/// A text that is not the quantity it should be; the schema's examples show what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub struct NotA(&'static str);

/// A length of time, written as a number and a unit: `300us`, `100ms`, `2s`, `5m`.
///
/// Whole microseconds; never negative.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(title = "duration", extend(
    "format" = TimeSpan::FORMAT, "pattern" = "^[0-9]+(\\.[0-9]+)? *(us|ms|s|m)$",
    "examples" = ["2s", "100ms", "300us", "5m"]
))]
pub struct TimeSpan(Duration);

/// A name that the user chose: small letters, digits and inner dashes, at most 40 of them.
///
/// Names become parts of directories, host names and SPIFFE IDs, hence the narrow alphabet.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(title = "name", extend(
    "format" = Name::FORMAT, "pattern" = "^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$",
    "examples" = ["client", "same-rate"]
))]
pub struct Name(String);

/// A path on a server and its query, from the slash on, in the letters that a URL may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(title = "path of a URL", extend(
    "format" = UrlPath::FORMAT, "pattern" = "^/[!-~]*$",
    "examples" = ["/", "/api/customer?limit=10"]
))]
pub struct UrlPath(String);

/// A Prometheus text endpoint in a pod: `http://localhost:PORT/path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(title = "endpoint of metrics", extend(
    "format" = Metrics::FORMAT, "pattern" = "^http://localhost:[0-9]+/[!-~]*$",
    "examples" = ["http://localhost:9404/metrics"]
))]
pub struct Metrics {
    /// TCP port.
    pub port: u16,
    /// From the slash on.
    pub path: String,
}

/// A published number, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("minimum" = 0, "examples" = [17.702]))]
pub struct Amount(f64);

/// A part of a whole, from 0 % to 100 %, written as `5%`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(title = "percentage", extend(
    "format" = Share::FORMAT, "pattern" = "^[0-9]+(\\.[0-9]+)? *%$", "examples" = ["5%", "0.5%"]
))]
pub struct Share(f64);

/// An arrival rate as written: absolute, or relative to what the slowest variant can take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RateAsWritten", into = "String")]
#[schemars(try_from = "String", title = "arrival rate", extend(
    "type" = ["string", "number"], "format" = Rate::FORMAT,
    "pattern" = "^[0-9]+(\\.[0-9]+)? *(/s|% *of *capacity)$", "exclusiveMinimum" = 0,
    "examples" = ["50% of capacity", "500/s", 500]
))]
pub enum Rate {
    /// Arrivals per second, above 0.
    PerSecond(f64),
    /// A share of the capacity, above 0 %: what the slowest variant carries flat out.
    OfCapacity(Share),
}

/// The two YAML types that a rate may have.
#[derive(Deserialize)]
#[serde(untagged)]
enum RateAsWritten {
    Number(f64),
    Text(String),
}

/// A program that the user may have; its path usually comes from an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(title = "path of a program", extend(
    "format" = Binary::FORMAT, "minLength" = 1,
    "examples" = ["/opt/mesher/mesher", "${MESHER_BIN}"]
))]
pub enum Binary {
    /// Where it is.
    Path(PathBuf),
    /// Nowhere, because this environment variable is not set.
    NotSet {
        /// Name of the variable.
        variable: String,
    },
}

/// The value of another program's setting: text, a number or a truth value, handed on as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "SettingAsWritten", into = "String")]
#[schemars(from = "String", title = "setting", extend(
    "type" = ["string", "number", "boolean"], "examples" = ["none", false, 500]
))]
pub struct Setting(String);

impl Setting {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The YAML types that a setting may have.
#[derive(Deserialize)]
#[serde(untagged)]
enum SettingAsWritten {
    Switch(bool),
    Number(serde_json::Number),
    Text(String),
}

/// Whether the text has the form that the schema's `format` names; any text has a foreign one.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        TimeSpan::FORMAT => text.parse::<TimeSpan>().is_ok(),
        Name::FORMAT => text.parse::<Name>().is_ok(),
        UrlPath::FORMAT => text.parse::<UrlPath>().is_ok(),
        Metrics::FORMAT => text.parse::<Metrics>().is_ok(),
        Share::FORMAT => text.parse::<Share>().is_ok(),
        Rate::FORMAT => text.parse::<Rate>().is_ok(),
        _ => true,
    }
}

/// Whether it is a DNS name of several labels, in small letters: one label would be a service of the application.
pub(super) fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let ends = !label.starts_with('-') && !label.ends_with('-');
        (1..=63).contains(&label.len()) && ends && label.bytes().all(inner)
    };
    text.len() <= 253 && text.contains('.') && text.split('.').all(is_label)
}

/// Whether it is a DNS name, or `*.` and one, which stands for all names below it.
pub(super) fn is_host_pattern(text: &str) -> bool {
    is_host(text.strip_prefix("*.").unwrap_or(text))
}

/// Whether the pattern stands for the host.
pub(super) fn lets_out(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => pattern == host,
    }
}

/// A number without sign and exponent, as people write one.
fn plain_number(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse::<f64>().ok().filter(|number| plain && number.is_finite())
}

impl TimeSpan {
    const FORMAT: &str = "toll-duration";
    /// Unit and its microseconds, the largest first.
    const UNITS: [(&str, u64); 4] = [("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];
    /// A year: far above any use, far below the limits of the arithmetic.
    const LONGEST_US: f64 = 365.0 * 86_400e6;

    /// The span of so many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(Duration::from_micros(micros))
    }

    /// The span of so many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The span of so many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The span as the standard library has it.
    pub const fn get(self) -> Duration {
        self.0
    }

    /// Whether it has no length.
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl FromStr for TimeSpan {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let wrong = NotA("a duration");
        let digits = text.find(|c: char| c.is_ascii_alphabetic() || c == ' ').ok_or(wrong)?;
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start();
        let (_, scale) = Self::UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(wrong)?;
        let micros = plain_number(number).ok_or(wrong)? * scale as f64;
        let whole = (micros - micros.round()).abs() < 1e-6 && micros <= Self::LONGEST_US;
        if whole { Ok(Self::from_micros(micros.round() as u64)) } else { Err(wrong) }
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        let fitting = |(_, scale): &(&str, u64)| micros.is_multiple_of(u128::from(*scale));
        let (unit, scale) = match micros {
            0 => ("s", 1),
            _ => Self::UNITS.into_iter().find(fitting).unwrap_or(("us", 1)),
        };
        write!(f, "{}{unit}", micros / u128::from(scale))
    }
}

impl Name {
    pub(super) const FORMAT: &str = "toll-name";
    const LONGEST: usize = 40;

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let dashed_end = text.starts_with('-') || text.ends_with('-');
        let fine = (1..=Self::LONGEST).contains(&text.len()) && text.chars().all(inner);
        if fine && !dashed_end { Ok(Self(text.to_owned())) } else { Err(NotA("a name")) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl UrlPath {
    const FORMAT: &str = "toll-path";

    /// The path's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for UrlPath {
    fn default() -> Self {
        Self("/".into())
    }
}

impl FromStr for UrlPath {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let fine = text.starts_with('/') && text.chars().all(|c| c.is_ascii_graphic());
        if fine { Ok(Self(text.to_owned())) } else { Err(NotA("a path")) }
    }
}

impl fmt::Display for UrlPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Metrics {
    const FORMAT: &str = "toll-metrics";
}

impl FromStr for Metrics {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let endpoint = || {
            let (port, path) = text.strip_prefix("http://localhost:")?.split_once('/')?;
            let port = port.parse().ok().filter(|port| *port > 0)?;
            let path: UrlPath = format!("/{path}").parse().ok()?;
            Some(Self { port, path: path.to_string() })
        };
        endpoint().ok_or(NotA("an endpoint"))
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://localhost:{}{}", self.port, self.path)
    }
}

impl From<SettingAsWritten> for Setting {
    fn from(written: SettingAsWritten) -> Self {
        Self(match written {
            SettingAsWritten::Switch(switch) => switch.to_string(),
            SettingAsWritten::Number(number) => number.to_string(),
            SettingAsWritten::Text(text) => text,
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Amount {
    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Share {
    const FORMAT: &str = "toll-share";

    /// The share of so many percent; nothing outside 0 to 100.
    pub fn percent(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then_some(Self(percent))
    }

    /// The share as a fraction, from 0 to 1.
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Share {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let number = text.strip_suffix('%').map(str::trim_end).and_then(plain_number);
        number.and_then(Self::percent).ok_or(NotA("a percentage"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl Rate {
    const FORMAT: &str = "toll-rate";

    fn is_above_zero(&self) -> bool {
        match self {
            Self::PerSecond(rate) => *rate > 0.0 && rate.is_finite(),
            Self::OfCapacity(share) => share.0 > 0.0,
        }
    }
}

impl FromStr for Rate {
    type Err = NotA;

    fn from_str(text: &str) -> Result<Self, NotA> {
        let per_second = || plain_number(text.strip_suffix("/s")?.trim_end()).map(Self::PerSecond);
        let of_capacity = || {
            let share = text.strip_suffix("capacity")?.trim_end().strip_suffix("of")?;
            share.trim_end().parse().ok().map(Self::OfCapacity)
        };
        per_second().or_else(of_capacity).filter(Self::is_above_zero).ok_or(NotA("an arrival rate"))
    }
}

impl TryFrom<RateAsWritten> for Rate {
    type Error = NotA;

    fn try_from(written: RateAsWritten) -> Result<Self, NotA> {
        match written {
            RateAsWritten::Text(text) => text.parse(),
            RateAsWritten::Number(rate) => Some(Self::PerSecond(rate))
                .filter(Self::is_above_zero)
                .ok_or(NotA("an arrival rate")),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
            Self::OfCapacity(share) => write!(f, "{share} of capacity"),
        }
    }
}

impl Binary {
    /// Marks the one kind of text that may still hold an unset `${NAME}`.
    pub(super) const FORMAT: &str = "toll-binary";

    /// Where the program is.
    ///
    /// # Errors
    /// The name of the environment variable that should say so and is not set.
    pub fn path(&self) -> Result<&Path, &str> {
        match self {
            Self::Path(path) => Ok(path),
            Self::NotSet { variable } => Err(variable),
        }
    }
}

impl From<String> for Binary {
    fn from(text: String) -> Self {
        match environment::first_variable(&text) {
            Some(variable) => Self::NotSet { variable: variable.to_owned() },
            None => Self::Path(text.into()),
        }
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::NotSet { variable } => write!(f, "${{{variable}}}"),
        }
    }
}

/// The plain conversions that serde needs: to and from the written text.
macro_rules! written_as_text {
    ($($quantity:ident),+) => {$(
        impl TryFrom<String> for $quantity {
            type Error = NotA;

            fn try_from(text: String) -> Result<Self, NotA> {
                text.parse()
            }
        }
    )+};
}

written_as_text!(TimeSpan, Name, UrlPath, Metrics, Share);

macro_rules! shown_as_text {
    ($($quantity:ident),+) => {$(
        impl From<$quantity> for String {
            fn from(quantity: $quantity) -> Self {
                quantity.to_string()
            }
        }
    )+};
}

shown_as_text!(TimeSpan, Name, UrlPath, Metrics, Share, Rate, Binary, Setting);
