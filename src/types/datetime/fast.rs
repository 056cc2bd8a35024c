//! The shapes that nearly all files have, read eight bytes at a time.
//!
//! A date `2001-12-31`, or in the order of the session's DateStyle `31/12/2001`, `12-31-2001`,
//! `31.12.2001`; a time `04:05:06`, with up to 15 digits of a fraction, or `04:05`; both, with
//! a space or `T` between them; after a time maybe a zone `+hh`, `+hh:mm`, `+hhmm`, `Z` or
//! `UTC`, maybe with a space before it. A text of another shape, or with a number out of
//! range, is not for us: the answer is `None` and the long way is taken, which knows every
//! meaning and every error.

use pgformat::datum::datetime::{
    POSTGRES_EPOCH_JDATE, SECS_PER_DAY, USECS_PER_SEC, date_to_julian,
};

use super::DateOrder;
use super::parts::days_of_month;

/// What words and numbers mean in this session, as far as is known beforehand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The order of a date that does not begin with a year of four digits.
    pub(super) order: DateOrder,
    /// `T` before a time is the separator of ISO 8601, as always unless the session's zone
    /// has an abbreviation of that name.
    pub(super) t_separates: bool,
    /// What `Z` after a time means, in seconds west of Greenwich.
    pub(super) z_west_secs: Option<i32>,
    /// What `UTC` after a time means.
    pub(super) utc_west_secs: Option<i32>,
}

/// A timestamp as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timestamp {
    /// Seconds since 2000-01-01 in its own zone, without the fraction.
    pub(super) local_secs: i64,
    /// The fraction in microseconds, rounded: 0 to 1,000,000.
    pub(super) micros: i64,
    /// Its zone in seconds west of Greenwich, if it has one.
    pub(super) west_secs: Option<i32>,
}

impl Timestamp {
    /// Microseconds since 2000-01-01 in its own zone.
    #[inline]
    pub(super) fn local_micros(&self) -> i64 {
        self.local_secs * USECS_PER_SEC + self.micros
    }
}

/// A time as it stands.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Seconds since midnight, without the fraction.
    secs: i32,
    /// The fraction in microseconds, rounded: 0 to 1,000,000.
    micros: i64,
}

impl Clock {
    #[inline]
    fn micros_of_day(self) -> i64 {
        i64::from(self.secs) * USECS_PER_SEC + self.micros
    }
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

const YEAR_FIRST: [u8; 8] = *b"0000-00-";
const YEAR_LAST: [u8; 8] = *b"00\x0000\x0000";
const CLOCK: [u8; 8] = *b"00:00:00";

#[inline]
fn digit_pair(tens: u8, ones: u8) -> Option<i32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| i32::from(tens * 10 + ones))
}

/// Days since 2000-01-01.
#[inline]
pub(super) fn date(text: &[u8], known: &Known) -> Option<i32> {
    match text.first_chunk() {
        Some(date) if text.len() == date.len() => days(date, known.order),
        // The time of a timestamp counts for nothing, but must be right.
        _ => timestamp(text, known).map(|t| t.local_secs.div_euclid(SECS_PER_DAY) as i32),
    }
}

/// Days since 2000-01-01 of a date that exists.
#[inline]
fn days(text: &[u8; 10], order: DateOrder) -> Option<i32> {
    let &[ref head @ .., tens, ones] = text;
    let last = digit_pair(tens, ones)?;
    let (year, month, day) = if head[4] == b'-' {
        let pattern = word(YEAR_FIRST);
        let head = pairs(word(*head), pattern, const { digit_mask(YEAR_FIRST) })?;
        (pair(head, 0) * 100 + pair(head, 2), pair(head, 5), last)
    } else {
        let delimiter = head[2];
        if !matches!(delimiter, b'/' | b'-' | b'.') {
            return None;
        }
        let delimiter = u64::from(delimiter);
        let pattern = word(YEAR_LAST) | delimiter << 16 | delimiter << 40;
        let head = pairs(word(*head), pattern, const { digit_mask(YEAR_LAST) })?;
        let year = pair(head, 6) * 100 + last;
        match order {
            DateOrder::Dmy => (year, pair(head, 3), pair(head, 0)),
            DateOrder::Mdy => (year, pair(head, 0), pair(head, 3)),
            DateOrder::Ymd => return None,
        }
    };
    if year == 0 || day == 0 || (day > 28 && day > days_of_month(year, month)) {
        return None;
    }
    if month == 0 || month > 12 {
        return None;
    }
    Some(date_to_julian(year, month, day) - POSTGRES_EPOCH_JDATE)
}

