//! Small archives of each version, format and compression, damaged in every place.

use fuzz::archive::{ArchiveTarget, Contents};
use fuzz::{Input, Options, run};
use std::path::{Path, PathBuf};

fn seeds() -> Vec<(PathBuf, Input)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dumps/archives");
    let mut seeds: Vec<(PathBuf, Input)> = std::fs::read_dir(&directory)
        .expect("the archives")
        .map(|file| file.expect("an archive").path())
        .map(|path| (path.clone(), Input::read(&path).expect("an archive")))
        .collect();
    seeds.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(seeds.len() >= 18, "{}", seeds.len());
    seeds
}

fn name(path: &Path) -> String {
    path.file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

/// What checksums the data of an archive have: only zlib and gzip write them.
fn notices_changes_in_data(path: &Path) -> bool {
    name(path).contains("gzip")
}

fn target() -> ArchiveTarget {
    ArchiveTarget::new().expect("a directory for inputs")
}

#[test]
fn every_archive_has_the_same_rows_and_large_objects() {
    let target = target();
    for (path, input) in seeds() {
        let contents = target
            .contents(&input)
            .unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
        let rows: Vec<&[u8]> = contents
            .members
            .iter()
            .map(|(_, bytes)| bytes.as_slice())
            .collect();
        assert_eq!(rows.len(), 2, "{}", path.display());
        let text =
            std::str::from_utf8(rows.iter().max_by_key(|r| r.len()).expect("rows")).expect("text");
        assert!(text.starts_with("1\trow 1\\t\\\\\n2\t"), "{text}");
        assert!(text.ends_with("\n60\t\n\\.\n\n\n"), "{text}");
        assert_eq!(text.lines().count(), 63, "{text}");
        let mut objects: Vec<(u32, Vec<u8>)> = contents
            .large_objects
            .iter()
            .map(|(_, oid, bytes)| (*oid, bytes.clone()))
            .collect();
        objects.sort();
        let expected = [
            (4711, "large object ".repeat(30).into_bytes()),
            (4712, Vec::new()),
            (3_000_000_000, vec![0, 1, 0xff]),
        ];
        assert_eq!(objects, expected, "{}", path.display());
    }
}

/// The same data under any description. The OID of a large object stands beside its data.
fn same_data(a: &Contents, b: &Contents) -> bool {
    let objects = |c: &Contents| -> Vec<Vec<u8>> {
        c.large_objects
            .iter()
            .map(|(_, _, bytes)| bytes.clone())
            .collect()
    };
    a.members == b.members && objects(a) == objects(b)
}

#[test]
fn an_archive_that_is_cut_off_anywhere_is_refused_or_loses_nothing() {
    let target = target();
    for (path, whole) in seeds() {
        let expected = target.contents(&whole).expect("the whole");
        for (file, (file_name, bytes)) in whole.files.iter().enumerate() {
            for len in 0..bytes.len() {
                let mut input = whole.clone();
                input.files[file].1.truncate(len);
                let Ok(contents) = target.contents(&input) else {
                    continue;
                };
                // The files of a directory do not say how long they are, and a list of large objects
                // not how many.
                let is_part = whole.is_directory
                    && (file_name.contains(".dat") || file_name.starts_with("blobs"))
                    || len == 0 && file_name.starts_with("blob_");
                assert!(
                    contents == expected || (is_part && contents.entries == expected.entries),
                    "{} {file_name} cut off at {len} of {}",
                    path.display(),
                    bytes.len()
                );
            }
        }
    }
}

#[test]
fn an_archive_with_any_byte_changed_gives_an_error_or_data() {
    let target = target();
    for (path, whole) in seeds() {
        let expected = target.contents(&whole).expect("the whole");
        for (file, (file_name, bytes)) in whole.files.iter().enumerate() {
            for at in 0..bytes.len() {
                for change in [0x01, 0xff] {
                    let mut input = whole.clone();
                    input.files[file].1[at] ^= change;
                    let Ok(contents) = target.contents(&input) else {
                        continue;
                    };
                    if !notices_changes_in_data(&path) || file_name.ends_with("toc") {
                        continue;
                    }
                    // In the table of contents a byte may turn a member into none, or into another name.
                    assert!(
                        same_data(&contents, &expected)
                            || contents.entries != expected.entries
                            || contents.header != expected.header,
                        "{} {file_name} byte {at} ^ {change}",
                        path.display()
                    );
                }
            }
        }
    }
}

#[test]
fn mutated_archives_do_no_harm() {
    let seeds: Vec<Input> = seeds().into_iter().map(|(_, input)| input).collect();
    let options = Options {
        executions: 30_000,
        seed: 15,
        findings: std::env::temp_dir(),
    };
    let summary =
        run(&mut target(), &seeds, &options).unwrap_or_else(|finding| panic!("{finding}"));
    // Mutations that are all refused at the door would try nothing.
    assert!(
        summary.taken > options.executions / 50 && summary.taken < options.executions,
        "{summary:?}"
    );
}
