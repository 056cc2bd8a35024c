//! Writing a page item by item, as `PageInit` and `PageAddItem` do.

use super::Page;
use super::header::{HEADER_BYTES, PageHeader};
use super::item_id::{ITEM_ID_BYTES, ItemId};
use crate::ids::OffsetNumber;
use crate::layout::maxalign;

/// A page under construction; its header is written at the end.
#[derive(Debug)]
pub struct PageBuilder<'p> {
    page: &'p mut Page,
    header: PageHeader,
}

impl<'p> PageBuilder<'p> {
    /// Starts an empty page with a special space of so many bytes. What stood in `page` does
    /// not matter.
    pub fn new(page: &'p mut Page, special_bytes: usize) -> PageBuilder<'p> {
        let header = PageHeader::empty(special_bytes);
        page[header.special as usize..].fill(0);
        PageBuilder { page, header }
    }

    /// Bytes between the line pointers and the items (`PageGetExactFreeSpace`).
    pub fn free_bytes(&self) -> usize {
        (self.header.upper - self.header.lower) as usize
    }

    /// How many items the page has.
    pub fn item_count(&self) -> OffsetNumber {
        ((self.header.lower as usize - HEADER_BYTES) / ITEM_ID_BYTES) as OffsetNumber
    }

    /// Adds an item after the last and returns its offset number; `None` when it does not fit.
    /// It takes its length rounded up to 8 (the padding is zero) and a line pointer.
    ///
    /// PostgreSQL: `PageAddItemExtended`.
    #[inline]
    pub fn add(&mut self, item: &[u8]) -> Option<OffsetNumber> {
        let aligned = maxalign(item.len());
        if aligned + ITEM_ID_BYTES > self.free_bytes() {
            return None;
        }
        let upper = self.header.upper as usize - aligned;
        self.page[upper..upper + item.len()].copy_from_slice(item);
        self.page[upper + item.len()..upper + aligned].fill(0);
        let lower = self.header.lower as usize;
        self.page[lower..lower + ITEM_ID_BYTES]
            .copy_from_slice(&ItemId::normal(upper, item.len()).to_bytes());
        self.header.lower = (lower + ITEM_ID_BYTES) as u16;
        self.header.upper = upper as u16;
        Some(self.item_count())
    }

    /// The special space, to be filled.
    pub fn special_mut(&mut self) -> &mut [u8] {
        &mut self.page[self.header.special as usize..]
    }

    /// Writes the header with these pd_flags and zeroes the free space.
    pub fn finish(mut self, flags: u16) {
        self.header.flags = flags;
        self.page[self.header.lower as usize..self.header.upper as usize].fill(0);
        self.header.write(self.page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE_BYTES;
    use crate::page::view::PageView;

    #[test]
    fn items_are_laid_from_the_end_and_padded_with_zeros() {
        let mut page = [0xaa; PAGE_BYTES];
        let mut builder = PageBuilder::new(&mut page, 16);
        assert_eq!(builder.add(b"first"), Some(1));
        assert_eq!(builder.add(b"second!!!"), Some(2));
        builder.special_mut()[0] = 9;
        assert_eq!(builder.free_bytes(), 8192 - 16 - 8 - 16 - 24 - 8);
        builder.finish(0);
        assert_eq!(&page[8168..8177], b"first\0\0\0\x09");
        assert_eq!(&page[8152..8168], b"second!!!\0\0\0\0\0\0\0");
        assert!(page[32..8152].iter().all(|b| *b == 0));
        let view = PageView::new(&page).unwrap();
        assert_eq!(view.item_count(), 2);
        assert_eq!(view.item(2).unwrap(), b"second!!!");
        assert_eq!(view.special().len(), 16);
    }

    #[test]
    fn an_item_that_does_not_fit_leaves_the_page_as_it_is() {
        let mut page = [0; PAGE_BYTES];
        let mut builder = PageBuilder::new(&mut page, 0);
        assert_eq!(builder.add(&[1; 8165]), None);
        assert_eq!(builder.add(&[1; 8160]), Some(1));
        assert_eq!(builder.add(&[1; 1]), None);
        builder.finish(0);
        assert_eq!(PageView::new(&page).unwrap().item_count(), 1);
    }
}
