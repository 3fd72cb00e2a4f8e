//! What a program is linked against, by its own loader: ELF-64, program header of type `PT_INTERP`; elf(5), ld.so(8).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::ImageError;

const PT_INTERP: u32 = 3;

/// The loader and all libraries that `program` needs, by the names under which they are looked for; nothing of a program
/// that is linked statically.
///
/// # Errors
/// When it cannot be read, or its loader does not find a library.
pub(super) fn libraries(program: &Path) -> Result<Vec<PathBuf>, ImageError> {
    let Some(loader) = interpreter_of(program)? else { return Ok(Vec::new()) };
    let listed = list(&loader, program)?;
    if !listed.status.success() || listed_text(&listed).contains("not found") {
        let message = String::from_utf8_lossy(&listed.stderr).trim().to_owned();
        return Err(ImageError::Unlinked { program: program.to_owned(), message });
    }
    let mut libraries = paths(&listed);
    libraries.push(loader);
    libraries.sort();
    libraries.dedup();
    Ok(libraries)
}

/// The libraries that a library needs, as far as they are there: what loads it may bring the others, or never load it.
///
/// # Errors
/// When the loader cannot be started.
pub(super) fn found_by(loader: &Path, library: &Path) -> Result<Vec<PathBuf>, ImageError> {
    Ok(paths(&list(loader, library)?))
}

/// The loader that the kernel starts for `program`; none where it is linked statically.
///
/// # Errors
/// When it cannot be read.
pub(super) fn interpreter_of(program: &Path) -> Result<Option<PathBuf>, ImageError> {
    interpreter(program).map_err(|source| ImageError::File { path: program.to_owned(), source })
}

/// Whether it is called as a shared library is.
pub(super) fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

fn list(loader: &Path, file: &Path) -> Result<Output, ImageError> {
    let listed = Command::new(loader).arg("--list").arg(file).output();
    listed.map_err(|source| ImageError::File { path: loader.to_owned(), source })
}

fn listed_text(listed: &Output) -> Cow<'_, str> {
    String::from_utf8_lossy(&listed.stdout)
}

fn paths(listed: &Output) -> Vec<PathBuf> {
    listed_text(listed).lines().filter_map(resolved).collect()
}

/// `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f...)`.
fn resolved(line: &str) -> Option<PathBuf> {
    let (_, found) = line.split_once("=> ")?;
    let path = found.split(" (").next()?.trim();
    path.starts_with('/').then(|| path.into())
}

/// The loader that the kernel starts for it; none of what is no such program.
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    let mut file = File::open(program)?;
    let mut header = [0_u8; 64];
    if file.read_exact(&mut header).is_err() || &header[..5] != b"\x7fELF\x02" {
        return Ok(None);
    }
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (table, size) = (number(&header[0x20..0x28]), number(&header[0x36..0x38]));
    for place in 0..number(&header[0x38..0x3a]) {
        let mut entry = [0_u8; 56];
        file.seek(SeekFrom::Start(table + place * size))?;
        file.read_exact(&mut entry)?;
        if number(&entry[..4]) != u64::from(PT_INTERP) {
            continue;
        }
        let length = usize::try_from(number(&entry[0x20..0x28])).unwrap_or(0);
        let mut path = vec![0_u8; length];
        file.seek(SeekFrom::Start(number(&entry[8..0x10])))?;
        file.read_exact(&mut path)?;
        let text = String::from_utf8_lossy(&path);
        return Ok(Some(text.trim_end_matches('\0').into()));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_machine_is_listed_with_its_loader_and_its_c_library() {
        let own = std::env::current_exe().unwrap();
        let libraries = libraries(&own).unwrap();
        let has = |name: &str| libraries.iter().any(|path| path.to_string_lossy().contains(name));
        assert!(has("libc.so"), "{libraries:?}");
        assert!(has("ld-linux"), "{libraries:?}");
        assert!(libraries.iter().all(|path| path.exists()), "{libraries:?}");
    }

    #[test]
    fn what_is_no_program_needs_no_library() {
        assert_eq!(libraries(Path::new("/etc/passwd")).unwrap(), Vec::<PathBuf>::new());
    }
}
