//! The shapes that nearly all files have, read eight bytes at a time.
//!
//! `2001-12-31`, `2001-12-31 04:05:06`, with up to six digits of a fraction, with `T` for the
//! space, with a zone `+hh`, `+hh:mm`, `+hhmm` or `Z`; and the time alone. They mean the same
//! in every DateStyle. A text of another shape, or with a number out of range, is not for us:
//! the answer is `None` and the long way is taken, which knows every error.

use pgformat::datum::datetime::{
    POSTGRES_EPOCH_JDATE, USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC,
    date_to_julian,
};

use super::parts::days_of_month;

/// A timestamp as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timestamp {
    /// Microseconds since 2000-01-01 in its own zone.
    pub(super) local_micros: i64,
    /// Its zone in seconds west of Greenwich, if it has one.
    pub(super) west_secs: Option<i32>,
}

/// Checks bytes against a pattern of digits (`0`) and other characters, eight at once, and
/// leaves in each byte `i` the value of the digits `i` and `i + 1` as one number.
#[inline]
fn pairs(word: u64, pattern: u64, digits: u64) -> Option<u64> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // A digit becomes its value, any other character of the pattern 0.
    let values = word ^ pattern;
    // Adding these sets the high bit of a digit above 9, and of any other byte above 0.
    let limits = (digits & 0x7676_7676_7676_7676) | (!digits & 0x7f7f_7f7f_7f7f_7f7f);
    if (values | values.wrapping_add(limits)) & HIGH != 0 {
        return None;
    }
    // No byte overflows: 10 * 9 + 9 is 99.
    Some(values * 10 + (values >> 8))
}

#[inline]
fn pair(pairs: u64, pos: u32) -> i32 {
    (pairs >> (8 * pos) & 0xff) as i32
}

#[inline]
fn word(text: [u8; 8]) -> u64 {
    u64::from_le_bytes(text)
}

/// Mask of the digits of a pattern.
const fn digit_mask(pattern: [u8; 8]) -> u64 {
    let mut mask = 0;
    let mut i = 0;
    while i < 8 {
        if pattern[i] == b'0' {
            mask |= 0xff << (8 * i);
        }
        i += 1;
    }
    mask
}

const YEAR_MONTH: [u8; 8] = *b"0000-00-";
const DAY_HOUR_MINUTE: [u8; 8] = *b"00 00:00";
const DAY_T_HOUR_MINUTE: [u8; 8] = *b"00T00:00";
const CLOCK: [u8; 8] = *b"00:00:00";

/// Days since 2000-01-01 of a date that exists.
#[inline]
fn days(year: i32, month: i32, day: i32) -> Option<i32> {
    if year == 0 || day == 0 || (day > 28 && day > days_of_month(year, month)) {
        return None;
    }
    if month == 0 || month > 12 {
        return None;
    }
    Some(date_to_julian(year, month, day) - POSTGRES_EPOCH_JDATE)
}

#[inline]
fn digit_pair(tens: u8, ones: u8) -> Option<i32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| i32::from(tens * 10 + ones))
}

/// `YYYY-MM-DD`.
#[inline]
pub(super) fn date(text: &[u8]) -> Option<i32> {
    let text: &[u8; 10] = text.try_into().ok()?;
    let head = text.first_chunk::<8>()?;
    let head = pairs(
        word(*head),
        word(YEAR_MONTH),
        const { digit_mask(YEAR_MONTH) },
    )?;
    let day = digit_pair(text[8], text[9])?;
    days(pair(head, 0) * 100 + pair(head, 2), pair(head, 5), day)
}

/// `HH:MM:SS` with a fraction.
#[inline]
pub(super) fn time(text: &[u8]) -> Option<i64> {
    let (micros, rest) = clock(text)?;
    rest.is_empty().then_some(micros)
}

/// The same with a zone.
#[inline]
pub(super) fn timetz(text: &[u8], z_west_secs: Option<i32>) -> Option<(i64, i32)> {
    let (micros, rest) = clock(text)?;
    Some((micros, zone(rest, z_west_secs)?))
}

/// `HH:MM:SS` with a fraction at the beginning of a text; what follows.
#[inline]
fn clock(text: &[u8]) -> Option<(i64, &[u8])> {
    let (head, rest) = text.split_first_chunk::<8>()?;
    let head = pairs(word(*head), word(CLOCK), const { digit_mask(CLOCK) })?;
    let (hour, minute, second) = (pair(head, 0), pair(head, 3), pair(head, 6));
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (micros, rest) = fraction(rest)?;
    Some((clock_micros(hour, minute, second) + micros, rest))
}

#[inline]
fn clock_micros(hour: i32, minute: i32, second: i32) -> i64 {
    i64::from(hour) * USECS_PER_HOUR
        + i64::from(minute) * USECS_PER_MINUTE
        + i64::from(second) * USECS_PER_SEC
}

