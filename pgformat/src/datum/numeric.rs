//! numeric on disk, its order and its text.
//!
//! ```text
//! 10 sign scale weight | digits        short: 1 bit, 6 bits, 7 bits (signed), in one u16
//! 0s scale | weight | digits           long: 14 bits of scale, then i16
//! 1100.. NaN   1101.. Infinity   1111.. -Infinity
//! ```
//!
//! Digits are i16 of base 10000; the first is worth 10000^weight; there is no zero digit at
//! either end. Scale is the count of decimal digits shown after the point.
//!
//! PostgreSQL: `src/backend/utils/adt/numeric.c`, `NumericData`, `make_result`, `cmp_numerics`,
//! `get_str_from_var`.

use std::cmp::Ordering;

/// The base of the digits.
pub const NBASE: u16 = 10_000;
/// Decimal digits in a digit.
pub const DEC_DIGITS: usize = 4;
/// The largest scale that can be stored.
pub const DSCALE_MAX: i32 = 0x3fff;
/// The largest weight that can be stored.
pub const WEIGHT_MAX: i32 = i16::MAX as i32;

const SHORT: u16 = 0x8000;
const SHORT_NEGATIVE: u16 = 0x2000;
const SHORT_DSCALE_MAX: i32 = 0x3f;
const SHORT_DSCALE_SHIFT: u32 = 7;
const SHORT_WEIGHT_MASK: u16 = 0x7f;
const SHORT_WEIGHT_MAX: i32 = 0x3f;
const SHORT_WEIGHT_MIN: i32 = -0x40;
const NEGATIVE: u16 = 0x4000;
const FLAGS: u16 = 0xc000;

/// The payload of NaN.
pub const NAN: [u8; 2] = 0xc000u16.to_le_bytes();
/// The payload of Infinity.
pub const INFINITY: [u8; 2] = 0xd000u16.to_le_bytes();
/// The payload of -Infinity.
pub const NEGATIVE_INFINITY: [u8; 2] = 0xf000u16.to_le_bytes();

/// The header of a finite number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    bytes: [u8; 4],
    long: bool,
}

impl Header {
    /// The header for this sign, weight and scale; `None` when the format cannot hold them
    /// ("value overflows numeric format"). For zero, pass `false` and 0.
    #[inline]
    pub fn new(negative: bool, weight: i32, dscale: i32) -> Option<Header> {
        if (0..=SHORT_DSCALE_MAX).contains(&dscale)
            && (SHORT_WEIGHT_MIN..=SHORT_WEIGHT_MAX).contains(&weight)
        {
            let sign = if negative { SHORT_NEGATIVE } else { 0 };
            let word = SHORT
                | sign
                | (dscale as u16) << SHORT_DSCALE_SHIFT
                | weight as u16 & SHORT_WEIGHT_MASK;
            let [a, b] = word.to_le_bytes();
            return Some(Header {
                bytes: [a, b, 0, 0],
                long: false,
            });
        }
        if !(0..=DSCALE_MAX).contains(&dscale) {
            return None;
        }
        let weight = i16::try_from(weight).ok()?;
        let word = if negative { NEGATIVE } else { 0 } | dscale as u16;
        let [a, b] = word.to_le_bytes();
        let [c, d] = weight.to_le_bytes();
        Some(Header {
            bytes: [a, b, c, d],
            long: true,
        })
    }

    /// Its two or four bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        if self.long {
            &self.bytes
        } else {
            &self.bytes[..2]
        }
    }
}

/// A stored number, read.
#[derive(Clone, Copy, Debug)]
enum Number<'a> {
    NegativeInfinity,
    Finite(Finite<'a>),
    Infinity,
    NaN,
}

#[derive(Clone, Copy, Debug)]
struct Finite<'a> {
    negative: bool,
    weight: i32,
    dscale: usize,
    /// Two bytes a digit.
    digits: &'a [u8],
}

impl<'a> Finite<'a> {
    #[inline]
    fn count(&self) -> usize {
        self.digits.len() / 2
    }

    #[inline]
    fn digit(&self, index: usize) -> u16 {
        match self.digits.get(index * 2..index * 2 + 2) {
            Some(d) => u16::from_le_bytes([d[0], d[1]]),
            None => 0,
        }
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.digits
            .chunks_exact(2)
            .map(|d| u16::from_le_bytes([d[0], d[1]]))
    }
}

