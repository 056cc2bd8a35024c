//! The SQL of an archive's entries, as pg_restore sends it.
//!
//! PostgreSQL: `src/bin/pg_dump/pg_backup_archiver.c`, `_printTocEntry`,
//! `_doSetFixedOutputState`, `_getObjectDescription`.

use super::command::Command;
use super::options::RestoreOptions;
use super::select::{Selected, is_acl};
use crate::catalog::{quote_ident, quote_literal};
use crate::source::dump::archive::{Archive, Entry};
use std::fmt::Write;

/// Makes commands of entries, and knows what those before have set.
pub struct Emitter<'a> {
    archive: &'a Archive,
    options: &'a RestoreOptions,
    /// The dump's `search_path`, where it says one; else each entry's schema is.
    has_search_path: bool,
    schema: Option<String>,
    tablespace: Option<String>,
    access_method: Option<String>,
    user: Option<String>,
}

impl<'a> Emitter<'a> {
    /// Nothing is set yet.
    pub fn new(archive: &'a Archive, options: &'a RestoreOptions) -> Emitter<'a> {
        Emitter {
            archive,
            options,
            has_search_path: archive.entries.iter().any(|e| e.desc == "SEARCHPATH"),
            schema: None,
            tablespace: None,
            access_method: None,
            user: None,
        }
    }

    /// What holds for the whole restore. The session's encoding stays UTF8 when the dump's is
    /// another: definitions are converted as they are sent.
    pub fn preamble(&self) -> Vec<Command> {
        let standard_strings = self
            .archive
            .entries
            .iter()
            .find(|e| e.desc == "STDSTRINGS")
            .is_none_or(|e| !e.definition.contains("'off'"));
        let mut sql = format!(
            "SET standard_conforming_strings = {};",
            if standard_strings { "on" } else { "off" }
        );
        if !standard_strings {
            sql.push_str("SET escape_string_warning = off;");
        }
        let mut commands = vec![Command::quiet(sql)];
        if let Some(role) = &self.options.role {
            let sql = format!("SET ROLE {}", quote_ident(role));
            commands.push(Command::becoming(sql));
        }
        let mut sql = String::new();
        for entry in &self.archive.entries {
            if entry.desc == "SEARCHPATH" {
                sql.push_str(&entry.definition);
            }
        }
        sql.push_str("SET check_function_bodies = false; SET xmloption = content; SET client_min_messages = warning;");
        sql.push_str(if self.options.enable_row_security {
            "SET row_security = on;"
        } else {
            "SET row_security = off;"
        });
        commands.push(Command::quiet(sql));
        commands
    }

    /// The same behind the rows.
    pub fn again(&mut self) -> Vec<Command> {
        self.user = None;
        self.schema = None;
        self.preamble()
    }

    /// An entry's definition with its owner, behind what must be set before.
    pub fn definition(&mut self, selected: &Selected<'_>) -> Vec<Command> {
        let entry = selected.entry;
        let mut commands = self.before(entry);
        commands.extend(self.storage(entry));
        let mut sql = String::new();
        let desc = entry.desc.as_str();
        let is_comment = entry.definition.starts_with("--");
        if self.options.no_owner && desc == "SCHEMA" && !is_comment {
            let _ = writeln!(sql, "CREATE SCHEMA {};", quote_ident(&entry.tag));
        } else if desc == "BLOB METADATA" {
            for_each_large_object(entry, &mut sql, "SELECT pg_catalog.lo_create('", "')");
        } else if desc == "ACL" && entry.tag.starts_with("LARGE OBJECTS") {
            self.privileges_of_large_objects(entry, &mut sql);
        } else {
            sql.push_str(&entry.definition);
        }
        self.owner(entry, is_comment, &mut sql);
        if entry.relkind == Some('p')
            && !self.options.no_table_access_method
            && let Some(access_method) = &entry.table_am
        {
            let _ = writeln!(
                sql,
                "ALTER TABLE {} SET ACCESS METHOD {};",
                qualified(entry),
                quote_ident(access_method)
            );
        }
        if is_acl(entry) {
            // It may have become somebody else.
            self.user = None;
        }
        commands.extend(self.of_entry(sql, entry));
        commands
    }

    /// The statements that drop what an entry makes; none where there is nothing.
    pub fn drop(&mut self, entry: &Entry) -> Vec<Command> {
        let mut commands = self.before(entry);
        let mut sql = String::new();
        if entry.desc == "BLOB METADATA" {
            if self.options.if_exists {
                let from = "SELECT pg_catalog.lo_unlink(oid) FROM pg_catalog.pg_largeobject_metadata WHERE oid = '";
                for_each_large_object(entry, &mut sql, from, "'");
            } else {
                for_each_large_object(entry, &mut sql, "SELECT pg_catalog.lo_unlink('", "')");
            }
        } else if entry.drop.is_empty() {
            return Vec::new();
        } else if !self.options.if_exists || entry.drop.starts_with("--") {
            sql.push_str(&entry.drop);
        } else if entry.desc == "BLOB" {
            let _ = writeln!(
                sql,
                "SELECT pg_catalog.lo_unlink(oid) FROM pg_catalog.pg_largeobject_metadata WHERE oid = '{}';",
                entry.oid
            );
        } else {
            sql.push_str(&if_exists(entry));
        }
        commands.extend(self.of_entry(sql, entry));
        commands
    }

    /// An entry's SQL. Of large objects each stands for itself where one that fails leaves the others.
    fn of_entry(&self, sql: String, entry: &Entry) -> Vec<Command> {
        let is_of_many = entry.desc == "BLOB METADATA" || entry.tag.starts_with("LARGE OBJECTS ");
        if !(is_of_many && self.options.keep_going) {
            return vec![Command::of_entry(sql, entry)];
        }
        let statements = sql.lines().filter(|line| !line.is_empty());
        statements
            .map(|statement| Command::of_entry(statement.to_owned(), entry))
            .collect()
    }

    /// User and schema of an entry, as far as they are not set.
    pub fn before(&mut self, entry: &Entry) -> Vec<Command> {
        let user = self.becoming(entry).map(Command::becoming);
        let schema = self.in_schema(entry).map(Command::quiet);
        user.into_iter().chain(schema).collect()
    }

    /// Tablespace and access method of an entry, as far as they are not set. What is set by a command
    /// of its own stays when the entry's fails.
    fn storage(&mut self, entry: &Entry) -> Option<Command> {
        let mut sql = String::new();
        if let Some(tablespace) = &entry.tablespace
            && !self.options.no_tablespaces
            && self.tablespace.as_ref() != Some(tablespace)
        {
            let name = if tablespace.is_empty() {
                "''".to_owned()
            } else {
                quote_ident(tablespace)
            };
            let _ = writeln!(sql, "SET default_tablespace = {name};");
            self.tablespace = Some(tablespace.clone());
        }
        if let Some(access_method) = &entry.table_am
            && entry.relkind != Some('p')
            && !self.options.no_table_access_method
            && self.access_method.as_ref() != Some(access_method)
        {
            let _ = writeln!(
                sql,
                "SET default_table_access_method = {};",
                quote_ident(access_method)
            );
            self.access_method = Some(access_method.clone());
        }
        (!sql.is_empty()).then(|| Command::quiet(sql))
    }

    /// `--use-set-session-authorization`.
    fn becoming(&mut self, entry: &Entry) -> Option<String> {
        if self.options.no_owner
            || !self.options.set_session_authorization
            || self.user.as_ref() == Some(&entry.owner)
        {
            return None;
        }
        self.user = Some(entry.owner.clone());
        Some(if entry.owner.is_empty() {
            "SET SESSION AUTHORIZATION DEFAULT".to_owned()
        } else {
            format!("SET SESSION AUTHORIZATION {}", quote_literal(&entry.owner))
        })
    }

    /// Dumps of old servers have no `search_path` of their own.
    fn in_schema(&mut self, entry: &Entry) -> Option<String> {
        let schema = entry.namespace.as_ref().filter(|s| !s.is_empty())?;
        if self.has_search_path || self.schema.as_ref() == Some(schema) {
            return None;
        }
        self.schema = Some(schema.clone());
        let catalog = if schema == "pg_catalog" {
            ""
        } else {
            ", pg_catalog"
        };
        Some(format!(
            "SET search_path = {}{catalog}",
            quote_ident(schema)
        ))
    }

    fn owner(&self, entry: &Entry, is_comment: bool, sql: &mut String) {
        let by_alter =
            !self.options.set_session_authorization || (entry.desc == "SCHEMA" && is_comment);
        // What has no DROP is nobody's own.
        if self.options.no_owner || !by_alter || entry.owner.is_empty() || entry.drop.is_empty() {
            return;
        }
        let owner = quote_ident(&entry.owner);
        if entry.desc == "BLOB METADATA" {
            let end = format!(" OWNER TO {owner}");
            for_each_large_object(entry, sql, "ALTER LARGE OBJECT ", &end);
        } else if let Some(object) = described(entry) {
            let _ = writeln!(sql, "\nALTER {object} OWNER TO {owner};");
        }
    }

    /// One copy of GRANT and REVOKE stands for all objects of the entry that it belongs to.
    fn privileges_of_large_objects(&self, entry: &Entry, sql: &mut String) {
        let metadata = entry.dependencies.iter().find_map(|id| {
            let entries = self.archive.entries.iter();
            entries
                .filter(|e| e.dump_id == *id)
                .find(|e| e.desc == "BLOB METADATA")
        });
        let Some(metadata) = metadata else { return };
        // `... ON LARGE OBJECT 123 ...`: the number goes.
        for oid in metadata.definition.split_ascii_whitespace() {
            for statement in entry.definition.split_inclusive('\n') {
                match statement.split_once("LARGE OBJECT ") {
                    Some((before, after)) => {
                        let digits = after.len()
                            - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                        let _ = write!(sql, "{before}LARGE OBJECT {oid}{}", &after[digits..]);
                    }
                    None => sql.push_str(statement),
                }
            }
        }
    }
}

