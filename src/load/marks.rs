//! From a TID back to a line of input, for messages.
//!
//! For each chunk we keep where its first tuple went and which line it began on. A row's
//! number within the chunk follows from the heap's own pages: they are read back only when there is an
//! error to tell.

use crate::error::{Error, Result};
use crate::sys::mapping::Mapping;
use pgformat::ids::Tid;
use pgformat::page::view::PageView;
use pgformat::page::{PAGE_BYTES, Page};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A chunk that was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkMark {
    /// The TID of its first row.
    pub first: Tid,
    /// Which of the table's inputs it came from.
    pub input: usize,
    /// The line of the file that row 0 begins on.
    pub first_row_line: u64,
    /// For each row how many lines after row 0 it begins; empty where each has one line.
    pub row_lines: Box<[u32]>,
}

impl ChunkMark {
    /// The input and the line of the chunk's row number `row`, from 0.
    pub fn place(&self, row: u64) -> (usize, u64) {
        let lines = match self.row_lines.get(row as usize) {
            Some(lines) => u64::from(*lines),
            None => row,
        };
        (self.input, self.first_row_line + lines)
    }
}

/// All chunks of a table, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(Vec<ChunkMark>);

impl Marks {
    /// Remembers the next chunk; one without rows leaves no mark.
    pub fn push(&mut self, mark: ChunkMark) {
        debug_assert!(self.0.last().is_none_or(|last| last.first < mark.first));
        self.0.push(mark);
    }

    /// The input and the line of the row at `tid`. `heap` is the first segment's path, with
    /// segments of `segment_blocks`; all its pages but the last were written.
    pub fn find(&self, tid: Tid, heap: &Path, segment_blocks: u32) -> Result<(usize, u64)> {
        let mark = self.chunk(tid);
        let mut row = 0;
        let mut block = mark.first.block;
        let mut first_offset = u64::from(mark.first.offset);
        while block < tid.block {
            let items = u64::from(item_count(heap, segment_blocks, block)?);
            row += items + 1 - first_offset;
            first_offset = 1;
            block += 1;
        }
        row += u64::from(tid.offset) - first_offset;
        Ok(mark.place(row))
    }

    /// All of them, in order.
    pub fn chunks(&self) -> &[ChunkMark] {
        &self.0
    }

    /// The chunk of the row at `tid`.
    ///
    /// # Panics
    /// When no row was placed there or before.
    pub fn chunk(&self, tid: Tid) -> &ChunkMark {
        let after = self.0.partition_point(|mark| mark.first <= tid);
        &self.0[after
            .checked_sub(1)
            .expect("a TID of ours lies in a chunk of ours")]
    }
}

/// How many line pointers a block of the heap has.
fn item_count(heap: &Path, segment_blocks: u32, block: u32) -> Result<u16> {
    let path = match block / segment_blocks {
        0 => heap.to_path_buf(),
        segment => PathBuf::from(format!("{}.{segment}", heap.display())),
    };
    let pos = u64::from(block % segment_blocks) * PAGE_BYTES as u64;
    let mapping = File::open(&path)
        .and_then(|file| Mapping::of_part(&file, pos, PAGE_BYTES))
        .map_err(|e| Error::io("read back", &path, &e))?;
    let page: &Page = mapping.bytes().try_into().expect("a page is mapped whole");
    let view = PageView::new(page)
        .map_err(|e| Error::new(crate::error::Class::Corruption, "XX001", e.to_string()))?;
    Ok(view.item_count())
}
