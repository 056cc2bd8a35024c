//! The order of values, as the btree operator classes of the core define it.
//!
//! Values are compared in stored form. Beside the comparison there is a normal form: bits that,
//! compared as an unsigned number, order as the values do. Of a type of fixed width it is whole;
//! of others it is a prefix, and a tie asks for the comparison.
//!
//! ```text
//! int4  -2         7f ff ff fe         sign bit flipped, big-endian
//! float8 -0 and 0  80 00 .. 00         negative: all bits flipped; one NaN above all
//! text  "abc"      61 62 63 00 ..      the bytes, zeros after; only where bytes are the order
//! numeric 1.5      3 | weight | digits see `prefix::numeric`
//! ```

mod fixed;
mod prefix;

pub use fixed::FixedOrder;

use super::array::{Array, ElementLayout};
use super::network::Address;
use super::{bits, jsonb, numeric, varlena};
use crate::ids::Oid;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

/// The order that a locale gives to strings, ties not yet broken.
pub trait Collate: Debug + Send + Sync {
    /// What strcoll says of two strings (no NUL inside, none at the end).
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// The first 16 bytes of what strxfrm makes of a string, zeros after its end, as a number.
    /// It should order as the strings do, but libraries have failed in that: see
    /// [`Order::prefix_is_proven`].
    fn prefix(&self, s: &[u8]) -> u128;
}

/// How strings are ordered.
#[derive(Debug, Clone)]
pub enum TextOrder {
    /// By their bytes: C, POSIX, the builtin provider, the `*_pattern_ops` classes.
    Bytes,
    /// By a locale of libc, ties by their bytes (deterministic collations).
    Locale(Arc<dyn Collate>),
}

impl TextOrder {
    /// PostgreSQL: `src/backend/utils/adt/varlena.c`, `varstr_cmp`.
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            TextOrder::Bytes => a.cmp(b),
            TextOrder::Locale(_) if a == b => Ordering::Equal,
            TextOrder::Locale(locale) => locale.compare(a, b).then_with(|| a.cmp(b)),
        }
    }

    #[inline]
    fn prefix(&self, s: &[u8]) -> u128 {
        match self {
            TextOrder::Bytes => prefix::bytes(s),
            TextOrder::Locale(locale) => locale.prefix(s),
        }
    }
}

/// The order of a btree operator class.
#[derive(Debug, Clone)]
pub enum Order {
    /// A type of fixed width.
    Fixed(FixedOrder),
    /// `numeric_ops`.
    Numeric,
    /// `jsonb_ops`; strings in it compare as the database's default collation has it.
    Jsonb(TextOrder),
    /// `bytea_ops`.
    Bytea,
    /// `bit_ops`, `varbit_ops`.
    Bits,
    /// `inet_ops`, `cidr_ops`.
    Network,
    /// `text_ops`, `varchar_ops`, `text_pattern_ops`, `varchar_pattern_ops`.
    Text(TextOrder),
    /// `bpchar_ops`, `bpchar_pattern_ops`: spaces at the end do not count.
    Bpchar(TextOrder),
    /// `name_ops`, of values stored as C strings.
    Name(TextOrder),
    /// `enum_ops` of a type whose labels do not order as their OIDs do.
    Enum(EnumOrder),
    /// `array_ops`.
    Array(Arc<ArrayOrder>),
}

/// The order of an enum's labels.
///
/// PostgreSQL: `src/backend/utils/adt/enum.c`, `enum_cmp_internal`.
#[derive(Debug, Clone)]
pub struct EnumOrder {
    /// Each label's OID with its rank, by OID.
    ranks: Arc<[(Oid, u32)]>,
}

impl EnumOrder {
    /// The order of labels of these OIDs, given in it.
    pub fn new(labels: impl Iterator<Item = Oid>) -> EnumOrder {
        let mut ranks: Vec<(Oid, u32)> = labels.zip(0..).collect();
        ranks.sort_unstable();
        EnumOrder {
            ranks: ranks.into(),
        }
    }

    /// # Panics
    /// When there is no such label.
    #[inline]
    fn rank(&self, stored: &[u8]) -> u32 {
        let label = Oid::from_le_bytes(stored.try_into().expect("an enum has four bytes"));
        let at = self.ranks.binary_search_by_key(&label, |(oid, _)| *oid);
        self.ranks[at.expect("a label of the enum")].1
    }
}

