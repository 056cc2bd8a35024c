//! Building a btree index out of its sorted entries.
//!
//! The story is that of `nbtsort.c`: entries come in order and fill leaf pages from left to
//! right; each page that is full leaves its last entry, cut short, as its high key, and sends a
//! downlink to its parent, which fills the same way ([`tree`]). Equal keys are gathered into
//! posting lists on the way ([`load`]). The pages equal those of the server's own index build
//! byte for byte, what is left over in the hole between line pointers and tuples included.
//!
//! PostgreSQL: `src/backend/access/nbtree/nbtsort.c`.

mod load;
mod toast_index;
mod tree;

pub use toast_index::ToastIndexBuilder;

use super::sequential::SequentialPages;
use crate::build::lz4::BundledLz4;
use crate::error::{Error, Result};
use crate::sort::{IndexSpec, KeyBuffer};
use pgformat::ids::{BlockNumber, Tid};
use pgformat::page::Page;
use pgformat::toast::compress::Compressors;

/// Where finished pages go.
pub trait PageSink {
    /// Takes a page of the index. Its pd_checksum is not yet set.
    ///
    /// Every block from 0 up comes once. Blocks ascend but for the pages above the leaves, which
    /// take their number when they are begun and come when they are full; the metapage, block
    /// 0, comes last.
    ///
    /// # Errors
    /// When the page cannot be written.
    fn page(&mut self, block: BlockNumber, page: &Page) -> Result<()>;
}

impl<S: PageSink + ?Sized> PageSink for &mut S {
    fn page(&mut self, block: BlockNumber, page: &Page) -> Result<()> {
        (**self).page(block, page)
    }
}

/// What was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIndex {
    /// Blocks, the metapage included.
    pub blocks: BlockNumber,
    /// Heap tuples that are indexed.
    pub tuples: u64,
    /// The root's level; 0 when it is a leaf or there is none.
    pub root_level: u32,
}

/// Why an index could not be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// Two rows have the same key in a unique index (SQLSTATE 23505).
    Duplicate {
        /// The earlier row of the pair whose later row comes first in the input.
        first: Tid,
        /// That later row.
        second: Tid,
        /// Its key columns in stored form, decompressed.
        key: Vec<Option<Vec<u8>>>,
    },
    /// A run or a page could not be read or written.
    Io(Error),
}

impl From<Error> for BuildError {
    fn from(error: Error) -> BuildError {
        BuildError::Io(error)
    }
}

impl IndexSpec {
    /// An empty buffer for a worker.
    pub fn new_buffer(&self) -> KeyBuffer {
        self.buffer_with(|| Compressors {
            lz4: Some(Box::new(BundledLz4)),
            ..Compressors::default()
        })
    }
}

impl PageSink for SequentialPages<'_> {
    fn page(&mut self, block: BlockNumber, page: &Page) -> Result<()> {
        self.put(block, page)
    }
}
