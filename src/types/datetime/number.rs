//! C's number parsing, whose corners the input functions show: a sign may stand before the
//! digits, no digits at all are 0, and what follows is left for the caller.

/// A whole number at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whole {
    /// Its value, clamped to an i64.
    pub(super) value: i64,
    /// Bytes taken; 0 when there are no digits.
    pub(super) taken: usize,
    /// It did not fit an i64.
    pub(super) overflows: bool,
}

/// C's strtol in base 10, with 64 bits.
pub(super) fn strtol(text: &[u8]) -> Whole {
    let mut pos = 0;
    while matches!(text.get(pos), Some(b' ' | b'\t'..=b'\r')) {
        pos += 1;
    }
    let negative = match text.get(pos) {
        Some(b'-') => {
            pos += 1;
            true
        }
        Some(b'+') => {
            pos += 1;
            false
        }
        _ => false,
    };
    let digits_pos = pos;
    let mut value = 0_i64;
    let mut overflows = false;
    while let Some(digit @ b'0'..=b'9') = text.get(pos).copied() {
        let digit = i64::from(digit - b'0');
        let digit = if negative { -digit } else { digit };
        match value.checked_mul(10).and_then(|v| v.checked_add(digit)) {
            Some(next) => value = next,
            None => overflows = true,
        }
        pos += 1;
    }
    if overflows {
        value = if negative { i64::MIN } else { i64::MAX };
    }
    Whole {
        value,
        taken: if pos == digits_pos { 0 } else { pos },
        overflows,
    }
}

/// C's atoi on 64-bit machines: the low half of strtol's value.
pub(super) fn atoi(text: &[u8]) -> i32 {
    strtol(text).value as i32
}

/// PostgreSQL's strtoint: value and bytes taken; `None` when it does not fit an i32.
pub(super) fn strtoint(text: &[u8]) -> Option<(i32, usize)> {
    let whole = strtol(text);
    if whole.overflows {
        return None;
    }
    Some((i32::try_from(whole.value).ok()?, whole.taken))
}

/// A floating-point number at the beginning of a text and the bytes taken.
///
/// C's strtod: `None` where it finds no number, or sets ERANGE. Takes decimal and hexadecimal
/// numbers, infinities and NaNs.
pub(super) fn strtod(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let sign_bytes = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let body = &text[sign_bytes..];
    let signed = |value: f64| if negative { -value } else { value };
    let starts_with = |word: &[u8]| {
        body.get(..word.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(word))
    };
    for word in [&b"infinity"[..], b"inf"] {
        if starts_with(word) {
            return Some((signed(f64::INFINITY), sign_bytes + word.len()));
        }
    }
    if starts_with(b"nan") {
        // NAN may be followed by characters in parentheses.
        let tail = &body[3..];
        let payload = tail.strip_prefix(b"(").and_then(|inner| {
            let end = inner
                .iter()
                .position(|b| !b.is_ascii_alphanumeric() && *b != b'_')?;
            (inner[end] == b')').then_some(end + 2)
        });
        return Some((f64::NAN, sign_bytes + 3 + payload.unwrap_or(0)));
    }
    if starts_with(b"0x")
        && let Some((value, taken)) = hexadecimal(&body[2..])
    {
        return value.map(|v| (signed(v), sign_bytes + 2 + taken));
    }
    let digits = |from: usize| {
        body[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let whole = digits(0);
    let mut end = whole;
    let mut fraction = 0;
    if body.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    let mantissa_end = end;
    end += exponent(&body[end..], b'e');
    let value: f64 = std::str::from_utf8(&body[..end]).ok()?.parse().ok()?;
    let is_zero = body[..mantissa_end]
        .iter()
        .all(|b| matches!(b, b'0' | b'.'));
    if value.is_infinite() || (!is_zero && !value.is_normal()) {
        return None;
    }
    Some((signed(value), sign_bytes + end))
}

/// Bytes of an exponent, mark included; 0 when there is none.
fn exponent(text: &[u8], mark: u8) -> usize {
    if !text.first().is_some_and(|b| b.eq_ignore_ascii_case(&mark)) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'-' | b'+')));
    let digits = text[1 + sign..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    if digits == 0 { 0 } else { 1 + sign + digits }
}

