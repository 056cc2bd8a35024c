//! Runs a restore's SQL in the transaction of its load.

use super::command::{Command, CommandOrigin};
use super::rows::RowsPlace;
use crate::cluster::register::Registration;
use crate::cluster::script::lines_before;
use crate::error::{Error, Place, Result};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many commands, and bytes of them, are sent at once.
const BATCH_COMMANDS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

const SAVEPOINT: &str = "SAVEPOINT pgpagewrite_restore";
const RELEASE: &str = "RELEASE SAVEPOINT pgpagewrite_restore";
/// What was done since is undone, and nothing stays of it.
const ROLL_BACK: &str =
    "ROLLBACK TO SAVEPOINT pgpagewrite_restore; RELEASE SAVEPOINT pgpagewrite_restore";

/// Runs commands, and keeps count of those that failed.
pub struct Runner<'a> {
    /// The dump's name.
    pub dump: String,
    /// An error does not end the restore.
    pub keep_going: bool,
    /// Tell of each command.
    pub verbose: bool,
    /// The entry that was told of last.
    pub told: Option<i32>,
    /// Set from outside to stop.
    pub interrupted: &'a AtomicBool,
    /// Errors that did not end it.
    pub errors: &'a mut Vec<Error>,
    /// Tables that could not be made, by the names of their entries.
    pub failed_tables: HashSet<String>,
    /// Rows that could not be built, so that the server is to judge them.
    pub failed_rows: &'a HashSet<RowsPlace>,
}

impl Runner<'_> {
    /// Runs commands in their order.
    ///
    /// # Errors
    /// The server's, with the entry or the line that the command is of.
    pub fn run(&mut self, registration: &mut Registration<'_>, commands: &[Command]) -> Result<()> {
        let mut rest = commands;
        while !rest.is_empty() {
            self.check_interrupt()?;
            let (batch, behind) = rest.split_at(batch_len(rest, self.keep_going));
            rest = behind;
            for command in batch {
                self.tell(command);
            }
            self.run_batch(registration, batch)?;
        }
        Ok(())
    }

    /// Sends commands at once, and one by one when something is wrong with one of them.
    fn run_batch(&mut self, registration: &mut Registration<'_>, batch: &[Command]) -> Result<()> {
        if batch.len() > 1 && run_together(registration, batch)? {
            return Ok(());
        }
        let dump = self.dump.clone();
        for command in batch {
            if matches!(command.origin, CommandOrigin::User) {
                registration.client().batch_execute(&command.sql)?;
                continue;
            }
            let done = self.attempt(registration, |registration| {
                let ran = registration.client().batch_execute(&command.sql);
                ran.map_err(|e| located(e, command, &dump))
            })?;
            if let (None, CommandOrigin::Entry { desc, name, .. }) = (done, &command.origin)
                && desc == "TABLE"
            {
                self.failed_tables.insert(name.clone());
            }
        }
        Ok(())
    }

    /// Does something that may fail without ending the restore; `None` when it did.
    ///
    /// # Errors
    /// That of `work`, unless errors are to be ignored.
    pub fn attempt<T>(
        &mut self,
        registration: &mut Registration<'_>,
        work: impl FnOnce(&mut Registration<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.check_interrupt()?;
        if !self.keep_going {
            return work(registration).map(Some);
        }
        registration.client().batch_execute(SAVEPOINT)?;
        let done = work(registration);
        let client = registration.client();
        match done {
            Ok(done) => {
                client.batch_execute(RELEASE)?;
                Ok(Some(done))
            }
            Err(error) => {
                client.batch_execute(ROLL_BACK)?;
                self.ignore(error);
                Ok(None)
            }
        }
    }

    /// Keeps an error, to tell of it in the end, and goes on.
    pub fn ignore(&mut self, error: Error) {
        self.errors.push(error);
    }

    /// What pg_restore tells with `-v`, once for an entry.
    fn tell(&mut self, command: &Command) {
        if let CommandOrigin::Entry {
            dump_id,
            desc,
            name,
            executed,
        } = &command.origin
            && self.verbose
            && self.told.replace(*dump_id) != Some(*dump_id)
        {
            match executed {
                Some(tag) => eprintln!("executing {desc} {tag}"),
                None => eprintln!("creating {desc} \"{name}\""),
            }
        }
    }

    /// What pg_restore tells with `-v` when an entry's data come.
    pub fn tell_of_data(&self, desc: &str, name: &str) {
        if !self.verbose {
            return;
        }
        if desc.starts_with("BLOB") {
            eprintln!("processing {desc}");
        } else {
            eprintln!("processing data for table \"{name}\"");
        }
    }

    /// # Errors
    /// Somebody wants the restore to end.
    pub fn check_interrupt(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(super::super::interrupt::interrupted());
        }
        Ok(())
    }
}

/// Sends commands as one; whether all is well. Else nothing of them is done.
fn run_together(registration: &mut Registration<'_>, batch: &[Command]) -> Result<bool> {
    let sql: Vec<&str> = batch.iter().map(|c| c.sql.as_str()).collect();
    let client = registration.client();
    client.batch_execute(SAVEPOINT)?;
    let is_well = client.batch_execute(&sql.join("\n;")).is_ok();
    client.batch_execute(if is_well { RELEASE } else { ROLL_BACK })?;
    Ok(is_well)
}

/// The server's error with the place of its command.
fn located(error: postgres::Error, command: &Command, dump: &str) -> Error {
    let lines = lines_before(&error, &command.sql);
    let (file, line) = match &command.origin {
        CommandOrigin::Settings | CommandOrigin::User => return error.into(),
        CommandOrigin::Entry {
            dump_id,
            desc,
            name,
            ..
        } => (format!("{dump}, entry {dump_id}: {desc} {name}"), 0),
        CommandOrigin::Line(line) => (dump.to_owned(), line + lines),
        CommandOrigin::Data { label, line } => (label.clone(), line + lines),
    };
    let error = Error::from(error);
    let is_first = matches!(command.origin, CommandOrigin::Line(1));
    let error = if is_first && error.sqlstate == "42601" {
        error.with_hint(
            "This was taken for a script of SQL; a file of rows is written as TABLE=PATH.",
        )
    } else {
        error
    };
    error.at(Place {
        file,
        line,
        ..Place::default()
    })
}

/// How many commands go together.
fn batch_len(commands: &[Command], keep_going: bool) -> usize {
    // Settings change how what follows is read.
    if commands[0].is_setting() {
        return 1;
    }
    let most = if keep_going { 1 } else { BATCH_COMMANDS };
    let mut bytes = 0;
    let fits = |command: &&Command| {
        bytes += command.sql.len();
        bytes <= BATCH_BYTES && !command.is_setting()
    };
    commands.iter().take(most).take_while(fits).count().max(1)
}
