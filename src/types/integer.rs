//! smallint, integer, bigint and oid.
//!
//! Nearly every value is a sign and up to 19 digits, read eight at a time. All else goes a slow
//! way that answers in each version what the server answers, errors too.
//!
//! PostgreSQL: `src/backend/utils/adt/numutils.c` (`pg_strtoint32` and the like,
//! `uint32in_subr`), before 16 `oid.c` (`oidin_subr`).

use super::digits::{self, HEX};
use super::wording::{invalid_syntax, is_space, skip_spaces, value_out_of_range};
use crate::error::ValueError;
use crate::sys::decimal;
use pgformat::version::MajorVersion;
use std::ops::Range;

/// What differs between the three integer types.
pub(super) struct IntegerType {
    /// As messages name it.
    name: &'static str,
    /// Its smallest value is minus this.
    limit: u64,
}

pub(super) const SMALLINT: IntegerType = IntegerType {
    name: "smallint",
    limit: 1 << 15,
};
pub(super) const INTEGER: IntegerType = IntegerType {
    name: "integer",
    limit: 1 << 31,
};
pub(super) const BIGINT: IntegerType = IntegerType {
    name: "bigint",
    limit: 1 << 63,
};

/// Reads an integer of the type; it is within the type's range.
#[inline]
pub(super) fn int_in(
    field: &[u8],
    ty: &IntegerType,
    version: MajorVersion,
) -> Result<i64, Box<ValueError>> {
    let (negative, digits) = match field {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, field),
    };
    match digits::integer(digits) {
        Some(n) if n < ty.limit || negative && n == ty.limit => Ok(if negative {
            (n as i64).wrapping_neg()
        } else {
            n as i64
        }),
        _ => int_in_slow(field, ty, version),
    }
}

/// The same of `field` of `data`; `WIDE` where the type has more than 16 digits.
#[inline(always)]
pub(super) fn int_at<const WIDE: bool>(
    data: &[u8],
    field: Range<usize>,
    ty: &IntegerType,
    version: MajorVersion,
) -> Result<i64, Box<ValueError>> {
    let Some(tail) = data[..field.end].last_chunk() else {
        return int_in(&data[field], ty, version);
    };
    let negative = data[field.clone()].first() == Some(&b'-');
    let digits = field.len() - usize::from(negative);
    let number = match decimal::last_integer::<WIDE>(tail, digits) {
        None => digits::last_integer::<WIDE>(tail, digits),
        number => number,
    };
    match number {
        Some(n) if n < ty.limit + u64::from(negative) => {
            let sign = -i64::from(negative);
            Ok((n as i64 ^ sign).wrapping_sub(sign))
        }
        _ => int_in_slow(&data[field], ty, version),
    }
}

#[cold]
fn int_in_slow(
    field: &[u8],
    ty: &IntegerType,
    version: MajorVersion,
) -> Result<i64, Box<ValueError>> {
    let parsed = if version.at_least(16) {
        parse_16(field, ty.limit)
    } else {
        parse_before_16(field, ty.limit)
    };
    parsed.map_err(|fault| match fault {
        Fault::Syntax => invalid_syntax(ty.name, field),
        Fault::Range => value_out_of_range(ty.name, field),
    })
}

enum Fault {
    Syntax,
    Range,
}

fn split_sign(field: &[u8]) -> (bool, &[u8]) {
    match skip_spaces(field) {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    }
}

/// Up to 15 the value is gathered as a negative number, so that the smallest value fits; the
/// digit that leaves the range is an error at once, whatever follows.
fn parse_before_16(field: &[u8], limit: u64) -> Result<i64, Fault> {
    let (negative, rest) = split_sign(field);
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if count == 0 {
        return Err(Fault::Syntax);
    }
    let mut n = 0u64;
    for byte in &rest[..count] {
        n = n
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(byte - b'0')))
            .filter(|&n| n <= limit)
            .ok_or(Fault::Range)?;
    }
    if !rest[count..].iter().all(|&b| is_space(b)) {
        return Err(Fault::Syntax);
    }
    apply_sign(n, negative, limit)
}

/// From 16 on there are hexadecimal, octal and binary integers and underscores. While digits
/// are read, only what the next digit would surely overflow is an error at once.
fn parse_16(field: &[u8], limit: u64) -> Result<i64, Fault> {
    let (negative, rest) = split_sign(field);
    let (base, rest) = match rest {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', b'o' | b'O', rest @ ..] => (8, rest),
        [b'0', b'b' | b'B', rest @ ..] => (2, rest),
        _ => (10, rest),
    };
    let digit_of = |at: usize| {
        rest.get(at)
            .map(|&b| u64::from(HEX[usize::from(b)]))
            .filter(|&d| d < base)
    };
    let mut n = 0u64;
    let mut at = 0;
    loop {
        if let Some(digit) = digit_of(at) {
            if n > limit / base {
                return Err(Fault::Range);
            }
            n = n * base + digit;
            at += 1;
        } else if rest.get(at) == Some(&b'_') {
            if base == 10 && at == 0 || digit_of(at + 1).is_none() {
                return Err(Fault::Syntax);
            }
            at += 1;
        } else {
            break;
        }
    }
    if at == 0 || !rest[at..].iter().all(|&b| is_space(b)) {
        return Err(Fault::Syntax);
    }
    apply_sign(n, negative, limit)
}

fn apply_sign(n: u64, negative: bool, limit: u64) -> Result<i64, Fault> {
    match (n, negative) {
        (n, false) if n < limit => Ok(n as i64),
        (n, true) if n <= limit => Ok((n as i64).wrapping_neg()),
        _ => Err(Fault::Range),
    }
}

/// Reads an oid.
#[inline]
pub(super) fn oid_in(field: &[u8], version: MajorVersion) -> Result<u32, Box<ValueError>> {
    // From 16 on a leading zero announces octal.
    if (field.first() != Some(&b'0') || field.len() == 1)
        && let Some(oid) = digits::integer(field).and_then(|n| u32::try_from(n).ok())
    {
        return Ok(oid);
    }
    oid_in_slow(field, version)
}

#[cold]
fn oid_in_slow(field: &[u8], version: MajorVersion) -> Result<u32, Box<ValueError>> {
    let (negative, rest) = split_sign(field);
    // strtoul with base 10, from 16 on with base 0.
    let (base, rest) = match rest {
        [b'0', b'x' | b'X', digit, ..]
            if version.at_least(16) && HEX[usize::from(*digit)] != 0xff =>
        {
            (16, &rest[2..])
        }
        [b'0', ..] if version.at_least(16) => (8, rest),
        _ => (10, rest),
    };
    let mut count = 0;
    let mut n = Some(0u64);
    for &byte in rest {
        let digit = u64::from(HEX[usize::from(byte)]);
        if digit >= base {
            break;
        }
        n = n
            .and_then(|n| n.checked_mul(base))
            .and_then(|n| n.checked_add(digit));
        count += 1;
    }
    if count == 0 {
        return Err(invalid_syntax("oid", field));
    }
    let Some(n) = n else {
        return Err(value_out_of_range("oid", field));
    };
    if !rest[count..].iter().all(|&b| is_space(b)) {
        return Err(invalid_syntax("oid", field));
    }
    let n = if negative { n.wrapping_neg() } else { n };
    // As an unsigned number or as the sign extension of a signed one.
    let oid = n as u32;
    if n == u64::from(oid) || n == i64::from(oid as i32) as u64 {
        Ok(oid)
    } else {
        Err(value_out_of_range("oid", field))
    }
}
