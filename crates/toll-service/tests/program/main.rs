//! The program as it is run: real processes on loopback.

mod graph;
mod probe;
mod running;
mod start_and_end;
