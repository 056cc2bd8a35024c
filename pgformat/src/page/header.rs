//! The 24 bytes that a page begins with.
//!
//! ```text
//! pd_lsn 8 | pd_checksum 2 | pd_flags 2 | pd_lower 2 | pd_upper 2 | pd_special 2
//! | pd_pagesize_version 2 | pd_prune_xid 4
//! ```
//!
//! PostgreSQL: `src/include/storage/bufpage.h`, `PageHeaderData`; `PageInit` of bufpage.c.

use super::{PAGE_BYTES, Page};
use crate::layout::maxalign;

/// Bytes of the header (`SizeOfPageHeaderData`); the line pointers begin here.
pub const HEADER_BYTES: usize = 24;

/// Where pd_checksum lies.
pub const CHECKSUM_POS: usize = 8;

/// pd_flags: some line pointers are unused.
pub const PD_HAS_FREE_LINES: u16 = 0x0001;
/// pd_flags: an update found no room here.
pub const PD_PAGE_FULL: u16 = 0x0002;
/// pd_flags: every tuple of the page is visible to everyone.
pub const PD_ALL_VISIBLE: u16 = 0x0004;
/// Every bit of pd_flags that has a meaning.
pub const PD_VALID_FLAG_BITS: u16 = 0x0007;

/// pd_pagesize_version: the page size and layout version 4 (`PG_PAGE_LAYOUT_VERSION`).
pub const PAGE_SIZE_AND_VERSION: u16 = PAGE_BYTES as u16 | 4;

/// The header's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// End of the WAL record of the last change; 0 for pages that WAL does not know.
    pub lsn: u64,
    /// Checksum of page and block number; 0 where checksums are off.
    pub checksum: u16,
    /// `PD_*`.
    pub flags: u16,
    /// End of the line pointers.
    pub lower: u16,
    /// Start of the items.
    pub upper: u16,
    /// Start of the special space.
    pub special: u16,
    /// Page size, with the layout version in the low byte.
    pub page_size_and_version: u16,
    /// Oldest xid that may allow pruning; 0 for none.
    pub prune_xid: u32,
}

impl PageHeader {
    /// The header of an empty page with a special space of so many bytes (rounded up to 8).
    ///
    /// PostgreSQL: `PageInit`.
    pub fn empty(special_bytes: usize) -> PageHeader {
        let special = (PAGE_BYTES - maxalign(special_bytes)) as u16;
        PageHeader {
            lsn: 0,
            checksum: 0,
            flags: 0,
            lower: HEADER_BYTES as u16,
            upper: special,
            special,
            page_size_and_version: PAGE_SIZE_AND_VERSION,
            prune_xid: 0,
        }
    }

    /// Reads a page's header; nothing is checked.
    pub fn read(page: &Page) -> PageHeader {
        let u16_at = |pos: usize| u16::from_le_bytes([page[pos], page[pos + 1]]);
        let u32_at = |pos: usize| {
            u32::from_le_bytes([page[pos], page[pos + 1], page[pos + 2], page[pos + 3]])
        };
        PageHeader {
            // PageXLogRecPtr: the high half first.
            lsn: (u32_at(0) as u64) << 32 | u32_at(4) as u64,
            checksum: u16_at(CHECKSUM_POS),
            flags: u16_at(10),
            lower: u16_at(12),
            upper: u16_at(14),
            special: u16_at(16),
            page_size_and_version: u16_at(18),
            prune_xid: u32_at(20),
        }
    }

    /// Writes the header into its page.
    #[inline]
    pub fn write(&self, page: &mut Page) {
        page[0..4].copy_from_slice(&((self.lsn >> 32) as u32).to_le_bytes());
        page[4..8].copy_from_slice(&(self.lsn as u32).to_le_bytes());
        page[8..10].copy_from_slice(&self.checksum.to_le_bytes());
        page[10..12].copy_from_slice(&self.flags.to_le_bytes());
        page[12..14].copy_from_slice(&self.lower.to_le_bytes());
        page[14..16].copy_from_slice(&self.upper.to_le_bytes());
        page[16..18].copy_from_slice(&self.special.to_le_bytes());
        page[18..20].copy_from_slice(&self.page_size_and_version.to_le_bytes());
        page[20..24].copy_from_slice(&self.prune_xid.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_page_of_a_heap_is_24_bytes_of_header_and_nothing() {
        let mut page = [0u8; PAGE_BYTES];
        PageHeader::empty(0).write(&mut page);
        assert_eq!(
            &page[..24],
            &[
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0x20, 0, 0x20, 4, 0x20, 0, 0, 0, 0
            ]
        );
        assert_eq!(PageHeader::read(&page), PageHeader::empty(0));
    }

    #[test]
    fn the_special_space_is_rounded_up_to_eight_bytes() {
        assert_eq!(PageHeader::empty(13).special, 8192 - 16);
    }

    #[test]
    fn the_high_half_of_the_lsn_comes_first() {
        let mut page = [0u8; PAGE_BYTES];
        let header = PageHeader {
            lsn: 0x0000_0001_0200_0000,
            ..PageHeader::empty(0)
        };
        header.write(&mut page);
        assert_eq!(&page[..8], &[1, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(PageHeader::read(&page), header);
    }
}
