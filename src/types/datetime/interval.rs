//! Text to intervals.
//!
//! The fields are read from right to left, so that a unit is known before its number:
//! `1 year 2 mons -3 days 04:05:06`. What is no such list may be ISO 8601: `P1Y2M3DT4H5M6S`.
//! Numbers go into an [`Accumulator`], of which there are two: 14 counts each unit in 32 bits
//! that wrap around, 15 and later sum up with a check at each step.
//!
//! PostgreSQL: `src/backend/utils/adt/datetime.c`, `DecodeInterval`, `DecodeISO8601Interval`;
//! `timestamp.c`, `AdjustIntervalForTypmod`.

use pgformat::datum::datetime::{
    Interval, MONTHS_PER_YEAR, USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC,
};
use pgformat::version::MajorVersion;

use super::number::{strtod, strtoint, strtol, to_i32};
use super::parts::{ClockTime, clock_time, fraction, mask};
use super::tokens::{
    self, DateWord, FieldKind, Fields, IntervalWord, Label, Reserved, Unit, date_word,
    interval_word,
};
use super::{DateTimeSettings, DtError, IntervalStyle, SCALES};
use crate::error::ValueError;

const RANGE_FULL: u32 = 0x7fff;
const PRECISION_FULL: i32 = 0xffff;
const DAYS_PER_MONTH: i32 = 30;

/// The fields that a typmod restricts an interval to: bits of [`mask`].
pub(super) fn range_of(typmod: i32) -> u32 {
    if typmod >= 0 {
        (typmod >> 16) as u32 & RANGE_FULL
    } else {
        RANGE_FULL
    }
}

/// An interval's text; `None` when the value is out of range.
pub(super) fn decode(
    text: &[u8],
    range: u32,
    settings: &DateTimeSettings,
) -> Result<Option<Interval>, DtError> {
    if settings.version.at_least(15) {
        decode_into::<Summed>(text, range, settings)
    } else {
        decode_into::<Counted>(text, range, settings)
    }
}

fn decode_into<A: Accumulator>(
    text: &[u8],
    range: u32,
    settings: &DateTimeSettings,
) -> Result<Option<Interval>, DtError> {
    let listed = tokens::split(text, tokens::INTERVAL_WORK_BYTES)
        .and_then(|fields| list::<A>(&fields, range, settings));
    match listed {
        Err(DtError::BadFormat) => iso_8601::<A>(text).map(A::finish),
        Err(other) => Err(other),
        Ok(List::Finite(value)) => Ok(value.finish()),
        Ok(List::Infinity) => Ok(Some(Interval::NOEND)),
        Ok(List::MinusInfinity) => Ok(Some(Interval::NOBEGIN)),
    }
}

/// Sums up the numbers of an interval.
trait Accumulator: Default {
    /// Whether numbers may have 64 bits.
    const WIDE: bool;

    /// A number of a unit and its fraction, of the same sign.
    fn add(&mut self, unit: Unit, value: i64, frac: f64) -> Result<(), DtError>;

    /// Sets the time.
    fn set_time(&mut self, time: &ClockTime, negative: bool) -> Result<(), DtError>;

    /// Ends a list of fields; `force_negative` makes all negative.
    fn end_list(&mut self, force_negative: bool);

    /// Turns all signs.
    fn negate(&mut self) -> Result<(), DtError>;

    /// The unit that the fraction of ISO 8601's hhmmss counts.
    const BASIC_FRACTION: Unit;

    /// The interval, if it is in range.
    fn finish(self) -> Option<Interval>;
}

/// A list of fields, read.
enum List<A> {
    Finite(A),
    Infinity,
    MinusInfinity,
}

/// What a number without a unit of its own counts.
#[derive(Clone, Copy)]
enum Pending {
    /// Whatever the type's rightmost field is.
    Unset,
    Unit(Unit),
    /// Nothing: "ago" or a word for a whole value stands right of it.
    Nothing,
}

