//! One record by COPY's letter: the fields of a line, byte by byte.
//!
//! The fast paths of `reader` leave to this file whatever is not ordinary; every refusal of a
//! record comes from here. PostgreSQL: src/backend/commands/copyfromparse.c,
//! CopyReadAttributesText, CopyReadAttributesCSV, CopyFromTextLikeOneRow.

use super::error::bad_format;
use super::format::{Format, Kind};
use crate::error::ValueError;
use std::ops::Range;

/// Where a field's bytes lie. `start` counts from the chunk's data, or from the scratch buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FieldRef {
    start: u32,
    /// Length, and two flags above it.
    tagged: u32,
}

/// The bytes lie in the scratch buffer.
const IN_SCRATCH: u32 = 1 << 31;
/// The field is the default marker.
const IS_DEFAULT: u32 = 1 << 30;
/// `start` of a null field.
const NULL_START: u32 = u32::MAX;

impl FieldRef {
    pub(super) const NULL: FieldRef = FieldRef {
        start: NULL_START,
        tagged: 0,
    };

    /// The default marker: no value either.
    const DEFAULT: FieldRef = FieldRef {
        start: NULL_START,
        tagged: IS_DEFAULT,
    };

    /// Bytes `start..end` of the chunk's data.
    #[inline]
    pub(super) fn in_data(start: usize, end: usize) -> FieldRef {
        debug_assert!(end - start < IS_DEFAULT as usize);
        FieldRef {
            start: start as u32,
            tagged: (end - start) as u32,
        }
    }

    /// Bytes `start..end` of the scratch buffer.
    #[inline]
    pub(super) fn in_scratch(start: usize, end: usize) -> FieldRef {
        let field = FieldRef::in_data(start, end);
        FieldRef {
            start: field.start,
            tagged: field.tagged | IN_SCRATCH,
        }
    }

    #[inline]
    pub(super) fn is_null(self) -> bool {
        self.start == NULL_START
    }

    #[inline]
    pub(super) fn is_default(self) -> bool {
        self.tagged & IS_DEFAULT != 0
    }

    /// The bytes, whatever the field means.
    #[inline]
    pub(super) fn bytes<'a>(self, data: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        let (bytes, range) = self.place(data, scratch);
        &bytes[range]
    }

    /// Where the bytes lie, and in which of the two.
    #[inline]
    pub(super) fn place<'a>(self, data: &'a [u8], scratch: &'a [u8]) -> (&'a [u8], Range<usize>) {
        let start = self.start as usize;
        let end = start + (self.tagged & !(IN_SCRATCH | IS_DEFAULT)) as usize;
        let bytes = if self.tagged & IN_SCRATCH == 0 {
            data
        } else {
            scratch
        };
        (bytes, start..end)
    }
}

/// The fields of a record, and the bytes of those that do not stand in the input as they are.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) refs: Vec<FieldRef>,
    pub(super) scratch: Vec<u8>,
}

/// Splits a line; afterwards all fields lie in the scratch buffer.
///
/// # Errors
/// What CopyReadAttributes refuses.
pub(super) fn split(
    line: &[u8],
    format: &Format,
    fields: &mut Fields,
) -> Result<(), Box<ValueError>> {
    fields.refs.clear();
    fields.scratch.clear();
    if format.columns.is_empty() {
        return if line.is_empty() {
            Ok(())
        } else {
            Err(bad_format("extra data after last expected column"))
        };
    }
    let mut from = 0;
    loop {
        let at = fields.scratch.len();
        let field = match format.kind {
            Kind::Csv => csv_field(line, from, format, &mut fields.scratch)?,
            Kind::Text | Kind::Binary => text_field(line, from, format, &mut fields.scratch),
        };
        let raw = &line[from..field.end];
        let number = fields.refs.len();
        let stored = FieldRef::in_scratch(at, fields.scratch.len());
        let stored = if !field.saw_quote && raw == format.null {
            FieldRef::NULL
        } else if number < format.columns.len() && format.default.as_deref() == Some(raw) {
            let column = &format.columns[number];
            if !column.has_default {
                return Err(bad_format("unexpected default marker in COPY data")
                    .with_detail(format!("Column \"{}\" has no default value.", column.name)));
            }
            FieldRef::DEFAULT
        } else {
            if field.saw_high_escape {
                let bytes = &fields.scratch[at..];
                if let Some(invalid) = format.encoding.first_invalid(bytes) {
                    return Err(format.encoding.refusal(&bytes[invalid..]));
                }
            }
            stored
        };
        fields.refs.push(stored);
        if !field.found_delimiter {
            return Ok(());
        }
        from = field.next;
    }
}

