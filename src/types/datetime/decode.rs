//! Fields to a date and time: what each field means, judged by those before it.
//!
//! [`date_time`] reads dates and timestamps, [`time_only`] times; they differ in what an
//! ambiguous field is taken for. Both go through the fields once, from left to right, and
//! settle the zone at the end, when the date is known.
//!
//! PostgreSQL: `src/backend/utils/adt/datetime.c`, `DecodeDateTime`, `DecodeTimeOnly`,
//! `DetermineTimeZoneOffset`.

use pgformat::datum::datetime::{SECS_PER_DAY, UNIX_EPOCH_JDATE, USECS_PER_DAY, date_to_julian};

use super::number::strtoint;
use super::parts::{
    Clock, Parts, fraction, fractional_second, is_valid_julian, mask, numeric_zone,
};
use super::tokens::{DateWord, FieldKind, Fields, Label, Reserved, cut, date_word};
use super::zone::{AbbreviationUse, Boundary, Zone};
use super::zonedb::{FoundZone, Meaning};
use super::{DateTimeSettings, DtError, local_now};

/// The longest abbreviation that a zone is asked for.
const ABBREVIATION_MAX_BYTES: usize = 255;

/// Which value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateTimeKind {
    /// The one of its parts.
    Value,
    /// 1970-01-01 00:00:00 UTC.
    Epoch,
    /// infinity.
    Infinity,
    /// -infinity.
    MinusInfinity,
}

/// A date and time, not yet checked against its type's range.
#[derive(Debug, Clone, Copy)]
pub(super) struct DateTime {
    pub(super) kind: DateTimeKind,
    pub(super) clock: Clock,
    /// The zone in seconds west of Greenwich, the session's if none was given.
    pub(super) west_secs: i32,
}

/// What an abbreviation of a zone means.
#[derive(Debug)]
pub(super) enum AbbreviationMeaning<'a> {
    /// A fixed offset.
    Offset {
        /// Seconds east of Greenwich.
        offset_secs: i32,
        is_dst: bool,
    },
    /// What it meant in a zone at the time.
    InZone(FoundZone<'a>),
}

/// The meaning of a word in lower case as an abbreviation of a zone, if it is one.
///
/// Since 18 the session's own zone is asked first.
///
/// PostgreSQL: `datetime.c`, `DecodeTimezoneAbbrev`.
pub(super) fn abbreviation<'a>(
    word: &[u8],
    settings: &'a DateTimeSettings,
) -> Result<Option<AbbreviationMeaning<'a>>, DtError> {
    if settings.version.at_least(18) {
        let mut buffer = [0; ABBREVIATION_MAX_BYTES];
        match settings.zone.abbreviation_use(upper(word, &mut buffer)) {
            Some(AbbreviationUse::Fixed {
                offset_secs,
                is_dst,
            }) => {
                return Ok(Some(AbbreviationMeaning::Offset {
                    offset_secs,
                    is_dst,
                }));
            }
            Some(AbbreviationUse::Varying) => {
                let zone = FoundZone::Kept(&settings.zone);
                return Ok(Some(AbbreviationMeaning::InZone(zone)));
            }
            None => {}
        }
    }
    let Some(entry) = settings.zones.abbreviation(cut(word)) else {
        return Ok(None);
    };
    match &entry.meaning {
        Meaning::Offset {
            offset_secs,
            is_dst,
        } => Ok(Some(AbbreviationMeaning::Offset {
            offset_secs: *offset_secs,
            is_dst: *is_dst,
        })),
        Meaning::Zone(name) => match settings.zones.find(name) {
            Some(zone) => Ok(Some(AbbreviationMeaning::InZone(zone))),
            None => Err(DtError::BadAbbreviation {
                zone: name.clone(),
                name: entry.name.clone(),
            }),
        },
    }
}

/// A word in upper case.
fn upper<'a>(word: &[u8], buffer: &'a mut [u8; ABBREVIATION_MAX_BYTES]) -> &'a [u8] {
    let bytes = word.len().min(ABBREVIATION_MAX_BYTES);
    let upper = &mut buffer[..bytes];
    upper.copy_from_slice(&word[..bytes]);
    upper.make_ascii_uppercase();
    upper
}

