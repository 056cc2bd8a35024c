//! What the sorter knows of an index, and how a row's keys are taken.

use super::buckets::Ties;
use super::codec;
use super::compare::TupleOrder;
use super::records::{PrefixPlan, RecordEntry, Records};
use super::words::{Entry, WordPlan};
use crate::error::ValueError;
use pgformat::btree::{page, tuple};
use pgformat::datum::order::Order;
use pgformat::datum::varlena;
use pgformat::layout::{AttrLen, AttributeLayout};
use pgformat::toast::compress::Compressors;
use std::borrow::Cow;

/// A key column.
#[derive(Debug, Clone)]
pub struct KeyDefinition {
    /// The operator class's order.
    pub order: Order,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// A column, key or INCLUDE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// The heap's attribute, from 0.
    pub attribute: usize,
    /// The layout of the index's own attribute.
    pub layout: AttributeLayout,
}

/// A btree index, as far as building it goes.
#[derive(Debug, Clone)]
pub struct IndexDefinition {
    /// Name, for messages.
    pub name: String,
    /// Equal keys are refused.
    pub unique: bool,
    /// Nulls are equal to each other in a unique index.
    pub nulls_not_distinct: bool,
    /// Of leaf pages, in percent.
    pub fillfactor: u8,
    /// The storage parameter deduplicate_items.
    pub deduplicate_items: bool,
    /// btm_allequalimage as the server sets it.
    pub allequalimage: bool,
    /// Key columns, then INCLUDE columns; 1 to 32.
    pub columns: Vec<ColumnDefinition>,
    /// The key columns' orders.
    pub keys: Vec<KeyDefinition>,
}

/// An index that is built natively, resolved.
#[derive(Debug, Clone)]
pub struct IndexSpec {
    pub(super) plan: KeyPlan,
    pub(super) heap_attributes: Vec<usize>,
    pub(super) order: TupleOrder,
    definition: IndexDefinition,
}

/// How entries are made.
#[derive(Debug, Clone)]
pub(super) enum KeyPlan {
    Words(WordPlan),
    Records(PrefixPlan),
}

impl IndexSpec {
    /// Resolves an index.
    ///
    /// # Panics
    /// When there are more columns than an index can have, no key column, or more keys than
    /// columns.
    pub fn new(definition: IndexDefinition) -> IndexSpec {
        let columns = &definition.columns;
        let keys = &definition.keys;
        assert!((1..=tuple::INDEX_MAX_KEYS).contains(&columns.len()));
        assert!((1..=columns.len()).contains(&keys.len()));
        IndexSpec {
            plan: match WordPlan::new(columns, keys) {
                Some(plan) => KeyPlan::Words(plan),
                None => KeyPlan::Records(PrefixPlan::new(keys)),
            },
            heap_attributes: columns.iter().map(|c| c.attribute).collect(),
            order: TupleOrder {
                layout: columns.iter().map(|c| c.layout).collect(),
                keys: keys.clone(),
            },
            definition,
        }
    }

    /// The index as it was defined.
    pub fn definition(&self) -> &IndexDefinition {
        &self.definition
    }

    /// How records of one prefix are told apart.
    pub(super) fn ties(&self) -> Ties {
        match &self.plan {
            KeyPlan::Records(plan) => Ties {
                whole: plan.whole,
                known_bytes: plan.known_bytes(),
            },
            KeyPlan::Words(_) => Ties {
                whole: 0,
                known_bytes: 0,
            },
        }
    }

    /// The order of its tuples.
    pub fn order(&self) -> &TupleOrder {
        &self.order
    }

    /// How entries of words are made; the sorter gives such entries for such a plan alone.
    ///
    /// # Panics
    /// When entries are records.
    pub(crate) fn word_plan(&self) -> &WordPlan {
        match &self.plan {
            KeyPlan::Words(plan) => plan,
            KeyPlan::Records(_) => panic!("the entries of this index are records"),
        }
    }

    /// Whether equal keys share posting lists.
    ///
    /// PostgreSQL: `src/backend/access/nbtree/nbtsort.c`, `_bt_load`.
    pub fn deduplicates(&self) -> bool {
        let d = &self.definition;
        d.allequalimage && d.deduplicate_items && !d.unique
    }

    /// An empty buffer; `make_compressors` is called when a value must first be compressed.
    pub(crate) fn buffer_with(&self, make_compressors: fn() -> Compressors) -> KeyBuffer {
        KeyBuffer {
            rows: match &self.plan {
                KeyPlan::Words(plan) if plan.words == 2 => Rows::Two(Vec::new()),
                KeyPlan::Words(plan) if plan.words == 3 => Rows::Three(Vec::new()),
                KeyPlan::Words(_) => Rows::Four(Vec::new()),
                KeyPlan::Records(_) => Rows::Records(Records::default()),
            },
            compressors: LazyCompressors {
                make: make_compressors,
                made: None,
            },
        }
    }

