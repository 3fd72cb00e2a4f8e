//! Finds the jar of the built-in service's Spring form, which is built from toll's own sources.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::error::MissingPart;
use super::{Part, PartError, Source, Surroundings, part};

/// Where set-up puts it, below the folder of toll's sources: unpacked, with an archive of its classes beside it,
/// which halves the time that it takes to start. What Maven alone builds starts, too.
const BUILT_AT: [&str; 2] =
    ["services/spring/node/target/app/toll-spring.jar", "services/spring/node/target/toll-spring.jar"];

/// Looks for the variable's, then for one that was built.
///
/// # Errors
/// See [`super::spring`].
pub(super) fn find(around: &Surroundings) -> Result<Part, PartError> {
    if let Some(path) = &around.spring {
        if let Err(source) = path.metadata() {
            let (variable, path) = ("TOLL_SPRING", path.clone());
            return Err(PartError::NamedButAbsent { variable, path, source });
        }
        return inspect(path.clone(), Source::Environment);
    }
    let built = |folder: &PathBuf| BUILT_AT.map(|place| folder.join(place));
    let found = around.builds.iter().flat_map(built).find(|jar| jar.is_file());
    inspect(found.ok_or(PartError::Missing { part: MissingPart::Spring })?, Source::Built)
}

fn inspect(path: PathBuf, source: Source) -> Result<Part, PartError> {
    // An archive of classes holds for the jar's absolute path only.
    let path = std::path::absolute(&path).unwrap_or(path);
    match version_of(&path) {
        Some(version) => part(path, version, source),
        None => Err(PartError::NotThePart { path, part: "a jar of Spring Boot" }),
    }
}

/// The jar has no version of its own that means anything: Spring Boot's is what a reader wants to know.
fn version_of(jar: &Path) -> Option<String> {
    let mut jar = ZipArchive::new(File::open(jar).ok()?).ok()?;
    let mut manifest = String::new();
    jar.by_name("META-INF/MANIFEST.MF").ok()?.read_to_string(&mut manifest).ok()?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("Spring-Boot-Version:"))?;
    Some(version.trim().to_owned())
}
