//! Stage 2: walks the positions that the scan found and yields records without allocating.
//!
//! Ordinary records (the expected number of fields, the file's own line end) take
//! [`ChunkReader::fast_csv`] or [`ChunkReader::fast_text`], which touch only the bytes that
//! matter. The first surprise sends the record to [`ChunkReader::slow`], which reads it again
//! from its start by COPY's letter: the fast paths refuse nothing themselves.
//!
//! PostgreSQL: src/backend/commands/copyfromparse.c, CopyReadLineText.

mod binary;

use super::chunk::{Chunk, Eol};
use super::error::{RecordError, bad_format, limit_printout};
use super::format::{Format, Header, Kind};
use super::header;
use super::line::{self, FieldRef, Fields};
use crate::error::ValueError;
use std::ops::Range;

/// The records of a chunk, in order.
#[derive(Debug)]
pub struct ChunkReader<'a> {
    format: &'a Format,
    data: &'a [u8],
    /// Positions that the scan found, from the first record to the last.
    entries: &'a [u32],
    /// Data behind this is invalid, or belongs to later chunks.
    valid_to: usize,
    /// What stands at `valid_to`, if it is not the chunk's end.
    defect: Option<&'a ValueError>,
    /// The line end of all lines but the first; `None` in a file without one.
    eol: Option<Eol>,
    /// Lines within quotes may need counting.
    count_quoted_lines: bool,
    has_force: bool,
    /// The input's first line, whose end the server does not know beforehand.
    first_line: bool,
    header_pending: bool,
    /// The next entry.
    next_entry: usize,
    /// Where the next record begins.
    next_start: usize,
    /// The current record.
    start: usize,
    end: usize,
    fields: Fields,
    field_count: usize,
    line: u64,
    first_line_of_record: u64,
    records: u64,
    end_of_data: bool,
    done: bool,
}

/// One record: its fields, unescaped.
#[derive(Debug, Clone, Copy)]
pub struct Record<'r> {
    data: &'r [u8],
    scratch: &'r [u8],
    fields: &'r [FieldRef],
    start: usize,
    end: usize,
    line: u64,
    first_line: u64,
}

impl<'r> Record<'r> {
    /// How many fields it has: always as many as the format has columns.
    #[inline]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// It has no fields, as in a table without columns.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// A field's bytes; `None` is NULL, or the default marker, which [`Record::is_default`]
    /// tells.
    #[inline]
    pub fn field(&self, i: usize) -> Option<&'r [u8]> {
        let field = self.fields[i];
        if field.is_null() {
            return None;
        }
        Some(field.bytes(self.data, self.scratch))
    }

    /// Where a field's bytes lie, and the bytes among which they lie; `None` is NULL.
    #[inline]
    pub fn field_at(&self, i: usize) -> Option<(&'r [u8], Range<usize>)> {
        let field = self.fields[i];
        (!field.is_null()).then(|| field.place(self.data, self.scratch))
    }

    /// The field is the default marker.
    #[inline]
    pub fn is_default(&self, i: usize) -> bool {
        self.fields[i].is_default()
    }

    /// COPY's line number, from 1 at the chunk's first line: that of the record's last line,
    /// as the server counts it.
    #[inline]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The line that the record begins on, from 1 at the chunk's first line.
    #[inline]
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// The record as it stands in the input, without its line end; `None` of binary input,
    /// which is not shown.
    #[inline]
    pub fn raw(&self) -> Option<&'r [u8]> {
        self.data.get(self.start..self.end)
    }

    /// Where [`Record::raw`] begins in the chunk's data.
    pub fn start_in_chunk(&self) -> usize {
        self.start
    }
}

/// A line that was read.
struct Line {
    /// Where its text ends.
    end: usize,
    /// Where the next one begins.
    next: usize,
    next_entry: usize,
    /// What ended it.
    by: LineEnd,
}

/// What ends a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    /// A line end: from here on their kind is known.
    Eol,
    /// The end of the input.
    Input,
    /// `\.`
    Marker,
}

/// Reading a line failed at a position.
struct Fault {
    at: usize,
    error: Box<ValueError>,
}

/// What the fast paths need to know of line ends.
#[derive(Clone, Copy)]
struct LineEnds<'a> {
    eol: Option<Eol>,
    valid: &'a [u8],
    has_defect: bool,
}

