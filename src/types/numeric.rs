//! numeric.
//!
//! Plain decimals of up to 16 bytes are turned into digits of base 10000 at once; all else goes
//! the server's way digit by digit.
//!
//! PostgreSQL: `src/backend/utils/adt/numeric.c`, `numeric_in`, `set_var_from_str`,
//! `set_var_from_non_decimal_integer_str`, `apply_typmod`, `round_var`, `make_result`.

use super::digits::{self, HEX, POWERS_OF_TEN};
use super::receive::Message;
use super::wording::{invalid_syntax, is_space, skip_spaces};
use crate::error::ValueError;
use crate::sys::decimal::{self, Groups};
use byteorder::{BigEndian, ByteOrder};
use pgformat::datum::numeric::{
    DEC_DIGITS, DSCALE_MAX, Header, INFINITY, NAN, NBASE, NEGATIVE_INFINITY, WEIGHT_MAX,
};
use pgformat::datum::varlena;
use pgformat::version::MajorVersion;
use std::ops::Range;

/// numeric(precision, scale); scale may be negative or above precision from 15 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Typmod {
    precision: i32,
    scale: i32,
}

impl Typmod {
    /// From a type modifier; `None` when it sets no limit.
    pub(super) fn new(typmod: i32) -> Option<Typmod> {
        let packed = typmod - varlena::HEADER_BYTES as i32;
        (typmod >= varlena::HEADER_BYTES as i32).then(|| Typmod {
            precision: packed >> 16 & 0xffff,
            // Eleven bits with a sign; before 15 the scale is never negative and fits as well.
            scale: ((packed & 0x7ff) ^ 1024) - 1024,
        })
    }

    /// The scale that a number of so many places is stored with, if it needs no rounding and is
    /// not too large. `number` is its digits without the point.
    #[inline]
    fn admits(self, number: u64, places: usize) -> Option<i32> {
        if places as i32 > self.scale {
            return None;
        }
        // The number has `places` digits more than what stands before its point.
        let max_digits = usize::try_from(self.max_digits()).ok()? + places;
        if max_digits < POWERS_OF_TEN.len() && number >= POWERS_OF_TEN[max_digits] {
            return None;
        }
        Some(self.scale)
    }

    /// The same, looking at no more than the length of what was written: `None` when that does
    /// not decide.
    #[inline]
    fn surely_admits(typmod: Option<Typmod>, len: usize, places: usize) -> Option<i32> {
        let places_and_point = places + usize::from(places > 0);
        let Some(typmod) = typmod else {
            return Some(places as i32);
        };
        let whole = (len - places_and_point) as i32;
        (places as i32 <= typmod.scale && whole <= typmod.max_digits()).then_some(typmod.scale)
    }

    /// The most decimal digits before the point.
    fn max_digits(self) -> i32 {
        self.precision - self.scale
    }
}

/// Storage that is kept from value to value.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    decimal: Vec<u8>,
    digits: Vec<u16>,
    out: Vec<u8>,
}

const TEN_TO_8: u64 = 100_000_000;
/// Digits of base 10000 that a plain decimal has at most.
const MAX_PLAIN_DIGITS: i32 = 5;

/// Digits of base 10000 that a [`Plain`] has room for.
const MAX_SHORT_DIGITS: usize = 7;

/// A payload that was built at once.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    /// Zeros behind the payload.
    pub(super) bytes: [u8; 16],
    pub(super) len: usize,
}

