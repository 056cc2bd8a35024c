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
mod databases;
mod emit;
mod guard;
mod inserts;
mod large_objects;
pub mod options;
mod outside;
mod rows;
mod run;
mod script;
mod select;
mod small;
mod tables;

use super::around::Around;
use super::options::BuildOptions;
use super::report::Report;
use super::source_spec::SourceSpec;
use super::{Build, analyze, interruptible};
use crate::catalog::Relation;
use crate::cluster::conninfo::{database_of, process_environment};
use crate::cluster::register::Registration;
use crate::cluster::session::Session;
use crate::cluster::target::Target;
use crate::error::{Error, Result};
use crate::source::dump::archive::{Archive, Entry};
use crate::source::dump::script::{Class, Item, ScriptReader, classify};
use crate::source::dump::spool::DumpFile;
use crate::source::dump::{self, DumpKind};
use crate::source::{FileSource, Member};
use crate::sys::files::raise_open_files_limit;
use arrange::{Arranged, Statements, Step};
use command::{Command, CommandOrigin};
use inserts::InsertsMember;
use options::RestoreOptions;
use outside::Outside;
use pgformat::ids::Oid;
use rows::{DumpedTable, RowsPlace};
use run::Runner;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Statements of SQL data that are read before they are run.
const STATEMENTS_AHEAD: usize = 1000;

/// What a restore was.
#[derive(Debug, Default)]
pub struct Restored {
    /// The report.
    pub report: Report,
    /// Errors that did not end it (`--keep-going`).
    pub errors: u64,
    /// The tables that were loaded, by their names as in SQL.
    loaded: Vec<String>,
}

/// The table of contents as pg_restore -l prints it, of the entries that are selected.
///
/// # Errors
/// It is no archive, or damaged.
pub fn list(options: &RestoreOptions, interrupted: &AtomicBool) -> Result<String> {
    let dump = open_dump(options, None, interrupted)?;
    let archive = match dump::recognise(&dump.path)? {
        DumpKind::Archive => Archive::open(&dump.path, &dump.label)?,
        DumpKind::Script => return Err(is_a_script(&dump.label)),
    };
    let selected = select::select(&archive, options)?;
    let entries: Vec<&Entry> = selected.iter().map(|s| s.entry).collect();
    Ok(archive.list(&entries))
}

/// What `plan` says of a dump.
///
/// # Errors
/// Always: what a build would refuse first, or that this is not told of dumps.
pub fn refuse_to_plan(options: &RestoreOptions) -> Result<()> {
    let never = AtomicBool::new(false);
    dump::recognise(&open_dump(options, None, &never)?.path)?;
    Err(
        Error::unsupported("what a build of a dump would do is not told yet")
            .with_hint("\"build -l\" prints the table of contents of an archive."),
    )
}

#[cold]
fn is_a_script(label: &str) -> Error {
    Error::usage(format!(
        "\"{label}\" is a script of SQL, which has no table of contents"
    ))
    .with_hint("Selections and lists are for archives (pg_dump -Fc, -Fd, -Ft).")
}

fn open_dump(
    options: &RestoreOptions,
    temp_dir: Option<&Path>,
    interrupted: &AtomicBool,
) -> Result<DumpFile> {
    DumpFile::open(&options.dump, temp_dir, &|| {
        if interrupted.load(Ordering::Relaxed) {
            return Err(super::interrupt::interrupted());
        }
        Ok(())
    })
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
    let started = Instant::now();
    raise_open_files_limit();
    let dump = open_dump(options, build_options.temp_dir.as_deref(), interrupted)?;
    let mut build_options = build_options.clone();
    build_options.skip_triggers |= options.disable_triggers;
    build_options.skip_references = options.disable_triggers;
    let work = Work {
        options,
        build_options,
        interrupted,
        dump: &dump,
    };
    let mut restored = match dump::recognise(&dump.path)? {
        DumpKind::Archive => work.archive(target)?,
        DumpKind::Script if options.selects() => return Err(is_a_script(&dump.label)),
        DumpKind::Script => work.script(target)?,
    };
    restored.report.total = started.elapsed();
    Ok(restored)
}

/// Rows that could not be built.
type FailedRows = HashSet<RowsPlace>;

/// A restore in hand.
struct Work<'w> {
    options: &'w RestoreOptions,
    build_options: BuildOptions,
    interrupted: &'w AtomicBool,
    dump: &'w DumpFile,
}

