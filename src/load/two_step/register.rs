//! `register DIR`: a stage becomes part of the cluster that it was built for, or is refused.
//!
//! Nothing of it is bound to a transaction: its rows are frozen. Its TOAST value ids are unique in
//! TOAST tables that are new when they come, whatever OIDs were given since; they lay below the
//! server's counter, which only goes on, so that it comes to them after going once around.

use super::super::built::{BuiltFork, BuiltTable};
use super::super::options::{BuildOptions, WalMode};
use super::super::plan::{How, IndexPlan, TablePlan};
use super::super::report::Report;
use super::super::{
    Build, finish_session, interruptible, is_taken, refuse_rows, relation_count, settings, space,
    tablespaces, to_analyze,
};
use super::copy::copy_all;
use super::manifest::{self, Manifest, StagedFile, StagedTable, server_facts};
use crate::catalog::describe::Description;
use crate::catalog::{Relation, quote_ident};
use crate::cluster::conninfo::process_environment;
use crate::cluster::facts::{Consumers, Facts};
use crate::cluster::session::Session;
use crate::cluster::staging::Staging;
use crate::cluster::target::Target;
use crate::error::{Error, Result};
use crate::sys::files::raise_open_files_limit;
use pgformat::ids::Oid;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What `register` is asked to do.
#[derive(Debug, Clone)]
pub struct RegisterOptions {
    /// The stage.
    pub stage: PathBuf,
    /// Leave the stage when it is registered.
    pub keep: bool,
    /// What it has in common with a build; the rest has no meaning here.
    pub common: BuildOptions,
}

/// Registers the tables of a stage: all or none.
///
/// # Errors
/// `XX001` for a stage that is damaged; `55000` when the server or a table is no longer what the
/// stage was built for, or a table has rows; all that a registration may run into. The cluster and
/// the stage are then as they were.
pub fn register(
    target: &Target,
    options: &RegisterOptions,
    interrupt_flag: &AtomicBool,
) -> Result<Report> {
    let started = Instant::now();
    let manifest = Manifest::read(&options.stage)?;
    let mut common = options.common.clone();
    // What was planned then is planned again.
    common.trust_constraints |= manifest.trust_constraints;
    common.skip_triggers |= manifest.skip_triggers;
    let mut session = target.open(&process_environment)?;
    session.lock_wait = common.lock_timeout;
    let mut build = Build::new(&common, interrupt_flag);
    let tables = interruptible(&mut session, interrupt_flag, |session| {
        build.register_stage(session, &manifest, &options.stage)
    })?;
    let mut report = build.report;
    if !options.keep
        && let Err(error) = remove(&options.stage, &manifest)
    {
        report.notes.push(format!(
            "the stage is registered, but could not be removed: {}",
            error.message
        ));
    }
    finish_session(session, &tables, &common, interrupt_flag, &mut report)?;
    report.total = started.elapsed();
    Ok(report)
}

impl Build<'_> {
    fn register_stage(
        &mut self,
        session: &mut Session,
        manifest: &Manifest,
        stage: &Path,
    ) -> Result<Vec<Relation>> {
        let begun = Instant::now();
        let facts = session.facts.clone();
        check_server(manifest, &facts)?;
        if self.options.wal == WalMode::Auto {
            Consumers::read(session.client(), facts.version)?.refuse()?;
        }
        let heads = manifest.heads().expect("the manifest is whole");
        let relations = check_tables(session, manifest, &heads)?;
        if !self.options.truncate {
            refuse_rows(session.client(), &relations)?;
        }
        let view = settings::ask(session.client(), &facts, None)?;
        let sources: Vec<_> = relations.iter().map(|_| ("", Vec::new())).collect();
        let mut tables = self.plan(relations, &sources, &view, &facts)?;
        check_leaves(manifest, &heads, &tables)?;
        check_plans(manifest, &tables)?;
        for (table, staged) in tables.iter_mut().zip(&manifest.tables) {
            table.fields.clone_from(&staged.fields);
            if let How::Native(native) = &mut table.how {
                // The rows have their values.
                native.defaults.asked.clear();
            }
        }
        self.refuse_unemptyable(session.client(), &tables)?;

        raise_open_files_limit();
        let staging = Staging::create(&facts, &tablespaces(&tables))?;
        let (built, copies) = places(manifest, &tables, &staging);
        let needed: Vec<(&Path, u64)> = copies
            .iter()
            .filter_map(|(file, to)| Some((to.parent()?, file.length_bytes)))
            .collect();
        space::refuse_if_short(&needed)?;
        let pool = self.pool()?;
        pool.install(|| copy_all(stage, &copies, facts.owner, self.interrupted))?;

        self.report.build = begun.elapsed();
        let registering = Instant::now();
        let registration = self.begin(session, relation_count(&tables))?;
        self.register(registration, staging, &tables, built, None)?;
        self.report.register = registering.elapsed();
        Ok(to_analyze(tables))
    }
}

