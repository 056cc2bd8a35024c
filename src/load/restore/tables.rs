//! Which tables of a dump are built, and which the server's COPY fills.

use super::super::report::{By, TableReport, VerbTimes};
use super::super::server_copy::{self, Feed};
use super::super::source_spec::SourceSpec;
use super::options::RestoreOptions;
use super::rows::DumpedTable;
use super::run::Runner;
use crate::catalog::TRIGGER_TYPE_INSERT;
use crate::cluster::register::Registration;
use crate::error::{Error, Place, Result};
use std::sync::atomic::AtomicBool;

/// What is there of a table.
const STATE: &str = "
SELECT n.number, pg_catalog.quote_ident(s.nspname) || '.' || pg_catalog.quote_ident(c.relname),
       c.relkind::pg_catalog.text,
       c.relkind = 'r' AND pg_catalog.pg_relation_size(c.oid) > 0,
       EXISTS (SELECT FROM pg_catalog.pg_trigger t
                WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
                  AND t.tgtype & $2::pg_catalog.int4 <> 0),
       EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid),
       coalesce(a.amname, '')::pg_catalog.text, c.relpersistence::pg_catalog.text
  FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS n(name, number)
       LEFT JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(n.name)
       LEFT JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
       LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam
 ORDER BY n.number";

/// Divides tables into those that are built, as sources of the build, and those that the server's
/// COPY fills, with the reason.
///
/// # Errors
/// `42P01` for a table that is not there.
#[expect(clippy::type_complexity, reason = "two lists")]
pub fn divide(
    registration: &mut Registration<'_>,
    tables: Vec<DumpedTable>,
    options: &RestoreOptions,
    runner: &mut Runner<'_>,
) -> Result<(Vec<SourceSpec>, Vec<(DumpedTable, String)>)> {
    let (mut native, mut left) = (Vec::new(), Vec::new());
    let names: Vec<&str> = tables
        .iter()
        .map(|t| t.target.as_ref().map_or("", |target| target.table.as_str()))
        .collect();
    let rows = registration
        .client()
        .query(STATE, &[&names, &TRIGGER_TYPE_INSERT])?;
    for (table, row) in tables.into_iter().zip(rows) {
        let failed = |name: &String| runner.failed_tables.contains(name);
        if options.no_data_for_failed_tables && table.entry_name.as_ref().is_some_and(failed) {
            continue;
        }
        if table.target.is_none() {
            left.push((table, "COPY's statement is not read here".to_owned()));
            continue;
        }
        let name: Option<String> = row.get(1);
        let Some(name) = name else {
            let missing = missing(&table);
            if !options.keep_going {
                return Err(missing);
            }
            runner.ignore(&missing);
            continue;
        };
        let kind: &str = row.get(2);
        let (has_rows, has_triggers, has_rules): (bool, bool, bool) =
            (row.get(3), row.get(4), row.get(5));
        let access_method: &str = row.get(6);
        let persistence: &str = row.get(7);
        let reason = if !matches!(kind, "r" | "p") {
            "it is no table with files of its own"
        } else if has_rows {
            "it has rows, which stay"
        } else if has_triggers && !options.disable_triggers {
            "it has triggers that fire"
        } else if has_rules {
            "it has rules"
        } else if kind == "r" && access_method != "heap" {
            "it is not a heap"
        } else if persistence == "t" {
            "it is temporary"
        } else {
            native.push(table.spec(name));
            continue;
        };
        left.push((table, reason.to_owned()));
    }
    Ok((native, left))
}

fn missing(table: &DumpedTable) -> Error {
    let name = table.target.as_ref().map_or("", |t| t.table.as_str());
    Error::refused("42P01", format!("relation \"{name}\" does not exist")).at(Place {
        file: table.source.label.clone(),
        ..Place::default()
    })
}

/// Feeds rows to the server's COPY; rows and bytes.
///
/// # Errors
/// The server's, with the line.
pub fn feed(
    registration: &mut Registration<'_>,
    table: &DumpedTable,
    interrupted: &AtomicBool,
) -> Result<(u64, u64)> {
    let source = &table.source;
    let feed = Feed {
        label: &source.label,
        origin: &source.origin,
        lines_before: source.lines_before,
        ends_with_marker: source.ends_with_marker,
        strip: None,
    };
    let client = registration.client();
    // Rows are as they were when they were dumped.
    let encoding = source.input.encoding.as_deref().unwrap_or("UTF8");
    let statement = with_encoding(&table.statement, encoding);
    server_copy::copy_input(client, &statement, &feed, interrupted)
}

/// pg_dump's statement has no options, so that the encoding can be said.
fn with_encoding(statement: &str, encoding: &str) -> String {
    let plain = statement.to_ascii_uppercase().ends_with("FROM STDIN");
    if plain && encoding != "UTF8" {
        format!("{statement} WITH (ENCODING '{encoding}')")
    } else {
        statement.to_owned()
    }
}

/// What the report says of it.
pub fn report(table: &DumpedTable, reason: String, copied: (u64, u64)) -> TableReport {
    let target = table.target.as_ref();
    TableReport {
        is_leaf: false,
        name: target.map_or_else(|| table.source.label.clone(), |t| t.table.clone()),
        by: By::Server(reason),
        rows: copied.0,
        input_bytes: copied.1,
        heap_bytes: 0,
        toast_bytes: 0,
        indexes: Vec::new(),
        constraints: Vec::new(),
        asked: None,
        times: VerbTimes::default(),
    }
}
