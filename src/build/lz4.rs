//! The LZ4 that TOAST compresses with, from the liblz4 that is built into the program.
//!
//! PostgreSQL: `src/backend/access/common/toast_compression.c`, `lz4_compress_datum`.

use pgformat::toast::compress::Lz4Block;

/// `LZ4_compress_default`.
#[derive(Debug, Default, Clone, Copy)]
pub struct BundledLz4;

impl Lz4Block for BundledLz4 {
    fn compress(&mut self, source: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        // The sizes of TOAST values are below what LZ4 refuses (LZ4_MAX_INPUT_SIZE).
        let bound = lz4::block::compress_bound(source.len()).expect("a value of less than 1 GB");
        out.resize(start + bound, 0);
        let written = lz4::block::compress_to_buffer(source, None, false, &mut out[start..])
            .expect("a buffer of the size that LZ4 asks for");
        out.truncate(start + written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_follows_what_is_there_and_comes_back() {
        let value: Vec<u8> = (0..5000u32).map(|i| (i / 100) as u8).collect();
        let mut out = b"kept".to_vec();
        BundledLz4.compress(&value, &mut out);
        assert_eq!(&out[..4], b"kept");
        assert!(out.len() < 600);
        assert_eq!(
            lz4::block::decompress(&out[4..], Some(5000)).unwrap(),
            value
        );
    }
}
