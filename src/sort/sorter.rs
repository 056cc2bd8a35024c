//! Collecting an index's entries within a budget of memory and giving them back in order.
//!
//! Entries wait unsorted, in the chunks they came in. When they take more than half the budget
//! the thread that notices takes some of them, sorts them and writes them out as a run; it holds
//! no lock meanwhile. At the end what is in memory is sorted in parallel and becomes one more
//! run, and all runs are merged at once.

use super::buckets::{Buckets, Ties};
use super::compare::TupleOrder;
use super::merge::{Merge, Source};
use super::radix;
use super::records::{self, PREFIX_BYTES, Prefix, RecordEntry, Records};
use super::spec::{IndexSpec, KeyBuffer, KeyPlan, Rows};
use super::spill::{Run, RunReader, RunWriter, SpillFile};
use super::words::Entry;
use crate::error::{Error, Result};
use pgformat::btree::tuple;
use pgformat::ids::Tid;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The fewest bytes of a run; below it the files' blocks would be crumbs.
const MIN_RUN_BYTES: usize = 64 * 1024;
/// Bounds of a block of a run on disk.
const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 4096..=256 * 1024;

/// Sorts the entries of one index.
#[derive(Debug)]
pub struct Sorter {
    spec: IndexSpec,
    store: Store,
    file: SpillFile,
    /// Bytes of entries that may wait in memory.
    waiting_bytes: usize,
    /// Bytes of entries that are written as one run.
    run_bytes: usize,
}

/// The entries, by their kind.
#[derive(Debug)]
enum Store {
    Two(Mutex<Waiting<Vec<Entry<2>>>>),
    Three(Mutex<Waiting<Vec<Entry<3>>>>),
    Four(Mutex<Waiting<Vec<Entry<4>>>>),
    Records(Mutex<Waiting<Records>>),
}

/// Chunks in memory and runs on disk.
#[derive(Debug)]
struct Waiting<C> {
    chunks: Vec<C>,
    bytes: usize,
    runs: Vec<Run>,
}

