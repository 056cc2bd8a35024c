//! Files seen as memory, read only.

use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io;

/// Part of a file that nobody writes to any more.
///
/// A page that the disk cannot give is a SIGBUS, not an error: map only what this process wrote
/// itself, and checks before it trusts it.
#[derive(Debug)]
pub struct Mapping(Mmap);

impl Mapping {
    /// Maps `bytes` bytes of `file` from `pos` on, and has the kernel read them at once.
    ///
    /// # Errors
    /// The kernel's; also where the file ends before.
    pub fn of_part(file: &File, pos: u64, bytes: usize) -> io::Result<Mapping> {
        if file.metadata()?.len() < pos + bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the bytes lie in the file, and whoever maps them has written them and writes
        // them no more; others have no way to the file, or no business with it.
        let mapped = unsafe {
            MmapOptions::new()
                .offset(pos)
                .len(bytes)
                .populate()
                .map(file)
        };
        mapped.map(Mapping)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_part_that_begins_and_ends_within_pages_is_mapped() {
        let mut file = tempfile::tempfile().unwrap();
        let all: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8).collect();
        file.write_all(&all).unwrap();
        let part = Mapping::of_part(&file, 4097, 9000).unwrap();
        assert_eq!(part.bytes(), &all[4097..13_097]);
    }

    #[test]
    fn what_lies_behind_the_end_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 100]).unwrap();
        let error = Mapping::of_part(&file, 90, 11).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