impl Work<'_> {
    /// Restores an archive.
    fn archive(mut self, target: &Target) -> Result<Restored> {
        let archive = Arc::new(Archive::open(&self.dump.path, &self.dump.label)?);
        let selected = select::select(&archive, self.options)?;
        let options = self.options;
        let native_only = self.build_options.native_only;
        let arranged = |failed: &FailedRows| {
            arrange::of_archive(&archive, &selected, options, native_only, failed)
        };
        let encoding = arrange::encoding(&archive);
        self.build_options.input.encoding = (encoding != "UTF8").then_some(encoding);
        self.build_options.analyze &= !arrange::has_statistics(&selected);
        let mut session = self.open(target)?;
        if !options.create {
            let restored = self.database(&mut session, arranged)?;
            return self.finish(session, restored);
        }
        let database = databases::Database::of_archive(&archive, &selected, self.options)?;
        let (created, mut inner) = database.create(&mut session, self.options)?;
        // Nobody may be connected to a database that is renamed or dropped.
        let done = self
            .database(&mut inner, arranged)
            .map(|restored| self.analyze(&mut inner, restored));
        let ended = inner.finish();
        let kept = done.and_then(|restored| {
            ended?;
            created.keep(&mut session)?;
            Ok(restored)
        });
        match kept {
            Ok(restored) => {
                session.finish()?;
                Ok(restored)
            }
            Err(error) => {
                created.undo(&mut session);
                Err(error)
            }
        }
    }

    /// Restores a script: a transaction for each database that it connects to.
    fn script(mut self, target: &Target) -> Result<Restored> {
        let script = FileSource::open(&self.dump.path)?;
        let mut session = self.open(target)?;
        let mut outside = Outside::new(self.dump.label.clone());
        match self.segments(&script, &mut session, &mut outside) {
            Ok(restored) => {
                outside.complete(&mut session)?;
                session.finish()?;
                Ok(restored)
            }
            Err(error) => {
                outside.undo(&mut session);
                Err(error)
            }
        }
    }

    fn segments(
        &mut self,
        script: &FileSource,
        session: &mut Session,
        outside: &mut Outside,
    ) -> Result<Restored> {
        let (label, options) = (&self.dump.label, self.options);
        let segments = |failed: &FailedRows| script::segments(script, label, options, failed);
        let mut all = Restored::default();
        for (number, segment) in segments(&FailedRows::new())?.into_iter().enumerate() {
            if let Some(dbname) = segment.connect.as_ref().and_then(|c| c.dbname.as_deref())
                && let Some(database) = database_of(dbname)?
            {
                session.go_to(&database)?;
            }
            if segment.has_work() {
                self.build_options.input.encoding = segment
                    .arranged
                    .tables
                    .iter()
                    .find_map(|t| t.source.input.encoding.clone());
                let mut arranged = Some(segment.arranged);
                let restored = self.database(session, |failed| match arranged.take() {
                    Some(arranged) => Ok(arranged),
                    None => Ok(segments(failed)?.swap_remove(number).arranged),
                })?;
                let restored = self.analyze(session, restored);
                all.report.add(restored.report);
                all.errors += restored.errors;
            }
            match outside.run(session, &segment.outside) {
                Err(error) if self.options.keep_going => {
                    eprintln!("{error}");
                    all.errors += 1;
                }
                ran => ran?,
            }
        }
        Ok(all)
    }

    fn open(&self, target: &Target) -> Result<Session> {
        let mut session = target.open(&process_environment)?;
        session.lock_wait = self.build_options.lock_timeout;
        databases::tell_of_leftovers(&mut session)?;
        Ok(session)
    }

    /// Restores one database, in one transaction. Where errors are to be passed over and rows are
    /// refused, it begins again, and the server judges these rows.
    fn database(
        &self,
        session: &mut Session,
        mut arranged: impl FnMut(&FailedRows) -> Result<Arranged>,
    ) -> Result<Restored> {
        let mut failed = FailedRows::new();
        loop {
            let arranged = arranged(&failed)?;
            let places: Vec<RowsPlace> = arranged.tables.iter().map(DumpedTable::place).collect();
            let mut ignored = Vec::new();
            let attempted = self.attempt(session, arranged, &failed, &mut ignored);
            if self.options.keep_going
                && let Err(error) = &attempted
                && let Some(place) = rows::place_of(error, &places)
                && failed.insert(place.clone())
            {
                continue;
            }
            for error in &ignored {
                eprintln!("{error}");
            }
            let mut restored = attempted?;
            restored.errors = ignored.len() as u64;
            return Ok(restored);
        }
    }

    fn attempt(
        &self,
        session: &mut Session,
        arranged: Arranged,
        failed_rows: &FailedRows,
        ignored: &mut Vec<Error>,
    ) -> Result<Restored> {
        // Before minutes are spent on what cannot end well.
        if session
            .facts
            .check_lock_capacity(arranged.relations)
            .is_err()
        {
            let with_toast = arranged.relations + 2 * arranged.made_tables;
            session.facts.check_lock_capacity(with_toast)?;
        }
        let mut restoring = Restoring {
            options: self.options,
            arranged,
            runner: Runner {
                dump: self.dump.label.clone(),
                keep_going: self.options.keep_going,
                verbose: self.options.verbose,
                told: None,
                interrupted: self.interrupted,
                errors: ignored,
                failed_tables: HashSet::new(),
                failed_rows,
            },
            left: HashMap::new(),
            filled: Vec::new(),
        };
        let inserted: Vec<(String, Arc<InsertsMember>)> = restoring
            .arranged
            .tables
            .iter()
            .filter_map(|table| {
                let member = Arc::clone(&table.inserted.as_ref()?.member);
                Some((table.source.label.clone(), member))
            })
            .collect();
        let build = Build::new(&self.build_options, self.interrupted);
        let ran = interruptible(session, self.interrupted, |s| {
            build.run(s, Some(&mut restoring))
        });
        let (report, loaded) = ran.map_err(|mut error| {
            for (label, member) in &inserted {
                member.locate(&mut error, label);
            }
            error
        })?;
        let oids: Vec<Oid> = loaded.iter().map(|relation| relation.oid).collect();
        let mut loaded = session
            .names_of(&oids)
            .unwrap_or_else(|_| loaded.iter().map(Relation::qualified_name).collect());
        loaded.append(&mut restoring.filled);
        Ok(Restored {
            report,
            loaded,
            ..Restored::default()
        })
    }

    fn analyze(&self, session: &mut Session, mut restored: Restored) -> Restored {
        analyze(
            session,
            &restored.loaded,
            &self.build_options,
            self.interrupted,
            &mut restored.report,
        );
        restored
    }

    fn finish(&self, mut session: Session, restored: Restored) -> Result<Restored> {
        let restored = self.analyze(&mut session, restored);
        session.finish()?;
        Ok(restored)
    }
}