/// The order of an array type.
#[derive(Debug)]
pub struct ArrayOrder {
    /// The default order of the element's type.
    pub element: Order,
    /// How elements lie in it.
    pub layout: ElementLayout,
}

impl ArrayOrder {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let read = |stored| Array::read(varlena::payload(stored)).expect("a stored array");
        read(a).compare(&read(b), self.layout, |a, b| self.element.compare(a, b))
    }
}

impl Order {
    /// The order of two values in stored form; varlenas plain, with their header.
    ///
    /// # Panics
    /// On bytes that are no value of the type.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Fixed(fixed) => fixed.normalise(a).cmp(&fixed.normalise(b)),
            Order::Numeric => numeric::compare(varlena::payload(a), varlena::payload(b)),
            Order::Jsonb(text) => {
                jsonb::compare(varlena::payload(a), varlena::payload(b), |a, b| {
                    text.compare(a, b)
                })
            }
            Order::Bytea => varlena::payload(a).cmp(varlena::payload(b)),
            Order::Bits => bits::compare(varlena::payload(a), varlena::payload(b)),
            Order::Network => address(a).key().cmp(&address(b).key()),
            Order::Text(text) => text.compare(varlena::payload(a), varlena::payload(b)),
            Order::Bpchar(text) => text.compare(
                without_end_spaces(varlena::payload(a)),
                without_end_spaces(varlena::payload(b)),
            ),
            Order::Name(text) => text.compare(without_nul(a), without_nul(b)),
            Order::Enum(labels) => labels.rank(a).cmp(&labels.rank(b)),
            Order::Array(array) => array.compare(a, b),
        }
    }

    /// How many bits the whole normal form takes, where there is one that decides the order.
    pub fn whole_bits(&self) -> Option<u32> {
        match self {
            Order::Fixed(fixed) => Some(fixed.bits()),
            Order::Enum(_) => Some(u32::BITS),
            _ => None,
        }
    }

    /// Whether [`Order::prefix`] says anything.
    pub fn has_prefix(&self) -> bool {
        !matches!(self, Order::Jsonb(_) | Order::Array(_))
    }

    /// Whether values certainly order as their prefixes do. Under a locale that is strxfrm's
    /// promise only: what is sorted by such prefixes must be looked through by
    /// [`Order::compare`] once, neighbour by neighbour.
    pub fn prefix_is_proven(&self) -> bool {
        !matches!(
            self,
            Order::Text(TextOrder::Locale(_))
                | Order::Bpchar(TextOrder::Locale(_))
                | Order::Name(TextOrder::Locale(_))
        )
    }

    /// The first `bits` (up to 128) bits of the normal form of a value in stored form, as a
    /// number below `1 << bits`: when two differ, they order as the values do (see
    /// [`Order::prefix_is_proven`]).
    ///
    /// # Panics
    /// On bytes that are no value of the type.
    #[inline]
    pub fn prefix(&self, stored: &[u8], bits: u32) -> u128 {
        debug_assert!(bits <= 128);
        if bits == 0 || !self.has_prefix() {
            return 0;
        }
        let all = match self {
            Order::Fixed(fixed) => fixed.normalise(stored) << (128 - fixed.bits()),
            Order::Numeric => prefix::numeric(varlena::payload(stored)),
            Order::Bytea => prefix::bytes(varlena::payload(stored)),
            Order::Bits => prefix::bytes(&varlena::payload(stored)[bits::LENGTH_BYTES..]),
            Order::Network => address(stored).prefix(),
            Order::Text(text) => text.prefix(varlena::payload(stored)),
            Order::Bpchar(text) => text.prefix(without_end_spaces(varlena::payload(stored))),
            Order::Name(text) => text.prefix(without_nul(stored)),
            Order::Enum(labels) => u128::from(labels.rank(stored)) << (128 - u32::BITS),
            Order::Jsonb(_) | Order::Array(_) => 0,
        };
        all >> (128 - bits)
    }
}

