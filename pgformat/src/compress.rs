//! What the format asks of a compressor of values, whoever provides it.
//!
//! Values are compressed by the toaster and while index tuples are formed; the order of an index
//! looks at values as they were before. `pgformat` forbids unsafe code and so cannot hold every
//! method itself (lz4 is a C library); code here takes what it needs as these traits.
//!
//! PostgreSQL: `src/backend/access/common/toast_compression.c`.

use crate::layout::Compression;

/// Compresses values.
pub trait Compressor {
    /// The whole stored varlena (4-byte compressed header, 4 bytes of raw size and method, data)
    /// for a payload, or `None` where the server keeps the value plain, because it does not
    /// shrink.
    ///
    /// PostgreSQL: `src/backend/access/common/toast_internals.c`, `toast_compress_datum`.
    fn compress(&mut self, method: Compression, raw: &[u8]) -> Option<Vec<u8>>;
}

/// Gives back what a [`Compressor`] took.
pub trait Decompressor {
    /// The payload of a compressed stored varlena (its 4-byte header included), or `None` when
    /// the bytes are not what a compressor wrote.
    ///
    /// PostgreSQL: `src/backend/access/common/detoast.c`, `toast_decompress_datum`.
    fn decompress(&self, stored: &[u8]) -> Option<Vec<u8>>;
}
