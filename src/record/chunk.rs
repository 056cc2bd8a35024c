//! One stretch of input that holds whole records, cut from a file at an arbitrary place.
//!
//! Chunk `i` holds the records that begin in bytes `i * C .. (i + 1) * C` of the file:
//!
//! ```text
//!        i*C                        (i+1)*C
//!   ...---|--\n-----\n------\n---\n----|------\n---...
//!             ^begins_at                       ^ends_at: the next chunk begins here
//! ```
//!
//! Any worker reads any chunk. Where its first record begins depends on whether the chunk's
//! first byte stands in quotes, which only the whole file before it tells. So the worker
//! guesses, says where it began, and the pipeline checks in order that each chunk begins where
//! the one before it ended ([`Chunks::follows`]). A chunk that does not is read again from the
//! right place ([`Chunks::reparse_from`]); until then its errors mean nothing.

use super::encoding::Encoding;
use super::format::{Format, Kind};
use crate::error::{Error, Place, Result, ValueError};
use crate::source::{Buffer, FileSource};
use crate::sys::delimiters::Scanner;
use memchr::{memchr2, memchr3};

/// How many bytes a chunk covers.
pub const CHUNK_BYTES: u64 = 1 << 20;

/// Bytes before a chunk that are looked at: its first record may begin with its first byte.
const LOOK_BEHIND_BYTES: u64 = 64;
/// Bytes behind a chunk that are read at once: most last records end there.
const SLACK_BYTES: u64 = 16 << 10;
/// The longest record: the server's line buffer ends there.
pub(super) const MAX_RECORD_BYTES: usize = (1 << 30) - 1;

/// How lines end; the first line decides for the whole input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eol {
    /// `\n`
    Lf,
    /// `\r`
    Cr,
    /// `\r\n`
    CrLf,
}

/// Bytes with whole records in them, and where the bytes stand that matter. Chunks are reused:
/// reading one replaces all it held.
#[derive(Debug, Default)]
pub struct Chunk {
    pub(super) buffer: Buffer,
    /// Bytes of the buffer that hold input.
    pub(super) len: usize,
    /// The input's position of the buffer's first byte.
    pub(super) base_pos: u64,
    /// The first record, and the end of the last one, in the buffer.
    pub(super) begin: usize,
    pub(super) end: usize,
    /// What the scan found.
    pub(super) positions: Vec<u32>,
    /// Data is valid up to here; at most one more than `end`.
    pub(super) valid_to: usize,
    pub(super) defect: Option<Box<ValueError>>,
    pub(super) eol: Option<Eol>,
    pub(super) has_quoted_line_ends: bool,
    /// Where the nominal range ends in the input.
    pub(super) limit_pos: u64,
}

impl Chunk {
    /// An empty chunk, to be read into.
    pub fn new() -> Chunk {
        Chunk::default()
    }

    /// The input's position of the first record; that of `ends_at` when the chunk has none.
    pub fn begins_at(&self) -> u64 {
        self.base_pos + self.begin as u64
    }

    /// The input's position behind the last record, where the next one begins.
    pub fn ends_at(&self) -> u64 {
        self.base_pos + self.end as u64
    }

    /// Bytes of the chunk's records.
    pub fn bytes(&self) -> u64 {
        (self.end - self.begin) as u64
    }

    /// The bytes read; records lie in a part of them.
    pub fn data(&self) -> &[u8] {
        &self.buffer.bytes()[..self.len]
    }

    /// Empties the chunk, for bytes from the input's position `pos` on.
    pub(super) fn clear_at(&mut self, pos: u64) {
        self.base_pos = pos;
        self.begin = 0;
        self.len = 0;
        self.positions.clear();
        self.defect = None;
        self.has_quoted_line_ends = false;
    }

    /// Room for so many more bytes of input, to be filled.
    pub(super) fn grow(&mut self, more_bytes: usize) -> &mut [u8] {
        let from = self.len;
        self.len += more_bytes;
        self.buffer.reserve(self.len);
        &mut self.buffer.bytes_mut()[from..self.len]
    }

