//! Plans of made-up studies, for tests of this stage and of later ones.

use super::{Choices, Plan, resolve};
use crate::study;

/// Two variants, two rounds of one cycle: with the baseline's second arm, six slices a round.
pub const STUDY: &str = "
study: made-up
question: What does a made-up mesh cost?
app:
  entry: server
  services:
    server: {port: 9000}
variants:
  bare: {}
  mesh: {sidecar: {proxy: envoy}}
baseline: bare
loads:
  steady: {open: {rate: 100/s}, slice: 10s}
rounds: 2
cycles: 1
settle: {slice: 1s, max: 6s, connections: 4, rest: 0s}
idle: 0s
";

/// The plan of `study`.
pub fn planned(study: &str) -> Plan {
    let (study, _) = study::read("made-up.yaml", study, &|_| None).unwrap();
    resolve(&study, &Choices::default(), vec![]).unwrap()
}
