//! Dumps that cannot be read at any place, as files that can: standard input, pipes, and what is
//! compressed as a whole.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::compressed::Compression;
use crate::error::{Error, Result};

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A dump as a file or a directory.
#[derive(Debug)]
pub struct DumpFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its name as the user wrote it.
    pub label: String,
    /// The copy, which has no name of its own: whatever ends us ends it.
    _spooled: Option<File>,
}

impl DumpFile {
    /// Opens a dump; `-` is standard input. Copies go into `temp_dir`, or the system's directory for
    /// such files. `wanted` is asked from time to time.
    ///
    /// # Errors
    /// It cannot be read or decompressed, the copy cannot be written, or it is wanted no more.
    pub fn open(
        named: &Path,
        temp_dir: Option<&Path>,
        wanted: &dyn Fn() -> Result<()>,
    ) -> Result<DumpFile> {
        let is_stdin = named.as_os_str() == "-";
        let label = if is_stdin {
            "stdin".to_owned()
        } else {
            named.display().to_string()
        };
        let mut input: Box<dyn Read + Send> = if is_stdin {
            Box::new(std::io::stdin())
        } else {
            let metadata = named
                .metadata()
                .map_err(|e| Error::io("open input file", named, &e))?;
            let file = File::open(named).map_err(|e| Error::io("open input file", named, &e))?;
            if metadata.is_dir() || (metadata.is_file() && !is_compressed(&file, named)?) {
                return Ok(DumpFile {
                    path: named.to_path_buf(),
                    label,
                    _spooled: None,
                });
            }
            Box::new(file)
        };
        let failed = |e: &std::io::Error| {
            if e.raw_os_error().is_some() {
                Error::io("read file", label.as_str(), e)
            } else {
                Error::refused("22P04", format!("could not decompress \"{label}\": {e}"))
            }
        };
        let mut head = Vec::new();
        input
            .by_ref()
            .take(super::super::HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(|e| failed(&e))?;
        let compression = Compression::of_head(&head);
        let whole = std::io::Cursor::new(head).chain(input);
        let mut plain: Box<dyn Read> = match compression {
            None => Box::new(whole),
            Some(compression) => compression
                .decode(Box::new(whole))
                .map_err(|e| failed(&e))?,
        };
        let directory = temp_dir.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let full = |e: &std::io::Error| Error::io("write to a temporary file in", &directory, e);
        let mut copy = tempfile::tempfile_in(&directory).map_err(|e| full(&e))?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            wanted()?;
            let read = match plain.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(failed(&e)),
            };
            copy.write_all(&piece[..read]).map_err(|e| full(&e))?;
        }
        Ok(DumpFile {
            path: format!("/proc/self/fd/{}", copy.as_raw_fd()).into(),
            label,
            _spooled: Some(copy),
        })
    }
}

fn is_compressed(file: &File, path: &Path) -> Result<bool> {
    let mut head = [0; super::super::HEAD_BYTES];
    let read = file
        .read_at(&mut head, 0)
        .map_err(|e| Error::io("read file", path, &e))?;
    Ok(Compression::of_head(&head[..read]).is_some())
}
