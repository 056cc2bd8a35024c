//! One time zone: its transitions, read from a TZif file or computed from a POSIX TZ string,
//! and what the input functions ask of it.
//!
//! The answers must be the server's to the second, for any year. So the transitions are laid
//! out as its own zone library lays them out: the file's 64-bit block, then those of the
//! POSIX footer up to 2,000 in all, then repetition every 400 years.
//!
//! PostgreSQL: `src/timezone/localtime.c` (`tzloadbody`, `tzparse`, `localsub`,
//! `pg_next_dst_boundary`, `pg_interpret_timezone_abbrev`, `pg_timezone_abbrev_is_known`).

use super::posix;

/// The most transitions that the server keeps of a zone.
pub(super) const MAX_TRANSITIONS: usize = 2000;
/// The most local time types.
const MAX_TYPES: usize = 256;
/// The most bytes of abbreviations.
const MAX_ABBREVIATION_BYTES: usize = 50;
/// The most leap seconds.
const MAX_LEAP_SECONDS: usize = 50;
/// Years after which the Gregorian calendar repeats, weekdays included.
pub(super) const YEARS_PER_REPEAT: i64 = 400;
/// Seconds of an average Gregorian year.
const AVG_SECS_PER_YEAR: i64 = 31_556_952;
/// Seconds of 400 years.
const SECS_PER_REPEAT: i64 = YEARS_PER_REPEAT * AVG_SECS_PER_YEAR;
/// The most bytes that the server reads of a zone file.
const MAX_FILE_BYTES: usize = 64 * 1024;
/// Bytes of a TZif header.
const HEADER_BYTES: usize = 44;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Instants of change in seconds since 1970-01-01 UTC, ascending.
    pub(super) instants: Vec<i64>,
    /// For each instant, the local time type from then on.
    pub(super) types: Vec<u8>,
    /// Local time types.
    pub(super) kinds: Vec<LocalTime>,
    /// Abbreviations, each ended by a NUL.
    pub(super) abbreviations: Vec<u8>,
    /// The type before the first transition.
    pub(super) first_kind: usize,
    /// The type before the first transition as servers before 18 chose it for input.
    first_standard_kind: usize,
    /// The first 400 years repeat backwards.
    pub(super) repeats_before: bool,
    /// The last 400 years repeat forwards.
    pub(super) repeats_after: bool,
    /// For each span of `INDEX_SPAN` from `INDEX_START`, the number of instants that are not
    /// after its beginning: a search starts there.
    index: Vec<u16>,
}

/// A local time type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalTime {
    /// Seconds east of Greenwich.
    pub(super) offset_secs: i32,
    /// Daylight saving time.
    pub(super) is_dst: bool,
    /// Where its abbreviation begins.
    pub(super) abbreviation_pos: usize,
    /// The standard/wall and UT/local indicators, which decide whether two types are one.
    pub(super) indicators: (bool, bool),
}

/// What the zone does around an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    /// No change comes after it.
    None {
        /// Seconds east of Greenwich then.
        offset_secs: i32,
    },
    /// The next change after it.
    At {
        /// When, in seconds since 1970-01-01 UTC.
        instant: i64,
        /// Seconds east of Greenwich before the change.
        before_secs: i32,
        /// Seconds east of Greenwich after it.
        after_secs: i32,
    },
}

/// How a zone uses an abbreviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbbreviationUse {
    /// Always the same way.
    Fixed {
        /// Seconds east of Greenwich.
        offset_secs: i32,
        /// Daylight saving time.
        is_dst: bool,
    },
    /// Differently at different times.
    Varying,
}

/// 1899-12-29 in seconds since 1970: where the index begins.
const INDEX_START: i64 = -2_209_161_600;
/// log2 of the seconds of one span of the index: 48.5 days, shorter than any rule's half-year.
const INDEX_SHIFT: u32 = 22;
/// Spans of the index: up to the year 2110.
const INDEX_SPANS: usize = 1600;

