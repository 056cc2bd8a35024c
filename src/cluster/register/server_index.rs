//! Unique indexes and exclusion constraints that the server builds: it checks every row as it
//! does, and the row that COPY would have refused is looked for when it says no.
//!
//! PostgreSQL: `src/backend/catalog/index.c`, `IndexCheckExclusion`;
//! `src/backend/utils/sort/tuplesortvariants.c`, `comparetup_index_btree`.

use super::check::{ServerMeans, Violation, WITHOUT_INDEXES, parse_tid};
use super::{Registration, reindex_statement};
use crate::catalog::{Index, Relation};
use crate::error::{Error, Place, Result};
use pgformat::ids::Tid;

const UNIQUE_VIOLATION: &str = "23505";
const EXCLUSION_VIOLATION: &str = "23P01";

/// The keys of an index as SQL.
struct Keys {
    /// As messages show them.
    names: Vec<String>,
    /// What they are of a row, each with its collation.
    values: Vec<String>,
    /// Which rows have them.
    predicate: String,
}

impl Keys {
    /// `Key (a, b)=(1, 2)` of a row, without the first word.
    fn shown(&self) -> String {
        let outputs: Vec<String> = self
            .values
            .iter()
            .map(|value| {
                format!(
                    "CASE WHEN {value} IS DISTINCT FROM NULL
                          THEN pg_catalog.format('%s', {value}) ELSE 'null' END"
                )
            })
            .collect();
        format!(
            "'({})=(' || {} || ')'",
            self.names.join(", ").replace('\'', "''"),
            outputs.join(" || ', ' || ")
        )
    }
}

