//! `build DUMP`: restores a dump of pg_dump, in one transaction for each database.
//!
//! ```text
//! open > select > arrange > [before > rows > after > COMMIT]
//! ```
//!
//! What makes objects is sent to the server as pg_restore would send it. Rows are built natively, all
//! tables at once, as rows of data files are; see [`arrange`] for the order.

mod arrange;
mod command;
mod emit;
mod large_objects;
pub mod options;
mod rows;
mod run;
mod script;
mod select;
mod tables;

use super::around::Around;
use super::options::BuildOptions;
use super::report::Report;
use super::source_spec::SourceSpec;
use super::{Build, finish_session, interruptible};
use crate::cluster::conninfo::process_environment;
use crate::cluster::register::Registration;
use crate::cluster::target::Target;
use crate::error::{Error, Result};
use crate::source::Member;
use crate::source::dump::archive::{Archive, Entry};
use crate::source::dump::script::{Item, ScriptReader};
use crate::source::dump::{self, DumpKind};
use crate::sys::files::raise_open_files_limit;
use arrange::{Arranged, Step};
use command::{Command, CommandOrigin};
use options::RestoreOptions;
use rows::{ArchiveMember, DumpedTable};
use run::Runner;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Statements of SQL data that are read before they are run.
const STATEMENTS_AHEAD: usize = 1000;

/// What a restore was.
#[derive(Debug)]
pub struct Restored {
    /// The report.
    pub report: Report,
    /// Errors that did not end it (`--keep-going`).
    pub errors: u64,
}

/// The table of contents as pg_restore -l prints it, of the entries that are selected.
///
/// # Errors
/// It is no archive, or damaged.
pub fn list(options: &RestoreOptions) -> Result<String> {
    let archive = match dump::recognise(&options.dump)? {
        DumpKind::Archive => Archive::open(&options.dump)?,
        DumpKind::Script => return Err(script_has_no_list(&options.dump)),
    };
    let selected = select::select(&archive, options)?;
    let entries: Vec<&Entry> = selected.iter().map(|s| s.entry).collect();
    Ok(archive.list(&entries))
}

fn script_has_no_list(dump: &Path) -> Error {
    Error::usage(format!(
        "\"{}\" is a script of SQL, which has no table of contents",
        dump.display()
    ))
    .with_hint("Selections and lists are for archives (pg_dump -Fc, -Fd, -Ft).")
}

/// Restores a dump: all of it or nothing.
///
/// # Errors
/// Whatever stands in the way; the cluster is then as it was.
pub fn restore(
    target: &Target,
    options: &RestoreOptions,
    build_options: &BuildOptions,
    interrupted: &AtomicBool,
) -> Result<Restored> {
    raise_open_files_limit();
    match dump::recognise(&options.dump)? {
        DumpKind::Archive => restore_archive(target, options, build_options, interrupted),
        DumpKind::Script => script::restore(target, options, build_options, interrupted),
    }
}

fn restore_archive(
    target: &Target,
    options: &RestoreOptions,
    build_options: &BuildOptions,
    interrupted: &AtomicBool,
) -> Result<Restored> {
    let started = Instant::now();
    let archive = Arc::new(Archive::open(&options.dump)?);
    let selected = select::select(&archive, options)?;
    let arranged = arrange::of_archive(&archive, &selected, options)?;
    let encoding = arrange::encoding(&archive);
    let mut build_options = build_options.clone();
    build_options.input.encoding = (encoding != "UTF8").then(|| encoding.clone());
    build_options.analyze &= !arranged.has_statistics;
    build_options.skip_triggers |= options.disable_triggers;

    let mut session = target.open(&process_environment)?;
    session.lock_wait = build_options.lock_timeout;
    let mut restoring = Restoring::new(options, arranged, interrupted);
    restoring.archive = Some((Arc::clone(&archive), encoding));
    let build = Build::new(&build_options, interrupted);
    let (mut report, loaded) = interruptible(&mut session, interrupted, |s| {
        build.run(s, Some(&mut restoring))
    })?;
    finish_session(session, &loaded, &build_options, interrupted, &mut report)?;
    report.total = started.elapsed();
    Ok(Restored {
        report,
        errors: restoring.runner.errors,
    })
}

/// A database being restored.
struct Restoring<'a> {
    options: &'a RestoreOptions,
    arranged: Arranged,
    /// The archive and the encoding of its rows.
    archive: Option<(Arc<Archive>, String)>,
    runner: Runner<'a>,
    /// Tables whose rows the server's COPY must take, with the reason.
    left: Vec<(DumpedTable, String)>,
}

