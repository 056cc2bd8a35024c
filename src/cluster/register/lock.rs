//! Locks the tables, and those that they reference, and checks that the plan still holds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pgformat::ids::Oid;

use super::{Blocker, Event, Registration, TableToRegister};
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
        let locks = locks(&self.tables);
        self.lock(&locks)?;
        let names: Vec<String> = self
            .tables
            .iter()
            .map(|t| t.relation.qualified_name())
            .collect();
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

    /// Takes the locks in their order. An attempt that meets a lock gives all back before the
    /// next, so that nobody waits for us meanwhile.
    fn lock(&mut self, locks: &[TableLock]) -> Result<()> {
        let statements = lock_statements(locks);
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
                 {statements};
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
            let (blocked, blockers) = self.blocked(locks)?.unwrap_or_default();
            let waited = begin.elapsed();
            (self.options.progress)(&Event::Waiting {
                table: &locks[blocked].qualified_name,
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
                        locks[blocked].name,
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

    /// The first table, in the order of locking, that somebody else holds a conflicting lock on,
    /// and who does.
    fn blocked(&mut self, locks: &[TableLock]) -> Result<Option<(usize, Vec<Blocker>)>> {
        let oids: Vec<Oid> = locks.iter().map(|lock| lock.oid).collect();
        let exclusive: Vec<bool> = locks.iter().map(|lock| lock.exclusive).collect();
        let rows = self.client().query(
            "SELECT l.relation, coalesce(l.pid, 0), coalesce(a.usename::text, ''),
                    coalesce(a.application_name, ''),
                    coalesce(a.state || ': ' || pg_catalog.left(a.query, 60), '')
               FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]),
                               pg_catalog.unnest($2::pg_catalog.bool[])) AS t (oid, exclusive)
               JOIN pg_catalog.pg_locks l ON l.relation = t.oid
               LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
              WHERE l.locktype = 'relation' AND l.granted
                AND (t.exclusive OR l.mode NOT IN ('AccessShareLock', 'RowShareLock'))
                AND l.database = (SELECT oid FROM pg_catalog.pg_database
                                   WHERE datname = pg_catalog.current_database())
                AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
              GROUP BY 1, 2, 3, 4, 5
              ORDER BY 1, 2",
            &[&oids, &exclusive],
        )?;
        let Some(first) = rows.first().map(|row| row.get::<_, Oid>(0)) else {
            return Ok(None);
        };
        let number = oids.binary_search(&first).unwrap_or_default();
        let blockers = rows
            .iter()
            .take_while(|row| row.get::<_, Oid>(0) == first)
            .map(|row| Blocker {
                pid: row.get(1),
                user: row.get(2),
                application: row.get(3),
                activity: row.get(4),
            })
            .collect();
        Ok(Some((number, blockers)))
    }
}

/// A lock that the registration takes on a table.
struct TableLock {
    oid: Oid,
    /// Unqualified, for messages.
    name: String,
    qualified_name: String,
    /// ACCESS EXCLUSIVE, of a table that is loaded. Else SHARE ROW EXCLUSIVE, as ALTER TABLE ADD
    /// FOREIGN KEY takes it on the referenced table: reading goes on, no row goes.
    exclusive: bool,
    /// With its partitions.
    partitioned: bool,
}

/// All locks, in the order of OIDs: two runs of this program never wait for each other.
fn locks(tables: &[TableToRegister]) -> Vec<TableLock> {
    let mut locks: BTreeMap<Oid, TableLock> = tables
        .iter()
        .flat_map(TableToRegister::referenced)
        .map(|referenced| {
            let lock = TableLock {
                oid: referenced.oid,
                name: referenced.name.clone(),
                qualified_name: referenced.qualified_name.clone(),
                exclusive: false,
                partitioned: false,
            };
            (lock.oid, lock)
        })
        .collect();
    locks.extend(tables.iter().map(|table| {
        let lock = TableLock {
            oid: table.relation.oid,
            name: table.relation.name.clone(),
            qualified_name: table.relation.qualified_name(),
            exclusive: true,
            partitioned: table.relation.kind == 'p',
        };
        (lock.oid, lock)
    }));
    locks.into_values().collect()
}

/// As few LOCK statements as the order allows.
fn lock_statements(locks: &[TableLock]) -> String {
    let statements: Vec<String> = locks
        .chunk_by(|a, b| a.exclusive == b.exclusive)
        .map(|alike| {
            let names: Vec<String> = alike
                .iter()
                .map(|lock| {
                    if lock.partitioned {
                        lock.qualified_name.clone()
                    } else {
                        format!("ONLY {}", lock.qualified_name)
                    }
                })
                .collect();
            let mode = if alike[0].exclusive {
                "ACCESS EXCLUSIVE"
            } else {
                "SHARE ROW EXCLUSIVE"
            };
            format!("LOCK TABLE {} IN {mode} MODE", names.join(", "))
        })
        .collect();
    statements.join("; ")
}
