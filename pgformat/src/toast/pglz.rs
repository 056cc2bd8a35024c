//! PostgreSQL's own LZ compression, bit for bit, with the default strategy.
//!
//! The output is groups of eight items behind a control byte, the lowest bit first: a clear
//! bit is a literal byte, a set bit a match of 3 to 273 bytes up to 4094 bytes back:
//!
//! ```text
//! offset high 4 bits, length - 3 | offset low 8 bits                  3 to 17 bytes
//! offset high 4 bits, 15         | offset low 8 bits | length - 18    18 to 273 bytes
//! ```
//!
//! Which matches are found is part of the format here. The server keeps a list of earlier
//! positions for each value of a weak hash of four bytes, walks it from the newest to the oldest
//! within reach, takes the longest match (of equals the newest), and settles for less the
//! longer it takes: for 128 bytes at first, a tenth less after each position, 9 in the end.
//!
//! The same is found here without the walk. With the first three bytes and the server's hash
//! the fourth byte is given, so what can match lies among the earlier positions of the same
//! four bytes, which a better hash finds; and how many positions the server would have passed
//! on its list before one of them is the difference of their ranks on that list. A list's
//! links are a ring of 4096 positions; a position too old is recognised by its distance, so
//! nothing is ever unlinked, nor cleared between values: positions count on from one value to the next.
//!
//! PostgreSQL: `src/common/pg_lzcompress.c`.

use std::ffi::c_char;

/// Shorter values are not compressed.
pub const MIN_INPUT_BYTES: usize = 32;
/// The compressed form must be shorter than this part of the value, in percent.
const MAX_RATE_PERCENT: usize = 75;
/// Output bytes without a match after which the value counts as incompressible.
const FIRST_SUCCESS_BY_BYTES: usize = 1024;
/// Of each number of positions passed: a match of this length ends the search before the next.
/// The last one stands for all that follow.
const GOOD_MATCH_BYTES: [u8; 40] = {
    let mut good = [128u8; 40];
    let mut i = 1;
    while i < good.len() {
        good[i] = good[i - 1] - (good[i - 1] as u32 * 10 / 100) as u8;
        i += 1;
    }
    good
};
/// The longest match.
const MAX_MATCH_BYTES: usize = 273;
/// From this distance on a position is out of reach.
const OUT_OF_REACH: u32 = 0x0fff;

/// Positions that are remembered; more than are within reach.
const RING: usize = 4096;
/// Values of our hash, and most values of the server's.
const KEY_HASH_BITS: u32 = 12;
const KEY_HASHES: usize = 1 << KEY_HASH_BITS;
const MAX_LISTS: usize = 8192;
/// The server counts lengths in an int.
const MAX_INPUT_BYTES: usize = i32::MAX as usize;

/// What is known of a position.
#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    /// The four bytes there.
    key: u32,
    /// How far before it lies the last position with the same hash of its key; at most
    /// `OUT_OF_REACH`.
    to_older: u16,
    /// How long its list was before it, modulo 65536; only differences count.
    rank: u16,
}

/// The compressor's memory, for one value after another.
#[derive(Debug)]
pub struct Pglz {
    /// The newest position of four bytes with a hash.
    newest: Box<[u32; KEY_HASHES]>,
    /// The last positions.
    ring: Box<[Remembered; RING]>,
    /// How long each of the server's lists is, modulo 65536.
    list_lens: Box<[u16; MAX_LISTS]>,
    /// The position that the next value begins at; at least `RING` past the last value's end.
    base: u32,
}

impl Default for Pglz {
    fn default() -> Pglz {
        Pglz::new()
    }
}

/// Zeros on the heap, without a way over the stack.
fn boxed<T: Copy + Default + std::fmt::Debug, const N: usize>() -> Box<[T; N]> {
    vec![T::default(); N]
        .try_into()
        .expect("a vector of the array's length")
}

/// The length of the common start of `a` and `b`, of which `a` is not shorter.
#[inline]
fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    let (a_words, b_words) = (a[..b.len()].as_chunks::<8>(), b.as_chunks::<8>());
    for (i, (x, y)) in a_words.0.iter().zip(b_words.0).enumerate() {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return i * 8 + differ.trailing_zeros() as usize / 8;
        }
    }
    let rest = a_words.1.iter().zip(b_words.1);
    b_words.0.len() * 8 + rest.take_while(|(x, y)| x == y).count()
}