impl Registration<'_> {
    /// Has the server build a unique index over files that were put. `later` are the table's
    /// other unique indexes that it has still to build.
    ///
    /// Of several duplicates the first is told: the row whose key an earlier row has.
    ///
    /// # Errors
    /// The server's, but for a violation.
    pub fn reindex_unique(
        &mut self,
        relation: &Relation,
        index: &Index,
        later: &[&Index],
        means: ServerMeans,
    ) -> Result<Option<Violation>> {
        let Some(error) = self.try_reindex(index, UNIQUE_VIOLATION)? else {
            return Ok(None);
        };
        let mut first: Option<(Tid, Tid, &Index)> = None;
        for &index in [index].iter().chain(later) {
            if let Some((second, earlier)) = self.first_duplicate(relation, index, means)?
                && first.is_none_or(|(found, ..)| second < found)
            {
                first = Some((second, earlier, index));
            }
        }
        let message = |index: &Index| {
            format!(
                "duplicate key value violates unique constraint \"{}\"",
                index.name
            )
        };
        let Some((second, earlier, index)) = first else {
            let mut told = Error::refused(UNIQUE_VIOLATION, message(index));
            told.detail = error.detail;
            return Ok(Some(Violation::somewhere(told)));
        };
        let key = self.key(relation, index, second)?;
        Ok(Some(Violation {
            tid: Some(second),
            other: Some(earlier),
            field: Place::default(),
            error: Error::refused(UNIQUE_VIOLATION, message(index))
                .with_detail(format!("Key {key} already exists.")),
        }))
    }

    /// Has the server build the index of an exclusion constraint over files that were put.
    ///
    /// The server names two rows that exclude each other, which need not be the first two that
    /// COPY would have met; the later of them is told as COPY tells a row that it refuses.
    ///
    /// # Errors
    /// The server's, but for a violation.
    pub fn reindex_exclusion(
        &mut self,
        relation: &Relation,
        index: &Index,
    ) -> Result<Option<Violation>> {
        let Some(error) = self.try_reindex(index, EXCLUSION_VIOLATION)? else {
            return Ok(None);
        };
        let detail = error.detail.clone().unwrap_or_default();
        let both = self.rows_with_keys(relation, index, &detail)?;
        let mut told = Error::refused(
            EXCLUSION_VIOLATION,
            format!(
                "conflicting key value violates exclusion constraint \"{}\"",
                index.name
            ),
        );
        let [(_, earlier), (tid, later)] = &both[..] else {
            told.detail = error.detail;
            return Ok(Some(Violation::somewhere(told)));
        };
        Ok(Some(Violation {
            tid: parse_tid(tid),
            other: None,
            field: Place::default(),
            error: told.with_detail(format!(
                "Key {later} conflicts with existing key {earlier}."
            )),
        }))
    }

    /// Builds an index; the server's error if it is this one, after which all is as before.
    fn try_reindex(&mut self, index: &Index, sqlstate: &str) -> Result<Option<Error>> {
        self.client().batch_execute("SAVEPOINT pgpagewrite_check")?;
        let Err(error) = self.client().batch_execute(&reindex_statement(index)) else {
            self.client()
                .batch_execute("RELEASE SAVEPOINT pgpagewrite_check")?;
            self.open_indexes.retain(|(oid, _)| *oid != index.oid);
            return Ok(None);
        };
        let error = Error::from(error);
        if error.sqlstate != sqlstate {
            return Err(error);
        }
        self.client().batch_execute(
            "ROLLBACK TO SAVEPOINT pgpagewrite_check; RELEASE SAVEPOINT pgpagewrite_check",
        )?;
        Ok(Some(error))
    }

    /// The first row whose key an earlier row has, and the first row that has it.
    ///
    /// Equal is what the default operators of the keys' types call so, which the server's
    /// uniqueness by another operator class need not agree with: then there may be none.
    fn first_duplicate(
        &mut self,
        relation: &Relation,
        index: &Index,
        means: ServerMeans,
    ) -> Result<Option<(Tid, Tid)>> {
        let keys = self.keys(index)?;
        let mut conditions = vec![keys.predicate.clone()];
        if !index.nulls_not_distinct {
            let present = keys.values.iter();
            conditions.extend(present.map(|value| format!("{value} IS DISTINCT FROM NULL")));
        }
        let query = format!(
            "SELECT second::pg_catalog.text, first::pg_catalog.text
               FROM (SELECT ctid, pg_catalog.first_value(ctid) OVER same,
                            pg_catalog.row_number() OVER same
                       FROM ONLY {} WHERE {}
                     WINDOW same AS (PARTITION BY {} ORDER BY ctid)) AS r (second, first, number)
              WHERE number > 1 ORDER BY second LIMIT 1",
            relation.qualified_name(),
            conditions.join(" AND "),
            keys.values.join(", ")
        );
        let settings = format!("{}; {WITHOUT_INDEXES}", means.settings());
        self.with_settings(&settings, |client| {
            let rows = client.query(&query, &[])?;
            Ok(rows
                .first()
                .and_then(|row| Some((parse_tid(row.get(0))?, parse_tid(row.get(1))?))))
        })
    }

    /// The key of a row, as `(a)=(1)`.
    fn key(&mut self, relation: &Relation, index: &Index, tid: Tid) -> Result<String> {
        let shown = self.keys(index)?.shown();
        let query = format!(
            "SELECT {shown} FROM ONLY {} WHERE ctid = '({},{})'",
            relation.qualified_name(),
            tid.block,
            tid.offset
        );
        Ok(self.client().query_one(&query, &[])?.get(0))
    }

    fn keys(&mut self, index: &Index) -> Result<Keys> {
        let row = self.client().query_one(
            "SELECT pg_catalog.array_agg(pg_catalog.pg_get_indexdef($1, n, true) ORDER BY n),
                    pg_catalog.array_agg(pg_catalog.format('(%s%s)',
                        pg_catalog.pg_get_indexdef($1, n, false),
                        (SELECT pg_catalog.format(' COLLATE %I.%I', s.nspname, c.collname)
                           FROM pg_catalog.pg_collation c
                           JOIN pg_catalog.pg_namespace s ON s.oid = c.collnamespace
                          WHERE c.oid = i.indcollation[n - 1])) ORDER BY n),
                    coalesce(pg_catalog.pg_get_expr(i.indpred, i.indrelid), 'true')
               FROM pg_catalog.pg_index i
              CROSS JOIN pg_catalog.generate_series(1, $2::pg_catalog.int4) AS g (n)
              WHERE i.indexrelid = $1
              GROUP BY i.indexrelid",
            &[&index.oid, &(index.key_count as i32)],
        )?;
        Ok(Keys {
            names: row.get(0),
            values: row.get(1),
            predicate: row.get(2),
        })
    }

    /// The first two rows, by TID and key, whose keys stand in the server's DETAIL, which is
    /// `Key (a)=(1) conflicts with key (a)=(1).`
    fn rows_with_keys(
        &mut self,
        relation: &Relation,
        index: &Index,
        detail: &str,
    ) -> Result<Vec<(String, String)>> {
        let keys = self.keys(index)?;
        let query = format!(
            "SELECT ctid::pg_catalog.text, key
                   FROM (SELECT ctid, {} AS key FROM ONLY {} WHERE {}) AS r
                  WHERE pg_catalog.starts_with($1, 'Key ' || key || ' conflicts with key ')
                     OR pg_catalog.right($1, pg_catalog.length(key) + 6) = ' key ' || key || '.'
                  ORDER BY ctid LIMIT 2",
            keys.shown(),
            relation.qualified_name(),
            keys.predicate
        );
        let rows = self.with_settings(WITHOUT_INDEXES, |client| {
            Ok(client.query(&query, &[&detail])?)
        })?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}
