//! Sorting records in memory: by prefix into buckets that fit the cache, then each bucket.
//!
//! ```text
//! chunks    |c0|c1|c2| ...     in the order of their TIDs
//! parts     each chunk's entries by bucket, all chunks in parallel
//! buckets   sorted some at a time, in parallel, as the merge comes to them;
//!           their tuples are copied side by side in their order
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
use pgformat::btree::tuple;
use pgformat::layout::AttrLen;
use rayon::prelude::*;
use std::collections::VecDeque;

/// Entries of a bucket, about: with their tuples they fit the second-level cache.
const BUCKET_ENTRIES: usize = 4096;
/// Most buckets: their bounds fit the first-level cache.
const MAX_BUCKETS: usize = 2048;
/// Entries that are looked at for each bound.
const SAMPLES_PER_BUCKET: usize = 8;
/// Buckets that each thread sorts before the merge goes on.
const AHEAD_BUCKETS: usize = 16;
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
pub(super) struct Buckets<'s> {
    order: &'s TupleOrder,
    ties: Ties,
    /// Whether each record is compared with the next where their prefixes alone order them.
    prove: bool,
    /// The tuples; their entries have moved to `parts`.
    chunks: Vec<Records>,
    /// For each chunk its entries by bucket, and where each bucket begins.
    parts: Vec<(Vec<RecordEntry>, Vec<u32>)>,
    /// How many buckets there are.
    count: usize,
    /// The next bucket to be sorted.
    next: usize,
    ready: VecDeque<SortedBucket>,
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

impl<'s> Buckets<'s> {
    /// Deals out the entries of chunks. With `prove` prefixes are not trusted: records that
    /// turn out not to order as they do are an error.
    pub(super) fn new(
        order: &'s TupleOrder,
        ties: Ties,
        prove: bool,
        mut chunks: Vec<Records>,
    ) -> Buckets<'s> {
        chunks.retain(|chunk| !chunk.entries.is_empty());
        chunks.sort_unstable_by_key(|chunk| tuple::tid(chunk.tuple(&chunk.entries[0])));
        let bounds = bounds(&chunks);
        let parts = chunks
            .par_iter_mut()
            .enumerate()
            .map(|(number, chunk)| {
                let number = u32::try_from(number).expect("fewer than 2^32 chunks");
                partition(number, std::mem::take(&mut chunk.entries), &bounds)
            })
            .collect();
        Buckets {
            order,
            ties,
            prove,
            chunks,
            parts,
            count: bounds.len() + 1,
            next: 0,
            ready: VecDeque::new(),
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
        loop {
            while let Some(bucket) = self.ready.pop_front() {
                if bucket.prefixes.is_empty() {
                    continue;
                }
                if self.prove && self.end > 0 {
                    self.check(self.tuple(), &bucket.tuples)?;
                }
                self.current = bucket;
                (self.at, self.start, self.end) = (0, 0, 0);
                return Ok(true);
            }
            if self.next == self.count {
                return Ok(false);
            }
            let some = rayon::current_num_threads() * AHEAD_BUCKETS;
            let until = (self.next + some).min(self.count);
            let sorted = (self.next..until)
                .into_par_iter()
                .map(|bucket| self.sort(bucket))
                .collect::<Result<Vec<SortedBucket>>>()?;
            self.next = until;
            self.ready.extend(sorted);
        }
    }

    /// # Errors
    /// The first tuple orders after the second.
    fn check(&self, first: &[u8], second: &[u8]) -> Result<()> {
        if self.order.compare_from(0, first, second).is_gt() {
            return Err(order_not_proven());
        }
        Ok(())
    }

    fn sort(&self, bucket: usize) -> Result<SortedBucket> {
        let mut entries = Vec::new();
        for (part, starts) in &self.parts {
            entries.extend_from_slice(&part[starts[bucket] as usize..starts[bucket + 1] as usize]);
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
        let mut sorted = SortedBucket::default();
        sorted.prefixes.reserve_exact(entries.len());
        for entry in &entries {
            sorted.prefixes.push(entry.prefix);
            sorted.tuples.extend_from_slice(self.tuple_of(entry));
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
            records::compare(self.order, self.ties.whole, a, b)
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
fn bounds(chunks: &[Records]) -> Vec<Prefix> {
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
    let mut bounds: Vec<Prefix> = (1..buckets)
        .map(|i| sample[i * sample.len() / buckets])
        .collect();
    bounds.dedup();
    bounds
}

/// The entries of chunk `number` by bucket, in the order they had, and where each bucket begins.
fn partition(
    number: u32,
    entries: Vec<RecordEntry>,
    bounds: &[Prefix],
) -> (Vec<RecordEntry>, Vec<u32>) {
    let mut starts = vec![0u32; bounds.len() + 2];
    let bucket_of: Vec<u16> = entries
        .iter()
        .map(|entry| {
            let bucket = bounds.partition_point(|bound| *bound <= entry.prefix);
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
    (out, starts)
}
