//! Values on their way to the server and back: from the stored form to the binary form of the
//! protocol, and from what the server sends to an attribute.
//!
//! Only values that are already of their type go this way: a stored attribute of ours, the
//! result of an expression of the server. So nothing is checked but lengths, and no setting
//! of a session matters.
//!
//! PostgreSQL: the types' send and receive functions.

use super::{Scratch, Settings, jsonb};
use crate::error::{Error, Result};
use pgformat::datum::{jsonb as stored_jsonb, numeric, type_oid, varlena};
use pgformat::heap::tuple::TupleBuilder;
use pgformat::ids::Oid;

/// NAMEDATALEN.
const NAME_BYTES: usize = 64;
/// The version that leads a jsonb.
const JSONB_VERSION: u8 = 1;
/// Bytes of a numeric's header in the protocol: count, weight, sign, scale.
const NUMERIC_HEADER_BYTES: usize = 8;

/// The name of a native type as SQL has it, without a modifier; `None` for other types.
pub fn type_name(type_oid: Oid) -> Option<&'static str> {
    Some(match type_oid {
        type_oid::BOOL => "pg_catalog.bool",
        type_oid::BYTEA => "pg_catalog.bytea",
        type_oid::CHAR => "pg_catalog.\"char\"",
        type_oid::NAME => "pg_catalog.name",
        type_oid::INT8 => "pg_catalog.int8",
        type_oid::INT2 => "pg_catalog.int2",
        type_oid::INT4 => "pg_catalog.int4",
        type_oid::TEXT => "pg_catalog.text",
        type_oid::OID => "pg_catalog.oid",
        type_oid::JSON => "pg_catalog.json",
        type_oid::FLOAT4 => "pg_catalog.float4",
        type_oid::FLOAT8 => "pg_catalog.float8",
        type_oid::BPCHAR => "pg_catalog.bpchar",
        type_oid::VARCHAR => "pg_catalog.varchar",
        type_oid::DATE => "pg_catalog.date",
        type_oid::TIME => "pg_catalog.time",
        type_oid::TIMESTAMP => "pg_catalog.timestamp",
        type_oid::TIMESTAMPTZ => "pg_catalog.timestamptz",
        type_oid::INTERVAL => "pg_catalog.interval",
        type_oid::TIMETZ => "pg_catalog.timetz",
        type_oid::NUMERIC => "pg_catalog.numeric",
        type_oid::UUID => "pg_catalog.uuid",
        type_oid::JSONB => "pg_catalog.jsonb",
        _ => return None,
    })
}

/// Lengths of the numbers that a value of fixed length consists of; each turns its bytes around
/// between the disk and the wire.
fn parts(type_oid: Oid) -> Option<&'static [usize]> {
    Some(match type_oid {
        type_oid::BOOL | type_oid::CHAR => &[1],
        type_oid::INT2 => &[2],
        type_oid::INT4 | type_oid::OID | type_oid::FLOAT4 | type_oid::DATE => &[4],
        type_oid::INT8
        | type_oid::FLOAT8
        | type_oid::TIME
        | type_oid::TIMESTAMP
        | type_oid::TIMESTAMPTZ => &[8],
        type_oid::TIMETZ => &[8, 4],
        type_oid::INTERVAL => &[8, 4, 4],
        _ => return None,
    })
}

/// Appends the parts of `bytes`, each turned around.
fn turn(mut bytes: &[u8], parts: &[usize], out: &mut Vec<u8>) {
    for len in parts {
        let (part, rest) = bytes.split_at(*len);
        out.extend(part.iter().rev());
        bytes = rest;
    }
}

/// Appends the binary form of a stored attribute.
///
/// # Panics
/// When the attribute is not one of this native type, is compressed or out of line.
pub fn send(type_oid: Oid, stored: &[u8], out: &mut Vec<u8>) {
    if let Some(parts) = parts(type_oid) {
        turn(stored, parts, out);
        return;
    }
    match type_oid {
        type_oid::UUID => out.extend_from_slice(stored),
        type_oid::NAME => {
            let end = stored.iter().position(|b| *b == 0).unwrap_or(stored.len());
            out.extend_from_slice(&stored[..end]);
        }
        type_oid::NUMERIC => numeric::send(varlena::payload(stored), out),
        type_oid::JSONB => {
            out.push(JSONB_VERSION);
            out.extend_from_slice(stored_jsonb::to_text(varlena::payload(stored)).as_bytes());
        }
        _ => out.extend_from_slice(varlena::payload(stored)),
    }
}

/// Puts what the server sent for a value of this native type as the next attribute.
///
/// # Errors
/// `08P01` when these bytes are not such a value.
pub fn receive(
    type_oid: Oid,
    wire: &[u8],
    scratch: &mut Scratch,
    settings: &Settings,
    out: &mut TupleBuilder,
) -> Result<()> {
    if let Some(parts) = parts(type_oid) {
        if wire.len() != parts.iter().sum::<usize>() {
            return Err(malformed(type_oid));
        }
        let mut stored = Vec::with_capacity(wire.len());
        turn(wire, parts, &mut stored);
        out.put_stored(&stored);
        return Ok(());
    }
    match type_oid {
        type_oid::UUID if wire.len() == 16 => out.put_stored(wire),
        type_oid::NAME if wire.len() < NAME_BYTES => {
            let mut name = [0; NAME_BYTES];
            name[..wire.len()].copy_from_slice(wire);
            out.put_fixed(&name);
        }
        type_oid::NUMERIC => {
            let payload = numeric_payload(wire).ok_or_else(|| malformed(type_oid))?;
            out.put_varlena(&payload);
        }
        type_oid::JSONB => {
            let Some((&JSONB_VERSION, text)) = wire.split_first() else {
                return Err(malformed(type_oid));
            };
            let (version, encoding) = (settings.version, settings.encoding);
            let payload = jsonb::jsonb_in(text, version, encoding, &mut scratch.jsonb)
                .map_err(|_| malformed(type_oid))?;
            out.put_varlena(payload);
        }
        type_oid::TEXT
        | type_oid::VARCHAR
        | type_oid::BPCHAR
        | type_oid::JSON
        | type_oid::BYTEA
            if wire.len() <= varlena::MAX_BYTES - varlena::HEADER_BYTES =>
        {
            out.put_varlena(wire);
        }
        _ => return Err(malformed(type_oid)),
    }
    Ok(())
}

/// A numeric's stored payload.
fn numeric_payload(wire: &[u8]) -> Option<Vec<u8>> {
    let (header, digits) = wire.split_at_checked(NUMERIC_HEADER_BYTES)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (count, weight, sign, dscale) = (word(0), word(2), word(4), word(6));
    if digits.len() != usize::from(count) * 2 {
        return None;
    }
    let negative = match sign {
        0 => false,
        0x4000 => true,
        0xc000 => return Some(numeric::NAN.to_vec()),
        0xd000 => return Some(numeric::INFINITY.to_vec()),
        0xf000 => return Some(numeric::NEGATIVE_INFINITY.to_vec()),
        _ => return None,
    };
    let header = numeric::Header::new(negative, i32::from(weight as i16), i32::from(dscale))?;
    let mut payload = header.as_bytes().to_vec();
    for digit in digits.chunks_exact(2) {
        payload.extend([digit[1], digit[0]]);
    }
    Some(payload)
}

#[cold]
fn malformed(type_oid: Oid) -> Error {
    Error::environment(
        "08P01",
        format!("the server sent a malformed value of the type with OID {type_oid}"),
    )
}