    /// More bytes of input.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.grow(bytes.len()).copy_from_slice(bytes);
    }

    /// Scans the bytes from `from` on.
    pub(super) fn scan(&mut self, scanner: &mut Scanner, from: usize) {
        let data = &self.buffer.bytes()[..self.len];
        scanner.scan(data, from, &mut self.positions);
    }

    pub(super) fn begin(&self) -> usize {
        self.begin
    }

    pub(super) fn defect(&self) -> Option<&ValueError> {
        self.defect.as_deref()
    }

    pub(super) fn eol(&self) -> Option<Eol> {
        self.eol
    }

    pub(super) fn has_quoted_line_ends(&self) -> bool {
        self.has_quoted_line_ends
    }

    pub(super) fn starts_input(&self) -> bool {
        self.begins_at() == 0
    }

    /// The positions within valid records, and where valid data ends.
    pub(super) fn entries(&self) -> (&[u32], usize) {
        let from = self
            .positions
            .partition_point(|&at| (at as usize) < self.begin);
        let until = self.valid_to.min(self.end);
        let to = self.positions.partition_point(|&at| (at as usize) < until);
        (&self.positions[from..to.max(from)], self.valid_to)
    }

    /// Checks the bytes of the records. `context_bytes` more belong to what the server looks
    /// at before it takes the last line.
    pub(super) fn check_encoding(
        &mut self,
        encoding: Encoding,
        scanner: &Scanner,
        context_bytes: usize,
    ) {
        self.defect = None;
        self.valid_to = self.end;
        if !scanner.saw_high() && !scanner.saw_nul() {
            return;
        }
        let data = &self.buffer.bytes()[..self.len];
        let until = (self.end + context_bytes).min(self.len);
        if let Some(invalid) = encoding.first_invalid(&data[self.begin..until]) {
            let at = self.begin + invalid;
            // A character cut by the end of the context is none of this chunk's business.
            if at <= self.end {
                self.valid_to = at;
                self.defect = Some(encoding.refusal(&data[at..]));
            }
        }
    }

    /// The last byte of the first line end at or behind `from`.
    pub(super) fn line_end_from(&self, from: usize) -> Option<usize> {
        let first = self.positions.partition_point(|&at| (at as usize) < from);
        (first..self.positions.len()).find_map(|k| self.line_end(k))
    }

    /// The last byte of the last line end.
    pub(super) fn last_line_end(&self) -> Option<usize> {
        (0..self.positions.len())
            .rev()
            .find_map(|k| self.line_end(k))
    }

    /// The position of entry `k` where it is the last byte of a line end.
    #[inline]
    fn line_end(&self, k: usize) -> Option<usize> {
        let data = self.data();
        let at = self.positions[k] as usize;
        let last = match self.eol? {
            Eol::Lf | Eol::CrLf => b'\n',
            Eol::Cr => b'\r',
        };
        if data[at] != last {
            return None;
        }
        let mut k = k;
        if self.eol == Some(Eol::CrLf) {
            k = k.checked_sub(1)?;
            if data[at - 1] != b'\r' || self.positions[k] as usize != at - 1 {
                return None;
            }
        }
        (!ends_marker(data, &self.positions, k)).then_some(at)
    }
}

/// Entry `k`, a CR or LF, stands behind `\.` in text. No chunk begins behind such a line: it
/// does not say how lines end, so the server may still not know.
fn ends_marker(data: &[u8], positions: &[u32], k: usize) -> bool {
    let at = positions[k] as usize;
    k > 0 && positions[k - 1] as usize + 2 == at && data[at - 2] == b'\\' && data[at - 1] == b'.'
}

/// How a chunk stands to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// It begins where the other ended.
    Yes,
    /// It has no records: the last record of another reaches over it.
    Empty,
    /// It was guessed wrong: read it again from where the other ended.
    Reparse,
}

/// The chunks of a file.
#[derive(Debug)]
pub struct Chunks<'a> {
    source: &'a FileSource,
    format: &'a Format,
    eol: Option<Eol>,
    chunk_bytes: u64,
}

