//! The containers of `pg_dump`: archives and scripts.

pub mod archive;
pub mod script;
pub mod spool;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::compressed::Compression;
use crate::error::{Error, Result};

/// What a dump is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpKind {
    /// Custom, directory or tar: a table of contents and the data of its entries.
    Archive,
    /// Plain SQL, as for psql.
    Script,
}

/// Where the data of an entry lie.
pub enum MemberData {
    /// Plain bytes in a regular file: any worker can read any part of them.
    Range {
        /// The file.
        path: PathBuf,
        /// Where they begin, in bytes.
        pos: u64,
        /// How many they are.
        len: u64,
    },
    /// Read forwards; the bytes come decompressed.
    Stream(Box<dyn Read + Send>),
}

/// Bytes at the beginning of a file that tell what it is: the magic of a tar file ends there.
const HEAD_BYTES: u64 = 512;

/// What the content at `path` is. A name says nothing.
///
/// # Errors
/// It cannot be read; `22P04` for a directory that is no archive.
pub fn recognise(path: &Path) -> Result<DumpKind> {
    if path.is_dir() {
        if archive::is_directory_archive(path) {
            return Ok(DumpKind::Archive);
        }
        return Err(Error::refused(
            "22P04",
            format!(
                "directory \"{}\" does not appear to be a valid archive (\"toc.dat\" does not exist)",
                path.display()
            ),
        ));
    }
    let file = File::open(path).map_err(|e| Error::io("open input file", path, &e))?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(|e| Error::io("read file", path, &e))?;
    if Compression::of_head(&head).is_none() && archive::is_archive(&head) {
        Ok(DumpKind::Archive)
    } else {
        Ok(DumpKind::Script)
    }
}
