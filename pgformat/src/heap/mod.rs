//! Heap tuples and heap pages.

pub mod tuple;
