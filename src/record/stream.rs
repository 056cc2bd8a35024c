//! Chunks from a source that can only be read forwards: standard input, a pipe, a compressed
//! file.
//!
//! A chunk holds the records that end in the next block of the stream; what is left of the
//! block is carried over to the next chunk. So every chunk begins where the one before it
//! ended, and nothing is guessed. Chunks are taken in order, by one worker at a time; their
//! records can then be read in parallel.

use super::chunk::{Chunk, Eol, MAX_RECORD_BYTES, context_bytes, first_eol, too_long};
use super::format::Format;
use crate::error::Result;
use crate::source::Stream;
use crate::sys::delimiters::Scanner;

/// The chunks of a stream.
#[derive(Debug)]
pub struct StreamChunks<'a> {
    stream: Stream,
    format: &'a Format,
    eol: Option<Eol>,
    /// The beginning of a record whose end is still to come.
    carried: Vec<u8>,
    /// The stream's position of `carried`.
    pos: u64,
    /// The stream has no more blocks.
    at_end: bool,
    /// The last chunk was given out.
    done: bool,
}

impl<'a> StreamChunks<'a> {
    /// The chunks of `stream`, one of its blocks each.
    pub fn new(stream: Stream, format: &'a Format) -> StreamChunks<'a> {
        StreamChunks {
            stream,
            format,
            eol: None,
            carried: Vec::new(),
            pos: 0,
            at_end: false,
            done: false,
        }
    }

    /// Reads the next chunk; false when there is none. An empty stream has one.
    ///
    /// # Errors
    /// Those of [`Stream::next_block`]; a record is too long for the server.
    pub fn next(&mut self, chunk: &mut Chunk, wanted: &dyn Fn() -> bool) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let mut scanner = Scanner::new(self.format.dialect(), self.format.delimiter);
        chunk.clear_at(self.pos);
        chunk.append(&self.carried);
        chunk.scan(&mut scanner, 0);
        chunk.end = loop {
            self.at_end |= !self.append_block(&mut scanner, chunk, wanted)?;
            if self.eol.is_none() {
                self.eol = first_eol(chunk.data(), &chunk.positions, self.format, self.at_end);
            }
            chunk.eol = self.eol;
            if self.at_end {
                self.done = true;
                break chunk.len;
            }
            if let Some(line_end) = chunk.last_line_end() {
                // Behind a CR the next character is to be seen as well.
                let seen = chunk.len - (line_end + 1);
                if seen >= context_bytes(self.format, self.eol, chunk.starts_input()) {
                    break line_end + 1;
                }
            }
            if chunk.len > MAX_RECORD_BYTES {
                return Err(too_long(self.stream.name()));
            }
        };
        self.pos = chunk.ends_at();
        chunk.limit_pos = self.pos;
        self.carried.clear();
        self.carried.extend_from_slice(&chunk.data()[chunk.end..]);
        chunk.has_quoted_line_ends = scanner.saw_quoted_line_end();
        let context_bytes = context_bytes(self.format, self.eol, chunk.starts_input());
        chunk.check_encoding(self.format.file_encoding, &scanner, context_bytes);
        if self.done && chunk.defect.is_none() {
            chunk.defect = self.stream.take_defect();
        }
        Ok(true)
    }

    /// Appends the stream's next block and scans it; false at the end of the stream.
    fn append_block(
        &mut self,
        scanner: &mut Scanner,
        chunk: &mut Chunk,
        wanted: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let scanned = chunk.len;
        let Some(block) = self.stream.next_block(wanted)? else {
            return Ok(false);
        };
        chunk.append(&block);
        self.stream.recycle(block);
        chunk.scan(scanner, scanned);
        Ok(true)
    }
}
