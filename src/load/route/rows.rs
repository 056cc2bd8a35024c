//! The rows of a chunk, apart by the leaves that they go to.

use super::super::pack::{PackError, Packed, RowSink};
use super::super::plan::{NativePlan, TablePlan};
use super::Routing;
use crate::catalog::Relation;
use crate::record::reader::Record;
use pgformat::datum::varlena;
use pgformat::heap::tuple::TupleBuilder;
use pgformat::layout::AttrLen;

/// Gathers rows for the leaves of one partitioned table.
#[derive(Debug)]
pub struct RoutedRows<'p> {
    routing: &'p Routing,
    root: &'p Relation,
    leaves: Vec<Leaf<'p>>,
    /// The leaves that rows went to since [`RoutedRows::clear`], in the order of their first row.
    used: Vec<usize>,
    bytes: usize,
}

#[derive(Debug)]
struct Leaf<'p> {
    table: &'p TablePlan,
    native: &'p NativePlan,
    /// Made when a row comes.
    rows: Option<Box<RowSink<'p>>>,
    is_used: bool,
}

impl<'p> RoutedRows<'p> {
    /// Nothing yet, for the leaves of `root` in their order.
    pub fn new(
        routing: &'p Routing,
        root: &'p Relation,
        leaves: impl Iterator<Item = (&'p TablePlan, &'p NativePlan)>,
    ) -> RoutedRows<'p> {
        RoutedRows {
            routing,
            root,
            leaves: leaves
                .map(|(table, native)| Leaf {
                    table,
                    native,
                    rows: None,
                    is_used: false,
                })
                .collect(),
            used: Vec::new(),
            bytes: 0,
        }
    }

    /// Forgets all rows. A leaf keeps its storage while every chunk has rows for it, so that there
    /// is never much more of it than rows in it.
    pub fn clear(&mut self) {
        for leaf in &mut self.leaves {
            if !std::mem::take(&mut leaf.is_used) {
                leaf.rows = None;
            }
        }
        for number in self.used.drain(..) {
            if let Some(rows) = &mut self.leaves[number].rows {
                rows.packed.clear();
            }
        }
        self.bytes = 0;
    }

    /// Bytes of the tuples so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The leaves that have rows, by number, with them.
    pub fn filled(&mut self) -> impl Iterator<Item = (usize, &mut Packed)> {
        // By the leaves' numbers, whatever order their rows came in.
        self.leaves
            .iter_mut()
            .enumerate()
            .filter(|(_, leaf)| leaf.is_used)
            .filter_map(|(number, leaf)| Some((number, &mut leaf.rows.as_mut()?.packed)))
    }

    /// Takes the row that `values` has in hand: one value for each of the root's attributes.
    pub fn take(&mut self, values: &TupleBuilder, record: &Record<'_>) -> Result<(), PackError> {
        let attribute = |number: usize| values.attribute(number);
        let number = self.routing.leaf(attribute).map_err(|refused| {
            let error = self.routing.refusal(refused, self.root, attribute);
            PackError::of_row(error, record)
        })?;
        let leaf = &mut self.leaves[number];
        if !std::mem::replace(&mut leaf.is_used, true) {
            self.used.push(number);
        }
        let rows = leaf
            .rows
            .get_or_insert_with(|| Box::new(RowSink::new(&leaf.table.relation, leaf.native)));
        rows.packed.note_line(record.first_line());
        let builder = &mut rows.packed.builder;
        let before = builder.arena().len() + rows.packed.toast.arena().len();
        builder.begin_row();
        let mut null_refused = None;
        for (index, from) in self.routing.leaf_attributes[number].iter().enumerate() {
            if let Some(stored) = from.and_then(attribute) {
                put(builder, index, stored);
                continue;
            }
            let is_refused = from.is_some() && leaf.table.relation.columns[index].not_null;
            if is_refused && null_refused.is_none() {
                null_refused = Some(index);
            }
            builder.put_null();
        }
        if let Some(index) = null_refused {
            builder.abandon_row();
            return Err(PackError::of_null(
                (&leaf.table.relation, index),
                self.root,
                values,
                record,
            ));
        }
        rows.finish_row(record)?;
        let packed = &rows.packed;
        self.bytes += packed.builder.arena().len() + packed.toast.arena().len() - before;
        Ok(())
    }
}

/// Puts a value as a leaf's attribute, which may want another varlena header than the root's.
#[inline]
fn put(builder: &mut TupleBuilder, index: usize, stored: &[u8]) {
    if builder.layout()[index].len == AttrLen::Varlena
        && varlena::form(stored) == varlena::Form::Short
    {
        builder.put_varlena(varlena::payload(stored));
    } else {
        builder.put_stored(stored);
    }
}
