//! A layer: files at their places, as a tar archive whose bytes depend on nothing but them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use super::elf::libraries;
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
        let libraries = libraries(program)?.into_iter();
        let mut files: BTreeMap<PathBuf, Content> =
            libraries.map(|library| (library.clone(), Content::Copy(library))).collect();
        files.insert(there.into(), Content::Copy(program.to_owned()));
        Ok(Self { name: name.to_owned(), files })
    }

    /// The layer as a compressed tar archive, and the digest of the archive before it was compressed.
    pub(super) fn packed(&self) -> io::Result<(Vec<u8>, String)> {
        let mut plain = tar::Builder::new(Vec::new());
        for (path, content) in &self.files {
            append(&mut plain, path, content)?;
        }
        let plain = plain.into_inner()?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&plain)?;
        Ok((packed.finish()?, super::archive::sha256(&plain)))
    }
}

fn append(archive: &mut tar::Builder<Vec<u8>>, path: &Path, content: &Content) -> io::Result<()> {
    let (bytes, mode, kind) = match content {
        Content::Copy(from) => (fs::read(from)?, 0o755, EntryType::Regular),
        Content::Text(text) => (text.clone().into_bytes(), 0o644, EntryType::Regular),
        Content::Shared => (Vec::new(), 0o1777, EntryType::Directory),
    };
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    // When a file was written is no part of what it is.
    header.set_mtime(0);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path.strip_prefix("/").unwrap_or(path), bytes.as_slice())
}
