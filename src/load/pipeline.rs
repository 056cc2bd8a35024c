//! The workers: each takes a chunk, packs it, waits for its turn to place it, seals it, and
//! takes the next; a table whose last chunk is sealed has its indexes built.
//!
//! ```text
//! worker 1:  read pack [place] seal   read pack [place] seal   index a
//! worker 2:    read pack  ...[place] seal   read pack ...            index b
//! ```
//!
//! Where rows take values that the input does not give, a worker also waits for its turn to
//! number its rows before it packs them; see [`super::defaults::number`].
//!
//! A step of work is a job of rayon's pool and queues the next one when it is done. A worker
//! waits for a turn only while an earlier chunk is in other hands, and runs no other job before
//! it has passed its turn: nobody waits in a circle.

use super::built::{BuiltFork, BuiltIndex, BuiltTable};
use super::defaults::ask::Ask;
use super::defaults::number::{Given, Numbers, Surveyor};
use super::duplicate::Duplicate;
use super::inputs::{Inputs, Ticket};
use super::marks::{ChunkMark, Marks, RowLines};
use super::pack::{Packed, Packer, Packing};
use super::place::{PlacedHeap, Placement, Placer};
use super::plan::{InputPlan, NativePlan, Part, TablePlan};
use super::progress::Progress;
use super::report::VerbTimes;
use super::route::rows::RoutedRows;
use super::seal::{Heap, HeapKind, seal, seal_last};
use super::server_copy::without_end;
use super::toast_log::ToastLog;
use super::turns::{Turn, Turns};
use crate::build::btree::{BuildError, ToastIndexBuilder};
use crate::build::relation_file::{FileOptions, RelationFile};
use crate::build::sequential::SequentialPages;
use crate::build::visibility_map::{Marks as MapMarks, write_visibility_map};
use crate::build::writer::WriterPool;
use crate::error::{Error, Result};
use crate::record::chunk::{Chunk, Follows};
use crate::record::reader::ChunkReader;
use crate::sort::{IndexSpec, Sorter};
use crate::types::Settings;
use pgformat::heap::page::PageFill;
use pgformat::ids::{Oid, Tid};
use pgformat::toast::chunks::add_base_to_pointers;
use rayon::Scope;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// What all tables of a build share.
#[derive(Debug)]
pub struct Workshop<'a> {
    /// The threads that write.
    pub writers: &'a WriterPool,
    /// Settings of the encoders.
    pub settings: &'a Settings,
    /// Counters and the line on the terminal.
    pub progress: &'a Progress,
    /// The first TOAST value id.
    pub first_value_id: Oid,
    /// Set from outside to stop the build.
    pub interrupted: &'a AtomicBool,
    /// The server, where tables have values to ask it for.
    pub server: Option<&'a dyn Ask>,
}

/// One table to be built.
#[derive(Debug)]
pub struct TableJob<'a> {
    /// Its plan.
    pub table: &'a TablePlan,
    /// Its native plan.
    pub native: &'a NativePlan,
    /// Its chunks.
    pub inputs: Inputs<'a>,
    /// How files are made.
    pub files: FileOptions,
    /// The relations that its rows go to: itself, or its leaves.
    pub relations: Vec<RelationJob<'a>>,
    /// Memory for the sorts of all indexes together.
    pub sort_bytes: usize,
}

/// A relation to be built: a table or a leaf.
#[derive(Debug)]
pub struct RelationJob<'a> {
    /// Its plan.
    pub table: &'a TablePlan,
    /// Its native plan.
    pub native: &'a NativePlan,
    /// Where its heap is staged.
    pub heap_dir: PathBuf,
    /// Where each native index's file is staged, in their order.
    pub index_dirs: Vec<PathBuf>,
    /// Where its sorts spill.
    pub temp_dir: PathBuf,
}

/// What came of a table.
#[derive(Debug)]
pub struct BuiltJob {
    /// The table; of a partitioned one all but relations.
    pub table: BuiltTable,
    /// The leaves of a partitioned table, those without rows as they were.
    pub leaves: Vec<BuiltTable>,
}

