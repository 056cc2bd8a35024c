//! real and double precision.
//!
//! The server calls strtof and strtod of the C library; the same grammar is read here: decimal
//! and hexadecimal numbers, infinity and NaN with a payload. Rounding is to nearest, ties to
//! even, as there. Up to 15 (7) digits with a small power of ten need one exact operation.
//!
//! PostgreSQL: `src/backend/utils/adt/float.c`, `float4in_internal`, `float8in_internal`.

use super::digits::{self, HEX};
use super::wording::{invalid_syntax, is_space, shown, skip_spaces};
use crate::error::ValueError;
use pgformat::version::MajorVersion;

/// Powers of ten that a double holds exactly.
const EXACT_POWERS8: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// Powers of ten that a float holds exactly.
const EXACT_POWERS4: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// Reads a double precision.
#[inline]
pub(super) fn float8_in(field: &[u8]) -> Result<f64, Box<ValueError>> {
    if let Some((negative, mantissa, places)) = plain(field)
        && mantissa < 1 << 53
    {
        let value = mantissa as f64 / EXACT_POWERS8[places];
        return Ok(if negative { -value } else { value });
    }
    float8_in_slow(field)
}

/// Reads a real.
#[inline]
pub(super) fn float4_in(field: &[u8], version: MajorVersion) -> Result<f32, Box<ValueError>> {
    if let Some((negative, mantissa, places)) = plain(field)
        && mantissa < 1 << 24
        && places < EXACT_POWERS4.len()
    {
        let value = mantissa as f32 / EXACT_POWERS4[places];
        return Ok(if negative { -value } else { value });
    }
    float4_in_slow(field, version)
}

/// `[-]ddd[.ddd]`: sign, digits as one number, how many of them follow the point.
#[inline]
fn plain(field: &[u8]) -> Option<(bool, u64, usize)> {
    let (negative, rest) = match field {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, field),
    };
    let (mantissa, places) = digits::decimal(rest)?;
    Some((negative, mantissa, places))
}

fn float8_in_slow(field: &[u8]) -> Result<f64, Box<ValueError>> {
    let text = skip_spaces(field);
    let syntax = || invalid_syntax("double precision", field);
    let scanned = scan(text).ok_or_else(syntax)?;
    let number = &text[..scanned.len];
    let value = match scanned.kind {
        Scanned::Decimal => parse_ascii::<f64>(number).ok_or_else(syntax)?,
        Scanned::Hex(hex) => hex.to_f64(),
        Scanned::Infinity => f64::INFINITY,
        Scanned::NaN(payload) => {
            f64::from_bits(f64::NAN.to_bits() & !(1 << 63) | payload & 0x0007_ffff_ffff_ffff)
        }
    };
    let value = if scanned.negative {
        -value.abs()
    } else {
        value.abs()
    };
    if scanned.is_number_lost(value == 0.0, value.is_infinite()) {
        return Err(out_of_range("double precision", number));
    }
    if !text[scanned.len..].iter().all(|&b| is_space(b)) {
        return Err(syntax());
    }
    Ok(value)
}

fn float4_in_slow(field: &[u8], version: MajorVersion) -> Result<f32, Box<ValueError>> {
    let text = skip_spaces(field);
    let syntax = || invalid_syntax("real", field);
    let scanned = scan(text).ok_or_else(syntax)?;
    let number = &text[..scanned.len];
    let value = match scanned.kind {
        Scanned::Decimal => parse_ascii::<f32>(number).ok_or_else(syntax)?,
        Scanned::Hex(hex) => hex.to_f32(),
        Scanned::Infinity => f32::INFINITY,
        Scanned::NaN(payload) => {
            f32::from_bits(f32::NAN.to_bits() & !(1 << 31) | payload as u32 & 0x003f_ffff)
        }
    };
    let value = if scanned.negative {
        -value.abs()
    } else {
        value.abs()
    };
    if scanned.is_number_lost(value == 0.0, value.is_infinite()) {
        // Until 15 the message shows all of the field.
        let shown = if version.at_least(16) { number } else { field };
        return Err(out_of_range("real", shown));
    }
    if !text[scanned.len..].iter().all(|&b| is_space(b)) {
        return Err(syntax());
    }
    Ok(value)
}

