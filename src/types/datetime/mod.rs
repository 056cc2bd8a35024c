//! Text to the datums of the date/time family, exactly as the server's input functions.
//!
//! Input functions begin with [`fast`], which knows the few fixed shapes that nearly all files
//! have (`2001-12-31 04:05:06.789+01` and its parts). All else goes the server's own way:
//! [`tokens`] splits the text into fields, [`decode`] ([`interval`] for intervals) finds out
//! what each field means from what came before it, [`zonedb`] and [`zone`] resolve time zones.
//!
//! What a text means hangs on the session (DateStyle, IntervalStyle, TimeZone, the time of
//! `now`), on the server's own time zone data, and on its major version: see
//! [`DateTimeSettings`].
//!
//! PostgreSQL: `src/backend/utils/adt/{datetime,date,timestamp}.c`.

mod decode;
mod fast;
mod interval;
mod number;
mod parts;
mod posix;
mod tokens;
mod zone;
mod zonedb;

use std::ops::Range;
use std::sync::Arc;

use pgformat::datum::datetime::{
    DATE_NOBEGIN, DATE_NOEND, INTERVAL_BYTES, Interval, POSTGRES_EPOCH_JDATE, SECS_PER_DAY,
    TIMESTAMP_NOBEGIN, TIMESTAMP_NOEND, TIMETZ_BYTES, UNIX_EPOCH_JDATE, USECS_PER_DAY,
    USECS_PER_SEC, date_to_julian,
};
use pgformat::version::MajorVersion;

use self::decode::{DateTimeKind, determine_offset};
use self::parts::{Clock, is_valid_julian};
use crate::error::ValueError;

pub use self::zone::Zone;
pub use self::zonedb::ZoneDb;

/// DateStyle's order of year, month and day in ambiguous input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrder {
    /// Year, month, day.
    Ymd,
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

impl DateOrder {
    /// The order in a value of `SHOW DateStyle`, such as `ISO, MDY`.
    pub fn from_date_style(style: &str) -> Option<DateOrder> {
        match style.rsplit(',').next()?.trim() {
            "YMD" => Some(DateOrder::Ymd),
            "DMY" => Some(DateOrder::Dmy),
            "MDY" => Some(DateOrder::Mdy),
            _ => None,
        }
    }
}

/// IntervalStyle. Only `sql_standard` matters to input: there a leading sign holds for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalStyle {
    /// postgres.
    Postgres,
    /// postgres_verbose.
    PostgresVerbose,
    /// sql_standard.
    SqlStandard,
    /// iso_8601.
    Iso8601,
}

impl IntervalStyle {
    /// The style of a value of `SHOW IntervalStyle`.
    pub fn from_setting(style: &str) -> Option<IntervalStyle> {
        match style {
            "postgres" => Some(IntervalStyle::Postgres),
            "postgres_verbose" => Some(IntervalStyle::PostgresVerbose),
            "sql_standard" => Some(IntervalStyle::SqlStandard),
            "iso_8601" => Some(IntervalStyle::Iso8601),
            _ => None,
        }
    }
}

/// All that the meaning of a date or time depends on. Made by [`DateTimeSettings::new`]; to
/// change one setting, make new ones.
#[derive(Debug, Clone)]
pub struct DateTimeSettings {
    /// From DateStyle.
    pub date_order: DateOrder,
    /// IntervalStyle.
    pub interval_style: IntervalStyle,
    /// TimeZone.
    pub zone: Arc<Zone>,
    /// The server's zones and abbreviations.
    pub zones: Arc<ZoneDb>,
    /// The transaction's start, a timestamptz: what `now` and `today` mean.
    pub now_micros: i64,
    /// The server's.
    pub version: MajorVersion,
    /// What the fast path needs of it.
    known: fast::Known,
}

