//! Runs on disk: one unnamed temporary file per sorter, in blocks with checksums.
//!
//! A block holds whole entries. Where each block lies, how long it is and its CRC-32C stay in
//! memory, so the file has no structure of its own and writers need not wait for each other.
//! Blocks are mapped to be read: a merge looks at each byte once, so a copy would cost as much.

use crate::error::{Class, Error, Result};
use crate::sys::mapping::Mapping;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The temporary file of a sorter.
#[derive(Debug)]
pub(super) struct SpillFile {
    directory: PathBuf,
    file: OnceLock<File>,
    end: AtomicU64,
    /// A block is written when it has this many bytes.
    block_bytes: usize,
}

/// A block of a run.
#[derive(Debug, Clone, Copy)]
struct Block {
    pos: u64,
    bytes: u32,
    crc: u32,
}

/// A sorted run on disk.
#[derive(Debug, Default)]
pub(super) struct Run {
    blocks: Vec<Block>,
}

impl SpillFile {
    /// A file that comes into being when it is first written to.
    pub(super) fn new(directory: PathBuf, block_bytes: usize) -> SpillFile {
        SpillFile {
            directory,
            file: OnceLock::new(),
            end: AtomicU64::new(0),
            block_bytes,
        }
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn file(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let made = tempfile::tempfile_in(&self.directory)
            .map_err(|e| Error::io("create a temporary file in", &self.directory, &e))?;
        // Another thread may have been faster; its file is as good.
        Ok(self.file.get_or_init(|| made))
    }

    fn write(&self, block: &[u8]) -> Result<Block> {
        let pos = self.end.fetch_add(block.len() as u64, Ordering::Relaxed);
        self.file()?
            .write_all_at(block, pos)
            .map_err(|e| Error::io("write a temporary file in", &self.directory, &e))?;
        Ok(Block {
            pos,
            bytes: block.len() as u32,
            crc: crc32c::crc32c(block),
        })
    }

    fn read(&self, block: Block) -> Result<Mapping> {
        let mapping = Mapping::of_part(self.file()?, block.pos, block.bytes as usize)
            .map_err(|e| Error::io("read a temporary file in", &self.directory, &e))?;
        if crc32c::crc32c(mapping.bytes()) == block.crc {
            return Ok(mapping);
        }
        Err(Error::new(
            Class::Environment,
            "58030",
            format!(
                "a temporary file in \"{}\" does not give back what was written to it",
                self.directory.display()
            ),
        ))
    }
}

/// Writes a run.
#[derive(Debug)]
pub(super) struct RunWriter<'f> {
    file: &'f SpillFile,
    run: Run,
    block: Vec<u8>,
}

impl<'f> RunWriter<'f> {
    pub(super) fn new(file: &'f SpillFile) -> RunWriter<'f> {
        RunWriter {
            file,
            run: Run::default(),
            block: Vec::with_capacity(file.block_bytes + 4096),
        }
    }

    /// Adds an entry, given in parts.
    #[inline]
    pub(super) fn push<'p>(&mut self, parts: impl IntoIterator<Item = &'p [u8]>) -> Result<()> {
        for part in parts {
            self.block.extend_from_slice(part);
        }
        if self.block.len() >= self.file.block_bytes {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.run.blocks.push(self.file.write(&self.block)?);
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        if !self.block.is_empty() {
            self.flush()?;
        }
        Ok(self.run)
    }
}

/// Reads a run block by block.
#[derive(Debug)]
pub(super) struct RunReader<'f> {
    file: &'f SpillFile,
    blocks: std::vec::IntoIter<Block>,
    /// The block in hand; none before the first and after the last.
    block: Option<Mapping>,
    pos: usize,
}

impl<'f> RunReader<'f> {
    pub(super) fn new(file: &'f SpillFile, run: Run) -> RunReader<'f> {
        RunReader {
            file,
            blocks: run.blocks.into_iter(),
            block: None,
            pos: 0,
        }
    }

    /// What is left of the block in hand, or the next block; empty at the end of the run. The
    /// caller says how much of it he took by [`RunReader::consume`].
    #[inline]
    pub(super) fn fill(&mut self) -> Result<&[u8]> {
        if self.rest().is_empty() {
            self.next_block()?;
        }
        Ok(self.rest())
    }

    #[cold]
    fn next_block(&mut self) -> Result<()> {
        self.pos = 0;
        // Unmapped before the next is mapped.
        self.block = None;
        if let Some(block) = self.blocks.next() {
            self.block = Some(self.file.read(block)?);
        }
        Ok(())
    }

    /// What is left of the block in hand.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |b| &b.bytes()[self.pos..])
    }

    #[inline]
    pub(super) fn consume(&mut self, bytes: usize) {
        self.pos += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_comes_back_and_a_changed_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let file = SpillFile::new(dir.path().to_owned(), 10);
        let mut writer = RunWriter::new(&file);
        for i in 0..7u8 {
            writer.push([&[i; 2][..], &[i; 2]]).unwrap();
        }
        let run = writer.finish().unwrap();
        assert_eq!(run.blocks.len(), 3);
        let blocks = run.blocks.clone();
        let mut reader = RunReader::new(&file, run);
        let mut back = Vec::new();
        loop {
            let n = reader.fill().unwrap().len();
            if n == 0 {
                break;
            }
            back.extend_from_slice(&reader.rest()[..1]);
            reader.consume(1);
        }
        assert_eq!(back.len(), 28);
        assert_eq!(back[24..], [6; 4]);

        file.file().unwrap().write_all_at(&[99], 1).unwrap();
        let mut reader = RunReader::new(&file, Run { blocks });
        assert_eq!(reader.fill().unwrap_err().sqlstate, "58030");
    }
}
