//! A build from beginning to end: plan, then pack, place and seal by the workers, then register.

mod around;
mod budget;
mod built;
mod constraints;
mod defaults;
mod duplicate;
mod files;
mod first_error;
mod inputs;
mod interrupt;
mod marks;
pub mod options;
mod outlook;
mod pack;
mod pipeline;
mod place;
mod plan;
mod progress;
pub mod report;
pub mod restore;
mod route;
mod seal;
mod server_copy;
mod settings;
pub mod source_spec;
mod space;
mod toast_log;
mod turns;
pub mod two_step;

use crate::catalog::Relation;
use crate::cluster::conninfo::process_environment;
use crate::cluster::facts::{Consumers, Facts};
use crate::cluster::oids;
use crate::cluster::register::{
    self, Event, Options, Registration, SequenceMove, StagedRelation, StagedTable, TableToRegister,
};
use crate::cluster::session::Session;
use crate::cluster::staging::Staging;
use crate::cluster::target::Target;
use crate::error::{Error, Result};
use crate::sys::files::raise_open_files_limit;
use crate::types::Settings;
use around::{Around, SchemaScript};
use built::{BuiltFork, BuiltTable};
use defaults::ask::{Ask, ServerLine};
use files::Supplies;
use interrupt::interrupted;
use options::{BuildOptions, WalMode};
pub use outlook::{Outlook, plan_only};
use pgformat::ids::Oid;
use plan::{How, IndexPlan, NativePlan, ServerView, TablePlan};
use postgres::Client;
use progress::Progress;
use report::{
    AskedReport, By, ConstraintReport, IndexReport, MaintenanceReport, Report, TableReport,
    VerbTimes,
};
use source_spec::SourceSpec;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Up to so many tables the first checkpoint is made beside the build: of many new files the
/// registration makes less work for the server.
const FEW_TABLES: usize = 16;
/// Builds the tables and registers them: all or none.
///
/// # Errors
/// Whatever stands in the way; the cluster is then as it was.
pub fn build(
    target: &Target,
    options: &BuildOptions,
    interrupt_flag: &AtomicBool,
) -> Result<Report> {
    let started = Instant::now();
    // Every input is open from the beginning to the end, so that it cannot change unseen.
    raise_open_files_limit();
    let mut session = target.open(&process_environment)?;
    session.lock_wait = options.lock_timeout;
    let build = Build::new(options, interrupt_flag);
    let mut script = SchemaScript::of(options)?;
    let around = script.as_mut().map(|script| script as &mut dyn Around);
    let (mut report, loaded) =
        interruptible(&mut session, interrupt_flag, |s| build.run(s, around))?;
    finish_session(session, &loaded, options, interrupt_flag, &mut report)?;
    report.total = started.elapsed();
    Ok(report)
}

/// Does work in a session; a signal cancels the statement that it waits for.
fn interruptible<T>(
    session: &mut Session,
    interrupt_flag: &AtomicBool,
    work: impl FnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    let token = session.client().cancel_token();
    interrupt::cancelling(&token, interrupt_flag, || work(session)).map_err(|error| {
        let cancelled = error.sqlstate == "57014" && interrupt_flag.load(Ordering::Relaxed);
        if cancelled { interrupted() } else { error }
    })
}

/// Gathers statistics of what was loaded and ends the session.
fn finish_session(
    mut session: Session,
    loaded: &[Relation],
    options: &BuildOptions,
    interrupt_flag: &AtomicBool,
    report: &mut Report,
) -> Result<()> {
    let names: Vec<String> = loaded.iter().map(Relation::qualified_name).collect();
    analyze(&mut session, &names, options, interrupt_flag, report);
    session.finish()
}

/// Gathers statistics of what was loaded, unless told otherwise.
fn analyze(
    session: &mut Session,
    loaded: &[String],
    options: &BuildOptions,
    interrupt_flag: &AtomicBool,
    report: &mut Report,
) {
    if !options.analyze || loaded.is_empty() {
        return;
    }
    let analyzing = Instant::now();
    // The load is durable: what goes wrong from here on is told, but undoes nothing.
    let token = session.client().cancel_token();
    let analyzed = interrupt::cancelling(&token, interrupt_flag, || session.analyze(loaded));
    if let Err(error) = analyzed {
        report
            .notes
            .push(format!("ANALYZE failed: {}", error.message));
    }
    report.analyze = Some(analyzing.elapsed());
}