impl<C> Waiting<C> {
    fn new() -> Mutex<Waiting<C>> {
        Mutex::new(Waiting {
            chunks: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sorter {
    /// A sorter that holds up to about `budget_bytes` of memory, the sorting of runs included,
    /// and puts what is more into an unnamed file in `temp_dir`.
    pub fn new(spec: IndexSpec, budget_bytes: usize, temp_dir: &Path) -> Sorter {
        let threads = rayon::current_num_threads().max(1);
        let store = match &spec.plan {
            KeyPlan::Words(plan) if plan.words == 2 => Store::Two(Waiting::new()),
            KeyPlan::Words(plan) if plan.words == 3 => Store::Three(Waiting::new()),
            KeyPlan::Words(_) => Store::Four(Waiting::new()),
            KeyPlan::Records(_) => Store::Records(Waiting::new()),
        };
        // Half for what waits; the other half for the runs that threads sort, each of which
        // needs its own size once more.
        let run_bytes = (budget_bytes / 4 / threads).max(MIN_RUN_BYTES);
        let block_bytes = (run_bytes / 64).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        Sorter {
            spec,
            store,
            file: SpillFile::new(temp_dir.to_owned(), block_bytes),
            waiting_bytes: budget_bytes / 2,
            run_bytes,
        }
    }

    /// Bytes that went to the temporary file so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// The index.
    pub fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// Takes all rows of a buffer, now that their TIDs are known, and empties it. Threads may
    /// call it at the same time, and in any order of the rows.
    ///
    /// # Errors
    /// When a run cannot be written (SQLSTATE 53100 when the disk is full).
    ///
    /// # Panics
    /// When there is not a TID for each row, or the buffer is another index's.
    pub fn add(&self, buffer: &mut KeyBuffer, tids: &[Tid]) -> Result<()> {
        assert_eq!(buffer.len(), tids.len(), "a TID for each row");
        match (&self.store, &mut buffer.rows) {
            (Store::Two(store), Rows::Two(rows)) => self.add_words(store, rows, tids),
            (Store::Three(store), Rows::Three(rows)) => self.add_words(store, rows, tids),
            (Store::Four(store), Rows::Four(rows)) => self.add_words(store, rows, tids),
            (Store::Records(store), Rows::Records(rows)) => self.add_records(store, rows, tids),
            _ => panic!("a key buffer of another index"),
        }
    }

    fn add_words<const W: usize>(
        &self,
        store: &Mutex<Waiting<Vec<Entry<W>>>>,
        rows: &mut Vec<Entry<W>>,
        tids: &[Tid],
    ) -> Result<()> {
        let chunk: Vec<Entry<W>> = rows
            .iter()
            .zip(tids)
            .map(|(row, tid)| {
                let mut entry = *row;
                entry[W - 1] |= tid.to_u64();
                entry
            })
            .collect();
        rows.clear();
        let bytes = |chunk: &Vec<Entry<W>>| size_of_val(&chunk[..]);
        self.add_chunk(store, chunk, bytes, |chunks| {
            let run = radix::sort_run(chunks);
            let mut writer = RunWriter::new(&self.file);
            for entry in &run {
                writer.push(entry.map(u64::to_le_bytes).iter().map(|word| &word[..]))?;
            }
            writer.finish()
        })
    }

    fn add_records(
        &self,
        store: &Mutex<Waiting<Records>>,
        rows: &mut Records,
        tids: &[Tid],
    ) -> Result<()> {
        let mut chunk = Records {
            entries: rows.entries.clone(),
            arena: rows.arena.clone(),
        };
        rows.entries.clear();
        rows.arena.clear();
        for (entry, tid) in chunk.entries.iter().zip(tids) {
            tuple::set_tid(&mut chunk.arena[entry.pos as usize..], *tid);
        }
        self.add_chunk(store, chunk, Records::used_bytes, |chunks| {
            let (entries, chunks) = gather(chunks);
            let run = self.sorted_records(entries, &chunks);
            let mut writer = RunWriter::new(&self.file);
            for entry in &run {
                let tuple = chunks[entry.chunk as usize].tuple(entry);
                writer.push([&entry.prefix.to_le_bytes()[..], tuple])?;
            }
            writer.finish()
        })
    }

    /// Lets a chunk wait, and spills runs while too much waits.
    fn add_chunk<C>(
        &self,
        store: &Mutex<Waiting<C>>,
        chunk: C,
        bytes: impl Fn(&C) -> usize,
        spill: impl Fn(Vec<C>) -> Result<Run>,
    ) -> Result<()> {
        let mut waiting = lock(store);
        waiting.bytes += bytes(&chunk);
        waiting.chunks.push(chunk);
        while waiting.bytes > self.waiting_bytes {
            let mut taken = Vec::new();
            let mut taken_bytes = 0;
            while taken_bytes < self.run_bytes
                && let Some(chunk) = waiting.chunks.pop()
            {
                taken_bytes += bytes(&chunk);
                taken.push(chunk);
            }
            waiting.bytes -= taken_bytes;
            drop(waiting);
            let run = spill(taken)?;
            waiting = lock(store);
            waiting.runs.push(run);
        }
        Ok(())
    }

    fn sorted_records(
        &self,
        mut entries: Vec<RecordEntry>,
        chunks: &[Records],
    ) -> Vec<RecordEntry> {
        let Ties { whole, .. } = self.spec.ties();
        let compare = |a: &RecordEntry, b: &RecordEntry| {
            a.prefix.cmp(&b.prefix).then_with(|| {
                let tuple = |e: &RecordEntry| (e.prefix, chunks[e.chunk as usize].tuple(e));
                records::compare(&self.spec.order, whole, tuple(a), tuple(b))
            })
        };
        entries.sort_unstable_by(compare);
        entries
    }

    /// Sorts what is in memory in parallel and prepares the merge with the runs on disk.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub fn finish(&mut self) -> Result<Sorted<'_>> {
        fn take<C>(store: &mut Mutex<Waiting<C>>) -> (Vec<C>, Vec<Run>) {
            let waiting = store.get_mut().unwrap_or_else(PoisonError::into_inner);
            waiting.bytes = 0;
            (
                std::mem::take(&mut waiting.chunks),
                std::mem::take(&mut waiting.runs),
            )
        }
        Ok(match &mut self.store {
            Store::Two(store) => {
                let (chunks, runs) = take(store);
                Sorted::Two(SortedWords::new(chunks, runs, &self.file)?)
            }
            Store::Three(store) => {
                let (chunks, runs) = take(store);
                Sorted::Three(SortedWords::new(chunks, runs, &self.file)?)
            }
            Store::Four(store) => {
                let (chunks, runs) = take(store);
                Sorted::Four(SortedWords::new(chunks, runs, &self.file)?)
            }
            Store::Records(store) => {
                let (chunks, runs) = take(store);
                let plan_proven = match &self.spec.plan {
                    KeyPlan::Records(plan) => plan.proven,
                    KeyPlan::Words(_) => true,
                };
                // With runs the merge's outcome must be looked through instead.
                let prove = !plan_proven && runs.is_empty();
                let order = &self.spec.order;
                let ties = self.spec.ties();
                let memory = Buckets::new(order, ties, prove, chunks);
                let merge = SortedRecords::merge(order, ties.whole, memory, runs, &self.file)?;
                let proven = plan_proven || prove;
                Sorted::Records(SortedRecords { merge, proven })
            }
        })
    }
}

/// The error of a sort whose prefixes turn out not to order as the values do.
#[cold]
pub(crate) fn order_not_proven() -> Error {
    Error::unsupported("this machine's strxfrm does not order text as its strcoll does")
        .with_hint("Let the server build the index.")
}

/// The entries of chunks, each with its chunk's number.
fn gather(chunks: Vec<Records>) -> (Vec<RecordEntry>, Vec<Records>) {
    let mut entries = Vec::with_capacity(chunks.iter().map(|c| c.entries.len()).sum());
    let mut arenas = Vec::with_capacity(chunks.len());
    for (number, mut chunk) in chunks.into_iter().enumerate() {
        let number = u32::try_from(number).expect("fewer than 2^32 chunks");
        entries.extend(chunk.entries.drain(..).map(|entry| RecordEntry {
            chunk: number,
            ..entry
        }));
        chunk.entries = Vec::new();
        arenas.push(chunk);
    }
    (entries, arenas)
}

/// All entries of an index in order.
#[derive(Debug)]
pub enum Sorted<'s> {
    /// Entries of two words.
    Two(SortedWords<'s, 2>),
    /// Entries of three words.
    Three(SortedWords<'s, 3>),
    /// Entries of four words.
    Four(SortedWords<'s, 4>),
    /// Records.
    Records(SortedRecords<'s>),
}

/// Word entries in order.
#[derive(Debug)]
pub enum SortedWords<'s, const W: usize> {
    /// All in memory.
    Memory(std::vec::IntoIter<Entry<W>>),
    /// Merged.
    Merged(MergedWords<'s, W>),
}

/// Word entries of several runs.
#[derive(Debug)]
pub struct MergedWords<'s, const W: usize>(Merge<WordSource<'s, W>>);

#[derive(Debug)]
struct WordSource<'s, const W: usize> {
    from: WordRun<'s, W>,
    current: Entry<W>,
}

#[derive(Debug)]
enum WordRun<'s, const W: usize> {
    Memory(std::vec::IntoIter<Entry<W>>),
    Disk(RunReader<'s>),
}

impl<const W: usize> Source for WordSource<'_, W> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match &mut self.from {
            WordRun::Memory(entries) => match entries.next() {
                Some(entry) => self.current = entry,
                None => return Ok(false),
            },
            WordRun::Disk(reader) => {
                let block = reader.fill()?;
                if block.is_empty() {
                    return Ok(false);
                }
                let (words, _) = block.as_chunks::<8>();
                for (to, from) in self.current.iter_mut().zip(words) {
                    *to = u64::from_le_bytes(*from);
                }
                reader.consume(W * 8);
            }
        }
        Ok(true)
    }

    #[inline]
    fn before(&self, other: &Self) -> bool {
        self.current < other.current
    }
}

impl<'s, const W: usize> SortedWords<'s, W> {
    fn new(
        chunks: Vec<Vec<Entry<W>>>,
        runs: Vec<Run>,
        file: &'s SpillFile,
    ) -> Result<SortedWords<'s, W>> {
        let memory = radix::sort_chunks(chunks).into_iter();
        if runs.is_empty() {
            return Ok(SortedWords::Memory(memory));
        }
        let mut sources = vec![WordRun::Memory(memory)];
        sources.extend(
            runs.into_iter()
                .map(|run| WordRun::Disk(RunReader::new(file, run))),
        );
        let sources = sources.into_iter().map(|from| WordSource {
            from,
            current: [0; W],
        });
        Ok(SortedWords::Merged(MergedWords(Merge::new(
            sources.collect(),
        )?)))
    }
}

