//! The engine and its binary against servers of known behaviour: what the servers did must be what the report
//! says.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics, in its helpers too")]

mod engine;
mod process;
mod server;
