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
        let planned: Vec<Relation> = self.tables.iter().map(|t| t.relation.clone()).collect();
        for relation in &planned {
            self.lock(relation)?;
        }
        for relation in &planned {
            let changed = |what: String| {
                Error::refused(
                    "55000",
                    format!("table \"{}\" changed since the plan", relation.name),
                )
                .with_detail(format!("{what}."))
                .with_hint("Nothing was loaded. Run the command again.")
            };
            let oid = read::resolve(self.client(), &relation.qualified_name())?;
            if oid != relation.oid {
                return Err(changed("it was dropped and made anew".into()));
            }
            let now = read::relation_by_oid(self.client(), oid, false)?;
            if let Some(difference) = relation.difference(&now) {
                return Err(changed(difference));
            }
        }
        Ok(())
    }

    fn lock(&mut self, relation: &Relation) -> Result<()> {
        let name = relation.qualified_name();
        let begin = Instant::now();
        loop {
            let left = self.options.lock_wait.saturating_sub(begin.elapsed());
            // A limit of 0 would be none at all.
            let attempt_ms = left.min(ATTEMPT).as_millis().max(1);
            let locked = self.client().batch_execute(&format!(
                "SAVEPOINT pgpagewrite_lock;
                 SET LOCAL lock_timeout = '{attempt_ms}ms';
                 LOCK TABLE ONLY {name} IN ACCESS EXCLUSIVE MODE;
                 RELEASE SAVEPOINT pgpagewrite_lock"
            ));
            let Err(error) = locked else {
                return self.settings();
            };
            let error = Error::from(error);
            if error.sqlstate != "55P03" {
                return Err(error);
            }
            self.client()
                .batch_execute("ROLLBACK TO SAVEPOINT pgpagewrite_lock")?;
            let blockers = self.blockers(relation.oid)?;
            let waited = begin.elapsed();
            (self.options.progress)(&Event::Waiting {
                table: &name,
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
                        relation.name,
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
