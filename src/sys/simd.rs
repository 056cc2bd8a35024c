//! Functions of the format library compiled once more for wide registers, and chosen at run
//! time.

use pgformat::ids::BlockNumber;
use pgformat::page::Page;
use pgformat::page::checksum::{self, checksum};

/// The checksum of `page` as block `block`: see [`pgformat::page::checksum::checksum`].
#[inline]
pub fn page_checksum(page: &Page, block: BlockNumber) -> u16 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function asks for.
        return unsafe { page_checksum_avx2(page, block) };
    }
    checksum(page, block)
}

/// Puts the checksum of `page` as block `block` into its header; a page of zeros, which
/// PostgreSQL never checks, stays as it is.
#[inline]
pub fn set_checksum(page: &mut Page, block: BlockNumber) {
    if pgformat::page::view::PageView::is_new(page) {
        return;
    }
    let sum = page_checksum(page, block);
    checksum::store(page, sum);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn page_checksum_avx2(page: &Page, block: BlockNumber) -> u16 {
    checksum(page, block)
}

/// Work whose code is worth compiling once more for newer processors.
pub trait Task {
    /// What it gives.
    type Output;

    /// Does it. To be `#[inline(always)]`, as what it calls should be where it matters: only
    /// what becomes part of the one function is compiled once more.
    fn run(self) -> Self::Output;
}

/// Does a task with the instructions that this processor has.
#[inline]
pub fn run<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
        && std::arch::is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has what the function asks for.
        return unsafe { run_wide(task) };
    }
    task.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_wide<T: Task>(task: T) -> T::Output {
    task.run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgformat::page::PAGE_BYTES;

    #[test]
    fn the_wide_and_the_portable_checksum_are_equal() {
        let mut seed = 1u32;
        let mut page = [0u8; PAGE_BYTES];
        for block in 0..200 {
            for byte in &mut page {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (seed >> 24) as u8;
            }
            assert_eq!(page_checksum(&page, block * 7), checksum(&page, block * 7));
        }
    }

    #[test]
    fn a_page_of_zeros_gets_no_checksum() {
        let mut page = [0u8; PAGE_BYTES];
        set_checksum(&mut page, 3);
        assert_eq!(page, [0u8; PAGE_BYTES]);
    }
}