impl<'a> Restoring<'a> {
    fn new(
        options: &'a RestoreOptions,
        arranged: Arranged,
        interrupted: &'a AtomicBool,
    ) -> Restoring<'a> {
        Restoring {
            options,
            arranged,
            archive: None,
            runner: Runner {
                dump: options.dump.display().to_string(),
                keep_going: options.keep_going,
                verbose: options.verbose,
                interrupted,
                errors: 0,
            },
            left: Vec::new(),
        }
    }

    fn step(&mut self, registration: &mut Registration<'_>, step: &Step) -> Result<()> {
        match step {
            Step::Command(command) => self.runner.run(registration, std::slice::from_ref(command)),
            Step::Rows(_) => unreachable!("rows are fed with their report"),
            Step::Sql(entry) => self.sql(registration, entry),
            Step::LargeObjects(entry) => {
                let (archive, _) = self.archive()?;
                self.runner
                    .attempt(registration, |registration| {
                        large_objects::restore(registration, &archive, entry)
                    })
                    .map(drop)
            }
        }
    }

    fn archive(&self) -> Result<(Arc<Archive>, String)> {
        self.archive
            .clone()
            .ok_or_else(|| Error::environment("XX000", "a script has no entries"))
    }

    /// Runs the SQL that an entry has for data.
    fn sql(&mut self, registration: &mut Registration<'_>, entry: &Entry) -> Result<()> {
        let (archive, encoding) = self.archive()?;
        let label = archive.label(entry);
        let member = ArchiveMember {
            archive,
            entry: entry.clone(),
        };
        let mut reader = ScriptReader::new(member.open()?, label.clone());
        let mut commands = Vec::new();
        loop {
            match reader.next()? {
                Some(Item::Statement { text, line }) => commands.push(Command {
                    sql: command::decoded(text, &encoding, &label, line)?,
                    origin: CommandOrigin::Data {
                        label: label.clone(),
                        line,
                    },
                }),
                None => break,
                Some(_) => {
                    return Err(Error::refused(
                        "22P04",
                        format!("\"{label}\" has more than statements"),
                    ));
                }
            }
            if commands.len() == STATEMENTS_AHEAD {
                self.runner.run(registration, &commands)?;
                commands.clear();
            }
        }
        self.runner.run(registration, &commands)
    }
}

impl Around for Restoring<'_> {
    fn relations(&self) -> usize {
        // A heap, a TOAST table with its index, and a key.
        self.arranged.tables.len() * 4
    }

    fn before(&mut self, registration: &mut Registration<'_>) -> Result<Vec<SourceSpec>> {
        let before = std::mem::take(&mut self.arranged.before);
        self.runner.run(registration, &before)?;
        registration.after_foreign_sql()?;
        let tables = std::mem::take(&mut self.arranged.tables);
        let (native, left) = tables::divide(registration, tables, self.options, &mut self.runner)?;
        self.left = left;
        Ok(native)
    }

    fn after(&mut self, registration: &mut Registration<'_>, report: &mut Report) -> Result<()> {
        for (table, reason) in std::mem::take(&mut self.left) {
            let interrupted = self.runner.interrupted;
            let copied = self.runner.attempt(registration, |registration| {
                tables::feed(registration, &table, interrupted)
            })?;
            if let Some(copied) = copied {
                report.tables.push(tables::report(&table, reason, copied));
            }
        }
        let steps = std::mem::take(&mut self.arranged.after);
        let mut commands = Vec::new();
        for step in steps {
            match step {
                // Those that follow each other go together.
                Step::Command(command) => commands.push(command),
                Step::Rows(table) => {
                    self.runner
                        .run(registration, &std::mem::take(&mut commands))?;
                    let interrupted = self.runner.interrupted;
                    let copied = self.runner.attempt(registration, |registration| {
                        tables::feed(registration, &table, interrupted)
                    })?;
                    if let Some(copied) = copied {
                        let reason = "statements before it may need the rows before them";
                        report
                            .tables
                            .push(tables::report(&table, reason.to_owned(), copied));
                    }
                }
                step => {
                    self.runner
                        .run(registration, &std::mem::take(&mut commands))?;
                    self.step(registration, &step)?;
                }
            }
        }
        self.runner.run(registration, &commands)?;
        registration.after_foreign_sql()
    }
}
