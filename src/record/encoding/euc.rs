//! The multi-byte encodings beside UTF8 that a database may have: extended UNIX codes.
//!
//! ```text
//! ASCII 1 | lead 0x80 and above, trail 1 | SS2, trail 1 to 3 | SS3, trail 2
//! ```
//!
//! PostgreSQL: src/common/wchar.c, pg_euc_mblen, pg_eucjp_verifychar and the like.

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Euc {
    /// EUC_JP.
    Jp,
    /// EUC_JIS_2004.
    Jis2004,
    /// EUC_CN.
    Cn,
    /// EUC_KR.
    Kr,
    /// EUC_TW.
    Tw,
}

/// The shifts to other sets of characters.
const SS2: u8 = 0x8e;
const SS3: u8 = 0x8f;

const ALL: [Euc; 5] = [Euc::Jp, Euc::Jis2004, Euc::Cn, Euc::Kr, Euc::Tw];

fn is_trail(byte: u8) -> bool {
    (0xa1..=0xfe).contains(&byte)
}

impl Euc {
    /// By the server's name.
    pub(super) fn by_name(name: &str) -> Option<Euc> {
        ALL.into_iter().find(|euc| euc.name() == name)
    }

    /// The server's name.
    pub fn name(self) -> &'static str {
        match self {
            Euc::Jp => "EUC_JP",
            Euc::Jis2004 => "EUC_JIS_2004",
            Euc::Cn => "EUC_CN",
            Euc::Kr => "EUC_KR",
            Euc::Tw => "EUC_TW",
        }
    }

    /// Bytes of the character that begins with `first`, if it is one.
    #[inline]
    pub(super) fn announced(self, first: u8) -> usize {
        match (first, self) {
            (..0x80, _) => 1,
            (SS2, Euc::Cn) | (SS3, _) => 3,
            (SS2, Euc::Tw) => 4,
            _ => 2,
        }
    }

    /// Bytes of the character at the start of `bytes`; `None` when it is none.
    fn character(self, bytes: &[u8]) -> Option<usize> {
        let (&first, rest) = bytes.split_first()?;
        let len = self.announced(first);
        let trail = rest.get(..len - 1)?;
        let is_valid = match (first, self) {
            (0, _) => false,
            (1..0x80, _) => true,
            (SS2, Euc::Jp | Euc::Jis2004) => (0xa1..=0xdf).contains(&trail[0]),
            (SS2, Euc::Tw) => {
                (0xa1..=0xa7).contains(&trail[0]) && trail[1..].iter().all(|b| is_trail(*b))
            }
            (SS3, Euc::Tw) => false,
            (SS3, Euc::Jp | Euc::Jis2004) => trail.iter().all(|b| is_trail(*b)),
            // No range is checked of the lead.
            (_, Euc::Tw) => is_trail(trail[0]),
            _ => is_trail(first) && is_trail(trail[0]),
        };
        is_valid.then_some(len)
    }

    /// Where the first invalid character begins.
    pub(super) fn first_invalid(self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            at += match self.character(&bytes[at..]) {
                Some(len) => len,
                None => return Some(at),
            };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_as_long_as_their_first_byte_says_and_have_trails_of_the_code() {
        for (euc, bytes, invalid) in [
            (Euc::Jp, &b"a\xa4\xa2\x8e\xb1\x8f\xb0\xa1"[..], None),
            (Euc::Jp, b"a\x8e\xe0", Some(1)),
            (Euc::Jp, b"\xa4\xa2\x80\xa1", Some(2)),
            (Euc::Jp, b"\x8f\xb0", Some(0)),
            (Euc::Kr, b"\xb0\xa1\x8e\xb1", Some(2)),
            (Euc::Cn, b"\xb0\xa1\0", Some(2)),
            (Euc::Tw, b"\x8e\xa2\xa1\xa1\x80\xa1", None),
            (Euc::Tw, b"\x8e\xa8\xa1\xa1", Some(0)),
            (Euc::Tw, b"\x8f\xa1\xa1", Some(0)),
        ] {
            assert_eq!(euc.first_invalid(bytes), invalid, "{euc:?} {bytes:02x?}");
        }
    }
}
