//! An open target: a connection, the facts, and the private server under it if there is one.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use pgformat::ids::Oid;
use postgres::Client;

use super::conninfo::Conninfo;
use super::facts::Facts;
use super::oids;
use super::private::{CreatedCluster, PrivateServer};
use super::recover::{self, Recovered};
use super::script;
use crate::catalog::read::scratch;
use crate::catalog::{Relation, quote_ident, read};
use crate::error::{Error, Result};

/// How long a lock is waited for unless the user says.
const DEFAULT_LOCK_WAIT: Duration = Duration::from_secs(60);

/// A new database has another name until it is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewDatabase {
    pub(super) temporary_name: String,
    pub(super) name: String,
}

/// An open target. Dropped without [`Session::finish`] it undoes what opening made: a private
/// server is stopped, a new cluster is removed.
pub struct Session {
    // The order of the fields is the order of their ends.
    client: Client,
    /// What the server is.
    pub facts: Facts,
    /// How long the plan waits for a lock that another session holds.
    pub lock_wait: Duration,
    /// What an earlier run that died had left, and what was done about it.
    pub recovered: Recovered,
    /// It is in the transaction of [`super::register::begin_values`].
    pub(super) gives_values: bool,
    conninfo: Conninfo,
    new_database: Option<NewDatabase>,
    server: Option<PrivateServer>,
    created: Option<CreatedCluster>,
    /// When the last checkpoint that was asked for began.
    checkpointed: Option<Instant>,
}

/// How many tables one ANALYZE gathers statistics of.
const TABLES_PER_ANALYZE: usize = 100;

/// How long after a checkpoint the next one still counts as short.
const CHECKPOINT_IS_FRESH: Duration = Duration::from_secs(10);

impl Session {
    /// Connects to a server, reads its facts, and cleans up after an earlier run that died.
    ///
    /// # Errors
    /// Those of connecting, of [`Facts::read`], of [`recover::pending`].
    pub fn connect(conninfo: Conninfo) -> Result<Session> {
        Session::over(conninfo, None, None, None)
    }

    pub(super) fn over(
        conninfo: Conninfo,
        server: Option<PrivateServer>,
        created: Option<CreatedCluster>,
        new_database: Option<NewDatabase>,
    ) -> Result<Session> {
        let mut client = conninfo.connect()?;
        let facts = Facts::read(&mut client)?;
        let mut session = Session {
            client,
            facts,
            lock_wait: DEFAULT_LOCK_WAIT,
            recovered: Recovered::default(),
            gives_values: false,
            conninfo,
            new_database,
            server,
            created,
            checkpointed: None,
        };
        session.recovered = recover::pending(&mut session)?;
        Ok(session)
    }

    /// The connection.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Has the server write out what is dirty, so that the checkpoint that a registration needs
    /// while it holds its locks is short.
    pub fn checkpoint(&mut self) -> Result<()> {
        let begun = Instant::now();
        self.client.batch_execute("CHECKPOINT")?;
        self.checkpointed = Some(begun);
        Ok(())
    }

    /// Whether [`Session::checkpoint`] did so moments ago.
    pub fn has_fresh_checkpoint(&self) -> bool {
        self.checkpointed
            .is_some_and(|begun| begun.elapsed() < CHECKPOINT_IS_FRESH)
    }

    /// How the connection was made.
    pub fn conninfo(&self) -> &Conninfo {
        &self.conninfo
    }

    /// The server is ours alone.
    pub fn is_private(&self) -> bool {
        self.server.is_some()
    }

    /// The private server's process id.
    pub fn private_pid(&self) -> Option<u32> {
        self.server.as_ref().and_then(PrivateServer::pid)
    }

    /// Connects anew after the connection was lost, for as long as `patience`: a server that
    /// crashed is in recovery for a while.
    ///
    /// # Errors
    /// The last error of connecting.
    pub fn reconnect(&mut self, patience: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            match self.conninfo.connect() {
                Ok(client) => {
                    self.client = client;
                    return Ok(());
                }
                Err(e) if begin.elapsed() >= patience => return Err(e),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// Leaves its database for another one of the same server, as `\\connect` does.
    ///
    /// # Errors
    /// Those of connecting and of [`Facts::read`]; the session is then where it was.
    pub fn go_to(&mut self, database: &str) -> Result<()> {
        if database == self.conninfo.database() {
            return Ok(());
        }
        let conninfo = self.conninfo.with_database(database);
        let mut client = conninfo.connect()?;
        self.facts = Facts::read(&mut client)?;
        self.client = client;
        self.conninfo = conninfo;
        Ok(())
    }

    /// Reads the tables with these names (as written in SQL) in one transaction, asks the
    /// server how it makes their indexes, and refuses what cannot be loaded at all.
    ///
    /// # Errors
    /// Those of [`read::relation`] and [`read::refuse_unsupported`]; `42701` for a table that
    /// is named twice; `53200` when the server has too few locks.
    pub fn plan_tables(&mut self, names: &[&str]) -> Result<Vec<Relation>> {
        self.client.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
             {}",
            lock_timeout(self.lock_wait)
        ))?;
        let planned = plan_tables(&mut self.client, &self.facts, names, true);
        let ended = self.client.batch_execute("ROLLBACK");
        let planned = planned?;
        ended?;
        Ok(planned)
    }

