//! Reads what a jar says of itself: `META-INF/MANIFEST.MF`, a name and a value a line
//! (<https://docs.oracle.com/en/java/javase/17/docs/specs/jar/jar.html>). Knows no long lines: versions have none.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use zip::ZipArchive;

/// The manifest of a jar.
pub(super) struct Manifest(String);

impl Manifest {
    /// None when the file is no jar.
    pub(super) fn of(jar: &Path) -> Option<Self> {
        let mut jar = ZipArchive::new(File::open(jar).ok()?).ok()?;
        let mut text = String::new();
        jar.by_name("META-INF/MANIFEST.MF").ok()?.read_to_string(&mut text).ok()?;
        Some(Self(text))
    }

    /// What stands behind `name`.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        let mut pairs = self.0.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned())
    }
}
