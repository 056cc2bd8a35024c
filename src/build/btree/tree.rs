//! Pages of all levels, filled from left to right.
//!
//! ```text
//! a page being filled                        finished, not the rightmost
//! | header | (free) 2 3 4 .. n |             | header | n 2 3 4 .. n-1 |
//! |  hole                      |             |  hole                   |
//! | n .. 4 3 2 | special       |             | n' .. 4 3 2 | special   |
//! ```
//!
//! The first line pointer is kept free for the high key. When a page is full its last tuple
//! becomes the high key (on a leaf cut to n', which may leave bytes of n in the hole) and is
//! copied to the next page as its first. The rightmost page of a level has no high key: its
//! line pointers slide down by one, and the last of them stays in the hole, too.
//!
//! PostgreSQL: `src/backend/access/nbtree/nbtsort.c` (`_bt_buildadd`, `_bt_uppershutdown`,
//! `_bt_slideleft`), `src/backend/storage/page/bufpage.c` (`PageAddItem`,
//! `PageIndexTupleOverwrite`).

use super::{BuiltIndex, PageSink};
use crate::error::Result;
use crate::sort::compare::TupleOrder;
use pgformat::btree::page::{
    self, BTP_LEAF, BTP_ROOT, METAPAGE, NONLEAF_FILLFACTOR, Opaque, P_NONE, SPECIAL_POS,
};
use pgformat::btree::tuple;
use pgformat::ids::BlockNumber;
use pgformat::page::header::HEADER_BYTES;
use pgformat::page::item_id::{ITEM_ID_BYTES, ItemId};
use pgformat::page::{PAGE_BYTES, Page};

/// Where the high key's line pointer lies.
const HIKEY_POS: usize = HEADER_BYTES;
/// Bytes of a heap TID, aligned: how much a high key may outgrow the tuple it is made of.
const HEAP_TID_BYTES: usize = 8;

/// A level of the tree: its page in hand.
#[derive(Debug)]
struct Level {
    page: Box<Page>,
    block: BlockNumber,
    /// Left sibling.
    prev: BlockNumber,
    /// End of the line pointers.
    lower: usize,
    /// Begin of the tuples.
    upper: usize,
    /// Bytes of the posting list of the tuple last added.
    last_extra: usize,
    /// Less free space than this finishes the page.
    full: usize,
    /// The pivot tuple that is the page's lower bound.
    low_key: Vec<u8>,
}

impl Level {
    fn begin_page(&mut self, block: BlockNumber, prev: BlockNumber) {
        self.page.fill(0);
        self.block = block;
        self.prev = prev;
        self.lower = HIKEY_POS + ITEM_ID_BYTES;
        self.upper = SPECIAL_POS;
    }

    /// Items that the page has, a place for the high key not counted.
    fn items(&self) -> usize {
        (self.lower - HIKEY_POS) / ITEM_ID_BYTES - 1
    }

    /// PostgreSQL: `PageGetFreeSpace`.
    #[inline]
    fn free_bytes(&self) -> usize {
        (self.upper - self.lower).saturating_sub(ITEM_ID_BYTES)
    }

    /// Adds a tuple whose room is known to be there.
    #[inline]
    fn put(&mut self, tuple: &[u8]) {
        let upper = self.upper - tuple.len();
        debug_assert!(self.lower + ITEM_ID_BYTES <= upper);
        self.page[upper..self.upper].copy_from_slice(tuple);
        self.page[self.lower..self.lower + ITEM_ID_BYTES]
            .copy_from_slice(&ItemId::normal(upper, tuple.len()).to_bytes());
        self.upper = upper;
        self.lower += ITEM_ID_BYTES;
    }

    /// The tuple that the line pointer at `pos` points to.
    fn item(&self, pos: usize) -> &[u8] {
        let bytes = self.page[pos..pos + ITEM_ID_BYTES].try_into();
        let id = ItemId::from_bytes(bytes.expect("four bytes"));
        &self.page[id.pos()..id.pos() + id.len()]
    }

    fn frame(&mut self, next: BlockNumber, level: usize, more_flags: u16) {
        let flags = if level == 0 { BTP_LEAF } else { 0 };
        let opaque = Opaque {
            prev: self.prev,
            next,
            level: level as u32,
            flags: flags | more_flags,
        };
        page::put_frame(&mut self.page, self.lower, self.upper, opaque);
    }
}

/// Builds the pages of a tree.
#[derive(Debug)]
pub(super) struct TreeBuilder<S> {
    sink: S,
    order: TupleOrder,
    leaf_full: usize,
    allequalimage: bool,
    levels: Vec<Level>,
    /// A page to spare.
    spare: Box<Page>,
    /// The next block to give out.
    next_block: BlockNumber,
    pivot: Vec<u8>,
}

impl<S: PageSink> TreeBuilder<S> {
    /// A tree without pages; `fillfactor` is in percent.
    pub(super) fn new(
        order: TupleOrder,
        fillfactor: u8,
        allequalimage: bool,
        sink: S,
    ) -> TreeBuilder<S> {
        TreeBuilder {
            sink,
            order,
            leaf_full: PAGE_BYTES * (100 - fillfactor as usize) / 100,
            allequalimage,
            levels: Vec::new(),
            spare: Box::new([0; PAGE_BYTES]),
            next_block: METAPAGE + 1,
            pivot: Vec::new(),
        }
    }

    /// Adds a leaf tuple; `extra` is the bytes of its posting list, 0 without one.
    #[inline]
    pub(super) fn add(&mut self, tuple: &[u8], extra: usize) -> Result<()> {
        if self.levels.is_empty() {
            self.begin_level();
        }
        self.add_to(0, tuple, extra)
    }

