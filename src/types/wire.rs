//! Values on their way to the server: from the stored form to the binary form of the protocol.
//!
//! PostgreSQL: the types' send functions.

use pgformat::datum::{jsonb as stored_jsonb, numeric, type_oid, varlena};
use pgformat::ids::Oid;

/// The version that leads a jsonb.
const JSONB_VERSION: u8 = 1;

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