impl<'a> Chunks<'a> {
    /// Cuts a file into chunks of [`CHUNK_BYTES`]. Reads its first line.
    pub fn open(source: &'a FileSource, format: &'a Format) -> Result<Chunks<'a>> {
        Chunks::with_chunk_bytes(source, format, CHUNK_BYTES)
    }

    /// The same with chunks of another size.
    ///
    /// # Panics
    /// When `chunk_bytes` is 0 or above 1 GB.
    pub fn with_chunk_bytes(
        source: &'a FileSource,
        format: &'a Format,
        chunk_bytes: u64,
    ) -> Result<Chunks<'a>> {
        assert!(
            (1..=1 << 30).contains(&chunk_bytes),
            "a chunk has 1 byte to 1 GB"
        );
        let eol = learn_eol(source, format)?;
        Ok(Chunks {
            source,
            format,
            eol,
            chunk_bytes,
        })
    }

    /// How many chunks there are; an empty file has one.
    pub fn count(&self) -> u64 {
        self.source.len().div_ceil(self.chunk_bytes).max(1)
    }

    /// How the file's lines end; `None` when it has no line end.
    pub fn eol(&self) -> Option<Eol> {
        self.eol
    }

    /// Reads chunk `number`, guessing where its first record begins.
    ///
    /// # Errors
    /// The file cannot be read or changed its size; a record is too long for the server.
    pub fn read(&self, number: u64, chunk: &mut Chunk) -> Result<()> {
        if number == 0 {
            return self.reparse_from(0, 0, chunk);
        }
        let start = number * self.chunk_bytes;
        self.place(number, start.saturating_sub(LOOK_BEHIND_BYTES), chunk)?;
        let mut scanner = Scanner::new(self.format.dialect(), self.format.delimiter);
        scanner.restart(guess_in_quote(chunk.data(), self.format, self.eol));
        chunk.scan(&mut scanner, 0);
        // The line end before the first record may be the last byte before the chunk.
        let from = (start - chunk.base_pos) as usize - 1;
        let limit = (chunk.limit_pos - chunk.base_pos) as usize;
        match chunk.line_end_from(from) {
            Some(line_end) if line_end + 1 < limit => {
                chunk.begin = line_end + 1;
                self.finish(&mut scanner, chunk)
            }
            _ => {
                chunk.begin = limit;
                chunk.end = limit;
                chunk.valid_to = limit;
                chunk.has_quoted_line_ends = false;
                Ok(())
            }
        }
    }

    /// Reads chunk `number` whose first record begins at `position`.
    ///
    /// # Errors
    /// As [`Chunks::read`].
    pub fn reparse_from(&self, position: u64, number: u64, chunk: &mut Chunk) -> Result<()> {
        self.place(number, position, chunk)?;
        let mut scanner = Scanner::new(self.format.dialect(), self.format.delimiter);
        chunk.scan(&mut scanner, 0);
        chunk.begin = 0;
        self.finish(&mut scanner, chunk)
    }

    /// Whether `chunk` follows on records that ended at `ended_at`; 0 before the first chunk.
    pub fn follows(&self, chunk: &Chunk, ended_at: u64) -> Follows {
        if ended_at >= chunk.limit_pos && ended_at > 0 {
            Follows::Empty
        } else if chunk.begins_at() == ended_at {
            Follows::Yes
        } else {
            Follows::Reparse
        }
    }

    /// Empties a chunk and reads its nominal range with slack, from `from_pos` on.
    fn place(&self, number: u64, from_pos: u64, chunk: &mut Chunk) -> Result<()> {
        let len = self.source.len();
        chunk.limit_pos = (number + 1).saturating_mul(self.chunk_bytes).min(len);
        chunk.base_pos = from_pos;
        chunk.len = 0;
        chunk.positions.clear();
        chunk.defect = None;
        chunk.eol = self.eol;
        self.extend(chunk, (chunk.limit_pos + SLACK_BYTES).min(len))
    }

    /// Reads on to `until_pos`.
    fn extend(&self, chunk: &mut Chunk, until_pos: u64) -> Result<()> {
        let wanted = usize::try_from(until_pos.saturating_sub(chunk.base_pos))
            .expect("a chunk and its last record are under 4 GB");
        if wanted > chunk.len {
            chunk.buffer.reserve(wanted);
            let read_pos = chunk.base_pos + chunk.len as u64;
            self.source
                .read_at(read_pos, &mut chunk.buffer.bytes_mut()[chunk.len..wanted])?;
            chunk.len = wanted;
        }
        Ok(())
    }

    /// Finds the end of the last record, reading on for it, and checks the bytes.
    fn finish(&self, scanner: &mut Scanner, chunk: &mut Chunk) -> Result<()> {
        let len = self.source.len();
        let limit = usize::try_from(chunk.limit_pos.saturating_sub(chunk.base_pos))
            .expect("a chunk is under 4 GB");
        let mut from = limit.saturating_sub(1).max(chunk.begin);
        chunk.end = loop {
            if let Some(line_end) = chunk.line_end_from(from) {
                break line_end + 1;
            }
            from = from.max(chunk.len.saturating_sub(1));
            if chunk.base_pos + chunk.len as u64 >= len {
                break chunk.len;
            }
            let pending = chunk.len - limit.min(chunk.len);
            if pending > MAX_RECORD_BYTES {
                return Err(too_long(self.source.name()));
            }
            let scanned = chunk.len;
            let more = (pending as u64).max(4 * SLACK_BYTES);
            self.extend(chunk, (chunk.base_pos + scanned as u64 + more).min(len))?;
            chunk.scan(scanner, scanned);
        };
        chunk.has_quoted_line_ends = scanner.saw_quoted_line_end();
        let context_bytes = context_bytes(self.format, self.eol, chunk.starts_input());
        chunk.check_encoding(self.format.file_encoding, scanner, context_bytes);
        Ok(())
    }
}

