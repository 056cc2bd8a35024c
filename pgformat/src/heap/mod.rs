//! Heap tuples, heap pages, and the map of pages that all can see.
//!
//! A row is formed by [`mod@tuple`], placed and laid onto a page by [`page`]; [`visibility_map`]
//! says of the finished heap that all of it is visible and frozen.

pub mod page;
pub mod tuple;
pub mod visibility_map;