/// Reads fields from right to left.
fn list<A: Accumulator>(
    fields: &Fields,
    range: u32,
    settings: &DateTimeSettings,
) -> Result<List<A>, DtError> {
    let version = settings.version;
    let strict = version.at_least(17);
    let is_signed = |i: usize| matches!(fields.text(i)[0], b'-' | b'+');
    // In the style of the SQL standard a lone leading minus holds for all fields.
    let force_negative = settings.interval_style == IntervalStyle::SqlStandard
        && fields.len() > 0
        && fields.text(0)[0] == b'-'
        && !(1..fields.len()).any(is_signed);
    // 14 applies it at the end, to what the fields add up to.
    let force_each = A::WIDE && force_negative;
    let minute_to_second = range == mask::MINUTE | mask::SECOND;
    let mut sum = A::default();
    let mut infinite = None;
    let mut seen = 0;
    let mut pending = Pending::Unset;
    // A unit waits for its number.
    let mut unit_waits = false;
    let mut is_ago = false;
    for i in (0..fields.len()).rev() {
        let text = fields.text(i);
        let bits = match fields.kind(i) {
            FieldKind::Word | FieldKind::Special => {
                if strict && unit_waits {
                    return Err(DtError::BadFormat);
                }
                let reserved = if strict { date_word(text) } else { None };
                match (interval_word(text), reserved) {
                    (Some(IntervalWord::Ignored), _) | (None, Some(DateWord::Ignored)) => {
                        pending = Pending::Unset;
                        continue;
                    }
                    (Some(IntervalWord::Unit(unit)), _) => {
                        pending = Pending::Unit(unit);
                        unit_waits = true;
                        0
                    }
                    // The labels of dates are units too: "mm" is minutes.
                    (None, Some(DateWord::Label(label))) => {
                        pending = Pending::Unit(if label == Label::Minute {
                            Unit::Minute
                        } else {
                            Unit::Other
                        });
                        unit_waits = true;
                        0
                    }
                    (Some(IntervalWord::Ago), _) => {
                        if strict && i + 1 != fields.len() {
                            return Err(DtError::BadFormat);
                        }
                        is_ago = true;
                        pending = Pending::Nothing;
                        0
                    }
                    (None, Some(DateWord::Reserved(word))) => {
                        if i + 1 != fields.len() {
                            return Err(DtError::BadFormat);
                        }
                        infinite = match word {
                            Reserved::Infinity => Some(List::Infinity),
                            Reserved::MinusInfinity => Some(List::MinusInfinity),
                            _ => return Err(DtError::BadFormat),
                        };
                        pending = Pending::Nothing;
                        mask::DATE | mask::TIME
                    }
                    _ => return Err(DtError::BadFormat),
                }
            }
            FieldKind::Time => {
                let time = clock_time(text, minute_to_second, version)?;
                sum.set_time(&time, force_each)?;
                pending = Pending::Unit(Unit::Day);
                unit_waits = false;
                mask::TIME
            }
            kind => {
                let bits = if kind == FieldKind::Signed
                    && text.contains(&b':')
                    && let Ok(time) = clock_time(&text[1..], minute_to_second, version)
                    && sum.set_time(&time, text[0] == b'-' || force_each).is_ok()
                {
                    pending = Pending::Unit(Unit::Day);
                    mask::TIME
                } else {
                    number::<A>(text, &mut pending, range, force_each, &mut sum, version)?
                };
                unit_waits = false;
                bits
            }
        };
        if seen & bits != 0 {
            return Err(DtError::BadFormat);
        }
        seen |= bits;
    }
    if seen == 0 || (strict && unit_waits) {
        return Err(DtError::BadFormat);
    }
    sum.end_list(force_negative);
    if is_ago {
        sum.negate()?;
    }
    Ok(infinite.unwrap_or(List::Finite(sum)))
}

