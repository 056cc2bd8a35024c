//! Short decimals to digits of base 10000, and integers, sixteen bytes at a time.
//!
//! ```text
//! bytes     ....-1234567.89      the field ends where the sixteen bytes end
//! aligned   0000012345678900     a table tells how bytes move so that the point falls between
//! groups    0 | 123 | 4567 | 8900    two groups of four
//! ```

/// The bytes that [`last_groups`] looks at.
pub const TAIL_BYTES: usize = 16;
/// Any number of so many digits fits u64.
const MAX_INTEGER_DIGITS: usize = 19;
/// Decimal digits of a group.
const GROUP_DIGITS: usize = 4;

/// What `[ddd][.ddd]` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// Four digits of base 10000 of 16 bits each, the most significant one lowest. The decimal
    /// point stands before the last `places.div_ceil(4)` of them.
    pub groups: u64,
    /// Decimal digits behind the point.
    pub places: usize,
}

/// The number that the last `n` bytes say: digits, with at most one point. `None` says nothing
/// of them: there is something else, the aligned number needs more than four groups, or the
/// processor lacks what it takes.
#[inline]
pub fn last_groups(tail: &[u8; TAIL_BYTES], n: usize) -> Option<Groups> {
    #[cfg(target_arch = "x86_64")]
    if n <= TAIL_BYTES
        && std::arch::is_x86_feature_detected!("sse4.1")
        && std::arch::is_x86_feature_detected!("lzcnt")
    {
        // SAFETY: the processor has what the function asks for.
        let (groups, places) = unsafe { x86::last_groups(tail, n) };
        let places = places as usize;
        return (places < TAIL_BYTES).then_some(Groups { groups, places });
    }
    let _ = (tail, n);
    None
}

/// The bytes that [`last_integer`] looks at.
pub const INTEGER_TAIL_BYTES: usize = 24;

