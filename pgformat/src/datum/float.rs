//! real and double precision: IEEE 754 on disk, their order and their text.

use std::cmp::Ordering;
use std::fmt::{LowerExp, Write as _};
use std::str::FromStr;

/// The order of the btree on real: -0 equals 0, and NaN equals NaN and is the greatest.
///
/// PostgreSQL: `src/include/utils/float.h`, `float4_gt` and the like.
#[inline]
pub fn compare4(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The order of the btree on double precision: as [`compare4`].
#[inline]
pub fn compare8(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The text of a real, as with `extra_float_digits` at its default.
///
/// PostgreSQL: `src/common/f2s.c`.
pub fn to_text4(value: f32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return infinity(value < 0.0);
    }
    let bits = value.to_bits() & 0x7fff_ffff;
    let mantissa = match bits >> 23 {
        0 => bits,
        _ => bits & 0x007f_ffff | 0x0080_0000,
    };
    lay_out(&shortest(value, mantissa.into()), 6)
}

/// The text of a double precision, as with `extra_float_digits` at its default.
///
/// PostgreSQL: `src/common/d2s.c`.
pub fn to_text8(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return infinity(value < 0.0);
    }
    let bits = value.to_bits() & 0x7fff_ffff_ffff_ffff;
    let mantissa = match bits >> 52 {
        0 => bits,
        _ => bits & 0x000f_ffff_ffff_ffff | 0x0010_0000_0000_0000,
    };
    lay_out(&shortest(value, mantissa), 15)
}

fn infinity(negative: bool) -> String {
    if negative { "-Infinity" } else { "Infinity" }.to_owned()
}

/// A decimal: `digits` with the point after the first one, times ten to `exponent`.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Decimal {
    /// Reads what `{:e}` prints.
    fn of<F: LowerExp>(value: F, places: Option<usize>) -> Decimal {
        let text = match places {
            Some(places) => format!("{value:.places$e}"),
            None => format!("{value:e}"),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        Decimal {
            negative: mantissa.starts_with('-'),
            digits: mantissa.chars().filter(char::is_ascii_digit).collect(),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    /// The power of ten that the digits, read as an integer, are multiplied by.
    fn power(&self) -> i32 {
        self.exponent - (self.digits.len() as i32 - 1)
    }

    fn signed_digits(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}", self.digits)
    }
}

/// The shortest digits that mean the value, as the server finds them. Rust's differ in two ways:
/// they may lie on the edge of the interval that rounds to the value, and of two that are equally
/// close they may be the odd ones.
fn shortest<F: LowerExp + FromStr + PartialEq + Copy>(value: F, mantissa: u64) -> Decimal {
    let means_value = |d: &Decimal| {
        let text = format!("{}e{}", d.signed_digits(), d.power());
        text.parse().is_ok_and(|read: F| read == value) && !is_half_way(d, mantissa)
    };
    let mut decimal = Decimal::of(value, None);
    while !means_value(&decimal) && decimal.digits.len() < 20 {
        decimal = Decimal::of(value, Some(decimal.digits.len()));
    }
    let len = decimal.digits.len();
    let exact = Decimal::of(value, Some(800));
    let (kept, cut) = exact.digits.split_at(len);
    if kept != decimal.digits && cut.trim_end_matches('0') == "5" {
        let down = Decimal {
            digits: kept.to_owned(),
            ..exact
        };
        if kept.ends_with(['0', '2', '4', '6', '8']) && means_value(&down) {
            return down;
        }
    }
    decimal
}

/// Whether `decimal` lies exactly half way from the number with this binary mantissa to one of
/// its neighbours. Both are so close that their odd parts decide.
fn is_half_way(decimal: &Decimal, mantissa: u64) -> bool {
    let digits: u128 = decimal.digits.parse().unwrap_or(0);
    if digits == 0 {
        return false;
    }
    let power = decimal.power();
    // 5^24 exceeds what 17 digits or a mantissa can hold as a factor.
    if power.abs() > 24 {
        return false;
    }
    let fives = 5u128.pow(power.unsigned_abs());
    // Below a power of two the neighbour is half as far.
    let below = if mantissa.is_power_of_two() {
        4 * mantissa - 1
    } else {
        2 * mantissa - 1
    };
    let middles = [below, 2 * mantissa + 1].map(u128::from);
    if power >= 0 {
        middles.contains(&odd_part(digits * fives))
    } else {
        middles.map(|m| m * fives).contains(&odd_part(digits))
    }
}

fn odd_part(n: u128) -> u128 {
    n >> n.trailing_zeros()
}

/// Fixed notation from 1e-4 to below ten to `fixed_digits`, else `d.ddde+XX`.
fn lay_out(decimal: &Decimal, fixed_digits: i32) -> String {
    let Decimal {
        negative,
        digits,
        exponent,
    } = decimal;
    let mut out = String::with_capacity(24);
    if *negative {
        out.push('-');
    }
    if !(-4..fixed_digits).contains(exponent) {
        out.push_str(&digits[..1]);
        if digits.len() > 1 {
            out.push('.');
            out.push_str(&digits[1..]);
        }
        let sign = if *exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.abs());
    } else if *exponent < 0 {
        out.push_str("0.");
        for _ in 0..-exponent - 1 {
            out.push('0');
        }
        out.push_str(digits);
    } else {
        let whole = *exponent as usize + 1;
        if digits.len() <= whole {
            out.push_str(digits);
            for _ in digits.len()..whole {
                out.push('0');
            }
        } else {
            out.push_str(&digits[..whole]);
            out.push('.');
            out.push_str(&digits[whole..]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_the_greatest_and_equals_itself() {
        assert_eq!(compare8(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(compare8(-f64::NAN, f64::NAN), Ordering::Equal);
        assert_eq!(compare4(1.0, f32::NAN), Ordering::Less);
        assert_eq!(compare8(-0.0, 0.0), Ordering::Equal);
    }

    #[test]
    fn text_is_fixed_in_the_middle_and_scientific_outside() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (123_456_789_012_345.6, "123456789012345.6"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.25e-300, "1.25e-300"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(to_text8(value), text);
        }
        assert_eq!(to_text4(1e6), "1e+06");
        assert_eq!(to_text4(999_999.0), "999999");
        assert_eq!(to_text4(0.1), "0.1");
    }
}
