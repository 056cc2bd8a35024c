//! The end of `build --stage-only`: what was built becomes a stage.

use super::super::Build;
use super::super::built::{BuiltFork, BuiltTable};
use super::super::constraints;
use super::super::plan::{How, TablePlan};
use super::copy::take_stock;
use super::manifest::{Manifest, StagedTable, forks, server_facts};
use crate::catalog::describe::Description;
use crate::cluster::facts::Facts;
use crate::cluster::staging::Staging;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

impl Build<'_> {
    /// Refuses tables that no stage can hold: rows that the server's COPY must read are nowhere
    /// but in the server, values of sequences may be another's by the time of the register, and the
    /// stage does not tell nulls of the input from those of columns that it does not have.
    pub(in crate::load) fn refuse_to_stage(tables: &[TablePlan]) -> Result<()> {
        for table in tables {
            let reason = match &table.how {
                How::Server(reason) => format!("the server's COPY must load it: {reason}"),
                How::Native(_) if !table.part.has_rows() => {
                    "its rows go to its partitions".to_owned()
                }
                How::Native(native) if native.defaults.belong_to_the_load() => {
                    "its defaults or generated columns belong to the transaction that loads it"
                        .to_owned()
                }
                How::Native(_) => match constraints::null_unchecked(table) {
                    None => continue,
                    Some(check) => format!(
                        "column {} is not in the input, and its domain {} has CHECK constraint {}, \
                         which COPY does not hold against it",
                        check.column, check.domain, check.name
                    ),
                },
            };
            return Err(Error::unsupported(format!(
                "{} cannot be staged: {reason}",
                table.relation.display_name()
            ))
            .with_hint("Load it without --stage-only."));
        }
        Ok(())
    }

    /// Makes the built files durable, reads them once for their checksums, and writes the manifest.
    pub(in crate::load) fn finish_stage(
        &mut self,
        facts: &Facts,
        staging: Staging,
        directory: &Path,
        tables: &[TablePlan],
        built: Vec<Option<BuiltTable>>,
    ) -> Result<()> {
        let built: Vec<BuiltTable> = built.into_iter().flatten().collect();
        assert_eq!(built.len(), tables.len(), "every table was built natively");
        let paths: Vec<PathBuf> = built
            .iter()
            .flat_map(forks)
            .flat_map(BuiltFork::segments)
            .collect();
        let manifest = Manifest {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            server: server_facts(facts),
            trust_constraints: self.options.trust_constraints,
            skip_triggers: self.options.skip_triggers,
            files: take_stock(&paths, self.interrupted)?,
            tables: tables
                .iter()
                .zip(&built)
                .map(|(table, built)| StagedTable {
                    oid: table.relation.oid,
                    name: table.relation.display_name(),
                    description: Description::of(&table.relation),
                    built: built.clone(),
                })
                .collect(),
        };
        self.check_interrupt()?;
        manifest.write(directory, facts.owner)?;
        staging.keep();
        self.report.notes.push(format!(
            "staged, not loaded: \"pgpagewrite register {}\" loads it",
            directory.display()
        ));
        for (table, built) in tables.iter().zip(built) {
            self.report_table(table, Some(built), None, Vec::new());
        }
        Ok(())
    }
}
