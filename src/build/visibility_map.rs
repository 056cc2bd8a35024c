//! The visibility map fork of a heap that was just built.

use super::relation_file::{FileOptions, RelationFile, RelationSize};
use super::sequential::SequentialPages;
use super::writer::WriterPool;
use crate::error::Result;
use pgformat::heap::visibility_map::{fill_page, map_blocks};
use pgformat::ids::BlockNumber;
use pgformat::page::PAGE_BYTES;
use std::path::Path;

/// Makes the map of a heap of `heap_blocks` blocks, each all-visible and all-frozen, as the
/// fork `base_name` (as `16384_vm`) in `dir`, finished and durable. A heap without blocks has
/// no map: then no file is made.
///
/// # Errors
/// The file cannot be made or written.
pub fn write_visibility_map(
    dir: &Path,
    base_name: &str,
    heap_blocks: BlockNumber,
    options: FileOptions,
    writers: &WriterPool,
) -> Result<Option<RelationSize>> {
    if heap_blocks == 0 {
        return Ok(None);
    }
    let mut pages = SequentialPages::new(RelationFile::create(dir, base_name, options)?, writers)?;
    let mut page = [0; PAGE_BYTES];
    for block in 0..map_blocks(heap_blocks) {
        fill_page(block, heap_blocks, &mut page);
        pages.push(&page)?;
    }
    pages.finish().map(Some)
}
