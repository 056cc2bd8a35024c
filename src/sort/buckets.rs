//! Sorting records in memory: by prefix into buckets that fit the cache, then each bucket.
//!
//! ```text
//! chunks    |c0|c1|c2| ...     in the order of their TIDs
//! parts     each chunk's entries and tuples by bucket, all chunks in parallel
//! buckets   sorted by idle threads some way ahead of the merge, and by its own thread when
//!           there are none; their tuples are copied side by side in their order
//! ```
//!
//! The bounds of the buckets come from a sample. Within a bucket entries are sorted by their
//! prefix alone; the tuples are looked at only where prefixes tie, and first at the bytes that
//! follow the prefix. Whoever takes the records then reads memory from one end to the other.

use super::codec;
use super::compare::TupleOrder;
use super::records::{self, Prefix, RecordEntry, Records};
use super::sorter::order_not_proven;
use crate::error::Result;
use crate::sys::memory::prefetch;
use pgformat::btree::tuple;
use pgformat::layout::AttrLen;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Entries of a bucket, about: with their tuples they fit the second-level cache.
const BUCKET_ENTRIES: usize = 4096;
/// Most buckets: their bounds fit the first-level cache.
const MAX_BUCKETS: usize = 2048;
/// Entries that are looked at for each bound.
const SAMPLES_PER_BUCKET: usize = 8;
/// Buckets for each thread that may be sorted before the merge comes to them.
const AHEAD_BUCKETS: usize = 16;
/// Bytes of a line of the cache.
const CACHE_LINE_BYTES: usize = 64;
/// Bytes that are copied of any tuple that is not longer.
const WIDE_BYTES: usize = 64;
/// Fewer entries that tie are compared as they are.
const MIN_TIES: usize = 4;

/// How entries of equal prefixes are told apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ties {
    /// Key columns that are whole in the prefix.
    pub(super) whole: usize,
    /// Bytes of the next column that are in the prefix.
    pub(super) known_bytes: usize,
}

/// Records in memory that are sorted as they are taken.
#[derive(Debug)]
pub(super) struct Buckets {
    sorting: Arc<Sorting>,
    current: SortedBucket,
    /// The record in hand.
    at: usize,
    start: usize,
    end: usize,
}

/// Records in order: their prefixes, and their tuples one after the other.
#[derive(Debug, Default)]
struct SortedBucket {
    prefixes: Vec<Prefix>,
    tuples: Vec<u8>,
}

impl Buckets {
    /// Deals out the entries of chunks. With `prove` prefixes are not trusted: records that
    /// turn out not to order as they do are an error.
    pub(super) fn new(
        order: &TupleOrder,
        ties: Ties,
        prove: bool,
        mut chunks: Vec<Records>,
    ) -> Buckets {
        chunks.retain(|chunk| !chunk.entries.is_empty());
        chunks.sort_unstable_by_key(|chunk| tuple::tid(chunk.tuple(&chunk.entries[0])));
        let bounds = Bounds::new(&chunks);
        let parts = chunks
            .par_iter_mut()
            .enumerate()
            .map(|(number, chunk)| {
                let number = u32::try_from(number).expect("fewer than 2^32 chunks");
                partition(number, chunk, &bounds)
            })
            .collect();
        Buckets {
            sorting: Arc::new(Sorting {
                order: order.clone(),
                ties,
                prove,
                chunks,
                parts,
                count: bounds.count + 1,
                ahead_buckets: rayon::current_num_threads() * AHEAD_BUCKETS,
                state: Mutex::default(),
                is_sorted: Condvar::new(),
            }),
            current: SortedBucket::default(),
            at: 0,
            start: 0,
            end: 0,
        }
    }

