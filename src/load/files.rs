//! Builds the files of all native tables: opens their inputs, shares out threads and memory, and
//! sets the pipeline to work.

use super::Build;
use super::budget::{Budget, WRITERS};
use super::built::BuiltTable;
use super::defaults::ask::Ask;
use super::inputs::{InputChunks, Inputs};
use super::pipeline::{self, RelationJob, TableJob, Workshop};
use super::plan::{How, InputPlan, NativePlan, TablePlan};
use super::progress::Progress;
use crate::build::relation_file::{DirectIo, Durable, FileOptions};
use crate::build::writer::{BUFFER_PAGES, WriterPool};
use crate::cluster::facts::Facts;
use crate::cluster::staging::{MANY_FILES, Staging};
use crate::error::{Error, Result};
use crate::record::binary::BinaryChunks;
use crate::record::chunk::Chunks;
use crate::record::format::Kind;
use crate::record::stream::StreamChunks;
use crate::source::{FileSource, Input, Stream};
use crate::sys::credentials;
use crate::types::Settings;
use std::sync::{Mutex, PoisonError};

/// Input of a table whose files are made durable together with those of others, when there are
/// many.
const SMALL_INPUT_BYTES: u64 = 4 << 20;

/// What the files are built with.
pub(super) struct Supplies<'s> {
    /// Settings of the encoders, where there are any.
    pub settings: Option<&'s Settings>,
    /// The server, inside the load's transaction, where that has begun.
    pub server: Option<&'s dyn Ask>,
    /// Where files are staged.
    pub staging: &'s Staging,
    /// The first TOAST value id.
    pub first_value_id: u32,
    /// Counters and the line on the terminal.
    pub progress: &'s Progress,
}

impl Build<'_> {
    /// The threads that work.
    pub(super) fn pool(&self) -> Result<rayon::ThreadPool> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.options.jobs)
            .thread_name(|i| format!("worker {i}"))
            .build()
            .map_err(|e| Error::environment("53000", format!("could not start threads: {e}")))
    }

    /// Builds the files of all native tables; `None` for the server's.
    pub(super) fn build_files(
        &self,
        tables: &[TablePlan],
        facts: &Facts,
        supplies: &Supplies<'_>,
    ) -> Result<Vec<Option<BuiltTable>>> {
        let &Supplies {
            settings,
            server,
            staging,
            first_value_id,
            progress,
        } = supplies;
        let mut built: Vec<Option<BuiltTable>> = tables.iter().map(|_| None).collect();
        let native: Vec<usize> = (0..tables.len())
            .filter(|i| matches!(tables[*i].how, How::Native(_)) && tables[*i].part.has_inputs())
            .collect();
        let (Some(settings), false) = (settings, native.is_empty()) else {
            return Ok(built);
        };
        let opened = native
            .iter()
            .map(|i| tables[*i].inputs.iter().map(Opened::open).collect())
            .collect::<Result<Vec<Vec<Opened>>>>()?;
        let pool = self.pool()?;
        let budget = Budget::new(self.options.memory_bytes, self.options.jobs);
        let writers = WriterPool::new(WRITERS, budget.queue_buffers, BUFFER_PAGES);
        let workshop = Workshop {
            writers: &writers,
            settings,
            progress,
            first_value_id,
            interrupted: self.interrupted,
            server,
        };
        let files = FileOptions {
            segment_blocks: facts.segment_blocks,
            checksums: facts.checksums,
            mode: facts.owner.mode,
            owner: (credentials::effective_uid() != facts.owner.uid)
                .then_some((facts.owner.uid, facts.owner.gid)),
            // A stage is read again at once, for its checksums.
            direct: match self.options.stage_only {
                Some(_) => DirectIo::Off,
                None => DirectIo::Auto,
            },
            ..FileOptions::default()
        };
        let small_files = FileOptions {
            direct: DirectIo::Off,
            durable: Durable::Later,
            ..files
        };
        // A heap and its map at the least.
        let file_count = |i: &usize| {
            let part = std::iter::once(*i).chain(tables[*i].part.leaves());
            part.map(|i| 2 + tables[i].relation.indexes.len())
                .sum::<usize>()
        };
        let many = native.iter().map(file_count).sum::<usize>() > MANY_FILES;
        let shares = sort_shares(&input_sizes(&opened), budget.sort_bytes);
        let jobs = native
            .iter()
            .zip(&opened)
            .zip(shares)
            .map(|((i, inputs), sort_bytes)| {
                let files = if many && inputs_are_small(inputs) {
                    small_files
                } else {
                    files
                };
                self.job(tables, *i, inputs, files, staging, sort_bytes)
            })
            .collect::<Result<Vec<_>>>()?;
        let some_are_not_durable = jobs.iter().any(|j| j.files.durable == Durable::Later);
        let done = pool.install(|| pipeline::build_tables(&pool, &workshop, jobs))?;
        if some_are_not_durable {
            staging.sync()?;
        }
        for input in opened.iter().flatten() {
            if let Opened::File(file) = input {
                file.check_unchanged()?;
            }
        }
        for (i, done) in native.into_iter().zip(done) {
            built[i] = Some(done.table);
            for (leaf, table) in tables[i].part.leaves().zip(done.leaves) {
                built[leaf] = Some(table);
            }
        }
        Ok(built)
    }

    fn job<'a>(
        &self,
        tables: &'a [TablePlan],
        number: usize,
        inputs: &'a [Opened],
        files: FileOptions,
        staging: &Staging,
        sort_bytes: usize,
    ) -> Result<TableJob<'a>> {
        let table = &tables[number];
        let chunks = inputs
            .iter()
            .zip(&table.inputs)
            .map(|(input, plan)| {
                let format = &plan.format;
                let is_binary = format.kind == Kind::Binary;
                Ok(match input {
                    Opened::File(file) if is_binary => {
                        InputChunks::Binary(Mutex::new(BinaryChunks::of_file(file, format)))
                    }
                    Opened::File(file) => InputChunks::File(Chunks::open(file, format)?),
                    Opened::Stream(stream) => {
                        let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                        let stream = stream.expect("a stream is read once");
                        if is_binary {
                            InputChunks::Binary(Mutex::new(BinaryChunks::of_stream(stream, format)))
                        } else {
                            InputChunks::Stream(Mutex::new(StreamChunks::new(stream, format)))
                        }
                    }
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let relations = if table.part.has_rows() {
            number..number + 1
        } else {
            table.part.leaves()
        };
        Ok(TableJob {
            table,
            native: native_plan(table),
            inputs: Inputs::new(chunks),
            files,
            relations: relations
                .map(|relation| self.relation_job(&tables[relation], staging))
                .collect(),
            sort_bytes,
        })
    }

    fn relation_job<'a>(&self, table: &'a TablePlan, staging: &Staging) -> RelationJob<'a> {
        let native = native_plan(table);
        let heap_dir = staging.directory(table.relation.tablespace).to_path_buf();
        RelationJob {
            table,
            native,
            index_dirs: native
                .native_indexes()
                .map(|(number, _)| {
                    staging
                        .directory(table.relation.indexes[number].tablespace)
                        .to_path_buf()
                })
                .collect(),
            temp_dir: self
                .options
                .temp_dir
                .clone()
                .unwrap_or_else(|| heap_dir.clone()),
            heap_dir,
        }
    }
}

