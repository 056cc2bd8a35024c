//! Pages that one thread makes one after the other: btrees, visibility maps.
//!
//! They are gathered in the writers' buffers. A page may come after pages of higher blocks,
//! as those of a btree's upper levels do: it finds its place in the buffer, or is written by
//! itself when its neighbours have left. In the end every block has been written once.

use super::page_buffer::PageBuffer;
use super::relation_file::{RelationFile, RelationSize};
use super::writer::WriterPool;
use crate::error::Result;
use crate::sys::simd::set_checksum;
use pgformat::ids::BlockNumber;
use pgformat::page::Page;
use std::ops::Range;
use std::sync::Arc;

/// Takes the pages of one fork.
#[derive(Debug)]
pub struct SequentialPages<'w> {
    file: Arc<RelationFile>,
    writers: &'w WriterPool,
    buffer: PageBuffer,
    /// Block of the buffer's first page.
    base: BlockNumber,
    /// Which pages of the buffer are there.
    filled: Vec<bool>,
    /// One more than the highest block so far.
    blocks: BlockNumber,
}

impl<'w> SequentialPages<'w> {
    /// Starts with block 0.
    ///
    /// # Errors
    /// The kernel has no memory.
    pub fn new(file: Arc<RelationFile>, writers: &'w WriterPool) -> Result<SequentialPages<'w>> {
        Ok(SequentialPages {
            file,
            writers,
            buffer: writers.buffer()?,
            base: 0,
            filled: vec![false; writers.buffer_pages()],
            blocks: 0,
        })
    }

    /// One more than the highest block so far: the block that [`SequentialPages::push`] gives
    /// out next.
    pub fn blocks(&self) -> BlockNumber {
        self.blocks
    }

    /// Takes the page of the block after the highest so far, sets its checksum, and returns
    /// the block.
    ///
    /// # Errors
    /// The first error of any write so far.
    pub fn push(&mut self, page: &Page) -> Result<BlockNumber> {
        let block = self.blocks;
        self.put(block, page)?;
        Ok(block)
    }

    /// Takes the page of `block`, which may come in any order, and sets its checksum.
    ///
    /// # Errors
    /// The first error of any write so far.
    pub fn put(&mut self, block: BlockNumber, page: &Page) -> Result<()> {
        self.blocks = self.blocks.max(block + 1);
        if block < self.base {
            let mut alone = self.writers.buffer()?;
            fill(&self.file, &mut alone.pages_mut()[0], block, page);
            return self.writers.submit(&self.file, block, alone, 1);
        }
        if (block - self.base) as usize >= self.filled.len() {
            self.hand_over()?;
            self.base = block;
        }
        let index = (block - self.base) as usize;
        assert!(!self.filled[index], "block {block} comes a second time");
        fill(&self.file, &mut self.buffer.pages_mut()[index], block, page);
        self.filled[index] = true;
        Ok(())
    }

    /// Hands the pages in hand to the writers.
    fn hand_over(&mut self) -> Result<()> {
        let runs = runs(&self.filled);
        if runs.is_empty() {
            return Ok(());
        }
        let next = self.writers.buffer()?;
        let full = std::mem::replace(&mut self.buffer, next);
        self.filled.fill(false);
        self.writers.submit_runs(&self.file, self.base, full, runs)
    }

    /// Hands over what is in hand and has the file finished: see [`WriterPool::finish`], which
    /// notices a block below the highest that never came.
    ///
    /// # Errors
    /// The first error of any write so far.
    pub fn finish(self) -> Result<RelationSize> {
        let runs = runs(&self.filled);
        if !runs.is_empty() {
            self.writers
                .submit_runs(&self.file, self.base, self.buffer, runs)?;
        }
        Ok(self.writers.finish(&self.file, self.blocks))
    }
}

fn fill(file: &RelationFile, place: &mut Page, block: BlockNumber, page: &Page) {
    place.copy_from_slice(page);
    if file.checksums() {
        set_checksum(place, block);
    }
}

/// The runs of what is there.
fn runs(filled: &[bool]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for run in filled.chunk_by(|a, b| a == b) {
        if run[0] {
            runs.push(start..start + run.len());
        }
        start += run.len();
    }
    runs
}
