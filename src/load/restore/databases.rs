//! Databases that a restore makes.

use super::command::{Command, CommandOrigin};
use super::options::RestoreOptions;
use super::select::{Selected, is_acl};
use crate::catalog::quote_ident;
use crate::cluster::session::Session;
use crate::error::{Error, Place, Result};
use crate::source::dump::archive::{Archive, Entry};
use std::fmt::Write;

/// The database of an archive, for `-C`.
pub struct Database {
    name: String,
    /// CREATE DATABASE, as the archive has it.
    definition: String,
    /// ALTER DATABASE, COMMENT, GRANT and the like, which name it.
    properties: Vec<String>,
    owner: Option<String>,
}

/// Whether an entry makes the database itself, or what belongs to its name.
pub fn is_of_database(entry: &Entry) -> bool {
    let about = is_acl(entry) || matches!(entry.desc.as_str(), "COMMENT" | "SECURITY LABEL");
    matches!(entry.desc.as_str(), "DATABASE" | "DATABASE PROPERTIES")
        || (about && entry.tag.starts_with("DATABASE "))
}

/// A database that was made under another name.
pub struct Created {
    database: Database,
    temporary_name: String,
    session: Option<Session>,
}

impl Database {
    /// Of an archive's entries.
    ///
    /// # Errors
    /// 22023 when the archive does not have its database.
    pub fn of_archive(
        archive: &Archive,
        selected: &[Selected<'_>],
        options: &RestoreOptions,
    ) -> Result<Database> {
        let entries = selected.iter().map(|s| s.entry);
        let properties = entries
            .clone()
            .filter(|e| is_of_database(e) && e.desc != "DATABASE")
            .map(|e| e.definition.clone())
            .collect();
        let Some(entry) = entries.clone().find(|e| e.desc == "DATABASE") else {
            return Err(Error::refused(
                "22023",
                format!("\"{}\" has no database to make", archive.label_of_file()),
            ));
        };
        let owner = (!options.no_owner && !entry.owner.is_empty()).then(|| entry.owner.clone());
        Ok(Database {
            name: entry.tag.clone(),
            definition: entry.definition.clone(),
            properties,
            owner,
        })
    }

    /// Makes it, empty, under a name of its own until it is complete.
    ///
    /// # Errors
    /// 42P04 when there is one of that name, unless it is to be dropped.
    pub fn create(self, session: &mut Session, options: &RestoreOptions) -> Result<Created> {
        let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)";
        let is_there: bool = session.client().query_one(there, &[&self.name])?.get(0);
        if is_there && !options.clean {
            return Err(Error::refused(
                "42P04",
                format!("database \"{}\" already exists", self.name),
            )
            .with_hint("--clean drops it when the new one is complete."));
        }
        if !is_there && options.clean && !options.if_exists {
            return Err(Error::refused(
                "3D000",
                format!("database \"{}\" does not exist", self.name),
            )
            .with_hint("--if-exists goes on."));
        }
        let temporary_name = format!("pgpagewrite_{}", std::process::id());
        // CREATE DATABASE name WITH ...: the name is all that differs.
        let quoted = quote_ident(&self.name);
        let rest = self.definition.strip_prefix("CREATE DATABASE ");
        let rest = rest.and_then(|rest| {
            rest.strip_prefix(quoted.as_str())
                .or_else(|| rest.strip_prefix(self.name.as_str()))
        });
        let Some(rest) = rest else {
            return Err(Error::refused(
                "22P04",
                format!("\"{}\" is not understood", self.definition.trim()),
            ));
        };
        let sql = format!("CREATE DATABASE {}{rest}", quote_ident(&temporary_name));
        session.client().batch_execute(&sql)?;
        Ok(Created {
            database: self,
            temporary_name,
            session: None,
        })
        .map(|mut created| {
            let conninfo = session.conninfo().with_database(&created.temporary_name);
            let opened = Session::connect(conninfo).map(|mut inner| {
                inner.lock_wait = session.lock_wait;
                inner
            });
            created.session = opened.ok();
            created
        })
    }
}

impl Created {
    /// The session in it.
    ///
    /// # Errors
    /// It could not be connected to.
    pub fn session(&mut self) -> Result<&mut Session> {
        self.session.as_mut().ok_or_else(|| {
            Error::environment("08001", "could not connect to the database that was made")
        })
    }

    /// It is complete: it takes its name and what belongs to that.
    ///
    /// # Errors
    /// The server's.
    pub fn keep(&mut self, session: &mut Session) -> Result<()> {
        if let Some(inner) = self.session.take() {
            inner.finish()?;
        }
        let name = quote_ident(&self.database.name);
        let client = session.client();
        let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)";
        let is_there: bool = client.query_one(there, &[&self.database.name])?.get(0);
        if is_there {
            client.batch_execute(&format!("DROP DATABASE {name}"))?;
        }
        client.batch_execute(&format!(
            "ALTER DATABASE {} RENAME TO {name}",
            quote_ident(&self.temporary_name)
        ))?;
        self.temporary_name.clone_from(&self.database.name);
        let mut sql = String::from("BEGIN;\n");
        if let Some(owner) = &self.database.owner {
            let _ = writeln!(
                sql,
                "ALTER DATABASE {name} OWNER TO {};",
                quote_ident(owner)
            );
        }
        for properties in &self.database.properties {
            sql.push_str(properties);
            sql.push('\n');
        }
        sql.push_str("COMMIT");
        let done = client.batch_execute(&sql);
        if done.is_err() {
            client.batch_execute("ROLLBACK")?;
        }
        Ok(done?)
    }

    /// It goes.
    pub fn undo(mut self, session: &mut Session) {
        drop(self.session.take());
        drop_quietly(session, &self.temporary_name);
    }
}

/// Drops a database that is not complete; what goes wrong then is told.
pub fn drop_quietly(session: &mut Session, name: &str) {
    let sql = format!("DROP DATABASE IF EXISTS {}", quote_ident(name));
    if let Err(error) = session.client().batch_execute(&sql) {
        let error = Error::from(error);
        eprintln!("NOTE: database \"{name}\" is not complete and could not be dropped: {error}");
    }
}

/// Runs what cannot be in a transaction, and keeps the names of the databases that it makes.
///
/// # Errors
/// The server's, with the line.
pub fn outside(
    session: &mut Session,
    label: &str,
    commands: &[Command],
    new_databases: Vec<String>,
    made: &mut Vec<String>,
) -> Result<()> {
    let mut new_databases = new_databases.into_iter();
    for command in commands {
        session.client().batch_execute(&command.sql).map_err(|e| {
            let line = match command.origin {
                CommandOrigin::Line(line) => line,
                _ => 0,
            };
            Error::from(e).at(Place {
                file: label.to_owned(),
                line,
                ..Place::default()
            })
        })?;
        let creates = command
            .sql
            .to_ascii_uppercase()
            .starts_with("CREATE DATABASE");
        if creates && let Some(name) = new_databases.next() {
            made.push(name);
        }
    }
    Ok(())
}
