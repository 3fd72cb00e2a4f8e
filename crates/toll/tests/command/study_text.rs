//! Writes short studies: two services, two variants, one load at a fixed rate, two rounds of three arms.

use std::net::TcpListener;

/// A study file in the making.
#[derive(Clone)]
pub struct StudyText {
    client: String,
    server: String,
    second_variant: &'static str,
    slice: &'static str,
    rest: &'static str,
}

/// The built-in service with little work, as YAML.
const QUICK: &str = "{built_in: {work: {cpu: 50us}}}";

/// A variant `istio` beside the baseline `original`.
pub fn meshed() -> StudyText {
    let second_variant = "istio: {sidecar: {proxy: envoy, mtls: permissive}}";
    StudyText { second_variant, ..bare() }
}

/// Two variants without sidecars, `original` and `twin`: needs no Envoy.
pub fn bare() -> StudyText {
    let [client, server] = free_ports();
    StudyText {
        client: format!("{{port: {client}, calls: [server], program: {QUICK}}}"),
        server: format!("{{port: {server}, program: {QUICK}}}"),
        second_variant: "twin: {}",
        slice: "400ms",
        rest: "rounds: 2\ncycles: 1\nidle: 100ms",
    }
}

impl StudyText {
    /// The entry, as YAML.
    pub fn client(self, service: impl Into<String>) -> Self {
        Self { client: service.into(), ..self }
    }

    /// The service that the entry calls, as YAML.
    pub fn server(self, service: impl Into<String>) -> Self {
        Self { server: service.into(), ..self }
    }

    /// How long each slice is.
    pub fn lasting(self, slice: &'static str) -> Self {
        Self { slice, ..self }
    }

    /// Further top-level keys, instead of two short rounds.
    pub fn rest(self, rest: &'static str) -> Self {
        Self { rest, ..self }
    }

    /// The whole file.
    pub fn text(&self) -> String {
        let Self { client, server, second_variant, slice, rest } = self;
        format!(
            "study: short\n\
             app:\n  entry: client\n  services:\n    client: {client}\n    server: {server}\n\
             variants:\n  original: {{}}\n  {second_variant}\n\
             baseline: original\n\
             loads:\n  fixed: {{open: {{rate: 50/s}}, slice: {slice}}}\n\
             settle: {{slice: 100ms, max: 600ms, connections: 2, rest: 0s}}\n\
             {rest}\n"
        )
    }
}

/// Different ports that nobody listens on; only loopback isolation shares them with the host.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