/// Takes the empty field behind a trailing delimiter away, where the format has one.
///
/// # Errors
/// 22P04 when the line does not end with a delimiter.
pub(super) fn drop_trailing(
    line: &[u8],
    format: &Format,
    fields: &mut Fields,
) -> Result<(), Box<ValueError>> {
    if !format.trailing_delimiter || format.columns.is_empty() {
        return Ok(());
    }
    let ends_empty = fields
        .refs
        .last()
        .is_some_and(|last| last.is_null() || last.bytes(line, &fields.scratch).is_empty());
    if fields.refs.len() > 1 && ends_empty && line.last() == Some(&format.delimiter) {
        fields.refs.pop();
        return Ok(());
    }
    Err(bad_format("missing delimiter at end of line"))
}

/// FORCE_NULL and FORCE_NOT_NULL. `data` is what fields outside the scratch buffer point into.
pub(super) fn force(data: &[u8], format: &Format, fields: &mut Fields) {
    let Fields { refs, scratch } = fields;
    for (field, column) in refs.iter_mut().zip(&format.columns) {
        if field.is_null() {
            if column.force_not_null && !field.is_default() {
                let at = scratch.len();
                scratch.extend_from_slice(&format.null);
                *field = FieldRef::in_scratch(at, scratch.len());
            }
        } else if column.force_null && field.bytes(data, scratch) == format.null {
            *field = FieldRef::NULL;
        }
    }
}

/// A field that was read.
struct Split {
    /// Where its raw bytes end.
    end: usize,
    /// Where the next field begins.
    next: usize,
    found_delimiter: bool,
    saw_quote: bool,
    /// An escape gave a zero byte or one above 0x7f.
    saw_high_escape: bool,
}

/// Reads the CSV field that begins at `from`, and appends its bytes to `out`.
fn csv_field(
    line: &[u8],
    from: usize,
    format: &Format,
    out: &mut Vec<u8>,
) -> Result<Split, Box<ValueError>> {
    let mut saw_quote = false;
    let mut in_quote = false;
    let mut i = from;
    while let Some(&c) = line.get(i) {
        if !in_quote {
            if c == format.delimiter {
                break;
            }
            i += 1;
            if c == format.quote {
                saw_quote = true;
                in_quote = true;
            } else {
                out.push(c);
            }
            continue;
        }
        i += 1;
        if c == format.escape
            && let Some(&next) = line.get(i)
            && (next == format.escape || next == format.quote)
        {
            out.push(next);
            i += 1;
        } else if c == format.quote {
            in_quote = false;
        } else {
            out.push(c);
        }
    }
    if in_quote {
        return Err(bad_format("unterminated CSV quoted field"));
    }
    Ok(Split {
        end: i,
        next: i + 1,
        found_delimiter: i < line.len(),
        saw_quote,
        saw_high_escape: false,
    })
}

/// Reads the text field that begins at `from`, and appends its bytes to `out`.
fn text_field(line: &[u8], from: usize, format: &Format, out: &mut Vec<u8>) -> Split {
    let mut saw_high_escape = false;
    let mut i = from;
    let mut end = from;
    let mut found_delimiter = false;
    while let Some(&c) = line.get(i) {
        if c == format.delimiter {
            found_delimiter = true;
            i += 1;
            break;
        }
        if c != b'\\' {
            out.push(c);
            i += 1;
        } else if i + 1 == line.len() {
            // A backslash at the very end stands for nothing.
            break;
        } else {
            let (byte, length, high) = text_escape(&line[i + 1..]);
            saw_high_escape |= high;
            out.push(byte);
            i += 1 + length;
        }
        end = i;
    }
    Split {
        end,
        next: i,
        found_delimiter,
        saw_quote: false,
        saw_high_escape,
    }
}

/// What the bytes after a backslash stand for: the byte, how many were read, and whether it is
/// one that could break the encoding.
#[inline]
pub(super) fn text_escape(after: &[u8]) -> (u8, usize, bool) {
    match after[0] {
        b'0'..=b'7' => {
            let digits = after
                .iter()
                .take(3)
                .take_while(|c| matches!(c, b'0'..=b'7'));
            let length = digits.clone().count();
            let value = digits.fold(0u32, |value, c| value * 8 + u32::from(c - b'0'));
            let byte = value as u8;
            (byte, length, byte == 0 || byte >= 0x80)
        }
        b'x' => {
            let digits = after[1..]
                .iter()
                .take(2)
                .map_while(|&c| (c as char).to_digit(16));
            let length = digits.clone().count();
            if length == 0 {
                return (b'x', 1, false);
            }
            let byte = digits.fold(0, |value, digit| value * 16 + digit) as u8;
            (byte, 1 + length, byte == 0 || byte >= 0x80)
        }
        b'b' => (0x08, 1, false),
        b'f' => (0x0c, 1, false),
        b'n' => (b'\n', 1, false),
        b'r' => (b'\r', 1, false),
        b't' => (b'\t', 1, false),
        b'v' => (0x0b, 1, false),
        other => (other, 1, false),
    }
}
