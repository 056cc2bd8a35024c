//! Moves sequences whose values the load gave to its rows, so that they end where the server's
//! nextval would have left them.
//!
//! nextval and setval are not undone by a rollback. ALTER SEQUENCE is: it takes a lock that
//! keeps nextval out and copies the sequence into a new file, which belongs to the transaction.
//! Under that lock it is looked whether the sequence still stands where the plan saw it; then
//! setval writes to the new file.
//!
//! PostgreSQL: `src/backend/commands/sequence.c`, `AlterSequence`.

use super::Registration;
use crate::catalog::{Sequence, SequenceState, read};
use crate::error::{Error, Result};

/// A sequence that values were taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceMove {
    /// As planned.
    pub sequence: Sequence,
    /// Where it stood then.
    pub from: SequenceState,
    /// Where it stands after the load.
    pub to: SequenceState,
}

impl Registration<'_> {
    /// Moves sequences, each once.
    ///
    /// # Errors
    /// `55000` when a sequence was moved or altered since the plan; `55P03` when another
    /// transaction that took values of it does not end in time.
    pub fn move_sequences(&mut self, moves: &[SequenceMove]) -> Result<()> {
        self.step("sequences");
        let mut moves: Vec<&SequenceMove> = moves.iter().collect();
        // One order for all runs, as for tables.
        moves.sort_by_key(|m| m.sequence.oid);
        for SequenceMove { sequence, from, to } in moves {
            let name = sequence.qualified_name();
            self.client()
                .batch_execute(&format!("ALTER SEQUENCE {name} CACHE {}", sequence.cache))?;
            let now = read::sequences(self.client(), &[sequence.oid])?;
            let state = read::sequence_states(self.client(), &[sequence])?[0];
            if now.first() != Some(sequence) || state != *from {
                return Err(Error::refused(
                    "55000",
                    format!("sequence \"{}\" moved since the plan", sequence.name),
                )
                .with_detail("Another session took values of it, or altered it.")
                .with_hint("Nothing was loaded. Run the command again."));
            }
            self.client().execute(
                "SELECT pg_catalog.setval($1::pg_catalog.oid::pg_catalog.regclass, $2, $3)",
                &[&sequence.oid, &to.last_value, &to.is_called],
            )?;
        }
        Ok(())
    }
}
