//! The visibility map of a heap that is all visible and all frozen.
//!
//! Two bits per heap block (all-visible, all-frozen), four blocks to a byte from the low bits
//! up, in the 8168 bytes after each page's header; one map page serves 32672 heap blocks. Its
//! pages have no line pointers: pd_lower stays at the header's end. A TOAST table has none: the
//! server may take room for one there, and marks nothing in it.
//!
//! PostgreSQL: `src/backend/access/heap/visibilitymap.c`,
//! `src/include/access/visibilitymapdefs.h`.

use crate::ids::BlockNumber;
use crate::page::header::{HEADER_BYTES, PageHeader};
use crate::page::{PAGE_BYTES, Page};

/// The bit that says all-visible.
pub const ALL_VISIBLE: u8 = 0x01;
/// The bit that says all-frozen.
pub const ALL_FROZEN: u8 = 0x02;

const BLOCKS_PER_BYTE: usize = 4;

/// Heap blocks that one page of the map describes.
pub const HEAP_BLOCKS_PER_PAGE: u32 = ((PAGE_BYTES - HEADER_BYTES) * BLOCKS_PER_BYTE) as u32;

/// How many blocks the map of a heap of `heap_blocks` blocks has.
pub fn map_blocks(heap_blocks: BlockNumber) -> BlockNumber {
    heap_blocks.div_ceil(HEAP_BLOCKS_PER_PAGE)
}

/// Fills a page of the map without any bit. The checksum is the caller's.
pub fn empty_page(page: &mut Page) {
    PageHeader::empty(0).write(page);
    page[HEADER_BYTES..].fill(0);
}

/// Fills block `map_block` of the map of a heap with `heap_blocks` blocks: both bits for each
/// block that there is. The checksum is the caller's.
///
/// # Panics
/// When the map has no such block.
pub fn fill_page(map_block: BlockNumber, heap_blocks: BlockNumber, page: &mut Page) {
    assert!(
        map_block < map_blocks(heap_blocks),
        "the map has no block {map_block}"
    );
    let blocks =
        (heap_blocks - map_block * HEAP_BLOCKS_PER_PAGE).min(HEAP_BLOCKS_PER_PAGE) as usize;
    empty_page(page);
    let map = &mut page[HEADER_BYTES..];
    let (full, rest) = (blocks / BLOCKS_PER_BYTE, blocks % BLOCKS_PER_BYTE);
    map[..full].fill(0xff);
    if rest > 0 {
        map[full] = (1 << (2 * rest)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_without_blocks_has_no_map() {
        assert_eq!(map_blocks(0), 0);
        assert_eq!(map_blocks(1), 1);
        assert_eq!(map_blocks(32672), 1);
        assert_eq!(map_blocks(32673), 2);
    }

    #[test]
    fn each_block_has_both_its_bits_and_no_other_bit_is_set() {
        let mut page = [0xaa; PAGE_BYTES];
        fill_page(0, 6, &mut page);
        assert_eq!(page[24..28], [0xff, 0x0f, 0, 0]);
        assert!(page[26..].iter().all(|b| *b == 0));
        assert_eq!(PageHeader::read(&page), PageHeader::empty(0));
        fill_page(0, 32673, &mut page);
        assert!(page[24..].iter().all(|b| *b == 0xff));
        fill_page(1, 32673, &mut page);
        assert_eq!(page[24..26], [ALL_VISIBLE | ALL_FROZEN, 0]);
    }
}
