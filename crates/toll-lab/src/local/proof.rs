//! Gathers what a proof of the path needs at both ends of the measured window: probes, counters, firewall
//! rules and who runs in the pods.

use std::collections::BTreeMap;

use super::bring_up::inside;
use super::environment::LocalEnvironment;
use super::namespace::Namespace;
use super::occupants::Processes;
use super::probe::{Answer, Outcome, probe};
use super::process::Process;
use super::topology;
use crate::data_plane::{
    self, Occupants, PathReport, Plaintext, ProxyCounters, Sight, Walk, Window, prove_bare,
    prove_sidecars,
};
use crate::deployment::DataPlane;
use crate::{LabError, Proof, Role, Traffic};

/// What was seen before the window.
#[derive(Debug)]
pub(crate) struct OpenProof {
    plaintext: BTreeMap<String, Plaintext>,
    before: Sight,
}

impl LocalEnvironment {
    /// Sends all probes before it reads the counters, so that none is in the window.
    pub(crate) fn open_proof(&mut self) -> Result<(), LabError> {
        let plaintext = self.plaintext()?;
        let walk = self.walk()?;
        let counters = self.counters()?;
        self.proof = Some(OpenProof { plaintext, before: self.sight(walk, counters)? });
        Ok(())
    }

    /// Reads the counters before it probes again, and judges.
    pub(crate) fn close_proof(&mut self, traffic: Traffic) -> Result<Proof, LabError> {
        let open = self.proof.take().ok_or(LabError::ProofNotOpen)?;
        let counters = self.counters()?;
        let after = self.sight(self.walk()?, counters)?;
        let deployment = &self.deployment;
        let window = Window { deployment, traffic, before: &open.before, after: &after };
        Ok(match self.deployment.data_plane {
            DataPlane::Bare => prove_bare(&window, &self.topology),
            DataPlane::Sidecar { .. } => prove_sidecars(&window, &open.plaintext),
        })
    }

    fn sight(
        &self,
        walk: Walk,
        counters: BTreeMap<String, ProxyCounters>,
    ) -> Result<Sight, LabError> {
        Ok(Sight {
            walk,
            counters,
            rules: self.rules()?,
            occupants: self.occupants()?,
            databases: BTreeMap::new(),
            replicas: BTreeMap::new(),
        })
    }

    /// The way of one request through all services, which do not count it.
    fn walk(&self) -> Result<Walk, LabError> {
        Ok(walk(self.ask(&self.deployment.entry, true)?))
    }

    /// One request from outside of the mesh to where the service's callers connect.
    fn ask(&self, service: &str, report: bool) -> Result<Answer, LabError> {
        let target = topology::front(&self.topology, service)?;
        probe(&self.launcher, &self.options.service, &self.load_place(), target, report)
    }

    fn plaintext(&self) -> Result<BTreeMap<String, Plaintext>, LabError> {
        let meshed = self.deployment.data_plane != DataPlane::Bare;
        let behind = |name: &&String| meshed && **name != self.deployment.entry;
        let names = self.deployment.services.iter().map(|service| &service.name).filter(behind);
        names.map(|name| Ok((name.clone(), plaintext(&self.ask(name, false)?)))).collect()
    }

    /// What the firewall of each bare pod holds.
    fn rules(&self) -> Result<BTreeMap<String, String>, LabError> {
        let list = |(name, pod, _): (&String, &Namespace, _)| {
            let rules = self.tool("nft", &["list", "ruleset"], name, &inside(pod), "")?;
            Ok((name.clone(), rules))
        };
        self.bare_pods().map(list).collect()
    }

    /// Who runs in each bare pod.
    fn occupants(&self) -> Result<BTreeMap<String, Occupants>, LabError> {
        let processes = Processes::now().map_err(LabError::Namespaces)?;
        let look = |(name, pod, program): (&String, &Namespace, &Process)| {
            let inside = processes.inside(pod, program.pid).map_err(LabError::Namespaces)?;
            Ok((name.clone(), inside))
        };
        self.bare_pods().map(look).collect()
    }

    /// The pods that have a network of their own and no sidecar: name, network and program.
    fn bare_pods(&self) -> impl Iterator<Item = (&String, &Namespace, &Process)> {
        let bare = self.deployment.data_plane == DataPlane::Bare;
        let programs = self.components.iter().filter(|(c, _)| c.role == Role::Application);
        let pods = self.pods.iter().zip(programs).filter(move |_| bare);
        pods.map(|(pod, (component, process))| (&component.pod, pod, &**process))
    }

    fn counters(&self) -> Result<BTreeMap<String, ProxyCounters>, LabError> {
        let read = |plan: &data_plane::ProxyPlan| {
            Ok((plan.pod.clone(), data_plane::counters(&plan.admin_socket)?))
        };
        self.plans.iter().map(read).collect()
    }
}

fn walk(answer: Answer) -> Walk {
    Walk {
        server: answer.headers.get("server").cloned(),
        report: serde_json::from_str::<PathReport>(&answer.body).ok(),
    }
}

fn plaintext(answer: &Answer) -> Plaintext {
    match (answer.outcome, answer.status) {
        (Outcome::Answered, Some(status)) => Plaintext::Answered(status),
        (Outcome::Reset | Outcome::Closed, _) => Plaintext::Closed,
        (outcome, _) => Plaintext::Unclear(format!("{outcome:?}").to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_that_was_made_and_then_closed_counts_as_refused_plaintext() {
        let outcome = |outcome| {
            plaintext(&Answer {
                outcome,
                status: None,
                headers: BTreeMap::new(),
                body: String::new(),
            })
        };
        assert_eq!(outcome(Outcome::Reset), Plaintext::Closed);
        assert_eq!(outcome(Outcome::Refused), Plaintext::Unclear("refused".into()));
        assert_eq!(outcome(Outcome::Timeout), Plaintext::Unclear("timeout".into()));
    }
}
