//! How 14, 15 and 16 read arrays: a pass over the structure, then one over the elements.
//!
//! The first pass counts delimiters and braces by depth and compares each brace's count with
//! that of the brace before it, which lets some ragged arrays through; the second puts elements
//! where the counts say and leaves nulls elsewhere.

use super::super::wording::is_space;
use super::{NULL, Reader, at, count_elements, malformed, unexpected};
use crate::error::ValueError;
use pgformat::datum::array::{MAX_DIMENSIONS, Shape};

/// Reads the whole field into `reader.elements`; `text` is storage for an element.
pub(super) fn read(reader: &mut Reader<'_>, text: &mut Vec<u8>) -> Result<Shape, Box<ValueError>> {
    let field = reader.field;
    let mut pos = 0;
    let mut shape = dimensions(reader, &mut pos)?;
    if shape.ndim == 0 {
        if at(field, pos) != b'{' {
            return reader.malformed("Array value must start with \"{\" or dimension information.");
        }
        (shape.ndim, shape.lengths) = count(&field[pos..], reader.array.delimiter)?;
        shape.lower_bounds = [1; MAX_DIMENSIONS];
    } else {
        if at(field, pos) != b'=' {
            return reader.malformed("Missing \"=\" after array dimensions.");
        }
        pos += 1;
        while is_space(at(field, pos)) {
            pos += 1;
        }
        if at(field, pos) != b'{' {
            return reader.malformed("Array contents must start with \"{\".");
        }
        let (ndim, lengths) = count(&field[pos..], reader.array.delimiter)?;
        if ndim != shape.ndim || lengths[..ndim] != shape.lengths[..ndim] {
            return reader.malformed("Specified array dimensions do not match array contents.");
        }
    }
    let elements = count_elements(&shape)?;
    if elements > 0 {
        reader.elements.spans.resize(elements, NULL);
        place(reader, pos, &shape, text)?;
    }
    Ok(shape)
}

/// Reads `[m:n][n]...`, if any, and the white space before and between.
fn dimensions(reader: &Reader<'_>, pos: &mut usize) -> Result<Shape, Box<ValueError>> {
    let field = reader.field;
    let mut shape = Shape::default();
    loop {
        while is_space(at(field, *pos)) {
            *pos += 1;
        }
        if at(field, *pos) != b'[' {
            return Ok(shape);
        }
        *pos += 1;
        if shape.ndim == MAX_DIMENSIONS {
            return Err(too_many_dimensions(MAX_DIMENSIONS + 1));
        }
        let Some(first) = bound(field, pos) else {
            return reader.malformed("\"[\" must introduce explicitly-specified array dimensions.");
        };
        let (lower, upper) = if at(field, *pos) == b':' {
            *pos += 1;
            match bound(field, pos) {
                Some(upper) => (first, upper),
                None => return reader.malformed("Missing array dimension value."),
            }
        } else {
            (1, first)
        };
        if at(field, *pos) != b']' {
            return reader.malformed("Missing \"]\" after array dimensions.");
        }
        *pos += 1;
        if upper < lower {
            return Err(ValueError::new(
                "2202E",
                "upper bound cannot be less than lower bound",
            ));
        }
        shape.lengths[shape.ndim] = upper.wrapping_sub(lower).wrapping_add(1);
        shape.lower_bounds[shape.ndim] = lower;
        shape.ndim += 1;
    }
}

/// What atoi makes of digits and signs in any order, if there are any: it stops at a sign in
/// the wrong place, and what does not fit a long is the nearest, cut to an int.
fn bound(field: &[u8], pos: &mut usize) -> Option<i32> {
    let text = &field[*pos..];
    let len = text
        .iter()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'))
        .count();
    *pos += len;
    let text = &text[..len];
    let (&sign, rest) = text.split_first()?;
    let (is_negative, digits) = match sign {
        b'-' => (true, rest),
        b'+' => (false, rest),
        _ => (false, text),
    };
    let value = digits
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .fold(0_i64, |value, digit| {
            let digit = i64::from(digit - b'0');
            let digit = if is_negative { -digit } else { digit };
            value.saturating_mul(10).saturating_add(digit)
        });
    Some(value as i32)
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    LevelStart,
    LevelEnd,
    LevelDelimiter,
    ElementStart,
    QuoteStart,
    QuoteEnd,
    ElementDelimiter,
}

