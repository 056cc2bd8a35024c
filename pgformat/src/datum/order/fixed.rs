//! Types of fixed width: their normal form is whole.

/// The order of a type of fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixedOrder {
    /// `bool_ops`, `char_ops`: a byte without sign.
    Byte,
    /// `int2_ops`.
    Int2,
    /// `int4_ops`, `date_ops`.
    Int4,
    /// `int8_ops`, `time_ops`, `timestamp_ops`, `timestamptz_ops`.
    Int8,
    /// `oid_ops`.
    Oid,
    /// `float4_ops`: -0 equals 0, NaN equals NaN and is above all.
    Float4,
    /// `float8_ops`.
    Float8,
    /// `timetz_ops`: by the time at Greenwich, then by zone.
    TimeTz,
    /// `interval_ops`: by the span in microseconds, a month of 30 days of 24 hours.
    Interval,
    /// `uuid_ops`.
    Uuid,
}

const USECS_PER_SEC: i64 = 1_000_000;
const USECS_PER_DAY: i128 = 86_400_000_000;
const DAYS_PER_MONTH: i64 = 30;

impl FixedOrder {
    /// Bits of the normal form.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            FixedOrder::Byte => 8,
            FixedOrder::Int2 => 16,
            FixedOrder::Int4 | FixedOrder::Oid | FixedOrder::Float4 => 32,
            FixedOrder::Int8 | FixedOrder::Float8 => 64,
            // The longest span, 2^31 months and days, is below 2^73.
            FixedOrder::Interval => 80,
            FixedOrder::TimeTz => 96,
            FixedOrder::Uuid => 128,
        }
    }

    /// Whether [`FixedOrder::restore`] gives a value back: no two values are equal.
    #[inline]
    pub const fn is_reversible(self) -> bool {
        !matches!(
            self,
            FixedOrder::Float4 | FixedOrder::Float8 | FixedOrder::Interval
        )
    }

    /// The normal form of a value in stored form: a number below `1 << bits`.
    ///
    /// # Panics
    /// When the length is not the type's.
    #[inline]
    pub fn normalise(self, stored: &[u8]) -> u128 {
        match self {
            FixedOrder::Byte => stored[0] as u128,
            FixedOrder::Int2 => (u16::from_le_bytes(array(stored)) ^ 1 << 15) as u128,
            FixedOrder::Int4 => (u32::from_le_bytes(array(stored)) ^ 1 << 31) as u128,
            FixedOrder::Int8 => (u64::from_le_bytes(array(stored)) ^ 1 << 63) as u128,
            FixedOrder::Oid => u32::from_le_bytes(array(stored)) as u128,
            FixedOrder::Float4 => {
                let value = f32::from_le_bytes(array(stored));
                let bits = canonical4(value).to_bits();
                let negative = (bits as i32 >> 31) as u32;
                (bits ^ (negative | 1 << 31)) as u128
            }
            FixedOrder::Float8 => {
                let value = f64::from_le_bytes(array(stored));
                let bits = canonical8(value).to_bits();
                let negative = (bits as i64 >> 63) as u64;
                (bits ^ (negative | 1 << 63)) as u128
            }
            FixedOrder::TimeTz => {
                let time = i64::from_le_bytes(array(&stored[..8]));
                let zone = i32::from_le_bytes(array(&stored[8..]));
                let greenwich = time.wrapping_add(zone as i64 * USECS_PER_SEC);
                ((greenwich as u64 ^ 1 << 63) as u128) << 32 | (zone as u32 ^ 1 << 31) as u128
            }
            FixedOrder::Interval => {
                let time = i64::from_le_bytes(array(&stored[..8]));
                let day = i32::from_le_bytes(array(&stored[8..12]));
                let month = i32::from_le_bytes(array(&stored[12..]));
                let days = month as i64 * DAYS_PER_MONTH + day as i64;
                let span = days as i128 * USECS_PER_DAY + time as i128;
                (span + (1 << 79)) as u128
            }
            FixedOrder::Uuid => u128::from_be_bytes(array(stored)),
        }
    }

    /// Puts the value of a normal form at the start of `out`; returns its length.
    ///
    /// # Panics
    /// When the order is not reversible or `out` is too short.
    #[inline]
    pub fn restore(self, normal: u128, out: &mut [u8]) -> usize {
        match self {
            FixedOrder::Byte => put(out, [normal as u8]),
            FixedOrder::Int2 => put(out, (normal as u16 ^ 1 << 15).to_le_bytes()),
            FixedOrder::Int4 => put(out, (normal as u32 ^ 1 << 31).to_le_bytes()),
            FixedOrder::Int8 => put(out, (normal as u64 ^ 1 << 63).to_le_bytes()),
            FixedOrder::Oid => put(out, (normal as u32).to_le_bytes()),
            FixedOrder::TimeTz => {
                let zone = (normal as u32 ^ 1 << 31) as i32;
                let greenwich = ((normal >> 32) as u64 ^ 1 << 63) as i64;
                let time = greenwich.wrapping_sub(zone as i64 * USECS_PER_SEC);
                put(out, time.to_le_bytes());
                put(&mut out[8..], zone.to_le_bytes());
                12
            }
            FixedOrder::Uuid => put(out, normal.to_be_bytes()),
            FixedOrder::Float4 | FixedOrder::Float8 | FixedOrder::Interval => {
                panic!("equal values of {self:?} may differ in their bytes")
            }
        }
    }
}

