//! The end of `build --stage-only`: what was built becomes a stage.

use super::super::built::{BuiltFork, BuiltTable};
use super::super::plan::{How, TablePlan};
use super::super::{Build, sequence_moves};
use super::copy::take_stock;
use super::manifest::{Manifest, StagedTable, forks, server_facts};
use crate::catalog::describe::Description;
use crate::cluster::register::keep_values;
use crate::cluster::session::Session;
use crate::cluster::staging::Staging;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

impl Build<'_> {
    /// Refuses tables that no stage can hold: rows that the server's COPY must read are nowhere
    /// but in the server.
    pub(in crate::load) fn refuse_to_stage(tables: &[TablePlan]) -> Result<()> {
        for table in tables {
            if let How::Server(reason) = &table.how {
                return Err(Error::unsupported(format!(
                    "{} cannot be staged: the server's COPY must load it: {reason}",
                    table.relation.display_name()
                ))
                .with_hint("Load it without --stage-only."));
            }
        }
        Ok(())
    }

    /// Makes the built files durable, reads them once for their checksums, ends the transaction that
    /// gave values to the rows, and writes the manifest.
    pub(in crate::load) fn finish_stage(
        &mut self,
        session: &mut Session,
        staging: Staging,
        directory: &Path,
        tables: &[TablePlan],
        built: Vec<Option<BuiltTable>>,
    ) -> Result<()> {
        let facts = session.facts.clone();
        let moves = sequence_moves(tables, &built);
        let built: Vec<BuiltTable> = built.into_iter().flatten().collect();
        assert_eq!(built.len(), tables.len(), "every table was built natively");
        let paths: Vec<PathBuf> = built
            .iter()
            .flat_map(forks)
            .flat_map(BuiltFork::segments)
            .collect();
        let manifest = Manifest {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            server: server_facts(&facts),
            trust_constraints: self.options.trust_constraints,
            skip_triggers: self.options.skip_triggers,
            files: take_stock(&paths, self.interrupted)?,
            tables: tables
                .iter()
                .zip(&built)
                .map(|(table, built)| StagedTable {
                    oid: table.relation.oid,
                    name: table.relation.display_name(),
                    leaves: table.part.leaves().len(),
                    fields: table.fields.clone(),
                    description: Description::of(&table.relation),
                    built: built.clone(),
                })
                .collect(),
        };
        self.check_interrupt()?;
        // Before there is a stage: values of sequences that are in it are nobody else's.
        keep_values(session, &moves)?;
        manifest.write(directory, facts.owner)?;
        staging.keep();
        self.report.notes.push(format!(
            "staged, not loaded: \"pgpagewrite register {}\" loads it",
            directory.display()
        ));
        let with_values = tables.iter().filter(|table| match &table.how {
            How::Native(native) => native.defaults.belong_to_the_load(),
            How::Server(_) => false,
        });
        for table in with_values {
            self.report.notes.push(format!(
                "{}: defaults and generated columns have the values of this build",
                table.relation.display_name()
            ));
        }
        for (table, built) in tables.iter().zip(built) {
            self.report_table(table, Some(built), None, Vec::new());
        }
        Ok(())
    }
}