/// Builds all tables, with as many threads as `pool` has.
///
/// # Errors
/// The first error of the first table that has one; other tables may have met theirs.
pub fn build_tables<'a>(
    pool: &rayon::ThreadPool,
    workshop: &Workshop<'a>,
    jobs: Vec<TableJob<'a>>,
) -> Result<Vec<BuiltJob>> {
    let tables: Vec<TableBuild<'_>> = jobs
        .into_iter()
        .enumerate()
        .map(|(number, job)| TableBuild::new(number, job))
        .collect();
    let build = Build {
        workshop,
        tables: &tables,
        next_table: AtomicU64::new(0),
        failure: Mutex::new(None),
        stopped: AtomicBool::new(false),
        doomed: AtomicBool::new(false),
    };
    pool.scope(|scope| {
        for _ in 0..pool.current_num_threads() {
            let worker = Worker::default();
            scope.spawn(|scope| build.step(worker, scope));
        }
    });
    if let Some((_, error)) = build
        .failure
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        return Err(error);
    }
    for table in &tables {
        if let Some(error) = table.first_duplicate()? {
            return Err(error);
        }
    }
    workshop.writers.finished()?;
    Ok(tables.into_iter().map(TableBuild::into_built).collect())
}

/// A table being built.
struct TableBuild<'a> {
    number: usize,
    job: TableJob<'a>,
    /// The relations of the job.
    relations: Vec<RelationBuild<'a>>,
    turns: Turns<Ordered>,
    numbering: Turns<Numbering>,
    /// Chunks that were taken and are not sealed, plus one while there may be more.
    open_chunks: AtomicU64,
    exhausted: AtomicBool,
    ended: AtomicBool,
    /// What is known of the outcome so far, but for the relations.
    built: Mutex<BuiltTable>,
}

/// A relation being built.
struct RelationBuild<'a> {
    table: &'a TablePlan,
    native: &'a NativePlan,
    heap_dir: PathBuf,
    index_dirs: Vec<PathBuf>,
    temp_dir: PathBuf,
    files: FileOptions,
    /// Memory for the sort of an index.
    sort_bytes: usize,
    /// The native indexes with their numbers among all.
    specs: Vec<(usize, &'a IndexSpec)>,
    heap_file: Arc<RelationFile>,
    toast_file: Option<Arc<RelationFile>>,
    /// Made when rows come.
    sorters: OnceLock<Vec<RwLock<Option<Sorter>>>>,
    /// Keys that stand twice in a unique index.
    duplicates: Mutex<Vec<Duplicate>>,
    /// What is known of the outcome so far.
    built: Mutex<BuiltTable>,
}

/// How far a table's inputs were read.
#[derive(Debug, Default)]
struct Reached {
    /// The input that the last chunk was of.
    input: usize,
    /// Where the next record of that input begins.
    ended_at: u64,
    /// Lines of that input so far, and those of its name before it.
    lines: u64,
    /// An end-of-data marker was met in it.
    end_of_data: bool,
}

impl Reached {
    /// Before the first chunk of an input.
    fn begin(input: usize, plan: &TablePlan) -> Reached {
        Reached {
            input,
            lines: plan.inputs.get(input).map_or(0, |i| i.lines_before),
            ..Reached::default()
        }
    }

    /// Begins the next input, if it is the next.
    ///
    /// # Errors
    /// Those of [`Reached::complete`].
    fn enter(&mut self, input: usize, plan: &TablePlan) -> Result<()> {
        if self.input != input {
            self.complete(plan)?;
            *self = Reached::begin(input, plan);
        }
        Ok(())
    }

    /// Nothing of the input is left.
    ///
    /// # Errors
    /// `22P04` when its end is missing.
    fn complete(&self, plan: &TablePlan) -> Result<()> {
        match plan.inputs.get(self.input) {
            Some(input) if input.ends_with_marker && !self.end_of_data => {
                Err(without_end(&input.label))
            }
            _ => Ok(()),
        }
    }

    /// Goes over a chunk that was read to its end.
    fn pass(&mut self, chunk: &Chunk, reader: &ChunkReader<'_>) {
        self.ended_at = chunk.ends_at();
        self.lines += reader.lines();
        self.end_of_data = reader.end_of_data();
    }
}

/// What the workers take turns at to number rows.
#[derive(Debug)]
struct Numbering {
    reached: Reached,
    numbers: Numbers,
}

/// What comes of a chunk's turn to number.
enum Numbered<'t> {
    /// It has the values that the input does not give. The turn is kept while there are more
    /// to come.
    Rows(Box<Given>, Option<Turn<'t, Numbering>>),
    /// It has no rows, whatever it looked like.
    NoRows,
    /// A chunk before it is refused.
    Hopeless,
}

/// What the workers take turns at.
#[derive(Debug)]
struct Ordered {
    reached: Reached,
    /// For each relation; `None` as long as no row came.
    relations: Vec<Option<Box<PlacedRows>>>,
}

