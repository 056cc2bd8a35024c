//! TARGET of the command line: from options to an open [`Session`].

use std::path::{Path, PathBuf};

use super::conninfo::{ConnectOptions, Conninfo, Environment};
use super::owner::FileOwner;
use super::private::{self, PrivateServer};
use super::programs::Programs;
use super::session::{NewDatabase, Session};
use crate::catalog::quote_ident;
use crate::error::{Error, Result};
use crate::sys::credentials;

/// As whom a new cluster is made when root makes it.
const DEFAULT_OWNER: &str = "postgres";

/// TARGET's options as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// `-d -h -p -U`
    pub connect: ConnectOptions,
    /// `-D`: a stopped cluster, or where a new one is made.
    pub pgdata: Option<PathBuf>,
    /// `--create-cluster`
    pub create_cluster: bool,
    /// `--database`
    pub database: Option<String>,
    /// `--owner`
    pub owner: Option<String>,
    /// `--pg-bin`
    pub pg_bin: Option<PathBuf>,
    /// Further options for initdb, as `--locale=C.UTF-8`.
    pub initdb_options: Vec<String>,
    /// Further settings for a private server, as `maintenance_work_mem=1GB`.
    pub settings: Vec<String>,
}

impl Target {
    /// Opens the target. A private server ends with the thread that calls this: call it on one
    /// that lives as long as the session.
    ///
    /// # Errors
    /// `42601` for options that contradict each other; what connecting, starting and initdb
    /// may run into.
    pub fn open(&self, env: Environment<'_>) -> Result<Session> {
        let Some(pgdata) = &self.pgdata else {
            if self.create_cluster {
                return Err(Error::usage("--create-cluster needs -D"));
            }
            let mut connect = self.connect.clone();
            if let Some(database) = &self.database {
                if connect.dbname.is_some() {
                    return Err(Error::usage("--database and -d both name a database"));
                }
                connect.dbname = Some(database.clone());
            }
            return Session::connect(Conninfo::resolve(&connect, env)?);
        };
        if self.connect.dbname.is_some()
            || self.connect.host.is_some()
            || self.connect.port.is_some()
        {
            return Err(Error::usage(
                "-D names a stopped cluster; -d, -h and -p name a running server: give one",
            ));
        }
        let pgdata = std::path::absolute(pgdata)
            .map_err(|e| Error::io("find directory", pgdata.as_path(), &e))?;
        if self.create_cluster {
            self.open_new(&pgdata, env)
        } else {
            self.open_stopped(&pgdata, env)
        }
    }

    /// Starts a server on a stopped cluster.
    fn open_stopped(&self, pgdata: &Path, env: Environment<'_>) -> Result<Session> {
        let version = private::cluster_version(pgdata)?;
        let owner = FileOwner::of_data_directory(pgdata)?;
        if let Some(name) = &self.owner
            && credentials::user_by_name(name)?.uid != owner.uid
        {
            return Err(Error::environment(
                "42501",
                format!("\"{}\" does not belong to {name}", pgdata.display()),
            ));
        }
        refuse_root(owner, pgdata)?;
        private::refuse_running(pgdata)?;
        for signal in ["standby.signal", "recovery.signal"] {
            if pgdata.join(signal).exists() {
                return Err(Error::environment(
                    "25006",
                    format!("\"{}\" is a standby or awaits recovery", pgdata.display()),
                )
                .with_detail(format!("It contains \"{signal}\".")));
            }
        }
        let programs = Programs::find(self.pg_bin.as_deref(), Some(version))?;
        let user = self.superuser(owner, env)?;
        let database = self
            .database
            .clone()
            .or_else(|| env("PGDATABASE"))
            .unwrap_or_else(|| "postgres".into());
        let server = PrivateServer::start(&programs, pgdata, owner, &self.settings)?;
        let conninfo = server.conninfo(&user, &database);
        Session::over(conninfo, Some(server), None, None)
    }

