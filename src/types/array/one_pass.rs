//! How 17 and later read arrays.

use super::super::wording::is_space;
use super::{Reader, at, too_many_elements, unexpected};
use crate::error::ValueError;
use pgformat::datum::array::{MAX_DIMENSIONS, MAX_ELEMENTS, Shape};

/// What the text of an array's contents is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    LevelStart,
    LevelEnd,
    Delimiter,
    Element,
    Null,
}

/// Reads the whole field into `reader.elements`; `text` is storage for an element.
pub(super) fn read(reader: &mut Reader<'_>, text: &mut Vec<u8>) -> Result<Shape, Box<ValueError>> {
    let field = reader.field;
    let mut pos = 0;
    let mut shape = dimensions(reader, &mut pos)?;
    if shape.ndim == 0 {
        if at(field, pos) != b'{' {
            return reader.malformed("Array value must start with \"{\" or dimension information.");
        }
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
    }
    contents(reader, &mut pos, &mut shape, text)?;
    if field[pos..].iter().any(|&byte| !is_space(byte)) {
        return reader.malformed("Junk after closing right brace.");
    }
    Ok(shape)
}

/// Reads `[m:n][n]...`, if any, and the white space before and between.
fn dimensions(reader: &Reader<'_>, pos: &mut usize) -> Result<Shape, Box<ValueError>> {
    let field = reader.field;
    let mut shape = Shape {
        lengths: [-1; MAX_DIMENSIONS],
        lower_bounds: [1; MAX_DIMENSIONS],
        ndim: 0,
    };
    loop {
        while is_space(at(field, *pos)) {
            *pos += 1;
        }
        if at(field, *pos) != b'[' {
            return Ok(shape);
        }
        *pos += 1;
        if shape.ndim == MAX_DIMENSIONS {
            return Err(too_many_dimensions());
        }
        let Some(first) = bound(field, pos)? else {
            return reader.malformed("\"[\" must introduce explicitly-specified array dimensions.");
        };
        let (lower, upper) = if at(field, *pos) == b':' {
            *pos += 1;
            match bound(field, pos)? {
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
        if upper == i32::MAX {
            return Err(ValueError::new(
                "54000",
                format!("array upper bound is too large: {upper}"),
            ));
        }
        let length = upper.checked_sub(lower).and_then(|n| n.checked_add(1));
        shape.lengths[shape.ndim] = length.ok_or_else(too_many_elements)?;
        shape.lower_bounds[shape.ndim] = lower;
        shape.ndim += 1;
    }
}

/// A number as strtol reads it, if one may begin here. A sign alone is 0, and is not passed.
fn bound(field: &[u8], pos: &mut usize) -> Result<Option<i32>, Box<ValueError>> {
    let sign = at(field, *pos);
    if !matches!(sign, b'0'..=b'9' | b'-' | b'+') {
        return Ok(None);
    }
    let first = *pos + usize::from(!sign.is_ascii_digit());
    let digits = field[first..].iter().take_while(|b| b.is_ascii_digit());
    // Beyond all integers it need not grow.
    let magnitude = digits.clone().fold(0_i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(1 << 40)
    });
    let count = digits.count();
    if count == 0 {
        return Ok(None);
    }
    *pos = first + count;
    let value = if sign == b'-' { -magnitude } else { magnitude };
    i32::try_from(value)
        .map(Some)
        .map_err(|_| ValueError::new("54000", "array bound is out of integer range"))
}

/// Reads the contents in braces, and the dimensions from them where none were given.
fn contents(
    reader: &mut Reader<'_>,
    pos: &mut usize,
    shape: &mut Shape,
    text: &mut Vec<u8>,
) -> Result<(), Box<ValueError>> {
    let are_specified = shape.ndim > 0;
    let mut is_frozen = are_specified;
    let mut expects_delimiter = false;
    let mut depth = 0;
    let mut counts = [0; MAX_DIMENSIONS];
    let wrong_dimensions = |reader: &Reader<'_>| {
        reader.malformed(if are_specified {
            "Specified array dimensions do not match array contents."
        } else {
            "Multidimensional arrays must have sub-arrays with matching dimensions."
        })
    };
    loop {
        let token = token(reader, pos, text)?;
        match token {
            Token::LevelStart => {
                if expects_delimiter {
                    return reader.malformed(unexpected(b'{'));
                }
                if depth == MAX_DIMENSIONS {
                    return Err(too_many_dimensions());
                }
                counts[depth] = 0;
                depth += 1;
                if depth > shape.ndim {
                    if is_frozen {
                        return wrong_dimensions(reader);
                    }
                    shape.ndim = depth;
                }
            }
            Token::LevelEnd => {
                if counts[depth - 1] > 0 && !expects_delimiter {
                    return reader.malformed(unexpected(b'}'));
                }
                depth -= 1;
                if depth > 0 {
                    counts[depth - 1] += 1;
                }
                if shape.lengths[depth] < 0 {
                    shape.lengths[depth] = counts[depth];
                } else if shape.lengths[depth] != counts[depth] {
                    return wrong_dimensions(reader);
                }
                expects_delimiter = true;
                if depth == 0 {
                    return Ok(());
                }
            }
            Token::Delimiter => {
                if !expects_delimiter {
                    return reader.malformed(unexpected(reader.array.delimiter));
                }
                expects_delimiter = false;
            }
            Token::Element | Token::Null => {
                if expects_delimiter {
                    return reader.malformed("Unexpected array element.");
                }
                if reader.elements.spans.len() >= MAX_ELEMENTS {
                    return Err(too_many_elements());
                }
                let span = reader.element((token == Token::Element).then_some(&text[..]))?;
                reader.elements.spans.push(span);
                is_frozen = true;
                if depth != shape.ndim {
                    return wrong_dimensions(reader);
                }
                counts[depth - 1] += 1;
                expects_delimiter = true;
            }
        }
    }
}

