//! Relation files with segments of a few blocks, as literals.

use super::relation_file::{DirectIo, FileOptions, RelationFile, RelationSize};
use super::sequential::SequentialPages;
use super::visibility_map::{Marks, write_visibility_map};
use super::writer::WriterPool;
use crate::sys::simd::page_checksum;
use pgformat::page::header::PageHeader;
use pgformat::page::{PAGE_BYTES, Page};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

fn options(segment_blocks: u32, direct: DirectIo) -> FileOptions {
    FileOptions {
        segment_blocks,
        checksums: false,
        direct,
        ..FileOptions::default()
    }
}

/// A page that is full of one byte behind an empty page's header.
fn page(content: u8) -> Page {
    let mut page = [content; PAGE_BYTES];
    PageHeader::empty(0).write(&mut page);
    page
}

/// The last byte of each page of a file.
fn contents(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    assert_eq!(bytes.len() % PAGE_BYTES, 0);
    bytes
        .chunks(PAGE_BYTES)
        .map(|p| p[PAGE_BYTES - 1])
        .collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_empty_relation_is_one_file_of_no_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let file = RelationFile::create(dir.path(), "16384", options(4, DirectIo::Auto)).unwrap();
    file.finish(0).unwrap();
    assert_eq!(names(dir.path()), ["16384"]);
    let meta = fs::metadata(dir.path().join("16384")).unwrap();
    assert_eq!((meta.len(), meta.permissions().mode() & 0o777), (0, 0o600));
}

#[test]
fn a_file_that_is_there_already_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("16384"), b"mine").unwrap();
    let error = RelationFile::create(dir.path(), "16384", options(4, DirectIo::Auto)).unwrap_err();
    assert_eq!(error.sqlstate, "58P02");
    assert_eq!(fs::read(dir.path().join("16384")).unwrap(), b"mine");
}

#[test]
fn a_buffer_may_cross_the_end_of_a_segment() {
    for direct in [DirectIo::Auto, DirectIo::Off] {
        let dir = tempfile::tempdir().unwrap();
        let file = RelationFile::create(dir.path(), "16384", options(4, direct)).unwrap();
        let writers = WriterPool::new(2, 2, 6);
        for (first, count) in [(6u32, 5usize), (0, 6)] {
            let mut buffer = writers.buffer().unwrap();
            for i in 0..count {
                buffer.pages_mut()[i] = page(first as u8 + i as u8);
            }
            writers.submit(&file, first, buffer, count).unwrap();
        }
        assert_eq!(
            writers.finish(&file, 11),
            RelationSize {
                blocks: 11,
                segments: 3
            }
        );
        writers.finished().unwrap();
        assert_eq!(names(dir.path()), ["16384", "16384.1", "16384.2"]);
        assert_eq!(contents(&dir.path().join("16384")), [0, 1, 2, 3]);
        assert_eq!(contents(&dir.path().join("16384.1")), [4, 5, 6, 7]);
        assert_eq!(contents(&dir.path().join("16384.2")), [8, 9, 10]);
    }
}

#[test]
fn a_full_last_segment_has_no_empty_one_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = RelationFile::create(dir.path(), "16384", options(4, DirectIo::Auto)).unwrap();
    let writers = WriterPool::new(1, 1, 2);
    let mut pages = SequentialPages::new(Arc::clone(&file), &writers).unwrap();
    for i in 0..8 {
        assert_eq!(pages.push(&page(i)).unwrap(), i as u32);
    }
    assert_eq!(
        pages.finish().unwrap(),
        RelationSize {
            blocks: 8,
            segments: 2
        }
    );
    writers.finished().unwrap();
    assert_eq!(names(dir.path()), ["16384", "16384.1"]);
}

#[test]
fn pages_of_upper_levels_may_come_after_their_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let file = RelationFile::create(dir.path(), "16384", options(100, DirectIo::Auto)).unwrap();
    let writers = WriterPool::new(2, 1, 4);
    let mut pages = SequentialPages::new(Arc::clone(&file), &writers).unwrap();
    for block in [1, 2, 3, 5, 6, 4, 8, 13, 12, 7, 11, 9, 10, 0] {
        pages.put(block, &page(block as u8)).unwrap();
    }
    assert_eq!(pages.blocks(), 14);
    assert_eq!(pages.finish().unwrap().blocks, 14);
    writers.finished().unwrap();
    assert_eq!(
        contents(&dir.path().join("16384")),
        (0..14).collect::<Vec<u8>>()
    );
}