    fn begin_level(&mut self) {
        let full = if self.levels.is_empty() {
            self.leaf_full
        } else {
            PAGE_BYTES * (100 - NONLEAF_FILLFACTOR) / 100
        };
        let mut level = Level {
            page: Box::new([0; PAGE_BYTES]),
            block: 0,
            prev: P_NONE,
            lower: 0,
            upper: 0,
            last_extra: 0,
            full,
            low_key: tuple::MINUS_INFINITY.to_vec(),
        };
        level.begin_page(self.take_block(), P_NONE);
        self.levels.push(level);
    }

    fn take_block(&mut self) -> BlockNumber {
        let block = self.next_block;
        self.next_block = block.checked_add(1).expect("fewer than 2^32 blocks");
        block
    }

    /// PostgreSQL: `_bt_buildadd`.
    #[inline]
    fn add_to(&mut self, level: usize, tuple: &[u8], extra: usize) -> Result<()> {
        let state = &mut self.levels[level];
        let last_extra = std::mem::replace(&mut state.last_extra, extra);
        let free = state.free_bytes();
        let reserve = if level == 0 { HEAP_TID_BYTES } else { 0 };
        if free < tuple.len() + reserve || free + last_extra < state.full && state.items() > 1 {
            self.finish_page(level)?;
        }
        let state = &mut self.levels[level];
        if level > 0 && state.items() == 0 {
            state.put(&without_key(tuple));
        } else {
            state.put(tuple);
        }
        Ok(())
    }

    /// Finishes the page in hand and begins the next of its level, with the last tuple.
    #[cold]
    fn finish_page(&mut self, level: usize) -> Result<()> {
        let next = self.take_block();
        let is_leaf = level == 0;
        let state = &mut self.levels[level];
        let block = state.block;
        assert!(state.items() > 1, "two tuples at least fit on a page");

        // The last line pointer becomes the high key's and leaves its own place zero.
        let last_pos = state.lower - ITEM_ID_BYTES;
        state
            .page
            .copy_within(last_pos..last_pos + ITEM_ID_BYTES, HIKEY_POS);
        state.page[last_pos..last_pos + ITEM_ID_BYTES].fill(0);
        state.lower = last_pos;
        let first_right = state.item(HIKEY_POS).to_vec();

        if is_leaf {
            let last_left = state.item(last_pos - ITEM_ID_BYTES);
            let keep = self.order.keep_natts(last_left, &first_right);
            tuple::truncate(
                &self.order.layout,
                self.order.keys.len(),
                last_left,
                &first_right,
                keep,
                &mut self.pivot,
            );
            // The last tuple lies lowest, so its room grows or shrinks at its begin.
            let upper = state.upper + first_right.len() - self.pivot.len();
            state.page[upper..upper + self.pivot.len()].copy_from_slice(&self.pivot);
            state.page[HIKEY_POS..HIKEY_POS + ITEM_ID_BYTES]
                .copy_from_slice(&ItemId::normal(upper, self.pivot.len()).to_bytes());
            state.upper = upper;
        } else {
            self.pivot.clone_from(&first_right);
        }
        state.frame(next, level, 0);

        // The page leaves; another takes its place.
        std::mem::swap(&mut state.page, &mut self.spare);
        state.begin_page(next, block);
        if is_leaf {
            state.put(&first_right);
        } else {
            state.put(&without_key(&first_right));
        }
        let mut low_key = std::mem::replace(&mut state.low_key, std::mem::take(&mut self.pivot));
        self.sink.page(block, &self.spare)?;

        if level + 1 == self.levels.len() {
            self.begin_level();
        }
        tuple::set_downlink(&mut low_key, block);
        self.add_to(level + 1, &low_key, 0)?;
        self.pivot = low_key;
        Ok(())
    }

    /// Finishes the last page of each level, and the metapage.
    ///
    /// PostgreSQL: `_bt_uppershutdown`.
    pub(super) fn finish(mut self, tuples: u64) -> Result<(BuiltIndex, S)> {
        let mut root = P_NONE;
        let mut root_level = 0;
        let mut level = 0;
        while level < self.levels.len() {
            let block = self.levels[level].block;
            let mut flags = 0;
            if level + 1 == self.levels.len() {
                flags = BTP_ROOT;
                root = block;
                root_level = level as u32;
            } else {
                let mut low_key = std::mem::take(&mut self.levels[level].low_key);
                tuple::set_downlink(&mut low_key, block);
                self.add_to(level + 1, &low_key, 0)?;
            }
            let state = &mut self.levels[level];
            state
                .page
                .copy_within(HIKEY_POS + ITEM_ID_BYTES..state.lower, HIKEY_POS);
            state.lower -= ITEM_ID_BYTES;
            state.frame(P_NONE, level, flags);
            self.sink.page(block, &state.page)?;
            level += 1;
        }
        let metapage = page::metapage(root, root_level, self.allequalimage);
        self.sink.page(METAPAGE, &metapage)?;
        let built = BuiltIndex {
            blocks: self.next_block,
            tuples,
            root_level,
        };
        Ok((built, self.sink))
    }
}

/// The first tuple of a page above the leaves: its downlink without its key.
///
/// PostgreSQL: `_bt_sortaddtup`.
fn without_key(pivot: &[u8]) -> [u8; tuple::HEADER_BYTES] {
    let mut first = tuple::MINUS_INFINITY;
    first[..4].copy_from_slice(&pivot[..4]);
    first
}
