//! A layer: files at their places, as a tar archive whose bytes depend on nothing but them.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use super::elf::{self, libraries};
use super::{ImageError, USER};

/// Files of an image that belong together.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) name: String,
    /// By the path in the image, from the slash on.
    files: BTreeMap<PathBuf, Content>,
}

#[derive(Debug)]
enum Content {
    /// A file of this machine.
    Copy(PathBuf),
    /// A link to a path.
    Link(PathBuf),
    /// A text.
    Text(String),
    /// A folder that all may write to.
    Shared,
}

impl Layer {
    /// Who is who, without which some programs do not start, and a folder for what is thrown away.
    pub(super) fn of_accounts() -> Self {
        let passwd =
            format!("root:x:0:0:root:/:/bin/false\ntoll:x:{USER}:{USER}:toll:/:/bin/false\n");
        let group = format!("root:x:0:\ntoll:x:{USER}:\n");
        let files = [
            ("/etc/passwd", Content::Text(passwd)),
            ("/etc/group", Content::Text(group)),
            ("/tmp", Content::Shared),
        ];
        let files = files.map(|(path, content)| (path.into(), content));
        Self { name: "accounts".to_owned(), files: files.into() }
    }

    /// A program at its place, and the libraries that it is linked against at theirs.
    ///
    /// # Errors
    /// When one of them cannot be found.
    pub(super) fn of_program(name: &str, program: &Path, there: &str) -> Result<Self, ImageError> {
        let mut layer = Self::empty(name);
        layer.libraries(libraries(program)?, program);
        layer.files.insert(there.into(), Content::Copy(program.to_owned()));
        Ok(layer)
    }

    /// A jar at its place, and the folder `lib` beside it if it has one.
    ///
    /// # Errors
    /// When that folder cannot be read.
    pub(super) fn of_jar(name: &str, jar: &Path, there: &str) -> Result<Self, ImageError> {
        let mut layer = Self::empty(name);
        layer.files.insert(there.into(), Content::Copy(jar.to_owned()));
        let (from, to) = (jar.with_file_name("lib"), Path::new(there).with_file_name("lib"));
        if from.is_dir() {
            layer.tree(&from, &to, &[])?;
        }
        Ok(layer)
    }

    /// All of the folder `root` at the place `there`, and the libraries that its programs and its own libraries are
    /// linked against. `program` is one of them; `left_out` are paths below `root`.
    ///
    /// # Errors
    /// When something of it cannot be read, or the program's loader does not find a library.
    pub(super) fn of_tree(
        name: &str,
        (root, there): (&Path, &str),
        program: &Path,
        left_out: &[&str],
    ) -> Result<Self, ImageError> {
        let mut layer = Self::empty(name);
        layer.tree(root, Path::new(there), left_out)?;
        let copied = layer.files.values().filter_map(|content| match content {
            Content::Copy(path) => Some(path.clone()),
            _ => None,
        });
        let copied: Vec<PathBuf> = copied.collect();
        layer.libraries(libraries(program)?, root);
        if let Some(loader) = elf::interpreter_of(program)? {
            for file in copied.iter().filter(|path| elf::is_library(path)) {
                layer.libraries(elf::found_by(&loader, file)?, root);
            }
        }
        Ok(layer)
    }

    fn empty(name: &str) -> Self {
        Self { name: name.to_owned(), files: BTreeMap::new() }
    }

    /// Libraries at the paths where they are looked for, but for those of the layer's own tree.
    fn libraries(&mut self, libraries: Vec<PathBuf>, own: &Path) {
        let outside = libraries.into_iter().filter(|path| !path.starts_with(own));
        let files = outside.map(|path| (path.clone(), Content::Copy(path)));
        self.files.extend(files);
    }

    fn tree(&mut self, from: &Path, to: &Path, left_out: &[&str]) -> Result<(), ImageError> {
        let root = fs::canonicalize(from).map_err(unread(from))?;
        self.folder(&root, &root, to, left_out)
    }

    fn folder(
        &mut self,
        root: &Path,
        folder: &Path,
        to: &Path,
        left_out: &[&str],
    ) -> Result<(), ImageError> {
        for entry in fs::read_dir(folder).map_err(unread(folder))? {
            let path = entry.map_err(unread(folder))?.path();
            let below = path.strip_prefix(root).unwrap_or(&path);
            if left_out.iter().any(|left| below == Path::new(left)) {
                continue;
            }
            let there = to.join(path.file_name().unwrap_or_default());
            if let Some(target) = inner_link(root, &path) {
                self.files.insert(there, Content::Link(target));
                continue;
            }
            match fs::metadata(&path).map_err(unread(&path)) {
                Ok(metadata) if metadata.is_dir() => {
                    self.folder(root, &path, &there, left_out)?;
                }
                Ok(_) => {
                    self.files.insert(there, Content::Copy(path));
                }
                // A link to something that is not installed.
                Err(_) if path.is_symlink() => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// The layer as a compressed tar archive, and the digest of the archive before it was compressed.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn packed(&self) -> Result<(Vec<u8>, String), ImageError> {
        let plain = self.archive()?;
        let failed = unread(Path::new(&self.name));
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&plain).map_err(&failed)?;
        Ok((packed.finish().map_err(&failed)?, super::digest::sha256(&plain)))
    }

    /// The layer as a tar archive.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn archive(&self) -> Result<Vec<u8>, ImageError> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, content) in &self.files {
            append(&mut archive, path, content).map_err(unread(content.of_machine(path)))?;
        }
        archive.into_inner().map_err(unread(Path::new(&self.name)))
    }
}

impl Content {
    /// The file of this machine that it is read from; for others the path in the image.
    fn of_machine<'a>(&'a self, there: &'a Path) -> &'a Path {
        match self {
            Self::Copy(from) => from,
            _ => there,
        }
    }
}

fn unread(path: &Path) -> impl Fn(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::File { path: path.clone(), source }
}

/// Where a link leads that stays within the tree; one that leaves it is replaced by what it leads to.
fn inner_link(root: &Path, path: &Path) -> Option<PathBuf> {
    let target = fs::read_link(path).ok().filter(|target| target.is_relative())?;
    fs::canonicalize(path).ok().filter(|end| end.starts_with(root)).map(|_| target)
}

fn append(archive: &mut tar::Builder<Vec<u8>>, path: &Path, content: &Content) -> io::Result<()> {
    let (bytes, mode, kind) = match content {
        Content::Copy(from) => (fs::read(from)?, mode_of(&fs::metadata(from)?), EntryType::Regular),
        Content::Text(text) => (text.clone().into_bytes(), 0o644, EntryType::Regular),
        Content::Shared => (Vec::new(), 0o1777, EntryType::Directory),
        Content::Link(_) => (Vec::new(), 0o777, EntryType::Symlink),
    };
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    // When a file was written is no part of what it is.
    header.set_mtime(0);
    header.set_size(bytes.len() as u64);
    let path = path.strip_prefix("/").unwrap_or(path);
    match content {
        Content::Link(target) => archive.append_link(&mut header, path, target),
        _ => archive.append_data(&mut header, path, bytes.as_slice()),
    }
}

/// Everybody may read it, whoever owned it here, and start it if its owner could.
fn mode_of(metadata: &Metadata) -> u32 {
    if metadata.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 }
}
