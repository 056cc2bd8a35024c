//! The order in which a script is restored.
//!
//! A script says in which order things are done, not which of them need each other. So what makes
//! tables, keys and indexes is done before rows that stand before it, as long as nothing in between
//! may look at these rows; all else is done behind the rows, in the script's order.
//!
//! Every `\connect` begins another transaction, in another database.

use super::super::source_spec::InputSource;
use super::arrange::{Arranged, Statements, Step};
use super::command::{Command, CommandOrigin, decoded};
use super::guard;
use super::inserts::{InsertsMember, quotes_are_plain};
use super::options::RestoreOptions;
use super::rows::{DumpedTable, RowsPlace, input_options};
use crate::error::{Error, Place, Result};
use crate::source::dump::script::{
    Class, Connect, Inserts, Item, Meta, ScriptReader, classify, copy_target,
};
use crate::source::{FileSource, Origin};
use std::collections::HashSet;

/// What a script does to one database.
#[derive(Debug, Default)]
pub struct Segment {
    /// Where `\connect` goes; `None` is the target itself.
    pub connect: Option<Connect>,
    /// What is done in its transaction.
    pub arranged: Arranged,
    /// What follows the transaction and cannot be in one: CREATE DATABASE and the like.
    pub outside: Vec<Command>,
}

impl Segment {
    /// Something is done in its transaction, beside setting parameters.
    pub fn has_work(&self) -> bool {
        let arranged = &self.arranged;
        !arranged.after.is_empty()
            || !arranged.tables.is_empty()
            || !arranged.roles.is_empty()
            || arranged
                .before
                .iter()
                .any(|c| !matches!(classify(&c.sql), Class::Set { .. } | Class::SetConfig))
    }
}

/// Limits in time, which a load has of its own.
const LIMITS: [&str; 4] = [
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",
];

/// Parameters on which no row depends. A table's name is read by the `search_path` of its rows.
const NOT_OF_ROWS: [&str; 12] = [
    "check_function_bodies",
    "client_min_messages",
    "default_table_access_method",
    "default_tablespace",
    "default_with_oids",
    "escape_string_warning",
    "maintenance_work_mem",
    "row_security",
    "search_path",
    "standard_conforming_strings",
    "synchronous_commit",
    "work_mem",
];

/// Reads a script. The server is to judge the rows that `failed`.
///
/// # Errors
/// It cannot be read; 0A000 for what is not done here, with its line.
pub fn segments(
    script: &FileSource,
    label: &str,
    options: &RestoreOptions,
    failed: &HashSet<RowsPlace>,
) -> Result<Vec<Segment>> {
    let mut reader = ScriptReader::new(script.reader(), label.to_owned()).with_runs();
    let mut reading = Reading {
        script,
        label,
        options,
        failed,
        segments: Vec::new(),
        segment: Segment::default(),
        session: PsqlSession::default(),
        rows: RowsSoFar::default(),
        meta_between: false,
    };
    while let Some(item) = reader.next_item()? {
        reading.item(item)?;
    }
    reading.end_segment(None);
    let mut segments = reading.segments;
    keep_what_is_made_again(&mut segments);
    Ok(segments)
}

/// It cannot be in a transaction.
fn is_outside(class: &Class) -> bool {
    matches!(
        class,
        Class::CreateDatabase { .. }
            | Class::CreateTablespace { .. }
            | Class::DropDatabase { .. }
            | Class::DropShared { .. }
            | Class::OutsideTransaction
    )
}

/// Roles and tablespaces that a script drops and makes again (`pg_dumpall --clean`) stay: what is to
/// be undone may need them. What it says of them holds then.
fn keep_what_is_made_again(segments: &mut [Segment]) {
    let mut made = HashSet::new();
    for segment in segments.iter() {
        made.extend(segment.arranged.roles.iter().map(|(name, _)| name.clone()));
        for command in &segment.outside {
            if let Class::CreateTablespace { name } = classify(&command.sql) {
                made.insert(name);
            }
        }
    }
    for segment in segments {
        segment
            .outside
            .retain(|command| match classify(&command.sql) {
                Class::DropShared { name } => !made.contains(&name),
                _ => true,
            });
    }
}

