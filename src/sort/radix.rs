//! Sorting word entries in memory.
//!
//! Bits that are the same in all entries are skipped. What is left is sorted in two steps: by
//! the topmost varying bits into buckets that fit the cache, all chunks in parallel; then each
//! bucket byte by byte from the least significant, buckets in parallel. Both steps are stable,
//! so when the chunks come in TID order, as they do from a heap filled in order, the TID's bits
//! need no pass of their own.

use super::words::{Entry, TID_MASK};
use rayon::prelude::*;

/// Entries of a bucket, about: small enough for the second-level cache.
const BUCKET_ENTRIES: usize = 4096;
/// Most buckets, as bits: each chunk counts them all.
const MAX_BUCKET_BITS: u32 = 11;
/// Fewer entries are sorted by comparison.
const MIN_RADIX_ENTRIES: usize = 128;

/// What is known of a set of entries after one look.
struct Survey<const W: usize> {
    varying: Entry<W>,
    sorted: bool,
}

fn survey<const W: usize>(entries: &[Entry<W>]) -> Survey<W> {
    let mut or = [0; W];
    let mut and = [u64::MAX; W];
    let mut sorted = true;
    let mut last = [0; W];
    for entry in entries {
        sorted &= last <= *entry;
        last = *entry;
        for i in 0..W {
            or[i] |= entry[i];
            and[i] &= entry[i];
        }
    }
    Survey {
        varying: std::array::from_fn(|i| or[i] ^ and[i]),
        sorted,
    }
}

/// Whether the TIDs ascend.
fn in_tid_order<const W: usize>(entries: &[Entry<W>]) -> bool {
    entries.is_sorted_by_key(|e| e[W - 1] & TID_MASK)
}

/// Sorts entries given in chunks; each entry differs from all others.
pub(super) fn sort_chunks<const W: usize>(mut chunks: Vec<Vec<Entry<W>>>) -> Vec<Entry<W>> {
    chunks.retain(|c| !c.is_empty());
    let tid_of = |e: &Entry<W>| e[W - 1] & TID_MASK;
    chunks.sort_unstable_by_key(|c| tid_of(&c[0]));
    let surveys: Vec<(Survey<W>, bool, Entry<W>)> = chunks
        .par_iter()
        .map(|c| (survey(c), in_tid_order(c), c[0]))
        .collect();
    // Bits vary within a chunk or between the chunks' first entries.
    let mut varying = [0; W];
    for (survey, _, first) in &surveys {
        for i in 0..W {
            varying[i] |= survey.varying[i] | first[i] ^ surveys[0].2[i];
        }
    }
    let sorted = surveys.iter().all(|s| s.0.sorted)
        && chunks
            .windows(2)
            .all(|pair| pair[0][pair[0].len() - 1] <= pair[1][0]);
    if sorted || chunks.is_empty() {
        return match chunks.len() {
            1 => chunks.remove(0),
            _ => chunks.concat(),
        };
    }
    let in_tid_order = surveys.iter().all(|s| s.1)
        && chunks
            .windows(2)
            .all(|pair| tid_of(&pair[0][pair[0].len() - 1]) <= tid_of(&pair[1][0]));
    if in_tid_order {
        varying[W - 1] &= !TID_MASK;
    }
    let total: usize = chunks.iter().map(Vec::len).sum();
    let bucket_bits = (total / BUCKET_ENTRIES)
        .max(1)
        .next_power_of_two()
        .ilog2()
        .min(MAX_BUCKET_BITS);
    let Some(digit) = Digit::top(&varying, bucket_bits) else {
        // Same keys, in TID order.
        return chunks.concat();
    };
    let parts: Vec<(Vec<Entry<W>>, Vec<u32>)> = chunks
        .into_par_iter()
        .map(|chunk| partition(&chunk, digit))
        .collect();

    let mut sorted = vec![[0; W]; total];
    let mut rest = &mut sorted[..];
    let mut buckets = Vec::with_capacity(digit.buckets());
    for bucket in 0..digit.buckets() {
        let len = parts
            .iter()
            .map(|(_, starts)| (starts[bucket + 1] - starts[bucket]) as usize)
            .sum();
        let (head, tail) = rest.split_at_mut(len);
        rest = tail;
        if len > 0 {
            buckets.push((bucket, head));
        }
    }
    buckets
        .into_par_iter()
        .for_each_init(Vec::new, |scratch, (bucket, slice)| {
            let mut pos = 0;
            for (entries, starts) in &parts {
                let part = &entries[starts[bucket] as usize..starts[bucket + 1] as usize];
                slice[pos..pos + part.len()].copy_from_slice(part);
                pos += part.len();
            }
            sort_slice(slice, in_tid_order, scratch);
        });
    sorted
}

/// Sorts a run on this thread alone.
pub(super) fn sort_run<const W: usize>(mut chunks: Vec<Vec<Entry<W>>>) -> Vec<Entry<W>> {
    chunks.retain(|c| !c.is_empty());
    chunks.sort_unstable_by_key(|c| c[0][W - 1] & TID_MASK);
    let mut run = chunks.concat();
    drop(chunks);
    let in_order = in_tid_order(&run);
    sort_slice(&mut run, in_order, &mut Vec::new());
    run
}

