//! The engine and its binary against servers of known behaviour: what the servers did must be what the report
//! says.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics, in its helpers too")]

mod connections;
mod engine;
mod faults;
mod http2;
mod http2_server;
mod listening;
mod models;
mod parts;
mod process;
mod server;
mod session;
mod targets;
mod tls;
mod tls_server;
