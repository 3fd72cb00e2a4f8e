//! Tries TLS with external services by the way that a pod's own program takes, and tells how it ends.
//!
//! It shows the lab's own certificate: a database that has seen a caller's has seen the caller itself.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use super::concurrent;
use super::environment::LocalEnvironment;
use super::place::Place;
use super::probe::{Acquaintance, Answer, Outcome, greet};
use super::topology;
use crate::LabError;
use crate::data_plane::external::{callers, externals_of};
use crate::data_plane::{ExternalFiles, Handshake, LAB_CLIENT, known_as};
use crate::deployment::{AirlineDatabase, DatabaseServer, External, Program, Service};

/// What PostgreSQL's clients offer, and must, where TLS comes first.
const POSTGRES_PROTOCOL: &str = "postgresql";

impl LocalEnvironment {
    /// How TLS with each external service ends, by calling pod, then by service.
    pub(super) fn handshakes(
        &self,
    ) -> Result<BTreeMap<String, BTreeMap<String, Handshake>>, LabError> {
        let calling = callers(&self.deployment).map(|caller| &caller.name).collect::<Vec<_>>();
        let pods = self.deployment.pods().into_iter();
        let mut tries = Vec::new();
        for (pod, caller) in pods.filter(|(_, service)| calling.contains(&&service.name)) {
            for (service, external) in externals_of(&self.deployment, caller) {
                tries.push(self.attempt(&pod, service, external)?);
            }
        }
        let (launcher, program) = (&self.launcher, &self.options.service);
        let answers = concurrent::for_each(&tries, |attempt| {
            greet(launcher, program, &attempt.place, attempt.target, &attempt.with)
        })?;
        let mut handshakes = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (attempt, answer) in tries.into_iter().zip(answers) {
            let of_pod = handshakes.entry(attempt.pod).or_default();
            of_pod.insert(attempt.service, outcome(answer));
        }
        Ok(handshakes)
    }

    /// As the program itself runs, so that its pod's firewall and sidecar take it for the program.
    fn attempt<'a>(
        &self,
        pod: &str,
        service: &'a Service,
        external: &'a External,
    ) -> Result<Attempt<'a>, LabError> {
        let files = ExternalFiles::new(&self.folder);
        let with = Acquaintance {
            server_name: known_as(external, self.topology.capture),
            authority: Some(files.authority()),
            certificate: Some([files.chain(LAB_CLIENT), files.key(LAB_CLIENT)]),
            protocol: protocol(&service.program),
        };
        Ok(Attempt {
            pod: pod.to_owned(),
            service: service.name.clone(),
            place: Place { namespace: self.namespace_of(pod).cloned(), ..self.load_place() },
            target: topology::call_addresses(&self.topology, pod, &service.name)?[0],
            with,
        })
    }

    /// Whether the external service in this pod takes the lab's certificate, asked from inside of the pod.
    pub(super) fn takes_clients(&self, pod: &str) -> Result<bool, LabError> {
        let pods = self.deployment.pods();
        let service = pods.iter().find(|(name, _)| name == pod).map(|(_, service)| *service);
        let Some(service) = service else { return Ok(false) };
        let Some(external) = &service.external else { return Ok(false) };
        let attempt = self.attempt(pod, service, external)?;
        let (launcher, program) = (&self.launcher, &self.options.service);
        let answer = greet(launcher, program, &attempt.place, attempt.target, &attempt.with)?;
        Ok(answer.outcome == Outcome::Established)
    }
}

/// A handshake that is to be tried.
struct Attempt<'a> {
    pod: String,
    service: String,
    place: Place,
    target: SocketAddrV4,
    with: Acquaintance<'a>,
}

fn protocol(program: &Program) -> Option<&'static str> {
    match program {
        Program::AirlineDatabase(AirlineDatabase { server: DatabaseServer::Postgres, .. }) => {
            Some(POSTGRES_PROTOCOL)
        }
        _ => None,
    }
}

fn outcome(answer: Answer) -> Handshake {
    let why = answer.message.unwrap_or_default();
    match (answer.outcome, answer.server) {
        (Outcome::Established, Some(server)) => Handshake::Established { server },
        (Outcome::Untrusted, _) => Handshake::Failed(why),
        (outcome, _) if why.is_empty() => Handshake::Failed(name(outcome)),
        (outcome, _) => Handshake::Failed(format!("{}: {why}", name(outcome))),
    }
}

/// A proxy that closes before it has read all that came resets, which is the same to the client.
fn name(outcome: Outcome) -> String {
    match outcome {
        Outcome::Reset => "closed".to_owned(),
        outcome => format!("{outcome:?}").to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(json: &str) -> Handshake {
        outcome(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_handshake_that_fails_says_why() {
        let untrusted = r#"{"outcome":"untrusted","message":"certificate expired"}"#;
        assert_eq!(ended(untrusted), Handshake::Failed("certificate expired".into()));
        let closed = r#"{"outcome":"closed","message":"unexpected end of file"}"#;
        assert_eq!(ended(closed), Handshake::Failed("closed: unexpected end of file".into()));
        let reset = r#"{"outcome":"reset","message":"connection reset"}"#;
        assert_eq!(ended(reset), Handshake::Failed("closed: connection reset".into()));
        let refused = r#"{"outcome":"refused"}"#;
        assert_eq!(ended(refused), Handshake::Failed("refused".into()));
    }

    #[test]
    fn an_established_one_tells_whose_certificate_it_was() {
        let json = r#"{"outcome":"established","server":"ab12","protocol":"TLSv1.3"}"#;
        assert_eq!(ended(json), Handshake::Established { server: "ab12".into() });
        let silent = r#"{"outcome":"established"}"#;
        assert_eq!(ended(silent), Handshake::Failed("established".into()));
    }
}
