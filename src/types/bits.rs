//! bit(n) and bit varying(n).
//!
//! PostgreSQL: `src/backend/utils/adt/varbit.c`, `bit_in`, `varbit_in`, `bit_recv`, `varbit_recv`.

use super::digits::HEX;
use super::receive::Message;
use super::wording::{first_char, shown};
use crate::error::ValueError;
use crate::record::Encoding;

/// Most bits (`VARBITMAXLEN`).
const MAX_BITS: usize = i32::MAX as usize - 8 + 1;

/// How many bits a type takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Any,
    /// bit(n)
    Exactly(u32),
    /// bit varying(n)
    AtMost(u32),
}

impl Length {
    /// From atttypmod, which is the number of bits.
    pub(super) fn new(typmod: i32, is_varying: bool) -> Length {
        match u32::try_from(typmod) {
            Ok(bits @ 1..) if is_varying => Length::AtMost(bits),
            Ok(bits @ 1..) => Length::Exactly(bits),
            _ => Length::Any,
        }
    }

    fn check(self, bits: usize) -> Result<(), Box<ValueError>> {
        match self {
            Length::Exactly(wanted) if bits != wanted as usize => Err(ValueError::new(
                "22026",
                format!("bit string length {bits} does not match type bit({wanted})"),
            )),
            Length::AtMost(most) if bits > most as usize => Err(ValueError::new(
                "22001",
                format!("bit string too long for type bit varying({most})"),
            )),
            _ => Ok(()),
        }
    }
}

/// Reads a bit string, in binary digits, or in hexadecimal ones behind an x, and gives a
/// varlena's payload.
pub(super) fn bit_in<'a>(
    field: &[u8],
    length: Length,
    encoding: Encoding,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Box<ValueError>> {
    let (is_hex, digits) = match *field {
        [b'b' | b'B', ref digits @ ..] => (false, digits),
        [b'x' | b'X', ref digits @ ..] => (true, digits),
        _ => (false, field),
    };
    if is_hex && digits.len() > MAX_BITS / 4 {
        return Err(ValueError::new(
            "54000",
            format!("bit string length exceeds the maximum allowed ({MAX_BITS})"),
        ));
    }
    let bits = digits.len() * if is_hex { 4 } else { 1 };
    length.check(bits)?;
    buffer.clear();
    buffer.extend((bits as u32).to_le_bytes());
    let bad_digit = |at: usize, base: &str| {
        let digit = shown(first_char(&digits[at..], encoding));
        ValueError::new("22P02", format!("\"{digit}\" is not a valid {base} digit"))
    };
    if is_hex {
        for (pair, at) in digits.chunks(2).zip((0..).step_by(2)) {
            let mut byte = 0;
            for (i, digit) in pair.iter().enumerate() {
                match HEX[usize::from(*digit)] {
                    value @ 0..=15 => byte |= if i == 0 { value << 4 } else { value },
                    _ => return Err(bad_digit(at + i, "hexadecimal")),
                }
            }
            buffer.push(byte);
        }
    } else {
        for (eight, at) in digits.chunks(8).zip((0..).step_by(8)) {
            let mut byte = 0;
            for (i, digit) in eight.iter().enumerate() {
                match digit {
                    b'0' => {}
                    b'1' => byte |= 0x80 >> i,
                    _ => return Err(bad_digit(at + i, "binary")),
                }
            }
            buffer.push(byte);
        }
    }
    Ok(buffer)
}

/// Receives a bit string, its number of bits before them, and gives a varlena's payload. Bits
/// behind the last are cleared.
pub(super) fn bit_recv<'a>(
    message: &mut Message<'_>,
    length: Length,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], Box<ValueError>> {
    let bits = usize::try_from(message.int4()?).ok();
    let bits = bits.filter(|bits| *bits <= MAX_BITS);
    let bits =
        bits.ok_or_else(|| ValueError::new("22P03", "invalid length in external bit string"))?;
    length.check(bits)?;
    buffer.clear();
    buffer.extend((bits as u32).to_le_bytes());
    buffer.extend(message.slice(bits.div_ceil(8))?);
    if !bits.is_multiple_of(8)
        && let Some(last) = buffer.last_mut()
    {
        *last &= 0xff << (8 - bits % 8);
    }
    Ok(buffer)
}
