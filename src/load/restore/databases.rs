//! Databases that a restore makes.

use super::options::RestoreOptions;
use super::select::{Selected, is_acl};
use crate::catalog::quote_ident;
use crate::cluster::session::Session;
use crate::error::{Error, Result};
use crate::source::dump::archive::{Archive, Entry};
use std::fmt::Write;
use std::path::Path;

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

/// Whether there is a database of this name.
///
/// # Errors
/// The server's.
pub fn is_there(session: &mut Session, name: &str) -> Result<bool> {
    let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_database WHERE datname = $1)";
    Ok(session.client().query_one(there, &[&name])?.get(0))
}

/// A database that was made under another name.
pub struct Created {
    database: Database,
    temporary_name: String,
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

    /// Makes it, empty, under a name of its own until it is complete, and connects to it.
    ///
    /// # Errors
    /// 42P04 when there is one of that name, unless it is to be dropped.
    pub fn create(
        self,
        session: &mut Session,
        options: &RestoreOptions,
    ) -> Result<(Created, Session)> {
        let is_there = is_there(session, &self.name)?;
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
        if is_there {
            self.refuse_in_use(session)?;
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
        match Session::connect(session.conninfo().with_database(&temporary_name)) {
            Ok(mut inner) => {
                inner.lock_wait = session.lock_wait;
                let created = Created {
                    database: self,
                    temporary_name,
                };
                Ok((created, inner))
            }
            Err(error) => {
                drop_quietly(session, &temporary_name);
                Err(error)
            }
        }
    }

    /// A database that others are in could not be replaced in the end.
    fn refuse_in_use(&self, session: &mut Session) -> Result<()> {
        let name = &self.name;
        if session.conninfo().database() == name {
            let message = format!("cannot drop the currently open database \"{name}\"");
            return Err(Error::refused("55006", message)
                .with_hint("Connect to another one, as with -d postgres."));
        }
        let users = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity
                      WHERE datname = $1 AND backend_type = 'client backend'";
        let users: i64 = session.client().query_one(users, &[name])?.get(0);
        if users > 0 {
            let message = format!("database \"{name}\" is being accessed by other users");
            return Err(Error::refused("55006", message).with_detail(format!(
                "There are {users} other sessions using the database."
            )));
        }
        Ok(())
    }
}

impl Created {
    /// It is complete: it takes its name and what belongs to that, in one transaction, and the
    /// place of one that has the name.
    ///
    /// # Errors
    /// The server's; the one that is there is then as it was.
    pub fn keep(&self, session: &mut Session) -> Result<()> {
        let name = quote_ident(&self.database.name);
        let temporary_name = quote_ident(&self.temporary_name);
        let former = quote_ident(&format!("{}_former", self.temporary_name));
        let is_there = is_there(session, &self.database.name)?;
        let mut sql = String::from("BEGIN;\n");
        if is_there {
            let _ = writeln!(sql, "ALTER DATABASE {name} RENAME TO {former};");
        }
        let _ = writeln!(sql, "ALTER DATABASE {temporary_name} RENAME TO {name};");
        if let Some(owner) = &self.database.owner {
            let owner = quote_ident(owner);
            let _ = writeln!(sql, "ALTER DATABASE {name} OWNER TO {owner};");
        }
        for properties in &self.database.properties {
            sql.push_str(properties);
            sql.push('\n');
        }
        sql.push_str("COMMIT");
        let client = session.client();
        if let Err(error) = client.batch_execute(&sql) {
            client.batch_execute("ROLLBACK")?;
            return Err(error.into());
        }
        if is_there {
            client.batch_execute(&format!("DROP DATABASE {former}"))?;
        }
        Ok(())
    }

    /// It goes.
    pub fn undo(&self, session: &mut Session) {
        drop_quietly(session, &self.temporary_name);
    }
}

/// Drops a database that is not complete; what goes wrong then is told.
fn drop_quietly(session: &mut Session, name: &str) {
    let sql = format!("DROP DATABASE IF EXISTS {}", quote_ident(name));
    if let Err(error) = session.client().batch_execute(&sql) {
        let error = Error::from(error);
        eprintln!("NOTE: database \"{name}\" is not complete and could not be dropped: {error}");
    }
}

/// Tells of databases that a restore has left which was killed.
pub fn tell_of_leftovers(session: &mut Session) -> Result<()> {
    let names = "SELECT datname::pg_catalog.text FROM pg_catalog.pg_database
                  WHERE datname ~ '^pgpagewrite_[0-9]+(_former.*)?$'";
    for row in session.client().query(names, &[])? {
        let name: &str = row.get(0);
        let pid = name.split('_').nth(1).unwrap_or_default();
        if Path::new("/proc").join(pid).exists() {
            continue;
        }
        let what = if name.contains("_former") {
            "is what a restore that died was to replace: rename it back, or drop it"
        } else {
            "was left by a restore that died: drop it"
        };
        eprintln!("NOTE: database \"{name}\" {what}");
    }
    Ok(())
}
