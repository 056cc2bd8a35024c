//! Renames the built files over the empty ones and tells pg_class.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use pgformat::ids::Oid;

use super::descriptors::has_none_open;
use super::{
    Registration, SMALL_RELATION_KB, StagedRelation, StagedTable, TableToRegister, checkpoint,
    flush_wal, sync_file_systems, wal_flush_suffices,
};
use crate::catalog::read::scratch::read_allequalimage;
use crate::cluster::facts::WalLevel;
use crate::cluster::faults;
use crate::cluster::journal::{FileIdentity, Journal, JournalFile};
use crate::cluster::owner::{FileOwner, fsync_directory};
use crate::cluster::staging::{MANY_FILES, SyncedDirectory};
use crate::error::{Class, Error, Result};
use crate::sys::credentials::ActingAs;
use crate::sys::files::exchange;

/// How many staged files are open at a time.
const FILES_AT_ONCE: usize = 100;

/// How many threads remove files: a file system may wait for the disk each time.
const REMOVING_THREADS: usize = 4;

/// Where a relation lies now.
struct Place {
    /// Relative to the data directory, as the server names it.
    path: String,
    filenode: Oid,
    tablespace: Oid,
}

/// One rename.
struct Move {
    from: PathBuf,
    to: PathBuf,
    journal: JournalFile,
}

/// What kind of relation a file is of, for the checks of the file it replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Heap,
    Btree,
}