/// A relation's rows so far.
#[derive(Debug)]
struct PlacedRows {
    rows: u64,
    values: u32,
    heap: Placer,
    toast: Placer,
    toast_log: ToastLog,
    marks: Marks,
}

impl Ordered {
    /// Places the rows of each relation after all those before.
    fn place(
        &mut self,
        first_value_id: Oid,
        packer: &mut Packer<'_>,
        relations: &[RelationBuild<'_>],
        places: &mut Vec<Places>,
    ) {
        for (used, (number, packed)) in packer.filled().enumerate() {
            if places.len() == used {
                places.push(Places::default());
            }
            self.relations[number]
                .get_or_insert_with(|| Box::new(PlacedRows::new(relations[number].table)))
                .place(&self.reached, first_value_id, packed, &mut places[used]);
        }
    }
}

impl PlacedRows {
    fn new(table: &TablePlan) -> PlacedRows {
        PlacedRows {
            rows: 0,
            values: 0,
            heap: Placer::new(PageFill::new(table.relation.fillfactor)),
            toast: Placer::new(PageFill::for_toast()),
            toast_log: ToastLog::default(),
            marks: Marks::default(),
        }
    }

    fn place(
        &mut self,
        reached: &Reached,
        first_value_id: Oid,
        packed: &mut Packed,
        places: &mut Places,
    ) {
        // Value ids become final before tuples are passed on to the next page's sealer.
        let value_base = first_value_id + self.values;
        self.values += packed.toast.value_count();
        let patches = packed.toast.pointer_patches();
        add_base_to_pointers(packed.builder.arena_mut(), patches, value_base);
        packed.toast.add_base(value_base);
        let Places {
            heap,
            toast,
            tids,
            toast_tids,
        } = places;
        *heap = self
            .heap
            .place(packed.builder.arena(), &packed.tuples, tids);
        *toast = self
            .toast
            .place(packed.toast.arena(), packed.toast.tuples(), toast_tids);
        self.toast_log.extend(&packed.toast);
        self.rows += packed.tuples.len() as u64;
        if let Some(first) = tids.first() {
            self.marks.push(ChunkMark {
                first: *first,
                input: reached.input,
                first_row_line: reached.lines + packed.first_row_line,
                row_lines: RowLines::new(&packed.row_lines),
            });
        }
    }
}

/// Where packed rows go.
#[derive(Debug, Default)]
struct Places {
    heap: Placement,
    toast: Placement,
    tids: Vec<Tid>,
    toast_tids: Vec<Tid>,
}

/// What a worker keeps from step to step.
#[derive(Default)]
struct Worker<'a> {
    chunk: Chunk,
    /// For each relation that has rows of the chunk, in the packer's order.
    places: Vec<Places>,
    /// The packer of the table it worked at last.
    packer: Option<(usize, Packer<'a>)>,
    /// The surveyor of the table whose rows it numbered last.
    surveyor: Option<(usize, Surveyor<'a>)>,
    times: VerbTimes,
}

struct Build<'b, 'a> {
    workshop: &'b Workshop<'a>,
    tables: &'b [TableBuild<'a>],
    /// The first table that may have chunks left.
    next_table: AtomicU64,
    /// The error to report, with its table's number.
    failure: Mutex<Option<(usize, Error)>>,
    stopped: AtomicBool,
    /// A key stands twice: no more chunks are taken, but a table's other indexes are still
    /// looked at, since the first duplicate in the input is the one to report.
    doomed: AtomicBool,
}

/// Measures what passes between two calls.
struct Watch(Instant);

impl Watch {
    fn start() -> Watch {
        Watch(Instant::now())
    }