impl Plain {
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// [`plain_at`] of all of `field`.
#[inline]
pub(super) fn plain(field: &[u8], typmod: Option<Typmod>) -> Option<Plain> {
    plain_at(field, 0..field.len(), typmod)
}

/// The payload of `[-]ddd[.ddd]` in `field` of `data`, if that is short and fits the type
/// without rounding; else `None`, which says nothing of the field.
#[inline(always)]
pub(super) fn plain_at(data: &[u8], field: Range<usize>, typmod: Option<Typmod>) -> Option<Plain> {
    let negative = data[field.clone()].first() == Some(&b'-');
    let len = field.len() - usize::from(negative);
    let tail = data[..field.end].last_chunk();
    if let Some(tail) = tail
        && let Some(Groups { groups, places }) = decimal::last_groups(tail, len)
        && let Some(dscale) = Typmod::surely_admits(typmod, len, places)
    {
        let weight = 3 - places.div_ceil(DEC_DIGITS) as i32;
        return form(negative, weight, dscale, u128::from(groups));
    }
    let (number, places) = match tail {
        Some(tail) => digits::last_decimal(tail, len)?,
        None => digits::decimal(&data[field.end - len..field.end])?,
    };
    let dscale = match typmod {
        Some(typmod) => typmod.admits(number, places)?,
        None => places as i32,
    };

    // Zeros at the end align the point to base 10000: at most 16 digits become 19.
    let aligned = number * POWERS_OF_TEN[places.wrapping_neg() % DEC_DIGITS];
    let (first, middle, last) = (
        aligned / (TEN_TO_8 * TEN_TO_8),
        (aligned / TEN_TO_8 % TEN_TO_8) as u32,
        (aligned % TEN_TO_8) as u32,
    );
    let base = u32::from(NBASE);
    let digits = u128::from(first)
        | u128::from(middle / base) << 16
        | u128::from(middle % base) << 32
        | u128::from(last / base) << 48
        | u128::from(last % base) << 64;
    let weight = MAX_PLAIN_DIGITS - 1 - places.div_ceil(DEC_DIGITS) as i32;
    form(negative, weight, dscale, digits)
}

/// The payload of digits of base 10000, the most significant one lowest and of this weight.
#[inline(always)]
fn form(negative: bool, weight: i32, dscale: i32, digits: u128) -> Option<Plain> {
    // What is zero at either end is not stored; no branch could predict how much that is.
    let (header, digits) = if digits == 0 {
        (Header::new(false, 0, dscale)?, 0)
    } else {
        let zeros = digits.trailing_zeros() / 16;
        (
            Header::new(negative, weight - zeros as i32, dscale)?,
            digits >> (zeros * 16),
        )
    };
    let &[a, b] = header.as_bytes() else {
        return None;
    };
    let bits = 128 - digits.leading_zeros() as usize;
    Some(Plain {
        bytes: (digits << 16 | u128::from(u16::from_le_bytes([a, b]))).to_le_bytes(),
        len: 2 + bits.div_ceil(16) * 2,
    })
}

/// Reads any numeric; the payload lies in the buffers or is a constant.
pub(super) fn numeric_in<'a>(
    field: &[u8],
    typmod: Option<Typmod>,
    version: MajorVersion,
    buffers: &'a mut Buffers,
) -> Result<&'a [u8], Box<ValueError>> {
    let text = skip_spaces(field);
    let syntax = || invalid_syntax("numeric", field);
    if let Some((special, rest)) = special(text) {
        if !rest.iter().all(|&b| is_space(b)) {
            return Err(syntax());
        }
        return write_special(special, typmod, &mut buffers.out);
    }
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let base = match unsigned {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => 10,
    };
    let parsed = if base != 10 && version.at_least(16) {
        parse_base(&unsigned[2..], base, &mut buffers.digits)
    } else {
        parse_decimal(unsigned, version, buffers)
    };
    let (mut number, rest) = parsed.map_err(|fault| match fault {
        Fault::Syntax => syntax(),
        Fault::Overflow => format_overflow(),
    })?;
    if !rest.iter().all(|&b| is_space(b)) {
        return Err(syntax());
    }
    number.negative = negative;
    number.finish(typmod, buffers)
}

