//! The order in which a dump is restored.
//!
//! ```text
//! before   definitions, and those of keys and indexes: on tables that are still empty
//! rows     of all tables at once, with their keys
//! after    the rest, in the dump's order
//! ```
//!
//! So no index is built by reading a table again, and no trigger, foreign key or rule is there
//! when rows come.

use super::super::source_spec::InputSource;
use super::command::{Command, decoded};
use super::databases;
use super::emit::Emitter;
use super::guard;
use super::inserts::{InsertsMember, quotes_are_plain};
use super::options::RestoreOptions;
use super::rows::{
    ArchiveMember, DumpedTable, OpenFiles, RowsPlace, input_options, origin_of_entry,
};
use super::select::{Selected, is_acl};
use super::small;
use crate::catalog::quote_ident;
use crate::error::{Error, Place, Result};
use crate::source::FileSource;
use crate::source::dump::archive::{Archive, Entry, Section};
use crate::source::dump::script::lexer::copies_from_stdin;
use crate::source::dump::script::{Item, ScriptReader, copy_target};
use crate::source::{Member, Origin};
use std::collections::HashSet;
use std::sync::Arc;

/// What is done to one database.
#[derive(Debug, Default)]
pub struct Arranged {
    /// Roles that are made unless they are there, by their names.
    pub roles: Vec<(String, Command)>,
    /// SQL before the rows.
    pub before: Vec<Command>,
    /// Rows.
    pub tables: Vec<DumpedTable>,
    /// How many relations are made, as far as the dump tells.
    pub relations: usize,
    /// How many of these are tables, which may have a TOAST table with its index each.
    pub made_tables: usize,
    /// What needs the rows, in order.
    pub after: Vec<Step>,
}

impl Arranged {
    /// Adds rows. Where the server is to take them, it does so at this place.
    pub fn add(&mut self, table: DumpedTable) {
        self.after.push(Step::Left(self.tables.len()));
        self.tables.push(table);
    }
}

/// A step behind the rows.
#[derive(Debug, Clone)]
pub enum Step {
    /// SQL.
    Command(Command),
    /// The rows of [`Arranged::tables`] with this number, if they are left to the server.
    Left(usize),
    /// Rows that are fed to the server's COPY.
    Rows(Box<DumpedTable>),
    /// Those of a small table that this restore has made; see [`small`].
    SmallTable(Box<DumpedTable>),
    /// Data that are SQL.
    Sql(Box<ArchiveMember>),
    /// Statements of a script, which are many.
    Statements(Statements),
    /// Large objects.
    LargeObjects(Box<ArchiveMember>),
}

/// Statements that are kept as a place in their script.
#[derive(Debug, Clone)]
pub struct Statements {
    /// The script.
    pub script: FileSource,
    /// Where they stand, in bytes.
    pub pos: std::ops::Range<u64>,
    /// The first one's line.
    pub line: u64,
    /// Their encoding.
    pub encoding: String,
    /// Backslashes escape in plain strings (`standard_conforming_strings` is off).
    pub escapes: bool,
}

/// pg_restore's three passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Main,
    Privileges,
    Last,
}

/// PostgreSQL: `src/bin/pg_dump/pg_backup_archiver.c`, `_tocEntryRestorePass`.
fn pass(entry: &Entry) -> Pass {
    let desc = entry.desc.as_str();
    let of_event_trigger =
        matches!(desc, "COMMENT" | "SECURITY LABEL") && entry.tag.starts_with("EVENT TRIGGER ");
    let is_late_statistics = desc == "STATISTICS DATA" && entry.section == Section::PostData;
    if is_acl(entry) {
        Pass::Privileges
    } else if matches!(desc, "EVENT TRIGGER" | "MATERIALIZED VIEW DATA")
        || of_event_trigger
        || is_late_statistics
    {
        Pass::Last
    } else {
        Pass::Main
    }
}

/// Whether an entry's object is made while its table is still empty: indexes and keys. What is NOT
/// VALID holds for new rows only, and so comes behind these.
fn comes_before_rows(entry: &Entry) -> bool {
    entry.section == Section::PostData
        && matches!(entry.desc.as_str(), "INDEX" | "INDEX ATTACH" | "CONSTRAINT")
        && !entry.definition.contains("NOT VALID")
}