/// A database being restored.
struct Restoring<'a> {
    options: &'a RestoreOptions,
    arranged: Arranged,
    runner: Runner<'a>,
    /// Tables whose rows the server must take, with the reason; by their numbers.
    left: HashMap<usize, (DumpedTable, String)>,
    /// The small tables that the server's COPY has filled, by their names.
    filled: Vec<String>,
}

impl Restoring<'_> {
    fn step(
        &mut self,
        registration: &mut Registration<'_>,
        report: &mut Report,
        step: Step,
    ) -> Result<()> {
        match step {
            Step::Command(command) => self.runner.run(registration, &[command]),
            Step::Left(number) => match self.left.remove(&number) {
                Some((table, reason)) => self.left(registration, report, table, reason),
                None => Ok(()),
            },
            Step::Rows(table) => {
                let reason = "statements before it may need the rows before them";
                self.rows(registration, report, &table, reason.to_owned(), false)
            }
            Step::SmallTable(table) => {
                let reason = small::REASON.to_owned();
                self.rows(registration, report, &table, reason, true)?;
                self.filled.extend(table.target.map(|target| target.table));
                Ok(())
            }
            Step::Sql(member) => {
                let entry = &member.entry;
                self.runner.tell_of_data(&entry.desc, &entry.name());
                let label = member.archive.label(&member.entry);
                let encoding = arrange::encoding(&member.archive);
                let reader = ScriptReader::new(member.open()?, label.clone());
                self.statements(registration, reader, &label, &encoding)
            }
            Step::Statements(statements) => {
                let label = self.runner.dump.clone();
                let Statements {
                    script,
                    pos,
                    line,
                    encoding,
                    escapes,
                } = statements;
                let part = script.part(label.clone(), pos.start, pos.end - pos.start)?;
                let reader = ScriptReader::part(part.reader(), label.clone(), line, escapes);
                self.statements(registration, reader, &label, &encoding)
            }
            Step::LargeObjects(member) => {
                self.runner.tell_of_data("BLOBS", "");
                self.runner
                    .attempt(registration, |registration| {
                        large_objects::restore(registration, &member)
                    })
                    .map(drop)
            }
        }
    }

    /// Has the server take a table's rows, for this reason.
    fn left(
        &mut self,
        registration: &mut Registration<'_>,
        report: &mut Report,
        mut table: DumpedTable,
        reason: String,
    ) -> Result<()> {
        let Some(inserted) = table.inserted.take() else {
            return self.rows(registration, report, &table, reason, false);
        };
        self.step(registration, report, *inserted.otherwise)?;
        let inserts = &inserted.member.inserts;
        let ran = (inserts.rows, inserts.pos.end - inserts.pos.start);
        report.tables.push(tables::report(&table, reason, ran));
        Ok(())
    }

    /// Has the server's COPY take rows, for this reason.
    fn rows(
        &mut self,
        registration: &mut Registration<'_>,
        report: &mut Report,
        table: &DumpedTable,
        reason: String,
        freeze: bool,
    ) -> Result<()> {
        if let Some(name) = &table.entry_name {
            self.runner.tell_of_data("TABLE DATA", name);
        }
        let interrupted = self.runner.interrupted;
        let disable_triggers = self.options.disable_triggers;
        let goes_on = self.options.keep_going;
        let copied = self.runner.attempt(registration, |registration| {
            if goes_on {
                tables::check(registration, table)?;
            }
            tables::feed(registration, table, freeze, disable_triggers, interrupted)
        })?;
        if let Some(copied) = copied {
            report.tables.push(tables::report(table, reason, copied));
        }
        Ok(())
    }

    /// Runs statements as they are read.
    fn statements(
        &mut self,
        registration: &mut Registration<'_>,
        mut reader: ScriptReader<impl Read>,
        label: &str,
        encoding: &str,
    ) -> Result<()> {
        let mut commands = Vec::new();
        loop {
            match reader.next_item()? {
                Some(Item::Statement { text, line, .. }) => {
                    let sql = command::decoded(text, encoding, label, line)?;
                    let class = classify(&sql);
                    guard::check_class(&class, label, line, self.options.trust_scripts)?;
                    // All of it is one transaction.
                    if class != Class::TransactionControl {
                        let label = label.to_owned();
                        let origin = CommandOrigin::Data { label, line };
                        commands.push(Command { sql, origin });
                    }
                }
                None => break,
                Some(_) => {
                    let message = format!("\"{label}\" has more than statements");
                    return Err(Error::refused("22P04", message));
                }
            }
            if commands.len() == STATEMENTS_AHEAD {
                self.runner.run(registration, &commands)?;
                commands.clear();
            }
        }
        self.runner.run(registration, &commands)
    }

    /// Makes roles but those that are there, as every script of pg_dumpall has that of its server.
    fn roles(&mut self, registration: &mut Registration<'_>) -> Result<()> {
        for (name, command) in std::mem::take(&mut self.arranged.roles) {
            let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1)";
            let row = registration.client().query_one(there, &[&name])?;
            if !row.get::<_, bool>(0) {
                self.runner.run(registration, &[command])?;
            }
        }
        Ok(())
    }
}

