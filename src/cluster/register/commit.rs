//! The end of the transaction, and what to do when its answer is lost.

use std::time::{Duration, Instant};

use super::Registration;
use crate::cluster::facts::Consumers;
use crate::cluster::faults;
use crate::cluster::recover::{self, Outcome};
use crate::error::{Class, Error, Result};

/// How long a server that went away at COMMIT is waited for: it may be recovering.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(120);

/// How long the old backend may still be busy with our COMMIT after the connection was lost.
const OUTCOME_PATIENCE: Duration = Duration::from_secs(30);

/// A load that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The transaction.
    pub xid: u64,
    /// Who reads the WAL and does not find the load in it; for the report.
    pub missed_by: Consumers,
    /// The server's answer was lost, and pg_xact_status told.
    pub answer_was_lost: bool,
}

impl Registration<'_> {
    /// Commits.
    ///
    /// # Errors
    /// `55000` when somebody began to read the WAL; the server's, as a deferred constraint's;
    /// `08007` when the outcome cannot be learnt: nothing is cleaned up then, and `recover`
    /// does it later.
    ///
    /// # Panics
    /// When a table that was taken for files, or an index of one, has none: a table without
    /// its index would be a lie.
    pub fn commit(mut self) -> Result<Committed> {
        assert!(
            self.open_tables.is_empty() && self.open_indexes.is_empty(),
            "tables {:?} and indexes {:?} were not built",
            self.open_tables,
            self.open_indexes
        );
        self.wake_triggers()?;
        let version = self.session.facts.version;
        let consumers = Consumers::read(self.client(), version)?;
        // A base backup that came and went meanwhile is what the first reading saw.
        if !self.options.bypass_wal {
            consumers.refuse()?;
        }
        self.settings()?;
        self.check_xid()?;
        self.session.facts.check_system_identifier()?;
        self.step("commit");
        faults::point("committing")?;
        let answer = self.client().batch_execute("COMMIT");
        self.ended = true;
        let mut answer_was_lost = false;
        // Asked always: COMMIT of a failed transaction answers too, by rolling back.
        match (answer, recover::outcome(self.session.client(), self.xid)) {
            (Ok(()), Ok(Outcome::Committed)) => {}
            (Err(e), Ok(Outcome::Aborted)) => {
                self.forget_journals()?;
                return Err(e.into());
            }
            (Ok(()), Ok(Outcome::Aborted)) => {
                self.forget_journals()?;
                return Err(Error::refused("40000", "the transaction was rolled back"));
            }
            _ => {
                answer_was_lost = true;
                self.find_out()?;
            }
        }
        self.forget_journals()?;
        let mut missed_by = std::mem::take(&mut self.consumers);
        if missed_by.is_none() {
            missed_by = consumers;
        }
        Ok(Committed {
            xid: self.xid,
            missed_by,
            answer_was_lost,
        })
    }

    fn forget_journals(&mut self) -> Result<()> {
        for (_, on_disk) in self.journals.drain(..) {
            on_disk.remove()?;
        }
        Ok(())
    }

    /// The connection was lost around COMMIT: connects anew and asks what became of the
    /// transaction; an aborted one is cleaned up.
    fn find_out(&mut self) -> Result<()> {
        let in_doubt = |xid: u64, why: String| {
            Error::new(
                Class::Environment,
                "08007",
                format!("the connection was lost at COMMIT and the outcome of transaction {xid} is unknown"),
            )
            .with_detail(why)
            .with_hint("Look at the tables; \"pgpagewrite recover\" cleans up once the server answers.")
        };
        let xid = self.xid;
        self.session
            .reconnect(RECONNECT_PATIENCE)
            .map_err(|e| in_doubt(xid, e.message))?;
        let begin = Instant::now();
        loop {
            match recover::outcome(self.session.client(), xid) {
                Ok(Outcome::Committed) => return Ok(()),
                Ok(Outcome::Aborted) => {
                    for (journal, on_disk) in self.journals.drain(..) {
                        recover::undo(self.session, &journal, on_disk)?;
                    }
                    return Err(Error::environment(
                        "08006",
                        "the connection was lost and the transaction was rolled back",
                    )
                    .with_hint("Nothing was loaded. See the server's log."));
                }
                Ok(Outcome::InDoubt) if begin.elapsed() < OUTCOME_PATIENCE => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Ok(Outcome::InDoubt) => {
                    return Err(in_doubt(
                        xid,
                        "The transaction is still in progress.".into(),
                    ));
                }
                Err(e) => return Err(in_doubt(xid, e.message)),
            }
        }
    }
}