/// A build in hand.
struct Build<'o> {
    options: &'o BuildOptions,
    interrupted: &'o AtomicBool,
    report: Report,
}

impl<'o> Build<'o> {
    fn new(options: &'o BuildOptions, interrupted: &'o AtomicBool) -> Build<'o> {
        Build {
            options,
            interrupted,
            report: Report::default(),
        }
    }

    fn run(
        mut self,
        session: &mut Session,
        mut around: Option<&mut dyn Around>,
    ) -> Result<(Report, Vec<Relation>)> {
        let begun = Instant::now();
        let facts = session.facts.clone();
        let stage_only = self.options.stage_only.as_deref();
        if self.options.wal == WalMode::Auto && stage_only.is_none() {
            // Asked again at the registration; this spares the work.
            Consumers::read(session.client(), facts.version)?.refuse()?;
        }
        let (mut registration, mut lent) = (None, None);
        let specs = if let Some(around) = &mut around {
            let begun = self.begin(session, around.relations())?;
            around.before(registration.insert(begun))?
        } else {
            lent = Some(session);
            self.options.sources.clone()
        };
        let sources = group_by_table(&specs);
        let names: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
        let relations = match (&mut registration, &mut lent) {
            (Some(registration), _) => registration.plan_tables(&names)?,
            (None, Some(session)) => session.plan_tables(&names)?,
            (None, None) => unreachable!("the session is in one of two places"),
        };
        let client = connection(&mut registration, &mut lent);
        if !self.options.truncate && stage_only.is_none() {
            refuse_rows(client, &relations)?;
        }
        let view = settings::ask(client, &facts, self.options.input.encoding.as_deref())?;
        let mut tables = self.plan(relations, &sources, &view, &facts)?;
        if stage_only.is_none() {
            self.refuse_unemptyable(client, &tables)?;
        }
        if let Ok(settings) = &view.settings {
            self.prepare_defaults(&mut registration, &mut lent, &mut tables, settings)?;
        }
        if stage_only.is_some() {
            Build::refuse_to_stage(&tables)?;
        }
        let client = connection(&mut registration, &mut lent);
        let first_value_id = oids::toast_value_ids(client, toast_value_bound(&tables))?;
        if let Some(dir) = &self.options.temp_dir {
            tempfile::tempfile_in(dir)
                .map_err(|e| Error::io("create a temporary file in", dir, &e))?;
        }
        if let Ok(settings) = &view.settings {
            outlook::refuse_if_short(&tables, settings, &facts, self.options)?;
        }
        let staging = match stage_only {
            None => Staging::create(&facts, &tablespaces(&tables))?,
            Some(directory) => Staging::in_directory(&facts, directory)?,
        };
        let progress = Progress::new(self.options.progress, total_bytes(&tables));
        // A session that is not in a transaction has nothing else to do meanwhile.
        let (in_transaction, idle) = match (&mut registration, &mut lent) {
            (Some(registration), _) => (Some(registration.client()), None),
            (None, Some(session)) if stage_only.is_some() => (Some(session.client()), None),
            (None, session) => (None, session.as_mut()),
        };
        let (built, checkpointed) = std::thread::scope(|scope| {
            // Where the build is short this spares the registration the wait; where it is long
            // the checkpoint is made again.
            let checkpoint = idle
                .filter(|_| tables.len() <= FEW_TABLES)
                .map(|session| scope.spawn(|| session.checkpoint()));
            let server = in_transaction.map(ServerLine::new);
            let supplies = Supplies {
                settings: view.settings.as_ref().ok(),
                server: server.as_ref().map(|server| server as &dyn Ask),
                staging: &staging,
                first_value_id,
                progress: &progress,
            };
            let built = self.build_files(&tables, &facts, &supplies);
            let checkpointed = checkpoint.map_or(Ok(()), |thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            (built, checkpointed)
        });
        progress.finish();
        let built = built.map_err(|error| {
            let client = connection(&mut registration, &mut lent);
            first_error::first_error(client, &tables, error, self.interrupted)
        })?;
        checkpointed?;
        if let Some(directory) = stage_only {
            let session = lent.take().expect("a stage begins no registration");
            self.finish_stage(session, staging, directory, &tables, built)?;
            self.report.build = begun.elapsed();
            return Ok((self.report, Vec::new()));
        }
        self.report.build = begun.elapsed();

        let registering = Instant::now();
        let registration = match (registration, lent) {
            (Some(registration), _) => registration,
            (None, Some(session)) => self.begin(session, relation_count(&tables))?,
            (None, None) => unreachable!("the session is in one of two places"),
        };
        self.register(registration, staging, &tables, built, around)?;
        self.report.register = registering.elapsed();
        Ok((self.report, to_analyze(tables)))
    }

    /// Refuses tables that a registration could not empty.
    fn refuse_unemptyable(&self, client: &mut Client, tables: &[TablePlan]) -> Result<()> {
        register::refuse_unemptyable(client, &self.to_register_all(tables))
    }

    fn to_register_all(&self, tables: &[TablePlan]) -> Vec<TableToRegister> {
        tables.iter().map(|table| self.to_register(table)).collect()
    }

    /// Makes what was built part of the cluster, and reports on it.
    fn register(
        &mut self,
        mut registration: Registration<'_>,
        staging: Staging,
        tables: &[TablePlan],
        built: Vec<Option<BuiltTable>>,
        around: Option<&mut dyn Around>,
    ) -> Result<()> {
        staging.check()?;
        let taken = tables
            .iter()
            .zip(&built)
            .filter(|(t, b)| is_taken(t, b.as_ref()));
        registration.take(taken.clone().map(|(t, _)| self.to_register(t)).collect())?;
        let staged: Vec<StagedTable> = taken
            .filter(|(table, _)| table.part.has_rows())
            .filter_map(|(t, b)| Some(stage(t, b.as_ref()?)))
            .collect();
        registration.put(&staged)?;
        registration.move_sequences(&sequence_moves(tables, &built))?;
        let checked_rows = self.check_rows(&mut registration, tables, &built)?;
        let rows = self.by_the_server(&mut registration, tables, &built)?;
        let restores = around.as_ref().is_some_and(|around| around.has_post_data());
        if restores || staged_server_index(tables, &built) {
            let (memory, workers) = registration.maintenance()?;
            self.report.maintenance = Some(MaintenanceReport { memory, workers });
        }
        if let Some(around) = around {
            around.after(&mut registration, &mut self.report)?;
        }
        let checked_references = self.check_references(&mut registration, tables, &built)?;
        self.check_interrupt()?;
        let committed = registration.commit()?;
        if !committed.missed_by.is_none() {
            self.report.notes.push(
                "the load is not in the WAL: take a new base backup and rebuild standbys"
                    .to_owned(),
            );
        }
        drop(staging);
        let checked = checked_rows.into_iter().zip(checked_references);
        for (((table, built), rows), times) in tables.iter().zip(built).zip(rows).zip(checked) {
            let checked = constraints::reports(table, times.0, times.1);
            self.report_table(table, built, rows, checked);
        }
        Ok(())
    }

    /// Prepares what the input does not give. Where that depends on the transaction, or the
    /// server is to be asked row by row, the load's own begins now.
    fn prepare_defaults<'s>(
        &self,
        registration: &mut Option<Registration<'s>>,
        lent: &mut Option<&'s mut Session>,
        tables: &mut [TablePlan],
        settings: &Settings,
    ) -> Result<()> {
        let in_transaction = self.begin_values(registration, lent, tables)?;
        let client = connection(registration, lent);
        defaults::prepare(client, in_transaction, tables, settings)?;
        // What could not be evaluated is asked for with the first row.
        self.begin_values(registration, lent, tables)?;
        Ok(())
    }

    /// Begins the transaction that gives values to rows, if one is needed and there is none: the
    /// load's own, or of a stage, which has no other. Whether there is one.
    fn begin_values<'s>(
        &self,
        registration: &mut Option<Registration<'s>>,
        lent: &mut Option<&'s mut Session>,
        tables: &[TablePlan],
    ) -> Result<bool> {
        if !defaults::needs_transaction(tables) {
            return Ok(registration.is_some());
        }
        if self.options.stage_only.is_none() {
            if let Some(session) = lent.take() {
                *registration = Some(self.begin(session, relation_count(tables))?);
            }
        } else if let Some(session) = lent {
            register::begin_values(session)?;
        }
        Ok(true)
    }

    fn begin<'s>(
        &self,
        session: &'s mut Session,
        expected_relations: usize,
    ) -> Result<Registration<'s>> {
        let mut last_told = None;
        Registration::begin(
            session,
            Options {
                bypass_wal: self.options.wal == WalMode::Bypass,
                lock_wait: self.options.lock_timeout,
                expected_relations,
                means: Some(self.means()),
                progress: Box::new(move |event| {
                    if let Event::Waiting {
                        table,
                        blockers,
                        waited,
                    } = event
                    {
                        let text: Vec<String> = blockers.iter().map(ToString::to_string).collect();
                        let text = text.join("; ");
                        if last_told.as_ref() != Some(&text) {
                            eprintln!(
                                "waiting for the lock on {table} ({} s): held by {text}",
                                waited.as_secs()
                            );
                            last_told = Some(text);
                        }
                    }
                }),
            },
        )
    }

    fn plan(
        &mut self,
        relations: Vec<Relation>,
        sources: &[(&str, Vec<&SourceSpec>)],
        view: &settings::View,
        facts: &Facts,
    ) -> Result<Vec<TablePlan>> {
        let mut tables = Vec::with_capacity(relations.len());
        let mut claimed_sequences = HashSet::new();
        let targets: HashSet<Oid> = relations.iter().map(|relation| relation.oid).collect();
        for (relation, (_, sources)) in relations.into_iter().zip(sources) {
            let of_table: Vec<Oid> = defaults::sequences_of(&relation).collect();
            let server = ServerView {
                settings: view.settings.as_ref().map_err(String::as_str),
                version: facts.version,
                encoding: &facts.server_encoding,
                input_map: view.input_map.as_ref(),
                database_collation: Some(&view.database_collation),
                claimed_sequences: &claimed_sequences,
                targets: &targets,
            };
            let number = tables.len();
            let planned = plan::plan_table(relation, sources, &server, self.options, number)?;
            claimed_sequences.extend(of_table);
            let notes = planned.iter().flat_map(|table| &table.notes);
            self.report.notes.extend(notes.cloned());
            tables.extend(planned);
        }
        Ok(tables)
    }

    fn to_register(&self, table: &TablePlan) -> TableToRegister {
        TableToRegister {
            relation: table.relation.clone(),
            truncate_allowed: self.options.truncate,
            native: matches!(table.how, How::Native(_)) && table.part.has_rows(),
            checks_references: constraints::checks_constraints(table) && table.part.has_rows(),
        }
    }

    /// What the server does itself: its COPY of whole tables (whose rows are returned), its
    /// builds of indexes.
    fn by_the_server(
        &self,
        registration: &mut Registration<'_>,
        tables: &[TablePlan],
        built: &[Option<BuiltTable>],
    ) -> Result<Vec<Option<(u64, u64)>>> {
        tables
            .iter()
            .zip(built)
            .map(|(table, built)| match &table.how {
                How::Native(_) if !is_taken(table, built.as_ref()) => Ok(None),
                How::Native(native) => {
                    let built = built.as_ref().expect("a native table was built");
                    self.server_indexes(registration, table, native, built)?;
                    Ok(None)
                }
                How::Server(_) => {
                    registration.silence_triggers(&table.relation)?;
                    server_copy::copy(registration, table, self.interrupted).map(Some)
                }
            })
            .collect()
    }

    fn check_interrupt(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        Ok(())
    }

    fn report_table(
        &mut self,
        table: &TablePlan,
        built: Option<BuiltTable>,
        copied: Option<(u64, u64)>,
        constraints: Vec<ConstraintReport>,
    ) {
        let name = table.relation.display_name();
        let (native, built) = match (&table.how, built) {
            (How::Native(_), Some(built)) if !is_taken(table, Some(&built)) => return,
            (How::Native(native), Some(built)) => (native, built),
            (How::Server(reason), _) => {
                let (rows, input_bytes) = copied.unwrap_or_default();
                self.report.tables.push(TableReport {
                    name,
                    is_leaf: false,
                    by: By::Server(reason.clone()),
                    rows,
                    input_bytes,
                    heap_bytes: 0,
                    toast_bytes: 0,
                    indexes: Vec::new(),
                    constraints,
                    asked: None,
                    times: VerbTimes::default(),
                });
                return;
            }
            (How::Native(_), None) => unreachable!("a native table was built"),
        };
        let mut done = built.indexes.iter();
        let indexes = table
            .relation
            .indexes
            .iter()
            .zip(&native.indexes)
            .map(|(index, plan)| match plan {
                IndexPlan::Native(_) => {
                    let built = done.next().expect("each native index was built");
                    IndexReport {
                        name: index.name.clone(),
                        by: By::Native,
                        bytes: built.file.bytes(),
                        spilled_bytes: built.spilled_bytes,
                    }
                }
                IndexPlan::Server(reason) => IndexReport {
                    name: index.name.clone(),
                    by: By::Server(reason.clone()),
                    bytes: 0,
                    spilled_bytes: 0,
                },
            })
            .collect();
        self.report.tables.push(TableReport {
            name,
            is_leaf: !table.part.has_inputs(),
            by: By::Native,
            rows: built.rows,
            input_bytes: built.input_bytes,
            heap_bytes: built.heap.bytes()
                + built.visibility_map.as_ref().map_or(0, BuiltFork::bytes),
            toast_bytes: built
                .toast
                .as_ref()
                .map_or(0, |t| t.heap.bytes() + t.index.bytes()),
            indexes,
            constraints,
            asked: asked_report(table, native, &built),
            times: built.times,
        });
    }
}

