//! Decimal and hexadecimal digits to numbers, eight bytes at a time.

/// Powers of ten that fit u64.
pub(super) const POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// The most digits that [`integer`] takes: any such number fits u64.
const MAX_INTEGER_DIGITS: usize = 19;

/// The number that 1 to 19 decimal digits say; `None` for anything else, the empty slice too.
#[inline]
pub(super) fn integer(digits: &[u8]) -> Option<u64> {
    let n = digits.len();
    if n <= 8 {
        return digits_of(word(digits)?, n);
    }
    if n > MAX_INTEGER_DIGITS {
        return None;
    }
    let (rest, last) = digits.split_at(n - 8);
    let last = digits_of(word(last)?, 8)?;
    if rest.len() <= 8 {
        return Some(digits_of(word(rest)?, rest.len())? * 100_000_000 + last);
    }
    let (first, middle) = rest.split_at(rest.len() - 8);
    let first = digits_of(word(first)?, first.len())?;
    let middle = digits_of(word(middle)?, 8)?;
    Some((first * 100_000_000 + middle) * 100_000_000 + last)
}

/// The bytes that [`last_integer`] looks at.
pub(super) const TAIL_BYTES: usize = 24;

/// The number that the last `n` bytes say, as [`integer`] has it. No branch asks how many they
/// are, which is what takes the time where lengths vary. Without `WIDE` at most 16 are taken.
#[inline(always)]
pub(super) fn last_integer<const WIDE: bool>(tail: &[u8; TAIL_BYTES], n: usize) -> Option<u64> {
    let max = if WIDE { MAX_INTEGER_DIGITS } else { 16 };
    if n == 0 || n > max {
        return None;
    }
    let (words, _) = tail.as_chunks::<8>();
    let last = values_of(u64::from_le_bytes(words[2]), n.min(8));
    let middle = values_of(u64::from_le_bytes(words[1]), n.saturating_sub(8).min(8));
    let first = if WIDE {
        values_of(u64::from_le_bytes(words[0]), n.saturating_sub(16).min(8))
    } else {
        0
    };
    if not_digits(last) | not_digits(middle) | not_digits(first) != 0 {
        return None;
    }
    let mut number = number_of(middle) * 100_000_000 + number_of(last);
    if WIDE {
        number += number_of(first) * (100_000_000 * 100_000_000);
    }
    Some(number)
}

/// The most bytes of a decimal, and those that [`last_decimal`] looks at.
pub(super) const MAX_DECIMAL_BYTES: usize = 16;

/// Digits with at most one point: the digits as one number, below 10^16, and how many of them
/// follow the point. Takes 1 to 16 bytes with at least one digit; `None` for anything else.
#[inline]
pub(super) fn decimal(text: &[u8]) -> Option<(u64, usize)> {
    let n = text.len();
    if n <= 8 {
        return decimal_of(0, word(text)?, n);
    }
    let (first, last) = text.split_at(n - 8);
    decimal_of(word(first)?, word(last)?, n)
}

/// What the last `n` bytes say, as [`decimal`] has it.
#[inline(always)]
pub(super) fn last_decimal(tail: &[u8; MAX_DECIMAL_BYTES], n: usize) -> Option<(u64, usize)> {
    let (words, _) = tail.as_chunks::<8>();
    decimal_of(
        u64::from_le_bytes(words[0]),
        u64::from_le_bytes(words[1]),
        n,
    )
}

/// The same of two words. No branch asks how many bytes there are, nor where the point stands:
/// no processor could foresee it.
#[inline(always)]
fn decimal_of(first: u64, last: u64, n: usize) -> Option<(u64, usize)> {
    if n == 0 || n > MAX_DECIMAL_BYTES {
        return None;
    }
    let first = values_of(first, n.saturating_sub(8));
    let last = values_of(last, n.min(8));
    let values = u128::from(last) << 64 | u128::from(first);
    let points = u128::from(points(last)) << 64 | u128::from(points(first));
    let has_point = points != 0;
    if points & points.wrapping_sub(1) != 0 || n == usize::from(has_point) {
        return None;
    }
    let places = if has_point {
        points.leading_zeros() as usize / 8
    } else {
        0
    };
    // What stands before the point moves to its place. Without one all stands before it.
    let before = values & points.wrapping_sub(1);
    let before = if has_point { before << 8 } else { before };
    let behind = values & !(points << 8).wrapping_sub(1);
    let digits = before | behind;
    let (first, last) = (digits as u64, (digits >> 64) as u64);
    if not_digits(first) | not_digits(last) != 0 {
        return None;
    }
    Some((number_of(first) * 100_000_000 + number_of(last), places))
}

/// The `n` highest bytes of a word as what they are worth as digits; the others are zero.
#[inline(always)]
fn values_of(word: u64, n: usize) -> u64 {
    /// The `n` highest bytes of a word.
    const HIGHEST: [u64; 9] = [
        0,
        u64::MAX << 56,
        u64::MAX << 48,
        u64::MAX << 40,
        u64::MAX << 32,
        u64::MAX << 24,
        u64::MAX << 16,
        u64::MAX << 8,
        u64::MAX,
    ];
    (word ^ 0x3030_3030_3030_3030) & HIGHEST[n]
}