/// Four bytes, hashed our way.
#[inline]
fn key_hash(key: u32) -> usize {
    (key.wrapping_mul(0x9e37_79b1) >> (32 - KEY_HASH_BITS)) as usize
}

/// Four bytes, hashed the server's way before its mask: bytes are the platform's `char`,
/// signed or not.
#[inline]
fn list_hash(key: u32) -> i32 {
    let [a, b, c, d] = key.to_le_bytes().map(|byte| byte as c_char as i32);
    a << 6 ^ b << 4 ^ c << 2 ^ d
}

/// What is looked for at the third byte from the end. There the server takes the first byte
/// for the hash; what it finds has the fourth byte that makes its hash the same, if any does.
fn last_key(three: [u8; 3], mask: usize) -> Option<u32> {
    let [a, b, c] = three;
    let wanted = a as c_char as i32;
    let fourth = (list_hash(u32::from_le_bytes([a, b, c, 0])) ^ wanted) as u8;
    let key = u32::from_le_bytes([a, b, c, fourth]);
    ((list_hash(key) ^ wanted) as usize & mask == 0).then_some(key)
}

impl Pglz {
    /// A compressor.
    pub fn new() -> Pglz {
        Pglz {
            newest: boxed(),
            ring: boxed(),
            list_lens: boxed(),
            base: RING as u32,
        }
    }

    /// The position that a value of `len` bytes begins at.
    fn begin(&mut self, len: usize) -> u32 {
        let end = self.base as usize + len + RING;
        if end > u32::MAX as usize {
            self.newest.fill(0);
            self.base = RING as u32;
        }
        let base = self.base;
        self.base = (base as usize + len + RING) as u32;
        base
    }

    /// Remembers a position and the key there. Gives the distance to the last position of the
    /// same hash, at most `OUT_OF_REACH`, and the rank of this one.
    #[inline]
    fn remember(&mut self, position: u32, key: u32, mask: usize) -> (u32, u16) {
        // The second bound changes nothing and tells the compiler of the first.
        let list = list_hash(key) as usize & mask & (MAX_LISTS - 1);
        let rank = self.list_lens[list];
        self.list_lens[list] = rank.wrapping_add(1);
        let newest = &mut self.newest[key_hash(key)];
        let distance = (position - *newest).min(OUT_OF_REACH);
        *newest = position;
        self.ring[position as usize % RING] = Remembered {
            key,
            to_older: distance as u16,
            rank,
        };
        (distance, rank)
    }

    /// The match that the server finds for the bytes at `at`, which are at `position` and
    /// begin with `key`: length and distance; length 0 when there is none. They have just been
    /// remembered with `rank`, `distance` after the last position of the same hash.
    fn find(
        &self,
        source: &[u8],
        at: usize,
        position: u32,
        key: u32,
        (mut distance, rank): (u32, u16),
    ) -> (usize, usize) {
        let ahead = &source[at..];
        let longest = MAX_MATCH_BYTES.min(ahead.len());
        let ahead = &ahead[..longest];
        let (mut best, mut best_distance) = (0, 0);
        while distance < OUT_OF_REACH {
            let candidate = self.ring[(position - distance) as usize % RING];
            if candidate.key == key {
                let behind = &source[at - distance as usize..];
                // A longer match must agree where the best one ended.
                if behind[best] == ahead[best] {
                    let newer = rank.wrapping_sub(candidate.rank).wrapping_sub(1) as usize;
                    if newer > 0
                        && best
                            >= GOOD_MATCH_BYTES[(newer - 1).min(GOOD_MATCH_BYTES.len() - 1)]
                                as usize
                    {
                        break;
                    }
                    let len = common_bytes(behind, ahead);
                    if len > best {
                        (best, best_distance) = (len, distance as usize);
                        if best == longest {
                            break;
                        }
                    }
                }
            }
            distance += candidate.to_older as u32;
        }
        (best, best_distance)
    }

    /// The same for the last three bytes or less, which have no key: a match of all three,
    /// the newest one.
    fn find_at_end(&self, rest: &[u8], position: u32, mask: usize) -> (usize, usize) {
        let Some(key) = rest.try_into().ok().and_then(|three| last_key(three, mask)) else {
            return (0, 0);
        };
        let mut distance = position - self.newest[key_hash(key)];
        while distance < OUT_OF_REACH {
            let candidate = self.ring[(position - distance) as usize % RING];
            if candidate.key == key {
                return (3, distance as usize);
            }
            distance += candidate.to_older as u32;
        }
        (0, 0)
    }

