//! Gives the locked tables new, empty files.
//!
//! TRUNCATE does, for all tables in one statement, so that foreign keys among them do not
//! matter. It is refused where a table that is not loaded references ours, and it would fire
//! triggers on TRUNCATE: there CLUSTER of the empty table does, which needs a unique index
//! (a referenced table has one).

use std::collections::HashSet;

use pgformat::ids::Oid;

use super::{Registration, TableToRegister};
use crate::catalog::{Index, quote_ident};
use crate::error::{Error, Result};

/// How many tables one query looks into for rows.
const TABLES_PER_QUERY: usize = 100;

/// How a table gets its new files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Truncate,
    /// By the index at this place in the relation's list.
    Cluster(usize),
    /// It keeps its files: the server appends to an empty table.
    Keep,
}

impl Registration<'_> {
    /// Checks emptiness, then empties.
    pub(super) fn empty_all(&mut self) -> Result<()> {
        self.step("truncate");
        let filled = self.filled()?;
        if let Some(table) = self
            .tables
            .iter()
            .find(|t| filled.contains(&t.relation.oid) && !t.truncate_allowed)
        {
            return Err(Error::refused(
                "55000",
                format!("table \"{}\" is not empty", table.relation.name),
            )
            .with_hint("Nothing was loaded. --truncate replaces the rows that are there."));
        }
        let references = self.references()?;
        let routes = routes(&self.tables, &filled, &references)?;
        let mut statements = Vec::new();
        let truncated: Vec<String> = self
            .tables
            .iter()
            .zip(&routes)
            .filter(|(_, route)| **route == Route::Truncate)
            .map(|(table, _)| format!("ONLY {}", table.relation.qualified_name()))
            .collect();
        if !truncated.is_empty() {
            statements.push(format!("TRUNCATE {}", truncated.join(", ")));
        }
        for (table, route) in self.tables.iter().zip(&routes) {
            if let Route::Cluster(index) = route {
                statements.push(format!(
                    "CLUSTER {} USING {}",
                    table.relation.qualified_name(),
                    quote_ident(&table.relation.indexes[*index].name)
                ));
                statements.push(restore_mark(&table.relation.indexes, table.relation.oid));
            }
        }
        self.new_files = self
            .tables
            .iter()
            .zip(&routes)
            .filter(|(_, route)| **route != Route::Keep)
            .map(|(table, _)| table.relation.oid)
            .collect();
        if statements.is_empty() {
            return Ok(());
        }
        // A table made in this very transaction would keep its files without the savepoint.
        self.client().batch_execute(&format!(
            "SAVEPOINT pgpagewrite_empty; {}; RELEASE SAVEPOINT pgpagewrite_empty",
            statements.join("; ")
        ))?;
        Ok(())
    }

    /// The tables that have rows. Most have no blocks, which is asked of all at once; of the
    /// others it is looked whether anybody can see a row.
    fn filled(&mut self) -> Result<HashSet<Oid>> {
        let oids: Vec<Oid> = self.tables.iter().map(|t| t.relation.oid).collect();
        let with_blocks: HashSet<Oid> = self
            .client()
            .query(
                "SELECT o.oid FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS o (oid)
                  WHERE pg_catalog.pg_relation_size(o.oid::pg_catalog.regclass) > 0",
                &[&oids],
            )?
            .iter()
            .map(|row| row.get(0))
            .collect();
        let mut filled = HashSet::new();
        let tables: Vec<(Oid, String)> = self
            .tables
            .iter()
            .filter(|t| with_blocks.contains(&t.relation.oid))
            .map(|t| (t.relation.oid, t.relation.qualified_name()))
            .collect();
        for some in tables.chunks(TABLES_PER_QUERY) {
            let looks: Vec<String> = some
                .iter()
                .map(|(_, name)| format!("EXISTS (SELECT FROM ONLY {name})"))
                .collect();
            let answers: Vec<bool> = self
                .client()
                .query_one(&format!("SELECT ARRAY[{}]", looks.join(", ")), &[])?
                .get(0);
            let seen = some.iter().zip(answers).filter(|(_, answer)| *answer);
            filled.extend(seen.map(|((oid, _), _)| *oid));
        }
        Ok(filled)
    }

    /// Pairs of a table of ours and a table that references it.
    fn references(&mut self) -> Result<Vec<(Oid, Oid)>> {
        let oids: Vec<Oid> = self.tables.iter().map(|t| t.relation.oid).collect();
        let rows = self.client().query(
            "SELECT DISTINCT confrelid, conrelid FROM pg_catalog.pg_constraint
              WHERE contype = 'f' AND confrelid = ANY ($1)",
            &[&oids],
        )?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}

