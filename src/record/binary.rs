//! COPY's binary format: where its parts lie, and chunks of it.
//!
//! ```text
//! header:  signature 11 | flags 4 | length of extension 4 | extension
//! record:  count of fields 2 | per field: length 4 (-1 is NULL) | bytes
//! trailer: -1 in place of a count; may be missing
//! ```
//!
//! All numbers have their high byte first. Only lengths tell where a record ends, so chunks are
//! cut in order, by whoever takes the next: a walk over the lengths, without a look at the
//! values. The records of a chunk are then read in parallel ([`super::ChunkReader`]). What is
//! malformed ends the walk, and is left to the reader to refuse.
//!
//! PostgreSQL: src/backend/commands/copyfromparse.c, ReceiveCopyBinaryHeader, NextCopyFrom,
//! CopyReadBinaryAttribute.

use super::chunk::{CHUNK_BYTES, Chunk, MAX_RECORD_BYTES, too_long};
use super::error::bad_format;
use super::format::Format;
use crate::error::{Result, ValueError};
use crate::source::{FileSource, Stream};
use byteorder::{BigEndian, ByteOrder};

/// How every file begins.
pub const SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";
/// Bytes of the header before its extension.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// The flag of files of old that have OIDs.
const FLAG_OIDS: u32 = 1 << 16;
/// Flags that a reader must know.
const CRITICAL_FLAGS: u32 = 0xffff_0000;
/// In place of a count of fields.
pub(super) const TRAILER: i16 = -1;
/// A field of so many bytes does not fit the server's buffer (MaxAllocSize).
pub(super) const MAX_FIELD_BYTES: usize = 0x3fff_ffff;

/// The two bytes at `at`.
#[inline]
pub(super) fn count_at(data: &[u8], at: usize) -> Option<i16> {
    data.get(at..at + 2).map(BigEndian::read_i16)
}

/// The four bytes at `at`.
#[inline]
pub(super) fn length_at(data: &[u8], at: usize) -> Option<i32> {
    data.get(at..at + 4).map(BigEndian::read_i32)
}

/// Where the first record begins.
///
/// # Errors
/// 22P04 for a header that COPY refuses; `data` must hold all of it, or all there is.
pub(super) fn header_end(data: &[u8]) -> Result<usize, Box<ValueError>> {
    let malformed = |what: &str| bad_format(format!("invalid COPY file header ({what})"));
    if !data.starts_with(&SIGNATURE) {
        return Err(bad_format("COPY file signature not recognized"));
    }
    let flags = length_at(data, SIGNATURE.len()).ok_or_else(|| malformed("missing flags"))?;
    let flags = flags.cast_unsigned();
    if flags & FLAG_OIDS != 0 {
        return Err(malformed("WITH OIDS"));
    }
    if flags & CRITICAL_FLAGS != 0 {
        return Err(bad_format(
            "unrecognized critical flags in COPY file header",
        ));
    }
    let extension_bytes = length_at(data, SIGNATURE.len() + 4)
        .and_then(|length| usize::try_from(length).ok())
        .ok_or_else(|| malformed("missing length"))?;
    let end = HEADER_BYTES + extension_bytes;
    if end > data.len() {
        return Err(malformed("wrong length"));
    }
    Ok(end)
}

/// How far a walk came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// The record at this position does not end in the data.
    Incomplete(usize),
    /// The input ends here: with its trailer, or with what is refused.
    Ends,
}

/// Walks over whole records; the input's start has the header before them.
fn walk(data: &[u8], is_start: bool, columns: usize) -> Walk {
    let mut at = 0;
    if is_start {
        match header_end(data) {
            Ok(end) => at = end,
            // What is short may go on; what differs already is refused.
            Err(_) if is_header_prefix(data) => return Walk::Incomplete(0),
            Err(_) => return Walk::Ends,
        }
    }
    loop {
        match record_end(data, at, columns) {
            Some(Ok(end)) => at = end,
            Some(Err(Refused)) => return Walk::Ends,
            None => return Walk::Incomplete(at),
        }
    }
}

/// The data may be the beginning of a good header.
fn is_header_prefix(data: &[u8]) -> bool {
    let known = data.len().min(SIGNATURE.len());
    data[..known] == SIGNATURE[..known]
        && length_at(data, SIGNATURE.len())
            .is_none_or(|flags| flags.cast_unsigned() & CRITICAL_FLAGS == 0)
        && length_at(data, SIGNATURE.len() + 4).is_none_or(|length| length >= 0)
}