/// Reads a numeric in binary form; the payload lies in the buffers.
///
/// PostgreSQL: `numeric_recv`.
pub(super) fn numeric_recv<'a>(
    message: &mut Message<'_>,
    typmod: Option<Typmod>,
    buffers: &'a mut Buffers,
) -> Result<&'a [u8], Box<ValueError>> {
    let invalid = |what: &str| {
        let message = format!("invalid {what} in external \"numeric\" value");
        ValueError::new("22P03", message)
    };
    let count = message.int2()?.cast_unsigned();
    let weight = message.int2()?;
    let sign = message.int2()?.cast_unsigned();
    if !SIGNS.contains(&sign) {
        return Err(invalid("sign"));
    }
    let dscale = message.int2()?;
    if !(0..=DSCALE_MAX).contains(&i32::from(dscale)) {
        return Err(invalid("scale"));
    }
    buffers.digits.clear();
    buffers.digits.push(0);
    for _ in 0..count {
        let digit = message.int2()?.cast_unsigned();
        if digit >= NBASE {
            return Err(invalid("digit"));
        }
        buffers.digits.push(digit);
    }
    let negative = match sign {
        POSITIVE => false,
        NEGATIVE => true,
        // A special value's payload is its sign.
        special => return write_special(special.to_le_bytes(), typmod, &mut buffers.out),
    };
    let mut number = Number {
        negative,
        weight: i32::from(weight),
        dscale: i32::from(dscale),
        start: 1,
    };
    number.truncate(&mut buffers.digits);
    number.strip(&mut buffers.digits);
    number.finish(typmod, buffers)
}

/// The payload of a short number in binary form that fits the type as it stands; else `None`,
/// which says nothing of the field.
#[inline]
pub(super) fn plain_recv(field: &[u8], typmod: Option<Typmod>) -> Option<Plain> {
    let (header, wire) = field.split_first_chunk::<8>()?;
    let word = |at: usize| BigEndian::read_i16(&header[at..at + 2]);
    let (weight, sign) = (i32::from(word(2)), word(4).cast_unsigned());
    let dscale = i32::from(word(6));
    let count = usize::try_from(word(0)).ok()?;
    if !(1..=MAX_SHORT_DIGITS).contains(&count) || wire.len() != count * 2 || sign & !NEGATIVE != 0
    {
        return None;
    }
    let header = Header::new(sign == NEGATIVE, weight, dscale)?;
    let &[a, b] = header.as_bytes() else {
        return None;
    };
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[a, b]);
    let mut highest = 0;
    let (mut first, mut last) = (0, 0);
    let places = bytes[2..].chunks_exact_mut(2).zip(wire.chunks_exact(2));
    for (i, (place, digit)) in places.enumerate() {
        last = BigEndian::read_u16(digit);
        first = if i == 0 { last } else { first };
        highest = highest.max(last);
        place.copy_from_slice(&last.to_le_bytes());
    }
    if highest >= NBASE || first == 0 || last == 0 {
        return None;
    }
    // Decimal digits of the last one that are not to be shown.
    let hidden = (count as i32 - 1 - weight) * DEC_DIGITS as i32 - dscale;
    let unit = match hidden {
        ..=0 => 1,
        1 => 10,
        2 => 100,
        3 => 1000,
        _ => return None,
    };
    if last % unit != 0 {
        return None;
    }
    if let Some(typmod) = typmod
        && (dscale != typmod.scale
            || weight * DEC_DIGITS as i32 + decimal_digits(first) > typmod.max_digits())
    {
        return None;
    }
    Some(Plain {
        bytes,
        len: 2 + count * 2,
    })
}

/// How many decimal digits a digit has that is not zero.
#[inline]
fn decimal_digits(digit: u16) -> i32 {
    match digit {
        ..10 => 1,
        10..100 => 2,
        100..1000 => 3,
        _ => 4,
    }
}

/// The signs of the binary form: of finite numbers, then of NaN and the infinities.
const POSITIVE: u16 = 0;
const NEGATIVE: u16 = 0x4000;
const SIGNS: [u16; 5] = [
    POSITIVE,
    NEGATIVE,
    u16::from_le_bytes(NAN),
    u16::from_le_bytes(INFINITY),
    u16::from_le_bytes(NEGATIVE_INFINITY),
];

