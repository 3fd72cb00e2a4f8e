//! toll's image: a file in the form that every container runtime takes, made without one and without a registry.
//!
//! The programs are this machine's own, each with the libraries that it is linked against, at fixed places. The same
//! programs give the same image, byte for byte.

mod archive;
mod elf;
mod layer;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::artifacts::Artifact;

pub use archive::{Written, WrittenLayer};
use layer::Layer;

/// toll itself.
pub(crate) const TOLL: &str = "/toll";

/// Whom programs in the image run as, unless a pod says otherwise: nobody that a machine knows.
pub(crate) const USER: u32 = 65_532;

/// Where an artifact is; none where an image cannot have it.
pub fn path_of(artifact: Artifact) -> Option<&'static str> {
    match artifact {
        Artifact::Envoy => Some("/opt/toll/envoy/envoy"),
        Artifact::Nginx => Some("/opt/toll/nginx/nginx"),
        Artifact::Ztunnel
        | Artifact::Postgres
        | Artifact::Mongod
        | Artifact::MongoStandIn
        | Artifact::Java
        | Artifact::Spring
        | Artifact::PetclinicGateway
        | Artifact::PetclinicVets
        | Artifact::OpenTelemetry
        | Artifact::EaseAgent => None,
    }
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A program, one of its libraries, or the archive.
    #[error("cannot read or write {}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The program's own loader does not find all that it needs.
    #[error("{} does not run here: {message}", program.display())]
    Unlinked {
        /// The program.
        program: PathBuf,
        /// What its loader says.
        message: String,
    },
}

/// What an image is made of.
#[derive(Debug, Clone)]
pub struct ImagePlan {
    /// Its name and tag, for instance `toll:0.1.0`.
    pub name: String,
    /// toll's program.
    pub toll: PathBuf,
    /// The artifacts that are in it, and where each is on this machine; those that an image cannot have are left out.
    pub artifacts: Vec<(Artifact, PathBuf)>,
    /// Its labels.
    pub labels: Vec<(String, String)>,
}

/// Writes the image to `file`: a layer for toll, one for each artifact.
///
/// # Errors
/// When a program or one of its libraries cannot be read, or the file cannot be written.
pub fn write(plan: &ImagePlan, file: &Path) -> Result<Written, ImageError> {
    let failed = |source| ImageError::File { path: file.to_owned(), source };
    let mut layers = vec![Layer::of_accounts(), Layer::of_program("toll", &plan.toll, TOLL)?];
    for (artifact, path) in &plan.artifacts {
        if let Some(there) = path_of(*artifact) {
            layers.push(Layer::of_program(artifact.label(), path, there)?);
        }
    }
    // Half an archive is none.
    let unfinished = file.with_extension("part");
    let written = File::create(&unfinished)
        .and_then(|file| archive::write(&plan.name, &plan.labels, &layers, file))
        .and_then(|written| fs::rename(&unfinished, file).map(|()| written));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(failed)
}

#[cfg(test)]
mod tests;
