//! The visibility map fork of a heap that was just built.

use super::relation_file::{FileOptions, RelationFile, RelationSize};
use super::sequential::SequentialPages;
use super::writer::WriterPool;
use crate::error::Result;
use pgformat::heap::visibility_map::{empty_page, fill_page, map_blocks};
use pgformat::ids::BlockNumber;
use pgformat::page::PAGE_BYTES;
use pgformat::version::MajorVersion;
use std::path::Path;
use std::sync::Arc;

/// What the map says of a heap's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    /// Each is all-visible and all-frozen, as COPY FREEZE leaves a table.
    AllFrozen,
    /// Nothing: the server makes a TOAST table's map pages when it looks for them, and
    /// sets no bit.
    None,
    /// Nothing, in pages that were never written to: so from 16 on.
    ///
    /// PostgreSQL: `src/backend/access/heap/visibilitymap.c`, `vm_extend`.
    New,
}

impl Marks {
    /// The marks of a TOAST table's map.
    pub fn of_toast(version: MajorVersion) -> Marks {
        if version.at_least(16) {
            Marks::New
        } else {
            Marks::None
        }
    }
}

/// Makes the map of a heap of `heap_blocks` blocks, as the fork `base_name` (as `16384_vm`) in
/// `dir`, and has it finished. A heap without blocks has no map: then no file is made.
///
/// # Errors
/// The file cannot be made or written.
pub fn write_visibility_map(
    dir: &Path,
    base_name: &str,
    heap_blocks: BlockNumber,
    marks: Marks,
    options: FileOptions,
    writers: &WriterPool,
) -> Result<Option<(Arc<RelationFile>, RelationSize)>> {
    if heap_blocks == 0 {
        return Ok(None);
    }
    let file = RelationFile::create(dir, base_name, options)?;
    let mut pages = SequentialPages::new(Arc::clone(&file), writers)?;
    let mut page = [0; PAGE_BYTES];
    for block in 0..map_blocks(heap_blocks) {
        match marks {
            Marks::AllFrozen => fill_page(block, heap_blocks, &mut page),
            Marks::None => empty_page(&mut page),
            Marks::New => {}
        }
        pages.push(&page)?;
    }
    Ok(Some((file, pages.finish()?)))
}
