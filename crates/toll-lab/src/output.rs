//! What a lab gives to its user beside samples and proofs: files as texts, and the lines of a load program.

use serde::{Deserialize, Serialize};

use crate::LabError;

/// One file that the lab would write for a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// File name, unique in the deployment.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// What the load program said.
#[derive(Debug)]
pub enum NextLine {
    /// A line of its stdout, without the line break.
    Line(String),
    /// Nothing in the given time.
    Quiet,
    /// It has ended, and all its lines were given; an error when its status was not 0.
    Ended(Result<(), LabError>),
}

/// How much a component has logged of whose log only the begin and the end are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutLog {
    /// For instance `shop`.
    pub component: String,
    /// All that it wrote, bytes.
    pub written_bytes: u64,
}
