//! The bytes of a value: varlena headers, and per type family its encoding and order.

pub mod array;
pub mod bits;
pub mod datetime;
pub mod float;
pub mod hash;
pub mod jsonb;
pub mod network;
pub mod numeric;
pub mod order;
pub mod text;
pub mod type_oid;
pub mod varlena;
