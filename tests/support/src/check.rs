//! The server's own checkers.

use crate::program::run;
use crate::server::{Server, describe};
use postgres::Client;

/// Runs every checker over every table and btree index of a database (TOAST included) that
/// is not the server's own, and gives a line for each finding.
///
/// verify_heapam with TOAST, pg_check_visible, pg_check_frozen, bt_index_parent_check with
/// heapallindexed and rootdescend, and the header of every block, which the server reads (and
/// so checks the checksum of) unless it has it in memory.
///
/// # Panics
/// When the extensions are not there.
#[track_caller]
pub fn findings(server: &Server, database: &str) -> Vec<String> {
    let mut client = server.connect(database);
    client
        .batch_execute(
            "SET client_min_messages = warning;
             CREATE EXTENSION IF NOT EXISTS amcheck;
             CREATE EXTENSION IF NOT EXISTS pg_visibility;
             CREATE EXTENSION IF NOT EXISTS pageinspect",
        )
        .expect("the checkers' extensions");
    let mut findings = Vec::new();
    for row in client
        .query(
            "SELECT c.oid::regclass::text, c.relkind::text FROM pg_class c
             WHERE c.oid >= 16384 AND c.relkind IN ('r', 'm', 't', 'i')
               AND (c.relkind <> 'i' OR c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree'))
             ORDER BY c.oid",
            &[],
        )
        .expect("the relations")
    {
        let (name, kind): (String, String) = (row.get(0), row.get(1));
        let checks: &[&str] = if kind == "i" {
            &["SELECT NULL WHERE bt_index_parent_check($1::text::regclass, true, true) IS NULL"]
        } else {
            &[
                "SELECT format('block %s, item %s, attribute %s: %s', blkno, offnum, attnum, msg)
                   FROM verify_heapam($1::text::regclass, check_toast := true)",
                "SELECT 'not all-visible: ' || t_ctid::text FROM pg_check_visible($1::text::regclass) AS t_ctid",
                "SELECT 'not frozen: ' || t_ctid::text FROM pg_check_frozen($1::text::regclass) AS t_ctid",
            ]
        };
        for check in checks {
            ask(&mut client, check, &name, &mut findings);
        }
        ask(
            &mut client,
            "SELECT format('block %s: header %s', b, h)
               FROM generate_series(0, pg_relation_size($1::text::regclass) / 8192 - 1) b,
                    page_header(get_raw_page($1::text, 'main', b::integer)) h
              WHERE h.lower <> 0 AND (h.pagesize <> 8192 OR h.version <> 4
                 OR h.lower > h.upper OR h.upper > h.special)",
            &name,
            &mut findings,
        );
    }
    findings
}

fn ask(client: &mut Client, sql: &str, relation: &str, findings: &mut Vec<String>) {
    match client.query(sql, &[&relation]) {
        Ok(rows) => findings.extend(rows.iter().map(|row| {
            let said: Option<String> = row.get(0);
            format!("{relation}: {}", said.unwrap_or_default())
        })),
        Err(e) => findings.push(format!("{relation}: {}", describe(&e))),
    }
}

/// Asserts that the checkers find nothing.
///
/// # Panics
/// With every finding.
#[track_caller]
pub fn assert_healthy(server: &Server, database: &str) {
    let findings = findings(server, database);
    assert!(
        findings.is_empty(),
        "PostgreSQL {} finds in {database}:\n{}",
        server.version(),
        findings.join("\n")
    );
}

/// Asserts that the checksum of every block of every fork of a database is right.
///
/// The server is restarted, so that it has nothing in memory, and reads them all; where
/// its pg_checksums is installed (not every package has it), that checks the whole cluster in between.
///
/// # Panics
/// With what the server or pg_checksums said.
#[track_caller]
pub fn assert_checksums(server: &mut Server, database: &str) {
    server.execute(database, "CREATE EXTENSION IF NOT EXISTS pageinspect");
    server.stop();
    if server.bin_dir().join("pg_checksums").exists() {
        let ran = run(server
            .server_program("pg_checksums")
            .args(["--check", "-D"])
            .arg(server.data_dir()));
        assert!(ran.succeeded(), "{}{}", ran.stdout, ran.stderr);
    }
    server.restart();
    server.execute(
        database,
        "SELECT count(get_raw_page(c.oid::regclass::text, fork, b::integer))
           FROM pg_class c, unnest(ARRAY['main', 'fsm', 'vm', 'init']) fork,
                generate_series(0, pg_relation_size(c.oid, fork) / 8192 - 1) b
          WHERE c.relkind IN ('r', 'm', 't', 'i', 'S') AND c.relpersistence <> 't'",
    );
}