/// NaN fits every type, an infinity only one without a limit.
fn write_special(
    special: [u8; 2],
    typmod: Option<Typmod>,
    out: &mut Vec<u8>,
) -> Result<&[u8], Box<ValueError>> {
    if let (false, Some(Typmod { precision, scale })) = (special == NAN, typmod) {
        return Err(field_overflow().with_detail(format!(
            "A field with precision {precision}, scale {scale} cannot hold an infinite value."
        )));
    }
    out.clear();
    out.extend_from_slice(&special);
    Ok(out)
}

enum Fault {
    Syntax,
    Overflow,
}

#[cold]
fn format_overflow() -> Box<ValueError> {
    ValueError::new("22003", "value overflows numeric format")
}

#[cold]
fn field_overflow() -> Box<ValueError> {
    ValueError::new("22003", "numeric field overflow")
}

/// NaN or an infinity at the front of the text, and what follows. NaN takes no sign.
fn special(text: &[u8]) -> Option<([u8; 2], &[u8])> {
    const WORDS: [(&[u8], [u8; 2]); 7] = [
        (b"nan", NAN),
        (b"infinity", INFINITY),
        (b"+infinity", INFINITY),
        (b"-infinity", NEGATIVE_INFINITY),
        (b"inf", INFINITY),
        (b"+inf", INFINITY),
        (b"-inf", NEGATIVE_INFINITY),
    ];
    WORDS.into_iter().find_map(|(word, payload)| {
        let (start, rest) = text.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then_some((payload, rest))
    })
}

/// A number whose digits lie in a buffer, from `start` on; before them is room for a carry.
struct Number {
    negative: bool,
    weight: i32,
    dscale: i32,
    start: usize,
}

/// Digits, at most one point among or before them, an exponent.
fn parse_decimal<'t>(
    text: &'t [u8],
    version: MajorVersion,
    buffers: &mut Buffers,
) -> Result<(Number, &'t [u8]), Fault> {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let underscores = version.at_least(16);
    let decimal = &mut buffers.decimal;
    decimal.clear();
    let mut at = 0;
    let mut point = None;
    if text.first() == Some(&b'.') {
        point = Some(0);
        at = 1;
    }
    if !is_digit(at) {
        return Err(Fault::Syntax);
    }
    loop {
        match text.get(at) {
            Some(digit @ b'0'..=b'9') => decimal.push(digit - b'0'),
            Some(b'.') => {
                if point.is_some() || underscores && text.get(at + 1) == Some(&b'_') {
                    return Err(Fault::Syntax);
                }
                point = Some(decimal.len());
            }
            Some(b'_') if underscores => {
                if !is_digit(at + 1) {
                    return Err(Fault::Syntax);
                }
            }
            _ => break,
        }
        at += 1;
    }
    let whole = point.unwrap_or(decimal.len());
    let mut dweight = whole as i64 - 1;
    let mut dscale = (decimal.len() - whole) as i64;
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let (exponent, rest) = parse_exponent(&text[at + 1..], underscores)?;
        at = text.len() - rest.len();
        dweight += exponent;
        dscale = (dscale - exponent).max(0);
    }

    // Zeros before the first digit align it to base 10000.
    let weight = dweight.div_euclid(DEC_DIGITS as i64);
    let offset = DEC_DIGITS as i64 - 1 - dweight.rem_euclid(DEC_DIGITS as i64);
    let digits = &mut buffers.digits;
    digits.clear();
    digits.push(0);
    let mut digit = 0u16;
    let mut filled = offset as usize;
    for &d in decimal.iter() {
        digit = digit * 10 + u16::from(d);
        filled += 1;
        if filled == DEC_DIGITS {
            digits.push(digit);
            digit = 0;
            filled = 0;
        }
    }
    if filled > 0 {
        digits.push(digit * 10u16.pow((DEC_DIGITS - filled) as u32));
    }
    let mut number = Number {
        negative: false,
        weight: weight as i32,
        dscale: dscale as i32,
        start: 1,
    };
    number.strip(digits);
    Ok((number, &text[at..]))
}