    /// Moves to the next record (first of all: to the first) and gives its prefix; `None` at
    /// the end.
    ///
    /// # Errors
    /// The order is not proven.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<Option<Prefix>> {
        if self.at == self.current.prefixes.len() && !self.next_bucket()? {
            return Ok(None);
        }
        let prefix = self.current.prefixes[self.at];
        self.at += 1;
        self.start = self.end;
        self.end += tuple::size(&self.current.tuples[self.start..]);
        Ok(Some(prefix))
    }

    /// The tuple of the record in hand.
    #[inline]
    pub(super) fn tuple(&self) -> &[u8] {
        &self.current.tuples[self.start..self.end]
    }

    /// Moves before the first record of the next bucket that has one; false when there is none.
    #[cold]
    fn next_bucket(&mut self) -> Result<bool> {
        while let Some(bucket) = Sorting::take(&self.sorting)? {
            if bucket.prefixes.is_empty() {
                continue;
            }
            if self.sorting.prove && self.end > 0 {
                self.sorting.check(self.tuple(), &bucket.tuples)?;
            }
            let done = std::mem::replace(&mut self.current, bucket);
            self.sorting.state().spare.push(done);
            (self.at, self.start, self.end) = (0, 0, 0);
            return Ok(true);
        }
        Ok(false)
    }
}

/// The sort of the buckets, at which several threads work.
#[derive(Debug)]
struct Sorting {
    order: TupleOrder,
    ties: Ties,
    /// Whether each record is compared with the next where their prefixes alone order them.
    prove: bool,
    /// The tuples; their entries have moved to `parts`.
    chunks: Vec<Records>,
    /// For each chunk its entries by bucket, and where each bucket begins.
    parts: Vec<(Vec<RecordEntry>, Vec<u32>)>,
    /// How many buckets there are.
    count: usize,
    /// How many buckets may be sorted or in work that are not taken yet.
    ahead_buckets: usize,
    state: Mutex<SortingState>,
    /// A bucket was sorted.
    is_sorted: Condvar,
}

#[derive(Debug, Default)]
struct SortingState {
    /// Buckets that were taken by the merge.
    taken: usize,
    /// Those behind them that are sorted, or in work (`None`).
    ahead: VecDeque<Option<Result<SortedBucket>>>,
    /// Jobs that help, at work or queued.
    helpers: usize,
    /// Storage to be used again.
    spare: Vec<SortedBucket>,
}

impl SortingState {
    /// Takes the next bucket into work, if it is not too far ahead.
    fn claim(&mut self, sorting: &Sorting) -> Option<(usize, SortedBucket)> {
        let bucket = self.taken + self.ahead.len();
        if bucket == sorting.count || self.ahead.len() >= sorting.ahead_buckets {
            return None;
        }
        self.ahead.push_back(None);
        Some((bucket, self.spare.pop().unwrap_or_default()))
    }

    /// Whether so much may be sorted ahead that a thread is worth waking.
    fn wants_help(&self, sorting: &Sorting) -> bool {
        let left = sorting.count - self.taken - self.ahead.len();
        self.helpers + 1 < rayon::current_num_threads()
            && left > 0
            && self.ahead.len() <= sorting.ahead_buckets / 2
    }
}