/// One command for each large object of the entry.
fn for_each_large_object(entry: &Entry, sql: &mut String, before: &str, behind: &str) {
    for oid in entry.definition.split_ascii_whitespace() {
        sql.push_str(before);
        sql.push_str(oid);
        sql.push_str(behind);
        sql.push_str(";\n");
    }
}

/// The object as ALTER names it; `None` for what has no owner.
fn described(entry: &Entry) -> Option<String> {
    Some(match entry.desc.as_str() {
        "COLLATION"
        | "CONVERSION"
        | "DOMAIN"
        | "FOREIGN TABLE"
        | "MATERIALIZED VIEW"
        | "SEQUENCE"
        | "STATISTICS"
        | "TABLE"
        | "TEXT SEARCH DICTIONARY"
        | "TEXT SEARCH CONFIGURATION"
        | "TYPE"
        | "VIEW"
        | "DATABASE"
        | "PROCEDURAL LANGUAGE"
        | "SCHEMA"
        | "EVENT TRIGGER"
        | "FOREIGN DATA WRAPPER"
        | "SERVER"
        | "PUBLICATION"
        | "SUBSCRIPTION" => format!("{} {}", entry.desc, qualified(entry)),
        "BLOB" => format!("LARGE OBJECT {}", entry.tag),
        "AGGREGATE" | "FUNCTION" | "OPERATOR" | "OPERATOR CLASS" | "OPERATOR FAMILY"
        | "PROCEDURE" => {
            let object = entry.drop.strip_prefix("DROP ")?;
            object.trim_end_matches(['\n', ';']).to_owned()
        }
        _ => return None,
    })
}