    fn lap(&mut self, time: &mut Duration) {
        let now = Instant::now();
        *time += now - self.0;
        self.0 = now;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Build<'_, 'a> {
    /// One chunk of some table, then the next step.
    fn step<'s>(&'s self, mut worker: Worker<'a>, scope: &Scope<'s>)
    where
        'a: 's,
    {
        if self.workshop.interrupted.load(Ordering::Relaxed) {
            self.fail(0, super::interrupt::interrupted());
        }
        if !self.goes_on() {
            return;
        }
        let first = self.next_table.load(Ordering::Relaxed);
        let Some(table) = self.tables.get(first as usize) else {
            return;
        };
        table.open_chunks.fetch_add(1, Ordering::AcqRel);
        let wanted = || self.goes_on() && !self.workshop.interrupted.load(Ordering::Relaxed);
        let taken = table.job.inputs.take(&mut worker.chunk, &wanted);
        if taken.is_err() && !wanted() {
            // What stopped the reading is told by whoever stopped it.
            scope.spawn(move |scope| self.step(worker, scope));
            return;
        }
        let done = match taken {
            Ok(Some(ticket)) => self.chunk(table, ticket, &mut worker),
            Ok(None) => {
                table.exhausted.store(true, Ordering::Release);
                let _ = self.next_table.compare_exchange(
                    first,
                    first + 1,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                Ok(())
            }
            Err(error) => Err(error),
        };
        lock(&table.built)
            .times
            .add(&std::mem::take(&mut worker.times));
        if let Err(error) = done {
            self.fail(table.number, error);
            return;
        }
        // The next step first: what is queued last is done first by this thread, and what a
        // table's end needs comes before another chunk.
        scope.spawn(move |scope| self.step(worker, scope));
        if table.open_chunks.fetch_sub(1, Ordering::AcqRel) == 1 && table.claim_end() {
            self.finish_heap(table, scope);
        }
    }

    /// Whether more chunks are to be taken.
    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Acquire) && !self.doomed.load(Ordering::Acquire)
    }

    /// Remembers an error and sends everybody home.
    fn fail(&self, table: usize, error: Error) {
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|(earlier, _)| table < *earlier) {
            *failure = Some((table, error));
        }
        drop(failure);
        self.stopped.store(true, Ordering::Release);
        for table in self.tables {
            table.turns.break_up();
            table.numbering.break_up();
        }
    }

    /// Takes one chunk all the way.
    fn chunk(&self, table: &TableBuild<'a>, ticket: Ticket, worker: &mut Worker<'a>) -> Result<()> {
        let Worker {
            chunk,
            places,
            packer,
            surveyor,
            times,
        } = worker;
        let inputs = &table.job.inputs;
        let input = &table.job.table.inputs[ticket.input];
        let mut watch = Watch::start();
        let packer = match packer {
            Some((number, packer)) if *number == table.number => packer,
            other => {
                let packer = table.packer(self.workshop.settings);
                &mut other.insert((table.number, packer)).1
            }
        };
        let mut read = inputs.read(ticket, chunk);
        watch.lap(&mut times.read);
        let (mut given, mut numbering) = (Given::default(), None);
        let mut has_rows = read.is_ok();
        if table.job.native.defaults.need_numbers() && has_rows {
            let surveyor = match surveyor {
                Some((number, surveyor)) if *number == table.number => surveyor,
                other => {
                    let new =
                        Surveyor::new(table.job.table, table.job.native, self.workshop.settings);
                    &mut other.insert((table.number, new)).1
                }
            };
            match self.number(table, ticket, chunk, surveyor, times)? {
                Some(Numbered::Rows(its, turn)) => (given, numbering) = (*its, turn),
                Some(Numbered::NoRows) => has_rows = false,
                Some(Numbered::Hopeless) => return table.await_refusal(ticket),
                None => return Ok(()),
            }
            watch = Watch::start();
        }
        let mut reader = ChunkReader::new(chunk, &input.format);
        let mut packed = if has_rows {
            packer.pack(&mut reader, ticket.input, input, &mut given)
        } else {
            Ok(Packing::Done)
        };
        watch.lap(&mut times.pack);

        let Some(mut ordered) = table.turns.wait(ticket.turn) else {
            return Ok(());
        };
        watch.lap(&mut times.wait);
        ordered.reached.enter(ticket.input, table.job.table)?;
        if ordered.reached.end_of_data {
            ordered.pass();
            return Ok(());
        }
        if read.is_ok() {
            match inputs.follows(ticket, chunk, ordered.reached.ended_at) {
                Follows::Yes => {}
                Follows::Empty => {
                    ordered.pass();
                    return Ok(());
                }
                Follows::Reparse => {
                    read = inputs.reread(ticket, ordered.reached.ended_at, chunk);
                    reader = ChunkReader::new(chunk, &input.format);
                    packed = match &read {
                        Ok(()) => packer.pack(&mut reader, ticket.input, input, &mut given),
                        Err(_) => Ok(Packing::Done),
                    };
                }
            }
        }
        read?;
        loop {
            let packing = packed.map_err(|e| e.locate(&input.label, ordered.reached.lines))?;
            ordered.place(
                self.workshop.first_value_id,
                packer,
                &table.relations,
                places,
            );
            if packing == Packing::Done {
                ordered.reached.pass(chunk, &reader);
                ordered.pass();
                watch.lap(&mut times.place);
                break;
            }
            // Few bytes of input became so many of tuples that the rest must wait until these
            // are gone. The turn is kept: what follows is still this chunk's.
            self.seal_all(table, packer, places, times)?;
            if let (true, Some(numbering)) = (given.is_wanting(), &mut numbering) {
                self.prepare(table, &mut given, &mut numbering.numbers)?;
            }
            packed = packer.pack(&mut reader, ticket.input, input, &mut given);
        }
        if let Some(numbering) = numbering {
            numbering.pass();
        }
        self.seal_all(table, packer, places, times)?;
        self.workshop.progress.add(chunk.bytes(), reader.records());
        lock(&table.built).input_bytes += chunk.bytes();
        Ok(())
    }