/// The offset in seconds *west* of Greenwich that holds in a zone at a local time (seconds
/// since 1970-01-01 there), and the instant it means (seconds since 1970-01-01 UTC).
///
/// A time that a change skips is taken as before the change, one that a change repeats as
/// after it. Outside what can be computed it is 0, at instant 0.
///
/// PostgreSQL: `datetime.c`, `DetermineTimeZoneOffsetInternal`.
#[inline]
pub(super) fn determine_offset(local_secs: i64, zone: &Zone, before_18: bool) -> (i32, i64) {
    // Changes lie more than a day from one another, and offsets are less than a day.
    let Some(boundary) = local_secs
        .checked_sub(SECS_PER_DAY)
        .and_then(|time| zone.next_boundary(time, before_18))
    else {
        return (0, 0);
    };
    let (instant, before_secs, after_secs) = match boundary {
        Boundary::None { offset_secs } => {
            return (-offset_secs, local_secs - i64::from(offset_secs));
        }
        Boundary::At {
            instant,
            before_secs,
            after_secs,
        } => (instant, before_secs, after_secs),
    };
    let before = local_secs - i64::from(before_secs);
    let after = local_secs - i64::from(after_secs);
    let takes_before = if before < instant && after < instant {
        true
    } else if before > instant && after >= instant {
        false
    } else {
        before > after
    };
    if takes_before {
        (-before_secs, before)
    } else {
        (-after_secs, after)
    }
}

/// The same for a date and time.
fn determine_offset_of(clock: &Clock, zone: &Zone, settings: &DateTimeSettings) -> (i32, i64) {
    if !is_valid_julian(clock.year, clock.month) {
        return (0, 0);
    }
    let days = date_to_julian(clock.year, clock.month, clock.day).wrapping_sub(UNIX_EPOCH_JDATE);
    let minutes = clock.hour.wrapping_mul(60).wrapping_add(clock.minute);
    let seconds = minutes.wrapping_mul(60).wrapping_add(clock.second);
    let local_secs = i64::from(days) * SECS_PER_DAY + i64::from(seconds);
    determine_offset(local_secs, zone, settings.before_18())
}

/// The offset in seconds *west* of Greenwich that an abbreviation of a zone had at a local
/// time; the zone's own where the zone never used it.
///
/// PostgreSQL: `datetime.c`, `DetermineTimeZoneAbbrevOffset`.
fn determine_abbreviation_offset(
    clock: &Clock,
    word: &[u8],
    zone: &Zone,
    settings: &DateTimeSettings,
) -> i32 {
    let (west_secs, instant) = determine_offset_of(clock, zone, settings);
    let mut buffer = [0; ABBREVIATION_MAX_BYTES];
    let word = upper(word, &mut buffer);
    match zone.abbreviation_offset(word, instant, settings.before_18()) {
        Some(offset_secs) => -offset_secs,
        None => west_secs,
    }
}

/// Before or after noon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Am,
    Pm,
}

/// What is known of a value while its fields are read.
struct Decoder<'a> {
    settings: &'a DateTimeSettings,
    fields: &'a Fields,
    parts: Parts,
    kind: DateTimeKind,
    west_secs: i32,
    /// What was seen: bits of [`mask`].
    seen: u32,
    /// A label that the next field answers to.
    label: Option<Label>,
    text_month: bool,
    is_julian: bool,
    bc: bool,
    half: Option<Half>,
    named_zone: Option<FoundZone<'a>>,
    abbreviation: Option<(&'a [u8], FoundZone<'a>)>,
}

/// What a field adds to the seen parts.
enum Step {
    /// These parts; none may have been seen before.
    Found(u32),
    /// Nothing.
    Skip,
}

