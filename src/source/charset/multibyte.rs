//! Multi-byte character sets to UTF-8, by the server's own maps.
//!
//! The maps of the server are its own in places, and have changed between versions. So the plan
//! asks the very server what each code is ([`MultiByteSet::blocks`] lists the codes), and what it
//! said is kept here ([`MultiByte::new`]).
//!
//! PostgreSQL: src/common/wchar.c; src/backend/utils/mb/conv.c, LocalToUtf.

use super::{has_no_equivalent, invalid_byte_sequence, is_ascii};
use crate::error::ValueError;
use std::collections::HashMap;

/// A multi-byte character set that the server converts to UTF8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiByteSet {
    /// The server's name.
    name: &'static str,
    family: Family,
}

/// How long characters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Two bytes; after 0x8e `after_ss2` bytes, after 0x8f two.
    Euc { after_ss2: usize },
    /// Two bytes, but one in 0xa1 to 0xdf.
    Sjis,
    /// Two bytes.
    Pairs,
    /// Two bytes, or four where the second is a digit.
    Gb18030,
}

/// Codes whose bytes lie in these ranges, one range a byte.
pub type Block = &'static [(u8, u8)];

const HIGH: (u8, u8) = (0x80, 0xff);
const EUC_TRAIL: (u8, u8) = (0xa1, 0xfe);
const SS2: (u8, u8) = (0x8e, 0x8e);
const SS3: (u8, u8) = (0x8f, 0x8f);
const GB_DIGIT: (u8, u8) = (0x30, 0x39);
/// GB18030 maps codes of four bytes that begin with these to the rest of the first plane. The
/// planes above follow from 0x90308130 on in one line.
const GB_FIRST_PLANE: (u8, u8) = (0x81, 0x84);

/// All sets, with the names that the server takes, letters and digits alone.
///
/// PostgreSQL: src/common/encnames.c.
const SETS: [(&str, Family, &[&str]); 12] = [
    ("EUC_JP", Family::Euc { after_ss2: 1 }, &["EUCJP"]),
    ("EUC_CN", Family::Euc { after_ss2: 2 }, &["EUCCN"]),
    ("EUC_KR", Family::Euc { after_ss2: 1 }, &["EUCKR"]),
    ("EUC_TW", Family::Euc { after_ss2: 3 }, &["EUCTW"]),
    (
        "EUC_JIS_2004",
        Family::Euc { after_ss2: 1 },
        &["EUCJIS2004"],
    ),
    ("JOHAB", Family::Euc { after_ss2: 1 }, &["JOHAB"]),
    (
        "SJIS",
        Family::Sjis,
        &["SJIS", "MSKANJI", "SHIFTJIS", "WIN932", "WINDOWS932"],
    ),
    ("SHIFT_JIS_2004", Family::Sjis, &["SHIFTJIS2004"]),
    ("BIG5", Family::Pairs, &["BIG5", "WIN950", "WINDOWS950"]),
    ("GBK", Family::Pairs, &["GBK", "WIN936", "WINDOWS936"]),
    ("UHC", Family::Pairs, &["UHC", "WIN949", "WINDOWS949"]),
    ("GB18030", Family::Gb18030, &["GB18030"]),
];

impl MultiByteSet {
    /// The set that the option ENCODING names; `None` when it is not one of these.
    pub fn by_name(name: &str) -> Option<MultiByteSet> {
        let clean: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_uppercase())
            .collect();
        SETS.iter()
            .find(|(_, _, names)| names.contains(&clean.as_str()))
            .map(|&(name, family, _)| MultiByteSet { name, family })
    }

    /// The server's name of the set.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The codes to ask the server about; it refuses all others as invalid.
    pub fn blocks(self) -> &'static [Block] {
        match self.family {
            Family::Euc { after_ss2: 3 } => &[
                &[HIGH, EUC_TRAIL],
                &[SS2, (0xa1, 0xa7), EUC_TRAIL, EUC_TRAIL],
            ],
            Family::Euc { .. } => &[&[HIGH, EUC_TRAIL], &[SS3, EUC_TRAIL, EUC_TRAIL]],
            Family::Sjis => &[&[HIGH], &[HIGH, (0x40, 0xff)]],
            Family::Pairs => &[&[HIGH, (0x01, 0xff)]],
            Family::Gb18030 => &[
                &[HIGH, (0x40, 0xff)],
                &[GB_FIRST_PLANE, GB_DIGIT, (0x81, 0xfe), GB_DIGIT],
            ],
        }
    }

    /// How many bytes the character at the front has.
    #[inline]
    fn char_bytes(self, bytes: &[u8]) -> usize {
        match (self.family, bytes[0]) {
            (Family::Euc { after_ss2 }, 0x8e) => 1 + after_ss2,
            (Family::Euc { .. }, 0x8f) => 3,
            (Family::Sjis, 0xa1..=0xdf) => 1,
            (Family::Gb18030, _) if bytes.get(1).is_some_and(u8::is_ascii_digit) => 4,
            _ => 2,
        }
    }
}