/// The tables whose statistics are gathered: of a partitioned one that is done with its leaves.
fn to_analyze(tables: Vec<TablePlan>) -> Vec<Relation> {
    let with_inputs = tables.into_iter().filter(|table| table.part.has_inputs());
    with_inputs.map(|table| table.relation).collect()
}

/// Whether a table is part of the registration: a leaf that has no rows is left as it is.
fn is_taken(table: &TablePlan, built: Option<&BuiltTable>) -> bool {
    table.part.has_inputs() || built.is_some_and(|built| built.rows > 0)
}

/// Whether the server builds an index of a table that is taken.
fn staged_server_index(tables: &[TablePlan], built: &[Option<BuiltTable>]) -> bool {
    let mut pairs = tables.iter().zip(built);
    pairs.any(|(table, built)| match &table.how {
        How::Native(native) if is_taken(table, built.as_ref()) => {
            plan::server_indexes(&table.relation, native)
                .next()
                .is_some()
        }
        _ => false,
    })
}

/// The sources by table, tables in the order of their first source.
fn group_by_table(sources: &[SourceSpec]) -> Vec<(&str, Vec<&SourceSpec>)> {
    let mut tables: Vec<(&str, Vec<&SourceSpec>)> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for source in sources {
        let number = *numbers.entry(&source.table).or_insert(tables.len());
        if number == tables.len() {
            tables.push((&source.table, Vec::new()));
        }
        tables[number].1.push(source);
    }
    tables
}

