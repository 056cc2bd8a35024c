//! What a target reads: a file, or a directory of files.

use std::fs;
use std::io;
use std::path::Path;

/// An input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Names and contents; a single one where it is no directory.
    pub files: Vec<(String, Vec<u8>)>,
    /// It is a directory.
    pub is_directory: bool,
}

impl Input {
    /// A file of these bytes.
    pub fn file(bytes: Vec<u8>) -> Input {
        Input {
            files: vec![(String::new(), bytes)],
            is_directory: false,
        }
    }

    /// Reads a file, or all files of a directory in the order of their names.
    ///
    /// # Errors
    /// It cannot be read, or has no file.
    pub fn read(path: &Path) -> io::Result<Input> {
        if !path.is_dir() {
            return Ok(Input::file(fs::read(path)?));
        }
        let mut files = Vec::new();
        for file in fs::read_dir(path)? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            files.push((name, fs::read(file.path())?));
        }
        if files.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is empty", path.display()),
            ));
        }
        files.sort();
        Ok(Input {
            files,
            is_directory: true,
        })
    }

    /// Writes it to where nothing is, or where one with the same names was written before.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if !self.is_directory {
            return fs::write(path, &self.files[0].1);
        }
        fs::create_dir_all(path)?;
        for (name, bytes) in &self.files {
            fs::write(path.join(name), bytes)?;
        }
        Ok(())
    }
}