/// The server is the one that the stage was built for.
fn check_server(manifest: &Manifest, facts: &Facts) -> Result<()> {
    let now: HashMap<String, String> = server_facts(facts).into_iter().collect();
    for (name, staged) in &manifest.server {
        let current = now.get(name).map_or("not known", String::as_str);
        if current != staged {
            return Err(
                Error::refused("55000", "the stage was built for another server").with_detail(
                    format!("The {name} was {staged}; of this server it is {current}."),
                ),
            );
        }
    }
    Ok(())
}

/// A table is not what it was.
fn changed(manifest: &Manifest, name: &str, what: &str) -> Error {
    let error = Error::refused("55000", format!("table {name} changed since it was staged"))
        .with_hint("Nothing was loaded. Build the stage again.");
    let current = env!("CARGO_PKG_VERSION");
    if manifest.program == current {
        error.with_detail(format!("{what}."))
    } else {
        error.with_detail(format!(
            "{what}, or is told otherwise: the stage is of version {} of this program, which \
             is {current}.",
            manifest.program
        ))
    }
}

/// The tables that were named are what they were when the stage was built.
fn check_tables(
    session: &mut Session,
    manifest: &Manifest,
    heads: &[&StagedTable],
) -> Result<Vec<Relation>> {
    let oids: Vec<Oid> = heads.iter().map(|table| table.oid).collect();
    let names: HashMap<Oid, String> = session
        .client()
        .query(
            "SELECT c.oid, n.nspname::text, c.relname::text
               FROM pg_catalog.pg_class c
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
              WHERE c.oid = ANY ($1)",
            &[&oids],
        )?
        .iter()
        .map(|row| {
            let (schema, name): (String, String) = (row.get(1), row.get(2));
            let name = format!("{}.{}", quote_ident(&schema), quote_ident(&name));
            (row.get(0), name)
        })
        .collect();
    let names = heads
        .iter()
        .map(|table| {
            names
                .get(&table.oid)
                .map(String::as_str)
                .ok_or_else(|| changed(manifest, &table.name, "it is gone"))
        })
        .collect::<Result<Vec<&str>>>()?;
    let relations = session.plan_tables(&names)?;
    for (table, relation) in heads.iter().zip(&relations) {
        check_description(manifest, table, relation)?;
    }
    Ok(relations)
}

fn check_description(manifest: &Manifest, table: &StagedTable, now: &Relation) -> Result<()> {
    match table.description.difference(&Description::of(now)) {
        Some(difference) => Err(changed(manifest, &table.name, &difference)),
        None => Ok(()),
    }
}

/// Partitioned tables have the same partitions, and these are what they were.
fn check_leaves(manifest: &Manifest, heads: &[&StagedTable], tables: &[TablePlan]) -> Result<()> {
    let mut staged = manifest.tables.iter();
    let mut planned = tables.iter().peekable();
    for head in heads {
        let table = planned.next().expect("each named table is planned");
        if let How::Server(reason) = &table.how {
            return Err(loaded_by_the_server(&head.name, reason));
        }
        let leaves: Vec<&TablePlan> =
            std::iter::from_fn(|| planned.next_if(|t| !t.part.has_inputs())).collect();
        let known = staged.by_ref().skip(1).take(head.leaves);
        let known: Vec<&StagedTable> = known.collect();
        let is_same = known.len() == leaves.len()
            && known
                .iter()
                .zip(&leaves)
                .all(|(known, leaf)| known.oid == leaf.relation.oid);
        if !is_same {
            return Err(changed(manifest, &head.name, "its partitions are others"));
        }
        for (known, leaf) in known.iter().zip(&leaves) {
            check_description(manifest, known, &leaf.relation)?;
        }
    }
    Ok(())
}