#[inline]
fn read(payload: &[u8]) -> Number<'_> {
    let [a, b, rest @ ..] = payload else {
        // Nothing is stored so; the order of damaged values does not matter.
        return Number::NaN;
    };
    let word = u16::from_le_bytes([*a, *b]);
    match word & FLAGS {
        FLAGS => match word & 0xf000 {
            0xd000 => Number::Infinity,
            0xf000 => Number::NegativeInfinity,
            _ => Number::NaN,
        },
        SHORT => {
            // Sign extension of seven bits.
            let weight = (((word & SHORT_WEIGHT_MASK) << 9) as i16) >> 9;
            Number::Finite(Finite {
                negative: word & SHORT_NEGATIVE != 0,
                weight: weight.into(),
                dscale: (word >> SHORT_DSCALE_SHIFT & 0x3f).into(),
                digits: rest,
            })
        }
        sign => {
            let [c, d, digits @ ..] = rest else {
                return Number::NaN;
            };
            Number::Finite(Finite {
                negative: sign == NEGATIVE,
                weight: i16::from_le_bytes([*c, *d]).into(),
                dscale: (word & DSCALE_MAX as u16).into(),
                digits,
            })
        }
    }
}

/// Appends the binary form of a payload (without its varlena header): count of digits, weight,
/// sign, scale and the digits, two bytes each, the high one first.
///
/// PostgreSQL: `numeric_send`.
pub fn send(payload: &[u8], out: &mut Vec<u8>) {
    let mut header = |count: usize, weight: i32, sign: u16, dscale: usize| {
        for word in [count as u16, weight as u16, sign, dscale as u16] {
            out.extend(word.to_be_bytes());
        }
    };
    match read(payload) {
        Number::NaN => header(0, 0, 0xc000, 0),
        Number::Infinity => header(0, 0, 0xd000, 0),
        Number::NegativeInfinity => header(0, 0, 0xf000, 0),
        Number::Finite(number) => {
            let sign = if number.negative { NEGATIVE } else { 0 };
            header(number.count(), number.weight, sign, number.dscale);
            out.extend(number.iter().flat_map(u16::to_be_bytes));
        }
    }
}

/// The hash of a payload; scale and zeros at either end do not matter.
///
/// PostgreSQL: `hash_numeric_extended`.
pub fn hash(payload: &[u8], seed: u64) -> u64 {
    let Number::Finite(number) = read(payload) else {
        return seed;
    };
    let Some(first) = number.iter().position(|digit| digit != 0) else {
        return seed.wrapping_sub(1);
    };
    let mut end = number.count();
    while number.digit(end - 1) == 0 {
        end -= 1;
    }
    let digits = super::hash::hash_bytes(&number.digits[first * 2..end * 2], seed);
    digits ^ i64::from(number.weight - first as i32) as u64
}

/// The order of two payloads (without varlena headers): -Infinity, numbers, Infinity, NaN.
/// Scale does not matter.
///
/// PostgreSQL: `cmp_numerics`.
pub fn compare(a_payload: &[u8], b_payload: &[u8]) -> Ordering {
    let (a, b) = (read(a_payload), read(b_payload));
    if let (Number::Finite(a), Number::Finite(b)) = (&a, &b) {
        return compare_finite(a, b);
    }
    let rank = |n: &Number<'_>| match n {
        Number::NegativeInfinity => 0,
        Number::Finite(_) => 1,
        Number::Infinity => 2,
        Number::NaN => 3,
    };
    rank(&a).cmp(&rank(&b))
}

fn compare_finite(a: &Finite<'_>, b: &Finite<'_>) -> Ordering {
    let sign = |n: &Finite<'_>| match (n.count(), n.negative) {
        (0, _) => 0i8,
        (_, true) => -1,
        (_, false) => 1,
    };
    let (sign_a, sign_b) = (sign(a), sign(b));
    match sign_a.cmp(&sign_b) {
        Ordering::Equal if sign_a == 0 => Ordering::Equal,
        Ordering::Equal if sign_a > 0 => compare_magnitude(a, b),
        Ordering::Equal => compare_magnitude(b, a),
        unequal => unequal,
    }
}

