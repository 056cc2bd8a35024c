//! A heap of more than one segment, as the server writes it and as we do.
//!
//! `char(n)` pads a value of one byte to thousands, so that little input fills a gigabyte: the
//! same table shows that a chunk whose tuples outgrow the memory is placed in parts.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use support::{Kind, PAGE_BYTES, Page, Server, ValueIds};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgpagewrite");
const DB: &str = "postgres";
/// Four tuples fill a page; so many rows take a little more than 1 GB.
const ROWS: usize = 4 * 131_072 + 1000;

/// The path of the table's first segment.
fn path(server: &Server) -> std::path::PathBuf {
    let path = server.value(DB, "SELECT pg_relation_filepath('padded')");
    server.data_dir().join(path)
}

/// Some pages of the heap: the ends of both segments, and every 997th between.
fn sample(server: &Server) -> Vec<(u32, Page)> {
    server.execute(DB, "CHECKPOINT");
    let path = path(server);
    let mut pages = Vec::new();
    for segment in 0..2u32 {
        let path = match segment {
            0 => path.clone(),
            n => format!("{}.{n}", path.display()).into(),
        };
        let file = File::open(&path).expect("both segments are there");
        let blocks = (file.metadata().expect("its size").len() / PAGE_BYTES as u64) as u32;
        for block in (0..blocks).filter(|b| b % 997 == 0 || *b < 3 || *b + 3 >= blocks) {
            let mut page: Page = [0; PAGE_BYTES];
            file.read_exact_at(&mut page, u64::from(block) * PAGE_BYTES as u64)
                .expect("a page");
            pages.push((segment * 131_072 + block, page));
        }
    }
    // The server may extend a file by more than it needs.
    pages.retain(|(_, page)| page.iter().any(|b| *b != 0));
    let kind = Kind::Heap(support::attributes(server, DB, "padded"));
    for (_, page) in &mut pages {
        support::mask(std::slice::from_mut(page), &kind, &mut ValueIds::default());
    }
    pages
}

#[test]
fn a_heap_over_one_gigabyte_continues_in_a_second_segment() {
    let server = Server::start(15, &[("wal_level", "minimal"), ("max_wal_senders", "0")]);
    let mut input = String::new();
    for row in 0..ROWS {
        writeln!(input, "{row}\t{}", row % 10).expect("a String takes it");
    }
    let file = server.dir().join("padded.txt");
    std::fs::write(&file, input).expect("the input");
    server.execute(
        DB,
        "CREATE TABLE padded (id int, c char(1990));
         ALTER TABLE padded ALTER c SET STORAGE PLAIN;
         CREATE UNIQUE INDEX padded_id ON padded (id)",
    );
    server.execute(
        DB,
        &format!(
            "BEGIN; TRUNCATE padded; COPY padded FROM '{}' WITH (FREEZE); COMMIT",
            file.display()
        ),
    );
    let theirs = sample(&server);
    assert!(
        theirs.iter().any(|(block, _)| *block >= 131_072),
        "a second segment"
    );
    server.execute(DB, "TRUNCATE padded; CHECKPOINT");

    let built = support::run(
        Command::new(PROGRAM)
            .args(["build", "--no-analyze", "--memory", "64MB", "-d"])
            .arg(server.conninfo(DB))
            .arg(format!("padded={}", file.display())),
    );
    built.expect_success();
    let ours = sample(&server);
    assert_eq!(
        ours.iter().map(|(block, _)| block).collect::<Vec<_>>(),
        theirs.iter().map(|(block, _)| block).collect::<Vec<_>>()
    );
    for ((block, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        assert!(ours == theirs, "block {block} differs");
    }
    assert_eq!(
        server.value(DB, "SELECT format('%s|%s', count(*), sum(id)) FROM padded"),
        format!("{ROWS}|{}", ROWS * (ROWS - 1) / 2)
    );
    support::assert_healthy(&server, DB);
}
