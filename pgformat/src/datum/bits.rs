//! bit(n) and bit varying(n): their order and text.
//!
//! ```text
//! payload  how many bits 4 | the bits, the first in the high bit of the first byte, zeros behind
//! ```
//!
//! PostgreSQL: `src/include/utils/varbit.h`, `src/backend/utils/adt/varbit.c` (`bit_cmp`,
//! `varbit_out`).

use std::cmp::Ordering;

/// Bytes of the number of bits.
pub const LENGTH_BYTES: usize = 4;

/// How many bits there are, and their bytes; `None` where bytes are missing.
pub fn parts(payload: &[u8]) -> Option<(usize, &[u8])> {
    let (length, bytes) = payload.split_first_chunk::<LENGTH_BYTES>()?;
    Some((u32::from_le_bytes(*length) as usize, bytes))
}

/// The order of `bit_ops` and `varbit_ops`, of payloads.
///
/// # Panics
/// On bytes that are no value of the type.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let read = |payload| parts(payload).expect("a bit string");
    let ((a_bits, a), (b_bits, b)) = (read(a), read(b));
    let common = a.len().min(b.len());
    a[..common].cmp(&b[..common]).then(a_bits.cmp(&b_bits))
}

/// Zeros and ones.
pub fn to_text(payload: &[u8]) -> Option<String> {
    let (bits, bytes) = parts(payload)?;
    let digit = |i: usize| Some(char::from(b'0' + (bytes.get(i / 8)? >> (7 - i % 8) & 1)));
    (0..bits).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_string_comes_first_among_equals() {
        assert!(compare(&[3, 0, 0, 0, 0xa0], &[4, 0, 0, 0, 0xa0]).is_lt());
        assert!(compare(&[0, 0, 0, 0], &[1, 0, 0, 0, 0]).is_lt());
        assert!(compare(&[9, 0, 0, 0, 1, 0], &[8, 0, 0, 0, 2]).is_lt());
        assert_eq!(to_text(&[4, 0, 0, 0, 0xa0]).as_deref(), Some("1010"));
        assert_eq!(to_text(&[0xff, 0xff, 0xff, 0xff, 1]), None);
        assert_eq!(to_text(&[1]), None);
    }
}
