//! Moves sequences whose values the load gave to its rows, so that they end where the server's
//! nextval would have left them.
//!
//! nextval and setval are not undone by a rollback. ALTER SEQUENCE is: it takes a lock that
//! keeps nextval out and copies the sequence into a new file, which belongs to the transaction.
//! Under that lock it is looked whether the sequence still stands where the plan saw it; then
//! setval writes to the new file.
//!
//! PostgreSQL: `src/backend/commands/sequence.c`, `AlterSequence`.

use super::{Registration, transaction_settings};
use crate::catalog::{Sequence, SequenceState, read};
use crate::cluster::session::Session;
use crate::error::{Error, Result};
use postgres::Client;

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
        move_sequences(self.client(), moves)
    }
}

/// Begins a transaction in which the server gives values to rows that are registered later, if
/// there is none yet.
pub fn begin_values(session: &mut Session) -> Result<()> {
    if session.gives_values {
        return Ok(());
    }
    let settings = transaction_settings(session.facts.version, session.lock_wait);
    session.client().batch_execute(&format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {settings}"
    ))?;
    session.gives_values = true;
    Ok(())
}

/// Moves sequences to behind the values that rows got, and commits, with what functions did that
/// gave other values.
///
/// # Errors
/// Those of [`Registration::move_sequences`]; nothing has moved then.
pub fn keep_values(session: &mut Session, moves: &[SequenceMove]) -> Result<()> {
    if !session.gives_values && moves.is_empty() {
        return Ok(());
    }
    begin_values(session)?;
    let client = session.client();
    let kept = move_sequences(client, moves).and_then(|()| Ok(client.batch_execute("COMMIT")?));
    if kept.is_err() {
        // The first error is told.
        let _ = client.batch_execute("ROLLBACK");
    }
    session.gives_values = false;
    kept
}

fn move_sequences(client: &mut Client, moves: &[SequenceMove]) -> Result<()> {
    let mut moves: Vec<&SequenceMove> = moves.iter().collect();
    // One order for all runs, as for tables.
    moves.sort_by_key(|m| m.sequence.oid);
    for SequenceMove { sequence, from, to } in moves {
        let name = sequence.qualified_name();
        client.batch_execute(&format!("ALTER SEQUENCE {name} CACHE {}", sequence.cache))?;
        let now = read::sequences(client, &[sequence.oid])?;
        let state = read::sequence_states(client, &[sequence])?[0];
        if now.first() != Some(sequence) || state != *from {
            return Err(Error::refused(
                "55000",
                format!("sequence \"{}\" moved since the plan", sequence.name),
            )
            .with_detail("Another session took values of it, or altered it.")
            .with_hint("Nothing was loaded. Run the command again."));
        }
        client.execute(
            "SELECT pg_catalog.setval($1::pg_catalog.oid::pg_catalog.regclass, $2, $3)",
            &[&sequence.oid, &to.last_value, &to.is_called],
        )?;
    }
    Ok(())
}
