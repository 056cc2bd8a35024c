//! Where tuples go and how a heap page is laid out.
//!
//! [`PageFill`] decides page boundaries from the tuples' lengths alone, which is all that the
//! ordered step of a load does; [`HeapPageWriter`] lays out a page's tuples later and in
//! parallel.
//!
//! `COPY ... WITH (FREEZE)` puts tuples on a page while `heap_multi_insert` finds room for
//! length + reserve of fillfactor. The tuple that stops it is then offered to the same page
//! once more by `RelationGetBufferForTuple`, which asks for less where length + reserve is more than
//! a nearly empty page has. That second rule accepts all that the first accepts, so it is the
//! only one needed here. TOAST tables are filled by `heap_insert`, one tuple at a time, under
//! the same second rule with fillfactor 100.
//!
//! PostgreSQL: `src/backend/access/heap/heapam.c`, `heap_multi_insert`;
//! `src/backend/access/heap/hio.c`, `RelationGetBufferForTuple`;
//! `src/backend/storage/page/bufpage.c`, `PageGetHeapFreeSpace`, `PageAddItemExtended`. The rule
//! is the same in 14 to 18.

use super::tuple::{CTID_POS, HEADER_BYTES as TUPLE_HEADER_BYTES};
use crate::ids::{BlockNumber, OffsetNumber, Tid};
use crate::layout::{MAXALIGN_BYTES, maxalign};
use crate::page::header::{HEADER_BYTES, PD_ALL_VISIBLE, PageHeader};
use crate::page::item_id::{ITEM_ID_BYTES, ItemId};
use crate::page::{PAGE_BYTES, Page};

/// Most tuples of a page (`MaxHeapTuplesPerPage`): 291.
pub const MAX_TUPLES_PER_PAGE: usize =
    (PAGE_BYTES - HEADER_BYTES) / (maxalign(TUPLE_HEADER_BYTES) + ITEM_ID_BYTES);

/// The longest tuple of a page in bytes (`MaxHeapTupleSize`): 8160.
pub const MAX_TUPLE_BYTES: usize = PAGE_BYTES - maxalign(HEADER_BYTES + ITEM_ID_BYTES);

/// fillfactor where the table does not say (`HEAP_DEFAULT_FILLFACTOR`).
pub const DEFAULT_FILLFACTOR: u8 = 100;

/// Free bytes from which a page counts as empty although it has some line pointers: 8016.
const NEARLY_EMPTY_BYTES: usize = MAX_TUPLE_BYTES - MAX_TUPLES_PER_PAGE / 8 * ITEM_ID_BYTES;

/// A row whose tuple no page can hold. SQLSTATE 54000, program limit exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("row is too big: size {size}, maximum size {MAX_TUPLE_BYTES}")]
pub struct RowTooBig {
    /// The tuple's length in bytes, rounded up to 8.
    pub size: usize,
}

impl RowTooBig {
    /// PostgreSQL's SQLSTATE for it.
    pub const SQLSTATE: &'static str = "54000";

    /// Whether a tuple of so many bytes fits on a page at all.
    ///
    /// # Errors
    /// It does not.
    #[inline]
    pub fn check(tuple_bytes: usize) -> Result<(), RowTooBig> {
        let size = maxalign(tuple_bytes);
        if size > MAX_TUPLE_BYTES {
            return Err(RowTooBig { size });
        }
        Ok(())
    }
}

/// How full the page in hand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageFill {
    /// What fillfactor keeps free (`RelationGetTargetPageFreeSpace`).
    reserve_bytes: u16,
    /// pd_upper - pd_lower.
    free_bytes: u16,
    tuples: u16,
}

impl PageFill {
    /// An empty page of a heap with this fillfactor, 10 to 100.
    pub fn new(fillfactor: u8) -> PageFill {
        assert!((10..=100).contains(&fillfactor), "fillfactor {fillfactor}");
        PageFill {
            reserve_bytes: (PAGE_BYTES * (100 - fillfactor as usize) / 100) as u16,
            free_bytes: (PAGE_BYTES - HEADER_BYTES) as u16,
            tuples: 0,
        }
    }

