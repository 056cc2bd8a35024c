//! Entries of all other keys: a prefix of the normal form and the formed tuple.
//!
//! The prefix is the head of the key columns' normal forms, with a null flag before each as in
//! [`super::words`], in 128 bits: as many whole columns as fit, then the head of the next. When
//! two prefixes differ they order as the tuples do; else the tuples are compared from the first
//! column that is not whole in the prefix.
//!
//! Under a locale of libc the prefix is strxfrm's, whose promise to order as strcoll does is
//! not taken on trust: each record is compared with its neighbour once more when all are sorted
//! ([`super::sorter`]). As strcoll is transitive, that proves the whole order.

use super::compare::TupleOrder;
use super::spec::KeyDefinition;
use pgformat::btree::tuple;
use std::cmp::Ordering;

/// Bytes of the prefix.
pub const PREFIX_BYTES: usize = 16;
const PREFIX_BITS: u32 = 128;

/// The prefix, as one number.
pub type Prefix = u128;

/// A key column's part in the prefix.
#[derive(Debug, Clone, Copy)]
struct PrefixColumn {
    /// Bits of its value.
    bits: u32,
    descending: bool,
    nulls_first: bool,
}

/// How prefixes are made of an index's key columns.
#[derive(Debug, Clone)]
pub struct PrefixPlan {
    columns: Vec<PrefixColumn>,
    /// Bits left at the low end.
    unused: u32,
    /// How many key columns are whole in the prefix.
    pub whole: usize,
    /// Whether records certainly order as their prefixes do.
    pub proven: bool,
}

impl PrefixPlan {
    /// The plan for these key columns.
    pub fn new(keys: &[KeyDefinition]) -> PrefixPlan {
        let mut columns = Vec::new();
        let mut left = PREFIX_BITS;
        let mut whole = 0;
        let mut proven = true;
        for key in keys {
            if left < 2 {
                break;
            }
            left -= 1;
            let whole_bits = key.order.whole_bits();
            let bits = if key.order.has_prefix() {
                whole_bits.unwrap_or(left).min(left)
            } else {
                0
            };
            left -= bits;
            proven &= bits == 0 || key.order.prefix_is_proven();
            columns.push(PrefixColumn {
                bits,
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
            if whole_bits != Some(bits) {
                break;
            }
            whole += 1;
        }
        PrefixPlan {
            columns,
            unused: left,
            whole,
            proven,
        }
    }

    /// Bytes of the first column that is not whole which the prefix has.
    pub(super) fn known_bytes(&self) -> usize {
        self.columns
            .get(self.whole)
            .map_or(0, |column| column.bits as usize / 8)
    }

    /// The prefix of a row, given its key columns in stored form, varlenas plain.
    #[inline]
    pub(super) fn prefix<'v>(
        &self,
        keys: &[KeyDefinition],
        value: impl Fn(usize) -> Option<std::borrow::Cow<'v, [u8]>>,
    ) -> Prefix {
        let mut prefix = 0;
        for (i, (column, key)) in self.columns.iter().zip(keys).enumerate() {
            let stored = value(i);
            let flag = stored.is_none() ^ column.nulls_first;
            prefix = prefix << 1 | flag as u128;
            if column.bits == 0 {
                continue;
            }
            let mut normal = 0;
            if let Some(stored) = stored {
                normal = key.order.prefix(&stored, column.bits);
                if column.descending {
                    normal ^= u128::MAX >> (128 - column.bits);
                }
            }
            prefix = prefix << column.bits | normal;
        }
        if self.unused == 0 {
            prefix
        } else {
            // At least the flag was put, so less than 128 are left.
            prefix << self.unused
        }
    }
}

/// The total order of records: prefix, key columns, TID.
#[inline]
pub fn compare(
    order: &TupleOrder,
    whole: usize,
    (a_prefix, a): (Prefix, &[u8]),
    (b_prefix, b): (Prefix, &[u8]),
) -> Ordering {
    a_prefix
        .cmp(&b_prefix)
        .then_with(|| order.compare_from(whole, a, b))
        .then_with(|| tuple::tid(a).cmp(&tuple::tid(b)))
}

/// Records of a worker or of a chunk.
#[derive(Debug, Default)]
pub struct Records {
    pub(super) entries: Vec<RecordEntry>,
    /// The tuples one after the other.
    pub(super) arena: Vec<u8>,
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordEntry {
    pub(super) prefix: Prefix,
    /// The chunk it lies in; 0 until chunks are brought together.
    pub(super) chunk: u32,
    /// Where the tuple begins in the chunk's arena.
    pub(super) pos: u32,
}

impl Records {
    /// Bytes of memory in use.
    pub(super) fn used_bytes(&self) -> usize {
        self.entries.len() * size_of::<RecordEntry>() + self.arena.len()
    }

    /// The tuple of an entry.
    #[inline]
    pub(super) fn tuple(&self, entry: &RecordEntry) -> &[u8] {
        let from = &self.arena[entry.pos as usize..];
        &from[..tuple::size(from)]
    }
}
