//! Opening compressed values, for the order of an index is that of what they hold.

use pgformat::datum::varlena;
use pgformat::toast::compress::COMPRESSED_HEADER_BYTES;
use pgformat::toast::pglz;
use std::borrow::Cow;

/// Bits of the raw size in a compressed value's second word; the method stands above.
const SIZE_BITS: u32 = 30;

/// A varlena as it was before it was compressed, with its header; any other as it is.
///
/// # Panics
/// When it is not what a compressor wrote.
pub(crate) fn plain(stored: &[u8]) -> Cow<'_, [u8]> {
    if varlena::form(stored) != varlena::Form::Compressed {
        return Cow::Borrowed(stored);
    }
    Cow::Owned(decompress(stored).expect("a value that a compressor wrote opens"))
}

/// PostgreSQL: `src/backend/access/common/detoast.c`, `toast_decompress_datum`.
fn decompress(stored: &[u8]) -> Option<Vec<u8>> {
    let (header, compressed) = stored.split_first_chunk::<COMPRESSED_HEADER_BYTES>()?;
    let info = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    let raw_bytes = (info & ((1 << SIZE_BITS) - 1)) as usize;
    let mut plain = varlena::full_header(raw_bytes + varlena::HEADER_BYTES).to_vec();
    match info >> SIZE_BITS {
        0 => pglz::decompress(compressed, raw_bytes, &mut plain).then_some(plain),
        1 => {
            let raw = lz4::block::decompress(compressed, Some(raw_bytes as i32)).ok()?;
            plain.extend_from_slice(&raw);
            (raw.len() == raw_bytes).then_some(plain)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgformat::layout::Compression;
    use pgformat::toast::compress::Compressors;

    #[test]
    fn what_was_compressed_comes_back_with_a_header() {
        let raw = [b'x'; 600];
        let mut stored = Vec::new();
        assert!(Compressors::default().compress(&raw, Compression::Pglz, &mut stored));
        assert_eq!(varlena::payload(&plain(&stored)), raw);

        let block = lz4::block::compress(&raw, None, false).unwrap();
        let mut stored = ((block.len() as u32 + 8) << 2 | 2).to_le_bytes().to_vec();
        stored.extend((0x258_u32 | 1 << SIZE_BITS).to_le_bytes());
        stored.extend(block);
        assert_eq!(varlena::payload(&plain(&stored)), raw);
    }
}