/// CLUSTER marks its index as the one to cluster on; the mark goes back to where it was.
fn restore_mark(indexes: &[Index], table: Oid) -> String {
    let marked = indexes.iter().find(|i| i.clustered).map_or(0, |i| i.oid);
    format!(
        "UPDATE pg_catalog.pg_index SET indisclustered = (indexrelid = {marked})
          WHERE indrelid = {table} AND indisclustered <> (indexrelid = {marked})"
    )
}

/// Decides each table's route.
fn routes(
    tables: &[TableToRegister],
    filled: &HashSet<Oid>,
    references: &[(Oid, Oid)],
) -> Result<Vec<Route>> {
    // TRUNCATE takes the largest set in which nobody is referenced from outside.
    let mut truncated: HashSet<Oid> = tables
        .iter()
        .filter(|t| t.relation.features.truncate_triggers.is_empty())
        .map(|t| t.relation.oid)
        .collect();
    loop {
        let before = truncated.len();
        for (referenced, by) in references {
            if !truncated.contains(by) {
                truncated.remove(referenced);
            }
        }
        if truncated.len() == before {
            break;
        }
    }
    tables
        .iter()
        .map(|table| {
            let relation = &table.relation;
            if truncated.contains(&relation.oid) {
                return Ok(Route::Truncate);
            }
            if filled.contains(&relation.oid) {
                return Err(cannot_truncate(table, references));
            }
            if !table.native {
                return Ok(Route::Keep);
            }
            let clusterable = |i: &Index| {
                i.access_method == "btree"
                    && i.valid
                    && i.unique
                    && !i.has_predicate
                    && i.columns.iter().all(|c| c.attnum > 0)
            };
            match relation.indexes.iter().position(clusterable) {
                Some(index) => Ok(Route::Cluster(index)),
                None => Err(cannot_truncate(table, references)),
            }
        })
        .collect()
}

fn cannot_truncate(table: &TableToRegister, references: &[(Oid, Oid)]) -> Error {
    let relation = &table.relation;
    let referenced = references.iter().any(|(to, _)| *to == relation.oid);
    if referenced && relation.features.truncate_triggers.is_empty() {
        Error::refused(
            "0A000",
            "cannot truncate a table referenced in a foreign key constraint",
        )
        .with_detail(format!(
            "Table \"{}\" is referenced by {}.",
            relation.name,
            relation.features.referenced_by.join(", ")
        ))
        .with_hint("Load those tables in the same command.")
    } else {
        Error::unsupported(format!(
            "table \"{}\" has triggers on TRUNCATE: {}",
            relation.name,
            relation.features.truncate_triggers.join(", ")
        ))
        .with_hint("Disable them for the load.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Features, Relation};

    fn table(oid: Oid) -> TableToRegister {
        TableToRegister {
            relation: Relation {
                oid,
                schema: "public".into(),
                name: format!("t{oid}"),
                kind: 'r',
                persistence: 'p',
                access_method: "heap".into(),
                tablespace: 0,
                fillfactor: 100,
                toast_tuple_target_bytes: 2032,
                columns: Vec::new(),
                indexes: Vec::new(),
                toast: None,
                features: Features::default(),
                size_bytes: 0,
            },
            truncate_allowed: true,
            native: true,
        }
    }

    #[test]
    fn tables_that_reference_only_each_other_are_truncated_together() {
        let tables = [table(1), table(2), table(3)];
        let rows = HashSet::new();
        let all = [Route::Truncate; 3];
        assert_eq!(
            routes(&tables, &rows, &[(1, 2), (2, 3), (3, 3)]).unwrap(),
            all
        );
    }

    #[test]
    fn a_reference_from_outside_spreads_to_whom_the_table_references() {
        // 9 is not loaded and references 2; 2 references 1.
        let mut tables = [table(1), table(2)];
        for t in &mut tables {
            t.native = false;
        }
        let references = [(1, 2), (2, 9)];
        assert_eq!(
            routes(&tables, &HashSet::new(), &references).unwrap(),
            [Route::Keep, Route::Keep]
        );
        let e = routes(&tables, &HashSet::from([2]), &references).unwrap_err();
        assert_eq!(e.sqlstate, "0A000");
    }
}