/// The number that the last `n` bytes say, up to 16 or, with `WIDE`, 19 digits. `None` says
/// nothing of them.
#[inline]
pub fn last_integer<const WIDE: bool>(tail: &[u8; INTEGER_TAIL_BYTES], n: usize) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.1") {
        // SAFETY: the processor has what the function asks for.
        let (number, is_one) = unsafe { x86::last_integer::<WIDE>(tail, n) };
        return is_one.then_some(number);
    }
    let _ = (tail, n);
    None
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{GROUP_DIGITS, INTEGER_TAIL_BYTES, MAX_INTEGER_DIGITS, TAIL_BYTES};
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_madd_epi16,
        _mm_maddubs_epi16, _mm_max_epu8, _mm_movemask_epi8, _mm_packus_epi32, _mm_set1_epi8,
        _mm_set1_epi16, _mm_set1_epi32, _mm_shuffle_epi8, _mm_sub_epi8,
    };

    /// Zeros, then ones: the 16 bytes from `n` on keep the last `n` bytes of a register.
    const KEEP: [u8; 2 * TAIL_BYTES] = {
        let mut keep = [0; 2 * TAIL_BYTES];
        let mut i = TAIL_BYTES;
        while i < keep.len() {
            keep[i] = 0xff;
            i += 1;
        }
        keep
    };

    /// A byte that becomes zero.
    const ZERO: u8 = 0x80;

    /// For each number of places which byte comes where; the last for a number without a point.
    const ALIGN: [[u8; TAIL_BYTES]; TAIL_BYTES + 1] = {
        let mut table = [[ZERO; TAIL_BYTES]; TAIL_BYTES + 1];
        let mut row = 0;
        while row <= TAIL_BYTES {
            let (places, point) = if row < TAIL_BYTES { (row, 1) } else { (0, 0) };
            // The digits before the point end here, and so many bytes before the end.
            let whole_end = TAIL_BYTES - places.div_ceil(GROUP_DIGITS) * GROUP_DIGITS;
            let mut i = 0;
            while i < whole_end {
                let from_end = whole_end - i + places + point;
                if from_end <= TAIL_BYTES {
                    table[row][i] = (TAIL_BYTES - from_end) as u8;
                }
                i += 1;
            }
            let mut i = 0;
            while i < places {
                table[row][whole_end + i] = (TAIL_BYTES - places + i) as u8;
                i += 1;
            }
            row += 1;
        }
        table
    };

    /// How many digits may stand before the point, by the number of places.
    const MAX_WHOLE: [u8; TAIL_BYTES + 1] = {
        let mut max = [0; TAIL_BYTES + 1];
        let mut row = 0;
        while row <= TAIL_BYTES {
            let places = row % TAIL_BYTES;
            max[row] = (TAIL_BYTES - places.div_ceil(GROUP_DIGITS) * GROUP_DIGITS) as u8;
            row += 1;
        }
        max
    };

    /// The answer that is none.
    const NONE: (u64, u32) = (0, u32::MAX);

    #[inline]
    fn load(bytes: &[u8; TAIL_BYTES]) -> __m128i {
        // SAFETY: 16 bytes are there to be read, at any alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// The last `n` bytes, which are at most 16, as what they are worth as digits; zeros before
    /// them.
    #[target_feature(enable = "sse4.1")]
    #[inline]
    fn values(tail: &[u8; TAIL_BYTES], n: usize) -> __m128i {
        let keep = KEEP[n..].first_chunk().expect("at most 16 bytes");
        _mm_and_si128(
            _mm_sub_epi8(load(tail), _mm_set1_epi8(b'0' as i8)),
            load(keep),
        )
    }

    /// A bit for each byte that is above 9.
    #[target_feature(enable = "sse4.1")]
    #[inline]
    fn not_digits(values: __m128i) -> u32 {
        let ten = _mm_set1_epi8(10);
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(values, ten), values)) as u32
    }

    /// Sixteen digits as four digits of base 10000, of 16 bits each, twice.
    #[target_feature(enable = "sse4.1")]
    #[inline]
    fn groups(digits: __m128i) -> __m128i {
        let pairs = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010a));
        let groups = _mm_madd_epi16(pairs, _mm_set1_epi32(0x0001_0064));
        _mm_packus_epi32(groups, groups)
    }

    /// The number, and whether there is one.
    #[target_feature(enable = "sse4.1")]
    #[inline]
    pub(super) fn last_integer<const WIDE: bool>(
        tail: &[u8; INTEGER_TAIL_BYTES],
        n: usize,
    ) -> (u64, bool) {
        let max = if WIDE { MAX_INTEGER_DIGITS } else { TAIL_BYTES };
        let (Some(last), true) = (tail.last_chunk(), n.wrapping_sub(1) < max) else {
            return (0, false);
        };
        let values = values(last, n.min(TAIL_BYTES));
        // Two numbers of eight digits, the first one in the lower half.
        let halves = _mm_madd_epi16(groups(values), _mm_set1_epi32(0x0001_2710));
        let halves = _mm_cvtsi128_si64(halves) as u64;
        let mut number = (halves & 0xffff_ffff) * 100_000_000 + (halves >> 32);
        let mut bad = not_digits(values);
        if WIDE {
            // Up to three more.
            let more = n.saturating_sub(TAIL_BYTES);
            let keep = u32::MAX.checked_shl(8 * (4 - more as u32)).unwrap_or(0);
            let more = u32::from_le_bytes([tail[4], tail[5], tail[6], tail[7]]);
            let more = (more ^ 0x3030_3030) & keep;
            bad |= (more | more.wrapping_add(0x7676_7676)) & 0x8080_8080;
            let more = (more >> 8 & 0xff) * 100 + (more >> 16 & 0xff) * 10 + (more >> 24);
            // Bytes that are no digits may say anything; then it is not looked at.
            let more = u64::from(more).wrapping_mul(100_000_000 * 100_000_000);
            number = number.wrapping_add(more);
        }
        (number, bad == 0)
    }

    /// The groups and the places; `n` is at most 16.
    #[target_feature(enable = "sse4.1,lzcnt")]
    #[inline]
    pub(super) fn last_groups(tail: &[u8; TAIL_BYTES], n: usize) -> (u64, u32) {
        let values = values(tail, n);
        let point = b'.'.wrapping_sub(b'0') as i8;
        let points = _mm_movemask_epi8(_mm_cmpeq_epi8(values, _mm_set1_epi8(point))) as u32;
        let others = not_digits(values);
        let row = points.leading_zeros() as usize - TAIL_BYTES;
        let has_point = usize::from(row < TAIL_BYTES);
        let places = row % TAIL_BYTES;
        let digits = n.wrapping_sub(has_point);
        let whole = digits.wrapping_sub(places);
        if others != points
            || points & points.wrapping_sub(1) != 0
            || digits.wrapping_sub(1) >= TAIL_BYTES
            || whole > usize::from(MAX_WHOLE[row])
        {
            return NONE;
        }
        let aligned = _mm_shuffle_epi8(values, load(&ALIGN[row]));
        let groups = _mm_cvtsi128_si64(groups(aligned)) as u64;
        (groups, places as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, digit by digit.
    fn naive(text: &[u8]) -> Option<Groups> {
        let text = std::str::from_utf8(text).ok()?;
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{part}");
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let places = part.len();
        let zeros = places.next_multiple_of(GROUP_DIGITS) - places;
        let aligned = format!("{digits}{}", "0".repeat(zeros));
        let aligned = format!("{aligned:0>16}");
        if aligned.len() > 16 {
            return None;
        }
        let groups = (0..4).rev().fold(0, |groups, i| {
            groups << 16 | aligned[4 * i..4 * i + 4].parse::<u64>().unwrap()
        });
        Some(Groups { groups, places })
    }

    #[test]
    fn a_decimal_is_cut_at_its_point() {
        let Some(said) = last_groups(b"....-1234567.8.9", 3) else {
            // A processor without the instructions.
            return;
        };
        assert_eq!(
            said,
            Groups {
                groups: 8 << 32 | 9000 << 48,
                places: 1
            }
        );
        let said = last_groups(b"xxxxx-1234567.89", 10).unwrap();
        let groups = 123 << 16 | 4567 << 32 | 8900 << 48;
        assert_eq!(said, Groups { groups, places: 2 });
    }

    proptest! {
        #[test]
        fn an_integer_is_what_is_read_digit_by_digit(
            before in "[0-9:/.-]{24}",
            text in "[0-9]{0,22}",
            odd in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
        ) {
            let mut text = text.into_bytes();
            if let (Some((at, byte)), false) = (odd, text.is_empty()) {
                let at = at.index(text.len());
                text[at] = byte;
            }
            let all = [before.as_bytes(), &text].concat();
            let tail = all.last_chunk().unwrap();
            let is_number = text.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(&text)
                .ok()
                .filter(|_| is_number)
                .and_then(|text| text.parse::<u64>().ok());
            for (max, said) in [
                (16, last_integer::<false>(tail, text.len())),
                (19, last_integer::<true>(tail, text.len())),
            ] {
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("sse4.1") {
                    prop_assert_eq!(said, number.filter(|_| text.len() <= max), "{:?}", text);
                }
                #[cfg(not(target_arch = "x86_64"))]
                prop_assert_eq!(said, None, "{}", max);
            }
        }

        #[test]
        fn groups_are_those_that_are_read_digit_by_digit(
            before in "[0-9.]{16}",
            text in "[0-9]{0,9}[.]?[0-9]{0,9}|[0-9.:/]{0,16}|[0-9]{0,12}[.][0-9]{0,4}",
            odd in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
        ) {
            let mut text = text.into_bytes();
            text.truncate(TAIL_BYTES);
            if let (Some((at, byte)), false) = (odd, text.is_empty()) {
                let at = at.index(text.len());
                text[at] = byte;
            }
            let all = [before.as_bytes(), &text].concat();
            let said = last_groups(all.last_chunk().unwrap(), text.len());
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("sse4.1") {
                prop_assert_eq!(said, naive(&text), "{:?}", text);
            }
            #[cfg(not(target_arch = "x86_64"))]
            prop_assert_eq!(said, None);
        }
    }
}
