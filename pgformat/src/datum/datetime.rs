//! The date/time family: bytes on disk, order, calendar and text in DateStyle ISO.
//!
//! | type | bytes | what they hold |
//! |---|---|---|
//! | date | 4 | days since 2000-01-01 |
//! | time | 8 | microseconds since midnight, 0 to 86,400,000,000 |
//! | timetz | 12 | the same, then 4: seconds *west* of Greenwich |
//! | timestamp, timestamptz | 8 | microseconds since 2000-01-01 00:00 (timestamptz: UTC) |
//! | interval | 16 | 8: microseconds, 4: days, 4: months |
//!
//! All little-endian. The smallest and largest integers of date and timestamp are -infinity
//! and infinity; an interval is infinite (17 and later) when all three fields are extreme.
//!
//! PostgreSQL: `src/include/utils/date.h`, `src/include/datatype/timestamp.h`,
//! `src/backend/utils/adt/{date,timestamp,datetime}.c`.

use std::cmp::Ordering;
use std::fmt::Write as _;

use crate::version::MajorVersion;

/// Microseconds of a second.
pub const USECS_PER_SEC: i64 = 1_000_000;
/// Microseconds of a minute.
pub const USECS_PER_MINUTE: i64 = 60 * USECS_PER_SEC;
/// Microseconds of an hour.
pub const USECS_PER_HOUR: i64 = 60 * USECS_PER_MINUTE;
/// Microseconds of a day.
pub const USECS_PER_DAY: i64 = 24 * USECS_PER_HOUR;
/// Seconds of a day.
pub const SECS_PER_DAY: i64 = 86_400;
/// Months of a year.
pub const MONTHS_PER_YEAR: i32 = 12;
/// The Julian day of 1970-01-01.
pub const UNIX_EPOCH_JDATE: i32 = 2_440_588;
/// The Julian day of 2000-01-01, where PostgreSQL's own count begins.
pub const POSTGRES_EPOCH_JDATE: i32 = 2_451_545;

/// date '-infinity'.
pub const DATE_NOBEGIN: i32 = i32::MIN;
/// date 'infinity'.
pub const DATE_NOEND: i32 = i32::MAX;
/// timestamp '-infinity'.
pub const TIMESTAMP_NOBEGIN: i64 = i64::MIN;
/// timestamp 'infinity'.
pub const TIMESTAMP_NOEND: i64 = i64::MAX;

/// Bytes of a date.
pub const DATE_BYTES: usize = 4;
/// Bytes of a time, a timestamp or a timestamptz.
pub const TIMESTAMP_BYTES: usize = 8;
/// Bytes of a timetz.
pub const TIMETZ_BYTES: usize = 12;
/// Bytes of an interval.
pub const INTERVAL_BYTES: usize = 16;

/// An interval: three counts that are not convertible into one another.
///
/// PostgreSQL: `src/include/datatype/timestamp.h`, `Interval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interval {
    /// Microseconds.
    pub micros: i64,
    /// Days.
    pub days: i32,
    /// Months.
    pub months: i32,
}

impl Interval {
    /// '-infinity' (17 and later).
    pub const NOBEGIN: Interval = Interval {
        micros: i64::MIN,
        days: i32::MIN,
        months: i32::MIN,
    };
    /// 'infinity' (17 and later).
    pub const NOEND: Interval = Interval {
        micros: i64::MAX,
        days: i32::MAX,
        months: i32::MAX,
    };
}

/// The bytes of a date.
#[inline]
pub fn encode_date(days: i32) -> [u8; DATE_BYTES] {
    days.to_le_bytes()
}

/// The date of its bytes.
///
/// # Panics
/// On less than 4 bytes.
#[inline]
pub fn decode_date(bytes: &[u8]) -> i32 {
    i32_at(bytes, 0)
}

/// The bytes of a time.
#[inline]
pub fn encode_time(micros: i64) -> [u8; TIMESTAMP_BYTES] {
    micros.to_le_bytes()
}