    /// Numbers a chunk's rows and has the values that the input does not give. `None` when the
    /// load has failed elsewhere.
    fn number<'t>(
        &self,
        table: &'t TableBuild<'a>,
        ticket: Ticket,
        chunk: &mut Chunk,
        surveyor: &mut Surveyor<'_>,
        times: &mut VerbTimes,
    ) -> Result<Option<Numbered<'t>>> {
        let inputs = &table.job.inputs;
        let format = &table.job.table.inputs[ticket.input].format;
        let mut watch = Watch::start();
        let mut reader = ChunkReader::new(chunk, format);
        let mut survey = surveyor.survey(&mut reader, ticket.input);
        watch.lap(&mut times.pack);
        let Some(mut turn) = table.numbering.wait(ticket.turn) else {
            return Ok(None);
        };
        watch.lap(&mut times.wait);
        turn.reached.enter(ticket.input, table.job.table)?;
        if turn.numbers.hopeless {
            turn.pass();
            return Ok(Some(Numbered::Hopeless));
        }
        if turn.reached.end_of_data {
            turn.pass();
            return Ok(Some(Numbered::NoRows));
        }
        match inputs.follows(ticket, chunk, turn.reached.ended_at) {
            Follows::Yes => {}
            Follows::Empty => {
                turn.pass();
                return Ok(Some(Numbered::NoRows));
            }
            Follows::Reparse => {
                inputs.reread(ticket, turn.reached.ended_at, chunk)?;
                reader = ChunkReader::new(chunk, format);
                survey = surveyor.survey(&mut reader, ticket.input);
            }
        }
        turn.reached.pass(chunk, &reader);
        let mut given = turn.numbers.give(survey, &table.job.native.defaults);
        self.prepare(table, &mut given, &mut turn.numbers)?;
        watch.lap(&mut times.server);
        if given.is_whole() {
            turn.pass();
            return Ok(Some(Numbered::Rows(Box::new(given), None)));
        }
        Ok(Some(Numbered::Rows(Box::new(given), Some(turn))))
    }

    /// Has the values of a chunk's next rows.
    fn prepare(
        &self,
        table: &TableBuild<'a>,
        given: &mut Given,
        numbers: &mut Numbers,
    ) -> Result<()> {
        given.prepare(
            &table.job.table.relation,
            &table.job.native.defaults,
            self.workshop.server,
            numbers,
        )
    }

    /// Seals the placed rows of each relation.
    fn seal_all(
        &self,
        table: &TableBuild<'a>,
        packer: &mut Packer<'_>,
        places: &[Places],
        times: &mut VerbTimes,
    ) -> Result<()> {
        for ((number, packed), places) in packer.filled().zip(places) {
            self.seal(&table.relations[number], packed, places, times)?;
        }
        Ok(())
    }

    /// Lays out and hands over the pages of placed rows, and gives their keys to the sorts.
    fn seal(
        &self,
        table: &RelationBuild<'a>,
        packed: &mut Packed,
        places: &Places,
        times: &mut VerbTimes,
    ) -> Result<()> {
        let mut watch = Watch::start();
        seal(
            table.heap(self.workshop),
            &places.heap,
            packed.builder.arena(),
            &packed.tuples,
        )?;
        if let Some(toast_heap) = table.toast_heap(self.workshop) {
            seal(
                toast_heap,
                &places.toast,
                packed.toast.arena(),
                packed.toast.tuples(),
            )?;
        }
        watch.lap(&mut times.seal);
        for (sorter, keys) in table.sorters().iter().zip(&mut packed.keys) {
            let sorter = sorter.read().unwrap_or_else(PoisonError::into_inner);
            let sorter = sorter
                .as_ref()
                .expect("keys come before the index is built");
            sorter.add(keys, &places.tids)?;
        }
        watch.lap(&mut times.index);
        Ok(())
    }

    /// Seals the last pages, then has everything that waited for them done side by side.
    fn finish_heap<'s>(&'s self, table: &'s TableBuild<'a>, scope: &Scope<'s>)
    where
        'a: 's,
    {
        let Some(mut ordered) = table.turns.wait(table.job.inputs.taken()) else {
            return;
        };
        if let Err(error) = ordered.reached.complete(table.job.table) {
            drop(ordered);
            self.fail(table.number, error);
            return;
        }
        let placed = std::mem::take(&mut ordered.relations);
        ordered.pass();
        {
            let mut built = lock(&table.built);
            let numbering = &mut table.numbering.state();
            built.rows = placed.iter().flatten().map(|placed| placed.rows).sum();
            built.draws = std::mem::take(&mut numbering.numbers.draws);
            built.asked = numbering.numbers.cost;
        }
        for (relation, placed) in table.relations.iter().zip(placed) {
            let placed = match placed {
                Some(placed) => placed,
                // What a leaf without rows has stays as it is.
                None if matches!(table.job.table.part, Part::Root { .. }) => continue,
                None => Box::new(PlacedRows::new(relation.table)),
            };
            self.finish_relation(table, relation, *placed, scope);
        }
    }

    /// Seals a relation's last pages and builds its indexes, all side by side.
    fn finish_relation<'s>(
        &'s self,
        table: &'s TableBuild<'a>,
        relation: &'s RelationBuild<'a>,
        placed: PlacedRows,
        scope: &Scope<'s>,
    ) where
        'a: 's,
    {
        let PlacedRows {
            rows,
            mut heap,
            mut toast,
            toast_log,
            marks,
            ..
        } = placed;
        let (heap, toast) = (heap.finish(), toast.finish());
        {
            let mut built = lock(&relation.built);
            (built.rows, built.marks) = (rows, marks);
        }
        for number in 0..relation.specs.len() {
            self.task(table, scope, move |build| build.index(relation, number));
        }
        if toast.blocks > 0 {
            self.task(table, scope, move |build| {
                build.toast_index(relation, &toast_log)
            });
        }
        self.task(table, scope, move |build| {
            build.last_pages(relation, &heap, &toast)
        });
    }

    /// Queues a piece of work on a table.
    fn task<'s>(
        &'s self,
        table: &'s TableBuild<'a>,
        scope: &Scope<'s>,
        work: impl FnOnce(&Self) -> Result<()> + Send + 's,
    ) {
        scope.spawn(move |_| {
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            if let Err(error) = work(self) {
                self.fail(table.number, error);
            }
        });
    }

    /// Hands over the heaps' last pages and the visibility map, and has the files finished.
    fn last_pages(
        &self,
        table: &RelationBuild<'a>,
        heap: &PlacedHeap,
        toast: &PlacedHeap,
    ) -> Result<()> {
        if !heap.last_page.is_empty() {
            seal_last(table.heap(self.workshop), heap.blocks - 1, &heap.last_page)?;
        }
        let relation = &table.table.relation;
        if let (Some(toast_heap), Some(toast_relation)) =
            (table.toast_heap(self.workshop), relation.toast)
            && toast.blocks > 0
        {
            seal_last(toast_heap, toast.blocks - 1, &toast.last_page)?;
            let marks = MapMarks::of_toast(self.workshop.settings.version);
            let map = self.visibility_map(table, toast_relation.oid, toast.blocks, marks)?;
            let size = self.workshop.writers.finish(toast_heap.file, toast.blocks);
            let mut built = lock(&table.built);
            let built = built.toast.get_or_insert_default();
            built.heap = BuiltFork::new(toast_heap.file, size);
            built.visibility_map = map;
        }
        let map = self.visibility_map(table, relation.oid, heap.blocks, MapMarks::AllFrozen)?;
        lock(&table.built).visibility_map = map;
        let size = self.workshop.writers.finish(&table.heap_file, heap.blocks);
        lock(&table.built).heap = BuiltFork::new(&table.heap_file, size);
        Ok(())
    }

    /// The map of a heap, none for one without blocks.
    fn visibility_map(
        &self,
        table: &RelationBuild<'a>,
        heap: Oid,
        heap_blocks: u32,
        marks: MapMarks,
    ) -> Result<Option<BuiltFork>> {
        let map = write_visibility_map(
            &table.heap_dir,
            &format!("{heap}_vm"),
            heap_blocks,
            marks,
            table.files,
            self.workshop.writers,
        )?;
        Ok(map.map(|(file, size)| BuiltFork::new(&file, size)))
    }

    /// Builds the TOAST table's index.
    fn toast_index(&self, table: &RelationBuild<'a>, log: &ToastLog) -> Result<()> {
        let toast = table
            .table
            .relation
            .toast
            .expect("values went to a TOAST table");
        let file =
            RelationFile::create(&table.heap_dir, &toast.index_oid.to_string(), table.files)?;
        let pages = SequentialPages::new(Arc::clone(&file), self.workshop.writers)?;
        let mut builder = ToastIndexBuilder::new(self.workshop.settings.version, pages);
        let mut tuples = 0;
        for (chunk_id, chunk_seq, tid) in log.replay(self.workshop.first_value_id) {
            builder.add(chunk_id, chunk_seq, tid)?;
            tuples += 1;
        }
        let (_, pages) = builder.finish()?;
        let index = BuiltFork::new(&file, pages.finish()?);
        let mut built = lock(&table.built);
        let toast = built.toast.get_or_insert_default();
        toast.index = index;
        toast.tuples = tuples;
        Ok(())
    }

    /// Sorts and builds native index `number`.
    fn index(&self, table: &RelationBuild<'a>, number: usize) -> Result<()> {
        let mut watch = Watch::start();
        let (index_number, _) = table.specs[number];
        let index = &table.table.relation.indexes[index_number];
        self.workshop
            .progress
            .stage(&format!("index {}", index.name));
        let file = RelationFile::create(
            &table.index_dirs[number],
            &index.oid.to_string(),
            table.files,
        )?;
        let mut pages = SequentialPages::new(Arc::clone(&file), self.workshop.writers)?;
        let sorter = table.sorters()[number]
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .expect("an index is built once");
        let spilled_bytes = sorter.spilled_bytes();
        let built = match sorter.build(&mut pages) {
            Ok(built) => built,
            Err(BuildError::Io(error)) => return Err(error),
            Err(BuildError::Duplicate { first, second, key }) => {
                let duplicate = Duplicate {
                    number,
                    first,
                    second,
                    key,
                };
                lock(&table.duplicates).push(duplicate);
                self.doomed.store(true, Ordering::Release);
                return Ok(());
            }
        };
        let size = pages.finish()?;
        let mut outcome = lock(&table.built);
        outcome.indexes.push(BuiltIndex {
            number: index_number,
            file: BuiltFork::new(&file, size),
            tuples: built.tuples,
            spilled_bytes,
        });
        watch.lap(&mut outcome.times.index);
        Ok(())
    }
}

