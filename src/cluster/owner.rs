//! The owner of a cluster, and files made in its name.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::sys::credentials::{self, ActingAs};

/// Who owns the files of a cluster, and the permissions they have.
///
/// PostgreSQL: `src/common/file_perm.c`: a data directory of mode 0750 lets the group read, and
/// every file in it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOwner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Permissions of files: 0600, or 0640 where the cluster allows group access.
    pub mode: u32,
}

impl FileOwner {
    /// The owner of a data directory.
    ///
    /// # Errors
    /// When it cannot be read, or when we are neither its owner nor root (`42501`).
    pub fn of_data_directory(dir: &Path) -> Result<FileOwner> {
        let meta = std::fs::metadata(dir)
            .map_err(|e| Error::io("read permissions of directory", dir, &e))?;
        let me = credentials::effective_uid();
        if me != 0 && me != meta.uid() {
            return Err(Error::environment(
                "42501",
                format!(
                    "data directory \"{}\" belongs to another user",
                    dir.display()
                ),
            )
            .with_hint("Run the command as the owner of the data directory, or as root."));
        }
        Ok(FileOwner {
            uid: meta.uid(),
            gid: meta.gid(),
            mode: if meta.mode() & 0o070 == 0o050 {
                0o640
            } else {
                0o600
            },
        })
    }

    /// Permissions of directories: 0700 or 0750.
    pub fn directory_mode(self) -> u32 {
        if self.mode & 0o040 == 0 { 0o700 } else { 0o750 }
    }

    /// Runs `action` on this thread with the owner's rights (when root runs us). Threads that
    /// `action` starts keep those rights; rayon's threads do not take them.
    pub fn act<T>(self, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _guard = ActingAs::new(self.uid, self.gid)?;
        action()
    }

    /// Creates a file that must not exist yet, open for reading and writing.
    pub fn create_new(self, path: &Path) -> io::Result<File> {
        self.act(|| {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(self.mode)
                .open(path)?;
            self.apply(&file)?;
            Ok(file)
        })
    }

    /// Gives an open file the owner and the permissions, whatever the umask was.
    pub fn apply(self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let meta = file.metadata()?;
        if (meta.uid(), meta.gid()) != (self.uid, self.gid) {
            std::os::unix::fs::fchown(file, Some(self.uid), Some(self.gid))?;
        }
        if meta.mode() & 0o7777 != self.mode {
            file.set_permissions(std::fs::Permissions::from_mode(self.mode))?;
        }
        Ok(())
    }

    /// Creates a directory; `Ok(false)` when it was there.
    pub fn create_directory(self, path: &Path) -> io::Result<bool> {
        self.act(
            || match DirBuilder::new().mode(self.directory_mode()).create(path) {
                Ok(()) => Ok(true),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
                Err(e) => Err(e),
            },
        )
    }

    /// Renames with the owner's rights.
    pub fn rename(self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|| std::fs::rename(from, to))
    }

    /// Removes a file with the owner's rights; no error when it is gone.
    pub fn remove_file(self, path: &Path) -> io::Result<()> {
        self.act(|| match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        })
    }

    /// Removes a directory and all in it with the owner's rights; no error when it is gone.
    pub fn remove_directory(self, path: &Path) -> io::Result<()> {
        self.act(|| match std::fs::remove_dir_all(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        })
    }

    /// A command that runs as the owner. PostgreSQL's programs refuse to run as root; the
    /// standard library drops root's further groups with the user id.
    pub fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if credentials::effective_uid() == 0 {
            command.uid(self.uid).gid(self.gid);
            if let Some(user) = credentials::user_by_uid(self.uid) {
                command.env("HOME", &user.home).env("USER", &user.name);
                command.env("LOGNAME", &user.name);
            }
        }
        command
    }

    /// The owner's login name.
    ///
    /// # Errors
    /// `42704` when the user database does not know the id.
    pub fn name(self) -> Result<String> {
        credentials::user_by_uid(self.uid)
            .map(|user| user.name)
            .ok_or_else(|| {
                Error::environment(
                    "42704",
                    format!("could not look up effective user ID {}", self.uid),
                )
            })
    }
}

/// Makes the entries of a directory durable.
pub fn fsync_directory(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(|e| Error::io("fsync directory", dir, &e))
}