/// `YYYY-MM-DD HH:MM:SS` with a fraction and a zone.
#[inline]
pub(super) fn timestamp(
    text: &[u8],
    t_separates: bool,
    z_west_secs: Option<i32>,
) -> Option<Timestamp> {
    let (head, rest) = text.split_first_chunk::<8>()?;
    let head = pairs(
        word(*head),
        word(YEAR_MONTH),
        const { digit_mask(YEAR_MONTH) },
    )?;
    let (year, month) = (pair(head, 0) * 100 + pair(head, 2), pair(head, 5));
    let Some((middle, rest)) = rest.split_first_chunk::<8>() else {
        // A date alone is its midnight.
        let &[tens, ones] = rest else {
            return None;
        };
        let days = days(year, month, digit_pair(tens, ones)?)?;
        return Some(Timestamp {
            local_micros: i64::from(days) * USECS_PER_DAY,
            west_secs: None,
        });
    };
    let pattern = if t_separates && middle[2] == b'T' {
        word(DAY_T_HOUR_MINUTE)
    } else {
        word(DAY_HOUR_MINUTE)
    };
    let middle = pairs(
        word(*middle),
        pattern,
        const { digit_mask(DAY_HOUR_MINUTE) },
    )?;
    let (day, hour, minute) = (pair(middle, 0), pair(middle, 3), pair(middle, 6));
    let &[b':', tens, ones, ref rest @ ..] = rest else {
        return None;
    };
    let second = digit_pair(tens, ones)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days(year, month, day)?;
    let (micros, rest) = fraction(rest)?;
    let west_secs = if rest.is_empty() {
        None
    } else {
        Some(zone(rest, z_west_secs)?)
    };
    let time = clock_micros(hour, minute, second) + micros;
    Some(Timestamp {
        local_micros: i64::from(days) * USECS_PER_DAY + time,
        west_secs,
    })
}

/// Microseconds of the last of so many digits of a fraction.
const FRACTION_SCALES: [i64; 7] = [0, 100_000, 10_000, 1_000, 100, 10, 1];

/// A point and one to six digits, in microseconds; 0 when there is no point. More digits must
/// be rounded as the server does, which is not done here.
#[inline]
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.', rest @ ..] = text else {
        return Some((0, text));
    };
    let mut value = 0;
    let mut count = 0;
    while let Some(digit) = rest.get(count).map(|b| b.wrapping_sub(b'0'))
        && digit <= 9
    {
        if count == 6 {
            return None;
        }
        value = value * 10 + i64::from(digit);
        count += 1;
    }
    if count == 0 {
        return None;
    }
    Some((value * FRACTION_SCALES[count], &rest[count..]))
}

/// `+hh`, `+hh:mm`, `+hhmm` or `Z`, in seconds west of Greenwich.
#[inline]
fn zone(text: &[u8], z_west_secs: Option<i32>) -> Option<i32> {
    let (sign, hour, minute) = match *text {
        [sign, a, b] => (sign, digit_pair(a, b)?, 0),
        [sign, a, b, b':', c, d] | [sign, a, b, c, d] => {
            (sign, digit_pair(a, b)?, digit_pair(c, d)?)
        }
        [b'Z'] => return z_west_secs,
        _ => return None,
    };
    if hour > 15 || minute > 59 {
        return None;
    }
    let secs = (hour * 60 + minute) * 60;
    match sign {
        b'+' => Some(-secs),
        b'-' => Some(secs),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_2000_02_29: i64 = 59 * USECS_PER_DAY + 12 * USECS_PER_HOUR;

    fn micros(text: &str) -> Option<(i64, Option<i32>)> {
        timestamp(text.as_bytes(), true, Some(0)).map(|t| (t.local_micros, t.west_secs))
    }

    #[test]
    fn the_common_shapes_are_read() {
        assert_eq!(date(b"2000-02-29"), Some(59));
        assert_eq!(date(b"1999-12-31"), Some(-1));
        assert_eq!(time(b"12:00:00"), Some(12 * USECS_PER_HOUR));
        assert_eq!(time(b"00:00:01.5"), Some(1_500_000));
        assert_eq!(timetz(b"00:00:00+05:30", None), Some((0, -19_800)));
        assert_eq!(timetz(b"00:00:00.000001Z", Some(0)), Some((1, 0)));
        let noon = NOON_2000_02_29;
        assert_eq!(micros("2000-02-29"), Some((59 * USECS_PER_DAY, None)));
        assert_eq!(micros("2000-02-29 12:00:00"), Some((noon, None)));
        assert_eq!(micros("2000-02-29T12:00:00"), Some((noon, None)));
        assert_eq!(
            micros("2000-02-29 12:00:00.123"),
            Some((noon + 123_000, None))
        );
        assert_eq!(
            micros("2000-02-29 12:00:00-0330"),
            Some((noon, Some(12_600)))
        );
        assert_eq!(
            micros("2000-02-29 12:00:00.1+02"),
            Some((noon + 100_000, Some(-7200)))
        );
        assert_eq!(micros("2000-02-29T12:00:00Z"), Some((noon, Some(0))));
    }

    #[test]
    fn anything_else_is_left_to_the_long_way() {
        for text in [
            "",
            "2000-02-2",
            "2000-02-30",
            "1900-02-29",
            "0000-01-01",
            "2000-00-01",
            "2000-13-01",
            "2000-01-00",
            "2000/01/01",
            "2000-01-01 ",
            "2000-01-01 24:00:00",
            "2000-01-01 23:60:00",
            "2000-01-01 23:59:60",
            "2000-01-01 23:59",
            "2000-01-01x23:59:59",
            "2000-01-01 23:59:59.",
            "2000-01-01 23:59:59.1234567",
            "2000-01-01 23:59:59+16",
            "2000-01-01 23:59:59+1",
            "2000-01-01 23:59:59 +01",
            "2000-01-01 23:59:59z",
            "2000\u{2212}01-01 23:59:59",
            "2\u{ff}00-01-01 23:59:59",
            "20a0-01-01 23:59:59",
            "2000-01-0: 23:59:59",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
        assert_eq!(timestamp(b"2000-01-01T00:00:00", false, None), None);
        assert_eq!(timestamp(b"2000-01-01 00:00:00Z", true, None), None);
    }
}
