//! Locks the tables and checks that the plan still holds.

use std::time::{Duration, Instant};

use pgformat::ids::Oid;

use super::{Blocker, Event, Registration};
use crate::catalog::{Relation, read};
use crate::error::{Class, Error, Result};

/// How long one attempt stands in the lock's queue, before who blocks it is told. Everybody
/// who comes later waits behind us meanwhile.
const ATTEMPT: Duration = Duration::from_secs(1);

impl Registration<'_> {
    /// Locks every table, then compares what the catalogs say now with the plan.
    pub(super) fn lock_all(&mut self) -> Result<()> {
        self.step("lock");
        if self.tables.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self
            .tables
            .iter()
            .map(|t| t.relation.qualified_name())
            .collect();
        self.lock(&names)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let oids = read::resolve(self.client(), &names)?;
        let changed = |relation: &Relation, what: String| {
            Error::refused(
                "55000",
                format!("table \"{}\" changed since the plan", relation.name),
            )
            .with_detail(format!("{what}."))
            .with_hint("Nothing was loaded. Run the command again.")
        };
        for (table, oid) in self.tables.iter().zip(&oids) {
            if table.relation.oid != *oid {
                return Err(changed(
                    &table.relation,
                    "it was dropped and made anew".into(),
                ));
            }
        }
        let now = read::relations(self.client(), &oids, false)?;
        for (table, now) in self.tables.iter().zip(&now) {
            if let Some(difference) = table.relation.difference(now) {
                return Err(changed(&table.relation, difference));
            }
        }
        Ok(())
    }

    /// Locks the tables that were taken, with these names, all in one statement. An attempt that
    /// meets a lock gives all back before the next, so that nobody waits for us meanwhile.
    fn lock(&mut self, names: &[String]) -> Result<()> {
        let list: Vec<String> = names.iter().map(|name| format!("ONLY {name}")).collect();
        let list = list.join(", ");
        let begin = Instant::now();
        loop {
            let left = self.options.lock_wait.saturating_sub(begin.elapsed());
            // A limit of 0 would be none at all.
            let attempt_ms = left.min(ATTEMPT).as_millis().max(1);
            // Many short waits must not add up beyond the limit. A wait for one lock ends first.
            let statement_ms = (left + ATTEMPT).as_millis();
            let locked = self.client().batch_execute(&format!(
                "SAVEPOINT pgpagewrite_lock;
                 SET LOCAL lock_timeout = '{attempt_ms}ms';
                 SET LOCAL statement_timeout = '{statement_ms}ms';
                 LOCK TABLE {list} IN ACCESS EXCLUSIVE MODE;
                 RELEASE SAVEPOINT pgpagewrite_lock"
            ));
            let Err(error) = locked else {
                return self.settings();
            };
            let error = Error::from(error);
            let too_long = error.sqlstate == "57014" && begin.elapsed() >= self.options.lock_wait;
            if error.sqlstate != "55P03" && !too_long {
                return Err(error);
            }
            self.client()
                .batch_execute("ROLLBACK TO SAVEPOINT pgpagewrite_lock")?;
            // Whoever held us up may be gone by now; the first table stands for all then.
            let (blocked, blockers) = self.blocked()?.unwrap_or_default();
            let waited = begin.elapsed();
            (self.options.progress)(&Event::Waiting {
                table: &names[blocked],
                blockers: &blockers,
                waited,
            });
            if waited >= self.options.lock_wait {
                let who: Vec<String> = blockers.iter().map(Blocker::to_string).collect();
                let mut error = Error::new(
                    Class::Refused,
                    "55P03",
                    format!(
                        "could not obtain lock on relation \"{}\" within {} s",
                        self.tables[blocked].relation.name,
                        self.options.lock_wait.as_secs()
                    ),
                )
                .with_hint("Nothing was loaded. End the other sessions, or run the command later.");
                if !who.is_empty() {
                    error = error.with_detail(format!("It is held by {}.", who.join("; ")));
                }
                return Err(error);
            }
        }
    }

    /// The first table, in the order of locking, that somebody else holds a lock on, and who
    /// does. Any lock conflicts with ours.
    fn blocked(&mut self) -> Result<Option<(usize, Vec<Blocker>)>> {
        let oids: Vec<Oid> = self.tables.iter().map(|t| t.relation.oid).collect();
        let first: Option<Oid> = self
            .client()
            .query_one(
                "SELECT min(l.relation)
                   FROM pg_catalog.pg_locks l
                  WHERE l.locktype = 'relation' AND l.relation = ANY ($1) AND l.granted
                    AND l.database = (SELECT oid FROM pg_catalog.pg_database
                                       WHERE datname = pg_catalog.current_database())
                    AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()",
                &[&oids],
            )?
            .get(0);
        let Some(first) = first else { return Ok(None) };
        // The tables stand in the order of their OIDs.
        let number = oids.binary_search(&first).unwrap_or_default();
        Ok(Some((number, self.blockers(first)?)))
    }

    /// Whoever holds any lock on the table holds one that conflicts with ours.
    fn blockers(&mut self, table: Oid) -> Result<Vec<Blocker>> {
        let rows = self.client().query(
            "SELECT DISTINCT coalesce(l.pid, 0), coalesce(a.usename::text, ''),
                    coalesce(a.application_name, ''),
                    coalesce(a.state || ': ' || pg_catalog.left(a.query, 60), '')
               FROM pg_catalog.pg_locks l
               LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
              WHERE l.locktype = 'relation' AND l.relation = $1 AND l.granted
                AND l.database = (SELECT oid FROM pg_catalog.pg_database
                                   WHERE datname = pg_catalog.current_database())
                AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
              ORDER BY 1",
            &[&table],
        )?;
        Ok(rows
            .iter()
            .map(|row| Blocker {
                pid: row.get(0),
                user: row.get(1),
                application: row.get(2),
                activity: row.get(3),
            })
            .collect())
    }
}
