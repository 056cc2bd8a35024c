//! Entries of keys whose columns are all of fixed width: numbers that hold all of the tuple.
//!
//! ```text
//! most significant word                                              least significant
//! | 0 ... | column 1: null flag 1, value | column 2: flag, value | ... | TID 48 |
//! ```
//!
//! The flag is 1 where a null (or, with NULLS FIRST, a value) stands, so that nulls come last
//! (or first); the value is the type's normal form, all bits flipped when descending, zero for
//! null. Entries are two, three or four words of 64 bits, compared as one number; the normal
//! forms are reversible, so the index tuple is made again when the page is built.

use super::spec::{ColumnDefinition, KeyDefinition};
use pgformat::btree::tuple;
use pgformat::datum::order::{FixedOrder, Order};
use pgformat::ids::Tid;
use pgformat::layout::{AttrLen, AttributeLayout, align_up, maxalign};

/// Bits of the TID at the end of each entry.
pub const TID_BITS: u32 = 48;
/// The bits of the TID in the last word.
pub const TID_MASK: u64 = (1 << TID_BITS) - 1;
/// Most words of an entry.
const MAX_WORDS: usize = 4;
/// The longest index tuple made of an entry, in bytes: 26 columns of a byte and its null flag,
/// or fewer and wider ones with padding.
const MAX_TUPLE_BYTES: usize = 256;

/// An entry: the words of one number, the most significant first.
pub type Entry<const W: usize> = [u64; W];

/// The TID of an entry.
#[inline]
pub fn tid<const W: usize>(entry: &Entry<W>) -> Tid {
    Tid::from_u64(entry[W - 1] & TID_MASK)
}

/// Whether two entries have the same key.
#[inline]
pub fn same_key<const W: usize>(a: &Entry<W>, b: &Entry<W>) -> bool {
    let mut difference = (a[W - 1] ^ b[W - 1]) & !TID_MASK;
    for i in 0..W - 1 {
        difference |= a[i] ^ b[i];
    }
    difference == 0
}

/// A key column's place in the number.
#[derive(Debug, Clone, Copy)]
struct WordColumn {
    /// The heap's attribute, from 0.
    attribute: usize,
    order: FixedOrder,
    /// Bits below the value; the null flag stands at `shift + order.bits()`.
    shift: u32,
    descending: bool,
    nulls_first: bool,
    /// Where the value lies in a tuple without nulls.
    pos: usize,
}

/// How entries are made of an index's columns and how tuples are made of entries.
#[derive(Debug, Clone)]
pub struct WordPlan {
    columns: Vec<WordColumn>,
    layout: Vec<AttributeLayout>,
    /// Words of an entry: 2, 3 or 4.
    pub words: usize,
    /// The null flags' bits, right-aligned in [`MAX_WORDS`], and how they stand without nulls.
    flags: [u64; MAX_WORDS],
    flags_without_nulls: [u64; MAX_WORDS],
    /// Size of a tuple without nulls, in bytes.
    size: usize,
}

impl WordPlan {
    /// The plan for an index, if its columns are all keys, of fixed width, and fit.
    pub fn new(columns: &[ColumnDefinition], keys: &[KeyDefinition]) -> Option<WordPlan> {
        if keys.len() != columns.len() {
            return None;
        }
        let mut plan = Vec::with_capacity(keys.len());
        let mut pos = tuple::HEADER_BYTES;
        let mut bits = TID_BITS;
        for (column, key) in columns.iter().zip(keys) {
            let Order::Fixed(order) = key.order else {
                return None;
            };
            let AttrLen::Fixed(len) = column.layout.len else {
                return None;
            };
            if !order.is_reversible() {
                return None;
            }
            pos = align_up(pos, column.layout.align as usize);
            plan.push(WordColumn {
                attribute: column.attribute,
                order,
                shift: 0,
                descending: key.descending,
                nulls_first: key.nulls_first,
                pos,
            });
            pos += len as usize;
            bits += 1 + order.bits();
        }
        if bits > MAX_WORDS as u32 * 64 {
            return None;
        }
        let words = bits.div_ceil(64).max(2) as usize;
        let mut flags = Number::default();
        let mut flags_without_nulls = Number::default();
        let mut shift = TID_BITS;
        for column in plan.iter_mut().rev() {
            column.shift = shift;
            shift += column.order.bits();
            flags.set_bit(shift);
            if column.nulls_first {
                flags_without_nulls.set_bit(shift);
            }
            shift += 1;
        }
        Some(WordPlan {
            columns: plan,
            layout: columns.iter().map(|c| c.layout).collect(),
            words,
            flags: flags.words(),
            flags_without_nulls: flags_without_nulls.words(),
            size: maxalign(pos),
        })
    }