impl Order {
    /// The 16 bytes after the first `skip_bytes` of a value in stored form, as a number: when
    /// the bytes before them are equal and two such numbers differ, they order as the values
    /// do. `None` for types whose order is not that of their bytes.
    #[inline]
    pub fn bytes_after(&self, stored: &[u8], skip_bytes: usize) -> Option<u128> {
        if !self.prefix_is_proven() {
            return None;
        }
        let bytes = match self {
            Order::Fixed(_)
            | Order::Numeric
            | Order::Bits
            | Order::Network
            | Order::Jsonb(_)
            | Order::Enum(_)
            | Order::Array(_) => return None,
            // What stands for a null.
            _ if stored.is_empty() => stored,
            Order::Bytea | Order::Text(_) => varlena::payload(stored),
            Order::Bpchar(_) => without_end_spaces(varlena::payload(stored)),
            Order::Name(_) => without_nul(stored),
        };
        Some(prefix::bytes(&bytes[skip_bytes.min(bytes.len())..]))
    }
}

fn address(stored: &[u8]) -> Address {
    Address::read(varlena::payload(stored)).expect("a stored address")
}

/// PostgreSQL: `src/backend/utils/adt/varchar.c`, `bcTruelen`.
fn without_end_spaces(s: &[u8]) -> &[u8] {
    let end = s
        .iter()
        .rposition(|b| *b != b' ')
        .map_or(0, |last| last + 1);
    &s[..end]
}

/// A C string up to its NUL.
fn without_nul(s: &[u8]) -> &[u8] {
    let end = s.iter().position(|b| *b == 0).unwrap_or(s.len());
    &s[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn short(payload: &[u8]) -> Vec<u8> {
        let mut v = vec![varlena::short_header(payload.len() + 1)];
        v.extend_from_slice(payload);
        v
    }

    #[test]
    fn spaces_at_the_end_of_a_bpchar_do_not_count() {
        let order = Order::Bpchar(TextOrder::Bytes);
        assert_eq!(order.compare(&short(b"a  "), &short(b"a")), Ordering::Equal);
        assert_eq!(order.compare(&short(b"   "), &short(b"")), Ordering::Equal);
        assert_eq!(
            order.compare(&short(b"a b"), &short(b"a")),
            Ordering::Greater
        );
        assert_eq!(
            order.prefix(&short(b"a  "), 64),
            order.prefix(&short(b"a"), 64)
        );
    }

    #[test]
    fn labels_order_by_their_rank() {
        let order = Order::Enum(EnumOrder::new([16_386, 16_391, 16_388].into_iter()));
        let stored = |oid: u32| oid.to_le_bytes();
        assert!(order.compare(&stored(16_391), &stored(16_388)).is_lt());
        assert_eq!(order.prefix(&stored(16_388), 32), 2);
    }

    #[test]
    fn a_name_ends_at_its_nul() {
        let order = Order::Name(TextOrder::Bytes);
        assert_eq!(order.compare(b"ab\0", b"abc\0"), Ordering::Less);
        assert_eq!(order.prefix(b"ab\0", 24), 0x61_6200);
    }

    proptest! {
        #[test]
        fn the_bytes_behind_equal_prefixes_order_as_the_values_do(
            a in proptest::collection::vec(0u8..3, 0..24),
            b in proptest::collection::vec(0u8..3, 0..24),
            skip_bytes in 0usize..6,
        ) {
            let order = Order::Text(TextOrder::Bytes);
            let (a, b) = (short(&a), short(&b));
            let bits = skip_bytes as u32 * 8;
            if order.prefix(&a, bits) == order.prefix(&b, bits) {
                let after = |v: &[u8]| order.bytes_after(v, skip_bytes).unwrap();
                let by_bytes = after(&a).cmp(&after(&b));
                prop_assert!(by_bytes.is_eq() || by_bytes == order.compare(&a, &b));
            }
        }

        #[test]
        fn bytes_that_differ_in_their_prefix_order_by_it(
            a in proptest::collection::vec(0u8..4, 0..20),
            b in proptest::collection::vec(0u8..4, 0..20),
            bits in 0u32..=128,
        ) {
            let order = Order::Bytea;
            let (a, b) = (short(&a), short(&b));
            let by_prefix = order.prefix(&a, bits).cmp(&order.prefix(&b, bits));
            prop_assert!(by_prefix.is_eq() || by_prefix == order.compare(&a, &b));
        }
    }
}
