//! The parts of a date and time: numbers, dates, times and numeric zones inside a field.
//!
//! PostgreSQL: `src/backend/utils/adt/datetime.c`, `DecodeDate`, `DecodeNumber`,
//! `DecodeNumberField`, `DecodeTime`, `DecodeTimezone`, `ValidateDate`.

use pgformat::datum::datetime::{
    POSTGRES_EPOCH_JDATE, USECS_PER_DAY, USECS_PER_HOUR, USECS_PER_MINUTE, USECS_PER_SEC,
    date_to_julian, julian_to_date,
};
use pgformat::version::MajorVersion;

use super::number::{atoi, strtod, strtoint, strtol, to_i32};
use super::tokens::{DateWord, FIELDS_MAX, date_word};
use super::{DateOrder, DtError};

/// Which parts of a value have been seen: one bit each.
pub(super) mod mask {
    pub(in super::super) const RESERVED: u32 = 1;
    pub(in super::super) const MONTH: u32 = 1 << 1;
    pub(in super::super) const YEAR: u32 = 1 << 2;
    pub(in super::super) const DAY: u32 = 1 << 3;
    pub(in super::super) const ZONE: u32 = 1 << 5;
    pub(in super::super) const DST_ZONE: u32 = 1 << 6;
    pub(in super::super) const DYNAMIC_ZONE: u32 = 1 << 7;
    pub(in super::super) const AMPM: u32 = 1 << 9;
    pub(in super::super) const HOUR: u32 = 1 << 10;
    pub(in super::super) const MINUTE: u32 = 1 << 11;
    pub(in super::super) const SECOND: u32 = 1 << 12;
    pub(in super::super) const MILLISECOND: u32 = 1 << 13;
    pub(in super::super) const MICROSECOND: u32 = 1 << 14;
    pub(in super::super) const DAY_OF_YEAR: u32 = 1 << 15;
    pub(in super::super) const WEEKDAY: u32 = 1 << 16;
    pub(in super::super) const ERA: u32 = 1 << 18;
    pub(in super::super) const WEEK: u32 = 1 << 24;
    pub(in super::super) const DECADE: u32 = 1 << 25;
    pub(in super::super) const CENTURY: u32 = 1 << 26;
    pub(in super::super) const MILLENNIUM: u32 = 1 << 27;
    pub(in super::super) const DST_MODIFIER: u32 = 1 << 28;
    /// A whole date.
    pub(in super::super) const DATE: u32 = YEAR | MONTH | DAY;
    /// Seconds and their fraction.
    pub(in super::super) const ALL_SECONDS: u32 = SECOND | MILLISECOND | MICROSECOND;
    /// A whole time.
    pub(in super::super) const TIME: u32 = HOUR | MINUTE | ALL_SECONDS;
}

/// A date and time taken apart; parts may be out of range until they are checked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    /// 0 is 1 BC.
    pub(super) year: i32,
    pub(super) month: i32,
    pub(super) day: i32,
    pub(super) day_of_year: i32,
    pub(super) hour: i32,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i32,
}

impl Clock {
    /// The time since midnight in microseconds. Hours, minutes and seconds meet in 32 bits, as
    /// in the server.
    pub(super) fn micros_of_day(&self) -> i64 {
        let minutes = self.hour.wrapping_mul(60).wrapping_add(self.minute);
        let seconds = minutes.wrapping_mul(60).wrapping_add(self.second);
        i64::from(seconds) * USECS_PER_SEC + i64::from(self.micros)
    }

    /// The parts of a timestamp.
    pub(super) fn from_timestamp(micros: i64) -> Clock {
        let mut clock = Clock::default();
        let days = micros.div_euclid(USECS_PER_DAY) as i32;
        clock.set_julian(days.wrapping_add(POSTGRES_EPOCH_JDATE));
        clock.set_time(micros.rem_euclid(USECS_PER_DAY));
        clock
    }

    /// Sets the date.
    pub(super) fn set_julian(&mut self, julian: i32) {
        (self.year, self.month, self.day) = julian_to_date(julian);
    }

    /// Sets the time from microseconds since midnight.
    pub(super) fn set_time(&mut self, micros: i64) {
        self.hour = (micros / USECS_PER_HOUR) as i32;
        self.minute = (micros % USECS_PER_HOUR / USECS_PER_MINUTE) as i32;
        self.second = (micros % USECS_PER_MINUTE / USECS_PER_SEC) as i32;
        self.micros = (micros % USECS_PER_SEC) as i32;
    }

    /// Whether the time is no time of a day; 24:00:00 and 23:59:60 are.
    ///
    /// PostgreSQL: `date.c`, `time_overflows`.
    pub(super) fn time_overflows(&self) -> bool {
        !(0..=24).contains(&self.hour)
            || !(0..60).contains(&self.minute)
            || !(0..=60).contains(&self.second)
            || !(0..=USECS_PER_SEC as i32).contains(&self.micros)
            || self.micros_of_day() > USECS_PER_DAY
    }
}

