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
    /// On which lines its rows begin.
    pub row_lines: RowLines,
}

/// On which lines the rows of a chunk begin, counted from row 0: a byte for each row that follows
/// the row before it closely.
///
/// ```text
/// steps to the next row, low bits first, 7 in a byte; the high bit is 1 where more follow
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowLines(Box<[u8]>);

/// In a byte of a step: more bits follow.
const MORE: u8 = 0x80;

impl RowLines {
    /// From the line of each row in a chunk; without any, each row has one line.
    pub fn new(lines: &[u32]) -> RowLines {
        let mut bytes = Vec::with_capacity(lines.len());
        for pair in lines.windows(2) {
            let mut step = pair[1] - pair[0];
            while step >= u32::from(MORE) {
                bytes.push(step as u8 | MORE);
                step >>= 7;
            }
            bytes.push(step as u8);
        }
        // One row alone has no step, and needs none.
        RowLines(bytes.into())
    }

    /// From their stored form; `None` when it is not one.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<RowLines> {
        let ends = bytes.last().is_none_or(|last| last & MORE == 0);
        ends.then(|| RowLines(bytes.into()))
    }

    /// Their stored form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// How many lines after row 0 a row begins.
    fn lines(&self, row: u64) -> u64 {
        if self.0.is_empty() {
            return row;
        }
        let ends_before = |rows: &mut u64, byte: &u8| {
            if *rows == 0 {
                return None;
            }
            *rows -= u64::from(byte & MORE == 0);
            Some(*byte)
        };
        let bytes = self.0.iter().scan(row, ends_before);
        let mut shift = 0_u32;
        bytes.fold(0_u64, |lines, byte| {
            let bits = u64::from(byte & !MORE).wrapping_shl(shift);
            shift = if byte & MORE == 0 { 0 } else { shift + 7 };
            lines.wrapping_add(bits)
        })
    }
}

impl ChunkMark {
    /// The input and the line of the chunk's row number `row`, from 0.
    pub fn place(&self, row: u64) -> (usize, u64) {
        (self.input, self.first_row_line + self.row_lines.lines(row))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_where_they_were_said_to_and_near_ones_take_a_byte() {
        let lines = [7, 7, 8, 136, 137, 137 + 16_384, 40_000_000, u32::MAX];
        let compact = RowLines::new(&lines);
        for (row, line) in (0..).zip(lines) {
            assert_eq!(compact.lines(row), u64::from(line - 7), "row {row}");
        }
        assert_eq!(compact.as_bytes().len(), 1 + 1 + 2 + 1 + 3 + 4 + 5);
        let read = RowLines::from_bytes(compact.as_bytes().to_vec());
        assert_eq!(read, Some(compact));
        assert_eq!(RowLines::from_bytes(vec![1, 0x81]), None);
    }

    #[test]
    fn rows_of_one_line_each_take_nothing() {
        assert_eq!(RowLines::new(&[]).lines(1234), 1234);
        assert_eq!(RowLines::new(&[5]).lines(0), 0);
    }
}