/// Reads a date, or a date and time.
///
/// PostgreSQL: `datetime.c`, `DecodeDateTime`.
pub(super) fn date_time(fields: &Fields, settings: &DateTimeSettings) -> Result<DateTime, DtError> {
    let mut decoder = Decoder::new(fields, settings);
    for i in 0..fields.len() {
        let step = match fields.kind(i) {
            FieldKind::Date => decoder.date_field(i)?,
            FieldKind::Time => decoder.time_field(i)?,
            FieldKind::Signed => decoder.zone_field(i)?,
            FieldKind::Number if decoder.label.is_some() => decoder.labelled_number(i)?,
            FieldKind::Number => decoder.number(i)?,
            FieldKind::Word | FieldKind::Special => decoder.word(i, false)?,
        };
        decoder.take(&step)?;
    }
    decoder.finish_date_time()
}

/// Reads a time; a date may come along where it helps to find the zone's offset.
///
/// PostgreSQL: `datetime.c`, `DecodeTimeOnly`.
pub(super) fn time_only(fields: &Fields, settings: &DateTimeSettings) -> Result<DateTime, DtError> {
    let mut decoder = Decoder::new(fields, settings);
    for i in 0..fields.len() {
        let step = match fields.kind(i) {
            FieldKind::Date => decoder.date_field_of_time(i)?,
            FieldKind::Time => decoder.time_field_of_time(i)?,
            FieldKind::Signed => decoder.zone_field(i)?,
            FieldKind::Number if decoder.label.is_some() => decoder.labelled_number(i)?,
            FieldKind::Number => decoder.number_of_time(i)?,
            FieldKind::Word | FieldKind::Special => decoder.word(i, true)?,
        };
        decoder.take(&step)?;
    }
    decoder.finish_time()
}