fn cannot_be_registered(name: &str, why: &str) -> Error {
    Error::refused("55000", format!("table {name} cannot be registered: {why}"))
        .with_hint("Nothing was loaded. Build the stage again.")
}

fn loaded_by_the_server(name: &str, reason: &str) -> Error {
    cannot_be_registered(name, &format!("the server's COPY must load it: {reason}"))
}

/// We would build today what was built then.
fn check_plans(manifest: &Manifest, tables: &[TablePlan]) -> Result<()> {
    for (staged, table) in manifest.tables.iter().zip(tables) {
        let refused = |why: String| Err(cannot_be_registered(&staged.name, &why));
        let native = match &table.how {
            How::Native(native) => native,
            How::Server(reason) => return Err(loaded_by_the_server(&staged.name, reason)),
        };
        // A leaf without rows, and one whose rows its leaves have, have no files.
        if !is_taken(table, Some(&staged.built)) || !table.part.has_rows() {
            continue;
        }
        let count = table.relation.indexes.len();
        if staged.built.indexes.iter().any(|i| i.number >= count) {
            return refused("it has fewer indexes".to_owned());
        }
        for (number, index) in table.relation.indexes.iter().enumerate() {
            let built = staged.built.indexes.iter().any(|i| i.number == number);
            match &native.indexes[number] {
                IndexPlan::Native(_) if built => {}
                IndexPlan::Server(_) if !built => {}
                IndexPlan::Native(_) => {
                    return refused(format!("index \"{}\" was not built", index.name));
                }
                IndexPlan::Server(reason) => {
                    return refused(format!(
                        "the server must build index \"{}\": {reason}",
                        index.name
                    ));
                }
            }
        }
    }
    Ok(())
}

/// What was built as if it lay in the cluster's staging, and which file goes where.
fn places<'m>(
    manifest: &'m Manifest,
    tables: &[TablePlan],
    staging: &Staging,
) -> (Vec<Option<BuiltTable>>, Vec<(&'m StagedFile, PathBuf)>) {
    let mut places: HashMap<String, PathBuf> = HashMap::new();
    let mut move_to = |fork: &mut BuiltFork, directory: &Path| {
        for name in fork.segments() {
            let to = directory.join(&name);
            places.insert(name.to_string_lossy().into_owned(), to);
        }
        fork.path = directory.join(&fork.path);
    };
    let built = manifest
        .tables
        .iter()
        .zip(tables)
        .map(|(staged, table)| {
            let mut built = staged.built.clone();
            let heap_directory = staging.directory(table.relation.tablespace);
            move_to(&mut built.heap, heap_directory);
            let toast = built.toast.iter_mut();
            let toast = toast.flat_map(|toast| {
                [&mut toast.heap, &mut toast.index]
                    .into_iter()
                    .chain(&mut toast.visibility_map)
            });
            for fork in built.visibility_map.iter_mut().chain(toast) {
                move_to(fork, heap_directory);
            }
            for index in &mut built.indexes {
                let tablespace = table.relation.indexes[index.number].tablespace;
                move_to(&mut index.file, staging.directory(tablespace));
            }
            Some(built)
        })
        .collect();
    let copies = manifest
        .files
        .iter()
        .map(|file| {
            let to = places.remove(&file.name);
            (file, to.expect("the manifest is whole"))
        })
        .collect();
    (built, copies)
}

/// Removes what a stage is made of, and its directory when nothing else lies in it.
fn remove(stage: &Path, manifest: &Manifest) -> Result<()> {
    let names = manifest.files.iter().map(|file| file.name.as_str());
    // The manifest first: what is left is no stage.
    for name in std::iter::once(manifest::NAME).chain(names) {
        let path = stage.join(name);
        std::fs::remove_file(&path).map_err(|e| Error::io("remove file", &path, &e))?;
    }
    std::fs::remove_dir(stage).map_err(|e| Error::io("remove directory", stage, &e))
}
