//! Turns a configuration file into the role that the program is to play.

use std::net::SocketAddr;
use std::path::Path;

use serde::de::IgnoredAny;

use crate::airline;
use crate::config::{Config, parse, text_of};
use crate::error::Error;
use crate::registry;

/// Which of the program's roles is to be played.
#[derive(Debug)]
pub(crate) enum Role {
    /// The built-in service.
    BuiltIn(Config),
    /// A part of the airline: its configuration has the key `airline`.
    Airline(airline::Config),
    /// Mesher's registry: its configuration has the key `registry`.
    Registry(registry::Config),
}

/// The keys that tell other configurations from the built-in service's.
#[derive(serde::Deserialize)]
struct Telling {
    airline: Option<IgnoredAny>,
    registry: Option<IgnoredAny>,
}

impl Role {
    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = text_of(path)?;
        let telling = parse::<Telling>(path, &text)?;
        match (telling.airline, telling.registry) {
            (Some(_), _) => parse(path, &text).map(Self::Airline),
            (None, Some(_)) => parse(path, &text).map(Self::Registry),
            (None, None) => parse(path, &text).map(Self::BuiltIn),
        }
    }

    /// Where to listen.
    pub(crate) fn listen(&self) -> SocketAddr {
        match self {
            Self::BuiltIn(config) => config.listen,
            Self::Airline(config) => config.listen,
            Self::Registry(config) => config.listen,
        }
    }
}
