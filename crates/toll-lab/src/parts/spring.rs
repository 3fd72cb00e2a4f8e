//! Finds the jars that are built from toll's own Java sources: the built-in service's Spring form and the parts
//! of the Petclinic.

use std::path::{Path, PathBuf};

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
    built_at: [&'static str; 2],
    missing: MissingPart,
}

/// The built-in service's Spring form.
pub(super) const NODE: Jar = Jar {
    variable: "TOLL_SPRING",
    built_at: [
        "services/spring/node/target/app/toll-spring.jar",
        "services/spring/node/target/toll-spring.jar",
    ],
    missing: MissingPart::Spring,
};

/// The Petclinic's gateway.
pub(super) const GATEWAY: Jar = Jar {
    variable: "TOLL_PETCLINIC_GATEWAY",
    built_at: [
        "services/spring/gateway/target/app/toll-gateway.jar",
        "services/spring/gateway/target/toll-gateway.jar",
    ],
    missing: MissingPart::PetclinicGateway,
};

/// The Petclinic's vets.
pub(super) const VETS: Jar = Jar {
    variable: "TOLL_PETCLINIC_VETS",
    built_at: [
        "services/spring/vets/target/app/toll-vets.jar",
        "services/spring/vets/target/toll-vets.jar",
    ],
    missing: MissingPart::PetclinicVets,
};

impl Jar {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [NODE, GATEWAY, VETS];

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
            return inspect(path, Source::Environment);
        }
        let built = |folder: &PathBuf| self.built_at.map(|place| folder.join(place));
        let found = around.builds.iter().flat_map(built).find(|jar| jar.is_file());
        inspect(&found.ok_or(PartError::Missing { part: self.missing })?, Source::Built)
    }

    /// The variable that names another one.
    pub(super) fn variable(self) -> &'static str {
        self.variable
    }
}

/// The jar has no version of its own that means anything: Spring Boot's is what a reader wants to know.
fn inspect(path: &Path, source: Source) -> Result<Part, PartError> {
    // An archive of classes holds for the jar's absolute path only.
    let path = std::path::absolute(path).unwrap_or(path.to_owned());
    let version = Manifest::of(&path).and_then(|manifest| manifest.value("Spring-Boot-Version"));
    match version {
        Some(version) => part(path, version, source),
        None => Err(PartError::NotThePart { path, part: "a jar of Spring Boot" }),
    }
}