    /// Appends the compressed form of `source` to `out`. Returns false, and leaves `out` as it
    /// was, where the server gives up: a value shorter than 32 bytes, nothing found in the
    /// first kilobyte, or less than a quarter saved.
    ///
    /// Takes memory for its output step by step, at most three quarters of the value.
    ///
    /// PostgreSQL: `pglz_compress` with `PGLZ_strategy_default`.
    pub fn compress(&mut self, source: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let compressed = self.compress_after(source, out, start);
        out.truncate(compressed.unwrap_or(start));
        compressed.is_some()
    }

    /// The end of the compressed form in `out`, which may be longer; `None` to give up.
    fn compress_after(&mut self, source: &[u8], out: &mut Vec<u8>, start: usize) -> Option<usize> {
        let len = source.len();
        if !(MIN_INPUT_BYTES..=MAX_INPUT_BYTES).contains(&len) {
            return None;
        }
        let max_bytes = if len > MAX_INPUT_BYTES / 100 {
            len / 100 * MAX_RATE_PERCENT
        } else {
            len * MAX_RATE_PERCENT / 100
        };
        let mask = match len {
            0..128 => 511,
            128..256 => 1023,
            256..512 => 2047,
            512..1024 => 4095,
            _ => MAX_LISTS - 1,
        };
        let base = self.begin(len);

        let mut end = start;
        let mut control_pos = start;
        let mut control = 0u8;
        let mut bit = 0u8;
        let mut found = false;
        let mut at = 0;
        while at < len {
            if end - start >= max_bytes || (!found && end - start >= FIRST_SUCCESS_BY_BYTES) {
                return None;
            }
            // An item takes at most a control byte and three more.
            if end + 4 > out.len() {
                let more = (out.len() - start).clamp(2048, 64 << 20).min(max_bytes + 4);
                out.resize(end + more.max(4), 0);
            }
            if bit == 0 {
                if end > start {
                    out[control_pos] = control;
                }
                control_pos = end;
                end += 1;
                control = 0;
                bit = 1;
            }
            let position = base + at as u32;
            let (matched, distance) = match source[at..].first_chunk() {
                Some(bytes) => {
                    let key = u32::from_le_bytes(*bytes);
                    let last = self.remember(position, key, mask);
                    if last.0 < OUT_OF_REACH {
                        self.find(source, at, position, key, last)
                    } else {
                        (0, 0)
                    }
                }
                None => self.find_at_end(&source[at..], position, mask),
            };
            if matched > 2 {
                control |= bit;
                let high = (distance >> 4 & 0xf0) as u8;
                out[end + 1] = distance as u8;
                if matched > 17 {
                    out[end] = high | 0x0f;
                    out[end + 2] = (matched - 18) as u8;
                    end += 3;
                } else {
                    out[end] = high | (matched - 3) as u8;
                    end += 2;
                }
                // What begins in the last three bytes is never found.
                let inner = &source[at + 1..(at + matched + 3).min(len)];
                for (i, bytes) in inner.windows(4).enumerate() {
                    let key = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    self.remember(position + 1 + i as u32, key, mask);
                }
                at += matched;
                found = true;
            } else {
                out[end] = source[at];
                end += 1;
                at += 1;
            }
            bit <<= 1;
        }
        out[control_pos] = control;
        (end - start < max_bytes).then_some(end)
    }
}

/// Appends the `raw_bytes` bytes that `compressed` stands for to `out`. Returns false, with
/// `out` as it was, when it is not the compressed form of exactly so many bytes.
///
/// PostgreSQL: `pglz_decompress` with `check_complete`.
pub fn decompress(compressed: &[u8], raw_bytes: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let whole = decompress_after(compressed, raw_bytes, out, start).is_some();
    if !whole {
        out.truncate(start);
    }
    whole
}