/// Bytes of a character that the server looks at before it takes a line: after a CR, in CSV
/// always, in text in the input's first line.
pub(super) fn context_bytes(format: &Format, eol: Option<Eol>, starts_input: bool) -> usize {
    if eol == Some(Eol::Cr) && (format.kind == Kind::Csv || starts_input) {
        4
    } else {
        0
    }
}

/// A record does not fit the server's line buffer.
#[cold]
pub(super) fn too_long(file: &str) -> Error {
    Error::input(
        *ValueError::new("54000", "record is longer than 1 GB"),
        Place {
            file: file.to_owned(),
            ..Place::default()
        },
    )
}

/// Reads from the start of the file to the first line end.
fn learn_eol(source: &FileSource, format: &Format) -> Result<Option<Eol>> {
    let mut scanner = Scanner::new(format.dialect(), format.delimiter);
    let mut buffer = Buffer::default();
    let mut positions = Vec::new();
    let mut have = 0;
    while (have as u64) < source.len() {
        if have > MAX_RECORD_BYTES {
            return Err(too_long(source.name()));
        }
        let more = (have.max(64 << 10) as u64).min(source.len() - have as u64) as usize;
        buffer.reserve(have + more);
        source.read_at(have as u64, &mut buffer.bytes_mut()[have..have + more])?;
        let data = &buffer.bytes()[..have + more];
        scanner.scan(data, have, &mut positions);
        have += more;
        let is_all = have as u64 == source.len();
        if let Some(eol) = first_eol(data, &positions, format, is_all) {
            return Ok(Some(eol));
        }
    }
    Ok(None)
}

/// The kind of the first line end; `None` while it, or the byte behind a CR, is still to come.
///
/// In text a line end behind `\.` tells nothing: the server takes one byte for the marker's
/// end and looks no further.
pub(super) fn first_eol(
    data: &[u8],
    positions: &[u32],
    format: &Format,
    is_all: bool,
) -> Option<Eol> {
    let k = (0..positions.len()).find(|&k| {
        let c = data[positions[k] as usize];
        (c == b'\n' || c == b'\r')
            && !(format.kind == Kind::Text && ends_marker(data, positions, k))
    })?;
    let at = positions[k] as usize;
    match (data[at], data.get(at + 1)) {
        (b'\n', _) => Some(Eol::Lf),
        (_, Some(b'\n')) => Some(Eol::CrLf),
        (_, Some(_)) => Some(Eol::Cr),
        (_, None) => is_all.then_some(Eol::Cr),
    }
}

/// Guesses whether `data`, cut from the middle of a file, begins inside quotes.
///
/// Both ways of reading are scored over the first few lines: fields of the expected number,
/// opening quotes behind a delimiter, closing quotes before one. A wrong guess costs time only.
fn guess_in_quote(data: &[u8], format: &Format, eol: Option<Eol>) -> bool {
    if format.kind == Kind::Text || format.columns.is_empty() {
        return false;
    }
    let mut window_bytes = 4 << 10;
    loop {
        let window = &data[..data.len().min(window_bytes)];
        let inside = score(window, format, eol, true);
        let outside = score(window, format, eol, false);
        if inside.max(outside) > 0 || window.len() == data.len() {
            return inside > outside;
        }
        window_bytes *= 8;
    }
}

