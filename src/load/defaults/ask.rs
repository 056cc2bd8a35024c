//! Asks the server for values, many rows at a time.
//!
//! A statement gets what it needs of its rows as arrays, one element a row, and gives one row
//! back for each, in order. All statements go over the load's own connection, inside its
//! transaction: functions see what they would see in COPY, a schema script's objects included,
//! but for the rows of the load itself.

use super::wire_column::{Raw, WireArray, WireColumn};
use crate::error::{Class, Error, Result};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Statement};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows of the first batch, and most of any: a batch's values are in memory.
const FIRST_ROWS: usize = 64;
const MOST_ROWS: usize = 8192;
/// What the values of a batch should not outgrow.
const BATCH_BYTES: usize = 4 << 20;

/// A statement and which of the table's asked columns its results are, in order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Query {
    /// The statement; empty when nothing is asked. Its first result is the row's number, from 1.
    pub sql: String,
    /// Numbers among [`super::Defaults::asked`].
    pub asked: Vec<usize>,
}

/// What asking cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Rows that values were asked for.
    pub rows: u64,
    /// Statements.
    pub batches: u64,
    /// Time from question to answer.
    pub time: Duration,
}

/// Who gives values: the server, as seen by the threads of a build.
pub trait Ask: std::fmt::Debug + Sync {
    /// The values of rows, appended to `out` in the query's order. The first row that the server
    /// refuses, with its error, ends them.
    ///
    /// # Errors
    /// When the server cannot be asked at all.
    fn ask(
        &self,
        query: &Query,
        rows: Range<usize>,
        parameters: &dyn Fn(Range<usize>) -> Vec<WireArray>,
        out: &mut [WireColumn],
        cost: &mut Cost,
    ) -> Result<Option<(usize, Error)>>;
}

/// The connection, used by one thread at a time.
pub struct ServerLine<'c>(Mutex<Line<'c>>);

struct Line<'c> {
    client: &'c mut Client,
    prepared: HashMap<String, Statement>,
}

impl std::fmt::Debug for ServerLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerLine")
    }
}

impl<'c> ServerLine<'c> {
    /// Over this connection, which is inside the load's transaction.
    pub fn new(client: &'c mut Client) -> ServerLine<'c> {
        ServerLine(Mutex::new(Line {
            client,
            prepared: HashMap::new(),
        }))
    }
}

impl Ask for ServerLine<'_> {
    fn ask(
        &self,
        query: &Query,
        rows: Range<usize>,
        parameters: &dyn Fn(Range<usize>) -> Vec<WireArray>,
        out: &mut [WireColumn],
        cost: &mut Cost,
    ) -> Result<Option<(usize, Error)>> {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let refused = line.ask(query, rows, parameters, out, cost);
        cost.time += begun.elapsed();
        refused
    }
}

impl Line<'_> {
    fn ask(
        &mut self,
        query: &Query,
        rows: Range<usize>,
        parameters: &dyn Fn(Range<usize>) -> Vec<WireArray>,
        out: &mut [WireColumn],
        cost: &mut Cost,
    ) -> Result<Option<(usize, Error)>> {
        if rows.is_empty() {
            return Ok(None);
        }
        cost.batches += 1;
        self.client.batch_execute("SAVEPOINT pgpagewrite_ask")?;
        let mut answered = 0;
        let ran = self.run(
            query,
            rows.len(),
            &parameters(rows.clone()),
            out,
            &mut answered,
        );
        match ran {
            Ok(()) => {
                self.client
                    .batch_execute("RELEASE SAVEPOINT pgpagewrite_ask")?;
                cost.rows += rows.len() as u64;
                Ok(None)
            }
            Err(error) if error.class == Class::Environment => Err(error),
            Err(error) => {
                self.client.batch_execute(
                    "ROLLBACK TO SAVEPOINT pgpagewrite_ask;
                     RELEASE SAVEPOINT pgpagewrite_ask",
                )?;
                // Nothing is asked twice: a function that fails once may not fail again.
                Ok(Some((rows.start + answered, error)))
            }
        }
    }

    /// Runs the statement. The server evaluates row by row, and sends each before it looks at the
    /// next: `answered` tells how many were, also where one of them was refused.
    fn run(
        &mut self,
        query: &Query,
        rows: usize,
        parameters: &[WireArray],
        out: &mut [WireColumn],
        answered: &mut usize,
    ) -> Result<()> {
        let statement = if let Some(statement) = self.prepared.get(&query.sql) {
            statement.clone()
        } else {
            let statement = self.client.prepare(&query.sql)?;
            self.prepared.insert(query.sql.clone(), statement.clone());
            statement
        };
        let parameters = parameters.iter().map(|p| p as &(dyn ToSql + Sync));
        let mut answer = self.client.query_raw(&statement, parameters)?;
        while let Some(row) = answer.next()? {
            if row.get::<_, i64>(0) != *answered as i64 + 1 {
                return Err(other_rows());
            }
            for (result, number) in query.asked.iter().enumerate() {
                let value: Option<Raw<'_>> = row.try_get(result + 1)?;
                out[*number].push(value.map(|raw| raw.0));
            }
            *answered += 1;
        }
        if *answered != rows {
            return Err(other_rows());
        }
        Ok(())
    }
}

#[cold]
fn other_rows() -> Error {
    Error::environment(
        "XX000",
        "the server answered with other rows than it was asked for",
    )
}

/// How many rows the next batch has, learnt from those before.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchSize(usize);

impl Default for BatchSize {
    fn default() -> BatchSize {
        BatchSize(FIRST_ROWS)
    }
}

impl BatchSize {
    pub(super) fn rows(self) -> usize {
        self.0
    }

    /// `rows` had values of so many bytes.
    pub(super) fn learn(&mut self, rows: usize, bytes: usize) {
        let fitting = BATCH_BYTES / (bytes / rows.max(1)).max(1);
        self.0 = fitting.clamp(1, MOST_ROWS).min(self.0 * 8);
    }
}
