//! Finds the server's programs (initdb, postgres).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// Where packages put versions of the server, newest first within each.
const USUAL_PLACES: [&str; 3] = ["/usr/lib/postgresql", "/opt/postgresql", "/usr/pgsql-"];

/// A directory with `initdb` and `postgres`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    directory: PathBuf,
    major: u32,
}

impl Programs {
    /// Finds programs of version `major` (any version when `None`): in `--pg-bin` alone when
    /// given, else by pg_config, on PATH, in the usual places.
    ///
    /// # Errors
    /// `58P01` when there are none, with what was looked at.
    pub fn find(pg_bin: Option<&Path>, major: Option<u32>) -> Result<Programs> {
        let candidates = match pg_bin {
            Some(directory) => vec![directory.to_owned()],
            None => candidates(),
        };
        let mut seen = Vec::new();
        for directory in candidates {
            let Some(found) = version_of(&directory) else {
                continue;
            };
            if major.is_none_or(|m| m == found) {
                return Ok(Programs {
                    directory,
                    major: found,
                });
            }
            seen.push(format!("{} in \"{}\"", found, directory.display()));
        }
        let wanted = major.map_or_else(String::new, |m| format!(" {m}"));
        let mut error = Error::environment(
            "58P01",
            format!("could not find the programs of PostgreSQL{wanted} (initdb, postgres)"),
        )
        .with_hint("Name their directory with --pg-bin.");
        if !seen.is_empty() {
            error = error.with_detail(format!("Found version {}.", seen.join(", ")));
        } else if let Some(directory) = pg_bin {
            error = error.with_detail(format!("Looked into \"{}\".", directory.display()));
        }
        Err(error)
    }

    /// The path of a program.
    pub fn path(&self, program: &str) -> PathBuf {
        self.directory.join(program)
    }

    /// Their major version.
    pub fn major(&self) -> u32 {
        self.major
    }
}

fn candidates() -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output()
        && output.status.success()
    {
        all.push(PathBuf::from(
            String::from_utf8_lossy(&output.stdout).trim(),
        ));
    }
    if let Some(path) = std::env::var_os("PATH") {
        all.extend(std::env::split_paths(&path));
    }
    for place in USUAL_PLACES {
        let mut versions: Vec<(u32, PathBuf)> = glob::glob(&format!("{place}*/bin"))
            .into_iter()
            .chain(glob::glob(&format!("{place}/*/bin")))
            .flatten()
            .flatten()
            .filter_map(|bin| version_of(&bin).map(|v| (v, bin)))
            .collect();
        versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        all.extend(versions.into_iter().map(|(_, bin)| bin));
    }
    all
}

/// The major version that `postgres --version` tells; `None` where there is no server.
fn version_of(directory: &Path) -> Option<u32> {
    let postgres = directory.join("postgres");
    if !postgres.is_file() || !directory.join("initdb").is_file() {
        return None;
    }
    let output = Command::new(&postgres).arg("--version").output().ok()?;
    major_of(&String::from_utf8_lossy(&output.stdout))
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` is 15.
fn major_of(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("(PostgreSQL) ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_the_first_number() {
        assert_eq!(
            major_of("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(major_of("postgres (PostgreSQL) 19devel\n"), Some(19));
        assert_eq!(major_of("bash"), None);
    }

    #[test]
    fn a_directory_without_programs_is_named_in_the_error() {
        let e = Programs::find(Some(Path::new("/nonexistent")), None).unwrap_err();
        assert_eq!(e.sqlstate, "58P01");
        assert_eq!(e.detail.as_deref(), Some("Looked into \"/nonexistent\"."));
    }
}
