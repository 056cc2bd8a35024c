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

/// The most digits that [`decimal`] takes.
pub(super) const MAX_DECIMAL_DIGITS: usize = 16;

/// The number that 1 to 16 decimal digits say; `None` for anything else, the empty slice too.
#[inline]
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let n = digits.len();
    if n <= 8 {
        return decimal8(digits);
    }
    if n > MAX_DECIMAL_DIGITS {
        return None;
    }
    let (high, low) = digits.split_at(n - 8);
    Some(decimal8(high)? * 100_000_000 + decimal8(low)?)
}

/// The number that 1 to 8 decimal digits say.
#[inline]
fn decimal8(digits: &[u8]) -> Option<u64> {
    let n = digits.len();
    // The digits end at the last byte of a word; the bytes before them are zero. Two loads that
    // overlap cover any length without a loop.
    let word = match n {
        4..=8 => {
            let first = u32::from_le_bytes(*digits.first_chunk()?);
            let last = u32::from_le_bytes(*digits.last_chunk()?);
            u64::from(first) << (64 - 8 * n) | u64::from(last) << 32
        }
        2..=3 => {
            let first = u16::from_le_bytes(*digits.first_chunk()?);
            let last = u16::from_le_bytes(*digits.last_chunk()?);
            u64::from(first) << (64 - 8 * n) | u64::from(last) << 48
        }
        1 => u64::from(digits[0]) << 56,
        _ => return None,
    };
    let values = word ^ 0x3030_3030_3030_3030 << (64 - 8 * n);
    if (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    // Pairs, then fours, then all eight.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let mask = 0x0000_00ff_0000_00ff;
    let high = (pairs & mask).wrapping_mul(0x000f_4240_0000_0064);
    let low = (pairs >> 16 & mask).wrapping_mul(0x0000_2710_0000_0001);
    Some(high.wrapping_add(low) >> 32)
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
    fn every_length_up_to_sixteen_is_read() {
        let text = b"9876543210987654";
        for n in 1..=16 {
            let expected = std::str::from_utf8(&text[..n]).unwrap().parse().ok();
            assert_eq!(decimal(&text[..n]), expected);
        }
        assert_eq!(decimal(b""), None);
        assert_eq!(decimal(b"12345678901234567"), None);
    }

    #[test]
    fn any_other_byte_at_any_place_is_refused() {
        for n in 1..=16 {
            for at in 0..n {
                for byte in (0..=255u8).filter(|b| !b.is_ascii_digit()) {
                    let mut text = vec![b'9'; n];
                    text[at] = byte;
                    assert_eq!(decimal(&text), None, "{text:?}");
                }
            }
        }
    }
}