/// How well `data` reads as CSV when it begins inside quotes or outside. Only quotes, escapes,
/// delimiters and line ends are looked at.
fn score(data: &[u8], format: &Format, eol: Option<Eol>, inside: bool) -> i64 {
    const ENOUGH_RECORDS: u32 = 8;
    let eol_byte = if eol == Some(Eol::Lf) { b'\n' } else { b'\r' };
    let between = |c: u8| c == format.delimiter || c == b'\n' || c == b'\r';
    let expected = format.columns.len() + usize::from(format.trailing_delimiter);
    let mut in_quote = inside;
    let mut score = 0;
    let mut records = 0;
    let mut delimiters: Option<usize> = None;
    let mut rest_at = 0;
    loop {
        let rest = &data[rest_at..];
        let found = if in_quote {
            memchr2(format.quote, format.escape, rest)
        } else {
            memchr3(format.quote, format.delimiter, eol_byte, rest)
        };
        let Some(skipped) = found else {
            return score;
        };
        let i = rest_at + skipped;
        let c = data[i];
        let next = data.get(i + 1).copied();
        rest_at = i + 1;
        if in_quote {
            if c == format.escape && (next == Some(format.quote) || next == Some(format.escape)) {
                rest_at += 1;
            } else if c == format.quote {
                in_quote = false;
                if let Some(next) = next {
                    score += if between(next) { 1 } else { -1 };
                }
            }
        } else if c == format.quote {
            in_quote = true;
            if i > 0 {
                score += if between(data[i - 1]) { 1 } else { -1 };
            }
        } else if c == format.delimiter {
            delimiters = delimiters.map(|count| count + 1);
        } else {
            if let Some(count) = delimiters {
                score += if count + 1 == expected { 4 } else { -4 };
                records += 1;
            }
            if records == ENOUGH_RECORDS {
                return score;
            }
            delimiters = Some(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::InputColumn;
    use pgformat::version::MajorVersion;
    use proptest::prelude::*;

    /// The same byte by byte.
    fn plain_score(data: &[u8], format: &Format, eol: Option<Eol>, inside: bool) -> i64 {
        let eol_byte = if eol == Some(Eol::Lf) { b'\n' } else { b'\r' };
        let between = |c: u8| c == format.delimiter || c == b'\n' || c == b'\r';
        let expected = format.columns.len() + usize::from(format.trailing_delimiter);
        let (mut in_quote, mut score, mut records) = (inside, 0, 0);
        let mut delimiters: Option<usize> = None;
        let mut i = 0;
        while let Some(&c) = data.get(i) {
            let next = data.get(i + 1).copied();
            if in_quote {
                let escaped = next == Some(format.quote) || next == Some(format.escape);
                if c == format.escape && escaped {
                    i += 2;
                    continue;
                }
                if c == format.quote {
                    in_quote = false;
                    score += next.map_or(0, |next| if between(next) { 1 } else { -1 });
                }
            } else if c == format.quote {
                in_quote = true;
                if i > 0 {
                    score += if between(data[i - 1]) { 1 } else { -1 };
                }
            } else if c == format.delimiter {
                delimiters = delimiters.map(|count| count + 1);
            } else if c == eol_byte {
                if let Some(count) = delimiters {
                    score += if count + 1 == expected { 4 } else { -4 };
                    records += 1;
                }
                if records == 8 {
                    break;
                }
                delimiters = Some(0);
            }
            i += 1;
        }
        score
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn a_guess_takes_the_same_bytes_into_account_as_a_plain_loop(
            data in proptest::collection::vec(
                proptest::sample::select(&b"aaaa,,,\"\"\n\n\r\\"[..]), 0..200),
            escape in proptest::sample::select(&b"\"\\,"[..]),
            eol in proptest::sample::select(&[Eol::Lf, Eol::Cr, Eol::CrLf][..]),
            columns in 1usize..4,
            trailing_delimiter: bool,
            inside: bool,
        ) {
            let columns = (0..columns).map(|i| InputColumn::named(format!("c{i}"))).collect();
            let version = MajorVersion::from_version_num(150_000).expect("a version");
            let mut format = Format::csv(columns, version);
            format.escape = escape;
            format.trailing_delimiter = trailing_delimiter;
            prop_assert_eq!(
                score(&data, &format, Some(eol), inside),
                plain_score(&data, &format, Some(eol), inside)
            );
        }
    }
}