/// What follows the letter e. Up to 15 it is what strtol takes, white space before it too.
fn parse_exponent(text: &[u8], underscores: bool) -> Result<(i64, &[u8]), Fault> {
    const LIMIT: i64 = i32::MAX as i64 / 2;
    let text = if underscores { text } else { skip_spaces(text) };
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let is_digit = |at: usize| digits.get(at).is_some_and(u8::is_ascii_digit);
    if !is_digit(0) {
        return Err(Fault::Syntax);
    }
    let mut exponent = 0i64;
    let mut at = 0;
    loop {
        match digits.get(at) {
            Some(digit @ b'0'..=b'9') => {
                exponent = exponent
                    .saturating_mul(10)
                    .saturating_add(i64::from(digit - b'0'));
                if underscores && exponent > LIMIT {
                    return Err(Fault::Overflow);
                }
            }
            Some(b'_') if underscores => {
                if !is_digit(at + 1) {
                    return Err(Fault::Syntax);
                }
            }
            _ => break,
        }
        at += 1;
    }
    if !underscores && exponent >= LIMIT {
        return Err(Fault::Overflow);
    }
    Ok((if negative { -exponent } else { exponent }, &digits[at..]))
}

/// A hexadecimal, octal or binary integer, gathered in groups that fit 63 bits; the server looks
/// for overflow after each of them.
fn parse_base<'t>(
    text: &'t [u8],
    base: u64,
    digits: &mut Vec<u16>,
) -> Result<(Number, &'t [u8]), Fault> {
    let digit_of = |at: usize| {
        text.get(at)
            .map(|&b| u64::from(HEX[usize::from(b)]))
            .filter(|&d| d < base)
    };
    // The least significant digit first, until the end.
    digits.clear();
    let mut add_group = |shift: u32, addend: u64| {
        // In two steps, so that 64 bits hold a digit's product and the carry.
        shift_left(digits, shift / 2, 0);
        shift_left(digits, shift - shift / 2, addend);
        if digits.len() as i64 - 1 > i64::from(WEIGHT_MAX) {
            return Err(Fault::Overflow);
        }
        Ok(())
    };
    let mut at = 0;
    let mut group = 0;
    let mut factor = 1u64;
    loop {
        if let Some(digit) = digit_of(at) {
            if factor > i64::MAX as u64 / base {
                add_group(factor.trailing_zeros(), group)?;
                group = 0;
                factor = 1;
            }
            group = group * base + digit;
            factor *= base;
        } else if text.get(at) == Some(&b'_') {
            if digit_of(at + 1).is_none() {
                return Err(Fault::Syntax);
            }
        } else {
            break;
        }
        at += 1;
    }
    if at == 0 {
        return Err(Fault::Syntax);
    }
    add_group(factor.trailing_zeros(), group)?;
    let mut number = Number {
        negative: false,
        weight: digits.len() as i32 - 1,
        dscale: 0,
        start: 1,
    };
    digits.push(0);
    digits.reverse();
    number.strip(digits);
    Ok((number, &text[at..]))
}

/// Multiplies a number, least digit first, by two to `bits` and adds.
fn shift_left(digits: &mut Vec<u16>, bits: u32, addend: u64) {
    let nbase = u64::from(NBASE);
    let mut carry = addend;
    for digit in digits.iter_mut() {
        let n = (u64::from(*digit) << bits) + carry;
        *digit = (n % nbase) as u16;
        carry = n / nbase;
    }
    while carry > 0 {
        digits.push((carry % nbase) as u16);
        carry /= nbase;
    }
}

impl Number {
    /// Takes zeros off both ends.
    fn strip(&mut self, digits: &mut Vec<u16>) {
        while digits.get(self.start) == Some(&0) {
            self.start += 1;
            self.weight = self.weight.wrapping_sub(1);
        }
        while digits.len() > self.start && digits[digits.len() - 1] == 0 {
            digits.pop();
        }
        if digits.len() == self.start {
            self.weight = 0;
        }
    }

