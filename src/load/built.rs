//! What the pipeline leaves behind: files in staging and what registration must know of them.

use super::defaults::ask::Cost;
use super::marks::Marks;
use super::report::VerbTimes;
use crate::build::relation_file::{RelationFile, RelationSize};
use crate::error::Error;
use pgformat::page::PAGE_BYTES;
use std::path::PathBuf;

/// One fork in staging.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltFork {
    /// The first segment; the others have `.1`, `.2` behind it.
    pub path: PathBuf,
    /// Blocks over all segments.
    pub blocks: u32,
    /// Files; 0 when it has no blocks.
    pub segment_count: u32,
}

impl BuiltTable {
    /// Where in its inputs the row is that an error is of; rows that are not told of come last.
    pub fn place(&self, error: &Error) -> (usize, u64) {
        let place = error.places.first();
        let input = place.and_then(|place| self.inputs.iter().position(|i| *i == place.file));
        match (place, input) {
            (Some(place), Some(input)) => (input, place.line),
            _ => (usize::MAX, u64::MAX),
        }
    }
}

impl BuiltFork {
    /// A fork whose file is finished.
    pub fn new(file: &RelationFile, size: RelationSize) -> BuiltFork {
        let segment_count = if size.blocks == 0 { 0 } else { size.segments };
        BuiltFork {
            path: file.path(),
            blocks: size.blocks,
            segment_count,
        }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        u64::from(self.blocks) * PAGE_BYTES as u64
    }

    /// Its files in order; none when it has no blocks.
    pub fn segments(&self) -> Vec<PathBuf> {
        (0..self.segment_count)
            .map(|segment| match segment {
                0 => self.path.clone(),
                n => PathBuf::from(format!("{}.{n}", self.path.display())),
            })
            .collect()
    }
}

/// A TOAST table with its index; only when a value went out of line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltToast {
    /// Its heap.
    pub heap: BuiltFork,
    /// Its visibility map, without any bit.
    pub visibility_map: Option<BuiltFork>,
    /// Its tuples.
    pub tuples: u64,
    /// Its index.
    pub index: BuiltFork,
}

/// An index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltIndex {
    /// Its number among the relation's indexes.
    pub number: usize,
    /// Its file.
    pub file: BuiltFork,
    /// Heap tuples indexed.
    pub tuples: u64,
    /// Bytes that its sort spilled.
    pub spilled_bytes: u64,
}

/// A table that was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuiltTable {
    /// The heap.
    pub heap: BuiltFork,
    /// Its visibility map; none for an empty heap.
    pub visibility_map: Option<BuiltFork>,
    /// Its TOAST table.
    pub toast: Option<BuiltToast>,
    /// Its native indexes.
    pub indexes: Vec<BuiltIndex>,
    /// Rows.
    pub rows: u64,
    /// How often each of the plan's sequences was drawn from.
    pub draws: Vec<u64>,
    /// What asking the server for values cost.
    pub asked: Cost,
    /// Bytes of input, decompressed.
    pub input_bytes: u64,
    /// Thread time.
    pub times: VerbTimes,
    /// Where its rows came from.
    pub marks: Marks,
    /// The names of its inputs in messages.
    pub inputs: Vec<String>,
}