impl Sorting {
    fn state(&self) -> MutexGuard<'_, SortingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next bucket in order; `None` at the end. What is not in other hands this thread
    /// sorts itself, so that it never waits for a job that nobody has begun.
    fn take(sorting: &Arc<Sorting>) -> Result<Option<SortedBucket>> {
        let mut state = sorting.state();
        loop {
            if state.taken == sorting.count {
                return Ok(None);
            }
            if state.wants_help(sorting) {
                state.helpers += 1;
                let sorting = Arc::clone(sorting);
                rayon::spawn(move || sorting.help());
            }
            if let Some(Some(_)) = state.ahead.front() {
                state.taken += 1;
                return state.ahead.pop_front().flatten().transpose();
            }
            state = match state.claim(sorting) {
                Some((bucket, storage)) => {
                    drop(state);
                    sorting.sort_and_keep(bucket, storage)
                }
                None => sorting
                    .is_sorted
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Sorts buckets until enough are ahead of the merge.
    fn help(&self) {
        let mut state = self.state();
        while let Some((bucket, storage)) = state.claim(self) {
            drop(state);
            state = self.sort_and_keep(bucket, storage);
        }
        state.helpers -= 1;
    }

    /// Sorts a bucket that was claimed.
    fn sort_and_keep(&self, bucket: usize, storage: SortedBucket) -> MutexGuard<'_, SortingState> {
        let sorted = self.sort(bucket, storage);
        let mut state = self.state();
        let place = bucket - state.taken;
        state.ahead[place] = Some(sorted);
        self.is_sorted.notify_all();
        state
    }

    /// # Errors
    /// The first tuple orders after the second.
    fn check(&self, first: &[u8], second: &[u8]) -> Result<()> {
        if self.order.compare_from(0, first, second).is_gt() {
            return Err(order_not_proven());
        }
        Ok(())
    }

    /// Sorts a bucket into this storage.
    fn sort(&self, bucket: usize, mut sorted: SortedBucket) -> Result<SortedBucket> {
        let mut entries = Vec::new();
        for ((part, starts), chunk) in self.parts.iter().zip(&self.chunks) {
            let part = &part[starts[bucket] as usize..starts[bucket + 1] as usize];
            // The chunks lie all over memory, and a bucket's tuples fit the cache.
            for entry in part {
                prefetch(&chunk.arena[entry.pos as usize..]);
            }
            entries.extend_from_slice(part);
        }
        // Stable sorts keep what ties in the order of the TIDs it mostly came in.
        entries.sort_by_key(|entry| entry.prefix);
        for tied in entries.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if tied.len() > 1 {
                self.sort_ties(tied);
            }
        }
        if self.prove {
            for pair in entries.windows(2) {
                if pair[0].prefix != pair[1].prefix {
                    self.check(self.tuple_of(&pair[0]), self.tuple_of(&pair[1]))?;
                }
            }
        }
        sorted.prefixes.clear();
        sorted.prefixes.reserve_exact(entries.len());
        sorted.tuples.clear();
        for entry in &entries {
            sorted.prefixes.push(entry.prefix);
            let chunk = &self.chunks[entry.chunk as usize];
            append_tuple(&mut sorted.tuples, &chunk.arena[entry.pos as usize..]);
        }
        Ok(sorted)
    }

    /// Sorts entries of one prefix.
    fn sort_ties(&self, tied: &mut [RecordEntry]) {
        let prefix = tied[0].prefix;
        if tied.len() < MIN_TIES || self.bytes_after(&tied[0]).is_none() {
            self.sort_whole(tied);
            return;
        }
        for entry in tied.iter_mut() {
            entry.prefix = self.bytes_after(entry).unwrap_or_default();
        }
        tied.sort_by_key(|entry| entry.prefix);
        for tied in tied.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if tied.len() > 1 {
                self.sort_whole(tied);
            }
        }
        for entry in tied {
            entry.prefix = prefix;
        }
    }

    /// Sorts entries by their tuples' keys and TIDs.
    fn sort_whole(&self, tied: &mut [RecordEntry]) {
        tied.sort_by(|a, b| {
            let (a, b) = ((0, self.tuple_of(a)), (0, self.tuple_of(b)));
            records::compare(&self.order, self.ties.whole, a, b)
        });
    }

    /// The bytes behind the prefix, so that they order as the values do; `None` where bytes are
    /// not the order.
    fn bytes_after(&self, entry: &RecordEntry) -> Option<u128> {
        let key = self.order.keys.get(self.ties.whole)?;
        let layout = &self.order.layout[..self.order.keys.len()];
        let stored = tuple::attributes(layout, self.tuple_of(entry)).nth(self.ties.whole)?;
        let Some(stored) = stored else {
            return key.order.bytes_after(&[], 0).map(|_| 0);
        };
        let bytes = if layout[self.ties.whole].len == AttrLen::Varlena {
            let plain = codec::plain(stored);
            key.order.bytes_after(&plain, self.ties.known_bytes)?
        } else {
            key.order.bytes_after(stored, self.ties.known_bytes)?
        };
        Some(if key.descending { !bytes } else { bytes })
    }