impl<'a> Decoder<'a> {
    fn new(fields: &'a Fields, settings: &'a DateTimeSettings) -> Decoder<'a> {
        Decoder {
            settings,
            fields,
            parts: Parts {
                clock: Clock::default(),
                two_digit_year: false,
                order: settings.date_order,
                version: settings.version,
            },
            kind: DateTimeKind::Value,
            west_secs: 0,
            seen: 0,
            label: None,
            text_month: false,
            is_julian: false,
            bc: false,
            half: None,
            named_zone: None,
            abbreviation: None,
        }
    }

    fn since(&self, major: u16) -> bool {
        self.settings.version.at_least(major)
    }

    fn has(&self, bits: u32) -> bool {
        self.seen & bits == bits
    }

    /// Notes what a field was; nothing may come twice.
    fn take(&mut self, step: &Step) -> Result<(), DtError> {
        if let Step::Found(bits) = *step {
            if self.seen & bits != 0 {
                return Err(DtError::BadFormat);
            }
            self.seen |= bits;
        }
        Ok(())
    }

    /// A date; or a zone's name, or a time run together with a zone, once month and day are
    /// there or a label stands before.
    fn date_field(&mut self, i: usize) -> Result<Step, DtError> {
        let text = self.fields.text(i);
        if self.label == Some(Label::Julian) {
            // A whole Julian day with a zone.
            let (julian, taken) = strtoint(text).ok_or(DtError::FieldOverflow)?;
            if julian < 0 {
                return Err(DtError::FieldOverflow);
            }
            self.parts.clock.set_julian(julian);
            self.is_julian = true;
            self.west_secs = numeric_zone(&text[taken..])?;
            self.label = None;
            return Ok(Step::Found(mask::DATE | mask::TIME | mask::ZONE));
        }
        if self.label.is_none() && !self.has(mask::MONTH | mask::DAY) {
            return self.parts.date(text, self.seen).map(Step::Found);
        }
        if self.label.is_none() && !text[0].is_ascii_digit() {
            return self.zone_name(i);
        }
        if !matches!(self.label.take(), None | Some(Label::Time)) {
            return Err(DtError::BadFormat);
        }
        self.time_with_zone(text, self.seen)
    }

    /// The same where a time is wanted: a date counts only as the first of several fields, and
    /// only before a zone's name or a time with colons.
    fn date_field_of_time(&mut self, i: usize) -> Result<Step, DtError> {
        let text = self.fields.text(i);
        let count = self.fields.len();
        if i == 0
            && count >= 2
            && (self.fields.kind(count - 1) == FieldKind::Date
                || self.fields.kind(1) == FieldKind::Time)
        {
            return self.parts.date(text, self.seen).map(Step::Found);
        }
        if text[0].is_ascii_digit() {
            return self.time_with_zone(text, self.seen | mask::DATE);
        }
        self.zone_name(i)
    }

    /// `hhmmss-zz`.
    fn time_with_zone(&mut self, text: &[u8], seen: u32) -> Result<Step, DtError> {
        if self.has(mask::TIME) {
            return Err(DtError::BadFormat);
        }
        let minus = memchr::memchr(b'-', text).ok_or(DtError::BadFormat)?;
        self.west_secs = numeric_zone(&text[minus..])?;
        let bits = self.parts.number_field(&text[..minus], seen)?;
        Ok(Step::Found(bits | mask::ZONE))
    }

    fn zone_name(&mut self, i: usize) -> Result<Step, DtError> {
        let text = self.fields.text(i);
        let Some(zone) = self.settings.zones.find(text) else {
            return Err(DtError::BadTimezone(Box::from(text)));
        };
        self.named_zone = Some(zone);
        Ok(Step::Found(mask::ZONE))
    }

    fn time_field(&mut self, i: usize) -> Result<Step, DtError> {
        if !matches!(self.label.take(), None | Some(Label::Time)) {
            return Err(DtError::BadFormat);
        }
        self.parts.time(self.fields.text(i))?;
        if self.parts.clock.time_overflows() {
            return Err(DtError::FieldOverflow);
        }
        Ok(Step::Found(mask::TIME))
    }

    fn time_field_of_time(&mut self, i: usize) -> Result<Step, DtError> {
        // Before 16 a label stays, and waits for a number.
        if self.since(16) && !matches!(self.label.take(), None | Some(Label::Time)) {
            return Err(DtError::BadFormat);
        }
        self.parts.time(self.fields.text(i))?;
        Ok(Step::Found(mask::TIME))
    }

    fn zone_field(&mut self, i: usize) -> Result<Step, DtError> {
        self.west_secs = numeric_zone(self.fields.text(i))?;
        Ok(Step::Found(mask::ZONE))
    }

    /// A number after a label. Since 16 only Julian days and ISO times have labels; before,
    /// each part of a date could: y2001m02d04.
    fn labelled_number(&mut self, i: usize) -> Result<Step, DtError> {
        let text = self.fields.text(i);
        let version = self.settings.version;
        let label = self.label.take();
        let (value, taken) = strtoint(text).ok_or(DtError::FieldOverflow)?;
        let rest = &text[taken..];
        let has_point = match rest.first() {
            None => false,
            Some(b'.') => true,
            Some(_) => return Err(DtError::BadFormat),
        };
        let takes_point = matches!(label, Some(Label::Julian | Label::Time | Label::Second));
        if has_point && !takes_point {
            return Err(DtError::BadFormat);
        }
        let clock = &mut self.parts.clock;
        let bits = match label {
            Some(Label::Julian) => {
                if value < 0 {
                    return Err(DtError::FieldOverflow);
                }
                clock.set_julian(value);
                self.is_julian = true;
                if has_point {
                    let day = fraction(rest, version)?;
                    clock.set_time((day * USECS_PER_DAY as f64) as i64);
                    mask::DATE | mask::TIME
                } else {
                    mask::DATE
                }
            }
            Some(Label::Time) => {
                let bits = self.parts.number_field(text, self.seen | mask::DATE)?;
                if bits != mask::TIME {
                    return Err(DtError::BadFormat);
                }
                bits
            }
            _ if version.at_least(16) => return Err(DtError::BadFormat),
            Some(Label::Year) => {
                clock.year = value;
                mask::YEAR
            }
            // After a month and an hour it is the minute.
            Some(Label::Month) if self.seen & mask::MONTH != 0 && self.seen & mask::HOUR != 0 => {
                clock.minute = value;
                mask::MINUTE
            }
            Some(Label::Month) => {
                clock.month = value;
                mask::MONTH
            }
            Some(Label::Day) => {
                clock.day = value;
                mask::DAY
            }
            Some(Label::Hour) => {
                clock.hour = value;
                mask::HOUR
            }
            Some(Label::Minute) => {
                clock.minute = value;
                mask::MINUTE
            }
            Some(Label::Second) => {
                clock.second = value;
                if has_point {
                    clock.micros = fractional_second(rest, version)?;
                    mask::ALL_SECONDS
                } else {
                    mask::SECOND
                }
            }
            Some(Label::Other) | None => return Err(DtError::BadFormat),
        };
        self.kind = DateTimeKind::Value;
        Ok(Step::Found(bits))
    }

    fn number(&mut self, i: usize) -> Result<Step, DtError> {
        let text = self.fields.text(i);
        let point = memchr::memchr(b'.', text);
        let bits = match point {
            Some(_) if self.seen & mask::DATE == 0 => self.parts.date(text, self.seen)?,
            Some(digits) if digits > 2 => self.parts.number_field(text, self.seen)?,
            // Six digits or more are a date or a time, if one of them is still missing.
            _ if text.len() >= 6
                && (self.seen & mask::DATE == 0 || self.seen & mask::TIME == 0) =>
            {
                self.parts.number_field(text, self.seen)?
            }
            _ => self.parts.number(text, self.text_month, self.seen)?,
        };
        Ok(Step::Found(bits))
    }

    fn number_of_time(&mut self, i: usize) -> Result<Step, DtError> {
        let text = self.fields.text(i);
        let count = self.fields.len();
        let seen = self.seen | mask::DATE;
        let bits = match memchr::memchr(b'.', text) {
            Some(_) if i == 0 && count >= 2 && self.fields.kind(count - 1) == FieldKind::Date => {
                self.parts.date(text, self.seen)?
            }
            Some(digits) if digits > 2 => self.parts.number_field(text, seen)?,
            Some(_) => return Err(DtError::BadFormat),
            None if text.len() > 4 => self.parts.number_field(text, seen)?,
            None => self.parts.number(text, false, seen)?,
        };
        Ok(Step::Found(bits))
    }

    /// A word: an abbreviation of a zone, a keyword, or else a zone's name.
    fn word(&mut self, i: usize, wants_time: bool) -> Result<Step, DtError> {
        let text = self.fields.text(i);
        match abbreviation(text, self.settings)? {
            Some(AbbreviationMeaning::Offset {
                offset_secs,
                is_dst,
            }) => {
                self.west_secs = -offset_secs;
                let dst = if is_dst { mask::DST_ZONE } else { 0 };
                return Ok(Step::Found(mask::ZONE | dst));
            }
            Some(AbbreviationMeaning::InZone(zone)) => {
                self.abbreviation = Some((text, zone));
                return Ok(Step::Found(mask::ZONE | mask::DYNAMIC_ZONE));
            }
            None => {}
        }
        let word = date_word(text).filter(|_| self.since(16) || cut(text) != b"+infinity");
        let bits = match word {
            Some(DateWord::Ignored) => return Ok(Step::Skip),
            Some(DateWord::Reserved(reserved)) if wants_time => self.reserved_time(reserved)?,
            Some(DateWord::Reserved(reserved)) => self.reserved(reserved),
            Some(DateWord::Month(month)) if !wants_time => self.month(month),
            Some(DateWord::Weekday) if !wants_time => mask::WEEKDAY,
            Some(DateWord::Month(_) | DateWord::Weekday) => return Err(DtError::BadFormat),
            Some(DateWord::Bc) => {
                self.bc = true;
                mask::ERA
            }
            Some(DateWord::Ad) => {
                self.bc = false;
                mask::ERA
            }
            Some(DateWord::Am) => {
                self.half = Some(Half::Am);
                mask::AMPM
            }
            Some(DateWord::Pm) => {
                self.half = Some(Half::Pm);
                mask::AMPM
            }
            Some(DateWord::DstModifier) => {
                self.west_secs = self.west_secs.wrapping_sub(3600);
                mask::DST_MODIFIER | mask::DST_ZONE
            }
            Some(DateWord::IsoTime) => {
                if !wants_time && !self.has(mask::DATE) {
                    return Err(DtError::BadFormat);
                }
                self.set_label(Label::Time)?;
                if !self.since(16) && !self.time_may_follow(i) {
                    return Err(DtError::BadFormat);
                }
                0
            }
            Some(DateWord::Label(label)) => {
                self.set_label(label)?;
                0
            }
            None => {
                let zone = self.settings.zones.find(text).ok_or(DtError::BadFormat)?;
                self.named_zone = Some(zone);
                mask::ZONE
            }
        };
        Ok(Step::Found(bits))
    }

    /// Since 16 a label must be answered before the next comes.
    fn set_label(&mut self, label: Label) -> Result<(), DtError> {
        if self.since(16) && self.label.is_some() {
            return Err(DtError::BadFormat);
        }
        self.label = Some(label);
        Ok(())
    }

    /// Whether the field after `i` can be an ISO time.
    fn time_may_follow(&self, i: usize) -> bool {
        i + 1 < self.fields.len()
            && matches!(
                self.fields.kind(i + 1),
                FieldKind::Number | FieldKind::Time | FieldKind::Date
            )
    }

    /// A month's name; a number taken for the month before is the day then.
    fn month(&mut self, month: i32) -> u32 {
        let clock = &mut self.parts.clock;
        let mut bits = mask::MONTH;
        if self.seen & mask::MONTH != 0
            && !self.text_month
            && self.seen & mask::DAY == 0
            && (1..=31).contains(&clock.month)
        {
            clock.day = clock.month;
            bits = mask::DAY;
        }
        self.text_month = true;
        clock.month = month;
        bits
    }

    fn reserved(&mut self, word: Reserved) -> u32 {
        const ALL: u32 = mask::DATE | mask::TIME | mask::ZONE;
        let clock = &mut self.parts.clock;
        let days = match word {
            Reserved::Now => {
                (*clock, self.west_secs) = local_now(self.settings);
                self.kind = DateTimeKind::Value;
                return ALL;
            }
            Reserved::AllBalls => {
                (clock.hour, clock.minute, clock.second) = (0, 0, 0);
                self.west_secs = 0;
                self.kind = DateTimeKind::Value;
                return mask::TIME | mask::ZONE;
            }
            Reserved::Epoch | Reserved::Infinity | Reserved::MinusInfinity => {
                self.kind = match word {
                    Reserved::Epoch => DateTimeKind::Epoch,
                    Reserved::Infinity => DateTimeKind::Infinity,
                    _ => DateTimeKind::MinusInfinity,
                };
                // Before 16 a date may stand before such a word, and is ignored.
                return if self.since(16) { ALL } else { mask::RESERVED };
            }
            Reserved::Yesterday => -1,
            Reserved::Today => 0,
            Reserved::Tomorrow => 1,
        };
        let (now, _) = local_now(self.settings);
        clock.set_julian(date_to_julian(now.year, now.month, now.day) + days);
        self.kind = DateTimeKind::Value;
        mask::DATE
    }

    fn reserved_time(&mut self, word: Reserved) -> Result<u32, DtError> {
        let clock = &mut self.parts.clock;
        match word {
            Reserved::Now => {
                // The date comes along, but does not count.
                *clock = local_now(self.settings).0;
                Ok(mask::TIME)
            }
            Reserved::AllBalls => {
                (clock.hour, clock.minute, clock.second) = (0, 0, 0);
                Ok(mask::TIME | mask::ZONE)
            }
            _ => Err(DtError::BadFormat),
        }
    }

    /// Applies AM and PM.
    fn settle_half(&mut self) -> Result<(), DtError> {
        let hour = &mut self.parts.clock.hour;
        if self.half.is_some() && *hour > 12 {
            return Err(DtError::FieldOverflow);
        }
        match self.half {
            Some(Half::Am) if *hour == 12 => *hour = 0,
            Some(Half::Pm) if *hour != 12 => *hour = hour.wrapping_add(12),
            _ => {}
        }
        Ok(())
    }

    fn validate_date(&mut self) -> Result<(), DtError> {
        self.parts.validate_date(self.seen, self.is_julian, self.bc)
    }

    /// "dst" goes only with a zone of fixed offset.
    fn refuse_dst_modifier(&self) -> Result<(), DtError> {
        if self.seen & mask::DST_MODIFIER != 0 {
            return Err(DtError::BadFormat);
        }
        Ok(())
    }

    fn finish_date_time(mut self) -> Result<DateTime, DtError> {
        let is_value = self.kind == DateTimeKind::Value;
        if self.since(16) {
            if self.label.is_some() {
                return Err(DtError::BadFormat);
            }
            if is_value {
                self.validate_date()?;
                self.settle_half()?;
            }
        } else {
            self.validate_date()?;
            self.settle_half()?;
        }
        if is_value {
            if !self.has(mask::DATE) {
                return Err(DtError::BadFormat);
            }
            self.settle_zone()?;
        }
        Ok(DateTime {
            kind: self.kind,
            clock: self.parts.clock,
            west_secs: self.west_secs,
        })
    }

    fn settle_zone(&mut self) -> Result<(), DtError> {
        let clock = &self.parts.clock;
        if let Some(zone) = &self.named_zone {
            self.refuse_dst_modifier()?;
            self.west_secs = determine_offset_of(clock, zone, self.settings).0;
        }
        if let Some((word, zone)) = &self.abbreviation {
            self.refuse_dst_modifier()?;
            self.west_secs = determine_abbreviation_offset(clock, word, zone, self.settings);
        }
        if self.seen & mask::ZONE == 0 {
            self.refuse_dst_modifier()?;
            self.west_secs = determine_offset_of(clock, &self.settings.zone, self.settings).0;
        }
        Ok(())
    }

    fn finish_time(mut self) -> Result<DateTime, DtError> {
        if self.since(16) && self.label.is_some() {
            return Err(DtError::BadFormat);
        }
        self.validate_date()?;
        self.settle_half()?;
        if self.parts.clock.time_overflows() {
            return Err(DtError::FieldOverflow);
        }
        if !self.has(mask::TIME) {
            return Err(DtError::BadFormat);
        }
        if let Some(zone) = &self.named_zone {
            self.refuse_dst_modifier()?;
            self.west_secs = match zone.only_offset() {
                Some(offset_secs) => -offset_secs,
                // Else the date must be known.
                None if self.has(mask::DATE) => {
                    determine_offset_of(&self.parts.clock, zone, self.settings).0
                }
                None => return Err(DtError::BadFormat),
            };
        }
        if let Some((word, zone)) = &self.abbreviation {
            self.refuse_dst_modifier()?;
            let clock = self.clock_with_date()?;
            self.west_secs = determine_abbreviation_offset(&clock, word, zone, self.settings);
        }
        if self.seen & mask::ZONE == 0 {
            self.refuse_dst_modifier()?;
            let clock = self.clock_with_date()?;
            self.west_secs = determine_offset_of(&clock, &self.settings.zone, self.settings).0;
        }
        Ok(DateTime {
            kind: self.kind,
            clock: self.parts.clock,
            west_secs: self.west_secs,
        })
    }

    /// The time, on its date if that is given, else today.
    fn clock_with_date(&self) -> Result<Clock, DtError> {
        let clock = self.parts.clock;
        if self.seen & mask::DATE == 0 {
            let (now, _) = local_now(self.settings);
            return Ok(Clock {
                year: now.year,
                month: now.month,
                day: now.day,
                ..clock
            });
        }
        if !self.has(mask::DATE) {
            return Err(DtError::BadFormat);
        }
        Ok(clock)
    }
}
