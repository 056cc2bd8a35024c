//! bytea, in the hex and the escape format.
//!
//! PostgreSQL: `src/backend/utils/adt/varlena.c`, `byteain`; `encode.c`, `hex_decode_safe`.

use super::digits::HEX;
use super::wording::{first_char, shown};
use crate::error::ValueError;
use crate::record::Encoding;

/// Reads a bytea into the buffer.
#[inline]
pub(super) fn bytea_in<'a>(
    field: &'a [u8],
    encoding: Encoding,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Box<ValueError>> {
    buffer.clear();
    if let Some(hex) = field.strip_prefix(b"\\x") {
        if !decode_pairs(hex, buffer) {
            buffer.clear();
            decode_slowly(hex, encoding, buffer)?;
        }
        return Ok(buffer);
    }
    match memchr::memchr(b'\\', field) {
        None => Ok(field),
        Some(first) => {
            buffer.extend_from_slice(&field[..first]);
            unescape(&field[first..], buffer)?;
            Ok(buffer)
        }
    }
}

/// Decodes pairs of digits and nothing else; false when there is anything else.
#[inline]
fn decode_pairs(hex: &[u8], buffer: &mut Vec<u8>) -> bool {
    let (pairs, odd) = hex.as_chunks::<2>();
    let mut bad = 0;
    buffer.extend(pairs.iter().map(|pair| {
        let high = HEX[usize::from(pair[0])];
        let low = HEX[usize::from(pair[1])];
        bad |= high | low;
        high << 4 | low
    }));
    bad < 16 && odd.is_empty()
}

/// White space may stand between pairs.
fn decode_slowly(
    hex: &[u8],
    encoding: Encoding,
    buffer: &mut Vec<u8>,
) -> Result<(), Box<ValueError>> {
    let digit = |at: usize| match HEX[usize::from(hex[at])] {
        0xff => Err(invalid_digit(first_char(&hex[at..], encoding))),
        value => Ok(value),
    };
    let mut at = 0;
    while at < hex.len() {
        if matches!(hex[at], b' ' | b'\n' | b'\t' | b'\r') {
            at += 1;
            continue;
        }
        let high = digit(at)?;
        if at + 1 == hex.len() {
            return Err(ValueError::new(
                "22023",
                "invalid hexadecimal data: odd number of digits",
            ));
        }
        buffer.push(high << 4 | digit(at + 1)?);
        at += 2;
    }
    Ok(())
}

#[cold]
fn invalid_digit(character: &[u8]) -> Box<ValueError> {
    ValueError::new(
        "22023",
        format!("invalid hexadecimal digit: \"{}\"", shown(character)),
    )
}

fn unescape(mut field: &[u8], buffer: &mut Vec<u8>) -> Result<(), Box<ValueError>> {
    loop {
        match *field {
            [] => return Ok(()),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                buffer.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                field = &field[4..];
            }
            [b'\\', b'\\', ..] => {
                buffer.push(b'\\');
                field = &field[2..];
            }
            [b'\\', ..] => {
                return Err(ValueError::new(
                    "22P02",
                    "invalid input syntax for type bytea",
                ));
            }
            [byte, ..] => {
                buffer.push(byte);
                field = &field[1..];
            }
        }
    }
}