    /// The entry of a row, its TID zero.
    #[inline]
    pub(super) fn entry<'v, const W: usize>(
        &self,
        attribute: &impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Entry<W> {
        let mut number = Number::default();
        for column in &self.columns {
            let bits = column.order.bits();
            let (is_null, value) = match attribute(column.attribute) {
                None => (true, 0),
                Some(stored) => {
                    let mut normal = column.order.normalise(stored);
                    if column.descending {
                        normal ^= u128::MAX >> (128 - bits);
                    }
                    (false, normal)
                }
            };
            number.push((is_null ^ column.nulls_first) as u128, 1, W > 2);
            number.push(value, bits, W > 2);
        }
        number.push(0, TID_BITS, W > 2);
        number.entry()
    }

    /// Whether a key column of the entry is null.
    #[inline]
    pub fn has_null<const W: usize>(&self, entry: &Entry<W>) -> bool {
        let skip = MAX_WORDS - W;
        let mut difference = 0;
        for (i, word) in entry.iter().enumerate() {
            difference |= word & self.flags[skip + i] ^ self.flags_without_nulls[skip + i];
        }
        difference != 0
    }

    /// A maker of tuples.
    pub fn tuples(&self) -> WordTuples<'_> {
        let mut formed = [0; MAX_TUPLE_BYTES];
        let info = self.size as u16;
        formed[6..8].copy_from_slice(&info.to_le_bytes());
        WordTuples {
            plan: self,
            formed,
            with_nulls: Vec::new(),
        }
    }
}

/// Makes index tuples of entries.
#[derive(Debug)]
pub struct WordTuples<'p> {
    plan: &'p WordPlan,
    /// The last tuple without nulls; its header's size and its padding stay.
    formed: [u8; MAX_TUPLE_BYTES],
    /// The last tuple with nulls.
    with_nulls: Vec<u8>,
}

impl WordTuples<'_> {
    /// The plain index tuple of an entry.
    #[inline]
    pub fn tuple<const W: usize>(&mut self, entry: &Entry<W>) -> &[u8] {
        if self.plan.has_null(entry) {
            return self.tuple_with_nulls(entry);
        }
        let number = Number::from_entry(entry);
        for column in &self.plan.columns {
            let normal = number.get(column, W > 2);
            column.order.restore(normal, &mut self.formed[column.pos..]);
        }
        tuple::set_tid(&mut self.formed, tid(entry));
        &self.formed[..self.plan.size]
    }

    #[cold]
    fn tuple_with_nulls<const W: usize>(&mut self, entry: &Entry<W>) -> &[u8] {
        let number = Number::from_entry(entry);
        let mut bytes = [[0u8; 16]; tuple::INDEX_MAX_KEYS];
        let mut lens = [None; tuple::INDEX_MAX_KEYS];
        for (i, column) in self.plan.columns.iter().enumerate() {
            let flag = number.bit(column.shift + column.order.bits());
            if flag == column.nulls_first {
                let normal = number.get(column, true);
                lens[i] = Some(column.order.restore(normal, &mut bytes[i]));
            }
        }
        self.with_nulls.clear();
        tuple::form(
            &self.plan.layout,
            |i| lens[i].map(|len| &bytes[i][..len]),
            &mut self.with_nulls,
        );
        tuple::set_tid(&mut self.with_nulls, tid(entry));
        &self.with_nulls
    }
}

/// A number of up to 256 bits. With `wide` false only the low half is looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    hi: u128,
    lo: u128,
}

impl Number {
    /// Appends `bits` (1 to 128) at the low end.
    #[inline(always)]
    fn push(&mut self, value: u128, bits: u32, wide: bool) {
        if wide {
            if bits == 128 {
                self.hi = self.lo;
                self.lo = value;
                return;
            }
            self.hi = self.hi << bits | self.lo >> (128 - bits);
        }
        self.lo = self.lo << bits | value;
    }