impl Zone {
    /// A zone from the bytes of a TZif file.
    ///
    /// Returns `None` where the server finds the file unusable. As there, the magic number is
    /// not looked at, but every count is.
    pub(super) fn from_tzif(file: &[u8]) -> Option<Zone> {
        let file = &file[..file.len().min(MAX_FILE_BYTES)];
        let (first, rest) = Block::read(file, 4)?;
        let (mut block, footer) = if first.version == 0 {
            (first, rest)
        } else {
            Block::read(rest, 8)?
        };
        if let [b'\n', rule @ .., b'\n'] = footer
            && footer.len() > 2
            && block.kinds.len() + 2 <= MAX_TYPES
            && let Some(end) = posix::parse(until_nul(rule), false)
        {
            block.append(&end);
        }
        if block.kinds.is_empty() {
            return None;
        }
        let repeats = |a: usize, b: usize| {
            block.same_kind(block.types[a], block.types[b])
                && block.instants[a].wrapping_sub(block.instants[b]) == SECS_PER_REPEAT
        };
        let count = block.instants.len();
        let repeats_before = (1..count).any(|i| repeats(i, 0));
        let repeats_after = (0..count.saturating_sub(1)).any(|i| repeats(count - 1, i));
        let first_kind = block.first_kind();
        Some(Zone::new(
            block.instants,
            block.types,
            block.kinds,
            block.abbreviations,
            first_kind,
            (repeats_before, repeats_after),
        ))
    }

    /// A zone from its parts; makes the index.
    pub(super) fn new(
        instants: Vec<i64>,
        types: Vec<u8>,
        kinds: Vec<LocalTime>,
        abbreviations: Vec<u8>,
        first_kind: usize,
        repeats: (bool, bool),
    ) -> Zone {
        let index = if instants.is_empty() {
            Vec::new()
        } else {
            (0..INDEX_SPANS)
                .map(|span| {
                    let begin = INDEX_START + ((span as i64) << INDEX_SHIFT);
                    // At most MAX_TRANSITIONS, so it fits.
                    instants.partition_point(|&at| at <= begin) as u16
                })
                .collect()
        };
        let first_standard_kind = kinds.iter().position(|k| !k.is_dst).unwrap_or(0);
        Zone {
            instants,
            types,
            kinds,
            abbreviations,
            first_kind,
            first_standard_kind,
            repeats_before: repeats.0,
            repeats_after: repeats.1,
            index,
        }
    }

    /// How many instants are not after `time`.
    #[inline]
    fn instants_until(&self, time: i64) -> usize {
        let span = time.wrapping_sub(INDEX_START) >> INDEX_SHIFT;
        match usize::try_from(span).ok().and_then(|s| self.index.get(s)) {
            Some(&start) => {
                let mut i = usize::from(start);
                while i < self.instants.len() && self.instants[i] <= time {
                    i += 1;
                }
                i
            }
            None => self.instants.partition_point(|&at| at <= time),
        }
    }

    /// The next change after `time` (seconds since 1970-01-01 UTC) and the offsets around it.
    /// `None` when the arithmetic overflows.
    ///
    /// Before the first transition a server before 18 takes the first standard-time type.
    ///
    /// PostgreSQL: `localtime.c`, `pg_next_dst_boundary`.
    #[inline]
    pub(super) fn next_boundary(&self, time: i64, before_18: bool) -> Option<Boundary> {
        let kind_before_all = || {
            &self.kinds[if before_18 {
                self.first_standard_kind
            } else {
                self.first_kind
            }]
        };
        let (Some(&first), Some(&last)) = (self.instants.first(), self.instants.last()) else {
            return Some(Boundary::None {
                offset_secs: kind_before_all().offset_secs,
            });
        };
        if (self.repeats_before && time < first) || (self.repeats_after && time > last) {
            let (moved, shift) = self.move_into_table(time)?;
            return Some(match self.next_boundary(moved, before_18)? {
                Boundary::At {
                    instant,
                    before_secs,
                    after_secs,
                } => Boundary::At {
                    instant: instant.wrapping_sub(shift),
                    before_secs,
                    after_secs,
                },
                none @ Boundary::None { .. } => none,
            });
        }
        if time >= last {
            return Some(Boundary::None {
                offset_secs: self.kind_from(self.instants.len() - 1).offset_secs,
            });
        }
        let next = self.instants_until(time);
        let before = if next == 0 {
            kind_before_all()
        } else {
            self.kind_from(next - 1)
        };
        Some(Boundary::At {
            instant: self.instants[next],
            before_secs: before.offset_secs,
            after_secs: self.kind_from(next).offset_secs,
        })
    }