/// The lowest bit of each byte that is a point, among values of [`values_of`].
#[inline(always)]
fn points(values: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let others = values ^ (ONES * (b'.' ^ b'0') as u64);
    !((others & (ONES * 0x7f)).wrapping_add(ONES * 0x7f) | others) >> 7 & ONES
}

/// Up to eight bytes, so that the last of them is the highest byte of the word and the lowest
/// bytes are zero. Loads that overlap cover any length without a loop.
#[inline]
fn word(text: &[u8]) -> Option<u64> {
    let n = text.len();
    match n {
        4..=8 => {
            let first = u32::from_le_bytes(*text.first_chunk()?);
            let last = u32::from_le_bytes(*text.last_chunk()?);
            Some(u64::from(first) << (64 - 8 * n) | u64::from(last) << 32)
        }
        1..=3 => {
            let (first, middle, last) = (text[0], text[n / 2], text[n - 1]);
            Some(
                u64::from(first) << (64 - 8 * n)
                    | u64::from(middle) << (64 - 8 * n + 8 * (n / 2))
                    | u64::from(last) << 56,
            )
        }
        _ => None,
    }
}

/// The number that the `n` highest bytes of a word say, 1 to 8 digits, all below them zero.
#[inline]
fn digits_of(word: u64, n: usize) -> Option<u64> {
    if n == 0 {
        return None;
    }
    let values = word ^ 0x3030_3030_3030_3030 << (64 - 8 * n);
    if not_digits(values) != 0 {
        return None;
    }
    Some(number_of(values))
}

/// Not zero where a byte is above 9.
#[inline(always)]
fn not_digits(values: u64) -> u64 {
    (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080
}

/// The number of eight digits, of which the lowest byte is the first.
#[inline(always)]
fn number_of(values: u64) -> u64 {
    // Pairs, then fours, then all eight.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let mask = 0x0000_00ff_0000_00ff;
    let high = (pairs & mask).wrapping_mul(0x000f_4240_0000_0064);
    let low = (pairs >> 16 & mask).wrapping_mul(0x0000_2710_0000_0001);
    high.wrapping_add(low) >> 32
}

/// What a byte is worth as a hexadecimal digit; 0xff for none.
pub(super) const HEX: [u8; 256] = {
    let mut table = [0xffu8; 256];
    let mut i = 0;
    while i < 10 {
        table[b'0' as usize + i] = i as u8;
        i += 1;
    }
    let mut i = 0;
    while i < 6 {
        table[b'a' as usize + i] = 10 + i as u8;
        table[b'A' as usize + i] = 10 + i as u8;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_an_integer_is_read() {
        let text = b"9876543210987654321";
        for n in 1..=19 {
            let expected = std::str::from_utf8(&text[..n]).unwrap().parse().ok();
            assert_eq!(integer(&text[..n]), expected);
        }
        assert_eq!(integer(b""), None);
        assert_eq!(integer(b"12345678901234567890"), None);
    }

    #[test]
    fn the_last_bytes_say_the_same_whatever_stands_before_them() {
        for n in 0..=22 {
            for at in 0..=n {
                for byte in [b'7', b'-', b':', b'/', 0, 0xff] {
                    let mut tail = *b",12-4x:9876543210987654/";
                    tail[24 - n..].copy_from_slice(&b"9876543210987654321098"[..n]);
                    if at < n {
                        tail[24 - n + at] = byte;
                    }
                    let expected = integer(&tail[24 - n..]);
                    assert_eq!(last_integer::<true>(&tail, n), expected, "{n} {at} {byte}");
                    let expected = expected.filter(|_| n <= 16);
                    assert_eq!(last_integer::<false>(&tail, n), expected, "{n} {at} {byte}");
                }
            }
        }
    }

    #[test]
    fn a_point_may_stand_anywhere_once() {
        let digits = "987654321098765";
        for n in 1..=15 {
            for at in 0..=n {
                let text = format!("{}.{}", &digits[..at], &digits[at..n]);
                let number = digits[..n].parse().unwrap();
                assert_eq!(decimal(text.as_bytes()), Some((number, n - at)), "{text}");
                for second in 0..=n.min(14) {
                    let mut text = text.clone();
                    text.insert(second, '.');
                    assert_eq!(decimal(text.as_bytes()), None, "{text}");
                }
            }
        }
        assert_eq!(
            decimal(b"9876543210987654"),
            Some((9_876_543_210_987_654, 0))
        );
        assert_eq!(decimal(b"."), None);
        assert_eq!(decimal(b""), None);
    }

    #[test]
    fn any_other_byte_at_any_place_is_refused() {
        for n in 1..=19 {
            for at in 0..n {
                for byte in (0..=255u8).filter(|b| !b.is_ascii_digit()) {
                    let mut text = vec![b'9'; n];
                    text[at] = byte;
                    assert_eq!(integer(&text), None, "{text:?}");
                    if byte != b'.' {
                        assert_eq!(decimal(&text), None, "{text:?}");
                    }
                }
            }
        }
    }
}
