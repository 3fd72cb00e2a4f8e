//! Proof that the traffic of a trial took the path that its variant claims (METHOD.md rule 7).

use serde::{Deserialize, Serialize};

/// All claims about one trial's path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Each with what was expected and what was seen.
    pub claims: Vec<Claim>,
    /// What could not be claimed, and why.
    #[serde(default)]
    pub left_out: Vec<String>,
}

impl Proof {
    /// Whether every claim holds. A proof without claims proves nothing.
    pub fn holds(&self) -> bool {
        !self.claims.is_empty() && self.claims.iter().all(|c| c.holds)
    }
}

/// One claim about the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// For instance `client sidecar, inbound: every request was counted`.
    pub claim: String,
    /// What a true claim would show.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// Whether the two agree.
    pub holds: bool,
}
