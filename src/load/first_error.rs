//! Which of several errors COPY would have met first, when the build met one.
//!
//! The build sees values, nulls and unique keys, and stops at the first that is bad; CHECK
//! constraints are evaluated when all is in place. So a row that one of them refuses may stand
//! before the row that ended the build. The server's COPY into a temporary table with the same CHECK
//! constraints tells, where the input is small enough not to keep the user waiting.

use super::constraints::checks_constraints;
use super::plan::TablePlan;
use super::server_copy::{Feed, copy_input};
use crate::catalog::{Features, quote_ident};
use crate::error::{Class, Error, Result};
use postgres::Client;
use std::sync::atomic::AtomicBool;

/// Inputs up to this size are asked about.
const ASKED_BYTES: u64 = 64 << 20;

/// COPY stores rows in batches of so many rows or bytes: constraints of a batch's rows are
/// evaluated before the first of them meets a unique key.
///
/// PostgreSQL: `src/backend/commands/copyfrom.c`, `MAX_BUFFERED_TUPLES` and `MAX_BUFFERED_BYTES`.
const BATCH_ROWS: u64 = 1000;
const BATCH_BYTES: u64 = 65535;

/// The error that COPY would have met first: `error`, which ended the build, or one of a CHECK
/// constraint before. The transaction that is open, if any, is rolled back.
pub(super) fn first_error(
    client: &mut Client,
    tables: &[TablePlan],
    error: Error,
    interrupted: &AtomicBool,
) -> Error {
    let Some((table, input)) = suspect(tables, &error) else {
        return error;
    };
    let asked = ask(client, table, input, interrupted);
    // Nothing of this stays; the load is over anyway.
    let _ = client.batch_execute("ROLLBACK");
    match asked {
        Some((number, other)) if comes_first(table, (number, &other), (input, &error)) => other,
        _ => error,
    }
}

/// The table and the input that the error is of, if COPY can be asked about them.
fn suspect<'t>(tables: &'t [TablePlan], error: &Error) -> Option<(&'t TablePlan, usize)> {
    let place = error.places.first().filter(|place| place.line > 0)?;
    let mut named = tables.iter().filter_map(|table| {
        let number = table.inputs.iter().position(|i| i.label == place.file)?;
        Some((table, number))
    });
    let (table, number) = named.next().filter(|_| named.next().is_none())?;
    let inputs = &table.inputs[..=number];
    let total_bytes: Option<u64> = inputs.iter().map(|i| i.origin.bytes()).sum();
    let asks = error.class == Class::Refused
        && checks_constraints(table)
        && has_checks(&table.relation.features)
        && inputs.iter().all(|input| input.format.default.is_none())
        && total_bytes.is_some_and(|bytes| bytes <= ASKED_BYTES);
    asks.then_some((table, number))
}

fn has_checks(features: &Features) -> bool {
    !features.checks.is_empty() || !features.domain_checks.is_empty()
}

/// The first error of the inputs up to `last`, with its input.
fn ask(
    client: &mut Client,
    table: &TablePlan,
    last: usize,
    interrupted: &AtomicBool,
) -> Option<(usize, Error)> {
    let relation = &table.relation;
    let qualified = relation.qualified_name();
    let name = quote_ident(&relation.name);
    let made = client.batch_execute(&format!(
        "BEGIN; SET LOCAL lock_timeout = '1s';
         CREATE TEMPORARY TABLE {name} (LIKE {qualified} INCLUDING CONSTRAINTS) ON COMMIT DROP"
    ));
    made.ok()?;
    let lacking: Vec<&str> = relation
        .columns
        .iter()
        .enumerate()
        .filter(|(column, c)| {
            let inputs = &mut table.inputs[..=last].iter();
            !c.dropped && inputs.any(|input| !input.fields.contains(column))
        })
        .map(|(_, c)| c.name.as_str())
        .collect();
    leave_out(client, &name, &lacking).ok()?;
    for (number, input) in table.inputs[..=last].iter().enumerate() {
        let rest = input.copy_statement.strip_prefix("COPY ")?;
        let rest = rest.strip_prefix(qualified.as_str())?;
        let statement = format!("COPY pg_temp.{name}{rest}");
        if let Err(mut error) = copy_input(client, &statement, &Feed::of(input), interrupted) {
            if !lacking.is_empty() {
                // It shows nulls where the row has defaults.
                error.detail = None;
            }
            return Some((number, error));
        }
    }
    None
}

/// Lets columns of the temporary table be null that some input does not have, and drops the
/// constraints on them: their defaults are not there.
fn leave_out(client: &mut Client, name: &str, columns: &[&str]) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let constraints = client.query(
        "SELECT k.conname::text FROM pg_catalog.pg_constraint k
          WHERE k.conrelid = $1::pg_catalog.text::pg_catalog.regclass AND k.contype = 'c'
            AND EXISTS (SELECT FROM pg_catalog.pg_attribute a
                         WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
                           AND a.attname::text = ANY ($2))",
        &[&format!("pg_temp.{name}"), &columns],
    )?;
    let constraints = constraints
        .iter()
        .map(|row| format!("DROP CONSTRAINT {}", quote_ident(row.get(0))));
    let changes: Vec<String> = columns
        .iter()
        .map(|column| format!("ALTER COLUMN {} DROP NOT NULL", quote_ident(column)))
        .chain(constraints)
        .collect();
    let changes = changes.join(", ");
    client.batch_execute(&format!("ALTER TABLE pg_temp.{name} {changes}"))?;
    Ok(())
}

/// Whether COPY would have met `other` before `error`; each with its input's number.
fn comes_first(table: &TablePlan, other: (usize, &Error), error: (usize, &Error)) -> bool {
    let line = |error: &Error| error.places.first().map_or(0, |place| place.line);
    let (asked, met) = ((other.0, line(other.1)), (error.0, line(error.1)));
    if other.1.class != Class::Refused || asked.1 == 0 {
        return false;
    }
    // A row's own bad value is told as we tell it.
    if asked == met {
        return other.1.sqlstate != error.1.sqlstate;
    }
    let is_duplicate = error.1.sqlstate == "23505";
    let one_batch = || {
        let bytes = table.inputs[error.0].origin.bytes();
        asked.0 == met.0 && asked.1 <= BATCH_ROWS && bytes.is_some_and(|b| b <= BATCH_BYTES)
    };
    asked < met || (is_duplicate && one_batch())
}