/// The dump has the planner's statistics, so that none need be gathered.
pub fn has_statistics(selected: &[Selected<'_>]) -> bool {
    selected.iter().any(|s| s.entry.desc == "STATISTICS DATA")
}

/// Whether an entry needs one of these; it is then one of them.
fn needs(entry: &Entry, these: &mut HashSet<i32>) -> bool {
    let needs = entry.dependencies.iter().any(|id| these.contains(id));
    if needs {
        these.insert(entry.dump_id);
    }
    needs
}

/// The dump ids of tables whose rows could not be built: their keys and indexes come behind the rows.
fn tables_of(
    archive: &Archive,
    selected: &[Selected<'_>],
    failed: &HashSet<RowsPlace>,
) -> Vec<i32> {
    let has_failed = |entry: &Entry| {
        let label = archive.label(entry);
        failed.iter().any(|(failed, _)| *failed == label)
    };
    let entries = selected.iter().map(|s| s.entry).filter(|e| e.has_data);
    let of_failed = entries.filter(|entry| !failed.is_empty() && has_failed(entry));
    of_failed
        .flat_map(|entry| entry.dependencies.clone())
        .collect()
}

/// Whether an entry's definition makes a relation: a table, an index, a sequence.
fn makes_relation(selected: &Selected<'_>) -> bool {
    selected.wanted.schema
        && matches!(
            selected.entry.desc.as_str(),
            "TABLE" | "SEQUENCE" | "INDEX" | "CONSTRAINT" | "MATERIALIZED VIEW" | "VIEW"
        )
}

/// Arranges the selected entries of an archive. `native_only` leaves no small tables to the server,
/// which is to judge the rows that `failed`.
///
/// # Errors
/// The archive is damaged.
pub fn of_archive(
    archive: &Arc<Archive>,
    selected: &[Selected<'_>],
    options: &RestoreOptions,
    native_only: bool,
    failed: &HashSet<RowsPlace>,
) -> Result<Arranged> {
    let small = if native_only {
        HashSet::new()
    } else {
        small::tables(archive, selected, options)?
    };
    let mut emitter = Emitter::new(archive, options);
    let mut arranged = Arranged {
        before: emitter.preamble(),
        relations: selected.iter().filter(|s| makes_relation(s)).count(),
        made_tables: selected
            .iter()
            .filter(|s| makes_relation(s) && s.entry.desc == "TABLE")
            .count(),
        ..Arranged::default()
    };
    if options.clean && !options.create {
        let drops = selected.iter().rev();
        let drops = drops.filter(|s| s.wanted.schema || s.wanted.data);
        let drops = drops.flat_map(|s| emitter.drop(s.entry));
        arranged.before.extend(drops);
    }
    let mut in_order: Vec<&Selected<'_>> = Vec::new();
    for wanted_pass in [Pass::Main, Pass::Privileges, Pass::Last] {
        let of_pass = selected.iter().filter(|s| pass(s.entry) == wanted_pass);
        in_order.extend(of_pass);
    }
    // What is said of the database itself is run as well, with -C.
    for selected in selected {
        check(archive, selected, options)?;
    }
    in_order.retain(|s| !databases::is_of_database(s.entry));
    let first_rows = in_order
        .iter()
        .position(|s| s.wanted.data || s.entry.section == Section::PostData)
        .unwrap_or(in_order.len());
    let (before, rest) = in_order.split_at(first_rows);
    let has_rows = rest.iter().any(|s| s.wanted.data && s.entry.has_data);
    let mut behind = small.clone();
    behind.extend(tables_of(archive, selected, failed));
    let (hoisted, rest): (Vec<&Selected<'_>>, Vec<&Selected<'_>>) = rest
        .iter()
        .partition(|s| has_rows && comes_before_rows(s.entry) && !needs(s.entry, &mut behind));
    for selected in before.iter().copied().chain(hoisted) {
        arranged.before.extend(emitter.definition(selected));
    }
    // A load in between is done by the superuser.
    arranged.after = emitter.again().into_iter().map(Step::Command).collect();
    let encoding = encoding(archive);
    let mut files = OpenFiles::default();
    let member = |entry: &Entry| {
        Box::new(ArchiveMember {
            archive: Arc::clone(archive),
            entry: entry.clone(),
        })
    };
    for selected in rest {
        let entry = selected.entry;
        let wanted = selected.wanted;
        let has_definition = wanted.schema || wanted.statistics;
        if has_definition || (wanted.data && !entry.has_data) {
            let mut definition = emitter.definition(selected);
            if !has_definition {
                for command in &mut definition {
                    command.is_executed(entry);
                }
            }
            arranged
                .after
                .extend(definition.into_iter().map(Step::Command));
        }
        if !wanted.data || !entry.has_data {
            continue;
        }
        match entry.desc.as_str() {
            "BLOBS" => arranged.after.push(Step::LargeObjects(member(entry))),
            "BLOB COMMENTS" => arranged.after.push(Step::Sql(member(entry))),
            _ if entry.copy_statement.is_empty() => {
                let before = emitter.before(entry);
                // What must be set before is set by a statement that stays in its place.
                if before.is_empty()
                    && let Some(table) = inserted(archive, entry, &encoding)?
                {
                    arranged.add(table);
                    continue;
                }
                arranged.after.extend(before.into_iter().map(Step::Command));
                arranged.after.push(Step::Sql(member(entry)));
            }
            _ => {
                let Some(table) = copied(archive, entry, &encoding, &mut files)? else {
                    continue;
                };
                if !entry.dependencies.iter().any(|id| small.contains(id)) {
                    arranged.add(table);
                    continue;
                }
                let before = emitter.before(entry).into_iter().map(Step::Command);
                arranged.after.extend(before);
                arranged.after.push(Step::SmallTable(Box::new(table)));
            }
        }
    }
    Ok(arranged)
}

/// Refuses what an entry may not do.
fn check(archive: &Archive, selected: &Selected<'_>, options: &RestoreOptions) -> Result<()> {
    let entry = selected.entry;
    let label = archive.label(entry);
    if !entry.has_data || selected.wanted.schema {
        guard::check(&entry.definition, &label, options.trust_scripts)?;
    }
    if options.clean {
        guard::check(&entry.drop, &label, options.trust_scripts)?;
    }
    let copy = &entry.copy_statement;
    if entry.has_data && !copy.is_empty() && !copies_from_stdin(copy.as_bytes()) {
        guard::check(copy, &label, false)?;
        let message = "an entry's rows are not those of COPY FROM stdin";
        return Err(Error::refused("22P04", message).at(Place {
            file: label,
            ..Place::default()
        }));
    }
    Ok(())
}

/// The rows of an entry whose data are COPY's; `None` when it has none.
fn copied(
    archive: &Arc<Archive>,
    entry: &Entry,
    encoding: &str,
    files: &mut OpenFiles,
) -> Result<Option<DumpedTable>> {
    let Some(origin) = origin_of_entry(archive, entry, files)? else {
        return Ok(None);
    };
    let statement = entry.copy_statement.trim_end().trim_end_matches(';');
    let mut target = copy_target(statement);
    let input = target.as_ref().map(|t| input_options(t, encoding));
    if let Some(target) = &mut target
        && let Some(namespace) = &entry.namespace
        && !target.table.contains('.')
    {
        // Dumps of old servers name no schema.
        target.table = format!("{}.{}", quote_ident(namespace), target.table);
    }
    Ok(Some(DumpedTable {
        target,
        statement: statement.to_owned(),
        source: InputSource {
            label: archive.label(entry),
            origin,
            lines_before: 0,
            ends_with_marker: true,
            input: input.unwrap_or_default(),
        },
        entry_name: Some(entry.name()),
        search_path: None,
        as_role: false,
        inserted: None,
    }))
}

/// The rows of an entry whose data are INSERTs, if they are nothing but these.
fn inserted(archive: &Arc<Archive>, entry: &Entry, encoding: &str) -> Result<Option<DumpedTable>> {
    let label = archive.label(entry);
    let sql = ArchiveMember {
        archive: Arc::clone(archive),
        entry: entry.clone(),
    };
    if !archive.has_member(entry) || !quotes_are_plain(encoding) {
        return Ok(None);
    }
    let mut reader = ScriptReader::new(sql.open()?, label.clone()).with_runs();
    let (Some(Item::Inserts(inserts)), None) = (reader.next_item()?, reader.next_item()?) else {
        return Ok(None);
    };
    let head = decoded(inserts.head.clone(), encoding, &label, inserts.line)?;
    let member = InsertsMember {
        inserts,
        sql: Origin::Member(Arc::new(sql.clone())),
        label: label.clone(),
    };
    let otherwise = Step::Sql(Box::new(sql));
    Ok(DumpedTable::inserted(
        &head, member, label, encoding, otherwise,
    ))
}

/// The encoding of the dump's rows.
pub fn encoding(archive: &Archive) -> String {
    let entry = archive.entries.iter().find(|e| e.desc == "ENCODING");
    let name = entry.and_then(|e| e.definition.split('\'').nth(1));
    name.unwrap_or("UTF8").to_owned()
}