/// Parameters that were set, with the statement that did, in the order of their first time.
#[derive(Debug, Clone, Default)]
struct Settings(Vec<(String, String)>);

impl Settings {
    fn set(&mut self, name: &str, sql: &str) {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => sql.clone_into(old),
            None => self.0.push((name.to_owned(), sql.to_owned())),
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found.map(|(_, sql)| sql.as_str())
    }
}

/// What holds for the session of psql at a place of a script, until it connects anew.
#[derive(Debug)]
struct PsqlSession {
    encoding: String,
    settings: Settings,
    /// `standard_conforming_strings` is off.
    escapes: bool,
}

impl Default for PsqlSession {
    fn default() -> PsqlSession {
        PsqlSession {
            encoding: "UTF8".to_owned(),
            settings: Settings::default(),
            escapes: false,
        }
    }
}

/// What is known of the rows of a transaction.
#[derive(Debug, Default)]
struct RowsSoFar {
    /// What holds behind what goes before the rows.
    hoisted: Settings,
    /// There were rows.
    pending: bool,
    /// Rows that come now depend on something behind the first rows.
    guarded: bool,
    /// Something may have looked at the rows.
    seen: bool,
}

struct Reading<'a> {
    script: &'a FileSource,
    label: &'a str,
    options: &'a RestoreOptions,
    failed: &'a HashSet<RowsPlace>,
    segments: Vec<Segment>,
    segment: Segment,
    session: PsqlSession,
    rows: RowsSoFar,
    /// A command of psql stands behind the last statement that is kept by its place.
    meta_between: bool,
}

