//! The checksum of a page.
//!
//! 32 sums run side by side over the page's 64 rows of 32 words, each step an FNV-1a with one
//! more shift; two rounds of zero mix the end, and an xor folds the sums into one. The
//! function is written so that the compiler keeps the 32 sums in vector registers: whoever
//! calls it from a function with wider registers enabled gets them.
//!
//! PostgreSQL: `src/include/storage/checksum_impl.h`, `pg_checksum_page`.

use super::header::CHECKSUM_POS;
use super::{PAGE_BYTES, Page};
use crate::ids::BlockNumber;

const LANES: usize = 32;
const ROW_BYTES: usize = LANES * 4;
const FNV_PRIME: u32 = 16_777_619;

/// Where the sums start: random numbers fixed by the format.
const START: [u32; LANES] = [
    0x5B1F_36E9,
    0xB852_5960,
    0x02AB_50AA,
    0x1DE6_6D2A,
    0x79FF_467A,
    0x9BB9_F8A3,
    0x217E_7CD2,
    0x83E1_3D2C,
    0xF8D4_474F,
    0xE39E_B970,
    0x42C6_AE16,
    0x9932_16FA,
    0x7B09_3B5D,
    0x98DA_FF3C,
    0xF718_902A,
    0x0B1C_9CDB,
    0xE58F_764B,
    0x1876_36BC,
    0x5D7B_3BB1,
    0xE73D_E7DE,
    0x92BE_C979,
    0xCCA6_C0B2,
    0x304A_0979,
    0x85AA_43D4,
    0x7831_25BB,
    0x6CA8_EAA2,
    0xE407_EAC6,
    0x4B5C_FC3E,
    0x9FBF_8C76,
    0x15CA_20BE,
    0xF2CA_9FD3,
    0x959B_D756,
];

#[inline(always)]
fn mix(sums: &mut [u32; LANES], words: &[u32; LANES]) {
    for (sum, word) in sums.iter_mut().zip(words) {
        let mixed = *sum ^ *word;
        *sum = mixed.wrapping_mul(FNV_PRIME) ^ (mixed >> 17);
    }
}

#[inline(always)]
fn words(row: &[u8; ROW_BYTES]) -> [u32; LANES] {
    let mut words = [0; LANES];
    for (word, bytes) in words.iter_mut().zip(row.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// The checksum of `page` as block `block` (counted over all segments of its fork), from 1 to
/// 65535. What stands in pd_checksum does not matter.
///
/// A page of zeros has no checksum: the caller leaves it alone.
#[inline(always)]
pub fn checksum(page: &Page, block: BlockNumber) -> u16 {
    const { assert!(PAGE_BYTES.is_multiple_of(ROW_BYTES)) };
    let rows = page.as_chunks::<ROW_BYTES>().0;
    let mut sums = START;
    let mut first = words(&rows[0]);
    // pd_checksum counts as zero; pd_flags shares its word.
    first[CHECKSUM_POS / 4] &= 0xffff_0000;
    mix(&mut sums, &first);
    for row in &rows[1..] {
        mix(&mut sums, &words(row));
    }
    mix(&mut sums, &[0; LANES]);
    mix(&mut sums, &[0; LANES]);
    let folded = sums.iter().fold(0, |folded, sum| folded ^ sum);
    ((folded ^ block) % 65535 + 1) as u16
}

/// Puts `checksum` into the page's header.
#[inline]
pub fn store(page: &mut Page, checksum: u16) {
    page[CHECKSUM_POS..CHECKSUM_POS + 2].copy_from_slice(&checksum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_field_does_not_matter_and_the_block_does() {
        let mut page = [7u8; PAGE_BYTES];
        let sum = checksum(&page, 5);
        store(&mut page, sum);
        assert_eq!(checksum(&page, 5), sum);
        assert_ne!(checksum(&page, 6), sum);
        page[10] ^= 1;
        assert_ne!(checksum(&page, 5), sum);
    }
}