/// Whether the calendar's arithmetic holds for a month.
///
/// PostgreSQL: `src/include/datatype/timestamp.h`, `IS_VALID_JULIAN`.
pub(super) fn is_valid_julian(year: i32, month: i32) -> bool {
    ((-4713, 11)..(5_874_898, 6)).contains(&(year, month))
}

/// Days of a month; 0 for one that does not exist.
pub(super) fn days_of_month(year: i32, month: i32) -> i32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 0,
    }
}

/// What the parts of one value share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    pub(super) clock: Clock,
    /// The year had one or two digits.
    pub(super) two_digit_year: bool,
    pub(super) order: DateOrder,
    pub(super) version: MajorVersion,
}

/// Digits after a decimal point as a number below 1; `text` begins with the point.
///
/// PostgreSQL: `datetime.c`, `ParseFraction`.
pub(super) fn fraction(text: &[u8], version: MajorVersion) -> Result<f64, DtError> {
    let digits = &text[1..];
    if digits.is_empty() {
        // 14 does not take a bare point.
        return if version.at_least(15) {
            Ok(0.0)
        } else {
            Err(DtError::BadFormat)
        };
    }
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(DtError::BadFormat);
    }
    strtod(text)
        .map(|(value, _)| value)
        .ok_or(DtError::BadFormat)
}

/// The same in microseconds, 0 to 1,000,000.
///
/// PostgreSQL: `datetime.c`, `ParseFractionalSecond`.
pub(super) fn fractional_second(text: &[u8], version: MajorVersion) -> Result<i32, DtError> {
    Ok(to_i32(
        (fraction(text, version)? * 1_000_000.0).round_ties_even(),
    ))
}

impl Parts {
    /// A date with delimiters; `seen` are the parts seen before, the result those found here.
    ///
    /// PostgreSQL: `datetime.c`, `DecodeDate`.
    pub(super) fn date(&mut self, text: &[u8], mut seen: u32) -> Result<u32, DtError> {
        let mut parts = [&text[..0]; FIELDS_MAX];
        let mut count = 0;
        let mut pos = 0;
        while pos < text.len() && count < FIELDS_MAX {
            while pos < text.len() && !text[pos].is_ascii_alphanumeric() {
                pos += 1;
            }
            if pos == text.len() {
                return Err(DtError::BadFormat);
            }
            let begin = pos;
            let is_digits = text[pos].is_ascii_digit();
            while pos < text.len()
                && (if is_digits {
                    text[pos].is_ascii_digit()
                } else {
                    text[pos].is_ascii_alphabetic()
                })
            {
                pos += 1;
            }
            parts[count] = &text[begin..pos];
            count += 1;
            // Whatever ends a part is gone, even a letter or a digit.
            pos += 1;
        }
        let parts = &parts[..count];
        let mut found = 0;
        let mut text_month = false;
        // A word must be the month.
        for part in parts.iter().filter(|p| p[0].is_ascii_alphabetic()) {
            match date_word(part) {
                Some(DateWord::Month(month)) => {
                    self.clock.month = month;
                    text_month = true;
                }
                // It is found to be no number below.
                Some(DateWord::Ignored) => continue,
                _ => return Err(DtError::BadFormat),
            }
            if seen & mask::MONTH != 0 {
                return Err(DtError::BadFormat);
            }
            seen |= mask::MONTH;
            found |= mask::MONTH;
        }
        for part in parts {
            if matches!(date_word(part), Some(DateWord::Month(_))) {
                continue;
            }
            let bits = self.number(part, text_month, seen)?;
            if seen & bits != 0 {
                return Err(DtError::BadFormat);
            }
            seen |= bits;
            found |= bits;
        }
        if seen & !(mask::DAY_OF_YEAR | mask::ZONE) != mask::DATE {
            return Err(DtError::BadFormat);
        }
        Ok(found)
    }

