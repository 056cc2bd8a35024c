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
    let max = if WIDE { MAX_INTEGER_DIGITS } else { 16 };
    if n == 0 || n > max {
        return None;
    }
    let (words, _) = tail.as_chunks::<8>();
    let values = |word: usize, n: usize| {
        (u64::from_le_bytes(words[word]) ^ 0x3030_3030_3030_3030) & HIGHEST[n]
    };
    let last = values(2, n.min(8));
    let middle = values(1, n.saturating_sub(8).min(8));
    let first = if WIDE {
        values(0, n.saturating_sub(16).min(8))
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

/// Digits with at most one point: the digits as one number, below 10^16, and how many of them
/// follow the point. Takes 1 to 16 bytes with at least one digit; `None` for anything else.
#[inline]
pub(super) fn decimal(text: &[u8]) -> Option<(u64, usize)> {
    let n = text.len();
    if n <= 8 {
        let word = word(text)?;
        return match point(word) {
            None => Some((digits_of(word, n)?, 0)),
            Some(at) => Some((digits_of(close(word, at), n - 1)?, 7 - at)),
        };
    }
    if n > 16 {
        return None;
    }
    let (first, last) = text.split_at(n - 8);
    let (n, first, last) = (first.len(), word(first)?, word(last)?);
    if let Some(at) = point(last) {
        let last = digits_of(close(last, at), 7)?;
        return Some((digits_of(first, n)? * 10_000_000 + last, 7 - at));
    }
    let last = digits_of(last, 8)?;
    match point(first) {
        None => Some((digits_of(first, n)? * 100_000_000 + last, 0)),
        // Nothing stands before the point.
        Some(7) if n == 1 => Some((last, 8)),
        Some(at) => {
            let first = digits_of(close(first, at), n - 1)?;
            Some((first * 100_000_000 + last, 15 - at))
        }
    }
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

/// Which byte of the word is the first point, 0 to 7.
#[inline]
fn point(word: u64) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let points = word ^ (ONES * b'.' as u64);
    let found = points.wrapping_sub(ONES) & !points & (ONES << 7);
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// The word without byte `at`.
#[inline]
fn close(word: u64, at: usize) -> u64 {
    let above = u64::MAX << (8 * at);
    (word & !above) << 8 | word & above << 8
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