    /// An empty page of a TOAST table.
    pub fn for_toast() -> PageFill {
        PageFill::new(DEFAULT_FILLFACTOR)
    }

    /// Starts the next page.
    #[inline]
    pub fn reset(&mut self) {
        self.free_bytes = (PAGE_BYTES - HEADER_BYTES) as u16;
        self.tuples = 0;
    }

    /// How many tuples the page has.
    #[inline]
    pub fn tuples(&self) -> u16 {
        self.tuples
    }

    /// Whether the server puts a tuple of so many bytes (t_len) on this page. An empty page
    /// takes any tuple that [`RowTooBig::check`] lets pass.
    #[inline]
    pub fn fits(&self, tuple_len: u32) -> bool {
        let len = maxalign(tuple_len as usize);
        let free = if self.tuples as usize >= MAX_TUPLES_PER_PAGE {
            0
        } else {
            (self.free_bytes as usize).saturating_sub(ITEM_ID_BYTES)
        };
        let wanted = len + self.reserve_bytes as usize;
        let target = if wanted > NEARLY_EMPTY_BYTES {
            len.max(NEARLY_EMPTY_BYTES)
        } else {
            wanted
        };
        target <= free
    }

    /// Puts a tuple that fits on the page and returns its offset number.
    #[inline]
    pub fn add(&mut self, tuple_len: u32) -> OffsetNumber {
        debug_assert!(
            self.fits(tuple_len),
            "a tuple of {tuple_len} bytes does not fit"
        );
        self.free_bytes -= (maxalign(tuple_len as usize) + ITEM_ID_BYTES) as u16;
        self.tuples += 1;
        self.tuples
    }
}

/// Lays out one heap page.
///
/// What stood in the page's memory does not matter: every byte of it is written. The caller
/// has decided by [`PageFill`] which tuples the page gets.
#[derive(Debug)]
pub struct HeapPageWriter<'p> {
    page: &'p mut Page,
    block: BlockNumber,
    lower: usize,
    upper: usize,
}

