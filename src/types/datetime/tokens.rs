//! Text to fields, and the words that fields can be.
//!
//! The first step of every input function: digits, words, signs and punctuation become typed
//! fields in lower case. What a field means is decided later, from what came before it.
//!
//! PostgreSQL: `src/backend/utils/adt/datetime.c`, `ParseDateTime`, `datetktbl`, `deltatktbl`.

use super::DtError;

/// How many bytes of a word count; longer ones match by their beginning.
pub(super) const TOKEN_MAX_BYTES: usize = 10;
/// The most fields of a value.
pub(super) const FIELDS_MAX: usize = 25;
/// The server's working space for date, time and timetz, in bytes: longer text is refused.
pub(super) const DATE_WORK_BYTES: usize = 129;
/// The same for timestamps.
pub(super) const TIMESTAMP_WORK_BYTES: usize = 153;
/// The same for intervals.
pub(super) const INTERVAL_WORK_BYTES: usize = 256;

/// What a field looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// Digits, maybe with one decimal point.
    Number,
    /// A word.
    Word,
    /// Digits and delimiters, or digits and words, or a zone's name with punctuation.
    Date,
    /// Digits and colons.
    Time,
    /// A sign and digits: a zone's offset or a signed number.
    Signed,
    /// A sign and a word.
    Special,
}

/// The fields of a value.
pub(super) struct Fields {
    work: [u8; INTERVAL_WORK_BYTES],
    spans: [(u8, u8, FieldKind); FIELDS_MAX],
    count: usize,
}

impl Fields {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// What field `i` looks like.
    pub(super) fn kind(&self, i: usize) -> FieldKind {
        self.spans[i].2
    }

    /// The text of field `i` in lower case.
    pub(super) fn text(&self, i: usize) -> &[u8] {
        let (begin, end, _) = self.spans[i];
        &self.work[usize::from(begin)..usize::from(end)]
    }
}

/// Copies bytes into the working space within the server's limit for the type.
struct Writer<'a> {
    text: &'a [u8],
    pos: usize,
    fields: Fields,
    used: usize,
    work_bytes: usize,
}

impl Writer<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    fn push(&mut self) -> Result<(), DtError> {
        if self.used + 1 >= self.work_bytes {
            return Err(DtError::BadFormat);
        }
        self.fields.work[self.used] = self.text[self.pos].to_ascii_lowercase();
        self.used += 1;
        self.pos += 1;
        Ok(())
    }

    fn push_while(&mut self, wanted: impl Fn(u8) -> bool) -> Result<(), DtError> {
        while self.peek().is_some_and(&wanted) {
            self.push()?;
        }
        Ok(())
    }

    fn peek_is(&self, wanted: impl Fn(u8) -> bool) -> bool {
        self.peek().is_some_and(wanted)
    }
}

/// C's isspace in the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_alpha(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

/// Splits text into fields.
pub(super) fn split(text: &[u8], work_bytes: usize) -> Result<Fields, DtError> {
    debug_assert!(work_bytes <= INTERVAL_WORK_BYTES);
    let mut writer = Writer {
        text,
        pos: 0,
        fields: Fields {
            work: [0; INTERVAL_WORK_BYTES],
            spans: [(0, 0, FieldKind::Number); FIELDS_MAX],
            count: 0,
        },
        used: 0,
        work_bytes,
    };
    while let Some(byte) = writer.peek() {
        if is_space(byte) {
            writer.pos += 1;
            continue;
        }
        if writer.fields.count >= FIELDS_MAX {
            return Err(DtError::BadFormat);
        }
        let begin = writer.used;
        let kind = if is_digit(byte) {
            digits(&mut writer)?
        } else if byte == b'.' {
            writer.push()?;
            writer.push_while(is_digit)?;
            FieldKind::Number
        } else if is_alpha(byte) {
            word(&mut writer, begin)?
        } else if matches!(byte, b'+' | b'-') {
            sign(&mut writer)?
        } else if byte.is_ascii_punctuation() {
            writer.pos += 1;
            continue;
        } else {
            return Err(DtError::BadFormat);
        };
        // The working space has at most 256 bytes, and its last is never text.
        writer.fields.spans[writer.fields.count] = (begin as u8, writer.used as u8, kind);
        writer.fields.count += 1;
        // The server ends each field with a NUL there.
        writer.used += 1;
    }
    Ok(writer.fields)
}

