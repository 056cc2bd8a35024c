//! COPY's ENCODING: input in one encoding, a database in another, as the server converts them.
//!
//! Single-byte sets ([`Charset`]) have their tables here, both ways; of multi-byte sets
//! ([`MultiByte`]) the server is asked. PostgreSQL: src/backend/utils/mb/conv.c, latin1_to_utf8,
//! LocalToUtf and UtfToLocal.

pub mod multibyte;
mod tables;

pub use multibyte::{MultiByte, MultiByteSet};

use std::sync::Arc;

use crate::error::ValueError;

/// How the bytes of an input become those of the database.
#[derive(Debug, Clone)]
pub enum Conversion {
    /// A single-byte set to UTF8.
    FromSingle(Charset),
    /// UTF8 to a single-byte set.
    ToSingle(ToCharset),
    /// A multi-byte set to UTF8.
    FromMulti(Arc<MultiByte>),
}

impl Conversion {
    /// Appends `bytes`, converted, and says how many were taken: all but a part of a character, to
    /// which more may come unless `at_end`.
    ///
    /// # Errors
    /// 22021 for what is no character, 22P05 for one that stands for nothing. What comes before it
    /// is appended.
    pub fn convert(
        &self,
        bytes: &[u8],
        at_end: bool,
        converted: &mut Vec<u8>,
    ) -> Result<usize, Box<ValueError>> {
        match self {
            Conversion::FromSingle(charset) => {
                charset.convert(bytes, converted)?;
                Ok(bytes.len())
            }
            Conversion::ToSingle(charset) => charset.convert(bytes, at_end, converted),
            Conversion::FromMulti(map) => map.convert(bytes, at_end, converted),
        }
    }
}

/// A byte that is ASCII in every encoding, and not zero.
#[inline]
fn is_ascii(byte: u8) -> bool {
    (1..0x80).contains(&byte)
}

/// The refusal of bytes that are no character.
///
/// PostgreSQL: src/backend/utils/mb/mbutils.c, report_invalid_encoding.
#[cold]
pub fn invalid_byte_sequence(encoding: &str, bytes: &[u8]) -> Box<ValueError> {
    ValueError::new(
        "22021",
        format!(
            "invalid byte sequence for encoding \"{encoding}\": {}",
            shown(bytes)
        ),
    )
}

/// The refusal of a character that another encoding does not have.
///
/// PostgreSQL: src/backend/utils/mb/mbutils.c, report_untranslatable_char.
#[cold]
pub fn has_no_equivalent(character: &[u8], from: &str, to: &str) -> Box<ValueError> {
    ValueError::new(
        "22P05",
        format!(
            "character with byte sequence {} in encoding \"{from}\" has no equivalent in \
             encoding \"{to}\"",
            shown(character)
        ),
    )
}

fn shown(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    bytes.join(" ")
}