/// A record ends the input.
struct Refused;

/// Where the record at `at` ends; `None` when it does not end in the data. Of the trailer one
/// more byte must be seen, since there must be none.
#[inline]
fn record_end(data: &[u8], at: usize, columns: usize) -> Option<Result<usize, Refused>> {
    let count = count_at(data, at)?;
    let mut at = at + 2;
    if usize::try_from(count) != Ok(columns) {
        return if count == TRAILER && at == data.len() {
            None
        } else {
            Some(Err(Refused))
        };
    }
    for _ in 0..columns {
        let length = length_at(data, at)?;
        at += 4;
        match usize::try_from(length) {
            Ok(bytes) if bytes < MAX_FIELD_BYTES => at += bytes,
            Err(_) if length == -1 => {}
            _ => return Some(Err(Refused)),
        }
    }
    (at <= data.len()).then_some(Ok(at))
}

/// Where the bytes come from.
#[derive(Debug)]
enum Bytes<'a> {
    File { source: &'a FileSource, pos: u64 },
    Stream(Stream),
}

/// The chunks of binary input. They are taken in order, one at a time.
#[derive(Debug)]
pub struct BinaryChunks<'a> {
    bytes: Bytes<'a>,
    columns: usize,
    chunk_bytes: u64,
    /// The beginning of a record whose end is still to come.
    carried: Vec<u8>,
    /// The input's position of `carried`.
    pos: u64,
    /// The last chunk was given out.
    done: bool,
}

impl<'a> BinaryChunks<'a> {
    /// The chunks of a file.
    pub fn of_file(source: &'a FileSource, format: &Format) -> BinaryChunks<'a> {
        BinaryChunks::with_chunk_bytes(source, format, CHUNK_BYTES)
    }

    /// The same with chunks of another size.
    ///
    /// # Panics
    /// When `chunk_bytes` is 0.
    pub fn with_chunk_bytes(
        source: &'a FileSource,
        format: &Format,
        chunk_bytes: u64,
    ) -> BinaryChunks<'a> {
        assert!(chunk_bytes > 0, "a chunk has bytes");
        BinaryChunks::new(Bytes::File { source, pos: 0 }, format, chunk_bytes)
    }

