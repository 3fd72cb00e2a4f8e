//! The program as it is run: a real process on loopback, spoken to in each protocol.

mod grpc;
mod otlp;
mod running;
mod start_and_end;
mod window;
mod zipkin;
