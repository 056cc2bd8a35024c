//! relation files from tuples: heap, toast, btree, visibility map, segments.

pub mod btree;
pub mod lz4;
pub mod page_buffer;
pub mod relation_file;
pub mod sequential;
pub mod visibility_map;
pub mod writer;

#[cfg(test)]
mod tests;
