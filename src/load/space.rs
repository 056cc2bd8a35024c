//! Room on disk: what there is, and the refusal of what surely does not fit.

use crate::error::{Error, Result};
use crate::sys::files::{self, Room};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A file system, and the bytes that are to go there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The first directory in it, for messages.
    pub directory: PathBuf,
    /// Its room.
    pub room: Room,
    /// The bytes.
    pub bytes: u64,
}

/// Adds up by file systems the bytes that are to go into directories, which exist.
///
/// # Errors
/// The file system's.
pub fn demands(parts: &[(&Path, u64)]) -> Result<Vec<Demand>> {
    let mut demands: Vec<Demand> = Vec::new();
    let mut seen: Vec<(&Path, usize)> = Vec::new();
    for (directory, bytes) in parts {
        let known = seen.iter().find(|(path, _)| path == directory);
        let number = if let Some((_, number)) = known {
            *number
        } else {
            let number = file_system(&mut demands, directory)?;
            seen.push((directory, number));
            number
        };
        demands[number].bytes += bytes;
    }
    Ok(demands)
}

/// The number of a directory's file system among those that are known, which it may come to.
fn file_system(demands: &mut Vec<Demand>, directory: &Path) -> Result<usize> {
    let room = File::open(directory)
        .and_then(|opened| files::room(&opened))
        .map_err(|e| Error::io("look at the file system of", directory, &e))?;
    let known = demands.iter().position(|d| d.room.device == room.device);
    Ok(known.unwrap_or_else(|| {
        demands.push(Demand {
            directory: directory.to_path_buf(),
            room,
            bytes: 0,
        });
        demands.len() - 1
    }))
}

/// Refuses what does not fit. `parts` are bytes that will surely be written.
///
/// # Errors
/// `53100` with the figures.
pub fn refuse_if_short(parts: &[(&Path, u64)]) -> Result<()> {
    let short = demands(parts)?
        .into_iter()
        .find(|demand| demand.room.is_plain && demand.bytes > demand.room.free_bytes);
    match short {
        None => Ok(()),
        Some(demand) => Err(Error::environment(
            "53100",
            format!(
                "not enough room in the file system of \"{}\"",
                demand.directory.display()
            ),
        )
        .with_detail(format!(
            "At least {} bytes would be written, {} are free.",
            demand.bytes, demand.room.free_bytes
        ))
        .with_hint("Nothing was written. Free some space and run the command again.")),
    }
}