/// The time of its bytes.
///
/// # Panics
/// On less than 8 bytes.
#[inline]
pub fn decode_time(bytes: &[u8]) -> i64 {
    i64_at(bytes, 0)
}

/// The bytes of a timestamp or timestamptz.
#[inline]
pub fn encode_timestamp(micros: i64) -> [u8; TIMESTAMP_BYTES] {
    micros.to_le_bytes()
}

/// The timestamp or timestamptz of its bytes.
///
/// # Panics
/// On less than 8 bytes.
#[inline]
pub fn decode_timestamp(bytes: &[u8]) -> i64 {
    i64_at(bytes, 0)
}

/// The bytes of a timetz: microseconds since midnight and seconds west of Greenwich.
#[inline]
pub fn encode_timetz(micros: i64, zone_secs: i32) -> [u8; TIMETZ_BYTES] {
    let mut bytes = [0; TIMETZ_BYTES];
    bytes[..8].copy_from_slice(&micros.to_le_bytes());
    bytes[8..].copy_from_slice(&zone_secs.to_le_bytes());
    bytes
}

/// The timetz of its bytes: microseconds since midnight, seconds west of Greenwich.
///
/// # Panics
/// On less than 12 bytes.
#[inline]
pub fn decode_timetz(bytes: &[u8]) -> (i64, i32) {
    (i64_at(bytes, 0), i32_at(bytes, 8))
}

/// The bytes of an interval.
#[inline]
pub fn encode_interval(interval: &Interval) -> [u8; INTERVAL_BYTES] {
    let mut bytes = [0; INTERVAL_BYTES];
    bytes[..8].copy_from_slice(&interval.micros.to_le_bytes());
    bytes[8..12].copy_from_slice(&interval.days.to_le_bytes());
    bytes[12..].copy_from_slice(&interval.months.to_le_bytes());
    bytes
}

/// The interval of its bytes.
///
/// # Panics
/// On less than 16 bytes.
#[inline]
pub fn decode_interval(bytes: &[u8]) -> Interval {
    Interval {
        micros: i64_at(bytes, 0),
        days: i32_at(bytes, 8),
        months: i32_at(bytes, 12),
    }
}

#[inline]
fn i32_at(bytes: &[u8], pos: usize) -> i32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[pos..pos + 4]);
    i32::from_le_bytes(word)
}

#[inline]
fn i64_at(bytes: &[u8], pos: usize) -> i64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[pos..pos + 8]);
    i64::from_le_bytes(word)
}

/// The order of two timetz datums: by the instant in UTC, then by zone.
///
/// PostgreSQL: `date.c`, `timetz_cmp_internal`.
///
/// # Panics
/// On less than 12 bytes.
#[inline]
pub fn timetz_compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a_micros, a_zone) = decode_timetz(a);
    let (b_micros, b_zone) = decode_timetz(b);
    let a_utc = a_micros.wrapping_add(i64::from(a_zone) * USECS_PER_SEC);
    let b_utc = b_micros.wrapping_add(i64::from(b_zone) * USECS_PER_SEC);
    a_utc.cmp(&b_utc).then(a_zone.cmp(&b_zone))
}

/// The order of two interval datums: by their length with months of 30 days and days of 24
/// hours, so that '1 mon' equals '30 days' though the bytes differ.
///
/// PostgreSQL: `timestamp.c`, `interval_cmp_internal`.
///
/// # Panics
/// On less than 16 bytes.
#[inline]
pub fn interval_compare(a: &[u8], b: &[u8]) -> Ordering {
    interval_span(&decode_interval(a)).cmp(&interval_span(&decode_interval(b)))
}

/// An interval's length in microseconds with months of 30 days and days of 24 hours.
///
/// PostgreSQL: `timestamp.c`, `interval_cmp_value`.
#[inline]
pub fn interval_span(interval: &Interval) -> i128 {
    let days = i64::from(interval.months) * 30 + i64::from(interval.days);
    i128::from(interval.micros) + i128::from(days) * i128::from(USECS_PER_DAY)
}

