//! The hash of a value by which hash partitions take their rows, of each type's hash operator
//! class.
//!
//! PostgreSQL: `src/common/hashfn.c` (Jenkins' lookup3), `src/backend/access/hash/hashfunc.c`,
//! `src/backend/partitioning/partbounds.c`, `compute_partition_hash_value`.

use super::{datetime, network, numeric, varlena};

/// The seed of all hashes of partition keys (`HASH_PARTITION_SEED`).
pub const PARTITION_SEED: u64 = 0x7a5b_2236_7996_dcfd;

/// How a hash operator class hashes stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashFunction {
    /// `bool_ops`, `char_ops`: a byte with its sign.
    Byte,
    /// `int2_ops`.
    Int2,
    /// `int4_ops`, `date_ops`.
    Int4,
    /// `int8_ops`, `time_ops`, `timestamp_ops`, `timestamptz_ops`.
    Int8,
    /// `oid_ops`, `enum_ops`.
    Oid,
    /// `float4_ops`.
    Float4,
    /// `float8_ops`.
    Float8,
    /// `timetz_ops`.
    TimeTz,
    /// `interval_ops`.
    Interval,
    /// All bytes of a type of fixed width: `uuid_ops`, `macaddr_ops`, `macaddr8_ops`.
    Bytes,
    /// `name_ops`: up to the first zero.
    Name,
    /// `numeric_ops`.
    Numeric,
    /// The payload of a varlena: `text_ops` under a deterministic collation, `bytea_ops`.
    Varlena,
    /// `bpchar_ops`: without the blanks at the end.
    Bpchar,
    /// `inet_ops`.
    Network,
}

impl HashFunction {
    /// The function of an operator class of the access method hash that pg_catalog has, by its
    /// name; `None` when it is not known here.
    ///
    /// PostgreSQL: `src/include/catalog/pg_opclass.dat`.
    pub fn of_opclass(name: &str) -> Option<HashFunction> {
        Some(match name {
            "bool_ops" | "char_ops" => HashFunction::Byte,
            "int2_ops" => HashFunction::Int2,
            "int4_ops" | "date_ops" => HashFunction::Int4,
            "int8_ops" | "time_ops" | "timestamp_ops" | "timestamptz_ops" => HashFunction::Int8,
            "oid_ops" | "enum_ops" => HashFunction::Oid,
            "float4_ops" => HashFunction::Float4,
            "float8_ops" => HashFunction::Float8,
            "timetz_ops" => HashFunction::TimeTz,
            "interval_ops" => HashFunction::Interval,
            "uuid_ops" | "macaddr_ops" | "macaddr8_ops" => HashFunction::Bytes,
            "name_ops" => HashFunction::Name,
            "numeric_ops" => HashFunction::Numeric,
            "text_ops"
            | "varchar_ops"
            | "text_pattern_ops"
            | "varchar_pattern_ops"
            | "bytea_ops" => HashFunction::Varlena,
            "bpchar_ops" | "bpchar_pattern_ops" => HashFunction::Bpchar,
            "inet_ops" | "cidr_ops" => HashFunction::Network,
            _ => return None,
        })
    }

    /// The hash of a value in stored form, varlenas with their header (not compressed, not out
    /// of line).
    ///
    /// # Panics
    /// When a value of fixed width is too short.
    pub fn hash(self, stored: &[u8], seed: u64) -> u64 {
        match self {
            HashFunction::Byte => hash_u32(i32::from(stored[0] as i8) as u32, seed),
            HashFunction::Int2 => {
                hash_u32(i32::from(i16::from_le_bytes(array(stored))) as u32, seed)
            }
            HashFunction::Int4 | HashFunction::Oid => {
                hash_u32(u32::from_le_bytes(array(stored)), seed)
            }
            HashFunction::Int8 => hash_i64(i64::from_le_bytes(array(stored)), seed),
            HashFunction::Float4 => hash_f64(f32::from_le_bytes(array(stored)).into(), seed),
            HashFunction::Float8 => hash_f64(f64::from_le_bytes(array(stored)), seed),
            HashFunction::TimeTz => {
                let (micros, zone) = datetime::decode_timetz(stored);
                hash_i64(micros, seed) ^ hash_u32(zone as u32, seed)
            }
            HashFunction::Interval => {
                let span = datetime::interval_span(&datetime::decode_interval(stored));
                hash_i64(span as i64, seed)
            }
            HashFunction::Bytes => hash_bytes(stored, seed),
            HashFunction::Name => {
                let end = stored.iter().position(|b| *b == 0).unwrap_or(stored.len());
                hash_bytes(&stored[..end], seed)
            }
            HashFunction::Numeric => numeric::hash(varlena::payload(stored), seed),
            HashFunction::Varlena => hash_bytes(varlena::payload(stored), seed),
            HashFunction::Bpchar => hash_bytes(without_blanks(varlena::payload(stored)), seed),
            HashFunction::Network => {
                let payload = varlena::payload(stored);
                match network::Address::read(payload) {
                    Some(address) => hash_bytes(address.payload(), seed),
                    None => hash_bytes(payload, seed),
                }
            }
        }
    }
}

/// A text without the blanks at its end.
fn without_blanks(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|b| *b != b' ')
        .map_or(0, |last| last + 1);
    &text[..end]
}

/// Joins the hash of one more key to those before (`hash_combine64`).
pub fn combine(before: u64, more: u64) -> u64 {
    let mixed = more
        .wrapping_add(0x49a0_f4dd_15e5_a8e3)
        .wrapping_add(before << 54)
        .wrapping_add(before >> 7);
    before ^ mixed
}

