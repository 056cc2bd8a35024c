//! Where relation files are built before they are registered.
//!
//! `base/pgsql_tmp/pgsql_tmp.pgpagewrite.<pid>/`, and the same in each tablespace that is
//! loaded into. Such a directory lies on the right file system; base backups and
//! pg_checksums leave it out; the server removes it whole when it starts, after a crash too
//! (PostgreSQL: `src/backend/storage/file/fd.c`, `RemovePgTempFilesInDir`).

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pgformat::ids::Oid;

use super::facts::Facts;
use super::owner::FileOwner;
use crate::error::{Error, Result};
use crate::sys::{credentials, files};

/// `DEFAULTTABLESPACE_OID`, pg_default.
pub const PG_DEFAULT: Oid = 1663;

/// Stands for every tablespace where all have one directory.
const ANY_TABLESPACE: Oid = 0;

/// What the names of our directories begin with.
pub(super) const PREFIX: &str = "pgsql_tmp.pgpagewrite.";

/// From how many files on one request to the file system makes them durable, not an fsync of
/// each.
pub const MANY_FILES: usize = 100;

/// A directory whose file system is to be synced.
#[derive(Debug)]
pub struct SyncedDirectory {
    path: PathBuf,
    directory: File,
}

impl SyncedDirectory {
    /// Opens it: errors of writing that happen from now on are told by [`SyncedDirectory::sync`].
    ///
    /// # Errors
    /// The file system's.
    pub fn open(path: &Path) -> Result<SyncedDirectory> {
        let directory = File::open(path).map_err(|e| Error::io("open directory", path, &e))?;
        Ok(SyncedDirectory {
            path: path.to_owned(),
            directory,
        })
    }

    /// Makes everything in the directory's file system durable.
    ///
    /// # Errors
    /// The file system's: also of what another program wrote to it since the directory was
    /// opened.
    pub fn sync(&self) -> Result<()> {
        files::sync_file_system(&self.directory)
            .map_err(|e| Error::io("sync file system of", &self.path, &e))
    }
}

/// The staging directories of one run; removed when dropped.
#[derive(Debug)]
pub struct Staging {
    owner: FileOwner,
    database_tablespace: Oid,
    directories: Vec<(Oid, PathBuf)>,
    /// The same, open since before the first file.
    open: Vec<SyncedDirectory>,
    /// One directory for all tablespaces, that the user named.
    stage: Option<Stage>,
}

/// A directory that is to outlive the run.
#[derive(Debug)]
struct Stage {
    was_there: bool,
    keep: bool,
}

impl Staging {
    /// Makes the directories for these tablespaces (0 is the database's default).
    ///
    /// # Errors
    /// Those of the file system; what was made is removed.
    pub fn create(facts: &Facts, tablespaces: &[Oid]) -> Result<Staging> {
        let mut staging = Staging {
            owner: facts.owner,
            database_tablespace: facts.database_tablespace,
            directories: Vec::new(),
            open: Vec::new(),
            stage: None,
        };
        for tablespace in tablespaces {
            staging.add(facts, *tablespace)?;
        }
        Ok(staging)
    }

    /// One directory for all tablespaces, anywhere: the files of `--stage-only`. It goes with
    /// all in it unless [`Staging::keep`] is called.
    ///
    /// # Errors
    /// `58P02` when it has something in it; the file system's.
    pub fn in_directory(facts: &Facts, directory: &Path) -> Result<Staging> {
        let was_there = check_stage_directory(facts, directory)?;
        if !was_there {
            // Root makes it, since the owner may not write to the parent.
            DirBuilder::new()
                .mode(0o700)
                .create(directory)
                .map_err(|e| Error::io("create directory", directory, &e))?;
        }
        let owner = facts.owner;
        let mut staging = Staging {
            owner,
            database_tablespace: facts.database_tablespace,
            directories: vec![(ANY_TABLESPACE, directory.to_owned())],
            open: Vec::new(),
            stage: Some(Stage {
                was_there,
                keep: false,
            }),
        };
        if credentials::effective_uid() != owner.uid {
            std::os::unix::fs::chown(directory, Some(owner.uid), Some(owner.gid))
                .map_err(|e| Error::io("change owner of", directory, &e))?;
        }
        staging.open.push(SyncedDirectory::open(directory)?);
        Ok(staging)
    }

    /// The directory that [`Staging::in_directory`] made stays.
    pub fn keep(mut self) {
        if let Some(stage) = &mut self.stage {
            stage.keep = true;
        }
    }