#[cold]
fn out_of_range(type_name: &str, number: &[u8]) -> Box<ValueError> {
    ValueError::new(
        "22003",
        format!("\"{}\" is out of range for type {type_name}", shown(number)),
    )
}

fn parse_ascii<F: std::str::FromStr>(number: &[u8]) -> Option<F> {
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// What strtod would take from the front of a text.
struct Scan {
    kind: Scanned,
    negative: bool,
    /// Bytes taken, the sign included.
    len: usize,
    /// A finite number with a digit that is not zero.
    nonzero: bool,
}

enum Scanned {
    Decimal,
    Hex(Hex),
    Infinity,
    NaN(u64),
}

impl Scan {
    /// A number became zero or infinity.
    fn is_number_lost(&self, zero: bool, infinite: bool) -> bool {
        let finite = matches!(self.kind, Scanned::Decimal | Scanned::Hex(_));
        finite && (infinite || zero && self.nonzero)
    }
}

fn scan(text: &[u8]) -> Option<Scan> {
    let (negative, sign, rest) = match text {
        [b'-', rest @ ..] => (true, 1, rest),
        [b'+', rest @ ..] => (false, 1, rest),
        _ => (false, 0, text),
    };
    let starts_with = |word: &[u8]| {
        rest.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let (kind, len, nonzero) = if starts_with(b"infinity") {
        (Scanned::Infinity, 8, true)
    } else if starts_with(b"inf") {
        (Scanned::Infinity, 3, true)
    } else if starts_with(b"nan") {
        match nan_payload(&rest[3..]) {
            // The C library reports a range error, upon which the server itself looks for NaN,
            // without a sign, and finds that something follows.
            (None, _) if sign == 0 => (Scanned::NaN(0), 3, true),
            (payload, len) => (Scanned::NaN(payload.unwrap_or(u64::MAX)), 3 + len, true),
        }
    } else if let Some((hex, len)) = scan_hex(rest) {
        let nonzero = hex.mantissa != 0;
        (Scanned::Hex(hex), len, nonzero)
    } else {
        let (len, nonzero) = scan_decimal(rest)?;
        (Scanned::Decimal, len, nonzero)
    };
    Some(Scan {
        kind,
        negative,
        len: sign + len,
        nonzero,
    })
}

fn count_digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Digits with at most one point, then an exponent if it has a digit.
fn scan_decimal(text: &[u8]) -> Option<(usize, bool)> {
    let whole = count_digits(text);
    let mut len = whole;
    let mut digits = whole;
    if text.get(len) == Some(&b'.') {
        let fraction = count_digits(&text[len + 1..]);
        digits += fraction;
        len += 1 + fraction;
    }
    if digits == 0 {
        return None;
    }
    let nonzero = text[..len].iter().any(|b| matches!(b, b'1'..=b'9'));
    Some((len + scan_exponent(&text[len..], b'e').1, nonzero))
}

/// An exponent announced by `letter`, held within what matters, and its bytes; zero bytes when
/// there is no digit.
fn scan_exponent(text: &[u8], letter: u8) -> (i64, usize) {
    if text
        .first()
        .is_none_or(|b| b.to_ascii_lowercase() != letter)
    {
        return (0, 0);
    }
    let (negative, sign) = match text.get(1) {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let digits = &text[1 + sign..];
    let count = count_digits(digits);
    if count == 0 {
        return (0, 0);
    }
    let magnitude = digits[..count].iter().fold(0i64, |n, b| {
        n.saturating_mul(10)
            .saturating_add(i64::from(b - b'0'))
            .min(1 << 40)
    });
    let exponent = if negative { -magnitude } else { magnitude };
    (exponent, 1 + sign + count)
}

/// glibc's `nan(...)`: letters, digits and underscores in parentheses; where all of them are a
/// number it is the payload, which is `None` when it exceeds 64 bits.
fn nan_payload(text: &[u8]) -> (Option<u64>, usize) {
    let Some(inner) = text.strip_prefix(b"(") else {
        return (Some(0), 0);
    };
    let count = inner
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    if inner.get(count) != Some(&b')') {
        return (Some(0), 0);
    }
    let word = &inner[..count];
    let (base, digits) = match word {
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (16, rest),
        [b'0', ..] => (8, word),
        _ => (10, word),
    };
    let mut payload = Some(0u64);
    for &byte in digits {
        let digit = u64::from(HEX[usize::from(byte)]);
        if digit >= base {
            return (payload.map(|_| 0), count + 2);
        }
        payload = payload
            .and_then(|n| n.checked_mul(base))
            .and_then(|n| n.checked_add(digit));
    }
    (payload, count + 2)
}

/// A hexadecimal number: `mantissa` times two to `exponent`; the lowest bit of the mantissa also
/// stands for all that was cut off below it.
#[derive(Clone, Copy)]
struct Hex {
    mantissa: u64,
    exponent: i64,
}

fn scan_hex(text: &[u8]) -> Option<(Hex, usize)> {
    let (b"0x" | b"0X", rest) = text.split_at_checked(2)? else {
        return None;
    };
    let mut hex = Hex {
        mantissa: 0,
        exponent: 0,
    };
    let mut len = 0;
    let mut digits = 0;
    let mut point = false;
    for &byte in rest {
        let digit = HEX[usize::from(byte)];
        if digit < 16 {
            digits += 1;
            if hex.mantissa >> 60 == 0 {
                hex.mantissa = hex.mantissa << 4 | u64::from(digit);
                hex.exponent -= if point { 4 } else { 0 };
            } else {
                hex.mantissa |= u64::from(digit != 0);
                hex.exponent += if point { 0 } else { 4 };
            }
        } else if byte == b'.' && !point {
            point = true;
        } else {
            break;
        }
        len += 1;
    }
    if digits == 0 {
        return None;
    }
    let (exponent, exponent_len) = scan_exponent(&rest[len..], b'p');
    hex.exponent += exponent;
    Some((hex, 2 + len + exponent_len))
}

impl Hex {
    fn to_f64(self) -> f64 {
        f64::from_bits(self.round(52, -1074, 0x7ff))
    }

    fn to_f32(self) -> f32 {
        f32::from_bits(self.round(23, -149, 0xff) as u32)
    }

    /// The bits of the nearest IEEE number with `fraction_bits`, whose least number is two to
    /// `least` and whose infinity has the exponent field `infinity`.
    fn round(self, fraction_bits: u32, least: i64, infinity: u64) -> u64 {
        if self.mantissa == 0 {
            return 0;
        }
        let top = self.exponent + 63 - i64::from(self.mantissa.leading_zeros());
        // The exponent of the lowest bit that is kept.
        let unit = (top - i64::from(fraction_bits)).max(least);
        let shift = unit - self.exponent;
        let kept = match shift {
            // The mantissa is shorter than the fraction.
            ..=0 => self.mantissa << -shift,
            1..=63 => {
                let low = self.mantissa & ((1 << shift) - 1);
                let half = 1 << (shift - 1);
                let kept = self.mantissa >> shift;
                kept + u64::from(low > half || low == half && kept & 1 == 1)
            }
            64 => u64::from(self.mantissa > 1 << 63),
            _ => 0,
        };
        // A carry out of the fraction moves into the exponent field, as it should.
        let field = (unit - least) as u64;
        if field >= infinity {
            return infinity << fraction_bits;
        }
        let bits = (field << fraction_bits) + kept;
        bits.min(infinity << fraction_bits)
    }
}