    /// Plans tables as a load with this schema script (its SQL and its name) would, and looks at
    /// more of what is there then, in one transaction that is rolled back.
    ///
    /// # Errors
    /// Those of [`script::run`] and [`Session::plan_tables`], and what `look` finds.
    pub fn rehearse<T>(
        &mut self,
        script: Option<&(String, String)>,
        names: &[&str],
        look: impl FnOnce(&mut Client, Vec<Relation>) -> Result<T>,
    ) -> Result<T> {
        self.client.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
             SET LOCAL statement_timeout = 0;
             SET LOCAL idle_in_transaction_session_timeout = 0;
             {}",
            lock_timeout(self.lock_wait)
        ))?;
        let (client, facts) = (&mut self.client, &self.facts);
        let rehearsed = || {
            if let Some((sql, file)) = script {
                script::run(client, sql, file)?;
                client.batch_execute("RESET SESSION AUTHORIZATION; RESET ROLE")?;
            }
            let planned = plan_tables(client, facts, names, true)?;
            look(client, planned)
        };
        let result = rehearsed();
        let ended = self.client.batch_execute("ROLLBACK");
        let result = result?;
        ended?;
        Ok(result)
    }

    /// The first of `count` consecutive TOAST value ids; see [`oids::toast_value_ids`].
    pub fn toast_value_ids(&mut self, count: u64) -> Result<Oid> {
        oids::toast_value_ids(&mut self.client, count)
    }

    /// The names of tables as in SQL, of those that are still there: SQL behind a load may have moved or
    /// dropped some.
    ///
    /// # Errors
    /// The server's.
    pub fn names_of(&mut self, tables: &[Oid]) -> Result<Vec<String>> {
        let names = "SELECT pg_catalog.format('%I.%I', s.nspname, c.relname)
                       FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY AS n(oid, number)
                            JOIN pg_catalog.pg_class c ON c.oid = n.oid
                            JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
                      ORDER BY n.number";
        let rows = self.client.query(names, &[&tables])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Gathers the planner's statistics of tables, by their names as in SQL.
    ///
    /// Each table is a transaction of its own, whose COMMIT does not wait for the disk: statistics
    /// that a crash takes can be gathered again.
    ///
    /// # Errors
    /// The server's.
    pub fn analyze(&mut self, tables: &[String]) -> Result<()> {
        self.client.batch_execute("SET synchronous_commit = off")?;
        let analyzed = tables.chunks(TABLES_PER_ANALYZE).try_for_each(|some| {
            self.client
                .batch_execute(&format!("ANALYZE {}", some.join(", ")))
        });
        let reset = self.client.batch_execute("RESET synchronous_commit");
        Ok(analyzed.and(reset)?)
    }

    /// Ends the session well: a new database takes its name, a private server stops, a new
    /// cluster stays.
    pub fn finish(self) -> Result<()> {
        let Session {
            client,
            conninfo,
            new_database,
            server,
            created,
            ..
        } = self;
        client.close()?;
        if let Some(new) = new_database {
            let mut client = conninfo.with_database("postgres").connect()?;
            client.batch_execute(&format!(
                "ALTER DATABASE {} RENAME TO {}",
                quote_ident(&new.temporary_name),
                quote_ident(&new.name)
            ))?;
            client.close()?;
        }
        if let Some(server) = server {
            server.stop()?;
        }
        if let Some(created) = created {
            created.keep();
        }
        Ok(())
    }
}

/// SQL that limits how long a transaction waits for a lock.
pub(super) fn lock_timeout(wait: Duration) -> String {
    let ms = wait.as_millis().clamp(1, i32::MAX as u128);
    format!("SET LOCAL lock_timeout = {ms};")
}

/// Plans tables inside an open transaction. `with_size` opens the tables' files in the server.
pub(super) fn plan_tables(
    client: &mut Client,
    facts: &Facts,
    names: &[&str],
    with_size: bool,
) -> Result<Vec<Relation>> {
    let oids = read::resolve(client, names)?;
    let mut seen = HashSet::new();
    if let Some(twice) = oids.iter().find(|oid| !seen.insert(**oid)) {
        let relation = read::relations(client, &[*twice], false)?.remove(0);
        return Err(Error::usage(format!(
            "table \"{}\" is named more than once",
            relation.name
        )));
    }
    let mut planned = read::relations(client, &oids, with_size)?;
    planned.iter().try_for_each(read::refuse_unsupported)?;
    scratch::fill_allequalimage(client, &facts.data_directory, &mut planned)?;
    for table in planned.iter_mut().filter(|t| t.kind == 'p') {
        let mut tree = read::partition_tree(client, table.oid, with_size)?;
        // Nobody knows yet which of them rows go to. The server's COPY locks fewer.
        if facts.check_lock_capacity(lock_count(&tree.leaves)).is_ok() {
            scratch::fill_allequalimage(client, &facts.data_directory, &mut tree.leaves)?;
            table.partitions = Some(Box::new(tree));
        }
    }
    facts.check_lock_capacity(lock_count(&planned))?;
    Ok(planned)
}

/// How many relations a load of these tables locks.
fn lock_count(tables: &[Relation]) -> usize {
    tables
        .iter()
        .map(|t| 1 + t.indexes.len() + if t.toast.is_some() { 2 } else { 0 })
        .sum()
}
