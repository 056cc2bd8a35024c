//! OIDs of the built-in types that are built natively; they are the same in every version.
//!
//! PostgreSQL: `src/include/catalog/pg_type.dat`.

use crate::ids::Oid;

/// boolean
pub const BOOL: Oid = 16;
/// bytea
pub const BYTEA: Oid = 17;
/// "char", one byte
pub const CHAR: Oid = 18;
/// name
pub const NAME: Oid = 19;
/// bigint
pub const INT8: Oid = 20;
/// smallint
pub const INT2: Oid = 21;
/// integer
pub const INT4: Oid = 23;
/// text
pub const TEXT: Oid = 25;
/// oid
pub const OID: Oid = 26;
/// json
pub const JSON: Oid = 114;
/// cidr
pub const CIDR: Oid = 650;
/// real
pub const FLOAT4: Oid = 700;
/// double precision
pub const FLOAT8: Oid = 701;
/// inet
pub const INET: Oid = 869;
/// character(n)
pub const BPCHAR: Oid = 1042;
/// character varying(n)
pub const VARCHAR: Oid = 1043;
/// date
pub const DATE: Oid = 1082;
/// time without time zone
pub const TIME: Oid = 1083;
/// timestamp without time zone
pub const TIMESTAMP: Oid = 1114;
/// timestamp with time zone
pub const TIMESTAMPTZ: Oid = 1184;
/// interval
pub const INTERVAL: Oid = 1186;
/// time with time zone
pub const TIMETZ: Oid = 1266;
/// bit(n)
pub const BIT: Oid = 1560;
/// bit varying(n)
pub const VARBIT: Oid = 1562;
/// numeric
pub const NUMERIC: Oid = 1700;
/// uuid
pub const UUID: Oid = 2950;
/// jsonb
pub const JSONB: Oid = 3802;