/// A field that begins with a digit: a time, a date, or a number.
fn digits(writer: &mut Writer<'_>) -> Result<FieldKind, DtError> {
    writer.push_while(is_digit)?;
    match writer.peek() {
        Some(b':') => {
            writer.push()?;
            writer.push_while(|b| is_digit(b) || b == b':' || b == b'.')?;
            Ok(FieldKind::Time)
        }
        Some(delimiter @ (b'-' | b'/' | b'.')) => {
            writer.push()?;
            if !writer.peek_is(is_digit) {
                // A month may stand here as a word.
                writer.push_while(|b| b.is_ascii_alphanumeric() || b == delimiter)?;
                return Ok(FieldKind::Date);
            }
            writer.push_while(is_digit)?;
            // Only three parts with one delimiter are a date for sure.
            if writer.peek() == Some(delimiter) {
                writer.push()?;
                writer.push_while(|b| is_digit(b) || b == delimiter)?;
                Ok(FieldKind::Date)
            } else if delimiter == b'.' {
                Ok(FieldKind::Number)
            } else {
                Ok(FieldKind::Date)
            }
        }
        _ => Ok(FieldKind::Number),
    }
}

/// A field that begins with a letter: a word, a date, or a zone's name.
fn word(writer: &mut Writer<'_>, begin: usize) -> Result<FieldKind, DtError> {
    writer.push_while(is_alpha)?;
    let goes_on = match writer.peek() {
        Some(b'-' | b'/' | b'.') => true,
        // A keyword may run into a number, as in J2451545; a zone's name has more.
        Some(b'+' | b'0'..=b'9') => date_word(&writer.fields.work[begin..writer.used]).is_none(),
        _ => false,
    };
    if !goes_on {
        return Ok(FieldKind::Word);
    }
    writer.push()?;
    writer.push_while(|b| {
        b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
    })?;
    Ok(FieldKind::Date)
}

/// A field that begins with a sign; spaces after the sign do not count.
fn sign(writer: &mut Writer<'_>) -> Result<FieldKind, DtError> {
    writer.push()?;
    while writer.peek_is(is_space) {
        writer.pos += 1;
    }
    if writer.peek_is(is_digit) {
        writer.push_while(|b| is_digit(b) || matches!(b, b':' | b'.' | b'-'))?;
        Ok(FieldKind::Signed)
    } else if writer.peek_is(is_alpha) {
        writer.push_while(is_alpha)?;
        Ok(FieldKind::Special)
    } else {
        Err(DtError::BadFormat)
    }
}

/// What a word of a date or time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateWord {
    /// now, today, infinity, ...
    Reserved(Reserved),
    /// A month, from 1.
    Month(i32),
    /// A day of the week; its value is not used.
    Weekday,
    /// Before Christ.
    Bc,
    /// Anno Domini.
    Ad,
    /// Before noon.
    Am,
    /// After noon.
    Pm,
    /// A word without meaning: at, on.
    Ignored,
    /// "dst" after a zone.
    DstModifier,
    /// `t` before a time.
    IsoTime,
    /// A label of the field that follows.
    Label(Label),
}

/// Words that stand for a whole value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserved {
    Infinity,
    MinusInfinity,
    Epoch,
    Now,
    Yesterday,
    Today,
    Tomorrow,
    /// 00:00:00 UTC.
    AllBalls,
}

/// Labels of the field that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    /// `t`: an ISO time follows.
    Time,
    /// dow, doy, isodow, isoyear: known, and never useful.
    Other,
}

/// The word's first ten bytes.
pub(super) fn cut(word: &[u8]) -> &[u8] {
    &word[..word.len().min(TOKEN_MAX_BYTES)]
}

