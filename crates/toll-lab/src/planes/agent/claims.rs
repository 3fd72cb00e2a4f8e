//! Proves that a tracing agent is in the JVMs of an application, or that none is: by what the processes were
//! started with and hold open, by whether they have loaded the library of all Java agents, and by the spans that
//! came. That library is loaded once: beside the agent of a variant it tells of no further one.

use std::path::{Path, PathBuf};

use crate::claim::{Claim, LeftOut, Proof, Topic};
use crate::deployment::Service;
use crate::evidence::{Jvm, PathSnapshot};
use crate::planes::bare;
use crate::programs::collector::spans;
use crate::proof::claims::at_both_ends;
use crate::proof::window::Window;
use crate::topology::Topology;

/// Proves that no sidecar saw a request and, where there is a collector, that none was traced.
pub(crate) fn prove_none(seen: &Window<'_>, topology: &Topology) -> Proof {
    let mut proof = bare::prove(seen, topology);
    // First, as reports show the first claims.
    let untraced = judge_none(seen);
    proof.claims.splice(0..0, untraced.claims);
    proof.left_out.extend(untraced.left_out);
    proof
}

/// Proves that every request was traced by the agent of `jar`, and that no sidecar saw one.
pub(crate) fn prove(seen: &Window<'_>, topology: &Topology, jar: &Path) -> Proof {
    let network = bare::prove(seen, topology);
    let traced = judge(seen, jar);
    Proof {
        claims: [traced.claims, network.claims].concat(),
        left_out: [traced.left_out, network.left_out].concat(),
        traversals: Vec::new(),
        calls: Vec::new(),
        spans: traced.spans,
    }
}

/// That the requests were traced, as [`spans::judge`] has it, and that `jar` is in every JVM.
fn judge(seen: &Window<'_>, jar: &Path) -> spans::Judged {
    let mut judged = spans::judge(seen);
    let is_expected = |jvm: &Jvm| jvm.named == [jar] && jvm.open == [jar] && jvm.instruments;
    judged.claims.extend(at_both_ends(seen, |snapshot| {
        let claim = |pod: &str, jvms: &[Jvm]| Claim {
            topic: Topic::Other,
            claim: format!("{pod} pod: the agent is in its JVM"),
            expected: file_name(jar),
            seen: words(jvms),
            holds: !jvms.is_empty() && jvms.iter().all(is_expected),
        };
        each_pod(seen, snapshot, claim)
    }));
    judged.left_out.push(LeftOut::FurtherAgents);
    judged.left_out.extend(programs_without_jvm(seen));
    judged
}

/// That no request was traced, and that no JVM has an agent; nothing where nobody takes spans.
fn judge_none(seen: &Window<'_>) -> spans::Judged {
    if seen.deployment.collector().is_none() {
        return spans::Judged::default();
    }
    let is_free = |jvm: &Jvm| jvm.named.is_empty() && jvm.open.is_empty() && !jvm.instruments;
    let free = at_both_ends(seen, |snapshot| {
        let claim = |pod: &str, jvms: &[Jvm]| Claim {
            topic: Topic::Other,
            claim: format!("{pod} pod: no Java agent is in its JVM"),
            expected: NONE.to_owned(),
            seen: words(jvms),
            holds: !jvms.is_empty() && jvms.iter().all(is_free),
        };
        each_pod(seen, snapshot, claim)
    });
    let claims = std::iter::once(spans::none_claim(seen)).chain(free).collect();
    spans::Judged { claims, left_out: programs_without_jvm(seen), spans: None }
}

/// What is seen of a JVM without an agent.
const NONE: &str = "no agent";

/// A claim for each pod that is known to be a JVM, or in which one was seen.
fn each_pod(
    seen: &Window<'_>,
    snapshot: &PathSnapshot,
    claim: impl Fn(&str, &[Jvm]) -> Claim,
) -> Vec<Claim> {
    let claim = |(pod, service): (String, &Service)| {
        let jvms = snapshot.jvms.get(&pod).map_or(&[][..], Vec::as_slice);
        (!jvms.is_empty() || !service.program.is_users_own()).then(|| claim(&pod, jvms))
    };
    let pods = seen.deployment.pods().into_iter();
    pods.filter(|(_, service)| service.program.takes_agent()).filter_map(claim).collect()
}

/// Programs of the user's own that have nothing that an agent could be in, as far as can be seen.
fn programs_without_jvm(seen: &Window<'_>) -> Vec<LeftOut> {
    let has_jvm = |pod: &String| {
        let in_snapshot =
            |snapshot: &PathSnapshot| snapshot.jvms.get(pod).is_some_and(|jvms| !jvms.is_empty());
        in_snapshot(seen.before) || in_snapshot(seen.after)
    };
    let pods = seen.deployment.pods().into_iter();
    pods.filter(|(pod, service)| service.program.is_users_own() && !has_jvm(pod))
        .map(|(pod, _)| LeftOut::NoJvm { pod })
        .collect()
}

/// The agents in the JVMs of a pod. All JVMs of a pod have the same environment, so that they rarely differ.
fn words(jvms: &[Jvm]) -> String {
    let mut words: Vec<String> = jvms.iter().map(agents).collect();
    words.dedup();
    if words.is_empty() { "no JVM".to_owned() } else { words.join("; ") }
}

fn agents(jvm: &Jvm) -> String {
    let unnamed = jvm.open.iter().filter(|jar| !jvm.named.contains(jar));
    let word = |jar: &PathBuf| match jvm.open.contains(jar) {
        true => file_name(jar),
        false => format!("{} is named, but not open", file_name(jar)),
    };
    let words: Vec<String> = jvm.named.iter().chain(unnamed).map(word).collect();
    match (words.as_slice(), jvm.instruments) {
        ([], false) => NONE.to_owned(),
        ([], true) => "an agent that no option names".to_owned(),
        (_, false) => format!("{}, which is not loaded", words.join(", ")),
        (_, true) => words.join(", "),
    }
}

fn file_name(jar: &Path) -> String {
    jar.file_name().unwrap_or(jar.as_os_str()).to_string_lossy().into_owned()
}
