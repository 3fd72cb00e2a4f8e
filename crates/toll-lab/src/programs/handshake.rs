//! How the lab tries TLS with a service outside of the mesh, by the way that a pod's own program takes.
//!
//! It shows the lab's own certificate: a database that has seen a caller's has seen the caller itself.

use std::net::SocketAddrV4;

use crate::LabError;
use crate::certificates::external::{ExternalFiles, LAB_CLIENT, known_as};
use crate::deployment::{External, Service};
use crate::evidence::Handshake;
use crate::probe::{Acquaintance, Answer, Outcome};
use crate::topology::Site;

/// A handshake that is to be tried.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) target: SocketAddrV4,
    pub(crate) with: Acquaintance<'a>,
}

impl<'a> Attempt<'a> {
    /// Of the pod at `site` with `service`, which may be its own; `protocol` is what it offers in ALPN.
    ///
    /// # Errors
    /// When the topology lacks the service.
    pub(crate) fn new(
        site: &Site<'_>,
        service: &'a Service,
        external: &'a External,
        protocol: Option<&'a str>,
    ) -> Result<Self, LabError> {
        let files = ExternalFiles::new(site.dir);
        let with = Acquaintance {
            server_name: known_as(external, site.topology.capture),
            authority: Some(files.authority()),
            certificate: Some([files.chain(LAB_CLIENT), files.key(LAB_CLIENT)]),
            protocol,
        };
        Ok(Self { target: site.addresses_of(&service.name)?[0], with })
    }
}

/// How it ended.
pub(crate) fn outcome(answer: Answer) -> Handshake {
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
