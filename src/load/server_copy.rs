//! Tables that the server's own COPY loads, inside the registering transaction.

use super::plan::{InputPlan, TablePlan};
use crate::cluster::register::{Registration, copy_in};
use crate::error::{Error, Place, Result};
use crate::source::{Input, Origin};
use postgres::Client;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are enough for the marker at the end of rows and the empty lines behind it.
const TAIL_BYTES: usize = 16;

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// Feeds all inputs of a table to the server; rows and bytes.
pub(super) fn copy(
    registration: &mut Registration<'_>,
    table: &TablePlan,
    interrupted: &AtomicBool,
) -> Result<(u64, u64)> {
    let (mut rows, mut bytes) = (0, 0);
    for input in &table.inputs {
        let client = registration.client();
        let (more_rows, more_bytes) =
            copy_input(client, &input.copy_statement, &Feed::of(input), interrupted)?;
        rows += more_rows;
        bytes += more_bytes;
    }
    Ok((rows, bytes))
}

/// An input that is fed to COPY.
pub(super) struct Feed<'a> {
    /// Its name in messages.
    pub label: &'a str,
    /// Where its bytes lie.
    pub origin: &'a Origin,
    /// Lines of the same name before it.
    pub lines_before: u64,
    /// Without the marker `\.` at its end rows are missing.
    pub ends_with_marker: bool,
    /// A delimiter that ends each line and is no field's.
    pub strip: Option<u8>,
}

/// The refusal of rows whose end marker is missing.
#[cold]
pub(super) fn without_end(label: &str) -> Error {
    Error::refused("22P04", "unexpected end of data: the marker \\. is missing")
        .at(Place {
            file: label.to_owned(),
            ..Place::default()
        })
        .with_hint("The dump is damaged or incomplete.")
}

impl<'a> Feed<'a> {
    /// A planned input.
    pub fn of(input: &'a InputPlan) -> Feed<'a> {
        let format = &input.format;
        Feed {
            label: &input.label,
            origin: &input.origin,
            lines_before: input.lines_before,
            ends_with_marker: input.ends_with_marker,
            strip: format.trailing_delimiter.then_some(format.delimiter),
        }
    }
}

/// Feeds one input to a `COPY ... FROM STDIN`; rows and bytes.
pub(super) fn copy_input(
    client: &mut Client,
    statement: &str,
    feed: &Feed<'_>,
    interrupted: &AtomicBool,
) -> Result<(u64, u64)> {
    let mut reader = FeedReader {
        input: feed.origin.open(feed.label, None)?,
        pos: 0,
        ready: VecDeque::new(),
        strip: feed.strip.map(Strip::new),
        interrupted,
        tail: feed.ends_with_marker.then(Vec::new),
        failure: None,
    };
    let copied = copy_in(client, statement, &mut reader);
    match (copied, reader.failure.take()) {
        (Ok(_), None) if reader.lacks_end() => Err(without_end(feed.label)),
        (Ok(rows), None) => Ok((rows, reader.pos)),
        (_, Some(failure)) => Err(failure),
        (Err(error), None) => Err(of_feed(error, feed)),
    }
}

/// The server's error, which knows a line but no file.
fn of_feed(mut error: Error, feed: &Feed<'_>) -> Error {
    match error.places.as_mut_slice() {
        [] => error.places.push(Place {
            file: feed.label.to_owned(),
            ..Place::default()
        }),
        places => {
            for place in places {
                feed.label.clone_into(&mut place.file);
                if place.line > 0 {
                    place.line += feed.lines_before;
                }
            }
        }
    }
    error
}

/// An input as one reader.
struct FeedReader<'a> {
    input: Input,
    pos: u64,
    ready: VecDeque<u8>,
    strip: Option<Strip>,
    interrupted: &'a AtomicBool,
    /// The last bytes, where there must be a marker.
    tail: Option<Vec<u8>>,
    /// What went wrong, better said than an [`io::Error`] can.
    failure: Option<Error>,
}

impl FeedReader<'_> {
    /// The next bytes; empty at the end.
    fn next(&mut self) -> Result<Vec<u8>> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(super::interrupt::interrupted());
        }
        let block = match &mut self.input {
            Input::File(file) => {
                let rest = file.len() - self.pos;
                let mut block = vec![0; rest.min(READ_BYTES as u64) as usize];
                file.read_at(self.pos, &mut block)?;
                if rest == 0 {
                    file.check_unchanged()?;
                }
                block
            }
            Input::Stream(stream) => {
                let wanted = || !self.interrupted.load(Ordering::Relaxed);
                stream.next_block(&wanted)?.unwrap_or_default()
            }
        };
        self.pos += block.len() as u64;
        if let Some(tail) = &mut self.tail {
            tail.extend_from_slice(&block[block.len().saturating_sub(TAIL_BYTES)..]);
            tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        }
        Ok(block)
    }

    /// There must be a marker and is none.
    fn lacks_end(&self) -> bool {
        let Some(tail) = &self.tail else { return false };
        let end = tail.trim_ascii_end();
        end != b"\\." && !end.ends_with(b"\n\\.")
    }
}

impl Read for FeedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() {
            let block = match self.next() {
                Ok(block) => block,
                Err(error) => {
                    self.failure = Some(error);
                    return Err(io::Error::other("the input cannot be read"));
                }
            };
            let at_end = block.is_empty();
            match &mut self.strip {
                Some(strip) => strip.push(&block, at_end, &mut self.ready),
                None => self.ready.extend(block),
            }
            if at_end {
                break;
            }
        }
        self.ready.read(into)
    }
}

/// Takes the delimiter off each line's end.
struct Strip {
    delimiter: u8,
    /// A delimiter was read and may be its line's last.
    held: bool,
}

impl Strip {
    fn new(delimiter: u8) -> Strip {
        Strip {
            delimiter,
            held: false,
        }
    }

    fn push(&mut self, block: &[u8], at_end: bool, out: &mut VecDeque<u8>) {
        for &byte in block {
            if std::mem::take(&mut self.held) && byte != b'\n' && byte != b'\r' {
                out.push_back(self.delimiter);
            }
            if byte == self.delimiter {
                self.held = true;
            } else {
                out.push_back(byte);
            }
        }
        if at_end {
            self.held = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_delimiter_of_each_line_goes_wherever_blocks_end() {
        let mut strip = Strip::new(b'|');
        let mut out = VecDeque::new();
        for block in ["1|a|", "\n2||", "|\n3|", ""] {
            strip.push(block.as_bytes(), block.is_empty(), &mut out);
        }
        assert_eq!(Vec::from(out), b"1|a\n2||\n3");
    }
}