    /// A number whose meaning hangs on what was seen before.
    ///
    /// PostgreSQL: `datetime.c`, `DecodeNumber`.
    pub(super) fn number(
        &mut self,
        text: &[u8],
        text_month: bool,
        seen: u32,
    ) -> Result<u32, DtError> {
        const YEAR_MONTH: u32 = mask::YEAR | mask::MONTH;
        const MONTH_DAY: u32 = mask::MONTH | mask::DAY;
        let (value, taken) = strtoint(text).ok_or(DtError::FieldOverflow)?;
        if taken == 0 {
            return Err(DtError::BadFormat);
        }
        match text.get(taken) {
            Some(b'.') => {
                // More than two digits and a point: a date or time run together.
                if taken > 2 {
                    return self.number_field(text, seen | mask::DATE);
                }
                self.clock.micros = fractional_second(&text[taken..], self.version)?;
            }
            Some(_) => return Err(DtError::BadFormat),
            None => {}
        }
        let digits = text.len();
        if digits == 3 && seen & mask::DATE == mask::YEAR && (1..=366).contains(&value) {
            self.clock.day_of_year = value;
            return Ok(mask::DAY_OF_YEAR | mask::MONTH | mask::DAY);
        }
        let is_year = digits >= 3 || self.order == DateOrder::Ymd;
        let part = match seen & mask::DATE {
            0 if is_year => mask::YEAR,
            0 if self.order == DateOrder::Dmy => mask::DAY,
            0 | mask::YEAR | mask::DAY => mask::MONTH,
            mask::MONTH if text_month && is_year => mask::YEAR,
            mask::MONTH => mask::DAY,
            YEAR_MONTH => {
                if text_month && digits >= 3 && self.two_digit_year {
                    // DD-MON-YYYY: what was taken for the year is the day.
                    self.clock.day = self.clock.year;
                    self.clock.year = value;
                    self.two_digit_year = false;
                    return Ok(mask::DAY);
                }
                mask::DAY
            }
            MONTH_DAY => mask::YEAR,
            mask::DATE => return self.number_field(text, seen),
            _ => return Err(DtError::BadFormat),
        };
        match part {
            mask::YEAR => {
                self.clock.year = value;
                self.two_digit_year = digits <= 2;
            }
            mask::MONTH => self.clock.month = value,
            _ => self.clock.day = value,
        }
        Ok(part)
    }

    /// Digits run together as a date (YYMMDD, YYYYMMDD) or a time (HHMM, HHMMSS, HHMMSS.fff).
    ///
    /// Since 18 anything but digits and points is refused; before, it reads as 0.
    ///
    /// PostgreSQL: `datetime.c`, `DecodeNumberField`.
    pub(super) fn number_field(&mut self, text: &[u8], seen: u32) -> Result<u32, DtError> {
        let mut digits = text;
        if self.version.at_least(18) && !text.iter().all(|&b| b.is_ascii_digit() || b == b'.') {
            return Err(DtError::BadFormat);
        }
        if let Some(point) = memchr::memchr(b'.', text) {
            let after = &text[point..];
            self.clock.micros = if self.version.at_least(18) {
                fractional_second(after, self.version)?
            } else {
                old_fraction(after)?
            };
            digits = &text[..point];
        } else if seen & mask::DATE != mask::DATE && digits.len() >= 6 {
            let year_digits = digits.len() - 4;
            self.clock.year = atoi(&digits[..year_digits]);
            self.clock.month = atoi(&digits[year_digits..year_digits + 2]);
            self.clock.day = atoi(&digits[year_digits + 2..]);
            if year_digits == 2 {
                self.two_digit_year = true;
            }
            return Ok(mask::DATE);
        }
        if seen & mask::TIME != mask::TIME && matches!(digits.len(), 4 | 6) {
            self.clock.hour = atoi(&digits[..2]);
            self.clock.minute = atoi(&digits[2..4]);
            self.clock.second = atoi(&digits[4..]);
            return Ok(mask::TIME);
        }
        Err(DtError::BadFormat)
    }

    /// A time with colons.
    ///
    /// PostgreSQL: `datetime.c`, `DecodeTime`.
    pub(super) fn time(&mut self, text: &[u8]) -> Result<(), DtError> {
        let time = clock_time(text, false, self.version)?;
        self.clock.hour = i32::try_from(time.hour).map_err(|_| DtError::FieldOverflow)?;
        self.clock.minute = time.minute;
        self.clock.second = time.second;
        self.clock.micros = time.micros;
        Ok(())
    }

    /// Checks year, month and day, and settles two-digit years, BC and days of the year.
    ///
    /// PostgreSQL: `datetime.c`, `ValidateDate`.
    pub(super) fn validate_date(
        &mut self,
        seen: u32,
        is_julian: bool,
        bc: bool,
    ) -> Result<(), DtError> {
        let two_digits = self.two_digit_year;
        let clock = &mut self.clock;
        if seen & mask::YEAR != 0 && !is_julian {
            if bc {
                if clock.year <= 0 {
                    return Err(DtError::FieldOverflow);
                }
                clock.year = 1 - clock.year;
            } else if two_digits {
                match clock.year {
                    ..0 => return Err(DtError::FieldOverflow),
                    0..70 => clock.year += 2000,
                    70..100 => clock.year += 1900,
                    _ => {}
                }
            } else if clock.year <= 0 {
                return Err(DtError::FieldOverflow);
            }
        }
        if seen & mask::DAY_OF_YEAR != 0 {
            let new_year = date_to_julian(clock.year, 1, 1);
            clock.set_julian(new_year.wrapping_add(clock.day_of_year - 1));
        }
        if seen & mask::MONTH != 0 && !(1..=12).contains(&clock.month) {
            return Err(DtError::MonthDayOverflow);
        }
        if seen & mask::DAY != 0 && !(1..=31).contains(&clock.day) {
            return Err(DtError::MonthDayOverflow);
        }
        if seen & mask::DATE == mask::DATE && clock.day > days_of_month(clock.year, clock.month) {
            return Err(DtError::FieldOverflow);
        }
        Ok(())
    }
}