    /// The chunks of a stream, one of its blocks each.
    pub fn of_stream(stream: Stream, format: &Format) -> BinaryChunks<'a> {
        BinaryChunks::new(Bytes::Stream(stream), format, CHUNK_BYTES)
    }

    fn new(bytes: Bytes<'a>, format: &Format, chunk_bytes: u64) -> BinaryChunks<'a> {
        BinaryChunks {
            bytes,
            columns: format.columns.len(),
            chunk_bytes,
            carried: Vec::new(),
            pos: 0,
            done: false,
        }
    }

    /// Reads the next chunk; false when there is none. Empty input has one.
    ///
    /// # Errors
    /// The file cannot be read, or those of [`Stream::next_block`]; a record is too long for the
    /// server.
    pub fn next(&mut self, chunk: &mut Chunk, wanted: &dyn Fn() -> bool) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        chunk.clear_at(self.pos);
        chunk.append(&self.carried);
        chunk.end = loop {
            if !self.read_on(chunk, wanted)? {
                self.done = true;
                break chunk.len;
            }
            match walk(chunk.data(), self.pos == 0, self.columns) {
                Walk::Ends => {
                    self.done = true;
                    break chunk.len;
                }
                Walk::Incomplete(0) => {}
                Walk::Incomplete(begun) => break begun,
            }
            if chunk.len > MAX_RECORD_BYTES {
                return Err(too_long(self.name()));
            }
        };
        self.pos = chunk.ends_at();
        chunk.limit_pos = self.pos;
        chunk.valid_to = chunk.end;
        self.carried.clear();
        self.carried.extend_from_slice(&chunk.data()[chunk.end..]);
        Ok(true)
    }

    fn name(&self) -> &str {
        match &self.bytes {
            Bytes::File { source, .. } => source.name(),
            Bytes::Stream(stream) => stream.name(),
        }
    }

    /// Appends the next bytes; false when there are none.
    fn read_on(&mut self, chunk: &mut Chunk, wanted: &dyn Fn() -> bool) -> Result<bool> {
        match &mut self.bytes {
            Bytes::File { source, pos } => {
                let more = (source.len() - *pos).min(self.chunk_bytes);
                source.read_at(*pos, chunk.grow(more as usize))?;
                *pos += more;
                Ok(more > 0)
            }
            Bytes::Stream(stream) => {
                let Some(block) = stream.next_block(wanted)? else {
                    return Ok(false);
                };
                chunk.append(&block);
                stream.recycle(block);
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ChunkReader, InputColumn};
    use pgformat::version::MajorVersion;
    use proptest::prelude::*;
    use std::io::Write;

    /// A header without an extension, then these bytes.
    fn file(rest: &[u8]) -> Vec<u8> {
        let mut file = SIGNATURE.to_vec();
        file.extend([0; 8]);
        file.extend(rest);
        file
    }

    #[test]
    fn a_walk_goes_over_whole_records_and_stops_in_a_part_of_one() {
        let record = b"\0\x02\0\0\0\x01x\xff\xff\xff\xff";
        let data = file(&[&record[..], record, &record[..9]].concat());
        assert_eq!(walk(&data, true, 2), Walk::Incomplete(19 + 22));
        assert_eq!(walk(&data[19..], false, 2), Walk::Incomplete(22));
        assert_eq!(walk(&data, true, 3), Walk::Ends);
    }

    #[test]
    fn the_trailer_ends_the_walk_when_more_follows() {
        assert_eq!(walk(&file(b"\xff\xff"), true, 1), Walk::Incomplete(19));
        assert_eq!(walk(&file(b"\xff\xff\0"), true, 1), Walk::Ends);
    }

    #[test]
    fn a_header_is_waited_for_until_it_must_be_refused() {
        let good = file(b"");
        for end in 0..good.len() {
            assert_eq!(walk(&good[..end], true, 1), Walk::Incomplete(0), "{end}");
        }
        assert_eq!(walk(b"PGCOPX", true, 1), Walk::Ends);
        assert_eq!(walk(b"PGCOPY\n\xff\r\n\0\0\x01\0\0", true, 1), Walk::Ends);
    }

    /// Fields of all records, and the message and record of a refusal.
    type Read = (Vec<Vec<Option<Vec<u8>>>>, Option<(String, u64)>);

    fn read(file: &[u8], columns: usize, chunk_bytes: u64) -> Read {
        let columns = (0..columns).map(|i| InputColumn::named(i.to_string()));
        let version = MajorVersion::from_version_num(170_000).expect("a version");
        let format = Format::binary(columns.collect(), version);
        let mut path = tempfile::NamedTempFile::new().expect("a file");
        path.write_all(file).expect("a file");
        let source = FileSource::open(path.path()).expect("a file");
        let mut chunks = BinaryChunks::with_chunk_bytes(&source, &format, chunk_bytes);
        let mut chunk = Chunk::new();
        let (mut rows, mut lines) = (Vec::new(), 0);
        while chunks.next(&mut chunk, &|| true).expect("readable") {
            let mut reader = ChunkReader::new(&chunk, &format);
            loop {
                match reader.next() {
                    Ok(Some(record)) => {
                        let fields = (0..record.len()).map(|i| record.field(i));
                        rows.push(fields.map(|field| field.map(<[u8]>::to_vec)).collect());
                    }
                    Ok(None) => break,
                    Err(error) => {
                        let line = lines + error.line_in_chunk;
                        return (rows, Some((error.error.message, line)));
                    }
                }
            }
            lines += reader.lines();
        }
        (rows, None)
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_chunks_do_not_matter(
            rest in prop::collection::vec(
                prop_oneof![any::<u8>(), Just(0), Just(0), Just(0), Just(2), Just(0xff)], 0..80),
            has_header in prop::bool::weighted(0.9),
            columns in 0..3_usize,
            chunk_bytes in 1..90_u64,
        ) {
            let bytes = if has_header { file(&rest) } else { rest };
            let whole = read(&bytes, columns, 1 << 20);
            prop_assert_eq!(read(&bytes, columns, chunk_bytes), whole);
        }

        #[test]
        fn what_was_written_is_read(
            rows in prop::collection::vec(prop::collection::vec(
                prop::option::of(prop::collection::vec(any::<u8>(), 0..6)), 2), 0..20),
            chunk_bytes in 1..90_u64,
        ) {
            let mut bytes = Vec::new();
            for row in &rows {
                bytes.extend([0, 2]);
                for field in row {
                    let length = field.as_ref().map_or(-1, |field| field.len() as i32);
                    bytes.extend(length.to_be_bytes());
                    bytes.extend(field.iter().flatten());
                }
            }
            bytes.extend(TRAILER.to_be_bytes());
            prop_assert_eq!(read(&file(&bytes), 2, chunk_bytes), (rows, None));
        }
    }
}
