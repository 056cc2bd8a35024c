//! Cleans up after a run that died: `recover`, and the beginning of every other run.
//!
//! A journal tells which transaction renamed which files. Committed: nothing to do but forget
//! it. Aborted: the files that no pg_class row names are removed, after a checkpoint. In
//! doubt, or still running: nothing is touched. Staging directories clean themselves when the
//! server starts; those of a process that is no more are removed here.

use std::path::Path;

use postgres::Client;
use std::fmt;

use super::conninfo::{Conninfo, Environment};
use super::journal::{Journal, JournalFile, JournalOnDisk};
use super::owner::FileOwner;
use super::private::PostmasterFile;
use super::session::Session;
use super::staging;
use super::target::Target;
use crate::error::{Error, Result};

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is committed.
    Committed,
    /// It is aborted.
    Aborted,
    /// It still runs, or the server no longer knows.
    InDoubt,
}

/// What recovery found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Transactions of journals that were committed.
    pub committed: Vec<u64>,
    /// Transactions of journals that were aborted.
    pub aborted: Vec<u64>,
    /// Transactions that were left alone.
    pub in_doubt: Vec<u64>,
    /// Files removed.
    pub files_removed: usize,
    /// Staging directories removed.
    pub staging_removed: usize,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} loads were committed, {} were undone, {} are in doubt; {} files and {} staging \
             directories removed",
            self.committed.len(),
            self.aborted.len(),
            self.in_doubt.len(),
            self.files_removed,
            self.staging_removed
        )
    }
}

/// Asks the server what became of a transaction.
///
/// # Errors
/// Those of the connection.
pub fn outcome(client: &mut Client, xid: u64) -> Result<Outcome> {
    let text = xid.to_string();
    let answer = client.query_one(
        "SELECT pg_catalog.pg_xact_status($1::pg_catalog.text::pg_catalog.xid8)",
        &[&text],
    );
    match answer {
        Ok(row) => Ok(match row.get::<_, Option<&str>>(0) {
            Some("committed") => Outcome::Committed,
            Some("aborted") => Outcome::Aborted,
            _ => Outcome::InDoubt,
        }),
        // "transaction ID is in the future": not a transaction of this history.
        Err(e) if e.code().is_some_and(|c| c.code() == "22023") => Ok(Outcome::InDoubt),
        Err(e) => Err(e.into()),
    }
}

/// Looks after the journals and stale staging directories of the session's cluster.
///
/// # Errors
/// Those of the server and the file system. A journal in doubt is no error.
pub fn pending(session: &mut Session) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    let (data_directory, owner) = (session.facts.data_directory.clone(), session.facts.owner);
    for (journal, on_disk) in Journal::list(&data_directory, owner)? {
        if journal.system_identifier != session.facts.system_identifier {
            // A copy of another cluster's directory: its transactions are not ours.
            recovered.in_doubt.push(journal.xid);
            continue;
        }
        let xid = journal.xid;
        match outcome(session.client(), xid)? {
            Outcome::Committed => {
                on_disk.remove()?;
                recovered.committed.push(xid);
            }
            Outcome::Aborted => match undo(session, &journal, on_disk)? {
                Some(removed) => {
                    recovered.files_removed += removed;
                    recovered.aborted.push(xid);
                }
                None => recovered.in_doubt.push(xid),
            },
            Outcome::InDoubt => recovered.in_doubt.push(xid),
        }
    }
    recovered.staging_removed = remove_stale_staging(&data_directory, owner);
    Ok(recovered)
}

/// Removes what an aborted transaction left; `None` when its database cannot be asked.
pub(super) fn undo(
    session: &mut Session,
    journal: &Journal,
    on_disk: JournalOnDisk,
) -> Result<Option<usize>> {
    session.client().batch_execute("CHECKPOINT")?;
    let mut other: Option<Client> = None;
    if journal.database != session.facts.database {
        let row = session.client().query_opt(
            "SELECT datname::text, datallowconn FROM pg_catalog.pg_database WHERE oid = $1",
            &[&journal.database],
        )?;
        match row {
            // The database is gone, and its directory with it.
            None => {
                on_disk.remove()?;
                return Ok(Some(0));
            }
            Some(row) if !row.get::<_, bool>(1) => return Ok(None),
            Some(row) => {
                let conninfo: Conninfo = session.conninfo().with_database(row.get(0));
                other = Some(conninfo.connect()?);
            }
        }
    }
    let client = other.as_mut().unwrap_or(session.client());
    let filenodes: Vec<u32> = journal.files.iter().map(|f| f.filenode).collect();
    let named: Vec<u32> = client
        .query(
            "SELECT relfilenode FROM pg_catalog.pg_class WHERE relfilenode = ANY ($1)",
            &[&filenodes],
        )?
        .iter()
        .map(|row| row.get(0))
        .collect();
    // A row in any tablespace keeps the file: too careful by a little.
    let is_named = |file: &JournalFile| named.contains(&file.filenode);
    let (data_directory, owner) = (session.facts.data_directory.clone(), session.facts.owner);
    let removed = journal.remove_files(&data_directory, owner, is_named)?;
    on_disk.remove()?;
    Ok(Some(removed))
}

/// Removes staging directories whose process is no more, here and in every tablespace.
fn remove_stale_staging(data_directory: &Path, owner: FileOwner) -> usize {
    let root = glob::Pattern::escape(&data_directory.display().to_string());
    ["base/pgsql_tmp", "pg_tblspc/*/PG_*/pgsql_tmp"]
        .into_iter()
        .filter_map(|place| glob::glob(&format!("{root}/{place}/{}*", staging::PREFIX)).ok())
        .flatten()
        .flatten()
        .filter(|directory| {
            let name = directory.file_name().unwrap_or_default().to_string_lossy();
            let pid = name
                .strip_prefix(staging::PREFIX)
                .and_then(|p| p.parse::<u32>().ok());
            pid.is_some_and(|p| !Path::new(&format!("/proc/{p}")).exists())
        })
        .filter(|directory| owner.remove_directory(directory).is_ok())
        .count()
}

/// The command `recover -D DIR`: on a server that runs there, else on one started privately.
///
/// # Errors
/// Those of opening the target and of [`pending`].
pub fn run(target: &Target, env: Environment<'_>) -> Result<Recovered> {
    let Some(pgdata) = &target.pgdata else {
        return Err(Error::usage("recover needs -D"));
    };
    let running = PostmasterFile::read(pgdata).filter(|p| p.is_alive(pgdata));
    let mut session = match running {
        None => target.open(env)?,
        Some(server) => {
            let owner = FileOwner::of_data_directory(pgdata)?;
            let (Some(directory), Some(port)) = (server.socket_directory, server.port) else {
                return Err(Error::environment(
                    "08001",
                    format!(
                        "the server on \"{}\" has no Unix-domain socket",
                        pgdata.display()
                    ),
                ));
            };
            let user = match target.connect.user.clone().or_else(|| env("PGUSER")) {
                Some(user) => user,
                None => owner.name()?,
            };
            let database = target.database.as_deref().unwrap_or("postgres");
            Session::connect(Conninfo::for_socket(&directory, port, &user, database))?
        }
    };
    // Opening a session is what recovers.
    let recovered = std::mem::take(&mut session.recovered);
    session.finish()?;
    Ok(recovered)
}
