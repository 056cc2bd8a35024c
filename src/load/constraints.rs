//! CHECK constraints, foreign keys and exclusion constraints of tables whose files are in place.
//!
//! ```text
//! CHECK constraints and partition bounds of all tables  >  COPY of other tables, other indexes
//!     >  SQL behind the load  >  foreign keys
//! ```
//!
//! That is COPY's own order within a table: CHECK constraints as rows come in, unique keys and
//! exclusion constraints as they are stored, foreign keys at the end, and deferred ones at
//! COMMIT. All tables are there before the first foreign key is checked, so that they may
//! reference each other.

use super::Build;
use super::built::BuiltTable;
use super::plan::{self, How, NativePlan, Part, TablePlan, constraint_names};
use super::report::{ConstraintKind, ConstraintReport};
use crate::catalog::{DomainCheck, Index};
use crate::cluster::register::{Registration, RowChecks, ServerMeans, Violation};
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
        let rows_are_checked =
            |table: &TablePlan| checks_constraints(table) || checks_bounds(table);
        self.timed(tables, built, rows_are_checked, |table, built| {
            let checks = row_checks(table);
            let violation = registration.check_rows(&table.relation, &checks, self.means())?;
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
        if self.options.skip_references {
            return Ok(times);
        }
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

    /// Has the server build those indexes of a native table that are left to it.
    pub(super) fn server_indexes(
        &self,
        registration: &mut Registration<'_>,
        table: &TablePlan,
        native: &NativePlan,
        built: &BuiltTable,
    ) -> Result<()> {
        let relation = &table.relation;
        let indexes: Vec<&Index> = plan::server_indexes(relation, native)
            .map(|(index, _)| index)
            .collect();
        for (number, index) in indexes.iter().enumerate() {
            self.check_interrupt()?;
            let violation = if index.exclusion {
                registration.reindex_exclusion(relation, index)?
            } else if index.unique {
                let mut later = indexes[number + 1..].to_vec();
                later.retain(|index| index.unique && !index.exclusion);
                registration.reindex_unique(relation, index, &later, self.means())?
            } else {
                registration.reindex(index)?;
                None
            };
            refuse(registration, table, built, violation)?;
        }
        Ok(())
    }

    pub(super) fn means(&self) -> ServerMeans {
        ServerMeans {
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

/// The CHECK constraints that a table's rows are held against.
fn row_checks(table: &TablePlan) -> RowChecks<'_> {
    let bounds = checks_bounds(table);
    if !checks_constraints(table) {
        return RowChecks {
            bounds,
            ..RowChecks::default()
        };
    }
    let features = &table.relation.features;
    let mut domains: Vec<&DomainCheck> = features
        .domain_checks
        .iter()
        .filter(|check| !is_null_unchecked(table, check))
        .collect();
    // COPY meets them in the order of the fields, then come defaults.
    if let Some(fields) = &table.fields {
        let field = |check: &DomainCheck| {
            let fields = &mut fields.iter();
            fields.position(|field| *field + 1 == check.attnum as usize)
        };
        domains.sort_by_key(|check| field(check).unwrap_or(usize::MAX));
    }
    RowChecks {
        domains,
        table: &features.checks,
        bounds,
    }
}

/// Whether a table is a partition whose bounds its rows may miss: those that were routed are where
/// they belong.
fn checks_bounds(table: &TablePlan) -> bool {
    matches!(table.part, Part::Whole) && table.relation.features.partition_constraint.is_some()
}

/// Whether the column of a constraint is null in all rows since the input does not have it: COPY
/// holds such a null against nothing. Where it matters all inputs have the same columns.
fn is_null_unchecked(table: &TablePlan, check: &DomainCheck) -> bool {
    let attribute = check.attnum as usize - 1;
    let column = &table.relation.columns[attribute];
    let is_given = |fields: &Vec<usize>| fields.contains(&attribute);
    column.default.is_none()
        && table
            .fields
            .as_ref()
            .is_some_and(|fields| !is_given(fields))
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
    let Some(violation) = violation else {
        return Ok(());
    };
    let (mut error, mut field) = (violation.error, violation.field);
    for tid in violation.tid.into_iter().chain(violation.other) {
        let chunk = built.marks.chunk(tid);
        let row = registration.rows_between(&table.relation, chunk.first, tid)?;
        let (input, line) = chunk.place(row);
        error = error.at(Place {
            file: built.inputs[input].clone(),
            line,
            ..std::mem::take(&mut field)
        });
    }
    Err(error)
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
