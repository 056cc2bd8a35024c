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
//! Which matches are found is part of the format here: [`history`].
//!
//! PostgreSQL: `src/common/pg_lzcompress.c`.

mod history;
mod items;

use history::{History, SEARCHED_BYTES};
use items::Items;

/// Shorter values are not compressed.
pub const MIN_INPUT_BYTES: usize = 32;
/// The compressed form must be shorter than this part of the value, in percent.
const MAX_RATE_PERCENT: usize = 75;
/// The server counts lengths in an int.
const MAX_INPUT_BYTES: usize = i32::MAX as usize;

/// The compressor's memory, for one value after another.
#[derive(Debug)]
pub struct Pglz {
    history: Box<History>,
}

impl Default for Pglz {
    fn default() -> Pglz {
        Pglz::new()
    }
}

impl Pglz {
    /// A compressor.
    pub fn new() -> Pglz {
        Pglz {
            history: Box::new(History::EMPTY),
        }
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
        let compressed = self.compress_after(source, out);
        out.truncate(compressed.unwrap_or(start));
        compressed.is_some()
    }

    /// The end of the compressed form in `out`, which may be longer; `None` to give up.
    fn compress_after(&mut self, source: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let len = source.len();
        if !(MIN_INPUT_BYTES..=MAX_INPUT_BYTES).contains(&len) {
            return None;
        }
        let max_bytes = if len > MAX_INPUT_BYTES / 100 {
            len / 100 * MAX_RATE_PERCENT
        } else {
            len * MAX_RATE_PERCENT / 100
        };
        // How many lists the server has for a value of this length, less one.
        let mask = match len {
            0..128 => 511,
            128..256 => 1023,
            256..512 => 2047,
            512..1024 => 4095,
            _ => 8191,
        };
        let mut items = Items::new(out, max_bytes);
        let history = &mut *self.history;
        history.begin();
        let base = history.next();
        let position = |at: usize| base.wrapping_add(at as u16);
        let (mut at, mut linked) = (0, 0);
        while at + SEARCHED_BYTES <= len {
            while linked <= at {
                linked = history.link_block(source, linked, mask);
            }
            let searched = linked.min(len - SEARCHED_BYTES + 1);
            while at < searched {
                let found = history.find(source, at, position(at));
                if found.len() > 3 {
                    items.matched(found)?;
                    at += found.len();
                } else {
                    items.literal(source[at])?;
                    at += 1;
                }
            }
        }
        while linked + 3 < len {
            linked = history.link_block(source, linked, mask);
        }
        while at < len {
            let found = history.find_at_end(source, at, position(at), mask);
            if found.len() > 2 {
                items.matched(found)?;
                at += found.len();
            } else {
                items.literal(source[at])?;
                at += 1;
            }
        }
        items.finish()
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
mod tests;
