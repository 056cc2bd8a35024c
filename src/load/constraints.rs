//! CHECK constraints, foreign keys and exclusion constraints of tables whose files are in place.
//!
//! ```text
//! CHECK constraints and partition bounds of all tables  >  COPY of other tables, other indexes  >  foreign keys
//! ```
//!
//! That is COPY's own order within a table: CHECK constraints as rows come in, unique keys and
//! exclusion constraints as they are stored, foreign keys at the end, and deferred ones at
//! COMMIT. All tables are there before the first foreign key is checked, so that they may
//! reference each other.

use super::Build;
use super::built::BuiltTable;
use super::plan::{How, Part, TablePlan, constraint_names};
use super::report::{ConstraintKind, ConstraintReport};
use crate::catalog::Index;
use crate::cluster::register::{CheckMeans, Registration, RowChecks, Violation};
use crate::error::{Class, Error, Place, Result};
use std::time::{Duration, Instant};

impl Build<'_> {
    /// Evaluates the CHECK constraints and partition bounds of all native tables; for each table
    /// how long it took.
    pub(super) fn check_rows(
        &self,
        registration: &mut Registration<'_>,
        tables: &[TablePlan],
        built: &[Option<BuiltTable>],
    ) -> Result<Vec<Duration>> {
        let which = |table: &TablePlan| RowChecks {
            constraints: checks_constraints(table),
            // Rows that were routed are where they belong.
            bounds: matches!(table.part, Part::Whole)
                && table.relation.features.partition_constraint.is_some(),
        };
        let rows_are_checked = |table: &TablePlan| {
            let which = which(table);
            which.constraints || which.bounds
        };
        self.timed(tables, built, rows_are_checked, |table, built| {
            let violation = registration.check_rows(&table.relation, which(table), self.means())?;
            refuse(registration, table, built, violation)
        })
    }

    /// Checks the foreign keys of all native tables; for each table how long it took.
    pub(super) fn check_references(
        &self,
        registration: &mut Registration<'_>,
        tables: &[TablePlan],
        built: &[Option<BuiltTable>],
    ) -> Result<Vec<Duration>> {
        let mut times = vec![Duration::ZERO; tables.len()];
        for deferred in [false, true] {
            let of_these = self.timed(tables, built, checks_constraints, |table, built| {
                let violation =
                    registration.check_references(&table.relation, deferred, self.means())?;
                refuse(registration, table, built, violation)
            })?;
            for (time, more) in times.iter_mut().zip(of_these) {
                *time += more;
            }
        }
        Ok(times)
    }

    fn means(&self) -> CheckMeans {
        CheckMeans {
            workers: self.options.jobs,
            memory_bytes: self.options.memory_bytes,
        }
    }

    /// Does work on every table that is one of `these` and that has rows.
    fn timed(
        &self,
        tables: &[TablePlan],
        built: &[Option<BuiltTable>],
        these: impl Fn(&TablePlan) -> bool,
        mut work: impl FnMut(&TablePlan, &BuiltTable) -> Result<()>,
    ) -> Result<Vec<Duration>> {
        let mut times = vec![Duration::ZERO; tables.len()];
        // Of the leaves that share an input, the first of their errors by its line.
        let mut first: Option<(usize, Error)> = None;
        for (number, (table, built)) in tables.iter().zip(built).enumerate() {
            let root = table.part.root_of_leaf();
            if let Some((of, _)) = &first
                && root != Some(*of)
            {
                break;
            }
            let Some(built) = built.as_ref().filter(|built| built.rows > 0) else {
                continue;
            };
            if !table.part.has_rows() || !these(table) {
                continue;
            }
            self.check_interrupt()?;
            let begun = Instant::now();
            let done = work(table, built);
            times[number] = begun.elapsed();
            match (done, root) {
                (Ok(()), _) => {}
                (Err(error), Some(root)) if error.class == Class::Refused => {
                    let comes_first =
                        |(_, other): &(usize, Error)| built.place(&error) < built.place(other);
                    if first.as_ref().is_none_or(comes_first) {
                        first = Some((root, error));
                    }
                }
                (Err(error), _) => return Err(error),
            }
        }
        first.map_or(Ok(times), |(_, error)| Err(error))
    }
}

/// Has the server build the index of an exclusion constraint.
pub(super) fn exclude(
    registration: &mut Registration<'_>,
    table: &TablePlan,
    built: Option<&BuiltTable>,
    index: &Index,
) -> Result<()> {
    let violation = registration.reindex_exclusion(&table.relation, index)?;
    let built = built.expect("a native table was built");
    refuse(registration, table, built, violation)
}

/// Whether a table is loaded natively and its constraints are not trusted.
pub(super) fn checks_constraints(table: &TablePlan) -> bool {
    matches!(&table.how, How::Native(native) if native.checks_constraints)
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
                file: built.inputs[input].clone(),
                line,
                ..Place::default()
            })
        }
    })
}

/// What the report says of a table's constraints.
pub(super) fn reports(
    table: &TablePlan,
    rows: Duration,
    references: Duration,
) -> Vec<ConstraintReport> {
    if matches!(table.how, How::Server(_)) {
        return Vec::new();
    }
    constraint_names(&table.relation)
        .into_iter()
        .map(|(kind, names)| {
            let time = match kind {
                ConstraintKind::Check => rows,
                ConstraintKind::ForeignKey => references,
            };
            ConstraintReport {
                kind,
                names,
                checked: checks_constraints(table).then_some(time),
            }
        })
        .collect()
}
