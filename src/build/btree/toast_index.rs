//! The index of a TOAST table, on (chunk_id, chunk_seq): built as the chunks are placed, for
//! they are placed in its order.

use super::tree::TreeBuilder;
use super::{BuiltIndex, PageSink};
use crate::error::Result;
use crate::sort::KeyDefinition;
use crate::sort::compare::TupleOrder;
use pgformat::btree::tuple;
use pgformat::datum::order::{FixedOrder, Order};
use pgformat::ids::{Oid, Tid};
use pgformat::layout::{AttrLen, AttributeLayout, Compression, Storage};
use pgformat::version::MajorVersion;

/// btree's default fillfactor; TOAST indexes have no options.
const FILLFACTOR: u8 = 90;

/// The order of a TOAST index.
fn toast_order() -> TupleOrder {
    let int4 = AttributeLayout {
        len: AttrLen::Fixed(4),
        align: 4,
        by_value: true,
        storage: Storage::Plain,
        compression: Compression::Pglz,
    };
    let key = |order| KeyDefinition {
        order: Order::Fixed(order),
        descending: false,
        nulls_first: false,
    };
    TupleOrder {
        layout: vec![int4; 2],
        keys: vec![key(FixedOrder::Oid), key(FixedOrder::Int4)],
    }
}

/// Builds the index of a TOAST table out of its chunks in order.
///
/// The index is unique, so there are no posting lists; since 15 btm_allequalimage is set all
/// the same (14 never sets it for indexes of the system).
///
/// PostgreSQL: `src/backend/catalog/toasting.c`; `nbtutils.c`, `_bt_allequalimage`.
#[derive(Debug)]
pub struct ToastIndexBuilder<S> {
    tree: TreeBuilder<S>,
    /// A tuple whose key and TID are set anew for each chunk.
    tuple: [u8; 16],
    last: Option<(Oid, i32)>,
    tuples: u64,
}

impl<S: PageSink> ToastIndexBuilder<S> {
    /// A builder for this version, whose pages go to `sink`.
    pub fn new(version: MajorVersion, sink: S) -> ToastIndexBuilder<S> {
        let allequalimage = version.at_least(15);
        let mut tuple = [0; 16];
        tuple[6] = 16;
        ToastIndexBuilder {
            tree: TreeBuilder::new(toast_order(), FILLFACTOR, allequalimage, sink),
            tuple,
            last: None,
            tuples: 0,
        }
    }

    /// Adds the next chunk.
    ///
    /// # Errors
    /// When the sink fails.
    ///
    /// # Panics
    /// When (chunk_id, chunk_seq) is not greater than the last one's.
    pub fn add(&mut self, chunk_id: Oid, chunk_seq: i32, tid: Tid) -> Result<()> {
        let key = Some((chunk_id, chunk_seq));
        assert!(self.last < key, "chunks come in the index's order");
        self.last = key;
        self.tuples += 1;
        tuple::set_tid(&mut self.tuple, tid);
        self.tuple[8..12].copy_from_slice(&chunk_id.to_le_bytes());
        self.tuple[12..16].copy_from_slice(&chunk_seq.to_le_bytes());
        self.tree.add(&self.tuple, 0)
    }

    /// Finishes the pages and gives the sink back.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn finish(self) -> Result<(BuiltIndex, S)> {
        self.tree.finish(self.tuples)
    }
}