/// A number, maybe signed, with a fraction, or years and months; the bits of its unit.
fn number<A: Accumulator>(
    text: &[u8],
    pending: &mut Pending,
    range: u32,
    force_negative: bool,
    sum: &mut A,
    version: MajorVersion,
) -> Result<u32, DtError> {
    let whole = strtol(text);
    if whole.overflows || (!A::WIDE && i32::try_from(whole.value).is_err()) {
        return Err(DtError::FieldOverflow);
    }
    let mut value = whole.value;
    let mut frac = 0.0;
    let negative = text[0] == b'-';
    if let Pending::Unset = pending {
        *pending = Pending::Unit(rightmost_unit(range));
    }
    match &text[whole.taken..] {
        [] => {}
        // The SQL standard's years-months.
        [b'-', tail @ ..] => {
            let (months, taken) = strtoint(tail).ok_or(DtError::FieldOverflow)?;
            if !(0..MONTHS_PER_YEAR).contains(&months) {
                return Err(DtError::FieldOverflow);
            }
            if taken != tail.len() {
                return Err(DtError::BadFormat);
            }
            *pending = Pending::Unit(Unit::Month);
            let months = i64::from(if negative { -months } else { months });
            value = value
                .checked_mul(i64::from(MONTHS_PER_YEAR))
                .and_then(|v| v.checked_add(months))
                .filter(|&v| i32::try_from(v).is_ok())
                .ok_or(DtError::FieldOverflow)?;
        }
        rest @ [b'.', ..] => {
            frac = fraction(rest, version)?;
            if negative {
                frac = -frac;
            }
        }
        _ => return Err(DtError::BadFormat),
    }
    if force_negative {
        value = if value > 0 { -value } else { value };
        frac = if frac > 0.0 { -frac } else { frac };
    }
    let &mut Pending::Unit(unit) = pending else {
        return Err(DtError::BadFormat);
    };
    let bits = match unit {
        Unit::Microsecond => mask::MICROSECOND,
        Unit::Millisecond => mask::MILLISECOND,
        Unit::Second if frac == 0.0 => mask::SECOND,
        Unit::Second => mask::ALL_SECONDS,
        Unit::Minute => mask::MINUTE,
        Unit::Hour => mask::HOUR,
        Unit::Day => mask::DAY,
        Unit::Week => mask::WEEK,
        Unit::Month => mask::MONTH,
        Unit::Year => mask::YEAR,
        Unit::Decade => mask::DECADE,
        Unit::Century => mask::CENTURY,
        Unit::Millennium => mask::MILLENNIUM,
        Unit::Other => return Err(DtError::BadFormat),
    };
    sum.add(unit, value, frac)?;
    if unit == Unit::Hour {
        // A number left of hours counts days.
        *pending = Pending::Unit(Unit::Day);
    }
    Ok(bits)
}

/// What a lone number counts in a type of these fields.
fn rightmost_unit(range: u32) -> Unit {
    const YEAR_TO_MONTH: u32 = mask::YEAR | mask::MONTH;
    const DAY_TO_HOUR: u32 = mask::DAY | mask::HOUR;
    const HOUR_TO_MINUTE: u32 = mask::HOUR | mask::MINUTE;
    const DAY_TO_MINUTE: u32 = mask::DAY | HOUR_TO_MINUTE;
    match range {
        mask::YEAR => Unit::Year,
        mask::MONTH | YEAR_TO_MONTH => Unit::Month,
        mask::DAY => Unit::Day,
        mask::HOUR | DAY_TO_HOUR => Unit::Hour,
        mask::MINUTE | HOUR_TO_MINUTE | DAY_TO_MINUTE => Unit::Minute,
        _ => Unit::Second,
    }
}

