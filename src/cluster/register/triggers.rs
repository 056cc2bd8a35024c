//! Keeps triggers on INSERT from firing while the server's COPY loads a table, for
//! `--skip-triggers`.
//!
//! They are disabled in the transaction and enabled again before COMMIT, each as it was, so that
//! nobody else sees a change. The role of a replica would silence the triggers of foreign keys
//! too.

use pgformat::ids::Oid;
use postgres::Row;

use super::Registration;
use crate::catalog::{Relation, TRIGGER_TYPE_INSERT, quote_ident};
use crate::error::Result;

/// The triggers on INSERT of a table and its partitions that are enabled in some way.
const TRIGGERS: &str = "
SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), t.tgname::text, t.tgenabled::text
  FROM pg_catalog.pg_trigger t
  JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE (t.tgrelid = $1
        OR t.tgrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree($1::oid::regclass)))
   AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype::pg_catalog.int4 & $2 <> 0
 ORDER BY t.tgrelid, t.tgname";

impl Registration<'_> {
    /// Has the triggers on INSERT of a table that COPY will load not fire in this transaction.
    ///
    /// # Errors
    /// The server's.
    pub fn silence_triggers(&mut self, relation: &Relation) -> Result<()> {
        if relation.features.insert_triggers.is_empty() {
            return Ok(());
        }
        let oid: Oid = relation.oid;
        let rows = self
            .client()
            .query(TRIGGERS, &[&oid, &TRIGGER_TYPE_INSERT])?;
        let alter = |row: &Row, what: &str| {
            let (table, trigger): (&str, &str) = (row.get(0), row.get(1));
            format!(
                "ALTER TABLE ONLY {table} {what} TRIGGER {}",
                quote_ident(trigger)
            )
        };
        let disable: Vec<String> = rows.iter().map(|row| alter(row, "DISABLE")).collect();
        self.client().batch_execute(&disable.join("; "))?;
        self.silenced.extend(rows.iter().map(|row| {
            let enable = match row.get(2) {
                "A" => "ENABLE ALWAYS",
                "R" => "ENABLE REPLICA",
                _ => "ENABLE",
            };
            alter(row, enable)
        }));
        Ok(())
    }

    /// Enables what [`Registration::silence_triggers`] disabled, at the transaction's end.
    ///
    /// # Errors
    /// The server's, also those of deferred constraints: a table with checks still to be made
    /// cannot be altered.
    pub(super) fn wake_triggers(&mut self) -> Result<()> {
        let statements = std::mem::take(&mut self.silenced);
        if statements.is_empty() {
            return Ok(());
        }
        self.client().batch_execute(&format!(
            "SET CONSTRAINTS ALL IMMEDIATE; {}",
            statements.join("; ")
        ))?;
        Ok(())
    }
}
