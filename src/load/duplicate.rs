//! The error of two rows with one key in a unique index.
//!
//! COPY stops at the first row of the input whose key is there already. Each index finds
//! its own first such row while it is built; the first of all is the one to report.

use super::marks::Marks;
use super::plan::InputPlan;
use crate::catalog::Relation;
use crate::error::{Error, Place, Result};
use crate::sort::IndexSpec;
use pgformat::ids::Tid;
use std::path::Path;

/// Two rows with one key.
#[derive(Debug)]
pub(super) struct Duplicate {
    /// The index's number among the native ones.
    pub number: usize,
    /// The row that came first.
    pub first: Tid,
    /// The row that is refused.
    pub second: Tid,
    /// The key columns in stored form.
    pub key: Vec<Option<Vec<u8>>>,
}

impl Duplicate {
    /// The one that COPY meets first.
    pub(super) fn first(duplicates: Vec<Duplicate>) -> Option<Duplicate> {
        duplicates.into_iter().min_by_key(|d| (d.second, d.number))
    }

    /// The error, with both places in the input. `heap` is the staged heap, all of whose pages
    /// but the last must have been written.
    ///
    /// # Errors
    /// When the heap cannot be read back.
    pub(super) fn error(
        &self,
        relation: &Relation,
        inputs: &[InputPlan],
        spec: &IndexSpec,
        marks: &Marks,
        heap: &Path,
        segment_blocks: u32,
    ) -> Result<Error> {
        let definition = spec.definition();
        let columns = definition.columns[..definition.keys.len()]
            .iter()
            .map(|c| &relation.columns[c.attribute]);
        let names: Vec<&str> = columns.clone().map(|c| c.name.as_str()).collect();
        let values: Vec<String> = columns
            .zip(&self.key)
            .map(|(column, stored)| column.output(stored.as_deref()))
            .collect();
        let message = format!(
            "duplicate key value violates unique constraint \"{}\"",
            definition.name
        );
        let (names, values) = (names.join(", "), values.join(", "));
        let mut error = Error::refused("23505", message)
            .with_detail(format!("Key ({names})=({values}) already exists."));
        for tid in [self.second, self.first] {
            let (input, line) = marks.find(tid, heap, segment_blocks)?;
            let file = inputs[input].label.clone();
            error = error.at(Place {
                file,
                line,
                ..Place::default()
            });
        }
        Ok(error)
    }
}