/// What the server says of a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// It is no character.
    Invalid,
    /// It is one that UTF8 does not have.
    Unknown,
    /// It is this, in UTF8.
    Utf8(Vec<u8>),
}

/// Where a code of two bytes has no entry of its own.
const INVALID: u64 = 0;
/// A character without an equivalent.
const UNKNOWN: u64 = u64::MAX;

/// A set with its map.
#[derive(Debug)]
pub struct MultiByte {
    set: MultiByteSet,
    /// UTF-8 of the codes of two bytes, the first less 0x80, filled with zeros.
    pairs: Vec<u64>,
    /// The same of codes of other lengths.
    others: HashMap<u32, u64>,
}

impl MultiByte {
    /// The set with what the server said of its codes, in the order of the blocks and, within one, of
    /// the codes.
    ///
    /// # Panics
    /// When that is not one meaning a code.
    pub fn new(set: MultiByteSet, meanings: impl IntoIterator<Item = Meaning>) -> MultiByte {
        let mut map = MultiByte {
            set,
            pairs: vec![INVALID; 128 << 8],
            others: HashMap::new(),
        };
        let mut meanings = meanings.into_iter();
        for block in set.blocks() {
            for code in codes(block) {
                let meaning = match meanings.next().expect("a meaning for each code") {
                    Meaning::Invalid => continue,
                    Meaning::Unknown => UNKNOWN,
                    Meaning::Utf8(utf8) => {
                        let mut word = [0; 8];
                        word[..utf8.len()].copy_from_slice(&utf8);
                        u64::from_le_bytes(word)
                    }
                };
                if block.len() == 2 {
                    map.pairs[code as usize - 0x8000] = meaning;
                } else {
                    map.others.insert(code, meaning);
                }
            }
        }
        assert!(meanings.next().is_none(), "a meaning for each code");
        map
    }

    /// Appends `bytes` in UTF-8 and says how many were taken: all but a part of a
    /// character, to which more may come unless `at_end`.
    pub(super) fn convert(
        &self,
        bytes: &[u8],
        at_end: bool,
        utf8: &mut Vec<u8>,
    ) -> Result<usize, Box<ValueError>> {
        let mut at = 0;
        while at < bytes.len() {
            let ascii = bytes[at..].iter().take_while(|&&c| is_ascii(c)).count();
            utf8.extend_from_slice(&bytes[at..at + ascii]);
            at += ascii;
            let rest = &bytes[at..];
            let Some(&first) = rest.first() else { break };
            let invalid = |shown: usize| {
                let shown = &rest[..shown.min(rest.len())];
                invalid_byte_sequence(self.set.name, shown)
            };
            if first == 0 {
                return Err(invalid(1));
            }
            // A code of four bytes may look like one of two while its second is missing.
            if rest.len() < 4 && rest.len() < self.set.char_bytes(rest).max(2) && !at_end {
                break;
            }
            let length = self.set.char_bytes(rest);
            let Some(character) = rest.get(..length) else {
                if at_end {
                    return Err(invalid(length));
                }
                break;
            };
            match self.meaning(character) {
                INVALID => return Err(invalid(length)),
                UNKNOWN => return Err(has_no_equivalent(character, self.set.name, "UTF8")),
                word => {
                    let bytes = word.to_le_bytes();
                    let len = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
                    utf8.extend_from_slice(&bytes[..len]);
                }
            }
            at += length;
        }
        Ok(at)
    }

    #[inline]
    fn meaning(&self, character: &[u8]) -> u64 {
        if let &[first, second] = character {
            return self.pairs[usize::from(first - 0x80) << 8 | usize::from(second)];
        }
        let code = character
            .iter()
            .fold(0, |code, &byte| code << 8 | u32::from(byte));
        match self.others.get(&code) {
            Some(&meaning) => meaning,
            None if self.set.family == Family::Gb18030 => gb18030_beyond(code),
            None => INVALID,
        }
    }
}

/// The codes of a block, in their order.
fn codes(block: Block) -> impl Iterator<Item = u32> {
    let widths = |&(low, high): &(u8, u8)| u32::from(high - low) + 1;
    let count: u32 = block.iter().map(widths).product();
    (0..count).map(move |mut number| {
        let mut code = 0;
        for (place, range) in block.iter().rev().enumerate() {
            let width = widths(range);
            code |= (u32::from(range.0) + number % width) << (8 * place);
            number /= width;
        }
        code
    })
}