    /// Takes the keys of one row, whose TID is not yet known.
    ///
    /// `attribute` gives the heap tuple's attributes (from 0) in stored form, as they will lie
    /// in the heap, but for TOAST pointers: in place of these the value that they point to, in
    /// its plain or compressed form with a 4-byte header. A `name` is its 64 bytes.
    ///
    /// # Errors
    /// SQLSTATE 54000 when the index tuple is too large; nothing is taken then. The server's
    /// DETAIL (`page::too_large_detail`) is the caller's, who knows the TID to be.
    ///
    /// # Panics
    /// When a value is a TOAST pointer.
    #[inline]
    pub fn extract<'v>(
        &self,
        attribute: impl Fn(usize) -> Option<&'v [u8]>,
        buffer: &mut KeyBuffer,
    ) -> Result<(), Box<ValueError>> {
        match (&self.plan, &mut buffer.rows) {
            (KeyPlan::Words(plan), Rows::Two(rows)) => rows.push(plan.entry(&attribute)),
            (KeyPlan::Words(plan), Rows::Three(rows)) => rows.push(plan.entry(&attribute)),
            (KeyPlan::Words(plan), Rows::Four(rows)) => rows.push(plan.entry(&attribute)),
            (KeyPlan::Records(plan), Rows::Records(rows)) => {
                return self.extract_record(plan, attribute, rows, &mut buffer.compressors);
            }
            _ => panic!("a key buffer of another index"),
        }
        Ok(())
    }

    fn extract_record<'v>(
        &self,
        plan: &PrefixPlan,
        attribute: impl Fn(usize) -> Option<&'v [u8]>,
        rows: &mut Records,
        compressors: &mut LazyCompressors,
    ) -> Result<(), Box<ValueError>> {
        let mut values: [Option<&[u8]>; tuple::INDEX_MAX_KEYS] = [None; _];
        let mut to_compress = 0u32;
        let layout = &self.order.layout[..];
        for (i, attribute_index) in self.heap_attributes.iter().enumerate() {
            let Some(mut stored) = attribute(*attribute_index) else {
                continue;
            };
            if layout[i].len == AttrLen::CString {
                let nul = stored.iter().position(|b| *b == 0);
                stored = &stored[..=nul.expect("a name has a NUL")];
            } else if tuple::wants_compression(&layout[i], stored) {
                to_compress |= 1 << i;
            }
            values[i] = Some(stored);
        }
        let pos = rows.arena.len();
        let size = if to_compress == 0 {
            tuple::form(layout, |i| values[i], &mut rows.arena)
        } else {
            let compressors = compressors.get();
            let compressed: [Option<Vec<u8>>; tuple::INDEX_MAX_KEYS] = std::array::from_fn(|i| {
                let stored = values[i].filter(|_| to_compress >> i & 1 == 1)?;
                let payload = &stored[varlena::HEADER_BYTES..];
                let mut out = Vec::new();
                compressors
                    .compress(payload, layout[i].compression, &mut out)
                    .then_some(out)
            });
            let value = |i: usize| compressed[i].as_deref().or(values[i]);
            tuple::form(layout, value, &mut rows.arena)
        };
        if size > page::MAX_ITEM_BYTES {
            rows.arena.truncate(pos);
            return Err(self.too_large(size));
        }
        let prefix = plan.prefix(&self.order.keys, |i| {
            values[i].map(|stored| match layout[i].len {
                AttrLen::Varlena => codec::plain(stored),
                _ => Cow::Borrowed(stored),
            })
        });
        rows.entries.push(RecordEntry {
            prefix,
            chunk: 0,
            pos: u32::try_from(pos).expect("a worker's keys stay below 4 GB"),
        });
        Ok(())
    }

    /// PostgreSQL: `index_form_tuple`, `_bt_check_third_page`.
    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "ValueError travels boxed")]
    fn too_large(&self, size: usize) -> Box<ValueError> {
        if size > tuple::MAX_SIZE_BYTES {
            return ValueError::new("54000", page::too_long_message(size));
        }
        ValueError::new(
            "54000",
            page::too_large_message(size, &self.definition.name),
        )
        .with_hint(page::TOO_LARGE_HINT)
    }
}

impl IndexSpec {
    /// Bytes of the plain index tuples of all rows in `buffer`.
    pub fn tuple_bytes(&self, buffer: &KeyBuffer) -> u64 {
        fn of_words<const W: usize>(plan: &WordPlan, rows: &[Entry<W>]) -> u64 {
            let mut tuples = plan.tuples();
            rows.iter().map(|e| tuples.tuple(e).len() as u64).sum()
        }
        match &buffer.rows {
            Rows::Two(rows) => of_words(self.word_plan(), rows),
            Rows::Three(rows) => of_words(self.word_plan(), rows),
            Rows::Four(rows) => of_words(self.word_plan(), rows),
            Rows::Records(rows) => rows.arena.len() as u64,
        }
    }
}

/// The keys of rows whose TIDs are not yet known, in the rows' order.
pub struct KeyBuffer {
    pub(super) rows: Rows,
    compressors: LazyCompressors,
}

/// Compressors that come into being when they are first needed: they take some memory, and
/// values so long are rare in indexes.
struct LazyCompressors {
    make: fn() -> Compressors,
    made: Option<Box<Compressors>>,
}

impl LazyCompressors {
    fn get(&mut self) -> &mut Compressors {
        self.made.get_or_insert_with(|| Box::new((self.make)()))
    }
}

/// The rows of a buffer.
#[derive(Debug)]
pub(super) enum Rows {
    Two(Vec<Entry<2>>),
    Three(Vec<Entry<3>>),
    Four(Vec<Entry<4>>),
    Records(Records),
}

impl KeyBuffer {
    /// How many rows it holds.
    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::Two(rows) => rows.len(),
            Rows::Three(rows) => rows.len(),
            Rows::Four(rows) => rows.len(),
            Rows::Records(rows) => rows.entries.len(),
        }
    }

    /// Whether it holds no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes back all rows after the first `len`, as when a row turns out to be refused.
    pub fn truncate(&mut self, len: usize) {
        match &mut self.rows {
            Rows::Two(rows) => rows.truncate(len),
            Rows::Three(rows) => rows.truncate(len),
            Rows::Four(rows) => rows.truncate(len),
            Rows::Records(rows) => {
                if let Some(first_gone) = rows.entries.get(len) {
                    rows.arena.truncate(first_gone.pos as usize);
                    rows.entries.truncate(len);
                }
            }
        }
    }
}

impl std::fmt::Debug for KeyBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyBuffer")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