    #[inline(always)]
    fn get(&self, column: &WordColumn, wide: bool) -> u128 {
        let shift = column.shift;
        let mut value = if wide && shift >= 128 {
            self.hi >> (shift - 128)
        } else if wide {
            // Below every column stands the TID, so the shift is not 0.
            self.lo >> shift | self.hi << (128 - shift)
        } else {
            self.lo >> shift
        };
        if column.descending {
            value = !value;
        }
        value & u128::MAX >> (128 - column.order.bits())
    }

    fn set_bit(&mut self, bit: u32) {
        if bit >= 128 {
            self.hi |= 1 << (bit - 128);
        } else {
            self.lo |= 1 << bit;
        }
    }

    fn bit(&self, bit: u32) -> bool {
        let half = if bit >= 128 { self.hi } else { self.lo };
        half >> (bit % 128) & 1 == 1
    }

    fn words(self) -> [u64; MAX_WORDS] {
        [
            (self.hi >> 64) as u64,
            self.hi as u64,
            (self.lo >> 64) as u64,
            self.lo as u64,
        ]
    }

    #[inline(always)]
    fn entry<const W: usize>(self) -> Entry<W> {
        let words = self.words();
        std::array::from_fn(|i| words[MAX_WORDS - W + i])
    }

    #[inline(always)]
    fn from_entry<const W: usize>(entry: &Entry<W>) -> Number {
        let word = |from_end: usize| {
            if from_end <= W {
                entry[W - from_end] as u128
            } else {
                0
            }
        };
        Number {
            hi: word(4) << 64 | word(3),
            lo: word(2) << 64 | word(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgformat::layout::{Compression, Storage};
    use proptest::prelude::*;

    fn column(attribute: usize, len: u16, align: u8) -> ColumnDefinition {
        ColumnDefinition {
            attribute,
            layout: AttributeLayout {
                len: AttrLen::Fixed(len),
                align,
                by_value: true,
                storage: Storage::Plain,
                compression: Compression::Pglz,
            },
        }
    }

    fn key(order: FixedOrder, descending: bool, nulls_first: bool) -> KeyDefinition {
        KeyDefinition {
            order: Order::Fixed(order),
            descending,
            nulls_first,
        }
    }

    #[test]
    fn an_integer_and_its_tid_take_two_words() {
        let plan = WordPlan::new(&[column(0, 4, 4)], &[key(FixedOrder::Int4, false, false)])
            .expect("int4 is of fixed width");
        assert_eq!(plan.words, 2);
        let entry: Entry<2> = plan.entry(&|_| Some(&[5, 0, 0, 0][..]));
        assert_eq!(entry, [0x8000, 0x0005_0000_0000_0000]);
        let null: Entry<2> = plan.entry(&|_| None);
        assert_eq!(null, [0x1_0000, 0]);
        assert!(plan.has_null(&null) && !plan.has_null(&entry));
    }

    proptest! {
        /// A uuid, an int8 descending with nulls first, a bool: 255 bits with the TID at most.
        #[test]
        fn tuples_come_back_from_entries(
            a in proptest::option::of(any::<[u8; 16]>()),
            b in proptest::option::of(any::<i64>()),
            block: u32,
            offset: u16,
        ) {
            let columns = [column(1, 16, 1), column(0, 8, 8)];
            let keys = [key(FixedOrder::Uuid, false, false), key(FixedOrder::Int8, true, true)];
            let plan = WordPlan::new(&columns, &keys).expect("they fit");
            prop_assert_eq!(plan.words, 4);
            let b_bytes = b.map(i64::to_le_bytes);
            let value = |i: usize| if i == 1 {
                a.as_ref().map(|v| &v[..])
            } else {
                b_bytes.as_ref().map(|v| &v[..])
            };
            let mut entry: Entry<4> = plan.entry(&value);
            let tid = Tid { block, offset };
            entry[3] |= tid.to_u64();
            let mut expected = Vec::new();
            tuple::form(&plan.layout, |i| value(1 - i), &mut expected);
            tuple::set_tid(&mut expected, tid);
            let mut tuples = plan.tuples();
            prop_assert_eq!(tuples.tuple(&entry), &expected[..]);
            prop_assert_eq!(plan.has_null(&entry), a.is_none() || b.is_none());
        }
    }
}
