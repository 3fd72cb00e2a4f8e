//! toll's image: a file in the form that every container runtime takes, made without one and without a registry.
//!
//! The programs are this machine's own, each with the libraries that it is linked against, at fixed places. The same
//! programs give the same image, byte for byte.

mod archive;
mod digest;
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

/// Where an artifact is in an image that has it.
pub fn path_of(artifact: Artifact) -> &'static str {
    match artifact {
        Artifact::Envoy => "/opt/toll/envoy/envoy",
        Artifact::Ztunnel => "/opt/toll/ztunnel/ztunnel",
        Artifact::Postgres => "/opt/toll/postgres/bin/postgres",
        Artifact::Nginx => "/opt/toll/nginx/nginx",
        Artifact::Mongod => "/opt/toll/mongo/mongod",
        Artifact::MongoStandIn => "/opt/toll/mongo/toll-mongo.jar",
        Artifact::Java => "/opt/toll/java/bin/java",
        Artifact::Spring => "/opt/toll/spring/toll-spring.jar",
        Artifact::PetclinicGateway => "/opt/toll/petclinic-gateway/toll-gateway.jar",
        Artifact::PetclinicVets => "/opt/toll/petclinic-vets/toll-vets.jar",
        Artifact::OpenTelemetry => "/opt/toll/opentelemetry/agent.jar",
        Artifact::EaseAgent => "/opt/toll/easeagent/agent.jar",
    }
}

/// What of a JDK no JVM reads.
const NOT_OF_A_RUNTIME: [&str; 6] = ["jmods", "include", "man", "demo", "legal", "lib/src.zip"];

/// The layer with an artifact that is at `path` on this machine.
fn layer_of(artifact: Artifact, path: &Path) -> Result<Layer, ImageError> {
    let (name, there) = (artifact.label(), path_of(artifact));
    match artifact {
        Artifact::Envoy | Artifact::Ztunnel | Artifact::Nginx | Artifact::Mongod => {
            Layer::of_program(name, path, there)
        }
        Artifact::Postgres => {
            let (root, program) = tree_around(path)?;
            if !root.join("share").is_dir() {
                return Err(ImageError::Scattered { program });
            }
            Layer::of_tree(name, (&root, "/opt/toll/postgres"), &program, &["include"])
        }
        Artifact::Java => {
            let (root, program) = tree_around(path)?;
            Layer::of_tree(name, (&root, "/opt/toll/java"), &program, &NOT_OF_A_RUNTIME)
        }
        Artifact::MongoStandIn
        | Artifact::Spring
        | Artifact::PetclinicGateway
        | Artifact::PetclinicVets
        | Artifact::OpenTelemetry
        | Artifact::EaseAgent => Layer::of_jar(name, path, there),
    }
}

/// The folder that a program's `bin` is in, and the program, without links on the way.
fn tree_around(path: &Path) -> Result<(PathBuf, PathBuf), ImageError> {
    let failed = |source| ImageError::File { path: path.to_owned(), source };
    let program = fs::canonicalize(path).map_err(failed)?;
    let root = program.ancestors().nth(2).unwrap_or(Path::new("/")).to_owned();
    Ok((root, program))
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
    /// A server of the system's packages.
    #[error(
        "the files of {} are scattered over this machine, and it would not find them in an image: without POSTGRES, `toll doctor --fetch` brings a server that is in one folder",
        program.display()
    )]
    Scattered {
        /// Its program.
        program: PathBuf,
    },
}

/// What an image is made of.
#[derive(Debug, Clone)]
pub struct ImagePlan {
    /// Its name and tag, for instance `toll:0.1.0`.
    pub name: String,
    /// toll's program.
    pub toll: PathBuf,
    /// The artifacts that are in it, and where each is on this machine.
    pub artifacts: Vec<(Artifact, PathBuf)>,
    /// Its labels.
    pub labels: Vec<(String, String)>,
}

/// Writes the image to `file`: a layer for toll, one for each artifact. `progress` is told each layer before it is packed.
///
/// # Errors
/// When a program or one of its libraries cannot be read, or the file cannot be written.
pub fn write(
    plan: &ImagePlan,
    file: &Path,
    progress: impl FnMut(&str),
) -> Result<Written, ImageError> {
    let failed = |source| ImageError::File { path: file.to_owned(), source };
    let mut layers = vec![Layer::of_accounts(), Layer::of_program("toll", &plan.toll, TOLL)?];
    for (artifact, path) in &plan.artifacts {
        layers.push(layer_of(*artifact, path)?);
    }
    // Half an archive is none.
    let unfinished = file.with_extension("part");
    let written = File::create(&unfinished)
        .map_err(failed)
        .and_then(|archive| {
            archive::write((&plan.name, &plan.labels), &layers, (archive, file), progress)
        })
        .and_then(|written| fs::rename(&unfinished, file).map(|()| written).map_err(failed));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

#[cfg(test)]
mod tests;
