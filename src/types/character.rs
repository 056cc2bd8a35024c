//! text, character varying(n), character(n), "char" and name.
//!
//! Lengths count characters of the database's encoding.
//!
//! PostgreSQL: `src/backend/utils/adt/varchar.c` (`varchar_input`, `bpchar_input`), `char.c`,
//! `name.c` (`namerecv`); `src/backend/utils/mb/mbutils.c` (`pg_mbcharcliplen`, `pg_mbcliplen`).

use crate::error::ValueError;
use crate::record::Encoding;
use pgformat::datum::varlena;
use pgformat::version::MajorVersion;
use std::ops::Range;

/// Bytes of a name (`NAMEDATALEN`).
const NAME_BYTES: usize = 64;

/// The n of varchar(n) or char(n); `None` when the type modifier sets none.
pub(super) fn max_chars(typmod: i32) -> Option<u32> {
    u32::try_from(typmod - varlena::HEADER_BYTES as i32)
        .ok()
        .filter(|_| typmod >= varlena::HEADER_BYTES as i32)
}

/// Where the characters of a valid text begin.
fn beginnings(text: &[u8], encoding: Encoding) -> impl Iterator<Item = usize> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let at = next;
        next += encoding.announced(*text.get(at)?);
        Some(at)
    })
}

/// How many characters a valid text has.
fn count(text: &[u8], encoding: Encoding) -> usize {
    match encoding {
        // Bytes that do not continue one.
        Encoding::Utf8 => text.iter().filter(|&b| b & 0xc0 != 0x80).count(),
        Encoding::SingleByte(_) => text.len(),
        Encoding::Euc(_) if text.is_ascii() => text.len(),
        Encoding::Euc(_) => beginnings(text, encoding).count(),
    }
}

/// Bytes of the first `chars` characters.
fn clip(text: &[u8], chars: usize, encoding: Encoding) -> usize {
    let mut beginnings = beginnings(text, encoding);
    beginnings.nth(chars).unwrap_or(text.len())
}

/// What of the field a varchar(n) keeps: more than n characters must be spaces.
#[inline]
pub(super) fn varchar_in(
    field: &[u8],
    max_chars: u32,
    encoding: Encoding,
) -> Result<&[u8], Box<ValueError>> {
    if field.len() <= max_chars as usize {
        return Ok(field);
    }
    clip_spaces(field, max_chars, encoding, "character varying")
}

fn clip_spaces<'a>(
    field: &'a [u8],
    max_chars: u32,
    encoding: Encoding,
    type_name: &str,
) -> Result<&'a [u8], Box<ValueError>> {
    let kept = clip(field, max_chars as usize, encoding);
    if field[kept..].iter().any(|&b| b != b' ') {
        return Err(ValueError::new(
            "22001",
            format!("value too long for type {type_name}({max_chars})"),
        ));
    }
    Ok(&field[..kept])
}

/// What a char(n) stores: n characters, filled with spaces.
#[inline]
pub(super) fn bpchar_in<'a>(
    field: &'a [u8],
    max_chars: u32,
    encoding: Encoding,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Box<ValueError>> {
    let chars = if field.is_ascii() {
        field.len()
    } else {
        count(field, encoding)
    };
    let wanted = max_chars as usize;
    if chars > wanted {
        return clip_spaces(field, max_chars, encoding, "character");
    }
    if chars == wanted {
        return Ok(field);
    }
    buffer.clear();
    buffer.extend_from_slice(field);
    buffer.resize(field.len() + wanted - chars, b' ');
    Ok(buffer)
}

/// The same in one go for `field` of `data` where it is ASCII, has not too many characters,
/// and `N` bytes can be read of it and hold what is stored; `None` says nothing of the field.
#[inline(always)]
pub(super) fn short_bpchar<const N: usize>(
    data: &[u8],
    field: Range<usize>,
    max_chars: u32,
) -> Option<[u8; N]> {
    let wide = data[field.start..].first_chunk::<N>()?;
    let len = field.len();
    if len > max_chars as usize || max_chars as usize > N {
        return None;
    }
    // Compilers make a few instructions of the loop, without a branch that asks for the length.
    let mut filled = [b' '; N];
    let mut all = 0;
    for (i, (to, from)) in filled.iter_mut().zip(wide).enumerate() {
        *to = if (i as u8) < len as u8 { *from } else { b' ' };
        all |= *to;
    }
    all.is_ascii().then_some(filled)
}

/// Reads a "char": the first byte, or since 15 a backslash and three octal digits.
#[inline]
pub(super) fn char_in(field: &[u8], version: MajorVersion) -> u8 {
    if let [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] = *field
        && version.at_least(15)
    {
        return (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0');
    }
    field.first().copied().unwrap_or(0)
}

/// Reads a name: cut to 63 bytes without an error, not within a character; filled with zeros.
#[inline]
pub(super) fn name_in(field: &[u8], encoding: Encoding) -> [u8; NAME_BYTES] {
    let mut end = field.len();
    if end >= NAME_BYTES {
        let beginnings = beginnings(field, encoding);
        let within = beginnings.take_while(|at| *at < NAME_BYTES);
        // The last of them need not end there.
        end = within.last().unwrap_or(0);
    }
    filled_name(&field[..end])
}

/// A name in binary form, which is not cut.
pub(super) fn name_recv(text: &[u8]) -> Result<[u8; NAME_BYTES], Box<ValueError>> {
    if text.len() < NAME_BYTES {
        return Ok(filled_name(text));
    }
    Err(
        ValueError::new("42622", "identifier too long").with_detail(format!(
            "Identifier must be less than {NAME_BYTES} characters."
        )),
    )
}

fn filled_name(text: &[u8]) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    name[..text.len()].copy_from_slice(text);
    name
}
