//! What a script does that cannot be in a transaction, and how it is undone when the script fails.
//!
//! A database that the script drops steps aside under another name until all is done.

use super::command::{Command, CommandOrigin};
use super::databases;
use crate::catalog::quote_ident;
use crate::cluster::session::Session;
use crate::error::{Place, Result};
use crate::source::dump::script::{Class, classify};

/// What was done outside of transactions.
#[derive(Debug)]
pub struct Outside {
    /// The script's name.
    label: String,
    /// Statements that undo what was done, in the order of that, with the databases that they are
    /// about.
    undo: Vec<(String, Option<String>)>,
    /// Statements for when all is done.
    at_end: Vec<String>,
}

impl Outside {
    /// Nothing is done yet.
    pub fn new(label: String) -> Outside {
        Outside {
            label,
            undo: Vec::new(),
            at_end: Vec::new(),
        }
    }

    /// Runs commands in their order.
    ///
    /// # Errors
    /// The server's, with the line.
    pub fn run(&mut self, session: &mut Session, commands: &[Command]) -> Result<()> {
        for command in commands {
            self.run_one(session, command).map_err(|error| {
                let line = match command.origin {
                    CommandOrigin::Line(line) => line,
                    _ => 0,
                };
                error.at(Place {
                    file: self.label.clone(),
                    line,
                    ..Place::default()
                })
            })?;
        }
        Ok(())
    }

    fn run_one(&mut self, session: &mut Session, command: &Command) -> Result<()> {
        let class = classify(&command.sql);
        let undo = match class {
            Class::CreateDatabase { name } => {
                Some((format!("DROP DATABASE {}", quote_ident(&name)), Some(name)))
            }
            Class::CreateTablespace { name } => {
                let there = session.client().query_one(TABLESPACE, &[&name])?;
                if there.get(0) {
                    eprintln!("NOTE: tablespace \"{name}\" is there, and stays where it is");
                    return Ok(());
                }
                Some((format!("DROP TABLESPACE {}", quote_ident(&name)), None))
            }
            Class::DropDatabase { name } if databases::is_there(session, &name)? => {
                return self.step_aside(session, &name);
            }
            _ => None,
        };
        session.client().batch_execute(&command.sql)?;
        if let Some((_, Some(name))) = &undo {
            // By then it may have become one that is not dropped.
            let plain = format!("ALTER DATABASE {} IS_TEMPLATE false", quote_ident(name));
            self.undo.extend(undo.clone());
            self.undo.push((plain, None));
            return Ok(());
        }
        self.undo.extend(undo);
        Ok(())
    }

    /// Renames a database instead of dropping it.
    fn step_aside(&mut self, session: &mut Session, name: &str) -> Result<()> {
        let number = self.at_end.len();
        let aside = format!("pgpagewrite_{}_former_{number}", std::process::id());
        let (from, to) = (quote_ident(name), quote_ident(&aside));
        let sql = format!("ALTER DATABASE {from} RENAME TO {to}");
        session.client().batch_execute(&sql)?;
        let back = format!("ALTER DATABASE {to} RENAME TO {from}");
        if name == "template1" {
            // So it was, before the script made it one that can be dropped.
            let template = "ALTER DATABASE template1 IS_TEMPLATE true";
            self.undo.push((template.to_owned(), None));
        }
        self.undo.push((back, Some(aside)));
        self.at_end.push(format!("DROP DATABASE {to}"));
        Ok(())
    }

    /// The script is done: what stepped aside goes.
    ///
    /// # Errors
    /// The server's.
    pub fn complete(self, session: &mut Session) -> Result<()> {
        for sql in &self.at_end {
            session.client().batch_execute(sql)?;
        }
        Ok(())
    }

    /// The script failed: all is undone. What goes wrong then is told.
    pub fn undo(self, session: &mut Session) {
        for (sql, database) in self.undo.iter().rev() {
            let undone = match database {
                Some(database) => leave(session, database),
                None => Ok(()),
            };
            let undone = undone.and_then(|()| Ok(session.client().batch_execute(sql)?));
            if let Err(error) = undone {
                eprintln!("NOTE: \"{sql}\" is to be done by hand: {}", error.message);
            }
        }
    }
}

/// Goes to any other database, if the session is in this one.
fn leave(session: &mut Session, database: &str) -> Result<()> {
    if session.conninfo().database() != database {
        return Ok(());
    }
    let other = "SELECT datname::pg_catalog.text FROM pg_catalog.pg_database
                  WHERE datallowconn AND datname <> $1 LIMIT 1";
    let row = session.client().query_one(other, &[&database])?;
    session.go_to(row.get(0))
}

const TABLESPACE: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_tablespace WHERE spcname = $1)";