impl Around for Restoring<'_> {
    fn relations(&self) -> usize {
        // A heap, a TOAST table with its index, and a key.
        (self.arranged.tables.len() * 4).max(self.arranged.relations)
    }

    fn has_post_data(&self) -> bool {
        !self.arranged.after.is_empty()
    }

    fn before(&mut self, registration: &mut Registration<'_>) -> Result<Vec<SourceSpec>> {
        self.roles(registration)?;
        let before = std::mem::take(&mut self.arranged.before);
        self.runner.run(registration, &before)?;
        registration.after_foreign_sql()?;
        let tables = std::mem::take(&mut self.arranged.tables);
        let divided = tables::divide(registration, tables, self.options, &mut self.runner)?;
        self.left = divided.left;
        Ok(divided.native)
    }

    fn after(&mut self, registration: &mut Registration<'_>, report: &mut Report) -> Result<()> {
        let mut commands = Vec::new();
        for step in std::mem::take(&mut self.arranged.after) {
            // Those that follow each other go together.
            let step = match step {
                Step::Command(command) => {
                    commands.push(command);
                    continue;
                }
                Step::Left(number) if !self.left.contains_key(&number) => continue,
                other => other,
            };
            self.runner
                .run(registration, &std::mem::take(&mut commands))?;
            self.step(registration, report, step)?;
        }
        self.runner.run(registration, &commands)?;
        registration.after_foreign_sql()
    }
}
