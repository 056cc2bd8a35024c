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

    /// Reads the tables with these names (as written in SQL) in one transaction, asks the
    /// server how it makes their indexes, and refuses what cannot be loaded at all.
    ///
    /// # Errors
    /// Those of [`read::relation`] and [`read::refuse_unsupported`]; `42701` for a table that
    /// is named twice; `53200` when the server has too few locks.
    pub fn plan_tables(&mut self, names: &[&str]) -> Result<Vec<Relation>> {
        self.client.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
             SET LOCAL lock_timeout = {}",
            self.lock_wait.as_millis().clamp(1, i32::MAX as u128)
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
             SET LOCAL lock_timeout = {}",
            self.lock_wait.as_millis().clamp(1, i32::MAX as u128)
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

    /// Gathers the planner's statistics of tables that were just loaded.
    pub fn analyze<'a>(&mut self, tables: impl IntoIterator<Item = &'a Relation>) -> Result<()> {
        for table in tables {
            self.client
                .batch_execute(&format!("ANALYZE {}", table.qualified_name()))?;
        }
        Ok(())
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
