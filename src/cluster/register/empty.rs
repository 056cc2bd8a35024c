//! Gives the locked tables new, empty files.
//!
//! TRUNCATE does, for all tables in one statement, so that foreign keys among them do not
//! matter. It is refused where a table that is not loaded references ours: there CLUSTER of the empty
//! table does, which needs a btree index (a referenced table has one). Triggers on TRUNCATE are kept
//! from firing: the role of a replica silences ordinary ones, and those that fire for
//! replicas too are disabled for the moment.

use std::collections::HashSet;

use pgformat::ids::Oid;

use postgres::{Client, Row};

use super::{Registration, TableToRegister};
use crate::catalog::{Index, Relation, TRIGGER_TYPE_TRUNCATE, quote_ident};
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
        let oids: Vec<Oid> = self.tables.iter().map(|t| t.relation.oid).collect();
        let relations: Vec<&Relation> = self.tables.iter().map(|t| &t.relation).collect();
        let filled = filled(self.session.client(), &relations)?;
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
        let references = references(self.session.client(), &oids)?;
        let routes = routes(&self.tables, &filled, &references)?;
        let mut statements = Vec::new();
        let truncated: Vec<String> = self
            .tables
            .iter()
            .zip(&routes)
            .filter(|(_, route)| **route == Route::Truncate)
            .map(|(table, _)| with_partitions(&table.relation))
            .collect();
        if !truncated.is_empty() {
            let truncate = format!("TRUNCATE {}", truncated.join(", "));
            let with_triggers: Vec<&Relation> = self
                .tables
                .iter()
                .zip(&routes)
                .filter(|(_, route)| **route == Route::Truncate)
                .map(|(table, _)| &table.relation)
                .filter(|relation| !relation.features.truncate_triggers.is_empty())
                .collect();
            statements.push(if with_triggers.is_empty() {
                truncate
            } else {
                without_triggers(self.session.client(), &with_triggers, &truncate)?
            });
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
}

/// Refuses, before anything is built, tables that will not be given new files.
///
/// # Errors
/// `0A000` for a table with rows that a table which is not loaded references.
pub fn refuse_unemptyable(client: &mut Client, tables: &[TableToRegister]) -> Result<()> {
    let oids: Vec<Oid> = tables.iter().map(|t| t.relation.oid).collect();
    let references = references(client, &oids)?;
    // Without references TRUNCATE does for all; then nobody need look for rows.
    if references.is_empty() {
        return Ok(());
    }
    let relations: Vec<&Relation> = tables
        .iter()
        .filter(|t| t.truncate_allowed)
        .map(|t| &t.relation)
        .collect();
    let filled = filled(client, &relations)?;
    routes(tables, &filled, &references).map(|_| ())
}

/// The tables that have rows. Most have no blocks, which is asked of all at once; of the
/// others it is looked whether anybody can see a row.
fn filled(client: &mut Client, tables: &[&Relation]) -> Result<HashSet<Oid>> {
    let oids: Vec<Oid> = tables.iter().map(|t| t.oid).collect();
    let with_blocks: HashSet<Oid> = client
        .query(
            "SELECT o.oid FROM pg_catalog.unnest($1::pg_catalog.oid[]) AS o (oid)
              WHERE pg_catalog.pg_relation_size(o.oid::pg_catalog.regclass) > 0",
            &[&oids],
        )?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let mut filled = HashSet::new();
    let tables: Vec<(Oid, String)> = tables
        .iter()
        .filter(|t| t.kind == 'p' || with_blocks.contains(&t.oid))
        .map(|t| (t.oid, with_partitions(t)))
        .collect();
    for some in tables.chunks(TABLES_PER_QUERY) {
        let looks: Vec<String> = some
            .iter()
            .map(|(_, item)| format!("EXISTS (SELECT FROM {item})"))
            .collect();
        let answers: Vec<bool> = client
            .query_one(&format!("SELECT ARRAY[{}]", looks.join(", ")), &[])?
            .get(0);
        let seen = some.iter().zip(answers).filter(|(_, answer)| *answer);
        filled.extend(seen.map(|((oid, _), _)| *oid));
    }
    Ok(filled)
}

/// The table in a list of tables: by itself, but with its partitions where it has no rows without.
fn with_partitions(relation: &Relation) -> String {
    match relation.kind {
        'p' => relation.qualified_name(),
        _ => format!("ONLY {}", relation.qualified_name()),
    }
}

/// Pairs of a table of ours and a table that references it.
fn references(client: &mut Client, oids: &[Oid]) -> Result<Vec<(Oid, Oid)>> {
    let rows = client.query(
        "SELECT DISTINCT confrelid, conrelid FROM pg_catalog.pg_constraint
          WHERE contype = 'f' AND confrelid = ANY ($1)",
        &[&oids],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The TRUNCATE with its triggers silenced.
fn without_triggers(client: &mut Client, tables: &[&Relation], truncate: &str) -> Result<String> {
    let oids: Vec<Oid> = tables.iter().map(|relation| relation.oid).collect();
    let rows = client.query(
        "SELECT tgrelid, tgname::text, tgenabled = 'A'
           FROM pg_catalog.pg_trigger
          WHERE tgrelid = ANY ($1) AND NOT tgisinternal AND tgenabled IN ('A', 'R')
            AND tgtype::pg_catalog.int4 & $2 <> 0
          ORDER BY tgrelid, tgname",
        &[&oids, &TRIGGER_TYPE_TRUNCATE],
    )?;
    let role: String = client
        .query_one(
            "SELECT pg_catalog.current_setting('session_replication_role')",
            &[],
        )?
        .get(0);
    let alter = |row: &Row, what: &str| {
        let (oid, trigger): (Oid, String) = (row.get(0), row.get(1));
        let relation = tables.iter().find(|relation| relation.oid == oid);
        let table = relation.expect("a trigger of one of these tables");
        format!(
            "ALTER TABLE ONLY {} {what} TRIGGER {}",
            table.qualified_name(),
            quote_ident(&trigger)
        )
    };
    // Event triggers on ALTER TABLE are silent in this role too.
    let mut statements = vec!["SET LOCAL session_replication_role = replica".to_owned()];
    statements.extend(rows.iter().map(|row| alter(row, "DISABLE")));
    statements.push(truncate.to_owned());
    statements.extend(rows.iter().map(|row| {
        let always: bool = row.get(2);
        alter(
            row,
            if always {
                "ENABLE ALWAYS"
            } else {
                "ENABLE REPLICA"
            },
        )
    }));
    statements.push(format!("SET LOCAL session_replication_role = {role}"));
    Ok(statements.join("; "))
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
    // Empty partitions keep their files: the server's COPY goes there.
    let mut truncated: HashSet<Oid> = tables
        .iter()
        .map(|t| &t.relation)
        .filter(|relation| relation.kind != 'p' || filled.contains(&relation.oid))
        .map(|relation| relation.oid)
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
                return Err(cannot_truncate(relation));
            }
            if !table.native {
                return Ok(Route::Keep);
            }
            let clusterable = |i: &Index| {
                i.access_method == "btree"
                    && i.valid
                    && !i.has_predicate
                    && i.columns.iter().all(|c| c.attnum > 0)
            };
            match relation.indexes.iter().position(clusterable) {
                Some(index) => Ok(Route::Cluster(index)),
                None => Err(cannot_truncate(relation)),
            }
        })
        .collect()
}

fn cannot_truncate(relation: &Relation) -> Error {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Features;

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
                partitions: None,
            },
            truncate_allowed: true,
            native: true,
            checks_references: false,
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
