//! Two simple tables: many columns of one width, and few bytes a row.

use crate::random::{Random, decimal};
use std::ops::Range;

/// Appends rows of 100 bigints: the first is the row's number, the others have every
/// magnitude and sign.
pub(crate) fn bigint100(numbers: Range<u64>, out: &mut Vec<u8>) {
    for number in numbers {
        let r = &mut Random::new(100, number);
        decimal(number + 1, out);
        for _ in 1..100 {
            out.push(b',');
            let bits = r.next();
            let magnitude = bits >> (1 + (r.next() & 63) % 63);
            if bits & 1 == 1 && magnitude > 0 {
                out.push(b'-');
            }
            decimal(magnitude, out);
        }
        out.push(b'\n');
    }
}

/// Appends rows `id,name,value`.
pub(crate) fn shadoks(numbers: Range<u64>, out: &mut Vec<u8>) {
    const WORDS: [&str; 4] = ["Ga", "Bu", "Zo", "Meu"];
    for number in numbers {
        let r = &mut Random::new(4, number);
        decimal(number + 1, out);
        out.push(b',');
        for _ in 0..r.between(2, 6) {
            out.extend_from_slice(r.pick(&WORDS).as_bytes());
        }
        out.push(b' ');
        decimal(r.below(1_000_000), out);
        out.push(b',');
        decimal(r.below(1 << 31), out);
        out.push(b'\n');
    }
}