impl Registration<'_> {
    /// Puts built files in the place of the empty ones that [`Registration::take`] made.
    /// May be called several times, for different tables; nothing of a table may be touched
    /// through the server before its files are in place.
    ///
    /// # Errors
    /// `57P02` when staged files are gone; `XX000` when the files to be replaced are not as
    /// TRUNCATE leaves them. The transaction is to be rolled back then.
    pub fn put(&mut self, staged: &[StagedTable]) -> Result<()> {
        if staged.is_empty() {
            return Ok(());
        }
        let relations = self.relations(staged)?;
        let staging: Vec<&Path> = directories(relations.iter().flat_map(|(_, s, _)| s.files()));
        self.session.facts.check_system_identifier()?;
        if let Some(gone) = relations
            .iter()
            .flat_map(|(_, s, _)| s.files())
            .find(|f| !f.exists())
        {
            return Err(staged_file_error(
                gone,
                &std::io::Error::from(std::io::ErrorKind::NotFound),
            ));
        }
        make_durable(self.session.facts.owner, &relations, &staging)?;
        for directory in &staging {
            let facts = self.session.facts.clone();
            facts.check_same_host(self.session.client(), directory)?;
        }
        self.settle(relations.len(), &staging)?;
        faults::point("checkpointed")?;

        self.step("rename");
        let moves = self.moves(&relations)?;
        self.choose_wal_skip(&moves)?;
        let journal = Journal {
            system_identifier: self.session.facts.system_identifier,
            database: self.session.facts.database,
            xid: self.xid,
            files: self
                .journals
                .iter()
                .flat_map(|(j, _)| j.files.iter().cloned())
                .chain(moves.iter().map(|m| m.journal.clone()))
                .collect(),
        };
        // A second call writes the whole again, over the first.
        let on_disk = journal.write(&self.session.facts)?;
        self.journals = vec![(journal, on_disk)];
        faults::point("journalled")?;

        let owner = self.session.facts.owner;
        let (first, second) = moves.split_at(moves.len() / 2);
        rename_all(owner, first)?;
        faults::point("half_renamed")?;
        rename_all(owner, second)?;
        for directory in directories(moves.iter().map(|m| m.to.as_path()))
            .into_iter()
            .chain(staging)
        {
            fsync_directory(directory)?;
        }
        faults::point("renamed")?;
        self.replaced.begin(owner, &moves)?;

        self.update_pg_class(&relations)?;
        faults::point("updated")?;
        let mut done = HashSet::new();
        for table in staged {
            done.insert(table.table);
            done.extend(table.indexes.iter().map(|(index, _)| *index));
            // Over a heap without rows the empty indexes that the server made are right.
            if table.heap.main.is_empty()
                && let Some(taken) = self.taken(table.table)
            {
                done.extend(taken.relation.indexes.iter().map(|i| i.oid));
            }
        }
        self.open_tables.retain(|oid| !done.contains(oid));
        self.open_indexes.retain(|(oid, _)| !done.contains(oid));
        Ok(())
    }

    /// Makes the transaction's id durable, which the journal relies on. Above wal_level minimal
    /// the WAL has an image of each empty index's metapage, too: replay must begin after it.
    fn settle(&mut self, relations: usize, staging: &[&Path]) -> Result<()> {
        if wal_flush_suffices(&self.session.facts, relations) {
            self.step("flush the WAL");
            // After a crash of the machine the empty files are still those of the journal.
            sync_file_systems(&self.session.facts, staging);
            if flush_wal(self.session)? {
                return Ok(());
            }
        }
        self.step("checkpoint");
        checkpoint(self.session, relations, staging)
    }

    /// Whether COMMIT logs small relations: where there are many, and only when its process is
    /// seen to have none of the files open that are replaced, for it reads the pages that it logs.
    fn choose_wal_skip(&mut self, moves: &[Move]) -> Result<()> {
        if self.session.facts.wal_level != WalLevel::Minimal {
            return Ok(());
        }
        self.may_log = self.may_log && self.backend_has_none_open(moves)?;
        let before: usize = self.journals.iter().map(|(j, _)| j.files.len()).sum();
        let many = before + moves.len() > MANY_FILES;
        self.wal_skip_kb = if many && self.may_log {
            SMALL_RELATION_KB
        } else {
            0
        };
        Ok(())
    }

    fn backend_has_none_open(&mut self, moves: &[Move]) -> Result<bool> {
        let row = self
            .client()
            .query_one("SELECT pg_catalog.pg_backend_pid()", &[])?;
        let names: HashSet<OsString> = moves
            .iter()
            .filter_map(|m| m.to.file_name().map(OsString::from))
            .collect();
        Ok(has_none_open(
            row.get(0),
            &self.session.facts.data_directory,
            &names,
        ))
    }

    /// A table that was taken; they stand in the order of their OIDs.
    fn taken(&self, table: Oid) -> Option<&TableToRegister> {
        let found = self
            .tables
            .binary_search_by_key(&table, |t| t.relation.oid)
            .ok()?;
        Some(&self.tables[found])
    }

    /// Every staged relation with its OID, checked against the tables that were taken.
    fn relations<'t>(
        &self,
        staged: &'t [StagedTable],
    ) -> Result<Vec<(Oid, &'t StagedRelation, Kind)>> {
        let mut relations = Vec::new();
        let mut open: HashSet<Oid> = self.open_tables.iter().copied().collect();
        for table in staged {
            let planned = self
                .taken(table.table)
                .filter(|t| t.native)
                .ok_or_else(|| {
                    internal(format!("table {} was not taken for files", table.table))
                })?;
            if !open.remove(&table.table) {
                return Err(internal(format!(
                    "files of table \"{}\" are put twice",
                    planned.relation.name
                )));
            }
            relations.push((table.table, &table.heap, Kind::Heap));
            if let Some((heap, index)) = &table.toast {
                let toast = planned.relation.toast.ok_or_else(|| {
                    internal(format!(
                        "table \"{}\" has no TOAST table",
                        planned.relation.name
                    ))
                })?;
                relations.push((toast.oid, heap, Kind::Heap));
                relations.push((toast.index_oid, index, Kind::Btree));
            }
            for (oid, index) in &table.indexes {
                let known = planned
                    .relation
                    .indexes
                    .iter()
                    .any(|i| i.oid == *oid && i.access_method == "btree");
                if !known {
                    return Err(internal(format!("index {oid} was not planned")));
                }
                relations.push((*oid, index, Kind::Btree));
            }
        }
        Ok(relations)
    }

    fn places(
        &mut self,
        relations: &[(Oid, &StagedRelation, Kind)],
    ) -> Result<HashMap<Oid, Place>> {
        let oids: Vec<Oid> = relations.iter().map(|(oid, _, _)| *oid).collect();
        let default = self.session.facts.database_tablespace;
        let rows = self.client().query(
            "SELECT oid, pg_catalog.pg_relation_filepath(oid),
                    pg_catalog.pg_relation_filenode(oid), reltablespace
               FROM pg_catalog.pg_class WHERE oid = ANY ($1)",
            &[&oids],
        )?;
        rows.iter()
            .map(|row| {
                let oid: Oid = row.get(0);
                let (path, filenode): (Option<String>, Option<Oid>) = (row.get(1), row.get(2));
                match (path, filenode, row.get::<_, Oid>(3)) {
                    (Some(path), Some(filenode), tablespace) => Ok((
                        oid,
                        Place {
                            path,
                            filenode,
                            tablespace: if tablespace == 0 { default } else { tablespace },
                        },
                    )),
                    _ => Err(internal(format!("relation {oid} has no file"))),
                }
            })
            .collect()
    }

    /// Looks at both ends of every rename. Only by the file system: the server must not open
    /// these relations now.
    fn moves(&mut self, relations: &[(Oid, &StagedRelation, Kind)]) -> Result<Vec<Move>> {
        let places = self.places(relations)?;
        let facts = &self.session.facts;
        let _as_owner = acting_as(facts.owner)?;
        let segment_bytes = u64::from(facts.segment_blocks) * 8192;
        let mut moves = Vec::new();
        for (oid, staged, kind) in relations {
            let place = places
                .get(oid)
                .ok_or_else(|| internal(format!("relation {oid} is gone")))?;
            let target = facts.data_directory.join(&place.path);
            let replaced = check_empty(&target, *kind)?;
            if *kind == Kind::Btree {
                let first = staged
                    .main
                    .first()
                    .ok_or_else(|| internal(format!("index {oid} has no metapage")))?;
                if read_allequalimage(first)? != read_allequalimage(&target)? {
                    return Err(Error::refused(
                        "55000",
                        format!("the server now makes the metapage of index {oid} otherwise"),
                    )
                    .with_hint("Nothing was loaded. Run the command again."));
                }
            }
            let mut blocks = 0;
            for (fork, files) in [("", &staged.main), ("_vm", &staged.visibility_map)] {
                for (number, from) in files.iter().enumerate() {
                    let suffix = match number {
                        0 => fork.to_owned(),
                        n => format!("{fork}.{n}"),
                    };
                    let staged_file = std::fs::symlink_metadata(from)
                        .map(|m| FileIdentity::of(&m))
                        .map_err(|e| staged_file_error(from, &e))?;
                    let length_bytes = staged_file.length_bytes;
                    let is_last = number + 1 == files.len();
                    let whole = length_bytes % 8192 == 0
                        && length_bytes <= segment_bytes
                        && (is_last || length_bytes == segment_bytes)
                        && (length_bytes > 0 || number == 0);
                    if !whole {
                        return Err(internal(format!(
                            "segment {number} of relation {oid} has {length_bytes} bytes"
                        )));
                    }
                    if fork.is_empty() {
                        blocks += length_bytes / 8192;
                    }
                    let to = facts.data_directory.join(format!("{}{suffix}", place.path));
                    if !suffix.is_empty() && to.exists() {
                        return Err(internal(format!("\"{}\" exists", to.display())));
                    }
                    moves.push(Move {
                        from: from.clone(),
                        to,
                        journal: JournalFile {
                            path: format!("{}{suffix}", place.path),
                            filenode: place.filenode,
                            tablespace: place.tablespace,
                            staged: staged_file,
                            replaced: suffix.is_empty().then_some(replaced),
                        },
                    });
                }
            }
            if blocks != u64::from(staged.blocks) {
                return Err(internal(format!(
                    "relation {oid} has {blocks} blocks, not {}",
                    staged.blocks
                )));
            }
        }
        Ok(moves)
    }

    /// relpages, reltuples, relallvisible; every row, since this also makes all sessions, ours
    /// included, forget what they know of the files.
    fn update_pg_class(&mut self, relations: &[(Oid, &StagedRelation, Kind)]) -> Result<()> {
        let oids: Vec<Oid> = relations.iter().map(|(oid, _, _)| *oid).collect();
        let pages: Vec<i32> = relations.iter().map(|(_, s, _)| s.blocks as i32).collect();
        let tuples: Vec<f32> = relations.iter().map(|(_, s, _)| s.tuples as f32).collect();
        let visible: Vec<i32> = relations
            .iter()
            .map(|(_, s, _)| s.all_visible_blocks as i32)
            .collect();
        let frozen = if self.session.facts.version.at_least(18) {
            ", relallfrozen = n.visible"
        } else {
            ""
        };
        let updated = self.client().execute(
            &format!(
                "UPDATE pg_catalog.pg_class c
                    SET relpages = n.pages, reltuples = n.tuples, relallvisible = n.visible{frozen}
                   FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]),
                                    pg_catalog.unnest($2::pg_catalog.int4[]),
                                    pg_catalog.unnest($3::pg_catalog.float4[]),
                                    pg_catalog.unnest($4::pg_catalog.int4[]))
                        AS n (oid, pages, tuples, visible)
                  WHERE c.oid = n.oid"
            ),
            &[&oids, &pages, &tuples, &visible],
        )?;
        if updated == relations.len() as u64 {
            Ok(())
        } else {
            Err(internal(format!(
                "{updated} rows of pg_class were updated instead of {}",
                relations.len()
            )))
        }
    }
}