impl<'p> HeapPageWriter<'p> {
    /// Starts block `block` of the heap.
    #[inline]
    pub fn new(page: &'p mut Page, block: BlockNumber) -> HeapPageWriter<'p> {
        HeapPageWriter {
            page,
            block,
            lower: HEADER_BYTES,
            upper: PAGE_BYTES,
        }
    }

    /// Puts the next tuple (t_len bytes from its header on) on the page and sets its t_ctid to
    /// its own place.
    ///
    /// # Panics
    /// When it does not fit.
    #[inline]
    pub fn put(&mut self, tuple: &[u8]) -> OffsetNumber {
        let aligned = maxalign(tuple.len());
        assert!(
            self.lower + ITEM_ID_BYTES + aligned <= self.upper && tuple.len() >= TUPLE_HEADER_BYTES,
            "a tuple of {} bytes where {} are free",
            tuple.len(),
            self.upper - self.lower
        );
        self.upper -= aligned;
        let item = &mut self.page[self.upper..self.upper + aligned];
        // The padding lies in the last eight bytes.
        if let Some(last) = item.last_chunk_mut() {
            *last = [0; MAXALIGN_BYTES];
        }
        item[..tuple.len()].copy_from_slice(tuple);
        let offset = ((self.lower - HEADER_BYTES) / ITEM_ID_BYTES + 1) as OffsetNumber;
        let tid = Tid {
            block: self.block,
            offset,
        };
        item[CTID_POS..CTID_POS + Tid::SIZE_BYTES].copy_from_slice(&tid.to_bytes());
        self.page[self.lower..self.lower + ITEM_ID_BYTES]
            .copy_from_slice(&ItemId::normal(self.upper, tuple.len()).to_bytes());
        self.lower += ITEM_ID_BYTES;
        offset
    }

    /// Ends a page of a heap: all-visible, as COPY FREEZE leaves it.
    #[inline]
    pub fn finish(self) {
        self.finish_with(PD_ALL_VISIBLE);
    }

    /// Ends a page of a TOAST table, which the server does not mark all-visible.
    #[inline]
    pub fn finish_toast(self) {
        self.finish_with(0);
    }

    fn finish_with(self, flags: u16) {
        self.page[self.lower..self.upper].fill(0);
        PageHeader {
            flags,
            lower: self.lower as u16,
            upper: self.upper as u16,
            ..PageHeader::empty(0)
        }
        .write(self.page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::view::PageView;

    /// How many tuples of one length a page of this fillfactor takes.
    fn filled(fillfactor: u8, tuple_len: u32) -> u16 {
        let mut fill = PageFill::new(fillfactor);
        while fill.fits(tuple_len) {
            fill.add(tuple_len);
        }
        fill.tuples()
    }

    #[test]
    fn the_limits_are_those_of_the_server() {
        assert_eq!(MAX_TUPLES_PER_PAGE, 291);
        assert_eq!(MAX_TUPLE_BYTES, 8160);
        assert_eq!(NEARLY_EMPTY_BYTES, 8016);
    }

    #[test]
    fn a_row_of_one_int4_comes_226_times_to_a_full_page() {
        assert_eq!(filled(100, 28), 226);
        assert_eq!(filled(50, 28), 113);
    }

    #[test]
    fn no_page_takes_more_than_291_tuples() {
        assert_eq!(filled(100, 24), 291);
    }

    #[test]
    fn fillfactor_is_no_obstacle_to_a_large_tuple_on_a_nearly_empty_page() {
        // 4000 + 7372 is never free, but 8016 are.
        let mut fill = PageFill::new(10);
        assert!(fill.fits(8160));
        fill.add(32);
        fill.add(32);
        fill.add(32);
        // 8168 - 4 - 3 * 36 = 8056
        assert!(fill.fits(4000));
        fill.add(32);
        // 8020
        assert!(fill.fits(4000));
        fill.add(32);
        // 7984
        assert!(!fill.fits(4000));
        assert!(fill.fits(32));
    }

    #[test]
    fn a_tuple_of_8161_bytes_fits_nowhere() {
        assert_eq!(RowTooBig::check(8160), Ok(()));
        let error = RowTooBig::check(8161).unwrap_err();
        assert_eq!(
            error.to_string(),
            "row is too big: size 8168, maximum size 8160"
        );
    }

    #[test]
    fn tuples_are_laid_from_the_end_with_their_own_place_in_ctid() {
        let mut page = [0xaa; PAGE_BYTES];
        let mut writer = HeapPageWriter::new(&mut page, 0x0001_0002);
        assert_eq!(writer.put(&[0x11; 28]), 1);
        assert_eq!(writer.put(&[0x22; 32]), 2);
        writer.finish();
        let view = PageView::new(&page).unwrap();
        assert_eq!((view.header().lower, view.header().upper), (32, 8128));
        assert_eq!(view.header().flags, PD_ALL_VISIBLE);
        assert_eq!(view.item(1).unwrap()[12..18], [1, 0, 2, 0, 1, 0]);
        assert_eq!(view.item(2).unwrap()[12..18], [1, 0, 2, 0, 2, 0]);
        assert_eq!(page[8160..8188], view.item(1).unwrap()[..]);
        assert_eq!(page[8188..], [0; 4]);
        assert!(page[32..8128].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_toast_page_is_not_marked_all_visible() {
        let mut page = [0xaa; PAGE_BYTES];
        let mut writer = HeapPageWriter::new(&mut page, 0);
        writer.put(&[0x11; 2032]);
        writer.finish_toast();
        assert_eq!(PageHeader::read(&page).flags, 0);
        assert_eq!(filled(100, 2032), 4);
    }
}