impl LineEnds<'_> {
    /// Where the next line begins, when `c` at `at` ends this one as the file's lines end.
    /// `next_entry` is moved over the second byte of a pair.
    #[inline]
    fn fast(self, c: u8, at: usize, next_entry: &mut usize) -> Option<usize> {
        match self.eol {
            Some(Eol::Lf) => (c == b'\n').then_some(at + 1),
            Some(Eol::CrLf) => {
                let is_pair = c == b'\r' && self.valid.get(at + 1) == Some(&b'\n');
                *next_entry += usize::from(is_pair);
                is_pair.then_some(at + 2)
            }
            Some(Eol::Cr) => {
                let is_seen = at + 1 < self.valid.len() || !self.has_defect;
                (c == b'\r' && is_seen).then_some(at + 1)
            }
            None => None,
        }
    }
}

impl<'a> ChunkReader<'a> {
    /// The records of `chunk`, which was read with the same `format`.
    pub fn new(chunk: &'a Chunk, format: &'a Format) -> ChunkReader<'a> {
        let (entries, valid_to) = chunk.entries();
        ChunkReader {
            format,
            data: chunk.data(),
            entries,
            valid_to,
            defect: chunk.defect(),
            eol: chunk.eol(),
            count_quoted_lines: chunk.has_quoted_line_ends(),
            has_force: format.kind == Kind::Csv
                && format
                    .columns
                    .iter()
                    .any(|column| column.force_null || column.force_not_null),
            first_line: chunk.starts_input(),
            header_pending: chunk.starts_input() && format.header != Header::None,
            next_entry: 0,
            next_start: chunk.begin(),
            start: 0,
            end: 0,
            fields: Fields {
                refs: vec![FieldRef::default(); format.columns.len()],
                scratch: Vec::new(),
            },
            field_count: 0,
            line: 0,
            first_line_of_record: 0,
            records: 0,
            end_of_data: false,
            done: false,
        }
    }

    /// The next record; `None` behind the last one and behind an error that ends the input.
    ///
    /// # Errors
    /// What COPY refuses. After a wrong number of fields or a bad field the next call goes on
    /// with the next record.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "a record borrows from the reader, which Iterator cannot say"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Box<RecordError>> {
        let is_fast = match self.format.kind {
            Kind::Csv => !self.first_line && self.fast_csv(),
            Kind::Text => !self.first_line && self.fast_text(),
            Kind::Binary => return self.next_binary(),
        };
        if is_fast {
            self.line += 1;
            self.first_line_of_record = self.line;
            self.field_count = self.format.columns.len();
            if self.count_quoted_lines {
                self.line += self.quoted_lines(self.start, self.end, self.eol);
            }
        } else if !self.slow()? {
            return Ok(None);
        }
        self.records += 1;
        if self.has_force {
            line::force(self.data, self.format, &mut self.fields);
        }
        Ok(Some(self.record()))
    }

    /// The record just read.
    #[inline]
    fn record(&self) -> Record<'_> {
        Record {
            data: self.data,
            scratch: &self.fields.scratch,
            fields: &self.fields.refs[..self.field_count],
            start: self.start,
            end: self.end,
            line: self.line,
            first_line: self.first_line_of_record,
        }
    }

    /// Lines read so far, as COPY counts them: behind the last record, those of the chunk.
    pub fn lines(&self) -> u64 {
        self.line
    }

    /// Records yielded so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// An end marker `\.` was read: nothing behind it is data.
    pub fn end_of_data(&self) -> bool {
        self.end_of_data
    }

    /// Reads an ordinary CSV record. When it is not one, returns false and leaves the position
    /// where it was.
    #[inline(always)]
    fn fast_csv(&mut self) -> bool {
        let format = self.format;
        let data = self.data;
        let entries = self.entries;
        let columns = format.columns.len();
        let (quote, escape, delimiter) = (format.quote, format.escape, format.delimiter);
        let (null, default) = (&format.null[..], format.default.as_deref());
        let max_delimiters = columns.wrapping_sub(usize::from(!format.trailing_delimiter));
        let begin = self.next_start;
        let mut k = self.next_entry;
        let mut start = begin;
        let mut count = 0;
        if columns == 0 || (data.get(begin) == Some(&b'\\') && format.has_end_marker()) {
            return false;
        }
        self.fields.scratch.clear();
        if self.fields.refs.len() < columns {
            self.fields.refs.resize(columns, FieldRef::NULL);
        }
        let ends = self.line_ends();
        let refs = &mut self.fields.refs[..columns];
        loop {
            let Some(&at) = entries.get(k) else {
                return false;
            };
            let mut end = at as usize;
            k += 1;
            let mut c = data[end];
            let field;
            if c == quote {
                // The field's quotes come before its end, one entry each.
                let open = end;
                let Some(&close) = entries.get(k) else {
                    return false;
                };
                let Some(&after) = entries.get(k + 1) else {
                    return false;
                };
                let close = close as usize;
                end = after as usize;
                c = data[end];
                if open == start && end == close + 1 && data[close] == quote && c != quote {
                    k += 2;
                    field = FieldRef::in_data(open + 1, close);
                } else {
                    loop {
                        let Some(&at) = entries.get(k) else {
                            return false;
                        };
                        k += 1;
                        end = at as usize;
                        c = data[end];
                        if c != quote && c != escape {
                            break;
                        }
                    }
                    field = unquote(&data[start..end], format, &mut self.fields.scratch);
                }
            } else {
                let raw = &data[start..end];
                if raw.len() == null.len() && (raw.is_empty() || raw == null) {
                    field = FieldRef::NULL;
                } else if default.is_some_and(|default| default == raw) {
                    return false;
                } else {
                    field = FieldRef::in_data(start, end);
                }
            }
            if c == delimiter {
                if count >= max_delimiters {
                    return false;
                }
                refs[count] = field;
                count += 1;
                start = end + 1;
                continue;
            }
            let Some(next) = ends.fast(c, end, &mut k) else {
                return false;
            };
            if format.trailing_delimiter {
                if start != end {
                    return false;
                }
            } else {
                refs[count] = field;
                count += 1;
            }
            if count != columns {
                return false;
            }
            self.start = begin;
            self.end = end;
            self.next_start = next;
            self.next_entry = k;
            return true;
        }
    }

    /// The same for text.
    #[inline(always)]
    fn fast_text(&mut self) -> bool {
        let format = self.format;
        let data = self.data;
        let entries = self.entries;
        let columns = format.columns.len();
        let delimiter = format.delimiter;
        let (null, default) = (&format.null[..], format.default.as_deref());
        // Such a field was escaped, then; its length alone is no hint to guess by.
        let null_has_escape = null.contains(&b'\\');
        let max_delimiters = columns.wrapping_sub(usize::from(!format.trailing_delimiter));
        let begin = self.next_start;
        let mut k = self.next_entry;
        let mut start = begin;
        let mut count = 0;
        if columns == 0 {
            return false;
        }
        self.fields.scratch.clear();
        if self.fields.refs.len() < columns {
            self.fields.refs.resize(columns, FieldRef::NULL);
        }
        let ends = self.line_ends();
        let refs = &mut self.fields.refs[..columns];
        loop {
            let Some(&at) = entries.get(k) else {
                return false;
            };
            let mut end = at as usize;
            k += 1;
            let mut c = data[end];
            let mut escaped = false;
            while c == b'\\' {
                if data.get(end + 1) == Some(&b'.') {
                    return false;
                }
                escaped = true;
                let Some(&at) = entries.get(k) else {
                    return false;
                };
                k += 1;
                end = at as usize;
                c = data[end];
            }
            let raw = &data[start..end];
            let may_be_null = escaped || !null_has_escape;
            let field = if may_be_null && raw.len() == null.len() && (raw.is_empty() || raw == null)
            {
                FieldRef::NULL
            } else if default.is_some_and(|default| default == raw) {
                return false;
            } else if escaped {
                // A hexadecimal escape may swallow a delimiter that is a digit itself.
                if delimiter.is_ascii_hexdigit() {
                    return false;
                }
                match unescape(raw, &mut self.fields.scratch) {
                    Some(field) => field,
                    None => return false,
                }
            } else {
                FieldRef::in_data(start, end)
            };
            if c == delimiter {
                if count >= max_delimiters {
                    return false;
                }
                refs[count] = field;
                count += 1;
                start = end + 1;
                continue;
            }
            let Some(next) = ends.fast(c, end, &mut k) else {
                return false;
            };
            if format.trailing_delimiter {
                if start != end {
                    return false;
                }
            } else {
                refs[count] = field;
                count += 1;
            }
            if count != columns {
                return false;
            }
            self.start = begin;
            self.end = end;
            self.next_start = next;
            self.next_entry = k;
            return true;
        }
    }

    #[inline]
    fn line_ends(&self) -> LineEnds<'a> {
        LineEnds {
            eol: self.eol,
            valid: &self.data[..self.valid_to],
            has_defect: self.defect.is_some(),
        }
    }

    /// Reads the next record by COPY's letter. False at the end.
    #[cold]
    fn slow(&mut self) -> Result<bool, Box<RecordError>> {
        if self.header_pending {
            self.header_pending = false;
            if self.slow_header()? {
                self.done = true;
            }
        }
        if self.done || self.next_start >= self.data_end() {
            self.done = true;
            return Ok(false);
        }
        let by = self.take_line()?;
        if by != LineEnd::Eol && self.start == self.end {
            // No line was read after all.
            self.line = self.first_line_of_record - 1;
            self.end_of_data = by == LineEnd::Marker;
            self.done = true;
            return Ok(false);
        }
        // Before 18 a marker behind data ends the line, and no more: the server goes on.
        let text = &self.data[self.start..self.end];
        let split = line::split(text, self.format, &mut self.fields);
        self.field_count = 0;
        if let Err(error) = split {
            return Err(self.refuse(*error));
        }
        if let Err(error) = self.check_count() {
            return Err(self.refuse(*error));
        }
        Ok(true)
    }

    /// Reads the header line. True when the input ended with it.
    fn slow_header(&mut self) -> Result<bool, Box<RecordError>> {
        let by = self.take_line()?;
        if self.format.header == Header::Match {
            let text = &self.data[self.start..self.end];
            let checked = line::split(text, self.format, &mut self.fields)
                .and_then(|()| line::drop_trailing(text, self.format, &mut self.fields))
                .and_then(|()| header::check(&self.fields, self.format));
            self.field_count = 0;
            if let Err(error) = checked {
                self.done = true;
                return Err(self.refuse(*error));
            }
        }
        self.end_of_data = by == LineEnd::Marker;
        Ok(by != LineEnd::Eol)
    }

    /// Reads a line and makes it the current one.
    fn take_line(&mut self) -> Result<LineEnd, Box<RecordError>> {
        let eol = if self.first_line { None } else { self.eol };
        self.start = self.next_start;
        self.line += 1;
        self.first_line_of_record = self.line;
        match self.read_line(eol) {
            Ok(line) => {
                self.first_line &= line.by != LineEnd::Eol;
                self.end = line.end;
                self.next_start = line.next;
                self.next_entry = line.next_entry;
                self.line += self.quoted_lines(self.start, line.end, eol);
                Ok(line.by)
            }
            Err(Fault { at, error }) => {
                self.done = true;
                // A CR is looked behind before it is counted.
                let is_defect = at == self.valid_to && self.defect.is_some();
                let looked_behind = is_defect && at > self.start && self.data[at - 1] == b'\r';
                let until = at - usize::from(looked_behind);
                self.line += self.quoted_lines(self.start, until, eol);
                Err(Box::new(RecordError {
                    line_in_chunk: self.line,
                    error: *error,
                    column: None,
                    line_text: None,
                    present: Vec::new(),
                }))
            }
        }
    }

    /// Finds the end of the line at `self.start`. The line end of the first line is not known:
    /// `eol` is `None`.
    fn read_line(&self, eol: Option<Eol>) -> Result<Line, Fault> {
        let csv = self.format.kind == Kind::Csv;
        let mut k = self.next_entry;
        if csv
            && self.format.has_end_marker()
            && self.start < self.valid_to
            && self.data[self.start] == b'\\'
            && let Some(line) = self.csv_marker(eol)?
        {
            return Ok(line);
        }
        while let Some(&at) = self.entries.get(k) {
            let at = at as usize;
            k += 1;
            let line = |next, next_entry| {
                Ok(Line {
                    end: at,
                    next,
                    next_entry,
                    by: LineEnd::Eol,
                })
            };
            match self.data[at] {
                b'\r' => {
                    if csv || matches!(eol, None | Some(Eol::CrLf)) {
                        let is_pair = self.peek(at + 1)? == Some(b'\n');
                        match eol {
                            None | Some(Eol::CrLf) if is_pair => return line(at + 2, k + 1),
                            Some(Eol::CrLf) => return Err(self.stray_return(at)),
                            _ => {}
                        }
                    }
                    if eol == Some(Eol::Lf) {
                        return Err(self.stray_return(at));
                    }
                    return line(at + 1, k);
                }
                b'\n' => {
                    if matches!(eol, Some(Eol::Cr | Eol::CrLf)) {
                        return Err(self.stray_newline(at));
                    }
                    return line(at + 1, k);
                }
                b'\\' if !csv && self.peek(at + 1)? == Some(b'.') => {
                    return self.text_marker(at, eol);
                }
                _ => {}
            }
        }
        self.peek(self.valid_to)?;
        Ok(Line {
            end: self.valid_to,
            next: self.valid_to,
            next_entry: k,
            by: LineEnd::Input,
        })
    }

    /// The byte at `at`; `None` behind the end.
    fn peek(&self, at: usize) -> Result<Option<u8>, Fault> {
        if at < self.valid_to {
            return Ok(Some(self.data[at]));
        }
        match self.defect {
            Some(defect) => Err(Fault {
                at: self.valid_to,
                error: Box::new(defect.clone()),
            }),
            None => Ok(None),
        }
    }

    /// `\.` was read at `at` in text.
    fn text_marker(&self, at: usize, eol: Option<Eol>) -> Result<Line, Fault> {
        let fault = |message: &str| Fault {
            at,
            error: bad_format(message),
        };
        let style = "end-of-copy marker does not match previous newline style";
        let is_strict = self.format.version.at_least(18);
        let corrupt = if is_strict {
            "end-of-copy marker is not alone on its line"
        } else {
            "end-of-copy marker corrupt"
        };
        let mut i = at + 2;
        if eol == Some(Eol::CrLf) {
            match self.peek(i)? {
                Some(b'\n') => return Err(fault(style)),
                Some(b'\r') => i += 1,
                _ => return Err(fault(corrupt)),
            }
        }
        let Some(end @ (b'\r' | b'\n')) = self.peek(i)? else {
            return Err(fault(corrupt));
        };
        if !ends_line(end, eol) {
            return Err(fault(style));
        }
        if is_strict && at > self.start {
            return Err(fault(corrupt));
        }
        Ok(self.marker_line(at, i + 1))
    }

    /// A backslash begins a CSV line: `Some` when the line is an end marker.
    fn csv_marker(&self, eol: Option<Eol>) -> Result<Option<Line>, Fault> {
        let mut i = self.start + 1;
        if self.peek(i)? != Some(b'.') {
            return Ok(None);
        }
        i += 1;
        if eol == Some(Eol::CrLf) {
            if self.peek(i)? != Some(b'\r') {
                return Ok(None);
            }
            i += 1;
        }
        let Some(end @ (b'\r' | b'\n')) = self.peek(i)? else {
            return Ok(None);
        };
        if !ends_line(end, eol) {
            return Err(Fault {
                at: self.start,
                error: bad_format("end-of-copy marker does not match previous newline style"),
            });
        }
        Ok(Some(self.marker_line(self.start, i + 1)))
    }

    fn marker_line(&self, end: usize, next: usize) -> Line {
        Line {
            end,
            next,
            next_entry: self.entries.partition_point(|&at| (at as usize) < next),
            by: LineEnd::Marker,
        }
    }

    fn stray_return(&self, at: usize) -> Fault {
        let error = match self.format.kind {
            Kind::Csv => bad_format("unquoted carriage return found in data")
                .with_hint("Use quoted CSV field to represent carriage return."),
            Kind::Text | Kind::Binary => bad_format("literal carriage return found in data")
                .with_hint("Use \"\\r\" to represent carriage return."),
        };
        Fault { at, error }
    }

    fn stray_newline(&self, at: usize) -> Fault {
        let error = match self.format.kind {
            Kind::Csv => bad_format("unquoted newline found in data")
                .with_hint("Use quoted CSV field to represent newline."),
            Kind::Text | Kind::Binary => bad_format("literal newline found in data")
                .with_hint("Use \"\\n\" to represent newline."),
        };
        Fault { at, error }
    }

    /// The line ends in `start..end`, all of which stand in quotes, that COPY counts: LF in a
    /// file of LF lines, else CR, and CR too in the first line.
    fn quoted_lines(&self, start: usize, end: usize, eol: Option<Eol>) -> u64 {
        if self.format.kind != Kind::Csv || end <= start {
            return 0;
        }
        let counted = if eol == Some(Eol::Lf) { b'\n' } else { b'\r' };
        memchr::memchr_iter(counted, &self.data[start..end]).count() as u64
    }

    /// The number of fields must be that of the columns.
    fn check_count(&mut self) -> Result<(), Box<ValueError>> {
        let columns = &self.format.columns;
        let text = &self.data[self.start..self.end];
        let allowed = columns.len() + usize::from(self.format.trailing_delimiter);
        if self.fields.refs.len() > allowed && !columns.is_empty() {
            return Err(bad_format("extra data after last expected column"));
        }
        line::drop_trailing(text, self.format, &mut self.fields)?;
        let got = self.fields.refs.len();
        self.field_count = got;
        if got > columns.len() && !columns.is_empty() {
            return Err(bad_format("extra data after last expected column"));
        }
        if got < columns.len() {
            return Err(bad_format(format!(
                "missing data for column \"{}\"",
                columns[got].name
            )));
        }
        Ok(())
    }

    fn refuse(&self, error: ValueError) -> Box<RecordError> {
        let Fields { refs, scratch } = &self.fields;
        let is_short = self.field_count > 0 && self.field_count < self.format.columns.len();
        let present = if is_short { &refs[..] } else { &[] };
        Box::new(RecordError {
            line_in_chunk: self.line,
            error,
            column: None,
            line_text: Some(limit_printout(&self.data[self.start..self.end])),
            present: present
                .iter()
                .map(|field| (!field.is_null()).then(|| field.bytes(self.data, scratch).to_vec()))
                .collect(),
        })
    }

    fn data_end(&self) -> usize {
        self.valid_to + usize::from(self.defect.is_some())
    }
}

