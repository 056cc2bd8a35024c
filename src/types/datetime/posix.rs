//! POSIX TZ strings: `EST5EDT`, `<+02>-02`, `CET-1CEST,M3.5.0,M10.5.0/3`.
//!
//! They stand at the end of TZif files, and are zone names in their own right.
//!
//! PostgreSQL: `src/timezone/localtime.c`, `tzparse`.

use super::zone::{LocalTime, MAX_TRANSITIONS, YEARS_PER_REPEAT, Zone};

/// The rule of a zone that names a daylight saving time and gives no rule: that of the USA.
const DEFAULT_RULE: &[u8] = b",M3.2.0,M11.1.0";
/// The most bytes of both abbreviations with their NULs.
const MAX_ABBREVIATION_BYTES: usize = 2 * 256;
const EPOCH_YEAR: i32 = 1970;
const SECS_PER_HOUR: i32 = 3600;
const SECS_PER_DAY: i32 = 86_400;

/// A day of the year and a time of that day.
struct Rule {
    day: RuleDay,
    /// Seconds from local midnight, maybe negative or more than a day.
    time_secs: i32,
}

enum RuleDay {
    /// `Jn`: 1 to 365, the leap day never counted.
    Julian(i32),
    /// `n`: 0 to 365, the leap day counted.
    OfYear(i32),
    /// `Mm.w.d`: weekday d of week w of month m; week 5 is the last.
    OfMonth { month: i32, week: i32, weekday: i32 },
}

/// The zone of a POSIX TZ string; with `name_only`, a zone of that name which is UTC.
pub(super) fn parse(text: &[u8], name_only: bool) -> Option<Zone> {
    if name_only {
        return Some(fixed(text, 0));
    }
    let mut cursor = Cursor { text, pos: 0 };
    let std_name = cursor.name()?;
    // An empty standard abbreviation is allowed, but something must follow.
    if cursor.at_end() {
        return None;
    }
    let std_west = cursor.offset()?;
    if std_name.len() + 1 > MAX_ABBREVIATION_BYTES {
        return None;
    }
    if cursor.at_end() {
        return Some(fixed(std_name, -std_west));
    }
    let dst_name = cursor.name()?;
    if dst_name.is_empty() || std_name.len() + dst_name.len() + 2 > MAX_ABBREVIATION_BYTES {
        return None;
    }
    let dst_west = match cursor.peek() {
        None | Some(b',' | b';') => std_west - SECS_PER_HOUR,
        Some(_) => cursor.offset()?,
    };
    let mut rules = if cursor.at_end() {
        Cursor {
            text: DEFAULT_RULE,
            pos: 0,
        }
    } else {
        cursor
    };
    if !matches!(rules.next()?, b',' | b';') {
        return None;
    }
    let start = rules.rule()?;
    if rules.next()? != b',' {
        return None;
    }
    let end = rules.rule()?;
    if !rules.at_end() {
        return None;
    }
    Some(with_rules(
        (std_name, std_west),
        (dst_name, dst_west),
        &start,
        &end,
    ))
}

fn fixed(name: &[u8], offset_secs: i32) -> Zone {
    let kind = kind(offset_secs, false, 0);
    Zone::new(
        Vec::new(),
        Vec::new(),
        vec![kind],
        [name, b"\0"].concat(),
        0,
        (false, false),
    )
}

fn kind(offset_secs: i32, is_dst: bool, abbreviation_pos: usize) -> LocalTime {
    LocalTime {
        offset_secs,
        is_dst,
        abbreviation_pos,
        indicators: (false, false),
    }
}

