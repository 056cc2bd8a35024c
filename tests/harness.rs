//! The harness itself, tried on every version: servers start, crash, come back, and the
//! checkers find a fault that was put there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use support::{Fork, Kind, ValueIds};

#[test]
fn a_server_of_each_version_survives_a_crash_with_its_rows() {
    support::each_version(&[("wal_level", "minimal")], |server| {
        server.execute(
            "postgres",
            "CREATE TABLE t AS SELECT i FROM generate_series(1, 1000) i",
        );
        server.stop_immediate();
        server.restart();
        assert_eq!(server.value("postgres", "SELECT count(*) FROM t"), "1000");
        assert_eq!(server.value("postgres", "SHOW wal_level"), "minimal");
        assert_eq!(
            server
                .value("postgres", "SHOW server_version_num")
                .parse::<u32>()
                .unwrap()
                / 10000,
            server.version()
        );
        let pages = server.pages("postgres", "t", Fork::Main);
        assert_eq!(support::without_trailing_zero_pages(&pages).len(), 5);
        assert_eq!(
            server
                .psql("postgres", &["-Atc", "SELECT 1"])
                .expect_success(),
            "1\n"
        );
        support::assert_healthy(server, "postgres");
        support::assert_checksums(server, "postgres");
    });
}

#[test]
fn the_checkers_find_a_page_that_was_changed_behind_the_server() {
    support::each_version(&[], |server| {
        server.execute(
            "postgres",
            "CREATE TABLE t (i integer PRIMARY KEY, s text);
             INSERT INTO t SELECT i, repeat('x', i) FROM generate_series(1, 500) i",
        );
        server.execute("postgres", "VACUUM (FREEZE) t");
        support::assert_healthy(server, "postgres");
        let path = server.value("postgres", "SELECT pg_relation_filepath('t_pkey')");
        server.stop();
        let file = File::options()
            .write(true)
            .open(server.data_dir().join(path))
            .unwrap();
        file.write_all_at(&[0xff; 8], 2 * 8192 - 100).unwrap();
        server.restart();
        let findings = support::findings(server, "postgres");
        assert!(
            findings.iter().any(|f| f.starts_with("t_pkey: ")),
            "{findings:?}"
        );
    });
}

#[test]
fn the_same_load_twice_gives_the_same_pages_under_the_mask() {
    support::each_version(&[], |server| {
        server.execute(
            "postgres",
            "CREATE TABLE t (i integer PRIMARY KEY, s text, u text);
             ALTER TABLE t ALTER u SET STORAGE EXTERNAL",
        );
        let attributes = support::attributes(server, "postgres", "t");
        let toast = server.value(
            "postgres",
            "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't'",
        );
        let index = server.value("postgres", "SELECT indexrelid::regclass FROM pg_index WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE relname = 't')");
        let files = [
            ("t", Fork::Main, Kind::Heap(attributes)),
            ("t", Fork::VisibilityMap, Kind::Map),
            ("t_pkey", Fork::Main, Kind::Btree),
            (&toast, Fork::Main, Kind::Toast),
            (&index, Fork::Main, Kind::ToastIndex),
        ];
        let load = || {
            server.execute(
                "postgres",
                "BEGIN; TRUNCATE t;
                 INSERT INTO t SELECT i, repeat('x', i), repeat('y', i * 20) FROM generate_series(1, 500) i;
                 REINDEX TABLE t; COMMIT",
            );
            let mut ids = ValueIds::default();
            files.clone().map(|(name, fork, kind)| {
                let mut pages = server.pages("postgres", name, fork);
                support::mask(&mut pages, &kind, &mut ids);
                (pages, kind)
            })
        };
        let (first, second) = (load(), load());
        assert!(first[3].0.len() > 100, "values went out of line");
        for ((ours, kind), (theirs, _)) in first.iter().zip(&second) {
            support::assert_same_pages("the second load", kind, ours, theirs);
        }
    });
}
