//! Which tables of a dump are built, and which the server fills.

use super::super::report::{By, TableReport, VerbTimes};
use super::super::server_copy::{self, Feed};
use super::super::source_spec::SourceSpec;
use super::inserts::Column;
use super::options::RestoreOptions;
use super::rows::DumpedTable;
use super::run::Runner;
use crate::catalog::{TRIGGER_TYPE_INSERT, quote_ident};
use crate::cluster::register::Registration;
use crate::error::{Error, Place, Result};
use pgformat::ids::Oid;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

/// Who loads which tables.
#[derive(Debug, Default)]
pub struct Divided {
    /// They are built.
    pub native: Vec<SourceSpec>,
    /// The server takes their rows, for these reasons; by their numbers.
    pub left: HashMap<usize, (DumpedTable, String)>,
}

/// What is there of a table.
const STATE: &str = "
SELECT n.number, pg_catalog.quote_ident(s.nspname) || '.' || pg_catalog.quote_ident(c.relname),
       c.relkind::pg_catalog.text,
       c.relkind = 'r' AND pg_catalog.pg_relation_size(c.oid) > 0,
       EXISTS (SELECT FROM pg_catalog.pg_trigger t
                WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
                  AND t.tgtype & $2::pg_catalog.int4 <> 0),
       EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid),
       coalesce(a.amname, '')::pg_catalog.text, c.relpersistence::pg_catalog.text,
       coalesce(c.oid, 0),
       $3::pg_catalog.text IS NULL
       OR pg_catalog.has_table_privilege($3, c.oid, 'INSERT') AND NOT c.relrowsecurity
  FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS n(name, number)
       LEFT JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(n.name)
       LEFT JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
       LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam
 ORDER BY n.number";

/// Columns of tables, with the types that domains are of.
const COLUMNS: &str = "
WITH RECURSIVE columns AS (
    SELECT n.number, a.attnum, a.attname, a.attidentity = 'a' AS is_always_identity,
           a.attgenerated <> '' AS is_generated, a.atttypid AS type_oid, a.atttypmod AS typmod
      FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS n(name, number)
           JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass(n.name)
     WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT c.number, c.attnum, c.attname, c.is_always_identity, c.is_generated, t.typbasetype,
           t.typtypmod
      FROM columns c JOIN pg_catalog.pg_type t ON t.oid = c.type_oid
     WHERE t.typtype = 'd')
SELECT c.number - 1, c.attname::pg_catalog.text, c.is_always_identity, c.is_generated, c.type_oid,
       t.typelem = 'pg_catalog.interval'::pg_catalog.regtype AND c.typmod >= 0
  FROM columns c JOIN pg_catalog.pg_type t ON t.oid = c.type_oid
 WHERE t.typtype <> 'd'
 ORDER BY c.number, c.attnum";

/// Defaults of tables that call functions of users.
const COMPUTED: &str = "
SELECT n.number - 1, a.attname::pg_catalog.text
  FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY AS n(oid, number)
       JOIN pg_catalog.pg_attrdef d ON d.adrelid = n.oid
       JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
 WHERE a.attgenerated = ''
   AND EXISTS (SELECT FROM pg_catalog.pg_depend p
                WHERE p.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
                  AND p.objid = d.oid
                  AND p.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
                  AND p.refobjid >= 16384)";

/// Columns of these names that are not there; the numbers of their tables.
const MISSING_COLUMNS: &str = "
SELECT DISTINCT l.number
  FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.int8[]), pg_catalog.unnest($2::pg_catalog.oid[]),
                  pg_catalog.unnest($3::pg_catalog.text[])) AS l(number, oid, name)
 WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                    WHERE a.attrelid = l.oid AND a.attname = l.name
                      AND a.attnum > 0 AND NOT a.attisdropped)";

