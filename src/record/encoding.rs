//! Bytes must be valid in the database's encoding; the refusal names them as the server does.
//!
//! A chunk is checked as a whole, and only when the scan for delimiters saw a byte above 0x7f
//! or a zero byte.

mod euc;

use crate::error::ValueError;
use crate::source::Charset;
use crate::source::charset::{MultiByteSet, invalid_byte_sequence, utf8_announced};
pub use euc::Euc;

/// The database's encoding, as far as checking needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF8.
    Utf8,
    /// Every byte but zero is a character; the name as the server writes it, as `LATIN1`.
    SingleByte(&'static str),
    /// One of the extended UNIX codes.
    Euc(Euc),
}

impl Encoding {
    /// Any bytes.
    pub const SQL_ASCII: Encoding = Encoding::SingleByte("SQL_ASCII");

    /// The encoding of a database by the server's name for it; `None` for MULE_INTERNAL.
    pub fn by_name(name: &str) -> Option<Encoding> {
        const SINGLE: [&str; 28] = [
            "SQL_ASCII",
            "LATIN1",
            "LATIN2",
            "LATIN3",
            "LATIN4",
            "LATIN5",
            "LATIN6",
            "LATIN7",
            "LATIN8",
            "LATIN9",
            "LATIN10",
            "ISO_8859_5",
            "ISO_8859_6",
            "ISO_8859_7",
            "ISO_8859_8",
            "KOI8R",
            "KOI8U",
            "WIN866",
            "WIN874",
            "WIN1250",
            "WIN1251",
            "WIN1252",
            "WIN1253",
            "WIN1254",
            "WIN1255",
            "WIN1256",
            "WIN1257",
            "WIN1258",
        ];
        if name == "UTF8" {
            return Some(Encoding::Utf8);
        }
        if let Some(euc) = Euc::by_name(name) {
            return Some(Encoding::Euc(euc));
        }
        SINGLE
            .iter()
            .find(|&&single| single == name)
            .map(|&single| Encoding::SingleByte(single))
    }

    /// The encoding that the option ENCODING names, in any of the spellings that the server takes;
    /// `None` for those that no database may have, and MULE_INTERNAL.
    ///
    /// PostgreSQL: src/common/encnames.c, pg_char_to_encoding.
    pub fn by_option(name: &str) -> Option<Encoding> {
        if let Some(charset) = Charset::by_name(name) {
            return Some(Encoding::SingleByte(charset.name()));
        }
        let clean: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        match clean.to_ascii_lowercase().as_str() {
            "utf8" | "unicode" => Some(Encoding::Utf8),
            "sqlascii" => Some(Encoding::SQL_ASCII),
            _ => MultiByteSet::by_name(name)
                .and_then(|set| Euc::by_name(set.name()))
                .map(Encoding::Euc),
        }
    }

    /// The server's name.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF8",
            Encoding::SingleByte(name) => name,
            Encoding::Euc(euc) => euc.name(),
        }
    }

    /// Bytes of the character that begins with this byte.
    #[inline]
    pub fn announced(self, first: u8) -> usize {
        match self {
            Encoding::Utf8 => utf8_announced(first),
            Encoding::SingleByte(_) => 1,
            Encoding::Euc(euc) => euc.announced(first),
        }
    }

    /// Where the first invalid character begins; `None` when all is valid.
    pub fn first_invalid(self, bytes: &[u8]) -> Option<usize> {
        if let Encoding::Euc(euc) = self {
            return euc.first_invalid(bytes);
        }
        let nul = memchr::memchr(0, bytes);
        match self {
            Encoding::SingleByte(_) | Encoding::Euc(_) => nul,
            Encoding::Utf8 => {
                let until_nul = &bytes[..nul.unwrap_or(bytes.len())];
                match std::str::from_utf8(until_nul) {
                    Ok(_) => nul,
                    Err(error) => Some(error.valid_up_to()),
                }
            }
        }
    }

    /// The refusal of what stands at the start of `bytes`, which go on to the end of the input.
    ///
    /// PostgreSQL: src/backend/utils/mb/mbutils.c, report_invalid_encoding: as many bytes as
    /// the first one announces, fewer at the end of the input.
    #[cold]
    pub fn refusal(self, bytes: &[u8]) -> Box<ValueError> {
        let announced = bytes.first().map_or(1, |first| self.announced(*first));
        invalid_byte_sequence(self.name(), &bytes[..announced.min(bytes.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8]) -> String {
        let at = Encoding::Utf8.first_invalid(bytes).expect("invalid");
        Encoding::Utf8.refusal(&bytes[at..]).message
    }

    #[test]
    fn the_refusal_shows_as_many_bytes_as_the_first_one_announces() {
        let prefix = "invalid byte sequence for encoding \"UTF8\": ";
        assert_eq!(message(b"x\xe9 ab"), format!("{prefix}0xe9 0x20 0x61"));
        assert_eq!(message(b"x\xe9 "), format!("{prefix}0xe9 0x20"));
        assert_eq!(message(b"\xc0\xaf"), format!("{prefix}0xc0 0xaf"));
        assert_eq!(message(b"\xff\xff"), format!("{prefix}0xff"));
        assert_eq!(
            message(b"\xf5\x80\x80\x80"),
            format!("{prefix}0xf5 0x80 0x80 0x80")
        );
        assert_eq!(message(b"ab\0\xff"), format!("{prefix}0x00"));
        assert_eq!(message(b"\xed\xa0\x80"), format!("{prefix}0xed 0xa0 0x80"));
    }

    #[test]
    fn a_single_byte_encoding_refuses_only_the_zero_byte() {
        let latin1 = Encoding::by_name("LATIN1").expect("known");
        assert_eq!(latin1.first_invalid(b"\xe9\xff"), None);
        assert_eq!(latin1.first_invalid(b"\xe9\0"), Some(1));
        assert_eq!(Encoding::by_name("BIG5"), None);
        assert_eq!(Encoding::by_name("MULE_INTERNAL"), None);
    }
}
