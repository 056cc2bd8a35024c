//! The command `plan`: what a build would do, found out without writing anything.
//!
//! The plan is the one that a build makes, in a transaction that is rolled back, the schema
//! script with it. What a build refuses at once is refused here too, and what it refuses later,
//! where that can be foreseen, ends the outlook: it is told whole, then the error.

mod estimate;
mod text;

pub use estimate::Estimate;

use super::around::read_script;
use super::budget::Budget;
use super::options::{BuildOptions, WalMode};
use super::plan::{self, How, IndexPlan, TablePlan};
use super::report::By;
use super::space::{self, Demand};
use super::{Build, files, group_by_table, refuse_rows, settings};
use crate::catalog::Index;
use crate::cluster::conninfo::process_environment;
use crate::cluster::facts::{Consumers, Facts, WalLevel};
use crate::cluster::staging::{check_stage_directory, temporary_directory};
use crate::cluster::target::Target;
use crate::error::{Error, Result};
use crate::record::format::Kind;
use crate::source::compressed::Compression;
use crate::types::Settings;
use pgformat::page::PAGE_BYTES;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What a build would do.
#[derive(Debug)]
pub struct Outlook {
    /// The tables in the order of the command line.
    pub tables: Vec<TableOutlook>,
    /// Whether the load is in the WAL, and why.
    pub wal: String,
    /// File systems, and the bytes that will likely be written there.
    pub space: Vec<Demand>,
    /// Relations that the registration locks.
    pub locked_relations: usize,
    /// How many locks the server holds.
    pub lock_capacity: u64,
    /// Threads.
    pub jobs: usize,
    /// Memory for everything.
    pub memory_bytes: usize,
    /// Memory of it that sorts take.
    pub sort_bytes: usize,
    /// What a report would note.
    pub notes: Vec<String>,
    /// Why a build would be refused, beyond what was refused at once.
    pub refusal: Option<Error>,
}

