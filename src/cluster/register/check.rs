//! Checks rows that are in place against CHECK constraints, those of domains too, and foreign keys, by
//! queries.
//!
//! A table's CHECK constraints are evaluated in one scan, a foreign key by a join that keeps
//! the rows without a partner, as ALTER TABLE ADD FOREIGN KEY does; the server does both in
//! parallel where it can. Only when a row is bad it is asked which constraint, and which row
//! COPY would have met first.

use pgformat::heap::page::MAX_TUPLES_PER_PAGE;
use pgformat::ids::Tid;
use postgres::{Client, SimpleQueryMessage};

use super::Registration;
use crate::catalog::{Check, DomainCheck, ForeignKey, Relation, quote_ident};
use crate::error::{Class, Error, Place, Result};

/// COPY shows so many bytes of each value of a failing row.
///
/// PostgreSQL: `src/backend/executor/execMain.c`, `ExecBuildSlotValueDescription`'s callers.
const SHOWN_BYTES: usize = 64;

/// `maintenance_work_mem` is this part of the memory: files may still be on their way to the disk.
const MAINTENANCE_PART: usize = 2;
/// The most that a setting of memory takes, in kB (`MAX_KILOBYTES`).
const MAX_KB: usize = i32::MAX as usize;

/// The indexes that the server builds may still be empty when rows are checked.
pub(super) const WITHOUT_INDEXES: &str = "SET LOCAL enable_seqscan = on;
             SET LOCAL enable_indexscan = off;
             SET LOCAL enable_indexonlyscan = off;
             SET LOCAL enable_bitmapscan = off";

/// What the server may use for a check, or to build an index.
#[derive(Debug, Clone, Copy)]
pub struct ServerMeans {
    /// Parallel workers of a statement.
    pub workers: usize,
    /// Memory of a statement in bytes, all its workers together.
    pub memory_bytes: usize,
}

impl ServerMeans {
    /// `constraint_exclusion` would have the planner believe the very constraint that is
    /// checked. The scan must begin at the first block where the first row is asked for.
    pub(super) fn settings(self) -> String {
        let share_kb = self.memory_bytes / (self.workers + 1) / 1024;
        format!(
            "SET LOCAL constraint_exclusion = off;
             SET LOCAL transform_null_equals = off;
             SET LOCAL synchronize_seqscans = off;
             SET LOCAL max_parallel_workers_per_gather = {};
             SET LOCAL work_mem = '{}kB';
             SET LOCAL hash_mem_multiplier = 1",
            self.workers.min(1024),
            share_kb.clamp(4096, 1 << 20)
        )
    }

    /// Settings for what the server builds, each for the transaction; where its own are larger they
    /// stay. The workers of an index share `maintenance_work_mem` among them.
    ///
    /// PostgreSQL: `src/backend/access/nbtree/nbtsort.c`, `_bt_parallel_scan_and_sort`.
    pub(super) fn maintenance_settings(self) -> String {
        let memory_kb = self.memory_bytes / MAINTENANCE_PART / 1024;
        format!(
            "SELECT pg_catalog.set_config('maintenance_work_mem', greatest({},
                      pg_catalog.pg_size_bytes(pg_catalog.current_setting('maintenance_work_mem'))
                        / 1024) || 'kB', true),
                    pg_catalog.set_config('max_parallel_maintenance_workers', greatest({},
                      pg_catalog.current_setting('max_parallel_maintenance_workers')
                        ::pg_catalog.int4)::pg_catalog.text, true);",
            memory_kb.min(MAX_KB),
            self.workers.min(1024)
        )
    }
}

/// CHECK constraints that rows are held against, each list in the order of evaluation.
#[derive(Debug, Clone, Default)]
pub struct RowChecks<'a> {
    /// Those of domains, which COPY evaluates while it reads a row's fields.
    pub domains: Vec<&'a DomainCheck>,
    /// Those of the table.
    pub table: &'a [Check],
    /// A partition's bounds are looked at.
    pub bounds: bool,
}

