//! The text of any stored value, for messages such as `Key (a, b)=(1, x) is duplicated.`

use super::network::Address;
use super::{bits, datetime, float, jsonb, numeric, type_oid, varlena};
use crate::ids::Oid;
use crate::version::MajorVersion;

/// The text that the type's output function gives for a stored attribute (varlenas with their
/// header, plain); `null` for null, as the server writes keys in messages. A timestamptz is
/// shown in UTC, an interval as the newest version shows it.
///
/// Bytes that are not such a value give some text and never panic; a compressed or external
/// value, and a type that is not built natively, give its bytes in hexadecimal.
///
/// PostgreSQL: the types' output functions; `src/backend/access/index/genam.c`,
/// `BuildIndexValueDescription`.
pub fn output(type_oid: Oid, stored: Option<&[u8]>) -> String {
    let Some(stored) = stored else {
        return "null".to_owned();
    };
    fixed(type_oid, stored)
        .or_else(|| variable(type_oid, stored))
        .unwrap_or_else(|| hex(stored))
}

/// Types of fixed length; `None` for all else, wrong lengths too.
fn fixed(type_oid: Oid, stored: &[u8]) -> Option<String> {
    Some(match type_oid {
        type_oid::BOOL => match stored {
            [0] => "f".to_owned(),
            [_] => "t".to_owned(),
            _ => return None,
        },
        type_oid::CHAR => match *stored {
            [0] => String::new(),
            [byte @ ..=0x7f] => (byte as char).to_string(),
            [byte] => format!("\\{byte:03o}"),
            _ => return None,
        },
        type_oid::NAME => {
            let end = stored.iter().position(|&b| b == 0).unwrap_or(stored.len());
            String::from_utf8_lossy(&stored[..end]).into_owned()
        }
        type_oid::INT2 => i16::from_le_bytes(stored.try_into().ok()?).to_string(),
        type_oid::INT4 => i32::from_le_bytes(stored.try_into().ok()?).to_string(),
        type_oid::INT8 => i64::from_le_bytes(stored.try_into().ok()?).to_string(),
        type_oid::OID => u32::from_le_bytes(stored.try_into().ok()?).to_string(),
        type_oid::FLOAT4 => float::to_text4(f32::from_le_bytes(stored.try_into().ok()?)),
        type_oid::FLOAT8 => float::to_text8(f64::from_le_bytes(stored.try_into().ok()?)),
        type_oid::UUID => uuid(stored.try_into().ok()?),
        type_oid::DATE => datetime::date_out(i32::from_le_bytes(stored.try_into().ok()?)),
        type_oid::TIME => datetime::time_out(i64::from_le_bytes(stored.try_into().ok()?)),
        type_oid::TIMESTAMP => datetime::timestamp_out(i64::from_le_bytes(stored.try_into().ok()?)),
        type_oid::TIMESTAMPTZ => {
            datetime::timestamptz_out(i64::from_le_bytes(stored.try_into().ok()?), 0)
        }
        type_oid::TIMETZ if stored.len() == datetime::TIMETZ_BYTES => {
            let (micros, west_secs) = datetime::decode_timetz(stored);
            datetime::timetz_out(micros, west_secs)
        }
        type_oid::INTERVAL if stored.len() == datetime::INTERVAL_BYTES => {
            datetime::interval_out(&datetime::decode_interval(stored), MajorVersion::NEWEST)
        }
        _ => return None,
    })
}

/// Varlena types.
fn variable(type_oid: Oid, stored: &[u8]) -> Option<String> {
    let payload = plain_payload(stored)?;
    Some(match type_oid {
        type_oid::TEXT | type_oid::VARCHAR | type_oid::BPCHAR | type_oid::JSON => {
            String::from_utf8_lossy(payload).into_owned()
        }
        type_oid::BYTEA => hex(payload),
        type_oid::NUMERIC => numeric::to_text(payload),
        type_oid::JSONB => jsonb::to_text(payload),
        type_oid::INET => Address::read(payload)?.to_text(false),
        type_oid::CIDR => Address::read(payload)?.to_text(true),
        type_oid::BIT | type_oid::VARBIT => bits::to_text(payload)?,
        _ => return None,
    })
}

fn plain_payload(stored: &[u8]) -> Option<&[u8]> {
    if stored.is_empty() {
        return None;
    }
    match varlena::form(stored) {
        varlena::Form::Short => Some(&stored[varlena::SHORT_HEADER_BYTES..]),
        varlena::Form::Full => stored.get(varlena::HEADER_BYTES..),
        varlena::Form::Compressed | varlena::Form::External => None,
    }
}

/// bytea's hex format.
fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + bytes.len() * 2);
    out.push_str("\\x");
    push_hex(&mut out, bytes);
    out
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 0xf)]);
    }
}

fn uuid(bytes: [u8; 16]) -> String {
    let mut out = String::with_capacity(36);
    for (i, part) in [
        &bytes[..4],
        &bytes[4..6],
        &bytes[6..8],
        &bytes[8..10],
        &bytes[10..],
    ]
    .into_iter()
    .enumerate()
    {
        if i > 0 {
            out.push('-');
        }
        push_hex(&mut out, part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_reads_as_its_output_function_writes() {
        for (type_oid, stored, text) in [
            (type_oid::BOOL, &[1u8][..], "t"),
            (type_oid::CHAR, &[0xff], "\\377"),
            (type_oid::NAME, b"abc\0\0", "abc"),
            (type_oid::INT2, &[0xff, 0xff], "-1"),
            (type_oid::OID, &[0xff, 0xff, 0xff, 0xff], "4294967295"),
            (type_oid::TEXT, &[7, b'a', b'b'], "ab"),
            (type_oid::BYTEA, &[7, 1, 0xab], "\\x01ab"),
            (type_oid::NUMERIC, &[9, 0x80, 0x80, 1, 0], "1.0"),
            (type_oid::DATE, &[1, 0, 0, 0], "2000-01-02"),
            (type_oid::TIME, &[0; 8], "00:00:00"),
            (type_oid::TIMESTAMP, &[0; 8], "2000-01-01 00:00:00"),
            (type_oid::TIMESTAMPTZ, &[0; 8], "2000-01-01 00:00:00+00"),
            (type_oid::TIMETZ, &[0; 12], "00:00:00+00"),
            (type_oid::INTERVAL, &[0; 16], "00:00:00"),
            (
                type_oid::UUID,
                b"0123456789abcdef",
                "30313233-3435-3637-3839-616263646566",
            ),
        ] {
            assert_eq!(output(type_oid, Some(stored)), text);
        }
        assert_eq!(output(type_oid::TEXT, None), "null");
    }

    #[test]
    fn bytes_that_are_no_value_do_not_panic() {
        for type_oid in 0..4000 {
            for bytes in [&[][..], &[1], &[2], &[0, 0], &[0; 5], &[0xff; 9]] {
                let _ = output(type_oid, Some(bytes));
            }
            for byte in [0x7f, 0x80, 0xff] {
                for len in [4, 8, 12, 16, 64] {
                    let _ = output(type_oid, Some(&vec![byte; len]));
                }
            }
            for bytes in [&[0u8; 4][..], &[0; 8], &[0; 12], &[0; 16]] {
                let _ = output(type_oid, Some(bytes));
            }
        }
    }
}
