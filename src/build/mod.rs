//! relation files from tuples: heap, toast, btree, visibility map, segments.