impl RowChecks<'_> {
    /// The table with what its columns' domains say of its rows, as an item of FROM. The item of
    /// each constraint has one column, which is not named anywhere else.
    ///
    /// Within a domain's condition VALUE parses as the name of a column, here of the only one.
    fn rows_of(&self, table: &str) -> String {
        let checks = self.domains.iter().enumerate();
        let checked = checks.map(|(number, check)| {
            format!(
                "LATERAL (SELECT ({}) IS FALSE FROM (SELECT {}) AS v (value))
                 AS pgpagewrite_domain_{number} (pgpagewrite_refused)",
                check.condition, check.value
            )
        });
        let items: Vec<String> = std::iter::once(format!("ONLY {table}"))
            .chain(checked)
            .collect();
        items.join(", ")
    }

    /// For each domain constraint whether it refuses a row.
    fn domains_refuse(&self) -> impl Iterator<Item = String> {
        (0..self.domains.len())
            .map(|number| format!("pgpagewrite_domain_{number}.pgpagewrite_refused"))
    }
}

/// A row that a constraint refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where it stands in the heap, if that is known.
    pub tid: Option<Tid>,
    /// The row whose key it has too.
    pub other: Option<Tid>,
    /// The field, where one is refused: without a file and a line.
    pub field: Place,
    /// The error as COPY words it.
    pub error: Error,
}

impl Violation {
    /// Of a row that is not known.
    pub(super) fn somewhere(error: Error) -> Violation {
        Violation {
            tid: None,
            other: None,
            field: Place::default(),
            error,
        }
    }
}

/// A table's name now, and the names of its foreign keys.
const FOREIGN_KEYS_THERE: &str = "
SELECT pg_catalog.format('%I.%I', n.nspname, c.relname),
       ARRAY (SELECT k.conname::pg_catalog.text FROM pg_catalog.pg_constraint k
               WHERE k.conrelid = c.oid AND k.contype = 'f')
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = $1";