/// Reads ISO 8601's forms: with designators, `P1Y2M3W4DT5H6M7S`, and the alternative ones,
/// `P0001-02-03T04:05:06` and `P00010203T040506`.
fn iso_8601<A: Accumulator>(text: &[u8]) -> Result<A, DtError> {
    let [b'P', text @ ..] = text else {
        return Err(DtError::BadFormat);
    };
    if text.is_empty() {
        return Err(DtError::BadFormat);
    }
    let mut sum = A::default();
    let mut pos = 0;
    let mut in_date = true;
    let mut has_field = false;
    while pos < text.len() {
        if text[pos] == b'T' {
            in_date = false;
            has_field = false;
            pos += 1;
            continue;
        }
        let begin = pos;
        let (value, frac) = iso_number::<A>(text, &mut pos)?;
        let designator = text.get(pos).copied();
        pos += 1;
        let unit = match (in_date, designator) {
            (true, Some(b'Y')) => Unit::Year,
            (true, Some(b'M')) => Unit::Month,
            (true, Some(b'W')) => Unit::Week,
            (true, Some(b'D')) => Unit::Day,
            (true, None | Some(b'T' | b'-')) => {
                if designator != Some(b'-') && whole_digits(&text[begin..]) == 8 && !has_field {
                    sum.add(Unit::Year, value / 10_000, 0.0)?;
                    sum.add(Unit::Month, value / 100 % 100, 0.0)?;
                    sum.add(Unit::Day, value % 100, frac)?;
                } else if has_field {
                    return Err(DtError::BadFormat);
                } else {
                    sum.add(Unit::Year, value, frac)?;
                    if designator == Some(b'-') {
                        iso_month_and_day(text, &mut pos, &mut sum)?;
                        continue;
                    }
                }
                in_date = false;
                has_field = false;
                continue;
            }
            (false, Some(b'H')) => Unit::Hour,
            (false, Some(b'M')) => Unit::Minute,
            (false, Some(b'S')) => Unit::Second,
            (false, None) if whole_digits(&text[begin..]) == 6 && !has_field => {
                sum.add(Unit::Hour, value / 10_000, 0.0)?;
                sum.add(Unit::Minute, value / 100 % 100, 0.0)?;
                sum.add(Unit::Second, value % 100, 0.0)?;
                sum.add(A::BASIC_FRACTION, 0, frac)?;
                return Ok(sum);
            }
            (false, None | Some(b':')) => {
                if has_field {
                    return Err(DtError::BadFormat);
                }
                sum.add(Unit::Hour, value, frac)?;
                if designator.is_some() {
                    iso_minute_and_second(text, &mut pos, &mut sum)?;
                }
                return Ok(sum);
            }
            _ => return Err(DtError::BadFormat),
        };
        sum.add(unit, value, frac)?;
        has_field = true;
    }
    Ok(sum)
}

/// What follows `P0001-`: a month, maybe a day, then the end or the time.
fn iso_month_and_day<A: Accumulator>(
    text: &[u8],
    pos: &mut usize,
    sum: &mut A,
) -> Result<(), DtError> {
    for unit in [Unit::Month, Unit::Day] {
        let (value, frac) = iso_number::<A>(text, pos)?;
        sum.add(unit, value, frac)?;
        match text.get(*pos) {
            None | Some(b'T') => return Ok(()),
            Some(b'-') => *pos += 1,
            Some(_) => return Err(DtError::BadFormat),
        }
    }
    Err(DtError::BadFormat)
}

/// What follows `T04:`: a minute, maybe a second, then the end.
fn iso_minute_and_second<A: Accumulator>(
    text: &[u8],
    pos: &mut usize,
    sum: &mut A,
) -> Result<(), DtError> {
    for unit in [Unit::Minute, Unit::Second] {
        let (value, frac) = iso_number::<A>(text, pos)?;
        sum.add(unit, value, frac)?;
        match text.get(*pos) {
            None => return Ok(()),
            Some(b':') => *pos += 1,
            Some(_) => return Err(DtError::BadFormat),
        }
    }
    Err(DtError::BadFormat)
}

/// A number as its whole part and its fraction, of the same sign.
///
/// PostgreSQL: `datetime.c`, `ParseISO8601Number`.
fn iso_number<A: Accumulator>(text: &[u8], pos: &mut usize) -> Result<(i64, f64), DtError> {
    let rest = text.get(*pos..).unwrap_or(&[]);
    if !matches!(rest.first(), Some(b'0'..=b'9' | b'-' | b'.')) {
        return Err(DtError::BadFormat);
    }
    let (value, taken) = strtod(rest).ok_or(DtError::BadFormat)?;
    *pos += taken;
    let whole = if A::WIDE {
        // A round number below 2^50, to which a double is exact.
        const LIMIT: f64 = 1.0e15;
        if !(-LIMIT..=LIMIT).contains(&value) {
            return Err(DtError::FieldOverflow);
        }
        value as i64
    } else {
        // A NaN passes here, as it does in the server, and is out of range later.
        if value < f64::from(i32::MIN) || value > f64::from(i32::MAX) {
            return Err(DtError::FieldOverflow);
        }
        i64::from(to_i32(value))
    };
    Ok((whole, value - whole as f64))
}

