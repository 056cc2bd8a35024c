//! Runs a restore's SQL in the transaction of its load.

use super::command::{Command, CommandOrigin};
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
    /// Set from outside to stop.
    pub interrupted: &'a AtomicBool,
    /// Errors that did not end it.
    pub errors: u64,
    /// Tables that could not be made, by the names of their entries.
    pub failed_tables: HashSet<String>,
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
                self.ignore(&error);
                Ok(None)
            }
        }
    }

    /// Tells of an error and goes on.
    pub fn ignore(&mut self, error: &Error) {
        eprintln!("{error}");
        self.errors += 1;
    }

    /// What pg_restore tells with `-v`.
    fn tell(&self, command: &Command) {
        if let CommandOrigin::Entry { desc, name, .. } = &command.origin
            && self.verbose
        {
            eprintln!("creating {desc} \"{name}\"");
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
        CommandOrigin::Settings => return error.into(),
        CommandOrigin::Entry {
            dump_id,
            desc,
            name,
        } => (format!("{dump}, entry {dump_id}: {desc} {name}"), 0),
        CommandOrigin::Line(line) => (dump.to_owned(), line + lines),
        CommandOrigin::Data { label, line } => (label.clone(), line + lines),
    };
    Error::from(error).at(Place {
        file,
        line,
        ..Place::default()
    })
}

/// How many commands go together.
fn batch_len(commands: &[Command], keep_going: bool) -> usize {
    // Settings change how what follows is read.
    if matches!(commands[0].origin, CommandOrigin::Settings) {
        return 1;
    }
    let most = if keep_going { 1 } else { BATCH_COMMANDS };
    let mut bytes = 0;
    let fits = |command: &&Command| {
        bytes += command.sql.len();
        bytes <= BATCH_BYTES && !matches!(command.origin, CommandOrigin::Settings)
    };
    commands.iter().take(most).take_while(fits).count().max(1)
}