impl DateTimeSettings {
    /// Settings from those of the session.
    pub fn new(
        date_order: DateOrder,
        interval_style: IntervalStyle,
        zone: Arc<Zone>,
        zones: Arc<ZoneDb>,
        now_micros: i64,
        version: MajorVersion,
    ) -> DateTimeSettings {
        let mut settings = DateTimeSettings {
            date_order,
            interval_style,
            zone,
            zones,
            now_micros,
            version,
            known: fast::Known {
                order: date_order,
                t_separates: false,
                z_west_secs: None,
                utc_west_secs: None,
            },
        };
        settings.known.t_separates = matches!(decode::abbreviation(b"t", &settings), Ok(None));
        settings.known.z_west_secs = settings.fixed_zone(b"z");
        settings.known.utc_west_secs = settings.fixed_zone(b"utc");
        settings
    }

    /// What an abbreviation means in seconds west of Greenwich, if always the same.
    fn fixed_zone(&self, word: &[u8]) -> Option<i32> {
        match decode::abbreviation(word, self) {
            Ok(Some(decode::AbbreviationMeaning::Offset { offset_secs, .. })) => Some(-offset_secs),
            _ => None,
        }
    }

    /// Before 18 a zone's past before its first transition is looked up otherwise.
    fn before_18(&self) -> bool {
        !self.version.at_least(18)
    }
}

/// Why text is not a value.
///
/// PostgreSQL: `src/include/utils/datetime.h`, `DTERR_*`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DtError {
    BadFormat,
    FieldOverflow,
    /// A month or day out of range: maybe the order is wrong.
    MonthDayOverflow,
    IntervalOverflow,
    DisplacementOverflow,
    /// No zone of this name.
    BadTimezone(Box<[u8]>),
    /// The table of abbreviations names a zone that does not exist.
    BadAbbreviation {
        zone: Box<[u8]>,
        name: Box<[u8]>,
    },
}