impl Reading<'_> {
    fn item(&mut self, item: Item) -> Result<()> {
        match item {
            Item::Meta { command, line } => self.meta(command, line),
            Item::Statement { text, pos, line } => {
                let sql = decoded(text, &self.session.encoding, self.label, line)?;
                self.statement(sql, pos, line)
            }
            Item::Inserts(inserts) => self.inserts(inserts),
            Item::Copy {
                statement,
                line,
                data,
                data_line,
            } => {
                let statement = decoded(statement, &self.session.encoding, self.label, line)?;
                self.rows(statement, data, data_line)
            }
        }
    }

    fn meta(&mut self, command: Meta, line: u64) -> Result<()> {
        self.meta_between = true;
        match command {
            Meta::Connect(connect) => self.end_segment(Some(connect)),
            Meta::Encoding(name) => self.session.encoding = name.to_ascii_uppercase(),
            Meta::Restrict(_) | Meta::Unrestrict(_) | Meta::Harmless => {}
            Meta::Other(name) => {
                return Err(self
                    .refused(format!("psql command {name} is not run"), line)
                    .with_hint("Take it out of the script, or run the script by psql."));
            }
        }
        Ok(())
    }

    #[cold]
    fn refused(&self, message: String, line: u64) -> Error {
        Error::unsupported(message).at(Place {
            file: self.label.to_owned(),
            line,
            ..Place::default()
        })
    }

    /// Begins the next database.
    fn end_segment(&mut self, connect: Option<Connect>) {
        self.end_transaction(connect);
        self.session = PsqlSession::default();
    }

    fn end_transaction(&mut self, connect: Option<Connect>) {
        let next = Segment {
            connect,
            ..Segment::default()
        };
        self.segments
            .push(std::mem::replace(&mut self.segment, next));
        self.rows = RowsSoFar::default();
    }

    /// Begins another transaction where something that cannot be in one has come.
    fn begin_behind_outside(&mut self) {
        if self.segment.outside.is_empty() {
            return;
        }
        self.end_transaction(None);
        for (_, sql) in &self.session.settings.0 {
            let again = Command::quiet(sql.clone());
            self.segment.arranged.before.push(again);
        }
        self.rows.hoisted = self.session.settings.clone();
    }

    fn statement(&mut self, sql: String, pos: std::ops::Range<u64>, line: u64) -> Result<()> {
        let class = classify(&sql);
        let command = Command {
            sql,
            origin: CommandOrigin::Line(line),
        };
        guard::check_class(&class, self.label, line, self.options.trust_scripts)?;
        if !is_outside(&class) {
            self.begin_behind_outside();
        }
        match class {
            Class::Set { name, value } => self.set(&name, &value, command),
            Class::SetConfig => self.set("search_path", "", command),
            Class::TransactionControl => {
                let sql = command.sql.to_ascii_uppercase();
                if sql.starts_with("ROLLBACK") || sql.starts_with("ABORT") {
                    return Err(self.refused("ROLLBACK is not done in a dump".to_owned(), line));
                }
                // The whole script is one transaction.
            }
            class if is_outside(&class) => self.segment.outside.push(command),
            Class::CreateRole { name } => self.segment.arranged.roles.push((name, command)),
            Class::Insert => self.insert_by_place(pos, line),
            Class::LargeObject if self.rows.pending => self.by_place(pos, line),
            _ if !self.rows.pending => self.in_place(command),
            // The index of a table whose rows failed comes behind these.
            Class::CreateIndex { table } | Class::AddKey { table } if self.has_failed(&table) => {
                self.in_place(command);
            }
            Class::AttachIndex if !self.failed.is_empty() => {
                self.in_place(command);
            }
            Class::CreateIndex { .. } | Class::AddKey { .. } | Class::AttachIndex
                if !self.rows.seen =>
            {
                self.hoist(command);
            }
            Class::Makes { name } if !self.rows.seen && !self.hides(&name) => {
                self.hoist(command);
            }
            Class::Names => self.in_place(command),
            Class::Guards | Class::Setval | Class::AddForeignKey { .. } => {
                self.rows.guarded = true;
                self.in_place(command);
            }
            _ => {
                self.rows.seen = true;
                self.rows.guarded = true;
                self.in_place(command);
            }
        }
        Ok(())
    }

    /// Rows where COPY means the same, else statements.
    fn inserts(&mut self, inserts: Inserts) -> Result<()> {
        self.begin_behind_outside();
        let (pos, line) = (inserts.pos.clone(), inserts.line);
        let head = decoded(
            inserts.head.clone(),
            &self.session.encoding,
            self.label,
            line,
        )?;
        if self.rows.guarded || !quotes_are_plain(&self.session.encoding) {
            self.insert_by_place(pos, line);
            return Ok(());
        }
        let otherwise = Step::Statements(Statements {
            script: self.script.clone(),
            pos: pos.clone(),
            line,
            encoding: self.session.encoding.clone(),
            escapes: self.session.escapes,
        });
        let member = InsertsMember {
            inserts,
            sql: Origin::Part(self.script.clone()),
            label: self.label.to_owned(),
        };
        // Their places are told in the script at last.
        let label = format!("{}, INSERTs on line {line}", self.label);
        match DumpedTable::inserted(&head, member, label, &self.session.encoding, otherwise) {
            Some(mut table) => {
                table.search_path = Some(self.search_path());
                table.as_role = self.is_another_role();
                self.begin_rows();
                self.segment.arranged.add(table);
            }
            None => self.insert_by_place(pos, line),
        }
        Ok(())
    }

    /// The statement that sets the `search_path` of this place.
    fn search_path(&self) -> String {
        let set = self.session.settings.get("search_path");
        set.unwrap_or("RESET search_path").to_owned()
    }

    /// SET ROLE or SET SESSION AUTHORIZATION hold here.
    fn is_another_role(&self) -> bool {
        let set = |name| {
            let sql: Option<&str> = self.session.settings.get(name);
            sql.is_some_and(|sql| !sql.to_ascii_uppercase().starts_with("RESET"))
        };
        set("role") || set("session")
    }

    fn insert_by_place(&mut self, pos: std::ops::Range<u64>, line: u64) {
        self.begin_rows();
        self.rows.seen = true;
        self.rows.guarded = true;
        self.by_place(pos, line);
    }

    /// Statements that are many or long are kept as a place in the script; those of transactions may
    /// be among them.
    fn by_place(&mut self, pos: std::ops::Range<u64>, line: u64) {
        let after = &mut self.segment.arranged.after;
        match after.last_mut() {
            Some(Step::Statements(before)) if !self.meta_between => before.pos.end = pos.end,
            _ => after.push(Step::Statements(Statements {
                script: self.script.clone(),
                pos,
                line,
                encoding: self.session.encoding.clone(),
                escapes: self.session.escapes,
            })),
        }
        self.meta_between = false;
    }

    /// What holds here holds again behind the rows, whatever is set for what is hoisted.
    fn begin_rows(&mut self) {
        if self.rows.pending {
            return;
        }
        self.rows.pending = true;
        for (_, sql) in &self.session.settings.0 {
            let again = Step::Command(Command::quiet(sql.clone()));
            self.segment.arranged.after.push(again);
        }
    }

    fn set(&mut self, name: &str, value: &str, command: Command) {
        if LIMITS.contains(&name) {
            // A load has its own. But a server that does not know one refuses it here, too.
            if value == "0" {
                self.in_place(command);
            }
            return;
        }
        if name == "client_encoding" || name == "names" {
            self.session.encoding = value.to_ascii_uppercase();
            self.meta_between = true;
            return;
        }
        if name == "standard_conforming_strings" {
            self.session.escapes =
                matches!(value.to_ascii_lowercase().as_str(), "off" | "false" | "0");
        }
        let changes = self.session.settings.get(name) != Some(&command.sql);
        self.session.settings.set(name, &command.sql);
        if !self.rows.pending {
            self.rows.hoisted.set(name, &command.sql);
        } else if changes && !NOT_OF_ROWS.contains(&name) {
            self.rows.guarded = true;
            self.rows.seen = true;
        }
        self.in_place(command);
    }

    /// Runs a statement where it stands: before the rows, or behind those that have come.
    fn in_place(&mut self, command: Command) {
        let arranged = &mut self.segment.arranged;
        if self.rows.pending {
            arranged.after.push(Step::Command(command));
        } else {
            arranged.before.push(command);
        }
    }

    /// Whether rows of a table of this name could not be built.
    fn has_failed(&self, name: &str) -> bool {
        let tables = self.segment.arranged.tables.iter();
        let mut failed = tables.filter(|table| self.failed.contains(&table.place()));
        failed.any(|table| table.target.as_ref().is_some_and(|t| t.table == name))
    }

    /// Whether a table of this name could be found instead of one whose rows have come.
    fn hides(&self, name: &str) -> bool {
        let (_, last) = name.rsplit_once('.').unwrap_or(("", name));
        let targets = self.segment.arranged.tables.iter();
        let mut targets = targets.filter_map(|table| table.target.as_ref());
        targets.any(|target| target.table.eq_ignore_ascii_case(last))
    }

    /// Runs a statement before the rows, under the settings of its own place.
    fn hoist(&mut self, command: Command) {
        for (name, sql) in self.session.settings.0.clone() {
            if self.rows.hoisted.get(&name) != Some(&sql) {
                self.rows.hoisted.set(&name, &sql);
                self.segment.arranged.before.push(Command::quiet(sql));
            }
        }
        self.segment.arranged.before.push(command);
    }

    fn rows(
        &mut self,
        statement: String,
        data: std::ops::Range<u64>,
        data_line: u64,
    ) -> Result<()> {
        self.begin_behind_outside();
        let part = self
            .script
            .part(self.label.to_owned(), data.start, data.end - data.start)?;
        let target = copy_target(&statement);
        let table = DumpedTable {
            source: InputSource {
                label: self.label.to_owned(),
                origin: Origin::Part(part),
                lines_before: data_line - 1,
                // The script's reader has found it.
                ends_with_marker: false,
                input: target
                    .as_ref()
                    .map(|t| input_options(t, &self.session.encoding))
                    .unwrap_or_default(),
            },
            target,
            statement,
            entry_name: None,
            search_path: Some(self.search_path()),
            as_role: self.is_another_role(),
            inserted: None,
        };
        self.begin_rows();
        let arranged = &mut self.segment.arranged;
        if self.rows.guarded {
            self.rows.seen = true;
            arranged.after.push(Step::Rows(Box::new(table)));
        } else {
            arranged.add(table);
        }
        Ok(())
    }
}