    /// The offset in seconds east of Greenwich at an instant, in seconds since 1970-01-01 UTC.
    ///
    /// PostgreSQL: `localtime.c`, `localsub`.
    pub fn offset_at(&self, time: i64) -> i32 {
        let (Some(&first), Some(&last)) = (self.instants.first(), self.instants.last()) else {
            return self.kinds[self.first_kind].offset_secs;
        };
        if (self.repeats_before && time < first) || (self.repeats_after && time > last) {
            return match self.move_into_table(time) {
                Some((moved, _)) => self.offset_at(moved),
                None => 0,
            };
        }
        match self.instants_until(time) {
            0 => self.kinds[self.first_kind].offset_secs,
            n => self.kind_from(n - 1).offset_secs,
        }
    }

    /// An instant outside the table moved into it by a multiple of 400 years, and by how much.
    fn move_into_table(&self, time: i64) -> Option<(i64, i64)> {
        let first = *self.instants.first()?;
        let last = *self.instants.last()?;
        let distance = if time < first {
            first.checked_sub(time)?
        } else {
            time.checked_sub(last)?
        } - 1;
        let shift = (distance / SECS_PER_REPEAT + 1).checked_mul(SECS_PER_REPEAT)?;
        let shift = if time < first { shift } else { -shift };
        let moved = time.checked_add(shift)?;
        (first..=last).contains(&moved).then_some((moved, shift))
    }

    /// The type from transition `i` on.
    #[inline]
    fn kind_from(&self, i: usize) -> &LocalTime {
        &self.kinds[usize::from(self.types[i])]
    }

    /// Where an abbreviation, in upper case, begins in the list.
    fn abbreviation_pos(&self, upper: &[u8]) -> Option<usize> {
        let mut pos = 0;
        while pos < self.abbreviations.len() {
            let name = until_nul(&self.abbreviations[pos..]);
            if name == upper {
                return Some(pos);
            }
            pos += name.len() + 1;
        }
        None
    }

    /// Whether and how the zone uses an abbreviation, given in upper case.
    ///
    /// PostgreSQL: `localtime.c`, `pg_timezone_abbrev_is_known` (18).
    pub(super) fn abbreviation_use(&self, upper: &[u8]) -> Option<AbbreviationUse> {
        let pos = self.abbreviation_pos(upper)?;
        let mut uses = self.kinds.iter().filter(|k| k.abbreviation_pos == pos);
        let first = uses.next()?;
        if uses.all(|k| (k.offset_secs, k.is_dst) == (first.offset_secs, first.is_dst)) {
            Some(AbbreviationUse::Fixed {
                offset_secs: first.offset_secs,
                is_dst: first.is_dst,
            })
        } else {
            Some(AbbreviationUse::Varying)
        }
    }

    /// What an abbreviation, given in upper case, meant at `time` or most recently before it,
    /// or else first after it: seconds east of Greenwich.
    ///
    /// PostgreSQL: `localtime.c`, `pg_interpret_timezone_abbrev`.
    pub(super) fn abbreviation_offset(
        &self,
        upper: &[u8],
        time: i64,
        before_18: bool,
    ) -> Option<i32> {
        let pos = self.abbreviation_pos(upper)?;
        let cutoff = self.instants.partition_point(|&at| at <= time);
        let is_it = |kind: &&LocalTime| kind.abbreviation_pos == pos;
        let before = || (0..cutoff).rev().map(|i| self.kind_from(i)).find(is_it);
        let before_all = || {
            if before_18 {
                None
            } else {
                Some(&self.kinds[self.first_kind]).filter(is_it)
            }
        };
        let after = || {
            (cutoff..self.instants.len())
                .map(|i| self.kind_from(i))
                .find(is_it)
        };
        before()
            .or_else(before_all)
            .or_else(after)
            .map(|kind| kind.offset_secs)
    }

