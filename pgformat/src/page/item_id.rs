//! Line pointers: where an item of a page lies, and what state it is in.
//!
//! ```text
//! lp_off 15 bits (low) | lp_flags 2 bits | lp_len 15 bits (high)
//! ```
//!
//! PostgreSQL: `src/include/storage/itemid.h`.

use super::header::HEADER_BYTES;
use crate::ids::OffsetNumber;

/// Bytes of a line pointer.
pub const ITEM_ID_BYTES: usize = 4;

/// lp_flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemState {
    /// Free for reuse.
    Unused,
    /// Used, with storage.
    Normal,
    /// Points to another line pointer of a HOT chain.
    Redirect,
    /// Dead; may or may not have storage.
    Dead,
}

/// A line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ItemId(u32);

impl ItemId {
    /// A used line pointer to `len` bytes at `pos` of the page.
    #[inline]
    pub fn normal(pos: usize, len: usize) -> ItemId {
        debug_assert!(pos < 1 << 15 && len < 1 << 15);
        ItemId(pos as u32 | 1 << 15 | (len as u32) << 17)
    }

    /// From the four bytes on disk.
    #[inline]
    pub fn from_bytes(bytes: [u8; 4]) -> ItemId {
        ItemId(u32::from_le_bytes(bytes))
    }

    /// The four bytes on disk.
    #[inline]
    pub fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// Where the item lies in the page (lp_off); of a redirect the offset number it leads to.
    #[inline]
    pub fn pos(self) -> usize {
        (self.0 & 0x7fff) as usize
    }

    /// The item's bytes (lp_len).
    #[inline]
    pub fn len(self) -> usize {
        (self.0 >> 17) as usize
    }

    /// No storage.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// lp_flags.
    #[inline]
    pub fn state(self) -> ItemState {
        match self.0 >> 15 & 3 {
            0 => ItemState::Unused,
            1 => ItemState::Normal,
            2 => ItemState::Redirect,
            _ => ItemState::Dead,
        }
    }

    /// Where the line pointer of `offset` lies in its page.
    #[inline]
    pub fn place(offset: OffsetNumber) -> usize {
        debug_assert!(offset > 0);
        HEADER_BYTES + (offset as usize - 1) * ITEM_ID_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_pointer_is_position_state_and_length() {
        let item = ItemId::normal(8160, 28);
        assert_eq!(
            item.to_bytes(),
            (0x1fe0u32 | 1 << 15 | 0x1c << 17).to_le_bytes()
        );
        assert_eq!(
            (item.pos(), item.len(), item.state()),
            (8160, 28, ItemState::Normal)
        );
        assert_eq!(ItemId::from_bytes(item.to_bytes()), item);
        assert_eq!(ItemId::place(1), 24);
        assert_eq!(ItemId::place(3), 32);
    }
}
