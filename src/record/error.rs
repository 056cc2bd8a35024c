//! What a record is refused for, with the line that COPY would name.

use crate::error::{Error, Place, ValueError};

/// A record that COPY refuses, by the line numbers of its chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// COPY's line number, counted from the chunk's first line, which is 1.
    pub line_in_chunk: u64,
    /// SQLSTATE, message, DETAIL, HINT.
    pub error: ValueError,
    /// The column that COPY names, where the input itself ends in one; binary only.
    pub column: Option<String>,
    /// The line as COPY's CONTEXT quotes it; `None` where reading the line itself failed.
    pub line_text: Option<String>,
    /// The fields of a record that has too few. COPY converts these before it misses the next
    /// one: a refusal of one of them comes first. Empty for all other errors.
    pub present: Vec<Option<Vec<u8>>>,
}

impl RecordError {
    /// The error in a file whose `lines_before` lines stand in earlier chunks.
    pub fn locate(self, file: &str, lines_before: u64) -> Error {
        let place = Place {
            file: file.to_owned(),
            line: lines_before + self.line_in_chunk,
            column: self.column,
            value: self.line_text,
        };
        Error::input(self.error, place)
    }
}

/// A bad file format: SQLSTATE 22P04.
#[cold]
pub(crate) fn bad_format(message: impl Into<String>) -> Box<ValueError> {
    ValueError::new("22P04", message)
}

/// A value as COPY's CONTEXT quotes it: whole up to 100 bytes, else cut at a character's end,
/// with three dots.
///
/// PostgreSQL: src/backend/commands/copyfrom.c, CopyLimitPrintoutLength.
pub fn limit_printout(value: &[u8]) -> String {
    const MAX_DISPLAY_BYTES: usize = 100;
    // The server prints a C string.
    let value = value.split(|&c| c == 0).next().unwrap_or_default();
    if value.len() <= MAX_DISPLAY_BYTES {
        return String::from_utf8_lossy(value).into_owned();
    }
    let mut end = MAX_DISPLAY_BYTES;
    while end > 0 && value[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    format!("{}...", String::from_utf8_lossy(&value[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut_at_the_end_of_a_character() {
        assert_eq!(limit_printout(&[b'a'; 100]), "a".repeat(100));
        assert_eq!(
            limit_printout(&[b'a'; 101]),
            format!("{}...", "a".repeat(100))
        );
        let text = format!("{}\u{e9}b", "a".repeat(99));
        assert_eq!(
            limit_printout(text.as_bytes()),
            format!("{}...", "a".repeat(99))
        );
    }
}