    /// Fits the number to the type and writes its payload.
    fn finish(
        mut self,
        typmod: Option<Typmod>,
        buffers: &mut Buffers,
    ) -> Result<&[u8], Box<ValueError>> {
        if let Some(typmod) = typmod {
            self.apply(typmod, &mut buffers.digits)?;
        }
        self.write(&buffers.digits, &mut buffers.out)?;
        Ok(&buffers.out)
    }

    /// Cuts what stands behind the last decimal digit that is shown.
    fn truncate(&self, digits: &mut Vec<u16>) {
        let keep = (self.weight + 1) * DEC_DIGITS as i32 + self.dscale;
        let Ok(keep) = usize::try_from(keep) else {
            digits.truncate(self.start);
            return;
        };
        digits.truncate(self.start + keep.div_ceil(DEC_DIGITS));
        let shown_of_last = keep % DEC_DIGITS;
        if shown_of_last > 0
            && digits.len() == self.start + keep.div_ceil(DEC_DIGITS)
            && let Some(last) = digits.last_mut()
        {
            *last -= *last % 10u16.pow((DEC_DIGITS - shown_of_last) as u32);
        }
    }

    /// Rounds to the type's scale and checks its precision.
    fn apply(&mut self, typmod: Typmod, digits: &mut Vec<u16>) -> Result<(), Box<ValueError>> {
        self.round(typmod.scale, digits);
        self.dscale = typmod.scale.max(0);
        self.strip(digits);
        let Some(&first) = digits.get(self.start) else {
            return Ok(());
        };
        let max_digits = typmod.max_digits();
        let whole_digits =
            i64::from(self.weight) * DEC_DIGITS as i64 + i64::from(decimal_digits(first));
        if whole_digits > i64::from(max_digits) {
            let Typmod { precision, scale } = typmod;
            let limit = match max_digits {
                0 => "1".to_owned(),
                n => format!("10^{n}"),
            };
            return Err(field_overflow().with_detail(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute \
                 value less than {limit}."
            )));
        }
        Ok(())
    }

    /// Rounds half away from zero to `scale` decimal digits after the point.
    fn round(&mut self, scale: i32, digits: &mut Vec<u16>) {
        // Decimal digits that stay, counted from the first digit of base 10000.
        let keep = (i64::from(self.weight) + 1) * DEC_DIGITS as i64 + i64::from(scale);
        let Ok(keep) = usize::try_from(keep) else {
            digits.truncate(self.start);
            self.weight = 0;
            return;
        };
        let whole = self.start + keep / DEC_DIGITS;
        let partial = keep % DEC_DIGITS;
        let Some(&at_cut) = digits.get(whole) else {
            return;
        };
        digits.truncate(whole);
        let unit = 10u16.pow((DEC_DIGITS - partial) as u32);
        let cut = at_cut % unit;
        let mut kept = at_cut - cut;
        let mut carry = 0;
        if cut >= unit / 2 {
            kept += unit;
        }
        if kept >= NBASE {
            kept -= NBASE;
            carry = 1;
        }
        if partial > 0 {
            digits.push(kept);
        }
        let mut at = whole;
        while carry > 0 {
            // The place before the first digit is zero, so that a carry ends there.
            at -= 1;
            digits[at] += 1;
            if digits[at] < NBASE {
                carry = 0;
            } else {
                digits[at] = 0;
            }
        }
        if at < self.start {
            self.start = at;
            self.weight += 1;
        }
    }

    fn write(&self, digits: &[u16], out: &mut Vec<u8>) -> Result<(), Box<ValueError>> {
        let digits = &digits[self.start..];
        let (negative, weight) = if digits.is_empty() {
            (false, 0)
        } else {
            (self.negative, self.weight)
        };
        let header = Header::new(negative, weight, self.dscale).ok_or_else(format_overflow)?;
        out.clear();
        out.extend_from_slice(header.as_bytes());
        out.extend(digits.iter().flat_map(|d| d.to_le_bytes()));
        Ok(())
    }
}
