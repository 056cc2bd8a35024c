//! All files of a table, masked, to be compared with those that somebody else wrote.

use crate::diff::assert_same_pages;
use crate::mask::{Kind, ValueIds, attributes, mask, without_trailing_zero_pages};
use crate::server::{Fork, Page, Server};

/// A file of a relation, masked.
#[derive(Debug)]
pub struct File {
    /// What it is, for reports.
    pub what: String,
    /// How it is masked and told.
    pub kind: Kind,
    /// Its pages.
    pub pages: Vec<Page>,
}

/// Every file of a table: heap, visibility map, TOAST table and its index, indexes.
///
/// # Panics
/// When there is no such table.
#[track_caller]
pub fn files(server: &Server, database: &str, table: &str) -> Vec<File> {
    let mut ids = ValueIds::default();
    let mut files = Vec::new();
    let mut take = |what: String, relation: &str, fork: Fork, kind: Kind| {
        let mut pages = server.pages(database, relation, fork);
        if fork == Fork::Main {
            pages.truncate(without_trailing_zero_pages(&pages).len());
        }
        mask(&mut pages, &kind, &mut ids);
        files.push(File { what, kind, pages });
    };
    let heap = Kind::Heap(attributes(server, database, table));
    take(table.to_owned(), table, Fork::Main, heap);
    for (fork, name) in [
        (Fork::VisibilityMap, "visibility map"),
        (Fork::FreeSpaceMap, "free space map"),
    ] {
        take(format!("{name} of {table}"), table, fork, Kind::Map);
    }
    let mut client = server.connect(database);
    for row in client
        .query(
            "SELECT t.oid::regclass::text, i.indexrelid::regclass::text
               FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
               JOIN pg_index i ON i.indrelid = t.oid
              WHERE c.oid = $1::text::regclass",
            &[&table],
        )
        .expect("the TOAST table")
    {
        let (toast, index): (String, String) = (row.get(0), row.get(1));
        take(
            format!("TOAST table of {table}"),
            &toast,
            Fork::Main,
            Kind::Toast,
        );
        take(
            format!("TOAST index of {table}"),
            &index,
            Fork::Main,
            Kind::ToastIndex,
        );
        // The server makes the map's pages when it inserts frozen rows, and sets no bit.
        take(
            format!("visibility map of the TOAST table of {table}"),
            &toast,
            Fork::VisibilityMap,
            Kind::Map,
        );
        assert!(
            server
                .pages(database, &toast, Fork::FreeSpaceMap)
                .is_empty(),
            "{toast}"
        );
    }
    for row in client
        .query(
            "SELECT indexrelid::regclass::text FROM pg_index
              WHERE indrelid = $1::text::regclass ORDER BY indexrelid",
            &[&table],
        )
        .expect("the indexes")
    {
        let index: String = row.get(0);
        take(format!("index {index}"), &index, Fork::Main, Kind::Btree);
    }
    files
}

/// Asserts that two lists of a table's files are the same.
///
/// # Panics
/// With the first differences.
#[track_caller]
pub fn assert_same_files(ours: &[File], theirs: &[File]) {
    assert_eq!(ours.len(), theirs.len(), "numbers of files");
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_same_pages(&ours.what, &ours.kind, &ours.pages, &theirs.pages);
    }
}