    #[inline]
    fn tuple_of(&self, entry: &RecordEntry) -> &[u8] {
        self.chunks[entry.chunk as usize].tuple(entry)
    }
}

/// Prefixes that cut the entries into buckets of about the same size: bucket i has those from
/// bound i - 1 on and below bound i.
struct Bounds {
    /// Ascending; filled up with the greatest prefix, so that they are one less than a power
    /// of two.
    prefixes: Vec<Prefix>,
    /// How many there are in truth.
    count: usize,
}

impl Bounds {
    fn new(chunks: &[Records]) -> Bounds {
        let total: usize = chunks.iter().map(|chunk| chunk.entries.len()).sum();
        let buckets = (total / BUCKET_ENTRIES).clamp(1, MAX_BUCKETS);
        let step = (total / (buckets * SAMPLES_PER_BUCKET)).max(1);
        let mut sample: Vec<Prefix> = chunks
            .iter()
            .flat_map(|chunk| chunk.entries.iter())
            .step_by(step)
            .map(|entry| entry.prefix)
            .collect();
        sample.sort_unstable();
        let mut prefixes: Vec<Prefix> = (1..buckets)
            .map(|i| sample[i * sample.len() / buckets])
            .collect();
        prefixes.dedup();
        let count = prefixes.len();
        prefixes.resize((count + 1).next_power_of_two() - 1, Prefix::MAX);
        Bounds { prefixes, count }
    }

    /// The bucket of a prefix: how many bounds are not above it. The search takes the same
    /// steps for each, without a branch that could be guessed wrong.
    #[inline]
    fn bucket(&self, prefix: Prefix) -> usize {
        let mut below = 0;
        let mut step = self.prefixes.len().div_ceil(2);
        while step > 0 {
            let is_above = self.prefixes[below + step - 1] <= prefix;
            below += step & usize::from(is_above).wrapping_neg();
            step /= 2;
        }
        below.min(self.count)
    }
}

/// The entries of chunk `number` by bucket, in the order they had, and where each bucket begins.
/// The tuples are laid in the same order: whoever sorts a bucket finds those of a chunk side by
/// side.
fn partition(number: u32, chunk: &mut Records, bounds: &Bounds) -> (Vec<RecordEntry>, Vec<u32>) {
    let entries = std::mem::take(&mut chunk.entries);
    let mut starts = vec![0u32; bounds.count + 2];
    let bucket_of: Vec<u16> = entries
        .iter()
        .map(|entry| {
            let bucket = bounds.bucket(entry.prefix);
            starts[bucket + 1] += 1;
            bucket as u16
        })
        .collect();
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut out = entries.clone();
    for (entry, bucket) in entries.into_iter().zip(bucket_of) {
        let place = &mut next[bucket as usize];
        out[*place as usize] = RecordEntry {
            chunk: number,
            ..entry
        };
        *place += 1;
    }
    for line in chunk.arena.chunks(CACHE_LINE_BYTES) {
        prefetch(line);
    }
    let mut arena = Vec::with_capacity(chunk.arena.len() + WIDE_BYTES);
    for entry in &mut out {
        let tuple = &chunk.arena[entry.pos as usize..];
        entry.pos = arena.len() as u32;
        append_tuple(&mut arena, tuple);
    }
    chunk.arena = arena;
    (out, starts)
}