/// Makes staged files durable and gives them the cluster's owner and permissions.
///
/// A few files are synced one by one; for many it is one request to the file system, which
/// takes as long as one of these and not as thousands.
fn make_durable(
    owner: FileOwner,
    relations: &[(Oid, &StagedRelation, Kind)],
    directories: &[&Path],
) -> Result<()> {
    let files: Vec<&Path> = relations.iter().flat_map(|(_, s, _)| s.files()).collect();
    let many = files.len() > MANY_FILES;
    // Opened before all else: it is told of errors from here on.
    let file_systems = directories
        .iter()
        .filter(|_| many)
        .map(|directory| SyncedDirectory::open(directory))
        .collect::<Result<Vec<_>>>()?;
    for some in files.chunks(FILES_AT_ONCE) {
        let opened = {
            let _as_owner = acting_as(owner)?;
            some.iter()
                .map(|path| File::open(path).map_err(|e| staged_file_error(path, &e)))
                .collect::<Result<Vec<File>>>()?
        };
        for (file, path) in opened.iter().zip(some) {
            owner
                .apply(file)
                .and_then(|()| if many { Ok(()) } else { file.sync_all() })
                .map_err(|e| Error::io("fsync file", path, &e))?;
        }
    }
    file_systems.iter().try_for_each(SyncedDirectory::sync)
}

