//! Dumps of many tables: the small ones go to the server's COPY, in the restore's transaction.

use super::{NOTHING, OURS, SOURCE, THEIRS, assert_same, build, dumped, fresh, objects};
use std::path::Path;
use support::{Server, assert_same_files, files, run};

/// Small tables of all sorts, a large one, and a partitioned one whose leaves have keys that are
/// attached to its own.
fn fill(server: &Server, count: usize) {
    server.execute("postgres", &format!("CREATE DATABASE {SOURCE}"));
    server.execute(
        SOURCE,
        &format!(
            "CREATE TABLE kinds (id int PRIMARY KEY, name text NOT NULL);
             INSERT INTO kinds SELECT i, 'kind ' || i FROM generate_series(1, 20) i;
             CREATE TABLE large (id bigint PRIMARY KEY, t text);
             INSERT INTO large SELECT i, repeat(md5(i::text), 3) FROM generate_series(1, 5000) i;
             CREATE INDEX ON large (t);
             CREATE TABLE parts (id int, k int, PRIMARY KEY (k, id)) PARTITION BY LIST (k);
             CREATE INDEX ON parts (id);
             DO $$ BEGIN FOR i IN 0 .. {count} - 1 LOOP
               EXECUTE format('CREATE TABLE t%s (id %s PRIMARY KEY, k int NOT NULL%s, v text,
                                 d timestamptz DEFAULT now(), m numeric(10,2) CHECK (m >= 0))', i,
                 CASE WHEN i % 2 = 0 THEN 'bigserial'
                      ELSE 'bigint GENERATED ALWAYS AS IDENTITY' END,
                 CASE WHEN i % 5 = 0 THEN ' REFERENCES kinds' END);
               EXECUTE format('CREATE INDEX ON t%s (k); CREATE INDEX ON t%s (lower(v))', i, i);
               EXECUTE format('COMMENT ON TABLE t%s IS ''table %s''', i, i);
               EXECUTE format('INSERT INTO t%s (k, v, m) SELECT j %% 20 + 1,
                                 repeat(''x'', 4 * j) || j, j * 1.25
                                 FROM generate_series(1, %s) j', i, i * 37 % 101);
               IF i % 10 = 3 THEN
                 EXECUTE format('CREATE TABLE part%s PARTITION OF parts FOR VALUES IN (%s)', i, i);
                 EXECUTE format('INSERT INTO parts SELECT j, %s FROM generate_series(1, 30) j', i);
               END IF;
               IF i % 10 = 4 THEN
                 EXECUTE format('CREATE TRIGGER never BEFORE INSERT ON t%s
                                   FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', i);
               END IF;
             END LOOP; END $$;
             CREATE VIEW by_kind AS SELECT name, count(*) FROM t0 JOIN kinds ON k = kinds.id GROUP BY kinds.id"
        ),
    );
}

fn server(version: u32, settings: &[(&str, &str)]) -> Server {
    let all = [&[("max_locks_per_transaction", "400")], settings].concat();
    Server::start(version, &all)
}

fn restored_by_pg_restore(server: &Server, archive: &Path) -> Vec<String> {
    fresh(server, THEIRS);
    let mut restore = server.client(15.max(server.version()), "pg_restore", "postgres");
    run(restore.args(["-e", "-d", THEIRS]).arg(archive)).expect_success();
    server.dump(THEIRS)
}

fn many_restore_alike(version: u32, wal_level: &str) {
    let mut server = server(version, &[("wal_level", wal_level)]);
    let pg_dump = version.max(15);
    fill(&server, 130);
    let archive = dumped(&server, pg_dump, "archive.dump", &["-Fc"]);
    let theirs = restored_by_pg_restore(&server, &archive);
    for (name, args) in [
        ("archive.dump", &["-Fc"][..]),
        ("directory", &["-Fd"]),
        ("archive.tar", &["-Ft"]),
    ] {
        let dump = dumped(&server, pg_dump, name, args);
        fresh(&server, OURS);
        let report = build(&server, OURS, &[], &dump).expect_success();
        assert_same(name, &server.dump(OURS), &theirs);
        assert!(report.contains("large_pkey: native"), "{name}: {report}");
        assert_eq!(
            report.matches("it is one of many small tables").count(),
            130 + 13 + 1,
            "{name}: {report}"
        );
        support::assert_healthy(&server, OURS);
    }
    let before = server.dump(OURS);
    server.stop_immediate();
    server.restart();
    assert_same("after a crash", &server.dump(OURS), &before);
    support::assert_healthy(&server, OURS);
}

#[test]
fn many_small_tables_restore_as_by_pg_restore_14() {
    many_restore_alike(14, "minimal");
}

#[test]
fn many_small_tables_restore_as_by_pg_restore_15() {
    many_restore_alike(15, "minimal");
}

#[test]
fn many_small_tables_restore_as_by_pg_restore_18() {
    many_restore_alike(18, "replica");
}

/// An archive of plain tables with keys, and of nothing else.
fn plain_tables(server: &Server, count: usize) -> std::path::PathBuf {
    let database = format!("plain{count}");
    server.execute("postgres", &format!("CREATE DATABASE {database}"));
    server.execute(
        &database,
        &format!(
            "DO $$ BEGIN FOR i IN 0 .. {count} - 1 LOOP
               EXECUTE format('CREATE TABLE t%s (id bigserial PRIMARY KEY, k int, v text)', i);
               EXECUTE format('CREATE INDEX ON t%s (k)', i);
               EXECUTE format('INSERT INTO t%s (k, v) SELECT j %% 7, ''value '' || j
                                 FROM generate_series(1, %s) j', i, i % 100);
             END LOOP; END $$"
        ),
    );
    let path = server.dir().join(format!("{database}.dump"));
    let mut pg_dump = server.client(15.max(server.version()), "pg_dump", &database);
    run(pg_dump.args(["-Fc", "-f"]).arg(&path)).expect_success();
    path
}

#[test]
fn the_files_of_small_tables_are_those_that_are_built_natively() {
    for version in [15, 18] {
        let server = server(version, &[("wal_level", "minimal")]);
        let archive = plain_tables(&server, 105);
        fresh(&server, OURS);
        let report = build(&server, OURS, &[], &archive).expect_success();
        assert!(!report.contains("t77_pkey: native"), "{report}");
        fresh(&server, THEIRS);
        let report = build(&server, THEIRS, &["--native-only"], &archive).expect_success();
        assert!(report.contains("t77_pkey: native"), "{report}");
        for table in ["t0", "t1", "t77", "t99"] {
            let ours = files(&server, OURS, table);
            let native = files(&server, THEIRS, table);
            assert_same_files(&ours, &native);
        }
    }
}

/// How many statements the server's log has.
fn logged(server: &Server) -> usize {
    let log = server.log();
    let is_statement =
        |line: &&str| line.contains("LOG:  statement:") || line.contains("LOG:  execute ");
    log.lines().filter(is_statement).count()
}

#[test]
fn a_table_more_is_two_statements_more_at_the_most() {
    let server = server(15, &[("wal_level", "minimal")]);
    let mut counts = Vec::new();
    for tables in [200, 500] {
        let archive = plain_tables(&server, tables);
        fresh(&server, OURS);
        server.execute("postgres", "ALTER SYSTEM SET log_statement = 'all'");
        server.execute("postgres", "SELECT pg_reload_conf()");
        let before = logged(&server);
        let mut command = std::process::Command::new(super::PROGRAM);
        command.args(["build", "-d"]).arg(server.conninfo(OURS));
        run(command.arg(&archive)).expect_success();
        counts.push(logged(&server) - before);
        server.execute("postgres", "ALTER SYSTEM RESET log_statement");
        server.execute("postgres", "SELECT pg_reload_conf()");
        let analyzed = "SELECT count(DISTINCT starelid) FROM pg_statistic WHERE starelid >= 16384";
        // Every hundredth table is empty.
        assert_eq!(
            server.value(OURS, analyzed),
            (tables - tables / 100).to_string()
        );
    }
    assert!(counts[0] > 200, "{counts:?}");
    assert!(counts[1] - counts[0] <= 2 * 300, "{counts:?}");
}

#[test]
fn too_few_locks_are_told_with_what_to_set() {
    let server = server(15, &[]);
    let archive = plain_tables(&server, 700);
    drop(archive);
    let few = Server::start(15, &[("max_locks_per_transaction", "10")]);
    let archive = server.dir().join("plain700.dump");
    fresh(&few, OURS);
    let ran = build(&few, OURS, &[], &archive);
    assert_eq!(ran.sqlstate(), Some("53200"));
    let told = ran.expect_failure(3);
    // A table, its TOAST table with an index, its sequence, two indexes; 20 connections.
    let value = told.split("Set max_locks_per_transaction to ").nth(1);
    let value = value.and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert_eq!(value, Some((700 * 6_u32 + 64).div_ceil(20)), "{told}");
    assert_eq!(objects(&few, OURS), NOTHING);
}
