//! Turns a plan into the artifacts that its deployments need: found, or fetched and said so.

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::artifacts::{Artifact, ArtifactError, Artifacts, Fetch, Found, Need, Source};
use toll_lab::needs;

use super::talk::{CliError, say, with_causes};
use crate::plan::Plan;

/// The artifacts of a run; those that no deployment needs are left out.
#[derive(Default)]
pub struct FoundArtifacts {
    found: BTreeMap<Artifact, Found>,
    /// Variants of which something that others do without cannot be had: their agent, or their SNI proxy.
    lacking: Vec<(String, ArtifactError)>,
}

impl FoundArtifacts {
    /// Finds what the plan needs, and fetches what is nowhere. A variant's agent or SNI proxy may be missing; what
    /// all variants need may not.
    ///
    /// # Errors
    /// The first artifact that cannot be had.
    pub fn of(plan: &Plan) -> Result<Self, CliError> {
        let all: BTreeSet<Need> =
            plan.ready().flat_map(|(_, deployment)| needs(deployment)).collect();
        let mut artifacts = Self::default();
        for need in all.iter().filter(|need| !need.is_of_one_variant()) {
            artifacts.found.extend(found(need).map_err(|error| skipped(need, &all, error))?);
        }
        for (variant, deployment) in plan.ready() {
            for need in needs(deployment).iter().filter(|need| need.is_of_one_variant()) {
                match found(need) {
                    Ok(found) => artifacts.found.extend(found),
                    Err(error) => artifacts.lacking.push((variant.to_owned(), error)),
                }
            }
        }
        Ok(artifacts)
    }

    /// The variants that cannot run here, each with the reason and what to do about it.
    pub fn unavailable(&self) -> Vec<(String, String)> {
        let reason = |error: &ArtifactError| match error.help() {
            Some(help) => format!("{}; {help}", with_causes(error)),
            None => with_causes(error),
        };
        self.lacking.iter().map(|(variant, error)| (variant.clone(), reason(error))).collect()
    }

    /// These artifacts, if no variant lacks anything.
    ///
    /// # Errors
    /// Why what the last variant needs cannot be had.
    pub fn complete(mut self) -> Result<Self, CliError> {
        match self.lacking.pop() {
            Some((_, error)) => Err(error.into()),
            None => Ok(self),
        }
    }

    /// Each as it was found.
    pub fn found(&self) -> &BTreeMap<Artifact, Found> {
        &self.found
    }

    /// Where each is.
    pub fn paths(&self) -> Artifacts {
        let mut paths = Artifacts::default();
        self.found.iter().for_each(|(artifact, found)| paths.put(*artifact, &found.path));
        paths
    }
}

/// The same error, with what cannot run for want of it where that is a runtime or an application.
fn skipped(need: &Need, all: &BTreeSet<Need>, error: ArtifactError) -> CliError {
    let is_petclinic =
        |artifact| matches!(artifact, Artifact::PetclinicGateway | Artifact::PetclinicVets);
    let has_petclinic =
        all.iter().any(|need| matches!(need, Need::Artifact(of) if is_petclinic(*of)));
    match need {
        Need::Artifact(Artifact::Java) if has_petclinic => CliError::PetclinicSkipped(error),
        Need::Artifact(Artifact::Java | Artifact::Spring) => CliError::RuntimeSkipped(error),
        Need::Artifact(artifact) if is_petclinic(*artifact) => CliError::PetclinicSkipped(error),
        _ => error.into(),
    }
}

/// What is said before it is fetched; none where it never is.
fn announcement(need: &Need) -> Option<&'static str> {
    match need {
        Need::Artifact(Artifact::Envoy) => {
            Some("fetching Envoy into the user's cache (once, about 30 MB)")
        }
        Need::Artifact(Artifact::Postgres) | Need::PostgresWithTls => {
            Some("fetching PostgreSQL into the user's cache (once, about 15 MB)")
        }
        Need::Artifact(Artifact::OpenTelemetry) => {
            Some("fetching the OpenTelemetry Java agent into the user's cache (once, about 25 MB)")
        }
        _ => None,
    }
}

/// A fetch takes seconds, so it is announced.
fn found(need: &Need) -> Result<Vec<(Artifact, Found)>, ArtifactError> {
    let there = need.find(Fetch::Forbidden);
    let Some(announcement) = announcement(need).filter(|_| is_worth_a_fetch(&there)) else {
        return there;
    };
    say(announcement);
    let found = need.find(Fetch::Allowed)?;
    for (_, Found { path, version, .. }) in found.iter().filter(|(_, found)| is_systems(found)) {
        let path = path.display();
        say(&format!("it could not be fetched here: going on with {path}, version {version}"));
    }
    Ok(found)
}

fn is_worth_a_fetch(there: &Result<Vec<(Artifact, Found)>, ArtifactError>) -> bool {
    match there {
        Ok(found) => found.iter().any(|(_, found)| is_systems(found)),
        Err(error) => matches!(error, ArtifactError::Missing(_)),
    }
}

fn is_systems(found: &Found) -> bool {
    found.source == Source::System
}