/// What a build would do with a table.
#[derive(Debug)]
pub struct TableOutlook {
    /// Its name.
    pub name: String,
    /// It is a partition of the partitioned table before it, which has the inputs.
    pub is_leaf: bool,
    /// Who loads it.
    pub by: By,
    /// Its columns.
    pub columns: Vec<ColumnOutlook>,
    /// Its indexes.
    pub indexes: Vec<IndexOutlook>,
    /// Constraints, each with how it is checked.
    pub constraints: Vec<(String, &'static str)>,
    /// Its inputs.
    pub inputs: Vec<InputOutlook>,
    /// Where its heap goes while it is built.
    pub staged_in: PathBuf,
    /// How large it will be; `None` when the server loads it, and of a leaf. Of a partitioned table
    /// without the indexes of its leaves.
    pub estimate: Option<Estimate>,
    /// Rows are there and will be replaced.
    pub replaces_bytes: u64,
}

/// A column.
#[derive(Debug)]
pub struct ColumnOutlook {
    /// Its name.
    pub name: String,
    /// Its type, as SQL writes it.
    pub type_name: String,
    /// What makes its values; `None` when the server does.
    pub encoder: Option<String>,
    /// No input has it.
    pub not_in_the_input: bool,
}

/// An index.
#[derive(Debug)]
pub struct IndexOutlook {
    /// Its name.
    pub name: String,
    /// Who builds it.
    pub by: By,
    /// Its size at most; `None` when the server builds it.
    pub bytes: Option<u64>,
}

/// An input.
#[derive(Debug)]
pub struct InputOutlook {
    /// Its name.
    pub label: String,
    /// csv, text or binary, as COPY's options would say it.
    pub format: &'static str,
    /// Its size on disk, where it is a file.
    pub bytes: Option<u64>,
    /// How it is compressed.
    pub compression: Option<Compression>,
}

/// Finds out what a build would do.
///
/// # Errors
/// What a build refuses before it does anything.
pub fn plan_only(target: &Target, options: &BuildOptions) -> Result<Outlook> {
    let mut session = target.open(&process_environment)?;
    session.lock_wait = options.lock_timeout;
    let never = AtomicBool::new(false);
    let mut build = Build::new(options, &never);
    let facts = session.facts.clone();
    let sources = group_by_table(&options.sources);
    let names: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
    let script = read_script(options)?;
    let consumers = Consumers::read(session.client(), facts.version)?;
    // What a build would refuse first.
    let mut refusal = match (options.wal, &options.stage_only) {
        (WalMode::Auto, None) => consumers.refuse().err(),
        _ => None,
    };
    let outlook = session.rehearse(script.as_ref(), &names, |client, relations| {
        if !options.truncate && options.stage_only.is_none() && refusal.is_none() {
            refusal = refuse_rows(client, &relations).err();
        }
        let view = settings::ask(client, &facts, options.input.encoding.as_deref())?;
        let tables = build.plan(relations, &sources, &view, &facts)?;
        if options.stage_only.is_some() {
            Build::refuse_to_stage(&tables)?;
        } else {
            build.refuse_unemptyable(client, &tables)?;
        }
        look(&tables, view.settings.as_ref().ok(), &facts, options)
    });
    // Dropped and not finished, the session undoes what opening it made: a new cluster.
    drop(session);
    let mut outlook = match (outlook, refusal) {
        (Ok(outlook), None) => outlook,
        (Ok(outlook), refusal) => Outlook { refusal, ..outlook },
        (Err(_), Some(refusal)) => return Err(refusal),
        (Err(error), None) => return Err(error),
    };
    if options.stage_only.is_none() {
        outlook.wal = wal(&facts, &consumers, options.wal);
    }
    outlook.notes = build.report.notes;
    Ok(outlook)
}

fn look(
    tables: &[TablePlan],
    settings: Option<&Settings>,
    facts: &Facts,
    options: &BuildOptions,
) -> Result<Outlook> {
    if let Some(directory) = &options.temp_dir {
        File::open(directory.join("."))
            .map_err(|e| Error::io("create a temporary file in", directory, &e))?;
    }
    if let Some(directory) = &options.stage_only {
        check_stage_directory(facts, directory)?;
    }
    let estimates = tables
        .iter()
        .map(|table| match (&table.how, settings) {
            // Which leaf rows go to is not known before all are read.
            (How::Native(native), Some(settings)) if table.part.has_inputs() => {
                estimate::estimate(table, native, settings).map(Some)
            }
            _ => Ok(None),
        })
        .collect::<Result<Vec<_>>>()?;
    let budget = Budget::new(options.memory_bytes, options.jobs);
    let known: Vec<u64> = estimates
        .iter()
        .flatten()
        .map(|estimate| estimate.known_bytes)
        .collect();
    let shares = files::sort_shares(&known, budget.sort_bytes);
    let mut shares = shares.into_iter();
    let mut parts = Vec::new();
    let mut least = Vec::new();
    for (table, estimate) in tables.iter().zip(&estimates) {
        let Some(estimate) = estimate else { continue };
        let sort_bytes = shares.next().unwrap_or_default() as u64;
        parts.extend(writes(table, &estimate.likely, facts, options));
        least.extend(writes(table, &estimate.least, facts, options));
        let keys: u64 = estimate.likely.index_bytes.iter().sum();
        if keys > sort_bytes {
            parts.push((temporary(table, facts, options), keys));
        }
    }
    let refusal = space::refuse_if_short(&borrowed(&least)).err();
    let locked_relations = tables.iter().map(|t| 3 + t.relation.indexes.len()).sum();
    Ok(Outlook {
        tables: tables
            .iter()
            .zip(estimates)
            .map(|(table, estimate)| table_outlook(table, estimate, facts, options))
            .collect::<Result<Vec<_>>>()?,
        wal: "not concerned: nothing is registered".to_owned(),
        space: space::demands(&borrowed(&parts))?,
        locked_relations,
        lock_capacity: facts.lock_capacity,
        jobs: options.jobs,
        memory_bytes: options.memory_bytes,
        sort_bytes: budget.sort_bytes,
        notes: Vec::new(),
        refusal,
    })
}

/// Refuses a build that will surely run out of room. Only where the room is little against the
/// inputs anything is read for it.
///
/// # Errors
/// `53100`.
pub(super) fn refuse_if_short(
    tables: &[TablePlan],
    settings: &Settings,
    facts: &Facts,
    options: &BuildOptions,
) -> Result<()> {
    const ENOUGH: u64 = 4;
    let inputs = super::total_bytes(tables).unwrap_or(u64::MAX);
    let directories: Vec<(PathBuf, u64)> = tables
        .iter()
        .flat_map(|table| writes(table, &estimate::Sizes::default(), facts, options))
        .collect();
    let is_enough = |demand: &Demand| demand.room.free_bytes / ENOUGH >= inputs;
    if space::demands(&borrowed(&directories))?
        .iter()
        .all(is_enough)
    {
        return Ok(());
    }
    let mut least = Vec::new();
    for table in tables {
        if let How::Native(native) = &table.how
            // What is wrong with an input is told by the build.
            && let Ok(estimate) = estimate::estimate(table, native, settings)
        {
            least.extend(writes(table, &estimate.least, facts, options));
        }
    }
    space::refuse_if_short(&borrowed(&least))
}

fn borrowed(parts: &[(PathBuf, u64)]) -> Vec<(&Path, u64)> {
    parts
        .iter()
        .map(|(directory, bytes)| (directory.as_path(), *bytes))
        .collect()
}

/// Where the files of a table are written, and how much.
fn writes(
    table: &TablePlan,
    sizes: &estimate::Sizes,
    facts: &Facts,
    options: &BuildOptions,
) -> Vec<(PathBuf, u64)> {
    let How::Native(native) = &table.how else {
        return Vec::new();
    };
    let place = |tablespace| existing(&staged_in(tablespace, facts, options));
    let heap = (
        place(table.relation.tablespace),
        sizes.heap_bytes + sizes.toast_bytes,
    );
    let indexes = native.native_indexes().enumerate().map(|(n, (number, _))| {
        let tablespace = table.relation.indexes[number].tablespace;
        (
            place(tablespace),
            sizes.index_bytes.get(n).copied().unwrap_or_default(),
        )
    });
    std::iter::once(heap).chain(indexes).collect()
}

/// Where sorts spill.
fn temporary(table: &TablePlan, facts: &Facts, options: &BuildOptions) -> PathBuf {
    match &options.temp_dir {
        Some(directory) => directory.clone(),
        None => existing(&staged_in(table.relation.tablespace, facts, options)),
    }
}

/// Where files of a tablespace (0 is the database's) are built.
fn staged_in(tablespace: u32, facts: &Facts, options: &BuildOptions) -> PathBuf {
    match &options.stage_only {
        Some(directory) => std::path::absolute(directory).unwrap_or_else(|_| directory.clone()),
        None if tablespace == 0 => temporary_directory(facts, facts.database_tablespace),
        None => temporary_directory(facts, tablespace),
    }
}

/// The directory, or the nearest above it that is there.
fn existing(directory: &Path) -> PathBuf {
    directory
        .ancestors()
        .find(|path| path.is_dir())
        .unwrap_or(directory)
        .to_path_buf()
}

fn table_outlook(
    table: &TablePlan,
    estimate: Option<Estimate>,
    facts: &Facts,
    options: &BuildOptions,
) -> Result<TableOutlook> {
    let relation = &table.relation;
    let native = match &table.how {
        How::Native(native) => Some(native),
        How::Server(_) => None,
    };
    let columns = relation
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| !column.dropped)
        .map(|(number, column)| ColumnOutlook {
            name: column.name.clone(),
            type_name: column.type_name.clone(),
            encoder: native
                .and_then(|native| native.encoders[number].as_ref())
                .map(crate::types::Encoder::name),
            not_in_the_input: table.part.has_inputs()
                && table.inputs.iter().all(|i| !i.fields.contains(&number)),
        })
        .collect();
    let mut sizes = estimate.iter().flat_map(|e| &e.likely.index_bytes);
    let indexes = relation
        .indexes
        .iter()
        .enumerate()
        .map(|(number, index)| {
            let by = match native.map(|native| &native.indexes[number]) {
                Some(IndexPlan::Native(_)) => By::Native,
                Some(IndexPlan::Server(reason)) => By::Server(reason.clone()),
                None => By::Server("COPY keeps it up".to_owned()),
            };
            IndexOutlook {
                name: index.name.clone(),
                bytes: (by == By::Native)
                    .then(|| sizes.next().map(|entries| file_bytes(*entries, index)))
                    .flatten(),
                by,
            }
        })
        .collect();
    Ok(TableOutlook {
        name: relation.display_name(),
        is_leaf: !table.part.has_inputs(),
        by: match &table.how {
            How::Native(_) => By::Native,
            How::Server(reason) => By::Server(reason.clone()),
        },
        columns,
        indexes,
        constraints: constraints(table, options),
        inputs: table
            .inputs
            .iter()
            .map(input_outlook)
            .collect::<Result<Vec<_>>>()?,
        staged_in: staged_in(relation.tablespace, facts, options),
        estimate,
        replaces_bytes: relation.size_bytes,
    })
}

