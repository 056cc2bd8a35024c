//! A regular file that workers read at any place.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use crate::error::{Error, Result};

/// An open regular file whose size was noted when it was opened.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    file: File,
    len: u64,
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
            file,
            len: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }

    /// Its name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its size in bytes when it was opened.
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
        match self.file.read_exact_at(into, pos) {
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
        if metadata.len() != self.len || metadata.modified().ok() != self.modified {
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