/// The Julian day of a date of the Gregorian calendar; year 0 is 1 BC. Wraps around outside
/// the years -4713 to 5874898, as the server does.
///
/// PostgreSQL: `datetime.c`, `date2j`.
#[inline]
pub fn date_to_julian(year: i32, month: i32, day: i32) -> i32 {
    // The year begins in March, so that the leap day is its last.
    let (year, month) = if month > 2 {
        (year.wrapping_add(4800), month.wrapping_add(1))
    } else {
        (year.wrapping_add(4799), month.wrapping_add(13))
    };
    let century = year / 100;
    year.wrapping_mul(365)
        .wrapping_sub(32_167)
        .wrapping_add(year / 4)
        .wrapping_sub(century)
        .wrapping_add(century / 4)
        .wrapping_add(month.wrapping_mul(7834) / 256)
        .wrapping_add(day)
}

/// Year, month and day of a Julian day; year 0 is 1 BC.
///
/// PostgreSQL: `datetime.c`, `j2date`.
pub fn julian_to_date(julian: i32) -> (i32, i32, i32) {
    let mut julian = (julian as u32).wrapping_add(32_044);
    let mut quad = julian / 146_097;
    let extra = (julian - quad * 146_097) * 4 + 3;
    julian = julian.wrapping_add(60 + quad * 3 + extra / 146_097);
    quad = julian / 1461;
    julian -= quad * 1461;
    let year = julian * 4 / 1461;
    julian = if year != 0 {
        (julian + 305) % 365
    } else {
        (julian + 306) % 366
    } + 123;
    let years = year + quad * 4;
    quad = julian * 2141 / 65_536;
    (
        years as i32 - 4800,
        ((quad + 10) % 12 + 1) as i32,
        (julian - 7834 * quad / 256) as i32,
    )
}

/// A date as text: `2001-12-31`, `0044-03-15 BC`, `infinity`.
///
/// PostgreSQL: `date.c`, `date_out`.
pub fn date_out(days: i32) -> String {
    match days {
        DATE_NOBEGIN => return "-infinity".to_owned(),
        DATE_NOEND => return "infinity".to_owned(),
        _ => {}
    }
    let (year, month, day) = julian_to_date(days.wrapping_add(POSTGRES_EPOCH_JDATE));
    let mut out = String::with_capacity(16);
    push_date(&mut out, year, month, day);
    push_era(&mut out, year);
    out
}

/// A time as text: `04:05:06.789`.
///
/// PostgreSQL: `date.c`, `time_out`.
pub fn time_out(micros: i64) -> String {
    let mut out = String::with_capacity(16);
    push_time(&mut out, micros);
    out
}

/// A timetz as text: `04:05:06.789-08`, `12:00:00+05:30`.
///
/// PostgreSQL: `date.c`, `timetz_out`.
pub fn timetz_out(micros: i64, zone_secs: i32) -> String {
    let mut out = String::with_capacity(24);
    push_time(&mut out, micros);
    push_zone(&mut out, zone_secs);
    out
}

/// A timestamp as text: `2001-12-31 04:05:06`. A value outside the type's range, which only
/// damage can make, is shown as a date that wraps around.
///
/// PostgreSQL: `timestamp.c`, `timestamp_out`.
pub fn timestamp_out(micros: i64) -> String {
    timestamp_text(micros, None)
}

/// A timestamptz as text, with the zone's offset at that instant in seconds *east* of
/// Greenwich: `2001-12-31 04:05:06+01`.
///
/// PostgreSQL: `timestamp.c`, `timestamptz_out`.
pub fn timestamptz_out(micros: i64, utc_offset_secs: i32) -> String {
    timestamp_text(micros, Some(utc_offset_secs))
}

