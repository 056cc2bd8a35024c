//! Btree pages: the special area, the metapage, and how much a page may hold.
//!
//! ```text
//! page header 24 | line pointers 4 each -> | hole | <- tuples | BTPageOpaqueData 16
//!
//! BTPageOpaqueData (at 8176): btpo_prev 4 | btpo_next 4 | btpo_level 4 | btpo_flags 2 |
//!                             btpo_cycleid 2
//! BTMetaPageData (at 24):     btm_magic 4 | btm_version 4 | btm_root 4 | btm_level 4 |
//!                             btm_fastroot 4 | btm_fastlevel 4 |
//!                             btm_last_cleanup_num_delpages 4 | pad 4 |
//!                             btm_last_cleanup_num_heap_tuples 8 | btm_allequalimage 1 | pad 7
//! ```
//!
//! Before 14 `btm_last_cleanup_num_delpages` was `btm_oldest_btpo_xact`; from 14 to 18 the
//! metapage of a fresh index is the same.
//!
//! PostgreSQL: `src/include/access/nbtree.h`, `src/backend/access/nbtree/nbtpage.c`
//! (`_bt_initmetapage`).

use crate::ids::{BlockNumber, Tid};
use crate::page::header::{HEADER_BYTES, PageHeader};
use crate::page::item_id::ITEM_ID_BYTES;
use crate::page::{PAGE_BYTES, Page};

/// Bytes of the special area (`BTPageOpaqueData`).
pub const OPAQUE_BYTES: usize = 16;
/// Where the special area begins.
pub const SPECIAL_POS: usize = PAGE_BYTES - OPAQUE_BYTES;

/// No page: the left sibling of the leftmost, the right one of the rightmost.
pub const P_NONE: BlockNumber = 0;
/// The metapage's block.
pub const METAPAGE: BlockNumber = 0;

/// btpo_flags: a leaf page.
pub const BTP_LEAF: u16 = 1 << 0;
/// btpo_flags: the root.
pub const BTP_ROOT: u16 = 1 << 1;
/// btpo_flags: the metapage.
pub const BTP_META: u16 = 1 << 3;

/// btm_magic.
pub const BTREE_MAGIC: u32 = 0x0005_3162;
/// btm_version of new indexes.
pub const BTREE_VERSION: u32 = 4;

/// The longest tuple of a leaf page, in bytes: three and a heap TID for each must fit.
///
/// PostgreSQL: `BTMaxItemSize`.
pub const MAX_ITEM_BYTES: usize = 2704;
/// How full pages above the leaves are packed, in percent.
pub const NONLEAF_FILLFACTOR: usize = 70;
/// The longest posting list tuple of an index build, in bytes: a tenth of a page, aligned down,
/// less a line pointer.
pub const MAX_BUILD_POSTING_BYTES: usize = (PAGE_BYTES / 10) / 8 * 8 - ITEM_ID_BYTES;

/// btpo_*, but for btpo_cycleid, which a build leaves 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opaque {
    /// Left sibling, or [`P_NONE`].
    pub prev: BlockNumber,
    /// Right sibling, or [`P_NONE`].
    pub next: BlockNumber,
    /// 0 for leaves.
    pub level: u32,
    /// BTP_*.
    pub flags: u16,
}

/// Writes the page header (pd_lsn and pd_checksum zero) and the special area.
pub fn put_frame(page: &mut Page, lower: usize, upper: usize, opaque: Opaque) {
    PageHeader {
        lower: lower as u16,
        upper: upper as u16,
        ..PageHeader::empty(OPAQUE_BYTES)
    }
    .write(page);
    put_u32(page, SPECIAL_POS, opaque.prev);
    put_u32(page, SPECIAL_POS + 4, opaque.next);
    put_u32(page, SPECIAL_POS + 8, opaque.level);
    page[SPECIAL_POS + 12..SPECIAL_POS + 14].copy_from_slice(&opaque.flags.to_le_bytes());
    page[SPECIAL_POS + 14..].fill(0);
}

/// The metapage of an index just built, with its root ([`P_NONE`] when it is empty).
pub fn metapage(root: BlockNumber, level: u32, allequalimage: bool) -> Page {
    let mut page = [0; PAGE_BYTES];
    let content = HEADER_BYTES;
    for (i, field) in [BTREE_MAGIC, BTREE_VERSION, root, level, root, level]
        .into_iter()
        .enumerate()
    {
        put_u32(&mut page, content + i * 4, field);
    }
    page[content + 32..content + 40].copy_from_slice(&(-1f64).to_le_bytes());
    page[content + 40] = u8::from(allequalimage);
    let opaque = Opaque {
        prev: P_NONE,
        next: P_NONE,
        level: 0,
        flags: BTP_META,
    };
    put_frame(&mut page, content + 48, SPECIAL_POS, opaque);
    page
}

fn put_u32(page: &mut Page, pos: usize, value: u32) {
    page[pos..pos + 4].copy_from_slice(&value.to_le_bytes());
}

/// The message of SQLSTATE 54000 for a tuple of `bytes` that is longer than [`MAX_ITEM_BYTES`].
///
/// PostgreSQL: `src/backend/access/nbtree/nbtutils.c`, `_bt_check_third_page`.
pub fn too_large_message(bytes: usize, index: &str) -> String {
    format!(
        "index row size {bytes} exceeds btree version {BTREE_VERSION} maximum {MAX_ITEM_BYTES} for index \"{index}\""
    )
}

/// The DETAIL of that error.
pub fn too_large_detail(tid: Tid, relation: &str) -> String {
    format!(
        "Index row references tuple ({},{}) in relation \"{relation}\".",
        tid.block, tid.offset
    )
}

/// The HINT of that error.
pub const TOO_LARGE_HINT: &str = "Values larger than 1/3 of a buffer page cannot be indexed.\n\
     Consider a function index of an MD5 hash of the value, or use full text indexing.";

/// The message of SQLSTATE 54000 for a tuple of `bytes` whose size t_info cannot tell.
///
/// PostgreSQL: `index_form_tuple`.
pub fn too_long_message(bytes: usize) -> String {
    format!(
        "index row requires {bytes} bytes, maximum size is {}",
        super::tuple::MAX_SIZE_BYTES
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metapage_of_an_empty_index_has_no_root() {
        let page = metapage(P_NONE, 0, true);
        assert_eq!(&page[12..20], [72, 0, 0xf0, 0x1f, 0xf0, 0x1f, 4, 0x20]);
        assert_eq!(&page[24..32], [0x62, 0x31, 5, 0, 4, 0, 0, 0]);
        assert_eq!(page[32..56], [0; 24]);
        assert_eq!(
            &page[56..72],
            [0, 0, 0, 0, 0, 0, 0xf0, 0xbf, 1, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            &page[8176..],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0]
        );
    }

    #[test]
    fn the_limits_are_the_servers() {
        assert_eq!(MAX_BUILD_POSTING_BYTES, 812);
        assert_eq!(SPECIAL_POS, 8176);
    }
}
