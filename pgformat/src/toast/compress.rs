//! Compressing one value in line.
//!
//! ```text
//! 4-byte header, compressed | raw bytes (30 bits), method (2 bits): 4 | compressed bytes
//! ```
//!
//! PostgreSQL: `src/backend/access/common/toast_internals.c`, `toast_compress_datum`;
//! `src/backend/access/common/toast_compression.c`.

use super::pglz::Pglz;
use super::pointer::SIZE_BITS;
use crate::layout::Compression;
use std::fmt;

/// Bytes before the compressed bytes (`VARHDRSZ_COMPRESSED`).
pub const COMPRESSED_HEADER_BYTES: usize = 8;

/// `LZ4_compress_default`, which this library does not have itself.
///
/// The bytes are equal to the server's only if the liblz4 behind it compresses as the
/// server's does.
pub trait Lz4Block {
    /// Appends the LZ4 block of `source` to `out`.
    fn compress(&mut self, source: &[u8], out: &mut Vec<u8>);
}

/// The compression methods, with the memory they use again.
#[derive(Default)]
pub struct Compressors {
    /// pglz.
    pub pglz: Pglz,
    /// lz4, where a column may ask for it.
    pub lz4: Option<Box<dyn Lz4Block + Send>>,
}

impl fmt::Debug for Compressors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressors")
            .field("lz4", &self.lz4.is_some())
            .finish_non_exhaustive()
    }
}

impl Compressors {
    /// Appends the compressed stored form of a plain value's `payload` to `out`. Returns
    /// false, with `out` as it was, when the server would keep the value plain.
    ///
    /// # Panics
    /// When lz4 is asked for and there is none.
    pub fn compress(&mut self, payload: &[u8], method: Compression, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.extend_from_slice(&[0; COMPRESSED_HEADER_BYTES]);
        let id = match method {
            Compression::Pglz => {
                if !self.pglz.compress(payload, out) {
                    out.truncate(start);
                    return false;
                }
                0
            }
            Compression::Lz4 => {
                let lz4 = self
                    .lz4
                    .as_mut()
                    .expect("a compressor for a column with lz4");
                lz4.compress(payload, out);
                1
            }
        };
        // Worth it only if more is saved than padding and a longer header may cost.
        let total = out.len() - start;
        if total + 2 >= payload.len() {
            out.truncate(start);
            return false;
        }
        let header = (total as u32) << 2 | 2;
        let info = payload.len() as u32 | id << SIZE_BITS;
        out[start..start + 4].copy_from_slice(&header.to_le_bytes());
        out[start + 4..start + 8].copy_from_slice(&info.to_le_bytes());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_value_tells_its_raw_size_and_method() {
        let mut out = vec![9];
        assert!(Compressors::default().compress(&[b'x'; 100], Compression::Pglz, &mut out));
        assert_eq!(
            out[1..],
            [13 << 2 | 2, 0, 0, 0, 100, 0, 0, 0, 0b10, b'x', 0x0f, 1, 81]
        );
    }

    #[test]
    fn a_value_that_saves_two_bytes_stays_plain() {
        struct Made(usize);
        impl Lz4Block for Made {
            fn compress(&mut self, _: &[u8], out: &mut Vec<u8>) {
                out.resize(out.len() + self.0, 7);
            }
        }
        let mut out = vec![9];
        for (made, kept) in [(89, true), (90, false), (91, false), (200, false)] {
            let mut compressors = Compressors {
                lz4: Some(Box::new(Made(made))),
                ..Compressors::default()
            };
            out.truncate(1);
            assert_eq!(
                compressors.compress(&[1; 100], Compression::Lz4, &mut out),
                kept
            );
            assert_eq!(out.len(), if kept { 1 + 8 + made } else { 1 });
        }
        assert_eq!(out, [9]);
    }
}
