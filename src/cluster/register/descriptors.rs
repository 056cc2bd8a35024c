//! Whether the server's process still has files open that are about to be replaced.
//!
//! A process that does would go on reading the empty files. COMMIT may read what it logs only
//! when that is seen to be impossible; what cannot be seen counts as open.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

/// Whether the process `pid`, on this host and of the server over `data_directory`, has none of
/// these files open. Files are told by their names alone: too careful by a little.
pub(super) fn has_none_open(pid: i32, data_directory: &Path, names: &HashSet<OsString>) -> bool {
    let process = Path::new("/proc").join(pid.to_string());
    // In a container of its own the server's process has another number here.
    let is_the_servers = match (
        std::fs::read_link(process.join("cwd")),
        data_directory.canonicalize(),
    ) {
        (Ok(cwd), Ok(data)) => cwd == data,
        _ => false,
    };
    let Ok(open) = std::fs::read_dir(process.join("fd")) else {
        return false;
    };
    is_the_servers
        && open.into_iter().all(|entry| {
            entry
                .and_then(|entry| std::fs::read_link(entry.path()))
                .is_ok_and(|file| file.file_name().is_none_or(|name| !names.contains(name)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_open_is_seen_and_an_unknown_process_counts_as_having_it() {
        let here = std::env::current_dir().unwrap();
        let me = std::process::id() as i32;
        let directory = tempfile::tempdir().unwrap();
        let names = HashSet::from([OsString::from("16385")]);
        assert!(has_none_open(me, &here, &names));
        assert!(!has_none_open(me, directory.path(), &names));
        assert!(!has_none_open(i32::MAX, &here, &names));
        let open = std::fs::File::create(directory.path().join("16385")).unwrap();
        assert!(!has_none_open(me, &here, &names));
        drop(open);
        assert!(has_none_open(me, &here, &names));
    }
}