impl DtError {
    /// The error as the server words it.
    ///
    /// PostgreSQL: `datetime.c`, `DateTimeParseError`.
    #[cold]
    fn report(self, text: &[u8], type_name: &str, version: MajorVersion) -> Box<ValueError> {
        let text = String::from_utf8_lossy(text);
        match self {
            DtError::BadFormat => ValueError::new(
                "22007",
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            DtError::FieldOverflow => ValueError::new(
                "22008",
                format!("date/time field value out of range: \"{text}\""),
            ),
            DtError::MonthDayOverflow => ValueError::new(
                "22008",
                format!("date/time field value out of range: \"{text}\""),
            )
            .with_hint(if version.at_least(18) {
                "Perhaps you need a different \"DateStyle\" setting."
            } else {
                "Perhaps you need a different \"datestyle\" setting."
            }),
            DtError::IntervalOverflow => ValueError::new(
                "22015",
                format!("interval field value out of range: \"{text}\""),
            ),
            DtError::DisplacementOverflow => ValueError::new(
                "22009",
                format!("time zone displacement out of range: \"{text}\""),
            ),
            DtError::BadTimezone(name) => ValueError::new(
                "22023",
                format!(
                    "time zone \"{}\" not recognized",
                    String::from_utf8_lossy(&name)
                ),
            ),
            DtError::BadAbbreviation { zone, name } => ValueError::new(
                "F0000",
                format!(
                    "time zone \"{}\" not recognized",
                    String::from_utf8_lossy(&zone)
                ),
            )
            .with_detail(format!(
                "This time zone name appears in the configuration file for time zone \
                 abbreviation \"{}\".",
                String::from_utf8_lossy(&name)
            )),
        }
    }
}

#[cold]
fn out_of_range(type_name: &str, text: &[u8]) -> Box<ValueError> {
    let text = String::from_utf8_lossy(text);
    ValueError::new("22008", format!("{type_name} out of range: \"{text}\""))
}

/// 2000-01-01 in seconds since 1970-01-01.
const EPOCH_SECS: i64 = (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) as i64 * SECS_PER_DAY;
/// The finite dates: from 4714-11-24 BC, before 5874898-01-01.
const DATES: Range<i32> = -POSTGRES_EPOCH_JDATE..2_147_483_494 - POSTGRES_EPOCH_JDATE;
/// The finite timestamps: from 4714-11-24 BC, before 294277-01-01.
const TIMESTAMPS: Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// A zone's displacement is less than this, either way.
const DISPLACEMENT_LIMIT_SECS: i32 = 16 * 3600;

/// Days since 2000-01-01 of a date's text.
///
/// PostgreSQL: `date.c`, `date_in`.
///
/// # Errors
/// As the server's: 22007, 22008, 22009, 22023.
#[inline]
pub fn date_in(text: &[u8], settings: &DateTimeSettings) -> Result<i32, Box<ValueError>> {
    match fast::date(text, &settings.known) {
        Some(days) => Ok(days),
        None => date_slow(text, settings),
    }
}

#[cold]
fn date_slow(text: &[u8], settings: &DateTimeSettings) -> Result<i32, Box<ValueError>> {
    let decoded = tokens::split(text, tokens::DATE_WORK_BYTES)
        .and_then(|fields| decode::date_time(&fields, settings))
        .map_err(|e| e.report(text, "date", settings.version))?;
    let clock = match decoded.kind {
        DateTimeKind::Value => decoded.clock,
        DateTimeKind::Epoch => Clock {
            year: 1970,
            month: 1,
            day: 1,
            ..Clock::default()
        },
        DateTimeKind::Infinity => return Ok(DATE_NOEND),
        DateTimeKind::MinusInfinity => return Ok(DATE_NOBEGIN),
    };
    if !is_valid_julian(clock.year, clock.month) {
        return Err(out_of_range("date", text));
    }
    let days = date_to_julian(clock.year, clock.month, clock.day) - POSTGRES_EPOCH_JDATE;
    if !DATES.contains(&days) {
        return Err(out_of_range("date", text));
    }
    Ok(days)
}

/// Checks a date that came in binary form.
///
/// PostgreSQL: `date.c`, `date_recv`.
pub(super) fn date_recv(days: i32) -> Result<i32, Box<ValueError>> {
    if DATES.contains(&days) || days == DATE_NOBEGIN || days == DATE_NOEND {
        return Ok(days);
    }
    Err(received_out_of_range("date"))
}

#[cold]
fn received_out_of_range(type_name: &str) -> Box<ValueError> {
    ValueError::new("22008", format!("{type_name} out of range"))
}

/// Microseconds since midnight of a time's text. `typmod` is the precision, -1 for none.
///
/// PostgreSQL: `date.c`, `time_in`.
///
/// # Errors
/// As the server's: 22007, 22008, 22009, 22023.
#[inline]
pub fn time_in(
    text: &[u8],
    typmod: i32,
    settings: &DateTimeSettings,
) -> Result<i64, Box<ValueError>> {
    let micros = match fast::time(text) {
        Some(micros) => micros,
        None => time_slow(text, "time", settings)?.0,
    };
    Ok(round_time(micros, typmod))
}

/// Microseconds since midnight and seconds west of Greenwich of a timetz's text. `typmod` is
/// the precision, -1 for none.
///
/// PostgreSQL: `date.c`, `timetz_in`.
///
/// # Errors
/// As the server's: 22007, 22008, 22009, 22023.
#[inline]
pub fn timetz_in(
    text: &[u8],
    typmod: i32,
    settings: &DateTimeSettings,
) -> Result<(i64, i32), Box<ValueError>> {
    let (micros, zone) = match fast::timetz(text, &settings.known) {
        Some(value) => value,
        None => time_slow(text, "time with time zone", settings)?,
    };
    Ok((round_time(micros, typmod), zone))
}

#[cold]
fn time_slow(
    text: &[u8],
    type_name: &str,
    settings: &DateTimeSettings,
) -> Result<(i64, i32), Box<ValueError>> {
    let decoded = tokens::split(text, tokens::DATE_WORK_BYTES)
        .and_then(|fields| decode::time_only(&fields, settings))
        .map_err(|e| e.report(text, type_name, settings.version))?;
    Ok((decoded.clock.micros_of_day(), decoded.west_secs))
}

/// Checks and rounds a time that came in binary form.
///
/// PostgreSQL: `date.c`, `time_recv`, `timetz_recv`.
pub(super) fn time_recv(micros: i64, typmod: i32) -> Result<i64, Box<ValueError>> {
    if (0..=USECS_PER_DAY).contains(&micros) {
        return Ok(round_time(micros, typmod));
    }
    Err(received_out_of_range("time"))
}

/// Checks the zone of a timetz that came in binary form.
///
/// PostgreSQL: `date.c`, `timetz_recv`.
pub(super) fn zone_recv(west_secs: i32) -> Result<i32, Box<ValueError>> {
    if (1 - DISPLACEMENT_LIMIT_SECS..DISPLACEMENT_LIMIT_SECS).contains(&west_secs) {
        return Ok(west_secs);
    }
    Err(ValueError::new(
        "22009",
        "time zone displacement out of range",
    ))
}

/// A timetz as it is stored.
#[inline]
pub(super) fn timetz_bytes(micros: i64, west_secs: i32) -> [u8; TIMETZ_BYTES] {
    let mut bytes = [0; TIMETZ_BYTES];
    bytes[..8].copy_from_slice(&micros.to_le_bytes());
    bytes[8..].copy_from_slice(&west_secs.to_le_bytes());
    bytes
}

/// Microseconds since 2000-01-01 of a timestamp's text. `typmod` is the precision, -1 for
/// none. A zone in the text is checked and ignored.
///
/// PostgreSQL: `timestamp.c`, `timestamp_in`.
///
/// # Errors
/// As the server's: 22007, 22008, 22009, 22023.
#[inline]
pub fn timestamp_in(
    text: &[u8],
    typmod: i32,
    settings: &DateTimeSettings,
) -> Result<i64, Box<ValueError>> {
    let micros = match fast::timestamp(text, &settings.known) {
        Some(parsed) => parsed.local_micros(),
        None => timestamp_slow(text, false, settings)?,
    };
    round_timestamp(micros, typmod)
}

/// Microseconds since 2000-01-01 UTC of a timestamptz's text. `typmod` is the precision, -1
/// for none. Text without a zone is in the session's.
///
/// PostgreSQL: `timestamp.c`, `timestamptz_in`.
///
/// # Errors
/// As the server's: 22007, 22008, 22009, 22023.
#[inline]
pub fn timestamptz_in(
    text: &[u8],
    typmod: i32,
    settings: &DateTimeSettings,
) -> Result<i64, Box<ValueError>> {
    let micros = match fast::timestamp(text, &settings.known) {
        Some(parsed) => {
            let west_secs = parsed.west_secs.unwrap_or_else(|| {
                let local_secs = parsed.local_secs + EPOCH_SECS;
                determine_offset(local_secs, &settings.zone, settings.before_18()).0
            });
            // The text has a year of four digits: far from any limit.
            parsed.local_micros() + i64::from(west_secs) * USECS_PER_SEC
        }
        None => timestamp_slow(text, true, settings)?,
    };
    round_timestamp(micros, typmod)
}

#[cold]
fn timestamp_slow(
    text: &[u8],
    with_zone: bool,
    settings: &DateTimeSettings,
) -> Result<i64, Box<ValueError>> {
    let type_name = if with_zone {
        "timestamp with time zone"
    } else {
        "timestamp"
    };
    let decoded = tokens::split(text, tokens::TIMESTAMP_WORK_BYTES)
        .and_then(|fields| decode::date_time(&fields, settings))
        .map_err(|e| e.report(text, type_name, settings.version))?;
    match decoded.kind {
        DateTimeKind::Value => {
            let west_secs = if with_zone { decoded.west_secs } else { 0 };
            timestamp_of(&decoded.clock, west_secs).ok_or_else(|| out_of_range("timestamp", text))
        }
        DateTimeKind::Epoch => Ok(-EPOCH_SECS * USECS_PER_SEC),
        DateTimeKind::Infinity => Ok(TIMESTAMP_NOEND),
        DateTimeKind::MinusInfinity => Ok(TIMESTAMP_NOBEGIN),
    }
}

/// The timestamp of a date and a time in a zone; `None` outside the type's range.
///
/// PostgreSQL: `timestamp.c`, `tm2timestamp`.
fn timestamp_of(clock: &Clock, west_secs: i32) -> Option<i64> {
    if !is_valid_julian(clock.year, clock.month) {
        return None;
    }
    let days = date_to_julian(clock.year, clock.month, clock.day) - POSTGRES_EPOCH_JDATE;
    let micros = i64::from(days)
        .checked_mul(USECS_PER_DAY)?
        .checked_add(clock.micros_of_day())?
        .wrapping_add(i64::from(west_secs) * USECS_PER_SEC);
    TIMESTAMPS.contains(&micros).then_some(micros)
}

/// Checks and rounds a timestamp or timestamptz that came in binary form.
///
/// PostgreSQL: `timestamp.c`, `timestamp_recv`, `timestamptz_recv`.
pub(super) fn timestamp_recv(micros: i64, typmod: i32) -> Result<i64, Box<ValueError>> {
    if !TIMESTAMPS.contains(&micros) && micros != TIMESTAMP_NOBEGIN && micros != TIMESTAMP_NOEND {
        return Err(received_out_of_range("timestamp"));
    }
    round_timestamp(micros, typmod)
}

/// An interval's text. `typmod` is the server's: fields in its high half, precision in its
/// low half, -1 for none.
///
/// PostgreSQL: `timestamp.c`, `interval_in`.
///
/// # Errors
/// As the server's: 22007, 22008, 22015, 22023.
pub fn interval_in(
    text: &[u8],
    typmod: i32,
    settings: &DateTimeSettings,
) -> Result<Interval, Box<ValueError>> {
    let range = interval::range_of(typmod);
    let decoded = interval::decode(text, range, settings).map_err(|e| {
        let e = match e {
            DtError::FieldOverflow => DtError::IntervalOverflow,
            other => other,
        };
        e.report(text, "interval", settings.version)
    })?;
    let value = decoded.ok_or_else(interval::out_of_range)?;
    interval::adjust_for_typmod(value, typmod, settings.version)
}

/// Fits an interval that came in binary form to its type modifier.
///
/// PostgreSQL: `timestamp.c`, `interval_recv`.
pub(super) fn interval_recv(
    value: Interval,
    typmod: i32,
    version: MajorVersion,
) -> Result<Interval, Box<ValueError>> {
    interval::adjust_for_typmod(value, typmod, version)
}

/// An interval as it is stored.
#[inline]
pub(super) fn interval_bytes(value: Interval) -> [u8; INTERVAL_BYTES] {
    let mut bytes = [0; INTERVAL_BYTES];
    bytes[..8].copy_from_slice(&value.micros.to_le_bytes());
    bytes[8..12].copy_from_slice(&value.days.to_le_bytes());
    bytes[12..].copy_from_slice(&value.months.to_le_bytes());
    bytes
}

/// Microseconds of the last digit that a precision keeps, by precision.
const SCALES: [i64; 7] = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// Rounds a time to its precision; one that is no precision changes nothing.
///
/// PostgreSQL: `date.c`, `AdjustTimeForTypmod`.
#[inline]
fn round_time(micros: i64, typmod: i32) -> i64 {
    match usize::try_from(typmod).ok().and_then(|p| SCALES.get(p)) {
        Some(&scale) => round_to(micros, scale),
        None => micros,
    }
}

/// Rounds a timestamp to its precision.
///
/// PostgreSQL: `timestamp.c`, `AdjustTimestampForTypmod`.
#[inline]
fn round_timestamp(micros: i64, typmod: i32) -> Result<i64, Box<ValueError>> {
    if typmod == -1 || micros == TIMESTAMP_NOBEGIN || micros == TIMESTAMP_NOEND {
        return Ok(micros);
    }
    match usize::try_from(typmod).ok().and_then(|p| SCALES.get(p)) {
        Some(&scale) => Ok(round_to(micros, scale)),
        None => Err(ValueError::new(
            "22023",
            format!("timestamp({typmod}) precision must be between 0 and 6"),
        )),
    }
}

/// To the nearest multiple, halves away from zero.
#[inline]
fn round_to(micros: i64, scale: i64) -> i64 {
    // Half of 1 is 0: the full precision changes nothing.
    let half = scale / 2;
    if micros >= 0 {
        (micros + half) / scale * scale
    } else {
        -((half - micros) / scale * scale)
    }
}

/// The session's local date and time at an instant, with the microsecond, and its offset in
/// seconds west of Greenwich.
fn local_now(settings: &DateTimeSettings) -> (Clock, i32) {
    let unix_secs = settings.now_micros.div_euclid(USECS_PER_SEC) + EPOCH_SECS;
    let offset_secs = settings.zone.offset_at(unix_secs);
    let local = settings
        .now_micros
        .saturating_add(i64::from(offset_secs) * USECS_PER_SEC);
    (Clock::from_timestamp(local), -offset_secs)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::sync::LazyLock;

    /// A server with one zone and three abbreviations.
    static ZONES: LazyLock<Arc<ZoneDb>> = LazyLock::new(|| {
        let share = tempfile::tempdir().unwrap();
        let path = |name: &str| share.path().join(name);
        fs::create_dir_all(path("timezone/Europe")).unwrap();
        fs::write(path("timezone/Europe/Berlin"), zone::tests::berlin()).unwrap();
        fs::create_dir(path("timezonesets")).unwrap();
        fs::write(
            path("timezonesets/Default"),
            "# comment\n@INCLUDE Zulu\nCET 3600\nBLN Europe/Berlin # its own\n\
             @OVERRIDE\nCET 7200 D\nBAD No/Where\n",
        )
        .unwrap();
        fs::write(path("timezonesets/Zulu"), "Z 0\nUTC 0  # Universal\n").unwrap();
        let zones = ZoneDb::open(share.path(), "Default").unwrap();
        // Read before the directory goes.
        zones.zone("Europe/Berlin").unwrap();
        Arc::new(zones)
    });

    /// A session of a server of this version.
    pub(in crate::types) fn settings(major: u32) -> DateTimeSettings {
        DateTimeSettings::new(
            DateOrder::Dmy,
            IntervalStyle::SqlStandard,
            ZONES.zone("europe/berlin").unwrap(),
            Arc::clone(&ZONES),
            0,
            MajorVersion::from_version_num(major * 10_000).unwrap(),
        )
    }

    fn timestamptz(text: &str) -> Result<i64, Box<ValueError>> {
        timestamptz_in(text.as_bytes(), -1, &settings(17))
    }

    #[test]
    fn files_of_abbreviations_include_and_override() {
        let noon = timestamptz("2001-02-03 12:00+00").unwrap();
        assert_eq!(timestamptz("2001-02-03 12:00 UTC"), Ok(noon));
        assert_eq!(timestamptz("2001-02-03 14:00 CET"), Ok(noon));
        assert_eq!(timestamptz("2001-02-03 13:00 BLN"), Ok(noon));
        let error = timestamptz("2001-02-03 12:00 BAD").unwrap_err();
        assert_eq!(error.sqlstate, "F0000");
        assert_eq!(error.message, "time zone \"No/Where\" not recognized");
        assert_eq!(
            error.detail.as_deref(),
            Some(
                "This time zone name appears in the configuration file for time zone \
                 abbreviation \"bad\"."
            )
        );
    }

    #[test]
    fn a_time_that_a_change_skips_or_repeats_is_resolved_as_the_server_does() {
        let utc = |text: &str| timestamptz(&format!("{text}+00")).unwrap();
        // Skipped: as if the change had not been made yet.
        assert_eq!(
            timestamptz("2024-03-31 02:30:00"),
            Ok(utc("2024-03-31 01:30:00"))
        );
        // Repeated: the second time.
        assert_eq!(
            timestamptz("2024-10-27 02:30:00"),
            Ok(utc("2024-10-27 01:30:00"))
        );
        assert_eq!(
            timestamptz("2024-10-27 01:59:59"),
            Ok(utc("2024-10-26 23:59:59"))
        );
    }

    #[test]
    fn a_directory_without_zones_or_abbreviations_is_an_error() {
        let share = tempfile::tempdir().unwrap();
        fs::create_dir(share.path().join("timezone")).unwrap();
        assert!(ZoneDb::open(share.path(), "Default").is_err());
        fs::write(share.path().join("timezone/X"), "").unwrap();
        let error = ZoneDb::open(share.path(), "Default").unwrap_err();
        assert_eq!(error.sqlstate, "58P01");
        assert!(ZoneDb::open(share.path(), "../Default").is_err());
        assert!(ZONES.zone("No/Where").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                "[-+:./T 0-9]{0,40}".prop_map(String::into_bytes),
                "(P|)([-+]?[0-9]{1,20}[.]?[0-9]{0,3} ?(Y|M|D|T|H|S|days|mons|us|c|BLN| |-|:)){0,6}"
                    .prop_map(String::into_bytes),
            ],
            major in 14_u32..19,
            typmod in prop_oneof![Just(-1), 0..8, any::<i32>()],
        ) {
            let settings = settings(major);
            let _ = date_in(&text, &settings);
            let _ = time_in(&text, typmod, &settings);
            let _ = timetz_in(&text, typmod, &settings);
            let _ = timestamp_in(&text, typmod, &settings);
            let _ = timestamptz_in(&text, typmod, &settings);
            let _ = interval_in(&text, typmod, &settings);
        }

        #[test]
        fn the_fast_path_and_the_long_way_agree(
            date in "(19|20)[0-9][0-9]-[01][0-9]-[0-3][0-9]|[0-3][0-9][-/.][01][0-9][-/.]20[0-9][0-9]",
            time in "|[ T][0-2][0-9]:[0-5][0-9](|:[0-6][0-9](|[.][0-9]{1,16}))",
            zone in "| ?[-+][01][0-9](|:?[0-6][0-9])| ?Z| ?UTC",
            major in 14_u32..19,
        ) {
            let settings = settings(major);
            let text = format!("{date}{time}{}", if time.is_empty() { "" } else { &zone });
            let text = text.as_bytes();
            if let Some(fast) = fast::timestamp(text, &settings.known) {
                prop_assert_eq!(timestamp_slow(text, false, &settings), Ok(fast.local_micros()));
                prop_assert_eq!(
                    timestamp_slow(text, true, &settings),
                    timestamptz_in(text, -1, &settings)
                );
                prop_assert_eq!(date_slow(text, &settings), date_in(text, &settings));
            }
            let text = format!("{}{zone}", time.get(1..).unwrap_or("12:00"));
            let text = text.as_bytes();
            if let Some(fast) = fast::timetz(text, &settings.known) {
                let slow = time_slow(text, "time with time zone", &settings);
                prop_assert_eq!(slow, Ok(fast));
            }
            if let Some(fast) = fast::time(text) {
                prop_assert_eq!(time_slow(text, "time", &settings).map(|v| v.0), Ok(fast));
            }
        }
    }
}