/// Without `--truncate` a table must be empty. The registration looks again under the lock; this
/// spares the work.
fn refuse_rows(client: &mut Client, relations: &[Relation]) -> Result<()> {
    for relation in relations
        .iter()
        .filter(|r| r.kind == 'p' || r.size_bytes > 0)
    {
        let only = if relation.kind == 'p' { "" } else { "ONLY " };
        let query = format!(
            "SELECT EXISTS (SELECT FROM {only}{})",
            relation.qualified_name()
        );
        if client.query_one(&query, &[])?.get(0) {
            return Err(Error::refused(
                "55000",
                format!("table {} is not empty", relation.display_name()),
            )
            .with_hint("--truncate replaces its rows in the same transaction."));
        }
    }
    Ok(())
}

/// Tables and indexes.
fn relation_count(tables: &[TablePlan]) -> usize {
    tables.iter().map(|t| 1 + t.relation.indexes.len()).sum()
}

/// The tablespaces that files are staged in.
fn tablespaces(tables: &[TablePlan]) -> Vec<u32> {
    let mut all: Vec<u32> = tables
        .iter()
        .flat_map(|t| {
            std::iter::once(t.relation.tablespace)
                .chain(t.relation.indexes.iter().map(|i| i.tablespace))
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// More values than any table of the load can have out of line.
///
/// A value that goes out of line has 24 bytes of input at the least, and a compressed input
/// seldom shrinks to less than a tenth; a stream may be of any length.
fn toast_value_bound(tables: &[TablePlan]) -> u64 {
    const UNKNOWN: u64 = 1 << 30;
    let of_table = |table: &TablePlan| -> u64 {
        table
            .inputs
            .iter()
            .map(|input| input.origin.bytes().map_or(UNKNOWN, |bytes| bytes / 2 + 1))
            .sum()
    };
    tables.iter().map(of_table).max().unwrap_or(0).min(UNKNOWN)
}

/// Bytes of all native inputs, where every size is known.
fn total_bytes(tables: &[TablePlan]) -> Option<u64> {
    tables
        .iter()
        .filter(|t| matches!(t.how, How::Native(_)))
        .flat_map(|t| &t.inputs)
        .map(|input| input.origin.bytes())
        .sum()
}

/// The connection, which is in one of two places.
fn connection<'c>(
    registration: &'c mut Option<Registration<'_>>,
    lent: &'c mut Option<&mut Session>,
) -> &'c mut Client {
    match (registration, lent) {
        (Some(registration), _) => registration.client(),
        (None, Some(session)) => session.client(),
        (None, None) => unreachable!("the session is in one of two places"),
    }
}

/// Where sequences go that rows drew from.
fn sequence_moves(tables: &[TablePlan], built: &[Option<BuiltTable>]) -> Vec<SequenceMove> {
    let native = tables.iter().zip(built).filter_map(|pair| match pair {
        (
            TablePlan {
                how: How::Native(native),
                ..
            },
            Some(built),
        ) => Some((native, built)),
        _ => None,
    });
    native
        .flat_map(|(native, built)| native.defaults.sequences.iter().zip(&built.draws))
        .filter(|(_, draws)| **draws > 0)
        .map(|(plan, draws)| SequenceMove {
            sequence: plan.sequence.clone(),
            from: plan.from,
            to: plan.after(*draws),
        })
        .collect()
}

/// What the server was asked for.
fn asked_report(table: &TablePlan, native: &NativePlan, built: &BuiltTable) -> Option<AskedReport> {
    let columns: Vec<String> = native
        .defaults
        .asked
        .iter()
        .map(|asked| {
            let what = if asked.generated {
                "generated"
            } else {
                "default"
            };
            format!("{} ({what})", table.relation.columns[asked.attribute].name)
        })
        .collect();
    (!columns.is_empty()).then_some(AskedReport {
        columns,
        rows: built.asked.rows,
        batches: built.asked.batches,
        time: built.asked.time,
    })
}

/// A built table as registration wants it.
fn stage(table: &TablePlan, built: &BuiltTable) -> StagedTable {
    let relation = |fork: &BuiltFork, tuples: u64| StagedRelation {
        main: fork.segments(),
        blocks: fork.blocks,
        tuples,
        ..StagedRelation::default()
    };
    let map = |map: &Option<BuiltFork>| map.as_ref().map(BuiltFork::segments).unwrap_or_default();
    StagedTable {
        table: table.relation.oid,
        heap: StagedRelation {
            visibility_map: map(&built.visibility_map),
            all_visible_blocks: built.heap.blocks,
            ..relation(&built.heap, built.rows)
        },
        toast: built.toast.as_ref().map(|toast| {
            let heap = StagedRelation {
                visibility_map: map(&toast.visibility_map),
                ..relation(&toast.heap, toast.tuples)
            };
            (heap, relation(&toast.index, toast.tuples))
        }),
        indexes: built
            .indexes
            .iter()
            .map(|index| {
                (
                    table.relation.indexes[index.number].oid,
                    relation(&index.file, index.tuples),
                )
            })
            .collect(),
    }
}