/// Microseconds since midnight of a time without a zone.
#[inline]
pub(super) fn time(text: &[u8]) -> Option<i64> {
    let (clock, rest) = clock(text)?;
    rest.is_empty().then(|| clock.micros_of_day())
}

/// Microseconds since midnight and seconds west of Greenwich of a time with a zone.
#[inline]
pub(super) fn timetz(text: &[u8], known: &Known) -> Option<(i64, i32)> {
    let (clock, rest) = clock(text)?;
    Some((clock.micros_of_day(), zone(rest, known)?))
}

/// A date alone, which is its midnight, or with a time and maybe a zone.
#[inline]
pub(super) fn timestamp(text: &[u8], known: &Known) -> Option<Timestamp> {
    let (date, rest) = text.split_first_chunk()?;
    let mut timestamp = Timestamp {
        local_secs: i64::from(days(date, known.order)?) * SECS_PER_DAY,
        micros: 0,
        west_secs: None,
    };
    let rest = match rest {
        [] => return Some(timestamp),
        [b' ', rest @ ..] => rest,
        [b'T', rest @ ..] if known.t_separates => rest,
        _ => return None,
    };
    let (clock, rest) = clock(rest)?;
    timestamp.local_secs += i64::from(clock.secs);
    timestamp.micros = clock.micros;
    if !rest.is_empty() {
        timestamp.west_secs = Some(zone(rest, known)?);
    }
    Some(timestamp)
}

/// A time at the beginning of a text; what follows.
#[inline]
fn clock(text: &[u8]) -> Option<(Clock, &[u8])> {
    if let Some((head, rest)) = text.split_first_chunk()
        && let Some(head) = pairs(word(*head), word(CLOCK), const { digit_mask(CLOCK) })
    {
        let (hour, minute, second) = (pair(head, 0), pair(head, 3), pair(head, 6));
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (micros, rest) = fraction(rest)?;
        let secs = (hour * 60 + minute) * 60 + second;
        return Some((Clock { secs, micros }, rest));
    }
    let &[a, b, b':', c, d, ref rest @ ..] = text else {
        return None;
    };
    let (hour, minute) = (digit_pair(a, b)?, digit_pair(c, d)?);
    // More digits, a third number or a fraction: then the two may mean something else.
    let is_all = !matches!(rest, [b'0'..=b'9' | b':' | b'.', ..]);
    if hour > 23 || minute > 59 || !is_all {
        return None;
    }
    let secs = (hour * 60 + minute) * 60;
    Some((Clock { secs, micros: 0 }, rest))
}

/// Microseconds of the last of so many digits of a fraction.
const FRACTION_SCALES: [i64; 7] = [0, 100_000, 10_000, 1_000, 100, 10, 1];
/// The most digits of a fraction whose number a double holds exactly.
const EXACT_DIGITS: usize = 15;

/// A point and one to 15 digits, in microseconds; 0 when there is no point.
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
        if count == EXACT_DIGITS {
            return None;
        }
        value = value * 10 + i64::from(digit);
        count += 1;
    }
    let micros = match FRACTION_SCALES.get(count) {
        Some(0) => return None,
        Some(scale) => value * scale,
        None => round_fraction(value, count),
    };
    Some((micros, &rest[count..]))
}

/// More than six digits, rounded as the server does: by way of a double. The division of two
/// whole numbers that doubles hold exactly gives what C's strtod makes of the digits.
fn round_fraction(value: i64, digits: usize) -> i64 {
    let fraction = value as f64 / 10_f64.powi(digits as i32);
    (fraction * 1_000_000.0).round_ties_even() as i64
}