/// A fraction as servers before 18 read it in a number that may hold letters: as far as it
/// goes.
fn old_fraction(text: &[u8]) -> Result<i32, DtError> {
    let number = match strtod(text) {
        Some((value, _)) => value,
        // A point without digits is 0; a number out of range is refused.
        None if text.get(1).is_some_and(u8::is_ascii_digit) => return Err(DtError::BadFormat),
        None => 0.0,
    };
    Ok(to_i32((number * 1_000_000.0).round_ties_even()))
}

/// A time with colons; the hour may be any number.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockTime {
    pub(super) hour: i64,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i32,
}

/// `hh:mm`, `hh:mm:ss`, `hh:mm:ss.fff`, `mm:ss.fff`; with `minute_to_second` two numbers are
/// minutes and seconds.
///
/// PostgreSQL: `datetime.c`, `DecodeTimeCommon`.
pub(super) fn clock_time(
    text: &[u8],
    minute_to_second: bool,
    version: MajorVersion,
) -> Result<ClockTime, DtError> {
    let hour = strtol(text);
    if hour.overflows || (!version.at_least(15) && i32::try_from(hour.value).is_err()) {
        return Err(DtError::FieldOverflow);
    }
    let text = &text[hour.taken..];
    let [b':', text @ ..] = text else {
        return Err(DtError::BadFormat);
    };
    let (minute, taken) = strtoint(text).ok_or(DtError::FieldOverflow)?;
    let rest = &text[taken..];
    let mut time = ClockTime {
        hour: hour.value,
        minute,
        second: 0,
        micros: 0,
    };
    // Two numbers that are minutes and seconds.
    let shift = |time: &mut ClockTime| {
        time.second = time.minute;
        time.minute = i32::try_from(time.hour).map_err(|_| DtError::FieldOverflow)?;
        time.hour = 0;
        Ok(())
    };
    match rest {
        [] if minute_to_second => shift(&mut time)?,
        [] => {}
        [b'.', ..] => {
            time.micros = fractional_second(rest, version)?;
            shift(&mut time)?;
        }
        [b':', text @ ..] => {
            let (second, taken) = strtoint(text).ok_or(DtError::FieldOverflow)?;
            time.second = second;
            match &text[taken..] {
                [] => {}
                rest @ [b'.', ..] => time.micros = fractional_second(rest, version)?,
                _ => return Err(DtError::BadFormat),
            }
        }
        _ => return Err(DtError::BadFormat),
    }
    if time.hour < 0
        || !(0..60).contains(&time.minute)
        || !(0..=60).contains(&time.second)
        || !(0..=USECS_PER_SEC as i32).contains(&time.micros)
    {
        return Err(DtError::FieldOverflow);
    }
    Ok(time)
}

/// A numeric zone, `+hh`, `+hhmm`, `+hh:mm`, `+hh:mm:ss`, in seconds *west* of Greenwich.
///
/// PostgreSQL: `datetime.c`, `DecodeTimezone`.
pub(super) fn numeric_zone(text: &[u8]) -> Result<i32, DtError> {
    const HOUR_MAX: i32 = 15;
    let overflow = DtError::DisplacementOverflow;
    let (Some(&sign @ (b'+' | b'-')), body) = (text.first(), text.get(1..).unwrap_or(&[])) else {
        return Err(DtError::BadFormat);
    };
    let Some((mut hour, taken)) = strtoint(body) else {
        return Err(overflow);
    };
    let mut rest = &body[taken..];
    let (mut minute, mut second) = (0, 0);
    if let [b':', tail @ ..] = rest {
        let Some((value, taken)) = strtoint(tail) else {
            return Err(overflow);
        };
        minute = value;
        rest = &tail[taken..];
        if let [b':', tail @ ..] = rest {
            let Some((value, taken)) = strtoint(tail) else {
                return Err(overflow);
            };
            second = value;
            rest = &tail[taken..];
        }
    } else if rest.is_empty() && text.len() > 3 {
        minute = hour % 100;
        hour /= 100;
    }
    if !(0..=HOUR_MAX).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(overflow);
    }
    if !rest.is_empty() {
        return Err(DtError::BadFormat);
    }
    let east = (hour * 60 + minute) * 60 + second;
    Ok(if sign == b'-' { east } else { -east })
}