/// A window of bits of the number.
#[derive(Clone, Copy)]
struct Digit {
    /// Bits below it, counted from the end of the last word.
    shift: u32,
    bits: u32,
}

impl Digit {
    /// The window of up to `bits` bits whose top is the topmost varying bit; none when no bit
    /// varies.
    fn top<const W: usize>(varying: &Entry<W>, bits: u32) -> Option<Digit> {
        let word = varying.iter().position(|w| *w != 0)?;
        let above = (W - 1 - word) as u32 * 64;
        let top = above + 64 - varying[word].leading_zeros();
        let bits = bits.max(1).min(top);
        Some(Digit {
            shift: top - bits,
            bits,
        })
    }

    fn buckets(self) -> usize {
        1 << self.bits
    }

    #[inline]
    fn of<const W: usize>(self, entry: &Entry<W>) -> usize {
        let word = W - 1 - (self.shift / 64) as usize;
        let shift = self.shift % 64;
        let mut value = entry[word] >> shift;
        if shift + self.bits > 64 && word > 0 {
            value |= entry[word - 1] << (64 - shift);
        }
        (value & ((1 << self.bits) - 1)) as usize
    }
}

/// The entries by bucket, in the order they had, and where each bucket begins.
fn partition<const W: usize>(chunk: &[Entry<W>], digit: Digit) -> (Vec<Entry<W>>, Vec<u32>) {
    let mut starts = vec![0u32; digit.buckets() + 1];
    for entry in chunk {
        starts[digit.of(entry) + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut out = vec![[0; W]; chunk.len()];
    for entry in chunk {
        let place = &mut next[digit.of(entry)];
        out[*place as usize] = *entry;
        *place += 1;
    }
    (out, starts)
}

/// Sorts a slice; with `in_tid_order` entries of the same key already stand in order.
fn sort_slice<const W: usize>(
    slice: &mut [Entry<W>],
    in_tid_order: bool,
    scratch: &mut Vec<Entry<W>>,
) {
    if slice.len() < MIN_RADIX_ENTRIES {
        slice.sort_unstable();
        return;
    }
    let mut survey = survey(slice);
    if survey.sorted {
        return;
    }
    if in_tid_order {
        survey.varying[W - 1] &= !TID_MASK;
    }
    let passes: Vec<(usize, u32)> = (0..W)
        .rev()
        .flat_map(|word| (0..64).step_by(8).map(move |shift| (word, shift)))
        .filter(|(word, shift)| (survey.varying[*word] >> shift) & 0xff != 0)
        .collect();
    // A pass costs about as much as two rounds of comparisons.
    if passes.len() as u32 * 2 > slice.len().ilog2() + 2 {
        slice.sort_unstable();
        return;
    }
    scratch.clear();
    scratch.resize(slice.len(), [0; W]);
    let mut in_slice = true;
    for (word, shift) in passes {
        if in_slice {
            pass(slice, scratch, word, shift);
        } else {
            pass(scratch, slice, word, shift);
        }
        in_slice = !in_slice;
    }
    if !in_slice {
        slice.copy_from_slice(scratch);
    }
}

fn pass<const W: usize>(from: &[Entry<W>], to: &mut [Entry<W>], word: usize, shift: u32) {
    let digit = |e: &Entry<W>| ((e[word] >> shift) & 0xff) as usize;
    let mut next = [0u32; 256];
    for entry in from {
        next[digit(entry)] += 1;
    }
    let mut sum = 0;
    for count in &mut next {
        let n = *count;
        *count = sum;
        sum += n;
    }
    for entry in from {
        let place = &mut next[digit(entry)];
        to[*place as usize] = *entry;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Entries of a 16-bit key (spread over two words by `spread`) in chunks of ascending TIDs.
    fn chunks(keys: &[u16], chunk: usize, spread: bool) -> Vec<Vec<Entry<2>>> {
        let entries: Vec<Entry<2>> = keys
            .iter()
            .enumerate()
            .map(|(tid, key)| {
                let key = (*key as u128) << if spread { 60 } else { 48 };
                let number = key | (tid as u128 + 1);
                [(number >> 64) as u64, number as u64]
            })
            .collect();
        entries.chunks(chunk).map(<[_]>::to_vec).collect()
    }

    proptest! {
        #[test]
        fn radix_sort_equals_the_naive_sort(
            keys in proptest::collection::vec(0u16..3000, 0..3000),
            chunk in 1usize..700,
            spread: bool,
            shuffle: bool,
        ) {
            let mut chunks = chunks(&keys, chunk, spread);
            if shuffle {
                for chunk in &mut chunks {
                    chunk.reverse();
                }
                chunks.reverse();
            }
            let mut naive = chunks.concat();
            naive.sort_unstable();
            prop_assert_eq!(&sort_run(chunks.clone()), &naive);
            prop_assert_eq!(&sort_chunks(chunks), &naive);
        }
    }

    #[test]
    fn a_hundred_thousand_entries_are_sorted_in_buckets() {
        let keys: Vec<u16> = (0..100_000u32)
            .map(|i| ((i * 40_503) >> 7) as u16)
            .collect();
        let chunks = chunks(&keys, 7001, true);
        let mut naive = chunks.concat();
        naive.sort_unstable();
        assert!(sort_chunks(chunks) == naive);
    }
}
