//! The program as it is run: real processes on loopback. Tests of databases need a PostgreSQL to start; without
//! one they say SKIP on stderr.
#![expect(clippy::print_stderr, reason = "skips are to be seen")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod airline;
mod certificates;
mod database;
mod graph;
mod handshake;
#[cfg(feature = "mongodb")]
mod mongod;
mod postgres;
mod probe;
mod query;
mod running;
mod scrape;
mod stand;
mod start_and_end;