/// One NaN, one zero.
fn canonical4(value: f32) -> f32 {
    if value.is_nan() {
        f32::NAN.copysign(1.0)
    } else {
        value + 0.0
    }
}

/// One NaN, one zero.
fn canonical8(value: f64) -> f64 {
    if value.is_nan() {
        f64::NAN.copysign(1.0)
    } else {
        value + 0.0
    }
}

#[inline]
fn array<const N: usize>(stored: &[u8]) -> [u8; N] {
    stored.try_into().expect("a value of the type's length")
}

#[inline]
fn put<const N: usize>(out: &mut [u8], bytes: [u8; N]) -> usize {
    out[..N].copy_from_slice(&bytes);
    N
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal_of_float(v: f64) -> u128 {
        FixedOrder::Float8.normalise(&v.to_le_bytes())
    }

    #[test]
    fn floats_order_as_numbers_with_nan_above_all() {
        let ascending = [
            f64::NEG_INFINITY,
            -1e300,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ascending.is_sorted_by(|a, b| normal_of_float(*a) < normal_of_float(*b)));
        assert_eq!(normal_of_float(-0.0), normal_of_float(0.0));
        assert_eq!(
            normal_of_float(f64::from_bits(0xfff8_0000_0000_1234)),
            normal_of_float(f64::NAN)
        );
        assert_eq!(
            FixedOrder::Float4.normalise(&(-0f32).to_le_bytes()),
            1 << 31
        );
    }

    #[test]
    fn a_month_is_30_days_is_720_hours() {
        let interval = |months: i32, days: i32, micros: i64| {
            let mut v = micros.to_le_bytes().to_vec();
            v.extend(days.to_le_bytes());
            v.extend(months.to_le_bytes());
            FixedOrder::Interval.normalise(&v)
        };
        assert_eq!(interval(1, 0, 0), interval(0, 30, 0));
        assert_eq!(interval(0, 1, 0), interval(0, 0, 86_400_000_000));
        assert!(interval(i32::MIN, i32::MIN, i64::MIN) < interval(0, 0, 0));
        assert!(interval(i32::MAX, i32::MAX, i64::MAX) > interval(1, 0, 0));
        assert!(interval(i32::MAX, i32::MAX, i64::MAX) < 1 << 80);
    }

    proptest! {
        #[test]
        fn integers_order_by_their_normal_form_and_come_back(a: i64, b: i64) {
            let of = |v: i64| FixedOrder::Int8.normalise(&v.to_le_bytes());
            prop_assert_eq!(of(a).cmp(&of(b)), a.cmp(&b));
            let mut out = [0; 8];
            FixedOrder::Int8.restore(of(a), &mut out);
            prop_assert_eq!(i64::from_le_bytes(out), a);
            let small = (a as i16).to_le_bytes();
            FixedOrder::Int2.restore(FixedOrder::Int2.normalise(&small), &mut out);
            prop_assert_eq!(&out[..2], &small);
            let half = (a as i32).to_le_bytes();
            FixedOrder::Int4.restore(FixedOrder::Int4.normalise(&half), &mut out);
            prop_assert_eq!(&out[..4], &half);
        }

        #[test]
        fn times_with_zone_order_at_greenwich_and_come_back(
            a in (0i64..86_400_000_001, -57_600i32..57_600),
            b in (0i64..86_400_000_001, -57_600i32..57_600),
        ) {
            let stored = |(time, zone): (i64, i32)| {
                let mut v = time.to_le_bytes().to_vec();
                v.extend(zone.to_le_bytes());
                v
            };
            let key = |(time, zone): (i64, i32)| (time + zone as i64 * 1_000_000, zone);
            let of = |v| FixedOrder::TimeTz.normalise(&stored(v));
            prop_assert_eq!(of(a).cmp(&of(b)), key(a).cmp(&key(b)));
            let mut out = [0; 12];
            FixedOrder::TimeTz.restore(of(a), &mut out);
            prop_assert_eq!(&out[..], &stored(a)[..]);
        }
    }
}