/// Tables by their number that are not like what the dump says of them, or whose rows must not be
/// built before what stands before them, with the reason.
fn unlike(
    registration: &mut Registration<'_>,
    tables: &[DumpedTable],
    oids: &[Oid],
    options: &RestoreOptions,
) -> Result<HashMap<usize, &'static str>> {
    let mut unlike = HashMap::new();
    let listed = |number: usize| {
        let target = tables[number].target.as_ref();
        target.and_then(|target| target.columns.as_deref())
    };
    if tables.iter().any(|table| table.search_path.is_some()) {
        for row in registration.client().query(COMPUTED, &[&oids])? {
            let (number, column): (i64, String) = (row.get(0), row.get(1));
            let number = number as usize;
            if listed(number).is_some_and(|names| !names.contains(&column)) {
                unlike.insert(number, "a default calls a function that may see other rows");
            }
        }
    }
    // Else it ends the restore anyway.
    if options.keep_going {
        let (mut numbers, mut of_tables, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (number, oid) in oids.iter().enumerate() {
            for name in listed(number).unwrap_or_default() {
                numbers.push(number as i64);
                of_tables.push(*oid);
                names.push(name.as_str());
            }
        }
        let client = registration.client();
        for row in client.query(MISSING_COLUMNS, &[&numbers, &of_tables, &names])? {
            unlike.insert(row.get::<_, i64>(0) as usize, "a column is not there");
        }
    }
    Ok(unlike)
}

/// The columns of those tables whose rows are inserted, by the table's number.
fn columns(
    registration: &mut Registration<'_>,
    tables: &[DumpedTable],
) -> Result<HashMap<i64, Vec<Column>>> {
    let names: Vec<Option<&str>> = tables
        .iter()
        .map(|t| {
            let target = t.target.as_ref().filter(|_| t.inserted.is_some());
            target.map(|target| target.table.as_str())
        })
        .collect();
    let mut columns: HashMap<i64, Vec<Column>> = HashMap::new();
    if names.iter().all(Option::is_none) {
        return Ok(columns);
    }
    for row in registration.client().query(COLUMNS, &[&names])? {
        columns.entry(row.get(0)).or_default().push(Column {
            name: row.get(1),
            is_always_identity: row.get(2),
            is_generated: row.get(3),
            type_oid: row.get(4),
            is_array_of_cut_intervals: row.get(5),
        });
    }
    Ok(columns)
}

/// Divides tables into those that are built, as sources of the build, and those that the server
/// fills.
///
/// # Errors
/// `42P01` for a table that is not there.
pub fn divide(
    registration: &mut Registration<'_>,
    tables: Vec<DumpedTable>,
    options: &RestoreOptions,
    runner: &mut Runner<'_>,
) -> Result<Divided> {
    let mut divided = Divided::default();
    let mut rest = tables.into_iter().peekable();
    let mut number = 0;
    while let Some(first) = rest.next() {
        let search_path = first.search_path.clone();
        let mut alike = vec![first];
        while let Some(next) = rest.next_if(|t| t.search_path == search_path) {
            alike.push(next);
        }
        let behind = number + alike.len();
        divide_alike(registration, (number, alike), options, runner, &mut divided)?;
        number = behind;
    }
    Ok(divided)
}

/// Divides tables whose names are read by one `search_path`; the number of the first one.
fn divide_alike(
    registration: &mut Registration<'_>,
    (first, tables): (usize, Vec<DumpedTable>),
    options: &RestoreOptions,
    runner: &mut Runner<'_>,
    divided: &mut Divided,
) -> Result<()> {
    // Names are read as they are where the rows stand.
    if let Some(search_path) = &tables[0].search_path {
        registration.client().batch_execute(search_path)?;
    }
    let names: Vec<&str> = tables
        .iter()
        .map(|t| t.target.as_ref().map_or("", |target| target.table.as_str()))
        .collect();
    let rows = registration
        .client()
        .query(STATE, &[&names, &TRIGGER_TYPE_INSERT, &options.role])?;
    let columns = columns(registration, &tables)?;
    let oids: Vec<Oid> = rows.iter().map(|row| row.get(8)).collect();
    let unlike = unlike(registration, &tables, &oids, options)?;
    for (number, (mut table, row)) in tables.into_iter().zip(rows).enumerate() {
        let failed = |name: &String| runner.failed_tables.contains(name);
        if options.no_data_for_failed_tables && table.entry_name.as_ref().is_some_and(failed) {
            continue;
        }
        if table.target.is_none() {
            let reason = "COPY's statement is not read here".to_owned();
            divided.left.insert(first + number, (table, reason));
            continue;
        }
        let name: Option<String> = row.get(1);
        let Some(name) = name else {
            let missing = missing(&table);
            if !options.keep_going {
                return Err(missing);
            }
            runner.ignore(missing);
            continue;
        };
        let mut inserts_otherwise = false;
        if let (Some(inserted), Some(target)) = (&table.inserted, &mut table.target) {
            let columns = columns.get(&(number as i64)).map_or(&[][..], Vec::as_slice);
            match inserted.columns(target.columns.as_deref(), columns) {
                Some(filled) => target.columns = Some(filled),
                None => inserts_otherwise = true,
            }
        }
        let kind: &str = row.get(2);
        let (has_rows, has_triggers, has_rules): (bool, bool, bool) =
            (row.get(3), row.get(4), row.get(5));
        let access_method: &str = row.get(6);
        let persistence: &str = row.get(7);
        let is_allowed: bool = row.get(9);
        let reason = if runner.failed_rows.contains(&table.place()) {
            "its rows could not be built"
        } else if let Some(reason) = unlike.get(&number) {
            reason
        } else if table.as_role || !is_allowed {
            "rows come as another role, whose rights the server knows"
        } else if !matches!(kind, "r" | "p") {
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
        } else if inserts_otherwise {
            "INSERT means something else by its constants than COPY"
        } else {
            if let Some(name) = &table.entry_name {
                runner.tell_of_data("TABLE DATA", name);
            }
            divided.native.push(table.spec(name));
            continue;
        };
        divided
            .left
            .insert(first + number, (table, reason.to_owned()));
    }
    Ok(())
}