    /// Makes a cluster, starts it without WAL for what the load creates, makes the database.
    fn open_new(&self, pgdata: &Path, env: Environment<'_>) -> Result<Session> {
        let me = credentials::effective_uid();
        let user = match (&self.owner, me) {
            (Some(name), _) => credentials::user_by_name(name)?,
            (None, 0) => credentials::user_by_name(DEFAULT_OWNER)?,
            (None, uid) => credentials::user_by_uid(uid).ok_or_else(|| {
                Error::environment("42704", format!("local user with ID {uid} does not exist"))
            })?,
        };
        if me != 0 && user.uid != me {
            return Err(Error::environment(
                "42501",
                format!("only root can make a cluster for {}", user.name),
            ));
        }
        let owner = FileOwner {
            uid: user.uid,
            gid: user.gid,
            mode: 0o600,
        };
        refuse_root(owner, pgdata)?;
        let programs = Programs::find(self.pg_bin.as_deref(), None)?;
        let superuser = self.superuser(owner, env)?;
        let created =
            private::create_cluster(&programs, pgdata, owner, &superuser, &self.initdb_options)?;
        let mut settings = vec![
            "wal_level=minimal".to_owned(),
            "max_wal_senders=0".to_owned(),
        ];
        settings.extend_from_slice(&self.settings);
        let server = PrivateServer::start(&programs, pgdata, owner, &settings)?;
        let mut conninfo = server.conninfo(&superuser, "postgres");
        let mut new_database = None;
        if let Some(name) = self.database.as_deref().filter(|n| *n != "postgres") {
            let temporary_name = format!("pgpagewrite_{}", std::process::id());
            check_database_name(name)?;
            let mut client = conninfo.connect()?;
            client.batch_execute(&format!("CREATE DATABASE {}", quote_ident(&temporary_name)))?;
            client.close()?;
            conninfo = conninfo.with_database(&temporary_name);
            new_database = Some(NewDatabase {
                temporary_name,
                name: name.to_owned(),
            });
        }
        Session::over(conninfo, Some(server), Some(created), new_database)
    }

    fn superuser(&self, owner: FileOwner, env: Environment<'_>) -> Result<String> {
        match self.connect.user.clone().or_else(|| env("PGUSER")) {
            Some(user) => Ok(user),
            None => owner.name(),
        }
    }
}

/// A name that could not be given after the load is refused before it.
fn check_database_name(name: &str) -> Result<()> {
    if name.starts_with("template") && matches!(&name[8..], "0" | "1") {
        return Err(Error::refused(
            "42P04",
            format!("database \"{name}\" already exists"),
        ));
    }
    if name.is_empty() || name.len() > 63 || name.contains(['\n', '\r', '\0']) {
        return Err(Error::usage(format!("invalid database name: \"{name}\"")));
    }
    Ok(())
}

fn refuse_root(owner: FileOwner, pgdata: &Path) -> Result<()> {
    if owner.uid != 0 {
        return Ok(());
    }
    Err(Error::environment(
        "42501",
        format!(
            "\"{}\" belongs to root, as whom no PostgreSQL server runs",
            pgdata.display()
        ),
    )
    .with_hint("Name the cluster's owner with --owner."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(target: &Target) -> String {
        match target.open(&|_| None) {
            Ok(_) => panic!("opened"),
            Err(e) => e.message,
        }
    }

    #[test]
    fn a_target_is_one_thing() {
        let mut target = Target {
            create_cluster: true,
            ..Target::default()
        };
        assert_eq!(refused(&target), "--create-cluster needs -D");
        target.pgdata = Some("/nonexistent".into());
        target.connect.host = Some("/tmp".into());
        assert_eq!(
            refused(&target),
            "-D names a stopped cluster; -d, -h and -p name a running server: give one"
        );
        target.connect.host = None;
        target.create_cluster = false;
        assert_eq!(
            refused(&target),
            "could not open file \"/nonexistent/PG_VERSION\": No such file or directory"
        );
    }
}