impl Registration<'_> {
    /// Evaluates CHECK constraints of a table whose files were put, and a partition's bounds; its
    /// indexes need not be complete.
    ///
    /// Of several bad rows the first is told, of a row's constraints the first: what COPY would
    /// have met.
    ///
    /// # Errors
    /// Those of the connection. What a constraint's expression raises is a violation.
    pub fn check_rows(
        &mut self,
        relation: &Relation,
        checks: &RowChecks<'_>,
        means: ServerMeans,
    ) -> Result<Option<Violation>> {
        let bounds = relation.features.partition_constraint.as_ref();
        // COPY looks at a partition's bounds last.
        let of_table = checks
            .table
            .iter()
            .map(|check| &check.condition)
            .chain(bounds.filter(|_| checks.bounds))
            .map(|condition| format!("({condition}) IS FALSE"));
        let failing: Vec<String> = checks.domains_refuse().chain(of_table).collect();
        if failing.is_empty() {
            return Ok(None);
        }
        let arms: Vec<String> = failing
            .iter()
            .enumerate()
            .map(|(number, failing)| format!("WHEN {failing} THEN {number}"))
            .collect();
        let rows_of = checks.rows_of(&relation.qualified_name());
        // The server evaluates the arms of OR from left to right.
        let failing = failing.join(" OR ");
        let first =
            format!("SELECT pg_catalog.min(ctid)::pg_catalog.text FROM {rows_of} WHERE {failing}");
        let settings = format!("{}; {WITHOUT_INDEXES}", means.settings());
        let tid = match self.with_settings(&settings, |client| tid(client, &first)) {
            Ok(None) => return Ok(None),
            Ok(Some(tid)) => tid,
            Err(error) if error.class == Class::Refused => {
                match self.first_row_in_order(&rows_of, &failing)? {
                    Ok(tid) => tid,
                    Err(mut violation) => {
                        if let Some(tid) = violation.tid {
                            violation.field = self.raising_field(relation, checks, tid)?;
                        }
                        return Ok(Some(violation));
                    }
                }
            }
            Err(error) => return Err(error),
        };
        let which: i32 = self
            .client()
            .query_one(
                &format!(
                    "SELECT CASE {} END FROM {rows_of} WHERE ctid = '{}'",
                    arms.join(" "),
                    text(tid)
                ),
                &[],
            )?
            .get(0);
        let which = which as usize;
        if let Some(check) = checks.domains.get(which) {
            let error = Error::refused(
                "23514",
                format!(
                    "value for domain {} violates check constraint \"{}\"",
                    check.domain, check.name
                ),
            );
            return Ok(Some(Violation {
                tid: Some(tid),
                other: None,
                field: self.field(relation, check, tid)?,
                error,
            }));
        }
        let check = checks.table.get(which - checks.domains.len());
        let columns: Vec<&str> = relation
            .columns
            .iter()
            .filter(|column| !column.dropped)
            .map(|column| column.name.as_str())
            .collect();
        let values: Vec<String> = self
            .values(relation, &columns, tid)?
            .iter()
            .map(|value| shown(value.as_deref()))
            .collect();
        let violated = match check {
            Some(check) => format!("check constraint \"{}\"", check.name),
            None => "partition constraint".to_owned(),
        };
        let error = Error::refused(
            "23514",
            format!(
                "new row for relation \"{}\" violates {violated}",
                relation.name
            ),
        )
        .with_detail(format!("Failing row contains ({}).", values.join(", ")));
        Ok(Some(Violation {
            tid: Some(tid),
            other: None,
            field: Place::default(),
            error,
        }))
    }

    /// Looks for the partners of a table's foreign keys; all tables' files must be in place.
    ///
    /// `deferred` picks those that are checked at COMMIT, or the others. Of several bad rows the
    /// first is told, of its keys the first whose trigger would have fired.
    ///
    /// # Errors
    /// The server's.
    pub fn check_references(
        &mut self,
        relation: &Relation,
        deferred: bool,
        means: ServerMeans,
    ) -> Result<Option<Violation>> {
        let mut foreign_keys = relation.features.foreign_keys.clone();
        foreign_keys.retain(|foreign_key| foreign_key.deferred == deferred);
        if foreign_keys.is_empty() {
            return Ok(None);
        }
        // SQL behind the load may have moved the table, or dropped some.
        let Some(there) = self
            .client()
            .query_opt(FOREIGN_KEYS_THERE, &[&relation.oid])?
        else {
            return Ok(None);
        };
        let (table, names): (String, Vec<String>) = (there.get(0), there.get(1));
        foreign_keys.retain(|foreign_key| names.contains(&foreign_key.name));
        let mut found: Option<(Tid, &ForeignKey)> = None;
        for foreign_key in &foreign_keys {
            let query = without_partner(&table, foreign_key);
            if let Some(tid) =
                self.with_settings(&means.settings(), |client| tid(client, &query))?
                && found.is_none_or(|(first, _)| tid < first)
            {
                found = Some((tid, foreign_key));
            }
        }
        let Some((tid, foreign_key)) = found else {
            return Ok(None);
        };
        let columns: Vec<&str> = foreign_key.columns.iter().map(String::as_str).collect();
        let values = self.values(relation, &columns, tid)?;
        let detail = if foreign_key.match_full && values.iter().any(Option::is_none) {
            "MATCH FULL does not allow mixing of null and nonnull key values.".to_owned()
        } else {
            let values: Vec<&str> = values
                .iter()
                .map(|value| value.as_deref().unwrap_or("null"))
                .collect();
            format!(
                "Key ({})=({}) is not present in table \"{}\".",
                columns.join(", "),
                values.join(", "),
                foreign_key.referenced
            )
        };
        let error = Error::refused(
            "23503",
            format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                relation.name, foreign_key.name
            ),
        )
        .with_detail(detail);
        Ok(Some(Violation {
            tid: Some(tid),
            other: None,
            field: Place::default(),
            error,
        }))
    }

    /// How many rows of a table stand from `first` on before `end`.
    ///
    /// # Errors
    /// The server's.
    pub fn rows_between(&mut self, relation: &Relation, first: Tid, end: Tid) -> Result<u64> {
        let query = format!(
            "SELECT pg_catalog.count(*) FROM ONLY {} WHERE ctid >= '{}' AND ctid < '{}'",
            relation.qualified_name(),
            text(first),
            text(end)
        );
        let rows: i64 = self.client().query_one(&query, &[])?.get(0);
        Ok(rows as u64)
    }

    /// Runs queries with these settings, and gives the settings back as they were.
    pub(super) fn with_settings<T>(
        &mut self,
        settings: &str,
        work: impl FnOnce(&mut Client) -> Result<T>,
    ) -> Result<T> {
        let client = self.client();
        client.batch_execute(&format!("SAVEPOINT pgpagewrite_check; {settings}"))?;
        let done = work(client);
        let ended = client.batch_execute(
            "ROLLBACK TO SAVEPOINT pgpagewrite_check; RELEASE SAVEPOINT pgpagewrite_check",
        );
        let done = done?;
        ended?;
        Ok(done)
    }

    /// An expression raised an error for some row: the first row in the order of the heap for
    /// which `failing` is true or raises one.
    fn first_row_in_order(
        &mut self,
        rows_of: &str,
        failing: &str,
    ) -> Result<std::result::Result<Tid, Violation>> {
        let alone = ServerMeans {
            workers: 0,
            memory_bytes: 0,
        };
        let alone = format!("{}; {WITHOUT_INDEXES}", alone.settings());
        let query = format!("SELECT ctid::pg_catalog.text FROM {rows_of} WHERE {failing} LIMIT 1");
        let error = match self.with_settings(&alone, |client| tid(client, &query)) {
            Ok(Some(tid)) => return Ok(Ok(tid)),
            Ok(None) => Error::refused("XX000", "a constraint's expression raised an error once"),
            Err(error) => error,
        };
        if error.class != Class::Refused {
            return Err(error);
        }
        // Everything from `from` on before `to` is fine or raises the error.
        let mut raises = |from: Tid, to: Tid| -> Result<bool> {
            let rows = format!("ctid >= '{}' AND ctid < '{}'", text(from), text(to));
            let query = format!(
                "SELECT pg_catalog.min(ctid)::pg_catalog.text FROM {rows_of}
                  WHERE {rows} AND CASE WHEN {rows} THEN {failing} END"
            );
            match self.with_settings(&alone, |client| tid(client, &query)) {
                Ok(_) => Ok(false),
                Err(error) if error.class == Class::Refused => Ok(true),
                Err(error) => Err(error),
            }
        };
        let block = |block: u32| Tid { block, offset: 0 };
        let start = block(0);
        // First the block, then the line pointer: the last that can be left out without the error.
        let (mut low, mut high) = (0, 1);
        while !raises(start, block(high))? {
            if high == u32::MAX {
                return Ok(Err(Violation::somewhere(error)));
            }
            (low, high) = (high, high.saturating_mul(2));
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if raises(start, block(middle))? {
                high = middle;
            } else {
                low = middle;
            }
        }
        let in_block = |offset: u32| Tid {
            block: low,
            offset: offset as u16,
        };
        let (mut first, mut end) = (1, MAX_TUPLES_PER_PAGE as u32 + 1);
        while end - first > 1 {
            let middle = first + (end - first) / 2;
            if raises(block(low), in_block(middle))? {
                end = middle;
            } else {
                first = middle;
            }
        }
        Ok(Err(Violation {
            tid: Some(in_block(first)),
            other: None,
            field: Place::default(),
            error,
        }))
    }

    /// The field whose domain's condition raises an error at a row, if any does.
    fn raising_field(
        &mut self,
        relation: &Relation,
        checks: &RowChecks<'_>,
        tid: Tid,
    ) -> Result<Place> {
        let rows_of = checks.rows_of(&relation.qualified_name());
        let conditions: Vec<String> = checks.domains_refuse().collect();
        for (check, refused) in checks.domains.iter().zip(conditions) {
            let query = format!(
                "SELECT {refused} FROM {rows_of} WHERE ctid = '{}'",
                text(tid)
            );
            let asked = self.with_settings("", |client| Ok(client.execute(&query, &[])?));
            match asked {
                Ok(_) => {}
                Err(error) if error.class == Class::Refused => {
                    return self.field(relation, check, tid);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Place::default())
    }

    /// The field that a domain refuses, with its value as its type prints it.
    fn field(&mut self, relation: &Relation, check: &DomainCheck, tid: Tid) -> Result<Place> {
        let value = self.values(relation, &[&check.column], tid)?;
        Ok(Place {
            column: Some(check.column.clone()),
            value: value.into_iter().next().flatten().map(|v| shown(Some(&v))),
            ..Place::default()
        })
    }

    /// Columns of a row as text, by their types' output functions.
    fn values(
        &mut self,
        relation: &Relation,
        columns: &[&str],
        tid: Tid,
    ) -> Result<Vec<Option<String>>> {
        let list: Vec<String> = columns.iter().map(|name| quote_ident(name)).collect();
        let query = format!(
            "SELECT {} FROM ONLY {} WHERE ctid = '{}'",
            list.join(", "),
            relation.qualified_name(),
            text(tid)
        );
        for message in self.client().simple_query(&query)? {
            if let SimpleQueryMessage::Row(row) = message {
                return Ok((0..columns.len())
                    .map(|i| row.get(i).map(str::to_owned))
                    .collect());
            }
        }
        Err(Error::environment(
            "XX000",
            "a row that was just read is gone",
        ))
    }
}

/// The first row whose key has no partner.
///
/// PostgreSQL: `src/backend/utils/adt/ri_triggers.c`, `RI_Initial_Check`.
fn without_partner(table: &str, foreign_key: &ForeignKey) -> String {
    let present: Vec<String> = foreign_key
        .columns
        .iter()
        .map(|name| format!("fk.{} IS NOT NULL", quote_ident(name)))
        .collect();
    let together = if foreign_key.match_full {
        " OR "
    } else {
        " AND "
    };
    format!(
        "SELECT pg_catalog.min(fk.ctid)::pg_catalog.text
           FROM ONLY {table} fk LEFT JOIN {} pk ON ({})
          WHERE pk.{} IS NULL AND ({})",
        foreign_key.from_item,
        foreign_key.join,
        foreign_key.first_referenced_column,
        present.join(together)
    )
}

/// The TID that a query gives, if any.
fn tid(client: &mut Client, query: &str) -> Result<Option<Tid>> {
    let found: Option<String> = client.query(query, &[])?.first().and_then(|row| row.get(0));
    found
        .map(|text| {
            parse_tid(&text)
                .ok_or_else(|| Error::environment("08P01", format!("unexpected ctid {text}")))
        })
        .transpose()
}

/// PostgreSQL: `src/backend/utils/adt/tid.c`, `tidout`.
pub(super) fn parse_tid(text: &str) -> Option<Tid> {
    let (block, offset) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some(Tid {
        block: block.parse().ok()?,
        offset: offset.parse().ok()?,
    })
}

fn text(tid: Tid) -> String {
    format!("({},{})", tid.block, tid.offset)
}

/// A value as the DETAIL of a failing row shows it.
fn shown(value: Option<&str>) -> String {
    match value {
        None => "null".to_owned(),
        Some(value) if value.len() <= SHOWN_BYTES => value.to_owned(),
        Some(value) => {
            let end = (0..=SHOWN_BYTES).rfind(|end| value.is_char_boundary(*end));
            format!("{}...", &value[..end.unwrap_or(0)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let value = format!("{}\u{e4}\u{e4}", "x".repeat(63));
        assert_eq!(shown(Some(&value)), format!("{}...", "x".repeat(63)));
        assert_eq!(shown(Some(&value[..63])), "x".repeat(63));
        assert_eq!(shown(None), "null");
    }

    #[test]
    fn a_tid_reads_as_it_prints() {
        let tid = Tid {
            block: 4_294_967_294,
            offset: 291,
        };
        assert_eq!(parse_tid(&text(tid)), Some(tid));
        assert_eq!(parse_tid("(1,2"), None);
        assert_eq!(parse_tid("(1,-2)"), None);
    }
}