fn timestamp_text(micros: i64, utc_offset_secs: Option<i32>) -> String {
    match micros {
        TIMESTAMP_NOBEGIN => return "-infinity".to_owned(),
        TIMESTAMP_NOEND => return "infinity".to_owned(),
        _ => {}
    }
    let offset = i64::from(utc_offset_secs.unwrap_or(0)) * USECS_PER_SEC;
    let local = micros.saturating_add(offset);
    let days = local.div_euclid(USECS_PER_DAY) as i32;
    let (year, month, day) = julian_to_date(days.wrapping_add(POSTGRES_EPOCH_JDATE));
    let mut out = String::with_capacity(32);
    push_date(&mut out, year, month, day);
    out.push(' ');
    push_time(&mut out, local.rem_euclid(USECS_PER_DAY));
    if let Some(offset) = utc_offset_secs {
        push_zone(&mut out, offset.wrapping_neg());
    }
    push_era(&mut out, year);
    out
}

/// An interval as text in IntervalStyle postgres: `1 year 2 mons -3 days +04:05:06.7`. Since
/// 17 the extremes are `infinity` and `-infinity`.
///
/// PostgreSQL: `timestamp.c`, `interval_out`; `datetime.c`, `EncodeInterval`.
pub fn interval_out(interval: &Interval, version: MajorVersion) -> String {
    if version.at_least(17) {
        if *interval == Interval::NOBEGIN {
            return "-infinity".to_owned();
        }
        if *interval == Interval::NOEND {
            return "infinity".to_owned();
        }
    }
    let mut out = String::with_capacity(48);
    // A field after a negative one shows its plus sign.
    let mut after_negative = false;
    for (value, unit) in [
        (interval.months / MONTHS_PER_YEAR, "year"),
        (interval.months % MONTHS_PER_YEAR, "mon"),
        (interval.days, "day"),
    ] {
        if value == 0 {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        if after_negative && value > 0 {
            out.push('+');
        }
        let plural = if value == 1 { "" } else { "s" };
        // Writing to a String cannot fail.
        let _ = write!(out, "{value} {unit}{plural}");
        after_negative = value < 0;
    }
    if out.is_empty() || interval.micros != 0 {
        if !out.is_empty() {
            out.push(' ');
        }
        if interval.micros < 0 {
            out.push('-');
        } else if after_negative {
            out.push('+');
        }
        push_clock(&mut out, interval.micros.unsigned_abs());
    }
    out
}

fn push_date(out: &mut String, year: i32, month: i32, day: i32) {
    let shown = if year > 0 {
        i64::from(year)
    } else {
        1 - i64::from(year)
    };
    let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
}

fn push_era(out: &mut String, year: i32) {
    if year <= 0 {
        out.push_str(" BC");
    }
}

fn push_time(out: &mut String, micros: i64) {
    push_clock(out, micros.unsigned_abs());
}

fn push_clock(out: &mut String, micros: u64) {
    let (secs, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let _ = write!(
        out,
        "{:02}:{:02}:{:02}",
        secs / 3600,
        secs / 60 % 60,
        secs % 60
    );
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

/// A numeric zone; `west_secs` has the sign of timetz.
fn push_zone(out: &mut String, west_secs: i32) {
    let secs = west_secs.unsigned_abs();
    let (hour, min, sec) = (secs / 3600, secs / 60 % 60, secs % 60);
    let sign = if west_secs <= 0 { '+' } else { '-' };
    let _ = write!(out, "{sign}{hour:02}");
    if min != 0 || sec != 0 {
        let _ = write!(out, ":{min:02}");
    }
    if sec != 0 {
        let _ = write!(out, ":{sec:02}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest() -> MajorVersion {
        MajorVersion::NEWEST
    }

    #[test]
    fn the_calendar_goes_both_ways() {
        assert_eq!(date_to_julian(2000, 1, 1), POSTGRES_EPOCH_JDATE);
        assert_eq!(date_to_julian(1970, 1, 1), UNIX_EPOCH_JDATE);
        assert_eq!(date_to_julian(-4713, 11, 24), 0);
        assert_eq!(julian_to_date(0), (-4713, 11, 24));
        assert_eq!(julian_to_date(2_147_483_493), (5_874_897, 12, 31));
        for julian in (0..3_000_000).step_by(97) {
            let (y, m, d) = julian_to_date(julian);
            assert_eq!(date_to_julian(y, m, d), julian);
        }
        // No day count makes it panic.
        julian_to_date(-1);
        julian_to_date(i32::MIN);
        date_to_julian(i32::MAX, i32::MAX, i32::MAX);
    }

    #[test]
    fn bytes_are_little_endian_in_the_order_of_the_servers_structures() {
        assert_eq!(encode_date(1), [1, 0, 0, 0]);
        assert_eq!(
            encode_timetz(1, -3600),
            [1, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0xf1, 0xff, 0xff]
        );
        let interval = Interval {
            micros: 3,
            days: 2,
            months: -1,
        };
        assert_eq!(
            encode_interval(&interval),
            [3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]
        );
        assert_eq!(decode_interval(&encode_interval(&interval)), interval);
        assert_eq!(decode_timetz(&encode_timetz(5, 6)), (5, 6));
    }

    #[test]
    fn a_month_equals_thirty_days() {
        let order =
            |a: Interval, b: Interval| interval_compare(&encode_interval(&a), &encode_interval(&b));
        let month = Interval {
            months: 1,
            ..Interval::default()
        };
        let days = Interval {
            days: 30,
            ..Interval::default()
        };
        let more = Interval { micros: 1, ..days };
        assert_eq!(order(month, days), Ordering::Equal);
        assert_eq!(order(month, more), Ordering::Less);
        assert_eq!(order(Interval::NOEND, more), Ordering::Greater);
        assert_eq!(order(Interval::NOBEGIN, Interval::NOEND), Ordering::Less);
    }

    #[test]
    fn timetz_of_one_instant_are_ordered_by_zone() {
        let order = |a: (i64, i32), b: (i64, i32)| {
            timetz_compare(&encode_timetz(a.0, a.1), &encode_timetz(b.0, b.1))
        };
        let noon_utc = (12 * USECS_PER_HOUR, 0);
        let noon_utc_in_paris = (13 * USECS_PER_HOUR, -3600);
        assert_eq!(order(noon_utc, noon_utc), Ordering::Equal);
        assert_eq!(order(noon_utc, noon_utc_in_paris), Ordering::Greater);
        assert_eq!(order((0, 0), noon_utc_in_paris), Ordering::Less);
    }

    #[test]
    fn text_is_the_servers_in_datestyle_iso() {
        assert_eq!(date_out(0), "2000-01-01");
        assert_eq!(date_out(-746_117), "0044-03-15 BC");
        assert_eq!(date_out(DATE_NOEND), "infinity");
        assert_eq!(time_out(USECS_PER_DAY), "24:00:00");
        assert_eq!(timetz_out(1_500_000, -19_800), "00:00:01.5+05:30");
        assert_eq!(timetz_out(0, 28_800), "00:00:00-08");
        assert_eq!(timestamp_out(-1), "1999-12-31 23:59:59.999999");
        assert_eq!(timestamptz_out(0, 3600), "2000-01-01 01:00:00+01");
        assert_eq!(timestamptz_out(TIMESTAMP_NOBEGIN, 0), "-infinity");
        assert_eq!(interval_out(&Interval::default(), newest()), "00:00:00");
        assert_eq!(
            interval_out(
                &Interval {
                    micros: 14_706_700_000,
                    days: -3,
                    months: 14
                },
                newest()
            ),
            "1 year 2 mons -3 days +04:05:06.7"
        );
        assert_eq!(interval_out(&Interval::NOEND, newest()), "infinity");
        assert_eq!(
            interval_out(&Interval::NOEND, MajorVersion::OLDEST),
            "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807"
        );
    }
}