fn native_plan(table: &TablePlan) -> &NativePlan {
    match &table.how {
        How::Native(native) => native,
        How::Server(_) => unreachable!("a native table"),
    }
}

/// An input that is open.
#[derive(Debug)]
enum Opened {
    File(FileSource),
    /// Until its table's chunks take it.
    Stream(Mutex<Option<Stream>>),
}

impl Opened {
    fn open(input: &InputPlan) -> Result<Opened> {
        Ok(
            match input.origin.open(&input.label, input.conversion.clone())? {
                Input::File(file) => Opened::File(file),
                Input::Stream(stream) => Opened::Stream(Mutex::new(Some(stream))),
            },
        )
    }

    /// Its size, where that is known beforehand.
    fn len(&self) -> Option<u64> {
        match self {
            Opened::File(file) => Some(file.len()),
            Opened::Stream(_) => None,
        }
    }
}

/// Whether a table's inputs are known to be small.
fn inputs_are_small(inputs: &[Opened]) -> bool {
    let total_bytes: Option<u64> = inputs.iter().map(Opened::len).sum();
    total_bytes.is_some_and(|bytes| bytes <= SMALL_INPUT_BYTES)
}

/// The sizes of the tables' inputs, as far as they are known.
fn input_sizes(opened: &[Vec<Opened>]) -> Vec<u64> {
    const UNKNOWN: u64 = 1 << 30;
    let of_table = |inputs: &Vec<Opened>| {
        let sizes = inputs.iter().map(|i| i.len().unwrap_or(UNKNOWN));
        sizes.sum::<u64>()
    };
    opened.iter().map(of_table).collect()
}

/// Divides the memory of sorts by the sizes of the tables' inputs.
pub(super) fn sort_shares(sizes: &[u64], sort_bytes: usize) -> Vec<usize> {
    let total: u64 = sizes.iter().map(|size| size + 1).sum();
    sizes
        .iter()
        .map(|size| (sort_bytes as f64 * ((size + 1) as f64 / total as f64)) as usize)
        .collect()
}
