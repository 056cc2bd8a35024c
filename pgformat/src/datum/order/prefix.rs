//! First bits of the normal form of types of variable width, left-aligned in 128 bits.

/// Byte strings: the first 16 bytes, zeros after the end.
#[inline]
pub(super) fn bytes(s: &[u8]) -> u128 {
    if let Some(first) = s.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    let mut first = [0; 16];
    first[..s.len()].copy_from_slice(s);
    u128::from_be_bytes(first)
}

const SIGN_MASK: u16 = 0xc000;
const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
const SPECIAL: u16 = 0xc000;
const POSITIVE_INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;
const SHORT_SIGN: u16 = 0x2000;
const SHORT_WEIGHT_SIGN: u16 = 0x0040;
const SHORT_WEIGHT_MASK: u16 = 0x003f;

const DIGIT_BITS: u32 = 14;
const WEIGHT_BITS: u32 = 17;
const MAGNITUDE_BITS: u32 = 125;

/// Numerics.
///
/// ```text
/// 3 bits    0 -infinity, 1 below zero, 2 zero, 3 above zero, 4 infinity, 5 NaN
/// 17 bits   weight + 65536      these flipped below zero
/// 14 bits   each digit (base 10000), as many as fit whole
/// ```
///
/// Stored numerics have no zero digit at either end, so weight and digits order as numbers do.
///
/// PostgreSQL: `src/backend/utils/adt/numeric.c`, `NumericShort`, `NumericLong`, `cmp_numerics`.
pub(super) fn numeric(payload: &[u8]) -> u128 {
    let word = |i: usize| u16::from_le_bytes([payload[i], payload[i + 1]]);
    let class = |c: u128| c << MAGNITUDE_BITS;
    let header = word(0);
    let (negative, weight, digits) = match header & SIGN_MASK {
        SPECIAL => {
            return class(match header & NEGATIVE_INFINITY {
                NEGATIVE_INFINITY => 0,
                POSITIVE_INFINITY => 4,
                _ => 5,
            });
        }
        SHORT => {
            let mut weight = (header & SHORT_WEIGHT_MASK) as i32;
            if header & SHORT_WEIGHT_SIGN != 0 {
                weight -= SHORT_WEIGHT_MASK as i32 + 1;
            }
            (header & SHORT_SIGN != 0, weight, &payload[2..])
        }
        sign => (sign == NEGATIVE, word(2) as i16 as i32, &payload[4..]),
    };
    if digits.len() < 2 {
        return class(2);
    }
    let mut left = MAGNITUDE_BITS - WEIGHT_BITS;
    let mut magnitude = (weight + (1 << 16)) as u128;
    for digit in digits.chunks_exact(2).take((left / DIGIT_BITS) as usize) {
        left -= DIGIT_BITS;
        magnitude = magnitude << DIGIT_BITS | u16::from_le_bytes([digit[0], digit[1]]) as u128;
    }
    magnitude <<= left;
    if negative {
        class(1) | (!magnitude & ((1 << MAGNITUDE_BITS) - 1))
    } else {
        class(3) | magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(negative: bool, weight: i16, digits: &[u16]) -> Vec<u8> {
        let mut header = SHORT | weight as u16 & (SHORT_WEIGHT_MASK | SHORT_WEIGHT_SIGN);
        if negative {
            header |= SHORT_SIGN;
        }
        let mut v = header.to_le_bytes().to_vec();
        v.extend(digits.iter().flat_map(|d| d.to_le_bytes()));
        v
    }

    #[test]
    fn numerics_order_by_class_weight_and_digits() {
        let long = |sign: u16, weight: i16, digit: u16| {
            [sign, weight as u16, digit]
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let ascending = [
            NEGATIVE_INFINITY.to_le_bytes().to_vec(),
            long(NEGATIVE, 2000, 1),
            short(true, 1, &[1]),
            short(true, 0, &[2, 5000]),
            short(true, 0, &[2]),
            short(true, -1, &[1]),
            short(false, 0, &[]),
            short(false, -2, &[9999]),
            short(false, -1, &[1]),
            short(false, 0, &[1]),
            short(false, 0, &[1, 5000]),
            short(false, 0, &[9999]),
            short(false, 1, &[1]),
            long(0, 2000, 1),
            POSITIVE_INFINITY.to_le_bytes().to_vec(),
            SPECIAL.to_le_bytes().to_vec(),
        ];
        assert!(ascending.is_sorted_by(|a, b| numeric(a) < numeric(b)));
    }

    #[test]
    fn digits_beyond_the_seventh_are_a_tie() {
        let a = short(false, 0, &[1, 1, 1, 1, 1, 1, 1, 5]);
        let b = short(false, 0, &[1, 1, 1, 1, 1, 1, 1, 6]);
        assert_eq!(numeric(&a), numeric(&b));
    }
}