/// The byte behind `\.` ends a line as this file's lines end.
fn ends_line(end: u8, eol: Option<Eol>) -> bool {
    match eol {
        Some(Eol::Lf | Eol::CrLf) => end == b'\n',
        Some(Eol::Cr) => end == b'\r',
        None => true,
    }
}

/// Copies a CSV field with quotes, which are balanced, without them.
fn unquote(raw: &[u8], format: &Format, scratch: &mut Vec<u8>) -> FieldRef {
    let at = scratch.len();
    let (quote, escape) = (format.quote, format.escape);
    let mut in_quote = false;
    let mut rest = raw;
    while let Some(special) = memchr::memchr2(quote, escape, rest) {
        scratch.extend_from_slice(&rest[..special]);
        let c = rest[special];
        let next = rest.get(special + 1).copied();
        rest = &rest[special + 1..];
        match next {
            Some(next) if in_quote && c == escape && (next == escape || next == quote) => {
                scratch.push(next);
                rest = &rest[1..];
            }
            _ if c == quote => in_quote = !in_quote,
            _ => scratch.push(c),
        }
    }
    scratch.extend_from_slice(rest);
    FieldRef::in_scratch(at, scratch.len())
}

/// Copies a text field with its escapes resolved; `None` when one may break the encoding.
fn unescape(raw: &[u8], scratch: &mut Vec<u8>) -> Option<FieldRef> {
    let at = scratch.len();
    let mut rest = raw;
    while let Some(backslash) = memchr::memchr(b'\\', rest) {
        scratch.extend_from_slice(&rest[..backslash]);
        let after = &rest[backslash + 1..];
        if after.is_empty() {
            return None;
        }
        let (byte, length, high) = line::text_escape(after);
        if high {
            return None;
        }
        scratch.push(byte);
        rest = &after[length..];
    }
    scratch.extend_from_slice(rest);
    Some(FieldRef::in_scratch(at, scratch.len()))
}
