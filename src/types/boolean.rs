//! boolean.
//!
//! PostgreSQL: `src/backend/utils/adt/bool.c`, `boolin`, `parse_bool_with_len`.

use super::wording::{invalid_syntax, is_space, skip_spaces};
use crate::error::ValueError;

/// Reads a boolean: true, false, yes, no, on, off, 1, 0 and prefixes that are not ambiguous.
#[inline]
pub(super) fn bool_in(field: &[u8]) -> Result<bool, Box<ValueError>> {
    // A table rather than comparisons: which of the two it is cannot be predicted.
    match field {
        &[byte] if LETTERS[usize::from(byte)] < 2 => Ok(LETTERS[usize::from(byte)] == 1),
        _ => bool_in_slow(field),
    }
}

/// What a single byte means; 2 for nothing.
const LETTERS: [u8; 256] = {
    let mut table = [2; 256];
    let (mut i, letters) = (0, b"f0nFNt1yTY");
    while i < letters.len() {
        table[letters[i] as usize] = (i >= 5) as u8;
        i += 1;
    }
    table
};

fn bool_in_slow(field: &[u8]) -> Result<bool, Box<ValueError>> {
    let mut word = skip_spaces(field);
    while let [rest @ .., last] = word {
        if !is_space(*last) {
            break;
        }
        word = rest;
    }
    let is_prefix_of = |whole: &[u8], at_least: usize| {
        (at_least..=whole.len()).contains(&word.len())
            && whole[..word.len()].eq_ignore_ascii_case(word)
    };
    if is_prefix_of(b"true", 1) || is_prefix_of(b"yes", 1) || is_prefix_of(b"on", 2) || word == b"1"
    {
        Ok(true)
    } else if is_prefix_of(b"false", 1)
        || is_prefix_of(b"no", 1)
        || is_prefix_of(b"off", 2)
        || word == b"0"
    {
        Ok(false)
    } else {
        Err(invalid_syntax("boolean", field))
    }
}
