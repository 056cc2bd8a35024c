//! What a run wrote down before it renamed files into a cluster.
//!
//! One file a transaction, `pgpagewrite.journal/<xid>` in the data directory: a line of JSON
//! and a line with its CRC-32C. It is durable before the first rename and goes after COMMIT or
//! ROLLBACK; what is found later is of a run that died ([`super::recover`]).

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use pgformat::ids::Oid;
use serde_json::{Value, json};

use super::facts::Facts;
use super::owner::{FileOwner, fsync_directory};
use crate::error::{Class, Error, Result};

/// The directory's name in the data directory.
const DIRECTORY: &str = "pgpagewrite.journal";

/// How often the directory is made when other runs remove it.
const ATTEMPTS: u32 = 10;

/// A file that is about to be renamed into the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalFile {
    /// Where it goes, relative to the data directory, as `base/5/16385.1`.
    pub path: String,
    /// The relfilenode it belongs to.
    pub filenode: Oid,
    /// The tablespace (never 0).
    pub tablespace: Oid,
    /// The staged file: another one at the same path is not ours.
    pub staged: FileIdentity,
    /// The empty file that it replaces, which the transaction made; `None` where it replaces
    /// none.
    pub replaced: Option<FileIdentity>,
}

/// What tells a file from any other that may come to lie at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Its inode.
    pub inode: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
}

impl FileIdentity {
    /// Of a file that was looked at.
    pub fn of(meta: &std::fs::Metadata) -> FileIdentity {
        FileIdentity {
            inode: meta.ino(),
            length_bytes: meta.len(),
        }
    }

    fn to_json(self) -> Value {
        json!([self.inode, self.length_bytes])
    }

    fn from_json(value: &Value) -> Option<FileIdentity> {
        Some(FileIdentity {
            inode: value[0].as_u64()?,
            length_bytes: value[1].as_u64()?,
        })
    }
}

/// A transaction that renames files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// The cluster.
    pub system_identifier: u64,
    /// The database.
    pub database: Oid,
    /// The transaction, with its epoch (xid8).
    pub xid: u64,
    /// The files.
    pub files: Vec<JournalFile>,
}

/// A journal on disk.
#[derive(Debug)]
pub struct JournalOnDisk {
    path: PathBuf,
    owner: FileOwner,
}

impl Journal {
    /// Writes the journal and makes it durable.
    pub fn write(&self, facts: &Facts) -> Result<JournalOnDisk> {
        let owner = facts.owner;
        let directory = facts.data_directory.join(DIRECTORY);
        let path = directory.join(self.xid.to_string());
        let unfinished = directory.join(format!("{}.new", self.xid));
        let mut attempts = 0;
        let created = loop {
            let made = owner
                .create_directory(&directory)
                .map_err(|e| Error::io("create directory", &directory, &e))?;
            if made {
                fsync_directory(&facts.data_directory)?;
            }
            let created = owner
                .remove_file(&unfinished)
                .and_then(|()| owner.create_new(&unfinished));
            attempts += 1;
            // Another run that ends removes the directory when it is empty.
            let gone = matches!(&created, Err(e) if e.kind() == std::io::ErrorKind::NotFound);
            if !gone || attempts == ATTEMPTS {
                break created;
            }
        };
        created
            .and_then(|mut file| {
                file.write_all(self.to_text().as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| owner.rename(&unfinished, &path))
            .map_err(|e| Error::io("write file", &path, &e))?;
        fsync_directory(&directory)?;
        Ok(JournalOnDisk { path, owner })
    }

    fn to_text(&self) -> String {
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|f| {
                let replaced = f.replaced.map(FileIdentity::to_json);
                json!([
                    f.path,
                    f.filenode,
                    f.tablespace,
                    f.staged.to_json(),
                    replaced
                ])
            })
            .collect();
        let line = json!({
            "version": 1,
            "system_identifier": self.system_identifier,
            "database": self.database,
            "xid": self.xid,
            "files": files,
        })
        .to_string();
        format!("{line}\n{:08x}\n", crc32c::crc32c(line.as_bytes()))
    }

    /// Reads a journal's text; `None` when it is damaged.
    fn parse(text: &str) -> Option<Journal> {
        let (line, crc) = text.strip_suffix('\n')?.split_once('\n')?;
        if u32::from_str_radix(crc, 16).ok()? != crc32c::crc32c(line.as_bytes()) {
            return None;
        }
        let value: Value = serde_json::from_str(line).ok()?;
        if value["version"].as_u64()? != 1 {
            return None;
        }
        let oid = |v: &Value| Oid::try_from(v.as_u64()?).ok();
        let files = value["files"]
            .as_array()?
            .iter()
            .map(|f| {
                let path = f[0].as_str()?;
                is_relation_path(path).then_some(())?;
                Some(JournalFile {
                    path: path.to_owned(),
                    filenode: oid(&f[1])?,
                    tablespace: oid(&f[2])?,
                    staged: FileIdentity::from_json(&f[3])?,
                    replaced: match &f[4] {
                        Value::Null => None,
                        value => Some(FileIdentity::from_json(value)?),
                    },
                })
            })
            .collect::<Option<Vec<JournalFile>>>()?;
        Some(Journal {
            system_identifier: value["system_identifier"].as_u64()?,
            database: oid(&value["database"])?,
            xid: value["xid"].as_u64()?,
            files,
        })
    }

    /// The journals of a cluster.
    ///
    /// # Errors
    /// `XX001` for one that is damaged. A journal is durable before anything is renamed, and
    /// gets its name only then; a damaged one was damaged later.
    pub fn list(data_directory: &Path, owner: FileOwner) -> Result<Vec<(Journal, JournalOnDisk)>> {
        let directory = data_directory.join(DIRECTORY);
        let mut found = Vec::new();
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(found),
            Err(e) => return Err(Error::io("open directory", &directory, &e)),
        };
        for entry in entries {
            let path = entry
                .map_err(|e| Error::io("read directory", &directory, &e))?
                .path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.bytes().all(|b| b.is_ascii_digit()) {
                // A `.new` was not finished: nothing was renamed. Its run may still be at it.
                continue;
            }
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                // Its run has just come to its end.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io("read file", &path, &e)),
            };
            let journal = Journal::parse(&text).ok_or_else(|| {
                Error::new(
                    Class::Corruption,
                    "XX001",
                    format!("journal \"{}\" is damaged", path.display()),
                )
            })?;
            found.push((journal, JournalOnDisk { path, owner }));
        }
        found.sort_by_key(|(journal, _)| journal.xid);
        Ok(found)
    }

    /// Removes the files that are still exactly the renamed ones, or the empty ones that were to
    /// be replaced, and that `is_named` does not know; durable before it returns. The transaction must have
    /// aborted, and the server must have made a checkpoint since.
    pub fn remove_files(
        &self,
        data_directory: &Path,
        owner: FileOwner,
        is_named: impl Fn(&JournalFile) -> bool,
    ) -> Result<usize> {
        let mut directories = Vec::new();
        let mut removed = 0;
        for file in self.files.iter().filter(|f| !is_named(f)) {
            let path = data_directory.join(&file.path);
            let ours = std::fs::symlink_metadata(&path).is_ok_and(|m| {
                let found = FileIdentity::of(&m);
                m.is_file() && (found == file.staged || Some(found) == file.replaced)
            });
            if !ours {
                continue;
            }
            owner
                .remove_file(&path)
                .map_err(|e| Error::io("remove file", &path, &e))?;
            removed += 1;
            if let Some(parent) = path.parent()
                && !directories.iter().any(|d| d == parent)
            {
                directories.push(parent.to_owned());
            }
        }
        for directory in directories {
            fsync_directory(&directory)?;
        }
        Ok(removed)
    }
}

