//! The lab on this machine with real processes, at each isolation level that the machine allows. What it does
//! not allow is skipped with a `SKIP` line on stderr that gives the reason.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "skips are to be seen")]

mod ambient;
mod database;
mod edge;
mod egress;
mod left_behind;
mod local;
mod mesh;
mod mesher;
mod metrics;
mod petclinic;
mod scale;
mod support;
mod traced;
