//! Btree indexes: their tuples and their pages.
//!
//! [`mod@tuple`] forms and reads index tuples, and turns them into pivot and posting list tuples;
//! [`page`] holds the special area, the metapage and the limits of a page. Building a tree out
//! of sorted tuples is the program's (`src/build/btree.rs`).

pub mod page;
pub mod tuple;
