//! The words of the errors that many input functions share, and what they call white space.

use crate::error::ValueError;
use crate::record::Encoding;

/// A field as it stands in a message.
pub(super) fn shown(field: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(field)
}

/// The first character of a text that has one; messages show whole characters.
pub(super) fn first_char(text: &[u8], encoding: Encoding) -> &[u8] {
    &text[..encoding.announced(text[0]).min(text.len())]
}

/// 22P02 with the value.
#[cold]
pub(super) fn invalid_syntax(type_name: &str, field: &[u8]) -> Box<ValueError> {
    ValueError::new(
        "22P02",
        format!(
            "invalid input syntax for type {type_name}: \"{}\"",
            shown(field)
        ),
    )
}

/// 22003 of integers.
#[cold]
pub(super) fn value_out_of_range(type_name: &str, field: &[u8]) -> Box<ValueError> {
    ValueError::new(
        "22003",
        format!(
            "value \"{}\" is out of range for type {type_name}",
            shown(field)
        ),
    )
}

/// What the server says when it cannot allocate so much at once.
#[cold]
pub(super) fn invalid_allocation(bytes: u64) -> Box<ValueError> {
    ValueError::new(
        "XX000",
        format!("invalid memory alloc request size {bytes}"),
    )
}

/// `isspace()` in the C locale.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Without white space at the front.
#[inline]
pub(super) fn skip_spaces(field: &[u8]) -> &[u8] {
    let n = field.iter().take_while(|&&b| is_space(b)).count();
    &field[n..]
}
