//! CHECK constraints, foreign keys and exclusion constraints of tables whose files are in place.
//!
//! All tables are there before the first is checked, so that they may reference each other. Of
//! several violations the one that COPY of the tables in their order would have met is told:
//! CHECK constraints first, as rows come in, then foreign keys, then deferred ones. Bad values,
//! nulls and duplicate keys were told before, while the files were built.

use super::Build;
use super::built::BuiltTable;
use super::plan::{How, TablePlan, constraint_names};
use super::report::{ConstraintKind, ConstraintReport};
use crate::catalog::Index;
use crate::cluster::register::{CheckMeans, Registration, Violation};
use crate::error::{Place, Result};
use std::time::{Duration, Instant};

impl Build<'_> {
    /// Checks the constraints of all native tables; for each table what was checked.
    pub(super) fn check_constraints(
        &self,
        registration: &mut Registration<'_>,
        tables: &[TablePlan],
        built: &[Option<BuiltTable>],
    ) -> Result<Vec<Vec<ConstraintReport>>> {
        let means = CheckMeans {
            workers: self.options.jobs,
            memory_bytes: self.options.memory_bytes,
        };
        let mut times = vec![(Duration::ZERO, Duration::ZERO); tables.len()];
        for ((table, built), (time, _)) in checked(tables, built).zip(&mut times) {
            let Some(built) = built else { continue };
            self.check_interrupt()?;
            let begun = Instant::now();
            let violation = registration.check_rows(&table.relation, means)?;
            *time = begun.elapsed();
            refuse(registration, table, built, violation)?;
        }
        for deferred in [false, true] {
            for ((table, built), (_, time)) in checked(tables, built).zip(&mut times) {
                let Some(built) = built else { continue };
                self.check_interrupt()?;
                let begun = Instant::now();
                let violation =
                    registration.check_references(&table.relation, deferred, means)?;
                *time += begun.elapsed();
                refuse(registration, table, built, violation)?;
            }
        }
        Ok(tables
            .iter()
            .zip(times)
            .map(|(table, times)| reports(table, times))
            .collect())
    }

    /// Has the server build the index of an exclusion constraint.
    pub(super) fn exclude(
        &self,
        registration: &mut Registration<'_>,
        table: &TablePlan,
        built: Option<&BuiltTable>,
        index: &Index,
    ) -> Result<()> {
        let violation = registration.reindex_exclusion(&table.relation, index)?;
        let built = built.expect("a native table was built");
        refuse(registration, table, built, violation)
    }
}

/// The tables, with what was built of those that have rows to be checked.
fn checked<'t>(
    tables: &'t [TablePlan],
    built: &'t [Option<BuiltTable>],
) -> impl Iterator<Item = (&'t TablePlan, Option<&'t BuiltTable>)> {
    tables.iter().zip(built).map(|(table, built)| {
        let checks = matches!(&table.how, How::Native(native) if native.checks_constraints);
        let built = built.as_ref().filter(|built| checks && built.rows > 0);
        (table, built)
    })
}

/// The error of a violation, with the place of its row in the input.
fn refuse(
    registration: &mut Registration<'_>,
    table: &TablePlan,
    built: &BuiltTable,
    violation: Option<Violation>,
) -> Result<()> {
    let Some(Violation { tid, error }) = violation else {
        return Ok(());
    };
    Err(match tid {
        None => error,
        Some(tid) => {
            let chunk = built.marks.chunk(tid);
            let row = registration.rows_between(&table.relation, chunk.first, tid)?;
            let (input, line) = chunk.place(row);
            error.at(Place {
                file: table.inputs[input].label.clone(),
                line,
                ..Place::default()
            })
        }
    })
}

/// What the report says of a table's constraints.
fn reports(table: &TablePlan, times: (Duration, Duration)) -> Vec<ConstraintReport> {
    let How::Native(native) = &table.how else {
        return Vec::new();
    };
    constraint_names(&table.relation)
        .into_iter()
        .map(|(kind, names)| {
            let time = match kind {
                ConstraintKind::Check => times.0,
                ConstraintKind::ForeignKey => times.1,
            };
            ConstraintReport {
                kind,
                names,
                checked: native.checks_constraints.then_some(time),
            }
        })
        .collect()
}
