//! Files of a stage: their checksums when it is made, and their copies into the cluster.

use super::manifest::StagedFile;
use crate::cluster::owner::FileOwner;
use crate::error::{Class, Error, Result};
use crate::load::interrupt::interrupted;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Reads every file of a stage that was just built and notes its length and checksum.
///
/// # Errors
/// The file system's; `57014` when `stop` is set.
pub(super) fn take_stock(files: &[PathBuf], stop: &AtomicBool) -> Result<Vec<StagedFile>> {
    files
        .par_iter()
        .map(|path| {
            let mut crc32c = 0;
            let mut length_bytes = 0;
            read_blocks(path, stop, |block| {
                crc32c = crc32c::crc32c_append(crc32c, block);
                length_bytes += block.len() as u64;
                Ok(())
            })?;
            let name = path.file_name().unwrap_or_default();
            Ok(StagedFile {
                name: name.to_string_lossy().into_owned(),
                length_bytes,
                crc32c,
            })
        })
        .collect()
}

/// Copies every file of a stage to its place and checks the bytes on their way: what was checked
/// is what was written.
///
/// # Errors
/// `XX001` for a file that is not as the manifest says, or gone; the file system's; `57014` when
/// `stop` is set.
pub(super) fn copy_all(
    stage: &Path,
    files: &[(&StagedFile, PathBuf)],
    owner: FileOwner,
    stop: &AtomicBool,
) -> Result<()> {
    files
        .par_iter()
        .try_for_each(|(file, to)| copy(&stage.join(&file.name), file, to, owner, stop))
}

fn copy(
    from: &Path,
    file: &StagedFile,
    to: &Path,
    owner: FileOwner,
    stop: &AtomicBool,
) -> Result<()> {
    let damaged = |what: String| {
        Error::new(
            Class::Corruption,
            "XX001",
            format!("file \"{}\" of the stage {what}", from.display()),
        )
        .with_hint("Nothing was loaded. Build the stage again.")
    };
    let mut target = owner
        .create_new(to)
        .map_err(|e| Error::io("create file", to, &e))?;
    let mut crc32c = 0;
    let mut length_bytes = 0;
    let copied = read_blocks(from, stop, |block| {
        crc32c = crc32c::crc32c_append(crc32c, block);
        length_bytes += block.len() as u64;
        if length_bytes > file.length_bytes {
            return Err(damaged("is longer than its manifest says".to_owned()));
        }
        target
            .write_all(block)
            .map_err(|e| Error::io("write file", to, &e))
    });
    match copied {
        Err(e) if e.sqlstate == "58P01" => return Err(damaged("is missing".to_owned())),
        copied => copied?,
    }
    if length_bytes != file.length_bytes {
        return Err(damaged(format!(
            "has {length_bytes} bytes instead of {}",
            file.length_bytes
        )));
    }
    if crc32c != file.crc32c {
        return Err(damaged("has changed since it was built".to_owned()));
    }
    Ok(())
}

/// Gives the bytes of a file to `each`, in order. What is no regular file is refused.
fn read_blocks(
    path: &Path,
    stop: &AtomicBool,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let failed = |e: &io::Error| Error::io("read file", path, e);
    let metadata = std::fs::symlink_metadata(path).map_err(|e| failed(&e))?;
    if !metadata.is_file() {
        return Err(Error::new(
            Class::Corruption,
            "XX001",
            format!("\"{}\" is not a regular file", path.display()),
        ));
    }
    let mut file = File::open(path).map_err(|e| failed(&e))?;
    let mut block = vec![0; BLOCK_BYTES.min(metadata.len() as usize + 1)];
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        match file.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(n) => each(&block[..n])?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(&e)),
        }
    }
}