/// The first pass: what it has counted.
struct Count<'a> {
    /// The text from the first brace on, which messages show.
    text: &'a [u8],
    delimiter: u8,
    after: After,
    depth: usize,
    ndim: usize,
    lengths: [i32; MAX_DIMENSIONS],
    /// Of the brace that is open at each depth.
    counts: [i32; MAX_DIMENSIONS],
    /// Of the brace that was closed last at each depth.
    last_counts: [i32; MAX_DIMENSIONS],
}

impl Count<'_> {
    #[cold]
    fn refused<T>(&self, detail: impl Into<String>) -> Result<T, Box<ValueError>> {
        Err(malformed(self.text).with_detail(detail))
    }

    /// A left brace.
    fn open(&mut self) -> Result<(), Box<ValueError>> {
        if !matches!(
            self.after,
            After::Nothing | After::LevelStart | After::LevelDelimiter
        ) {
            return self.refused(unexpected(b'{'));
        }
        self.after = After::LevelStart;
        if self.depth == MAX_DIMENSIONS {
            return Err(too_many_dimensions(self.depth + 1));
        }
        self.lengths[self.depth] = 0;
        self.depth += 1;
        self.ndim = self.ndim.max(self.depth);
        Ok(())
    }

    /// A right brace.
    fn close(&mut self) -> Result<(), Box<ValueError>> {
        let is_empty_array = self.depth == 1 && self.after == After::LevelStart;
        if !matches!(
            self.after,
            After::ElementStart | After::QuoteEnd | After::LevelEnd
        ) && !is_empty_array
        {
            return self.refused(unexpected(b'}'));
        }
        self.after = After::LevelEnd;
        self.depth -= 1;
        let (count, last) = (self.counts[self.depth], self.last_counts[self.depth]);
        if last != 0 && count != last {
            return self
                .refused("Multidimensional arrays must have sub-arrays with matching dimensions.");
        }
        self.last_counts[self.depth] = count;
        self.counts[self.depth] = 1;
        let counted = if self.depth == 0 {
            self.ndim - 1
        } else {
            self.depth - 1
        };
        self.lengths[counted] += 1;
        Ok(())
    }

    /// A delimiter.
    fn delimit(&mut self) -> Result<(), Box<ValueError>> {
        self.after = match self.after {
            After::LevelEnd => After::LevelDelimiter,
            After::ElementStart | After::QuoteEnd => After::ElementDelimiter,
            _ => return self.refused(unexpected(self.delimiter)),
        };
        self.counts[self.depth - 1] += 1;
        self.lengths[self.ndim - 1] += 1;
        Ok(())
    }

    /// A quote: it begins an element, or ends the one in quotes.
    fn quote(&mut self) -> Result<(), Box<ValueError>> {
        self.after = match self.after {
            After::QuoteStart => After::QuoteEnd,
            After::LevelStart | After::ElementDelimiter => After::QuoteStart,
            _ => return self.refused("Unexpected array element."),
        };
        Ok(())
    }

    /// A character of an element without quotes.
    fn element(&mut self, detail: impl Into<String>) -> Result<(), Box<ValueError>> {
        match self.after {
            After::LevelStart | After::ElementStart | After::ElementDelimiter => {
                self.after = After::ElementStart;
                Ok(())
            }
            _ => self.refused(detail),
        }
    }
}