/// Digits carry no leading zeros, so weight decides first.
fn compare_magnitude(a: &Finite<'_>, b: &Finite<'_>) -> Ordering {
    a.weight.cmp(&b.weight).then_with(|| a.iter().cmp(b.iter()))
}

/// The text of a payload, as numeric's output function gives it.
pub fn to_text(payload: &[u8]) -> String {
    let number = match read(payload) {
        Number::NaN => return "NaN".to_owned(),
        Number::Infinity => return "Infinity".to_owned(),
        Number::NegativeInfinity => return "-Infinity".to_owned(),
        Number::Finite(number) => number,
    };
    let mut out = String::new();
    if number.negative {
        out.push('-');
    }
    let put = |digit: u16, out: &mut String| {
        for power in [1000, 100, 10, 1] {
            out.push((b'0' + (digit / power % 10) as u8) as char);
        }
    };
    if number.weight < 0 {
        out.push('0');
    } else {
        out.push_str(&number.digit(0).to_string());
        for i in 1..=number.weight as usize {
            put(number.digit(i), &mut out);
        }
    }
    if number.dscale > 0 {
        out.push('.');
        let end = out.len() + number.dscale;
        let mut position = number.weight + 1;
        // The first digit after the point is digit weight + 1; before digit 0 stand zeros.
        while out.len() < end {
            let digit = usize::try_from(position).map_or(0, |i| number.digit(i));
            put(digit, &mut out);
            position += 1;
        }
        out.truncate(end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(negative: bool, weight: i32, dscale: i32, digits: &[u16]) -> Vec<u8> {
        let mut out = Header::new(negative, weight, dscale)
            .unwrap()
            .as_bytes()
            .to_vec();
        out.extend(digits.iter().flat_map(|d| d.to_le_bytes()));
        out
    }

    #[test]
    fn a_short_header_holds_sign_scale_and_weight() {
        assert_eq!(payload(false, 0, 2, &[12, 3400]), [0, 0x81, 12, 0, 72, 13]);
        assert_eq!(payload(true, -1, 4, &[1]), [0x7f, 0xa2, 1, 0]);
    }

    #[test]
    fn a_long_header_is_for_what_the_short_one_cannot_hold() {
        assert_eq!(payload(true, 64, 0, &[1]), [0, 0x40, 64, 0, 1, 0]);
        assert_eq!(payload(false, 0, 64, &[1]), [64, 0, 0, 0, 1, 0]);
        assert_eq!(Header::new(false, 32_768, 0), None);
        assert_eq!(Header::new(false, 0, 16_384), None);
    }

    #[test]
    fn numbers_stand_between_the_infinities_and_nan_comes_last() {
        let in_order = [
            NEGATIVE_INFINITY.to_vec(),
            payload(true, 70, 0, &[1]),
            payload(true, 0, 0, &[2]),
            payload(true, -1, 4, &[5000]),
            payload(false, 0, 0, &[]),
            payload(false, -20, 80, &[1]),
            payload(false, 0, 0, &[1]),
            payload(false, 0, 5, &[1, 1]),
            payload(false, 1, 0, &[1]),
            INFINITY.to_vec(),
            NAN.to_vec(),
        ];
        for (i, a) in in_order.iter().enumerate() {
            for (j, b) in in_order.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{} {}", to_text(a), to_text(b));
            }
        }
        assert_eq!(
            compare(&payload(false, 0, 0, &[1]), &payload(false, 0, 9, &[1])),
            Ordering::Equal
        );
    }

    #[test]
    fn text_shows_exactly_the_scale() {
        assert_eq!(to_text(&payload(false, 0, 2, &[12, 3400])), "12.34");
        assert_eq!(to_text(&payload(true, -2, 9, &[123])), "-0.000001230");
        assert_eq!(to_text(&payload(false, 2, 0, &[7])), "700000000");
        assert_eq!(to_text(&payload(false, 0, 3, &[])), "0.000");
        assert_eq!(to_text(&payload(false, 0, 6, &[1, 0, 1200])), "1.000012");
    }

    #[test]
    fn damaged_payloads_do_not_panic() {
        for bytes in [&[][..], &[1], &[0, 0], &[0, 0x80, 9], &[0, 0, 1]] {
            let _ = to_text(bytes);
            let _ = compare(bytes, &NAN);
        }
    }
}