/// Reads a token; an element's text goes to `text`.
fn token(
    reader: &Reader<'_>,
    pos: &mut usize,
    text: &mut Vec<u8>,
) -> Result<Token, Box<ValueError>> {
    const END: &str = "Unexpected end of input.";
    let field = reader.field;
    let delimiter = reader.array.delimiter;
    while is_space(at(field, *pos)) && at(field, *pos) != delimiter {
        *pos += 1;
    }
    let single = match at(field, *pos) {
        0 => return reader.malformed(END),
        b'{' => Some(Token::LevelStart),
        b'}' => Some(Token::LevelEnd),
        byte if byte == delimiter && byte != b'"' => Some(Token::Delimiter),
        _ => None,
    };
    if let Some(token) = single {
        *pos += 1;
        return Ok(token);
    }
    text.clear();
    if at(field, *pos) == b'"' {
        *pos += 1;
        loop {
            match at(field, *pos) {
                b'"' => break,
                b'\\' => *pos += 1,
                _ => {}
            }
            match at(field, *pos) {
                0 => return reader.malformed(END),
                byte => text.push(byte),
            }
            *pos += 1;
        }
        *pos += 1;
        while is_space(at(field, *pos)) && at(field, *pos) != delimiter {
            *pos += 1;
        }
        return match at(field, *pos) {
            0 => reader.malformed(END),
            b'{' | b'}' => Ok(Token::Element),
            byte if byte == delimiter => Ok(Token::Element),
            _ => reader.malformed("Incorrectly quoted array element."),
        };
    }
    let mut kept = 0;
    let mut has_escape = false;
    loop {
        match at(field, *pos) {
            0 => return reader.malformed(END),
            b'{' => return reader.malformed(unexpected(b'{')),
            b'"' => return reader.malformed("Incorrectly quoted array element."),
            b'\\' => {
                *pos += 1;
                if at(field, *pos) == 0 {
                    return reader.malformed(END);
                }
                text.push(field[*pos]);
                kept = text.len();
                has_escape = true;
            }
            byte if byte == delimiter || byte == b'}' => {
                text.truncate(kept);
                let is_null = !has_escape && reader.is_null(text);
                return Ok(if is_null { Token::Null } else { Token::Element });
            }
            byte => {
                text.push(byte);
                if !is_space(byte) {
                    kept = text.len();
                }
            }
        }
        *pos += 1;
    }
}

#[cold]
fn too_many_dimensions() -> Box<ValueError> {
    ValueError::new(
        "54000",
        format!("number of array dimensions exceeds the maximum allowed ({MAX_DIMENSIONS})"),
    )
}
