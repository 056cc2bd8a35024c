//! The on-disk format of PostgreSQL 14 to 18 as a library: bytes in, bytes out, no I/O.
//!
//! Everything here answers to a structure of the server's source and says which. The modules
//! follow a row on its way to disk: [`datum`] (the bytes of a value and their order),
//! [`heap`] (tuples), [`toast`] (values that do not fit), [`btree`] (index tuples and pages),
//! [`page`] (the 8 KB page with its header, line pointers and checksum).

#![forbid(unsafe_code)]

pub mod btree;
pub mod datum;
pub mod error;
pub mod heap;
pub mod ids;
pub mod layout;
pub mod page;
pub mod toast;
pub mod version;
