//! A small disk that a test may fill.

use crate::program::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory that everybody may write to; dropped, it goes.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// One of so many bytes at `path`, which is made.
    ///
    /// # Panics
    /// When it cannot be mounted, which needs root.
    #[track_caller]
    pub fn mount(path: PathBuf, bytes: u64) -> SmallDisk {
        fs::create_dir_all(&path).expect("a directory");
        let size = format!("size={bytes},mode=0777");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path);
        run(&mut mount).expect_success();
        SmallDisk(path)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
