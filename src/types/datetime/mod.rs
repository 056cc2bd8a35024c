//! Date/time input: only the signatures, until the real module stands here.

use std::sync::Arc;

use pgformat::version::MajorVersion;

use crate::error::ValueError;

/// All that the meaning of a date or time depends on.
#[derive(Debug, Clone)]
pub struct DateTimeSettings {
    /// The server's.
    pub version: MajorVersion,
    /// The server's zones.
    pub zones: Arc<()>,
}

/// An interval.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    /// Microseconds.
    pub micros: i64,
    /// Days.
    pub days: i32,
    /// Months.
    pub months: i32,
}

fn refused() -> Box<ValueError> {
    ValueError::new("0A000", "date/time types are not built natively yet")
}

/// A date.
pub fn date_in(_: &[u8], _: &DateTimeSettings) -> Result<i32, Box<ValueError>> {
    Err(refused())
}

/// A time.
pub fn time_in(_: &[u8], _: i32, _: &DateTimeSettings) -> Result<i64, Box<ValueError>> {
    Err(refused())
}

/// A timetz.
pub fn timetz_in(_: &[u8], _: i32, _: &DateTimeSettings) -> Result<(i64, i32), Box<ValueError>> {
    Err(refused())
}

/// A timestamp.
pub fn timestamp_in(_: &[u8], _: i32, _: &DateTimeSettings) -> Result<i64, Box<ValueError>> {
    Err(refused())
}

/// A timestamptz.
pub fn timestamptz_in(_: &[u8], _: i32, _: &DateTimeSettings) -> Result<i64, Box<ValueError>> {
    Err(refused())
}

/// An interval.
pub fn interval_in(_: &[u8], _: i32, _: &DateTimeSettings) -> Result<Interval, Box<ValueError>> {
    Err(refused())
}
