//! Where the bytes of an input lie, and how they are opened.

use std::fmt::Debug;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BLOCK_BYTES, Conversion, FileSource, Input, Stream};
use crate::error::Result;

/// Where the bytes of an input lie.
#[derive(Debug, Clone)]
pub enum Origin {
    /// What the user named: a file, perhaps compressed, or `-` for standard input.
    Named(PathBuf),
    /// Plain bytes in a regular file.
    Part(FileSource),
    /// What is read forwards only, each time from its beginning.
    Member(Arc<dyn Member>),
}

/// The rows of a table in a dump, as they are in COPY's text.
pub trait Member: Debug + Send + Sync {
    /// A reader of the plain bytes.
    ///
    /// # Errors
    /// The dump cannot be read, or is damaged there.
    fn open(&self) -> Result<Box<dyn Read + Send>>;
}

impl Origin {
    /// Opens it; `label` is its name in messages. The bytes come converted.
    ///
    /// # Errors
    /// Those of [`super::open`]. A member is opened with the first of its blocks.
    pub fn open(&self, label: &str, conversion: Option<Conversion>) -> Result<Input> {
        match (self, conversion) {
            (Origin::Named(path), conversion) => super::open(path, conversion),
            (Origin::Part(part), None) => Ok(Input::File(part.clone())),
            (Origin::Part(part), conversion) => Ok(Input::Stream(Stream::start(
                label.to_owned(),
                Box::new(part.reader()),
                None,
                conversion,
                BLOCK_BYTES,
            )?)),
            (Origin::Member(member), conversion) => {
                let member = Arc::clone(member);
                Ok(Input::Stream(Stream::deferred(
                    label.to_owned(),
                    Box::new(move || member.open()),
                    conversion,
                )))
            }
        }
    }

    /// The bytes in their file, where these are known beforehand.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Origin::Named(path) => file_bytes(path),
            Origin::Part(part) => Some(part.len()),
            Origin::Member(_) => None,
        }
    }

    /// It can be opened only once, or opening it takes bytes from somebody.
    pub fn is_fleeting(&self) -> bool {
        match self {
            Origin::Named(path) => {
                path.as_os_str() == "-"
                    || fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
            }
            Origin::Part(_) | Origin::Member(_) => false,
        }
    }

    /// What the user named, if that is a file and not a dump.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Origin::Named(path) => Some(path),
            Origin::Part(_) | Origin::Member(_) => None,
        }
    }
}

/// Bytes of a regular file.
fn file_bytes(path: &Path) -> Option<u64> {
    fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .map(|m| m.len())
}
