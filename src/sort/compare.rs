//! Comparing formed index tuples by their keys.

use super::codec;
use super::spec::KeyDefinition;
use pgformat::btree::tuple;
use pgformat::datum::varlena;
use pgformat::layout::{AttrLen, AttributeLayout};
use std::cmp::Ordering;

/// The order of an index's tuples.
#[derive(Debug, Clone)]
pub struct TupleOrder {
    /// All attributes, INCLUDE columns too.
    pub layout: Vec<AttributeLayout>,
    /// The key columns, first attributes of `layout`.
    pub keys: Vec<KeyDefinition>,
}

impl TupleOrder {
    /// Compares the keys of two plain or posting list tuples from key column `first` on, those
    /// before it known to be equal.
    pub fn compare_from(&self, first: usize, a: &[u8], b: &[u8]) -> Ordering {
        self.pairs(a, b)
            .skip(first)
            .map(|(i, a, b)| self.compare_values(i, a, b))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// How many key attributes a pivot between two neighbours must keep: up to the first that
    /// differs, or one more than there are.
    ///
    /// PostgreSQL: `src/backend/access/nbtree/nbtutils.c`, `_bt_keep_natts`.
    pub fn keep_natts(&self, last_left: &[u8], first_right: &[u8]) -> usize {
        1 + self
            .pairs(last_left, first_right)
            .take_while(|(i, a, b)| self.compare_values(*i, *a, *b).is_eq())
            .count()
    }

    /// Whether the keys are the same bytes once uncompressed, so that the tuples can share a
    /// posting list.
    ///
    /// PostgreSQL: `_bt_keep_natts_fast`, `datum_image_eq`.
    pub fn same_image(&self, a: &[u8], b: &[u8]) -> bool {
        let plain = |t: &[u8]| tuple::size(t);
        if plain(a) == plain(b) && a[6..plain(a)] == b[6..plain(b)] {
            return true;
        }
        self.pairs(a, b).all(|(i, a, b)| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => a == b || self.is_varlena(i) && same_payload(a, b),
            _ => false,
        })
    }

    /// Whether a key attribute is null.
    pub fn has_null_key(&self, tuple: &[u8]) -> bool {
        tuple::has_null(tuple)
            && tuple::attributes(&self.layout[..self.keys.len()], tuple).any(|v| v.is_none())
    }

    /// The key attributes of two tuples side by side, with their index.
    fn pairs<'t>(
        &'t self,
        a: &'t [u8],
        b: &'t [u8],
    ) -> impl Iterator<Item = (usize, Option<&'t [u8]>, Option<&'t [u8]>)> {
        let layout = &self.layout[..self.keys.len()];
        tuple::attributes(layout, a)
            .zip(tuple::attributes(layout, b))
            .enumerate()
            .map(|(i, (a, b))| (i, a, b))
    }

    #[inline]
    fn is_varlena(&self, i: usize) -> bool {
        self.layout[i].len == AttrLen::Varlena
    }

    fn compare_values(&self, i: usize, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        let key = &self.keys[i];
        let nulls = if key.nulls_first {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => nulls,
            (Some(_), None) => nulls.reverse(),
            (Some(a), Some(b)) => {
                let order = if self.is_varlena(i) {
                    key.order.compare(&codec::plain(a), &codec::plain(b))
                } else {
                    key.order.compare(a, b)
                };
                if key.descending {
                    order.reverse()
                } else {
                    order
                }
            }
        }
    }
}

/// Whether two varlenas that differ in their bytes are one value in two forms: one compressed
/// and one plain, or each compressed by another method.
fn same_payload(a: &[u8], b: &[u8]) -> bool {
    let compressed = |v| varlena::form(v) == varlena::Form::Compressed;
    (compressed(a) || compressed(b))
        && varlena::payload(&codec::plain(a)) == varlena::payload(&codec::plain(b))
}
