//! The readers of pg_dump's archives: custom, directory and tar.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pgpagewrite::error::{Error, Result};
use pgpagewrite::source::dump::archive::{Archive, Entry, Header};
use pgpagewrite::source::dump::{DumpKind, MemberData, recognise};

use super::{Input, Target};

/// Bytes of data that are read of an archive: compressed ones may promise any number.
pub const MAX_DATA_BYTES: u64 = 8 << 20;
/// How often in a row a reader may say that it was interrupted.
const MAX_INTERRUPTIONS: usize = 100;
/// What an archive may be refused with: damaged, not supported, file not found, input or output
/// error.
const SQLSTATES: [&str; 4] = ["22P04", "0A000", "58P01", "58030"];

/// All that an archive holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Its header.
    pub header: Header,
    /// Its table of contents.
    pub entries: Vec<Entry>,
    /// Dump ids and bytes of the members.
    pub members: Vec<(i32, Vec<u8>)>,
    /// Dump ids of the entries, OIDs and bytes of the large objects.
    pub large_objects: Vec<(i32, u32, Vec<u8>)>,
}

/// Reads all of an archive; at most [`MAX_DATA_BYTES`] of its data.
///
/// # Errors
/// It is no archive, or damaged.
///
/// # Panics
/// When a member lies where the archive is not, or a reader is interrupted without end.
pub fn contents(path: &Path) -> Result<Contents> {
    let kind = recognise(path)?;
    let archive = Archive::open(path, "archive")?;
    // What begins as a compressed file is taken for one.
    assert!(kind == DumpKind::Archive || !path.is_dir());
    let mut budget = MAX_DATA_BYTES;
    let mut members = Vec::new();
    let mut large_objects = Vec::new();
    let entries = archive.entries.clone();
    for entry in &entries {
        if entry.desc == "BLOBS" {
            archive.large_objects(entry, &mut |oid, data| {
                let bytes = drain(data, &mut budget).map_err(|e| broken(&e))?;
                large_objects.push((entry.dump_id, oid, bytes));
                Ok(())
            })?;
        } else if let Some(data) = archive.member(entry)? {
            let bytes = match data {
                MemberData::Range { path, pos, len } => range(&path, pos, len, &mut budget),
                MemberData::Stream(mut stream) => drain(&mut stream, &mut budget),
            };
            members.push((entry.dump_id, bytes.map_err(|e| broken(&e))?));
        }
    }
    assert!(archive.list(&entries.iter().collect::<Vec<_>>()).len() > 100);
    Ok(Contents {
        header: archive.header.clone(),
        entries,
        members,
        large_objects,
    })
}

fn broken(error: &io::Error) -> Error {
    Error::refused("22P04", error.to_string())
}

/// The bytes of a part of a file, which must be there.
fn range(path: &Path, pos: u64, len: u64, budget: &mut u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path)?;
    let there = file.metadata()?.len();
    assert!(
        pos.checked_add(len).is_some_and(|end| end <= there),
        "{len} bytes from {pos} of {there}"
    );
    let mut bytes = vec![0; len.min(*budget) as usize];
    *budget -= bytes.len() as u64;
    file.read_exact_at(&mut bytes, pos)?;
    Ok(bytes)
}

/// The bytes of a stream, as far as the budget goes.
fn drain(stream: &mut dyn Read, budget: &mut u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 32 << 10];
    let mut interruptions = 0;
    while *budget > 0 {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => {
                let read = read.min(usize::try_from(*budget).unwrap_or(usize::MAX));
                bytes.extend_from_slice(&piece[..read]);
                *budget -= read as u64;
                interruptions = 0;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                interruptions += 1;
                assert!(
                    interruptions <= MAX_INTERRUPTIONS,
                    "interrupted without end: {e}"
                );
            }
            Err(e) => return Err(e),
        }
    }
    Ok(bytes)
}

/// The target `archive`.
#[derive(Debug)]
pub struct ArchiveTarget {
    place: tempfile::TempDir,
}

impl ArchiveTarget {
    /// Inputs are written to a directory in memory, where there is one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<ArchiveTarget> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Ok(ArchiveTarget { place: place? })
    }

    /// Reads an input as an archive.
    ///
    /// # Errors
    /// Those of [`contents`].
    ///
    /// # Panics
    /// When the input cannot be written, and as [`contents`].
    pub fn contents(&self, input: &Input) -> Result<Contents> {
        let path = self.path(input);
        input.write(&path).expect("an input");
        contents(&path)
    }

    /// A place that is the same for the same names of files.
    fn path(&self, input: &Input) -> PathBuf {
        let name = if input.is_directory {
            let names: Vec<&str> = input.files.iter().map(|(name, _)| name.as_str()).collect();
            names.join(" ")
        } else {
            "file".to_owned()
        };
        self.place.path().join(name)
    }
}

impl Target for ArchiveTarget {
    fn name(&self) -> &'static str {
        "archive"
    }

    fn execute(&mut self, input: &Input) -> bool {
        match self.contents(input) {
            Ok(_) => true,
            Err(error) => {
                assert!(
                    SQLSTATES.contains(&error.sqlstate.as_str()) && !error.message.is_empty(),
                    "{error:?}"
                );
                false
            }
        }
    }

    /// Tar headers have checksums, which would hide everything else from mutations.
    fn mend(&self, input: &mut Input) {
        const BLOCK: usize = 512;
        const CHECKSUM: std::ops::Range<usize> = 148..156;
        for (_, bytes) in &mut input.files {
            for block in bytes.chunks_exact_mut(BLOCK) {
                if &block[257..262] != b"ustar" {
                    continue;
                }
                block[CHECKSUM].fill(b' ');
                let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
                let text = format!("{sum:06o}\0 ");
                block[CHECKSUM].copy_from_slice(text.as_bytes());
            }
        }
    }
}
