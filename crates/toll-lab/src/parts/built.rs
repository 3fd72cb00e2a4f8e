//! Finds the jars that are built from toll's own Java sources: the built-in service's Spring form, the parts of the
//! Petclinic, and the server that stands in MongoDB's place.

use std::path::Path;

use super::error::MissingPart;
use super::manifest::Manifest;
use super::{Part, PartError, Source, Surroundings, part};

/// One of the jars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jar {
    /// The variable that names another one.
    variable: &'static str,
    /// Where set-up puts it, below the folder of toll's sources: unpacked, with an archive of its classes beside
    /// it, which halves the time that it takes to start. What Maven alone builds starts, too.
    built_at: &'static [&'static str],
    missing: MissingPart,
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
    variable: "TOLL_SPRING",
    built_at: &[
        "services/spring/node/target/app/toll-spring.jar",
        "services/spring/node/target/toll-spring.jar",
    ],
    missing: MissingPart::Spring,
    around: SPRING_BOOT,
};

/// The Petclinic's gateway.
pub(super) const GATEWAY: Jar = Jar {
    variable: "TOLL_PETCLINIC_GATEWAY",
    built_at: &[
        "services/spring/gateway/target/app/toll-gateway.jar",
        "services/spring/gateway/target/toll-gateway.jar",
    ],
    missing: MissingPart::PetclinicGateway,
    around: SPRING_BOOT,
};

/// The Petclinic's vets.
pub(super) const VETS: Jar = Jar {
    variable: "TOLL_PETCLINIC_VETS",
    built_at: &[
        "services/spring/vets/target/app/toll-vets.jar",
        "services/spring/vets/target/toll-vets.jar",
    ],
    missing: MissingPart::PetclinicVets,
    around: SPRING_BOOT,
};

/// The server that stands in MongoDB's place.
pub(super) const STAND_IN: Jar = Jar {
    variable: "TOLL_MONGO",
    built_at: &["services/mongo/target/toll-mongo.jar"],
    missing: MissingPart::MongoStandIn,
    around: MONGO_JAVA_SERVER,
};

impl Jar {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [NODE, GATEWAY, VETS, STAND_IN];

    /// Looks for the variable's, then for one that was built.
    ///
    /// # Errors
    /// See [`super::spring`].
    pub(super) fn find(self, around: &Surroundings) -> Result<Part, PartError> {
        if let Some(path) = around.jars.get(self.variable) {
            if let Err(source) = path.metadata() {
                let (variable, path) = (self.variable, path.clone());
                return Err(PartError::NamedButAbsent { variable, path, source });
            }
            return self.inspect(path, Source::Environment);
        }
        let folders = around.builds.iter();
        let mut built = folders.flat_map(|folder| self.built_at.iter().map(|at| folder.join(at)));
        let found = built.find(|jar| jar.is_file());
        self.inspect(&found.ok_or(PartError::Missing { part: self.missing })?, Source::Built)
    }

    /// The variable that names another one.
    pub(super) fn variable(self) -> &'static str {
        self.variable
    }

    /// The version of what the jar at `path` is built around; none when it is another jar.
    pub(super) fn version_in(self, path: &Path) -> Option<String> {
        Manifest::of(path).and_then(|manifest| manifest.value(self.around.version))
    }

    fn inspect(self, path: &Path, source: Source) -> Result<Part, PartError> {
        // An archive of classes holds for the jar's absolute path only.
        let path = std::path::absolute(path).unwrap_or(path.to_owned());
        match self.version_in(&path) {
            Some(version) => part(path, version, source),
            None => Err(PartError::NotThePart { path, part: self.around.jar }),
        }
    }
}