/// Renames every file to its place. An empty file that is there takes the staged one's name where
/// the file system can do that: to free its blocks would be part of the rename.
fn rename_all(owner: FileOwner, moves: &[Move]) -> Result<()> {
    let _as_owner = acting_as(owner)?;
    moves.iter().try_for_each(|m| {
        let exchanged = m.journal.replaced.is_some() && exchange(&m.from, &m.to).is_ok();
        if exchanged {
            return Ok(());
        }
        std::fs::rename(&m.from, &m.to).map_err(|e| Error::io("rename file", &m.from, &e))
    })
}

/// Removes the empty files that were replaced, where there are many, beside what comes next; else
/// they go with the staging directory. Dropped, it waits for its end.
#[derive(Debug, Default)]
pub(super) struct Removal {
    threads: Vec<JoinHandle<()>>,
}

impl Removal {
    fn begin(&mut self, owner: FileOwner, moves: &[Move]) -> Result<()> {
        if moves.len() <= MANY_FILES {
            return Ok(());
        }
        for part in moves.chunks(moves.len().div_ceil(REMOVING_THREADS)) {
            let files: Vec<PathBuf> = part.iter().map(|m| m.from.clone()).collect();
            let remove = move || {
                // What is left goes with the directory.
                if let Ok(_as_owner) = acting_as(owner) {
                    for file in files {
                        let _ = std::fs::remove_file(file);
                    }
                }
            };
            let thread = std::thread::Builder::new()
                .name("remove".into())
                .spawn(remove)
                .map_err(|e| {
                    Error::environment("53000", format!("could not start a thread: {e}"))
                })?;
            self.threads.push(thread);
        }
        Ok(())
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// This thread has the owner's rights until the guard goes; see [`FileOwner::act`].
fn acting_as(owner: FileOwner) -> Result<ActingAs> {
    ActingAs::new(owner.uid, owner.gid).map_err(|e| {
        Error::environment("42501", format!("could not act as user {}: {e}", owner.uid))
    })
}

impl StagedRelation {
    fn files(&self) -> impl Iterator<Item = &Path> {
        self.main
            .iter()
            .chain(&self.visibility_map)
            .map(PathBuf::as_path)
    }
}

/// The directories that files lie in, each once.
fn directories<'p>(files: impl Iterator<Item = &'p Path>) -> Vec<&'p Path> {
    let mut directories: Vec<&Path> = Vec::new();
    for parent in files.filter_map(Path::parent) {
        if !directories.contains(&parent) {
            directories.push(parent);
        }
    }
    directories
}

/// What is replaced must be what the server just made: a heap without blocks, an index with
/// its metapage alone, no other fork but an unlogged relation's init fork.
fn check_empty(target: &Path, kind: Kind) -> Result<FileIdentity> {
    let expected = match kind {
        Kind::Heap => 0,
        Kind::Btree => 8192,
    };
    let found = std::fs::metadata(target)
        .map(|m| FileIdentity::of(&m))
        .map_err(|e| Error::io("stat file", target, &e))?;
    if found.length_bytes != expected {
        return Err(internal(format!(
            "the new file \"{}\" has {} bytes",
            target.display(),
            found.length_bytes
        )));
    }
    for fork in ["_fsm", "_vm"] {
        let other = PathBuf::from(format!("{}{fork}", target.display()));
        if other.exists() {
            return Err(internal(format!("\"{}\" exists", other.display())));
        }
    }
    Ok(found)
}

/// A staged file that is gone was removed by the server as it restarted.
fn staged_file_error(path: &Path, error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        Error::environment(
            "57P02",
            "the server restarted and removed the files that were being built",
        )
        .with_detail(format!("\"{}\" is gone.", path.display()))
        .with_hint("See the server's log, then run the command again.")
    } else {
        Error::io("open file", path, error)
    }
}

#[cold]
fn internal(message: String) -> Error {
    Error::new(Class::Environment, "XX000", message)
}
