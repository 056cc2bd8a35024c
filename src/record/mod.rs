//! Bytes to fields: CSV, text and binary exactly as COPY reads them, split for parallel workers.
//!
//! Below: `source` gives bytes, `sys::delimiters` finds the bytes that matter in them. Above:
//! `load` takes chunks in order and hands every field to its type.
//!
//! ```text
//! CopyOptions --resolve--> Format
//!                            |
//! FileSource --Chunks-----> Chunk --ChunkReader--> Record --field(i)--> Option<&[u8]>
//! Stream ------StreamChunks-^
//! either ------BinaryChunks-^
//! ```
//!
//! - [`mod@format`]: COPY's options, and what is wrong with them.
//! - [`chunk`]: one stretch of input that holds whole records; how it is cut from a file at an
//!   arbitrary place and proved right afterwards.
//! - [`stream`]: the same from a source that can only be read forwards.
//! - [`binary`]: chunks of COPY's binary format, whose lengths are walked over in order.
//! - [`reader`]: the records of a chunk, fast where they are ordinary.
//! - [`mod@line`]: one record by COPY's letter, slow; errors come from here.
//! - [`header`], [`encoding`], [`error`]: the first line, valid bytes, what is refused.
//!
//! PostgreSQL: src/backend/commands/copyfromparse.c, copy.c.

#![expect(
    clippy::unnecessary_box_returns,
    reason = "records are refused rarely: a result stays small when its error is boxed"
)]

pub mod binary;
pub mod chunk;
pub mod encoding;
pub mod error;
pub mod format;
pub mod header;
pub mod line;
pub mod reader;
pub mod stream;

pub use binary::BinaryChunks;
pub use chunk::{Chunk, Chunks, Follows};
pub use encoding::Encoding;
pub use error::RecordError;
pub use format::{CopyOptions, Format, Header, InputColumn, Kind};
pub use reader::{ChunkReader, Record};
pub use stream::StreamChunks;

#[cfg(test)]
mod tests;