/// `+hh`, `+hh:mm`, `+hhmm`, `Z` or `UTC`, maybe after a space, in seconds west of Greenwich.
#[inline]
fn zone(text: &[u8], known: &Known) -> Option<i32> {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let (sign, hour, minute) = match *text {
        [sign, a, b] if a != b'T' => (sign, digit_pair(a, b)?, 0),
        [sign, a, b, b':', c, d] | [sign, a, b, c, d] => {
            (sign, digit_pair(a, b)?, digit_pair(c, d)?)
        }
        [b'Z'] => return known.z_west_secs,
        [b'U', b'T', b'C'] => return known.utc_west_secs,
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
    use pgformat::datum::datetime::{USECS_PER_DAY, USECS_PER_HOUR};

    const KNOWN: Known = Known {
        order: DateOrder::Mdy,
        t_separates: true,
        z_west_secs: Some(0),
        utc_west_secs: Some(0),
    };
    const NOON_2000_02_29: i64 = 59 * USECS_PER_DAY + 12 * USECS_PER_HOUR;

    fn micros(text: &str) -> Option<(i64, Option<i32>)> {
        timestamp(text.as_bytes(), &KNOWN).map(|t| (t.local_micros(), t.west_secs))
    }

    #[test]
    fn the_common_shapes_are_read() {
        let dmy = Known {
            order: DateOrder::Dmy,
            ..KNOWN
        };
        assert_eq!(date(b"2000-02-29", &KNOWN), Some(59));
        assert_eq!(date(b"1999-12-31", &KNOWN), Some(-1));
        assert_eq!(date(b"1999-12-31 23:59:59", &KNOWN), Some(-1));
        assert_eq!(date(b"12/31/1999", &KNOWN), Some(-1));
        assert_eq!(date(b"31.12.1999", &dmy), Some(-1));
        assert_eq!(time(b"12:00:00"), Some(12 * USECS_PER_HOUR));
        assert_eq!(time(b"12:00"), Some(12 * USECS_PER_HOUR));
        assert_eq!(time(b"00:00:01.5"), Some(1_500_000));
        assert_eq!(time(b"00:00:01.123456789"), Some(1_123_457));
        assert_eq!(time(b"23:59:59.9999999"), Some(USECS_PER_DAY));
        assert_eq!(timetz(b"00:00:00+05:30", &KNOWN), Some((0, -19_800)));
        assert_eq!(timetz(b"00:00:00.000001Z", &KNOWN), Some((1, 0)));
        let noon = NOON_2000_02_29;
        assert_eq!(micros("2000-02-29"), Some((59 * USECS_PER_DAY, None)));
        assert_eq!(micros("2000-02-29 12:00:00"), Some((noon, None)));
        assert_eq!(micros("2000-02-29 12:00"), Some((noon, None)));
        assert_eq!(micros("02-29-2000 12:00"), Some((noon, None)));
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
        assert_eq!(micros("2000-02-29 12:00:00 UTC"), Some((noon, Some(0))));
        assert_eq!(micros("2000-02-29 12:00 +0100"), Some((noon, Some(-3600))));
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
            "13/01/2000",
            "01/02-2000",
            "01_02_2000",
            "2000-01-01 ",
            "2000-01-01 24:00:00",
            "2000-01-01 23:60:00",
            "2000-01-01 23:59:60",
            "2000-01-01 23:59.5",
            "2000-01-01 23:599",
            "2000-01-01 23:59:1",
            "2000-01-01 23:59  +01",
            "2000-01-01x23:59:59",
            "2000-01-01 23:59:59.",
            "2000-01-01 23:59:59.1234567890123456",
            "2000-01-01 23:59:59+16",
            "2000-01-01 23:59:59+1",
            "2000-01-01 23:59:59 PST",
            "2000-01-01 23:59:59z",
            "2000\u{2212}01-01 23:59:59",
            "2\u{ff}00-01-01 23:59:59",
            "20a0-01-01 23:59:59",
            "2000-01-0: 23:59:59",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
        let none = Known {
            order: DateOrder::Ymd,
            t_separates: false,
            z_west_secs: None,
            utc_west_secs: None,
        };
        for text in [
            &b"2000-01-01T00:00:00"[..],
            b"2000-01-01 00:00:00Z",
            b"2000-01-01 00:00:00 UTC",
            b"01/02/2000",
        ] {
            assert_eq!(timestamp(text, &none), None);
        }
    }

    #[test]
    fn rounding_by_division_is_the_rounding_of_the_number_as_text() {
        let mut value = 0x9e37_79b9_u64;
        for i in 0..200_000_u64 {
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(i | 1);
            let digits = 7 + (value >> 60) as usize % 9;
            // Half of them lie right at the half of a microsecond.
            let number = if value & 1 == 0 {
                (value >> 8) % 10_u64.pow(digits as u32)
            } else {
                ((value >> 8) % 1_000_000 * 10 + 5) * 10_u64.pow(digits as u32 - 7)
            };
            let text = format!("0.{number:0digits$}");
            let exact: f64 = text.parse().unwrap();
            assert_eq!(
                round_fraction(number as i64, digits),
                (exact * 1_000_000.0).round_ties_even() as i64,
                "{text}"
            );
        }
    }
}
