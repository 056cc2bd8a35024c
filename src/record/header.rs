//! HEADER MATCH: the first line must name the columns.
//!
//! PostgreSQL: src/backend/commands/copyfromparse.c, NextCopyFromRawFields.

use super::error::bad_format;
use super::format::Format;
use super::line::Fields;
use crate::error::ValueError;

/// Compares the header's fields, which lie in the scratch buffer, with the columns' names.
///
/// # Errors
/// 22P04 for another number of fields, a null value, or another name.
pub(super) fn check(fields: &Fields, format: &Format) -> Result<(), Box<ValueError>> {
    let (got, expected) = (fields.refs.len(), format.columns.len());
    if got != expected {
        return Err(bad_format(format!(
            "wrong number of fields in header line: got {got}, expected {expected}"
        )));
    }
    for (i, (field, column)) in fields.refs.iter().zip(&format.columns).enumerate() {
        let (number, expected) = (i + 1, &column.name);
        let mismatch = format!("column name mismatch in header line field {number}: got");
        if field.is_null() && !field.is_default() {
            return Err(bad_format(format!(
                "{mismatch} null value (\"{}\"), expected \"{expected}\"",
                String::from_utf8_lossy(&format.null)
            )));
        }
        let name = match &format.default {
            Some(marker) if field.is_default() => &marker[..],
            _ => field.bytes(&[], &fields.scratch),
        };
        if name != expected.as_bytes() {
            return Err(bad_format(format!(
                "{mismatch} \"{}\", expected \"{expected}\"",
                String::from_utf8_lossy(name)
            )));
        }
    }
    Ok(())
}