/// The file of a btree index whose entries take so many bytes: its leaf pages, the metapage and a
/// root.
fn file_bytes(entries: u64, index: &Index) -> u64 {
    const FULL_PAGE_BYTES: u64 = 8148;
    let filled = FULL_PAGE_BYTES * u64::from(index.fillfactor.max(1)) / 100;
    (entries.div_ceil(filled) + 2) * PAGE_BYTES as u64
}

/// Constraints with how they are checked.
fn constraints(table: &TablePlan, options: &BuildOptions) -> Vec<(String, &'static str)> {
    let relation = &table.relation;
    let native = matches!(table.how, How::Native(_));
    let while_building = if native {
        "while the files are built"
    } else {
        "by COPY"
    };
    let by_queries = match (native, options.trust_constraints) {
        (false, _) => "by COPY",
        (true, true) => "not checked: --trust-constraints",
        (true, false) => "by queries before COMMIT",
    };
    let not_null = relation.columns.iter().filter(|c| c.not_null && !c.dropped);
    let mut all: Vec<(String, &'static str)> = not_null
        .map(|c| (format!("NOT NULL of {}", c.name), while_building))
        .collect();
    for index in relation.indexes.iter().filter(|index| index.unique) {
        let kind = if index.primary {
            "primary key"
        } else {
            "unique index"
        };
        all.push((format!("{kind} {}", index.name), while_building));
    }
    for (kind, names) in plan::constraint_names(relation) {
        all.extend(names.iter().map(|n| (format!("{kind} {n}"), by_queries)));
    }
    let by_its_index = if native {
        "by the server's build of its index"
    } else {
        "by COPY"
    };
    let exclusions = relation.features.exclusions.iter();
    all.extend(exclusions.map(|n| (format!("exclusion constraint {n}"), by_its_index)));
    all
}

/// Looks at an input without taking bytes from it.
fn input_outlook(input: &plan::InputPlan) -> Result<InputOutlook> {
    let format = match input.format.kind {
        Kind::Binary => "binary",
        Kind::Csv => "csv",
        Kind::Text => "text",
    };
    let nothing = InputOutlook {
        label: input.label.clone(),
        format,
        bytes: None,
        compression: None,
    };
    let Some(path) = input.origin.path() else {
        return Ok(InputOutlook {
            bytes: input.origin.bytes(),
            ..nothing
        });
    };
    if path.as_os_str() == "-" {
        return Ok(nothing);
    }
    let failed = |e: &std::io::Error| Error::io("open file", path, e);
    let metadata = std::fs::metadata(path).map_err(|e| failed(&e))?;
    if metadata.is_dir() {
        let message = format!("\"{}\" is a directory", input.label);
        return Err(Error::refused("42809", message));
    }
    if !metadata.is_file() {
        return Ok(nothing);
    }
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(6).read_to_end(&mut head))
        .map_err(|e| failed(&e))?;
    Ok(InputOutlook {
        bytes: Some(metadata.len()),
        compression: Compression::of(path, &head),
        ..nothing
    })
}

/// What becomes of the WAL, and why.
fn wal(facts: &Facts, consumers: &Consumers, mode: WalMode) -> String {
    let level = match facts.wal_level {
        WalLevel::Minimal => "minimal",
        WalLevel::Replica => "replica",
        WalLevel::Logical => "logical",
    };
    let seen = match consumers.refuse() {
        Ok(()) => "no standby, slot, archive or base backup depends on it".to_owned(),
        Err(error) => error
            .detail
            .unwrap_or_default()
            .trim_end_matches('.')
            .to_owned(),
    };
    let what = match (consumers.is_none(), mode) {
        (true, _) => "bypassed",
        (false, WalMode::Bypass) => "bypassed, as --wal bypass wants it",
        (false, WalMode::Auto) => "refused",
    };
    format!("{what}: wal_level is {level}; {seen}")
}
