//! Wide text: what the toaster is for.

use crate::random::{Random, decimal};
use std::ops::Range;

/// Appends rows `id,body`: 1 to 200 KB, by turns of random letters (which pglz cannot
/// compress) and of words (which it can).
pub(crate) fn rows(numbers: Range<u64>, out: &mut Vec<u8>) {
    for number in numbers {
        let r = &mut Random::new(200, number);
        decimal(number + 1, out);
        out.push(b',');
        let len = r.between(1_024, 204_800);
        if number % 2 == 0 {
            r.alphanumeric(len, out);
        } else {
            r.words(len, out);
        }
        out.push(b'\n');
    }
}