/// How many bytes of UTF-8 the first one announces.
#[inline]
pub fn utf8_announced(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

/// UTF8 to a single-byte set.
#[derive(Debug, Clone)]
pub struct ToCharset {
    name: &'static str,
    /// The byte of each character of the first plane; 0 where the set does not have it.
    bytes: Arc<[u8]>,
}

impl ToCharset {
    /// To this set.
    pub fn new(charset: Charset) -> ToCharset {
        let mut bytes = vec![0; 1 << 16];
        for (byte, &code) in (0x80..=0xff).zip(charset.upper) {
            if code != 0 {
                bytes[usize::from(code)] = byte;
            }
        }
        ToCharset {
            name: charset.name,
            bytes: bytes.into(),
        }
    }

    fn convert(
        &self,
        utf8: &[u8],
        at_end: bool,
        converted: &mut Vec<u8>,
    ) -> Result<usize, Box<ValueError>> {
        let nul = memchr::memchr(0, utf8);
        let (valid, broken) = match std::str::from_utf8(&utf8[..nul.unwrap_or(utf8.len())]) {
            Ok(valid) => (valid, nul.is_some()),
            Err(error) => {
                let valid = &utf8[..error.valid_up_to()];
                let waits = error.error_len().is_none() && nul.is_none() && !at_end;
                (std::str::from_utf8(valid).unwrap_or_default(), !waits)
            }
        };
        for character in valid.chars() {
            if character.is_ascii() {
                converted.push(character as u8);
                continue;
            }
            match self.bytes.get(character as usize) {
                Some(&byte) if byte != 0 => converted.push(byte),
                _ => {
                    let mut bytes = [0; 4];
                    let bytes = character.encode_utf8(&mut bytes).as_bytes();
                    return Err(has_no_equivalent(bytes, "UTF8", self.name));
                }
            }
        }
        if broken {
            let rest = &utf8[valid.len()..];
            let announced = utf8_announced(rest[0]).min(rest.len());
            return Err(invalid_byte_sequence("UTF8", &rest[..announced]));
        }
        Ok(valid.len())
    }
}

/// A single-byte character set.
#[derive(Debug, Clone, Copy)]
pub struct Charset {
    name: &'static str,
    upper: &'static tables::UpperHalf,
}

impl Charset {
    /// The set that the option ENCODING names, in any of the spellings that the server takes
    /// (`latin1`, `ISO-8859-1`, `win1252`, ...); `None` when it is not a single-byte set.
    ///
    /// PostgreSQL: src/common/encnames.c, pg_char_to_encoding.
    pub fn by_name(name: &str) -> Option<Charset> {
        let clean: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let clean = match clean.as_str() {
            "ISO88591" => "LATIN1",
            "ISO88592" => "LATIN2",
            "ISO88593" => "LATIN3",
            "ISO88594" => "LATIN4",
            "ISO88599" => "LATIN5",
            "ISO885910" => "LATIN6",
            "ISO885913" => "LATIN7",
            "ISO885914" => "LATIN8",
            "ISO885915" => "LATIN9",
            "ISO885916" => "LATIN10",
            "KOI8" => "KOI8R",
            "ALT" => "WIN866",
            "ABC" | "TCVN" | "TCVN5712" | "VSCII" => "WIN1258",
            "WIN" => "WIN1251",
            other => match other.strip_prefix("WINDOWS") {
                Some(number) => &format!("WIN{number}"),
                None => other,
            },
        };
        tables::TABLES
            .iter()
            .find(|(name, _)| name.replace('_', "") == clean)
            .map(|&(name, upper)| Charset { name, upper })
    }

    /// The server's name of the set.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Appends `bytes` in UTF-8.
    ///
    /// # Errors
    /// 22021 for a zero byte, 22P05 for a byte that stands for nothing. What comes before it is
    /// appended.
    pub fn convert(self, bytes: &[u8], utf8: &mut Vec<u8>) -> Result<(), Box<ValueError>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let ascii = rest.iter().take_while(|&&c| is_ascii(c)).count();
            utf8.extend_from_slice(&rest[..ascii]);
            rest = &rest[ascii..];
            let Some(&byte) = rest.first() else { break };
            if byte == 0 {
                return Err(invalid_byte_sequence(self.name, &[byte]));
            }
            let code = self.upper[usize::from(byte - 0x80)];
            match char::from_u32(u32::from(code)) {
                Some(c) if code != 0 => {
                    utf8.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => {
                    return Err(has_no_equivalent(&[byte], self.name, "UTF8"));
                }
            }
            rest = &rest[1..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(name: &str, bytes: &[u8]) -> (String, Option<String>) {
        let mut utf8 = Vec::new();
        let charset = Charset::by_name(name).expect("known");
        let refused = charset.convert(bytes, &mut utf8).err();
        (
            String::from_utf8(utf8).expect("UTF-8"),
            refused.map(|e| format!("{} {}", e.sqlstate, e.message)),
        )
    }

    #[test]
    fn utf8_becomes_the_bytes_of_its_characters() {
        let to = ToCharset::new(Charset::by_name("win1252").expect("known"));
        let convert = |utf8: &[u8], at_end| {
            let mut bytes = Vec::new();
            let taken = to.convert(utf8, at_end, &mut bytes);
            (
                bytes,
                taken.map_err(|e| format!("{} {}", e.sqlstate, e.message)),
            )
        };
        let text = "a\u{e9}\u{20ac}".as_bytes();
        assert_eq!(convert(text, true), (b"a\xe9\x80".to_vec(), Ok(6)));
        assert_eq!(convert(&text[..5], false), (b"a\xe9".to_vec(), Ok(3)));
        let invalid = "22021 invalid byte sequence for encoding \"UTF8\": ";
        assert_eq!(
            convert(&text[..5], true).1,
            Err(format!("{invalid}0xe2 0x82"))
        );
        assert_eq!(convert(b"a\0", false).1, Err(format!("{invalid}0x00")));
        let (before, refused) = convert("x\u{142}".as_bytes(), false);
        assert_eq!(before, b"x");
        assert_eq!(
            refused.unwrap_err(),
            "22P05 character with byte sequence 0xc5 0x82 in encoding \"UTF8\" has no equivalent in \
             encoding \"WIN1252\""
        );
    }

    #[test]
    fn latin1_becomes_the_code_points_of_its_bytes() {
        assert_eq!(
            convert("latin1", b"caf\xe9 \x80\xff"),
            ("caf\u{e9} \u{80}\u{ff}".into(), None)
        );
    }

    #[test]
    fn a_byte_that_stands_for_nothing_is_refused_behind_what_came_before() {
        assert_eq!(
            convert("windows-1252", b"\x93ok\x94\x9d!"),
            (
                "\u{201c}ok\u{201d}".into(),
                Some(
                    "22P05 character with byte sequence 0x9d in encoding \"WIN1252\" has no \
                     equivalent in encoding \"UTF8\""
                        .into()
                )
            )
        );
        assert_eq!(
            convert("iso_8859-1", b"a\0").1,
            Some("22021 invalid byte sequence for encoding \"LATIN1\": 0x00".into())
        );
    }

    #[test]
    fn names_are_found_in_the_spellings_that_the_server_takes() {
        for (given, expected) in [
            ("ISO-8859-15", "LATIN9"),
            ("koi8", "KOI8R"),
            ("ISO_8859_5", "ISO_8859_5"),
            ("Windows1251", "WIN1251"),
        ] {
            assert_eq!(Charset::by_name(given).map(Charset::name), Some(expected));
        }
        assert!(Charset::by_name("SJIS").is_none());
        assert!(Charset::by_name("UTF8").is_none());
    }
}