/// The entry's name with its schema.
fn qualified(entry: &Entry) -> String {
    match entry.namespace.as_deref().filter(|n| !n.is_empty()) {
        Some(namespace) => format!("{}.{}", quote_ident(namespace), quote_ident(&entry.tag)),
        None => quote_ident(&entry.tag),
    }
}

/// `DROP ...` that does not mind when nothing is there.
fn if_exists(entry: &Entry) -> String {
    let (head, rest) = match entry.drop.strip_prefix("ALTER TABLE") {
        Some(rest) => ("ALTER TABLE IF EXISTS", rest),
        None => ("", entry.drop.as_str()),
    };
    let desc = entry.desc.as_str();
    // A default's goes with its table; a view whose rule is dropped is replaced.
    if matches!(desc, "DEFAULT" | "DATABASE PROPERTIES")
        || rest.starts_with("CREATE OR REPLACE VIEW")
    {
        return format!("{head}{rest}");
    }
    let verb = match desc {
        "CONSTRAINT" | "CHECK CONSTRAINT" | "FK CONSTRAINT" => "DROP CONSTRAINT".to_owned(),
        _ => format!("DROP {desc}"),
    };
    match rest.split_once(&verb) {
        Some((before, after)) => format!("{head}{before}{verb} IF EXISTS{after}"),
        None => format!("{head}{rest}"),
    }
}