/// The first pass, over text that begins with a brace: how many dimensions, and their lengths.
fn count(text: &[u8], delimiter: u8) -> Result<(usize, [i32; MAX_DIMENSIONS]), Box<ValueError>> {
    let mut count = Count {
        text,
        delimiter,
        after: After::Nothing,
        depth: 0,
        ndim: 1,
        lengths: [0; MAX_DIMENSIONS],
        counts: [1; MAX_DIMENSIONS],
        last_counts: [0; MAX_DIMENSIONS],
    };
    let mut is_empty = true;
    let mut pos = 0;
    loop {
        let in_quotes = count.after == After::QuoteStart;
        is_empty &= !in_quotes && count.after != After::ElementStart;
        match at(text, pos) {
            0 => return count.refused("Unexpected end of input."),
            b'\\' => {
                if !in_quotes {
                    count.element(unexpected(b'\\'))?;
                }
                pos += 1;
                if at(text, pos) == 0 {
                    return count.refused("Unexpected end of input.");
                }
            }
            b'"' => count.quote()?,
            _ if in_quotes => {}
            b'{' => count.open()?,
            b'}' => {
                count.close()?;
                if count.depth == 0 {
                    break;
                }
            }
            byte if byte == delimiter => count.delimit()?,
            byte if is_space(byte) => {}
            _ => count.element("Unexpected array element.")?,
        }
        pos += 1;
    }
    if text[pos + 1..].iter().any(|&byte| !is_space(byte)) {
        return count.refused("Junk after closing right brace.");
    }
    Ok((if is_empty { 0 } else { count.ndim }, count.lengths))
}

/// The second pass: the elements, each at its subscripts.
fn place(
    reader: &mut Reader<'_>,
    mut pos: usize,
    shape: &Shape,
    text: &mut Vec<u8>,
) -> Result<(), Box<ValueError>> {
    let field = reader.field;
    let delimiter = reader.array.delimiter;
    let ndim = shape.ndim;
    let mut strides = [1_i64; MAX_DIMENSIONS];
    for i in (0..ndim - 1).rev() {
        strides[i] = strides[i + 1] * i64::from(shape.lengths[i + 1]);
    }
    let offset = |subscripts: &[i64; MAX_DIMENSIONS]| -> i64 {
        subscripts
            .iter()
            .zip(strides)
            .take(ndim)
            .map(|(s, stride)| s * stride)
            .sum()
    };
    let mut subscripts = [0_i64; MAX_DIMENSIONS];
    let mut depth = 0;
    let mut is_end = false;
    while !is_end {
        let mut place = None;
        let mut is_done = false;
        let mut in_quotes = false;
        let mut has_quoting = false;
        let mut kept = 0;
        text.clear();
        while !is_done {
            let byte = at(field, pos);
            pos += 1;
            match byte {
                0 => return Err(malformed(field)),
                b'\\' => {
                    if at(field, pos) == 0 {
                        return Err(malformed(field));
                    }
                    text.push(field[pos]);
                    pos += 1;
                    kept = text.len();
                    has_quoting = true;
                }
                b'"' => {
                    in_quotes = !in_quotes;
                    kept = if in_quotes { kept } else { text.len() };
                    has_quoting = true;
                }
                _ if in_quotes => text.push(byte),
                b'{' => {
                    if depth >= ndim {
                        return Err(malformed(field));
                    }
                    depth += 1;
                    subscripts[depth - 1] = 0;
                }
                b'}' => {
                    if depth == 0 {
                        return Err(malformed(field));
                    }
                    place = place.or_else(|| Some(offset(&subscripts)));
                    subscripts[depth - 1] = 0;
                    depth -= 1;
                    if depth == 0 {
                        is_end = true;
                        is_done = true;
                    } else {
                        subscripts[depth - 1] += 1;
                    }
                }
                _ if byte == delimiter => {
                    place = place.or_else(|| Some(offset(&subscripts)));
                    subscripts[ndim - 1] += 1;
                    is_done = true;
                }
                _ if is_space(byte) => {
                    // Before the text it is dropped, behind it perhaps.
                    if has_quoting || !text.is_empty() {
                        text.push(byte);
                    }
                }
                _ => {
                    text.push(byte);
                    kept = text.len();
                }
            }
        }
        text.truncate(kept);
        let slot = place
            .and_then(|place| usize::try_from(place).ok())
            .filter(|&place| place < reader.elements.spans.len())
            .ok_or_else(|| malformed(field))?;
        let is_null = !has_quoting && reader.is_null(text);
        reader.elements.spans[slot] = reader.element((!is_null).then_some(&text[..]))?;
    }
    Ok(())
}

#[cold]
fn too_many_dimensions(dimensions: usize) -> Box<ValueError> {
    ValueError::new(
        "54000",
        format!(
            "number of array dimensions ({dimensions}) exceeds the maximum allowed \
             ({MAX_DIMENSIONS})"
        ),
    )
}