impl JournalOnDisk {
    /// Removes the journal, and its directory when it was the last.
    pub fn remove(self) -> Result<()> {
        self.owner
            .remove_file(&self.path)
            .map_err(|e| Error::io("remove file", &self.path, &e))?;
        if let Some(directory) = self.path.parent() {
            match fsync_directory(directory) {
                // Another run removed the directory as soon as this journal was gone.
                Err(_) if !directory.exists() => return Ok(()),
                synced => synced?,
            }
            // Fails while another run's journal is there, which is right.
            let _ = self.owner.act(|| std::fs::remove_dir(directory));
        }
        Ok(())
    }
}

/// A journal names files of relations below `base` or `pg_tblspc` and nothing else.
fn is_relation_path(path: &str) -> bool {
    let mut components = Path::new(path).components();
    let first = components.next();
    let known = [
        Component::Normal("base".as_ref()),
        Component::Normal("pg_tblspc".as_ref()),
    ];
    first.is_some_and(|c| known.contains(&c))
        && components.all(|c| matches!(c, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        Journal {
            system_identifier: 0xffff_0000_1234_5678,
            database: 5,
            xid: 1 << 33,
            files: vec![JournalFile {
                path: "base/5/16385.1".into(),
                filenode: 16385,
                tablespace: 1663,
                staged: FileIdentity {
                    inode: u64::MAX,
                    length_bytes: 8192,
                },
                replaced: Some(FileIdentity {
                    inode: 0,
                    length_bytes: 0,
                }),
            }],
        }
    }

    #[test]
    fn a_journal_reads_back_and_a_changed_byte_is_noticed() {
        let text = journal().to_text();
        assert_eq!(Journal::parse(&text), Some(journal()));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(Journal::parse(&changed), None, "byte {at}");
        }
    }

    #[test]
    fn a_journal_names_files_of_relations_and_nothing_else() {
        assert!(is_relation_path("base/5/16385"));
        assert!(is_relation_path(
            "pg_tblspc/16400/PG_15_202209061/5/16385_vm"
        ));
        assert!(!is_relation_path("/base/5/1"));
        assert!(!is_relation_path("base/../global/pg_control"));
        assert!(!is_relation_path("global/pg_control"));
    }

    #[test]
    fn only_the_very_files_that_were_renamed_are_removed() {
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(data.path().join("base/5")).unwrap();
        let path = data.path().join("base/5/16385.1");
        std::fs::write(&path, vec![1; 8192]).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let owner = FileOwner {
            uid: meta.uid(),
            gid: meta.gid(),
            mode: 0o600,
        };
        let mut journal = journal();
        assert_eq!(
            journal.remove_files(data.path(), owner, |_| false).unwrap(),
            0
        );
        journal.files[0].staged.inode = meta.ino();
        assert_eq!(
            journal.remove_files(data.path(), owner, |_| true).unwrap(),
            0
        );
        assert!(path.exists());
        assert_eq!(
            journal.remove_files(data.path(), owner, |_| false).unwrap(),
            1
        );
        assert!(!path.exists());
    }
}
