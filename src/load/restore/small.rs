//! Small tables of an archive that has many: the server's COPY fills them, and their indexes are
//! made behind that.
//!
//! Files of its own cost a table some milliseconds, whatever is in them: each is made twice, written,
//! renamed and removed. In the transaction that makes the table the server needs no more than one
//! statement for its rows, which it does not log at `wal_level` minimal, and it leaves the same
//! pages: of the heap since the rows are frozen, of the indexes since they are built over it.

use super::options::RestoreOptions;
use super::select::Selected;
use crate::catalog::quote_ident;
use crate::error::Result;
use crate::source::dump::archive::{Archive, Entry};
use crate::source::dump::script::copy_target;
use std::collections::{HashMap, HashSet};

/// From how many on small tables are the server's.
const MANY: usize = 100;

/// Rows of so many bytes in the archive are few.
const SMALL_BYTES: u64 = 64 << 10;

/// Why the server fills a table.
pub const REASON: &str = "it is one of many small tables";

/// The tables that the server's COPY fills, by the dump ids of their `TABLE` entries.
///
/// They are made in the restore's own transaction, so that COPY can freeze their rows.
///
/// # Errors
/// The archive cannot be read or is damaged.
pub fn tables(
    archive: &Archive,
    selected: &[Selected<'_>],
    options: &RestoreOptions,
) -> Result<HashSet<i32>> {
    // What failed to be made is not known here.
    if options.keep_going {
        return Ok(HashSet::new());
    }
    let made: HashMap<i32, &Entry> = selected
        .iter()
        .filter(|s| s.wanted.schema && is_plain_table(s.entry))
        .map(|s| (s.entry.dump_id, s.entry))
        .collect();
    if made.len() <= MANY {
        return Ok(HashSet::new());
    }
    let bytes = archive.stored_bytes()?;
    let small: HashSet<i32> = selected
        .iter()
        .filter(|s| s.wanted.data && s.entry.desc == "TABLE DATA")
        .map(|s| s.entry)
        .filter(|entry| bytes.get(&entry.dump_id).is_some_and(|b| *b <= SMALL_BYTES))
        .filter_map(|entry| table_of(entry, &made))
        .collect();
    Ok(if small.len() > MANY {
        small
    } else {
        HashSet::new()
    })
}

/// The table of this archive that an entry's rows go to by their statement.
fn table_of(data: &Entry, made: &HashMap<i32, &Entry>) -> Option<i32> {
    let target = copy_target(data.copy_statement.trim_end().trim_end_matches(';'))?;
    let mut tables = data.dependencies.iter().filter_map(|id| made.get(id));
    let table = tables.find(|t| t.namespace == data.namespace && t.tag == data.tag)?;
    is_named(table, &target.table).then_some(table.dump_id)
}

/// Whether this is an entry's name as pg_dump writes it, which quotes what needs to be.
fn is_named(entry: &Entry, written: &str) -> bool {
    let is = |part: &str, name: &str| part == name || part == quote_ident(name);
    let schema = entry.namespace.as_deref().unwrap_or_default();
    let mut dots = written.match_indices('.');
    dots.any(|(dot, _)| is(&written[..dot], schema) && is(&written[dot + 1..], &entry.tag))
}

/// An ordinary table of the access method that knows what is frozen.
fn is_plain_table(entry: &Entry) -> bool {
    let access_method = entry.table_am.as_deref().unwrap_or_default();
    entry.desc == "TABLE"
        && matches!(access_method, "" | "heap")
        && !entry.definition.contains("PARTITION BY")
}