/// Appends the tuple that `from` begins with. Most are short: these are copied without a branch
/// on their size.
#[inline(always)]
fn append_tuple(to: &mut Vec<u8>, from: &[u8]) {
    let size = tuple::size(from);
    match from.first_chunk::<WIDE_BYTES>() {
        Some(wide) if size <= WIDE_BYTES => {
            let end = to.len() + size;
            to.extend_from_slice(wide);
            to.truncate(end);
        }
        _ => to.extend_from_slice(&from[..size]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::KeyDefinition;
    use pgformat::datum::order::Order;
    use pgformat::datum::varlena;
    use pgformat::ids::Tid;
    use pgformat::layout::{AttributeLayout, Compression, Storage};
    use proptest::prelude::*;

    fn order() -> TupleOrder {
        TupleOrder {
            layout: vec![AttributeLayout {
                len: AttrLen::Varlena,
                align: 4,
                by_value: false,
                storage: Storage::Extended,
                compression: Compression::Pglz,
            }],
            keys: vec![KeyDefinition {
                order: Order::Bytea,
                descending: false,
                nulls_first: false,
            }],
        }
    }

    /// Chunks of tuples with values of few different bytes, so that many prefixes tie and some
    /// are the least or the greatest there is.
    fn chunks(order: &TupleOrder, chunks: u32, rows: u16) -> Vec<Records> {
        let mut seed = 7u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut chunk = |block| {
            let mut records = Records::default();
            for offset in 1..=rows {
                let len = next(30) as usize;
                let mut value = vec![varlena::short_header(len + 1)];
                let alphabet = if next(8) == 0 {
                    &b"\xff"[..]
                } else {
                    b"\0a\xff"
                };
                value.extend((0..len).map(|_| alphabet[next(alphabet.len() as u64) as usize]));
                let pos = records.arena.len();
                tuple::form(&order.layout, |_| Some(&value), &mut records.arena);
                tuple::set_tid(&mut records.arena[pos..], Tid { block, offset });
                records.entries.push(RecordEntry {
                    prefix: Order::Bytea.prefix(&value, 128),
                    chunk: 0,
                    pos: pos as u32,
                });
            }
            records
        };
        (0..chunks).map(&mut chunk).collect()
    }

    #[test]
    fn buckets_give_what_the_naive_sort_gives_whoever_sorts_them() {
        let order = order();
        let mut naive: Vec<Vec<u8>> = chunks(&order, 30, 2000)
            .iter()
            .flat_map(|chunk| {
                chunk
                    .entries
                    .iter()
                    .map(|entry| chunk.tuple(entry).to_vec())
            })
            .collect();
        naive.sort_by(|a, b| {
            let by_key = order.compare_from(0, a, b);
            by_key.then_with(|| tuple::tid(a).cmp(&tuple::tid(b)))
        });
        let ties = Ties {
            whole: 0,
            known_bytes: 16,
        };
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let sorted = pool.unwrap().install(|| {
                let mut buckets = Buckets::new(&order, ties, true, chunks(&order, 30, 2000));
                assert!(buckets.sorting.count > 4);
                let mut sorted = Vec::new();
                while buckets.advance().unwrap().is_some() {
                    sorted.push(buckets.tuple().to_vec());
                }
                sorted
            });
            assert!(sorted == naive, "{threads} threads");
        }
    }

    proptest! {
        #[test]
        fn a_prefix_s_bucket_is_behind_all_bounds_that_are_not_above_it(
            mut prefixes in proptest::collection::vec(any::<u8>(), 0..70),
            looked_for in any::<u8>(),
        ) {
            // The greatest number is the greatest prefix.
            let prefix = |n: u8| Prefix::MAX - Prefix::from(u8::MAX - n);
            prefixes.sort_unstable();
            prefixes.dedup();
            let mut prefixes: Vec<Prefix> = prefixes.into_iter().map(prefix).collect();
            let expected = prefixes.partition_point(|bound| *bound <= prefix(looked_for));
            let count = prefixes.len();
            prefixes.resize((count + 1).next_power_of_two() - 1, Prefix::MAX);
            let bounds = Bounds { prefixes, count };
            prop_assert_eq!(bounds.bucket(prefix(looked_for)), expected);
        }
    }
}
