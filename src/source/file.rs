//! A regular file, or a part of one, that workers read at any place.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Error, Result};

/// An open regular file whose size was noted when it was opened, or a part of it.
#[derive(Debug, Clone)]
pub struct FileSource {
    name: String,
    file: Arc<File>,
    /// Where the part begins.
    start: u64,
    /// Bytes of the part.
    len: u64,
    /// Bytes of the whole file.
    file_len: u64,
    modified: Option<SystemTime>,
}

impl FileSource {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened, or is not a regular file.
    pub fn open(path: &Path) -> Result<FileSource> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| super::could_not_open(&name, &error))?;
        FileSource::from_file(name, file)
    }

    /// A file that is open already; `name` is for messages.
    pub(super) fn from_file(name: String, file: File) -> Result<FileSource> {
        let metadata = file
            .metadata()
            .map_err(|error| Error::io("stat file", &name, &error))?;
        if !metadata.is_file() {
            return Err(Error::refused(
                "42809",
                format!("\"{name}\" is not a regular file"),
            ));
        }
        Ok(FileSource {
            name,
            file: Arc::new(file),
            start: 0,
            len: metadata.len(),
            file_len: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }

    /// `len` bytes from `pos` on as a source of their own; `name` is for messages.
    ///
    /// # Errors
    /// The file ends before.
    pub fn part(&self, name: String, pos: u64, len: u64) -> Result<FileSource> {
        match pos.checked_add(len) {
            Some(end) if end <= self.len => Ok(FileSource {
                name,
                start: self.start + pos,
                len,
                ..self.clone()
            }),
            _ => Err(self.changed()),
        }
    }

    /// The bytes one after the other.
    pub fn reader(&self) -> impl Read + Send + use<> {
        PartReader {
            source: self.clone(),
            pos: 0,
        }
    }

    /// Its name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes when it was opened.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a size in bytes, not a collection"
    )]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Fills `into` with the bytes from `pos` on.
    ///
    /// # Errors
    /// The file cannot be read, or has become too short.
    pub fn read_at(&self, pos: u64, into: &mut [u8]) -> Result<()> {
        match self.file.read_exact_at(into, self.start + pos) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.changed()),
            Err(error) => Err(Error::io("read file", &self.name, &error)),
        }
    }

    /// Checks, after the last read, that the file is still the one that was opened.
    ///
    /// # Errors
    /// Its size or its time of modification changed.
    pub fn check_unchanged(&self) -> Result<()> {
        let metadata = self
            .file
            .metadata()
            .map_err(|error| Error::io("stat file", &self.name, &error))?;
        if metadata.len() != self.file_len || metadata.modified().ok() != self.modified {
            return Err(self.changed());
        }
        Ok(())
    }

    #[cold]
    fn changed(&self) -> Error {
        Error::environment(
            "55006",
            format!("file \"{}\" changed while it was being read", self.name),
        )
        .with_hint("Run the command again when nothing writes to the file.")
    }
}

/// Reads a part from its beginning to its end.
struct PartReader {
    source: FileSource,
    pos: u64,
}

impl Read for PartReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len - self.pos;
        let wanted = left.min(into.len() as u64) as usize;
        let at = self.source.start + self.pos;
        let read = self.source.file.read_at(&mut into[..wanted], at)?;
        if read == 0 && wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.pos += read as u64;
        Ok(read)
    }
}
