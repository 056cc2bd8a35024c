//! seal: lays out the pages that place decided, sets checksums, hands them to the writers.

use super::place::{Carry, Placement};
use crate::build::page_buffer::PageBuffer;
use crate::build::relation_file::RelationFile;
use crate::build::writer::WriterPool;
use crate::error::Result;
use crate::sys::simd::set_checksum;
use pgformat::heap::page::HeapPageWriter;
use pgformat::heap::tuple::FormedTuple;
use pgformat::ids::BlockNumber;
use pgformat::page::Page;
use std::sync::Arc;

/// What the pages are for: the server leaves a TOAST table's pages not all-visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapKind {
    /// A table.
    Table,
    /// A TOAST table.
    Toast,
}

/// The heap that is being written.
#[derive(Debug, Clone, Copy)]
pub struct Heap<'a> {
    /// Its file.
    pub file: &'a Arc<RelationFile>,
    /// Who writes.
    pub writers: &'a WriterPool,
    /// What it is.
    pub kind: HeapKind,
}

/// Seals the pages of one chunk.
pub fn seal(
    heap: Heap<'_>,
    placement: &Placement,
    arena: &[u8],
    tuples: &[FormedTuple],
) -> Result<()> {
    let mut from = 0;
    let mut carried = Some(&placement.carried_in);
    let mut pages = Pages {
        heap,
        buffer: None,
        filled: 0,
        next: placement.first_block,
    };
    for &to in &placement.page_ends {
        pages.fill_next(|page, block| {
            let carried = carried.take().into_iter().flat_map(Carry::iter);
            let own = tuples[from..to]
                .iter()
                .map(|t| &arena[t.pos as usize..(t.pos + t.len) as usize]);
            lay_out(heap, page, block, carried.chain(own));
        })?;
        from = to;
    }
    pages.hand_over()
}

/// Seals the last page, which no chunk filled, and hands it over.
pub fn seal_last(heap: Heap<'_>, block: BlockNumber, carry: &Carry) -> Result<()> {
    let mut buffer = heap.writers.buffer()?;
    lay_out(heap, &mut buffer.pages_mut()[0], block, carry.iter());
    heap.writers.submit(heap.file, block, buffer, 1)
}

fn lay_out<'t>(
    heap: Heap<'_>,
    page: &mut Page,
    block: BlockNumber,
    tuples: impl Iterator<Item = &'t [u8]>,
) {
    let mut writer = HeapPageWriter::new(page, block);
    for tuple in tuples {
        writer.put(tuple);
    }
    match heap.kind {
        HeapKind::Table => writer.finish(),
        HeapKind::Toast => writer.finish_toast(),
    }
    if heap.file.checksums() {
        set_checksum(page, block);
    }
}

/// Consecutive pages on their way into buffers.
struct Pages<'a> {
    heap: Heap<'a>,
    buffer: Option<PageBuffer>,
    filled: usize,
    /// Block of the next page.
    next: BlockNumber,
}

impl Pages<'_> {
    fn fill_next(&mut self, fill: impl FnOnce(&mut Page, BlockNumber)) -> Result<()> {
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            empty => empty.insert(self.heap.writers.buffer()?),
        };
        fill(&mut buffer.pages_mut()[self.filled], self.next);
        self.filled += 1;
        self.next += 1;
        if self.filled == self.heap.writers.buffer_pages() {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        let Some(buffer) = self.buffer.take() else {
            return Ok(());
        };
        let blocks = std::mem::take(&mut self.filled);
        self.heap
            .writers
            .submit(self.heap.file, self.next - blocks as u32, buffer, blocks)
    }
}
