//! The bytes of a value: varlena headers, and per type family its encoding and order.

pub mod varlena;