fn decompress_after(
    compressed: &[u8],
    raw_bytes: usize,
    out: &mut Vec<u8>,
    start: usize,
) -> Option<()> {
    let end = start + raw_bytes;
    let mut rest = compressed;
    while out.len() < end {
        let Some((&control, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        for bit in 0..8 {
            if rest.is_empty() || out.len() == end {
                break;
            }
            if control >> bit & 1 == 0 {
                out.push(rest[0]);
                rest = &rest[1..];
                continue;
            }
            let (&[first, low], after) = rest.split_first_chunk::<2>()?;
            rest = after;
            let mut len = (first & 0x0f) as usize + 3;
            if len == 18 {
                let (&more, after) = rest.split_first()?;
                rest = after;
                len += more as usize;
            }
            let distance = ((first & 0xf0) as usize) << 4 | low as usize;
            let len = len.min(end - out.len());
            let from = out
                .len()
                .checked_sub(distance)
                .filter(|from| *from >= start)?;
            if distance == 0 {
                return None;
            }
            // A match longer than its distance repeats what it has just written.
            let mut left = len;
            while left > 0 {
                let step = left.min(out.len() - from);
                out.extend_from_within(from..from + step);
                left -= step;
            }
        }
    }
    (out.len() == end && rest.is_empty()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(source: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"kept".to_vec();
        let done = Pglz::new().compress(source, &mut out);
        assert_eq!(&out[..4], b"kept");
        if !done {
            assert_eq!(out.len(), 4);
        }
        done.then(|| out[4..].to_vec())
    }

    #[test]
    fn a_hundred_equal_bytes_are_a_literal_and_one_match() {
        // 99 bytes one byte back: 0x0f, distance 1, 99 - 18.
        assert_eq!(compressed(&[b'x'; 100]).unwrap(), [0b10, b'x', 0x0f, 1, 81]);
    }

    #[test]
    fn thirty_one_bytes_are_never_compressed() {
        assert_eq!(compressed(&[b'x'; 31]), None);
        assert!(compressed(&[b'x'; 32]).is_some());
    }

    #[test]
    fn a_kilobyte_without_a_match_ends_the_attempt() {
        let mut seed = 1u32;
        let mut noise: Vec<u8> = (0..1100)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        noise.resize(100_000, 0);
        assert_eq!(compressed(&noise), None);
    }

    #[test]
    fn a_compressor_gives_the_same_bytes_for_its_first_and_any_later_value() {
        let mut pglz = Pglz::new();
        for round in 0..3 {
            for len in [40, 200, 700, 5000, 20_000] {
                let value: Vec<u8> = (0..len).map(|i| b"abcdefg hij"[i * i / 7 % 11]).collect();
                let mut out = Vec::new();
                let done = pglz.compress(&value, &mut out);
                assert_eq!(
                    done.then_some(out),
                    compressed(&value),
                    "round {round}, {len}"
                );
            }
        }
    }

    #[test]
    fn positions_start_over_before_they_overflow() {
        let mut pglz = Pglz::new();
        let value: Vec<u8> = (0..9000).map(|i| b"abcdefg hij"[i * i / 7 % 11]).collect();
        let mut before = Vec::new();
        assert!(pglz.compress(&value, &mut before));
        pglz.base = u32::MAX - 9000;
        let mut after = Vec::new();
        assert!(pglz.compress(&value, &mut after));
        assert_eq!(before, after);
        assert!(pglz.base < 20_000);
    }

    #[test]
    fn what_was_compressed_comes_back() {
        let mut pglz = Pglz::new();
        let mut seed = 7u32;
        for len in (32..3000).step_by(37) {
            let value: Vec<u8> = (0..len)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"aaab\xff\xfe"[(seed >> 24) as usize % 6]
                })
                .collect();
            let mut out = Vec::new();
            if pglz.compress(&value, &mut out) {
                let mut raw = Vec::new();
                assert!(decompress(&out, len, &mut raw));
                assert_eq!(raw, value);
                assert!(!decompress(&out, len + 1, &mut raw));
                assert!(!decompress(&out[..out.len() - 1], len, &mut raw));
                assert_eq!(raw, value);
            }
        }
    }

    #[test]
    fn a_match_before_the_start_is_refused() {
        let mut out = b"before".to_vec();
        assert!(!decompress(&[0b10, b'x', 0x00, 2], 4, &mut out));
        assert!(!decompress(&[0b10, b'x', 0x00, 0], 4, &mut out));
        assert!(decompress(&[0b10, b'x', 0x00, 1], 4, &mut out));
        assert_eq!(out, b"beforexxxx");
    }
}