fn missing(table: &DumpedTable) -> Error {
    let name = table.target.as_ref().map_or("", |t| t.table.as_str());
    Error::refused("42P01", format!("relation \"{name}\" does not exist")).at(Place {
        file: table.source.label.clone(),
        ..Place::default()
    })
}

/// Feeds rows to the server's COPY, with FREEZE for a table that this transaction has made, with the
/// table's triggers or without; rows and bytes.
///
/// # Errors
/// The server's, with the line.
pub fn feed(
    registration: &mut Registration<'_>,
    table: &DumpedTable,
    freeze: bool,
    disable_triggers: bool,
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
    let statement = with_options(&table.statement, encoding, freeze);
    let target = table.target.as_ref().filter(|_| disable_triggers);
    let Some(target) = target else {
        return server_copy::copy_input(client, &statement, &feed, interrupted);
    };
    let alter = |verb: &str| format!("ALTER TABLE {} {verb} TRIGGER ALL", target.table);
    client.batch_execute(&alter("DISABLE"))?;
    let copied = server_copy::copy_input(client, &statement, &feed, interrupted)?;
    client.batch_execute(&alter("ENABLE"))?;
    Ok(copied)
}

/// Has the server look at what COPY would refuse before it takes rows. The client loses its place in
/// the answers when COPY itself is refused, which matters where a restore goes on.
///
/// # Errors
/// The server's, as COPY's.
pub fn check(registration: &mut Registration<'_>, table: &DumpedTable) -> Result<()> {
    let Some(target) = &table.target else {
        return Ok(());
    };
    let name = &target.table;
    let rows = match target.columns.as_deref() {
        None | Some([]) => "DEFAULT VALUES".to_owned(),
        Some(columns) => {
            let nulls = vec!["NULL"; columns.len()].join(", ");
            let columns: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
            let columns = columns.join(", ");
            format!("({columns}) OVERRIDING SYSTEM VALUE SELECT {nulls} WHERE false")
        }
    };
    let explained = registration
        .client()
        .batch_execute(&format!("EXPLAIN INSERT INTO {name} {rows}"));
    explained.map_err(|error| {
        Error::from(error).at(Place {
            file: table.source.label.clone(),
            ..Place::default()
        })
    })
}

/// pg_dump's statement has no options, so that the encoding can be said, and FREEZE.
fn with_options(statement: &str, encoding: &str, freeze: bool) -> String {
    let encoding = (encoding != "UTF8").then(|| format!("ENCODING '{encoding}'"));
    let freeze = freeze.then(|| "FREEZE".to_owned());
    let options: Vec<String> = encoding.into_iter().chain(freeze).collect();
    let plain = statement.to_ascii_uppercase().ends_with("FROM STDIN");
    if plain && !options.is_empty() {
        format!("{statement} WITH ({})", options.join(", "))
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