#[test]
fn a_block_that_never_came_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let file = RelationFile::create(dir.path(), "16384", options(4, DirectIo::Auto)).unwrap();
    let writers = WriterPool::new(1, 1, 4);
    let mut pages = SequentialPages::new(file, &writers).unwrap();
    pages.put(0, &page(0)).unwrap();
    pages.put(2, &page(2)).unwrap();
    pages.finish().unwrap();
    let error = writers.finished().unwrap_err();
    assert_eq!(error.sqlstate, "XX000");
    assert!(
        error
            .message
            .contains("blocks written of a fork of 3 blocks"),
        "{error}"
    );
}

#[test]
fn what_is_queued_when_the_pool_goes_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = RelationFile::create(dir.path(), "16384", options(1000, DirectIo::Auto)).unwrap();
    let writers = WriterPool::new(1, 200, 8);
    for i in 0..100 {
        let buffer = writers.buffer().unwrap();
        writers.submit(&file, i * 8, buffer, 8).unwrap();
    }
    writers.finish(&file, 800);
    drop(writers);
    let error = file.wait().unwrap_err();
    assert_eq!(error.sqlstate, "57014");
}

#[test]
fn checksums_count_blocks_over_all_segments() {
    let dir = tempfile::tempdir().unwrap();
    let file = RelationFile::create(
        dir.path(),
        "16384",
        FileOptions {
            checksums: true,
            ..options(2, DirectIo::Auto)
        },
    )
    .unwrap();
    let writers = WriterPool::new(1, 1, 4);
    let mut pages = SequentialPages::new(file, &writers).unwrap();
    for _ in 0..3 {
        pages.push(&page(9)).unwrap();
    }
    pages.finish().unwrap();
    writers.finished().unwrap();
    let bytes = fs::read(dir.path().join("16384.1")).unwrap();
    let third: &Page = bytes.as_slice().try_into().unwrap();
    let expected = page_checksum(&page(9), 2);
    assert_ne!(expected, page_checksum(&page(9), 0));
    assert_eq!(PageHeader::read(third).checksum, expected);
}

#[test]
fn the_first_error_is_kept_and_told_to_all() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("gone");
    fs::create_dir(&inner).unwrap();
    let file = RelationFile::create(&inner, "16384", options(1, DirectIo::Auto)).unwrap();
    let other = RelationFile::create(dir.path(), "16385", options(1, DirectIo::Auto)).unwrap();
    fs::remove_dir_all(&inner).unwrap();
    let writers = WriterPool::new(1, 1, 1);
    // Block 1 needs a second file, which can no longer be made.
    writers
        .submit(&file, 1, writers.buffer().unwrap(), 1)
        .unwrap();
    let error = file.finish(1).unwrap_err();
    assert_eq!(error.sqlstate, "58P01");
    assert!(
        error.message.starts_with("could not create file"),
        "{error}"
    );
    let next = writers
        .submit(&other, 0, writers.buffer().unwrap(), 1)
        .unwrap_err();
    assert_eq!(next, error);
}

#[test]
fn many_fillers_share_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = RelationFile::create(dir.path(), "16384", options(50, DirectIo::Auto)).unwrap();
    let writers = WriterPool::new(3, 2, 8);
    thread::scope(|scope| {
        for filler in 0..4u32 {
            let (file, writers) = (&file, &writers);
            scope.spawn(move || {
                for round in 0..8 {
                    let first = (round * 4 + filler) * 8;
                    let mut buffer = writers.buffer().unwrap();
                    for (i, place) in buffer.pages_mut().iter_mut().enumerate() {
                        *place = page((first as usize + i) as u8);
                    }
                    writers.submit(file, first, buffer, 8).unwrap();
                }
            });
        }
    });
    assert_eq!(writers.finish(&file, 256).segments, 6);
    writers.finished().unwrap();
    let all: Vec<u8> = (0..6)
        .flat_map(|n| {
            let name = if n == 0 {
                "16384".into()
            } else {
                format!("16384.{n}")
            };
            contents(&dir.path().join(name))
        })
        .collect();
    assert_eq!(all, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn a_heap_has_a_map_as_soon_as_it_has_a_block() {
    let dir = tempfile::tempdir().unwrap();
    let writers = WriterPool::new(1, 1, 4);
    let write = |name: &str, heap_blocks| {
        let options = options(4, DirectIo::Auto);
        write_visibility_map(
            dir.path(),
            name,
            heap_blocks,
            Marks::AllFrozen,
            options,
            &writers,
        )
        .unwrap()
        .map(|(_, size)| size)
    };
    assert_eq!(write("1_vm", 0), None);
    assert_eq!(write("2_vm", 32_672).unwrap().blocks, 1);
    assert_eq!(write("3_vm", 32_673).unwrap().blocks, 2);
    writers.finished().unwrap();
    assert_eq!(names(dir.path()), ["2_vm", "3_vm"]);
    assert_eq!(contents(&dir.path().join("3_vm")), [0xff, 0]);
}
