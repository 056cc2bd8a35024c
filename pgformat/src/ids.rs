//! Names of things on disk: OIDs, blocks, offsets, tuple identifiers.

use std::fmt;

/// An object identifier. PostgreSQL: `src/include/postgres_ext.h`, `Oid`.
pub type Oid = u32;

/// A block of a fork, counted from 0 over all segments. PostgreSQL: `storage/block.h`.
pub type BlockNumber = u32;

/// A line pointer of a page, counted from 1. PostgreSQL: `storage/off.h`.
pub type OffsetNumber = u16;

/// The place of a tuple: block and line pointer.
///
/// PostgreSQL: `src/include/storage/itemptr.h`, `ItemPointerData` (6 bytes on disk: block high
/// half, block low half, offset; each of 16 bits).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tid {
    /// Block of the heap.
    pub block: BlockNumber,
    /// Line pointer in that block, from 1.
    pub offset: OffsetNumber,
}

impl Tid {
    /// Size on disk in bytes.
    pub const SIZE_BYTES: usize = 6;

    /// The six bytes on disk.
    pub fn to_bytes(self) -> [u8; 6] {
        let hi = ((self.block >> 16) as u16).to_le_bytes();
        let lo = (self.block as u16).to_le_bytes();
        let off = self.offset.to_le_bytes();
        [hi[0], hi[1], lo[0], lo[1], off[0], off[1]]
    }

    /// Reads the six bytes on disk.
    pub fn from_bytes(bytes: [u8; 6]) -> Tid {
        let hi = u16::from_le_bytes([bytes[0], bytes[1]]);
        let lo = u16::from_le_bytes([bytes[2], bytes[3]]);
        Tid {
            block: (hi as u32) << 16 | lo as u32,
            offset: u16::from_le_bytes([bytes[4], bytes[5]]),
        }
    }

    /// One number of 48 bits that orders as TIDs do.
    pub fn to_u64(self) -> u64 {
        (self.block as u64) << 16 | self.offset as u64
    }

    /// The inverse of [`Tid::to_u64`]; the high 16 bits are ignored.
    pub fn from_u64(packed: u64) -> Tid {
        Tid {
            block: (packed >> 16) as u32,
            offset: packed as u16,
        }
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tid_stores_the_high_half_of_its_block_first() {
        let tid = Tid {
            block: 0x0001_0203,
            offset: 7,
        };
        assert_eq!(tid.to_bytes(), [0x01, 0x00, 0x03, 0x02, 7, 0]);
        assert_eq!(Tid::from_bytes(tid.to_bytes()), tid);
        assert_eq!(Tid::from_u64(tid.to_u64()), tid);
    }
}
