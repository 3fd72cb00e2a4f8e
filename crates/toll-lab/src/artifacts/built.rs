//! Finds the jars that are built from toll's own Java sources: the built-in service's Spring form, the parts of the
//! Petclinic, and the server that stands in MongoDB's place.

use std::path::Path;

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Found, Source};
use super::manifest::Manifest;
use super::surroundings::Surroundings;

/// One of the jars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jar {
    artifact: Artifact,
    /// Where set-up puts it, below the folder of toll's sources: unpacked, with an archive of its classes beside
    /// it, which halves the time that it takes to start. What Maven alone builds starts, too.
    built_at: &'static [&'static str],
    around: Library,
}

/// What a jar is built around. Its own version means nothing: the library's is what a reader wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Library {
    /// The line of the manifest that tells the version.
    version: &'static str,
    /// A jar with such a line, with an article.
    jar: &'static str,
}

const SPRING_BOOT: Library =
    Library { version: "Spring-Boot-Version", jar: "a jar of Spring Boot" };

const MONGO_JAVA_SERVER: Library = Library {
    version: "Mongo-Java-Server-Version",
    jar: "the jar of toll's server in MongoDB's place",
};

/// The built-in service's Spring form.
pub(super) const NODE: Jar = Jar {
    artifact: Artifact::Spring,
    built_at: &[
        "services/spring/node/target/app/toll-spring.jar",
        "services/spring/node/target/toll-spring.jar",
    ],
    around: SPRING_BOOT,
};

/// The Petclinic's gateway.
pub(super) const GATEWAY: Jar = Jar {
    artifact: Artifact::PetclinicGateway,
    built_at: &[
        "services/spring/gateway/target/app/toll-gateway.jar",
        "services/spring/gateway/target/toll-gateway.jar",
    ],
    around: SPRING_BOOT,
};

/// The Petclinic's vets.
pub(super) const VETS: Jar = Jar {
    artifact: Artifact::PetclinicVets,
    built_at: &[
        "services/spring/vets/target/app/toll-vets.jar",
        "services/spring/vets/target/toll-vets.jar",
    ],
    around: SPRING_BOOT,
};

/// The server that stands in MongoDB's place.
pub(super) const STAND_IN: Jar = Jar {
    artifact: Artifact::MongoStandIn,
    built_at: &["services/mongo/target/toll-mongo.jar"],
    around: MONGO_JAVA_SERVER,
};

impl Jar {
    /// Looks for the variable's, then for one that was built.
    ///
    /// # Errors
    /// When it has not been built.
    pub(super) fn find(self, around: &Surroundings) -> Result<Found, ArtifactError> {
        if let Some(path) = around.named_file(self.artifact)? {
            return self.inspect(&path, Source::Environment);
        }
        let folders = around.builds.iter();
        let mut built = folders.flat_map(|folder| self.built_at.iter().map(|at| folder.join(at)));
        let found = built.find(|jar| jar.is_file());
        self.inspect(&found.ok_or(ArtifactError::Missing(self.artifact))?, Source::Built)
    }

    /// The version of what the jar at `path` is built around; none when it is another jar.
    fn version_in(self, path: &Path) -> Option<String> {
        Manifest::of(path).and_then(|manifest| manifest.value(self.around.version))
    }

    fn inspect(self, path: &Path, source: Source) -> Result<Found, ArtifactError> {
        // An archive of classes holds for the jar's absolute path only.
        let path = std::path::absolute(path).unwrap_or(path.to_owned());
        match self.version_in(&path) {
            Some(version) => Found::new(path, version, source),
            None => Err(ArtifactError::NotTheProgram { path, what: self.around.jar }),
        }
    }
}
