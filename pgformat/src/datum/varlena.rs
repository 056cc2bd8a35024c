//! Varlena headers on a little-endian machine.
//!
//! ```text
//! xxxxxx00 + 3 bytes   4-byte header, plain;      length including header << 2
//! xxxxxx10 + 3 bytes   4-byte header, compressed; then 4 bytes: raw size | method << 30
//! xxxxxxx1             1-byte header;             length including header << 1 | 1
//! 00000001 + tag       external (TOAST pointer);  18 bytes in all for an on-disk pointer
//! ```
//!
//! PostgreSQL: `src/include/varatt.h` (before 16: `src/include/postgres.h`).

/// Bytes of a full header.
pub const HEADER_BYTES: usize = 4;
/// Bytes of a short header.
pub const SHORT_HEADER_BYTES: usize = 1;
/// The longest value, header included, that a short header can carry.
pub const SHORT_MAX_BYTES: usize = 127;
/// The longest payload for which a packable attribute takes a short header.
pub const SHORT_MAX_PAYLOAD_BYTES: usize = SHORT_MAX_BYTES - SHORT_HEADER_BYTES;
/// The longest varlena, header included (`MaxAllocSize` bounds it): 1 GB - 1.
pub const MAX_BYTES: usize = 0x3fff_ffff;

/// The four bytes of a full header for a value of `total_bytes`, header included.
#[inline]
pub fn full_header(total_bytes: usize) -> [u8; 4] {
    debug_assert!((HEADER_BYTES..=MAX_BYTES).contains(&total_bytes));
    ((total_bytes as u32) << 2).to_le_bytes()
}

/// The byte of a short header for a value of `total_bytes`, header included.
#[inline]
pub fn short_header(total_bytes: usize) -> u8 {
    debug_assert!((SHORT_HEADER_BYTES..=SHORT_MAX_BYTES).contains(&total_bytes));
    (total_bytes as u8) << 1 | 1
}

/// What a stored varlena's first byte says of its form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Plain, with a 4-byte header.
    Full,
    /// Compressed in line, with a 4-byte header.
    Compressed,
    /// Plain, with a 1-byte header.
    Short,
    /// A TOAST pointer.
    External,
}

/// The form of a stored varlena.
///
/// # Panics
/// On an empty slice.
#[inline]
pub fn form(stored: &[u8]) -> Form {
    let first = stored[0];
    if first == 1 {
        Form::External
    } else if first & 1 == 1 {
        Form::Short
    } else if first & 2 == 2 {
        Form::Compressed
    } else {
        Form::Full
    }
}

/// The payload of a plain stored varlena (full or short header).
///
/// # Panics
/// On a compressed or external one.
#[inline]
pub fn payload(stored: &[u8]) -> &[u8] {
    match form(stored) {
        Form::Short => &stored[SHORT_HEADER_BYTES..],
        Form::Full => &stored[HEADER_BYTES..],
        other => panic!("a plain varlena was expected, found {other:?}"),
    }
}