/// How many digits a number's whole part has.
fn whole_digits(text: &[u8]) -> usize {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// 15 and later: sums that are checked at each step.
///
/// PostgreSQL: `src/include/datatype/timestamp.h`, `pg_itm_in`.
#[derive(Default)]
struct Summed {
    micros: i64,
    days: i32,
    months: i32,
    years: i32,
}

impl Summed {
    fn add_micros(&mut self, value: i64, frac: f64, scale: i64) -> Option<()> {
        self.micros = value.checked_mul(scale)?.checked_add(self.micros)?;
        self.add_fraction(frac, scale)
    }

    /// A fraction of `scale` microseconds, to the nearest.
    fn add_fraction(&mut self, frac: f64, scale: i64) -> Option<()> {
        let exact = frac * scale as f64;
        let whole = exact as i64;
        let rest = exact - whole as f64;
        let rounded = if rest > 0.5 {
            whole + 1
        } else if rest < -0.5 {
            whole - 1
        } else {
            whole
        };
        self.micros = self.micros.checked_add(rounded)?;
        Some(())
    }

    fn add_days(&mut self, value: i64, scale: i32) -> Option<()> {
        let days = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.days = self.days.checked_add(days)?;
        Some(())
    }

    /// A fraction of `scale` days.
    fn add_day_fraction(&mut self, frac: f64, scale: i32) -> Option<()> {
        let exact = frac * f64::from(scale);
        let whole = exact as i32;
        self.days = self.days.checked_add(whole)?;
        self.add_fraction(exact - f64::from(whole), USECS_PER_DAY)
    }

    fn add_months(&mut self, value: i64) -> Option<()> {
        self.months = self.months.checked_add(i32::try_from(value).ok()?)?;
        Some(())
    }

    fn add_years(&mut self, value: i64, frac: f64, scale: i32) -> Option<()> {
        let years = i32::try_from(value).ok()?.checked_mul(scale)?;
        self.years = self.years.checked_add(years)?;
        let months = frac * f64::from(scale) * f64::from(MONTHS_PER_YEAR);
        self.months = self.months.checked_add(to_i32(months.round_ties_even()))?;
        Some(())
    }
}

impl Accumulator for Summed {
    const WIDE: bool = true;
    // The server counts the fraction of hhmmss.fff in microseconds.
    const BASIC_FRACTION: Unit = Unit::Microsecond;

    fn add(&mut self, unit: Unit, value: i64, frac: f64) -> Result<(), DtError> {
        let done = match unit {
            Unit::Microsecond => self.add_micros(value, frac, 1),
            Unit::Millisecond => self.add_micros(value, frac, 1000),
            Unit::Second => self.add_micros(value, frac, USECS_PER_SEC),
            Unit::Minute => self.add_micros(value, frac, USECS_PER_MINUTE),
            Unit::Hour => self.add_micros(value, frac, USECS_PER_HOUR),
            Unit::Day => self
                .add_days(value, 1)
                .and_then(|()| self.add_fraction(frac, USECS_PER_DAY)),
            Unit::Week => self
                .add_days(value, 7)
                .and_then(|()| self.add_day_fraction(frac, 7)),
            Unit::Month => self
                .add_months(value)
                .and_then(|()| self.add_day_fraction(frac, DAYS_PER_MONTH)),
            Unit::Year => self.add_years(value, frac, 1),
            Unit::Decade => self.add_years(value, frac, 10),
            Unit::Century => self.add_years(value, frac, 100),
            Unit::Millennium => self.add_years(value, frac, 1000),
            Unit::Other => return Err(DtError::BadFormat),
        };
        done.ok_or(DtError::FieldOverflow)
    }

    fn set_time(&mut self, time: &ClockTime, negative: bool) -> Result<(), DtError> {
        let micros = time
            .hour
            .checked_mul(USECS_PER_HOUR)
            .and_then(|hours| hours.checked_add(i64::from(time.micros)))
            .and_then(|sum| sum.checked_add(i64::from(time.minute) * USECS_PER_MINUTE))
            .and_then(|sum| sum.checked_add(i64::from(time.second) * USECS_PER_SEC))
            .ok_or(DtError::FieldOverflow)?;
        // No part is negative.
        self.micros = if negative { -micros } else { micros };
        Ok(())
    }

    fn end_list(&mut self, _force_negative: bool) {}

    fn negate(&mut self) -> Result<(), DtError> {
        let negated = || {
            Some(Summed {
                micros: self.micros.checked_neg()?,
                days: self.days.checked_neg()?,
                months: self.months.checked_neg()?,
                years: self.years.checked_neg()?,
            })
        };
        *self = negated().ok_or(DtError::FieldOverflow)?;
        Ok(())
    }

    fn finish(self) -> Option<Interval> {
        let months = i64::from(self.years) * i64::from(MONTHS_PER_YEAR) + i64::from(self.months);
        Some(Interval {
            micros: self.micros,
            days: self.days,
            months: i32::try_from(months).ok()?,
        })
    }
}

/// 14: a count of each unit in 32 bits, which wraps around.
#[derive(Default)]
struct Counted {
    years: i32,
    months: i32,
    days: i32,
    hours: i32,
    minutes: i32,
    seconds: i32,
    micros: i32,
}

impl Counted {
    fn add_micros(&mut self, micros: f64) {
        self.micros = to_i32(f64::from(self.micros) + micros.round_ties_even());
    }

    /// A fraction of `scale` seconds.
    fn add_fraction(&mut self, frac: f64, scale: i32) {
        let exact = frac * f64::from(scale);
        let whole = to_i32(exact);
        self.seconds = self.seconds.wrapping_add(whole);
        self.add_micros((exact - f64::from(whole)) * 1_000_000.0);
    }

    /// A fraction of `scale` days.
    fn add_day_fraction(&mut self, frac: f64, scale: i32) {
        let exact = frac * f64::from(scale);
        let whole = to_i32(exact);
        self.days = self.days.wrapping_add(whole);
        self.add_fraction(exact - f64::from(whole), 86_400);
    }

    fn add_years(&mut self, value: i32, frac: f64, scale: i32) {
        self.years = self.years.wrapping_add(value.wrapping_mul(scale));
        // Cut, not rounded.
        let months = frac * f64::from(MONTHS_PER_YEAR) * f64::from(scale);
        self.months = to_i32(f64::from(self.months) + months);
    }
}

impl Accumulator for Counted {
    const WIDE: bool = false;
    const BASIC_FRACTION: Unit = Unit::Second;

    fn add(&mut self, unit: Unit, value: i64, frac: f64) -> Result<(), DtError> {
        // Callers have checked that it fits.
        let value = value as i32;
        match unit {
            Unit::Microsecond => self.add_micros(f64::from(value) + frac),
            Unit::Millisecond => {
                self.seconds = self.seconds.wrapping_add(value / 1000);
                self.add_micros((f64::from(value % 1000) + frac) * 1000.0);
            }
            Unit::Second => {
                self.seconds = self.seconds.wrapping_add(value);
                self.add_fraction(frac, 1);
            }
            Unit::Minute => {
                self.minutes = self.minutes.wrapping_add(value);
                self.add_fraction(frac, 60);
            }
            Unit::Hour => {
                self.hours = self.hours.wrapping_add(value);
                self.add_fraction(frac, 3600);
            }
            Unit::Day => {
                self.days = self.days.wrapping_add(value);
                self.add_fraction(frac, 86_400);
            }
            Unit::Week => {
                self.days = self.days.wrapping_add(value.wrapping_mul(7));
                self.add_day_fraction(frac, 7);
            }
            Unit::Month => {
                self.months = self.months.wrapping_add(value);
                self.add_day_fraction(frac, DAYS_PER_MONTH);
            }
            Unit::Year => self.add_years(value, frac, 1),
            Unit::Decade => self.add_years(value, frac, 10),
            Unit::Century => self.add_years(value, frac, 100),
            Unit::Millennium => self.add_years(value, frac, 1000),
            Unit::Other => return Err(DtError::BadFormat),
        }
        Ok(())
    }

    fn set_time(&mut self, time: &ClockTime, negative: bool) -> Result<(), DtError> {
        let sign = if negative { -1 } else { 1 };
        self.hours = sign * i32::try_from(time.hour).map_err(|_| DtError::FieldOverflow)?;
        self.minutes = sign * time.minute;
        self.seconds = sign * time.second;
        self.micros = sign * time.micros;
        Ok(())
    }

    fn end_list(&mut self, force_negative: bool) {
        const MILLION: i32 = 1_000_000;
        self.seconds = self.seconds.wrapping_add(self.micros / MILLION);
        self.micros %= MILLION;
        if force_negative {
            for count in [
                &mut self.years,
                &mut self.months,
                &mut self.days,
                &mut self.hours,
                &mut self.minutes,
                &mut self.seconds,
                &mut self.micros,
            ] {
                *count = (*count).min(count.wrapping_neg());
            }
        }
    }

    fn negate(&mut self) -> Result<(), DtError> {
        *self = Counted {
            years: self.years.wrapping_neg(),
            months: self.months.wrapping_neg(),
            days: self.days.wrapping_neg(),
            hours: self.hours.wrapping_neg(),
            minutes: self.minutes.wrapping_neg(),
            seconds: self.seconds.wrapping_neg(),
            micros: self.micros.wrapping_neg(),
        };
        Ok(())
    }

    fn finish(self) -> Option<Interval> {
        let months = i64::from(self.years) * i64::from(MONTHS_PER_YEAR) + i64::from(self.months);
        let minutes = i64::from(self.hours) * 60 + i64::from(self.minutes);
        let seconds = minutes * 60 + i64::from(self.seconds);
        Some(Interval {
            micros: seconds * USECS_PER_SEC + i64::from(self.micros),
            days: self.days,
            months: i32::try_from(months).ok()?,
        })
    }
}

#[cold]
pub(super) fn out_of_range() -> Box<ValueError> {
    ValueError::new("22008", "interval out of range")
}

/// Cuts an interval to the fields of its type, and rounds it to the type's precision.
///
/// Before 17 an overflow of the rounding wraps around.
pub(super) fn adjust_for_typmod(
    mut interval: Interval,
    typmod: i32,
    version: MajorVersion,
) -> Result<Interval, Box<ValueError>> {
    const YEAR_TO_MONTH: u32 = mask::YEAR | mask::MONTH;
    const DAY_TO_HOUR: u32 = mask::DAY | mask::HOUR;
    const HOUR_TO_MINUTE: u32 = mask::HOUR | mask::MINUTE;
    const DAY_TO_MINUTE: u32 = mask::DAY | HOUR_TO_MINUTE;
    const MINUTE_TO_SECOND: u32 = mask::MINUTE | mask::SECOND;
    const HOUR_TO_SECOND: u32 = mask::HOUR | MINUTE_TO_SECOND;
    const DAY_TO_SECOND: u32 = mask::DAY | HOUR_TO_SECOND;
    let is_infinite = interval == Interval::NOBEGIN || interval == Interval::NOEND;
    if typmod < 0 || (is_infinite && version.at_least(17)) {
        return Ok(interval);
    }
    match range_of(typmod) {
        RANGE_FULL | mask::SECOND | MINUTE_TO_SECOND | HOUR_TO_SECOND | DAY_TO_SECOND => {}
        mask::YEAR => {
            interval.months -= interval.months % MONTHS_PER_YEAR;
            interval.days = 0;
            interval.micros = 0;
        }
        mask::MONTH | YEAR_TO_MONTH => {
            interval.days = 0;
            interval.micros = 0;
        }
        mask::DAY => interval.micros = 0,
        mask::HOUR | DAY_TO_HOUR => interval.micros -= interval.micros % USECS_PER_HOUR,
        mask::MINUTE | HOUR_TO_MINUTE | DAY_TO_MINUTE => {
            interval.micros -= interval.micros % USECS_PER_MINUTE;
        }
        _ => {
            return Err(ValueError::new(
                "XX000",
                format!("unrecognized interval typmod: {typmod}"),
            ));
        }
    }
    let precision = typmod & PRECISION_FULL;
    if precision == PRECISION_FULL {
        return Ok(interval);
    }
    let Some(&scale) = SCALES.get(precision as usize) else {
        return Err(ValueError::new(
            "22023",
            format!("interval({precision}) precision must be between 0 and 6"),
        ));
    };
    let micros = interval.micros;
    let half = scale / 2;
    interval.micros = if version.at_least(17) {
        let half = if micros >= 0 { half } else { -half };
        let sum = micros.checked_add(half).ok_or_else(out_of_range)?;
        sum - sum % scale
    } else if micros >= 0 {
        micros.wrapping_add(half) / scale * scale
    } else {
        (micros.wrapping_neg().wrapping_add(half) / scale * scale).wrapping_neg()
    };
    Ok(interval)
}