    /// Makes one more directory, unless it is there.
    pub fn add(&mut self, facts: &Facts, tablespace: Oid) -> Result<&Path> {
        let tablespace = self.resolve(tablespace);
        if let Some(i) = self.directories.iter().position(|(t, _)| *t == tablespace) {
            return Ok(&self.directories[i].1);
        }
        let parent = temporary_directory(facts, tablespace);
        let directory = parent.join(format!("{PREFIX}{}", std::process::id()));
        let owner = self.owner;
        owner
            .create_directory(&parent)
            // Left by a process of the same id that is no more.
            .and_then(|_| owner.remove_directory(&directory))
            .and_then(|()| owner.create_directory(&directory))
            .map_err(|e| Error::io("create directory", &directory, &e))?;
        let open = SyncedDirectory::open(&directory);
        self.directories.push((tablespace, directory));
        self.open.push(open?);
        Ok(&self.directories[self.directories.len() - 1].1)
    }

    /// The directory for a tablespace (0 is the database's default).
    ///
    /// # Panics
    /// When it was not made.
    pub fn directory(&self, tablespace: Oid) -> &Path {
        let tablespace = self.resolve(tablespace);
        self.directories
            .iter()
            .find(|(t, _)| *t == tablespace)
            .map(|(_, d)| d.as_path())
            .expect("staging was made for every tablespace of the plan")
    }

    /// All directories.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(|(_, d)| d.as_path())
    }

    /// Makes durable whatever was written into the directories.
    ///
    /// # Errors
    /// The file system's, every one since the directories were made.
    pub fn sync(&self) -> Result<()> {
        self.open.iter().try_for_each(SyncedDirectory::sync)
    }

    /// Looks whether the directories are still there: a server that restarts after a crash
    /// of one of its processes removes them.
    ///
    /// # Errors
    /// `57P02` when one is gone.
    pub fn check(&self) -> Result<()> {
        match self.directories().find(|d| !d.is_dir()) {
            None => Ok(()),
            Some(gone) => Err(Error::environment(
                "57P02",
                "the server restarted and removed the files that were being built",
            )
            .with_detail(format!("\"{}\" is gone.", gone.display()))
            .with_hint("See the server's log, then run the command again.")),
        }
    }

    fn resolve(&self, tablespace: Oid) -> Oid {
        if self.stage.is_some() {
            ANY_TABLESPACE
        } else if tablespace == 0 {
            self.database_tablespace
        } else {
            tablespace
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        for (_, directory) in &self.directories {
            // What cannot be removed now, the server removes when it starts.
            let _ = match &self.stage {
                None => self.owner.remove_directory(directory),
                Some(stage) if stage.keep => Ok(()),
                Some(stage) if stage.was_there => remove_files_in(directory),
                Some(_) => std::fs::remove_dir_all(directory),
            };
        }
    }
}

/// Whether the directory of `--stage-only` is there.
///
/// # Errors
/// `58P02` when it has something in it; `42601` when it lies in the data directory, where base
/// backups would take it along; the file system's.
pub fn check_stage_directory(facts: &Facts, directory: &Path) -> Result<bool> {
    let is_inside = std::path::absolute(directory)
        .ok()
        .and_then(|path| path.ancestors().find_map(|above| above.canonicalize().ok()))
        .is_some_and(|path| path.starts_with(&facts.data_directory));
    if is_inside {
        return Err(Error::usage(format!(
            "\"{}\" lies in the data directory, which is no place for a stage",
            directory.display()
        )));
    }
    match std::fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => Ok(true),
            Some(_) => Err(Error::environment(
                "58P02",
                format!(
                    "directory \"{}\" exists but is not empty",
                    directory.display()
                ),
            )
            .with_hint("--stage-only wants a directory that is absent or empty.")),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("access directory", directory, &e)),
    }
}

/// Empties a directory that was empty when files were put into it.
fn remove_files_in(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

/// A tablespace's `pgsql_tmp`. PostgreSQL: `TempTablespacePath`.
pub fn temporary_directory(facts: &Facts, tablespace: Oid) -> PathBuf {
    if tablespace == PG_DEFAULT {
        facts.data_directory.join("base/pgsql_tmp")
    } else {
        facts.data_directory.join(format!(
            "pg_tblspc/{tablespace}/PG_{}_{}/pgsql_tmp",
            facts.version, facts.catalog_version
        ))
    }
}