/// A word of a date or time, in lower case.
///
/// PostgreSQL: `datetime.c`, `datetktbl`. `+infinity` is a word since 16; the caller checks.
pub(super) fn date_word(word: &[u8]) -> Option<DateWord> {
    use DateWord as W;
    Some(match cut(word) {
        b"+infinity" | b"infinity" => W::Reserved(Reserved::Infinity),
        b"-infinity" => W::Reserved(Reserved::MinusInfinity),
        b"epoch" => W::Reserved(Reserved::Epoch),
        b"now" => W::Reserved(Reserved::Now),
        b"yesterday" => W::Reserved(Reserved::Yesterday),
        b"today" => W::Reserved(Reserved::Today),
        b"tomorrow" => W::Reserved(Reserved::Tomorrow),
        b"allballs" => W::Reserved(Reserved::AllBalls),
        b"ad" => W::Ad,
        b"bc" => W::Bc,
        b"am" => W::Am,
        b"pm" => W::Pm,
        b"at" | b"on" => W::Ignored,
        b"dst" => W::DstModifier,
        b"t" => W::IsoTime,
        b"jan" | b"january" => W::Month(1),
        b"feb" | b"february" => W::Month(2),
        b"mar" | b"march" => W::Month(3),
        b"apr" | b"april" => W::Month(4),
        b"may" => W::Month(5),
        b"jun" | b"june" => W::Month(6),
        b"jul" | b"july" => W::Month(7),
        b"aug" | b"august" => W::Month(8),
        b"sep" | b"sept" | b"september" => W::Month(9),
        b"oct" | b"october" => W::Month(10),
        b"nov" | b"november" => W::Month(11),
        b"dec" | b"december" => W::Month(12),
        b"sun" | b"sunday" | b"mon" | b"monday" | b"tue" | b"tues" | b"tuesday" | b"wed"
        | b"weds" | b"wednesday" | b"thu" | b"thur" | b"thurs" | b"thursday" | b"fri"
        | b"friday" | b"sat" | b"saturday" => W::Weekday,
        b"y" => W::Label(Label::Year),
        b"m" => W::Label(Label::Month),
        b"d" => W::Label(Label::Day),
        b"h" => W::Label(Label::Hour),
        b"mm" => W::Label(Label::Minute),
        b"s" => W::Label(Label::Second),
        b"j" | b"jd" | b"julian" => W::Label(Label::Julian),
        b"dow" | b"doy" | b"isodow" | b"isoyear" => W::Label(Label::Other),
        _ => return None,
    })
}

/// What a word of an interval means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntervalWord {
    /// A unit of the number before it.
    Unit(Unit),
    /// "ago".
    Ago,
    /// "@".
    Ignored,
}

/// Units of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
    /// quarter, timezone: known, and never accepted.
    Other,
}

/// A word of an interval, in lower case.
///
/// PostgreSQL: `datetime.c`, `deltatktbl`.
pub(super) fn interval_word(word: &[u8]) -> Option<IntervalWord> {
    Some(IntervalWord::Unit(match cut(word) {
        b"ago" => return Some(IntervalWord::Ago),
        b"@" => return Some(IntervalWord::Ignored),
        b"us" | b"usec" | b"usecond" | b"useconds" | b"usecs" | b"microsecon" => Unit::Microsecond,
        b"ms" | b"msec" | b"msecond" | b"mseconds" | b"msecs" | b"millisecon" => Unit::Millisecond,
        b"s" | b"sec" | b"second" | b"seconds" | b"secs" => Unit::Second,
        b"m" | b"min" | b"mins" | b"minute" | b"minutes" => Unit::Minute,
        b"h" | b"hour" | b"hours" | b"hr" | b"hrs" => Unit::Hour,
        b"d" | b"day" | b"days" => Unit::Day,
        b"w" | b"week" | b"weeks" => Unit::Week,
        b"mon" | b"mons" | b"month" | b"months" => Unit::Month,
        b"y" | b"year" | b"years" | b"yr" | b"yrs" => Unit::Year,
        b"dec" | b"decade" | b"decades" | b"decs" => Unit::Decade,
        b"c" | b"cent" | b"century" | b"centuries" => Unit::Century,
        b"mil" | b"mils" | b"millennia" | b"millennium" => Unit::Millennium,
        b"qtr" | b"quarter" | b"timezone" | b"timezone_h" | b"timezone_m" => Unit::Other,
        _ => return None,
    }))
}