impl<const W: usize> MergedWords<'_, W> {
    /// The next entry.
    ///
    /// # Errors
    /// When a run cannot be read.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<Entry<W>>> {
        Ok(self.0.next()?.map(|source| source.current))
    }
}

/// Records in order.
#[derive(Debug)]
pub struct SortedRecords<'s> {
    merge: Merge<RecordSource<'s>>,
    proven: bool,
}

#[derive(Debug)]
struct RecordSource<'s> {
    order: &'s TupleOrder,
    whole: usize,
    from: RecordRun<'s>,
    prefix: Prefix,
}

#[derive(Debug)]
enum RecordRun<'s> {
    /// Sorted as it is taken.
    Memory(Box<Buckets>),
    /// The reader stands on the tuple in hand, of so many bytes.
    Disk { reader: RunReader<'s>, bytes: usize },
}

impl RecordSource<'_> {
    #[inline]
    fn tuple(&self) -> &[u8] {
        match &self.from {
            RecordRun::Memory(buckets) => buckets.tuple(),
            RecordRun::Disk { reader, bytes } => &reader.rest()[..*bytes],
        }
    }
}

impl Source for RecordSource<'_> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match &mut self.from {
            RecordRun::Memory(buckets) => match buckets.advance()? {
                Some(prefix) => self.prefix = prefix,
                None => return Ok(false),
            },
            RecordRun::Disk { reader, bytes } => {
                reader.consume(*bytes);
                *bytes = 0;
                let block = reader.fill()?;
                let Some((prefix, tuple)) = block.split_first_chunk::<PREFIX_BYTES>() else {
                    return Ok(false);
                };
                self.prefix = Prefix::from_le_bytes(*prefix);
                *bytes = tuple::size(tuple);
                reader.consume(PREFIX_BYTES);
            }
        }
        Ok(true)
    }

    #[inline]
    fn before(&self, other: &Self) -> bool {
        let mine = (self.prefix, self.tuple());
        let others = (other.prefix, other.tuple());
        records::compare(self.order, self.whole, mine, others).is_lt()
    }
}

impl<'s> SortedRecords<'s> {
    fn merge(
        order: &'s TupleOrder,
        whole: usize,
        memory: Buckets,
        runs: Vec<Run>,
        file: &'s SpillFile,
    ) -> Result<Merge<RecordSource<'s>>> {
        let mut sources = vec![RecordRun::Memory(Box::new(memory))];
        sources.extend(runs.into_iter().map(|run| RecordRun::Disk {
            reader: RunReader::new(file, run),
            bytes: 0,
        }));
        let sources = sources.into_iter().map(|from| RecordSource {
            order,
            whole,
            from,
            prefix: 0,
        });
        Merge::new(sources.collect())
    }

    /// Whether the order is certain; if not, whoever takes the records must compare each with
    /// the one before.
    pub fn is_proven(&self) -> bool {
        self.proven
    }

    /// The next record: its prefix and its tuple, TID set.
    ///
    /// # Errors
    /// When a run cannot be read.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<(Prefix, &[u8])>> {
        Ok(self
            .merge
            .next()?
            .map(|source| (source.prefix, source.tuple())))
    }
}
