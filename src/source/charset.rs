//! COPY's ENCODING: single-byte character sets to UTF-8, as the server converts them.
//!
//! Multi-byte sets other than UTF-8 have no [`Charset`]; the plan leaves such files to the
//! server. PostgreSQL: src/backend/utils/mb/conv.c, latin1_to_utf8 and LocalToUtf.

mod tables;

use crate::error::ValueError;

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
            let ascii = rest
                .iter()
                .position(|c| !(1..0x80).contains(c))
                .unwrap_or(rest.len());
            utf8.extend_from_slice(&rest[..ascii]);
            rest = &rest[ascii..];
            let Some(&byte) = rest.first() else { break };
            if byte == 0 {
                return Err(ValueError::new(
                    "22021",
                    format!("invalid byte sequence for encoding \"{}\": 0x00", self.name),
                ));
            }
            let code = self.upper[usize::from(byte - 0x80)];
            match char::from_u32(u32::from(code)) {
                Some(c) if code != 0 => {
                    utf8.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => {
                    return Err(ValueError::new(
                        "22P05",
                        format!(
                            "character with byte sequence 0x{byte:02x} in encoding \"{}\" has no \
                             equivalent in encoding \"UTF8\"",
                            self.name
                        ),
                    ));
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