impl<'a> TableBuild<'a> {
    fn new(number: usize, mut job: TableJob<'a>) -> TableBuild<'a> {
        let relation_jobs = std::mem::take(&mut job.relations);
        let index_count = |job: &RelationJob<'_>| job.native.native_indexes().count();
        let indexes: usize = relation_jobs.iter().map(index_count).sum();
        let sort_bytes = job.sort_bytes / indexes.max(1);
        let relations: Vec<RelationBuild<'_>> = relation_jobs
            .into_iter()
            .map(|relation| RelationBuild::new(relation, job.files, sort_bytes))
            .collect();
        TableBuild {
            number,
            turns: Turns::new(Ordered {
                reached: Reached::begin(0, job.table),
                relations: relations.iter().map(|_| None).collect(),
            }),
            numbering: Turns::new(Numbering {
                reached: Reached::begin(0, job.table),
                numbers: Numbers::new(&job.native.defaults),
            }),
            open_chunks: AtomicU64::new(0),
            exhausted: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            built: Mutex::new(BuiltTable::default()),
            relations,
            job,
        }
    }

    /// A worker's packer.
    fn packer(&self, settings: &'a Settings) -> Packer<'a> {
        let table = self.job.table;
        let packer = Packer::new(table, self.job.native, settings);
        match &table.part {
            Part::Root { routing, .. } => {
                let leaves = self.relations.iter().map(|leaf| (leaf.table, leaf.native));
                packer.routed(RoutedRows::new(routing, &table.relation, leaves))
            }
            _ => packer,
        }
    }

    /// Waits until a chunk before this one has told its error.
    #[cold]
    fn await_refusal(&self, ticket: Ticket) -> Result<()> {
        match self.turns.wait(ticket.turn) {
            None => Ok(()),
            Some(_) => Err(Error::environment(
                "XX000",
                "rows behind a refused row were reached",
            )),
        }
    }

    /// Whether the last chunk is sealed; true to one caller only.
    fn claim_end(&self) -> bool {
        self.exhausted.load(Ordering::Acquire) && !self.ended.swap(true, Ordering::AcqRel)
    }

    /// The error of a key that stands twice, of the first that COPY meets.
    fn first_duplicate(&self) -> Result<Option<Error>> {
        let mut first: Option<Error> = None;
        let place = |error: &Error| {
            let built = BuiltTable {
                inputs: self.input_labels(),
                ..BuiltTable::default()
            };
            built.place(error)
        };
        for relation in &self.relations {
            let duplicates = std::mem::take(&mut *lock(&relation.duplicates));
            if let Some(duplicate) = Duplicate::first(duplicates) {
                let error = relation.duplicate_error(&self.job.table.inputs, &duplicate)?;
                if first.as_ref().is_none_or(|f| place(&error) < place(f)) {
                    first = Some(error);
                }
            }
        }
        Ok(first)
    }

    fn input_labels(&self) -> Vec<String> {
        let inputs = self.job.table.inputs.iter();
        inputs.map(|input| input.label.clone()).collect()
    }

    fn into_built(self) -> BuiltJob {
        let inputs = self.input_labels();
        let is_root = matches!(self.job.table.part, Part::Root { .. });
        let mut table = self
            .built
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        table.inputs.clone_from(&inputs);
        let mut relations: Vec<BuiltTable> = self
            .relations
            .into_iter()
            .map(|relation| relation.into_built(&inputs))
            .collect();
        if !is_root && let Some(mut whole) = relations.pop() {
            whole.times.add(&table.times);
            table = BuiltTable {
                draws: table.draws,
                asked: table.asked,
                input_bytes: table.input_bytes,
                ..whole
            };
        }
        BuiltJob {
            table,
            leaves: relations,
        }
    }
}

impl<'a> RelationBuild<'a> {
    fn new(job: RelationJob<'a>, files: FileOptions, sort_bytes: usize) -> RelationBuild<'a> {
        let relation = &job.table.relation;
        let file = |oid: Oid| RelationFile::deferred(&job.heap_dir, &oid.to_string(), files);
        RelationBuild {
            table: job.table,
            native: job.native,
            specs: job.native.native_indexes().collect(),
            heap_file: file(relation.oid),
            toast_file: relation.toast.map(|toast| file(toast.oid)),
            sorters: OnceLock::new(),
            duplicates: Mutex::default(),
            built: Mutex::new(BuiltTable::default()),
            files,
            sort_bytes,
            heap_dir: job.heap_dir,
            index_dirs: job.index_dirs,
            temp_dir: job.temp_dir,
        }
    }

    /// What sorts each native index's keys.
    fn sorters(&self) -> &[RwLock<Option<Sorter>>] {
        self.sorters.get_or_init(|| {
            let sorter =
                |spec: &IndexSpec| Sorter::new(spec.clone(), self.sort_bytes, &self.temp_dir);
            let specs = self.specs.iter();
            specs
                .map(|(_, spec)| RwLock::new(Some(sorter(spec))))
                .collect()
        })
    }

    #[cold]
    fn duplicate_error(&self, inputs: &[InputPlan], duplicate: &Duplicate) -> Result<Error> {
        // The pages that tell which line a row came from must be there to be read.
        self.heap_file.wait()?;
        duplicate.error(
            &self.table.relation,
            inputs,
            self.specs[duplicate.number].1,
            &lock(&self.built).marks,
            &self.heap_file.path(),
            self.files.segment_blocks,
        )
    }

    fn heap<'h>(&'h self, workshop: &'h Workshop<'_>) -> Heap<'h> {
        Heap {
            file: &self.heap_file,
            writers: workshop.writers,
            kind: HeapKind::Table,
        }
    }

    fn toast_heap<'h>(&'h self, workshop: &'h Workshop<'_>) -> Option<Heap<'h>> {
        self.toast_file.as_ref().map(|file| Heap {
            file,
            writers: workshop.writers,
            kind: HeapKind::Toast,
        })
    }

    fn into_built(self, inputs: &[String]) -> BuiltTable {
        let mut built = self
            .built
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        built.indexes.sort_by_key(|index| index.number);
        built.inputs = inputs.to_vec();
        built
    }
}