fn array<const N: usize>(stored: &[u8]) -> [u8; N] {
    *stored.first_chunk().expect("a value of this width")
}

/// `hashint8extended`: equal to the hash of the same number in fewer bytes.
fn hash_i64(value: i64, seed: u64) -> u64 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    hash_u32(low ^ if value >= 0 { high } else { !high }, seed)
}

/// `hashfloat8extended`: both zeros are one, and all that are not numbers.
fn hash_f64(value: f64, seed: u64) -> u64 {
    const QUIET_NAN: u64 = 0x7ff8_0000_0000_0000;
    if value == 0.0 {
        return seed;
    }
    let bits = if value.is_nan() {
        QUIET_NAN
    } else {
        value.to_bits()
    };
    hash_bytes(&bits.to_le_bytes(), seed)
}

/// The three words of lookup3.
struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(len_bytes: usize, seed: u64) -> State {
        let start = 0x9e37_79b9_u32
            .wrapping_add(len_bytes as u32)
            .wrapping_add(3_923_095);
        let mut state = State {
            a: start,
            b: start,
            c: start,
        };
        if seed != 0 {
            state.a = state.a.wrapping_add((seed >> 32) as u32);
            state.b = state.b.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn add(&mut self, words: [u32; 3]) {
        self.a = self.a.wrapping_add(words[0]);
        self.b = self.b.wrapping_add(words[1]);
        self.c = self.c.wrapping_add(words[2]);
    }

    fn mix(&mut self) {
        let State { a, b, c } = self;
        for (x, y, z, by) in [
            (0, 1, 2, 4),
            (1, 2, 0, 6),
            (2, 0, 1, 8),
            (0, 1, 2, 16),
            (1, 2, 0, 19),
            (2, 0, 1, 4),
        ] {
            let mut words = [*a, *b, *c];
            words[x] = words[x].wrapping_sub(words[z]) ^ words[z].rotate_left(by);
            words[z] = words[z].wrapping_add(words[y]);
            [*a, *b, *c] = words;
        }
    }

    fn finish(mut self) -> u64 {
        let State { a, b, c } = &mut self;
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
        u64::from(self.b) << 32 | u64::from(self.c)
    }
}

/// `hash_bytes_extended`.
pub fn hash_bytes(bytes: &[u8], seed: u64) -> u64 {
    let mut state = State::new(bytes.len(), seed);
    let word = |bytes: &[u8]| u32::from_le_bytes(array(bytes));
    let mut blocks = bytes.chunks_exact(12);
    for block in &mut blocks {
        state.add([word(block), word(&block[4..]), word(&block[8..])]);
        state.mix();
    }
    let rest = blocks.remainder();
    let mut last = [0; 12];
    // The lowest byte of the last word is left to the length.
    let (whole, third) = rest.split_at(rest.len().min(8));
    last[..whole.len()].copy_from_slice(whole);
    last[9..9 + third.len()].copy_from_slice(third);
    state.add([word(&last), word(&last[4..]), word(&last[8..])]);
    state.finish()
}

/// `hash_bytes_uint32_extended`.
pub fn hash_u32(value: u32, seed: u64) -> u64 {
    let mut state = State::new(4, seed);
    state.add([value, 0, 0]);
    state.finish()
}

// That the numbers are the server's is proved by tests/routing.rs, which asks servers.
#[cfg(test)]
mod tests {
    use super::*;

    fn hash(function: HashFunction, stored: &[u8]) -> u64 {
        function.hash(stored, PARTITION_SEED)
    }

    #[test]
    fn a_number_has_one_hash_in_every_width() {
        for value in [0_i16, 1, -1, i16::MIN, i16::MAX] {
            let narrow = hash(HashFunction::Int2, &value.to_le_bytes());
            let middle = hash(HashFunction::Int4, &i32::from(value).to_le_bytes());
            let wide = hash(HashFunction::Int8, &i64::from(value).to_le_bytes());
            assert_eq!((narrow, middle), (middle, wide), "{value}");
        }
        for value in [0.0_f32, -0.0, 1.5, f32::NAN, -f32::NAN, f32::INFINITY] {
            let narrow = hash(HashFunction::Float4, &value.to_le_bytes());
            let wide = hash(HashFunction::Float8, &f64::from(value).to_le_bytes());
            assert_eq!(narrow, wide, "{value}");
        }
    }

    #[test]
    fn what_is_equal_has_one_hash() {
        let text = |payload: &[u8]| {
            let mut stored = vec![varlena::short_header(payload.len() + 1)];
            stored.extend(payload);
            stored
        };
        let blank = hash(HashFunction::Bpchar, &text(b"ab   "));
        assert_eq!(blank, hash(HashFunction::Bpchar, &text(b"ab")));
        assert_ne!(
            hash(HashFunction::Varlena, &text(b"ab ")),
            hash(HashFunction::Varlena, &text(b"ab"))
        );
        // A varlena with a full header has the hash of the same one with a short header.
        let mut full = varlena::full_header(varlena::HEADER_BYTES + 2).to_vec();
        full.extend(b"ab");
        assert_eq!(
            hash(HashFunction::Varlena, &full),
            hash(HashFunction::Varlena, &text(b"ab"))
        );
    }

    #[test]
    fn every_length_of_the_last_block_counts() {
        let bytes: Vec<u8> = (1..=40).collect();
        let hashes: Vec<u64> = (0..=40).map(|n| hash_bytes(&bytes[..n], 1)).collect();
        for (n, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..n].contains(hash), "{n}");
        }
    }
}