/// A hexadecimal number after its `0x` and the bytes taken: outer `None` when it has no
/// digits, inner when it is out of range.
fn hexadecimal(text: &[u8]) -> Option<(Option<f64>, usize)> {
    // Digits beyond 64 bits only tell whether something is left.
    let (mut mantissa, mut scale, mut rest) = (0_u64, 0_i64, false);
    let (mut pos, mut digits, mut in_fraction) = (0, 0, false);
    while let Some(&byte) = text.get(pos) {
        if byte == b'.' && !in_fraction {
            in_fraction = true;
        } else if let Some(digit) = (byte as char).to_digit(16) {
            digits += 1;
            if mantissa >> 60 == 0 {
                mantissa = mantissa << 4 | u64::from(digit);
                scale -= if in_fraction { 4 } else { 0 };
            } else {
                rest |= digit != 0;
                scale += if in_fraction { 0 } else { 4 };
            }
        } else {
            break;
        }
        pos += 1;
    }
    if digits == 0 {
        return None;
    }
    let exponent_bytes = exponent(&text[pos..], b'p');
    if exponent_bytes > 0 {
        scale = scale.saturating_add(strtol(&text[pos + 1..]).value);
    }
    pos += exponent_bytes;
    // The lowest bit stands for all that was cut off, so that rounding is right.
    let mantissa = (mantissa | u64::from(rest)) as f64;
    if mantissa == 0.0 {
        return Some((Some(0.0), pos));
    }
    let value = mantissa * 2_f64.powi(scale.clamp(-4000, 4000) as i32);
    Some((value.is_normal().then_some(value), pos))
}

/// C's conversion of a double to an int on the server's machines: what does not fit is the
/// smallest int.
pub(super) fn to_i32(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 {
        value as i32
    } else {
        i32::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_as_c_reads_them() {
        let taken = |text: &[u8]| (strtol(text).value, strtol(text).taken);
        assert_eq!(taken(b"12:30"), (12, 2));
        assert_eq!(taken(b"-7x"), (-7, 2));
        assert_eq!(taken(b""), (0, 0));
        assert_eq!(taken(b"-"), (0, 0));
        assert_eq!(taken(b"9223372036854775808"), (i64::MAX, 19));
        assert_eq!(taken(b"-9223372036854775808"), (i64::MIN, 20));
        assert!(!strtol(b"-9223372036854775808").overflows);
        assert!(strtol(b"9223372036854775808").overflows);
        assert_eq!(atoi(b"4294967297"), 1);
        assert_eq!(strtoint(b"2147483648"), None);
        assert_eq!(strtoint(b"-2147483648"), Some((i32::MIN, 11)));
    }

    #[test]
    fn floating_point_numbers_are_read_as_c_reads_them() {
        assert_eq!(strtod(b"1.5Y"), Some((1.5, 3)));
        assert_eq!(strtod(b".5"), Some((0.5, 2)));
        assert_eq!(strtod(b"1e3D"), Some((1000.0, 3)));
        assert_eq!(strtod(b"1eD"), Some((1.0, 1)));
        assert_eq!(strtod(b"-0x1p3D"), Some((-8.0, 6)));
        assert_eq!(strtod(b"0x.8Y"), Some((0.5, 4)));
        assert_eq!(strtod(b"0xg"), Some((0.0, 1)));
        assert_eq!(strtod(b"."), None);
        assert_eq!(strtod(b"1e400"), None);
        assert_eq!(strtod(b"1e-400"), None);
        assert_eq!(strtod(b"-infY"), Some((f64::NEG_INFINITY, 4)));
        assert!(strtod(b"-nan(1)Y").is_some_and(|(v, taken)| v.is_nan() && taken == 7));
    }
}