/// Two transitions a year, from 200 years before 1970 on, for as long as the table lasts.
fn with_rules(std: (&[u8], i32), dst: (&[u8], i32), start: &Rule, end: &Rule) -> Zone {
    let ((std_name, std_west), (dst_name, dst_west)) = (std, dst);
    let mut kinds = vec![
        kind(-std_west, false, 0),
        kind(-dst_west, true, std_name.len() + 1),
    ];
    let mut instants = Vec::new();
    let mut types = Vec::new();
    let first_year = EPOCH_YEAR - (YEARS_PER_REPEAT / 2) as i32;
    let mut new_year = -(first_year..EPOCH_YEAR)
        .map(year_secs)
        .map(i64::from)
        .sum::<i64>();
    let mut year = first_year;
    let mut end_year = first_year + YEARS_PER_REPEAT as i32 + 1;
    while year < end_year {
        let mut start_secs = start.secs_of_year(year, std_west);
        let mut end_secs = end.secs_of_year(year, dst_west);
        let reversed = end_secs < start_secs;
        if reversed {
            std::mem::swap(&mut start_secs, &mut end_secs);
        }
        let dst_all_year = end_secs - start_secs >= year_secs(year) + (std_west - dst_west);
        if reversed || (start_secs < end_secs && !dst_all_year) {
            if instants.len() > MAX_TRANSITIONS - 2 {
                break;
            }
            instants.push(new_year + i64::from(start_secs));
            types.push(u8::from(!reversed));
            instants.push(new_year + i64::from(end_secs));
            types.push(u8::from(reversed));
            end_year = year + YEARS_PER_REPEAT as i32 + 1;
        }
        new_year += i64::from(year_secs(year));
        year += 1;
    }
    let mut repeats = false;
    if instants.is_empty() {
        // Daylight saving time for ever.
        kinds.remove(0);
    } else {
        repeats = YEARS_PER_REPEAT < i64::from(year - first_year);
    }
    Zone::new(
        instants,
        types,
        kinds,
        [std_name, b"\0", dst_name, b"\0"].concat(),
        0,
        (repeats, repeats),
    )
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn year_secs(year: i32) -> i32 {
    (365 + i32::from(is_leap(year))) * SECS_PER_DAY
}

fn month_days(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Rule {
    /// When the rule takes effect, in seconds from the year's beginning in UTC; `west_secs` is
    /// the offset in force before.
    fn secs_of_year(&self, year: i32, west_secs: i32) -> i32 {
        let day = match self.day {
            RuleDay::Julian(n) => n - 1 + i32::from(is_leap(year) && n >= 60),
            RuleDay::OfYear(n) => n,
            RuleDay::OfMonth {
                month,
                week,
                weekday,
            } => {
                let first_of_month = (1..month).map(|m| month_days(year, m)).sum::<i32>();
                let mut day = (weekday - weekday_of_first(year, month)).rem_euclid(7);
                for _ in 1..week {
                    if day + 7 >= month_days(year, month) {
                        break;
                    }
                    day += 7;
                }
                first_of_month + day
            }
        };
        day * SECS_PER_DAY + self.time_secs + west_secs
    }
}

/// The weekday, 0 for Sunday, of a month's first day.
fn weekday_of_first(year: i32, month: i32) -> i32 {
    use pgformat::datum::datetime::date_to_julian;
    // Julian day 0 was a Monday.
    (date_to_julian(year, month, 1) + 1).rem_euclid(7)
}

struct Cursor<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.pos += 1;
        Some(byte)
    }

    fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    fn take_while(&mut self, mut wanted: impl FnMut(u8) -> bool) -> &'a [u8] {
        let begin = self.pos;
        while self.peek().is_some_and(&mut wanted) {
            self.pos += 1;
        }
        &self.text[begin..self.pos]
    }

    /// An abbreviation, bare or in angle brackets.
    fn name(&mut self) -> Option<&'a [u8]> {
        if self.peek() == Some(b'<') {
            self.pos += 1;
            let name = self.take_while(|b| b != b'>');
            return (self.next()? == b'>').then_some(name);
        }
        Some(self.take_while(|b| !b.is_ascii_digit() && !matches!(b, b',' | b'-' | b'+')))
    }

    fn number(&mut self, min: i32, max: i32) -> Option<i32> {
        let digits = self.take_while(|b| b.is_ascii_digit());
        if digits.is_empty() {
            return None;
        }
        let mut number = 0;
        for digit in digits {
            number = number * 10 + i32::from(digit - b'0');
            if number > max {
                return None;
            }
        }
        (number >= min).then_some(number)
    }

    /// `[+-]hh[:mm[:ss]]` in seconds; hours up to a week less one.
    fn offset(&mut self) -> Option<i32> {
        let negative = match self.peek()? {
            b'-' => {
                self.pos += 1;
                true
            }
            b'+' => {
                self.pos += 1;
                false
            }
            _ => false,
        };
        let mut secs = self.number(0, 24 * 7 - 1)? * SECS_PER_HOUR;
        if self.peek() == Some(b':') {
            self.pos += 1;
            secs += self.number(0, 59)? * 60;
            if self.peek() == Some(b':') {
                self.pos += 1;
                secs += self.number(0, 60)?;
            }
        }
        Some(if negative { -secs } else { secs })
    }

    fn rule(&mut self) -> Option<Rule> {
        let day = match self.peek()? {
            b'J' => {
                self.pos += 1;
                RuleDay::Julian(self.number(1, 365)?)
            }
            b'M' => {
                self.pos += 1;
                let month = self.number(1, 12)?;
                if self.next()? != b'.' {
                    return None;
                }
                let week = self.number(1, 5)?;
                if self.next()? != b'.' {
                    return None;
                }
                RuleDay::OfMonth {
                    month,
                    week,
                    weekday: self.number(0, 6)?,
                }
            }
            _ => RuleDay::OfYear(self.number(0, 365)?),
        };
        let time_secs = if self.peek() == Some(b'/') {
            self.pos += 1;
            self.offset()?
        } else {
            2 * SECS_PER_HOUR
        };
        Some(Rule { day, time_secs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(zone: &[u8], time: i64) -> i32 {
        parse(zone, false).expect("a zone").offset_at(time)
    }

    #[test]
    fn offsets_have_the_sign_of_posix() {
        assert_eq!(offset(b"<+02>-02", 0), 7200);
        assert_eq!(offset(b"FOO3:30:15", 0), -12_615);
        assert_eq!(offset(b"5", 0), -18_000);
    }

    #[test]
    fn a_rule_is_followed_in_any_year() {
        let berlin = b"CET-1CEST,M3.5.0,M10.5.0/3";
        // 2024-03-31 00:59:59 and 01:00:00 UTC.
        assert_eq!(offset(berlin, 1_711_846_799), 3600);
        assert_eq!(offset(berlin, 1_711_846_800), 7200);
        // 400 x 100 years later.
        assert_eq!(offset(berlin, 1_711_846_799 + 100 * 12_622_780_800), 3600);
        assert_eq!(offset(berlin, 1_711_846_800 + 100 * 12_622_780_800), 7200);
        // And before 1770: 1570-03-29.
        assert_eq!(offset(berlin, 1_711_846_800 - 12_622_780_800), 7200);
    }

    #[test]
    fn what_is_no_posix_string_is_refused() {
        for bad in [
            &b"FOO"[..],
            b"",
            b"FOO1,",
            b"<FOO1",
            b"FOO168",
            b"FOO1BAR,M3.5.0",
            b"FOO1BAR,M13.1.0,M1.1.0",
            b"FOO1BAR,J0,J1",
        ] {
            assert_eq!(
                parse(bad, false),
                None,
                "{:?}",
                bad.escape_ascii().to_string()
            );
        }
    }
}
