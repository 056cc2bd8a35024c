//! The page of 8 KB that every fork of every relation is made of.
//!
//! ```text
//! 0                24                    pd_lower      pd_upper            pd_special     8192
//! | PageHeaderData | ItemId ItemId ... -> |   free      | <- ... item item | special space |
//! ```
//!
//! Items are laid from the end towards the start, line pointers from the start towards the
//! end; the offset number of an item is the index of its line pointer, from 1. Reading
//! ([`view`]) checks what it finds; writing ([`builder`], and for heaps
//! [`crate::heap::page`]) asserts what it was promised. [`checksum`] comes last, over the
//! finished page.
//!
//! PostgreSQL: `src/include/storage/bufpage.h`.

pub mod builder;
pub mod checksum;
pub mod header;
pub mod item_id;
pub mod view;

/// Bytes of a page (`BLCKSZ`).
pub const PAGE_BYTES: usize = 8192;

/// A page.
pub type Page = [u8; PAGE_BYTES];
