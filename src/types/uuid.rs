//! uuid.
//!
//! PostgreSQL: `src/backend/utils/adt/uuid.c`, `string_to_uuid`.

use super::digits::HEX;
use super::wording::invalid_syntax;
use crate::error::ValueError;

/// Where the pairs of digits lie in the usual form, 8-4-4-4-12.
const PAIRS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// Reads a uuid: 32 hexadecimal digits, a hyphen allowed after each four of them, braces around.
#[inline]
pub(super) fn uuid_in(field: &[u8]) -> Result<[u8; 16], Box<ValueError>> {
    if let Ok(usual) = <&[u8; 36]>::try_from(field) {
        let mut uuid = [0; 16];
        let mut bad = 0;
        for (byte, at) in uuid.iter_mut().zip(PAIRS) {
            let high = HEX[usize::from(usual[at])];
            let low = HEX[usize::from(usual[at + 1])];
            bad |= high | low;
            *byte = high << 4 | low;
        }
        if bad < 16 && [8, 13, 18, 23].iter().all(|&at| usual[at] == b'-') {
            return Ok(uuid);
        }
    }
    uuid_in_slow(field).ok_or_else(|| invalid_syntax("uuid", field))
}

fn uuid_in_slow(field: &[u8]) -> Option<[u8; 16]> {
    let mut rest = match field {
        [b'{', inner @ .., b'}'] => inner,
        _ => field,
    };
    let mut uuid = [0; 16];
    for (i, byte) in uuid.iter_mut().enumerate() {
        let [high, low, after @ ..] = rest else {
            return None;
        };
        let (high, low) = (HEX[usize::from(*high)], HEX[usize::from(*low)]);
        if high | low > 15 {
            return None;
        }
        *byte = high << 4 | low;
        rest = match after {
            [b'-', after @ ..] if i % 2 == 1 && i < 15 => after,
            _ => after,
        };
    }
    rest.is_empty().then_some(uuid)
}