/// A code of four bytes that GB18030 does not map by a table.
///
/// PostgreSQL: src/backend/utils/mb/conversion_procs/utf8_and_gb18030, conv_18030_to_utf8.
fn gb18030_beyond(code: u32) -> u64 {
    let [a, b, c, d] = code.to_be_bytes();
    if !(0x81..=0xfe).contains(&a)
        || !b.is_ascii_digit()
        || !(0x81..=0xfe).contains(&c)
        || !d.is_ascii_digit()
    {
        return INVALID;
    }
    let linear = |a: u8, b: u8, c: u8, d: u8| {
        i64::from(a) * 12_600 + i64::from(b) * 1260 + i64::from(c) * 10 + i64::from(d)
    };
    let above = linear(a, b, c, d) - linear(0x90, 0x30, 0x81, 0x30);
    let character = u32::try_from(above)
        .ok()
        .and_then(|above| char::from_u32(0x1_0000 + above));
    let Some(character) = character else {
        return UNKNOWN;
    };
    let mut word = [0; 8];
    character.encode_utf8(&mut word);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A map in which every code of two bytes that ends in `a` is unknown, in `b` invalid, and
    /// else U+00E9.
    fn map(name: &str) -> MultiByte {
        let set = MultiByteSet::by_name(name).expect("known");
        let meanings = set.blocks().iter().flat_map(|block| {
            codes(block).map(|code| match code as u8 & 0xf {
                0xa => Meaning::Unknown,
                0xb => Meaning::Invalid,
                _ => Meaning::Utf8("\u{e9}".into()),
            })
        });
        MultiByte::new(set, meanings.collect::<Vec<_>>())
    }

    #[test]
    fn a_block_lists_codes_in_their_order() {
        let block: Block = &[(0x81, 0x82), (0x30, 0x31)];
        assert_eq!(
            codes(block).collect::<Vec<_>>(),
            [0x8130, 0x8131, 0x8230, 0x8231]
        );
    }

    #[test]
    fn a_part_of_a_character_waits_for_the_rest_of_it() {
        let map = map("mskanji");
        let mut utf8 = Vec::new();
        assert_eq!(map.convert(b"ab\xb1\x81", false, &mut utf8), Ok(3));
        assert_eq!(utf8, "ab\u{e9}".as_bytes());
        let error = map.convert(b"\x81", true, &mut utf8).unwrap_err();
        assert_eq!(error.sqlstate, "22021");
        assert_eq!(
            error.message,
            "invalid byte sequence for encoding \"SJIS\": 0x81"
        );
        let error = map.convert(b"\x81\x4a", true, &mut utf8).unwrap_err();
        assert_eq!(error.sqlstate, "22P05");
        assert_eq!(
            error.message,
            "character with byte sequence 0x81 0x4a in encoding \"SJIS\" has no equivalent in \
             encoding \"UTF8\""
        );
    }

    #[test]
    fn codes_of_four_bytes_above_the_first_plane_follow_in_one_line() {
        let utf8 = |code: u32| {
            let word = gb18030_beyond(code).to_le_bytes();
            String::from_utf8(word.into_iter().take_while(|&b| b > 0).collect()).unwrap()
        };
        assert_eq!(utf8(0x9030_8130), "\u{10000}");
        assert_eq!(utf8(0xe332_9a35), "\u{10ffff}");
        assert_eq!(gb18030_beyond(0xe332_9a36), UNKNOWN);
        assert_eq!(gb18030_beyond(0x8530_8130), UNKNOWN);
        assert_eq!(gb18030_beyond(0x9030_8030), INVALID);
    }

    proptest! {
        #[test]
        fn where_blocks_end_does_not_matter(
            name in prop::sample::select(vec!["eucjp", "euctw", "sjis", "big5", "gb18030"]),
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), Just(0x8e), Just(0x8f), Just(0x31), 0xa1..0xff_u8], 0..30),
            cut in 0..30_usize,
        ) {
            let map = map(name);
            let mut whole = Vec::new();
            let outcome = map.convert(&bytes, true, &mut whole);
            let mut parts = Vec::new();
            let cut = cut.min(bytes.len());
            let outcome_of_parts = map.convert(&bytes[..cut], false, &mut parts).and_then(|taken| {
                map.convert(&bytes[taken..], true, &mut parts).map(|more| taken + more)
            });
            prop_assert_eq!(outcome.as_ref().ok(), outcome_of_parts.as_ref().ok());
            prop_assert_eq!(outcome.is_err(), outcome_of_parts.is_err());
            if outcome.is_ok() {
                prop_assert_eq!(whole, parts);
            }
        }
    }
}
