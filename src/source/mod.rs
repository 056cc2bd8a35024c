//! Where bytes come from: files, standard input, pipes, compressed files.
//!
//! The first step of a load. A regular file can be read at any place by any worker
//! ([`FileSource`]); everything else is read forwards by a thread of its own that decompresses
//! and converts ahead of its reader ([`Stream`]). `record` makes records of the bytes.

pub mod buffer;
pub mod charset;
pub mod compressed;
pub mod dump;
pub mod file;
pub mod origin;
pub mod stream;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

pub use buffer::Buffer;
pub use charset::{Charset, Conversion};
pub use file::FileSource;
pub use origin::{Member, Origin};
pub use stream::Stream;

use crate::error::{Error, Result};
use compressed::Compression;

/// Bytes that tell a compressed file.
const HEAD_BYTES: usize = 6;

/// How many bytes a stream's block has before conversion.
pub const BLOCK_BYTES: usize = 1 << 20;

/// A source that is open.
#[derive(Debug)]
pub enum Input {
    /// A regular file, read at any place.
    File(FileSource),
    /// Read forwards only.
    Stream(Stream),
}

/// Opens what the user named: a path, or `-` for standard input.
///
/// A file ending in `.gz`, `.zst` or `.lz4`, or beginning as such files begin, is decompressed.
/// With a conversion the bytes come converted.
///
/// # Errors
/// The file cannot be opened, or is a directory.
pub fn open(name: &Path, conversion: Option<Conversion>) -> Result<Input> {
    open_with_blocks(name, conversion, BLOCK_BYTES)
}

/// The same with blocks of another size for streams.
pub fn open_with_blocks(
    name: &Path,
    conversion: Option<Conversion>,
    block_bytes: usize,
) -> Result<Input> {
    let is_stdin = name == Path::new("-");
    let label = if is_stdin {
        "stdin".to_owned()
    } else {
        name.display().to_string()
    };
    let file = if is_stdin {
        std::io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map(File::from)
    } else {
        File::open(name)
    };
    let mut file = file.map_err(|error| could_not_open(&label, &error))?;
    let metadata = file
        .metadata()
        .map_err(|error| Error::io("stat file", &label, &error))?;
    if metadata.is_dir() {
        return Err(Error::refused(
            "42809",
            format!("\"{label}\" is a directory"),
        ));
    }
    // Standard input may be a file that was read in part already: it is then a stream.
    let starts = !is_stdin || matches!(std::io::Seek::stream_position(&mut file), Ok(0));
    let is_regular = metadata.is_file() && starts;
    let (head, compression) = if is_regular {
        let mut head = [0; HEAD_BYTES];
        let read = std::os::unix::fs::FileExt::read_at(&file, &mut head, 0)
            .map_err(|error| Error::io("read file", &label, &error))?;
        (Vec::new(), Compression::of(name, &head[..read]))
    } else {
        let mut head = Vec::new();
        file.by_ref()
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(|error| Error::io("read file", &label, &error))?;
        let compression = Compression::of(name, &head);
        (head, compression)
    };
    match compression {
        None if is_regular && conversion.is_none() => {
            Ok(Input::File(FileSource::from_file(label, file)?))
        }
        _ => {
            let reader = std::io::Cursor::new(head).chain(file);
            Ok(Input::Stream(Stream::start(
                label,
                Box::new(reader),
                compression,
                conversion,
                block_bytes,
            )?))
        }
    }
}

/// The files that a name stands for: itself where there is such a file, or else what it matches
/// as a pattern, in alphabetical order.
///
/// # Errors
/// 58P01 when nothing matches; 22023 when the pattern is malformed.
pub fn expand(name: &str) -> Result<Vec<PathBuf>> {
    let path = PathBuf::from(name);
    let is_pattern = name.contains(['*', '?', '[']);
    if !is_pattern || name == "-" || path.symlink_metadata().is_ok() {
        return Ok(vec![path]);
    }
    let matches = glob::glob(name)
        .map_err(|error| Error::refused("22023", format!("invalid pattern \"{name}\": {error}")))?;
    let mut paths = Vec::new();
    for found in matches {
        let found = found.map_err(|error| {
            Error::io("read directory", error.path().to_path_buf(), error.error())
        })?;
        if !found.is_dir() {
            paths.push(found);
        }
    }
    if paths.is_empty() {
        return Err(could_not_open(
            name,
            &std::io::Error::from_raw_os_error(libc::ENOENT),
        ));
    }
    paths.sort();
    Ok(paths)
}

/// COPY's words for a file that does not open.
fn could_not_open(name: &str, error: &std::io::Error) -> Error {
    let mut refusal = Error::io("open file", name, error);
    refusal.message = refusal.message.replacen("\": ", "\" for reading: ", 1);
    refusal
}

#[cfg(test)]
mod tests;
