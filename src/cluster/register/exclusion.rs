//! Exclusion constraints: the server builds their indexes, and checks every row as it does.
//!
//! PostgreSQL: `src/backend/catalog/index.c`, `IndexCheckExclusion`.

use super::check::{Violation, parse_tid};
use super::{Registration, reindex_statement};
use crate::catalog::{Index, Relation};
use crate::error::{Error, Result};

const EXCLUSION_VIOLATION: &str = "23P01";

impl Registration<'_> {
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
        self.client().batch_execute("SAVEPOINT pgpagewrite_check")?;
        let Err(error) = self.client().batch_execute(&reindex_statement(index)) else {
            self.client()
                .batch_execute("RELEASE SAVEPOINT pgpagewrite_check")?;
            self.open_indexes.retain(|(oid, _)| *oid != index.oid);
            return Ok(None);
        };
        let error = Error::from(error);
        if error.sqlstate != EXCLUSION_VIOLATION {
            return Err(error);
        }
        self.client().batch_execute(
            "ROLLBACK TO SAVEPOINT pgpagewrite_check; RELEASE SAVEPOINT pgpagewrite_check",
        )?;
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
            return Ok(Some(Violation {
                tid: None,
                error: told,
            }));
        };
        Ok(Some(Violation {
            tid: parse_tid(tid),
            error: told.with_detail(format!(
                "Key {later} conflicts with existing key {earlier}."
            )),
        }))
    }

    /// The first two rows, by TID and key, whose keys stand in the server's DETAIL, which is
    /// `Key (a)=(1) conflicts with key (a)=(1).`
    fn rows_with_keys(
        &mut self,
        relation: &Relation,
        index: &Index,
        detail: &str,
    ) -> Result<Vec<(String, String)>> {
        let keys: Vec<String> = self
            .client()
            .query_one(
                "SELECT pg_catalog.array_agg(pg_catalog.pg_get_indexdef($1, n, false) ORDER BY n)
                   FROM pg_catalog.generate_series(1, $2::pg_catalog.int4) AS g (n)",
                &[&index.oid, &(index.key_count as i32)],
            )?
            .get(0);
        let outputs: Vec<String> = keys
            .iter()
            .map(|key| format!("coalesce(pg_catalog.format('%s', {key}), 'null')"))
            .collect();
        let rows = self.client().query(
            &format!(
                "SELECT ctid::pg_catalog.text, key
                   FROM (SELECT ctid, $1 || '=(' || {} || ')' AS key FROM ONLY {}) AS r
                  WHERE pg_catalog.starts_with($2, 'Key ' || key || ' conflicts with key ')
                     OR pg_catalog.right($2, pg_catalog.length(key) + 6) = ' key ' || key || '.'
                  ORDER BY ctid LIMIT 2",
                outputs.join(" || ', ' || "),
                relation.qualified_name()
            ),
            &[&format!("({})", keys.join(", ")), &detail],
        )?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}