    /// The zone's offset in seconds east of Greenwich, if it has ever had but one.
    ///
    /// PostgreSQL: `localtime.c`, `pg_get_timezone_offset`.
    pub(super) fn only_offset(&self) -> Option<i32> {
        let first = self.kinds[0].offset_secs;
        self.kinds
            .iter()
            .all(|kind| kind.offset_secs == first)
            .then_some(first)
    }
}

/// The bytes up to the first NUL.
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    match memchr::memchr(0, bytes) {
        Some(end) => &bytes[..end],
        None => bytes,
    }
}

/// A data block of a TZif file.
struct Block {
    version: u8,
    instants: Vec<i64>,
    types: Vec<u8>,
    kinds: Vec<LocalTime>,
    abbreviations: Vec<u8>,
    /// Instant and total correction of each leap second.
    leap_seconds: Vec<(i64, i32)>,
}

/// Takes numbers from the front of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn instant(&mut self, width_bytes: usize) -> Option<i64> {
        if width_bytes == 4 {
            return self.i32().map(i64::from);
        }
        Some(i64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Block {
    /// Reads a header and its block of instants of 4 or 8 bytes; returns what follows.
    fn read(file: &[u8], width_bytes: usize) -> Option<(Block, &[u8])> {
        let mut reader = Reader(file);
        let header = reader.bytes(HEADER_BYTES)?;
        let mut counts = Reader(&header[20..]);
        let mut count = |limit: usize| {
            let n = usize::try_from(counts.i32()?).ok()?;
            (n < limit).then_some(n)
        };
        let ut_count = count(MAX_TYPES)?;
        let std_count = count(MAX_TYPES)?;
        let leap_count = count(MAX_LEAP_SECONDS)?;
        let time_count = count(MAX_TRANSITIONS)?;
        let type_count = count(MAX_TYPES)?;
        let char_count = count(MAX_ABBREVIATION_BYTES)?;
        if ![0, type_count].contains(&std_count) || ![0, type_count].contains(&ut_count) {
            return None;
        }
        let mut instants: Vec<i64> = Vec::with_capacity(time_count);
        // Which of the file's transitions are kept: of two at one instant, the later.
        let mut kept = vec![true; time_count];
        for i in 0..time_count {
            let at = reader.instant(width_bytes)?;
            if let Some(&previous) = instants.last()
                && at <= previous
            {
                if at < previous {
                    return None;
                }
                kept[i - 1] = false;
                instants.pop();
            }
            instants.push(at);
        }
        let mut types = Vec::with_capacity(time_count);
        for keep in kept {
            let kind = reader.byte()?;
            if usize::from(kind) >= type_count {
                return None;
            }
            if keep {
                types.push(kind);
            }
        }
        let mut kinds = Vec::with_capacity(type_count);
        for _ in 0..type_count {
            let kind = LocalTime {
                offset_secs: reader.i32()?,
                is_dst: reader.flag()?,
                abbreviation_pos: usize::from(reader.byte()?),
                indicators: (false, false),
            };
            // RFC 8536 forbids the smallest offset, which has no opposite.
            if kind.abbreviation_pos >= char_count || kind.offset_secs == i32::MIN {
                return None;
            }
            kinds.push(kind);
        }
        let mut abbreviations = reader.bytes(char_count)?.to_vec();
        if abbreviations.last().is_some_and(|&last| last != 0) {
            abbreviations.push(0);
        }
        let leap_seconds = read_leap_seconds(&mut reader, leap_count, width_bytes)?;
        for kind in &mut kinds[..std_count] {
            kind.indicators.0 = reader.flag()?;
        }
        for kind in &mut kinds[..ut_count] {
            kind.indicators.1 = reader.flag()?;
        }
        let block = Block {
            version: header[4],
            instants,
            types,
            kinds,
            abbreviations,
            leap_seconds,
        };
        Some((block, reader.0))
    }

    /// Appends the transitions of a POSIX footer that come after the block's last.
    fn append(&mut self, end: &Zone) {
        let mut abbreviations = self.abbreviations.clone();
        let mut kinds = end.kinds.clone();
        for kind in &mut kinds {
            let name = until_nul(&end.abbreviations[kind.abbreviation_pos..]);
            // An abbreviation may also be the tail of one that is there.
            let found = (0..abbreviations.len()).find(|&i| until_nul(&abbreviations[i..]) == name);
            kind.abbreviation_pos = match found {
                Some(pos) => pos,
                None if abbreviations.len() + name.len() < MAX_ABBREVIATION_BYTES => {
                    let pos = abbreviations.len();
                    abbreviations.extend_from_slice(name);
                    abbreviations.push(0);
                    pos
                }
                None => return,
            };
        }
        self.abbreviations = abbreviations;
        // A last transition to the type that already held says nothing.
        while let [.., before, last] = self.types[..]
            && before == last
        {
            self.types.pop();
            self.instants.pop();
        }
        let corrected = |at: i64| at + i64::from(leap_correction(&self.leap_seconds, at));
        let last = self.instants.last().copied();
        let start = match last {
            None => 0,
            Some(last) => end
                .instants
                .iter()
                .position(|&at| last < corrected(at))
                .unwrap_or(end.instants.len()),
        };
        let room = MAX_TRANSITIONS.saturating_sub(self.instants.len());
        let base = self.kinds.len();
        let added: Vec<(i64, u8)> = end.instants[start..]
            .iter()
            .zip(&end.types[start..])
            .take(room)
            // Two types at most come on top of 254, so the number fits.
            .map(|(&at, &kind)| (corrected(at), (base + usize::from(kind)) as u8))
            .collect();
        for (at, kind) in added {
            self.instants.push(at);
            self.types.push(kind);
        }
        self.kinds.extend(kinds);
    }

    /// Whether two types differ in nothing.
    fn same_kind(&self, a: u8, b: u8) -> bool {
        let (a, b) = (&self.kinds[usize::from(a)], &self.kinds[usize::from(b)]);
        let name = |kind: &LocalTime| until_nul(&self.abbreviations[kind.abbreviation_pos..]);
        (a.offset_secs, a.is_dst, a.indicators) == (b.offset_secs, b.is_dst, b.indicators)
            && name(a) == name(b)
    }

    /// The type before the first transition: type 0, but for files of old compilers.
    fn first_kind(&self) -> usize {
        if !self.types.contains(&0) {
            return 0;
        }
        if let Some(&first) = self.types.first()
            && self.kinds[usize::from(first)].is_dst
            && let Some(i) = (0..usize::from(first))
                .rev()
                .find(|&i| !self.kinds[i].is_dst)
        {
            return i;
        }
        self.kinds.iter().position(|k| !k.is_dst).unwrap_or(0)
    }
}

fn read_leap_seconds(
    reader: &mut Reader<'_>,
    count: usize,
    width_bytes: usize,
) -> Option<Vec<(i64, i32)>> {
    // A UTC month has at least 28 days, less a negative leap second.
    const SHORTEST_GAP_SECS: i64 = 28 * 86_400 - 1;
    let mut leap_seconds = Vec::with_capacity(count);
    let (mut previous_at, mut previous_correction) = (0_i64, 0_i32);
    for _ in 0..count {
        let at = reader.instant(width_bytes)?;
        let correction = reader.i32()?;
        let step = i64::from(correction) - i64::from(previous_correction);
        if at < 0 || at - previous_at < SHORTEST_GAP_SECS || step.abs() != 1 {
            return None;
        }
        leap_seconds.push((at, correction));
        (previous_at, previous_correction) = (at, correction);
    }
    Some(leap_seconds)
}

fn leap_correction(leap_seconds: &[(i64, i32)], time: i64) -> i32 {
    leap_seconds
        .iter()
        .rev()
        .find(|&&(at, _)| time >= at)
        .map_or(0, |&(_, correction)| correction)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A TZif file of version 2 with these 64-bit transitions (instant and type), types
    /// (offset, DST, place of the abbreviation) and abbreviations, and a POSIX footer.
    pub(in super::super) fn tzif(
        transitions: &[(i64, u8)],
        types: &[(i32, bool, u8)],
        abbreviations: &[u8],
        footer: &str,
    ) -> Vec<u8> {
        let header = |times: usize, types: usize, chars: usize| {
            let mut bytes = b"TZif2".to_vec();
            bytes.resize(20, 0);
            for count in [0, 0, 0, times, types, chars] {
                bytes.extend((count as u32).to_be_bytes());
            }
            bytes
        };
        let mut file = header(0, 1, 1);
        file.extend([0; 7]);
        file.extend(header(transitions.len(), types.len(), abbreviations.len()));
        file.extend(transitions.iter().flat_map(|(at, _)| at.to_be_bytes()));
        file.extend(transitions.iter().map(|(_, kind)| kind));
        for (offset_secs, is_dst, pos) in types {
            file.extend(offset_secs.to_be_bytes());
            file.extend([u8::from(*is_dst), *pos]);
        }
        file.extend(abbreviations);
        file.extend(format!("\n{footer}\n").bytes());
        file
    }

    /// 1893 CET after LMT, then the rule of today.
    pub(in super::super) fn berlin() -> Vec<u8> {
        tzif(
            &[(-2_422_054_408, 1), (1_711_846_800, 2), (1_729_990_800, 1)],
            &[(3208, false, 0), (3600, false, 9), (7200, true, 4)],
            b"LMT\0CEST\0CET\0",
            "CET-1CEST,M3.5.0,M10.5.0/3",
        )
    }

    #[test]
    fn the_footers_rule_goes_on_where_the_files_transitions_end() {
        let zone = Zone::from_tzif(&berlin()).unwrap();
        // The rule's 2,000 transitions begin in 1770; those after 2024 are appended.
        assert_eq!(zone.instants.len(), 3 + 2 * (2769 - 2024));
        assert_eq!(zone.offset_at(-2_422_054_409), 3208);
        assert_eq!(zone.offset_at(-2_422_054_408), 3600);
        assert_eq!(zone.offset_at(1_711_846_800), 7200);
        // 2025-03-30 01:00 UTC, by the rule.
        assert_eq!(zone.offset_at(1_743_296_399), 3600);
        assert_eq!(zone.offset_at(1_743_296_400), 7200);
        // The rule's abbreviations are the file's.
        assert_eq!(zone.abbreviations, b"LMT\0CEST\0CET\0");
        assert_eq!(
            zone.abbreviation_use(b"CEST"),
            Some(AbbreviationUse::Fixed {
                offset_secs: 7200,
                is_dst: true
            })
        );
        assert_eq!(zone.abbreviation_use(b"EST"), None);
        assert!(zone.repeats_after && !zone.repeats_before);
    }

    #[test]
    fn the_index_finds_what_a_search_finds() {
        let zone = Zone::from_tzif(&berlin()).unwrap();
        for time in (-4_000_000_000_i64..9_000_000_000).step_by(777_777) {
            assert_eq!(
                zone.instants_until(time),
                zone.instants.partition_point(|&at| at <= time)
            );
        }
        for i in 0..zone.instants.len() {
            assert_eq!(zone.instants_until(zone.instants[i]), i + 1);
            assert_eq!(zone.instants_until(zone.instants[i] - 1), i);
        }
    }

    #[test]
    fn a_file_cut_off_anywhere_in_its_data_is_no_zone() {
        let file = berlin();
        let footer_pos = file.len() - "\nCET-1CEST,M3.5.0,M10.5.0/3\n".len();
        for end in 0..footer_pos {
            assert_eq!(Zone::from_tzif(&file[..end]), None, "{end} bytes");
        }
        // Without its footer it is one, but does not go on.
        let zone = Zone::from_tzif(&file[..footer_pos]).unwrap();
        assert_eq!(zone.instants.len(), 3);
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(
            changes in prop::collection::vec((0_usize..300, any::<u8>()), 1..8),
            time in any::<i64>(),
        ) {
            let mut file = berlin();
            for (at, byte) in changes {
                let at = at % file.len();
                file[at] = byte;
            }
            if let Some(zone) = Zone::from_tzif(&file) {
                for before_18 in [false, true] {
                    zone.next_boundary(time, before_18);
                    zone.abbreviation_offset(b"CET", time, before_18);
                }
                zone.offset_at(time);
                zone.only_offset();
            }
        }
    }
}
